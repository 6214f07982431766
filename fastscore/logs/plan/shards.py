"""Planning: which whole dialogues are read together, and what their content is.

A map over files, a look-up a shard, a map over shards. One pass over all input finds where each
dialogue begins and ends, and leaves that on disk; this process holds files and shards. The plan
depends on the input alone, not on who does the tasks, threads or timing.
"""

import secrets
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import polars as pl

from fastscore.durable import explain
from fastscore.errors import InputError
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.logs.plan.byte_ranges import ByteRange, Shard
from fastscore.logs.plan.contents import UnreadRange, UnreadShard, read_shards
from fastscore.logs.plan.file_groups import (
    KEY_COLUMNS,
    GroupArrays,
    IndexedGroup,
    file_groups,
    index_group,
)
from fastscore.logs.plan.packing import Extent, FileStretches, pack
from fastscore.logs.read.batches import map_ordered
from fastscore.suites.declarations import Source

__all__ = ["ByteRange", "InputContent", "Plan", "Shard", "plan_shards"]

KEYS_PER_TASK = 1 << 22
SHARDS_PER_TASK = 64

Item = TypeVar("Item")
Result = TypeVar("Result")


class Mapped(Protocol):
    """Does a task for each item, somewhere that sees the same files; results come in any order."""

    def __call__(
        self, task: Callable[[Item], Result], items: Sequence[Item], /
    ) -> Iterable[Result]:
        """Do the tasks."""


@dataclass(frozen=True, slots=True)
class InputContent:
    """What an input file was when it was planned.

    Parameters
    ----------
    name
        The path as it was given.
    n_bytes
        Its bytes on disk.
    content_hash
        XXH3 (128 bits, hexadecimal) of those bytes.
    """

    name: str
    n_bytes: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is read together.

    Parameters
    ----------
    shards
        The shards, in input order; together they hold every line of every input once.
    inputs
        The inputs, in order.
    n_dialogues
        How many dialogues the shards hold; of lines that are dialogues, faulty ones count too.
    """

    shards: tuple[Shard, ...]
    inputs: tuple[InputContent, ...]
    n_dialogues: int


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The dialogues whose key's high word lies in ``[low, high]``."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class SplitDialogue:
    """A dialogue that two files hold: file and line of either, and where it begins in the second.

    In the order of the second, `min` is the first that a reader would meet.
    """

    file: int
    first: int
    line: int
    earlier_file: int
    earlier_line: int

    @property
    def place(self) -> tuple[int, int]:
        """Where a reader meets it again."""
        return self.file, self.first


def _watch_nothing() -> None:
    """Watch nothing; processes elsewhere can be given this."""


def plan_shards(
    files: Sequence[InputFile],
    source: Source,
    *,
    shard_bytes: int | None = None,
    scratch: Path,
    progress: Callable[[int, int], object] | None = None,
    threads: int = 1,
    mapped: Mapped | None = None,
    watch: Callable[[], object] = _watch_nothing,
    limits: Limits = DEFAULT_LIMITS,
) -> Plan:
    """Pack small files together, cut large ones between dialogues.

    Parameters
    ----------
    files
        The inputs.
    source
        What names a dialogue: `Source.dialogue_key`.
    shard_bytes
        The size that a shard does not exceed unless one dialogue does; None for the source's.
    scratch
        A folder for what compressed files that are larger than a shard are unpacked to; it must
        stay until the shards are read. Where dialogues stand is kept there meanwhile.
    progress
        Called with the bytes that were read and the bytes there are, once a file.
    threads
        How many files, or parts of them, are read at once; the plan does not depend on it.
    mapped
        Who does the tasks; None for threads of this process.
    watch
        Called with each block that a task reads; may raise.
    limits
        What the reading may take.

    Raises
    ------
    InputError
        When a file cannot be read, takes too much or changes meanwhile, or rows of one dialogue
        stand in two files (unless `Source.key_within_file`).
    RunError
        When the folder cannot be written.
    """
    shard_bytes = shard_bytes or source.shard_bytes
    mapped = mapped or partial(_map_in_threads, threads)
    folder = scratch / f"plan-{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise explain(folder, error) from error
    try:
        index = partial(
            index_group,
            source=source,
            shard_bytes=shard_bytes,
            scratch=scratch,
            folder=folder,
            at_once=threads,
            watch=watch,
            limits=limits,
        )
        indexed = _indexed(files, index, progress, threads, mapped)
        if not source.key_within_file and len(files) > 1:
            _check_one_file(indexed, files, folder, mapped)
        stretched = FileStretches(indexed, folder)
        shards = _packed(stretched, shard_bytes, threads, mapped)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    inputs = tuple(
        InputContent(file.file.path, file.n_read, file.content_hash) for file in stretched.files
    )
    dialogues = sum(group.n_dialogues for group in indexed)
    return Plan(tuple(sorted(shards, key=lambda shard: shard.index)), inputs, dialogues)


def _packed(
    stretched: FileStretches, shard_bytes: int, threads: int, mapped: Mapped
) -> list[Shard]:
    """Pack files into shards and read where these begin and end, many a task."""
    unread = [
        UnreadShard(index, tuple(_unread(stretched, part) for part in parts))
        for index, parts in enumerate(pack(stretched, shard_bytes))
    ]
    size = max(1, min(SHARDS_PER_TASK, len(unread) // (2 * threads)))
    batches = [unread[first : first + size] for first in range(0, len(unread), size)]
    return [shard for batch in mapped(read_shards, batches) for shard in batch]


def _unread(stretched: FileStretches, part: Extent) -> UnreadRange:
    return UnreadRange(part, stretched.files[part.file], *stretched.block_hashes(part.file))


def _map_in_threads(
    threads: int, task: Callable[[Item], Result], items: Sequence[Item], /
) -> Iterable[Result]:
    return map_ordered(task, items, min(threads, len(items)))


def _indexed(
    files: Sequence[InputFile],
    index: Callable[..., IndexedGroup],
    progress: Callable[[int, int], object] | None,
    threads: int,
    mapped: Mapped,
) -> list[IndexedGroup]:
    """Index all files, in groups."""
    groups = list(file_groups(files, threads))
    done, total = 0, sum(file.size for file in files)
    found = []
    for group in mapped(partial(index, groups=len(groups)), groups):
        found.append(group)
        for file in group.files:
            done += file.file.size
            if progress is not None:
                progress(done, total)
    return sorted(found, key=lambda group: group.index)


def _check_one_file(
    groups: Sequence[IndexedGroup], files: Sequence[InputFile], folder: Path, mapped: Mapped
) -> None:
    """Refuse a dialogue that two files hold rows of."""
    named = [group.index for group in groups if group.n_keys]
    if not named:
        return
    count = -(-sum(group.n_keys for group in groups) // KEYS_PER_TASK)
    edges = [(index << 64) // count for index in range(count + 1)]
    ranges = [KeyRange(edges[index], edges[index + 1] - 1) for index in range(count)]
    look = partial(split_dialogue, folder=folder, groups=named)
    found = [split for split in mapped(look, ranges) if split is not None]
    if not found:
        return
    split = min(found, key=lambda split: split.place)
    earlier = f"{files[split.earlier_file].path}:{split.earlier_line}"
    raise InputError(
        f"One dialogue stands in two files: {earlier} and {files[split.file].path}:{split.line}.",
        "Put all rows of a dialogue into one file, or give the dialogues different names.",
    )


def split_dialogue(keys: KeyRange, *, folder: Path, groups: Sequence[int]) -> SplitDialogue | None:
    """Find the first dialogue of a range of keys that stands in two files, among some groups."""
    parts = []
    for group in groups:
        found = GroupArrays(folder, group).load("keys")
        low = np.searchsorted(found[0], np.uint64(keys.low), side="left")
        high = np.searchsorted(found[0], np.uint64(keys.high), side="right")
        parts.append(np.asarray(found[:, low:high]))
    columns = np.concatenate(parts, axis=1)
    key = pl.struct("key_high", "key_low")
    named = pl.DataFrame(dict(zip(KEY_COLUMNS, columns, strict=True)))
    twice = named.filter(key.is_duplicated()).sort("file", "first")
    if twice.is_empty():
        return None
    again = twice.filter(~key.is_first_distinct()).head(1)
    both = twice.join(again, on=("key_high", "key_low"), how="semi").sort("file", "first")
    (earlier_file, earlier_line), *_ = both.select("file", "line").rows()
    file, first, line = again.select("file", "first", "line").row(0)
    return SplitDialogue(file, first, line, earlier_file, earlier_line)
