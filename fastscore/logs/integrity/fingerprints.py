"""Telling that a file still holds what was planned, where it is read again.

Bytes are known by their hash, so a log that only grows, or is touched, is scored as it was
planned. Rows of Parquet lie scattered, so such a file is known by its size and time of change.
"""

import os
from collections.abc import Iterator

from fastscore.content_hash import BlockHash
from fastscore.errors import InputError
from fastscore.logs.plan.byte_ranges import ByteRange
from fastscore.logs.read.blocks import line_blocks, read_blocks
from fastscore.unpacked import DamageError


def stamp(path: str) -> str:
    """Return a file's size and time of change, empty when there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_size}:{status.st_mtime_ns}"


def verified_blocks(byte_range: ByteRange) -> Iterator[bytes]:
    """Read a byte range's bytes as `read_blocks` does.

    Raises
    ------
    InputError
        When the file cannot be read or, after the last block, when it was changed.
    """
    digest = BlockHash(byte_range.start if byte_range.compression == "none" else 0)
    try:
        yield from read_blocks(
            byte_range.path,
            byte_range.compression,
            byte_range.start,
            byte_range.stop,
            observe=digest.update,
            whole=True,
            limits=None if byte_range.fingerprint else byte_range.limits,
        )
    except DamageError:
        _compare(byte_range, digest.digest().hex())
        raise
    _compare(byte_range, digest.digest().hex())


def verified_lines(byte_range: ByteRange) -> Iterator[bytes | memoryview]:
    """Read a byte range of a plain file of lines as `line_blocks` does.

    Raises
    ------
    InputError
        As `verified_blocks`.
    """
    digest = BlockHash(byte_range.start)
    yield from line_blocks(
        byte_range.path, digest.update, byte_range.start, byte_range.stop, whole=True
    )
    _compare(byte_range, digest.digest().hex())


def check_stamp(byte_range: ByteRange) -> None:
    """Refuse a Parquet file that was changed.

    Raises
    ------
    InputError
        When it was.
    """
    if byte_range.fingerprint:
        _compare(byte_range, stamp(byte_range.path))


def _compare(byte_range: ByteRange, found: str) -> None:
    if byte_range.fingerprint and byte_range.fingerprint != found:
        raise changed(byte_range.file)


def changed(file: str) -> InputError:
    """Say that a file is not what was planned."""
    return InputError(
        f"The file {file!r} was changed while it was read.",
        "Run the same command again when nothing writes to it any more.",
    )
