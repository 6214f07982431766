"""Writing Python literals as JSON, byte by byte.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import address_of, load_byte, store_byte

from fastscore_readers.text_bytes import (
    BACKSLASH,
    MINUS,
    NINE,
    QUOTE,
    SPACE,
    ZERO,
    first_word,
    hex4,
    hex_value,
    scan_number,
    skip_space,
)

MAX_DEPTH = 64
"""Python itself nests no deeper than some 200 brackets."""

_APOSTROPHE, _COMMA, _COLON = 0x27, 0x2C, 0x3A
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
_OPEN_TUPLE, _CLOSE_TUPLE = 0x28, 0x29
_SMALL_N, _SMALL_R, _SMALL_T, _SMALL_U, _SMALL_X = 0x6E, 0x72, 0x74, 0x75, 0x78
_NONE, _TRUE, _FALSE = (
    np.uint64(int.from_bytes(word, "little")) for word in (b"None", b"True", b"False")
)


@inlined
def _text(data: int, index: int, stop: int, out: int, at: int) -> tuple[int, int]:
    """Write the string at ``index``: positions behind it in both, or -1."""
    quote = load_byte(data, index)
    store_byte(out, at, QUOTE)
    at += 1
    index += 1
    while index < stop:
        byte = load_byte(data, index)
        if byte == quote:
            store_byte(out, at, QUOTE)
            return index + 1, at + 1
        if byte < SPACE:
            return -1, at
        if byte == QUOTE:
            store_byte(out, at, BACKSLASH)
            at += 1
        if byte != BACKSLASH:
            store_byte(out, at, byte)
            at += 1
            index += 1
            continue
        kind = load_byte(data, index + 1) if index + 1 < stop else 0
        if kind == _APOSTROPHE:
            store_byte(out, at, kind)
            at += 1
            index += 2
        elif (
            kind == QUOTE
            or kind == BACKSLASH
            or kind == _SMALL_N
            or kind == _SMALL_R
            or kind == _SMALL_T
        ):
            store_byte(out, at, BACKSLASH)
            store_byte(out, at + 1, kind)
            at += 2
            index += 2
        elif kind == _SMALL_U:
            point = hex4(data, index + 2, stop)
            # a half of a surrogate pair stays one in Python
            if point < 0 or 0xD800 <= point <= 0xDFFF:
                return -1, at
            for place in range(6):
                store_byte(out, at + place, load_byte(data, index + place))
            at += 6
            index += 6
        elif kind == _SMALL_X:
            if (
                index + 4 > stop
                or min(hex_value(load_byte(data, index + 2)), hex_value(load_byte(data, index + 3)))
                < 0
            ):
                return -1, at
            store_byte(out, at, BACKSLASH)
            store_byte(out, at + 1, _SMALL_U)
            store_byte(out, at + 2, ZERO)
            store_byte(out, at + 3, ZERO)
            store_byte(out, at + 4, load_byte(data, index + 2))
            store_byte(out, at + 5, load_byte(data, index + 3))
            at += 6
            index += 4
        else:
            return -1, at
    return -1, at


@inlined
def _word(data: int, index: int, stop: int, out: int, at: int) -> tuple[int, int]:
    """Write the name or number at ``index``: positions behind it in both, or -1."""
    byte = load_byte(data, index)
    begin = index
    if byte == MINUS or ZERO <= byte <= NINE:
        index, _ = scan_number(data, index, stop)
        if index < 0:
            return -1, at
        for place in range(begin, index):
            store_byte(out, at, load_byte(data, place))
            at += 1
        return index, at
    length = 5 if byte == 0x46 else 4
    if index + length > stop:
        return -1, at
    word = first_word(data, index, length, stop)
    if word == _NONE:
        letters = 0x6C6C756E
    elif word == _TRUE:
        letters = 0x65757274
    elif word == _FALSE:
        letters = 0x65736C6166
    else:
        return -1, at
    for place in range(length):
        store_byte(out, at + place, letters >> 8 * place & 0xFF)
    return index + length, at + length


@inlined
def _write(data: int, index: int, stop: int, out: int, at: int, closings: Any, counts: Any) -> int:
    """Write a container as JSON to ``out`` from ``at`` on: position behind it there, or -1.

    ``closings`` and ``counts`` (MAX_DEPTH,) have room for the brackets that are open, and for how
    many values have ended in each.
    """
    depth = 0
    expects_key = may_close = False
    while True:
        # here a value or a key starts, or the innermost bracket closes
        index = skip_space(data, index, stop)
        if index >= stop:
            return -1
        byte = load_byte(data, index)
        closes = may_close and byte == closings[depth - 1]
        if closes:
            at -= counts[depth - 1] > 0  # JSON has no comma at the end
        elif byte == QUOTE or byte == _APOSTROPHE:
            index, at = _text(data, index, stop, out, at)
            if index < 0:
                return -1
            if expects_key:
                index = skip_space(data, index, stop)
                if index >= stop or load_byte(data, index) != _COLON:
                    return -1
                store_byte(out, at, _COLON)
                at += 1
                index += 1
                expects_key = may_close = False
                continue
        elif expects_key:
            return -1
        elif byte == _OPEN_OBJECT or byte == _OPEN_ARRAY or byte == _OPEN_TUPLE:
            if depth == MAX_DEPTH:
                return -1
            store_byte(out, at, _OPEN_OBJECT if byte == _OPEN_OBJECT else _OPEN_ARRAY)
            at += 1
            index += 1
            closings[depth] = byte + 1 if byte == _OPEN_TUPLE else byte + 2
            counts[depth] = 0
            depth += 1
            expects_key, may_close = byte == _OPEN_OBJECT, True
            continue
        else:
            index, at = _word(data, index, stop, out, at)
            if index < 0:
                return -1
        while True:
            # here a value has ended, or closes says that one does
            if not closes:
                if depth == 0:
                    return at if skip_space(data, index, stop) >= stop else -1
                counts[depth - 1] += 1
                index = skip_space(data, index, stop)
                if index >= stop:
                    return -1
                byte = load_byte(data, index)
                if byte == _COMMA:
                    store_byte(out, at, _COMMA)
                    at += 1
                    index += 1
                    expects_key, may_close = closings[depth - 1] == _CLOSE_OBJECT, True
                    break
                # one value in parentheses is no tuple
                if byte != closings[depth - 1] or (byte == _CLOSE_TUPLE and counts[depth - 1] == 1):
                    return -1
            store_byte(out, at, _CLOSE_OBJECT if byte == _CLOSE_OBJECT else _CLOSE_ARRAY)
            at += 1
            index += 1
            depth -= 1
            closes = False


@kernel("uint8[:], int64[:], int64[:], out(uint8[:]), out(int64[:]), out(bool[:])", fastmath=False)
def write_json(data: Any, starts: Any, ends: Any, out: Any, offsets: Any, written: Any) -> None:
    """Write each literal as JSON; one that is none of ours has no bytes and is not ``written``.

    ``out`` has room for twice the bytes of all, and ``offsets`` (n + 1,) takes their places.
    """
    base, target = address_of(data), address_of(out)
    closings, counts = np.empty(MAX_DEPTH, np.int64), np.empty(MAX_DEPTH, np.int64)
    for row in range(starts.size):
        index = skip_space(base, starts[row], ends[row])
        at, end = offsets[row], -1
        if index < ends[row]:
            byte = load_byte(base, index)
            if byte == _OPEN_OBJECT or byte == _OPEN_ARRAY or byte == _OPEN_TUPLE:
                end = _write(base, index, ends[row], target, at, closings, counts)
        written[row] = end >= 0
        offsets[row + 1] = end if end >= 0 else at
