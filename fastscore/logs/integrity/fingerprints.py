"""Telling that a file still holds what was planned, where it is read again.

Bytes are known by their hash, so a log that only grows, or is touched, is scored as it was
planned. Rows of Parquet lie scattered, so such a file is known by its size and time of change.
"""

import os
from collections.abc import Iterator

from fastscore.content_hash import BlockHash
from fastscore.errors import InputError
from fastscore.logs.file_ranges import FileRange
from fastscore.logs.read.blocks import line_blocks, read_blocks
from fastscore.unpacked import DamageError


def stamp(path: str) -> str:
    """Return a file's size and time of change, empty when there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_size}:{status.st_mtime_ns}"


def verified_blocks(file_range: FileRange) -> Iterator[bytes]:
    """Read a byte range's bytes as `read_blocks` does.

    Raises
    ------
    InputError
        When the file cannot be read or, after the last block, when it was changed.
    """
    digest = BlockHash(file_range.start if file_range.compression == "none" else 0)
    try:
        yield from read_blocks(
            file_range.path,
            file_range.compression,
            file_range.start,
            file_range.stop,
            observe=digest.update,
            whole=True,
            limits=None if file_range.fingerprint else file_range.limits,
        )
    except DamageError:
        _compare(file_range, digest.digest().hex())
        raise
    _compare(file_range, digest.digest().hex())


def verified_lines(file_range: FileRange) -> Iterator[bytes | memoryview]:
    """Read a byte range of a plain file of lines as `line_blocks` does.

    Raises
    ------
    InputError
        As `verified_blocks`.
    """
    digest = BlockHash(file_range.start)
    yield from line_blocks(
        file_range.path, digest.update, file_range.start, file_range.stop, whole=True
    )
    _compare(file_range, digest.digest().hex())


def check_stamp(file_range: FileRange) -> None:
    """Refuse a Parquet file that was changed.

    Raises
    ------
    InputError
        When it was.
    """
    if file_range.fingerprint:
        _compare(file_range, stamp(file_range.path))


def _compare(file_range: FileRange, found: str) -> None:
    if file_range.fingerprint and file_range.fingerprint != found:
        raise changed(file_range.file)


def changed(file: str) -> InputError:
    """Say that a file is not what was planned."""
    return InputError(
        f"The file {file!r} was changed while it was read.",
        "Run the same command again when nothing writes to it any more.",
    )
