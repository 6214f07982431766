"""Turning located JSON values into column values: escapes, integers, floats.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
from fastscore_machine.byte_blocks import copy_until
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import address_of, load_byte, load_word, store_byte

from fastscore_readers.text_bytes import (
    BACKSLASH,
    MINUS,
    NINE,
    PLUS,
    POINT,
    ZERO,
    copy_plain,
    hex4,
)

EXACT, INEXACT, OVERFLOW = range(3)


_POWERS = np.array([10.0**exponent for exponent in range(23)])
_MAX_MANTISSA = 1 << 53


@inlined
def _simple_escape(kind: int) -> int:
    """Byte that a two-character escape stands for."""
    if kind == 0x62:
        return 0x08
    if kind == 0x66:
        return 0x0C
    if kind == 0x6E:
        return 0x0A
    if kind == 0x72:
        return 0x0D
    if kind == 0x74:
        return 0x09
    return kind


@inlined
def _encode(point: int, out: int, at: int) -> int:
    """Write a code point as UTF-8: position behind it."""
    if point < 0x80:
        store_byte(out, at, point)
        return at + 1
    if point < 0x800:
        store_byte(out, at, 0xC0 | point >> 6)
        store_byte(out, at + 1, 0x80 | point & 0x3F)
        return at + 2
    if point < 0x10000:
        store_byte(out, at, 0xE0 | point >> 12)
        store_byte(out, at + 1, 0x80 | point >> 6 & 0x3F)
        store_byte(out, at + 2, 0x80 | point & 0x3F)
        return at + 3
    store_byte(out, at, 0xF0 | point >> 18)
    store_byte(out, at + 1, 0x80 | point >> 12 & 0x3F)
    store_byte(out, at + 2, 0x80 | point >> 6 & 0x3F)
    store_byte(out, at + 3, 0x80 | point & 0x3F)
    return at + 4


@inlined
def unescape(data: int, start: int, end: int, out: int, at: int) -> int:
    """Write a valid JSON string's text to ``out`` from ``at`` on.

    Returns the position behind it, or -1 when the string holds half of a surrogate pair. There is
    room for the string as it is written.
    """
    index = start
    while index < end:
        copied = copy_until(data + index, out + at, end - index, BACKSLASH)
        copied += copy_plain(data + index + copied, out + at + copied, end - index - copied)
        index, at = index + copied, at + copied
        if index >= end:
            break
        byte = load_byte(data, index)
        if byte != BACKSLASH:
            store_byte(out, at, byte)
            at += 1
            index += 1
            continue
        kind = load_byte(data, index + 1)
        if kind != 0x75:
            store_byte(out, at, _simple_escape(kind))
            at += 1
            index += 2
            continue
        point = hex4(data, index + 2, end)
        index += 6
        if 0xDC00 <= point <= 0xDFFF:
            return -1
        if 0xD800 <= point <= 0xDBFF:
            if index + 6 > end or load_byte(data, index) != BACKSLASH:
                return -1
            low = hex4(data, index + 2, end) if load_byte(data, index + 1) == 0x75 else -1
            if low < 0xDC00 or low > 0xDFFF:
                return -1
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
            index += 6
        at = _encode(point, out, at)
    return at


@kernel(
    "uint8[:], int64[:], int64[:], out(uint8[:]), out(int64[:]), out(int64[:])",
    returns="int64",
    fastmath=False,
)
def unescape_strings(
    data: Any, starts: Any, ends: Any, out: Any, out_starts: Any, out_ends: Any
) -> int:
    """Unescape strings one behind another; an end of -1 marks half of a surrogate pair."""
    base, target = address_of(data), address_of(out)
    at = 0
    for row in range(starts.size):
        out_starts[row] = at
        end = unescape(base, starts[row], ends[row], target, at)
        out_ends[row] = end
        if end >= 0:
            at = end
    return at


@kernel("uint8[:], int64[:], int64[:], out(int64[:]), out(uint8[:])", fastmath=False)
def parse_integers(data: Any, starts: Any, ends: Any, values: Any, states: Any) -> None:
    """Parse ``-?[0-9]+`` to int64; anything else is INEXACT, what does not fit is OVERFLOW."""
    base = address_of(data)
    for row in range(starts.size):
        index, end = starts[row], ends[row]
        values[row] = 0
        states[row] = EXACT
        negative = index < end and load_byte(base, index) == MINUS
        if negative:
            index += 1
        if index >= end:
            states[row] = INEXACT
            continue
        # summed downwards, since the least int64 has no positive counterpart
        total = 0
        least = -(2**63)
        while index < end:
            byte = load_byte(base, index)
            if byte < ZERO or byte > NINE:
                states[row] = INEXACT
                break
            digit = byte - ZERO
            if total < -922337203685477580 or total * 10 < least + digit:
                states[row] = OVERFLOW
            else:
                total = total * 10 - digit
            index += 1
        if states[row] == EXACT:
            if not negative and total == least:
                states[row] = OVERFLOW
            else:
                values[row] = total if negative else -total


@kernel("uint8[:], int64[:], int64[:], out(float64[:]), out(uint8[:])", fastmath=False)
def parse_floats(data: Any, starts: Any, ends: Any, values: Any, states: Any) -> None:
    """Parse JSON numbers whose nearest double one exact operation gives; others are INEXACT."""
    base = address_of(data)
    for row in range(starts.size):
        index, end = starts[row], ends[row]
        values[row] = 0.0
        states[row] = INEXACT
        negative = load_byte(base, index) == MINUS
        if negative:
            index += 1
        mantissa = exponent = 0
        fraction = False
        digits = 0
        while index < end:
            byte = load_byte(base, index)
            if byte == POINT:
                fraction = True
            elif byte < ZERO or byte > NINE:
                break
            else:
                digits += 1
                if digits > 18:
                    break
                mantissa = mantissa * 10 + (byte - ZERO)
                exponent -= fraction
            index += 1
        if digits == 0 or digits > 18 or mantissa > _MAX_MANTISSA:
            continue
        if index < end:
            if load_byte(base, index) | 0x20 != 0x65 or end - index > 6:
                continue
            index += 1
            sign = 1
            sign_byte = load_byte(base, index)
            if sign_byte == MINUS or sign_byte == PLUS:
                sign = -1 if sign_byte == MINUS else 1
                index += 1
            power = 0
            while index < end:
                power = power * 10 + (load_byte(base, index) - ZERO)
                index += 1
            exponent += sign * power
        if exponent < -22 or exponent > 22:
            continue
        value = float(mantissa)
        value = value / _POWERS[-exponent] if exponent < 0 else value * _POWERS[exponent]
        values[row] = -value if negative else value
        states[row] = EXACT


@kernel("uint8[:], uint8[:], int64[:], int64[:], out(bool[:])", fastmath=False)
def mark_changes(data: Any, tags: Any, starts: Any, ends: Any, changed: Any) -> None:
    """Mark rows whose value has another type or other bytes than that of the row before."""
    base = address_of(data)
    for row in range(1, tags.size):
        length = ends[row] - starts[row]
        if tags[row] != tags[row - 1] or length != ends[row - 1] - starts[row - 1]:
            changed[row] = True
            continue
        here, before, index = starts[row], starts[row - 1], 0
        while index + 8 <= length and load_word(base, here + index) == load_word(
            base, before + index
        ):
            index += 8
        while index < length and load_byte(base, here + index) == load_byte(base, before + index):
            index += 1
        changed[row] = index < length
