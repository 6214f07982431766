"""Input in memory, and what is spooled to disk: frames of any library, objects row by row, stdin.

Spooling keeps the bytes of standard input unchanged, the wanted columns of a frame, and the
beginning of a file.
"""

import contextlib
import itertools
import json
import math
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from polars.datatypes import DataTypeClass

from fastscore.errors import InputError, RunError, UsageError
from fastscore.logs.inputs.files import HEAD_BYTES, Format, InputFile, content_of
from fastscore.settings.extras import require
from fastscore.suites.declarations import Column

FRAME_NAME = "frame"
"""What rows, rejects and errors call what was in memory: the place of a file's path."""

_BLOCK_BYTES = 8 << 20
_ORJSON = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE


def as_frame(given: Any) -> pl.DataFrame | None:
    """Take a frame as polars', or say that it is none."""
    if isinstance(given, pl.DataFrame):
        return given
    if isinstance(given, pl.LazyFrame):
        return given.collect()
    speaks_arrow = hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")
    if not speaks_arrow and not hasattr(given, "to_polars"):
        return None
    try:
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(given, pandas.DataFrame):
            require("arrow", "A frame of pandas")
            if not given.columns.is_unique:
                twice = given.columns[given.columns.duplicated()][0]
                raise InputError(
                    f"The frame has several columns {twice!r}.", "Rename or drop all but one."
                )
            found = pl.DataFrame(_with_named_index(given))
        else:
            found = _of_arrow(given) if speaks_arrow else given.to_polars()
    except (InputError, UsageError):
        raise
    except Exception as error:  # each library has errors of its own
        raise InputError(
            f"The frame ({type(given).__name__}) cannot be read as Arrow: {error}.",
            "Give columns of one type each, or rows: a list of dicts takes values of any type.",
        ) from error
    if not isinstance(found, pl.DataFrame):
        raise UsageError(f"The source is of type {type(given).__name__}, expected one frame.")
    return found


def _of_arrow(given: Any) -> pl.DataFrame:
    """Take what another library wrote, of which polars takes texts and views at their word."""
    if type(given).__module__.partition(".")[0] == "pyarrow":
        # views and offsets beyond their buffers, which no other library lets write
        given = sys.modules["pyarrow"].table(given)
        for name, column in zip(given.column_names, given.columns, strict=True):
            with _refused(name):
                column.validate(full=True)
        return pl.DataFrame(given)
    found = pl.DataFrame(given)
    for column in found:
        of_bytes = _as_bytes(column.dtype)
        if of_bytes != column.dtype:
            with _refused(column.name):
                column.cast(of_bytes).cast(column.dtype)
    return found


@contextlib.contextmanager
def _refused(name: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, pl.exceptions.PolarsError) as error:  # those of Arrow are ValueErrors
        raise InputError(
            f"{FRAME_NAME}: the column {name!r} does not hold what its type says: {error}.",
            "Text must be UTF-8, within the buffers of its array: write the column again.",
        ) from error


def _as_bytes(dtype: pl.DataType) -> pl.DataType:
    """Return a type with bytes in the place of text: casts to text check it."""
    if isinstance(dtype, pl.String):
        return pl.Binary()
    if isinstance(dtype, pl.List):
        return pl.List(_as_bytes(_instance(dtype.inner)))
    if isinstance(dtype, pl.Array):
        return pl.Array(_as_bytes(_instance(dtype.inner)), dtype.size)
    if isinstance(dtype, pl.Struct):
        fields = ((field.name, _as_bytes(_instance(field.dtype))) for field in dtype.fields)
        return pl.Struct(dict(fields))
    return dtype


def _instance(dtype: Any) -> pl.DataType:
    found: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return found


def _with_named_index(frame: Any) -> Any:
    """Return a frame of pandas with the named levels of its index as columns; others only count."""
    names = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return frame.reset_index(level=names) if names else frame


def as_rows(given: Any) -> tuple[Any, ...] | None:
    """Take rows given as dicts (or as arrays, of suites that read them), or say that it is none."""
    if isinstance(given, Mapping):
        keys = ", ".join(repr(key) for key in itertools.islice(given, 5))
        raise UsageError(
            f"The source is a {type(given).__name__} with the keys {keys or '(none)'}.",
            "Give one of its values, a list of dicts, or a frame of the columns.",
        )
    if not isinstance(given, Sequence) or not given or not isinstance(given[0], Mapping | list):
        return None
    return tuple(given)


def row_blocks(rows: Iterable[Any]) -> Iterator[bytes]:
    """Write rows as JSON Lines, in blocks."""
    block = bytearray()
    for number, row in enumerate(rows, 1):
        block += _encoded(row, number)
        if len(block) >= _BLOCK_BYTES:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)


def _encoded(row: Any, number: int) -> bytes:
    try:
        text = orjson.dumps(row, option=_ORJSON)
        if b"null" not in text or not _holds_non_finite(row):
            return text
    except (TypeError, RecursionError):
        pass  # not `suppress`, which takes half as long as the row
    try:
        # NaN, infinities, integers of more than 64 bits, lone surrogates: the reader judges them
        return json.dumps(row).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{FRAME_NAME}:{number}: the row cannot be written as JSON: {error}.",
            "Give strings, numbers, booleans, None, lists and dicts.",
        ) from error


def _holds_non_finite(value: Any) -> bool:
    """Tell whether a value has NaN or an infinity in it, which orjson writes as null."""
    if isinstance(value, dict):
        return any(map(_holds_non_finite, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_non_finite, value))
    return isinstance(value, float) and not math.isfinite(value)


def types_in(dtype: pl.DataType | DataTypeClass) -> Iterator[pl.DataType | DataTypeClass]:
    """Yield a type and those nested in it."""
    yield dtype
    if isinstance(dtype, pl.List | pl.Array):
        yield from types_in(dtype.inner)
    elif isinstance(dtype, pl.Struct):
        for field in dtype.fields:
            yield from types_in(field.dtype)


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
    """Write the wanted columns of a frame as Parquet."""
    keys = {key for each in columns for key in each.keys}
    keys |= {key.partition(".")[0].partition("[")[0] for key in keys}
    wanted = storable(frame, keys.intersection(frame.columns))
    path = folder / "frame.parquet"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        wanted.write_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unwritable(FRAME_NAME, folder, error) from error
    return stored_as(InputFile(FRAME_NAME, "parquet", "none", 0), path)


def storable(frame: pl.DataFrame, names: Collection[str]) -> pl.DataFrame:
    """Return columns as Parquet can store them: structs without fields become JSON text."""
    wanted = frame.select(
        json_text(pl.col(name)).alias(name)
        if any(isinstance(each, pl.Struct) and not each.fields for each in types_in(dtype))
        else pl.col(name)
        for name, dtype in frame.schema.items()
        if name in names
    )
    if wanted.width:
        return wanted
    # a file without columns has no rows
    return pl.repeat(None, frame.height, dtype=pl.Boolean, eager=True).to_frame()


def spool_head(
    file: InputFile, blocks: Iterable[bytes | memoryview], size: int, folder: Path
) -> InputFile:
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
