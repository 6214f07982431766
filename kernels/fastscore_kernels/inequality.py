"""Inequality within groups: the Gini coefficient."""

from functools import partial

import numpy as np
import numpy.typing as npt
from fastscore_jit.compiling import kernel
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_offsets, as_vector

from fastscore_kernels._sorting import STACK_SIZE, insert_sorted, sort_ascending

_GROUPS_PER_CHUNK = 1 << 14
_INSERTION_LIMIT = 48


def gini_ragged(
    values: npt.ArrayLike,
    offsets: npt.ArrayLike,
    *,
    minimum_mean: float = 1e-12,
    threads: int | None = None,
) -> npt.NDArray[np.float64]:
    """Compute each group's Gini coefficient over ordered pairs.

    ``G = sum_i sum_j |x_i - x_j| / (2 n**2 mean)`` (Gini 1912), from the sorted values.

    Parameters
    ----------
    values : float64 (n,)
        Not negative.
    offsets : int64 (groups + 1,)
        Group ``g`` is ``values[offsets[g]:offsets[g + 1]]``.
    minimum_mean
        Groups whose mean does not exceed it have the coefficient 0.0.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    float64 (groups,)
        From 0 to ``(n - 1) / n``; 0.0 for one member. NaN for an empty group, and for a group with
        NaN or infinity.

    Raises
    ------
    ValueError
        A value is negative.
    """
    flat: npt.NDArray[np.float64] = as_vector("values", values, np.float64)
    bounds = as_offsets("offsets", offsets, flat.size)
    if flat.size and np.fmin.reduce(flat) < 0:
        at = int(np.flatnonzero(flat < 0)[0])
        raise ValueError(f"`values` holds {flat[at]} at position {at}; expected none below 0")
    out = np.empty(bounds.size - 1, np.float64)
    run_chunks(
        partial(_gini, flat, bounds, float(minimum_mean), out),
        out.size,
        chunk=_GROUPS_PER_CHUNK,
        threads=threads,
    )
    return out


@kernel("float64[:], int64[:], float64, out(float64[:]), int64, int64", fastmath=False)
def _gini(values, offsets, minimum_mean, out, start, stop):  # type: ignore[no-untyped-def]
    """Write the coefficients of groups ``start`` to ``stop``, defined in `gini_ragged`."""
    largest = np.int64(0)
    for group in range(start, stop):
        largest = max(largest, offsets[group + 1] - offsets[group])
    ordered, stack = np.empty(largest, np.float64), np.empty(STACK_SIZE, np.int64)
    for group in range(start, stop):
        first = offsets[group]
        size = offsets[group + 1] - first
        if size == 0:
            out[group] = np.nan
            continue
        total = 0.0
        for at in range(size):
            total += values[first + at]
        if not np.isfinite(total):
            out[group] = np.nan
            continue
        if size == 1 or total / size <= minimum_mean:
            out[group] = 0.0
            continue
        if size <= _INSERTION_LIMIT:
            for at in range(size):
                insert_sorted(ordered, 0, at, values[first + at])
        else:
            for at in range(size):
                ordered[at] = values[first + at]
            sort_ascending(ordered, 0, size, stack)
        weighted = 0.0
        for at in range(size):
            weighted += np.float64(2 * at + 1 - size) * ordered[at]
        out[group] = weighted / (size * total)
