"""File ranges and shards: the bytes of files that are read together."""

import os
from dataclasses import dataclass

from fastscore.logs.inputs.files import Format
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.unpacked import Compression, Damage


@dataclass(frozen=True, slots=True)
class FileRange:
    """Consecutive whole dialogues of one file.

    Parameters
    ----------
    file
        The input's path as given by the user, for rows and rejects.
    path
        The file to read: the input itself, or its unpacked copy.
    format, compression
        The format and compression of ``path``.
    start, stop
        Rows of a Parquet file, bytes of any other (unpacked). A compressed file is read to its end,
        for any ``stop``.
    first_line
        The 1-based line (or Parquet row) at ``start``.
    damage
        Why unpacking ended early at the end of this range, None if it did not.
    header
        The header of a CSV file, or the bracket of a document's array, if the range starts after
        it.
    goes_on
        Whether more elements of a document follow.
    fingerprint
        Detects changes of the file since planning: the hash of the bytes, or the `file_state.stamp`
        of a Parquet file. Empty if no other process can change the file.
    limits
        The limits of reading; of unpacking, if the file was not planned.
    name
        The file in the names of dialogues; see `suites.identity.file_names`.
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
    name: str = ""


@dataclass(frozen=True, slots=True)
class Shard:
    """File ranges that are read and scored together.

    Parameters
    ----------
    index
        The shard's index in the plan.
    file_ranges
        Its ranges, in input order.
    n_bytes
        Their size, unpacked; short rows may count for more (`index.ROW_BYTES`).
    fingerprint
        BLAKE2b (128 bits, hexadecimal) of the ranges' names and content.
    content_fingerprint
        BLAKE2b of the ranges' content, and of the parts of their names on which values depend.
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
