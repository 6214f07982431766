"""Reads file ranges: typed rows in input order, rejects with their places, and counts.

`read_parts` is the only reader. A shard is its concatenated output. `scan.scan_rows` passes it to
polars part by part.
"""

import itertools
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Int64Array
from fastscore_jit.threads import StoppablePool, raise_if_stopped
from fastscore_readers import csv_records
from fastscore_readers.fill import LineScan, joined_scans
from fastscore_readers.json.documents import LINE_END_IN_STRING
from fastscore_readers.json.lines import (
    MOST_VIEWED,
    NOT_JSON,
    NOT_OBJECT,
    NOT_UTF8,
    TOO_DEEP,
    scan_jsonl,
)
from fastscore_readers.json.tokens import MAX_DEPTH

from fastscore.files import Damage
from fastscore.logs.inputs.chats import array_holds_rows
from fastscore.logs.inputs.files import Format, InputFile
from fastscore.logs.inputs.folders import Partition, check_partition, partition_of, with_partition
from fastscore.logs.integrity.file_state import (
    FileRange,
    FileState,
    Shard,
    check_stamp,
    read_whole,
    verified_blocks,
)
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, MAX_RECORD_BYTES, Limits
from fastscore.logs.integrity.rejects import (
    FOUND_CHARACTERS,
    LISTED_REJECTS,
    RAW_CHARACTERS,
    Reject,
    cap_rejects,
    cut,
    damaged,
    decode,
    reject_frame,
)
from fastscore.logs.read.columns import (
    KINDS,
    array_key,
    column_reject,
    convert_columns,
    describe,
    fills,
    places,
    wanted_keys,
)
from fastscore.logs.read.csv_records import read_records
from fastscore.logs.read.lines import (
    BLOCK_BYTES,
    BOM,
    Block,
    Lines,
    buffers_kept,
    read_document,
    read_lines,
)
from fastscore.logs.read.mapped_rows import (
    chat_lines,
    document_lines,
    joined_documents,
    joined_turns,
    line_source,
    mapped_rows,
    sorted_turns,
    stored_source,
    with_own_models,
)
from fastscore.logs.read.parquet import arrow_as_parquet, is_arrow, parquet_rows, read_parquet
from fastscore.suites.declarations import ROW_SCHEMA, Chat, RejectReason, Source
from fastscore.suites.identity import IDENTITY, NameSet, RunNames, identify, refuse_blank_ids

Item = TypeVar("Item")
Result = TypeVar("Result")

# polars imports numpy at its first array, which can fail in two threads at once
pl.Series(np.empty(0))


_SPARSE = 4
"""Rows are few if they are less than this fraction of the lines."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a shard."""

    # the rows in input order: the columns of `ROW_SCHEMA`, then the declared ones
    frame: pl.DataFrame
    # lines that cannot be parsed, in the schema of `REJECTS_TABLE`: the first of each file in input
    # order, then the number of others
    rejects: pl.DataFrame
    # `lines` = `blank` + `rows` + `rejects` + `left_out` (rows of dialogues that are not selected).
    # A compressed file that is truncated between two lines counts as one more line, which is a
    # reject.
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one batch."""

    frame: pl.DataFrame  # the rows: the columns of `ROW_SCHEMA`, then the declared ones
    rejects: list[Reject]  # lines that cannot be parsed, in input order
    # the numbers of lines and of blank lines
    lines: int
    blank: int
    left_out: int = 0  # the number of rows of dialogues that are not selected
    format: Format = "jsonl"  # the format of their files


@dataclass(frozen=True, slots=True)
class Batch:
    """Concatenated lines of several parts."""

    data: npt.NDArray[np.uint8]  # their bytes, uint8
    begins: Int64Array  # where each segment starts in `data`, int64, ascending
    parts: Int64Array  # the index of the part that each segment belongs to, int64
    # The lines. Only the last segment may have damage. Refused ones are separate batches.
    segments: tuple[Lines, ...]

    def scan(self, source: Source) -> LineScan:
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
            wanted_keys(source.columns),
            restarts=self._restarts(),
            array_key=array_key(source),
            fill=fills(source.columns) if self.data.size < MOST_VIEWED else None,
        )
        marks = _marks(scan)
        if marks.size:
            # spaces are ignored, and keep all positions
            data = self.data.copy()
            data[marks[:, None] + np.arange(len(BOM))] = ord(" ")
            return replace(self, data=data).scan(source)
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
    starts = scan.faults["start"][scan.faults["end"] - scan.faults["start"] >= len(BOM)]
    heads = scan.data[starts[:, None] + np.arange(len(BOM))]
    marks: Int64Array = starts[(heads == np.frombuffer(BOM, np.uint8)).all(axis=1)]
    return marks


def gather(streams: Iterable[tuple[int, Iterable[Lines]]]) -> Iterator[Batch]:
    """Gather the lines of parts, given with their index, into batches of about `BLOCK_BYTES`.

    Segments with many short lines are separate batches.
    """
    waiting: list[tuple[int, Lines]] = []
    size = 0
    for part, stream in streams:
        for lines in stream:
            # a block without its cut last line is not joined to another
            is_apart = lines.dense or len(lines.data) >= BLOCK_BYTES // 2
            is_apart |= lines.refused is not None
            if waiting and (is_apart or _fill_otherwise(waiting[-1][1], lines)):
                yield _batch(waiting)
                waiting, size = [], 0
            waiting.append((part, lines))
            size += len(lines.data)
            if is_apart or size >= BLOCK_BYTES // 2 or lines.damage is not None:
                yield _batch(waiting)
                waiting, size = [], 0
    if waiting:
        yield _batch(waiting)


def _fill_otherwise(lines: Lines, more: Lines) -> bool:
    """Return whether scans fill other columns, as those of files of several separators do."""
    scan, other = lines.records, more.records
    if scan is None or other is None:
        return False
    return not np.array_equal(scan.columns.kind, other.columns.kind)


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
    csv_records.WRONG_CELL_COUNT: ("wrong_cell_count", "as many cells as the header has"),
    csv_records.UNTERMINATED_QUOTE: ("bad_quoting", "a closing quote"),
    csv_records.TEXT_AFTER_QUOTE: (
        "bad_quoting",
        "a separator or a line end after a closing quote",
    ),
    csv_records.TOO_LONG: ("line_too_long", f"at most {MAX_RECORD_BYTES} bytes a record"),
}
"""The reject reason of each fault of the scanners, and the expected input."""


def line_fault(scan: LineScan, batch: Batch, files: Sequence[str], index: int) -> Reject:
    """Return the reject of a faulty line."""
    line, start, end, status, _, _, width = scan.faults[index].item()
    (part,), (offset,) = batch.places(np.array([start]))
    reason, expected = FAULTS[status]
    if status == csv_records.WRONG_CELL_COUNT:
        expected = f"{width} cells, as the header has"
    elif scan.syntax == "json" and status in (NOT_JSON, NOT_OBJECT):
        expected = "a JSON object"
    found, raw = _found(scan, index), raw_line(scan, start, end)
    return Reject(files[part], line, int(offset), None, reason, found, expected, raw)


def raw_line(scan: LineScan, start: int, end: int) -> str:
    """Decode the beginning of a line. Spaces after a JSON element are removed."""
    raw = scan.data[start : min(end, start + 8 * RAW_CHARACTERS)].tobytes()
    return decode(raw.rstrip(b" ") if scan.syntax == "json" else raw)


def _found(scan: LineScan, index: int) -> str:
    _, start, end, status, position, cells, _ = scan.faults[index].item()
    if status == NOT_OBJECT:
        return cut(raw_line(scan, position, end).rstrip(), FOUND_CHARACTERS)
    if status == TOO_DEEP:
        return f"more than {MAX_DEPTH} levels"
    if status == csv_records.TOO_LONG:
        return f"more than {MAX_RECORD_BYTES} bytes"
    if status == csv_records.WRONG_CELL_COUNT:
        return "1 cell" if cells == 1 else f"{cells} cells"
    where = f"at byte {position - start + 1} of the"
    if status == csv_records.UNTERMINATED_QUOTE:
        return f"a quote {where} line that is not closed"
    if status == csv_records.TEXT_AFTER_QUOTE:
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
    unfinished = scan.faults["end"].size > 0 and int(scan.faults["end"][-1]) == size
    if unfinished and last.data and last.data[-1:] not in (b"\n", b"\r"):
        own = {name: getattr(reject, name) for name in ("reason", "found", "expected")}
        at, start = [start for start, _ in rejects], int(scan.faults["start"][-1])
        rejects[at.index(start)] = start, replace(rejects[at.index(start)][1], **own)
        return 0
    rejects.append((size, reject))
    return 1


def read_shard(shard: Shard, source: Source, *, threads: int = 1) -> Rows:
    """Read a shard's rows by a source's declared columns."""
    return join_parts(read_parts(shard.file_ranges, source, threads=threads), source)


def join_parts(
    parts: Iterable[Part],
    source: Source,
    names: RunNames | None = None,
    chosen: Callable[[pl.Series], pl.Series] | None = None,
) -> Rows:
    """Join the parts of a source."""
    parts = list(parts)
    frames = [part.frame for part in parts if part.frame.height]
    rejects = cap_rejects(reject for part in parts for reject in part.rejects)
    frame = _concatenated(frames) if frames else pl.DataFrame(schema=part_schema(source))
    n_rows, left_out = frame.height, sum(part.left_out for part in parts)
    frame = joined_documents(sorted_turns(frame, source), source)
    is_named = names is not None
    frame = with_own_models(frame, source)
    if is_named or source.joins_turns:
        frame = identify(frame, source, names or RunNames())
    if source.joins_turns:
        refuse_blank_ids(frame, source.dialogue_key[0])
    if chosen is not None:
        kept = frame.filter(chosen(frame[IDENTITY]))
        n_dropped = frame.height - kept.height
        left_out, n_rows = left_out + n_dropped, n_rows - n_dropped
        frame = kept
    if source.joins_turns:
        frame = joined_turns(frame, source)
    counts = {
        "lines": sum(part.lines for part in parts),
        "blank": sum(part.blank for part in parts),
        "rows": n_rows,
        "rejects": sum(reject.count for reject in rejects),
    }
    if left_out:
        counts["left_out"] = left_out
    frame = frame if is_named else frame.drop(IDENTITY, strict=False)
    return Rows(frame, reject_frame(rejects), counts)


def read_names(file_ranges: Sequence[FileRange], naming: Source, shared: NameSet) -> pl.Series:
    """Return the names of the dialogues in planned ranges, read by `chosen.naming_source`."""
    frames = [pl.DataFrame(schema=row_schema(naming))]
    frames += [part.frame for part in read_parts(file_ranges, naming)]
    frame = pl.concat(frames, how="diagonal")
    frame = with_own_models(frame, naming)
    files = {file_range.file: file_range.name for file_range in file_ranges}
    return identify(frame, naming, RunNames(shared, files))[IDENTITY].unique()


def _concatenated(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate frames to one chunk. Columns of nulls are created anew, which needs no memory."""
    if len(frames) == 1:
        return frames[0].rechunk()
    frame = pl.concat(frames, rechunk=False)
    nulls = [column.clear(frame.height) for column in frame if column.null_count() == column.len()]
    present = frame.drop(column.name for column in nulls).rechunk()
    return present.with_columns(nulls).select(frame.columns)


def read_parts(
    file_ranges: Sequence[FileRange], source: Source, *, threads: int = 1
) -> Iterator[Part]:
    """Read byte ranges batch by batch, in input order. Memory is bounded by a few batches."""
    with buffers_kept():
        formats = by_format(file_ranges, source, lambda each: (each.format, each.file))
        for format, own, group in formats:
            if format == "parquet":
                ranges: Iterable[Iterator[Part]] = (
                    read_table(file_range, own) for file_range in group
                )
            else:
                ranges = [_read_lines(group, own, threads)]
            for part in itertools.chain.from_iterable(ranges):
                check_partition(part.frame, own)
                yield replace(part, format=format)


def by_format(
    items: Iterable[Item], source: Source, place: Callable[[Item], tuple[Format, str]]
) -> Iterator[tuple[Format, Source, tuple[Item, ...]]]:
    """Group consecutive files of one format and partition, with their source of columns."""

    def kind(item: Item) -> tuple[Format, Partition]:
        format, path = place(item)
        return format, partition_of(path)

    for (format, _), together in itertools.groupby(items, kind):
        group = tuple(together)
        yield format, with_partition(source, place(group[0])[1]), group


def _read_lines(file_ranges: Sequence[FileRange], source: Source, threads: int) -> Iterator[Part]:
    files = tuple(file_range.file for file_range in file_ranges)
    streams = (
        (index, range_lines(file_range, verified_blocks(file_range), source))
        for index, file_range in enumerate(file_ranges)
    )
    return read_streams(streams, files, line_source(source, file_ranges[0].format), threads)


def read_streams(
    streams: Iterable[tuple[int, Iterable[Lines]]],
    files: Sequence[str],
    source: Source,
    threads: int,
) -> Iterator[Part]:
    """Read lines in batches. Each comes with the index of its file's name."""
    return map_ordered(lambda batch: _read_batch(batch, files, source), gather(streams), threads)


def read_table(file_range: FileRange, source: Source) -> Iterator[Part]:
    """Read a byte range of a Parquet file. Its rows count as lines."""
    check_stamp(file_range)
    for count, rows, rejects in read_parquet(file_range, stored_source(source).columns):
        yield mapped_part(Part(rows, rejects, lines=count, blank=0), source, "parquet")
    check_stamp(file_range)


def part_schema(source: Source) -> dict[str, pl.DataType]:
    """Return the schema of rows before turns are joined."""
    return row_schema(source.document_chat.native if source.document_chat else source)


def row_schema(source: Source) -> dict[str, pl.DataType]:
    """Return the schema of the rows that `read_shard` makes for a source."""
    return {**ROW_SCHEMA, **{column.name: KINDS[column.kind] for column in source.columns}}


def range_lines(
    file_range: FileRange, blocks: Iterator[Block], source: Source, read: Source | None = None
) -> Iterator[Lines]:
    """Cut the bytes of a range into lines: those of text, records, or elements of a document.

    ``read`` has the columns that are read, by default those of the source.
    """
    file, format = file_range.file, file_range.format
    places: dict[str, Any] = {"offset": file_range.start, "line": file_range.first_line}
    places["damage"] = file_range.damage
    if format == "json":
        lines = read_document(
            blocks,
            file,
            holds_rows=array_holds_rows(source),
            in_array=file_range.header == b"[",
            goes_on=file_range.goes_on,
            **places,
        )
    elif format == "csv":
        stored = stored_source(read or source)
        fill = fills(stored.columns, cells_of=stored.dialogue_key)
        header = file_range.header
        lines = read_records(blocks, file, stored.columns, header=header, fill=fill, **places)
    else:
        lines = read_lines(blocks, file, **places)
    return chat_lines(lines, source, file, format)


def _read_batch(batch: Batch, files: Sequence[str], source: Source) -> Part:
    """Convert one batch to typed rows and rejects."""
    declared, source = source, stored_source(source)
    last = batch.segments[-1]
    if last.refused is not None:
        return Part(pl.DataFrame(schema=row_schema(declared)), [last.refused], lines=1, blank=0)
    keys = wanted_keys(source.columns)
    scan = batch.scan(source)
    parts, offsets = batch.places(scan.start)
    columns = {"file": _names(files, parts), "line": pl.Series(scan.line)}
    columns["byte_offset"] = pl.Series(offsets)
    found = [
        places(scan, keys, column, names_dialogue=column.name in source.dialogue_key)
        for column in source.columns
    ]
    bad, culprit = convert_columns(found, source.columns, columns)
    frame = pl.DataFrame(columns, schema=row_schema(source))

    def bad_row(row: int) -> Reject:
        place = files[parts[row]], int(scan.line[row]), int(offsets[row])
        found_there = describe(found[culprit[row]], row)
        raw = raw_line(scan, int(scan.start[row]), int(scan.end[row]))
        return column_reject(source.columns[culprit[row]], int(bad[row]), place, found_there, raw)

    rejects = _rejects(scan, batch, files, np.flatnonzero(bad), culprit * 256 + bad, bad_row)
    if bad.any():
        frame = frame.filter(pl.Series(bad == 0))
    if frame.height < scan.n_lines // _SPARSE:
        # the columns have room for every line: free the room of lines that are not rows
        frame = frame.select(pl.all().gather(pl.int_range(pl.len())))
    lines = scan.n_lines
    if last.damage is not None:
        lines += note_damage(last.damage, rejects, scan, batch, files)
    rejects.sort(key=lambda placed: placed[0])
    part = Part(frame, [reject for _, reject in rejects], lines=lines, blank=scan.n_blank)
    # lines from documents have the syntax of elements, too
    format = "jsonl" if scan.syntax == "json" and not last.in_document else scan.syntax
    return mapped_part(part, declared, format)


def _rejects(
    scan: LineScan,
    batch: Batch,
    files: Sequence[str],
    rows: Int64Array,
    kinds: Int64Array,
    bad_row: Callable[[int], Reject],
) -> list[tuple[int, Reject]]:
    """List faulty lines and rows, each with its start in the batch; very many are counted."""
    n_faults = scan.faults["start"].size
    if not n_faults + rows.size:
        return []
    starts = np.concatenate((scan.faults["start"], scan.start[rows]))
    placed = pl.DataFrame(
        {
            "start": starts,
            "file": batch.places(starts)[0],
            "line": np.concatenate((scan.faults["line"], scan.line[rows])),
            # faults of whole lines have no column
            "kind": np.concatenate((-1 - scan.faults["status"], kinds[rows])),
            "number": np.arange(starts.size),
        }
    ).sort("start", maintain_order=True)
    is_listed = pl.int_range(pl.len()).over("file") < LISTED_REJECTS
    if batch.segments[-1].damage is not None:
        # damage may replace the last
        is_listed |= pl.col("number") == n_faults - 1

    def describe(number: int) -> Reject:
        if number < n_faults:
            return line_fault(scan, batch, files, number)
        return bad_row(int(rows[number - n_faults]))

    # each listed reject is a group of its own
    groups = (
        placed.with_columns(own=pl.when(is_listed).then("number"))
        .group_by("file", "kind", "own", maintain_order=True)
        .agg(pl.col("start", "number").first(), pl.len(), pl.col("line").last())
        .select("start", "number", "len", "line")
    )
    return [
        (start, replace(describe(number), count=count, last_line=line))
        for start, number, count, line in groups.rows()
    ]


def mapped_part(part: Part, source: Source, format: Format) -> Part:
    """Create the declared columns if the column map has paths into nested values."""
    if source.document_chat is not None:
        return _document_part(part, source.document_chat)
    frame, rejects = mapped_rows(part.frame, source, format)
    return replace(part, frame=frame, rejects=cap_rejects([*part.rejects, *rejects]))


def _document_part(part: Part, chat: Chat) -> Part:
    """Convert documents, whose parts are cells of a table, to rows."""
    frames = [pl.DataFrame(schema=row_schema(chat.native))]
    rejects = list(part.rejects)
    for (file,), rows in part.frame.group_by("file", maintain_order=True):
        lines = document_lines(rows, chat, str(file))
        for made in read_streams([(0, [lines])], (str(file),), chat.native, threads=1):
            frame = made.frame
            if lines.offsets is None:
                frame = frame.with_columns(byte_offset=pl.lit(None, pl.Int64))
            frames.append(frame)
            rejects += made.rejects
    return replace(part, frame=pl.concat(frames), rejects=cap_rejects(rejects))


def _names(files: Sequence[str], parts: Int64Array) -> pl.Series:
    first, last = (int(parts[0]), int(parts[-1])) if parts.size else (0, 0)
    return pl.Series(files[first : last + 1], dtype=pl.String).gather(parts - first)


def read_files(
    files: Sequence[InputFile], source: Source, *, threads: int = 1, limits: Limits = DEFAULT_LIMITS
) -> Iterator[Part]:
    """Read files in order. Memory is bounded by a few batches."""
    with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
        for format, group in itertools.groupby(files, lambda file: file.format):
            states = [FileState.of(file, size=file.size, limits=limits) for file in group]
            if format == "parquet":
                for state in states:
                    yield from read_parts([whole_table(state, source, Path(scratch))], source)
            else:
                yield from read_parts([state.whole for state in states], source, threads=threads)


def whole_table(state: FileState, source: Source, scratch: Path) -> FileRange:
    """Return the range of a whole table, which is unpacked and written as Parquet if needed."""
    if state.compression != "none":
        read_whole(state, scratch)
    if is_arrow(state.path):
        columns = stored_source(source).columns
        state.path = arrow_as_parquet(state.path, state.file.path, columns, scratch)
        state.unpacked = True
    state.size = parquet_rows(state.path, state.file.path)
    return state.whole
