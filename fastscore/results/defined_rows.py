"""Headline metrics by unit, over the rows in which their definition leaves the value open.

A unit is a dialogue, or what a column names. Rows in which a definition gives the value whatever
the dialogue (`Metric.fixed_where`) are left out, and rows of different scales (`Metric.scale_by`)
are kept apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from fastscore.results.dialogue_sums import LABEL_TABLE
from fastscore.results.groups import BETWEEN
from fastscore.statistics.clustered import Estimate, clustered_mean
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Metric, Table
from fastscore.suites.summary import ALL, choose_grids, fixed_point

UNIT = "unit"
VALUES_NAMED = 5


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of a metric that are on one scale, by unit.

    Parameters
    ----------
    metric
        The metric.
    where
        Which rows these are, as a reader names them: ``condition C4, C5``. Empty for all rows.
    scale
        The value of the column that the metric's scale depends on; None if it depends on none.
    units
        ``unit``, the labels, ``sum`` of the values, ``n`` of them, ``at_minimum`` and
        ``at_maximum``, how many lie at the ends of the range. A row a unit and labels, in the
        order of `unit` and labels.
    """

    metric: Metric
    where: str
    scale: str | int | bool | None
    units: pl.DataFrame

    @property
    def estimate(self) -> Estimate:
        """The mean over rows, with its interval over units."""
        units = self.units.group_by(UNIT, maintain_order=True).agg(pl.col("sum", "n").sum())
        return clustered_mean(
            units["sum"].to_numpy(),
            units["n"].cast(pl.Float64).to_numpy(),
            minimum=self.metric.minimum,
            maximum=self.metric.maximum,
        )


def defined_parts(
    suite: Suite,
    tables: Mapping[str, pl.LazyFrame],
    metrics: Sequence[Metric],
    *,
    labels: Sequence[str] = (),
    cluster: str | None = None,
) -> list[Part]:
    """Return the parts of metrics that have a value, in the order of the metrics.

    Parameters
    ----------
    suite
        What scored the tables.
    tables
        Its tables by name.
    metrics
        Metrics of the suite.
    labels
        Columns of table ``dialogues`` that the units are labelled with.
    cluster
        The column that names the units, of the metric's table or of ``dialogues``. A dialogue
        without a value is a unit of its own. Default: the dialogue.
    """
    declared = {table.name: table for table in suite.tables}
    found: dict[str, list[Part]] = {}
    for name in dict.fromkeys(metric.table for metric in metrics):
        chosen = [metric for metric in metrics if metric.table == name]
        sums = _sum_units(declared[name], tables, chosen, labels, cluster)
        found |= {metric.id: _parts(metric, sums, labels) for metric in chosen}
    return [part for metric in metrics for part in found[metric.id]]


def summarise_defined(
    suite: Suite,
    tables: Mapping[str, pl.LazyFrame],
    summary: pl.DataFrame,
    ids: Sequence[str],
    *,
    cluster: str | None = None,
) -> tuple[pl.DataFrame, list[str]]:
    """Return a summary for readers: metrics over the rows in which their definition is open.

    Parameters
    ----------
    suite, tables, summary
        The suite, its tables by name, and their summary.
    ids
        The metrics that are shown.
    cluster
        As in `defined_parts`.

    Returns
    -------
    tuple
        The summary, in which means of `Metric.fixed_where` and `Metric.scale_by` are those of the
        open rows. Without a mean if rows are on several scales. And a note for each such metric.
    """
    declared = {metric.id: metric for metric in suite.metrics}
    chosen = [
        declared[id]
        for id in ids
        if id in declared and (declared[id].fixed_where or declared[id].scale_by)
    ]
    columns = tables[LABEL_TABLE].collect_schema().names()
    groups = {
        group: () if group == ALL else tuple(group.split(BETWEEN))
        for group in summary["group"].unique(maintain_order=True)
    }
    groups = {group: names for group, names in groups.items() if set(names) <= set(columns)}
    labels = list(dict.fromkeys(name for names in groups.values() for name in names))
    parts = defined_parts(suite, tables, chosen, labels=labels, cluster=cluster)
    shown = pl.DataFrame(
        [
            _open_row(metric, [part for part in parts if part.metric == metric], names, row)
            for row in summary.filter(pl.col("group").is_in(list(groups))).to_dicts()
            if (metric := declared.get(row["metric"])) in chosen and metric is not None
            for names in [groups[row["group"]]]
        ],
        schema=summary.schema,
    )
    place = ["group", "value", "metric"]
    kept = summary.with_row_index("_place")
    places = kept.select("_place", *place)
    shown = shown.join(places, on=place, how="left", nulls_equal=True)
    others = kept.filter(pl.col("_place").is_in(shown["_place"].implode()).not_())
    merged = pl.concat([others, shown.select(others.columns)]).sort("_place").drop("_place")
    return merged, [note for metric in chosen if (note := _open_note(metric, parts))]


def _open_row(
    metric: Metric, parts: Sequence[Part], names: Sequence[str], row: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a summary's row with the mean of the open rows of its group."""
    own = []
    for part in parts:
        units = part.units
        if names:
            key = pl.concat_str(pl.col(names).cast(pl.String), separator=BETWEEN)
            units = units.filter(key == row["value"])
        if not units.is_empty():
            own.append(replace(part, units=units))
    emptied = dict.fromkeys(
        ("mean", "sd", "ci_low", "ci_high", "degrees_of_freedom", "interval_reason")
    )
    if len(own) != 1:
        n = sum(int(part.units["n"].sum()) for part in own)
        return {
            **row,
            **emptied,
            "n": n,
            "n_units": sum(part.units[UNIT].n_unique() for part in own),
        }
    found = own[0].estimate
    return {
        **row,
        **emptied,
        "n": int(own[0].units["n"].sum()),
        "n_units": found.n_units,
        "mean": found.value,
        "ci_low": found.low,
        "ci_high": found.high,
        "degrees_of_freedom": found.degrees_of_freedom,
        "interval_reason": found.reason,
    }


def _open_note(metric: Metric, parts: Sequence[Part]) -> str:
    """Say over which rows a metric is shown; empty for all."""
    own = [part for part in parts if part.metric == metric]
    if len(own) > 1:
        return f"{metric.id}: its definition depends on {metric.scale_by}, so rows are not pooled"
    if own and own[0].where:
        return f"{metric.id}: {own[0].where} only, its definition gives the other values"
    return ""


def _sum_units(
    table: Table,
    tables: Mapping[str, pl.LazyFrame],
    metrics: Sequence[Metric],
    labels: Sequence[str],
    cluster: str | None,
) -> pl.DataFrame:
    """Return a row for each unit with its labels and scales: sums and counts of every metric."""
    rows = tables[table.name]
    asked = [*labels, *([cluster] if cluster else [])]
    absent = [name for name in dict.fromkeys(asked) if name not in table.schema]
    key = list(table.dialogue_key)
    if absent:
        known = tables[LABEL_TABLE].select(*key, *absent).unique(key)
        rows = rows.join(known, on=key, how="left", nulls_equal=True)
    own = pl.concat_str(pl.col(key).cast(pl.String).fill_null(""), separator="\0")
    unit = own if cluster is None else pl.coalesce(pl.col(cluster).cast(pl.String), own)
    scales = list(dict.fromkeys(metric.scale_by for metric in metrics if metric.scale_by))
    by = [name for name in dict.fromkeys([*labels, *scales]) if name]
    grids = choose_grids(rows, metrics)
    return (
        rows.with_columns(unit.alias(UNIT))
        .group_by(UNIT, *by)
        .agg(sum_ for metric in metrics for sum_ in _sums_of(metric, grids[metric.id]))
        .sort(UNIT, *by)
        .collect(engine="streaming")
    )


def defined_value(metric: Metric) -> pl.Expr:
    """Return a metric's column, null where its definition fixes the value."""
    return pl.when(~_is_fixed(metric)).then(pl.col(metric.id))


def _is_fixed(metric: Metric) -> pl.Expr:
    return pl.any_horizontal(
        pl.lit(False),
        *(pl.col(column).eq(value).fill_null(False) for column, value in metric.fixed_where),
    )


def _sums_of(metric: Metric, bits: int) -> list[pl.Expr]:
    """Return a metric's exact sum, its count, how many rows lie at the ends, and fixed ones."""
    fixed, value = _is_fixed(metric), defined_value(metric)
    exact = pl.when(~fixed).then(fixed_point(metric.id, bits))
    ends = {"at_minimum": metric.minimum, "at_maximum": metric.maximum}
    return [
        (exact.sum().cast(pl.Float64) * 2.0**-bits).alias(f"{metric.id}:sum"),
        value.count().cast(pl.Int64).alias(f"{metric.id}:n"),
        *(
            (pl.lit(0) if end is None else value.eq(end).sum())
            .cast(pl.Int64)
            .alias(f"{metric.id}:{name}")
            for name, end in ends.items()
        ),
        fixed.sum().cast(pl.Int64).alias(f"{metric.id}:fixed"),
    ]


def _parts(metric: Metric, sums: pl.DataFrame, labels: Sequence[str]) -> list[Part]:
    """Keep apart what is on different scales, and name what was left out by its labels."""
    columns = ["sum", "n", "at_minimum", "at_maximum", "fixed"]
    shared = [UNIT, *dict.fromkeys([*labels, *([metric.scale_by] if metric.scale_by else [])])]
    rows = sums.select(*shared, *(pl.col(f"{metric.id}:{name}").alias(name) for name in columns))
    has_value = rows.filter(pl.col("n") > 0)
    scales = has_value[metric.scale_by].unique().sort().to_list() if metric.scale_by else [None]
    parts = []
    for scale in scales:
        is_own = pl.lit(True) if scale is None else pl.col(metric.scale_by).eq_missing(scale)
        own = has_value.filter(is_own)
        others = rows.filter(pl.col("fixed").gt(0) | pl.col("n").gt(0).and_(~is_own))
        if not own.is_empty():
            where = _where(metric, own, others, labels, scale)
            named = own.select(UNIT, pl.col(labels).cast(pl.String), *columns[:4])
            parts.append(Part(metric, where, scale, named))
    return parts


def _where(
    metric: Metric,
    own: pl.DataFrame,
    others: pl.DataFrame,
    labels: Sequence[str],
    scale: str | int | bool | None,
) -> str:
    """Say which rows are of a part: by the label whose values tell them from the others."""
    if others.is_empty():
        return ""
    for label in labels:
        values, left = (set(rows[label].cast(pl.String)) for rows in (own, others))
        if None not in values and values.isdisjoint(left):
            named = sorted(values)
            more = f" and {len(named) - VALUES_NAMED} more" if len(named) > VALUES_NAMED else ""
            return f"{label} {', '.join(named[:VALUES_NAMED])}{more}"
    if scale is not None:
        return f"{metric.scale_by} {str(scale).lower()}"
    rules = [f"{column} is not {str(value).lower()}" for column, value in metric.fixed_where]
    return " and ".join(rules)
