"""Multisets of values by group: distinct values, their counts, and the cosine of two of them.

A column of bags is ``(values, offsets)`` like a column of sets, but the values of a group have any
order and may repeat. `distinct_counts_ragged` converts bags to sets with counts.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.compiling import kernel
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_offsets, as_vector, read_only, same_length

from fastscore_kernels._sorting import STACK_SIZE, sort_ascending

_GROUPS_PER_CHUNK = 1 << 12

Values = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]


class _Bags(NamedTuple):
    """A column of bags: distinct values (m,), the count of each, and offsets (bags + 1,)."""

    values: Values
    counts: Counts
    offsets: Counts


def distinct_counts_ragged(
    values: npt.ArrayLike, offsets: npt.ArrayLike, *, threads: int | None = None
) -> tuple[Values, Counts, Counts]:
    """Count the distinct values of each group.

    Parameters
    ----------
    values : int32 (n,)
        Values in any order.
    offsets : int64 (groups + 1,)
        Group ``g`` is ``values[offsets[g]:offsets[g + 1]]``.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    values : int32 (m,)
        Ascending within each group.
    counts : int64 (m,)
        The count of each value in its group.
    offsets : int64 (groups + 1,)
    """
    members = as_vector("values", values, np.int32)
    bounds = as_offsets("offsets", offsets, members.size)
    groups = bounds.size - 1
    ordered = members.copy()
    sizes = np.empty(groups, np.int64)
    _map_groups(partial(_sort_groups, ordered, bounds, sizes), groups, threads)
    places = np.zeros(groups + 1, np.int64)
    np.cumsum(sizes, out=places[1:])
    distinct = np.empty(int(places[-1]), np.int32)
    counts = np.empty(distinct.size, np.int64)
    _map_groups(partial(_count_groups, ordered, bounds, places, distinct, counts), groups, threads)
    return distinct, counts, places


def idf_cosine_counted_csr(
    a: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    b: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    idf: npt.ArrayLike,
    *,
    threads: int | None = None,
) -> npt.NDArray[np.float64]:
    """Compute the cosine of two bags, weighted by count times inverse document frequency.

    Parameters
    ----------
    a, b : (int32 values, int64 counts, int64 offsets)
        Two columns with equal numbers of bags, as returned by `distinct_counts_ragged`.
    idf : float64 (terms,)
        Weight of each value.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    float64 (n,)
        0.0 if a vector has length zero. Between 0 and 1 if no weight is negative.
    """
    weights: npt.NDArray[np.float64] = as_vector("idf", idf, np.float64)
    left, right = _validate_bags("a", a, weights.size), _validate_bags("b", b, weights.size)
    same_length("a", left.offsets.size - 1, "b", right.offsets.size - 1)
    out = np.empty(left.offsets.size - 1, np.float64)
    squares = read_only(weights * weights)
    _map_groups(partial(_counted_cosine, left, right, squares, out), out.size, threads)
    return out


def _validate_bags(name: str, column: Any, terms: int) -> _Bags:
    values = as_vector(f"{name}[0]", column[0], np.int32)
    counts = as_vector(f"{name}[1]", column[1], np.int64)
    same_length(f"{name}[0]", values.size, f"{name}[1]", counts.size)
    if values.size and (values.min() < 0 or values.max() >= terms):
        at = int(np.flatnonzero((values < 0) | (values >= terms))[0])
        raise IndexError(
            f"`{name}` holds the value {values[at]} at position {at}; expected places in `idf`, "
            f"0 to {terms - 1}"
        )
    return _Bags(values, counts, as_offsets(f"{name}[2]", column[2], values.size))


def _map_groups(work: Any, groups: int, threads: int | None) -> None:
    run_chunks(work, groups, chunk=_GROUPS_PER_CHUNK, threads=threads)


@kernel("out(int32[:]), int64[:], out(int64[:]), int64, int64", fastmath=False)
def _sort_groups(values, offsets, sizes, start, stop):  # type: ignore[no-untyped-def]
    """Sort each group in place, and count its distinct values."""
    stack = np.empty(STACK_SIZE, np.int64)
    for group in range(start, stop):
        first, after = offsets[group], offsets[group + 1]
        sort_ascending(values, first, after, stack)
        distinct = np.int64(after > first)
        for at in range(first + 1, after):
            distinct += np.int64(values[at] != values[at - 1])
        sizes[group] = distinct


@kernel("int32[:], int64[:], int64[:], out(int32[:]), out(int64[:]), int64, int64", fastmath=False)
def _count_groups(  # type: ignore[no-untyped-def]
    values, offsets, places, distinct, counts, start, stop
):
    """Write each group's distinct values, which are sorted, and their counts."""
    for group in range(start, stop):
        place = places[group] - 1
        for at in range(offsets[group], offsets[group + 1]):
            if at == offsets[group] or values[at] != values[at - 1]:
                place += 1
                distinct[place] = values[at]
                counts[place] = 0
            counts[place] += 1


@kernel(
    "_Bags(int32[:], int64[:], int64[:]), _Bags(int32[:], int64[:], int64[:]), float64[:], "
    "out(float64[:]), int64, int64",
    fastmath=False,
)
def _counted_cosine(left, right, squares, out, start, stop):  # type: ignore[no-untyped-def]
    """Write the cosines of rows ``start`` to ``stop``; ``squares`` are the squared weights."""
    a, a_counts, a_offsets = left
    b, b_counts, b_offsets = right
    for row in range(start, stop):
        i = a_offsets[row]
        j = b_offsets[row]
        norm_a = 0.0
        norm_b = 0.0
        dot = 0.0
        for at in range(i, a_offsets[row + 1]):
            norm_a += squares[a[at]] * np.float64(a_counts[at] * a_counts[at])
        for at in range(j, b_offsets[row + 1]):
            norm_b += squares[b[at]] * np.float64(b_counts[at] * b_counts[at])
        while i < a_offsets[row + 1] and j < b_offsets[row + 1]:
            if a[i] == b[j]:
                dot += squares[a[i]] * np.float64(a_counts[i] * b_counts[j])
                i += 1
                j += 1
            elif a[i] < b[j]:
                i += 1
            else:
                j += 1
        out[row] = 0.0 if norm_a == 0.0 or norm_b == 0.0 else dot / np.sqrt(norm_a * norm_b)
