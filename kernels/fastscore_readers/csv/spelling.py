"""What cells of CSV spell: booleans and numbers.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.compiling import always_inlined, inlined, kernel
from fastscore_machine.validation import read_only
from fastscore_machine.views import byte_at, item_at, put_byte, put_item

from fastscore_readers.json.tokens import (
    FALSE,
    FLOAT,
    INTEGER,
    MINUS,
    PLUS,
    POINT,
    SPACE,
    STRING,
    TAB,
    TRUE,
)

_TRUE_WORD, _FALSE_WORD, _NAN_WORD, _INF_WORD, _INFINITY_WORD = (
    int.from_bytes(word, "little") for word in (b"true", b"false", b"nan", b"inf", b"infinity")
)


def spelled(data: Bytes, tags: Bytes, starts: Longs, ends: Longs) -> tuple[Bytes, Longs, Longs]:
    """Tell which cells spell a boolean or a number.

    Returns
    -------
    tuple of arrays
        Tags and ranges as given, but where a cell without quotes inside it holds, within spaces
        and tabs, ``true`` or ``false`` in any case, a decimal integer, a JSON number, ``nan``,
        ``inf`` or ``infinity`` in any case: that value's tag, and the bytes that spell it.
    """
    tags, starts, ends = tags.copy(), starts.copy(), ends.copy()
    _spell(read_only(data), starts, ends, tags)
    return tags, starts, ends


@inlined
def _spells(data: Any, start: Any, end: Any, word: Any, length: Any) -> bool:
    """Whether the bytes are ``word`` (lower case, little-endian) in any case."""
    if end - start != length:
        return False
    for place in range(length):
        if byte_at(data, start + place) | 0x20 != (word >> (8 * place)) & 0xFF:
            return False
    return True


@always_inlined
def _digits_end(data: Any, at: Any, end: Any) -> Any:
    while at < end and 0x30 <= byte_at(data, at) <= 0x39:
        at += 1
    return at


@inlined
def _kind_of_number(data: Any, start: Any, end: Any) -> Any:
    """Kind of the number that some bytes are, a string where they are none; zeros may lead."""
    at = _digits_end(data, start, end)
    if at == start or at == end:
        return INTEGER if at > start else STRING
    # but not in JSON
    if byte_at(data, start) == 0x30 and at > start + 1:
        return STRING
    if byte_at(data, at) == POINT:
        digits = at + 1
        at = _digits_end(data, digits, end)
        if at == digits:
            return STRING
    if at < end and byte_at(data, at) | 0x20 == 0x65:
        at += 1
        if at < end and (byte_at(data, at) == PLUS or byte_at(data, at) == MINUS):
            at += 1
        digits = at
        at = _digits_end(data, digits, end)
        if at == digits:
            return STRING
    return FLOAT if at == end else STRING


@always_inlined
def _is_blank(byte: Any) -> Any:
    return byte == SPACE or byte == TAB


@kernel("uint8[:], out(int64[:]), out(int64[:]), out(uint8[:])", fastmath=False, allocates=False)
def _spell(data: Any, starts: Any, ends: Any, tags: Any) -> None:
    for row in range(tags.size):
        start, end = item_at(starts, row), item_at(ends, row)
        if byte_at(tags, row) != STRING or start == end:
            continue
        while start < end and _is_blank(byte_at(data, start)):
            start += 1
        while start < end and _is_blank(byte_at(data, end - 1)):
            end -= 1
        if start == end:
            continue
        sign = byte_at(data, start)
        digits = start + (sign == MINUS or sign == PLUS)
        if _spells(data, start, end, _TRUE_WORD, 4):
            tag = TRUE
        elif _spells(data, start, end, _FALSE_WORD, 5):
            tag = FALSE
        elif (
            _spells(data, digits, end, _NAN_WORD, 3)
            or _spells(data, digits, end, _INF_WORD, 3)
            or _spells(data, digits, end, _INFINITY_WORD, 8)
        ):
            tag = FLOAT
        else:
            tag = _kind_of_number(data, digits, end)
        if tag != STRING:
            put_byte(tags, row, tag)
            put_item(starts, row, digits if sign == PLUS else start)
            put_item(ends, row, end)
