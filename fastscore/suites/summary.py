"""Summary statistics of committed tables, the same for any order of rows and any shards.

Sums are exact (`fastscore.suites.sums`). Rows are added up once, by dialogue. The few sums of
dialogues are then added up by each label. Intervals take the dialogue as the unit, or the column
that is named in its place.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, count, pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.threads import StoppablePool, raise_if_stopped

from fastscore.statistics.clustered import (
    LEAST_UNITS,
    Estimate,
    clustered_mean,
    mean_of_units,
)
from fastscore.suites.columns import collected, hold_if_small
from fastscore.suites.declarations import LABEL_TABLE, NULL_REASONS, Metric, NullReason
from fastscore.suites.sums import (
    TOTALS,
    Size,
    grids_of,
    list_reasons,
    merge_sums,
    size_of,
    sum_rows,
    summed_columns,
)

SUMMARY_SCHEMA: dict[str, pl.DataType] = {
    "suite": pl.String(),
    "group": pl.String(),
    "value": pl.String(),
    "metric": pl.String(),
    "n": pl.Int64(),
    "n_null": pl.Int64(),
    **{f"n_{reason}": pl.Int64() for reason in NULL_REASONS},
    "n_units": pl.Int64(),
    "mean": pl.Float64(),
    "sd": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "degrees_of_freedom": pl.Float64(),
    "interval_reason": pl.String(),
    "minimum": pl.Float64(),
    "maximum": pl.Float64(),
    "micro_numerator": pl.Float64(),
    "micro_denominator": pl.Float64(),
    "micro": pl.Float64(),
}
"""One row for each group, value of it and metric. ``group`` is ``all`` (``value`` null) or a label
column. ``n`` counts values, ``n_null`` the other rows, split by reason. ``n_units`` counts the
dialogues (or other units) that have a value. ``sd`` is the sample standard deviation (n - 1), null
for fewer than two values. ``ci_low`` and ``ci_high`` are the 95 % confidence interval of the mean
with these units (`fastscore.statistics.clustered`), ``degrees_of_freedom`` those of its t
distribution. Where there is no interval, ``interval_reason`` is ``too_few_units`` or
``zero_variance``. ``micro`` is the ratio of the two sums."""

ALL = "all"
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


def summarise_metrics(
    tables: Mapping[str, pl.LazyFrame],
    metrics: Sequence[Metric],
    groups: Sequence[str],
    *,
    suite: str,
    key: Sequence[str] = ("dialogue",),
    cluster: str | None = None,
    switched_off: Mapping[str, NullReason] = MappingProxyType({}),
    sole_reasons: Mapping[str, NullReason] = MappingProxyType({}),
    added: "Mapping[str, Added] | None" = None,
) -> pl.DataFrame:
    """Summarise metrics over all rows, and by each label.

    Parameters
    ----------
    tables
        Lazy frames of the committed tables by name; read in a streaming fashion.
    metrics
        What to summarise; each names its table, and its column by its id.
    groups
        Label columns of table ``dialogues`` to group by; left out where no row has the label.
    suite
        The suite's name, for the first column.
    key
        The columns by which tables without labels join ``dialogues``. Rows with the same key are
        one unit of the intervals, except that each row of ``dialogues`` is one.
    cluster
        A column of every table whose values are the units of the intervals instead.
    switched_off
        Metrics that the options make null in every row, and the reason:
        it is counted without being read.
    sole_reasons
        Metrics all nulls of which have one reason, whatever the options, and that reason.
    added
        By table, what the rows of all parts add up to, if they were added up before
        (`fastscore.suites.partial_sums`).

    Returns
    -------
    pl.DataFrame
        In `SUMMARY_SCHEMA`, ordered by group (``all`` first), value and metric as declared. Rows
        without the label have no row in that label's group.
    """
    unlabelled = tables_of(tables, metrics, groups, key, cluster)
    columns_at_once = COLUMNS_AT_ONCE
    if cluster or set(unlabelled) - {LABEL_TABLE}:
        columns_at_once = _columns_at_once(tables[LABEL_TABLE])
    # one query of a small table does not fill the processors
    at_once = len(unlabelled) if columns_at_once == COLUMNS_AT_ONCE else 1
    with StoppablePool(max_workers=at_once + 1) as pool:
        labels: Future[_Labels] | None = None
        if not all(table.is_labelled for table in unlabelled.values()):
            labels = pool.submit(_Labels.of_keys, tables[LABEL_TABLE], key, groups)

        def summarise(name: str) -> pl.DataFrame:
            table = replace(
                unlabelled[name], labels=labels, added=None if added is None else added[name]
            )
            return _summarise_table(table, columns_at_once, switched_off, sole_reasons)

        summaries = list(pool.map(summarise, unlabelled))
    groups_in_order = pl.Enum([ALL, *groups])
    metrics_in_order = pl.Enum([metric.id for metric in metrics])
    return (
        pl.concat([pl.DataFrame(schema=SUMMARY_SCHEMA), *summaries])
        # the row of all rows is there even if there are none
        .filter(pl.col("value").is_null() | (pl.col("n") + pl.col("n_null") > 0))
        .with_columns(suite=pl.lit(suite))
        .sort(
            pl.col("group").cast(groups_in_order),
            "value",
            pl.col("metric").cast(metrics_in_order),
        )
    )


def _columns_at_once(dialogues: pl.LazyFrame) -> int:
    """Return how many columns are summed by dialogue at once: fewer of very many dialogues."""
    n_dialogues = int(collected(dialogues.select(pl.len())).item())
    return max(1, min(COLUMNS_AT_ONCE, BYTES_AT_ONCE // (_UNIT_BYTES * max(1, n_dialogues))))


def _hash_of(columns: Sequence[str], seed: int) -> pl.Expr:
    return pl.struct(columns).hash(seed)


@dataclass(frozen=True, slots=True)
class _Labels:
    """The labels of dialogues.

    Parameters
    ----------
    frame
        ``:key``, the hash of each dialogue's key, and the labels.
    seed
        Of a hash that tells all keys apart.
    """

    frame: pl.DataFrame
    seed: int

    @classmethod
    def of_keys(cls, table: pl.LazyFrame, key: Sequence[str], groups: Sequence[str]) -> "_Labels":
        """Read the labels of each key: of several rows with one key, those of the first."""
        found = collected(table.select(*dict.fromkeys((*key, *groups))))
        found = found.unique(key, keep="first", maintain_order=True)
        for seed in count():
            frame = found.select(_hash_of(key, seed).alias(":key"), *groups)
            if frame[":key"].n_unique() == frame.height:
                break
        return cls(frame, seed)


@dataclass(frozen=True, slots=True)
class Added:
    """What the rows of a table add up to, by finer columns than a summary needs.

    Parameters
    ----------
    size
        The size of the whole table.
    sums
        By `Summarised.finest` what `sum_rows` returns, in several rows where rows were added up in
        several parts.
    reasons
        By `Summarised.finest_strata`, ``:metric`` and ``:reason`` how often it is listed, ``:n``.
    """

    size: Size
    sums: pl.LazyFrame
    reasons: pl.LazyFrame


@dataclass(frozen=True, slots=True)
class Summarised:
    """A table to summarise.

    Parameters
    ----------
    rows, metrics
        The table and its metrics.
    groups, key, cluster
        As in `summarise_metrics`.
    each_row
        Whether each row is a unit of the intervals.
    is_labelled
        Whether the table has the labels itself.
    labels
        The labels by key, for a table that does not have them itself.
    added
        What its rows add up to, if that is known.
    """

    rows: pl.LazyFrame
    metrics: Sequence[Metric]
    groups: Sequence[str]
    key: Sequence[str]
    cluster: str | None
    each_row: bool
    is_labelled: bool
    labels: "Future[_Labels] | None" = None
    added: Added | None = None

    @property
    def finest_strata(self) -> Sequence[str]:
        """The columns by which rows are told apart that count for different labels."""
        return self.groups if self.is_labelled else self.key

    @property
    def finest(self) -> list[str]:
        """The columns by which rows of some parts are added up."""
        units = () if self.each_row else self.key
        return list(dict.fromkeys((*self.finest_strata, *units)))

    @property
    def strata(self) -> list[pl.Expr]:
        """The columns in the place of `finest_strata`: the labels, or a hash of the key."""
        if self.labels is None or self.is_labelled:
            return [pl.col(group) for group in self.groups]
        return [_hash_of(self.key, self.labels.result().seed).alias(":key")]

    @property
    def units(self) -> list[pl.Expr]:
        """The column that names the unit of each row."""
        if self.each_row:
            return []
        if self.cluster or self.is_labelled:
            return [_hash_of([self.cluster] if self.cluster else self.key, 0).alias(":unit")]
        return [self.strata[0].alias(":unit")]

    def labelled(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Put the labels beside rows that have the key."""
        if self.labels is None or self.is_labelled:
            return rows
        return rows.join(self.labels.result().frame.lazy(), on=":key", how="left")


def tables_of(
    tables: Mapping[str, pl.LazyFrame],
    metrics: Sequence[Metric],
    groups: Sequence[str],
    key: Sequence[str] = ("dialogue",),
    cluster: str | None = None,
) -> dict[str, Summarised]:
    """Return the tables of these metrics, without labels from elsewhere."""
    of_table: defaultdict[str, list[Metric]] = defaultdict(list)
    for metric in metrics:
        of_table[metric.table].append(metric)
    return {
        name: Summarised(
            rows=tables[name],
            metrics=of_metrics,
            groups=groups,
            key=key,
            cluster=cluster,
            each_row=name == LABEL_TABLE and not cluster,
            is_labelled=set(groups) <= set(tables[name].collect_schema()),
        )
        for name, of_metrics in of_table.items()
    }


def _summarise_table(
    table: Summarised,
    columns_at_once: int,
    switched_off: Mapping[str, NullReason],
    sole_reasons: Mapping[str, NullReason],
) -> pl.DataFrame:
    size, add_up = _adding_up(table)
    grids = grids_of(size, table.metrics)
    summaries = []
    for metrics in _batches(table.metrics, columns_at_once):
        raise_if_stopped()
        added = add_up({name: grids[name] for name in summed_columns(metrics)})
        sums = collected(table.labelled(added.lazy()))
        del added
        summaries += [
            _summarise_group(group, sums, metrics, grids, table) for group in (ALL, *table.groups)
        ]
    summary = pl.concat(summaries)
    return _with_reasons(summary, table, switched_off, sole_reasons)


def _adding_up(table: Summarised) -> tuple[Size, Callable[[Mapping[str, int]], pl.DataFrame]]:
    """Return the size of a table, and what adds up columns on their grids."""
    by = [*table.strata, *table.units]
    names = [one.meta.output_name() for one in by]
    if table.added is not None:
        return table.added.size, partial(merge_sums, table.added.sums.with_columns(by), names)
    columns = pl.col(summed_columns(table.metrics)).cast(pl.Float64)
    numbers = hold_if_small(table.rows.select(*by, columns))
    return size_of(numbers, table.metrics), partial(sum_rows, numbers, names)


def _batches(metrics: Sequence[Metric], at_once: int) -> Iterator[list[Metric]]:
    """Yield the metrics that are summed in one pass, by their number of columns."""
    batch: list[Metric] = []
    for metric in metrics:
        if batch and len(summed_columns([*batch, metric])) > at_once:
            yield batch
            batch = []
        batch.append(metric)
    yield batch


def _summarise_group(
    group: str,
    sums: pl.DataFrame,
    metrics: Sequence[Metric],
    grids: Mapping[str, int],
    table: Summarised,
) -> pl.DataFrame:
    """Return for each metric a row for each value of a label, without the reasons of nulls."""
    label = pl.lit(None) if group == ALL else pl.col(group)
    valued = sums.with_columns(label.cast(pl.String).alias("value"))
    if group == ALL:
        totals = valued.select(pl.lit(None, pl.String).alias("value"), *TOTALS)
    else:
        valued = valued.drop_nulls("value")
        totals = valued.group_by("value").agg(TOTALS).sort("value")
    units = None if table.each_row else _Units.of_sums(valued, totals["value"])
    frames = []
    for metric in metrics:
        columns: dict[str, Any] = {
            **dict.fromkeys(_WITHOUT_REASONS),
            "group": group,
            "metric": metric.id,
            "value": totals["value"],
            "n_null": totals[":rows"] - totals[f"{metric.id}:n"],
            **_moments(metric, totals, grids),
            **_micro(metric, totals, grids),
        }
        estimates = (
            units.estimates(metric, grids)
            if units
            else [
                mean_of_units(n, mean, sd, minimum=metric.minimum, maximum=metric.maximum)
                for n, mean, sd in zip(columns["n"], columns["mean"], columns["sd"], strict=True)
            ]
        )
        frames.append(pl.DataFrame({**columns, **_intervals(estimates)}, _WITHOUT_REASONS))
    return pl.concat(frames)


def _moments(
    metric: Metric, totals: pl.DataFrame, grids: Mapping[str, int]
) -> dict[str, Sequence[float | None]]:
    """Return by value of a label the number, mean, deviation and extremes of a metric's values."""
    sums = [totals[f"{metric.id}:{name}"].to_list() for name in ("n", "sum", "squares")]
    bits = grids[metric.id]
    each = list(zip(*sums, strict=True))
    return {
        "n": sums[0],
        "mean": [_scaled(total, n, bits) if n else None for n, total, _ in each],
        "sd": [
            _deviation(total, squares, n, bits) if n > 1 else None for n, total, squares in each
        ],
        # no zero is negative: which of two equal ones comes first is chance
        **{
            name: [None if end is None else end + 0.0 for end in totals[f"{metric.id}:{name}"]]
            for name in ("minimum", "maximum")
        },
    }


def _micro(
    metric: Metric, totals: pl.DataFrame, grids: Mapping[str, int]
) -> dict[str, Sequence[float | None]]:
    """Return by value of a label the ratio of a metric's two sums, and both, if it has any."""
    if metric.numerator is None or metric.denominator is None:
        return {}
    numerators, denominators = (
        [_scaled(total, 1, grids[column]) for total in totals[f"{column}:sum"].to_list()]
        for column in (metric.numerator, metric.denominator)
    )
    ratios = [
        numerator / denominator if denominator else None
        for numerator, denominator in zip(numerators, denominators, strict=True)
    ]
    return {
        "micro_numerator": numerators,
        "micro_denominator": denominators,
        "micro": ratios,
    }


def _scaled(total: int, count: int, bits: int) -> float:
    """Return total * 2^-bits / count, rounded once."""
    return total / (count << bits) if bits >= 0 else (total << -bits) / count


def _deviation(total: int, squares: int, count: int, bits: int) -> float:
    """Return the sample standard deviation of whole numbers, multiples of 2^-bits."""
    variance = (count * squares - total * total) / (count * (count - 1))
    return math.ldexp(math.sqrt(variance), -bits)


@dataclass(frozen=True, slots=True)
class _Units:
    """Sums by unit, those of one value of a label side by side.

    Parameters
    ----------
    sums
        For each unit ``METRIC:n`` and ``METRIC:sum``.
    bounds
        Where the units of each value begin, and where the last one's end.
    """

    sums: pl.DataFrame
    bounds: Sequence[int]

    @classmethod
    def of_sums(cls, valued: pl.DataFrame, values: pl.Series) -> "_Units":
        """Add up by value and unit what was summed by finer columns."""
        sums = valued.select("value", ":unit", pl.col(r"^.*:(n|sum)$"))
        if not sums[":unit"].is_unique().all():
            sums = sums.group_by("value", ":unit").agg(pl.exclude("value", ":unit").sum())
        if values.len() == 1:
            return cls(sums, [0, sums.height])
        ordered = sums.sort("value")
        sizes = ordered.group_by("value", maintain_order=True).len()["len"]
        return cls(ordered, [0, *accumulate(sizes)])

    def estimates(self, metric: Metric, grids: Mapping[str, int]) -> list[Estimate]:
        """Estimate a metric's mean for each value of the label."""
        counts = self.sums[f"{metric.id}:n"].to_numpy()
        exact = self.sums[f"{metric.id}:sum"].cast(pl.Float64)
        sums = (exact * 2.0 ** -grids[metric.id]).to_numpy()
        estimates = []
        for begin, end in pairwise(self.bounds):
            of_value = counts[begin:end]
            n_units = int(np.count_nonzero(of_value))
            estimates.append(
                # of labels with very many values most have few units
                Estimate(None, n_units=n_units, reason="too_few_units")
                if n_units < LEAST_UNITS
                else clustered_mean(
                    sums[begin:end], of_value, minimum=metric.minimum, maximum=metric.maximum
                )
            )
        return estimates


def _intervals(estimates: Sequence[Estimate]) -> dict[str, list[Any]]:
    return {
        "n_units": [estimate.n_units for estimate in estimates],
        "ci_low": [estimate.low for estimate in estimates],
        "ci_high": [estimate.high for estimate in estimates],
        "degrees_of_freedom": [estimate.degrees_of_freedom for estimate in estimates],
        "interval_reason": [estimate.reason for estimate in estimates],
    }


def _with_reasons(
    summary: pl.DataFrame,
    table: Summarised,
    switched_off: Mapping[str, NullReason],
    sole_reasons: Mapping[str, NullReason],
) -> pl.DataFrame:
    """Count the reasons of nulls; the lists of rows are read unless every reason is known."""
    known = _known_reasons(summary, switched_off, sole_reasons)
    if known is None:
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


def _known_reasons(
    summary: pl.DataFrame,
    switched_off: Mapping[str, NullReason],
    sole_reasons: Mapping[str, NullReason],
) -> dict[str, str] | None:
    """Return the reason of every null by metric, if it is known without being read."""
    known: dict[str, str] = {}
    nulls = summary.filter(pl.col("group") == ALL, pl.col("n_null") > 0)
    for metric, n in nulls.select("metric", "n").iter_rows():
        reason = sole_reasons.get(metric) or (None if n else switched_off.get(metric))
        if reason is None:
            return None
        known[metric] = reason
    return known


def _count_reasons(table: Summarised) -> pl.DataFrame:
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
            pl.lit(group).alias("group"),
            (pl.lit(None, pl.String) if group == ALL else pl.col(group)).alias("value"),
            pl.col(":metric").alias("metric"),
            ":reason",
            ":n",
        )
        for group in (ALL, *table.groups)
    ]
    return (
        pl.concat(by_group)
        .group_by("group", "value", "metric")
        .agg(
            pl.col(":n").filter(pl.col(":reason") == reason).sum().alias(name)
            for name, reason in _REASON_COUNTS.items()
        )
    )
