"""Summaries by other labels or units, and of the rows whose value no definition fixes.

A unit of `defined_parts` is a dialogue, or what a column names. Rows in which a definition gives
the value whatever the dialogue (`Metric.fixed_where`) are left out, and rows of different scales
(`Metric.scale_by`) are kept apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import polars as pl

from fastscore.errors import UsageError, did_you_mean, listed
from fastscore.options import build_options
from fastscore.results.dialogue_sums import can_label, sum_defined
from fastscore.results.runs import Run
from fastscore.statistics.clustered import Estimate, clustered_mean
from fastscore.suites.base import Suite
from fastscore.suites.declarations import LABEL_TABLE, Metric, Table
from fastscore.suites.summary import ALL
from fastscore.wording import command_text

MOST_GROUPS = 100
BETWEEN = " / "


def summarise_run(run: Run, by: Sequence[str] = (), cluster: str | None = None) -> pl.DataFrame:
    """Summarise a run by one label column, or by each combination of several.

    Parameters
    ----------
    run
        A complete run.
    by
        Columns of its table ``dialogues`` that name things. Rows in which one of them is null are
        in no group. Empty for the groups of the run's own summary.
    cluster
        A column of ``dialogues`` whose values are the units of the intervals, in place of the
        dialogue. Dialogues without a value are units of their own.

    Returns
    -------
    pl.DataFrame
        In the schema of the summary; ``group`` is the columns' names, ``value`` their values.
        Each value's rows are those of the suite's own summary of these dialogues.

    Raises
    ------
    UsageError
        No such column, one without a value, or more than `MOST_GROUPS` values.
    """
    columns = list(dict.fromkeys(by))
    summary = _summarise_groups(run, columns, cluster)
    if columns and summary.is_empty():
        raise UsageError(
            f"{run.path}: no dialogue has a {BETWEEN.join(columns)}.",
            f"Choose another column; {command_text('summary', 'RUN')} shows groups.",
        )
    return summary


def _summarise_groups(run: Run, columns: Sequence[str], cluster: str | None) -> pl.DataFrame:
    own = run.summary
    is_own = len(columns) == 1 and columns[0] in set(own["group"]) - {ALL}
    for column in (*([] if is_own else columns), *([cluster] if cluster else [])):
        require_label(run, column)
    if not columns or is_own:
        summary = summarise_tables(run, cluster) if cluster else own
        return summary.filter(pl.col("group") == columns[0]) if is_own else summary
    parts = [
        summarise_tables(run, cluster, level)
        .filter(pl.col("group") == ALL)
        .with_columns(
            pl.lit(BETWEEN.join(columns)).alias("group"),
            pl.lit(BETWEEN.join(str(value) for value in level.values())).alias("value"),
        )
        for level in _levels(run, columns)
    ]
    return pl.concat(parts) if parts else own.clear()


def summarise_tables(
    run: Run, cluster: str | None = None, level: Mapping[str, Any] = MappingProxyType({})
) -> pl.DataFrame:
    """Summarise a run's tables, or the rows of the dialogues that have these labels."""
    suite = run.suite
    options = build_options(suite.options, run.manifest.options)
    tables, unit = run.lazy_tables, None
    if cluster:
        unit = f"{cluster}:unit"
        tables = _with_units(run, suite, cluster, unit)
    if level:
        tables = _tables_of(tables, suite, level)
    return suite.summary(tables, options, cluster=unit)


def require_label(run: Run, column: str) -> None:
    """Refuse a column that table ``dialogues`` lacks, or that cannot name groups or units."""
    schema = run.scan(LABEL_TABLE).collect_schema()
    known = [name for name, dtype in schema.items() if can_label(dtype)]
    if column not in known:
        groups = set(run.summary["group"])
        # counts are labels too, but seldom meant
        likely = [name for name in known if name in groups or not schema[name].is_integer()]
        raise UsageError(
            f"{run.path}: table {LABEL_TABLE!r} has no labels {column!r}.",
            did_you_mean(column, likely),
        )


def _levels(run: Run, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the combinations of labels that dialogues have."""
    levels = run.scan(LABEL_TABLE).select(columns).drop_nulls().unique().sort(columns).collect()
    if levels.height > MOST_GROUPS:
        raise UsageError(
            f"{run.path}: {BETWEEN.join(columns)} has {levels.height:,} values, expected at most "
            f"{MOST_GROUPS}."
        )
    return levels.to_dicts()


def _with_units(run: Run, suite: Suite, cluster: str, unit: str) -> dict[str, pl.LazyFrame]:
    """Give every table a column with the unit of each row; a dialogue without one is its own."""
    keys_of = {table.name: list(table.dialogue_key) for table in suite.tables}
    own = pl.concat_str(keys_of[LABEL_TABLE], separator=":", ignore_nulls=True)
    unit_of_row = pl.coalesce(pl.col(cluster).cast(pl.String), own)
    dialogues = run.scan(LABEL_TABLE).with_columns(unit_of_row.alias(unit))
    tables = {LABEL_TABLE: dialogues}
    for name, keys in keys_of.items():
        if name != LABEL_TABLE:
            units = dialogues.select(*keys, unit).unique(keys)
            tables[name] = run.scan(name).join(units, on=keys, how="left", nulls_equal=True)
    return tables


def _tables_of(
    tables: Mapping[str, pl.LazyFrame], suite: Suite, level: Mapping[str, Any]
) -> dict[str, pl.LazyFrame]:
    """Keep the rows of the dialogues that have these labels."""
    chosen = tables[LABEL_TABLE].filter(
        *(pl.col(column).eq(pl.lit(value)) for column, value in level.items())
    )
    keys = {table.name: table.dialogue_key for table in suite.tables}
    return {
        name: chosen
        if name == LABEL_TABLE
        else table.join(chosen, on=keys[name], how="semi", nulls_equal=True)
        for name, table in tables.items()
    }


PartKey = tuple[str, str | int | bool | None]
"""A metric's id and the scale of a part of it."""
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
    def key(self) -> PartKey:
        """What names the part."""
        return self.metric.id, self.scale

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
    declared = suite.metric_by_id
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
    parts_of = {one.id: [part for part in parts if part.metric.id == one.id] for one in chosen}
    rows = [
        _open_row(parts_of[row["metric"]], groups[row["group"]], row)
        if row["metric"] in parts_of and row["group"] in groups
        else row
        for row in summary.iter_rows(named=True)
    ]
    notes = [_open_note(metric, parts_of[metric.id]) for metric in chosen]
    return pl.DataFrame(rows, schema=summary.schema), [note for note in notes if note]


def _open_row(
    parts: Sequence[Part], names: Sequence[str], row: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a metric's row of a summary with the mean of the open rows of its group."""
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
    opened = {**row, **emptied, "n": sum(int(part.units["n"].sum()) for part in own)}
    if len(own) != 1:
        return opened | {"n_units": sum(part.units[UNIT].n_unique() for part in own)}
    found = own[0].estimate
    return opened | {
        "n_units": found.n_units,
        "mean": found.value,
        "ci_low": found.low,
        "ci_high": found.high,
        "degrees_of_freedom": found.degrees_of_freedom,
        "interval_reason": found.reason,
    }


def _open_note(metric: Metric, parts: Sequence[Part]) -> str:
    """Say over which rows a metric is shown; empty for all."""
    if len(parts) > 1:
        return f"{metric.id}: its definition depends on {metric.scale_by}, so rows are not pooled"
    if parts and parts[0].where:
        return f"{metric.id}: {parts[0].where} only, its definition gives the other values"
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
    sums = sum_defined(rows.with_columns(unit.alias(UNIT)), metrics, (UNIT, *by))
    return sums.collect(engine="streaming")


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
            return f"{label} {listed(sorted(values), VALUES_NAMED)}"
    if scale is not None:
        return f"{metric.scale_by} {str(scale).lower()}"
    rules = [f"{column} is not {str(value).lower()}" for column, value in metric.fixed_where]
    return " and ".join(rules)
