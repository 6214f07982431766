"""Located JSON strings as texts, and byte ranges as Arrow string views.

Texts are valid JSON, so the first and last bytes of a value give its kind. Any bytes are
memory-safe.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined, inlined
from fastscore_jit.memory import (
    address_of,
    byte_at,
    item_at,
    load_short,
    low_bytes,
    prefetch,
    put_byte,
    put_item,
    word_at,
)
from fastscore_jit.validation import read_only

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
    unescape,
)

INLINE = 12
"""The maximum length of a text stored in its view."""
_ROWS_AHEAD = 8
_HALF = np.uint64(32)


def _ranges(
    data: UInt8Array, starts: Int64Array, ends: Int64Array
) -> tuple[UInt8Array, Int64Array, Int64Array]:
    """Validate bytes and ranges of them, and return read-only views for kernels."""
    if starts.shape != ends.shape or starts.ndim != 1:
        raise ValueError(f"starts have shape {starts.shape}, ends {ends.shape}; expected one (n,)")
    return (
        read_only(data),
        read_only(np.ascontiguousarray(starts, np.int64)),
        read_only(np.ascontiguousarray(ends, np.int64)),
    )


def unescaped(
    data: UInt8Array, starts: Int64Array, ends: Int64Array
) -> tuple[UInt8Array, Int64Array, Int64Array]:
    """Unescape byte ranges inside the quotes of valid JSON strings; return bytes, starts, ends.

    The end is -1 for strings with a lone surrogate, which UTF-8 cannot encode.
    """
    data, starts, ends = _ranges(data, starts, ends)
    out = np.empty(int((ends - starts).sum()), np.uint8)
    out_starts, out_ends = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    used = _unescape_strings(data, starts, ends, out, out_starts, out_ends)
    return out[:used], out_starts, out_ends


@kernel(
    "uint8[:], int64[:], int64[:], out(uint8[:]), out(int64[:]), out(int64[:])",
    returns="int64",
    fastmath=False,
)
def _unescape_strings(
    data: Any, starts: Any, ends: Any, out: Any, out_starts: Any, out_ends: Any
) -> int:
    to = 0
    for row in range(starts.size):
        out_starts[row] = to
        end = unescape(data, starts[row], ends[row], out, to)
        out_ends[row] = end
        to = max(to, end)
    return to


def views(
    data: UInt8Array, starts: Int64Array, ends: Int64Array, buffer: int, out: npt.NDArray[np.int32]
) -> None:
    """Write Arrow string views of byte ranges into ``out``, int32 (n, 4).

    The data, shorter than 2 GiB, are the array's data buffer of an index. Rows with a negative
    start are not written.
    """
    if data.size >= 1 << 31:
        raise ValueError(f"a string view reaches 2 GiB of data, found {data.size} bytes")
    if out.shape != (starts.size, 4):
        raise ValueError(f"out has shape {out.shape}; expected ({starts.size}, 4)")
    if ((ends < starts) & (starts >= 0)).any():
        raise ValueError("a range ends before it begins")
    _write_views(*_ranges(data, starts, ends), buffer, out.view(np.uint64))


@always_inlined
def _first_bytes(data: Any, at: Any, length: Any) -> Any:
    """Return up to eight bytes as a word."""
    if at + 8 <= data.size:
        return low_bytes(word_at(data, at), length)
    return load_short(data, at, length)


@always_inlined
def view_of_text(data: Any, at: Any, length: Any) -> tuple[Any, Any]:
    """Return the two words of a text's view, without the place of a long text."""
    if length > INLINE:
        return np.uint64(length) | _first_bytes(data, at, 4) << _HALF, np.uint64(0)
    low = np.uint64(length) | _first_bytes(data, at, min(length, 4)) << _HALF
    return low, _first_bytes(data, at + 4, max(length - 4, 0))


@kernel("uint8[:], int64[:], int64[:], int64, out(uint64[:, :])", fastmath=False)
def _write_views(data: Any, starts: Any, ends: Any, buffer: int, words: Any) -> None:
    for row in range(starts.size):
        ahead = min(row + _ROWS_AHEAD, starts.size - 1)
        if starts[ahead] >= 0:
            prefetch(address_of(data, starts[ahead], 0))
        at = starts[row]
        if at >= 0:
            length = ends[row] - at
            words[row, 0], words[row, 1] = view_of_text(data, at, length)
            if length > INLINE:
                words[row, 1] = np.uint64(buffer) | np.uint64(at) << _HALF


_KINDS = np.full(256, FLOAT, np.uint8)
_KINDS[list(b'"{[ntf')] = STRING, OBJECT, ARRAY, NULL, TRUE, FALSE
_KINDS[list(b" \t\n\r")] = ABSENT
"""Kinds of values by first byte; white space is no value."""


def value_kinds(
    data: UInt8Array, starts: Int64Array, ends: Int64Array
) -> tuple[UInt8Array, Int64Array, Int64Array]:
    """Return the tag of the JSON value in each range, and its bytes without quotes of strings.

    Blank ranges are ``ABSENT``.
    """
    tags = np.empty(starts.size, np.uint8)
    value_starts, value_ends = starts.astype(np.int64), ends.astype(np.int64)
    _classify(read_only(data), value_starts, value_ends, tags)
    return tags, value_starts, value_ends


@always_inlined
def _kind_at(data: Any, at: Any) -> Any:
    """Return the kind of value that begins with a byte."""
    return item_at(_KINDS, byte_at(data, at))


@inlined
def _has_escape(data: Any, at: Any, end: Any) -> Any:
    """Return whether some bytes contain a backslash."""
    found = False
    for place in range(at, end):
        found |= byte_at(data, place) == BACKSLASH
    return found


@inlined
def _is_whole(data: Any, at: Any, end: Any) -> Any:
    """Return whether a number has only digits after its sign."""
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
