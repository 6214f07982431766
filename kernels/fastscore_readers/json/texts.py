"""JSON texts that stand anywhere in a buffer, one after another in blocks that are walked.

Each text is a line of the walk. Line ends within a text become tabs, which are as good between
values and as bad within strings.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.byte_sets import byte_marks
from fastscore_jit.compiling import kernel
from fastscore_jit.validation import as_vector, same_length
from fastscore_jit.views import BLOCK, block_at, byte_at, item_at, put_block, put_byte

from fastscore_readers.json.blocks import FOREVER, Walker
from fastscore_readers.json.tokens import ends_line
from fastscore_readers.json.walk import LINE, NUMBER, VALUES, Notes, Plan

BLOCK_BYTES = 512 << 10
_NEWLINE, _TAB = 10, 9
_line_ends = byte_marks(b"\n\r")


@dataclass(frozen=True, slots=True)
class WalkedTexts:
    r"""What was noted of some texts.

    Parameters
    ----------
    notes, n_notes
        The notes, which are good until the thread walks others, and how many there are.
    lines : int64 (2 * n,)
        Of each good text its number, and how far its bytes stand after those that are noted.
    faulty : int64
        The numbers of the texts that are no JSON.
    numbered
        Whether an escape that begins with ``\u`` was seen.
    """

    notes: Notes
    n_notes: int
    lines: Int64Array
    faulty: Int64Array
    numbered: bool


def walk_texts(
    data: npt.ArrayLike, starts: npt.ArrayLike, ends: npt.ArrayLike, plan: Plan, is_utf8: bool
) -> WalkedTexts:
    """Walk some texts.

    Parameters
    ----------
    data : uint8
        Where they stand.
    starts, ends : int64 (n,)
        Their bytes.
    plan
        What is wanted of each.
    is_utf8
        Whether the texts are known to be UTF-8.
    """
    data = as_vector("data", data, np.uint8)
    starts, ends = as_vector("starts", starts, np.int64), as_vector("ends", ends, np.int64)
    same_length("starts", starts.size, "ends", ends.size)
    wrong = (starts < 0) | (ends < starts) | (ends > data.size)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"`starts` and `ends` hold {starts[at]} and {ends[at]} at position {at}; "
            f"expected ranges within 0 and {data.size}"
        )
    walker, n = Walker(plan, VALUES, np.array(FOREVER), is_utf8), starts.size
    # a byte after each
    after = np.cumsum(ends - starts + 1)
    lines = np.empty((n, 2), np.int64)
    first = n_good = 0
    numbered = False
    while first < n:
        before = int(after[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(after, before + BLOCK_BYTES, side="right")))
        size = int(after[last - 1]) - before
        memory = walker.reserve(size)
        _gather(data, starts[first:last], ends[first:last], memory.data)
        walker.state[NUMBER] = first
        walker.walk_reserved(size)
        numbered |= memory.numbered
        number = memory.rows[: 3 * walker.n_rows].reshape(-1, 3)[:, LINE]
        good = lines[n_good : n_good + number.size]
        good[:, 0] = number
        # where a text begins in the block: after all before it
        good[:, 1] = ends[number] - (after[number] - 1 - before)
        first, n_good = last, n_good + number.size
    faulty = np.array(walker.faults[::5], np.int64)
    return WalkedTexts(walker.notes, walker.n_notes, lines[:n_good].reshape(-1), faulty, numbered)


@kernel("uint8[:], int64[:], int64[:], out(uint8[:])", fastmath=False, allocates=False)
def _gather(data: Any, starts: Any, ends: Any, out: Any) -> None:
    """Copy texts one after another, each with a line end after it.

    Line ends within a text become tabs.
    """
    to = 0
    for text in range(starts.size):
        at = item_at(starts, text)
        length = item_at(ends, text) - at
        done = 0
        while length >= BLOCK and done < length:
            # the last block begins within the one before
            done = min(done, length - BLOCK)
            put_block(out, to + done, data, at + done)
            line_ends = _line_ends(block_at(data, at + done))
            while line_ends != 0:
                put_byte(out, to + done + trailing_zeros(line_ends), _TAB)
                line_ends &= line_ends - np.uint64(1)
            done += BLOCK
        for place in range(done, length):
            byte = byte_at(data, at + place)
            put_byte(out, to + place, _TAB if ends_line(byte) else byte)
        put_byte(out, to + length, _NEWLINE)
        to += length + 1
