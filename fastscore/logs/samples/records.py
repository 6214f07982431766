"""Rows of logs as Python reads them, one after another: to see what a log holds, never to score.

What cannot be read is passed over: readers name it. Nothing is read ahead but a small buffer, so
that the first rows of many files cost little; of a file in which no row follows for long, no more
is looked at.
"""

import codecs
import csv
import io
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from fastscore_jit.system import open_descriptor

from fastscore.errors import InputError
from fastscore.logs.inputs.archives import open_unpacked
from fastscore.logs.inputs.arrow_files import arrow_frames, is_arrow
from fastscore.logs.inputs.document_values import dump_json, json_of, load_json
from fastscore.logs.inputs.files import Format, InputFile
from fastscore.logs.inputs.first_bytes import find_separator
from fastscore.logs.inputs.folders import partition_of, with_folders
from fastscore.logs.inputs.found_keys import HEAD_ROWS, Record
from fastscore.logs.inputs.parquet_footer import group_sizes
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, MAX_RECORD_BYTES
from fastscore.logs.integrity.rejects import UNREADABLE_PARQUET, reason_of
from fastscore.logs.objects import is_remote
from fastscore.unpacked import DamageError

BUFFER_BYTES = 1 << 14
_HEAD_BYTES = 1 << 20
"""So much of a large file is looked at by `inspect`, if that is fewer than `HEAD_ROWS` rows."""
_SMALL_BYTES, _SMALL_PACKED = 1 << 20, 1 << 16
_LARGE_VALUE, _MOST_ENTRIES = 1 << 20, 200
"""Of a larger JSON value so many entries of each array and object are looked at."""
_FIRST_BYTES, _MORE_BYTES = 1 << 9, 1 << 12
"""So much of a file is read for its first line, and so much more where that is longer."""
_MOST_LINES = 20_000
_MOST_BYTES = 64 << 20
"""So much without a row is looked at."""
_ROWS_AT_ONCE = 256


class _GivenUpError(Exception):
    """No row follows for long."""


def records(
    file: InputFile,
    array_column: str | None = None,
    given_up: Callable[[], object] = lambda: None,
    holds_rows: Callable[[Any], bool] | None = None,
) -> Iterator[Record]:
    """Yield a file's rows, each a dict.

    Parameters
    ----------
    file
        The file. Names of CSV are stripped and in lower case, its cells are texts.
    array_column
        The name under which an array stands that is a row by itself; without one, the elements of a
        document's array are rows, and other arrays are passed over.
    holds_rows
        Tells by its first element whether the array of a document holds rows; None for what
        ``array_column`` says.
    given_up
        Called where what follows is not looked at, as no row was seen for long.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    readers: dict[Format, Callable[[InputFile], Iterator[Any]]] = {
        "csv": _csv_rows,
        "json": partial(_documents, holds_rows=holds_rows or (lambda _: array_column is None)),
        "jsonl": _lines,
        "parquet": _parquet_rows,
    }
    try:
        partition = partition_of(file.path)
        for row in row_records(readers[file.format](file), array_column):
            yield with_folders(row, partition)
    except _GivenUpError:
        given_up()
    except DamageError:
        return  # what stands before the damage was seen
    except UNREADABLE_PARQUET as error:
        raise InputError(f"The file {file.path!r} cannot be read: {reason_of(error)}.") from error


def beginning_of(file: InputFile, folder: Path) -> InputFile:
    """Return a small file with the first rows of a large one, written to a folder.

    A small file, and one whose beginning cannot be read, is returned as it is: its reader says why.

    Raises
    ------
    InputError
        The first value of a JSON document is too long to be read.
    """
    if file.size <= (_SMALL_BYTES if file.compression == "none" else _SMALL_PACKED):
        return file
    path = folder / f"{len(os.listdir(folder))}.{file.format}"
    try:
        if file.format == "parquet":
            _first_frame(file).write_parquet(path)
        elif file.format == "json":
            path.write_bytes(_first_values(file))
        else:
            path.write_bytes(b"".join(_first_lines(file)))
    except _GivenUpError as error:
        raise InputError(
            f"{file.path}: a JSON value of more than {MAX_RECORD_BYTES >> 20} MiB is not read.",
            "Write its dialogues as an array, or one a line: `jq -c '.[]'`.",
        ) from error
    except (OSError, DamageError, pl.exceptions.PolarsError):
        return file
    return replace(file, stored=str(path), compression="none", size=path.stat().st_size)


def _first_lines(file: InputFile) -> Iterator[bytes]:
    """Yield the first lines of text; cells of CSV are not cut."""
    n_rows = n_bytes = n_quotes = 0
    with open_unpacked(file.location, file.compression) as stream:
        for line in iter(partial(stream.readline, MAX_RECORD_BYTES), b""):
            if file.format != "csv" or n_quotes % 2 == 0:
                if n_rows > HEAD_ROWS or n_bytes >= _HEAD_BYTES:
                    return
                n_rows += 1
            n_bytes, n_quotes = n_bytes + len(line), n_quotes + line.count(b'"')
            yield line


def _first_values(file: InputFile) -> bytes:
    """Return the first values of a document, or the first elements of its array."""
    written: list[bytes] = []
    size = 0
    for value in itertools.islice(_documents(file, holds_rows=lambda _: True), HEAD_ROWS + 1):
        text = dump_json(value)
        if len(text) > _LARGE_VALUE:
            text = dump_json(_shortened(value))
        written.append(text)
        size += len(text)
        if size >= _HEAD_BYTES:
            break
    if begins_with(file).startswith(b"["):
        return b"[" + b",\n".join(written) + b"]"
    return b"\n".join(written)


def _shortened(value: Any) -> Any:
    """Leave out what follows the first entries of arrays and objects."""
    if isinstance(value, dict):
        return {k: _shortened(v) for k, v in itertools.islice(value.items(), _MOST_ENTRIES)}
    if isinstance(value, list):
        return [_shortened(each) for each in value[:_MOST_ENTRIES]]
    return value


def _first_frame(file: InputFile) -> pl.DataFrame:
    """Return the first rows of stored columns."""
    source = _stored(file)
    if not is_arrow(source):
        return pl.scan_parquet(source, glob=False).head(HEAD_ROWS + 1).collect()
    return next(arrow_frames(source, None, 0, HEAD_ROWS + 1), pl.DataFrame())


def first_row(file: InputFile) -> Record | None:
    """Return the first row of JSON Lines that begin with one as plain as logs are; else None."""
    if file.format != "jsonl" or file.compression != "none":
        return None
    try:
        row = orjson.loads(file.first_line or _first_line(file))
    except (OSError, ValueError):
        return None
    return with_folders(row, partition_of(file.path)) if isinstance(row, dict) else None


def _first_line(file: InputFile) -> bytes:
    """Read the first line of a local file; nothing of one that is long."""
    if is_remote(file.location):
        return b""
    descriptor = open_descriptor(file.location)
    try:
        text = os.read(descriptor, _FIRST_BYTES)
        end = text.find(b"\n")
        if end < 0:
            text += os.read(descriptor, _MORE_BYTES)
            end = text.find(b"\n")
    finally:
        os.close(descriptor)
    return text[:end] if end >= 0 else b""


def begins_with(file: InputFile) -> bytes:
    """Return how a file of JSON begins, white space aside; nothing of one that is empty.

    Of what cannot be unpacked, and of an empty array, there is nothing either.
    """
    with suppress(OSError, DamageError), open_unpacked(file.location, file.compression) as stream:
        while part := stream.read(BUFFER_BYTES):
            text = part.removeprefix(codecs.BOM_UTF8).strip()
            if text:
                return b"" if b"".join(text.split()) == b"[]" and not stream.read(1) else text
    return b""


def row_records(values: Iterable[Any], array_column: str | None) -> Iterator[Record]:
    """Yield rows of values: objects, and arrays that are rows by themselves."""
    for value in values:
        if isinstance(value, dict):
            yield value
        elif isinstance(value, list) and array_column is not None:
            yield {array_column: value}


def _lines(file: InputFile) -> Iterator[Any]:
    """Yield the values of JSON Lines."""
    with open_unpacked(file.location, file.compression) as stream:
        n_lines = n_bytes = 0
        while line := stream.readline(MAX_RECORD_BYTES):
            n_lines, n_bytes = n_lines + 1, n_bytes + len(line)
            # a file of carriage returns alone is one line to Python
            for part in line.splitlines() if b"\r" in line else (line,):
                text = part.removeprefix(codecs.BOM_UTF8).strip()
                if text:
                    with suppress(ValueError):
                        yield load_json(text)
                        n_lines = n_bytes = 0
            if n_lines > _MOST_LINES or n_bytes > _MOST_BYTES:
                raise _GivenUpError


def _documents(file: InputFile, *, holds_rows: Callable[[Any], bool]) -> Iterator[Any]:
    """Yield the values of a document, of an array its elements unless it is one row."""
    decoder = json.JSONDecoder()
    decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
    with open_unpacked(file.location, file.compression) as stream:
        data = stream.read(BUFFER_BYTES).removeprefix(codecs.BOM_UTF8)
        is_read, text, at = not data, decode(data), 0
        opens_rows: bool | None = None
        is_open = False
        while True:
            begin, at = at, _next(text, at)
            is_open = is_open and "]" not in text[begin:at]
            opens = text[at : at + 1] == "[" and not is_open
            if opens and opens_rows:
                at, is_open = at + 1, True
                continue
            begin = _next(text, at + 1) if opens and opens_rows is None else at
            try:
                value, end = decoder.raw_decode(text, begin)
            except (ValueError, RecursionError):
                if is_read:
                    return
                if len(text) - at > MAX_RECORD_BYTES:
                    raise _GivenUpError from None
                is_object = text[at : at + 1] == "{" and opens_rows is None
                # as much again, so that a long value is not begun too often
                size = MAX_RECORD_BYTES if is_object else max(BUFFER_BYTES, len(text) - at)
                data = stream.read(size)
                is_read = not data
                text, at = text[at:] + decode(data, is_read), 0
                if is_object and (whole := json_of(text)) is not text:
                    yield whole
                    return
                continue
            if opens and opens_rows is None:
                opens_rows = holds_rows(value)
                continue
            at = end
            yield value


def _next(text: str, at: int) -> int:
    """Return where the next value begins, after white space and what ends the one before."""
    while at < len(text) and text[at] in " \t\r\n,]":
        at += 1
    return at


def _csv_rows(file: InputFile) -> Iterator[Record]:
    csv.field_size_limit(MAX_RECORD_BYTES)
    with open_unpacked(file.location, file.compression) as stream:
        separator = find_separator(stream.peek(BUFFER_BYTES))
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        with suppress(csv.Error):
            if separator.skipped:
                text.readline()
            # a line is not read whole either
            lines = iter(partial(text.readline, MAX_RECORD_BYTES), "")
            rows = csv.reader(lines, delimiter=separator.character.decode())
            header = next((row for row in rows if row), [])
            names = [name.strip().lower() for name in header]
            n_lines = 0
            for row in rows:
                n_lines += 1
                if row and row[0].startswith("\ufeff"):
                    row[0] = row[0][1:]
                if row == header:
                    continue  # of a file that was appended
                if len(row) == len(names):
                    yield dict(zip(names, row, strict=True))
                    n_lines = 0
                elif n_lines > _MOST_LINES:
                    raise _GivenUpError


def _stored(file: InputFile) -> Any:
    """Return the path of stored columns, or the unpacked file."""
    if file.compression == "none":
        return file.location
    source = io.BytesIO()
    with open_unpacked(file.location, file.compression) as stream:
        while part := stream.read(1 << 20):
            DEFAULT_LIMITS.check_unpacked(file.path, file.size, source.tell() + len(part))
            source.write(part)
    source.seek(0)
    return source


def _parquet_rows(file: InputFile) -> Iterator[Record]:
    source = _stored(file)
    if is_arrow(source):
        for frame in arrow_frames(source):
            yield from frame_records(frame)
        return
    scan = pl.scan_parquet(source, glob=False)
    n_rows = int(scan.select(pl.len()).collect().item())
    if n_rows and _unpacked_size(source) > MAX_RECORD_BYTES * n_rows:
        raise _GivenUpError
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        yield from frame_records(scan.slice(start, _ROWS_AT_ONCE).collect())


def _unpacked_size(source: Any) -> int:
    """Return how many bytes the columns of a Parquet file are, unpacked; else an OSError."""
    return sum(size for _, size in group_sizes(source))


def frame_records(frame: pl.DataFrame) -> Iterator[Record]:
    """Yield a frame's rows."""
    yield from frame.iter_rows(named=True)
