"""What kind of value each of many JSON texts is, by its ends alone: they are known to be valid.

Memory is safe for any bytes; what is found in text that is not valid JSON is unspecified.
"""

from typing import Any

import numpy as np
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.compiling import always_inlined, inlined, kernel
from fastscore_jit.validation import read_only
from fastscore_jit.views import byte_at, item_at, put_byte, put_item

from fastscore_readers.json.tokens import (
    ABSENT,
    ARRAY,
    BACKSLASH,
    FALSE,
    FLOAT,
    INTEGER,
    MINUS,
    NULL,
    OBJECT,
    STRING,
    TRUE,
)

__all__ = ["value_kinds"]

_KINDS = np.full(256, FLOAT, np.uint8)
_KINDS[list(b'"{[ntf')] = STRING, OBJECT, ARRAY, NULL, TRUE, FALSE
_KINDS[list(b" \t\n\r")] = ABSENT
"""What begins with a byte; white space is no value."""


def value_kinds(
    data: UInt8Array, starts: Int64Array, ends: Int64Array
) -> tuple[UInt8Array, Int64Array, Int64Array]:
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
def _kind_at(data: Any, at: Any) -> Any:
    """Return the kind of what begins with a byte."""
    return item_at(_KINDS, byte_at(data, at))


@inlined
def _has_escape(data: Any, at: Any, end: Any) -> Any:
    """Whether a backslash stands in some bytes."""
    found = False
    for place in range(at, end):
        found |= byte_at(data, place) == BACKSLASH
    return found


@inlined
def _is_whole(data: Any, at: Any, end: Any) -> Any:
    """Whether a number is written in digits alone, after its sign."""
    at += byte_at(data, at) == MINUS
    while at < end and 0x30 <= byte_at(data, at) <= 0x39:
        at += 1
    return at == end


@kernel("uint8[:], out(int64[:]), out(int64[:]), out(uint8[:])", fastmath=False, allocates=False)
def _classify(data: Any, starts: Any, ends: Any, tags: Any) -> None:
    for row in range(tags.size):
        at, end = item_at(starts, row), item_at(ends, row)
        while at < end and _kind_at(data, at) == ABSENT:
            at += 1
        while at < end and _kind_at(data, end - 1) == ABSENT:
            end -= 1
        tag = _kind_at(data, at) if at < end else ABSENT
        if tag == STRING:
            at += 1
            end = max(at, end - 1)
            tag += _has_escape(data, at, end)
        elif tag == FLOAT and _is_whole(data, at, end):
            tag = INTEGER
        put_byte(tags, row, tag)
        put_item(starts, row, at)
        put_item(ends, row, end)
