"""Text ids: the 128-bit hash by which a text finds its vector.

Ids travel as uint64 (n, 2). "Sorted" means by first word, then by second.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import fastscore_kernels
import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import UInt64Array
from fastscore_kernels import bucket_starts, find_ids, text_hash128

from fastscore.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    Texts = Sequence[str] | pl.Series | Any

TextIds = npt.NDArray[np.uint64]


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

    if isinstance(texts, str):
        raise TypeError("One text is given: expected a column of them.")
    if isinstance(texts, pl.Series):
        series = texts
    elif isinstance(texts, Sequence):
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


def as_texts(texts: object) -> "pl.Series":
    """Take texts of a user as `as_series` does.

    Raises
    ------
    UsageError
        If the values are not strings.
    """
    try:
        return as_series(texts)
    except TypeError as error:
        found = f"type {type(texts).__name__}"
        if hasattr(texts, "dtype"):
            found = f"dtype {texts.dtype}"
        raise UsageError(f"`texts` is of {found}; expected a Series or list of strings.") from error


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

    first: UInt64Array
    second: UInt64Array

    def rows(self) -> TextIds:
        """Return the ids as uint64 (n, 2)."""
        return np.column_stack((self.first, self.second))


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
    first, second, positions, inverse = fastscore_kernels.distinct_ids(ids)
    return SortedIds(first, second), positions, inverse


_FEW = 64
"""Wanted ids are few if they are less than one such part of those that they are looked for in."""


class IdIndex:
    """Sorted ids, ready to be searched.

    Parameters
    ----------
    ids
        m sorted ids.
    """

    def __init__(self, ids: SortedIds) -> None:
        self.ids = ids
        self._starts = bucket_starts(ids.first)

    def find(self, first: UInt64Array, second: UInt64Array) -> npt.NDArray[np.intp]:
        """Find ids, given word by word in any order.

        Returns
        -------
        intp (n,)
            The place of each among the sorted ids; -1 where it is not there.
        """
        places: npt.NDArray[np.intp] = find_ids(first, second, *self.ids, self._starts)
        return places

    def find_sorted(self, held: SortedIds) -> npt.NDArray[np.intp]:
        """Find ids that are sorted, as `find` does: only wanted ids between their ends can match.

        Where these are few, they are looked for among the sorted ids.
        """
        first, second = held
        if not len(first):
            return np.zeros(0, np.intp)
        wanted = self.ids.first
        low = int(np.searchsorted(wanted, first[0], "left"))
        high = int(np.searchsorted(wanted, first[-1], "right"))
        if (high - low) * _FEW > len(first):
            return self.find(first, second)
        found = np.full(len(first), -1, np.intp)
        begin = np.searchsorted(first, wanted[low:high], "left")
        end = np.searchsorted(first, wanted[low:high], "right")
        # ids of one first word are neighbours; there is hardly ever more than one
        for step in range(int((end - begin).max(initial=0))):
            place = np.flatnonzero(begin + step < end)
            row = begin[place] + step
            same = second[row] == self.ids.second[low + place]
            found[row[same]] = low + place[same]
        return found
