"""What was found in a batch of lines, whatever they are written in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from fastscore_machine.arrays import Bytes, Longs
from fastscore_readers.csv.records import CsvScan
from fastscore_readers.json.fill import Filled
from fastscore_readers.json.lines import JsonlScan

from fastscore.logs.inputs.files import Format


@dataclass(frozen=True, slots=True)
class LineScan:
    """Lines (CSV: records) of a batch: n good ones, m faulty ones, k wanted names.

    Parameters
    ----------
    syntax
        What the values are written in: ``csv``, ``json`` (elements of documents) or ``jsonl``.
    data, line, start, end, tags, value_start, value_end
        As in `JsonlScan`; a cell's tag is that of a string.
    fault_line, fault_start, fault_end, fault_status, fault_position
        As in `JsonlScan`, with the statuses of `CsvScan` too.
    fault_cells, fault_width
        How many cells a faulty record has and how many it should have, int64 (m,); 0 without
        cells.
    n_lines, n_blank, next_line, filled, again
        As in `JsonlScan`.
    """

    syntax: Format
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
    fault_cells: Longs
    fault_width: Longs
    n_lines: int
    n_blank: int
    next_line: int
    filled: Mapping[int, Filled] = field(default_factory=dict)
    again: Callable[[], JsonlScan] | None = None

    def value_bytes(self, key: int) -> tuple[Longs, Longs]:
        """Return where the values of a key stand."""
        scan = self if self.again is None or key not in self.filled else self.again()
        return scan.value_start[key], scan.value_end[key]


def of_jsonl(scan: JsonlScan, syntax: Format) -> LineScan:
    """Take over a scan of JSON Lines."""
    none = np.zeros(scan.fault_line.size, np.int64)
    return LineScan(
        syntax=syntax,
        data=scan.data,
        line=scan.line,
        start=scan.start,
        end=scan.end,
        tags=scan.tags,
        value_start=scan.value_start,
        value_end=scan.value_end,
        fault_line=scan.fault_line,
        fault_start=scan.fault_start,
        fault_end=scan.fault_end,
        fault_status=scan.fault_status,
        fault_position=scan.fault_position,
        fault_cells=none,
        fault_width=none,
        n_lines=scan.n_lines,
        n_blank=scan.n_blank,
        next_line=scan.next_line,
        filled=scan.filled,
        again=cache(scan.again),
    )


def of_records(data: Bytes, scans: Sequence[tuple[int, int, CsvScan]]) -> LineScan:
    """Join scans of records, each with its place in ``data`` and the width of its records."""
    shifts = [shift for shift, _, _ in scans]
    parts = [scan for _, _, scan in scans]

    def shifted(arrays: Sequence[Longs], axis: int = 0) -> Longs:
        moved = [array + shift for array, shift in zip(arrays, shifts, strict=True)]
        return np.concatenate(moved, axis)

    return LineScan(
        syntax="csv",
        data=data,
        line=np.concatenate([scan.line for scan in parts]),
        start=shifted([scan.start for scan in parts]),
        end=shifted([scan.end for scan in parts]),
        tags=np.concatenate([scan.tags for scan in parts], 1),
        value_start=shifted([scan.value_start for scan in parts], 1),
        value_end=shifted([scan.value_end for scan in parts], 1),
        fault_line=np.concatenate([scan.fault_line for scan in parts]),
        fault_start=shifted([scan.fault_start for scan in parts]),
        fault_end=shifted([scan.fault_end for scan in parts]),
        fault_status=np.concatenate([scan.fault_status for scan in parts]),
        fault_position=shifted([scan.fault_position for scan in parts]),
        fault_cells=np.concatenate([scan.fault_cells for scan in parts]),
        fault_width=np.concatenate(
            [np.full(scan.fault_line.size, width, np.int64) for _, width, scan in scans]
        ),
        n_lines=sum(scan.n_records for scan in parts),
        n_blank=sum(scan.n_blank for scan in parts),
        next_line=parts[-1].next_line,
    )
