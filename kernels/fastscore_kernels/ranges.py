"""Numbers for the distinct texts among ranges of a buffer, none of which is copied."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_kernels._jit import always_inlined, first_use, kernel
from fastscore_kernels._load import load8
from fastscore_kernels._validate import as_ranges, as_vector, read_only

_SMALLEST_TABLE = 1 << 10
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Longs = npt.NDArray[np.int64]


def number_ranges(
    data: npt.ArrayLike, starts: npt.ArrayLike, ends: npt.ArrayLike
) -> tuple[Longs, Longs]:
    """Give ranges with distinct bytes numbers by first appearance.

    Parameters
    ----------
    data : uint8 (bytes,)
        The buffer.
    starts, ends : int64 (n,)
        Range ``i`` is ``data[starts[i]:ends[i]]``.

    Returns
    -------
    tuple of int64 arrays
        The number of each range, (n,); and the first range of each number, ascending.
    """
    flat = as_vector("data", data, np.uint8)
    first, last = as_ranges("starts", starts, "ends", ends, flat.size)
    compile_kernels()
    codes, firsts = number(flat, first, last)
    return codes, firsts


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    none = read_only(np.zeros(0, np.int64))
    number(read_only(np.zeros(0, np.uint8)), none, none)


@always_inlined
def _hashed(data: Any, start: int, end: int) -> Any:
    value, at = np.uint64(end - start), start
    while at + 8 <= end:
        value = (value ^ load8(data, at)) * _MULTIPLIER
        value ^= value >> np.uint64(32)
        at += 8
    rest = np.uint64(0)
    while at < end:
        rest = (rest << np.uint64(8)) | np.uint64(data[at])
        at += 1
    value = (value ^ rest) * _MULTIPLIER
    return value ^ (value >> np.uint64(32))


@always_inlined
def _equal(data: Any, a: int, b: int, size: int) -> bool:
    at = 0
    while at + 8 <= size:
        if load8(data, a + at) != load8(data, b + at):
            return False
        at += 8
    while at < size:
        if data[a + at] != data[b + at]:
            return False
        at += 1
    return True


@always_inlined
def _doubled(table: Any, hashes: Any, count: int) -> Any:
    """Place what is known in a table of twice the size."""
    larger = np.full(2 * table.size, -1, np.int64)
    mask = larger.size - 1
    for number in range(count):
        slot = np.int64(hashes[number]) & mask
        while larger[slot] >= 0:
            slot = (slot + 1) & mask
        larger[slot] = number
    return larger


@kernel(fastmath=False)
def number(data: Any, starts: Any, ends: Any) -> Any:
    """Give distinct ranges numbers by first appearance; find the first range of each."""
    table = np.full(_SMALLEST_TABLE, -1, np.int64)
    codes, firsts = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    hashes = np.empty(starts.size, np.uint64)
    count = 0
    for row in range(starts.size):
        size = ends[row] - starts[row]
        hashed = _hashed(data, starts[row], ends[row])
        mask = table.size - 1
        slot = np.int64(hashed) & mask
        while table[slot] >= 0:
            number = table[slot]
            other = firsts[number]
            if (
                hashes[number] == hashed
                and ends[other] - starts[other] == size
                and _equal(data, starts[other], starts[row], size)
            ):
                break
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            firsts[count], hashes[count] = row, hashed
            count += 1
            codes[row] = count - 1
            if 2 * count > table.size:
                table = _doubled(table, hashes, count)
        else:
            codes[row] = table[slot]
    return codes, firsts[:count].copy()
