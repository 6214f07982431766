"""What was found in lines, whatever they are written in: where wanted values stand, and texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrays import Bytes, Longs, Words

from fastscore_readers.fill import Filled, fill_texts, joined_texts, text_room
from fastscore_readers.json.walk import END, START, kinds_of, places_of


@dataclass(frozen=True, slots=True)
class LineScan:
    """Lines (CSV: records) of a buffer: n good ones, m faulty ones, k wanted names.

    Parameters
    ----------
    data
        The buffer that was scanned, uint8.
    line, start, end
        Number of each row's line and its bytes in the buffer (line end excluded), int64 (n,).
    cells
        The wanted values of each block's rows, uint64 (k, rows), see `walk.packed`; and where the
        block begins.
    fault_line, fault_start, fault_end
        Number and bytes of each faulty line, int64 (m,); of a record whose quoting is broken, its
        first line.
    fault_status, fault_position
        What is wrong with it (`faults.NOT_JSON`, for example, or `csv.walk.TOO_LONG`) and the byte
        at which it is, int64 (m,).
    fault_cells, fault_width
        How many cells of a record were read before that, and how many it should have, int64 (m,);
        0 without cells.
    tags
        Type of each wanted value (`tokens.ABSENT` ... `OBJECT`), uint8 (k, n). A cell is a string,
        `ESCAPED` if quotes in it are doubled; it is absent where the header lacks its name.
    n_lines, n_blank
        All lines, and those of white space alone.
    next_line
        The number of the line that would follow.
    filled
        The columns of texts that were asked for, by their key's number.
    syntax
        What the values are written in: ``csv``, ``json`` (elements of documents) or ``jsonl``.
    stop, cut
        Where the next record of CSV starts, and whether the last fault is a line that goes on
        after the buffer.
    """

    data: Bytes
    cells: tuple[tuple[int, Words], ...]
    line: Longs
    start: Longs
    end: Longs
    fault_line: Longs
    fault_start: Longs
    fault_end: Longs
    fault_status: Longs
    fault_position: Longs
    fault_cells: Longs
    fault_width: Longs
    tags: Bytes
    n_lines: int
    n_blank: int
    next_line: int
    filled: Mapping[int, Filled]
    syntax: Literal["csv", "json", "jsonl"] = "jsonl"
    stop: int = 0
    cut: bool = False

    def value_bytes(self, key: int) -> tuple[Longs, Longs]:
        """Return where the values of a key stand, a string's inside its quotes, int64 (n,) each.

        It is meaningless where they are absent.
        """
        starts, ends = np.empty((2, self.line.size), np.int64)
        row = 0
        for begin, cells in self.cells:
            own = slice(row, row + cells.shape[1])
            places_of(cells[key], begin, starts[own], ends[own])
            row = own.stop
        return starts, ends


_TOLD = (
    *("line", "start", "end", "fault_line", "fault_start", "fault_end", "fault_status"),
    *("fault_position", "fault_cells", "n_lines", "n_blank", "next_line"),
)
"""What rows, faults and counts tell, by item."""


class Gathered:
    """What is noted of the blocks of a buffer, one after another.

    Parameters
    ----------
    data
        The buffer, uint8, C-contiguous; read-only is fine.
    n_keys
        How many names are wanted.
    filled
        The numbers of those whose values are wanted as columns of texts.
    is_csv
        See `fill.fill_texts`.
    """

    def __init__(self, data: Bytes, n_keys: int, filled: Sequence[int], *, is_csv: bool) -> None:
        if data.dtype != np.uint8 or data.ndim != 1 or not data.flags.c_contiguous:
            found = f"{data.dtype} of shape {data.shape}"
            raise ValueError(f"data must be a contiguous vector of uint8, found {found}")
        self.data, self.n_keys, self.is_csv = data, n_keys, is_csv
        self.keys, self.room = filled, text_room([1 + key for key in filled], data.size)
        self.rows, self.cells = (
            [np.empty((3, 0), np.int64)],
            [(0, np.empty((n_keys, 0), np.uint64))],
        )
        self.texts = [
            (np.empty((len(filled), 0, 2), np.uint64), np.empty((len(filled), 0), np.uint8))
        ]

    def add(self, block: Bytes, begin: int, cells: Words, rows: Longs, n_rows: int) -> None:
        """Gather the rows of a block that begins at a position; see `walk.walk_lines`."""
        cells = cells[: n_rows * (1 + self.n_keys)].reshape(-1, 1 + self.n_keys)
        shift = np.zeros((3, 1), np.int64)
        shift[[START, END]] = begin
        self.rows.append(rows[: 3 * n_rows].reshape(-1, 3).T + shift)
        self.cells.append((begin, cells[:, 1:].T.copy()))
        if self.keys:
            self.texts.append(fill_texts(block, cells, self.room, is_csv=self.is_csv))

    def scan(
        self, faults: npt.NDArray[np.int64], width: int, counts: Sequence[int], **more: Any
    ) -> LineScan:
        """Return all with faults, int64 (6, m), and counts: lines, blank ones, the next one."""
        rows = np.concatenate(self.rows, axis=1)
        words, valid = (np.concatenate(each, axis=1) for each in zip(*self.texts, strict=True))
        texts, odd = self.room.texts[: self.room.used[0]], self.room.odd.tolist()
        told: dict[str, Any] = dict(zip(_TOLD, (*rows, *faults, *counts), strict=True))
        return LineScan(
            data=self.data,
            cells=tuple(self.cells),
            fault_width=np.full(faults.shape[1], width, np.int64),
            tags=np.concatenate([kinds_of(cells) for _, cells in self.cells], axis=1),
            filled={
                key: Filled(words[place], texts, valid[place].view(np.bool_), odd[place])
                for place, key in enumerate(self.keys)
            },
            **told,
            **more,
        )


def joined_scans(data: Bytes, scans: Sequence[tuple[int, LineScan]]) -> LineScan:
    """Join scans of one wish, each with its place in ``data``."""
    if len(scans) == 1 and not scans[0][0]:
        return replace(scans[0][1], data=data)
    shifts, parts = [shift for shift, _ in scans], [scan for _, scan in scans]

    def join(name: str) -> npt.NDArray[np.int64]:
        arrays = [getattr(scan, name) for scan in parts]
        if name.endswith(("start", "end", "position")):
            arrays = [array + shift for array, shift in zip(arrays, shifts, strict=True)]
        return np.concatenate(arrays, -1)

    names, keys = list(LineScan.__dataclass_fields__), parts[0].filled
    first, after = names.index("line"), names.index("n_lines")
    joined: dict[str, Any] = {name: join(name) for name in names[first:after]}
    return replace(
        parts[-1],
        data=data,
        cells=tuple((begin + shift, cells) for shift, scan in scans for begin, cells in scan.cells),
        **joined,
        n_lines=sum(scan.n_lines for scan in parts),
        n_blank=sum(scan.n_blank for scan in parts),
        filled={key: joined_texts([scan.filled[key] for scan in parts]) for key in keys},
    )
