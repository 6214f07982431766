r"""JSON Lines as columns: where every wanted value stands, and what is wrong with which line.

A line is read as ``json.loads(line.strip())`` reads it: NaN and Infinity are numbers, the last of
equal keys wins, control characters in strings are faults. Lines end as Python's text files end
them (``\n``, ``\r\n`` or ``\r``) and must be strict UTF-8. Two limits are this module's own:
values nested deeper than `MAX_DEPTH`, and integers of any length are integers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_machine.validation import read_only

from fastscore_readers.json.blocks import FOREVER, Room, Walker, block_ends
from fastscore_readers.json.faults import NOT_JSON, NOT_OBJECT, NOT_UTF8, TOO_DEEP
from fastscore_readers.json.fill import (
    Filled,
    fill_columns,
    fill_room,
    filled_columns,
)
from fastscore_readers.json.shapes import ShapePlan, plan_of_keys
from fastscore_readers.json.tokens import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    FLOAT,
    INTEGER,
    MAX_DEPTH,
    NULL,
    OBJECT,
    STRING,
    TRUE,
)
from fastscore_readers.json.walk import (
    CONTAINERS,
    N_BLANK,
    N_LINES,
    NUMBER,
    OBJECTS,
    Columns,
    Tables,
    place_notes,
)

__all__ = [
    "ABSENT",
    "ARRAY",
    "ESCAPED",
    "FALSE",
    "FLOAT",
    "INTEGER",
    "MAX_DEPTH",
    "MOST_VIEWED",
    "NOT_JSON",
    "NOT_OBJECT",
    "NOT_UTF8",
    "NULL",
    "OBJECT",
    "STRING",
    "TOO_DEEP",
    "TRUE",
    "JsonlScan",
    "scan_jsonl",
]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_NO_ELEMENTS = np.zeros(1, np.int64)
_PAGE_ITEMS, _LINES_APART = 512, 40
MOST_VIEWED = 1 << 31
"""What data are shorter than that string views reach."""


@dataclass(frozen=True, slots=True)
class JsonlScan:
    """What `scan_jsonl` found in a buffer of n valid rows and m faulty lines, for k keys.

    Parameters
    ----------
    data
        The buffer that was scanned, uint8.
    line, start, end
        Number of each row's line and its bytes in the buffer (line end excluded), int64 (n,).
    tags
        Type of each wanted value (`ABSENT` ... `OBJECT`), uint8 (k, n).
    value_start, value_end
        Bytes of each wanted value, a string's inside its quotes, int64 (k, n); meaningless where
        the tag is `ABSENT`.
    fault_line, fault_start, fault_end
        Number and bytes of each faulty line, int64 (m,).
    fault_status
        What is wrong with it (`NOT_JSON`, `NOT_OBJECT`, `NOT_UTF8` or `TOO_DEEP`), int64 (m,).
    fault_position
        The byte in the buffer at which it is wrong, int64 (m,).
    n_lines, n_blank
        All lines, and those of white space alone.
    next_line
        The number of the line that would follow.
    filled
        The columns that were asked for, by their key's number.
    again
        Scans once more without filling columns: `value_start` and `value_end` of filled ones mean
        nothing.
    """

    data: Bytes
    line: Longs
    start: Longs
    end: Longs
    tags: Bytes
    value_start: Longs
    value_end: Longs
    fault_line: Longs
    fault_start: Longs
    fault_end: Longs
    fault_status: Longs
    fault_position: Longs
    n_lines: int
    n_blank: int
    next_line: int
    filled: dict[int, Filled]
    again: Callable[[], "JsonlScan"]


class _Rows:
    """The rows of some data and their values: room for as many as lines are expected.

    Of values that columns are filled with, the bytes are kept for one block alone.
    """

    def __init__(
        self, shape: ShapePlan, capacity: int, fill: Mapping[int, int], most: int, n_bytes: int
    ) -> None:
        self.n, self.capacity = 0, capacity
        self.of = (shape, fill, most, n_bytes)
        places = shape.grain.size
        self.rows = np.empty((3, capacity), np.int64)
        self.tags = np.zeros((places, capacity), np.uint8)
        self.bytes = np.empty((2, places * capacity + len(fill) * most), np.int64)
        bases = np.arange(places, dtype=np.int64) * capacity
        bytes_bases = bases.copy()
        bytes_bases[list(fill)] = places * capacity + np.arange(len(fill)) * most
        self.tables = Tables(
            shape.grain, shape.is_element, bases, bytes_bases, np.zeros(1, np.int64)
        )
        starts, ends = self.bytes
        self.columns = Columns(self.tags.reshape(-1), starts, ends, _NO_ELEMENTS)
        filled = np.array(list(fill), np.int64)
        self.fills = fill_room(
            list(fill.values()), (bases[filled], bytes_bases[filled]), capacity, n_bytes
        )

    def add(self, room: Room, walker: Walker, begin: int) -> None:
        """Add the rows of a block that begins at a position."""
        n = walker.n_rows
        own = slice(self.n, self.n + n)
        self.rows[:, own] = room.rows[: 3 * n].reshape(n, 3).T
        self.rows[1:, own] += begin
        _, fill, _, _ = self.of
        self.tables.bytes_base[list(fill)] = self.fills.bytes_base - self.n
        lines = np.empty((n, 2), np.int64)
        lines[:, 0], lines[:, 1] = np.arange(self.n, self.n + n), begin
        place_notes(
            room.notes,
            self.tables,
            self.columns,
            room.slots,
            lines.reshape(-1),
            _NO_ELEMENTS,
            walker.n_notes,
        )
        if fill:
            fill_columns(room.data, self.columns, self.fills, begin, self.n, n)
        self.n += n

    def filled(self) -> dict[int, Filled]:
        """Return the filled columns by the number of their key."""
        _, fill, _, _ = self.of
        columns = filled_columns(self.fills, self.capacity, self.n)
        return {place - 1: column for place, column in zip(fill, columns, strict=True)}

    def widened(self, capacity: int) -> "_Rows":
        """Return the same rows with more room."""
        shape, fill, most, n_bytes = self.of
        wide = _Rows(shape, capacity, fill, most, n_bytes)
        wide.n = self.n
        for old, new in zip(self._matrices(), wide._matrices(), strict=True):
            width = 2 * self.n if old.dtype == np.uint64 else self.n
            new[:, :width] = old[:, :width]
        used = int(self.fills.used[0])
        wide.fills.texts[:used] = self.fills.texts[:used]
        wide.fills.odd[:], wide.fills.used[:] = self.fills.odd, self.fills.used
        return wide

    def _matrices(self) -> list[npt.NDArray[Any]]:
        """Return what is kept, row by row; two words of a filled column belong to a row."""
        _, fill, _, _ = self.of
        places, capacity = self.tags.shape
        kept = [values[: places * capacity].reshape(places, capacity) for values in self.bytes]
        valid = self.fills.valid.reshape(len(fill), capacity)
        words = self.fills.words.reshape(len(fill), 2 * capacity)
        return [self.rows, self.tags, *kept, valid, words]


def scan_jsonl(
    data: Bytes,
    keys: Sequence[bytes],
    *,
    restarts: Sequence[tuple[int, int]] | Longs = (),
    n_ends: int | None = None,
    array_key: bytes | None = None,
    fill: Mapping[bytes, int] | None = None,
) -> JsonlScan:
    """Scan a buffer of JSON Lines in one pass.

    Parameters
    ----------
    data
        The bytes, uint8, C-contiguous; read-only is fine.
    keys
        The top-level keys whose values are wanted, as UTF-8.
    restarts
        Ascending ``(position, line)`` pairs, or int64 (r, 2): the line that starts at ``position``
        has the number ``line``. Without one for position 0 the first line is 1.
    n_ends
        About how many line ends there are in ``data``, where that is known.
    array_key
        The key whose value a line is that is an array; without one such a line is a fault.
    fill
        The keys whose values are wanted as Arrow columns too, and of which kind: `fill.TEXT` or
        `fill.WHOLE`. The data are shorter than 2 GiB then.

    Returns
    -------
    JsonlScan
        The rows, the wanted values' types and places, and the faulty lines.
    """
    if data.dtype != np.uint8 or data.ndim != 1 or not data.flags.c_contiguous:
        raise ValueError(
            f"data must be a contiguous vector of uint8, found {data.dtype} of shape {data.shape}"
        )
    if fill and data.size >= MOST_VIEWED:
        raise ValueError(f"string views reach 2 GiB of data, found {data.size} bytes")
    data = read_only(data)
    shape = plan_of_keys(tuple(keys))
    table = np.append(np.asarray(restarts, np.int64).reshape(-1), FOREVER)
    walker = Walker(shape.plan, OBJECTS if array_key is None else CONTAINERS, table)
    ends = block_ends(data)
    most = max(np.diff(ends, prepend=0).tolist(), default=0)
    # columns a power of two apart would share the same few lines of the cache
    most += -most % _PAGE_ITEMS + _LINES_APART
    capacity = 1 + n_ends if n_ends is not None else 1 + data.size // 64
    places = {1 + keys.index(key): kind for key, kind in (fill or {}).items()}
    found = _Rows(shape, capacity, places, most, data.size if fill else 0)
    begin = 0
    for end in ends:
        room = walker.walk(data[begin:end], begin)
        behind = found.n + walker.n_rows
        if behind > found.capacity:
            found = found.widened(max(behind * (data.size + 1) // end + 64, behind))
        found.add(room, walker, begin)
        begin = end
    again = partial(scan_jsonl, data, keys, restarts=restarts, n_ends=found.n, array_key=array_key)
    return _scan_of(data, keys, array_key, found, walker, again)


def _scan_of(
    data: Bytes,
    keys: Sequence[bytes],
    array_key: bytes | None,
    found: _Rows,
    walker: Walker,
    again: Callable[[], JsonlScan],
) -> JsonlScan:
    n, capacity = found.n, found.capacity
    places = len(found.tags)
    start, end = (
        values[: places * capacity].reshape(places, capacity)[:, :n] for values in found.bytes
    )
    tags = found.tags[:, :n]
    if array_key is not None:
        column = 1 + keys.index(array_key)
        arrays = tags[0] == ARRAY
        for values in (tags, start, end):
            values[column, arrays] = values[0, arrays]
    faults = np.array(walker.faults, np.int64).reshape(-1, 5).T
    line, row_start, row_end = found.rows[:, :n]
    n_lines, n_blank, next_line = walker.state[[N_LINES, N_BLANK, NUMBER]].tolist()
    return JsonlScan(
        data=data,
        line=line,
        start=row_start,
        end=row_end,
        tags=tags[1:],
        value_start=start[1:],
        value_end=end[1:],
        fault_line=faults[0],
        fault_start=faults[1],
        fault_end=faults[2],
        fault_status=faults[3],
        fault_position=faults[4],
        n_lines=n_lines,
        n_blank=n_blank,
        next_line=next_line,
        filled=found.filled(),
        again=again,
    )
