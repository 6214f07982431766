"""Where lines begin, by cells of a file: all that is needed where each line stands for itself."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from fastscore_kernels.jsonl import line_starts

_RETURN = ord("\r")


def line_cells(
    blocks: Iterator[bytes] | Iterator[bytes | memoryview], cell: int
) -> npt.NDArray[np.int64]:
    """Find the first and the last line that begin in each cell of a file.

    Parameters
    ----------
    blocks
        The file's bytes in order; a block is used no more once the next is asked for.
    cell
        The bytes of a cell.

    Returns
    -------
    ndarray
        int64 (5, cells): the cells' numbers, ascending; where the first and the last line begin;
        the number of the first one; how many begin there, blank ones too. Cells in which no line
        begins are left out; one that blocks share may stand there twice.
    """
    found: list[npt.NDArray[np.int64]] = []
    begin, line = 0, 1
    begins, returned = True, False
    for block in blocks:
        data = np.frombuffer(block, np.uint8)
        starts = line_starts(data, after_return=returned)
        if begins:
            starts = np.append(0, starts)
        # a line that would begin behind the block begins with the next one, if there is any
        begins = bool(starts.size and starts[-1] == data.size)
        if begins:
            starts = starts[:-1]
        if starts.size:
            found.append(_by_cell(starts + begin, line, cell))
        returned = data.size > 0 and data[-1] == _RETURN
        begin, line = begin + data.size, line + starts.size
    return np.concatenate(found, axis=1) if found else np.zeros((5, 0), np.int64)


def _by_cell(starts: npt.NDArray[np.int64], line: int, cell: int) -> npt.NDArray[np.int64]:
    """Return what `line_cells` tells of lines, the first of which has the number ``line``."""
    cells = starts // cell
    first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
    behind = np.append(first[1:], starts.size)
    return np.stack((cells[first], starts[first], starts[behind - 1], line + first, behind - first))
