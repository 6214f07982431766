"""Rows of strings by address: where they are, their code points, what two of them share."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fastscore_machine.bits import count_ones, leading_zeros, trailing_zeros
from fastscore_machine.compiling import always_inlined, inlined, kernel
from fastscore_machine.memory import load_byte, load_int32, load_word

if TYPE_CHECKING:
    from fastscore_machine.arrow import AddressedStrings

_INLINE_BYTES = 12
_LOW_BITS = np.uint64(0x0101010101010101)
_HIGH_BITS = np.uint64(0x8080808080808080)
_SURROGATES = 0xD800
_PAGE = 4096
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
MOST_ASTRAL = 64


def located_rows(
    column: "AddressedStrings", start: int, stop: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return address and length in bytes of each row from ``start`` to ``stop``."""
    addresses, lengths = np.empty(stop - start, np.int64), np.empty(stop - start, np.int64)
    if column.views:
        _rows_of_views(column.data, column.views, start, addresses, lengths)
    else:
        _rows_of_offsets(column.data, column.offsets, start, addresses, lengths)
    return addresses, lengths


@kernel("int64[:], int64[:], int64, out(int64[:]), out(int64[:])", fastmath=False)
def _rows_of_offsets(data, offsets, start, addresses, lengths):  # type: ignore[no-untyped-def]
    """Note address and length in bytes of rows from ``start`` of a column with offsets."""
    for row in range(addresses.size):
        first = offsets[start + row]
        addresses[row] = data[0] + first
        lengths[row] = offsets[start + row + 1] - first


@kernel("int64[:], int64, int64, out(int64[:]), out(int64[:])", fastmath=False)
def _rows_of_views(data, views, start, addresses, lengths):  # type: ignore[no-untyped-def]
    """Note address and length in bytes of rows from ``start`` of a column of string views."""
    for row in range(addresses.size):
        view = views + 16 * (start + row)
        length = load_int32(view, 0)
        lengths[row] = length
        addresses[row] = view + 4
        buffer = load_int32(view, 8)
        # the view of a null may name a buffer that is not there
        if length > _INLINE_BYTES and 0 <= buffer < data.size:
            addresses[row] = data[buffer] + load_int32(view, 12)


@inlined
def count_code_points(address, length):  # type: ignore[no-untyped-def]
    """Count a row's code points: its bytes less the continuation bytes."""
    count = length
    at = np.int64(0)
    while at + 8 <= length:
        word = load_word(address, at)
        count -= count_ones((word >> np.uint64(7)) & ~(word >> np.uint64(6)) & _LOW_BITS)
        at += 8
    while at < length:
        count -= np.int64((load_byte(address, at) & 0xC0) == 0x80)
        at += 1
    return count


@always_inlined
def _short_word(address, length):  # type: ignore[no-untyped-def]
    """Load fewer than eight bytes as a word, never from a page that may not be there."""
    if length == 0:
        return np.uint64(0)
    if (address & (_PAGE - 1)) <= _PAGE - 8:
        return load_word(address, 0) & ((np.uint64(1) << np.uint64(8 * length)) - np.uint64(1))
    word = np.uint64(0)
    for at in range(length):
        word |= np.uint64(load_byte(address, at)) << np.uint64(8 * at)
    return word


@always_inlined
def all_ascii(address, length):  # type: ignore[no-untyped-def]
    """Tell whether every byte of a row is below 128."""
    if length < 8:
        return (_short_word(address, length) & _HIGH_BITS) == 0
    at = np.int64(0)
    while at + 8 < length:
        if (load_word(address, at) & _HIGH_BITS) != 0:
            return False
        at += 8
    return (load_word(address, length - 8) & _HIGH_BITS) == 0


@always_inlined
def edge_words(address, length):  # type: ignore[no-untyped-def]
    """Return a word that a row's first and last eight bytes and its length determine."""
    if length < 8:
        return _short_word(address, length) ^ (np.uint64(length) << np.uint64(56))
    first = load_word(address, 0)
    last = load_word(address, length - 8)
    return (first * _MULTIPLIER) ^ (first >> np.uint64(29)) ^ last ^ np.uint64(length)


@always_inlined
def common_prefix(a, b, length):  # type: ignore[no-untyped-def]
    """Return how many leading bytes are equal, of ``length`` at most."""
    if length < 8:
        difference = _short_word(a, length) ^ _short_word(b, length)
        return length if difference == 0 else trailing_zeros(difference) >> 3
    at = np.int64(0)
    while at + 8 < length:
        difference = load_word(a, at) ^ load_word(b, at)
        if difference != 0:
            return at + (trailing_zeros(difference) >> 3)
        at += 8
    at = length - 8
    difference = load_word(a, at) ^ load_word(b, at)
    return length if difference == 0 else at + (trailing_zeros(difference) >> 3)


@always_inlined
def common_suffix(a_stop, b_stop, length):  # type: ignore[no-untyped-def]
    """Return how many trailing bytes are equal, of ``length`` at most."""
    if length < 8:
        difference = _short_word(a_stop - length, length) ^ _short_word(b_stop - length, length)
        if difference == 0:
            return length
        return length - 8 + (leading_zeros(difference) >> 3)
    at = np.int64(0)
    while at + 8 < length:
        difference = load_word(a_stop, -at - 8) ^ load_word(b_stop, -at - 8)
        if difference != 0:
            return at + (leading_zeros(difference) >> 3)
        at += 8
    difference = load_word(a_stop, -length) ^ load_word(b_stop, -length)
    return length if difference == 0 else length - 8 + (leading_zeros(difference) >> 3)


@inlined
def strip_affixes(a, a_length, b, b_length):  # type: ignore[no-untyped-def]
    """Cut the common prefix and suffix off two rows, never through a code point."""
    shorter = min(a_length, b_length)
    prefix = common_prefix(a, b, shorter)
    if prefix < shorter:
        while prefix > 0 and (load_byte(a, prefix) & 0xC0) == 0x80:
            prefix -= 1
    suffix = common_suffix(a + a_length, b + b_length, shorter - prefix)
    while suffix > 0 and (load_byte(a, a_length - suffix) & 0xC0) == 0x80:
        suffix -= 1
    return a + prefix, a_length - prefix - suffix, b + prefix, b_length - prefix - suffix


@inlined
def copy_bytes(address, length, out):  # type: ignore[no-untyped-def]
    """Copy a row's bytes to ``out``."""
    for at in range(length):
        out[at] = load_byte(address, at)


@inlined
def decode_halves(address, length, out, astral, known):  # type: ignore[no-untyped-def]
    """Write a row's symbols to ``out`` as 16-bit codes that are equal where code points are.

    A code point above 0xFFFF gets a surrogate, which no valid text holds: the place of the
    code point in ``astral``, which both rows of a pair share. Returns the number of such code
    points known so far, -1 when there are too many.
    """
    count = np.int64(0)
    at = address
    stop = address + length
    while at < stop:
        lead = load_byte(at, 0)
        if lead < 0x80:
            code = lead
            at += 1
        elif lead < 0xE0:
            code = ((lead & 0x1F) << 6) | (load_byte(at, 1) & 0x3F)
            at += 2
        elif lead < 0xF0:
            code = (
                ((lead & 0x0F) << 12) | ((load_byte(at, 1) & 0x3F) << 6) | (load_byte(at, 2) & 0x3F)
            )
            at += 3
        else:
            code = load_int32(at, 0)
            place = np.int64(0)
            while place < known and astral[place] != code:
                place += 1
            if place == known:
                if known == MOST_ASTRAL:
                    return np.int64(-1)
                astral[known] = code
                known += 1
            code = _SURROGATES + place
            at += 4
        out[count] = code
        count += 1
    return known
