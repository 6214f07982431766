"""Summary statistics of committed tables, the same for any order of rows and any shards.

Sums are exact (`fastscore.suites.sums`). Rows are added up once, by dialogue. The few sums of
dialogues are then added up by each label. Intervals take the unit of the suite's design, or the
column that is named in its place.

An engine adds up parts of a run apart, in two rounds: parts are measured (`measure_parts`), then
added up on the grids of tables of all their sizes together (`add_up_parts`). Sums on these grids
are exact, so no number depends on the split. Sums of parts are by the columns of dialogues and
units, and are merged: rows of one dialogue in several parts are one unit.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import accumulate, count
from typing import Any

import polars as pl
from fastscore_jit.threads import StoppablePool, raise_if_stopped

from fastscore.statistics.clustered import Estimate, clustered_means
from fastscore.suites.base import Suite, Summarised
from fastscore.suites.columns import collected, hold_if_small
from fastscore.suites.declarations import LABEL_TABLE, NULL_REASONS, Metric
from fastscore.suites.sums import (
    BETWEEN,
    TOTALS,
    grids_of,
    joined_values,
    list_reasons,
    mean_of,
    merge_sums,
    open_column,
    scale_columns,
    size_of,
    sum_rows,
    summed_columns,
)

SUMMARY_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("suite", "group", "value", "metric"), pl.String()),
    **dict.fromkeys(("n", "n_null", *(f"n_{reason}" for reason in NULL_REASONS)), pl.Int64()),
    "n_fixed": pl.Int64(),
    "units": pl.String(),
    "n_units": pl.Int64(),
    **dict.fromkeys(("mean", "sd", "ci_low", "ci_high", "degrees_of_freedom"), pl.Float64()),
    "interval_reason": pl.String(),
    **dict.fromkeys(("minimum", "maximum", "mean_all_rows", "micro_numerator"), pl.Float64()),
    **dict.fromkeys(("micro_denominator", "micro"), pl.Float64()),
}
"""One row for each group, value of it and metric. `docs/summary.md` describes the columns.
``group`` is ``all`` (``value`` null) or a label column. All but ``mean_all_rows`` and ``micro`` are
of the values that the definition leaves open; rows on several scales have no mean."""

ALL = "all"
KEY = ("dialogue",)
COLUMNS_AT_ONCE = 16
"""The most columns that are summed in one pass over a table."""
BYTES_AT_ONCE = 1 << 29
"""The most memory for sums by dialogue, except that one column is always summed."""
_UNIT_BYTES = 160
"""Memory of polars for one column of one dialogue while it adds up: three times the sums."""
_REASON_COUNTS = {f"n_{reason}": reason for reason in NULL_REASONS}
_WITHOUT_REASONS = {
    name: dtype for name, dtype in SUMMARY_SCHEMA.items() if name not in _REASON_COUNTS
}


def overall_rows(summary: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the row over all dialogues of each metric of a summary."""
    rows = summary.filter(pl.col("group") == ALL).iter_rows(named=True)
    return {row["metric"]: row for row in rows}


Tables = Mapping[str, pl.LazyFrame]
Sizes = Sequence[Mapping[str, pl.DataFrame]]
"""The sizes of tables by name (`size_of`), for each `Summarised` of a suite."""


@dataclass(frozen=True, slots=True)
class Added:
    """What rows of parts add up to: ``sums`` by `_Table.finest`, ``reasons`` by `finest_strata`.

    Both have several rows of what is in several parts. ``size`` is that of the whole table.
    """

    sums: pl.LazyFrame
    reasons: pl.LazyFrame
    size: pl.DataFrame


def summarise(
    suite: Suite,
    tables: Tables,
    options: Any,
    *,
    by: Sequence[str] = (),
    cluster: str | None = None,
    added: Sequence[Mapping[str, Added]] | None = None,
) -> pl.DataFrame:
    """Summarise tables of a suite over all rows, and by each label."""
    unit = suite.design.clustered_by(cluster).unit
    if by:
        named = tables[LABEL_TABLE].with_columns(joined_values(by).alias(BETWEEN.join(by)))
        tables = {**tables, LABEL_TABLE: named}
    groups = (BETWEEN.join(by),) if by else ()
    asked = suite.summarised(options, (*groups, *unit))
    summaries, parts = [], iter(added or ())
    for one in asked:
        of_parts = next(parts, None) if one.by_parts else None
        own = replace(one, groups=groups, more=None) if by else one
        of_tables = _tables_of(tables, own, unit)
        summary = _summarise_metrics(of_tables, tables[LABEL_TABLE], own, of_parts)
        summaries.append(summary if own.more is None else pl.concat([summary, own.more(summary)]))
    found = pl.concat(summaries).with_columns(
        suite=pl.lit(suite.name), units=pl.lit(BETWEEN.join(unit))
    )
    ids = [metric.id for one in asked for metric in one.metrics]
    declared = [metric.id for metric in suite.metrics]
    return _sorted(found, found["group"], declared if {*ids} <= {*declared} else ids)


def _sorted(summary: pl.DataFrame, groups: Iterable[str], metrics: Iterable[str]) -> pl.DataFrame:
    """Sort by group, value and metric, in these orders."""
    places = (
        pl.col(name).replace_strict(
            {one: place for place, one in enumerate(dict.fromkeys(names))}, return_dtype=pl.Int64
        )
        for name, names in (("group", groups), ("metric", metrics))
    )
    group, metric = places
    return summary.select(*SUMMARY_SCHEMA).sort(group, "value", metric, maintain_order=True)


def measure_parts(suite: Suite, tables: Tables, options: Any) -> Sizes:
    """Return the sizes of the tables of some parts."""
    return [
        {table.name: size_of(table.numbers(()), table.metrics) for table in of_one}
        for of_one in _added_apart(suite, tables, options)
    ]


def joint_sizes(measured: Sequence[Sizes]) -> Sizes:
    """Return the sizes of the tables of all parts."""
    joint = pl.col(":rows").sum(), pl.exclude(":rows").max()
    return [
        {name: pl.concat(size[name] for size in sizes).select(joint) for name in sizes[0]}
        for sizes in zip(*measured, strict=True)
    ]


def add_up_parts(
    suite: Suite, tables: Tables, options: Any, sizes: Sizes
) -> Sequence[Mapping[str, Added]]:
    """Add up the tables of some parts on the grids of tables of these sizes."""
    added = []
    for of_one, of_tables in zip(_added_apart(suite, tables, options), sizes, strict=True):
        sums = {}
        for table in of_one:
            size = of_tables[table.name]
            grids, scales = grids_of(size, table.metrics), scale_columns(table.metrics)
            finest = table.finest
            found = sum_rows(table.numbers(finest), finest, finest, grids, tuple(scales))
            listed = list_reasons(table.rows, table.finest_strata, table.metrics)
            # in an order of their own: the same rows give the same bytes
            sums[table.name] = Added(
                found.sort(finest).lazy(),
                collected(listed.sort(*table.finest_strata, ":metric", ":reason")).lazy(),
                size,
            )
        added.append(sums)
    return added


def _added_apart(suite: Suite, tables: Tables, options: Any) -> "list[list[_Table]]":
    asked = suite.summarised(options, suite.design.unit)
    return [_tables_of(tables, one, suite.design.unit) for one in asked if one.by_parts]


_Labels = tuple[pl.DataFrame, int]
"""The labels and ``:unit`` of dialogues by ``:key``, a hash, and the seed that keeps all apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table to summarise; labels and units are in it (``is_labelled``), or in ``labels``."""

    name: str
    rows: pl.LazyFrame
    metrics: Sequence[Metric]
    groups: Sequence[str]
    unit: Sequence[str]
    is_labelled: bool
    labels: Future[_Labels] | None = None
    added: Added | None = None

    @property
    def finest_strata(self) -> Sequence[str]:
        """The columns by which rows are told apart that count for different labels."""
        return self.groups if self.is_labelled else KEY

    @property
    def finest(self) -> list[str]:
        """The columns by which rows of some parts are added up."""
        of_unit = (*KEY, *(self.unit if self.is_labelled else ()))
        return list(dict.fromkeys((*self.finest_strata, *of_unit)))

    @property
    def strata(self) -> list[pl.Expr]:
        """The columns in the place of `finest_strata`: the labels, or a hash of the dialogue."""
        if self.labels is None:
            return [pl.col(group) for group in self.groups]
        return [_hash_of(KEY, self.labels.result()[1]).alias(":key")]

    @property
    def units(self) -> list[pl.Expr]:
        """The column that names the unit of each row."""
        return [_unit_of(self.unit)] if self.is_labelled else []

    def numbers(self, by: Iterable[str | pl.Expr]) -> pl.LazyFrame:
        """Return the columns that are added up, beside others."""
        columns = {**summed_columns(self.metrics), **scale_columns(self.metrics)}
        named = (column.alias(name) for name, column in columns.items())
        return self.rows.select(*by, *named)

    def labelled(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Put the labels beside rows that have the hash of the dialogue."""
        if self.labels is None:
            return rows
        known = self.labels.result()[0].lazy()
        # what is in no table of dialogues is a unit of its own
        unit = pl.col(":unit").fill_null(pl.col(":key"))
        return rows.join(known, on=":key", how="left").with_columns(unit)


def _unit_of(unit: Sequence[str]) -> pl.Expr:
    """Return the hash of a row's unit: of its dialogue where all columns of the unit are null."""
    has_unit = pl.any_horizontal(pl.col(unit).is_not_null())
    return pl.when(has_unit).then(_hash_of(unit, 1)).otherwise(_hash_of(KEY, 0)).alias(":unit")


def _hash_of(columns: Sequence[str], seed: int) -> pl.Expr:
    return pl.struct(columns).hash(seed)


def _read_labels(dialogues: pl.LazyFrame, groups: Sequence[str], unit: Sequence[str]) -> _Labels:
    """Read the labels of each dialogue: of several rows, those of the first."""
    found = collected(dialogues.select(*dict.fromkeys((*KEY, *groups, *unit))))
    found = found.unique(KEY, keep="first", maintain_order=True)
    hashed = (
        (found.select(_hash_of(KEY, seed).alias(":key"), *groups, _unit_of(unit)), seed)
        for seed in count()
    )
    return next(one for one in hashed if one[0][":key"].n_unique() == found.height)


def _tables_of(tables: Tables, asked: Summarised, unit: Sequence[str]) -> list[_Table]:
    """Return the tables of metrics, without labels from elsewhere."""
    named = dict(tables)
    if asked.dialogues is not None:
        named[LABEL_TABLE] = asked.dialogues(tables[LABEL_TABLE])
    return [
        _Table(
            name=name,
            rows=named[name],
            metrics=[metric for metric in asked.metrics if metric.table == name],
            groups=asked.groups,
            unit=unit,
            is_labelled={*asked.groups, *unit} <= set(named[name].collect_schema()),
        )
        for name in dict.fromkeys(metric.table for metric in asked.metrics)
    ]


def _summarise_metrics(
    tables: Sequence[_Table],
    dialogues: pl.LazyFrame,
    asked: Summarised,
    added: Mapping[str, Added] | None,
) -> pl.DataFrame:
    n_dialogues = int(collected(dialogues.select(pl.len())).item())
    # fewer of very many dialogues
    of_bytes = BYTES_AT_ONCE // (_UNIT_BYTES * max(1, n_dialogues))
    columns_at_once = max(1, min(COLUMNS_AT_ONCE, of_bytes))
    # one query of a small table does not fill the processors
    at_once = len(tables) if columns_at_once == COLUMNS_AT_ONCE else 1
    with StoppablePool(max_workers=at_once + 1) as pool:
        lacking = [table for table in tables if not table.is_labelled]
        labels = None
        if lacking:
            labels = pool.submit(_read_labels, dialogues, asked.groups, lacking[0].unit)

        def summarise(table: _Table) -> pl.DataFrame:
            known = replace(
                table,
                labels=None if table.is_labelled else labels,
                added=None if added is None else added[table.name],
            )
            return _summarise_table(known, columns_at_once, asked)

        summaries = list(pool.map(summarise, tables))
    # the row of all rows is there even if there are none
    has_rows = pl.col("value").is_null() | (pl.sum_horizontal("n", "n_fixed", "n_null") > 0)
    found = pl.concat([pl.DataFrame(schema=SUMMARY_SCHEMA), *summaries]).filter(has_rows)
    return _sorted(found, (ALL, *asked.groups), (metric.id for metric in asked.metrics))


def _summarise_table(table: _Table, columns_at_once: int, asked: Summarised) -> pl.DataFrame:
    by, added = [*table.strata, *table.units], table.added
    if added is None:
        numbers = hold_if_small(table.numbers(table.finest))
        grids = grids_of(size_of(numbers, table.metrics), table.metrics)
    else:
        grids = grids_of(added.size, table.metrics)
    columns: dict[str, list[Any]] = {name: [] for name in _WITHOUT_REASONS}
    for metrics in _batches(table.metrics, columns_at_once):
        raise_if_stopped()
        own = {name: grids[name] for name in summed_columns(metrics)}
        if added is None:
            sums = sum_rows(numbers, table.finest, by, own, tuple(scale_columns(metrics)))
        else:
            sums = merge_sums(added.sums, by, own)
        sums = collected(table.labelled(sums.lazy()))
        for group in (ALL, *table.groups):
            of_group = _of_group(group, sums)
            for metric in metrics:
                found = _summarise_group(group, metric, of_group, grids)
                nothing = [None] * len(found["n"])
                for name, values in columns.items():
                    values += found.get(name, nothing)
    return _with_reasons(pl.DataFrame(columns, _WITHOUT_REASONS), table, asked)


def _batches(metrics: Sequence[Metric], at_once: int) -> Iterator[list[Metric]]:
    """Yield the metrics that are summed in one pass, by their number of columns."""
    batch: list[Metric] = []
    for metric in metrics:
        if batch and len(summed_columns([*batch, metric])) > at_once:
            yield batch
            batch = []
        batch.append(metric)
    yield batch


@dataclass(frozen=True, slots=True)
class _Group:
    """The sums of a batch of metrics by the values of a label, and by value and unit.

    The units of one value are side by side, between two ``bounds``.
    """

    totals: pl.DataFrame
    units: pl.DataFrame
    bounds: Sequence[int]


def _of_group(group: str, sums: pl.DataFrame) -> _Group:
    label = pl.lit(None) if group == ALL else pl.col(group)
    valued = sums.with_columns(label.cast(pl.String).alias("value"))
    if group == ALL:
        totals = valued.select(pl.lit(None, pl.String).alias("value"), *TOTALS)
    else:
        valued = valued.drop_nulls("value")
        totals = valued.group_by("value").agg(TOTALS).sort("value")
    units = valued.select("value", ":unit", pl.col(r"^.*:(n|sum)$"))
    if not units.select("value", ":unit").is_unique().all():
        units = units.group_by("value", ":unit").agg(pl.exclude("value", ":unit").sum())
    if totals.height == 1:
        return _Group(totals, units, [0, units.height])
    units = units.sort("value")
    sizes = units.group_by("value", maintain_order=True).len()["len"]
    return _Group(totals, units, [0, *accumulate(sizes)])


def _summarise_group(
    group: str, metric: Metric, sums: _Group, grids: Mapping[str, int]
) -> dict[str, list[Any]]:
    """Return the columns of a metric by value of a label, without the reasons of nulls."""
    column = open_column(metric)
    bits = grids[column]
    of_units = sums.units[f"{column}:sum"].cast(pl.Float64) * 2.0**-bits
    counts = sums.units[f"{column}:n"].to_numpy()
    found = clustered_means(of_units.to_numpy(), counts, sums.bounds, metric.scale.ends)
    height = len(found)

    def of(name: str) -> list[Any]:
        return sums.totals[name].to_list()

    n, totals = of(f"{column}:n"), of(f"{column}:sum")
    n_all = of(f"{metric.id}:n")
    means = _means(totals, n, bits)
    moments = zip(totals, of(f"{column}:squares"), n, strict=True)
    deviations = [_deviation(*each, bits) if each[-1] > 1 else None for each in moments]
    all_rows = means.copy()
    if column != metric.id:
        all_rows = _means(of(f"{metric.id}:sum"), n_all, bits)
    if metric.scale.by:
        scales = zip(*(of(f"{metric.id}:scale:{end}") for end in ("least", "largest")), strict=True)
        for place in (place for place, (least, most) in enumerate(scales) if least != most):
            means[place] = deviations[place] = None
            n_units = found[place].n_units
            found[place] = Estimate(None, n_units=n_units, reason="several_scales")
    columns = {
        "group": [group] * height,
        "value": of("value"),
        "metric": [metric.id] * height,
        "n": n,
        "n_null": [rows - valued for rows, valued in zip(of(":rows"), n_all, strict=True)],
        "n_fixed": [valued - open_ for valued, open_ in zip(n_all, n, strict=True)],
        "n_units": [estimate.n_units for estimate in found],
        "mean": means,
        "sd": deviations,
        "ci_low": [estimate.low for estimate in found],
        "ci_high": [estimate.high for estimate in found],
        "degrees_of_freedom": [estimate.degrees_of_freedom for estimate in found],
        "interval_reason": [estimate.reason for estimate in found],
        # no zero is negative: which of two equal ones comes first is chance
        **{
            end: [None if value is None else value + 0.0 for value in of(f"{column}:{end}")]
            for end in ("minimum", "maximum")
        },
        "mean_all_rows": all_rows,
    }
    if metric.micro is not None:
        ones = [1] * height
        above, below = (_means(of(f"{one}:sum"), ones, grids[one]) for one in metric.micro)
        columns["micro_numerator"], columns["micro_denominator"] = above, below
        ratios = zip(above, below, strict=True)
        columns["micro"] = [upper / lower if lower else None for upper, lower in ratios]
    return columns


def _means(totals: Sequence[int], counts: Sequence[int], bits: int) -> list[Any]:
    """Return the mean of each group, None of one without values."""
    groups = zip(totals, counts, strict=True)
    return [mean_of(total, count, bits) if count else None for total, count in groups]


def _deviation(total: int, squares: int, count: int, bits: int) -> float:
    """Return the sample standard deviation of whole numbers, multiples of 2^-bits."""
    variance = (count * squares - total * total) / (count * (count - 1))
    return math.ldexp(math.sqrt(variance), -bits)


def _with_reasons(summary: pl.DataFrame, table: _Table, asked: Summarised) -> pl.DataFrame:
    """Count the reasons of nulls; the lists of rows are read unless every reason is known."""
    nulls = summary.filter(pl.col("group") == ALL, pl.col("n_null") > 0)
    known = {
        metric: asked.sole_reasons.get(metric) or (None if n else asked.switched_off.get(metric))
        for metric, n in nulls.select("metric", pl.col("n") + pl.col("n_fixed")).iter_rows()
    }
    if None in known.values():
        keys = ["group", "value", "metric"]
        counted = summary.join(_count_reasons(table), on=keys, how="left", nulls_equal=True)
        counted = counted.with_columns(pl.col(*_REASON_COUNTS).fill_null(0))
    else:
        reason = pl.col("metric").replace_strict(known, default=None, return_dtype=pl.String)
        counted = summary.with_columns(
            pl.when(reason == one).then("n_null").otherwise(0).alias(name)
            for name, one in _REASON_COUNTS.items()
        )
    return counted.select(*SUMMARY_SCHEMA)


def _count_reasons(table: _Table) -> pl.DataFrame:
    """Count by group, value and metric how often each reason is listed."""
    labels = [pl.col(group).cast(pl.String) for group in table.groups]
    if table.added is None:
        rows = table.labelled(table.rows.select(*table.strata, "null_reasons"))
        listed = list_reasons(rows.select(*labels, "null_reasons"), table.groups, table.metrics)
    else:
        counted = table.added.reasons.select(*table.strata, ":metric", ":reason", ":n")
        listed = table.labelled(counted).select(*labels, ":metric", ":reason", ":n")
        listed = listed.group_by(*table.groups, ":metric", ":reason").agg(pl.col(":n").sum())
    found = collected(listed)
    by_group = [
        found.select(
            group=pl.lit(group),
            value=pl.lit(None, pl.String) if group == ALL else group,
            metric=":metric",
            reason=":reason",
            n=":n",
        )
        for group in (ALL, *table.groups)
    ]
    keys = ["group", "value", "metric"]
    counts = pl.concat(by_group).pivot(
        "reason", on_columns=NULL_REASONS, index=keys, values="n", aggregate_function="sum"
    )
    return counts.rename({reason: name for name, reason in _REASON_COUNTS.items()})
