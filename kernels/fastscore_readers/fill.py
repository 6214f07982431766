"""Parsed values of a block as columns, while it is in the cache: string views, integers or places.

Texts are copied out of the block. Equal texts of consecutive rows are copied once. Values that do
not fit the kind of their column (another type, a lone surrogate, an integer of more than 18 digits)
are odd. Columns have their places, and the caller converts them.

Located JSON strings become texts here, too, and byte ranges become string views. Texts are valid
JSON, so the first and last bytes of a value give its kind. Any bytes are memory-safe.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.bits import after_odd
from fastscore_jit.byte_blocks import byte_marks
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined, inlined
from fastscore_jit.memory import (
    BLOCK,
    address_of,
    block_at,
    byte_at,
    copy_chosen,
    item_at,
    load_short,
    low_bytes,
    prefetch,
    put_block,
    put_byte,
    put_item,
    same_bytes,
    signed,
    word_at,
)
from fastscore_jit.validation import read_only

from fastscore_readers.json.tokens import (
    ABSENT,
    ARRAY,
    BACKSLASH,
    ESCAPED,
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
from fastscore_readers.json.walk import BEGIN, END, LINE, N_ROWS, START, note_of

INLINE = 12
"""The maximum length of a text stored in its view."""
_ROWS_AHEAD = 8
_HALF, _LENGTH = np.uint64(32), np.uint64((1 << 32) - 1)


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
"""The kind of value by its first byte. White space begins no value."""


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


PLACES, WHOLE, TEXT, TEXT_OR_WHOLE, CELLS, FULL_CELLS = range(6)
"""Kinds of columns: byte ranges of values; integers; strings; strings and digits of unsigned
integers; CSV cells; CSV cells that are not empty."""

_ZERO = 0x30
_MORE_ROWS = 64
_MOST_DIGITS = 18
_quotes = byte_marks(b'"')
_NONE, _1, _63 = np.uint64(0), np.uint64(1), np.uint64(63)


class Columns(NamedTuple):
    """Memory for the rows of k columns."""

    # int8 (k,): `PLACES`, `WHOLE`, `TEXT`, `TEXT_OR_WHOLE`, `CELLS` or `FULL_CELLS`
    kind: npt.NDArray[np.int8]
    # uint64 (k, capacity, 2): an integer and 0, or the view of a text; a start and an end of places
    # and of odd values
    words: npt.NDArray[np.uint64]
    tags: UInt8Array  # uint8 (k, capacity): the types of the values, those of odd ones plus `ODD`
    odd: Int64Array  # int64 (k,): the number of odd values: not null, and not of the column's kind
    lines: Int64Array  # int64 (3, capacity): number, start and end of each row's line
    texts: UInt8Array  # uint8: the texts that do not fit into their views, with 64 spare bytes
    used: Int64Array  # int64 (2,): the number of rows, and the bytes of texts


ROWS, TEXT_BYTES = range(2)
"""Items of `Columns.used`."""
ODD = 16
"""Added to the type of an odd value, all of which are less."""


def allocate_columns(kinds: Sequence[int], capacity: int = 0, n_bytes: int = 0) -> Columns:
    """Allocate memory for a number of rows and bytes of text."""
    k = len(kinds)
    return Columns(
        np.array(kinds, np.int8),
        np.zeros((k, capacity, 2), np.uint64),
        np.zeros((k, capacity), np.uint8),
        np.zeros(k, np.int64),
        np.empty((3, capacity), np.int64),
        np.empty(n_bytes + 2 * BLOCK, np.uint8),
        np.zeros(2, np.int64),
    )


def with_capacity(columns: Columns, rows: int, done: int, size: int) -> Columns:
    """Return columns with memory for more rows, estimated from the first ``done`` bytes."""
    n, present = int(columns.used[ROWS]), columns.lines.shape[1]
    rows += n
    if rows <= present:
        return columns
    # rows per byte so far, with a margin
    capacity = rows if done == size else int(1.1 * rows * size / done) + _MORE_ROWS
    if present == 0:
        return allocate_columns(columns.kind.tolist(), capacity, size if columns.kind.any() else 0)
    wide = allocate_columns(columns.kind.tolist(), capacity)
    wide.words[:, :n], wide.tags[:, :n] = columns.words[:, :n], columns.tags[:, :n]
    wide.lines[:, :n] = columns.lines[:, :n]
    return wide._replace(odd=columns.odd, texts=columns.texts, used=columns.used)


@always_inlined
def _copy(source: Any, at: Any, length: Any, target: Any, to: Any) -> None:
    """Copy a text in blocks; up to 63 bytes after it are read and written."""
    done = 0
    while done < length:
        put_block(target, to + done, source, at + done)
        done += BLOCK


@inlined
def _unquote(data: Any, at: Any, end: Any, out: Any, to: Any) -> Any:
    """Write a cell's text with single quotes for doubled ones, in blocks; return its end."""
    pending = _NONE
    while at < end:
        quotes = _quotes(block_at(data, at))
        # keep the first of two quotes; all ones if a block ends between them
        first = after_odd(quotes) ^ pending
        pending = ~(first >> _63) + _1
        chosen = ~quotes | first
        if end - at < BLOCK:
            chosen &= (_1 << np.uint64(end - at)) - _1
        to += copy_chosen(out, to, data, at, chosen)
        at += BLOCK
    return to


@inlined
def _integer(data: Any, at: Any, end: Any) -> Any:
    """Parse the digits of an integer, after its sign."""
    negative = byte_at(data, at) == MINUS
    total = signed(0)
    for place in range(at + negative, end):
        total = total * 10 + (byte_at(data, place) - _ZERO)
    return -total if negative else total


@inlined
def _fill(data: Any, slots: Any, n_rows: Any, columns: Columns, number: Any, begin: Any) -> None:
    """Fill a column."""
    kind, first, width = columns.kind[number], columns.used[ROWS], columns.kind.size + 1
    used, texts, odd = columns.used[TEXT_BYTES], columns.texts, 0
    before, before_at = _NONE, signed(-1)
    for row in range(n_rows):
        tag, at, end = note_of(item_at(slots, row * width + number + 1))
        low = high = _NONE
        start, is_taken = at, tag <= NULL
        if kind == PLACES:
            low, high, is_taken = np.uint64(begin + at), np.uint64(begin + end), True
        elif kind == WHOLE:
            if tag == INTEGER and end - at <= _MOST_DIGITS:
                low, is_taken = np.uint64(_integer(data, at, end)), True
        elif kind == FULL_CELLS and at == end and tag == STRING:
            tag, is_taken = signed(NULL), True
        elif (
            tag == STRING
            or tag == ESCAPED
            or (kind == TEXT_OR_WHOLE and tag == INTEGER and byte_at(data, at) != MINUS)
        ):
            source, length = data, end - at
            if tag == ESCAPED:
                if kind >= CELLS:
                    after = _unquote(data, at, end, texts, used)
                else:
                    after = unescape(data, at, end, texts, used)
                source, at, length = texts, used, after - used
            is_taken = length >= 0
            if is_taken:
                low, high = view_of_text(source, at, length)
            if length > INLINE:
                if low == before and same_bytes(source, at, texts, before_at, length):
                    high = np.uint64(before_at) << _HALF
                else:
                    high = np.uint64(used) << _HALF
                    if tag != ESCAPED:
                        _copy(source, at, length, texts, used)
                    before, before_at = low, used
                    used += length
        if not is_taken:
            odd += 1
            tag += ODD
            low, high = np.uint64(begin + start), np.uint64(begin + end)
        columns.words[number, first + row, 0] = low
        columns.words[number, first + row, 1] = high
        columns.tags[number, first + row] = tag
    columns.used[TEXT_BYTES] = used
    columns.odd[number] += odd


@inlined
def _is_empty(slots: Any, n_rows: Any, number: Any, width: Any) -> Any:
    """Return whether a column has no value in any row."""
    row = 0
    while row < n_rows and item_at(slots, row * width + number + 1) == _NONE:
        row += 1
    return row == n_rows


COLUMNS = (
    "Columns(int8[:], out(uint64[:, :, :]), out(uint8[:, :]), out(int64[:]), out(int64[:, :]), "
    "out(uint8[:]), out(int64[:]))"
)


@inlined
def fill_rows(data: Any, slots: Any, rows: Any, columns: Columns, state: Any) -> None:
    """Fill columns with the slots that `walk.walk_lines` wrote for a block."""
    n_rows, begin, first = state[N_ROWS], state[BEGIN], columns.used[ROWS]
    for row in range(n_rows):
        columns.lines[LINE, first + row] = item_at(rows, 3 * row + LINE)
        columns.lines[START, first + row] = begin + item_at(rows, 3 * row + START)
        columns.lines[END, first + row] = begin + item_at(rows, 3 * row + END)
    for number in range(columns.kind.size):
        # memory is already zero
        if not _is_empty(slots, n_rows, number, columns.kind.size + 1):
            _fill(data, slots, n_rows, columns, number, begin)
    columns.used[ROWS] = first + n_rows


@kernel(f"uint8[:], uint64[:], int64[:], {COLUMNS}, int64[:]", fastmath=False, allocates=False)
def fill_columns(data: Any, slots: Any, rows: Any, columns: Columns, state: Any) -> None:
    """Fill columns as `fill_rows` does."""
    fill_rows(data, slots, rows, columns, state)


FAULT_ITEMS = ("line", "start", "end", "status", "position", "cells", "width")
FAULT = np.dtype([(name, np.int64) for name in FAULT_ITEMS])
"""A faulty line: its number and bytes (of broken quoting, those of the record's first line), the
fault (such as `lines.NOT_JSON`) and its byte position, the cells that it has and should have."""


@dataclass(frozen=True, slots=True)
class LineScan:
    """Lines (CSV: records) of a buffer: n good ones, m faulty ones, k wanted names."""

    data: UInt8Array  # the buffer that was scanned, uint8
    # number of each row's line and its bytes in the buffer (line end excluded), int64 (n,)
    line: Int64Array
    start: Int64Array
    end: Int64Array
    # Type of each wanted value (`tokens.ABSENT` ... `OBJECT`), uint8 (k, n). A cell is a string, or
    # `ESCAPED` if it has doubled quotes. It is absent if the header lacks its name.
    tags: UInt8Array
    columns: Columns  # the wanted values; strings have places without their quotes
    faults: npt.NDArray[np.void]  # the faulty lines, `FAULT` (m,)
    # the numbers of all lines and of blank ones, and the number of the next line
    n_lines: int
    n_blank: int
    next_line: int
    # the syntax of the values: `csv`, `json` (elements of documents) or `jsonl`
    syntax: Literal["csv", "json", "jsonl"] = "jsonl"
    # where the next record of CSV starts, and whether the last faulty line continues after the
    # buffer
    stop: int = 0
    cut: bool = False
    has_mark: bool = True  # whether a record may begin with a byte order mark


def scan_of(
    data: UInt8Array, columns: Columns, faults: npt.NDArray[np.void], counts: Sequence[int]
) -> LineScan:
    """Return the scan of filled columns; counts are those of `LineScan`."""
    n, n_bytes = columns.used.tolist()
    columns = columns._replace(
        words=columns.words[:, :n],
        tags=columns.tags[:, :n],
        lines=columns.lines[:, :n],
        texts=columns.texts[:n_bytes],
    )
    line, start, end = columns.lines
    n_lines, n_blank, next_line = counts
    return LineScan(
        data, line, start, end, columns.tags % ODD, columns, faults, n_lines, n_blank, next_line
    )


def moved(faults: npt.NDArray[np.void], by: int) -> npt.NDArray[np.void]:
    """Return faults at other positions."""
    faults = faults.copy()
    for name in ("start", "end", "position"):
        faults[name] += by
    return faults


def joined_scans(data: UInt8Array, scans: Sequence[tuple[int, LineScan]]) -> LineScan:
    """Join scans of CSV for the same kinds of columns, each with its place in ``data``."""
    if len(scans) == 1 and not scans[0][0]:
        return replace(scans[0][1], data=data)
    columns = [scan.columns for _, scan in scans]
    n_bytes = np.cumsum([0, *(each.texts.size for each in columns)])
    words, lines = [], []
    for (shift, scan), texts_begin in zip(scans, n_bytes, strict=False):
        own, is_places = scan.columns.words.copy(), scan.columns.kind == PLACES
        own[is_places] += np.uint64(shift)
        is_long = (own[:, :, 0] & _LENGTH > INLINE) & ~is_places[:, None]
        own[is_long, 1] += np.uint64(texts_begin) << _HALF
        words.append(own)
        lines.append(scan.columns.lines + np.array([[0], [shift], [shift]]))
    joined = Columns(
        columns[0].kind,
        np.concatenate(words, 1),
        np.concatenate([each.tags for each in columns], 1),
        columns[0].odd,
        np.concatenate(lines, 1),
        np.concatenate([each.texts for each in columns]),
        np.sum([each.used for each in columns], 0),
    )
    faults = np.concatenate([moved(scan.faults, shift) for shift, scan in scans])
    counts = np.sum([(scan.n_lines, scan.n_blank) for _, scan in scans], 0).tolist()
    last = scans[-1][1]
    return replace(scan_of(data, joined, faults, [*counts, last.next_line]), syntax=last.syntax)
