"""Recoveries along a dialogue: the delay after a shift."""

from functools import partial

import numpy as np
import numpy.typing as npt
from fastscore_jit.compiling import kernel
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_offsets, as_rows, as_vector, read_only, same_length

_ROWS_PER_CHUNK = 1 << 16


def first_recovery(
    met: npt.ArrayLike,
    offsets: npt.ArrayLike,
    groups: npt.ArrayLike,
    starts: npt.ArrayLike,
    window: int | None,
    *,
    threads: int | None = None,
) -> npt.NDArray[np.int64]:
    """Find the number of turns from each shift to the first turn that meets a test, in a window.

    Parameters
    ----------
    met : bool (n,)
        Whether each turn meets the test.
    offsets : int64 (groups + 1,)
        Group (dialogue) ``g`` has the turns ``offsets[g]`` to ``offsets[g + 1] - 1``.
    groups : int64 (shifts,)
        The group of each shift.
    starts : int64 (shifts,)
        The turn of each shift within its group, from 0; it may be past the end.
    window
        Number of turns to search, including the shift's own; None for all to the group's end.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    int64 (shifts,)
        Delay in turns, 0 for the shift's own; -1 if no turn of the window meets the test.
    """
    flags = np.asarray(met)
    if flags.dtype != np.bool_ or flags.ndim != 1:
        raise TypeError(
            f"`met` has dtype {flags.dtype}, {flags.ndim} dimension(s); expected bool, 1"
        )
    tests = read_only(np.ascontiguousarray(flags))
    bounds = as_offsets("offsets", offsets, tests.size)
    owners = as_rows("groups", groups, bounds.size - 1)
    first: npt.NDArray[np.int64] = as_vector("starts", starts, np.int64)
    same_length("groups", owners.size, "starts", first.size)
    if first.size and first.min() < 0:
        at = int(np.flatnonzero(first < 0)[0])
        raise ValueError(f"`starts` holds {first[at]} at position {at}; expected turns from 0")
    if window is not None and window < 1:
        raise ValueError(f"`window` is {window}; expected None or at least 1 turn")
    out = np.empty(first.size, np.int64)
    reach = tests.size if window is None else min(int(window), tests.size)
    run_chunks(
        partial(_first_recovery, tests, bounds, owners, first, reach, out),
        out.size,
        chunk=_ROWS_PER_CHUNK,
        threads=threads,
    )
    return out


@kernel("bool[:], int64[:], int64[:], int64[:], int64, out(int64[:]), int64, int64", fastmath=False)
def _first_recovery(  # type: ignore[no-untyped-def]
    met, offsets, groups, starts, reach, out, start, stop
):
    """Write the delays of shifts ``start`` to ``stop``; ``reach`` turns are searched."""
    for shift in range(start, stop):
        end = offsets[groups[shift] + 1]
        first = offsets[groups[shift]] + min(starts[shift], met.size)
        out[shift] = -1
        for at in range(first, min(end, first + reach)):
            if met[at]:
                out[shift] = at - first
                break
