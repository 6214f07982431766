"""The first rows of files, taken by the readers, as Python objects: to see what a log contains.

Lines that readers reject are skipped. Blocks are small, so that the first rows of many files cost
little. If no row follows for long, no more of a file is read.
"""

import csv
import io
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from fastscore.errors import InputError
from fastscore.files import DamageError
from fastscore.logs.inputs.chats import array_holds_rows, array_name
from fastscore.logs.inputs.document_values import dump_json, load_json
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.inputs.folders import partition_of, with_folders
from fastscore.logs.integrity.limits import MAX_RECORD_BYTES
from fastscore.logs.integrity.rejects import UNREADABLE_PARQUET, reason_of
from fastscore.logs.read.csv_records import read_cells
from fastscore.logs.read.csv_records import read_records as read_csv
from fastscore.logs.read.lines import (
    BOM,
    Block,
    Lines,
    first_text,
    gathered,
    read_blocks,
    read_document,
    read_lines,
)
from fastscore.logs.read.mapped_rows import stored_source
from fastscore.logs.read.parquet import arrow_frames, bounded, group_sizes, is_arrow
from fastscore.logs.samples.profile import HEAD_ROWS, Record
from fastscore.suites.declarations import Source

_BLOCK_BYTES = 1 << 14
_HEAD_BYTES = 1 << 20
"""How much of a large file `inspect` looks at."""
_SMALL_BYTES, _SMALL_PACKED = 1 << 20, 1 << 16
_LARGE_VALUE, _MOST_ENTRIES = 1 << 20, 200
"""Of a larger JSON value so many entries of each array and object are looked at."""
_MOST_LINES = 20_000
"""After so many lines without a row, or more bytes than a row may have, no more is read."""
_ROWS_AT_ONCE = 256


class _GivenUpError(Exception):
    """No row follows for long."""


def read_records(
    file: InputFile, source: Source, given_up: Callable[[], object] = lambda: None
) -> Iterator[Record]:
    """Yield the rows of a file as a source takes them; see `records`.

    Names of CSV are those of the source's keys, which the readers compare without case.
    """
    rows = records(file, array_name(source), given_up, array_holds_rows(source))
    if file.format != "csv":
        return rows
    columns = stored_source(source).columns
    declared = [key for column in columns for key in reversed(column.keys)]
    keys = {key.strip().lower(): key for key in declared} | {key: key for key in declared}
    return ({keys.get(name, name): cell for name, cell in row.items()} for row in rows)


def records(
    file: InputFile,
    array_column: str | None = None,
    given_up: Callable[[], object] = lambda: None,
    holds_rows: Callable[[Any], bool] | None = None,
) -> Iterator[Record]:
    """Yield a file's rows, each a dict."""
    partition = partition_of(file.path)
    try:
        values = _values(file, holds_rows or (lambda _: array_column is None))
        for row in row_records(values, array_column):
            yield with_folders(row, partition)
    except _GivenUpError:
        given_up()
    except UNREADABLE_PARQUET as error:
        raise InputError(f"The file {file.path!r} cannot be read: {reason_of(error)}.") from error


def row_records(values: Iterable[Any], array_column: str | None) -> Iterator[Record]:
    """Yield rows of values: objects, and arrays that are rows by themselves."""
    for value in values:
        if isinstance(value, dict):
            # JSON has keys of text, and rows of Python may have others
            is_json = all(type(key) is str for key in value)
            yield value if is_json else {str(key): each for key, each in value.items()}
        elif isinstance(value, list) and array_column is not None:
            yield {array_column: value}


def _values(file: InputFile, holds_rows: Callable[[Any], bool]) -> Iterator[Any]:
    """Yield what a file contains, row by row."""
    if file.format == "parquet":
        for frame in _frames(file):
            yield from frame.iter_rows(named=True)
        return
    n_lines = n_bytes = 0

    def blocks() -> Iterator[Block]:
        nonlocal n_bytes
        for block in _blocks(file):
            n_bytes += len(block)
            if n_bytes > MAX_RECORD_BYTES + 2 * _BLOCK_BYTES or n_lines > _MOST_LINES:
                raise _GivenUpError
            yield block

    if file.format == "csv":
        values: Iterator[Any] = read_cells(blocks())
    elif file.format == "json":
        values = _json_values(read_document(blocks(), file.path, holds_rows=holds_rows))
    else:
        values = _json_values(read_lines(blocks(), file.path, line=0))
    for value in values:
        n_lines += 1
        if value is not None:
            n_lines = n_bytes = 0
            yield value


def _json_values(stream: Iterable[Lines]) -> Iterator[Any]:
    """Yield the value of each line, None for lines that are no JSON."""
    for lines in stream:
        for line in bytes(lines.data).splitlines():
            text = line.removeprefix(BOM).strip()
            if text:
                try:
                    yield load_json(text)
                except ValueError:
                    yield None


def _blocks(file: InputFile) -> Iterator[Block]:
    """Yield the unpacked bytes of a file; its own reader bounds them."""
    return read_blocks(file.location, file.compression, limits=None, block_bytes=_BLOCK_BYTES)


def _frames(file: InputFile) -> Iterator[pl.DataFrame]:
    """Yield the rows of stored columns."""
    source: Any = file.location
    if file.compression != "none":
        source = io.BytesIO()
        try:
            source.writelines(read_blocks(file.location, file.compression))
        except DamageError:
            return  # its reader says so
        source.seek(0)
    if is_arrow(source):
        yield from arrow_frames(source)
        return
    sizes = group_sizes(source)
    n_rows = sum(rows for rows, _ in sizes)
    if sum(size for _, size in sizes) > MAX_RECORD_BYTES * n_rows > 0:
        raise _GivenUpError
    scan = pl.scan_parquet(source, glob=False)
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        yield from bounded(scan.slice(start, _ROWS_AT_ONCE).collect())


def blank_line(file: InputFile) -> int:
    """Return the number of the first line without a text between rows; 0 without any."""
    text = next(gathered(_blocks(file), _HEAD_BYTES), b"").decode(errors="replace")
    lines, found = io.StringIO(text.strip(), newline=""), 0
    rows = csv.reader(lines) if file.format == "csv" else None
    with suppress(csv.Error):
        for number, row in enumerate(lines if rows is None else rows, 1):
            if not "".join(row).strip(" ,;\t\r\n\ufeff"):
                found = found or (number if rows is None else rows.line_num)
    return found


def first_row(file: InputFile) -> Record | None:
    """Return the first row of a file whose first line was kept; None for others."""
    with suppress(ValueError):
        row = orjson.loads(file.first_line)
        return with_folders(row, partition_of(file.path)) if isinstance(row, dict) else None
    return None


def beginning_of(file: InputFile, folder: Path) -> InputFile:
    """Return a small file with the first rows of a large one, written to a folder.

    A small file, and one whose beginning cannot be read, is returned as it is: its reader says why.
    """
    if file.size <= (_SMALL_BYTES if file.compression == "none" else _SMALL_PACKED):
        return file
    path = folder / f"{len(os.listdir(folder))}.{file.format}"
    try:
        if file.format == "parquet":
            frames = itertools.islice(_frames(file), HEAD_ROWS // _ROWS_AT_ONCE + 1)
            pl.concat(frames).head(HEAD_ROWS + 1).write_parquet(path)
        else:
            path.write_bytes(_first_values(file) if file.format == "json" else _first_lines(file))
    except _GivenUpError as error:
        if file.format != "json":
            return file
        raise InputError(
            f"{file.path}: a JSON value of more than {MAX_RECORD_BYTES >> 20} MiB is not read.",
            "Write its dialogues as an array, or one a line: `jq -c '.[]'`.",
        ) from error
    except (OSError, ValueError, DamageError, InputError, pl.exceptions.PolarsError):
        return file
    return replace(file, stored=str(path), compression="none", size=path.stat().st_size)


def _first_lines(file: InputFile) -> bytes:
    """Return the first lines of text, of CSV its first records."""
    blocks = itertools.islice(_blocks(file), MAX_RECORD_BYTES // _BLOCK_BYTES)
    is_csv, end = file.format == "csv", 0
    name = file.path
    for lines in read_csv(blocks, name, ()) if is_csv else read_lines(blocks, name, line=0):
        end = lines.offset + len(lines.data)
        if end >= _HEAD_BYTES:
            break
    return bytes(next(gathered(_blocks(file), max(end, 1)), b"")[:end])


def _first_values(file: InputFile) -> bytes:
    """Return the first values of a document, or the first elements of its array."""
    texts: list[bytes] = []
    size = 0
    for value in itertools.islice(_values(file, lambda _: True), HEAD_ROWS + 1):
        text = dump_json(value)
        texts.append(text if len(text) <= _LARGE_VALUE else dump_json(_shortened(value)))
        size += len(texts[-1])
        if size >= _HEAD_BYTES:
            break
    if first_text(file.location, file.compression).startswith(b"["):
        return b"[" + b",\n".join(texts) + b"]"
    return b"\n".join(texts)


def _shortened(value: Any) -> Any:
    """Leave out what follows the first entries of arrays and objects."""
    if isinstance(value, dict):
        return {k: _shortened(v) for k, v in itertools.islice(value.items(), _MOST_ENTRIES)}
    if isinstance(value, list):
        return [_shortened(each) for each in value[:_MOST_ENTRIES]]
    return value
