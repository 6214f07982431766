"""Lists as sets and as samples: functions of polars Series, and polars expressions.

Columns are Series, and the result is a Series. Or they are column names and expressions, and the
result is an expression. A row is a list of strings or of numbers. ``pl.col(NAME).implode()`` makes
one list of a column or, in ``group_by`` and ``over``, of each group.

A row with a null is null. Null members are left out. A column of one row is compared with every
row of the other.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrow import addressed_strings
from fastscore_kernels import (
    count_shared_members,
    distinct_counts_ragged,
    gini_ragged,
    idf_cosine_csr,
    number_hashes,
    number_texts,
    text_hash128,
)

from fastscore.errors import UsageError, names_arguments
from fastscore.text import jaccard_index, row_by_row

Column = str | pl.Expr
Member = str | int | float
Floats = npt.NDArray[np.float64]
Offsets = npt.NDArray[np.int64]
Csr = tuple[npt.NDArray[np.int32], Offsets]
_INLINE_BYTES = 12
"""The longest text that its string view contains, after its length and before zeros."""

__all__ = ["distinct_ratio", "gini", "idf", "idf_cosine", "jaccard"]


def __dir__() -> list[str]:
    return sorted(__all__)


@overload
def jaccard(a: pl.Series, b: pl.Series, *, both_empty: float = ...) -> pl.Series: ...
@overload
def jaccard(a: Column, b: Column, *, both_empty: float = ...) -> pl.Expr: ...
@names_arguments
def jaccard(
    a: pl.Series | Column, b: pl.Series | Column, *, both_empty: float = 1.0
) -> pl.Series | pl.Expr:
    """Compute the common members / all members of two sets, from 0 to 1.

    Parameters
    ----------
    a, b
        Columns of lists.
    both_empty
        The value of two empty lists.

    Examples
    --------
    >>> fastscore.sets.jaccard(pl.Series([["a", "b"]]), pl.Series([["b", "c", "c"]])).item()
    0.3333333333333333
    """

    def indices(one: pl.Series, other: pl.Series) -> Floats:
        return jaccard_index(_shared(one, other), both_empty)

    return row_by_row({"a": a, "b": b}, _lists, indices, pl.Float64)


@names_arguments
def idf(sets: pl.Series) -> dict[Member, float]:
    """Compute the inverse document frequency of each member: ``ln((1 + N) / (1 + df)) + 1``.

    ``N`` is the number of lists that are not null, ``df`` how many of them have the member.

    Parameters
    ----------
    sets
        A Series of lists.

    Examples
    --------
    >>> fastscore.sets.idf(pl.Series([["a", "b"], ["b"]]))
    {'a': 1.4054651081081644, 'b': 1.0}
    """
    if not isinstance(sets, pl.Series):
        raise UsageError(f"`sets` is of type {type(sets).__name__}; expected a Series of lists.")
    flat = _flat(_lists("sets", sets).drop_nulls().list.unique(maintain_order=True))
    rows = len(flat.offsets) - 1
    members, counts = flat.members.value_counts(sort=False).get_columns()
    found = dict(zip(members.to_list(), counts.to_list(), strict=True))
    return {
        member: math.log((1 + rows) / (1 + found[member])) + 1
        for member in flat.members.unique(maintain_order=True).to_list()
    }


@overload
def idf_cosine(a: pl.Series, b: pl.Series, *, idf: Mapping[Any, float]) -> pl.Series: ...
@overload
def idf_cosine(a: Column, b: Column, *, idf: Mapping[Any, float]) -> pl.Expr: ...
@names_arguments
def idf_cosine(
    a: pl.Series | Column, b: pl.Series | Column, *, idf: Mapping[Any, float]
) -> pl.Series | pl.Expr:
    """Compute the cosine of two sets whose members have weights.

    The sum of ``idf ** 2`` over the common members, divided by the square root of the product of
    both sets' sums.

    Parameters
    ----------
    a, b
        Columns of lists.
    idf
        The weight of each member, for example from `idf`. Members without a weight are left out.

    Returns
    -------
    Float64
        From 0 to 1 for weights that are not negative; 0.0 if a set has no weight.

    Examples
    --------
    >>> weights = {"rare": 2.0, "common": 1.0}
    >>> a, b = pl.Series([["rare", "common"]]), pl.Series([["rare"]])
    >>> fastscore.sets.idf_cosine(a, b, idf=weights).item()
    0.8944271909999159
    """
    known = _weighted_members(idf)
    weights = np.fromiter(idf.values(), np.float64, len(idf))

    def cosines(one: pl.Series, other: pl.Series) -> Floats:
        _, left, right = _sets({"idf": known, "a": one, "b": other})
        most = max(int(each[0].max(initial=-1)) for each in (left, right)) + 1
        padded = np.zeros(max(most, len(weights)), np.float64)
        padded[: len(weights)] = weights
        values: Floats = idf_cosine_csr(left, right, padded, threads=pl.thread_pool_size())
        return values

    return row_by_row({"a": a, "b": b}, _lists, cosines, pl.Float64)


@overload
def gini(values: pl.Series) -> pl.Series: ...
@overload
def gini(values: Column) -> pl.Expr: ...
@names_arguments
def gini(values: pl.Series | Column) -> pl.Series | pl.Expr:
    """Compute the Gini coefficient of each list of numbers.

    ``sum_i sum_j |x_i - x_j| / (2 n**2 mean)``, from 0 to ``(n - 1) / n``.

    Parameters
    ----------
    values
        A column of lists of numbers, none below 0.

    Returns
    -------
    Float64
        Null for an empty list, 0.0 for one whose numbers are all 0, NaN for one with NaN.

    Examples
    --------
    >>> fastscore.sets.gini(pl.Series([[1.0, 1.0], [0.0, 1.0]])).to_list()
    [0.0, 0.5]
    """

    def coefficients(lists: pl.Series) -> Floats:
        flat = _flat(lists)
        numbers = flat.members.cast(pl.Float64)
        if (numbers < 0).any():
            least = numbers.filter(numbers < 0)[0]
            raise UsageError(f"`values` has the member {least}; expected numbers of at least 0.")
        found: Floats = gini_ragged(numbers.to_numpy(), flat.offsets, threads=pl.thread_pool_size())
        return found

    return row_by_row({"values": values}, _numbers, coefficients, pl.Float64)


@overload
def distinct_ratio(values: pl.Series) -> pl.Series: ...
@overload
def distinct_ratio(values: Column) -> pl.Expr: ...
@names_arguments
def distinct_ratio(values: pl.Series | Column) -> pl.Series | pl.Expr:
    """Compute the distinct members / all members of each list.

    Parameters
    ----------
    values
        A column of lists.

    Returns
    -------
    Float64
        From 1 / members to 1. Null for an empty list.

    Examples
    --------
    >>> fastscore.sets.distinct_ratio(pl.Series([["to", "be", "or", "not", "to", "be"]])).item()
    0.6666666666666666
    """
    return row_by_row(
        {"values": values},
        _with_members,
        lambda lists: (lists.list.n_unique() / lists.list.len()).to_numpy(),
        pl.Float64,
    )


class _Flat(NamedTuple):
    """The members of all lists, without nulls, and where each list begins, (lists + 1,)."""

    members: pl.Series
    offsets: Offsets


def _lists(name: str, column: pl.Series) -> pl.Series:
    """Return a column of lists of strings or numbers."""
    dtype = column.dtype
    if isinstance(dtype, pl.Null):
        return column.cast(pl.List(pl.Null))
    if isinstance(dtype, pl.Array) and len(dtype.shape) == 1:
        column = column.arr.to_list()
    inner = column.dtype.inner if isinstance(column.dtype, pl.List) else None
    if isinstance(inner, pl.Categorical | pl.Enum):
        return column.cast(pl.List(pl.String))
    if isinstance(inner, pl.String | pl.Null) or (
        inner and (inner.is_integer() or inner.is_float())
    ):
        return column
    single = inner is None and (isinstance(dtype, pl.String) or dtype.is_numeric())
    raise UsageError(
        f"`{name}` has dtype {dtype}; expected lists of strings or numbers.",
        "`.implode()` makes one list of a column or group." if single else None,
    )


def _weighted_members(weights: object) -> pl.Series:
    """Return the members with a weight, in one list."""
    if not isinstance(weights, Mapping):
        raise UsageError(
            f"`idf` is of type {type(weights).__name__}; expected a weight for each member, as in "
            "{'comedy': 1.5}."
        )
    types = sorted({type(member).__name__ for member in weights})
    if len(types) > 1 or "NoneType" in types:
        raise UsageError(
            f"`idf` has members of types {' and '.join(types)}; expected strings or numbers alone."
        )
    return _lists("idf", pl.Series([list(weights)], dtype=None if weights else pl.List(pl.Null)))


def _with_members(name: str, column: pl.Series) -> pl.Series:
    """Return a column of lists with nulls for empty lists."""
    lists = _without_nulls(_lists(name, column))
    empty = lists.list.len() == 0
    return lists.set(empty, None) if empty.any() else lists


def _numbers(name: str, column: pl.Series) -> pl.Series:
    """Return a column of lists of numbers with nulls for empty lists."""
    lists = _with_members(name, column)
    if isinstance(lists.dtype, pl.List) and isinstance(lists.dtype.inner, pl.String):
        raise UsageError(f"`{name}` has dtype {column.dtype}; expected lists of numbers.")
    return lists


def _without_nulls(lists: pl.Series) -> pl.Series:
    """Leave out null members."""
    return lists.list.drop_nulls() if lists.explode(empty_as_null=False).null_count() else lists


def _flat(lists: pl.Series) -> _Flat:
    lists = _without_nulls(lists)
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(lists.list.len().to_numpy(), out=offsets[1:])
    return _Flat(lists.explode(empty_as_null=False), offsets)


def _shared(a: pl.Series, b: pl.Series) -> npt.NDArray[np.int64]:
    """Count (3, n) the distinct members of the lists of each column, and the common ones."""
    flats = {"a": _flat(a), "b": _flat(b)}
    members = _of_one_kind({name: flat.members for name, flat in flats.items()})
    pair = [
        (high, low, flat.offsets)
        for (high, low), flat in zip(_words(members), flats.values(), strict=True)
    ]
    counts: npt.NDArray[np.int64] = count_shared_members(*pair, threads=pl.thread_pool_size())
    return counts


def _sets(columns: Mapping[str, pl.Series]) -> list[Csr]:
    """Return columns of lists as sets of integers, assigned to members by first appearance."""
    flats = {name: _flat(column) for name, column in columns.items()}
    members = _of_one_kind({name: flat.members for name, flat in flats.items()})
    joined = pl.concat(members)
    is_text = joined.dtype == pl.String
    codes, _ = number_texts(joined) if is_text else number_hashes(_bits(joined))
    cuts = np.cumsum([len(column) for column in members])[:-1]
    found = (
        distinct_counts_ragged(numbers, flat.offsets, threads=pl.thread_pool_size())
        for numbers, flat in zip(np.split(codes, cuts), flats.values(), strict=True)
    )
    return [(values, offsets) for values, _, offsets in found]


def _of_one_kind(members: Mapping[str, pl.Series]) -> list[pl.Series]:
    """Return columns with a common dtype, in which equal members are equal."""
    kinds = {name: _kind(column.dtype) for name, column in members.items() if len(column)}
    if {*kinds.values()} == {"integers", "unsigned integers"}:
        signed = (members[name].min() for name, kind in kinds.items() if kind == "integers")
        if all(lowest >= 0 for lowest in signed):  # type: ignore[operator]
            kinds = dict.fromkeys(kinds, "unsigned integers")
    if len({*kinds.values()}) > 1:
        (first, kind), *others = kinds.items()
        name = next(name for name, other in others if other != kind)
        raise UsageError(
            f"`{first}` has lists of {members[first].dtype} and `{name}` of {members[name].dtype}; "
            "expected one kind of members."
        )
    dtype = _DTYPES[next(iter(kinds.values()), "integers")]
    return [column.cast(dtype) for column in members.values()]


_DTYPES = {
    "strings": pl.String,
    "floats": pl.Float64,
    "integers": pl.Int64,
    "unsigned integers": pl.UInt64,
}


def _kind(dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.String):
        return "strings"
    if dtype.is_float():
        return "floats"
    return "unsigned integers" if isinstance(dtype, pl.UInt64) else "integers"


def _words(columns: Sequence[pl.Series]) -> list[Sequence[npt.NDArray[np.uint64]]]:
    """Return two words for each member: its value and 0, or of text its view or its hash."""
    if columns[0].dtype != pl.String:
        return [(bits, np.zeros_like(bits)) for bits in map(_bits, columns)]
    longest: Any = pl.concat([column.str.len_bytes() for column in columns]).max()
    if (longest or 0) > _INLINE_BYTES:
        hashes = (text_hash128(column, threads=pl.thread_pool_size()) for column in columns)
        return [[*np.ascontiguousarray(each.T)] for each in hashes]
    held = [addressed_strings("strings", column) for column in columns]
    return [[*each.string_views.view(np.uint64).reshape(-1, 2).T.copy()] for each in held]


def _bits(numbers: pl.Series) -> npt.NDArray[np.uint64]:
    """Return numbers as words that are equal if the numbers are; NaN equals NaN."""
    values = numbers.to_numpy()
    if values.dtype == np.float64:
        values = np.where(np.isnan(values), np.nan, values + 0.0)
    return np.ascontiguousarray(values).view(np.uint64)
