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

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.compiling import always_inlined, inlined, kernel
from fastscore_machine.validation import as_offsets, as_vector
from fastscore_machine.views import byte_at, item_at, put_byte, put_item

from fastscore_readers.json.places import find_places
from fastscore_readers.json.tokens import (
    BACKSLASH,
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COLON,
    COMMA,
    MINUS,
    NEWLINE,
    OPEN_ARRAY,
    OPEN_OBJECT,
    PLUS,
    POINT,
    QUOTE,
    RETURN,
    SPACE,
    TAB,
)

__all__ = ["WrittenLiterals", "literals_to_json"]

_MAX_DEPTH = 64
"""Python itself nests no deeper than some 200 brackets."""
_APOSTROPHE, _OPEN_TUPLE, _CLOSE_TUPLE, _ZERO = 0x27, 0x28, 0x29, 0x30
_NONE, _TRUE, _FALSE = b"None", b"True", b"False"
_NULL, _TRUE_WORD, _FALSE_WORD = b"null", b"true", b"false"


@dataclass(frozen=True, slots=True)
class WrittenLiterals:
    """Literals as JSON.

    Attributes
    ----------
    data : uint8 (bytes,)
        UTF-8.
    offsets : int64 (n + 1,)
        Literal ``i`` is ``data[offsets[i]:offsets[i + 1]]``; meaningless where it is not written.
    written : bool (n,)
        Which literals are.
    """

    data: Bytes
    offsets: Longs
    written: npt.NDArray[np.bool_]


def literals_to_json(data: npt.ArrayLike, offsets: npt.ArrayLike) -> WrittenLiterals:
    """Write literals as JSON.

    Parameters
    ----------
    data : uint8 (bytes,)
        UTF-8.
    offsets : int64 (n + 1,)
        Text ``i`` is ``data[offsets[i]:offsets[i + 1]]``.
    """
    flat = as_vector("data", data, np.uint8)
    bounds = as_offsets("offsets", offsets, flat.size)
    out = np.empty(2 * int(bounds[-1] - bounds[0]), np.uint8)
    places, written = np.zeros(bounds.size, np.int64), np.zeros(bounds.size - 1, np.bool_)
    _translate_all(flat, bounds, out, places, written)
    _, no_json = find_places(out[: places[-1]], places[:-1], places[1:], None, is_utf8=True)
    written[no_json] = False
    return WrittenLiterals(out[: places[-1]], places, written)


@inlined
def _translate_text(data: Any, at: Any, end: Any, out: Any, to: Any) -> tuple[Any, Any]:
    """Translate the text that opens at a position: positions after it in both, or -1."""
    quote = byte_at(data, at)
    put_byte(out, to, QUOTE)
    at, to = at + 1, to + 1
    while at < end:
        byte = byte_at(data, at)
        at += 1
        if byte == quote:
            put_byte(out, to, QUOTE)
            return at, to + 1
        if byte == BACKSLASH and at < end:
            byte = byte_at(data, at)
            at += 1
            if byte != _APOSTROPHE:
                put_byte(out, to, BACKSLASH)
                to += 1
            if byte == 0x78:  # x
                put_byte(out, to, 0x75)
                put_byte(out, to + 1, _ZERO)
                to += 2
                byte = _ZERO
            elif byte == 0x75:  # u
                # a half of a surrogate pair stays one in Python
                first = byte_at(data, at) if at + 1 < end else 0
                if first | 0x20 == 0x64 and byte_at(data, at + 1) > 0x37:
                    return -1, to
            elif not (
                byte == _APOSTROPHE
                or byte == QUOTE
                or byte == BACKSLASH
                or byte == 0x6E
                or byte == 0x72
                or byte == 0x74
            ):
                return -1, to
        elif byte == QUOTE:
            put_byte(out, to, BACKSLASH)
            to += 1
        put_byte(out, to, byte)
        to += 1
    return -1, to


@inlined
def _translate_word(
    data: Any, at: Any, end: Any, out: Any, to: Any, word: Any, meaning: Any
) -> bool:
    """Translate a word if it stands at a position."""
    if at + len(word) > end:
        return False
    for place in range(len(word)):
        if byte_at(data, at + place) != word[place]:
            return False
        put_byte(out, to + place, meaning[place])
    return True


@always_inlined
def _may_stand(byte: Any) -> Any:
    """Whether a byte between texts means what it does in JSON: white space, numbers, a colon."""
    return (
        byte == SPACE
        or byte == COLON
        or _ZERO <= byte <= 0x39
        or byte == MINUS
        or byte == POINT
        or byte == PLUS
        or byte | 0x20 == 0x65
        or byte == NEWLINE
        or byte == RETURN
        or byte == TAB
    )


@inlined
def _translate(data: Any, at: Any, end: Any, out: Any, to: Any, rooms: Any) -> Any:
    """Translate a literal: position after it in ``out``, or -1.

    ``rooms`` (2, _MAX_DEPTH) has the closing bracket of each level and how many commas it has.
    """
    depth, before, comma = 0, 0, to
    while at < end:
        byte = byte_at(data, at)
        is_blank = byte == SPACE or byte == NEWLINE or byte == RETURN or byte == TAB
        if byte == OPEN_OBJECT or byte == OPEN_ARRAY or byte == _OPEN_TUPLE:
            if depth == _MAX_DEPTH:
                return -1
            rooms[0, depth] = byte + (1 if byte == _OPEN_TUPLE else 2)
            rooms[1, depth] = 0
            depth += 1
            put_byte(out, to, OPEN_OBJECT if byte == OPEN_OBJECT else OPEN_ARRAY)
        elif depth == 0:
            # what JSON would take for more than one value is none
            if not is_blank:
                return -1
            put_byte(out, to, SPACE)
        elif byte == CLOSE_OBJECT or byte == CLOSE_ARRAY or byte == _CLOSE_TUPLE:
            depth -= 1
            opens = before == OPEN_OBJECT or before == OPEN_ARRAY or before == _OPEN_TUPLE
            # one value in parentheses is no tuple
            is_value = byte == _CLOSE_TUPLE and rooms[1, depth] == 0 and not opens
            if byte != rooms[0, depth] or is_value:
                return -1
            if before == COMMA:
                put_byte(out, comma, SPACE)  # JSON has no comma at the end
            put_byte(out, to, CLOSE_OBJECT if byte == CLOSE_OBJECT else CLOSE_ARRAY)
        elif byte == COMMA:
            if (
                before == COMMA
                or before == OPEN_OBJECT
                or before == OPEN_ARRAY
                or before == _OPEN_TUPLE
            ):
                return -1
            rooms[1, depth - 1] += 1
            comma = to
            put_byte(out, to, byte)
        elif byte == QUOTE or byte == _APOSTROPHE:
            at, to = _translate_text(data, at, end, out, to)
            if at < 0:
                return -1
            before = byte
            continue
        elif _translate_word(data, at, end, out, to, _NONE, _NULL) or _translate_word(
            data, at, end, out, to, _TRUE, _TRUE_WORD
        ):
            at, to = at + 3, to + 3
        elif _translate_word(data, at, end, out, to, _FALSE, _FALSE_WORD):
            at, to = at + 4, to + 4
        elif _may_stand(byte):
            put_byte(out, to, byte)
        else:
            return -1
        if not is_blank:
            before = byte
        at, to = at + 1, to + 1
    return to if before != 0 and depth == 0 else -1


@kernel("uint8[:], int64[:], out(uint8[:]), out(int64[:]), out(bool[:])", fastmath=False)
def _translate_all(data: Any, bounds: Any, out: Any, places: Any, written: Any) -> None:
    """Translate literals; ``out`` has room for twice their bytes, ``places`` for their offsets."""
    rooms = np.empty((2, _MAX_DEPTH), np.int64)
    for row in range(written.size):
        at = item_at(places, row)
        end = _translate(data, item_at(bounds, row), item_at(bounds, row + 1), out, at, rooms)
        written[row] = end >= 0
        put_item(places, row + 1, end if end >= 0 else at)
