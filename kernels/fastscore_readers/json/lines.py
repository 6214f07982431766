r"""JSON Lines as columns: where every wanted value stands, and what is wrong with which line.

A line is read as ``json.loads(line.strip())`` reads it: NaN and Infinity are numbers, the last of
equal keys wins, control characters in strings are faults. Lines end as Python's text files end
them (``\n``, ``\r\n`` or ``\r``) and must be strict UTF-8. Two limits are this module's own:
values nested deeper than `MAX_DEPTH`, and integers of any length are integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from fastscore_machine.compiling import first_use
from fastscore_machine.validation import read_only

from fastscore_readers.json.blocks import Walker, block_ends
from fastscore_readers.json.faults import NOT_JSON, NOT_OBJECT, NOT_UTF8, TOO_DEEP
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
    "NOT_JSON",
    "NOT_OBJECT",
    "NOT_UTF8",
    "NULL",
    "OBJECT",
    "STRING",
    "TOO_DEEP",
    "TRUE",
    "JsonlScan",
    "compile_kernels",
    "scan_jsonl",
]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_FOREVER = (1 << 62, 0)


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


class _Rows:
    """The rows of some data and their values: room for as many as lines are expected."""

    def __init__(self, shape: ShapePlan, capacity: int) -> None:
        self.places, self.capacity, self.n = shape.grain.size, capacity, 0
        self.rows = np.empty((3, capacity), np.int64)
        self.tags = np.zeros((self.places, capacity), np.uint8)
        self.start, self.end = np.empty((2, self.places, capacity), np.int64)
        self.owner = np.empty(capacity, np.int64)
        self.tables = Tables(
            shape.grain,
            shape.is_element,
            np.arange(self.places, dtype=np.int64) * capacity,
            np.zeros(1, np.int64),
        )
        self.columns = Columns(
            self.tags.reshape(-1), self.start.reshape(-1), self.end.reshape(-1), self.owner
        )

    def widened(self, shape: ShapePlan, expected: int) -> "_Rows":
        """Return the same rows with more room."""
        wider = _Rows(shape, expected)
        wider.n = self.n
        for name in ("rows", "tags", "start", "end", "owner"):
            getattr(wider, name)[..., : self.n] = getattr(self, name)[..., : self.n]
        return wider


def scan_jsonl(
    data: Bytes,
    keys: Sequence[bytes],
    *,
    restarts: Sequence[tuple[int, int]] | Longs = (),
    n_ends: int | None = None,
    array_key: bytes | None = None,
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

    Returns
    -------
    JsonlScan
        The rows, the wanted values' types and places, and the faulty lines.
    """
    if data.dtype != np.uint8 or data.ndim != 1 or not data.flags.c_contiguous:
        raise ValueError(
            f"data must be a contiguous vector of uint8, found {data.dtype} of shape {data.shape}"
        )
    compile_kernels()
    data = read_only(data)
    shape = plan_of_keys(tuple(keys))
    table = np.append(np.asarray(restarts, np.int64).reshape(-1), _FOREVER)
    walker = Walker(shape.plan, OBJECTS if array_key is None else CONTAINERS, table)
    found = _Rows(shape, 1 + n_ends if n_ends is not None else 1 + data.size // 64)
    counts = np.zeros(1, np.int64)
    begin = 0
    for end in block_ends(data):
        room = walker.walk(data[begin:end], begin)
        n = walker.n_rows
        if found.n + n > found.capacity:
            ahead = (found.n + n) * (data.size + 1) // end
            found = found.widened(shape, max(ahead + 64, found.n + n))
        rows = room.rows[: 3 * n].reshape(n, 3).T
        own = slice(found.n, found.n + n)
        found.rows[:, own] = rows
        found.rows[1:, own] += begin
        shifts = np.full(n, begin)
        place_notes(
            room.notes, found.tables, found.columns, room.slots, shifts, counts, walker.n_notes
        )
        found.n += n
        begin = end
    return _scan_of(data, keys, array_key, found, walker)


def _scan_of(
    data: Bytes, keys: Sequence[bytes], array_key: bytes | None, found: _Rows, walker: Walker
) -> JsonlScan:
    n = found.n
    tags, start, end = found.tags[:, :n], found.start[:, :n], found.end[:, :n]
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
    )


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    shape = plan_of_keys((b"a",))
    room = Walker(shape.plan, OBJECTS, np.array(_FOREVER)).walk(np.zeros(0, np.uint8), 0)
    found = _Rows(shape, 1)
    none = np.zeros(1, np.int64)
    place_notes(room.notes, found.tables, found.columns, room.slots, none, none, 0)
