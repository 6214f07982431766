"""Where lines begin, by cells of a file: all that is needed where each line stands for itself."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from fastscore_readers.json.jsonl import line_starts

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BlockCells:
    """What `line_cells` tells of the lines that surely begin in a block of a file.

    Parameters
    ----------
    begin
        Where the block begins.
    first_byte, last_byte
        Its ends; both empty when it is.
    cells
        As of `line_cells`, but numbered from 0 on, and without a line that begins where the block
        does: that is for the block before to tell.
    """

    begin: int
    first_byte: bytes
    last_byte: bytes
    cells: Longs


def block_cells(begin: int, block: bytes | memoryview, cell: int) -> BlockCells:
    """Find the lines that begin in a block, by cells of so many bytes of the file."""
    data = np.frombuffer(block, np.uint8)
    starts = line_starts(data)
    starts = begin + starts[starts < data.size]
    numbers = starts // cell
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    behind = np.append(first, starts.size)[1:]
    cells = np.stack((numbers[first], starts[first], starts[behind - 1], first, behind - first))
    return BlockCells(begin, bytes(block[:1]), bytes(block[-1:]), cells)


def line_cells(blocks: Iterable[BlockCells], cell: int) -> Longs:
    """Find the first and the last line that begin in each cell of a file.

    Parameters
    ----------
    blocks
        The file's blocks, in order.
    cell
        The bytes of a cell.

    Returns
    -------
    ndarray
        int64 (5, cells): the cells' numbers, ascending; where the first and the last line begin;
        the number of the first one; how many begin there, blank ones too. Cells in which no line
        begins are left out; one that blocks share may stand there twice.
    """
    found = [np.empty((5, 0), np.int64)]
    line, before = 1, b"\n"
    for block in blocks:
        if not block.last_byte:
            continue
        if before == b"\n" or (before == b"\r" and block.first_byte != b"\n"):
            at = block.begin
            found.append(np.array([[at // cell], [at], [at], [line], [1]], np.int64))
            line += 1
        found.append(block.cells + np.array([[0], [0], [0], [line], [0]]))
        line += int(block.cells[4].sum())
        before = block.last_byte
    return np.concatenate(found, axis=1)
