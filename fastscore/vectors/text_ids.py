"""Text ids: the 128-bit hash by which a text finds its vector.

Ids travel as uint64 (n, 2). "Sorted" means by first word, then by second.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_kernels import text_hash128

if TYPE_CHECKING:
    import polars as pl

    Texts = Sequence[str] | pl.Series | Any

TextIds = npt.NDArray[np.uint64]
Words = npt.NDArray[np.uint64]


def as_series(texts: "Texts") -> "pl.Series":
    """Take texts as a polars string column.

    Parameters
    ----------
    texts
        A polars Series, an Arrow array (anything with the PyCapsule interface), or strings.

    Raises
    ------
    TypeError
        If the values are not strings.
    """
    import polars as pl

    if isinstance(texts, pl.Series):
        series = texts
    elif isinstance(texts, Sequence) and not isinstance(texts, str):
        series = pl.Series(texts, dtype=pl.String, strict=True)
    else:
        series = pl.Series(texts)
    if series.dtype == pl.Null:
        return series.cast(pl.String)
    if series.dtype != pl.String:
        if isinstance(series.dtype, pl.Categorical | pl.Enum):
            return series.cast(pl.String)
        raise TypeError(f"Texts have dtype {series.dtype}: expected strings.")
    return series


def text_ids(texts: "Texts") -> TextIds:
    """Hash texts, in their order.

    Parameters
    ----------
    texts
        Strings without nulls.

    Returns
    -------
    uint64 (n, 2)
        MurmurHash3_x64_128 of the UTF-8 bytes.
    """
    ids: TextIds = text_hash128(texts)
    return ids


class SortedIds(NamedTuple):
    """Sorted, distinct text ids, word by word.

    Attributes
    ----------
    first, second : uint64 (n,)
        The words of each id; C-contiguous.
    """

    first: Words
    second: Words

    def rows(self) -> TextIds:
        """Return the ids as uint64 (n, 2)."""
        return np.column_stack((self.first, self.second))


def sort_order(ids: TextIds) -> npt.NDArray[np.intp]:
    """Return the order that sorts ids; equal ids keep theirs."""
    order = np.argsort(ids[:, 0])
    first = ids[order, 0]
    tied = np.zeros(len(ids), bool)
    tied[1:] = first[1:] == first[:-1]
    tied[:-1] |= tied[1:]
    slots = np.flatnonzero(tied)
    if slots.size:
        rows = order[slots]
        order[slots] = rows[np.lexsort((rows, ids[rows, 1], ids[rows, 0]))]
    return order


def distinct_ids(
    ids: TextIds,
) -> tuple[SortedIds, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Sort ids and drop repeats.

    Returns
    -------
    distinct
        m sorted ids.
    positions : intp (m,)
        Where each distinct id first occurs in `ids`.
    inverse : intp (n,)
        Which distinct id each of `ids` is.
    """
    order = sort_order(ids)
    first, second = ids[order, 0], ids[order, 1]
    fresh = np.ones(len(ids), bool)
    fresh[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    inverse = np.empty(len(ids), np.intp)
    inverse[order] = np.cumsum(fresh) - 1
    return SortedIds(first[fresh], second[fresh]), order[fresh], inverse


def matches(left: SortedIds, right: SortedIds) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Find the ids that two sets share.

    Returns
    -------
    intp (m,), intp (m,)
        Their positions in `left` and in `right`.
    """
    # Sorted needles walk the haystack forwards; the shorter side makes the needles.
    if len(left.first) > len(right.first):
        in_right, in_left = matches(right, left)
        return in_left, in_right
    size = len(right.first)
    at = np.searchsorted(right.first, left.first)
    found = np.full(len(at), -1, np.intp)
    pending = np.flatnonzero(at < size)
    while pending.size:
        place = at[pending]
        same_first = right.first[place] == left.first[pending]
        pending, place = pending[same_first], place[same_first]
        match = right.second[place] == left.second[pending]
        found[pending[match]] = place[match]
        # Ids that share a first word stand side by side.
        pending = pending[~match]
        at[pending] += 1
        pending = pending[at[pending] < size]
    in_left = np.flatnonzero(found >= 0)
    return in_left, found[in_left]
