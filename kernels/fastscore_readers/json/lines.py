r"""JSON Lines as columns: where every wanted value stands, and what is wrong with which line.

A line is read as ``json.loads(line.strip())`` reads it: NaN and Infinity are numbers, the last of
equal keys wins, control characters in strings are faults. Lines end as Python's text files end
them (``\n``, ``\r\n`` or ``\r``) and must be strict UTF-8. Two limits are this module's own:
values nested deeper than `MAX_DEPTH`, and integers of any length are integers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.compiling import prepared
from fastscore_machine.validation import read_only

from fastscore_readers.json.blocks import FOREVER, Walker, block_ends
from fastscore_readers.json.faults import NOT_JSON, NOT_OBJECT, NOT_UTF8, TOO_DEEP
from fastscore_readers.json.fill import (
    PLACES,
    ROWS,
    Columns,
    Filled,
    by_row,
    column_room,
    fill_columns,
    filled_columns,
    widened,
)
from fastscore_readers.json.shapes import plan_of_keys
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
from fastscore_readers.json.walk import CONTAINERS, N_BLANK, N_LINES, NUMBER, OBJECTS

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


_MORE_ROWS = 64
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


def scan_jsonl(
    data: Bytes,
    keys: Sequence[bytes],
    *,
    restarts: Sequence[tuple[int, int]] | Longs = (),
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
    array_key
        The key whose value a line is that is an array; without one such a line is a fault.
    fill
        The keys whose values are wanted as Arrow columns rather than by their places, and of which
        kind: `fill.TEXT`, for example. The data are shorter than 2 GiB then.

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
    plan = plan_of_keys(tuple(keys))
    table = np.append(np.asarray(restarts, np.int64).reshape(-1), FOREVER)
    walker = Walker(plan, OBJECTS if array_key is None else CONTAINERS, table)
    columns = column_room([(fill or {}).get(key, PLACES) for key in keys], 0, 0)
    call, room, begin = None, None, 0
    for end in block_ends(data):
        walker.walk(data[begin:end], begin)
        if array_key is not None:
            _put_arrays(walker, 1 + keys.index(array_key))
        rows = int(columns.used[ROWS]) + walker.n_rows
        if begin == 0 or 3 * rows > columns.lines.size:
            # as many to a byte as there were so far, and some more
            capacity = rows if end == data.size else int(1.1 * rows * data.size / end) + _MORE_ROWS
            if begin == 0:
                columns = column_room(columns.kind.tolist(), capacity, data.size if fill else 0)
            else:
                columns = widened(columns, capacity)
            room = None
        if call is None or walker.room is not room:
            room, cells = walker.room, walker.notes.value
            call = prepared(fill_columns, room.data, cells, room.rows, columns, walker.state)
        call()
        begin = end
    again = partial(scan_jsonl, data, keys, restarts=restarts, array_key=array_key)
    return _scan_of(data, columns, walker, again)


def _put_arrays(walker: Walker, cell: int) -> None:
    """Put lines that are arrays into a cell of theirs."""
    width = walker.plan.n_cells
    rows = walker.notes.value[: walker.n_rows * width].reshape(-1, width)
    arrays = (rows[:, 0] & np.uint64(15)) == ARRAY
    rows[arrays, cell] = rows[arrays, 0]


def _scan_of(
    data: Bytes, columns: Columns, walker: Walker, again: Callable[[], JsonlScan]
) -> JsonlScan:
    n = int(columns.used[ROWS])
    places = by_row(columns.words.view(np.int64), columns)[:, :n]
    faults = np.array(walker.faults, np.int64).reshape(-1, 5).T
    line, row_start, row_end = by_row(columns.lines, columns)[:, :n]
    n_lines, n_blank, next_line = walker.state[[N_LINES, N_BLANK, NUMBER]].tolist()
    return JsonlScan(
        data=data,
        line=line,
        start=row_start,
        end=row_end,
        tags=by_row(columns.tags, columns)[:, :n],
        value_start=places[::2],
        value_end=places[1::2],
        fault_line=faults[0],
        fault_start=faults[1],
        fault_end=faults[2],
        fault_status=faults[3],
        fault_position=faults[4],
        n_lines=n_lines,
        n_blank=n_blank,
        next_line=next_line,
        filled=filled_columns(columns, data),
        again=again,
    )
