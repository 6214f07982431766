r"""CSV as columns: where every wanted cell stands, and what is wrong with which record.

Records are cut as Python's ``csv.reader`` cuts them in its default dialect: cells are parted by
commas, a cell that begins with a quote ends at the next quote that is not doubled and may hold
commas and line ends, quotes elsewhere are text, and lines end with ``\n``, ``\r\n`` or ``\r``.
What that reader guesses at is a fault here: a quote that is not closed, text behind a closing
quote, a record of another width than the header, bytes that are not UTF-8. A record whose quoting
is broken is given up by its first line, and reading goes on at the next. No cell is too long.
"""

from dataclasses import dataclass

import numpy as np
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.validation import read_only

from fastscore_readers.csv._csv_scan import (
    TEXT_BEHIND_QUOTE,
    TOO_LONG,
    UNTERMINATED_QUOTE,
    WRONG_CELL_COUNT,
    scan_records,
    spell_types,
    unquote_cells,
)

__all__ = [
    "TEXT_BEHIND_QUOTE",
    "TOO_LONG",
    "UNTERMINATED_QUOTE",
    "WRONG_CELL_COUNT",
    "CsvScan",
    "scan_csv",
    "spelled",
    "unquoted",
]


_MOST_RECORDS = 1 << 14
_SPARE_BYTES = 64


@dataclass(frozen=True, slots=True)
class CsvScan:
    """What `scan_csv` found in a buffer of n good records and m faulty ones, for k slots.

    Parameters
    ----------
    line, start, end
        Number of the line on which each record starts and its bytes in the buffer (line end
        excluded), int64 (n,).
    tags
        Of each wanted cell: `jsonl.STRING`, `jsonl.ESCAPED` for one with doubled quotes,
        `jsonl.ABSENT` for a slot that no cell takes; uint8 (k, n).
    value_start, value_end
        Bytes of each wanted cell, inside its quotes, int64 (k, n).
    fault_line, fault_start, fault_end
        The faulty records, int64 (m,); of one whose quoting is broken, its first line.
    fault_status
        What is wrong (`WRONG_CELL_COUNT`, `UNTERMINATED_QUOTE`, `TEXT_BEHIND_QUOTE`, `TOO_LONG`
        or `jsonl.NOT_UTF8`), int64 (m,).
    fault_position
        The byte at which it is wrong, int64 (m,).
    fault_cells
        How many cells were read before that, int64 (m,).
    n_records, n_blank
        All records and empty lines, and the empty lines alone.
    stop, next_line
        Where the next record starts, and the number of its line.
    cut
        Whether the last fault is a line that goes on behind the buffer.
    """

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
    fault_cells: Longs
    n_records: int
    n_blank: int
    stop: int
    next_line: int
    cut: bool


def scan_csv(
    data: Bytes,
    slots: Longs,
    n_slots: int,
    *,
    start: int = 0,
    line: int = 1,
    final: bool = True,
    limit: int = 1 << 62,
    records: int = _MOST_RECORDS,
) -> CsvScan:
    """Scan records of a buffer, as many as are whole.

    Parameters
    ----------
    data
        The bytes, uint8, C-contiguous; read-only is fine.
    slots
        For each cell of a record the slot that takes it, or -1, int64 (width,).
    n_slots
        How many slots there are.
    start, line
        Where the first record starts, and the number of its line.
    final
        Whether the data end where the buffer does; without it, what the buffer's end cuts is left.
    limit
        A record that the buffer's end cuts is given up when it is longer than this.
    records
        At most so many good records, and so many faulty ones, are scanned.

    Returns
    -------
    CsvScan
        The records up to its ``stop``.
    """
    if data.dtype != np.uint8 or data.ndim != 1 or not data.flags.c_contiguous:
        raise ValueError(
            f"data must be a contiguous vector of uint8, found {data.dtype} of shape {data.shape}"
        )
    if not 0 <= start <= data.size:
        raise ValueError(f"start is {start}; the data have {data.size} bytes")
    slots = slots.astype(np.int64, copy=False)
    if slots.size and slots.max() >= n_slots:
        raise ValueError(f"slots name slot {slots.max()}; there are {n_slots}")
    # a record takes a byte for each cell; a faulty or blank one may take fewer
    capacity = min(records, 1 + (data.size - start) // max(slots.size, 1))
    rows = np.empty((3, capacity), np.int64)
    tags = np.zeros((n_slots, capacity), np.uint8)
    starts = np.empty((n_slots, capacity), np.int64)
    ends = np.empty((n_slots, capacity), np.int64)
    faults = np.empty((6, capacity), np.int64)
    counts = np.zeros(7, np.int64)
    scan_records(
        read_only(data),
        start,
        line,
        final,
        limit,
        read_only(slots),
        rows,
        tags,
        starts,
        ends,
        faults,
        counts,
    )
    n, m, n_records, n_blank, stop, next_line, cut = (int(count) for count in counts)
    return CsvScan(
        line=rows[0, :n],
        start=rows[1, :n],
        end=rows[2, :n],
        tags=tags[:, :n],
        value_start=starts[:, :n],
        value_end=ends[:, :n],
        fault_line=faults[0, :m],
        fault_start=faults[1, :m],
        fault_end=faults[2, :m],
        fault_status=faults[3, :m],
        fault_position=faults[4, :m],
        fault_cells=faults[5, :m],
        n_records=n_records,
        n_blank=n_blank,
        stop=stop,
        next_line=next_line,
        cut=bool(cut),
    )


def unquoted(data: Bytes, starts: Longs, ends: Longs) -> tuple[Bytes, Longs, Longs]:
    """Write the texts of quoted cells, their doubled quotes once.

    Returns
    -------
    tuple of arrays
        UTF-8 bytes, uint8, and the ranges of the texts in them, int64 (n,) each.
    """
    out = np.empty(int((ends - starts).sum()) + _SPARE_BYTES, np.uint8)
    out_starts, out_ends = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    ranges = read_only(starts.astype(np.int64)), read_only(ends.astype(np.int64))
    used = unquote_cells(read_only(data), *ranges, out, out_starts, out_ends)
    return out[:used], out_starts, out_ends


def spelled(data: Bytes, tags: Bytes, starts: Longs, ends: Longs) -> tuple[Bytes, Longs, Longs]:
    """Tell which cells spell a boolean or a number.

    Returns
    -------
    tuple of arrays
        Tags and ranges as given, but where a cell without quotes inside it holds, within spaces
        and tabs, ``true`` or ``false`` in any case, a decimal integer, a JSON number, ``nan``,
        ``inf`` or ``infinity`` in any case: that value's tag, and the bytes that spell it.
    """
    tags, starts, ends = tags.copy(), starts.copy(), ends.copy()
    spell_types(read_only(data), starts, ends, tags)
    return tags, starts, ends
