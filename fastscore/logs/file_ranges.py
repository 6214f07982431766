"""File ranges and shards: which bytes of which files are read together."""

import os
from dataclasses import dataclass

from fastscore.logs.inputs.files import Format
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.unpacked import Compression, Damage


@dataclass(frozen=True, slots=True)
class FileRange:
    """Neighbouring whole dialogues of one file.

    Parameters
    ----------
    file
        The input as it was given; rows and rejects name it.
    path
        The file that is read: the input itself, or what it was unpacked to.
    format, compression
        Those of ``path``.
    start, stop
        Rows of a Parquet file, bytes of any other (unpacked). A compressed file is read whole,
        whatever ``stop`` is.
    first_line
        The 1-based line (or Parquet row) at ``start``.
    damage
        Why unpacking ended early at the end of this range, None if it did not.
    header
        The header of a CSV file, or the bracket of a document's array, if the range starts
        after it.
    goes_on
        Whether more elements of a document follow.
    fingerprint
        Tells whether the file is still as it was planned: the hash of the bytes, or the
        `file_state.stamp` of a Parquet file. Empty if nobody else can change the file.
    limits
        The limits of reading; of unpacking, if nothing was planned.
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
    """File ranges that are read and scored together.

    Parameters
    ----------
    index
        The shard's place in the plan.
    file_ranges
        Its ranges, in input order.
    n_bytes
        Their size, unpacked; short rows may count for more (`index.ROW_BYTES`).
    fingerprint
        BLAKE2b (128 bits, hexadecimal) of the ranges' names and content.
    content_fingerprint
        The same of their content, and of what values depend on in their names.
    """

    index: int
    file_ranges: tuple[FileRange, ...]
    n_bytes: int
    fingerprint: str
    content_fingerprint: str = ""


def whole_file(path: str, format: Format = "jsonl", compression: Compression = "none") -> Shard:
    """Make a shard of one whole file, without planning; its fingerprint is empty."""
    size = os.stat(path).st_size
    return Shard(0, (FileRange(path, path, format, compression, 0, size),), size, "")
