"""Telling that a file still holds what was planned, where it is read again.

Bytes are known by their hash, so a log that only grows, or is touched, is scored as it was
planned. Rows of Parquet lie scattered, so such a file is known by its size and time of change.
"""

import os
from collections.abc import Iterator

from fastscore.content_hash import CellHash
from fastscore.errors import InputError
from fastscore.logs.plan.byte_ranges import Piece
from fastscore.logs.read.streams import DamageError, line_blocks, read_blocks


def stamp(path: str) -> str:
    """Return a file's size and time of change, empty when there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_size}:{status.st_mtime_ns}"


def sealed_blocks(piece: Piece) -> Iterator[bytes]:
    """Read a piece's bytes as `read_blocks` does.

    Raises
    ------
    InputError
        When the file cannot be read or, behind the last block, when it was changed.
    """
    digest = CellHash(piece.start if piece.compression == "none" else 0)
    try:
        yield from read_blocks(
            piece.path,
            piece.compression,
            piece.start,
            piece.stop,
            observe=digest.update,
            whole=True,
        )
    except DamageError:
        _compare(piece, digest.digest().hex())
        raise
    _compare(piece, digest.digest().hex())


def sealed_lines(piece: Piece) -> Iterator[bytes | memoryview]:
    """Read a piece of a plain file of lines as `line_blocks` does.

    Raises
    ------
    InputError
        As `sealed_blocks`.
    """
    digest = CellHash(piece.start)
    yield from line_blocks(piece.path, digest.update, piece.start, piece.stop)
    _compare(piece, digest.digest().hex())


def check_stamp(piece: Piece) -> None:
    """Refuse a Parquet file that was changed.

    Raises
    ------
    InputError
        When it was.
    """
    if piece.seal:
        _compare(piece, stamp(piece.path))


def _compare(piece: Piece, found: str) -> None:
    if piece.seal and piece.seal != found:
        raise changed(piece.file)


def changed(file: str) -> InputError:
    """Say that a file is not what was planned."""
    return InputError(
        f"The file {file!r} was changed while it was read.",
        "Run the same command again when nothing writes to it any more.",
    )
