"""Similarity of two columns of texts: functions of polars Series, and polars expressions.

Columns are Series, and the result is a Series. Or they are column names and expressions, and the
result is an expression, for lazy and streaming queries, ``over`` and ``group_by`` too. A row with a
null is null. A column of one row is compared with every row of the other.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import (
    count_shared_ngrams,
    levenshtein_pairs,
    levenshtein_similarity_pairs,
    ngram_copy_ratio,
)

from fastscore.errors import UsageError, names_arguments

Values = npt.NDArray[Any]
Read = Callable[[str, pl.Series], pl.Series]
Compute = Callable[..., Values]


def row_by_row(
    columns: Mapping[str, Any], read: Read, compute: Compute, dtype: type[pl.DataType]
) -> pl.Series | pl.Expr:
    """Return a Series for Series, and otherwise an expression that computes it.

    `columns` are by the names of arguments. `read` checks the dtype of one and makes invalid values
    null. `compute` takes the columns without nulls, of equal length.
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
    """Compute the shared members / all members from counts (3, n): of one, the other, and both."""
    one, other, both = counts
    union = one + other - both
    index = np.full(len(union), both_empty, np.float64)
    np.divide(both, union, out=index, where=union > 0)
    return index


LONGEST_NGRAM = 6
Column = str | pl.Expr
Floats = npt.NDArray[np.float64]

__all__ = ["copy_ratio", "levenshtein", "levenshtein_similarity", "ngram_overlap"]


def __dir__() -> list[str]:
    return sorted(__all__)


@overload
def levenshtein(a: pl.Series, b: pl.Series) -> pl.Series: ...
@overload
def levenshtein(a: Column, b: Column) -> pl.Expr: ...
@names_arguments
def levenshtein(a: pl.Series | Column, b: pl.Series | Column) -> pl.Series | pl.Expr:
    """Count the insertions, deletions and substitutions that make one text of the other.

    Parameters
    ----------
    a, b
        Columns of texts.

    Returns
    -------
    Int32
        The Levenshtein distance in code points. Case and white space count.

    Examples
    --------
    >>> fastscore.text.levenshtein(pl.Series(["kitten"]), pl.Series(["sitting"])).item()
    3
    """
    return row_by_row(
        {"a": a, "b": b},
        _texts,
        lambda one, other: levenshtein_pairs(one, other, threads=pl.thread_pool_size()),
        pl.Int32,
    )


@overload
def levenshtein_similarity(a: pl.Series, b: pl.Series, *, both_empty: float = ...) -> pl.Series: ...
@overload
def levenshtein_similarity(a: Column, b: Column, *, both_empty: float = ...) -> pl.Expr: ...
@names_arguments
def levenshtein_similarity(
    a: pl.Series | Column, b: pl.Series | Column, *, both_empty: float = 1.0
) -> pl.Series | pl.Expr:
    """Compute ``1 - distance / code points of the longer text``, from 0 to 1.

    Parameters
    ----------
    a, b
        Columns of texts.
    both_empty
        The value of two empty texts. The suite score_dialogue has 0.0.

    Examples
    --------
    >>> fastscore.text.levenshtein_similarity(pl.Series(["abcd"]), pl.Series(["abxd"])).item()
    0.75
    """

    def similarities(one: pl.Series, other: pl.Series) -> Floats:
        values: Floats = levenshtein_similarity_pairs(one, other, threads=pl.thread_pool_size())
        values[((one == "") & (other == "")).to_numpy()] = both_empty
        return values

    return row_by_row({"a": a, "b": b}, _texts, similarities, pl.Float64)


@overload
def copy_ratio(text: pl.Series, source: pl.Series, *, orders: Sequence[int] = ...) -> pl.Series: ...
@overload
def copy_ratio(text: Column, source: Column, *, orders: Sequence[int] = ...) -> pl.Expr: ...
@names_arguments
def copy_ratio(
    text: pl.Series | Column, source: pl.Series | Column, *, orders: Sequence[int] = (3, 4)
) -> pl.Series | pl.Expr:
    """Compute the share of a text's distinct word n-grams that its source has too, from 0 to 1.

    Words are letters and digits of ASCII, in any case. An apostrophe between them joins.

    Parameters
    ----------
    text, source
        Columns of texts: the copies, and their sources.
    orders
        Words of an n-gram. The greatest share of all orders counts.

    Returns
    -------
    Float64
        0.0 if the text has fewer words than each order.

    Examples
    --------
    >>> text, source = pl.Series(["one two three four"]), pl.Series(["one, two, three"])
    >>> fastscore.text.copy_ratio(text, source, orders=[3]).item()
    0.5
    """
    if isinstance(orders, str) or not orders or any(_is_invalid_order(order) for order in orders):
        raise UsageError(f"`orders` is {orders!r}; expected integers of at least 1, as in (3, 4).")
    return row_by_row(
        {"text": text, "source": source},
        _texts,
        lambda one, other: ngram_copy_ratio(one, other, orders, threads=pl.thread_pool_size()),
        pl.Float64,
    )


@overload
def ngram_overlap(
    a: pl.Series, b: pl.Series, *, n: int = ..., both_empty: float = ...
) -> pl.Series: ...
@overload
def ngram_overlap(a: Column, b: Column, *, n: int = ..., both_empty: float = ...) -> pl.Expr: ...
@names_arguments
def ngram_overlap(
    a: pl.Series | Column, b: pl.Series | Column, *, n: int = 2, both_empty: float = 1.0
) -> pl.Series | pl.Expr:
    """Compute the Jaccard index of the sets of character n-grams of two texts, from 0 to 1.

    Parameters
    ----------
    a, b
        Columns of texts.
    n
        Code points of an n-gram, 1 to 6. A shorter text is an n-gram by itself.
    both_empty
        The value of two empty texts.

    Examples
    --------
    >>> fastscore.text.ngram_overlap(pl.Series(["night"]), pl.Series(["nacht"])).item()
    0.14285714285714285
    """
    if _is_invalid_order(n) or n > LONGEST_NGRAM:
        raise UsageError(f"`n` is {n!r}; expected an integer from 1 to {LONGEST_NGRAM}.")
    return row_by_row(
        {"a": a, "b": b},
        _texts,
        lambda one, other: jaccard_index(
            count_shared_ngrams(one, other, n, threads=pl.thread_pool_size()), both_empty
        ),
        pl.Float64,
    )


def _is_invalid_order(order: object) -> bool:
    return isinstance(order, bool) or not isinstance(order, int) or order < 1


def _texts(name: str, column: pl.Series) -> pl.Series:
    """Return a column of strings."""
    if isinstance(column.dtype, pl.String):
        return column
    if isinstance(column.dtype, pl.Categorical | pl.Enum | pl.Null):
        return column.cast(pl.String)
    raise UsageError(f"`{name}` has dtype {column.dtype}; expected String.")
