"""File ranges, shards, and the state of the files that they are parts of.

A range has the bytes of a file that are read together. Bytes are compared by their hash, so a log
that only grows, or is touched, is scored as planned. Rows of Parquet are scattered, so such a file
is compared by size and modification time.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from fastscore_jit.system import replace_file

from fastscore.errors import InputError, RunError
from fastscore.files import BlockHash, Compression, ContentHash, Damage, DamageError
from fastscore.logs.inputs.files import Format, InputFile
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.logs.objects import stamp
from fastscore.logs.read.lines import Block, read_blocks


@dataclass(frozen=True, slots=True)
class FileRange:
    """Consecutive whole dialogues of one file."""

    file: str  # the input's path as given by the user, for rows and rejects
    path: str  # the file to read: the input itself, or its unpacked copy
    # the format and compression of `path`
    format: Format
    compression: Compression
    # Rows of a Parquet file, bytes of any other (unpacked). A compressed file is read to its end,
    # for any `stop`.
    start: int
    stop: int
    first_line: int = 1  # the 1-based line (or Parquet row) at `start`
    # why unpacking ended early at the end of this range, None if it did not
    damage: Damage | None = None
    # the header of a CSV file, or the bracket of a document's array, if the range starts after it
    header: bytes = b""
    goes_on: bool = False  # whether more elements of a document follow
    # Detects changes of the file since planning: the hash of the bytes, or the `file_state.stamp`
    # of a Parquet file. Empty if no other process can change the file.
    fingerprint: str = ""
    # the limits of reading; of unpacking, if the file was not planned
    limits: Limits = DEFAULT_LIMITS
    name: str = ""  # the file in the names of dialogues; see `suites.identity.file_names`


@dataclass(frozen=True, slots=True)
class Shard:
    """File ranges that are read and scored together."""

    index: int  # the shard's index in the plan
    file_ranges: tuple[FileRange, ...]  # its ranges, in input order
    n_bytes: int  # their size, unpacked; short rows may count for more (`index.ROW_BYTES`)
    fingerprint: str  # BLAKE2b (128 bits, hexadecimal) of the ranges' names and content
    # BLAKE2b of the ranges' content, and of the parts of their names on which values depend
    content_fingerprint: str = ""


def whole_file(path: str, format: Format = "jsonl", compression: Compression = "none") -> Shard:
    """Make a shard of one whole file, without planning; its fingerprint is empty."""
    size = os.stat(path).st_size
    return Shard(0, (FileRange(path, path, format, compression, 0, size),), size, "")


@dataclass(slots=True)
class FileState:
    """Current state of an input file."""

    file: InputFile  # the input
    index: int = 0  # its index among the inputs
    # the file to read and its compression: the input, or its unpacked copy
    path: str = ""
    compression: Compression = "none"
    size: int = 0  # its bytes, unpacked, or its rows
    read: int = 0  # number of bytes read from disk
    # their hash, and their hash by blocks
    digest: ContentHash = field(default_factory=ContentHash)
    hash_blocks: BlockHash = field(default_factory=BlockHash)
    damage: Damage | None = None  # why it could not be unpacked to its end, None otherwise
    unpacked: bool = False  # whether it was unpacked to the scratch folder
    stamp: str = ""  # the `stamp` of the input before it was read
    # called with each block that is read; may raise
    check_cancelled: Callable[[], object] = lambda: None
    limits: Limits = DEFAULT_LIMITS  # the limits of reading

    @classmethod
    def of(cls, file: InputFile, **known: Any) -> "FileState":
        """Return the state of a file that was not read yet."""
        return cls(file, path=file.location, compression=file.compression, **known)

    @property
    def whole(self) -> FileRange:
        """The range of the whole file, once it was read."""
        place = self.file.path, self.path, self.file.format, self.compression, 0, self.size
        return FileRange(*place, limits=self.limits)

    def observe(self, block: Block) -> None:
        """Count and hash bytes as they are read from disk."""
        self.check_cancelled()
        self.read += len(block)
        self.digest.update(block)
        self.hash_blocks.update(block)


def file_blocks(state: FileState, shard_bytes: int, scratch: Path) -> Iterator[Block]:
    """Stream a file's bytes. A compressed file larger than a shard is unpacked to a folder."""
    blocks = read_blocks(state.path, state.compression, observe=state.observe, limits=state.limits)
    if state.compression != "none":
        yield from _spill_blocks(blocks, state, shard_bytes, scratch)
        return
    for block in blocks:
        state.size += len(block)
        yield block


def read_whole(state: FileState, scratch: Path) -> None:
    """Read a file to its end. A compressed file of any size is unpacked to the scratch folder."""
    for _ in file_blocks(state, -1, scratch):
        pass
    if state.damage is not None:
        raise InputError(f"The file {state.file.path!r} cannot be read: {state.damage.found}.")


def _spill_blocks(
    blocks: Iterator[Block], state: FileState, shard_bytes: int, scratch: Path
) -> Iterator[Block]:
    """Yield unpacked blocks, and write them to the scratch folder once they exceed a shard."""
    kept: list[Block] = []
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


def verified_blocks(file_range: FileRange) -> Iterator[Block]:
    """Read a byte range's bytes as `read_blocks` does."""
    digest = BlockHash(file_range.start if file_range.compression == "none" else 0)
    try:
        yield from read_blocks(
            file_range.path,
            file_range.compression,
            file_range.start,
            file_range.stop,
            observe=digest.update if file_range.fingerprint else None,
            whole=True,
            limits=None if file_range.fingerprint else file_range.limits,
        )
    except DamageError:
        _compare(file_range, digest.digest().hex())
        raise
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
