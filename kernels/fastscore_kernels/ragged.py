"""Rows of varying length as flat arrays: grouping by owner, and taking ranges."""

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array
from fastscore_jit.compiling import kernel
from fastscore_jit.validation import as_ranges, as_rows, as_vector, read_only


def group_rows(owners: npt.ArrayLike, n_owners: int) -> tuple[Int64Array, Int64Array]:
    """Return the rows of each owner.

    Parameters
    ----------
    owners : int (n,)
        The owner of each row, from 0 to ``n_owners - 1``.
    n_owners
        The number of owners.

    Returns
    -------
    tuple of int64 arrays
        The rows by owner, in order within each, (n,); and the offsets of each owner's rows,
        (n_owners + 1,).
    """
    of_rows = as_rows("owners", owners, n_owners)
    order, offsets = _group(of_rows, n_owners)
    return order, offsets


def take_ranges(
    values: npt.ArrayLike, starts: npt.ArrayLike, sizes: npt.ArrayLike
) -> tuple[Int64Array, Int64Array]:
    """Concatenate ranges of values.

    Parameters
    ----------
    values : int (m,)
        The source.
    starts, sizes : int (n,)
        Range ``i`` is ``values[starts[i]:starts[i] + sizes[i]]``.

    Returns
    -------
    tuple of int64 arrays
        The values, and the offsets at which each range begins, (n + 1,).
    """
    flat, first = as_vector("values", values, np.int64), as_vector("starts", starts, np.int64)
    ends = first + as_vector("sizes", sizes, np.int64)
    as_ranges("starts", first, "ends", ends, flat.size)
    taken, offsets = _take(flat, first, read_only(ends))
    return taken, offsets


@kernel("int64[:], int64", returns="int64[:], int64[:]", fastmath=False)
def _group(owners, n_owners):  # type: ignore[no-untyped-def]
    """Sort rows by owner, by a counting sort."""
    offsets = np.zeros(n_owners + 1, np.int64)
    for row in range(owners.size):
        offsets[owners[row] + 1] += 1
    for owner in range(n_owners):
        offsets[owner + 1] += offsets[owner]
    order, places = np.empty(owners.size, np.int64), offsets.copy()
    for row in range(owners.size):
        order[places[owners[row]]] = row
        places[owners[row]] += 1
    return order, offsets


@kernel("int64[:], int64[:], int64[:]", returns="int64[:], int64[:]", fastmath=False)
def _take(values, starts, ends):  # type: ignore[no-untyped-def]
    """Return concatenated ranges of values, and the offsets (n + 1,) of each."""
    offsets = np.zeros(starts.size + 1, np.int64)
    for row in range(starts.size):
        offsets[row + 1] = offsets[row] + ends[row] - starts[row]
    taken = np.empty(offsets[-1], np.int64)
    for row in range(starts.size):
        shift = offsets[row] - starts[row]
        for at in range(starts[row], ends[row]):
            taken[at + shift] = values[at]
    return taken, offsets
