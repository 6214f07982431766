"""Values of a block as columns, while it is in the cache: Arrow's views of texts, integers, places.

Texts are copied out of the block, one that is as in the row before only once. What no column of
its kind takes as it is (another type, half of a surrogate pair, an integer beyond 64 bits) is
counted as odd and left to whoever knows what becomes of it.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.bits import trailing_zeros
from fastscore_machine.byte_sets import byte_marks
from fastscore_machine.compiling import always_inlined, inlined, kernel
from fastscore_machine.views import (
    BLOCK,
    block_at,
    byte_at,
    item_at,
    put_block,
    put_byte,
    put_item,
    same_bytes,
    signed,
)

from fastscore_readers.json.located_values import INLINE, view_of_text
from fastscore_readers.json.tokens import ESCAPED, INTEGER, MINUS, NULL, STRING, unescape
from fastscore_readers.json.walk import BEGIN, END, LINE, N_ROWS, START, note_of

PLACES, TEXT, TEXT_OR_WHOLE, WHOLE, WRITTEN, CELLS, FULL_CELLS = range(7)
"""What a column is filled with: where its values stand; strings, those and the digits of integers,
or integers; values of any type as they are written, which stay in the data; cells of CSV, or those
that are not empty."""

_ZERO, _QUOTE = 0x30, 0x22
_MORE_ROWS = 64
_MOST_DIGITS = 18
_HALF = np.uint64(32)
_quotes = byte_marks(b'"')
_NONE = np.uint64(0)


class Columns(NamedTuple):
    """Room for the rows of k columns.

    Parameters
    ----------
    kind : int8 (k,)
        `PLACES`, `TEXT`, `TEXT_OR_WHOLE`, `WHOLE`, `WRITTEN`, `CELLS` or `FULL_CELLS`.
    words : uint64 (k * 2 * capacity,)
        Two words a row that are a view, or the starts of all rows before the ends, or values.
    tags : uint8 (k * capacity,)
        The types of the values.
    valid : uint8 (k * capacity,)
        Whether a row has a value, where it is no place.
    odd : int64 (k,)
        How many values were left out that are not null.
    lines : int64 (3 * capacity,)
        Number, start and end of each row's line.
    texts : uint8
        The texts that do not fit into their views; 64 bytes longer than all can be.
    used : int64 (2,)
        How many rows there are, and how many bytes of texts.
    """

    kind: npt.NDArray[np.int8]
    words: npt.NDArray[np.uint64]
    tags: Bytes
    valid: Bytes
    odd: Longs
    lines: Longs
    texts: Bytes
    used: Longs


ROWS, TEXT_BYTES = range(2)
"""What `Columns.used` holds."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A column of n rows as Arrow has it.

    Parameters
    ----------
    kind
        What it is filled with.
    values : uint64
        String views, (n, 2), or the words of int64 values, (n,).
    texts : uint8
        What the views refer to as buffer 0.
    valid : bool (n,)
        Which rows have a value; the others' are 0.
    odd
        How many values are not null but could not be taken as they are.
    """

    kind: int
    values: npt.NDArray[np.uint64]
    texts: Bytes
    valid: npt.NDArray[np.bool_]
    odd: int


def column_room(kinds: Sequence[int], capacity: int, n_bytes: int) -> Columns:
    """Allocate room for as many rows, and as many bytes of text."""
    k, capacity = len(kinds), max(capacity, 1)
    return Columns(
        np.array(kinds, np.int8),
        np.zeros(2 * k * capacity, np.uint64),
        np.zeros(k * capacity, np.uint8),
        np.zeros(k * capacity, np.uint8),
        np.zeros(k, np.int64),
        np.empty(3 * capacity, np.int64),
        np.empty(n_bytes + 2 * BLOCK, np.uint8),
        np.zeros(2, np.int64),
    )


def widened(columns: Columns, capacity: int) -> Columns:
    """Return the same columns with room for more rows."""
    n, kinds = int(columns.used[ROWS]), columns.kind.tolist()
    wide = column_room(kinds, capacity, 0)
    pairs = ((columns.tags, wide.tags), (columns.valid, wide.valid), (columns.lines, wide.lines))
    for old, new in pairs:
        by_row(new, wide)[:, :n] = by_row(old, columns)[:, :n]
    for kind, before, words in zip(kinds, _of_columns(columns), _of_columns(wide), strict=True):
        if kind == PLACES:
            by_row(words, wide)[:, :n] = by_row(before, columns)[:, :n]
        else:
            words[: 2 * n] = before[: 2 * n]
    return wide._replace(odd=columns.odd, used=columns.used, texts=columns.texts)


def with_room(columns: Columns, rows: int, done: int, size: int, *, first: bool) -> Columns:
    """Return columns with room for more rows, found in the last of ``done`` bytes of ``size``."""
    rows += int(columns.used[ROWS])
    if not first and 3 * rows <= columns.lines.size:
        return columns
    # as many to a byte as there were so far, and some more
    capacity = rows if done == size else int(1.1 * rows * size / done) + _MORE_ROWS
    if first:
        return column_room(columns.kind.tolist(), capacity, size if columns.kind.any() else 0)
    return widened(columns, capacity)


def by_row(values: npt.NDArray[Any], columns: Columns) -> npt.NDArray[Any]:
    """Return what stands one for each row, column after column, as a matrix."""
    return values.reshape(-1, columns.lines.size // 3)


def _of_columns(columns: Columns) -> npt.NDArray[np.uint64]:
    """Return the words of each column."""
    return columns.words.reshape(-1, 2 * columns.lines.size // 3)


def filled_columns(columns: Columns, data: Bytes) -> dict[int, Filled]:
    """Return the columns that were filled with more than places, by their number."""
    found = {}
    n, used = columns.used.tolist()
    for number, (kind, words) in enumerate(
        zip(columns.kind.tolist(), _of_columns(columns), strict=True)
    ):
        if kind == PLACES:
            continue
        values = words[:n] if kind == WHOLE else words[: 2 * n].reshape(n, 2)
        texts = data if kind == WRITTEN else columns.texts[:used]
        valid = by_row(columns.valid, columns)[number, :n].view(np.bool_)
        found[number] = Filled(kind, values, texts, valid, int(columns.odd[number]))
    return found


def joined_columns(parts: Sequence[Filled]) -> Filled:
    """Put columns of texts one after another."""
    values: list[npt.NDArray[np.uint64]] = []
    shift = 0
    for part in parts:
        words = part.values.copy()
        is_long = words[:, 0] & np.uint64(0xFFFFFFFF) > INLINE
        words[is_long, 1] += np.uint64(shift << 32)
        values.append(words)
        shift += part.texts.size
    return Filled(
        parts[0].kind,
        np.concatenate(values),
        np.concatenate([part.texts for part in parts]),
        np.concatenate([part.valid for part in parts]),
        sum(part.odd for part in parts),
    )


@always_inlined
def _capacity(columns: Columns) -> Any:
    return columns.lines.size // 3


@always_inlined
def _base(columns: Columns, number: Any) -> Any:
    """Where a column's next row goes."""
    return number * _capacity(columns) + columns.used[ROWS]


@always_inlined
def _words(columns: Columns, number: Any) -> Any:
    """Where the two words of a column's next row go."""
    return 2 * _base(columns, number)


@always_inlined
def _copy(source: Any, at: Any, length: Any, target: Any, to: Any) -> None:
    """Copy a text by blocks; up to 63 bytes more are read, and written."""
    done = 0
    while done < length:
        put_block(target, to + done, source, at + done)
        done += BLOCK


@inlined
def _unquote(data: Any, at: Any, end: Any, out: Any, to: Any) -> Any:
    """Write a cell's text, its doubled quotes once: position after it. Blocks are written."""
    while at < end:
        put_block(out, to, data, at)
        quotes = _quotes(block_at(data, at))
        length = trailing_zeros(quotes) + 1 if quotes != _NONE else BLOCK
        length = min(length, end - at)
        to += length
        # of two quotes the other one is passed
        at += length + (quotes != _NONE)
    return to


@inlined
def _fill_texts(data: Any, cells: Any, n_rows: Any, columns: Columns, number: Any) -> None:
    """Fill a column with texts that are copied out of the block."""
    width, base = columns.kind.size + 1, _base(columns, number)
    words = _words(columns, number)
    kind = columns.kind[number]
    whole_too = kind == TEXT_OR_WHOLE
    used, texts, odd = columns.used[TEXT_BYTES], columns.texts, 0
    before, before_at = _NONE, signed(-1)
    for row in range(n_rows):
        tag, at, end = note_of(item_at(cells, row * width + number + 1))
        low = high = _NONE
        is_valid = False
        if kind == FULL_CELLS and at == end and tag == STRING:
            tag = signed(NULL)
        if tag == STRING or tag == ESCAPED or (whole_too and tag == INTEGER):
            if tag == INTEGER and end - at == 2 and byte_at(data, at + 1) == _ZERO:
                # the one integer whose text is not its own digits is -0
                at += byte_at(data, at) == MINUS
            source, length = data, end - at
            if tag == ESCAPED:
                if kind >= CELLS:
                    after = _unquote(data, at, end, texts, used)
                else:
                    after = unescape(data, at, end, texts, used)
                source, at, length = texts, used, after - used
            is_valid = length >= 0
            if is_valid:
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
        if not is_valid and tag > NULL:
            odd += 1
        put_item(columns.words, words + 2 * row, low)
        put_item(columns.words, words + 2 * row + 1, high)
        put_byte(columns.tags, base + row, tag)
        put_byte(columns.valid, base + row, is_valid)
    columns.used[TEXT_BYTES] = used
    columns.odd[number] += odd


@inlined
def _fill_written(
    data: Any, cells: Any, n_rows: Any, columns: Columns, number: Any, begin: Any
) -> None:
    """Fill a column with views of values where they stand in the data."""
    width, base = columns.kind.size + 1, _base(columns, number)
    words = _words(columns, number)
    for row in range(n_rows):
        tag, at, end = note_of(item_at(cells, row * width + number + 1))
        low = high = _NONE
        if tag > NULL:
            quote = tag == STRING or tag == ESCAPED
            at, end = at - quote, end + quote
            low, high = view_of_text(data, at, end - at)
            if end - at > INLINE:
                high = np.uint64(begin + at) << _HALF
        put_item(columns.words, words + 2 * row, low)
        put_item(columns.words, words + 2 * row + 1, high)
        put_byte(columns.tags, base + row, tag)
        put_byte(columns.valid, base + row, tag > NULL)


@inlined
def _fill_integers(data: Any, cells: Any, n_rows: Any, columns: Columns, number: Any) -> None:
    width, base, odd = columns.kind.size + 1, _base(columns, number), 0
    words = base + number * _capacity(columns)
    for row in range(n_rows):
        tag, at, end = note_of(item_at(cells, row * width + number + 1))
        total, is_valid = signed(0), False
        if tag == INTEGER:
            negative = byte_at(data, at) == MINUS
            at += negative
            is_valid = end - at <= _MOST_DIGITS
            while at < end:
                total = total * 10 + (byte_at(data, at) - _ZERO)
                at += 1
            total = -total if negative else total
        if not is_valid:
            odd += tag > NULL
            total = signed(0)
        put_item(columns.words, words + row, np.uint64(total))
        put_byte(columns.tags, base + row, tag)
        put_byte(columns.valid, base + row, is_valid)
    columns.odd[number] += odd


@inlined
def _fill_places(cells: Any, n_rows: Any, columns: Columns, number: Any, begin: Any) -> None:
    width, base, capacity = columns.kind.size + 1, _base(columns, number), _capacity(columns)
    words = base + number * capacity
    for row in range(n_rows):
        tag, at, end = note_of(item_at(cells, row * width + number + 1))
        put_item(columns.words, words + row, np.uint64(begin + at))
        put_item(columns.words, words + capacity + row, np.uint64(begin + end))
        put_byte(columns.tags, base + row, tag)


@inlined
def _is_empty(cells: Any, n_rows: Any, number: Any, width: Any) -> Any:
    """Whether no row has a value in a column."""
    row = 0
    while row < n_rows and item_at(cells, row * width + number + 1) == _NONE:
        row += 1
    return row == n_rows


_COLUMNS = (
    "Columns(int8[:], out(uint64[:]), out(uint8[:]), out(uint8[:]), out(int64[:]), out(int64[:]), "
    "out(uint8[:]), out(int64[:]))"
)


@kernel(f"uint8[:], uint64[:], int64[:], {_COLUMNS}, int64[:]", fastmath=False, allocates=False)
def fill_columns(data: Any, cells: Any, rows: Any, columns: Columns, state: Any) -> None:
    """Fill columns with the cells of a block that was walked; see `walk.walk_lines`."""
    n_rows, begin, first = state[N_ROWS], state[BEGIN], columns.used[ROWS]
    lines, capacity = columns.lines, _capacity(columns)
    for row in range(n_rows):
        at = first + row
        put_item(lines, LINE * capacity + at, item_at(rows, 3 * row + LINE))
        put_item(lines, START * capacity + at, begin + item_at(rows, 3 * row + START))
        put_item(lines, END * capacity + at, begin + item_at(rows, 3 * row + END))
    for number in range(columns.kind.size):
        kind = columns.kind[number]
        if _is_empty(cells, n_rows, number, columns.kind.size + 1):
            # there are zeros already
            continue
        if kind == PLACES:
            _fill_places(cells, n_rows, columns, number, begin)
        elif kind == WHOLE:
            _fill_integers(data, cells, n_rows, columns, number)
        elif kind == WRITTEN:
            _fill_written(data, cells, n_rows, columns, number, begin)
        else:
            _fill_texts(data, cells, n_rows, columns, number)
    columns.used[ROWS] = first + n_rows
