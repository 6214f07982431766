"""Making a file appear whole or not at all.

Scope: POSIX file systems where ``rename`` within a folder is atomic. A file is written under a
temporary name beside its final one, flushed to the disk, checked, renamed, and the folder flushed.
A crash leaves the old file or the new one, and perhaps a temporary file that the next run removes.
"""

import contextlib
import errno
import io
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from fastscore.content_hash import hash_bytes, hash_file
from fastscore.errors import RunError

TEMPORARY_SUFFIX = ".tmp"
ROW_GROUP_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed file: its size in bytes and the XXH3-128 hash of its content."""

    path: str
    n_bytes: int
    content_hash: str
    rows: int | None = None


def commit_file(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file through `write` and make it appear at `path` atomically.

    Raises
    ------
    RunError
        The disk is full, the folder cannot be written, or another input/output error; what stood
        at `path` before is untouched.
    """
    temporary = path.with_name(
        f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        _flush(temporary)
        os.replace(temporary, path)
        _flush(path.parent)
    except OSError as error:
        raise explain(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def commit_json(path: Path, content: Any) -> Committed:
    """Write `content` as indented JSON, atomically."""
    data = orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return commit_bytes(path, data)


def commit_bytes(path: Path, data: bytes) -> Committed:
    """Make a file of these bytes appear atomically."""

    def write(temporary: Path) -> None:
        temporary.write_bytes(data)

    commit_file(path, write)
    return Committed(path.name, len(data), hash_bytes(data))


def commit_table(path: Path, frame: pl.DataFrame, metadata: Mapping[str, str]) -> Committed:
    """Write a frame as Parquet, check that it reads back alike, and make it appear atomically.

    The bytes depend on the frame and the metadata alone.
    """
    # written to memory first: polars does not say why a file could not be written
    buffer = io.BytesIO()
    frame.write_parquet(
        buffer,
        compression="zstd",
        compression_level=1,
        statistics=True,
        row_group_size=ROW_GROUP_ROWS,
        metadata=dict(metadata),
    )
    expected = hash_bytes(buffer.getbuffer())
    written: list[Committed] = []

    def write(temporary: Path) -> None:
        temporary.write_bytes(buffer.getbuffer())
        found = describe(temporary, rows=frame.height, name=path.name)
        if found.content_hash != expected:
            raise RunError(
                f"{path}: what was read back is not what was written.",
                "Check the disk and run the same command again.",
            )
        written.append(found)

    commit_file(path, write)
    return written[0]


def describe(path: Path, *, rows: int | None = None, name: str | None = None) -> Committed:
    """Return a file's size and content hash."""
    return Committed(name or path.name, path.stat().st_size, hash_file(path), rows)


def remove_temporaries(folder: Path) -> int:
    """Remove what interrupted commits left below a folder; returns how many files."""
    leftovers = list(folder.rglob(f"*{TEMPORARY_SUFFIX}"))
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return len(leftovers)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def explain(path: Path, error: OSError) -> RunError:
    """Say what kept a file from being written, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunError(
            f"{path}: the disk is full.",
            "Free some space and run the same command again; what is committed is kept.",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return RunError(f"{path}: no permission to write there.", "Choose another folder with -o.")
    return RunError(
        f"{path}: cannot write there ({error.strerror or error}).",
        "Run the same command again or choose another folder with -o; what is committed is kept.",
    )
