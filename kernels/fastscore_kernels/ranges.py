"""Numbers for the distinct texts among ranges of a buffer, none of which is copied."""

from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrays import Longs
from fastscore_machine.compiling import always_inlined, kernel
from fastscore_machine.memory import address_of, load_byte, load_word, same_bytes
from fastscore_machine.validation import as_ranges, as_vector

_SMALLEST_TABLE = 1 << 10
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


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
    codes, firsts = number(flat, first, last)
    return codes, firsts


@always_inlined
def _last_word(data: int, size: int, start: int, end: int) -> Any:
    """Return up to eight bytes, the last ones of a range of ``size`` bytes of data, as a word."""
    length = end - start
    if length >= 8:
        return load_word(data, end - 8)
    if start + 8 <= size:
        return load_word(data, start) & ((np.uint64(1) << np.uint64(8 * length)) - np.uint64(1))
    word = np.uint64(0)
    for place in range(length):
        word |= np.uint64(load_byte(data, start + place)) << np.uint64(8 * place)
    return word


@always_inlined
def hashed(data: int, size: int, start: int, end: int) -> Any:
    """Hash a range of ``size`` bytes at an address."""
    value, at = np.uint64(end - start), start
    while at + 8 < end:
        value = (value ^ load_word(data, at)) * _MULTIPLIER
        value ^= value >> np.uint64(32)
        at += 8
    value = (value ^ _last_word(data, size, start, end)) * _MULTIPLIER
    value = (value ^ (value >> np.uint64(32))) * _MULTIPLIER
    return value ^ (value >> np.uint64(32))


@always_inlined
def range_place(
    data: int,
    start: int,
    end: int,
    value: Any,
    table: int,
    mask: int,
    starts: int,
    ends: int,
    hashes: int,
) -> Any:
    """Return where a range stands, or is to stand, in a table of the numbers of distinct ones.

    ``value`` is its hash; ``starts``, ``ends`` and ``hashes`` are those of each number, ``table``
    holds ``mask + 1`` numbers, -1 at free places: int64, given by address, which counts no
    references.
    """
    place = np.int64(value) & mask
    while True:
        other = np.int64(load_word(table, 8 * place))
        if other < 0:
            break
        first: Any = np.int64(load_word(starts, 8 * other))
        length: Any = np.int64(load_word(ends, 8 * other)) - first
        alike = load_word(hashes, 8 * other) == value and length == end - start
        if alike and same_bytes(data + first, data + start, length):
            break
        place = (place + 1) & mask
    return place


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


@kernel("uint8[:], int64[:], int64[:]", returns="int64[:], int64[:]", fastmath=False)
def number(buffer: Any, starts: Any, ends: Any) -> Any:
    """Give distinct ranges numbers by first appearance; find the first range of each."""
    data, size = address_of(buffer), buffer.size
    codes, firsts = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    begins, stops = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    hashes = np.empty(starts.size, np.uint64)
    known = address_of(begins), address_of(stops), address_of(hashes)
    table = np.full(_SMALLEST_TABLE, -1, np.int64)
    places, mask = address_of(table), table.size - 1
    count = 0
    for row in range(starts.size):
        start, end = starts[row], ends[row]
        value = hashed(data, size, start, end)
        place = range_place(data, start, end, value, places, mask, *known)
        code = table[place]
        if code < 0:
            table[place] = code = count
            firsts[count], begins[count], stops[count], hashes[count] = row, start, end, value
            count += 1
            if 2 * count > table.size:
                table = _doubled(table, hashes, count)
                places, mask = address_of(table), table.size - 1
        codes[row] = code
    return codes, firsts[:count].copy()
