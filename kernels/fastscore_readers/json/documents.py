"""JSON documents as JSON Lines: the elements of an array, each on a line of its own.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_machine.bits import trailing_zeros
from fastscore_machine.byte_sets import byte_marks
from fastscore_machine.compiling import always_inlined, inlined, kernel
from fastscore_machine.views import BLOCK, block_at, byte_at, put_byte

from fastscore_readers.json.line_ends import line_starts
from fastscore_readers.json.tokens import (
    BACKSLASH,
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COLON,
    COMMA,
    NEWLINE,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    RETURN,
    SPACE,
    TAB,
    ends_line,
)

__all__ = ["LINE_END_IN_STRING", "JsonElements", "elements"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

LINE_END_IN_STRING = 0x1E
"""Stands for a line end within a string, which is a fault as any control character is."""
_BETWEEN = b" \t\n"

_string_marks = byte_marks(b'"\\\n\r')


@dataclass(frozen=True, slots=True)
class JsonElements:
    """A document of n elements as JSON Lines; positions are those in the document.

    Parameters
    ----------
    data
        The document, uint8, with a line end before each element and none elsewhere: white space
        and what parts the elements are spaces, a line end in a string is `LINE_END_IN_STRING`.
    start, line
        Where each element starts, and its line in the document, int64 (n,).
    fault, fault_line
        Position and line at which the document goes wrong between two elements; its size when an
        array is not closed; -1 and 0 when nothing is wrong. No element behind it is listed.
    """

    data: Bytes
    start: Longs
    line: Longs
    fault: int
    fault_line: int


def elements(data: Bytes, *, whole_array: bool) -> JsonElements:
    """Part a JSON document: the elements of its array, or values one behind another.

    Elements are told apart by brackets and strings alone, so one that is faulty mostly leaves the
    others whole.

    Parameters
    ----------
    data
        The document without a byte order mark, uint8; read-only is fine.
    whole_array
        Whether an array is one element.
    """
    parted = data.copy()
    fault = int(_part_elements(parted, whole_array))
    size = parted.size if fault < 0 else fault
    begins = np.flatnonzero(parted[:size] == NEWLINE) + 1
    if size and parted[0] not in _BETWEEN:
        begins = np.insert(begins, 0, 0)
    line_begins = line_starts(data)
    if data.size and data[-1] == RETURN:
        line_begins = np.append(line_begins, data.size)
    places = np.append(begins, max(fault, 0))
    lines = 1 + np.searchsorted(line_begins, places, side="right")
    return JsonElements(
        parted[:size], begins, lines[:-1], fault, int(lines[-1]) if fault >= 0 else 0
    )


@always_inlined
def _is_blank(byte: Any) -> Any:
    return byte == SPACE or byte == TAB


@inlined
def _skip_space(text: Any, at: Any) -> Any:
    """First position from one on that holds no white space; line ends become spaces."""
    while at < text.size:
        byte = byte_at(text, at)
        if ends_line(byte):
            put_byte(text, at, SPACE)
        elif not _is_blank(byte):
            break
        at += 1
    return at


@inlined
def _string_end(text: Any, at: Any) -> Any:
    """Position behind a string's closing quote, from behind its opening one."""
    stop = text.size
    while at < stop:
        if at + BLOCK <= stop:
            marks = _string_marks(block_at(text, at))
            if marks == np.uint64(0):
                at += BLOCK
                continue
            at += trailing_zeros(marks)
        byte = byte_at(text, at)
        if byte == QUOTE:
            return at + 1
        if ends_line(byte):
            put_byte(text, at, LINE_END_IN_STRING)
        if byte == BACKSLASH and at + 1 < stop:
            # what an escape is made of is checked later: here only its quote matters
            behind = byte_at(text, at + 1)
            at += behind == QUOTE or behind == BACKSLASH
        at += 1
    return stop


@inlined
def _value_end(text: Any, at: Any) -> Any:
    """Position behind the value at a position, by its brackets and strings alone."""
    depth = 0
    while at < text.size:
        byte = byte_at(text, at)
        if byte == QUOTE:
            at = _string_end(text, at + 1)
            if depth == 0:
                return at
            continue
        if byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            depth += 1
        elif byte == CLOSE_OBJECT or byte == CLOSE_ARRAY:
            depth -= 1
            if depth <= 0:
                return at + 1 + depth
        elif depth == 0 and (byte == COMMA or _is_blank(byte) or ends_line(byte)):
            return at
        elif ends_line(byte):
            put_byte(text, at, SPACE)
        at += 1
    return text.size


@kernel("out(uint8[:]), bool", returns="int64", fastmath=False)
def _part_elements(text: Any, whole_array: bool) -> int:
    """Make lines of a document's elements in place: a line end stands before each.

    Every other byte between elements becomes a space. Returns the position at which the document
    goes wrong between two elements, ``text.size`` when its array is not closed, or -1.
    """
    stop = text.size
    at = _skip_space(text, 0)
    in_array = at < stop and byte_at(text, at) == OPEN_ARRAY and not whole_array
    parted, closed, first = True, False, True
    if in_array:
        put_byte(text, at, SPACE)
        at += 1
    while True:
        at = _skip_space(text, at)
        if at >= stop:
            return stop if in_array else -1
        byte = byte_at(text, at)
        if in_array and byte == CLOSE_ARRAY and (first or not parted):
            put_byte(text, at, SPACE)
            in_array, closed, parted = False, True, False
            at += 1
            continue
        if in_array and byte == COMMA and not parted:
            put_byte(text, at, SPACE)
            parted = True
            at += 1
            continue
        if closed or (in_array and not parted):
            return int(at)
        if byte == COMMA or byte == COLON or byte == CLOSE_ARRAY or byte == CLOSE_OBJECT:
            return int(at)
        # outside of an array, values that touch stay one line, which then is a fault
        if at > 0 and _is_blank(byte_at(text, at - 1)):
            put_byte(text, at - 1, NEWLINE)
        at = _value_end(text, at)
        first = False
        parted = not in_array
