"""Kinds of JSON values and elements of arrays, in text that is known to be valid.

Indices are unsigned where it counts: Numba checks signed ones for negative values. Comparisons are
spelled out, as `in` over a tuple compiles to slower code.

Memory is safe for any bytes; what the walks find in text that is not valid JSON is unspecified.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_machine.compiling import inlined, kernel

from fastscore_readers.json.lines import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    FLOAT,
    INTEGER,
    NULL,
    OBJECT,
    STRING,
    TRUE,
)

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_QUOTE, _BACKSLASH, _COMMA = 0x22, 0x5C, 0x2C
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
_NEWLINE, _RETURN, _TAB, _SPACE = 0x0A, 0x0D, 0x09, 0x20
_T, _F, _N = 0x74, 0x66, 0x6E
_POINT, _SMALL_E, _LARGE_E = 0x2E, 0x65, 0x45

_LOW_BITS, _HIGH_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_QUOTES = np.uint64(0x0101010101010101 * _QUOTE)
_BACKSLASHES = np.uint64(0x0101010101010101 * _BACKSLASH)


def value_kinds(data: Bytes, starts: Longs, ends: Longs) -> tuple[Bytes, Longs, Longs]:
    """Find what kind of JSON value each byte range holds.

    Returns
    -------
    tuple of arrays
        The tag of `fastscore_readers.json.lines`, uint8 (n,), ``ABSENT`` for blank ranges; and the
        value's bytes, int64 (n,) each, a string's inside its quotes.
    """
    tags = np.empty(starts.size, np.uint8)
    value_starts, value_ends = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    _classify(data, starts, ends, tags, value_starts, value_ends)
    return tags, value_starts, value_ends


def array_elements(data: Bytes, starts: Longs, ends: Longs) -> tuple[Longs, Bytes, Longs, Longs]:
    """Find the elements of the JSON arrays in byte ranges.

    Parameters
    ----------
    data, starts, ends
        The arrays, brackets included; a range that does not begin with a bracket has no elements.

    Returns
    -------
    tuple of arrays
        Offsets, int64 (n + 1,); and each element's tag and bytes as `value_kinds` gives them.
    """
    offsets, element_starts, element_ends = _split(data, starts, ends)
    return (offsets, *value_kinds(data, element_starts, element_ends))


@inlined
def _is_blank(byte: int) -> bool:
    return byte == _SPACE or byte == _TAB or byte == _NEWLINE or byte == _RETURN


@inlined
def _load8(data: Any, at: int) -> Any:
    """Read eight bytes as one word, lowest byte first; LLVM makes it a single load."""
    word = np.uint64(0)
    for byte in range(8):
        word |= np.uint64(data[np.uint64(at + byte)]) << np.uint64(8 * byte)
    return word


@inlined
def _has_zero(word: Any) -> Any:
    """Whether any of a word's eight bytes is zero."""
    return ((word - _LOW_BITS) & ~word & _HIGH_BITS) != np.uint64(0)


@inlined
def _after_string(data: Any, at: int, end: int) -> int:
    """Position behind the closing quote of the string whose inside begins at ``at``."""
    while at < end:
        while at + 8 <= end:
            word = _load8(data, at)
            if _has_zero(word ^ _QUOTES) or _has_zero(word ^ _BACKSLASHES):
                break
            at += 8
        for position in range(at, end):
            byte = data[np.uint64(position)]
            if byte == _QUOTE:
                return position + 1
            if byte == _BACKSLASH:
                at = position + 2
                break
        else:
            return end
    return end


@inlined
def _number_tag(data: Any, at: int, end: int) -> int:
    for position in range(at, end):
        byte = data[np.uint64(position)]
        if byte == _POINT or byte == _SMALL_E or byte == _LARGE_E or byte > 64:
            return FLOAT
    return INTEGER


@kernel(
    "uint8[:], int64[:], int64[:], out(uint8[:]), out(int64[:]), out(int64[:])",
    fastmath=False,
)
def _classify(
    data: Any, starts: Any, ends: Any, tags: Any, value_starts: Any, value_ends: Any
) -> None:
    for row in range(starts.size):
        at, end = starts[row], ends[row]
        while at < end and _is_blank(data[np.uint64(at)]):
            at += 1
        while at < end and _is_blank(data[np.uint64(end - 1)]):
            end -= 1
        tag = ABSENT
        if at < end:
            byte = data[np.uint64(at)]
            if byte == _QUOTE:
                at += 1
                end = max(at, end - 1)
                tag = STRING
                for position in range(at, end):
                    if data[np.uint64(position)] == _BACKSLASH:
                        tag = ESCAPED
                        break
            elif byte == _OPEN_OBJECT:
                tag = OBJECT
            elif byte == _OPEN_ARRAY:
                tag = ARRAY
            elif byte == _N:
                tag = NULL
            elif byte == _T:
                tag = TRUE
            elif byte == _F:
                tag = FALSE
            else:
                tag = _number_tag(data, at, end)
        tags[row], value_starts[row], value_ends[row] = tag, at, end


@kernel("uint8[:], int64[:], int64[:]", returns="int64[:], int64[:], int64[:]", fastmath=False)
def _split(data: Any, starts: Any, ends: Any) -> Any:
    offsets = np.zeros(starts.size + 1, np.int64)
    capacity = 1024
    element_starts, element_ends = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    count = 0
    for row in range(starts.size):
        at, end = starts[row], ends[row]
        if at < end and data[np.uint64(at)] == _OPEN_ARRAY:
            at += 1
            begin, depth, content = at, 0, False
            while at < end:
                byte = data[np.uint64(at)]
                at += 1
                if byte == _QUOTE:
                    at = _after_string(data, at, end)
                    content = True
                elif byte == _OPEN_OBJECT or byte == _OPEN_ARRAY:
                    depth += 1
                    content = True
                elif depth == 0 and (byte == _COMMA or byte == _CLOSE_ARRAY):
                    if content:
                        if count == capacity:
                            capacity *= 2
                            element_starts = _grown(element_starts, capacity)
                            element_ends = _grown(element_ends, capacity)
                        element_starts[count], element_ends[count] = begin, at - 1
                        count += 1
                    begin, content = at, False
                    if byte == _CLOSE_ARRAY:
                        break
                elif byte == _CLOSE_OBJECT or byte == _CLOSE_ARRAY:
                    depth -= 1
                elif not _is_blank(byte):
                    content = True
        offsets[row + 1] = count
    return offsets, element_starts[:count].copy(), element_ends[:count].copy()


@inlined
def _grown(values: Any, capacity: int) -> Any:
    larger = np.empty(capacity, np.int64)
    for place in range(values.size):
        larger[place] = values[place]
    return larger
