"""Columns of Parquet files and frames, checked against a source, and spooled to disk.

A String column under a ``json`` declaration is JSON text. Lists and structs are converted to JSON.
Values are accepted and rejected as in JSON Lines. A column of a type that JSON cannot represent
(bytes, dates) is refused.

Spooling keeps the bytes of standard input unchanged, the wanted columns of a frame, and the
beginning of a file.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import UInt8Array
from fastscore_jit.arrow import string_column
from fastscore_readers.json import tokens
from polars.datatypes import DataTypeClass

from fastscore.errors import InputError, RunError, UsageError
from fastscore.logs.inputs.files import HEAD_BYTES, Format, InputFile, content_of
from fastscore.logs.inputs.frames import FRAME_NAME, row_blocks
from fastscore.logs.integrity.rejects import FOUND_CHARACTERS, RAW_CHARACTERS, Reject, cut
from fastscore.logs.read.columns import (
    EXPECTED,
    KINDS,
    NAN_IS_NULL,
    Places,
    column_reject,
    convert_columns,
    first_faults,
)
from fastscore.logs.read.lines import Block
from fastscore.suites.declarations import Column

_NO_DATA = np.zeros(0, np.uint8)
_TAGS = {
    "null": tokens.NULL,
    "string": tokens.STRING,
    "boolean": tokens.FALSE,
    "integer": tokens.INTEGER,
    "number": tokens.FLOAT,
    "nested": tokens.ARRAY,
}
"""The type of stored values, by the JSON name of their type; true and structs have their own."""
_TEXT = (pl.String, pl.Categorical, pl.Enum)
_SERVED = {
    "text": "String",
    "integer": "an integer type",
    "number": "a numeric type",
    "boolean": "Boolean",
    "json": "String, List or Struct",
}


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """Stored columns for a source's declared columns."""

    name: str  # the name of the file or frame in rejects and errors
    columns: tuple[Column, ...]  # the declared columns that they provide
    dtypes: Mapping[str, pl.DataType]  # the stored columns to read, by name, with their types


def check_stored(
    name: str, stored: Mapping[str, pl.DataType], columns: Sequence[Column], advice: str
) -> StoredColumns:
    """Find the stored columns of declared ones."""
    found: dict[str, pl.DataType] = {}
    for column in columns:
        names = [each for each in column.keys if each in stored]
        if not names and column.required:
            raise InputError(
                f"{name}: there is no column {column.name!r}; expected "
                f"{EXPECTED[column.kind]} in every row.",
                "Columns: " + ", ".join(repr(each) for each in stored) + ".",
            )
        for each in names:
            if _class_of(stored[each]) == "other":
                raise InputError(
                    f"{name}: the column {each!r} is of type {stored[each]}; expected "
                    f"{_SERVED[column.kind]}.",
                    advice,
                )
            found[each] = stored[each]
    return StoredColumns(name, tuple(columns), found)


def convert_stored(
    stored: StoredColumns, raw: pl.DataFrame, first_line: int
) -> tuple[pl.DataFrame, list[Reject]]:
    """Convert stored columns as declared; rows have their file and line, but no byte offset."""
    line = pl.int_range(first_line, first_line + raw.height, dtype=pl.Int64, eager=True)
    values = {"line": line}
    found = [_places(raw, stored.dtypes, column) for column in stored.columns]
    bad, culprit = first_faults(convert_columns(found, stored.columns, values), raw.height)
    names = [each.name for each in stored.columns]
    frame = pl.DataFrame([values[name].alias(name) for name in ("line", *names)]).select(
        pl.lit(stored.name).alias("file"),
        "line",
        pl.lit(None, dtype=pl.Int64).alias("byte_offset"),
        *names,
    )
    if not bad.any():
        return frame, []
    rejects = []
    for row in np.flatnonzero(bad).tolist():
        values, column = raw.row(row, named=True), stored.columns[culprit[row]]
        value = next((values[name] for name in column.keys if values.get(name) is not None), None)
        shown = "null" if value is None else f"{type(value).__name__} {value!r}"
        place, texts = (stored.name, int(line[row]), None), (shown, repr(values))
        limits = FOUND_CHARACTERS, RAW_CHARACTERS
        rejects.append(column_reject(column, int(bad[row]), place, *map(cut, texts, limits)))
    return frame.filter(pl.Series(bad == 0)), rejects


def _class_of(dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.Null):
        return "null"
    if isinstance(dtype, _TEXT):
        return "string"
    if isinstance(dtype, pl.Boolean):
        return "boolean"
    if dtype.is_integer():
        return "integer"
    if dtype.is_float() or dtype.is_decimal():
        return "number"
    if dtype.is_nested():
        has_bytes = any(isinstance(each, pl.Binary | pl.Object) for each in _types_in(dtype))
        return "other" if has_bytes else "nested"
    return "other"


def _types_in(dtype: pl.DataType | DataTypeClass) -> Iterator[pl.DataType | DataTypeClass]:
    """Yield a type and those nested in it."""
    yield dtype
    if isinstance(dtype, pl.List | pl.Array):
        yield from _types_in(dtype.inner)
    elif isinstance(dtype, pl.Struct):
        for field in dtype.fields:
            yield from _types_in(field.dtype)


def _places(raw: pl.DataFrame, dtypes: Mapping[str, pl.DataType], column: Column) -> Places:
    """Return a column's values: in each row those of its first name that is not null there."""
    names = [name for name in column.keys if name in dtypes]
    if len(names) == 1:
        values = _taken(raw[names[0]], column)
        if values is not None:
            tags = np.full(raw.height, tokens.STRING, np.uint8)
            if values.null_count():
                tags[values.is_null().to_numpy()] = tokens.NULL
            nowhere = np.zeros(raw.height, np.int64)
            return Places("parquet", _NO_DATA, tags, nowhere, nowhere, values=values)
    tags = np.zeros(raw.height, np.uint8)
    texts = pl.Series([None], dtype=pl.String).new_from_index(0, raw.height)
    for name in names:
        own, written = _spelled(raw[name], column)
        tags = np.where(tags == tokens.ABSENT, own, tags).astype(np.uint8)
        texts = pl.select(pl.coalesce(texts, written)).to_series()
    held = string_column(column.name, texts.fill_null(""))
    starts, ends = held.offsets[:-1].copy(), held.offsets[1:].copy()
    return Places("parquet", held.data, tags, starts, ends)


def _taken(found: pl.Series, column: Column) -> pl.Series | None:
    """Convert a stored column whose values are all of the declared kind; None for any other."""
    stored, kind = _class_of(found.dtype), column.kind
    if stored == "null":
        return pl.Series([None], dtype=KINDS[kind]).new_from_index(0, found.len())
    if kind == "json" or (kind, stored) == ("text", "string"):
        return _json_or_text(found)
    if (kind, stored) in (("number", "integer"), ("number", "number"), ("boolean", "boolean")):
        return found.cast(KINDS[kind])
    whole = found if stored == "integer" else _as_whole(found)
    if kind != "integer" or whole is None:
        return None
    values = whole.cast(pl.Int64, strict=False)
    # one that is too large becomes null
    return values if values.null_count() == whole.null_count() else None


def _as_whole(found: pl.Series) -> pl.Series | None:
    """Return doubles as integers, NaN as null; None if one is not whole."""
    if _class_of(found.dtype) != "number":
        return None
    doubles = found.cast(pl.Float64).fill_nan(None)
    whole = doubles.cast(pl.Int64, strict=False)
    return whole if doubles.equals(whole.cast(pl.Float64)) else None


def _json_or_text(found: pl.Series) -> pl.Series:
    """Return texts as they are, and other values as JSON."""
    if _class_of(found.dtype) == "string":
        return found.cast(pl.String)
    return pl.select(json_text(pl.lit(found))).to_series()


def _spelled(found: pl.Series, column: Column) -> tuple[UInt8Array, pl.Series]:
    is_null = found.is_null().to_numpy()
    if column.kind == "json":
        return np.where(is_null, tokens.ABSENT, tokens.STRING).astype(np.uint8), _json_or_text(
            found
        )
    stored = _class_of(found.dtype)
    if stored == "number":
        found = found.cast(pl.Float64)
        # of 0 and 0.0 only the latter is falsy
        has_whole = column.kind in NAN_IS_NULL and "falsy" not in column.accepts
        whole = _as_whole(found) if has_whole else None
        stored, found = ("number", found) if whole is None else ("integer", whole)
    tags = np.where(
        is_null, tokens.ABSENT, np.where(found.is_null().to_numpy(), tokens.NULL, _TAGS[stored])
    )
    if stored == "boolean":
        tags[found.fill_null(False).to_numpy()] = tokens.TRUE
    elif isinstance(found.dtype, pl.Struct):
        tags[~is_null] = tokens.OBJECT
    texts = _json_or_text(found) if stored == "nested" else found.cast(pl.String)
    return tags.astype(np.uint8), texts


def json_text(found: pl.Expr) -> pl.Expr:
    """Convert values to JSON."""
    wrapped = pl.struct(found.alias("v")).struct.json_encode()
    return pl.when(found.is_not_null()).then(wrapped.str.strip_prefix('{"v":').str.head(-len("}")))


_COPIED_BYTES = 1 << 20


def spool_stdin(file: InputFile, folder: Path) -> InputFile:
    """Write standard input, compressed or not, to a file."""
    stream = sys.stdin.buffer
    if stream.isatty():
        raise UsageError(
            "The input is -, and nothing is piped to standard input.",
            "Pipe a log into the command, or name a file.",
        )
    begins = stream.read(HEAD_BYTES)
    content = content_of(begins)
    if content.other or content.compression == "zip":
        raise InputError(
            f"Standard input is not read: {content.other or 'an archive'}.",
            content.advice or "Name the archive as the input.",
        )
    format: Format = "parquet" if content.stored else file.format

    def blocks() -> Iterator[bytes]:
        yield begins
        while block := stream.read(_COPIED_BYTES):
            yield block

    stored = _written(folder / f"stdin.{format}", blocks(), file.path)
    kept = replace(stored_as(file, stored), format=format)
    return replace(kept, compression=content.compression)


def spool_rows(rows: Iterable[Any], folder: Path) -> InputFile:
    """Write rows given as dicts as JSON Lines."""
    stored = _written(folder / "rows.jsonl", row_blocks(rows), FRAME_NAME)
    return stored_as(InputFile(FRAME_NAME, "jsonl", "none", 0), stored)


def spool_frame(frame: pl.DataFrame, columns: Sequence[Column], folder: Path) -> InputFile:
    """Write the wanted columns of a frame as Parquet. Structs without fields become JSON text."""
    keys = {key for each in columns for key in each.keys}
    keys |= {key.partition(".")[0].partition("[")[0] for key in keys}
    wanted = frame.select(
        json_text(pl.col(name)).alias(name) if _has_empty_struct(dtype) else pl.col(name)
        for name, dtype in frame.schema.items()
        if name in keys
    )
    if not wanted.width:
        # a file without columns has no rows
        wanted = pl.repeat(None, frame.height, dtype=pl.Boolean, eager=True).to_frame()
    path = folder / "frame.parquet"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        wanted.write_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unwritable(FRAME_NAME, folder, error) from error
    return stored_as(InputFile(FRAME_NAME, "parquet", "none", 0), path)


def spool_head(file: InputFile, blocks: Iterable[Block], size: int, folder: Path) -> InputFile:
    """Write the first bytes of an unpacked file."""

    def head() -> Iterator[bytes]:
        left = size
        for block in blocks:
            yield bytes(block[:left])
            left -= len(block)
            if left <= 0:
                return

    stored = _written(folder / f"head.{file.format}", head(), file.path)
    return replace(stored_as(file, stored), compression="none")


def stored_as(file: InputFile, path: Path) -> InputFile:
    """Return a file whose bytes are stored at another path."""
    return replace(file, stored=str(path), size=path.stat().st_size)


def _has_empty_struct(dtype: pl.DataType) -> bool:
    """Return whether a type contains a struct without fields, which Parquet cannot store."""
    return any(isinstance(each, pl.Struct) and not each.fields for each in _types_in(dtype))


def _written(path: Path, blocks: Iterable[bytes], name: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            out.writelines(blocks)
    except OSError as error:
        raise _unwritable(name, path.parent, error) from error
    return path


def _unwritable(name: str, folder: Path, error: Exception) -> RunError:
    reason = getattr(error, "strerror", None) or str(error)
    return RunError(
        f"What {name} gives cannot be kept in {str(folder)!r}: {reason}.",
        "Free some space or name another output folder.",
    )
