"""Planning of shards: which whole dialogues are read together, and the hash of their content.

Tasks index groups of files: they find where dialogues begin and end, in one pass over the bytes.
This process packs shards, tasks hash them. The plan depends only on the input, not on executors,
threads or timing.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from fastscore_jit.arrays import Int64Array
from fastscore_readers.json.line_ends import line_begins

from fastscore.errors import InputError
from fastscore.files import SUFFIXES, Compression, Damage, hash_part, whole_blocks
from fastscore.logs.inputs.chats import array_holds_rows
from fastscore.logs.inputs.files import Format, InputFile
from fastscore.logs.inputs.folders import check_partition, partition_of
from fastscore.logs.integrity.file_state import (
    FileRange,
    FileState,
    Shard,
    changed,
    file_blocks,
    read_whole,
)
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.logs.objects import open_file, stamp
from fastscore.logs.read.chosen import naming_source
from fastscore.logs.read.csv_records import csv_header
from fastscore.logs.read.lines import BLOCK_BYTES, Lines, is_array_of_rows, read_lines
from fastscore.logs.read.mapped_rows import key_source, line_source
from fastscore.logs.read.rows import (
    Part,
    by_format,
    map_ordered,
    range_lines,
    read_parts,
    read_streams,
    read_table,
    whole_table,
)
from fastscore.settings.options import available_processors
from fastscore.suites.declarations import Source
from fastscore.suites.identity import (
    NOTHING,
    Hashes,
    NameSet,
    dialogue_hashes,
    dialogue_heads,
    file_names,
    hash_columns,
    with_ids,
)

Item = TypeVar("Item")

MOST_GROUP_FILES = 512
BYTES_PER_FILE = 8 << 10
"""The time to open a file, as the number of bytes that could be read meanwhile."""
ROW_BYTES = 128
"""The minimum weight of a row, as a short row needs nearly the memory of a longer one."""
STRIDES_PER_SHARD = 256
"""Row dialogues are indexed in strides of this fraction of a shard."""
_PARTS_AT_ONCE = 8
_SPANS_AT_ONCE = 1 << 18

_FILE_KEY = (1, 0)
"""The local key of a dialogue that is a whole file. Local keys of row dialogues begin with 0."""

SPAN_SCHEMA: dict[str, pl.DataType] = {
    "file": pl.Int64(),
    "is_local": pl.Boolean(),
    "key_high": pl.UInt64(),
    "key_low": pl.UInt64(),
    "first": pl.Int64(),
    "last": pl.Int64(),
    "line": pl.Int64(),
    "dialogues": pl.Int64(),
}
"""A dialogue in a file, or the row dialogues of one stride: the file's place in its group; whether
the key is valid within the file only; the key; where the first and the last row start (byte, or
Parquet row); the first row's line; the number of dialogues. Lines of row dialogues are not read
for this, so blank and faulty ones are counted too."""

GROUPS_PER_THREAD = 4
LEAST_GROUP_BYTES = 8 << 20
MOST_GROUP_BYTES = 64 << 20
SHARDS_PER_TASK = 64
PARTS_OF_REMAINDER = 2
"""A shard is at most this fraction of the remaining input, unless it becomes smaller than"""
SHARD_PARTS = 2
"""this fraction of a full shard, as each shard has a fixed cost."""
_DIGEST_BYTES = 16

CUT_SCHEMA: dict[str, pl.DataType] = {
    "file": pl.Int64(),
    "start": pl.Int64(),
    "line": pl.Int64(),
    "n_bytes": pl.Int64(),
}
"""Where files can be cut: the file's index in the plan, the byte (or Parquet row), its line, and
the weight up to the next cut point."""

KEY_SCHEMA = {name: SPAN_SCHEMA[name] for name in ("key_high", "key_low", "file", "first", "line")}
"""Where named dialogues begin; ``file`` is the file's index in the plan."""


MapTasks = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Runs a task for each item, anywhere with access to the files; results come in any order."""


@dataclass(frozen=True, slots=True)
class InputContent:
    """An input file at planning."""

    name: str  # the path as given by the user
    n_bytes: int  # its bytes on disk
    content_hash: str  # XXH3 (128 bits, hexadecimal) of those bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """The shards of a run."""

    # the shards, in input order; together they contain every line of every input once
    shards: tuple[Shard, ...]
    inputs: tuple[InputContent, ...]  # the inputs, in order
    n_dialogues: int  # The number of dialogues. If lines are dialogues, faulty ones count, too.
    shared_names: NameSet = NOTHING  # the names that several of them have


FileGroup = tuple[int, tuple[InputFile, ...]]
"""Consecutive inputs indexed by one task, after the index of the first."""


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """The index of a file: the part of `FileState` that can be sent between processes."""

    file: InputFile
    path: str
    compression: Compression
    size: int
    input: InputContent
    content: bytes  # the `BlockHash` of the bytes on disk
    damage: Damage | None
    unpacked: bool
    stamp: str
    header: bytes
    # the hashes of whole blocks, if parts of the file may have to be hashed
    blocks: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class IndexedGroup:
    """The index of a group of files."""

    first_file: int  # the index of the first file in the plan
    # the files, and their number of dialogues
    files: tuple[IndexedFile, ...]
    n_dialogues: int
    cuts: pl.DataFrame  # where the files can be cut, in `CUT_SCHEMA`
    keys: pl.DataFrame  # dialogues of which other files could have rows, in `KEY_SCHEMA`
    names: Hashes  # the hashes of the names of dialogues that may share one, uint64 (n, 2)


class SplitDialogueError(InputError):
    """A dialogue with rows in two files."""

    def __init__(self, files: Sequence[InputFile], message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.files = files


def _never() -> None:
    """Never cancel. A module-level function, which can be sent to other processes."""


def plan_shards(
    files: Sequence[InputFile],
    source: Source,
    *,
    shard_bytes: int | None = None,
    scratch: Path,
    progress: Callable[[int, int], object] | None = None,
    threads: int = 1,
    map_tasks: MapTasks | None = None,
    check_cancelled: Callable[[], object] = _never,
    limits: Limits = DEFAULT_LIMITS,
) -> Plan:
    """Pack small files together, cut large ones between dialogues."""
    shard_bytes = shard_bytes or source.shard_bytes
    if map_tasks is None:
        map_tasks = partial(map_ordered, threads=threads)
    index = partial(
        index_group,
        source=source,
        shard_bytes=shard_bytes,
        scratch=scratch,
        at_once=threads,
        check_cancelled=check_cancelled,
        limits=limits,
    )
    file_parts = file_groups(files, threads)
    done, total = 0, sum(file.size for file in files)
    groups: list[IndexedGroup] = []
    for group in map_tasks(partial(index, groups=len(file_parts)), file_parts):
        groups.append(group)
        for each in group.files:
            done += each.file.size
            if progress is not None:
                progress(done, total)
    groups.sort(key=lambda group: group.first_file)
    indexed = [file for group in groups for file in group.files]
    keys = [pl.DataFrame(schema=KEY_SCHEMA), *(group.keys for group in groups)]
    check_split_dialogues(pl.concat(keys), files)
    parts = [pl.DataFrame(schema=CUT_SCHEMA), *(group.cuts for group in groups)]
    cuts = pl.concat(parts, rechunk=True)
    names = file_names(file.path for file in files)
    drafts = [
        _draft(index, cuts, indexed, first, after, names)
        for index, (first, after) in enumerate(pack(cuts["n_bytes"].to_numpy(), shard_bytes))
    ]
    size = max(1, min(SHARDS_PER_TASK, len(drafts) // (2 * threads)))
    batches = [drafts[first : first + size] for first in range(0, len(drafts), size)]
    hash_shards = partial(_hash_shards, source=source)
    shards = [shard for batch in map_tasks(hash_shards, batches) for shard in batch]
    return Plan(
        tuple(sorted(shards, key=lambda shard: shard.index)),
        tuple(file.input for file in indexed),
        sum(group.n_dialogues for group in groups),
        NameSet.repeated(np.concatenate([np.zeros((0, 2), np.uint64), *(g.names for g in groups)])),
    )


def file_groups(files: Sequence[InputFile], threads: int) -> list[FileGroup]:
    """Split files into groups for a number of workers, which does not affect the plan."""
    total = sum(file.size + BYTES_PER_FILE for file in files)
    # small enough that one slow group leaves no worker idle
    most = min(MOST_GROUP_BYTES, max(LEAST_GROUP_BYTES, total // (GROUPS_PER_THREAD * threads)))
    groups: list[FileGroup] = []
    for group in by_size(files, lambda file: file.size, most):
        groups.append((sum(len(before) for _, before in groups), group))
    return groups


def index_group(
    group: FileGroup,
    *,
    source: Source,
    shard_bytes: int,
    scratch: Path,
    groups: int,
    at_once: int,
    check_cancelled: Callable[[], object],
    limits: Limits,
) -> IndexedGroup:
    """Find where the dialogues of a group's files begin and end."""
    first_file, files = group
    how: dict[str, Any] = {"check_cancelled": check_cancelled, "limits": limits}
    states = [
        FileState.of(file, index=index, stamp=stamp(file.location), **how)
        for index, file in enumerate(files)
    ]
    threads = max(1, available_processors() // groups) if groups < at_once else 1
    heads: Heads = {}
    spans = join_spans(find_spans(states, source, shard_bytes, scratch, threads, heads))
    cuts = cut_points(spans, states)
    parts = np.bincount(cuts["file"].to_numpy()).tolist()
    to_plan = pl.col("file") + first_file
    can_be_split = (groups > 1 or len(states) > 1) and not source.key_within_file
    keys = spans.filter(~pl.col("is_local")) if can_be_split else spans.clear()
    if _has_row_names(source):
        names = row_names(states, source, threads, heads)
    elif source.key_within_file:
        named = spans.filter(~pl.col("is_local")).select("key_high", "key_low")
        names = np.ascontiguousarray(named.to_numpy())
    else:
        names = np.zeros((0, 2), np.uint64)
    return IndexedGroup(
        first_file,
        tuple(_indexed_file(*each, source) for each in zip(states, parts, strict=True)),
        int(spans["dialogues"].sum()),
        cuts.with_columns(to_plan),
        keys.select(*KEY_SCHEMA).with_columns(to_plan),
        names,
    )


def _indexed_file(state: FileState, n_parts: int, source: Source) -> IndexedFile:
    has_parts_to_hash = n_parts > 1 and not state.unpacked and state.file.format != "parquet"
    return IndexedFile(
        file=state.file,
        path=state.path,
        compression=state.compression,
        size=state.size,
        input=InputContent(state.file.path, state.read, state.digest.hexdigest()),
        content=state.hash_blocks.digest(),
        damage=state.damage,
        unpacked=state.unpacked,
        stamp=state.stamp,
        header=_header(state, source) if n_parts > 1 else b"",
        blocks=tuple(state.hash_blocks.blocks) if has_parts_to_hash else (),
    )


def _header(state: FileState, source: Source) -> bytes:
    """Return what parts need of a file's beginning: the header of CSV, the bracket of an array."""
    if state.file.format == "csv":
        return csv_header(state.path)
    if state.file.format != "json":
        return b""
    return b"[" if is_array_of_rows(state.path, array_holds_rows(source)) else b""


def cut_points(spans: pl.DataFrame, states: Sequence[FileState]) -> pl.DataFrame:
    """Find where files can be cut: where they begin, and between dialogues."""
    sizes = np.array([state.size for state in states], np.int64)
    begins = np.cumsum(sizes) - sizes
    # compressed files cannot be read from the middle
    can_be_cut = np.array([state.compression == "none" for state in states], np.bool_)
    is_parquet = np.array([state.file.format == "parquet" for state in states], np.bool_)
    disk_bytes = np.array([state.file.size for state in states], np.int64)
    weights = np.where(is_parquet, disk_bytes / np.maximum(sizes, 1), 1.0)
    # positions as if the files followed each other
    file_of = spans["file"].to_numpy()
    first = begins[file_of] + spans["first"].to_numpy()
    open_until = np.maximum.accumulate(begins[file_of] + spans["last"].to_numpy())
    is_same_file = file_of[1:] == file_of[:-1]
    cuts = 1 + np.flatnonzero(
        (first[1:] > open_until[:-1]) & is_same_file & can_be_cut[file_of[1:]]
    )
    start = np.concatenate((begins, first[cuts]))
    order = np.argsort(start, kind="stable")
    start = start[order]
    stop = np.append(start, sizes.sum())[1:]
    file = np.concatenate((np.arange(sizes.size), file_of[cuts]))[order]
    line = np.concatenate((np.ones(sizes.size, np.int64), spans["line"].to_numpy()[cuts]))[order]
    row_dialogues = (spans["is_local"] & (spans["key_high"] == 0)) * spans["dialogues"]
    counted = np.bincount(
        np.searchsorted(start, first, side="right") - 1, row_dialogues.to_numpy(), start.size
    )
    n_rows = np.where(is_parquet[file], stop - start, counted)
    n_bytes = np.maximum(np.rint((stop - start) * weights[file]), ROW_BYTES * n_rows)
    columns = (file, start - begins[file], line, n_bytes.astype(np.int64))
    return pl.DataFrame(dict(zip(CUT_SCHEMA, columns, strict=True)), schema=CUT_SCHEMA)


def check_split_dialogues(keys: pl.DataFrame, files: Sequence[InputFile]) -> None:
    """Refuse dialogues with rows in two files; ``keys`` as in `KEY_SCHEMA`."""
    key = pl.struct("key_high", "key_low")
    twice = keys.filter(repeated_keys(keys, in_file=False)).filter(key.is_duplicated())
    if twice.is_empty():
        return
    again = twice.sort("file", "first").filter(~key.is_first_distinct()).head(1)
    of_key = twice.join(again, on=("key_high", "key_low"), how="semi").sort("file", "first")
    rows = of_key.row(0, named=True), again.row(0, named=True)
    places = " and ".join(f"{files[row['file']].path}:{row['line']}" for row in rows)
    of_rows = [files[row["file"]] for row in rows]
    one, other = (file.path for file in of_rows)
    raise SplitDialogueError(
        of_rows,
        f"One dialogue is in two files: {places}.",
        f"{other} seems to be {one}, compressed: remove one of them."
        if other.removeprefix(one) in SUFFIXES
        else "Put all rows of a dialogue into one file, or give the dialogues different names. If "
        "only file names tell systems apart, put each file into a folder named COLUMN=VALUE, such "
        "as miner_uid=7.",
    )


def pack(n_bytes: Int64Array, shard_bytes: int) -> Iterator[tuple[int, int]]:
    """Pack consecutive items into shards by weight; yield the first item and the end of each.

    The last shards are smaller, so that no worker finishes much later than the others.
    """
    ends = np.cumsum(n_bytes, dtype=np.int64)
    smallest = max(1, shard_bytes // SHARD_PARTS)
    first = before = 0
    while first < ends.size:
        left = int(ends[-1]) - before
        even = -(-left // max(1, round(left / smallest)))
        size = min(shard_bytes, max(left // PARTS_OF_REMAINDER, even))
        after = max(first + 1, int(np.searchsorted(ends, before + size, side="right")))
        yield first, after
        first, before = after, int(ends[after - 1])


Draft = tuple[Shard, tuple[IndexedFile, ...]]
"""A shard without fingerprints, and its files with the hashes of the blocks in its ranges."""


def _draft(
    index: int,
    cuts: pl.DataFrame,
    files: Sequence[IndexedFile],
    first: int,
    after: int,
    names: Mapping[str, str],
) -> Draft:
    """Make a shard of consecutive parts. Adjacent parts of one file become one range."""
    parts = cuts[first:after]
    begins = np.flatnonzero(np.diff(parts["file"].to_numpy(), prepend=-1))
    ranges, of_ranges = [], []
    for number, start, line, _ in parts[begins].rows():
        file, stop = files[number], files[number].size
        if after < cuts.height and cuts["file"][after] == number:
            stop = cuts["start"][after]
        own = file.blocks[whole_blocks(start, stop)]
        of_ranges.append(replace(file, blocks=own) if file.blocks else file)
        ranges.append(
            FileRange(
                file.file.path,
                file.path,
                file.file.format,
                file.compression,
                start,
                stop,
                line,
                file.damage if stop == file.size and file.unpacked else None,
                file.header if start else b"",
                file.file.format == "json" and stop < file.size,
                name=names[file.file.path],
            )
        )
    return Shard(index, tuple(ranges), int(parts["n_bytes"].sum()), ""), tuple(of_ranges)


def _hash_shards(drafts: Sequence[Draft], source: Source) -> list[Shard]:
    """Add fingerprints to shards; only the ends of ranges are read."""
    shards = []
    for shard, files in drafts:
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        without_names = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        ranges = []
        for part, file in zip(shard.file_ranges, files, strict=True):
            content = _content(part, file)
            place = (part.start, part.stop, part.first_line, part.damage, part.header)
            own = (part.format, part.name, *_read_in_path(part, source), *place)
            for hashed, name in ((digest, (part.file, *place)), (without_names, own)):
                written = repr(name).encode("utf-8", "surrogateescape")
                hashed.update(hashlib.blake2b(written).digest())
                hashed.update(content)
            ranges.append(replace(part, fingerprint=_fingerprint(part, file, content)))
        shards.append(
            replace(
                shard,
                file_ranges=tuple(ranges),
                fingerprint=digest.hexdigest(),
                content_fingerprint=without_names.hexdigest(),
            )
        )
    return shards


def _read_in_path(part: FileRange, source: Source) -> tuple[object, ...]:
    # a layout names by its place what has no id
    if source.document_chat is not None:
        return (part.file,)
    found = re.findall(source.read_in_path, part.file) if source.read_in_path else []
    return (*found, partition_of(part.file))


def _content(part: FileRange, file: IndexedFile) -> bytes:
    """Hash a range of a file. A Parquet file is hashed whole, as its rows are scattered."""
    if _is_whole(part, file) or part.format == "parquet":
        return file.content
    try:
        return hash_part(file.path, part.start, part.stop, file.blocks, open_file)
    except OSError as error:
        raise InputError(f"The file {file.path!r} cannot be read: {error.strerror}.") from error


def _fingerprint(part: FileRange, file: IndexedFile, content: bytes) -> str:
    """Return a range's fingerprint. Refuse a cut file that has changed since indexing."""
    if file.unpacked:
        return ""
    if not _is_whole(part, file) and stamp(file.path) != file.stamp:
        raise changed(part.file)
    return file.stamp if part.format == "parquet" else content.hex()


def _is_whole(part: FileRange, file: IndexedFile) -> bool:
    return part.start == 0 and part.stop == file.size


Heads = dict[int, list[pl.DataFrame]]
"""The heads of dialogues by the index of their file, of files whose lines were read for spans."""


@dataclass(frozen=True, slots=True)
class _Indexing:
    source: Source
    format: Format
    shard_bytes: int
    scratch: Path
    threads: int
    heads: Heads

    @property
    def stride(self) -> int:
        """The size in bytes of a stride of row dialogues, 0 if rows are not dialogues."""
        has_row_dialogues = self.format in self.source.row_dialogues
        return max(1, self.shard_bytes // STRIDES_PER_SHARD) if has_row_dialogues else 0


FindSpans = Callable[[Sequence[FileState], _Indexing], Iterator[pl.DataFrame]]


def join_spans(found: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Join spans of one key of one file; sorted by file and first row."""
    joined, waiting, height = pl.DataFrame(schema=SPAN_SCHEMA), [], 0
    for spans in found:
        waiting.append(spans)
        height += spans.height
        if height > _SPANS_AT_ONCE + joined.height:
            joined = _join_keys(pl.concat([joined, *waiting]))
            waiting, height = [], 0
    joined = _join_keys(pl.concat([joined, *waiting]))
    file, first = joined["file"].to_numpy(), joined["first"].to_numpy()
    is_sorted = (file[1:] > file[:-1]) | ((file[1:] == file[:-1]) & (first[1:] >= first[:-1]))
    return joined if is_sorted.all() else joined.sort("file", "first")


def _join_keys(spans: pl.DataFrame) -> pl.DataFrame:
    repeated = repeated_keys(spans, in_file=True)
    if repeated.any():
        # most keys have one span
        joined = (
            spans.filter(repeated)
            .group_by("file", "is_local", "key_high", "key_low")
            .agg(pl.col("first", "line").first(), pl.col("last").last(), pl.col("dialogues").sum())
            .select(*SPAN_SCHEMA)
        )
        spans = pl.concat([spans.filter(~repeated), joined])
    is_row_dialogue = pl.col("is_local") & (pl.col("key_high") == 0)
    return spans.with_columns(
        pl.when(is_row_dialogue).then("dialogues").otherwise(1).alias("dialogues")
    )


def repeated_keys(keys: pl.DataFrame, *, in_file: bool) -> pl.Series:
    """Mark rows whose key occurs again (in the same file); few of the marked are unique."""
    number = pl.col("key_high") ^ pl.col("key_low")
    if in_file:
        number ^= pl.col("file").cast(pl.UInt64).hash()
    numbers = keys.select(number).to_series()
    ascending = numbers.sort().to_numpy()
    if not (ascending[1:] == ascending[:-1]).any():
        return pl.Series([False]).new_from_index(0, keys.height)
    return numbers.is_duplicated()


def find_spans(
    states: Sequence[FileState],
    source: Source,
    shard_bytes: int,
    scratch: Path,
    threads: int,
    heads: Heads | None = None,
) -> Iterator[pl.DataFrame]:
    """Read files; yield where their dialogues are, in `SPAN_SCHEMA`; update states and heads."""
    formats = by_format(states, source, lambda each: (each.file.format, each.file.path))
    for format, own, group in formats:
        how = _Indexing(own, format, shard_bytes, scratch, threads, {} if heads is None else heads)
        find: FindSpans = _table_spans
        items: Sequence[tuple[FileState, ...]] = [(state,) for state in group]
        if format != "parquet":
            has_lines = format == "jsonl" and how.stride and not own.dialogue_key
            find = _line_spans if has_lines else _named_spans
            items = [*by_size(group, lambda state: state.file.size, BLOCK_BYTES)]
        # threads share groups of files, or the blocks of one group
        how = replace(how, threads=max(1, threads // len(items)))
        index = partial(_index, find, how)
        yield from map_ordered(index, items, min(threads, len(items)))


def _index(find: FindSpans, how: _Indexing, states: tuple[FileState, ...]) -> pl.DataFrame:
    return join_spans(find(states, how))


def by_size(
    items: Iterable[Item], size_of: Callable[[Item], int], most: int
) -> Iterator[tuple[Item, ...]]:
    """Gather consecutive files to groups of about a size, of at most `MOST_GROUP_FILES`."""
    gathered: list[Item] = []
    size = 0
    for item in items:
        gathered.append(item)
        size += size_of(item) + BYTES_PER_FILE
        if size >= most or len(gathered) == MOST_GROUP_FILES:
            yield tuple(gathered)
            gathered, size = [], 0
    if gathered:
        yield tuple(gathered)


def row_names(states: Sequence[FileState], source: Source, threads: int, heads: Heads) -> Hashes:
    """Hash the names of the dialogues of some files, in which rows are dialogues."""
    naming = naming_source(source)
    ranges = [state.whole for state in states if state.index not in heads]
    found = [head for of_file in heads.values() for head in of_file]
    found += _heads(read_parts(ranges, naming, threads=threads), naming)
    if not found:
        return np.zeros((0, 2), np.uint64)
    return dialogue_hashes(with_ids(pl.concat(found), naming), naming)


def _has_row_names(source: Source) -> bool:
    """Tell whether rows are dialogues that may have names."""
    return source.row_id is not None and not source.joins_turns


def _heads(parts: Iterable[Part], naming: Source) -> list[pl.DataFrame]:
    heads = []
    for part in parts:
        check_partition(part.frame, naming)
        heads.append(dialogue_heads(part.frame, naming)[0])
    return heads


def _line_spans(states: Sequence[FileState], how: _Indexing) -> Iterator[pl.DataFrame]:
    """Index files of which each line is a dialogue, by line ends only; read the ids of lines."""
    naming = naming_source(how.source)
    for state in states:
        blocks = file_blocks(state, how.shard_bytes, how.scratch)
        found: list[Int64Array] = [np.zeros(0, np.int64)]
        if not _has_row_names(how.source) or how.source.document_chat is not None:
            # without numbers, lines are not counted a second time
            lines = read_lines(blocks, state.file.path, line=0)
            found += map_ordered(line_starts, lines, how.threads)
        else:
            lines = _noted(read_lines(blocks, state.file.path), found)
            files = (state.file.path,)
            parts = read_streams([(0, lines)], files, line_source(naming, "jsonl"), how.threads)
            how.heads[state.index] = _heads(parts, naming)
        starts = np.concatenate(found)
        number = starts // how.stride
        first = np.flatnonzero(np.diff(number, prepend=-1))
        last = np.append(first, starts.size)[1:] - 1
        file = np.full(first.size, state.index)
        places = (file, starts[first], starts[last], first + 1, last - first + 1)
        names = ("file", "first", "last", "line", "dialogues")
        yield _spans_of([pl.DataFrame(dict(zip(names, places, strict=True)))], how.stride)


def _noted(lines: Iterable[Lines], starts: list[Int64Array]) -> Iterator[Lines]:
    """Note where lines begin as they are read."""
    for each in lines:
        starts.append(line_starts(each))
        yield each


def line_starts(lines: Lines) -> Int64Array:
    """Return where lines begin in their file."""
    data = np.frombuffer(lines.data, np.uint8)
    size = 1 if lines.refused else data.size
    starts = np.append(0, line_begins(data))
    return lines.offset + starts[starts < size]


def _named_spans(states: Sequence[FileState], how: _Indexing) -> Iterator[pl.DataFrame]:
    """Index small files of text, or a large one, by the keys of their rows."""
    naming = _naming_source(how)

    def lines(state: FileState) -> Iterator[Lines]:
        blocks = file_blocks(state, how.shard_bytes, how.scratch)
        return range_lines(state.whole, blocks, how.source, naming)

    streams = ((state.index, lines(state)) for state in states)
    # rows have the number of their file in place of its name
    files = tuple(map(str, range(states[-1].index + 1)))
    waiting: list[pl.DataFrame] = []
    for part in read_streams(streams, files, naming, how.threads):
        if part.frame.height:
            latest = states[int(part.frame["file"][-1]) - states[0].index]
            latest.limits.check_memory(latest.file.path)
            waiting.append(_sequences(part.frame, naming, how.stride))
        # polars takes as long for one part as scanning does
        if len(waiting) == _PARTS_AT_ONCE:
            yield _spans_of(waiting, how.stride)
            waiting = []
    if waiting:
        yield _spans_of(waiting, how.stride)


def _table_spans(states: Sequence[FileState], how: _Indexing) -> Iterator[pl.DataFrame]:
    """Index a file of stored columns by its key columns; a compressed file is unpacked first."""
    (state,) = states
    read_whole(state, how.scratch)
    whole = whole_table(state, how.source, how.scratch)
    stride = 0
    if how.stride:
        size = max(state.file.size, ROW_BYTES * state.size, 1)
        stride = max(1, how.shard_bytes * state.size // (STRIDES_PER_SHARD * size))
    naming = _naming_source(how)
    for part in read_table(whole, naming):
        rows = part.frame.with_columns(
            file=pl.lit(str(state.index)), byte_offset=pl.col("line") - 1
        )
        if rows.height:
            yield _spans_of([_sequences(rows, naming, stride)], stride)


def _naming_source(how: _Indexing) -> Source:
    """Return the source of what names dialogues; a row without the rest is one, too."""
    naming = key_source(line_source(how.source, how.format))
    columns = (
        column if column.name in naming.dialogue_key else replace(column, otherwise="null")
        for column in naming.columns
    )
    return replace(naming, columns=tuple(columns), chat=None)


def _sequences(rows: pl.DataFrame, naming: Source, stride: int) -> pl.DataFrame:
    """Join rows of one key that follow each other; with a stride, those that begin within one.

    Return their file, first and last place, first line and number, and their keys.
    """
    within = [pl.col("byte_offset") // stride] if stride else []
    same = (pl.col("file", *naming.dialogue_key), *within)
    begins = rows.select(pl.any_horizontal(each.ne_missing(each.shift()) for each in same))
    first = begins.to_series().arg_true().cast(pl.Int64).to_numpy()
    after = np.append(first[1:], rows.height)
    found = rows[first]
    return found.select(
        pl.col("file").cast(pl.Int64),
        first="byte_offset",
        last=rows["byte_offset"][after - 1],
        line="line",
        dialogues=pl.Series(after - first, dtype=pl.Int64),
        **{f"key{at}": pl.col(name) for at, name in enumerate(naming.dialogue_key)},
    )


def _spans_of(found: Sequence[pl.DataFrame], stride: int) -> pl.DataFrame:
    """Make spans of sequences of rows.

    Rows without a key belong to the file's dialogue. With a ``stride`` (bytes, or rows of Parquet)
    each is a dialogue, indexed by the stride in which it starts.
    """
    sequences = pl.concat(found)
    keys = sequences.get_columns()[5:]
    if keys and keys[0].dtype == pl.String:
        keys[0] = sequences.select(pl.when(pl.lit(keys[0]) != "").then(pl.lit(keys[0]))).to_series()
    first = sequences["first"].to_numpy()
    is_local = keys[0].is_null().to_numpy() if keys else np.ones(first.size, np.bool_)
    hashes = hash_columns(keys, first.size)
    hashes[is_local] = 0
    if stride:
        hashes[is_local, 1] = first[is_local] // stride
    else:
        hashes[is_local] = _FILE_KEY
    key = {"is_local": is_local, "key_high": hashes[:, 0], "key_low": hashes[:, 1]}
    return sequences.with_columns(**key).select(*SPAN_SCHEMA)
