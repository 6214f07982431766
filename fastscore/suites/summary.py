"""Summary statistics of committed tables, the same for any order of rows and any shards.

Sums are kept in whole numbers: each value is rounded to a fixed-point grid that is chosen from
the metric's range (or, without one, its largest magnitude) and the number of rows, and the 128-bit
sums of those numbers and of their squares do not depend on the order. The grid is as fine as such
sums allow: 2^-60 of the largest magnitude for tens of rows, 2^-52 for millions, 2^-48 for a
thousand million. The rounding error is of the order of a double's own last bits.

Rows are added up once, by dialogue. The few sums of dialogues are then added up by each label.
Intervals take the dialogue as the unit, or the column that is named in its place.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.stopping import StoppablePool, raise_if_stopped

from fastscore.statistics.clustered import (
    LEAST_UNITS,
    Estimate,
    clustered_mean,
    mean_of_units,
)
from fastscore.suites.columns import Rows, collected, hold_if_small
from fastscore.suites.declarations import NULL_REASONS, Metric, NullReason

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
"""What polars holds of one column of one dialogue while it adds up: three times the sums."""
_GRID_BITS = 62
_SUM_BITS = 126
_LOWEST_EXPONENT = -900
_TOTALS = (
    pl.col(r"^.*:(rows|n|sum|squares)$").sum(),
    pl.col(r"^.*:minimum$").min(),
    pl.col(r"^.*:maximum$").max(),
)
"""How the sums of rows (`_sum_rows`) are added up again."""
_REASON_COUNTS = {f"n_{reason}": reason for reason in NULL_REASONS}
_WITHOUT_REASONS = {
    name: dtype for name, dtype in SUMMARY_SCHEMA.items() if name not in _REASON_COUNTS
}


def summarise_metrics(
    tables: Mapping[str, pl.LazyFrame],
    metrics: Sequence[Metric],
    groups: Sequence[str],
    *,
    suite: str,
    label_table: str = "dialogues",
    key: Sequence[str] = ("dialogue",),
    cluster: str | None = None,
    switched_off: Mapping[str, NullReason] = MappingProxyType({}),
    sole_reasons: Mapping[str, NullReason] = MappingProxyType({}),
) -> pl.DataFrame:
    """Summarise metrics over all rows, and by each label.

    Parameters
    ----------
    tables
        Lazy frames of the committed tables by name; read in a streaming fashion.
    metrics
        What to summarise; each names its table, and its column by its id.
    groups
        Label columns of `label_table` to group by; left out where no row has the label.
    suite
        The suite's name, for the first column.
    label_table, key
        The table that holds the labels, and the columns by which tables without them join it.
        Rows with the same key are one unit of the intervals, except that each row of
        `label_table` is one.
    cluster
        A column of every table whose values are the units of the intervals instead.
    switched_off
        Metrics that the options alone make null in every row, and the reason:
        it is counted without being read.
    sole_reasons
        Metrics all nulls of which have one reason, whatever the options, and that reason.

    Returns
    -------
    pl.DataFrame
        In `SUMMARY_SCHEMA`, ordered by group (``all`` first), value and metric as declared. Rows
        without the label have no row in that label's group.
    """
    of_table: defaultdict[str, list[Metric]] = defaultdict(list)
    for metric in metrics:
        of_table[metric.table].append(metric)
    labelled = {name for name in of_table if set(groups) <= set(tables[name].collect_schema())}
    columns_at_once = COLUMNS_AT_ONCE
    if cluster or set(of_table) - {label_table}:
        columns_at_once = _columns_at_once(tables[label_table])
    # a query of a small table alone does not fill the processors
    at_once = len(of_table) if columns_at_once == COLUMNS_AT_ONCE else 1
    with StoppablePool(max_workers=at_once + 1) as pool:
        labels: Future[_Labels] | None = None
        if len(labelled) < len(of_table):
            labels = pool.submit(_Labels.of_keys, tables[label_table], key, groups)

        def summarise(name: str) -> pl.DataFrame:
            table = _Table(
                rows=tables[name],
                metrics=of_table[name],
                groups=groups,
                key=key,
                cluster=cluster,
                each_row=name == label_table and not cluster,
                labels=None if name in labelled else labels,
            )
            return _summarise_table(table, columns_at_once, switched_off, sole_reasons)

        summaries = list(pool.map(summarise, of_table))
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
class _Table:
    """A table to summarise.

    Parameters
    ----------
    rows, metrics
        The table and its metrics.
    groups, key, cluster
        As in `summarise_metrics`.
    each_row
        Whether each row is a unit of the intervals.
    labels
        The labels by key, of a table that does not have them itself.
    """

    rows: pl.LazyFrame
    metrics: Sequence[Metric]
    groups: Sequence[str]
    key: Sequence[str]
    cluster: str | None
    each_row: bool
    labels: Future[_Labels] | None

    @property
    def strata(self) -> list[pl.Expr]:
        """The columns by which rows are told apart that count for different labels."""
        if self.labels is None:
            return [pl.col(group) for group in self.groups]
        return [_hash_of(self.key, self.labels.result().seed).alias(":key")]

    @property
    def units(self) -> list[pl.Expr]:
        """The column that names the unit of each row."""
        if self.each_row:
            return []
        if self.cluster or self.labels is None:
            return [_hash_of([self.cluster] if self.cluster else self.key, 0).alias(":unit")]
        return [self.strata[0].alias(":unit")]

    def labelled(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Put the labels beside rows that have the key."""
        if self.labels is None:
            return rows
        return rows.join(self.labels.result().frame.lazy(), on=":key", how="left")


def _summarise_table(
    table: _Table,
    columns_at_once: int,
    switched_off: Mapping[str, NullReason],
    sole_reasons: Mapping[str, NullReason],
) -> pl.DataFrame:
    columns = dict.fromkeys(name for metric in table.metrics for name in _summed_columns(metric))
    by = [*table.strata, *table.units]
    names = [one.meta.output_name() for one in by]
    numbers = hold_if_small(table.rows.select(*by, pl.col(*columns).cast(pl.Float64)))
    grids = choose_grids(numbers, table.metrics)
    summaries = []
    for metrics in _batches(table.metrics, columns_at_once):
        raise_if_stopped()
        some = dict.fromkeys(name for metric in metrics for name in _summed_columns(metric))
        added = _sum_rows(numbers, names, {name: grids[name] for name in some})
        sums = collected(table.labelled(added.lazy()))
        del added
        summaries += [
            _summarise_group(group, sums, metrics, grids, table) for group in (ALL, *table.groups)
        ]
    summary = pl.concat(summaries)
    return _with_reasons(summary, table, switched_off, sole_reasons)


def _summed_columns(metric: Metric) -> list[str]:
    extra = (metric.numerator, metric.denominator)
    return [metric.id, *(column for column in extra if column is not None)]


def choose_grids(rows: Rows, metrics: Sequence[Metric]) -> dict[str, int]:
    """Return the grid of every column that these metrics sum, as the bits after the point.

    A metric's largest magnitude is that of its declared range; only columns without one are read.
    """
    columns = list(dict.fromkeys(name for metric in metrics for name in _summed_columns(metric)))
    largest = {
        metric.id: max(abs(metric.minimum), abs(metric.maximum))
        for metric in metrics
        if metric.minimum is not None and metric.maximum is not None
    }
    unbounded = [column for column in columns if column not in largest]
    found = collected(
        rows.select(pl.len().alias("_rows"), pl.col(unbounded).cast(pl.Float64).abs().max())
    )
    largest |= {column: found[column].item() or 0.0 for column in unbounded}
    bits = min(_GRID_BITS, (_SUM_BITS - int(found["_rows"].item()).bit_length()) // 2)
    return {
        column: bits - max(math.frexp(largest[column])[1], _LOWEST_EXPONENT) for column in columns
    }


def fixed_point(column: str, bits: int) -> pl.Expr:
    """Return a column in multiples of 2^-bits, as 128-bit integers whose sums are exact."""
    # of 64 bits first: polars casts doubles to those faster
    whole = (pl.col(column).cast(pl.Float64) * 2.0**bits).round().cast(pl.Int64)
    return whole.cast(pl.Int128)


def _batches(metrics: Sequence[Metric], at_once: int) -> Iterator[list[Metric]]:
    """Yield the metrics that are summed in one pass, by their number of columns."""
    batch: list[Metric] = []
    columns: set[str] = set()
    for metric in metrics:
        more = columns.union(_summed_columns(metric))
        if batch and len(more) > at_once:
            yield batch
            batch, more = [], set(_summed_columns(metric))
        batch.append(metric)
        columns = more
    yield batch


def _sum_rows(rows: Rows, by: Sequence[str], grids: Mapping[str, int]) -> pl.DataFrame:
    """Return by these columns the number of rows, and for each column the sums of its values."""
    sums = [pl.len().cast(pl.Int64).alias(":rows")]
    for column, bits in grids.items():
        whole, value = fixed_point(column, bits), pl.col(column)
        sums += [
            value.count().cast(pl.Int64).alias(f"{column}:n"),
            whole.sum().alias(f"{column}:sum"),
            whole.pow(2).sum().alias(f"{column}:squares"),
            value.min().alias(f"{column}:minimum"),
            value.max().alias(f"{column}:maximum"),
        ]
    try:
        found = collected(rows.lazy().group_by(by).agg(sums) if by else rows.lazy().select(sums))
    except pl.exceptions.InvalidOperationError:
        _check_values(rows, grids)
        raise
    ends = (pl.col(f"{column}:minimum", f"{column}:maximum").abs().max() for column in grids)
    largest = (pl.max_horizontal(of_column) for of_column in ends)
    _check_range(dict(zip(grids, found.select(largest).row(0), strict=True)), grids)
    return found


def _check_values(rows: Rows, grids: Mapping[str, int]) -> None:
    """Refuse a column with NaN, infinities or values beyond its grid."""
    is_nan = collected(rows.lazy().select(pl.col(*grids).is_nan().any())).row(0, named=True)
    for column in grids:
        if is_nan[column]:
            raise ValueError(f"column {column!r} holds NaN; expected null if there is no value")
    _check_range(
        collected(rows.lazy().select(pl.col(*grids).abs().max())).row(0, named=True), grids
    )


def _check_range(largest: Mapping[str, float | None], grids: Mapping[str, int]) -> None:
    for column, bits in grids.items():
        if (largest[column] or 0.0) > 2.0 ** (_GRID_BITS - bits):
            raise ValueError(
                f"column {column!r}, far out of its declared range: a value lies beyond "
                f"2**{_GRID_BITS - bits} in magnitude"
            )


def _summarise_group(
    group: str,
    sums: pl.DataFrame,
    metrics: Sequence[Metric],
    grids: Mapping[str, int],
    table: _Table,
) -> pl.DataFrame:
    """Return for each metric a row for each value of a label, without the reasons of nulls."""
    label = pl.lit(None) if group == ALL else pl.col(group)
    valued = sums.with_columns(label.cast(pl.String).alias("value"))
    if group == ALL:
        totals = valued.select(pl.lit(None, pl.String).alias("value"), *_TOTALS)
    else:
        valued = valued.drop_nulls("value")
        totals = valued.group_by("value").agg(_TOTALS).sort("value")
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
    table: _Table,
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


def _count_reasons(table: _Table) -> pl.DataFrame:
    """Count by group, value and metric how often each reason is listed."""
    listed = (
        table.labelled(table.rows.select(*table.strata, "null_reasons"))
        .select(
            *(pl.col(group).cast(pl.String) for group in table.groups),
            pl.col("null_reasons").alias(":listed"),
        )
        .explode(":listed", keep_nulls=False)
        .with_columns(
            pl.col(":listed").struct.field("metric").alias(":metric"),
            pl.col(":listed").struct.field("reason").cast(pl.String).alias(":reason"),
        )
        .filter(pl.col(":metric").is_in([metric.id for metric in table.metrics]))
        .group_by(*table.groups, ":metric", ":reason")
        .agg(pl.len().cast(pl.Int64).alias(":n"))
    )
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
