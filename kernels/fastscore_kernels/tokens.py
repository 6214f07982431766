"""Texts as sequences of numbered tokens, which are separated by spaces."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrow import StringColumn, copied_texts, string_column
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import inlined
from fastscore_jit.validation import read_only

_SPACE = 32
_SMALLEST_TABLE = 1 << 12
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class TokenSequences:
    """The tokens of texts: text ``i`` is ``ids[offsets[i]:offsets[i + 1]]``."""

    ids: npt.NDArray[np.int32]  # the token's place in the vocabulary
    offsets: npt.NDArray[np.int64]
    vocabulary: StringColumn  # distinct tokens, in order of first appearance


def number_tokens(strings: Any) -> TokenSequences:
    """Split texts at spaces and number their distinct tokens by first appearance.

    Parameters
    ----------
    strings
        Arrow strings or a polars Series, without nulls. Runs of spaces count as one.

    Returns
    -------
    TokenSequences
        Independent of the number of threads: one pass reads all texts.
    """
    column = string_column("strings", strings)
    offsets = np.zeros(len(column) + 1, np.int64)
    _count_tokens(column.data, column.offsets, offsets)
    np.cumsum(offsets, out=offsets)
    ids = np.empty(offsets[-1], np.int32)
    table = np.full(_SMALLEST_TABLE, -1, np.int32)
    entries = np.empty((_SMALLEST_TABLE // 2, 3), np.int64)
    known = row = 0
    while True:
        row, known = _number_tokens(
            column.data, column.offsets, read_only(offsets), ids, table, entries, known, row
        )
        if row == len(column):
            break
        # a text is started only if there is room for all its tokens
        longest = int(offsets[row + 1] - offsets[row])
        size = 2 * table.size
        while size // 2 < known + longest:
            size *= 2
        table = np.full(size, -1, np.int32)
        grown = np.empty((size // 2, 3), np.int64)
        grown[:known] = entries[:known]
        entries = grown
        _rehash(entries, known, table)
    starts, sizes, _ = entries[:known].T
    return TokenSequences(
        ids, offsets, copied_texts(column.data.ctypes.data + starts, sizes.copy())
    )


@kernel("uint8[:], int64[:], out(int64[:])", fastmath=False)
def _count_tokens(data, offsets, counts):  # type: ignore[no-untyped-def]
    """Count the tokens of each text, (texts + 1,): from the second place on."""
    for row in range(offsets.size - 1):
        inside = False
        count = np.int64(0)
        for at in range(offsets[row], offsets[row + 1]):
            is_token = data[at] != _SPACE
            count += np.int64(is_token and not inside)
            inside = is_token
        counts[row + 1] = count


@inlined
def _find_slot(data, start, size, hashed, table, entries):  # type: ignore[no-untyped-def]
    """Return a token's slot, or the free slot for it."""
    mask = table.size - 1
    slot = np.int64(hashed >> np.uint64(20)) & mask
    while table[slot] >= 0:
        entry = table[slot]
        if entries[entry, 1] == size and np.uint64(entries[entry, 2]) == hashed:
            other = entries[entry, 0]
            same = True
            for at in range(size):
                if data[other + at] != data[start + at]:
                    same = False
                    break
            if same:
                break
        slot = (slot + 1) & mask
    return slot


@kernel(
    "uint8[:], int64[:], int64[:], out(int32[:]), out(int32[:]), out(int64[:, :]), int64, int64",
    returns="int64, int64",
    fastmath=False,
)
def _number_tokens(  # type: ignore[no-untyped-def]
    data, offsets, places, ids, table, entries, known, row
):
    """Assign numbers to the tokens from a row on; stop before a row that may not fit the table."""
    while row < offsets.size - 1:
        place = places[row]
        if known + places[row + 1] - place > entries.shape[0]:
            break
        at = offsets[row]
        end = offsets[row + 1]
        while at < end:
            if data[at] == _SPACE:
                at += 1
                continue
            start = at
            hashed = np.uint64(0)
            while at < end and data[at] != _SPACE:
                hashed = (hashed ^ np.uint64(data[at])) * _MULTIPLIER
                hashed ^= hashed >> np.uint64(32)
                at += 1
            slot = _find_slot(data, start, at - start, hashed, table, entries)
            if table[slot] < 0:
                table[slot] = known
                entries[known, 0] = start
                entries[known, 1] = at - start
                entries[known, 2] = np.int64(hashed)
                known += 1
            ids[place] = table[slot]
            place += 1
        row += 1
    return row, known


@kernel("int64[:, :], int64, out(int32[:])", fastmath=False)
def _rehash(entries, known, table):  # type: ignore[no-untyped-def]
    """Insert the first ``known`` entries into an empty table."""
    mask = table.size - 1
    for entry in range(known):
        slot = np.int64(np.uint64(entries[entry, 2]) >> np.uint64(20)) & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = entry
