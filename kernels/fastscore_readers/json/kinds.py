"""What kind of value each of many JSON texts is, by its ends alone: they are known to be valid.

Memory is safe for any bytes; what is found in text that is not valid JSON is unspecified.
Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.byte_sets import byte_marks
from fastscore_machine.compiling import always_inlined, inlined, kernel
from fastscore_machine.validation import read_only
from fastscore_machine.views import BLOCK, block_at, byte_at, item_at, put_byte, put_item

from fastscore_readers.json.tokens import (
    ABSENT,
    ARRAY,
    BACKSLASH,
    ESCAPED,
    FALSE,
    FLOAT,
    INTEGER,
    MINUS,
    NEWLINE,
    NULL,
    OBJECT,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    RETURN,
    SPACE,
    STRING,
    TAB,
    TRUE,
)

__all__ = ["value_kinds"]


_backslashes = byte_marks(b"\\")


def value_kinds(data: Bytes, starts: Longs, ends: Longs) -> tuple[Bytes, Longs, Longs]:
    """Find what kind of JSON value each byte range holds.

    Returns
    -------
    tuple of arrays
        The tag of `lines`, uint8 (n,), ``ABSENT`` for blank ranges; and the value's bytes, int64
        (n,) each, a string's inside its quotes.
    """
    tags = np.empty(starts.size, np.uint8)
    value_starts, value_ends = starts.astype(np.int64), ends.astype(np.int64)
    _classify(read_only(data), value_starts, value_ends, tags)
    return tags, value_starts, value_ends


@always_inlined
def _is_blank(byte: Any) -> Any:
    return byte == SPACE or byte == TAB or byte == NEWLINE or byte == RETURN


@inlined
def _has_escape(data: Any, at: Any, end: Any) -> Any:
    """Whether a backslash stands in some bytes."""
    while at + BLOCK <= end:
        slashes = _backslashes(block_at(data, at))
        if slashes != np.uint64(0):
            return True
        at += BLOCK
    while at < end:
        if byte_at(data, at) == BACKSLASH:
            return True
        at += 1
    return False


@inlined
def _is_whole(data: Any, at: Any, end: Any) -> Any:
    """Whether a number is written in digits alone, after its sign."""
    at += byte_at(data, at) == MINUS
    while at < end:
        if byte_at(data, at) < 0x30 or byte_at(data, at) > 0x39:
            return False
        at += 1
    return True


@kernel("uint8[:], out(int64[:]), out(int64[:]), out(uint8[:])", fastmath=False, allocates=False)
def _classify(data: Any, starts: Any, ends: Any, tags: Any) -> None:
    for row in range(tags.size):
        at, end = item_at(starts, row), item_at(ends, row)
        while at < end and _is_blank(byte_at(data, at)):
            at += 1
        while at < end and _is_blank(byte_at(data, end - 1)):
            end -= 1
        tag = ABSENT
        if at < end:
            byte = byte_at(data, at)
            if byte == QUOTE:
                at += 1
                end = max(at, end - 1)
                tag = ESCAPED if _has_escape(data, at, end) else STRING
            elif byte == OPEN_OBJECT:
                tag = OBJECT
            elif byte == OPEN_ARRAY:
                tag = ARRAY
            elif byte == 0x6E:
                tag = NULL
            elif byte == 0x74:
                tag = TRUE
            elif byte == 0x66:
                tag = FALSE
            else:
                tag = INTEGER if _is_whole(data, at, end) else FLOAT
        put_byte(tags, row, tag)
        put_item(starts, row, at)
        put_item(ends, row, end)
