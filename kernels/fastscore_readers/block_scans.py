"""What whole blocks of bytes tell fast: how many line ends there are, and whether all is UTF-8.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

import numpy as np
from fastscore_machine.bits import count_ones
from fastscore_machine.byte_blocks import BLOCK, equal_bytes, lower_bytes, whole_characters
from fastscore_machine.compiling import inlined
from fastscore_machine.memory import load_byte

from fastscore_readers.text_bytes import NEWLINE, RETURN, utf8_fault

_NONE, _ALL = np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)
_1, _63 = np.uint64(1), np.uint64(63)


@inlined
def line_ends_within(data: int, index: int, stop: int) -> int:
    """Count the line ends in [index, stop)."""
    count = 0
    returned = _NONE
    while index + BLOCK <= stop:
        newlines, returns = equal_bytes(data + index, NEWLINE), equal_bytes(data + index, RETURN)
        # a newline behind a return ends no line of its own
        count += count_ones(returns) + count_ones(newlines & ~((returns << _1) | returned))
        returned = returns >> _63
        index += BLOCK
    for position in range(index, stop):
        byte = load_byte(data, position)
        if byte == RETURN or (byte == NEWLINE and returned == _NONE):
            count += 1
        returned = _1 if byte == RETURN else _NONE
    return count


@inlined
def first_bad_byte(data: int, index: int, stop: int) -> int:
    """Position of the first byte in [index, stop) that is not valid UTF-8, or -1."""
    while index + BLOCK <= stop:
        ascii_bytes = lower_bytes(data + index, 0x80)
        size = BLOCK
        if ascii_bytes != _ALL:
            size = whole_characters(data + index, ascii_bytes, BLOCK, False)
            if size < 0:
                break
        index += size
    return utf8_fault(data, index, stop)
