r"""Where lines end, as Python's text files end them: ``\n``, ``\r\n`` or ``\r``."""

from typing import Any

import numpy as np
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.bits import count_ones, trailing_zeros
from fastscore_machine.byte_sets import byte_marks
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.validation import read_only
from fastscore_machine.views import BLOCK, block_at, byte_at, put_item

from fastscore_readers.json.tokens import NEWLINE, RETURN, ends_line

__all__ = ["count_line_ends", "line_starts"]


_end_marks = byte_marks(b"\n", b"\r")
_NONE, _1, _63 = np.uint64(0), np.uint64(1), np.uint64(63)


def count_line_ends(data: Bytes) -> int:
    """Count the line ends in a buffer."""
    return int(_count_ends(read_only(data)))


def line_starts(data: Bytes, *, after_return: bool = False) -> Longs:
    r"""Find where lines begin in one of several buffers that follow each other.

    Parameters
    ----------
    data
        The bytes, uint8.
    after_return
        Whether the buffer before ended with ``\r``, which may be half of a line end.

    Returns
    -------
    ndarray
        The position after each line end, ascending, int64: ``data.size`` after a ``\n`` at the
        very end, but nothing after a ``\r`` there; of the buffer before's last ``\r`` 0 or 1.
    """
    data = read_only(data)
    # memory that is not written to costs nothing
    starts = np.empty(1 + data.size, np.int64)
    return starts[: _note_starts(data, after_return, starts)]


@kernel("uint8[:]", returns="int64", fastmath=False, allocates=False)
def _count_ends(data: Any) -> int:
    size = data.size
    count = at = 0
    returned = _NONE
    while at + BLOCK <= size:
        newlines, returns = _end_marks(block_at(data, at))
        # a newline after a return ends no line of its own
        count += count_ones(returns) + count_ones(newlines & ~((returns << _1) | returned))
        returned = returns >> _63
        at += BLOCK
    while at < size:
        byte = byte_at(data, at)
        count += byte == RETURN or (byte == NEWLINE and returned == _NONE)
        returned = _1 if byte == RETURN else _NONE
        at += 1
    return count


@inlined
def _next_end(data: Any, at: Any) -> Any:
    """Position of the line end at or after a position, or the data's end."""
    size = data.size
    while at + BLOCK <= size:
        newlines, returns = _end_marks(block_at(data, at))
        if newlines | returns != _NONE:
            return at + trailing_zeros(newlines | returns)
        at += BLOCK
    while at < size and not ends_line(byte_at(data, at)):
        at += 1
    return at


@kernel("uint8[:], bool, out(int64[:])", returns="int64", fastmath=False, allocates=False)
def _note_starts(data: Any, after_return: bool, starts: Any) -> int:
    """Note where lines begin after line ends; return how many."""
    size = data.size
    count = at = 0
    if after_return and size > 0:
        at = 1 if byte_at(data, 0) == NEWLINE else 0
        put_item(starts, 0, at)
        count = 1
    while at < size:
        at = _next_end(data, at)
        if at >= size:
            break
        returned = byte_at(data, at) == RETURN
        at += 1
        if returned:
            if at == size:
                break
            if byte_at(data, at) == NEWLINE:
                at += 1
        put_item(starts, count, at)
        count += 1
    return count
