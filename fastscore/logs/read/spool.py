"""Inputs that can be read only once, or are no files, written down so that shards can be cut.

The bytes of standard input are kept as they come; of a frame the columns that are wanted; of a
file the beginning.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from polars.datatypes import DataTypeClass

from fastscore.errors import InputError, RunError, UsageError
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.inputs.first_bytes import HEAD_BYTES, Format, content_of
from fastscore.logs.inputs.frames import FRAME_NAME, row_blocks
from fastscore.logs.read.stored_columns import json_text
from fastscore.suites.declarations import Column

_COPIED_BYTES = 1 << 20


def spool_stdin(file: InputFile, folder: Path) -> InputFile:
    """Keep what comes from standard input, packed or plain.

    Raises
    ------
    UsageError
        Standard input is a terminal.
    InputError
        It is an archive, or nothing that is read.
    RunError
        It cannot be written.
    """
    stream = sys.stdin.buffer
    if stream.isatty():
        raise UsageError(
            "The input is -, and nothing is piped to standard input.",
            "Pipe a log into the command, or name a file.",
        )
    begins = stream.read(HEAD_BYTES)
    content = content_of(begins)
    if content.other or content.compression in ("zip", "tar"):
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
    """Write the wanted columns of a frame as Parquet; objects without a field become JSON text."""
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
    """Keep the first bytes of a file, given unpacked."""

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
    """Return a file whose bytes lie at a path."""
    return replace(file, stored=str(path), size=path.stat().st_size)


def _has_empty_struct(dtype: pl.DataType | DataTypeClass) -> bool:
    """Tell whether a type holds what Parquet cannot."""
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
