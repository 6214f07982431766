"""File ranges and shards: the bytes of files that are read together."""

import os
from dataclasses import dataclass

from fastscore.files import Compression, Damage
from fastscore.logs.inputs.files import Format
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits


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
