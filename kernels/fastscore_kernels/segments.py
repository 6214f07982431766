"""Reductions over consecutive groups of rows."""

import numpy as np
import numpy.typing as npt
from fastscore_jit.compiling import kernel
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_offsets, as_vector

_GROUPS_PER_CHUNK = 1 << 16


def segment_first_argmax(
    values: npt.ArrayLike, offsets: npt.ArrayLike, *, threads: int | None = None
) -> npt.NDArray[np.int64]:
    """Find the first maximum of each group.

    Parameters
    ----------
    values : float64 (n,)
        float32 and integers that a double represents exactly are accepted.
    offsets : int64 (groups + 1,)
        Group ``g`` is ``values[offsets[g]:offsets[g + 1]]``.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    int64 (groups,)
        Position within the group; -1 if the group is empty or all NaN. NaN is never a maximum, and
        never hides a number.
    """
    flat = as_vector("values", values, np.float64)
    bounds = as_offsets("offsets", offsets, flat.size)
    out = np.empty(bounds.size - 1, np.int64)
    run_chunks(
        lambda start, stop: _first_argmax(flat, bounds, start, stop, out),
        out.size,
        chunk=_GROUPS_PER_CHUNK,
        threads=threads,
    )
    return out


@kernel("float64[:], int64[:], int64, int64, out(int64[:])", fastmath=False)
def _first_argmax(values, offsets, start, stop, out):  # type: ignore[no-untyped-def]
    """Write the position of the first maximum of groups ``start`` to ``stop``; -1 for none."""
    for group in range(start, stop):
        best = np.int64(-1)
        greatest = -np.inf
        for row in range(offsets[group], offsets[group + 1]):
            value = values[row]
            if value > greatest or (best < 0 and value == greatest):
                greatest = value
                best = row - offsets[group]
        out[group] = best
