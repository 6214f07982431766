r"""Where lines end, as Python's text files end them: ``\n``, ``\r\n`` or ``\r``."""

from typing import Any

import numpy as np
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.byte_sets import byte_marks
from fastscore_machine.compiling import kernel
from fastscore_machine.memory import store_positions
from fastscore_machine.validation import read_only
from fastscore_machine.views import BLOCK, block_at, byte_at, put_item, room_at

from fastscore_readers.json.tokens import NEWLINE, RETURN, ends_line

__all__ = ["count_line_ends", "line_begins"]


_end_marks = byte_marks(b"\n\r")


def count_line_ends(data: Bytes) -> int:
    """Count the line ends in a buffer."""
    return line_begins(data).size


def line_begins(data: Bytes) -> Longs:
    """Return the position after each line end in a buffer, ascending, int64.

    It is ``data.size`` after one at the very end, though a return there may be half of one.
    """
    # memory that is not written to costs nothing
    room = np.empty(data.size + BLOCK, np.uint32)
    begins = room[: _note_ends(read_only(data), room)].astype(np.int64) + 1
    if (data[begins - 1] == RETURN).any():
        first, after = begins[:-1], begins[1:]
        is_half = (after == first + 1) & (data[first - 1] == RETURN) & (data[first] == NEWLINE)
        begins = np.append(first[~is_half], begins[-1:])
    return begins


@kernel("uint8[:], out(uint32[:])", returns="int64", fastmath=False, allocates=False)
def _note_ends(data: Any, ends: Any) -> int:
    """Note where newlines and returns stand; return how many there are."""
    count = at = 0
    while at + BLOCK <= data.size:
        room = room_at(ends, 4 * count, 4 * BLOCK)
        count += store_positions(room, at, _end_marks(block_at(data, at)))
        at += BLOCK
    while at < data.size:
        if ends_line(byte_at(data, at)):
            put_item(ends, count, at)
            count += 1
        at += 1
    return count
