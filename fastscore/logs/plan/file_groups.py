"""Indexing files in tasks: where dialogues stand goes to disk, what the plan needs comes back.

A task indexes a group of neighbouring files. It writes arrays beside each other in a folder that
all processes see, and returns some hundred bytes a file, whatever the number of dialogues.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.durable import committed, explain
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.integrity.file_state import FileState
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.logs.plan.index import index_files
from fastscore.logs.plan.spans import Spans
from fastscore.logs.plan.stretches import stretches_of
from fastscore.processors import available_processors
from fastscore.suites.declarations import Source
from fastscore.unpacked import Compression, Damage

GROUPS_AT_ONCE = 4
"""How many groups there are for each process or thread, as long as they are not"""
LEAST_GROUP_BYTES = 8 << 20
"""smaller than this, so that one that lasts long leaves nobody idle; nor are they larger than"""
MOST_GROUP_BYTES = 64 << 20
MOST_GROUP_FILES = 512
_BYTES_A_FILE = 8 << 10  # what a file costs beside its bytes
KEY_COLUMNS = ("key_high", "key_low", "file", "first", "line")
"""What is kept of a dialogue that another file could hold rows of, too."""


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Neighbouring inputs that one task indexes: its place, that of its first file, the files."""

    index: int
    first_file: int
    files: tuple[InputFile, ...]


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """What the plan needs to know of a file.

    Parameters
    ----------
    file
        The input.
    path, compression
        What is read for it: the input, or what it was unpacked to.
    size
        Its bytes, unpacked, or its rows.
    n_read, content_hash
        Its bytes as they were read from disk, and their hash, hexadecimal.
    content
        The hash of what is read for it, by blocks.
    damage, unpacked, stamp
        As in `FileState`.
    header
        What governs the bytes of a file that can be cut but stands before them.
    n_stretches, n_blocks
        How many stretches and whole blocks the group's arrays have of it.
    n_bytes
        What its stretches count together.
    """

    file: InputFile
    path: str
    compression: Compression
    size: int
    n_read: int
    content_hash: str
    content: bytes
    damage: Damage | None
    unpacked: bool
    stamp: str
    header: bytes
    n_stretches: int
    n_blocks: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class IndexedGroup:
    """What came of a group: its files, how many dialogues, how many of them other files could have.

    The arrays are found by `GroupArrays`.
    """

    index: int
    files: tuple[IndexedFile, ...]
    n_dialogues: int
    n_keys: int


@dataclass(frozen=True, slots=True)
class GroupArrays:
    """Where a group's arrays stand.

    ``stretches``: int64 (3, stretches), the start and the first line of each, and how many bytes
    its file's stretches have to its end. ``keys``: uint64 (5, dialogues) by key, `KEY_COLUMNS`.
    ``blocks``: uint8 (blocks, 16), the hashes of the blocks of files that can be cut.
    """

    folder: Path
    group: int

    def load(self, name: str) -> npt.NDArray[Any]:
        """Map an array from disk."""
        array: npt.NDArray[Any] = np.load(self._path(name), mmap_mode="r")
        return array

    def save(self, name: str, array: npt.NDArray[Any]) -> None:
        """Make an array appear whole; another attempt writes the same.

        Raises
        ------
        RunError
            It cannot be written.
        """
        path = self._path(name)
        try:
            with committed(path, synced=False) as file:
                np.save(file, array)
        except OSError as error:
            raise explain(path, error) from error

    def _path(self, name: str) -> Path:
        return self.folder / f"{self.group:05d}-{name}.npy"


def file_groups(files: Sequence[InputFile], at_once: int) -> Iterator[FileGroup]:
    """Part files into groups for so many processes or threads; the plan does not depend on it."""
    total = sum(file.size + _BYTES_A_FILE for file in files)
    most = min(MOST_GROUP_BYTES, max(LEAST_GROUP_BYTES, total // (GROUPS_AT_ONCE * at_once)))
    index = first = size = 0
    for after, file in enumerate(files, start=1):
        size += file.size + _BYTES_A_FILE
        if size >= most or after - first == MOST_GROUP_FILES or after == len(files):
            yield FileGroup(index, first, tuple(files[first:after]))
            index, first, size = index + 1, after, 0


def index_group(
    group: FileGroup,
    *,
    source: Source,
    shard_bytes: int,
    scratch: Path,
    folder: Path,
    groups: int,
    at_once: int,
    watch: Callable[[], object],
    limits: Limits = DEFAULT_LIMITS,
) -> IndexedGroup:
    """Find where the dialogues of a group's files stand.

    Parameters
    ----------
    group
        The files.
    source
        What names a dialogue.
    shard_bytes
        Packed files that are larger are unpacked.
    scratch
        The folder that they are unpacked to.
    folder
        Where the arrays are written.
    groups, at_once
        How many groups there are, and how many are indexed at once: where there are fewer groups,
        each takes more threads.
    watch
        Called with each block that is read; may raise.
    limits
        What the reading may take.

    Raises
    ------
    InputError
        A file cannot be read, or takes too much.
    RunError
        The folders cannot be written.
    """
    states = [FileState(file, watch=watch, limits=limits) for file in group.files]
    threads = max(1, available_processors() // groups) if groups < at_once else 1
    found = Spans()
    for _ in index_files(states, found, source, shard_bytes, scratch, threads):
        pass
    spans = found.joined()
    stretches = stretches_of(spans, states)
    counts = np.bincount(stretches.file)
    ends = np.cumsum(stretches.n_bytes)
    file_ends = ends[np.cumsum(counts) - 1]
    n_bytes = np.diff(file_ends, prepend=0)
    ends -= np.repeat(file_ends - n_bytes, counts)
    arrays = GroupArrays(folder, group.index)
    arrays.save("stretches", np.stack((stretches.start, stretches.line, ends)))
    _save_blocks(arrays, states, counts)
    n_named = spans.height - int(spans["is_local"].sum())
    has_others = groups > 1 or len(states) > 1
    if has_others and not source.key_within_file and n_named:
        named = spans.lazy().filter(~pl.col("is_local")).select(KEY_COLUMNS)
        _save_keys(arrays, named.with_columns(pl.col("file") + group.first_file).collect())
    files = tuple(
        _indexed(state, int(count), int(size))
        for state, count, size in zip(states, counts, n_bytes, strict=True)
    )
    return IndexedGroup(group.index, files, int(spans["dialogues"].sum()), n_named)


def _indexed(state: FileState, n_stretches: int, n_bytes: int) -> IndexedFile:
    return IndexedFile(
        file=state.file,
        path=state.path,
        compression=state.compression,
        size=state.size,
        n_read=state.read,
        content_hash=state.digest.hexdigest(),
        content=state.hash_blocks.digest(),
        damage=state.damage,
        unpacked=state.unpacked,
        stamp=state.stamp,
        header=state.header_before(1) if n_stretches > 1 else b"",
        n_stretches=n_stretches,
        n_blocks=_n_blocks(state, n_stretches),
        n_bytes=n_bytes,
    )


def _n_blocks(state: FileState, n_stretches: int) -> int:
    """Count the block hashes that are kept: those of a file part of which may be hashed."""
    is_cut = n_stretches > 1 and not state.unpacked and state.file.format != "parquet"
    return len(state.hash_blocks.blocks) if is_cut else 0


def _save_blocks(
    arrays: GroupArrays, states: Sequence[FileState], counts: npt.NDArray[np.int64]
) -> None:
    kept = b"".join(
        b"".join(state.hash_blocks.blocks[: _n_blocks(state, int(count))])
        for state, count in zip(states, counts, strict=True)
    )
    if kept:
        arrays.save("blocks", np.frombuffer(kept, np.uint8).reshape(-1, 16))


def _save_keys(arrays: GroupArrays, named: pl.DataFrame) -> None:
    order = named.select(pl.arg_sort_by("key_high", "key_low")).to_series()
    columns = np.empty((len(KEY_COLUMNS), named.height), np.uint64)
    for name, values in zip(KEY_COLUMNS, columns, strict=True):
        values[:] = named[name].gather(order).to_numpy()
    arrays.save("keys", columns)
