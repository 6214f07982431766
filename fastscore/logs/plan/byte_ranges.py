"""Byte ranges and shards: which bytes of which files are read together. Plain data."""

from dataclasses import dataclass

from fastscore.logs.inputs.files import Format
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.unpacked import Compression, Damage


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A run of whole dialogues in one file.

    Parameters
    ----------
    file
        The input as it was given; what rows and rejects name.
    path
        The file that is read: the input itself, or what it was unpacked to.
    format, compression
        Those of ``path``.
    start, stop
        Rows of a Parquet file, bytes of any other (unpacked). For a compressed file they span
        all of it, whatever ``stop`` is.
    first_line
        The 1-based line (or Parquet row) that stands at ``start``.
    damage
        Why unpacking ended early where this byte range ends, None when it did not.
    header
        The header of a CSV file, or the bracket of a document's array, when the byte range starts
        after it.
    goes_on
        Whether more elements of a document stand after it.
    fingerprint
        What tells that the file is still as it was planned: the hash of the bytes, of a Parquet
        file its `fingerprints.stamp`; empty for what nobody else can change.
    limits
        What reading may take; of unpacking, where nothing was planned.
    """

    file: str
    path: str
    format: Format
    compression: Compression
    start: int
    stop: int
    first_line: int = 1
    damage: Damage | None = None
    header: bytes = b""
    goes_on: bool = False
    fingerprint: str = ""
    limits: Limits = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class Shard:
    """Byte ranges that are read and scored together.

    Parameters
    ----------
    index
        The shard's place in the plan.
    byte_ranges
        What it holds, in input order.
    n_bytes
        Their size, unpacked; rows of few bytes may count for more (`stretches.ROW_BYTES`).
    fingerprint
        BLAKE2b (128 bits, hexadecimal) of the byte ranges' names and content.
    """

    index: int
    byte_ranges: tuple[ByteRange, ...]
    n_bytes: int
    fingerprint: str


def whole_file(path: str, format: Format = "jsonl", compression: Compression = "none") -> Shard:
    """Make the shard that one whole file is, without planning; its fingerprint is empty."""
    import os

    size = os.stat(path).st_size
    return Shard(0, (ByteRange(path, path, format, compression, 0, size),), size, "")
