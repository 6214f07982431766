"""Texts of a block as Arrow's string views, copied out of it while it is in the cache.

A text that is as in the row before is copied only once. What is no text (another type, half of a
surrogate pair) is counted as odd and left to whoever knows what becomes of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from fastscore_machine.arrays import Bytes, Longs, Mask, Words
from fastscore_machine.bits import trailing_zeros
from fastscore_machine.byte_sets import byte_marks
from fastscore_machine.compiling import always_inlined, inlined, kernel
from fastscore_machine.views import (
    BLOCK,
    block_at,
    item_at,
    put_block,
    put_item,
    same_bytes,
    signed,
)

from fastscore_readers.json.located_values import INLINE, view_of_text
from fastscore_readers.json.tokens import ESCAPED, NULL, STRING, unescape
from fastscore_readers.json.walk import note_of

_HALF, _LOW_HALF = np.uint64(32), np.uint64((1 << 32) - 1)
_NONE = np.uint64(0)
_quotes = byte_marks(b'"')


@dataclass(frozen=True, slots=True)
class Filled:
    """A column of n texts as Arrow has it.

    Parameters
    ----------
    values : uint64 (n, 2)
        String views.
    texts : uint8
        What the views refer to as buffer 0.
    valid : bool (n,)
        Which rows have a text; the others' views are 0.
    odd
        How many values are not null and yet no text.
    """

    values: Words
    texts: Bytes
    valid: Mask
    odd: int

    @property
    def changes(self) -> Mask:
        """Which rows surely have the text of the row before, if not those that are marked."""
        changed = np.zeros(self.valid.size, np.bool_)
        changed[1:] = (self.values[1:] != self.values[:-1]).any(axis=1)
        changed[1:] |= self.valid[1:] != self.valid[:-1]
        return changed


class TextRoom(NamedTuple):
    """Room for texts, and what there is of them so far.

    Parameters
    ----------
    texts : uint8
        The texts that do not fit into their views; 128 bytes longer than all can be.
    columns : int64 (k,)
        Which cells are wanted.
    odd : int64 (k,)
        See `Filled`.
    used : int64 (1,)
        How many bytes of ``texts`` there are.
    """

    texts: Bytes
    columns: Longs
    odd: Longs
    used: Longs


def text_room(columns: Sequence[int], n_bytes: int) -> TextRoom:
    """Allocate room for the texts of some columns, of as many bytes together."""
    texts = np.empty(n_bytes + 2 * BLOCK if columns else 0, np.uint8)
    return TextRoom(
        texts, np.array(columns, np.int64), np.zeros(len(columns), np.int64), np.zeros(1, np.int64)
    )


def fill_texts(data: Bytes, cells: Words, room: TextRoom, *, is_csv: bool) -> tuple[Words, Bytes]:
    """Fill columns with the texts of a block that was walked.

    Parameters
    ----------
    data
        The block.
    cells : uint64 (n, cells)
        Its noted values, a row each; see `walk.packed`.
    room
        Where texts go, and which cells are wanted.
    is_csv
        Whether quotes are doubled in cells that are `ESCAPED`; otherwise that is JSON.

    Returns
    -------
    tuple of arrays
        Views, uint64 (k, n, 2), and which rows have one, uint8 (k, n).
    """
    n = len(cells)
    words = np.zeros((room.columns.size, n, 2), np.uint64)
    valid = np.zeros((room.columns.size, n), np.uint8)
    _fill(data, cells, room, words, valid, is_csv)
    return words, valid


def joined_texts(parts: Sequence[Filled]) -> Filled:
    """Put columns one after another."""
    values: list[Words] = []
    shift = 0
    for part in parts:
        words = part.values.copy()
        is_long = words[:, 0] & _LOW_HALF > INLINE
        words[is_long, 1] += np.uint64(shift << 32)
        values.append(words)
        shift += part.texts.size
    return Filled(
        np.concatenate(values),
        np.concatenate([part.texts for part in parts]),
        np.concatenate([part.valid for part in parts]),
        sum(part.odd for part in parts),
    )


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


@kernel(
    "uint8[:], uint64[:, :], TextRoom(out(uint8[:]), int64[:], out(int64[:]), out(int64[:])), "
    "out(uint64[:, :, :]), out(uint8[:, :]), bool",
    fastmath=False,
    allocates=False,
)
def _fill(data: Any, cells: Any, room: TextRoom, words: Any, valid: Any, is_csv: bool) -> None:
    texts, used = room.texts, item_at(room.used, 0)
    for number in range(room.columns.size):
        column, odd = item_at(room.columns, number), 0
        before, before_at = _NONE, signed(-1)
        for row in range(cells.shape[0]):
            tag, at, end = note_of(cells[row, column])
            if tag != STRING and tag != ESCAPED:
                odd += tag > NULL
                continue
            source, length = data, end - at
            if tag == ESCAPED:
                if is_csv:
                    length = _unquote(data, at, end, texts, used) - used
                else:
                    length = unescape(data, at, end, texts, used) - used
                source, at = texts, used
                if length < 0:
                    odd += 1
                    continue
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
            words[number, row, 0], words[number, row, 1] = low, high
            valid[number, row] = 1
        room.odd[number] += odd
    put_item(room.used, 0, used)
