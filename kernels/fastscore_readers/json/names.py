"""What lines name: the values of a few keys, for telling apart what the lines belong to.

Nothing is kept of the lines themselves. Neighbours that give the keys the same values are one run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.validation import read_only
from fastscore_machine.views import byte_at, item_at, put_byte, same_bytes

from fastscore_readers.json.blocks import FOREVER, Walker, block_ends
from fastscore_readers.json.shapes import plan_of_keys
from fastscore_readers.json.walk import END, LINE, NUMBER, OBJECTS, START, note_of

__all__ = ["NamedLines", "named_lines"]


@dataclass(frozen=True, slots=True)
class NamedLines:
    """n lines, or runs of them, with the values that they give k keys.

    Parameters
    ----------
    data
        The values side by side, uint8: nothing of the buffer that they were found in.
    line, start, last
        Number and start of each run's first line, and the start of its last one, int64 (n,).
    tags
        Types of the values, as in `LineScan`, uint8 (k, n).
    value_start, value_end
        Their bytes in ``data``, a string's without its quotes, int64 (k, n).
    """

    data: Bytes
    line: Longs
    start: Longs
    last: Longs
    tags: Bytes
    value_start: Longs
    value_end: Longs


class _Runs(NamedTuple):
    """Room for the n runs of a block that give k keys values.

    Parameters
    ----------
    lines : int64 (n, 3)
        Number of the first line, start of the first and of the last one.
    tags, start, end : uint8, int64 (k, n)
        Types of the values, and where they are kept.
    kept : uint8
        Their bytes.
    """

    lines: Longs
    tags: Bytes
    start: Longs
    end: Longs
    kept: Bytes


def named_lines(
    data: Bytes, keys: Sequence[bytes], *, line: int = 1, one_by_one: bool = False
) -> NamedLines:
    """Find the values that lines give the wanted keys.

    Parameters
    ----------
    data
        JSON Lines, uint8.
    keys
        The wanted top-level keys, as UTF-8.
    line
        The number of the first line.
    one_by_one
        Whether every line counts for itself; otherwise neighbours that are written alike are one
        run. Runs that stand side by side may be alike.

    Returns
    -------
    NamedLines
        The lines that are objects, in order; others, and blank ones, belong to no run.

    Raises
    ------
    ValueError
        Keys are not distinct.
    """
    data = read_only(data)
    walker = Walker(plan_of_keys(tuple(keys)), OBJECTS, np.array(FOREVER))
    walker.state[NUMBER] = line
    found = []
    begin = 0
    for end in block_ends(data) or [0]:
        walker.walk(data[begin:end], begin)
        found.append(_named(walker, begin, one_by_one))
        begin = end
    return joined_names(found) if len(found) > 1 else found[0]


def joined_names(found: Sequence[NamedLines]) -> NamedLines:
    """Put what was found in several buffers one after another."""
    shifts = np.cumsum([0, *(names.data.size for names in found[:-1])])
    counts = [names.line.size for names in found]
    shift = np.repeat(shifts, counts)
    return NamedLines(
        data=np.concatenate([names.data for names in found]),
        line=np.concatenate([names.line for names in found]),
        start=np.concatenate([names.start for names in found]),
        last=np.concatenate([names.last for names in found]),
        tags=np.concatenate([names.tags for names in found], axis=1),
        value_start=np.concatenate([names.value_start for names in found], axis=1) + shift,
        value_end=np.concatenate([names.value_end for names in found], axis=1) + shift,
    )


def _named(walker: Walker, begin: int, one_by_one: bool) -> NamedLines:
    """Find the runs of a block that was walked."""
    n, k, room = walker.n_rows, walker.plan.n_cells - 1, walker.room
    starts, ends = np.empty((2, k, n), np.int64)
    runs = _Runs(np.empty((n, 3), np.int64), np.zeros((k, n), np.uint8), starts, ends, room.key)
    count = int(_keep_runs(room.data, walker.notes.value, room.rows, runs, one_by_one))
    first, start, last = runs.lines[:count].T
    ends = ends[:, :count]
    return NamedLines(
        data=room.key[: int(ends.max(initial=0))].copy(),
        line=first,
        start=start + begin,
        last=last + begin,
        tags=runs.tags[:, :count],
        value_start=starts[:, :count],
        value_end=ends,
    )


@inlined
def _alike(data: Any, cells: Any, one: Any, other: Any) -> Any:
    """Whether two values are written alike."""
    kind, start, end = note_of(item_at(cells, one))
    other_kind, other_start, other_end = note_of(item_at(cells, other))
    if kind != other_kind or end - start != other_end - other_start:
        return False
    return same_bytes(data, start, data, other_start, end - start)


@kernel(
    "uint8[:], uint64[:], int64[:], _Runs(out(int64[:, :]), out(uint8[:, :]), out(int64[:, :]), "
    "out(int64[:, :]), out(uint8[:])), bool",
    returns="int64",
    fastmath=False,
    allocates=False,
)
def _keep_runs(data: Any, cells: Any, rows: Any, runs: _Runs, one_by_one: bool) -> int:
    """Keep what runs of rows name; return how many runs there are."""
    n_keys, n_rows = runs.tags.shape
    count = used = 0
    for row in range(n_rows):
        first, start = row * (n_keys + 1) + 1, item_at(rows, 3 * row + START)
        same = row > 0 and not one_by_one
        for key in range(n_keys):
            same = same and _alike(data, cells, first + key, first + key - n_keys - 1)
        if same:
            runs.lines[count - 1, END] = start
            continue
        runs.lines[count, LINE] = item_at(rows, 3 * row + LINE)
        runs.lines[count, START] = runs.lines[count, END] = start
        for key in range(n_keys):
            kind, at, end = note_of(item_at(cells, first + key))
            runs.tags[key, count] = kind
            runs.start[key, count] = used
            while at < end:
                put_byte(runs.kept, used, byte_at(data, at))
                at += 1
                used += 1
            runs.end[key, count] = used
        count += 1
    return count
