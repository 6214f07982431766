"""Reading a catalogue's records: JSON, JSON Lines, CSV and Parquet, plain or compressed."""

import codecs
import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import orjson
import polars as pl
from fastscore_jit.stopping import raise_if_stopped

from fastscore.errors import UsageError
from fastscore.unpacked import SUFFIXES, UnpackingError, unpack

LIST_SEPARATOR = "|"
"""Between the values of one CSV cell."""

_PLAIN_CELLS = ("name", "title", "plot")


@dataclass(frozen=True, slots=True)
class Record:
    """An item as it stands in the file.

    Parameters
    ----------
    place
        Where it stands, for messages: ``line 3``, ``record 'Inception'``.
    key
        The key under which it stands in a JSON object; None elsewhere.
    fields
        Its values by field.
    """

    place: str
    key: str | None
    fields: dict[str, Any]


def read_records(path: str, content: bytes) -> list[Record]:
    """Read the records of a catalogue.

    Parameters
    ----------
    path
        Names the format by its suffix: ``.json`` (an object of records by title, or an array),
        ``.jsonl`` or ``.ndjson``, ``.csv`` (a cell that is a JSON array, or whose values stand
        between ``|``, is a list), ``.parquet``; each also with ``.gz`` or ``.zst``.
    content
        The file's bytes.

    Raises
    ------
    UsageError
        The suffix is not known, or the content is not of that format; names the place.
    """
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in SUFFIXES else ""
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in _READERS:
        raise UsageError(
            f"{path}: the suffix names no format of a catalogue.",
            "Formats: " + ", ".join(_READERS) + ", each also with .gz or .zst.",
        )
    try:
        data = unpack(content, compression) if compression else content
    except UnpackingError as error:
        raise UsageError(f"{path}: cannot be unpacked: {error}.") from error
    records = []
    for record in _READERS[suffix](path, data.removeprefix(codecs.BOM_UTF8)):
        raise_if_stopped()
        records.append(record)
    if not records:
        raise UsageError(f"{path}: holds no item, expected at least one.")
    return records


def _read_json(path: str, data: bytes) -> Iterator[Record]:
    try:
        parsed = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{path}: not JSON: {error}.") from error
    if isinstance(parsed, dict):
        for key, value in parsed.items():
            place = f"record {key!r}"
            yield Record(place, key, _object(path, place, value))
    elif isinstance(parsed, list):
        for number, value in enumerate(parsed, 1):
            place = f"record {number}"
            yield Record(place, None, _object(path, place, value))
    else:
        raise UsageError(
            f"{path}: holds a JSON {type(parsed).__name__}, expected an object of records by title "
            "or an array of records."
        )


def _read_json_lines(path: str, data: bytes) -> Iterator[Record]:
    for number, line in enumerate(io.BytesIO(data), 1):
        if not line.strip():
            raise_if_stopped()
            continue
        place = f"line {number}"
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise UsageError(f"{path}: {place}: not JSON: {error}.") from error
        yield Record(place, None, _object(path, place, value))


def _object(path: str, place: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {place} is {shown(value)}, expected an object of fields.")
    return value


def shown(value: Any) -> str:
    """Write a value as JSON for a message, cut short."""
    try:
        return json.dumps(value, default=str)[:60]
    except RecursionError:
        return f"a deeply nested {type(value).__name__}"


def read_csv(path: str, data: bytes) -> Iterator[Record]:
    """Read the lines of a CSV file with a header; names are in lower case.

    Raises
    ------
    UsageError
        The file is no such CSV; names the line.
    """
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 at byte {error.start}.") from error
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        if len(set(header)) < len(header):
            raise UsageError(f"{path}: line 1: a column name stands twice in the header.")
        for cells in rows:
            if not cells:
                continue
            place = f"line {rows.line_num}"
            if len(cells) != len(header):
                raise UsageError(
                    f"{path}: {place}: {len(cells)} cells, expected {len(header)} as in the header."
                )
            fields = zip(header, cells, strict=True)
            yield Record(place, None, {name: _cell(name, cell) for name, cell in fields})
    except csv.Error as error:
        raise UsageError(f"{path}: line {rows.line_num}: not CSV: {error}.") from error


def _cell(name: str, cell: str) -> Any:
    if cell.lstrip().startswith("["):
        try:
            parsed = orjson.loads(cell)
        except orjson.JSONDecodeError:
            return cell
        return parsed
    if LIST_SEPARATOR in cell and name not in _PLAIN_CELLS:
        return cell.split(LIST_SEPARATOR)
    return cell


def _read_parquet(path: str, data: bytes) -> Iterator[Record]:
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except pl.exceptions.PolarsError as error:
        raise UsageError(f"{path}: not Parquet: {error}.") from error
    for number, fields in enumerate(frame.iter_rows(named=True), 1):
        yield Record(f"row {number}", None, fields)


_READERS = {
    ".json": _read_json,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".csv": read_csv,
    ".parquet": _read_parquet,
}
