"""Values of a block as Arrow columns, while it is in the cache: views of texts, and integers.

Texts are copied out of the block, one that is as in the row before only once. What no column of
its kind takes as it is (another type, half of a surrogate pair, an integer beyond 64 bits) is
counted as odd and left to whoever knows what becomes of it.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_machine.compiling import always_inlined, inlined, kernel
from fastscore_machine.views import (
    BLOCK,
    byte_at,
    item_at,
    low_bytes,
    put_block,
    put_byte,
    put_item,
    same_bytes,
    signed,
    word_at,
)

from fastscore_readers.json.tokens import ESCAPED, INTEGER, MINUS, NULL, STRING, unescape
from fastscore_readers.json.walk import Columns

Longs = npt.NDArray[np.int64]

TEXT, TEXT_OR_WHOLE, WHOLE = range(3)
"""What a column is filled with: strings, those and the digits of integers, or integers."""

_INLINE = 12
_ZERO = 0x30
_MOST_DIGITS = 18
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_NONE = np.uint64(0)


class Fills(NamedTuple):
    """Which columns are filled: k of them.

    Parameters
    ----------
    kind : int8 (k,)
        `TEXT`, `TEXT_OR_WHOLE` or `WHOLE`.
    base, bytes_base : int64 (k,)
        Where the kinds and the bytes stand of the values that it is filled with, see
        `walk.Tables`; the bytes are those of the block's rows alone.
    words : uint64 (2 * k * capacity,)
        A text column's views, two words each; an integer column's values, from the same place on.
    valid : uint8 (k * capacity,)
        Whether a row has a value.
    odd : int64 (k,)
        How many values were left out that are not null.
    texts : uint8
        The texts that do not fit into their views; 64 bytes longer than all can be.
    used : int64 (1,)
        How many bytes of them are written.
    """

    kind: npt.NDArray[np.int8]
    base: Longs
    bytes_base: Longs
    words: npt.NDArray[np.uint64]
    valid: npt.NDArray[np.uint8]
    odd: Longs
    texts: npt.NDArray[np.uint8]
    used: Longs


@dataclass(frozen=True, slots=True)
class Filled:
    """A column of n rows as Arrow has it.

    Parameters
    ----------
    values : uint64
        String views, (n, 2), or the words of int64 values, (n,).
    texts : uint8
        What the views refer to as buffer 0.
    valid : bool (n,)
        Which rows have a value; the others' are 0.
    odd
        How many values are not null but could not be taken as they are.
    """

    values: npt.NDArray[np.uint64]
    texts: npt.NDArray[np.uint8]
    valid: npt.NDArray[np.bool_]
    odd: int


def fill_room(kinds: list[int], bases: tuple[Longs, Longs], capacity: int, n_bytes: int) -> Fills:
    """Allocate room for as many rows of as many bytes of text."""
    return Fills(
        np.array(kinds, np.int8),
        *bases,
        np.zeros(2 * len(kinds) * capacity, np.uint64),
        np.zeros(len(kinds) * capacity, np.uint8),
        np.zeros(len(kinds), np.int64),
        np.empty(n_bytes + 2 * BLOCK, np.uint8),
        np.zeros(1, np.int64),
    )


def filled_columns(fills: Fills, capacity: int, n_rows: int) -> list[Filled]:
    """Return the columns that were filled."""
    found = []
    for number, kind in enumerate(fills.kind.tolist()):
        width = 1 if kind == WHOLE else 2
        first = 2 * number * capacity
        values = fills.words[first : first + width * n_rows]
        if kind != WHOLE:
            values = values.reshape(n_rows, 2)
        valid = fills.valid[number * capacity : number * capacity + n_rows].view(np.bool_)
        texts = fills.texts[: int(fills.used[0])]
        found.append(Filled(values, texts, valid, int(fills.odd[number])))
    return found


@always_inlined
def _any(flags: Any, at: Any, length: Any) -> Any:
    """Whether any of some bytes is not 0."""
    behind = at + length
    while at + 8 <= behind:
        if word_at(flags, at) != _NONE:
            return True
        at += 8
    while at < behind:
        if byte_at(flags, at) != 0:
            return True
        at += 1
    return False


@always_inlined
def _copy(source: Any, at: Any, length: Any, target: Any, to: Any) -> None:
    """Copy a text by blocks; up to 63 bytes more are read, and written."""
    done = 0
    while done < length:
        put_block(target, to + done, source, at + done)
        done += BLOCK


@inlined
def _fill_texts(
    data: Any, columns: Columns, fills: Fills, number: Any, begin: Any, rows: Any
) -> None:
    first_row, n_rows = rows
    capacity = fills.valid.size // fills.kind.size
    base, bytes_base = item_at(fills.base, number) + first_row, item_at(fills.bytes_base, number)
    word, flag = 2 * (number * capacity + first_row), number * capacity + first_row
    whole_too = item_at(fills.kind, number) == TEXT_OR_WHOLE
    used, texts, odd = item_at(fills.used, 0), fills.texts, 0
    before, before_at = _NONE, signed(-1)
    for row in range(n_rows):
        tag = item_at(columns.tags, base + row)
        low = high = _NONE
        is_valid = False
        if tag == STRING or tag == ESCAPED or (whole_too and tag == INTEGER):
            at = item_at(columns.start, bytes_base + row) - begin
            end = item_at(columns.end, bytes_base + row) - begin
            if tag == INTEGER and end - at == 2 and byte_at(data, at + 1) == _ZERO:
                # the one integer whose text is not its own digits is -0
                at += byte_at(data, at) == MINUS
            source, length = data, end - at
            if tag == ESCAPED:
                behind = unescape(data, at, end, texts, used)
                source, at, length = texts, used, behind - used
            is_valid = length >= 0
            if is_valid:
                head = word_at(source, at)
                if length <= _INLINE:
                    low = np.uint64(length) | low_bytes(head, min(length, 4)) << _HALF
                    high = low_bytes(word_at(source, at + 4), max(length - 4, 0))
                else:
                    low = np.uint64(length) | head << _HALF
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
        put_item(fills.words, word + 2 * row, low)
        put_item(fills.words, word + 2 * row + 1, high)
        put_byte(fills.valid, flag + row, is_valid)
    put_item(fills.used, 0, used)
    put_item(fills.odd, number, item_at(fills.odd, number) + odd)


@inlined
def _fill_integers(
    data: Any, columns: Columns, fills: Fills, number: Any, begin: Any, rows: Any
) -> None:
    first_row, n_rows = rows
    capacity = fills.valid.size // fills.kind.size
    base, bytes_base = item_at(fills.base, number) + first_row, item_at(fills.bytes_base, number)
    word, flag = 2 * number * capacity + first_row, number * capacity + first_row
    odd = 0
    for row in range(n_rows):
        tag = item_at(columns.tags, base + row)
        total, is_valid = signed(0), False
        if tag == INTEGER:
            at = item_at(columns.start, bytes_base + row) - begin
            end = item_at(columns.end, bytes_base + row) - begin
            negative = byte_at(data, at) == MINUS
            at += negative
            is_valid = end - at <= _MOST_DIGITS
            while at < end:
                total = total * 10 + (byte_at(data, at) - 0x30)
                at += 1
            total = -total if negative else total
        if not is_valid:
            odd += tag > NULL
            total = signed(0)
        put_item(fills.words, word + row, np.uint64(total))
        put_byte(fills.valid, flag + row, is_valid)
    put_item(fills.odd, number, item_at(fills.odd, number) + odd)


_COLUMNS = "Columns(uint8[:], int64[:], int64[:], int64[:])"
_FILLS = (
    "Fills(int8[:], int64[:], int64[:], out(uint64[:]), out(uint8[:]), out(int64[:]), "
    "out(uint8[:]), out(int64[:]))"
)


@kernel(
    f"uint8[:], {_COLUMNS}, {_FILLS}, int64, int64, int64",
    fastmath=False,
    allocates=False,
)
def fill_columns(
    data: Any, columns: Columns, fills: Fills, begin: int, first_row: int, n_rows: int
) -> None:
    """Fill columns with the values of some rows, which stand in a block that begins at a byte."""
    for number in range(fills.kind.size):
        rows = (first_row, n_rows)
        if not _any(columns.tags, item_at(fills.base, number) + first_row, n_rows):
            # there are zeros already
            continue
        if item_at(fills.kind, number) != WHOLE:
            _fill_texts(data, columns, fills, number, begin, rows)
        else:
            _fill_integers(data, columns, fills, number, begin, rows)
