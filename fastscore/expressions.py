"""Functions of columns: of Series at once, of names and expressions as a polars expression."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.errors import UsageError

Values = npt.NDArray[Any]
Read = Callable[[str, pl.Series], pl.Series]
Compute = Callable[..., Values]


def row_by_row(
    columns: Mapping[str, Any], read: Read, compute: Compute, dtype: type[pl.DataType]
) -> pl.Series | pl.Expr:
    """Return a Series of Series, and else the expression that computes it.

    Parameters
    ----------
    columns
        By the names of arguments.
    read
        Checks the dtype of an argument, given its name, and makes a null of what has no value.
    compute
        Takes the columns without nulls, as many rows of each, and returns a value for each row.
    dtype
        Of the result.
    """
    are_series = [isinstance(column, pl.Series) for column in columns.values()]
    names = list(columns)

    def whole(given: list[pl.Series]) -> pl.Series:
        return _computed(dict(zip(names, given, strict=True)), read, compute, dtype)

    if all(are_series):
        return whole(list(columns.values()))
    if any(are_series):
        series, other = (names[are_series.index(each)] for each in (True, False))
        raise UsageError(
            f"`{series}` is a Series and `{other}` is of type {type(columns[other]).__name__}; "
            "expected Series alone, or column names and expressions alone."
        )
    for name, column in columns.items():
        if not isinstance(column, str | pl.Expr):
            raise UsageError(
                f"`{name}` is of type {type(column).__name__}; expected a polars Series, the name "
                "of a column, or an expression."
            )
    return pl.map_batches(
        list(columns.values()),
        lambda given: whole(list(given)),
        return_dtype=dtype,
        is_elementwise=True,
    )


def _computed(
    columns: dict[str, pl.Series], read: Read, compute: Compute, dtype: type[pl.DataType]
) -> pl.Series:
    """Compute the rows without nulls; the others are null."""
    first = next(iter(columns.values()))
    given = _of_one_length({name: read(name, column) for name, column in columns.items()})
    present = pl.Series(np.ones(len(given[0]), np.bool_))
    for column in given:
        if column.null_count():
            present &= column.is_not_null()
    if present.all():
        return pl.Series(first.name, compute(*given), dtype)
    values = pl.Series(compute(*(column.filter(present) for column in given)), dtype=dtype)
    places = present.cast(pl.Int64).cum_sum() - 1
    return values.gather(places.set(~present, None)).alias(first.name)


def _of_one_length(columns: Mapping[str, pl.Series]) -> list[pl.Series]:
    """Repeat columns of one row, as polars does."""
    rows = next((len(column) for column in columns.values() if len(column) != 1), 1)
    for name, column in columns.items():
        if len(column) not in (1, rows):
            (first, *_) = (each for each, one in columns.items() if len(one) == rows)
            raise UsageError(
                f"`{name}` has {len(column)} rows and `{first}` has {rows}; expected as many, or "
                "one."
            )
    return [
        column if len(column) == rows else column.new_from_index(0, rows)
        for column in columns.values()
    ]


def jaccard_index(counts: npt.NDArray[np.int64], both_empty: float) -> npt.NDArray[np.float64]:
    """Compute the shared members / all members of counts (3, n): of one, the other, and both."""
    one, other, both = counts
    union = one + other - both
    index = np.full(len(union), both_empty, np.float64)
    np.divide(both, union, out=index, where=union > 0)
    return index
