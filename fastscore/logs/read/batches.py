"""Batches: complete lines of one or many files in one buffer, and rejects of faulty lines."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Int64Array
from fastscore_jit.threads import StoppablePool, raise_if_stopped
from fastscore_readers.csv_records import (
    TEXT_AFTER_QUOTE,
    TOO_LONG,
    UNTERMINATED_QUOTE,
    WRONG_CELL_COUNT,
)
from fastscore_readers.fill import LineScan, joined_scans
from fastscore_readers.json.documents import LINE_END_IN_STRING
from fastscore_readers.json.faults import NOT_JSON, NOT_OBJECT, NOT_UTF8, TOO_DEEP
from fastscore_readers.json.lines import MOST_VIEWED, scan_jsonl
from fastscore_readers.json.tokens import MAX_DEPTH

from fastscore.files import Damage
from fastscore.logs.integrity.limits import MAX_RECORD_BYTES
from fastscore.logs.integrity.rejects import (
    FOUND_CHARACTERS,
    RAW_CHARACTERS,
    Reject,
    cut,
    damaged,
    decode,
)
from fastscore.logs.read.lines import BLOCK_BYTES, BOM, Lines
from fastscore.suites.declarations import RejectReason

Item = TypeVar("Item")
Result = TypeVar("Result")

# polars imports numpy at its first array, which can fail in two threads at once
pl.Series(np.empty(0))


@dataclass(frozen=True, slots=True)
class Batch:
    """Concatenated lines of several parts."""

    data: npt.NDArray[np.uint8]  # their bytes, uint8
    begins: Int64Array  # where each segment starts in `data`, int64, ascending
    parts: Int64Array  # the index of the part that each segment belongs to, int64
    # The lines. Only the last segment may have damage. Refused ones are separate batches.
    segments: tuple[Lines, ...]

    def scan(
        self,
        keys: tuple[bytes, ...],
        array_key: bytes | None,
        fill: Mapping[bytes, int] | None = None,
    ) -> LineScan:
        """Scan the batch, or join the scans of its streams. Line numbers are those of the files."""
        scans = [
            (begin, lines.records)
            for begin, lines in zip(self.begins.tolist(), self.segments, strict=True)
            if lines.records is not None
        ]
        if scans:
            return joined_scans(self.data, scans)
        scan = scan_jsonl(
            self.data,
            keys,
            restarts=self._restarts(),
            array_key=array_key,
            fill=fill if self.data.size < MOST_VIEWED else None,
        )
        marks = _marks(scan)
        if marks.size:
            # spaces are ignored, and keep all positions
            data = self.data.copy()
            data[marks[:, None] + np.arange(len(BOM))] = ord(" ")
            return replace(self, data=data).scan(keys, array_key, fill)
        in_documents = self.segments[0].numbers is not None
        return replace(scan, syntax="json" if in_documents else "jsonl")

    def _restarts(self) -> Int64Array:
        numbers = [
            np.array([[begin, lines.line]], np.int64)
            if lines.numbers is None
            else lines.numbers + np.array([begin, 0])
            for begin, lines in zip(self.begins.tolist(), self.segments, strict=True)
            if lines.data
        ]
        return np.concatenate(numbers) if numbers else np.empty((0, 2), np.int64)

    def places(self, starts: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the part of each position in ``data``, and its byte offset in that part's file."""
        segments = np.searchsorted(self.begins, starts, side="right") - 1
        shift = np.array([lines.offset for lines in self.segments], np.int64) - self.begins
        offsets = starts + shift[segments]
        for segment, lines in enumerate(self.segments):
            if lines.offsets is not None and lines.numbers is not None:
                here = segments == segment
                own = starts[here] - self.begins[segment]
                places = np.searchsorted(lines.numbers[:, 0], own, side="right") - 1
                offsets[here] = lines.offsets[places]
        return self.parts[segments], offsets


def _marks(scan: LineScan) -> Int64Array:
    starts = scan.fault_start[scan.fault_end - scan.fault_start >= len(BOM)]
    heads = scan.data[starts[:, None] + np.arange(len(BOM))]
    is_mark: npt.NDArray[np.bool_] = (heads == np.frombuffer(BOM, np.uint8)).all(axis=1)
    return starts[is_mark]


def gather(streams: Iterable[tuple[int, Iterable[Lines]]]) -> Iterator[Batch]:
    """Gather the lines of parts, given with their index, into batches of about `BLOCK_BYTES`.

    Segments with many short lines are separate batches.
    """
    waiting: list[tuple[int, Lines]] = []
    size = 0
    for part, stream in streams:
        for lines in stream:
            if lines.refused is not None:
                if waiting:
                    yield _batch(waiting)
                yield _batch([(part, lines)])
                waiting, size = [], 0
                continue
            # a block without its cut last line is not joined to another
            is_large = len(lines.data) >= BLOCK_BYTES // 2 or lines.dense
            if is_large and waiting:
                yield _batch(waiting)
                waiting, size = [], 0
            waiting.append((part, lines))
            size += len(lines.data)
            if is_large or size >= BLOCK_BYTES // 2 or lines.damage is not None:
                yield _batch(waiting)
                waiting, size = [], 0
    if waiting:
        yield _batch(waiting)


def _batch(waiting: list[tuple[int, Lines]]) -> Batch:
    """Join segments. Each ends with a line end except the last."""
    begins: list[int] = []
    joined: list[bytes | memoryview] = []
    size = 0
    for position, (_, lines) in enumerate(waiting):
        begins.append(size)
        joined.append(lines.data)
        size += len(lines.data)
        if position + 1 < len(waiting) and lines.data and lines.data[-1:] != b"\n":
            joined.append(b"\n")
            size += 1
    data = joined[0] if len(joined) == 1 else b"".join(joined)
    return Batch(
        np.frombuffer(data, np.uint8),
        np.array(begins, np.int64),
        np.array([part for part, _ in waiting], np.int64),
        tuple(lines for _, lines in waiting),
    )


def map_ordered(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """Yield ``work(item)`` in the order of the items, computing a few of them in parallel."""
    if threads <= 1:
        for item in items:
            raise_if_stopped()
            yield work(item)
        return
    with StoppablePool(threads) as pool:
        # pending work is never cancelled, as later work may wait for it
        flying: deque[Future[Result]] = deque()
        for item in items:
            raise_if_stopped()
            flying.append(pool.submit(work, item))
            if len(flying) > threads:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()


FAULTS: dict[int, tuple[RejectReason, str]] = {
    NOT_JSON: ("not_json", "one JSON object a line"),
    NOT_OBJECT: ("not_an_object", "one JSON object a line"),
    NOT_UTF8: ("not_utf8", "UTF-8"),
    TOO_DEEP: ("nested_too_deeply", f"at most {MAX_DEPTH} levels"),
    WRONG_CELL_COUNT: ("wrong_cell_count", "as many cells as the header has"),
    UNTERMINATED_QUOTE: ("bad_quoting", "a closing quote"),
    TEXT_AFTER_QUOTE: ("bad_quoting", "a separator or a line end after a closing quote"),
    TOO_LONG: ("line_too_long", f"at most {MAX_RECORD_BYTES} bytes a record"),
}
"""The reject reason of each fault of the scanners, and the expected input."""


def line_fault(scan: LineScan, batch: Batch, files: Sequence[str], index: int) -> Reject:
    """Return the reject of a faulty line."""
    start, end = int(scan.fault_start[index]), int(scan.fault_end[index])
    status = int(scan.fault_status[index])
    parts, offsets = batch.places(scan.fault_start[index : index + 1])
    reason, expected = FAULTS[status]
    if status == WRONG_CELL_COUNT:
        expected = f"{int(scan.fault_width[index])} cells, as the header has"
    elif scan.syntax == "json" and status in (NOT_JSON, NOT_OBJECT):
        expected = "a JSON object"
    place = files[parts[0]], int(scan.fault_line[index]), int(offsets[0])
    raw = raw_line(scan, start, end)
    return Reject(*place, None, reason, _found(scan, index), expected, raw)


def raw_line(scan: LineScan, start: int, end: int) -> str:
    """Decode the beginning of a line. Spaces after a JSON element are removed."""
    raw = scan.data[start : min(end, start + 8 * RAW_CHARACTERS)].tobytes()
    return decode(raw.rstrip(b" ") if scan.syntax == "json" else raw)


def _found(scan: LineScan, index: int) -> str:
    start, end = int(scan.fault_start[index]), int(scan.fault_end[index])
    position = int(scan.fault_position[index])
    status = int(scan.fault_status[index])
    if status == NOT_OBJECT:
        return cut(raw_line(scan, position, end).rstrip(), FOUND_CHARACTERS)
    if status == TOO_DEEP:
        return f"more than {MAX_DEPTH} levels"
    if status == TOO_LONG:
        return f"more than {MAX_RECORD_BYTES} bytes"
    if status == WRONG_CELL_COUNT:
        cells = int(scan.fault_cells[index])
        return "1 cell" if cells == 1 else f"{cells} cells"
    where = f"at byte {position - start + 1} of the"
    if status == UNTERMINATED_QUOTE:
        return f"a quote {where} line that is not closed"
    if status == TEXT_AFTER_QUOTE:
        # it may be on a later line, which is not in the buffer
        return f"text {where} record after a closing quote"
    if position >= end:
        return "the end of the line"
    byte = int(scan.data[position])
    if byte == LINE_END_IN_STRING:
        what = "a line end within a string"
    elif status == NOT_UTF8 or byte < 0x20:
        what = f"byte 0x{byte:02x}"
    else:
        what = repr(scan.data[position : position + 4].tobytes().decode("utf-8", "replace")[:1])
    return f"{what} {where} line"


def note_damage(
    damage: Damage,
    rejects: list[tuple[int, Reject]],
    scan: LineScan,
    batch: Batch,
    files: Sequence[str],
) -> int:
    """Record damage after a batch. Return 1 if it counts as a separate line, else 0.

    If the last line is incomplete, the damage is its reject.
    """
    last = batch.segments[-1]
    line = scan.next_line if last.data else last.line
    offset, size = last.offset + len(last.data), scan.data.size
    reject = damaged(damage, files[int(batch.parts[-1])], line, offset)
    unfinished = scan.fault_end.size > 0 and int(scan.fault_end[-1]) == size
    if unfinished and last.data and last.data[-1:] not in (b"\n", b"\r"):
        start, of_line = rejects.pop(
            next(i for i, (start, _) in enumerate(rejects) if start == int(scan.fault_start[-1]))
        )
        own = {name: getattr(reject, name) for name in ("reason", "found", "expected")}
        rejects.append((start, replace(of_line, **own)))
        return 0
    rejects.append((size, reject))
    return 1
