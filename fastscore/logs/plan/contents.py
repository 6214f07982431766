"""What the parts of shards hold: their hashes, of which only the ends of parts are read."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fastscore.content_hash import hash_part
from fastscore.errors import InputError
from fastscore.logs.integrity.fingerprints import changed, stamp
from fastscore.logs.plan.byte_ranges import ByteRange, Shard
from fastscore.logs.plan.file_groups import GroupArrays, IndexedFile
from fastscore.logs.plan.packing import Extent

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class UnreadRange:
    """A part whose file is known, with the hashes of the file's blocks, from one on, on disk."""

    part: Extent
    file: IndexedFile
    arrays: GroupArrays
    first_block: int


@dataclass(frozen=True, slots=True)
class UnreadShard:
    """A shard whose fingerprint is not known yet."""

    index: int
    parts: tuple[UnreadRange, ...]


def read_shards(unread: Sequence[UnreadShard]) -> list[Shard]:
    """Make shards, hashing what they hold.

    Raises
    ------
    InputError
        A file cannot be read, or was changed since it was indexed.
    """
    return [_read_shard(shard) for shard in unread]


def _read_shard(unread: UnreadShard) -> Shard:
    byte_ranges: list[ByteRange] = []
    fingerprint = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for each in unread.parts:
        byte_range = _byte_range(each)
        content = _content(each)
        byte_ranges.append(replace(byte_range, fingerprint=_fingerprint(each, content)))
        place = repr(
            (
                byte_range.file,
                byte_range.start,
                byte_range.stop,
                byte_range.first_line,
                byte_range.damage,
                byte_range.header,
            )
        )
        fingerprint.update(hashlib.blake2b(place.encode("utf-8", "surrogateescape")).digest())
        fingerprint.update(content)
    size = sum(each.part.n_bytes for each in unread.parts)
    return Shard(unread.index, tuple(byte_ranges), size, fingerprint.hexdigest())


def _byte_range(unread: UnreadRange) -> ByteRange:
    file, part = unread.file, unread.part
    return ByteRange(
        file.file.path,
        file.path,
        file.file.format,
        file.compression,
        part.start,
        part.stop,
        part.line,
        file.damage if part.stop == file.size and file.unpacked else None,
        file.header if part.start else b"",
        file.file.format == "json" and part.stop < file.size,
    )


def _content(unread: UnreadRange) -> bytes:
    """Hash a part of a file; of a Parquet file, whose rows lie scattered, all of it."""
    file, part = unread.file, unread.part
    if _is_whole(unread) or file.file.format == "parquet":
        return file.content
    try:
        return hash_part(Path(file.path), part.start, part.stop, _StoredHashes(unread))
    except OSError as error:
        raise InputError(f"The file {file.path!r} cannot be read: {error.strerror}.") from error


@dataclass(frozen=True, slots=True)
class _StoredHashes:
    """The hashes of a file's blocks, read when they are asked for."""

    unread: UnreadRange

    def __len__(self) -> int:
        return self.unread.file.n_blocks

    def __getitem__(self, part: slice, /) -> list[bytes]:
        of_group = self.unread.arrays.load("blocks")
        of_file = of_group[self.unread.first_block :][: len(self)]
        return [row.tobytes() for row in of_file[part]]


def _fingerprint(unread: UnreadRange, content: bytes) -> str:
    """Return a byte range's fingerprint; a file that is cut must be as it was indexed."""
    file = unread.file
    if file.unpacked:
        return ""
    if not _is_whole(unread) and stamp(file.path) != file.stamp:
        raise changed(file.file.path)
    return file.stamp if file.file.format == "parquet" else content.hex()


def _is_whole(unread: UnreadRange) -> bool:
    return unread.part.start == 0 and unread.part.stop == unread.file.size
