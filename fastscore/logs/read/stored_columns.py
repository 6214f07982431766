"""Columns of Parquet files and frames, checked against a source, and spooled to disk.

A String column under a ``json`` declaration is JSON text. Lists and structs are converted to JSON.
Values are accepted and rejected as in JSON Lines. A column of a type that JSON cannot represent
(bytes, dates) is refused.

Spooling keeps the bytes of standard input unchanged, the wanted columns of a frame, and the
beginning of a file.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl
from polars.datatypes import DataTypeClass

from fastscore.errors import InputError, RunError, UsageError
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.inputs.first_bytes import HEAD_BYTES, Format, content_of
from fastscore.logs.inputs.folders import folder_value
from fastscore.logs.inputs.frames import FRAME_NAME, row_blocks
from fastscore.logs.integrity.rejects import FOUND_CHARACTERS, RAW_CHARACTERS, Reject, cut
from fastscore.logs.read.columns import EXPECTED, INTEGER_RANGE, KINDS, NAN_IS_NULL
from fastscore.suites.declarations import Column, RejectReason

_FAULT, _BAD = "fault:", ":bad"
_DIGITS = r"^\s*[+-]?[0-9_]+\s*$"
_TEXT = (pl.String, pl.Categorical, pl.Enum)


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """Stored columns for a source's declared columns.

    Parameters
    ----------
    name
        The name of the file or frame in rejects and errors.
    columns
        The declared columns that they provide.
    dtypes
        The stored columns to read, by name, with their types.
    """

    name: str
    columns: tuple[Column, ...]
    dtypes: Mapping[str, pl.DataType]


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
                    f"{_served(column)}.",
                    advice,
                )
            found[each] = stored[each]
    return StoredColumns(name, tuple(columns), found)


def convert_stored(
    stored: StoredColumns, raw: pl.DataFrame, first_line: int
) -> tuple[pl.DataFrame, list[Reject]]:
    """Convert stored columns as declared."""
    read = _read_columns(tuple(stored.dtypes.items()), stored.columns)
    line = pl.int_range(first_line, first_line + raw.height, dtype=pl.Int64, eager=True)
    # literals get the length of the lines, as a frame without columns has no rows
    frame = raw.select(line.alias("line"), *read.values, read.is_bad.alias(_BAD))
    bad = frame.drop_in_place(_BAD)
    if not bad.any():
        return frame, []
    faulty = raw.filter(bad)
    found = faulty.select(line.filter(bad).alias("line"), *read.faults)
    return frame.filter(~bad), _rejects(stored, faulty, found)


@dataclass(frozen=True, slots=True)
class _ReadColumns:
    """Expressions of the declared columns' values, of their faults, and of rows with a fault."""

    values: tuple[pl.Expr, ...]
    faults: tuple[pl.Expr, ...]
    is_bad: pl.Expr


@lru_cache(maxsize=64)
def _read_columns(
    stored: tuple[tuple[str, pl.DataType], ...], columns: tuple[Column, ...]
) -> _ReadColumns:
    dtypes, named = dict(stored), {column.name: column for column in columns}
    values = tuple(_read_where(dtypes, column, _value, named) for column in columns)
    faults = tuple(_read_where(dtypes, column, _fault, named) for column in columns)
    is_bad = pl.any_horizontal(pl.lit(False), *(fault.is_not_null() for fault in faults))
    return _ReadColumns(values, tuple(fault.name.prefix(_FAULT) for fault in faults), is_bad)


def _class_of(dtype: pl.DataType) -> str:
    """Return the JSON name of a type's values."""
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
        return "other" if _holds_bytes(dtype) else "nested"
    return "other"


def _holds_bytes(dtype: pl.DataType | DataTypeClass) -> bool:
    """Return whether a type contains bytes, which JSON cannot represent."""
    if isinstance(dtype, pl.List | pl.Array):
        return _holds_bytes(dtype.inner)
    if isinstance(dtype, pl.Struct):
        return any(_holds_bytes(field.dtype) for field in dtype.fields)
    return isinstance(dtype, pl.Binary | pl.Object)


def _served(column: Column) -> str:
    """Return the types that a column accepts."""
    names = {
        "text": "String",
        "integer": "an integer type",
        "number": "a numeric type",
        "boolean": "Boolean",
        "json": "String, List or Struct",
    }
    return names[column.kind]


def _choice(
    dtypes: Mapping[str, pl.DataType],
    column: Column,
    make: Callable[[str, pl.DataType, Column], pl.Expr],
) -> pl.Expr:
    """Return the expression of the first of a column's names that is not null in a row."""
    names = [name for name in column.keys if name in dtypes]
    chosen = make("", pl.Null(), column)
    for name in reversed(names):
        own = make(name, dtypes[name], column)
        chosen = pl.when(pl.col(name).is_not_null()).then(own).otherwise(chosen)
    return chosen


def _read_where(
    dtypes: Mapping[str, pl.DataType],
    column: Column,
    make: Callable[[str, pl.DataType, Column], pl.Expr],
    named: Mapping[str, Column],
) -> pl.Expr:
    """Return a column's expression, null in rows in which the column is not read."""
    chosen = _choice(dtypes, column, make)
    if column.only_where is not None:
        name, value = column.only_where
        chosen = pl.when(_choice(dtypes, named[name], _value) == value).then(chosen)
    given = folder_value(column)
    if given is not None and make is _value:
        chosen = chosen.fill_null(pl.lit(given, KINDS[column.kind]))
    return chosen.alias(column.name)


def _fault(name: str, dtype: pl.DataType, column: Column) -> pl.Expr:
    """Return the reason why a value is rejected, null if it is not."""
    missing = pl.lit("missing_field" if column.required else None, dtype=pl.String)
    if isinstance(dtype, pl.Null):
        return missing
    given = _is_given(name, dtype, column)
    if column.otherwise == "null":
        return pl.when(~given).then(missing)
    wrong: RejectReason = "wrong_type"
    outside: RejectReason = "out_of_range"
    reason = pl.lit(wrong)
    stored = _class_of(dtype)
    if column.kind == "integer" and stored == "integer":
        reason = pl.lit(outside)
    elif column.kind == "integer" and stored == "number":
        double = pl.col(name).cast(pl.Float64)
        part = pl.lit(False) if "number" in column.accepts else double != double.floor()
        reason = pl.when(part & double.is_finite()).then(reason).otherwise(pl.lit(outside))
    elif column.kind == "integer" and stored == "string" and "string" in column.accepts:
        digits = pl.col(name).cast(pl.String).str.contains(_DIGITS)
        reason = pl.when(digits).then(pl.lit(outside)).otherwise(reason)
    failed = pl.when(_value(name, dtype, column).is_null()).then(reason)
    return pl.when(given).then(failed).otherwise(missing)


def _is_given(name: str, dtype: pl.DataType, column: Column) -> pl.Expr:
    """Return in which rows there is a value. NaN counts as missing where it is not allowed."""
    given = pl.col(name).is_not_null()
    is_nan = dtype.is_float() and column.kind in NAN_IS_NULL
    return given & pl.col(name).is_not_nan() if is_nan else given


def _value(name: str, dtype: pl.DataType, column: Column) -> pl.Expr:
    """Convert a stored column as declared; null if that fails."""
    found = pl.col(name)
    stored = _class_of(dtype)
    null = pl.lit(None, dtype=KINDS[column.kind])
    if stored == "null":
        return null
    if column.kind == "json":
        return found.cast(pl.String) if stored == "string" else json_text(found)
    if column.kind == "text":
        texts = _text(found, dtype, column)
        return texts.replace(dict(column.mapped.words)) if column.mapped.words else texts
    if column.kind == "boolean":
        return found if stored == "boolean" else null
    if stored == "nested" or (stored in ("string", "boolean") and stored not in column.accepts):
        return null
    if stored == "string":
        return _by_python(found, int if column.kind == "integer" else float)
    if column.kind == "number":
        return found.cast(pl.Float64)
    if stored == "number":
        return _whole(found, truncated="number" in column.accepts)
    return found.cast(pl.Int64, strict=False)


def _whole(found: pl.Expr, *, truncated: bool) -> pl.Expr:
    """Convert doubles to integers, null if not integral."""
    double = found.cast(pl.Float64)
    usable = (double >= -(2.0**63)) & (double < 2.0**63)
    if not truncated:
        usable &= double == double.floor()
    return pl.when(usable).then(double).cast(pl.Int64, strict=False)


def _text(found: pl.Expr, dtype: pl.DataType, column: Column) -> pl.Expr:
    """Convert strings, and other values that the column accepts as text."""
    stored = _class_of(dtype)
    if stored == "string" or (stored == "integer" and "integer" in column.accepts):
        return found.cast(pl.String)
    other = pl.lit(None, dtype=pl.String)
    if stored == "number" and "integer" in column.accepts:
        other = _whole(found, truncated=False).cast(pl.String)
    elif stored == "boolean" and "boolean" in column.accepts:
        other = found.cast(pl.Int8).cast(pl.String)
    if "falsy" not in column.accepts:
        return other
    if stored == "nested":
        falsy = found.list.len() == 0 if isinstance(dtype, pl.List) else pl.lit(False)
    else:
        falsy = found.cast(pl.Float64) == 0.0
    return pl.when(falsy).then(pl.lit("")).otherwise(other)


def _by_python(found: pl.Expr, read: Callable[[str], int | float]) -> pl.Expr:
    """Parse each distinct string once, by Python."""
    target = pl.Int64() if read is int else pl.Float64()

    def convert(column: pl.Series) -> pl.Series:
        distinct = column.unique().drop_nulls()
        if distinct.is_empty():
            return pl.repeat(None, column.len(), dtype=target, eager=True).alias(column.name)
        values = pl.Series([_number_of(text, read) for text in distinct.to_list()], dtype=target)
        return column.replace_strict(distinct, values, return_dtype=target)

    return found.cast(pl.String).map_batches(convert, return_dtype=target)


def _number_of(text: str, read: Callable[[str], int | float]) -> int | float | None:
    """Parse a string as a number in the column's range, None otherwise."""
    try:
        value = read(text)
    except ValueError:
        return None
    if isinstance(value, int) and not INTEGER_RANGE[0] <= value <= INTEGER_RANGE[1]:
        return None
    return value


def json_text(found: pl.Expr) -> pl.Expr:
    """Convert values to JSON."""
    wrapped = pl.struct(found.alias("v")).struct.json_encode()
    return pl.when(found.is_not_null()).then(wrapped.str.strip_prefix('{"v":').str.head(-len("}")))


def _rejects(stored: StoredColumns, raw: pl.DataFrame, checked: pl.DataFrame) -> list[Reject]:
    """Return the reject of each faulty row: its first faulty column."""
    rejects: list[Reject] = []
    for row, found in zip(raw.iter_rows(named=True), checked.iter_rows(named=True), strict=True):
        column = next(each for each in stored.columns if found[_FAULT + each.name] is not None)
        names = column.keys
        value = next((row[name] for name in names if row.get(name) is not None), None)
        text = "null" if value is None else f"{type(value).__name__} {value!r}"
        rejects.append(
            Reject(
                stored.name,
                found["line"],
                None,
                column.name,
                found[_FAULT + column.name],
                cut(text, FOUND_CHARACTERS),
                EXPECTED[column.kind],
                cut(repr(row), RAW_CHARACTERS),
            )
        )
    return rejects


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


def spool_head(file: InputFile, blocks: Iterable[bytes], size: int, folder: Path) -> InputFile:
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


def _has_empty_struct(dtype: pl.DataType | DataTypeClass) -> bool:
    """Return whether a type contains a struct without fields, which Parquet cannot store."""
    if isinstance(dtype, pl.List | pl.Array):
        return _has_empty_struct(dtype.inner)
    if isinstance(dtype, pl.Struct):
        inner = [field.dtype for field in dtype.fields]
        return not inner or any(_has_empty_struct(each) for each in inner)
    return False


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
