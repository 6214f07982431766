"""Reductions over consecutive groups of rows."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.compiling import kernel
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_offsets, as_vector

_GROUPS_PER_CHUNK = 1 << 16
_HALF, _LOW_HALF = np.uint64(32), np.uint64((1 << 32) - 1)
_DOUBLED_UPPER, _DOUBLED_LOWER = np.uint64(31), np.uint64(33)


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


class Moments(NamedTuple):
    """The moments of the numbers of each group; sums are 128-bit, their upper halves first."""

    counts: npt.NDArray[np.int64]  # (groups,)
    sums: npt.NDArray[np.uint64]  # (2, groups)
    squares: npt.NDArray[np.uint64]  # (2, groups)
    ends: npt.NDArray[np.float64]  # (2, groups), the minima and the maxima


def segment_moments(values: npt.ArrayLike, offsets: npt.ArrayLike, bits: int) -> Moments:
    """Count the numbers of each group, and sum them and their squares exactly.

    Parameters
    ----------
    values : float64 (n,)
        Rounded to multiples of 2^-bits, half to even. Magnitudes reach 2^62 of them. NaN is left
        out.
    offsets : int64 (groups + 1,)
        Group ``g`` is ``values[offsets[g]:offsets[g + 1]]``.
    bits
        Sums are in multiples of 2^-bits, sums of squares in multiples of 4^-bits. So few that no
        sum reaches 2^127 of its multiples, which is not looked at.

    Returns
    -------
    Moments
        The ends of a group without a number are NaN.
    """
    flat = as_vector("values", values, np.float64)
    bounds = as_offsets("offsets", offsets, flat.size)
    n = bounds.size - 1
    sums, squares = np.empty((2, 2, n), np.uint64)
    found = Moments(np.empty(n, np.int64), sums, squares, np.empty((2, n)))
    _moments(flat, bounds, 2.0**bits, found)
    return found


@kernel(
    "float64[:], int64[:], float64, "
    "Moments(out(int64[:]), out(uint64[:, :]), out(uint64[:, :]), out(float64[:, :]))",
    fastmath=False,
)
def _moments(values, offsets, factor, found):  # type: ignore[no-untyped-def]
    """Write the moments of each group."""
    for group in range(offsets.size - 1):
        count = 0
        minimum = maximum = np.nan
        high = low = squares_high = squares_low = np.uint64(0)
        for row in range(offsets[group], offsets[group + 1]):
            value = values[row]
            if value != value:
                continue
            minimum = value if count == 0 else min(minimum, value)
            maximum = value if count == 0 else max(maximum, value)
            count += 1
            whole = np.int64(np.rint(value * factor))
            low += np.uint64(whole)
            high += np.uint64(whole >> 63) + np.uint64(low < np.uint64(whole))
            size = np.uint64(abs(whole))
            upper, lower = size >> _HALF, size & _LOW_HALF
            # twice the product of both halves lies across the words
            across = upper * lower
            square = lower * lower + (across << _DOUBLED_LOWER)
            carry = np.uint64(square < (across << _DOUBLED_LOWER))
            squares_low += square
            squares_high += upper * upper + (across >> _DOUBLED_UPPER) + carry
            squares_high += np.uint64(squares_low < square)
        found.counts[group] = count
        found.sums[0, group], found.sums[1, group] = high, low
        found.squares[0, group], found.squares[1, group] = squares_high, squares_low
        found.ends[0, group], found.ends[1, group] = minimum, maximum
