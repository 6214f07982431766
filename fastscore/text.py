"""How alike two columns of texts are: functions of polars Series, and polars expressions.

Columns are Series, and the result is a Series. Or they are column names and expressions, and the
result is an expression, for lazy and streaming queries, ``over`` and ``group_by`` too. A row with
a null is null. A column of one row is compared with every row of the other.
"""

from collections.abc import Sequence
from typing import overload

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import (
    count_shared_ngrams,
    levenshtein_pairs,
    levenshtein_similarity_pairs,
    ngram_copy_ratio,
)

from fastscore.errors import UsageError
from fastscore.expressions import jaccard_index, row_by_row

LONGEST_NGRAM = 6
Column = str | pl.Expr
Floats = npt.NDArray[np.float64]

__all__ = ["copy_ratio", "levenshtein", "levenshtein_similarity", "ngram_overlap"]


@overload
def levenshtein(a: pl.Series, b: pl.Series) -> pl.Series: ...
@overload
def levenshtein(a: Column, b: Column) -> pl.Expr: ...
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
def copy_ratio(
    text: pl.Series | Column, source: pl.Series | Column, *, orders: Sequence[int] = (3, 4)
) -> pl.Series | pl.Expr:
    """Compute the share of a text's distinct word n-grams that its source has too, from 0 to 1.

    Words are letters and digits of ASCII, in any case. An apostrophe between them joins.

    Parameters
    ----------
    text, source
        Columns of texts: what may be copied, and what from.
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
    if isinstance(orders, str) or not orders or any(_is_no_order(order) for order in orders):
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
    if _is_no_order(n) or n > LONGEST_NGRAM:
        raise UsageError(f"`n` is {n!r}; expected an integer from 1 to {LONGEST_NGRAM}.")
    return row_by_row(
        {"a": a, "b": b},
        _texts,
        lambda one, other: jaccard_index(
            count_shared_ngrams(one, other, n, threads=pl.thread_pool_size()), both_empty
        ),
        pl.Float64,
    )


def _is_no_order(order: object) -> bool:
    return isinstance(order, bool) or not isinstance(order, int) or order < 1


def _texts(name: str, column: pl.Series) -> pl.Series:
    """Return a column of strings."""
    if isinstance(column.dtype, pl.String):
        return column
    if isinstance(column.dtype, pl.Categorical | pl.Enum | pl.Null):
        return column.cast(pl.String)
    raise UsageError(f"`{name}` has dtype {column.dtype}; expected String.")
