"""Sums of columns that are the same for any order of rows and any split of them.

Sums are kept in whole numbers: each value is rounded to a fixed-point grid that is chosen from
the metric's range (or, without one, its largest magnitude) and the number of rows, and the 128-bit
sums of those numbers and of their squares do not depend on the order. The grid is as fine as such
sums allow: 2^-60 of the largest magnitude for tens of rows, 2^-52 for millions, 2^-48 for a
thousand million. The rounding error is of the order of a double's own last bits.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from fastscore.suites.columns import Rows, collected
from fastscore.suites.declarations import Metric

_GRID_BITS = 62
_SUM_BITS = 126
_LOWEST_EXPONENT = -900
TOTALS = (
    pl.col(r"^.*:(rows|n|sum|squares)$").sum(),
    pl.col(r"^.*:minimum$").min(),
    pl.col(r"^.*:maximum$").max(),
)
"""How the sums of rows (`sum_rows`) are added up again."""
_KEPT = ("n", "sum", "squares", "minimum", "maximum")


@dataclass(frozen=True, slots=True)
class Size:
    """What the grids of a table's columns depend on.

    Parameters
    ----------
    rows
        The number of rows.
    largest
        The largest magnitude of each column without a declared range.
    """

    rows: int
    largest: Mapping[str, float]


def summed_columns(metrics: Iterable[Metric]) -> list[str]:
    """Return the columns that are summed for metrics."""
    columns = ((metric.id, metric.numerator, metric.denominator) for metric in metrics)
    return list(dict.fromkeys(name for names in columns for name in names if name is not None))


def choose_grids(rows: Rows, metrics: Sequence[Metric]) -> dict[str, int]:
    """Return the grid of every column that these metrics sum, as the bits after the point.

    A metric's largest magnitude is that of its declared range; only columns without one are read.
    """
    return grids_of(size_of(rows, metrics), metrics)


def size_of(rows: Rows, metrics: Sequence[Metric]) -> Size:
    """Count rows, and find the largest magnitude of the columns without a declared range."""
    ranges = _largest_of_ranges(metrics)
    unbounded = [column for column in summed_columns(metrics) if column not in ranges]
    found = collected(
        rows.select(pl.len().alias("_rows"), pl.col(unbounded).cast(pl.Float64).abs().max())
    )
    largest = {column: found[column].item() or 0.0 for column in unbounded}
    return Size(int(found["_rows"].item()), largest)


def joint_size(sizes: Sequence[Size]) -> Size:
    """Return the size of a table from those of its parts."""
    columns = sizes[0].largest
    largest = {column: max(size.largest[column] for size in sizes) for column in columns}
    return Size(sum(size.rows for size in sizes), largest)


def grids_of(size: Size, metrics: Sequence[Metric]) -> dict[str, int]:
    """Return the grid of every column of a table of this size."""
    largest = {**_largest_of_ranges(metrics), **size.largest}
    bits = min(_GRID_BITS, (_SUM_BITS - size.rows.bit_length()) // 2)
    return {
        column: bits - max(math.frexp(largest[column])[1], _LOWEST_EXPONENT)
        for column in summed_columns(metrics)
    }


def _largest_of_ranges(metrics: Sequence[Metric]) -> dict[str, float]:
    return {
        metric.id: max(abs(metric.minimum), abs(metric.maximum))
        for metric in metrics
        if metric.minimum is not None and metric.maximum is not None
    }


def fixed_point(column: str, bits: int) -> pl.Expr:
    """Return a column in multiples of 2^-bits, as 128-bit integers whose sums are exact."""
    # of 64 bits first: polars casts doubles to those faster
    whole = (pl.col(column).cast(pl.Float64) * 2.0**bits).round().cast(pl.Int64)
    return whole.cast(pl.Int128)


def sum_rows(rows: Rows, by: Sequence[str], grids: Mapping[str, int]) -> pl.DataFrame:
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


def merge_sums(sums: pl.LazyFrame, by: Sequence[str], columns: Iterable[str]) -> pl.DataFrame:
    """Add up sums of several tables, made by `sum_rows` by finer columns."""
    kept = [":rows", *(f"{column}:{name}" for column in columns for name in _KEPT)]
    of_columns = sums.select(*by, *kept)
    return collected(of_columns.group_by(by).agg(TOTALS) if by else of_columns.select(TOTALS))


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
