"""JSON documents as JSON Lines: the elements of an array, each on a line of its own.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from dataclasses import dataclass
from typing import Any

import numpy as np
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.byte_blocks import byte_marks
from fastscore_jit.compiling import always_inlined, inlined, kernel
from fastscore_jit.views import BLOCK, block_at, byte_at, put_byte

from fastscore_readers.json.line_ends import count_line_ends, line_begins
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

__all__ = ["LINE_END_IN_STRING", "JsonElements", "PassedValue", "elements"]

AT_START, BETWEEN_VALUES, IN_EMPTY_ARRAY, AFTER_COMMA, AFTER_ELEMENT, AFTER_ARRAY = range(6)
"""Where in a document a part of it may begin."""

LINE_END_IN_STRING = 0x1E
"""Stands for a line end within a string, which is a fault as any control character is."""
_OUTSIDE, _IN_STRING, _IN_ESCAPE = range(3)
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
    fault
        Where the document goes wrong between two elements; its size when an array is not closed;
        -1 when nothing is wrong. No element after it is listed.
    stop, next_line
        How much of the text was parted, and the line at which that ends: what its end cuts is left.
    place
        Where in a document that is, one of `AT_START` and the others.
    """

    data: UInt8Array
    start: Int64Array
    line: Int64Array
    fault: int
    stop: int
    next_line: int
    place: int


def elements(
    data: UInt8Array,
    *,
    whole_array: bool,
    place: int = AT_START,
    line: int = 1,
    final: bool = True,
) -> JsonElements:
    """Part a JSON document: the elements of its array, or values one after another.

    Elements are told apart by brackets and strings alone, so one that is faulty mostly leaves the
    others whole.

    Parameters
    ----------
    data
        The document without a byte order mark, or a part of it, uint8; read-only is fine.
    whole_array
        Whether an array is one element.
    place, line
        Where in the document the part begins, and on which line.
    final
        Whether the document ends with it.
    """
    parted = data.copy()
    fault, stop, place = _part_elements(parted, whole_array, place, final)
    size = stop if fault < 0 else fault
    # a return at the very end may be half of a line end
    if not final and fault < 0 and size == data.size and size and data[-1] == RETURN:
        size -= 1
    begins = np.flatnonzero(parted[:size] == NEWLINE) + 1
    if size and parted[0] not in _BETWEEN:
        begins = np.insert(begins, 0, 0)
    begins = begins[begins < size]
    lines = line + np.searchsorted(line_begins(data), np.append(begins, size), side="right")
    return JsonElements(parted[:size], begins, lines[:-1], fault, size, int(lines[-1]), place)


class PassedValue:
    """A value that is passed over, block by block."""

    def __init__(self, line: int) -> None:
        self.n_bytes, self.line = 0, line
        self._depth, self._within, self._returned = 0, _OUTSIDE, False

    def go_on(self, data: bytes) -> int:
        """Pass over the value's next bytes; return where it ends in them, -1 where it goes on."""
        text = np.frombuffer(data, np.uint8)
        end, self._depth, self._within = _pass_value(text.copy(), self._depth, self._within)
        passed = text if end < 0 else text[:end]
        # a line end that the blocks part is one
        is_half = self._returned and data[:1] == b"\n" and passed.size > 0
        self.line += count_line_ends(passed) - is_half
        self._returned = passed.size > 0 and passed[-1] == RETURN
        self.n_bytes += passed.size
        return int(end)


@always_inlined
def _is_white(byte: Any) -> Any:
    return byte == SPACE or byte == TAB or ends_line(byte)


@always_inlined
def _parts_values(byte: Any) -> Any:
    return byte == COMMA or byte == COLON or byte == CLOSE_ARRAY or byte == CLOSE_OBJECT


@inlined
def _value_end(text: Any, at: Any, depth: Any, within: Any) -> tuple[Any, Any, Any]:
    """Position after the value that goes on at a position, by its brackets and strings alone.

    -1 where it goes on after the text, with how deep that is and within what; at its beginning it
    is 0 deep and outside of strings. What an escape is made of is checked later.
    """
    while at < text.size:
        if within == _IN_STRING and at + BLOCK <= text.size:
            marks = _string_marks(block_at(text, at))
            if marks == np.uint64(0):
                at += BLOCK
                continue
            at += trailing_zeros(marks)
        byte = byte_at(text, at)
        if ends_line(byte):
            put_byte(text, at, SPACE if within == _OUTSIDE else LINE_END_IN_STRING)
        at += 1
        if within == _IN_ESCAPE:
            within = _IN_STRING
        elif byte == QUOTE:
            within = _IN_STRING - within
            if depth == 0 and within == _OUTSIDE:
                return at, 0, _OUTSIDE
        elif within == _IN_STRING:
            within = _IN_ESCAPE if byte == BACKSLASH else _IN_STRING
        elif byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            depth += 1
        elif byte == CLOSE_OBJECT or byte == CLOSE_ARRAY:
            if depth <= 1:
                return at - 1 + depth, 0, _OUTSIDE
            depth -= 1
        elif depth == 0 and (byte == COMMA or _is_white(byte)):
            return at - 1, 0, _OUTSIDE
    return -1, depth, within


@kernel("out(uint8[:]), int64, int64", returns="int64, int64, int64", fastmath=False)
def _pass_value(text: Any, depth: int, within: int) -> tuple[int, int, int]:
    """Go on through a value; see `_value_end`."""
    end, depth, within = _value_end(text, 0, depth, within)
    return int(end), int(depth), int(within)


@kernel("out(uint8[:]), bool, int64, bool", returns="int64, int64, int64", fastmath=False)
def _part_elements(text: Any, whole_array: bool, place: int, final: bool) -> tuple[int, int, int]:
    """Make lines of a document's elements in place: a line end stands before each.

    Every other byte between elements becomes a space. ``place`` says where in the document the text
    begins, and ``final`` whether it ends here; otherwise an element that its end cuts is left.
    Returns the position at which the document goes wrong between two elements, ``text.size`` when
    its array is not closed, or -1; how much of the text was parted; and the place after that.
    """
    stop = text.size
    at = begin = 0
    while at < stop:
        byte = byte_at(text, at)
        if _is_white(byte):
            after = place
        elif place == AT_START and byte == OPEN_ARRAY and not whole_array:
            after = IN_EMPTY_ARRAY
        elif byte == CLOSE_ARRAY and (place == IN_EMPTY_ARRAY or place == AFTER_ELEMENT):
            after = AFTER_ARRAY
        elif byte == COMMA and place == AFTER_ELEMENT:
            after = AFTER_COMMA
        elif place >= AFTER_ELEMENT or _parts_values(byte):
            return at, at, place
        else:
            place = max(place, BETWEEN_VALUES)
            # outside of an array, values that touch stay one line, which then is a fault
            if at == 0 or byte_at(text, at - 1) == SPACE:
                begin = at
            end, _, _ = _value_end(text, at, 0, _OUTSIDE)
            end = end if end >= 0 else stop
            if end == stop and not final:
                return -1, begin, place
            if begin == at and at > 0:
                put_byte(text, at - 1, NEWLINE)
            at = end
            place = AFTER_ELEMENT if place != BETWEEN_VALUES else place
            continue
        place = after
        put_byte(text, at, SPACE)
        at += 1
    in_array = IN_EMPTY_ARRAY <= place <= AFTER_ELEMENT
    return (stop if in_array and final else -1), stop, place
