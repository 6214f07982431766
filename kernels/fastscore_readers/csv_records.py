r"""CSV records as columns: the byte range of every wanted cell, and the faults of invalid records.

Records are split as Python's ``csv.reader`` splits them in its default dialect. Commas separate
cells. A cell that begins with a quote ends at the next quote that is not doubled, and may contain
commas and line ends. Other quotes are text. Lines end with ``\n``, ``\r\n`` or ``\r``.

These are faults here, though Python's reader accepts them: an unterminated quote, text after a
closing quote, a cell count that differs from the header's, invalid UTF-8. If the quoting of a
record is broken, only its first line is rejected. Cells have no maximum length.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, Mask, UInt8Array
from fastscore_jit.byte_blocks import byte_marks
from fastscore_jit.compiling import kernel, prepared
from fastscore_jit.declaring import always_inlined, inlined
from fastscore_jit.memory import (
    BLOCK,
    address_of,
    block_at,
    byte_at,
    item_at,
    put_item,
    signed,
    store_positions,
)
from fastscore_jit.validation import as_vector

from fastscore_readers.fill import (
    FAULT,
    FAULT_ITEMS,
    LineScan,
    allocate_columns,
    fill_columns,
    moved,
    scan_of,
    with_capacity,
)
from fastscore_readers.json.lines import BLOCK_BYTES, NOT_UTF8, BlockMemory, own_memory
from fastscore_readers.json.tokens import (
    BYTES_AFTER,
    COMMA,
    NEWLINE,
    QUOTE,
    RETURN,
    STRING,
    ends_line,
    mark_invalid_utf8,
    note_bits,
)
from fastscore_readers.json.walk import (
    BEGIN,
    N_BLANK,
    N_LINES,
    N_ROWS,
    NUMBER,
    SIZE,
    START,
    enter,
    packed,
)

# these numbers differ from those of the faults of JSON Lines
WRONG_CELL_COUNT, UNTERMINATED_QUOTE, TEXT_AFTER_QUOTE, TOO_LONG = range(17, 21)

FINAL, LIMIT, N_FAULTS, N_BAD, STOP, CUT, MARKED, STATE_ITEMS = range(10, 18)
"""Items of `state` after those of `json.walk`: whether the data end with the window; the maximum
length of a record that the window cuts; the numbers of faults and bad bytes; where the next record
begins; whether a rejected record continues; whether a record may begin with a byte order mark."""

MARKS_AFTER = 4
"""The number of sentinel marks after the last mark."""
N_ITEMS = len(FAULT_ITEMS)
_BOM = 0xEF

_cell_marks = byte_marks(b'",\n\r', range(0x80, 0x100))
_NONE = np.uint64(0)


class Records(NamedTuple):
    """Memory for records: slots as in `json.walk`, rows, and faults."""

    # uint64: a row of one unused slot and one a column for each good record
    slots: npt.NDArray[np.uint64]
    rows: Int64Array  # int64 (3 * capacity,): line, start and end of the good records
    faults: Int64Array  # int64 (7 * capacity,): the items of `fill.FAULT` of the faulty records


@inlined
def _mark(data: Any, size: Any, marks: Any, bad: Any) -> Any:
    """Record the positions of quotes, commas, line ends and invalid UTF-8; count the latter."""
    follow = special = _NONE
    n = n_bad = 0
    for at in range(0, size + 1, BLOCK):
        here = block_at(data, at)
        bits, high = _cell_marks(here)
        if high | follow != _NONE:
            wrong, follow, special = mark_invalid_utf8(here, high, follow, special)
            n_bad = note_bits(bad, n_bad, at, wrong)
        n += store_positions(address_of(marks, 4 * n, 4 * BLOCK), at, bits)
    for after in range(MARKS_AFTER):
        put_item(marks, n + after, size)
    return n_bad


@always_inlined
def _line_end_bytes(data: Any, at: Any, size: Any, final: Any) -> Any:
    """Return the length of the line end at a position, 0 if the window may cut it in half."""
    if byte_at(data, at) == NEWLINE:
        return 1
    if at + 1 == size:
        return 1 if final else 0
    return 2 if byte_at(data, at + 1) == NEWLINE else 1


@inlined
def _closing_mark(data: Any, marks: Any, mark: Any, size: Any) -> tuple[Any, Any, Any]:
    """Return the mark of the quote that ends a cell, the cell's kind and its line ends."""
    kind, lines = signed(STRING), 0
    while True:
        at = signed(item_at(marks, mark))
        byte = byte_at(data, at)
        if byte == QUOTE:
            if byte_at(data, at + 1) != QUOTE:
                return mark, kind, lines
            kind = signed(STRING + 1)
            mark += 1
        elif byte == RETURN or (byte == NEWLINE and byte_at(data, at - 1) != RETURN):
            lines += 1
        elif at >= size:
            return mark, kind, lines
        mark += 1


@kernel(
    "uint8[:], out(uint32[:]), out(uint32[:]), int64[:], int64, "
    "Records(out(uint64[:]), out(int64[:]), out(int64[:])), out(int64[:])",
    fastmath=False,
    allocates=False,
)
def walk_records(
    data: Any, marks: Any, bad: Any, slot_of: Any, width: int, records: Records, state: Any
) -> None:
    """Walk the complete records of a window, as many as there is memory for.

    ``slot_of`` maps each cell of a record to its column, or to -1. Rows of `Records.slots` have
    ``width`` slots, of which the first is unused. Spaces follow the window.
    """
    size, limit, final = state[SIZE], state[LIMIT], state[FINAL] != 0
    state[N_BAD] = _mark(data, size, marks, bad)
    capacity, number = records.rows.size // 3, state[NUMBER]
    index = mark = row = fault = blank = total = 0
    while index < size and row < capacity and fault < capacity:
        begin, first = index, mark
        is_blank = ends_line(byte_at(data, begin))
        if byte_at(data, begin) == _BOM:
            state[MARKED] = 1
        cell = status = lines = 0
        while not is_blank:
            start, kind = index, signed(STRING)
            if byte_at(data, index) == QUOTE:
                mark, kind, inner = _closing_mark(data, marks, mark + 1, size)
                stop = signed(item_at(marks, mark))
                if stop >= size:
                    status = UNTERMINATED_QUOTE
                    break
                mark += 1
                start, index = index + 1, stop + 1
                lines += inner
                byte = byte_at(data, index)
                if index < size and byte != COMMA and not ends_line(byte):
                    status = TEXT_AFTER_QUOTE
                    break
            else:
                stop = signed(item_at(marks, mark))
                while byte_at(data, stop) == QUOTE:
                    mark += 1
                    stop = signed(item_at(marks, mark))
                index = stop
            if cell < slot_of.size and slot_of[cell] >= 0:
                put_item(records.slots, row * width + 1 + slot_of[cell], packed(kind, start, stop))
            cell += 1
            if byte_at(data, index) != COMMA:
                break
            index += 1
            mark += 1
        end = place = index
        is_cut = not final and (index >= size or status == UNTERMINATED_QUOTE)
        if is_cut:
            status = TOO_LONG
        if status != 0:
            # a broken quote may enclose good records: reading continues at the next line
            mark, lines = first, 0
            end = signed(item_at(marks, mark))
            while end < size and not ends_line(byte_at(data, end)):
                mark += 1
                end = signed(item_at(marks, mark))
            if end >= size and not final:
                status, is_cut = TOO_LONG, True
        elif cell != slot_of.size and not is_blank:
            status, place = WRONG_CELL_COUNT, begin
        if is_cut and size - begin <= limit:
            index = begin
            break
        step = 0
        if end < size:
            step = _line_end_bytes(data, end, size, final)
            if step == 0:
                index = begin
                break
        if is_blank:
            blank += 1
        elif status == 0:
            enter(records.rows, row, number, begin, end)
            row += 1
        else:
            at = N_ITEMS * fault
            for item, value in enumerate((number, begin, end, status, place, cell, slot_of.size)):
                put_item(records.faults, at + item, value)
            fault += 1
            state[CUT] = is_cut and end >= size
        index = end + step
        mark += step
        total += 1
        number += 1 + lines
    state[NUMBER], state[STOP], state[N_ROWS], state[N_FAULTS] = number, index, row, fault
    state[N_LINES] += total
    state[N_BLANK] += blank


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
    allocate: Callable[[int], UInt8Array] | None = None,
) -> LineScan:
    """Scan the complete records of a buffer, up to ``stop`` of the scan.

    ``slot_of`` has the column of each cell, or -1; columns are `fill.PLACES`, `CELLS` or
    `FULL_CELLS`. A record that the buffer cuts is scanned if the data end there (``final``), and
    rejected if longer than ``limit``. About ``records`` are scanned at most, good and faulty.
    ``allocate`` allocates the bytes for texts.
    """
    data = as_vector("data", data, np.uint8)
    if slot_of.size and slot_of.max() >= len(kinds):
        raise ValueError(f"slot_of names column {slot_of.max()}; there are {len(kinds)}")
    width = 1 + len(kinds)
    most = min(_MOST_RECORDS, records, 2 + data.size)
    found = Records(
        np.zeros(most * width, np.uint64),
        np.empty(3 * most, np.int64),
        np.empty(N_ITEMS * most, np.int64),
    )
    state = np.zeros(STATE_ITEMS, np.int64)
    state[NUMBER] = line
    columns = allocate_columns(kinds)
    faults = [np.empty(0, FAULT)]
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
        faults.append(moved(_faults(memory, found, state), at))
        at, size = at + int(state[STOP]), BLOCK_BYTES
        wider = with_capacity(columns, int(state[N_ROWS]), at, data.size)
        if fill is None or wider is not columns:
            if allocate is not None and wider.texts.size > columns.texts.size:
                wider = wider._replace(texts=allocate(wider.texts.size))
            columns = wider
            fill = prepared(fill_columns, memory.data, found.slots, found.rows, columns, state)
        fill()
    counts = state[[N_LINES, N_BLANK, NUMBER]].tolist()
    scan = scan_of(data, columns, np.concatenate(faults), counts)
    return replace(scan, syntax="csv", stop=at, cut=bool(state[CUT]), has_mark=bool(state[MARKED]))


def _faults(memory: BlockMemory, found: Records, state: Int64Array) -> npt.NDArray[np.void]:
    """Return the faults of a window, `fill.FAULT`, with those of records that are invalid UTF-8."""
    faults = found.faults[: N_ITEMS * state[N_FAULTS]].reshape(-1, N_ITEMS)
    # a window mostly cuts its last character, which is the next one's; one that a record's end
    # cuts is noted up to three bytes after it
    bad = memory.index.bad[: state[N_BAD]]
    if not bad.size or bad.min() >= state[STOP] + 3:
        return faults.view(FAULT)[:, 0]
    n = int(state[N_ROWS])
    rows, slots = found.rows[: 3 * n].reshape(n, 3), found.slots.reshape(found.rows.size // 3, -1)
    every = np.concatenate([np.pad(rows, ((0, 0), (0, N_ITEMS - 3))), faults])
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
    ordered = every[np.lexsort((every[:, START], is_good))][: len(every) - kept]
    return ordered.view(FAULT)[:, 0]
