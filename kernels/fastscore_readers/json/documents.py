"""JSON documents as JSON Lines: each element of an array becomes a line.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.byte_blocks import byte_marks
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined, inlined
from fastscore_jit.memory import BLOCK, block_at, byte_at, put_byte

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

AT_START, BETWEEN_VALUES, IN_EMPTY_ARRAY, AFTER_COMMA, AFTER_ELEMENT, AFTER_ARRAY = range(6)
"""States of the parser at the beginning of a chunk."""

LINE_END_IN_STRING = 0x1E
"""Replaces a line end within a string. Like any control character it is a fault."""
_OUTSIDE, _IN_STRING, _IN_ESCAPE = range(3)
_BETWEEN = b" \t\n"
Block: TypeAlias = bytes | memoryview

_string_marks = byte_marks(b'"\\\n\r')


@dataclass(frozen=True, slots=True)
class JsonElements:
    """A document of n elements as JSON Lines; positions are those in the document."""

    # The document, uint8, with a line end before each element and none elsewhere. White space and
    # separators become spaces, a line end in a string becomes `LINE_END_IN_STRING`.
    data: UInt8Array
    # where each element starts, and its line in the document, int64 (n,)
    start: Int64Array
    line: Int64Array
    # The position of an error between two elements; the document's size if an array is not closed;
    # -1 without an error. Elements after it are not listed.
    fault: int
    # where the last complete element ends, and the line there
    stop: int
    next_line: int
    place: int  # the parser's state at `stop`: `AT_START` or another


def elements(
    data: UInt8Array, *, whole_array: bool, place: int = AT_START, line: int = 1, final: bool = True
) -> JsonElements:
    """Split a chunk of a document, without a byte order mark, into elements or consecutive values.

    Only brackets and strings separate elements, so a faulty element rarely affects the others. An
    array is one element if `whole_array`. The chunk begins in the state `place`, at a line.
    """
    split = data.copy()
    fault, stop, place = _split_elements(split, whole_array, place, final)
    size = stop if fault < 0 else fault
    # a carriage return at the end may be the first half of a line end
    if not final and fault < 0 and size == data.size and size and data[-1] == RETURN:
        size -= 1
    begins = np.flatnonzero(split[:size] == NEWLINE) + 1
    if size and split[0] not in _BETWEEN:
        begins = np.insert(begins, 0, 0)
    begins = begins[begins < size]
    lines = line + np.searchsorted(line_begins(data), np.append(begins, size), side="right")
    return JsonElements(split[:size], begins, lines[:-1], fault, size, int(lines[-1]), place)


def skip_value(blocks: Iterable[Block], line: int) -> tuple[int, int, Block]:
    """Skip the value with which blocks begin; return its size, the line and the data after it."""
    n_bytes, depth, within, returned = 0, 0, _OUTSIDE, False
    for block in blocks:
        text = np.frombuffer(block, np.uint8)
        end, depth, within = _pass_value(text.copy(), depth, within)
        skipped = text if end < 0 else text[:end]
        # a line end across two blocks counts once
        line += count_line_ends(skipped) - (returned and skipped[:1].tobytes() == b"\n")
        returned = skipped[-1:].tobytes() == b"\r"
        n_bytes += skipped.size
        if end >= 0:
            return n_bytes, line, block[end:]
    return n_bytes, line, b""


@always_inlined
def _is_white(byte: Any) -> Any:
    return byte == SPACE or byte == TAB or ends_line(byte)


@always_inlined
def _parts_values(byte: Any) -> Any:
    return byte == COMMA or byte == COLON or byte == CLOSE_ARRAY or byte == CLOSE_OBJECT


@inlined
def _value_end(text: Any, at: Any, depth: Any, within: Any) -> tuple[Any, Any, Any]:
    """Return the position after the value at a position, found by its brackets and strings alone.

    If the value continues after the text, return -1, its depth and whether it ends in a string.
    Depth 0, outside strings, is a value's beginning. Escapes are not validated here.
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
    """Skip the rest of a value, as `_value_end` does."""
    end, depth, within = _value_end(text, 0, depth, within)
    return int(end), int(depth), int(within)


@kernel("out(uint8[:]), bool, int64, bool", returns="int64, int64, int64", fastmath=False)
def _split_elements(text: Any, whole_array: bool, place: int, final: bool) -> tuple[int, int, int]:
    """Turn a document's elements into lines in place: write a line end before each.

    Every other byte between elements becomes a space. ``place`` is the parser's state at the
    beginning. If the document does not end with the text (``final``), an element that the text cuts
    is not split.

    Return the position of an error between two elements (``text.size`` if the array is not closed,
    -1 without an error), the number of bytes that were split, and the parser's state there.
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
            # outside an array, values without a separator share a line, which is a fault
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
