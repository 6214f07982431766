"""Where lines begin, by strides of a file: all that is needed where each line stands for itself."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from fastscore_jit.arrays import Int64Array
from fastscore_readers.json.line_ends import line_begins


@dataclass(frozen=True, slots=True)
class BlockStrides:
    """What `line_strides` tells of the lines that surely begin in a block of a file.

    Parameters
    ----------
    begin
        Where the block begins.
    first_byte, last_byte
        Its ends; both empty when it is.
    strides
        As of `line_strides`, but numbered from 0 on, and without a line that begins where the block
        does: that is for the block before to tell.
    """

    begin: int
    first_byte: bytes
    last_byte: bytes
    strides: Int64Array


def block_strides(begin: int, block: bytes | memoryview, stride: int) -> BlockStrides:
    """Find the lines that begin in a block, by strides of so many bytes of the file."""
    data = np.frombuffer(block, np.uint8)
    starts = line_begins(data)
    starts = begin + starts[starts < data.size]
    numbers = starts // stride
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    after = np.append(first, starts.size)[1:]
    strides = np.stack((numbers[first], starts[first], starts[after - 1], first, after - first))
    return BlockStrides(begin, bytes(block[:1]), bytes(block[-1:]), strides)


def line_strides(blocks: Iterable[BlockStrides], stride: int) -> Int64Array:
    """Find the first and the last line that begin in each stride of a file.

    Parameters
    ----------
    blocks
        The file's blocks, in order.
    stride
        The bytes of a stride.

    Returns
    -------
    ndarray
        int64 (5, strides): their numbers, ascending; where the first and the last line begin;
        the number of the first one; how many begin there, blank ones too. Strides in which no line
        begins are left out; one that blocks share may stand there twice.
    """
    found = [np.empty((5, 0), np.int64)]
    line, before = 1, b"\n"
    for block in blocks:
        if not block.last_byte:
            continue
        if before == b"\n" or (before == b"\r" and block.first_byte != b"\n"):
            at = block.begin
            found.append(np.array([[at // stride], [at], [at], [line], [1]], np.int64))
            line += 1
        found.append(block.strides + np.array([[0], [0], [0], [line], [0]]))
        line += int(block.strides[4].sum())
        before = block.last_byte
    return np.concatenate(found, axis=1)
