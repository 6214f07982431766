"""The result of scanning lines of any syntax: places or columns of the wanted values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, UInt8Array

from fastscore_readers.fill import ROWS, Columns, Filled, filled_columns, joined_columns


@dataclass(frozen=True, slots=True)
class LineScan:
    """Lines (CSV: records) of a buffer: n good ones, m faulty ones, k wanted names.

    Parameters
    ----------
    data
        The buffer that was scanned, uint8.
    line, start, end
        Number of each row's line and its bytes in the buffer (line end excluded), int64 (n,).
    tags
        Type of each wanted value (`tokens.ABSENT` ... `OBJECT`), uint8 (k, n). A cell is a string,
        or `ESCAPED` if it has doubled quotes. It is absent if the header lacks its name.
    value_start, value_end
        Byte range of each wanted value, without the quotes of strings, int64 (k, n). Undefined for
        absent values and filled columns.
    fault_line, fault_start, fault_end
        Number and bytes of each faulty line, int64 (m,). If quoting is broken, the record's first
        line.
    fault_status, fault_position
        The fault (such as `faults.NOT_JSON` or `csv_records.TOO_LONG`) and its byte position, int64
        (m,).
    fault_cells, fault_width
        The number of cells read of a faulty record, and the expected number, int64 (m,); 0 without
        cells.
    n_lines, n_blank
        The numbers of all lines and of blank ones.
    next_line
        The number of the next line.
    filled
        The filled columns, by their key's number.
    again
        Repeats the scan without filling columns.
    syntax
        The syntax of the values: ``csv``, ``json`` (elements of documents) or ``jsonl``.
    stop, cut
        Where the next record of CSV starts, and whether the last faulty line continues after the
        buffer.
    has_mark
        Whether a record may begin with a byte order mark.
    """

    data: UInt8Array
    line: Int64Array
    start: Int64Array
    end: Int64Array
    tags: UInt8Array
    value_start: Int64Array
    value_end: Int64Array
    fault_line: Int64Array
    fault_start: Int64Array
    fault_end: Int64Array
    fault_status: Int64Array
    fault_position: Int64Array
    fault_cells: Int64Array
    fault_width: Int64Array
    n_lines: int
    n_blank: int
    next_line: int
    filled: Mapping[int, Filled]
    again: Callable[[], "LineScan"]
    syntax: Literal["csv", "json", "jsonl"] = "jsonl"
    stop: int = 0
    cut: bool = False
    has_mark: bool = True

    def value_bytes(self, key: int) -> tuple[Int64Array, Int64Array]:
        """Return the byte ranges of the values of a key."""
        scan = self.again() if key in self.filled else self
        return scan.value_start[key], scan.value_end[key]


def scan_of(
    data: UInt8Array,
    columns: Columns,
    faults: npt.NDArray[np.int64],
    width: int,
    counts: Sequence[int],
    again: Callable[[], LineScan],
) -> LineScan:
    """Return the scan of filled columns and of faults, int64 (6, m).

    ``counts`` are the lines, the blank lines and the number of the next line.
    """
    n = int(columns.used[ROWS])
    line, start, end = columns.lines[:, :n]
    places = columns.words[:, :n].view(np.int64)
    n_lines, n_blank, next_line = counts
    return LineScan(
        data=data,
        line=line,
        start=start,
        end=end,
        tags=columns.tags[:, :n],
        value_start=places[:, :, 0],
        value_end=places[:, :, 1],
        fault_line=faults[0],
        fault_start=faults[1],
        fault_end=faults[2],
        fault_status=faults[3],
        fault_position=faults[4],
        fault_cells=faults[5],
        fault_width=np.full(faults.shape[1], width, np.int64),
        n_lines=n_lines,
        n_blank=n_blank,
        next_line=next_line,
        filled=filled_columns(columns),
        again=cache(again),
    )


def joined_scans(data: UInt8Array, scans: Sequence[tuple[int, LineScan]]) -> LineScan:
    """Join scans of the same keys, each with its place in ``data``."""
    if len(scans) == 1 and not scans[0][0]:
        return replace(scans[0][1], data=data)
    shifts, parts = [shift for shift, _ in scans], [scan for _, scan in scans]

    def join(name: str) -> npt.NDArray[np.int64]:
        arrays = [getattr(scan, name) for scan in parts]
        if name.endswith(("start", "end", "position")):
            arrays = [array + shift for array, shift in zip(arrays, shifts, strict=True)]
        return np.concatenate(arrays, -1)

    names, keys = list(LineScan.__dataclass_fields__), parts[0].filled
    joined: dict[str, Any] = {name: join(name) for name in names[1 : names.index("n_lines")]}
    return replace(
        parts[-1],
        data=data,
        **joined,
        n_lines=sum(scan.n_lines for scan in parts),
        n_blank=sum(scan.n_blank for scan in parts),
        filled={key: joined_columns([scan.filled[key] for scan in parts]) for key in keys},
        again=cache(lambda: joined_scans(data, [(shift, scan.again()) for shift, scan in scans])),
    )
