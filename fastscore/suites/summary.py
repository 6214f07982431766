"""Summary statistics of committed tables, the same for any order of rows and any shards.

Sums are kept in whole numbers: each value is rounded to a fixed-point grid that is chosen from
the metric's range (or, without one, its largest magnitude) and the number of rows, and the 128-bit
sums of those numbers and of their squares do not depend on the order. The grid is as fine as such
sums allow: 2^-60 of the largest magnitude for tens of rows, 2^-52 for millions, 2^-48 for a
thousand million. What rounding costs is of the order of a double's own last bits.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from types import MappingProxyType

import numpy as np
import polars as pl
from fastscore_kernels.sums import COUNT, ExactSums
from fastscore_machine.arrays import Longs
from fastscore_machine.stopping import StoppablePool

from fastscore.suites.declarations import NULL_REASONS, Metric, NullReason
from fastscore.suites.strata import Group, Strata
from fastscore.suites.table_batches import Rows, batches_of, collected, hold_if_small

SUMMARY_SCHEMA: dict[str, pl.DataType] = {
    "suite": pl.String(),
    "group": pl.String(),
    "value": pl.String(),
    "metric": pl.String(),
    "n": pl.Int64(),
    "n_null": pl.Int64(),
    **{f"n_{reason}": pl.Int64() for reason in NULL_REASONS},
    "mean": pl.Float64(),
    "sd": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "minimum": pl.Float64(),
    "maximum": pl.Float64(),
    "micro_numerator": pl.Float64(),
    "micro_denominator": pl.Float64(),
    "micro": pl.Float64(),
}
"""One row for each group, value of it and metric. ``group`` is ``all`` (``value`` null) or a label
column; ``n`` counts values, ``n_null`` the rest, split by reason; ``sd`` is the sample standard
deviation (n - 1), ``ci_low`` and ``ci_high`` the mean -/+ 1.96 sd / sqrt(n), all three null for
fewer than two values; ``micro`` is the ratio of the two sums."""

ALL = "all"
NORMAL_QUANTILE = 1.96
"""Half the width of a published 95 % interval, in standard errors."""
COLUMNS_AT_ONCE = 16
"""A table is read ahead by some four million rows, whatever is done with them: so many columns."""
_REASON_COUNTS = [f"n_{reason}" for reason in NULL_REASONS]
_MOMENTS = "mean", "sd", "ci_low", "ci_high"
_MICRO = "micro_numerator", "micro_denominator", "micro"
_GRID_BITS = 62
_SUM_BITS = 126
_LOWEST_EXPONENT = -900


def summarise_metrics(
    tables: Mapping[str, pl.LazyFrame],
    metrics: Sequence[Metric],
    groups: Sequence[str],
    *,
    suite: str,
    label_table: str = "dialogues",
    key: Sequence[str] = ("dialogue",),
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
    switched_off
        Metrics that the options alone make null in every row, and the reason that stands there:
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
    # a query alone does not fill the processors
    with StoppablePool(max_workers=len(of_table) + 1) as pool:
        of_dialogues: Future[Strata] | None = None
        if len(labelled) < len(of_table):
            of_dialogues = pool.submit(_find_strata, tables[label_table], key, groups)

        def summarise(name: str) -> list[pl.DataFrame]:
            by_key = None if name in labelled else of_dialogues
            return _summarise_table(
                tables[name],
                of_table[name],
                key if by_key else groups,
                lambda rows: by_key.result() if by_key else Strata.of_labels(rows, groups),
                switched_off,
                sole_reasons,
            )

        summaries = [frame for frames in pool.map(summarise, of_table) for frame in frames]
    groups_in_order = pl.Enum([ALL, *groups])
    metrics_in_order = pl.Enum([metric.id for metric in metrics])
    return (
        pl.concat([pl.DataFrame(schema=SUMMARY_SCHEMA), *summaries])
        # the row of all rows stands even where there are none
        .filter(pl.col("value").is_null() | (pl.col("n") + pl.col("n_null") > 0))
        .with_columns(suite=pl.lit(suite))
        .sort(
            pl.col("group").cast(groups_in_order),
            "value",
            pl.col("metric").cast(metrics_in_order),
        )
    )


def _find_strata(table: pl.LazyFrame, key: Sequence[str], groups: Sequence[str]) -> Strata:
    labels = hold_if_small(table.select(*dict.fromkeys((*key, *groups))))
    return Strata.of_dialogues(labels, key, groups)


def _summarise_table(
    rows: pl.LazyFrame,
    metrics: Sequence[Metric],
    named: Sequence[str],
    find_strata: Callable[[Rows], Strata],
    switched_off: Mapping[str, NullReason],
    sole_reasons: Mapping[str, NullReason],
) -> list[pl.DataFrame]:
    """Sum once by combination of labels (a stratum), then by label over the few sums."""
    columns = dict.fromkeys(name for metric in metrics for name in _summed_columns(metric))
    numbers = hold_if_small(rows.select(*named, pl.col(*columns).cast(pl.Float64)))
    grids = choose_grids(numbers, metrics)
    strata = find_strata(numbers)
    n_rows, sums = _sum_by_stratum(numbers, named, grids, strata)
    reasons = _known_reasons(n_rows, sums, metrics, switched_off, sole_reasons)
    if reasons is None:
        reasons = _count_reasons(rows.select(*named, "null_reasons"), metrics, strata)
    return [
        summary
        for name, group in {ALL: strata.whole, **strata.groups}.items()
        for summary in _summarise_group(name, group, metrics, n_rows, sums, reasons)
    ]


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
    return (pl.col(column).cast(pl.Float64) * 2.0**bits).round().cast(pl.Int128)


def _sum_by_stratum(
    rows: Rows, named: Sequence[str], grids: Mapping[str, int], strata: Strata
) -> tuple[Longs, dict[str, ExactSums]]:
    """Return by stratum the number of rows, and by column the sums of its values."""
    n_values = dict.fromkeys(grids, 0)
    sums = {column: ExactSums(strata.n_strata, bits) for column, bits in grids.items()}
    columns = list(grids)
    for first in range(0, len(columns), COLUMNS_AT_ONCE):
        some = columns[first : first + COLUMNS_AT_ONCE]
        n_rows = np.zeros(strata.n_strata, np.int64)
        for batch in batches_of(rows.select(*named, *some)):
            stratum = strata.of_rows(batch)
            n_rows += np.bincount(stratum, minlength=n_rows.size)
            for name in some:
                values = batch[name]
                n_values[name] += values.len() - values.null_count()
                if values.null_count() < values.len():
                    _add(sums[name], values, stratum)
    for name, of_column in sums.items():
        if of_column.limbs[:, COUNT].sum() != n_values[name]:
            raise ValueError(f"column {name!r} holds NaN; expected null where there is no value")
    return n_rows, sums


def _add(sums: ExactSums, values: pl.Series, stratum: Longs) -> None:
    try:
        sums.add(values.to_numpy(), stratum)
    except ValueError as error:
        raise ValueError(
            f"column {values.name!r}, far out of its declared range: {error}"
        ) from error


def _known_reasons(
    n_rows: Longs,
    sums: Mapping[str, ExactSums],
    metrics: Sequence[Metric],
    switched_off: Mapping[str, NullReason],
    sole_reasons: Mapping[str, NullReason],
) -> Longs | None:
    """Count the reasons where those of all nulls are known without being read; else None."""
    counted = np.zeros((len(metrics), len(NULL_REASONS), n_rows.size), np.int64)
    for metric, of_metric in zip(metrics, counted, strict=True):
        n_values = sums[metric.id].limbs[:, COUNT]
        n_null = n_rows - n_values
        if not n_null.any():
            continue
        reason = sole_reasons.get(metric.id)
        if reason is None and not n_values.any():
            reason = switched_off.get(metric.id)
        if reason is None:
            return None
        of_metric[NULL_REASONS.index(reason)] = n_null
    return counted


def _count_reasons(rows: pl.LazyFrame, metrics: Sequence[Metric], strata: Strata) -> Longs:
    """Count the nulls by metric, reason and stratum: int64 (n_metrics, n_reasons, n_strata)."""
    asked, known = pl.Enum([metric.id for metric in metrics]), pl.Enum(NULL_REASONS)
    counted = np.zeros((len(metrics), len(NULL_REASONS), strata.n_strata), np.int64)
    for batch in batches_of(rows):
        listed = batch["null_reasons"]
        stratum = np.repeat(strata.of_rows(batch), listed.list.len().fill_null(0).to_numpy())
        found = (
            listed.explode(empty_as_null=False, keep_nulls=False)
            .struct.unnest()
            .select(
                pl.col("metric").cast(asked, strict=False).to_physical().cast(pl.Int64),
                pl.col("reason").cast(known).to_physical().cast(pl.Int64),
                pl.Series("stratum", stratum),
            )
            .drop_nulls("metric")
        )
        places = np.ravel_multi_index(tuple(column.to_numpy() for column in found), counted.shape)
        counted += np.bincount(places, minlength=counted.size).reshape(counted.shape)
    return counted


def _summarise_group(
    name: str,
    group: Group,
    metrics: Sequence[Metric],
    n_rows: Longs,
    sums: Mapping[str, ExactSums],
    reasons: Longs,
) -> Iterator[pl.DataFrame]:
    """Yield for each metric a row for each value of a label."""
    rows = group.add_counts(n_rows)
    grouped = {column: group.add_sums(of_column) for column, of_column in sums.items()}
    totals = {column: of_column.totals() for column, of_column in grouped.items()}
    for metric, lacking in zip(metrics, group.add_counts(reasons), strict=True):
        found = grouped[metric.id]
        counts = found.limbs[:, COUNT]
        each = zip(counts.tolist(), totals[metric.id], found.squares(), strict=True)
        moments = zip(*(_moments(*of_value, found.bits) for of_value in each), strict=True)
        # no zero is negative: which of two equal ones came first is chance
        extremes = np.where(counts[:, np.newaxis] > 0, found.extremes + 0.0, np.nan)
        columns = {
            "value": group.values,
            "n": counts,
            "n_null": rows - counts,
            **dict(zip(_REASON_COUNTS, lacking, strict=True)),
            **dict(zip(_MOMENTS, moments, strict=True)),
            "minimum": pl.Series(extremes[:, 0], nan_to_null=True),
            "maximum": pl.Series(extremes[:, 1], nan_to_null=True),
            **_micro(metric, grouped, totals),
        }
        named = {"suite": None, "group": name, "metric": metric.id}
        yield pl.DataFrame({**named, **columns}, SUMMARY_SCHEMA)


def _moments(
    count: int, total: int, squares: int, bits: int
) -> tuple[float | None, float | None, float | None, float | None]:
    """Return the mean, and of two values or more the deviation and the ends of the interval."""
    if not count:
        return None, None, None, None
    mean = _scaled(total, count, bits)
    if count == 1:
        return mean, None, None, None
    deviation = _deviation(total, squares, count, bits)
    half_width = NORMAL_QUANTILE * deviation / math.sqrt(count)
    return mean, deviation, mean - half_width, mean + half_width


def _micro(
    metric: Metric, sums: Mapping[str, ExactSums], totals: Mapping[str, Sequence[int]]
) -> dict[str, Sequence[float | None] | None]:
    """Return by value the ratio of a metric's two sums, and both; None where it has none."""
    if metric.numerator is None or metric.denominator is None:
        return dict.fromkeys(_MICRO)
    numerators, denominators = (
        [_scaled(total, 1, sums[column].bits) for total in totals[column]]
        for column in (metric.numerator, metric.denominator)
    )
    ratios = [
        numerator / denominator if denominator else None
        for numerator, denominator in zip(numerators, denominators, strict=True)
    ]
    return dict(zip(_MICRO, (numerators, denominators, ratios), strict=True))


def _scaled(total: int, count: int, bits: int) -> float:
    """Return total * 2^-bits / count, rounded once."""
    return total / (count << bits) if bits >= 0 else (total << -bits) / count


def _deviation(total: int, squares: int, count: int, bits: int) -> float:
    """Return the sample standard deviation of whole numbers that stand for multiples of 2^-bits."""
    variance = (count * squares - total * total) / (count * (count - 1))
    return math.ldexp(math.sqrt(variance), -bits)
