"""State of an input file during planning, its bytes, and the detection of later changes.

Bytes are compared by their hash, so a log that only grows, or is touched, is scored as planned.
Rows of Parquet are scattered, so such a file is compared by size and modification time.
"""

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
from fastscore_jit.system import read_into, replace_file

from fastscore.content_hash import BlockHash, ContentHash
from fastscore.errors import InputError, RunError
from fastscore.logs.file_ranges import FileRange
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.logs.objects import is_remote, open_file, size_of, stamp
from fastscore.logs.read.batches import map_ordered
from fastscore.logs.read.csv_records import csv_header
from fastscore.logs.read.json_documents import opening_bracket
from fastscore.logs.read.lines import line_blocks, read_blocks, unreadable
from fastscore.unpacked import Compression, Damage, DamageError

PLAIN_BLOCK_BYTES = 4 << 20

Result = TypeVar("Result")
_Block = TypeVar("_Block", bytes, bytes | memoryview)


@dataclass(slots=True)
class FileState:
    """Current state of an input file.

    Parameters
    ----------
    file
        The input.
    index
        Its index among the inputs.
    path, compression
        The file to read and its compression: the input, or its unpacked copy.
    size
        Its bytes, unpacked, or its rows.
    read
        Number of bytes read from disk.
    digest, hash_blocks
        Their hash, and their hash by blocks.
    damage
        Why it could not be unpacked to its end, None otherwise.
    unpacked
        Whether it was unpacked to the scratch folder.
    header
        The header of a CSV file or a document, once requested.
    stamp
        The `stamp` of the input before it was read.
    check_cancelled
        Called with each block that is read; may raise.
    limits
        The limits of reading.
    """

    file: InputFile
    index: int = 0
    path: str = ""
    compression: Compression = "none"
    size: int = 0
    read: int = 0
    digest: ContentHash = field(default_factory=ContentHash)
    hash_blocks: BlockHash = field(default_factory=BlockHash)
    damage: Damage | None = None
    unpacked: bool = False
    header: bytes = b""
    stamp: str = ""
    check_cancelled: Callable[[], object] = lambda: None
    limits: Limits = DEFAULT_LIMITS

    def observe(self, block: bytes | memoryview) -> None:
        """Count and hash bytes as they are read from disk."""
        self.check_cancelled()
        self.read += len(block)
        self.digest.update(block)
        self.hash_blocks.update(block)

    def header_before(self, start: int) -> bytes:
        """Return the header of the bytes from ``start`` on, which is before them."""
        if self.file.format not in ("csv", "json") or start == 0:
            return b""
        find = csv_header if self.file.format == "csv" else opening_bracket
        self.header = self.header or find(self.path)
        return self.header


def file_blocks(state: FileState, shard_bytes: int, scratch: Path) -> Iterator[bytes]:
    """Stream a file's bytes. A compressed file larger than a shard is unpacked to a folder."""
    blocks = read_blocks(state.path, state.compression, observe=state.observe, limits=state.limits)
    if state.compression == "none":
        return _counted(blocks, state)
    return _spill_blocks(blocks, state, shard_bytes, scratch)


def read_whole(state: FileState, scratch: Path) -> None:
    """Read a file to its end. A compressed file of any size is unpacked to the scratch folder."""
    for _ in file_blocks(state, -1, scratch):
        pass
    if state.damage is not None:
        raise InputError(f"The file {state.file.path!r} cannot be read: {state.damage.found}.")


def file_line_blocks(
    state: FileState, shard_bytes: int, scratch: Path
) -> Iterator[bytes] | Iterator[bytes | memoryview]:
    """Stream a JSON Lines file as `file_blocks` does. Blocks of a plain file end at line ends."""
    if state.compression != "none":
        return file_blocks(state, shard_bytes, scratch)
    try:
        size = size_of(state.path)
    except OSError as error:
        raise unreadable(state.path, error) from error
    return _counted(line_blocks(state.path, state.observe, 0, size), state)


def map_stream(
    state: FileState,
    look: Callable[[int, bytes | memoryview], Result],
    shard_bytes: int,
    scratch: Path,
    threads: int,
) -> Iterator[Result]:
    """Yield the results of ``look`` for a file's blocks, in order, in parallel for a plain file.

    ``look`` takes a block's position in the (unpacked) file and the block, and keeps no reference.
    """
    if state.compression == "none":

        def observe(block: memoryview) -> None:
            state.observe(block)
            state.size += len(block)

        yield from map_plain_blocks(state.path, observe, look, threads)
    else:
        begin = 0
        for block in file_blocks(state, shard_bytes, scratch):
            yield look(begin, block)
            begin += len(block)


def map_plain_blocks(
    path: str,
    observe: Callable[[memoryview], object],
    look: Callable[[int, memoryview], Result],
    threads: int,
) -> Iterator[Result]:
    """Yield, in order, the results of ``look`` for the blocks of an uncompressed file."""
    if is_remote(path):
        yield from map_ordered(lambda each: look(*each), _in_order(path, observe), threads)
        return
    own = threading.local()

    def look_at(begin: int, before: threading.Event, after: threading.Event) -> Result:
        try:
            if not hasattr(own, "buffer"):
                own.buffer = np.empty(min(size, PLAIN_BLOCK_BYTES), np.uint8).data
            block = _read_block(file.fileno(), begin, own.buffer)
            before.wait()
            observe(block)
        finally:
            after.set()
        return look(begin, block)

    try:
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            begins = range(0, size, PLAIN_BLOCK_BYTES)
            turns = _ordering_events(begins)
            yield from map_ordered(lambda turn: look_at(*turn), turns, min(threads, len(begins)))
    except OSError as error:
        raise unreadable(path, error) from error


def _in_order(
    path: str, observe: Callable[[memoryview], object]
) -> Iterator[tuple[int, memoryview]]:
    """Yield the blocks of an object with their positions: the file itself reads ahead."""
    with open_file(path) as file:
        begin = 0
        while block := file.read(PLAIN_BLOCK_BYTES):
            observe(memoryview(block))
            yield begin, memoryview(block)
            begin += len(block)


def _read_block(file: int, begin: int, buffer: memoryview) -> memoryview:
    """Fill a buffer, partly at the file's end, and return the filled part."""
    filled = 0
    while count := read_into(file, buffer[filled:], begin + filled):
        filled += count
    return buffer[:filled]


def _ordering_events(begins: range) -> Iterator[tuple[int, threading.Event, threading.Event]]:
    """Give each block two events: that the block before was observed, and that itself was."""
    before = threading.Event()
    before.set()
    for begin in begins:
        after = threading.Event()
        yield begin, before, after
        before = after


def _counted(blocks: Iterator[_Block], state: FileState) -> Iterator[_Block]:
    """Count a plain file's bytes."""
    for block in blocks:
        state.size += len(block)
        yield block


def _spill_blocks(
    blocks: Iterator[bytes], state: FileState, shard_bytes: int, scratch: Path
) -> Iterator[bytes]:
    """Yield unpacked blocks, and write them to the scratch folder once they exceed a shard."""
    kept: list[bytes] = []
    out: IO[bytes] | None = None
    temporary = scratch / f"{secrets.token_hex(8)}.tmp"
    try:
        try:
            for block in blocks:
                state.size += len(block)
                kept.append(block)
                if state.size > shard_bytes:
                    if out is None:
                        scratch.mkdir(parents=True, exist_ok=True)
                        out = temporary.open("wb")
                    out.writelines(kept)
                    kept.clear()
                yield block
        except DamageError as error:
            state.damage = error.damage
        if out is not None:
            out.close()
            path = scratch / f"{state.digest.hexdigest()}.{state.file.format}"
            replace_file(temporary, path)
            state.path, state.compression, state.unpacked = str(path), "none", True
    except OSError as error:
        raise RunError(
            f"{state.file.path!r} cannot be unpacked to {str(scratch)!r}: {error.strerror}.",
            "Free some space or name another output folder.",
        ) from error
    finally:
        if out is not None:
            out.close()
            temporary.unlink(missing_ok=True)


def verified_blocks(file_range: FileRange) -> Iterator[bytes]:
    """Read a byte range's bytes as `read_blocks` does."""
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
    """Read a byte range of a plain file of lines as `line_blocks` does."""
    digest = BlockHash(file_range.start)
    yield from line_blocks(
        file_range.path, digest.update, file_range.start, file_range.stop, whole=True
    )
    _compare(file_range, digest.digest().hex())


def check_stamp(file_range: FileRange) -> None:
    """Refuse a Parquet file that has changed."""
    if file_range.fingerprint:
        _compare(file_range, stamp(file_range.path))


def _compare(file_range: FileRange, found: str) -> None:
    if file_range.fingerprint and file_range.fingerprint != found:
        raise changed(file_range.file)


def changed(file: str) -> InputError:
    """Return the error for a file that has changed since planning."""
    return InputError(
        f"The file {file!r} was changed while it was read.",
        "Run the same command again when nothing writes to it any more.",
    )
