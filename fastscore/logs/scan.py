"""Reading a shard: typed rows in input order, rejects with their places, and counts."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels.jsonl import (
    MAX_DEPTH,
    NOT_JSON,
    NOT_OBJECT,
    NOT_UTF8,
    TOO_DEEP,
    JsonlScan,
)

from fastscore.logs.batches import Batch, gather, map_ordered
from fastscore.logs.columns import (
    EXPECTED,
    KINDS,
    Places,
    convert,
    describe,
    places,
    rows_where,
    wanted_keys,
)
from fastscore.logs.parquet import read_parquet
from fastscore.logs.pieces import Damage, Piece, Shard
from fastscore.logs.rejects import (
    FOUND_CHARACTERS,
    RAW_CHARACTERS,
    REASONS,
    Reason,
    Reject,
    cut,
    decode,
    reject_frame,
)
from fastscore.logs.streams import MAX_LINE_BYTES, Lines, read_blocks, read_lines
from fastscore.suites.base import ROW_SCHEMA, Source

_FAULTS: dict[int, tuple[Reason, str]] = {
    NOT_JSON: ("not_json", "one JSON object a line"),
    NOT_OBJECT: ("not_an_object", "one JSON object a line"),
    NOT_UTF8: ("not_utf8", "UTF-8"),
    TOO_DEEP: ("nested_too_deeply", f"at most {MAX_DEPTH} levels"),
}


@dataclass(frozen=True, slots=True)
class Rows:
    """What was read of a shard.

    Parameters
    ----------
    frame
        The rows in input order: the columns of `ROW_SCHEMA`, then the declared ones.
    rejects
        What no row could be made of, in the schema of `REJECT_SCHEMA`, in input order.
    counts
        ``lines`` = ``blank`` + ``rows`` + ``rejects``. A compressed file that is cut off between
        two lines counts as one more line, which is a reject.
    """

    frame: pl.DataFrame
    rejects: pl.DataFrame
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of one batch."""

    frame: pl.DataFrame
    rejects: list[Reject]
    lines: int
    blank: int


def read_shard(shard: Shard, source: Source, *, threads: int = 1) -> Rows:
    """Read a shard's rows by a source's declared columns.

    Parameters
    ----------
    shard
        What to read.
    source
        The columns, with their types, coercions and what becomes of other values.
    threads
        How many threads scan at once; the result does not depend on it.

    Raises
    ------
    InputError
        When a file cannot be read.
    """
    parts: list[_Part] = []
    for format, group in itertools.groupby(shard.pieces, lambda piece: piece.format):
        pieces = tuple(group)
        if format == "parquet":
            parts.extend(part for piece in pieces for part in _read_parquet(piece, source))
        else:
            parts.extend(_read_jsonl(pieces, source, threads))
    frames = [part.frame for part in parts]
    rejects = [reject for part in parts for reject in part.rejects]
    frame = pl.concat(frames) if frames else pl.DataFrame(schema=row_schema(source))
    counts = {
        "lines": sum(part.lines for part in parts),
        "blank": sum(part.blank for part in parts),
        "rows": frame.height,
        "rejects": len(rejects),
    }
    return Rows(frame, reject_frame(rejects), counts)


def _read_jsonl(pieces: Sequence[Piece], source: Source, threads: int) -> Iterator[_Part]:
    """Read pieces of JSON Lines in batches."""
    files = tuple(piece.file for piece in pieces)
    keys = wanted_keys(source)
    batches = gather((index, piece_lines(piece)) for index, piece in enumerate(pieces))
    return map_ordered(lambda batch: _read_batch(batch, files, source, keys), batches, threads)


def _read_parquet(piece: Piece, source: Source) -> Iterator[_Part]:
    """Read a piece of a Parquet file; its lines are its rows."""
    names: list[pl.Expr | str] = [pl.lit(piece.file).alias("file"), "line"]
    names.append(pl.lit(None, dtype=pl.Int64).alias("byte_offset"))
    for count, frame, rejects in read_parquet(piece, source.columns):
        rows = frame.select(*names, *(column.name for column in source.columns))
        yield _Part(rows, rejects, lines=count, blank=0)


def row_schema(source: Source) -> dict[str, pl.DataType]:
    """Return the schema of the rows that `read_shard` makes for a source."""
    return {**ROW_SCHEMA, **{column.name: KINDS[column.kind] for column in source.columns}}


def piece_lines(piece: Piece) -> Iterator[Lines]:
    """Stream the lines of a JSON Lines piece."""
    blocks = read_blocks(piece.path, piece.compression, piece.start, piece.stop)
    return read_lines(
        blocks,
        offset=piece.start,
        line=piece.first_line,
        damage=piece.damage,
        max_line=MAX_LINE_BYTES,
    )


def _read_batch(
    batch: Batch, files: Sequence[str], source: Source, keys: tuple[bytes, ...]
) -> _Part:
    """Make typed rows and rejects of one batch."""
    last = batch.segments[-1]
    if last.long_line:
        reject = _long_line(files[int(batch.parts[0])], last)
        return _Part(pl.DataFrame(schema=row_schema(source)), [reject], lines=1, blank=0)
    scan = batch.scan(keys)
    parts, offsets = batch.places(scan.start)
    columns = {"file": _names(files, parts), "line": pl.Series(scan.line)}
    columns["byte_offset"] = pl.Series(offsets)
    bad = np.zeros(scan.line.size, np.uint8)
    culprit = np.zeros(scan.line.size, np.int64)
    found: list[Places] = []
    for index, column in enumerate(source.columns):
        found.append(places(scan, keys, column))
        converted = convert(found[-1], column, rows_where(column, columns))
        columns[column.name] = converted.values
        fresh = (bad == 0) & (converted.faults > 0)
        bad[fresh], culprit[fresh] = converted.faults[fresh], index
    frame = pl.DataFrame(columns, schema=row_schema(source))
    rejects = _line_faults(scan, batch, files)
    for row in np.flatnonzero(bad).tolist():
        start = int(scan.start[row])
        column = source.columns[culprit[row]]
        reject = Reject(
            files[parts[row]],
            int(scan.line[row]),
            int(offsets[row]),
            column.name,
            REASONS[bad[row] - 1],
            describe(found[culprit[row]], row),
            EXPECTED[column.kind],
            _raw(scan, start, int(scan.end[row])),
        )
        rejects.append((start, reject))
    if bad.any():
        frame = frame.filter(pl.Series(bad == 0))
    lines = scan.n_lines
    if last.damage is not None:
        lines += _note_damage(last.damage, rejects, scan, batch, files)
    rejects.sort(key=lambda placed: placed[0])
    return _Part(frame, [reject for _, reject in rejects], lines=lines, blank=scan.n_blank)


def _names(files: Sequence[str], parts: npt.NDArray[np.int64]) -> pl.Series:
    """Name the file of each row."""
    if parts.size == 0 or parts[0] == parts[-1]:
        name = files[int(parts[0])] if parts.size else ""
        return pl.repeat(name, parts.size, dtype=pl.String, eager=True)
    first = int(parts[0])
    names = pl.Series(files[first : int(parts[-1]) + 1], dtype=pl.String)
    return names.gather(pl.Series(parts - first))


def _raw(scan: JsonlScan, start: int, end: int) -> str:
    """Decode the beginning of a line."""
    return decode(scan.data[start : min(end, start + 8 * RAW_CHARACTERS)].tobytes())


def _line_faults(scan: JsonlScan, batch: Batch, files: Sequence[str]) -> list[tuple[int, Reject]]:
    """Name what is wrong with each faulty line, with its start in the batch."""
    parts, offsets = batch.places(scan.fault_start)
    rejects: list[tuple[int, Reject]] = []
    for index, status in enumerate(scan.fault_status):
        start, end = int(scan.fault_start[index]), int(scan.fault_end[index])
        reason, expected = _FAULTS[int(status)]
        reject = Reject(
            files[parts[index]],
            int(scan.fault_line[index]),
            int(offsets[index]),
            None,
            reason,
            _fault(scan, index, reason),
            expected,
            _raw(scan, start, end),
        )
        rejects.append((start, reject))
    return rejects


def _fault(scan: JsonlScan, index: int, reason: Reason) -> str:
    """Say what stands at the byte at which a line is wrong."""
    start, end = int(scan.fault_start[index]), int(scan.fault_end[index])
    position = int(scan.fault_position[index])
    if reason == "not_an_object":
        return cut(_raw(scan, position, end), FOUND_CHARACTERS)
    if reason == "nested_too_deeply":
        return f"more than {MAX_DEPTH} levels"
    if position >= end:
        return "the end of the line"
    byte = int(scan.data[position])
    if reason == "not_utf8" or byte < 0x20:
        what = f"byte 0x{byte:02x}"
    else:
        what = repr(
            scan.data[position : min(end, position + 4)].tobytes().decode("utf-8", "ignore")[:1]
        )
    return f"{what} at byte {position - start + 1} of the line"


def _long_line(file: str, lines: Lines) -> Reject:
    """Name a line that was skipped for its length."""
    return Reject(
        file,
        lines.line,
        lines.offset,
        None,
        "line_too_long",
        f"{lines.long_line} bytes",
        f"at most {MAX_LINE_BYTES} bytes",
        decode(lines.data),
    )


def _note_damage(
    damage: Damage,
    rejects: list[tuple[int, Reject]],
    scan: JsonlScan,
    batch: Batch,
    files: Sequence[str],
) -> int:
    """Name damage behind a batch: 1 when it counts as a line of its own, else 0.

    An unfinished last line is the damage's reject, in place of its own.
    """
    last = batch.segments[-1]
    file = files[int(batch.parts[-1])]
    reason, found = damage.reason, damage.found
    expected = "a whole compressed file"
    size = scan.data.size
    unfinished = scan.fault_end.size > 0 and int(scan.fault_end[-1]) == size
    if unfinished and last.data and last.data[-1:] not in (b"\n", b"\r"):
        start, reject = rejects.pop(
            next(i for i, (start, _) in enumerate(rejects) if start == int(scan.fault_start[-1]))
        )
        rejects.append((start, replace(reject, reason=reason, found=found, expected=expected)))
        return 0
    line = scan.next_line if last.data else last.line
    offset = last.offset + len(last.data)
    rejects.append((size, Reject(file, line, offset, None, reason, found, expected, "")))
    return 1
