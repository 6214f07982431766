"""What lines name: the values of a few keys, for telling apart what the lines belong to.

Nothing is kept of the lines themselves. Neighbours that give the keys the same values are one run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.validation import read_only
from fastscore_machine.views import (
    byte_at,
    item_at,
    put_byte,
    put_item,
    same_bytes,
)

from fastscore_readers.json.blocks import FOREVER, Room, Walker, block_ends
from fastscore_readers.json.shapes import ShapePlan, plan_of_keys
from fastscore_readers.json.tokens import ABSENT
from fastscore_readers.json.walk import (
    END,
    LINE,
    NUMBER,
    OBJECTS,
    START,
    Columns,
    Tables,
    place_notes,
)

__all__ = ["NamedLines", "named_lines"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]


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
        Types of the values, as in `JsonlScan`, uint8 (k, n).
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
    """Room for the runs of a block: lines as `walk.Lines` has them, and the values of k keys."""

    lines: Longs
    columns: Columns
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
    shape = plan_of_keys(tuple(keys))
    walker = Walker(shape.plan, OBJECTS, np.array(FOREVER))
    walker.state[NUMBER] = line
    found = [_named(walker.walk(data[:0], 0), walker, shape, 0, one_by_one)]
    begin = 0
    for end in block_ends(data):
        room = walker.walk(data[begin:end], begin)
        found.append(_named(room, walker, shape, begin, one_by_one))
        begin = end
    return joined_names(found)


def joined_names(found: Sequence[NamedLines]) -> NamedLines:
    """Put what was found in several buffers one behind another."""
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


def _named(
    room: Room, walker: Walker, shape: ShapePlan, begin: int, one_by_one: bool
) -> NamedLines:
    """Find the runs of a block that was walked."""
    n, places = walker.n_rows, shape.grain.size
    bases = np.arange(places, dtype=np.int64) * n
    tables = Tables(shape.grain, shape.is_element, bases, bases, np.zeros(1, np.int64))
    columns = _columns(places * n)
    lines = np.stack((np.arange(n), np.zeros(n, np.int64)), axis=1).reshape(-1)
    place_notes(
        room.notes, tables, columns, room.slots, lines, np.zeros(1, np.int64), walker.n_notes
    )
    runs = _Runs(np.empty(3 * n, np.int64), _columns((places - 1) * n), room.key)
    count = int(_keep_runs(room.data, columns, room.rows, runs, n, one_by_one))
    first, start, last = runs.lines.reshape(n, 3)[:count].T
    keys = (places - 1, n)
    ends = runs.columns.end.reshape(keys)[:, :count]
    return NamedLines(
        data=room.key[: int(ends.max(initial=0))].copy(),
        line=first,
        start=start + begin,
        last=last + begin,
        tags=runs.columns.tags.reshape(keys)[:, :count],
        value_start=runs.columns.start.reshape(keys)[:, :count],
        value_end=ends,
    )


def _columns(size: int) -> Columns:
    starts, ends = np.empty((2, size), np.int64)
    return Columns(np.zeros(size, np.uint8), starts, ends, starts)


@inlined
def _alike(data: Any, columns: Columns, one: Any, other: Any) -> Any:
    """Whether two values are written alike."""
    tag = item_at(columns.tags, one)
    if tag != item_at(columns.tags, other):
        return False
    if tag == ABSENT:
        return True
    start, other_start = item_at(columns.start, one), item_at(columns.start, other)
    length = item_at(columns.end, one) - start
    if length != item_at(columns.end, other) - other_start:
        return False
    return same_bytes(data, start, data, other_start, length)


@inlined
def _keep(data: Any, columns: Columns, at: Any, runs: _Runs, to: Any, used: Any) -> Any:
    """Keep a value; return how many bytes are kept then."""
    tag = item_at(columns.tags, at)
    put_item(runs.columns.tags, to, tag)
    put_item(runs.columns.start, to, used)
    if tag != ABSENT:
        for place in range(item_at(columns.start, at), item_at(columns.end, at)):
            put_byte(runs.kept, used, byte_at(data, place))
            used += 1
    put_item(runs.columns.end, to, used)
    return used


_COLUMNS = "Columns(uint8[:], int64[:], int64[:], int64[:])"
_RUNS = (
    "_Runs(out(int64[:]), Columns(out(uint8[:]), out(int64[:]), out(int64[:]), out(int64[:])), "
    "out(uint8[:]))"
)


@kernel(
    f"uint8[:], {_COLUMNS}, int64[:], {_RUNS}, int64, bool",
    returns="int64",
    fastmath=False,
    allocates=False,
)
def _keep_runs(
    data: Any, columns: Columns, rows: Any, runs: _Runs, n_rows: int, one_by_one: bool
) -> int:
    """Keep what runs of rows name; return how many runs there are.

    The rows' values of a key stand behind those of the one before; the first place is the lines'.
    """
    places = columns.tags.size // n_rows if n_rows > 0 else 0
    count = used = 0
    for row in range(n_rows):
        start = item_at(rows, 3 * row + START)
        same = row > 0 and not one_by_one
        for place in range(1, places):
            if same:
                at = place * n_rows + row
                same = _alike(data, columns, at, at - 1)
        if same:
            put_item(runs.lines, 3 * (count - 1) + END, start)
            continue
        put_item(runs.lines, 3 * count + LINE, item_at(rows, 3 * row + LINE))
        put_item(runs.lines, 3 * count + START, start)
        put_item(runs.lines, 3 * count + END, start)
        for place in range(1, places):
            at, to = place * n_rows + row, (place - 1) * n_rows + count
            used = _keep(data, columns, at, runs, to, used)
        count += 1
    return count
