"""Walking JSON that is known to be valid: by quotes, backslashes and brackets alone.

In other bytes the walk ends at their end at the latest, and what it finds means nothing.
Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
from fastscore_machine.bits import count_ones, trailing_zeros
from fastscore_machine.byte_blocks import BLOCK, equal_bytes
from fastscore_machine.compiling import always_inlined, inlined
from fastscore_machine.memory import load_byte

from fastscore_readers.json.tokens import ESCAPED, FALSE, FLOAT, INTEGER, NULL, STRING, TRUE
from fastscore_readers.text_bytes import BACKSLASH, MINUS, QUOTE, SPACE, TAB

_NONE, _ALL = np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)
_1, _2, _4, _8, _16, _32, _63 = (np.uint64(shift) for shift in (1, 2, 4, 8, 16, 32, 63))
_SMALL_U, _COMMA = 0x75, 0x2C
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D


@always_inlined
def skip_string(data: int, index: int, stop: int) -> tuple[int, bool, bool]:
    r"""Walk a string from behind its opening quote.

    Returns the position of the closing quote, whether there are escapes, and whether there are
    any that begin with ``\u``.
    """
    escaped = by_number = False
    while index < stop:
        if index + BLOCK <= stop:
            marks = equal_bytes(data + index, QUOTE) | equal_bytes(data + index, BACKSLASH)
            if marks == _NONE:
                index += BLOCK
                continue
            index += trailing_zeros(marks)
        byte = load_byte(data, index)
        if byte == QUOTE:
            return index, escaped, by_number
        if byte == BACKSLASH:
            escaped = True
            index += 1
            by_number |= index < stop and load_byte(data, index) == _SMALL_U
        index += 1
    return stop, escaped, by_number


@always_inlined
def skip_scalar(data: int, index: int, stop: int) -> tuple[int, int, bool]:
    r"""Walk a scalar: position behind it, its tag, and whether it has escapes with ``\u``."""
    byte = load_byte(data, index)
    if byte == QUOTE:
        index, escaped, by_number = skip_string(data, index + 1, stop)
        return min(index + 1, stop), (ESCAPED if escaped else STRING), by_number
    if byte == 0x74:
        return min(index + 4, stop), TRUE, False
    if byte == 0x66:
        return min(index + 5, stop), FALSE, False
    if byte == 0x6E:
        return min(index + 4, stop), NULL, False
    # the first letter of NaN or Infinity makes a number no integer
    tag = INTEGER
    while index < stop:
        byte = load_byte(data, index)
        if byte == _COMMA or byte == _CLOSE_ARRAY or byte == _CLOSE_OBJECT:
            break
        if byte == SPACE or byte == TAB:
            break
        if (byte < 0x30 or byte > 0x39) and byte != MINUS:
            tag = FLOAT
        index += 1
    return index, tag, False


@inlined
def _behind_odd_quotes(quotes: Any) -> Any:
    """Mark the bytes of a block behind an odd number of quotes, opening quotes among them."""
    for shift in (_1, _2, _4, _8, _16, _32):
        quotes ^= quotes << shift
    return quotes


@inlined
def _escaped_bytes(backslashes: Any, escaped: Any) -> tuple[Any, Any]:
    """Mark the bytes of a block that a backslash escapes, and the next block's first if one does.

    ``escaped`` marks the block's own first byte, if the block before ends with such a backslash.
    """
    marks, found = backslashes & ~escaped, escaped
    escaped = _NONE
    while marks != _NONE:
        first = marks & (~marks + _1)
        found |= first << _1
        escaped = first >> _63
        marks &= ~(first | first << _1)
    return found, escaped


@inlined
def skip_container(data: int, index: int, stop: int) -> tuple[int, bool]:
    r"""Walk an array or object: position behind it, and whether it has escapes with ``\u``."""
    depth = 0
    by_number = False
    within = escaped = _NONE
    while index + BLOCK <= stop:
        at = data + index
        quotes, backslashes = equal_bytes(at, QUOTE), equal_bytes(at, BACKSLASH)
        numbered = _NONE
        if backslashes | escaped != _NONE:
            found, escaped = _escaped_bytes(backslashes, escaped)
            quotes &= ~found
            numbered = found & equal_bytes(at, _SMALL_U)
        within ^= _behind_odd_quotes(quotes)
        opens = (equal_bytes(at, _OPEN_OBJECT) | equal_bytes(at, _OPEN_ARRAY)) & ~within
        closes = (equal_bytes(at, _CLOSE_OBJECT) | equal_bytes(at, _CLOSE_ARRAY)) & ~within
        if depth > count_ones(closes):
            depth += count_ones(opens) - count_ones(closes)
        else:
            marks = opens | closes
            while marks != _NONE:
                last = marks & (~marks + _1)
                depth += 1 if opens & last != _NONE else -1
                if depth == 0:
                    by_number |= numbered & (last - _1) != _NONE
                    return index + trailing_zeros(last) + 1, by_number
                marks ^= last
        by_number |= numbered != _NONE
        # all bits where the block ends within a string
        within = (within >> _63) * _ALL
        index += BLOCK
    if escaped != _NONE and index < stop:
        by_number |= load_byte(data, index) == _SMALL_U
        index += 1
    if within != _NONE:
        index, _, numbered_here = skip_string(data, index, stop)
        by_number |= numbered_here
        index = min(index + 1, stop)
    while index < stop:
        byte = load_byte(data, index)
        index += 1
        if byte == QUOTE:
            index, _, numbered_here = skip_string(data, index, stop)
            by_number |= numbered_here
            index = min(index + 1, stop)
        elif byte == _OPEN_OBJECT or byte == _OPEN_ARRAY:
            depth += 1
        elif byte == _CLOSE_OBJECT or byte == _CLOSE_ARRAY:
            depth -= 1
            if depth == 0:
                break
    return index, by_number
