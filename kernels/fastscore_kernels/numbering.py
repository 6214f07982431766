"""Numbers of distinct values, by first appearance."""

from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array
from fastscore_jit.arrow import text_rows
from fastscore_jit.byte_blocks import prefetch_text
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import inlined
from fastscore_jit.memory import View, Views, load_short, load_word
from fastscore_jit.validation import as_ranges, as_vector, read_only


def number_hashes(hashes: npt.NDArray[np.uint64]) -> tuple[Int64Array, Int64Array]:
    """Assign numbers to distinct hashes by first appearance.

    Parameters
    ----------
    hashes
        uint64 (n,).

    Returns
    -------
    tuple of arrays
        Each row's number, int64 (n,); and the first row of each number, ascending.
    """
    if hashes.dtype != np.uint64 or hashes.ndim != 1:
        raise ValueError(
            f"hashes must be a vector of uint64, found {hashes.dtype} of shape {hashes.shape}"
        )
    codes, firsts = _number(read_only(np.ascontiguousarray(hashes)))
    return codes, firsts


def number_texts(texts: Any) -> tuple[Int64Array, Int64Array]:
    """Assign numbers to distinct texts by first appearance.

    Parameters
    ----------
    texts
        Strings (n,) as `fastscore_jit.arrow.string_column` takes them, or their rows. All nulls are
        equal.

    Returns
    -------
    tuple of arrays
        Each row's number, int64 (n,); and the first row of each number, ascending.
    """
    rows = text_rows("texts", texts, nulls=True)
    codes, firsts = _number_texts(rows.views)
    return codes, firsts


def number_ranges(
    data: npt.ArrayLike, starts: npt.ArrayLike, ends: npt.ArrayLike
) -> tuple[Int64Array, Int64Array]:
    """Assign numbers to ranges of distinct bytes by first appearance.

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
    beginnings = flat.ctypes.data + first
    codes, firsts = _number_texts(Views(read_only(beginnings), read_only(last - first)))
    return codes, firsts


@inlined
def _slot(value: Any, mask: Any) -> Any:
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(20)) & np.uint64(mask))


@kernel("uint64[:]", returns="int64[:], int64[:]", fastmath=False)
def _number(hashes: Any) -> Any:
    """Assign numbers to distinct hashes by first appearance; find the first row of each."""
    size = 16
    while size < 2 * hashes.size:
        size *= 2
    table = np.full(size, -1, np.int64)
    codes, firsts = np.empty(hashes.size, np.int64), np.empty(hashes.size, np.int64)
    count = 0
    for row in range(hashes.size):
        slot = _slot(hashes[row], size - 1)
        while table[slot] >= 0 and hashes[firsts[table[slot]]] != hashes[row]:
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = count
            firsts[count] = row
            count += 1
        codes[row] = table[slot]
    return codes, firsts[:count].copy()


_ROWS_AHEAD = 8
_CACHED_ADDRESSES = 1 << 14
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@inlined
def _mixed(mix: Any, word: Any) -> Any:
    mix = (mix ^ word) * _MULTIPLIER
    return mix ^ (mix >> np.uint64(29))


@inlined
def _hash(text: View) -> Any:
    """Hash a text; a null has a length of -1."""
    length = text.length
    mix = np.uint64(length)
    if length < 8:
        return _mixed(mix, load_short(text, 0, length))
    # overlapping words cover all bytes, without a loop of unpredictable length
    first, last = load_word(text, 0), load_word(text, length - 8)
    if length <= 16:
        return _mixed(_mixed(mix, first), last)
    if length <= 32:
        second, third = load_word(text, 8), load_word(text, length - 16)
        return _mixed(_mixed(mix, first) ^ third, last) ^ _mixed(~mix, second)
    # four independent chains, so multiplications overlap
    second, third, fourth = ~mix, mix << np.uint64(32), _MULTIPLIER
    at = 0
    while at + 32 <= length:
        mix = _mixed(mix, load_word(text, at))
        second = _mixed(second, load_word(text, at + 8))
        third = _mixed(third, load_word(text, at + 16))
        fourth = _mixed(fourth, load_word(text, at + 24))
        at += 32
    while at + 8 <= length:
        mix = _mixed(mix, load_word(text, at))
        at += 8
    return _mixed(_mixed(_mixed(_mixed(mix, second), third), fourth), last)


@inlined
def _is_equal(one: View, other: View) -> bool:
    """Return whether two texts of equal length are equal."""
    length = one.length
    if length < 8:
        return bool(load_short(one, 0, length) == load_short(other, 0, length))
    different = load_word(one, length - 8) ^ load_word(other, length - 8)
    for at in range(0, length - 8, 8):
        different |= load_word(one, at) ^ load_word(other, at)
    return bool(different == np.uint64(0))


@kernel("Views(int64[:], int64[:])", returns="int64[:], int64[:]", fastmath=False)
def _number_texts(texts: Views) -> Any:
    """Assign numbers to distinct texts by first appearance; find the first row of each."""
    addresses, lengths = texts
    n = lengths.size
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, np.int64)
    codes, firsts, hashes = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.uint64)
    # rows gathered from fewer rows have equal addresses, and are not read again
    last_address, last_code = np.full(_CACHED_ADDRESSES, -1), np.zeros(_CACHED_ADDRESSES, np.int64)
    count = 0
    for row in range(n):
        address, length = addresses[row], lengths[row]
        if row + _ROWS_AHEAD < n:
            prefetch_text(View(addresses[row + _ROWS_AHEAD], lengths[row + _ROWS_AHEAD]))
        place = _slot(address, _CACHED_ADDRESSES - 1)
        code = last_code[place]
        if last_address[place] == address and lengths[firsts[code]] == length:
            codes[row] = code
            continue
        text = View(address, length)
        value = _hash(text)
        slot = np.int64(value >> np.uint64(20)) & (size - 1)
        while True:
            code = table[slot]
            if code < 0:
                table[slot] = code = count
                firsts[count], hashes[count] = row, value
                count += 1
                break
            first = firsts[code]
            alike = hashes[code] == value and lengths[first] == length
            if alike and _is_equal(text, View(addresses[first], length)):
                break
            slot = (slot + 1) & (size - 1)
        codes[row] = code
        last_address[place], last_code[place] = address, code
    return codes, firsts[:count].copy()
