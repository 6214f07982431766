"""Batches: whole lines of one or many files in one buffer, so that small files cost little."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array
from fastscore_jit.stopping import StoppablePool, raise_if_stopped
from fastscore_readers.json.lines import MOST_VIEWED, scan_jsonl
from fastscore_readers.line_scan import LineScan, joined_scans

from fastscore.logs.read.blocks import BLOCK_BYTES
from fastscore.logs.read.lines import BOM, Lines

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of several parts, one after another.

    Parameters
    ----------
    data
        Their bytes, uint8; empty for a line that is too long.
    begins
        Where each segment starts in ``data``, int64, ascending.
    parts
        The index of the part that each segment belongs to, int64.
    segments
        The lines; only the last may carry damage, and what is no line, or one that is too long,
        stands alone.
    """

    data: npt.NDArray[np.uint8]
    begins: Int64Array
    parts: Int64Array
    segments: tuple[Lines, ...]

    @property
    def has_no_lines(self) -> bool:
        """Whether the batch contains no line that can be scanned."""
        last = self.segments[-1]
        return last.long_line > 0 or last.refused is not None

    def scan(
        self,
        keys: tuple[bytes, ...],
        array_key: bytes | None,
        fill: Mapping[bytes, int] | None = None,
    ) -> LineScan:
        """Scan the batch, or join what its streams scanned; line numbers are those of the files.

        Parameters
        ----------
        keys
            The names that are wanted; CSV streams were scanned by the same.
        array_key
            The one of them whose value a line is that is an array.
        fill
            Those whose values are wanted as Arrow columns too, see `scan_jsonl`.
        """
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
            # spaces are passed over, and keep every byte in its place
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
        """Return the part of each position in ``data``, and its byte in that part's file."""
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
    """Return where byte order marks stand at the beginning of lines that are faulty by them."""
    starts = scan.fault_start[scan.fault_end - scan.fault_start >= len(BOM)]
    heads = scan.data[starts[:, None] + np.arange(len(BOM))]
    is_mark: npt.NDArray[np.bool_] = (heads == np.frombuffer(BOM, np.uint8)).all(axis=1)
    return starts[is_mark]


def gather(streams: Iterable[tuple[int, Iterable[Lines]]]) -> Iterator[Batch]:
    """Gather the lines of parts, given with their index, into batches of about `BLOCK_BYTES`.

    Lines that are very many are batches by themselves.
    """
    waiting: list[tuple[int, Lines]] = []
    size = 0
    for part, stream in streams:
        for lines in stream:
            if lines.long_line or lines.refused is not None:
                if waiting:
                    yield _batch(waiting)
                yield _batch([(part, lines)])
                waiting, size = [], 0
                continue
            # a block less its last, cut line is not joined to another
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
    """Join segments, each ended by a line end unless it is the last."""
    begins: list[int] = []
    joined: list[bytes | memoryview] = []
    size = 0
    for position, (_, lines) in enumerate(waiting):
        begins.append(size)
        if lines.long_line:
            continue
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
    """Yield ``work(item)`` in the order of the items, with a few of them in flight."""
    if threads <= 1:
        for item in items:
            raise_if_stopped()
            yield work(item)
        return
    with StoppablePool(threads) as pool:
        # what is in flight is not cancelled, however this ends: work may wait for work before it
        flying: deque[Future[Result]] = deque()
        for item in items:
            raise_if_stopped()
            flying.append(pool.submit(work, item))
            if len(flying) > threads:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()
