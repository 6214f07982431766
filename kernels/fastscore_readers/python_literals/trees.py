"""Literals of Python as JSON, as far as JSON has words for them.

A list, a tuple or a dictionary of texts, numbers, ``True``, ``False``, ``None`` and such, with keys
that are texts, is written as JSON; what ``json.loads`` makes of it equals the literal, tuples being
lists. Everything else is left to Python, and so are forms that hardly anything writes: texts with
prefixes, in three quotes, in several parts, or with rare escapes, underscores in numbers, signs
before brackets, comments, and more than 64 levels. A literal is translated byte by byte, and what
of it JSON would not read is found by reading it as JSON.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.validation import as_offsets, as_vector
from fastscore_machine.views import byte_at, item_at, put_byte, put_item

from fastscore_readers.json.places import find_places
from fastscore_readers.json.tokens import BACKSLASH, COMMA, QUOTE, SPACE

__all__ = ["literals_to_json"]

_MAX_DEPTH = 64
"""Python itself nests no deeper than some 200 brackets."""
_APOSTROPHE, _CLOSE_TUPLE, _NONE, _X, _U = b"')Nxu"
_AFTER_N = np.array([list(b"one"), list(b"ull")], np.uint8)
"""What follows the first letters of None and of null."""


def _table(python: bytes, json: bytes) -> Bytes:
    """Make a table of what bytes are written as; 0 is left to Python."""
    table = np.zeros(256, np.uint8)
    table[list(python)] = list(json)
    return table


# a word's letters are written one by one: what makes no word then is no JSON either
_BETWEEN_TEXTS = _table(
    b" \t\n\r0123456789-+.eE{}[]():,'\"TFNrueals", b' \t\n\r0123456789-+.eE{}[][]:,""tfnrueals'
)
_AFTER_BACKSLASH = _table(b"\"'\\nrtxu", b"\"'\\nrtuu")
_CLOSED_BY, _OPENED_BY = _table(b"[{(", b"]})"), _table(b"]})", b"[{(")


def literals_to_json(
    data: npt.ArrayLike, offsets: npt.ArrayLike
) -> tuple[Bytes, Longs, npt.NDArray[np.bool_]]:
    """Write literals as JSON.

    Parameters
    ----------
    data : uint8 (bytes,)
        UTF-8.
    offsets : int64 (n + 1,)
        Text ``i`` is ``data[offsets[i]:offsets[i + 1]]``.

    Returns
    -------
    tuple of arrays
        JSON and its offsets, as they are given; and which literals are written, bool (n,).
    """
    flat = as_vector("data", data, np.uint8)
    bounds = as_offsets("offsets", offsets, flat.size)
    out = np.empty(2 * int(bounds[-1] - bounds[0]), np.uint8)
    places, written = np.zeros(bounds.size, np.int64), np.zeros(bounds.size - 1, np.bool_)
    _translate_all(flat, bounds, out, places, written)
    _, no_json = find_places(out[: places[-1]], places[:-1], places[1:], None, is_utf8=True)
    written[no_json] = False
    return out[: places[-1]], places, written


@inlined
def _translate_text(data: Any, at: Any, end: Any, out: Any, to: Any) -> tuple[Any, Any]:
    """Translate what follows the quote before a position: positions after both texts, or -1."""
    quote = byte_at(data, at - 1)
    while at < end:
        byte = byte_at(data, at)
        at += 1
        if byte == quote:
            put_byte(out, to, QUOTE)
            return at, to + 1
        if byte == BACKSLASH and at < end:
            escape = byte_at(data, at)
            at += 1
            byte = _AFTER_BACKSLASH[escape]
            # a lone surrogate stays one in Python
            is_half = escape == _U and at + 1 < end and byte_at(data, at) | 0x20 == 0x64
            if byte == 0 or (is_half and byte_at(data, at + 1) > 0x37):
                return -1, to
            if byte != _APOSTROPHE:
                put_byte(out, to, BACKSLASH)
                to += 1
            if escape == _X:
                put_byte(out, to, _U)
                put_byte(out, to + 1, 0x30)
                to += 2
                byte = 0x30
        elif byte == QUOTE:
            put_byte(out, to, BACKSLASH)
            to += 1
        put_byte(out, to, byte)
        to += 1
    return -1, to


@inlined
def _translate(data: Any, at: Any, end: Any, out: Any, to: Any, levels: Any) -> Any:
    """Translate a literal: position after it in ``out``, or -1.

    ``levels`` (2, _MAX_DEPTH) has the closing bracket of each level and how many commas it has.
    """
    depth, before, comma = 0, 0, to
    while at < end:
        byte = byte_at(data, at)
        written = _BETWEEN_TEXTS[byte]
        at += 1
        if _CLOSED_BY[byte] != 0:
            if depth == _MAX_DEPTH:
                return -1
            levels[0, depth] = _CLOSED_BY[byte]
            levels[1, depth] = 0
            depth += 1
        elif written == 0 or (depth == 0 and byte > SPACE):
            # outside of brackets JSON would take some things for more than Python does
            return -1
        elif _OPENED_BY[byte] != 0:
            depth -= 1
            # one value in parentheses is no tuple
            is_value = byte == _CLOSE_TUPLE and levels[1, depth] == 0 and _CLOSED_BY[before] == 0
            if byte != levels[0, depth] or is_value:
                return -1
            if before == COMMA:
                put_byte(out, comma, SPACE)  # JSON has no comma at the end
        elif byte == COMMA:
            if _CLOSED_BY[before] != 0:
                return -1
            levels[1, depth - 1] += 1
            comma = to
        put_byte(out, to, written)
        to += 1
        if byte == QUOTE or byte == _APOSTROPHE:
            at, to = _translate_text(data, at, end, out, to)
            if at < 0:
                return -1
        elif byte == _NONE:
            for letter in range(3):
                if at == end or byte_at(data, at) != _AFTER_N[0, letter]:
                    return -1
                put_byte(out, to, _AFTER_N[1, letter])
                at, to = at + 1, to + 1
        before = byte if byte > SPACE else before
    return to if before != 0 and depth == 0 else -1


@kernel("uint8[:], int64[:], out(uint8[:]), out(int64[:]), out(bool[:])", fastmath=False)
def _translate_all(data: Any, bounds: Any, out: Any, places: Any, written: Any) -> None:
    """Translate literals; ``out`` has room for twice their bytes, ``places`` for their offsets."""
    levels = np.empty((2, _MAX_DEPTH), np.int64)
    for row in range(written.size):
        at = item_at(places, row)
        end = _translate(data, item_at(bounds, row), item_at(bounds, row + 1), out, at, levels)
        written[row] = end >= 0
        put_item(places, row + 1, end if end >= 0 else at)
