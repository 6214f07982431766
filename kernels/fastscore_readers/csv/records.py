r"""CSV as columns: what every wanted cell is, and what is wrong with which record.

Records are cut as Python's ``csv.reader`` cuts them in its default dialect: cells are parted by
commas, a cell that begins with a quote ends at the next quote that is not doubled and may hold
commas and line ends, quotes elsewhere are text, and lines end with ``\n``, ``\r\n`` or ``\r``.
What that reader guesses at is a fault here: a quote that is not closed, text after a closing
quote, a record of another width than the header, bytes that are not UTF-8. A record whose quoting
is broken is given up by its first line, and reading goes on at the next. No cell is too long.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, Mask, UInt8Array
from fastscore_jit.compiling import prepared
from fastscore_jit.validation import as_vector

from fastscore_readers.csv.walk import (
    CUT,
    FAULT_ITEMS,
    FINAL,
    LIMIT,
    N_BAD,
    N_FAULTS,
    STATE_ITEMS,
    STOP,
    WRONG_CELL_COUNT,
    Records,
    walk_records,
)
from fastscore_readers.fill import PLACES, allocate_columns, fill_columns, with_capacity
from fastscore_readers.json.blocks import BLOCK_BYTES, BlockMemory, own_memory
from fastscore_readers.json.faults import NOT_UTF8
from fastscore_readers.json.index import BYTES_AFTER
from fastscore_readers.json.walk import BEGIN, N_BLANK, N_LINES, N_ROWS, NUMBER, SIZE, START
from fastscore_readers.line_scan import LineScan, scan_of

_MOST_RECORDS = 1 << 14
_SPACE = 32
_STATUS, _CELLS = 3, 5


def scan_csv(
    data: UInt8Array,
    slot_of: Int64Array,
    kinds: Sequence[int],
    *,
    line: int = 1,
    final: bool = True,
    limit: int = 1 << 62,
    records: int = 1 << 62,
) -> LineScan:
    """Scan records of a buffer, as many as are whole.

    Parameters
    ----------
    data
        The bytes, uint8, C-contiguous; read-only is fine.
    slot_of
        For each cell of a record the column that takes it, or -1, int64 (width,).
    kinds
        What the columns are filled with: `fill.PLACES`, `CELLS` or `FULL_CELLS`.
    line
        The number of the first line.
    final
        Whether the data end where the buffer does; without it, what the buffer's end cuts is left.
    limit
        A record that the buffer's end cuts is given up when it is longer than this.
    records
        About so many good and faulty records are scanned.

    Returns
    -------
    LineScan
        The records up to its ``stop``.
    """
    data = as_vector("data", data, np.uint8)
    if slot_of.size and slot_of.max() >= len(kinds):
        raise ValueError(f"slot_of names column {slot_of.max()}; there are {len(kinds)}")
    again = partial(scan_csv, data, slot_of, [PLACES] * len(kinds), line=line)
    again = partial(again, final=final, limit=limit, records=records)
    width = 1 + len(kinds)
    most = min(_MOST_RECORDS, records, 2 + data.size)
    found = Records(
        np.zeros(most * width, np.uint64),
        np.empty(3 * most, np.int64),
        np.empty(FAULT_ITEMS * most, np.int64),
    )
    state = np.zeros(STATE_ITEMS, np.int64)
    state[NUMBER] = line
    columns = allocate_columns(kinds)
    faults = [np.empty((FAULT_ITEMS, 0), np.int64)]
    at, size = 0, BLOCK_BYTES
    memory, walk, fill = None, None, None
    while at < data.size and state[N_LINES] - state[N_BLANK] < records:
        end = min(at + size, data.size)
        if memory is None or end - at > memory.size:
            memory, fill = own_memory(end - at), None
            index = memory.index
            walk = prepared(
                walk_records, memory.data, index.tokens, index.bad, slot_of, width, found, state
            )
        memory.data[: end - at] = data[at:end]
        memory.data[end - at : end - at + BYTES_AFTER] = _SPACE
        is_last = end == data.size
        state[SIZE], state[BEGIN], state[FINAL] = end - at, at, final and is_last
        state[LIMIT] = limit if is_last else 1 << 62
        assert walk is not None
        walk()
        if not state[STOP]:
            if is_last:
                break
            size *= 2
            continue
        faults.append(_faults(memory, found, state) + np.array([[0], [at], [at], [0], [at], [0]]))
        at, size = at + int(state[STOP]), BLOCK_BYTES
        wider = with_capacity(columns, int(state[N_ROWS]), at, data.size)
        if fill is None or wider is not columns:
            columns = wider
            fill = prepared(fill_columns, memory.data, found.slots, found.rows, columns, state)
        fill()
    counts = state[[N_LINES, N_BLANK, NUMBER]].tolist()
    every = np.concatenate(faults, axis=1)
    scan = scan_of(data, columns, every, slot_of.size, counts, again)
    return replace(scan, syntax="csv", stop=at, cut=bool(state[CUT]))


def _faults(memory: BlockMemory, found: Records, state: Int64Array) -> npt.NDArray[np.int64]:
    """Return the faults of a window, int64 (6, m); records that are no UTF-8 become some."""
    faults = found.faults[: FAULT_ITEMS * state[N_FAULTS]].reshape(-1, FAULT_ITEMS)
    # a window mostly cuts its last character, which is the next one's; one that a record's end
    # cuts is noted up to three bytes after it
    bad = memory.index.bad[: state[N_BAD]]
    if not bad.size or bad.min() >= state[STOP] + 3:
        return faults.T
    n = int(state[N_ROWS])
    rows, slots = found.rows[: 3 * n].reshape(n, 3), found.slots.reshape(found.rows.size // 3, -1)
    every = np.concatenate([np.pad(rows, ((0, 0), (0, FAULT_ITEMS - 3))), faults])
    for record, (_, begin, end, status, *_) in enumerate(every.tolist()):
        try:
            memory.data[begin:end].tobytes().decode()
        except UnicodeDecodeError as error:
            if status in (0, WRONG_CELL_COUNT):
                every[record, _STATUS:_CELLS] = NOT_UTF8, begin + error.start
    is_good: Mask = every[:, _STATUS] == 0
    kept = int(is_good.sum())
    rows[:kept], slots[:kept] = rows[is_good[:n]], slots[:n][is_good[:n]]
    state[N_ROWS] = kept
    return every[np.lexsort((every[:, START], is_good))][: len(every) - kept].T
