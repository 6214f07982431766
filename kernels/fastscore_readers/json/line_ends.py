r"""Positions of line ends, as in Python's text files: ``\n``, ``\r\n`` or ``\r``."""

from typing import Any

import numpy as np
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.byte_blocks import byte_marks
from fastscore_jit.compiling import kernel
from fastscore_jit.memory import BLOCK, address_of, block_at, byte_at, put_item, store_positions
from fastscore_jit.validation import read_only

from fastscore_readers.json.tokens import NEWLINE, RETURN

_end_marks = byte_marks(b"\n", b"\r")
_STEP_BYTES, _PIECE_BYTES = 1 << 10, 1 << 20
_1, _63 = np.uint64(1), np.uint64(63)


def count_line_ends(data: UInt8Array) -> int:
    """Count the line ends in a buffer."""
    count, begins = 0, np.empty(min(data.size, _PIECE_BYTES) + BLOCK, np.uint32)
    for at in range(0, data.size, _PIECE_BYTES):
        count += _note_begins(read_only(data[at : at + _PIECE_BYTES]), begins)
        # a line end across two pieces
        count -= data[at - 1 : at + 1].tobytes() == b"\r\n"
    return int(count)


def line_begins(data: UInt8Array) -> Int64Array:
    r"""Return the position after each line end, ascending, int64 (n,).

    After a ``\r`` at the end of the data it is ``data.size``, though the line end may continue.
    """
    if data.size >> 32:
        raise ValueError(f"{data.size} bytes to find lines in; expected fewer than 4 GiB")
    begins = np.empty(data.size + BLOCK, np.uint32)
    return begins[: _note_begins(read_only(data), begins)].astype(np.int64)


def last_end(data: bytes | memoryview) -> int:
    """Return the position after the last complete line end of ``data``, 0 without any."""
    end, step = len(data), _STEP_BYTES
    while end > 0:
        begin = max(0, end - step)
        cut = bytes(data[begin:end]).rfind(b"\n") + 1
        if cut:
            return begin + cut
        end, step = begin, 2 * step
    # a carriage return at the end may be the first half of a line end
    return bytes(data).rfind(b"\r", 0, max(len(data) - 1, 0)) + 1


@kernel("uint8[:], out(uint32[:])", returns="int64", fastmath=False, allocates=False)
def _note_begins(data: Any, begins: Any) -> int:
    """Record where lines begin after line ends; return the number of lines."""
    size = data.size
    count = at = 0
    while at + BLOCK < size:
        newlines, returns = _end_marks(block_at(data, at))
        followed = newlines >> _1 | np.uint64(byte_at(data, at + BLOCK) == NEWLINE) << _63
        place = address_of(begins, 4 * count, 4 * BLOCK)
        count += store_positions(place, at + 1, newlines | (returns & ~followed))
        at += BLOCK
    while at < size:
        byte = byte_at(data, at)
        at += 1
        if byte == NEWLINE or (byte == RETURN and (at == size or byte_at(data, at) != NEWLINE)):
            put_item(begins, count, at)
            count += 1
    return count
