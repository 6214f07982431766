"""Text ids: the 128-bit hash by which a text finds its vector.

Ids travel as uint64 (n, 2). "Sorted" means by first word, then by second.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from fastscore_kernels import text_hash128

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


def sort_order(ids: TextIds) -> npt.NDArray[np.intp]:
    """Return the order that sorts ids."""
    order = np.argsort(ids[:, 0])
    first = ids[order, 0]
    if np.any(first[1:] == first[:-1]):
        order = np.lexsort((ids[:, 1], ids[:, 0]))
    return order


def unique_sorted(ids: TextIds) -> tuple[TextIds, npt.NDArray[np.intp]]:
    """Sort ids and drop repeats.

    Returns
    -------
    distinct : uint64 (m, 2)
        Sorted.
    positions : intp (m,)
        Where each distinct id occurs in `ids`, its first occurrence.
    """
    if not len(ids):
        return ids.reshape(0, 2), np.empty(0, np.intp)
    order = np.lexsort((ids[:, 1], ids[:, 0]))  # stable: equal ids keep their order
    ordered = ids[order]
    fresh = np.ones(len(ids), bool)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return np.ascontiguousarray(ordered[fresh]), order[fresh]


def positions_in(
    first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64], queries: TextIds
) -> npt.NDArray[np.int64]:
    """Find sorted ids among sorted ids.

    Parameters
    ----------
    first, second : uint64 (n,)
        The words of sorted, distinct ids.
    queries : uint64 (m, 2)
        Sorted; repeats are allowed.

    Returns
    -------
    int64 (m,)
        Position of each query in the ids, -1 where absent.
    """
    if not len(first) or not len(queries):
        return np.full(len(queries), -1, np.int64)
    # Sorted needles in a sorted haystack walk memory forwards: search the shorter side.
    if len(first) < len(queries):
        fresh = np.ones(len(queries), bool)
        fresh[1:] = (queries[1:] != queries[:-1]).any(axis=1)
        distinct = queries[fresh]
        reverse = _search(
            np.ascontiguousarray(distinct[:, 0]),
            np.ascontiguousarray(distinct[:, 1]),
            np.column_stack((first, second)),
        )
        present = reverse >= 0
        found = np.full(len(distinct), -1, np.int64)
        found[reverse[present]] = np.flatnonzero(present)
        spread: npt.NDArray[np.int64] = found[np.cumsum(fresh) - 1]
        return spread
    return _search(first, second, queries)


def _search(
    first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64], queries: TextIds
) -> npt.NDArray[np.int64]:
    """Find sorted queries by binary search in sorted, distinct ids."""
    found = np.full(len(queries), -1, np.int64)
    words = np.ascontiguousarray(queries[:, 0])
    at = np.searchsorted(first, words)
    pending = np.flatnonzero(at < len(first))
    while pending.size:
        place = at[pending]
        same_first = first[place] == words[pending]
        pending, place = pending[same_first], place[same_first]
        match = second[place] == queries[pending, 1]
        found[pending[match]] = place[match]
        # Ids that share a first word stand side by side.
        pending = pending[~match]
        at[pending] += 1
        pending = pending[at[pending] < len(first)]
    return found
