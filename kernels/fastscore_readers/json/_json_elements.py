"""Parting a JSON document into its elements, so that each is a line of JSON Lines.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import address_of, load_byte, store_byte

from fastscore_readers.block_scans import line_ends_within
from fastscore_readers.text_bytes import BACKSLASH, NEWLINE, QUOTE, RETURN, SPACE, TAB, plain_run

_COMMA, _COLON = 0x2C, 0x3A
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
LINE_END_IN_STRING = 0x1E
"""Stands for a line end within a string, which is a fault as any control character is."""


@inlined
def _skip_space(out: int, index: int, stop: int) -> int:
    """First position from ``index`` on that holds no white space; line ends become spaces."""
    while index < stop:
        byte = load_byte(out, index)
        if byte == NEWLINE or byte == RETURN:
            store_byte(out, index, SPACE)
        elif byte != SPACE and byte != TAB:
            break
        index += 1
    return index


@inlined
def _string_end(out: int, index: int, stop: int) -> int:
    """Position behind a string's closing quote, from behind its opening one."""
    while index < stop:
        index = plain_run(out, index, stop)
        if index >= stop:
            break
        byte = load_byte(out, index)
        if byte == QUOTE:
            return index + 1
        if byte == NEWLINE or byte == RETURN:
            store_byte(out, index, LINE_END_IN_STRING)
        # what an escape is made of is checked later: here only its quote matters
        index += 2 if byte == BACKSLASH and index + 1 < stop and _escapes(out, index + 1) else 1
    return stop


@inlined
def _escapes(out: int, index: int) -> bool:
    """Whether the byte behind a backslash would end the string or escape another backslash."""
    byte = load_byte(out, index)
    return bool(byte == QUOTE or byte == BACKSLASH)


@inlined
def _value_end(out: int, index: int, stop: int) -> int:
    """Position behind the value at ``index``, by its brackets and strings alone."""
    depth = 0
    while index < stop:
        byte = load_byte(out, index)
        if byte == QUOTE:
            index = _string_end(out, index + 1, stop)
            if depth == 0:
                return index
            continue
        if byte == _OPEN_OBJECT or byte == _OPEN_ARRAY:
            depth += 1
        elif byte == _CLOSE_OBJECT or byte == _CLOSE_ARRAY:
            if depth == 0:
                return index
            depth -= 1
            if depth == 0:
                return index + 1
        elif depth == 0 and (
            byte == _COMMA or byte == SPACE or byte == TAB or byte == NEWLINE or byte == RETURN
        ):
            return index
        elif byte == NEWLINE or byte == RETURN:
            store_byte(out, index, SPACE)
        index += 1
    return stop


@kernel("out(uint8[:]), bool", returns="int64", fastmath=False)
def part_elements(text: Any, whole_array: bool) -> int:
    """Make lines of a document's elements in place: a line end stands before each.

    Every other byte between elements becomes a space. Returns the position at which the document
    goes wrong between two elements, ``text.size`` when its array is not closed, or -1.
    """
    stop = text.size
    out = address_of(text)
    index = _skip_space(out, 0, stop)
    in_array = index < stop and load_byte(out, index) == _OPEN_ARRAY and not whole_array
    parted = True
    closed = False
    first = True
    if in_array:
        store_byte(out, index, SPACE)
        index += 1
    while True:
        index = _skip_space(out, index, stop)
        if index >= stop:
            return stop if in_array else -1
        byte = load_byte(out, index)
        if in_array and byte == _CLOSE_ARRAY and (first or not parted):
            store_byte(out, index, SPACE)
            in_array, closed, parted = False, True, False
            index += 1
            continue
        if in_array and byte == _COMMA and not parted:
            store_byte(out, index, SPACE)
            parted = True
            index += 1
            continue
        if closed or (in_array and not parted):
            return index
        if byte == _COMMA or byte == _COLON or byte == _CLOSE_ARRAY or byte == _CLOSE_OBJECT:
            return index
        # outside of an array, values that touch stay one line, which then is a fault
        if index > 0 and (load_byte(out, index - 1) == SPACE or load_byte(out, index - 1) == TAB):
            store_byte(out, index - 1, NEWLINE)
        index = _value_end(out, index, stop)
        first = False
        parted = not in_array


@kernel("uint8[:], int64[:], int64, out(int64[:])", fastmath=False)
def number_lines(data: Any, positions: Any, first: int, lines: Any) -> None:
    """Count up to the line of each of some ascending positions; position 0 is on ``first``."""
    base = address_of(data)
    before = 0
    number = first
    for index in range(positions.size):
        number += line_ends_within(base, before, positions[index])
        before = positions[index]
        lines[index] = number
