"""Index of dialogues: where they begin and end in files, found in one pass over their bytes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
from fastscore_jit.arrays import Int64Array, Mask
from fastscore_readers.json.line_ends import line_begins
from fastscore_readers.json.tokens import ABSENT

from fastscore.logs.inputs.files import Format
from fastscore.logs.integrity.file_state import (
    FileState,
    file_blocks,
    read_whole,
)
from fastscore.logs.read.batches import Batch, gather, map_ordered
from fastscore.logs.read.chat_lines import line_source
from fastscore.logs.read.chosen import naming_source
from fastscore.logs.read.columns import Places, array_key, convert, fills, texts_at, wanted_keys
from fastscore.logs.read.lines import BLOCK_BYTES, Lines, read_lines
from fastscore.logs.read.mapped_rows import (
    key_columns,
    key_places,
    key_source,
    mapped_rows,
    stored_source,
)
from fastscore.logs.read.parquet import read_parquet
from fastscore.logs.read.rows import by_format, range_lines, read_parts, whole_table
from fastscore.suites.declarations import Column, Source
from fastscore.suites.identity import (
    Hashes,
    dialogue_hashes,
    dialogue_heads,
    hash_columns,
    with_ids,
)

T = TypeVar("T")

MOST_GROUP_FILES = 512
BYTES_PER_FILE = 8 << 10
"""The time to open a file, as the number of bytes that could be read meanwhile."""
ROW_BYTES = 128
"""The minimum weight of a row, as a short row needs nearly the memory of a longer one."""
STRIDES_PER_SHARD = 256
"""Row dialogues are indexed in strides of this fraction of a shard."""
_BATCHES_AT_ONCE = 8
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


@dataclass(frozen=True, slots=True)
class _Indexing:
    source: Source
    format: Format
    shard_bytes: int
    scratch: Path
    threads: int

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
    states: Sequence[FileState], source: Source, shard_bytes: int, scratch: Path, threads: int
) -> Iterator[pl.DataFrame]:
    """Read files; yield where their dialogues are, in `SPAN_SCHEMA`, and update the states."""
    formats = by_format(states, source, lambda each: (each.file.format, each.file.path))
    for format, own, group in formats:
        how = _Indexing(own, format, shard_bytes, scratch, threads)
        find: FindSpans = _parquet_spans
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


def by_size(items: Iterable[T], size_of: Callable[[T], int], most: int) -> Iterator[tuple[T, ...]]:
    """Gather consecutive files to groups of about a size, of at most `MOST_GROUP_FILES`."""
    gathered: list[T] = []
    size = 0
    for item in items:
        gathered.append(item)
        size += size_of(item) + BYTES_PER_FILE
        if size >= most or len(gathered) == MOST_GROUP_FILES:
            yield tuple(gathered)
            gathered, size = [], 0
    if gathered:
        yield tuple(gathered)


def row_names(states: Sequence[FileState], source: Source, threads: int) -> Hashes:
    """Hash the names of the dialogues of some files, in which rows are dialogues."""
    naming = naming_source(source)
    ranges = [state.whole for state in states]
    heads = [
        dialogue_heads(part.frame, naming)[0]
        for part in read_parts(ranges, naming, threads=threads)
    ]
    if not heads:
        return np.zeros((0, 2), np.uint64)
    return dialogue_hashes(with_ids(pl.concat(heads), naming), naming)


def _line_spans(states: Sequence[FileState], how: _Indexing) -> Iterator[pl.DataFrame]:
    """Index files of which each line is a dialogue, by line ends only."""
    for state in states:
        blocks = file_blocks(state, how.shard_bytes, how.scratch)
        # without numbers, lines are not counted a second time
        lines = read_lines(blocks, state.file.path, line=0)
        found = map_ordered(line_starts, lines, how.threads)
        starts = np.concatenate([np.zeros(0, np.int64), *found])
        number = starts // how.stride
        first = np.flatnonzero(np.diff(number, prepend=-1))
        last = np.append(first, starts.size)[1:] - 1
        file = np.full(first.size, state.index)
        places = (file, starts[first], starts[last], first + 1, last - first + 1)
        yield _spans_of([_sequence_frame(places, ())], how.stride)


def line_starts(lines: Lines) -> Int64Array:
    """Return where lines begin in their file."""
    data = np.frombuffer(lines.data, np.uint8)
    size = 1 if lines.refused else data.size
    starts = np.append(0, line_begins(data))
    return lines.offset + starts[starts < size]


def _parquet_spans(states: Sequence[FileState], how: _Indexing) -> Iterator[pl.DataFrame]:
    """Index a Parquet file by its key columns; a compressed file is unpacked first."""
    (state,) = states
    read_whole(state, how.scratch)
    whole = whole_table(state, how.scratch)
    stride = 0
    if how.stride:
        size = max(state.file.size, ROW_BYTES * state.size, 1)
        stride = max(1, how.shard_bytes * state.size // (STRIDES_PER_SHARD * size))
    naming = replace(how.source, columns=key_columns(how.source), rows="", chat=None)
    names = [f"key{index}" for index in range(len(naming.columns))]
    new = {column.name: name for column, name in zip(naming.columns, names, strict=True)}
    for _, rows, _ in read_parquet(whole, stored_source(naming).columns):
        placed = rows.with_columns(file=pl.lit(""), byte_offset=pl.lit(None, pl.Int64))
        frame = mapped_rows(placed, naming, "parquet")[0].rename(new)
        row = frame["line"].to_numpy() - 1
        file, one = np.full(row.size, state.index), np.ones(row.size, np.int64)
        keys = [frame[name] for name in names]
        yield _spans_of([_sequence_frame((file, row, row, row + 1, one), keys)], stride)


def _named_spans(states: Sequence[FileState], how: _Indexing) -> Iterator[pl.DataFrame]:
    """Index small files of text, or a large one, by the keys of their lines, in batches."""
    keys = replace(key_source(line_source(how.source, how.format)), chat=None)

    def key_lines(state: FileState) -> Iterator[Lines]:
        blocks = file_blocks(state, how.shard_bytes, how.scratch)
        return range_lines(state.whole, blocks, how.source, keys)

    streams = ((state.index, key_lines(state)) for state in states)
    waiting: list[pl.DataFrame] = []
    scanned = map_ordered(
        lambda batch: (batch, _batch_sequences(batch, keys, how.stride)),
        gather(streams),
        how.threads,
    )
    for batch, found in scanned:
        latest = states[int(batch.parts[-1]) - states[0].index]
        latest.limits.check_memory(latest.file.path)
        waiting += found
        # polars takes as long for one batch as scanning does
        if len(waiting) == _BATCHES_AT_ONCE:
            yield _spans_of(waiting, how.stride)
            waiting = []
    if waiting:
        yield _spans_of(waiting, how.stride)


def _batch_sequences(batch: Batch, source: Source, stride: int) -> list[pl.DataFrame]:
    if batch.segments[-1].refused is not None:
        return []
    columns, stored = key_columns(source), stored_source(source).columns
    keys = wanted_keys(stored)
    scan = batch.scan(keys, array_key(source), fills(stored))
    if scan.start.size == 0:
        return []
    parts, offsets = batch.places(scan.start)
    named = [key_places(scan, keys, column) for column in columns]
    return [_sequences(parts, offsets, scan.line, named, columns, stride)]


def _sequences(
    parts: Int64Array,
    offsets: Int64Array,
    lines: Int64Array,
    named: Sequence[Places],
    columns: Sequence[Column],
    stride: int,
) -> pl.DataFrame:
    """Find sequences of rows with one key; with a stride, row dialogues are joined within it."""
    # names are read only where they change; adjacent sequences may belong to one dialogue
    begins = np.concatenate(([True], parts[1:] != parts[:-1]))
    if stride:
        begins[1:] |= offsets[1:] // stride != offsets[:-1] // stride
    for place in named:
        begins |= changes(place)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], parts.size) - 1
    good = np.ones(first.size, np.bool_)
    keys: list[pl.Series] = []
    for place, column in zip(named, columns, strict=True):
        converted = convert(place.at(first), column)
        keys.append(converted.values)
        good &= converted.faults == 0
    places = (parts[first], offsets[first], offsets[last], lines[first], last - first + 1)
    frame = _sequence_frame(places, keys)
    return frame if good.all() else frame.filter(pl.Series(good))


def _sequence_frame(places: Sequence[Int64Array], keys: Sequence[pl.Series]) -> pl.DataFrame:
    """Make a frame of sequences: file, first, last, line, dialogues (rows), and their keys."""
    names = ("file", "first", "last", "line", "dialogues")
    series = [pl.Series(name, values) for name, values in zip(names, places, strict=True)]
    return pl.DataFrame([*series, *(key.alias(f"key{at}") for at, key in enumerate(keys))])


def changes(found: Places) -> Mask:
    """Mark the first row, and rows whose value or spelling differs from the row before.

    Equal neighbouring texts share a string view, except across blocks.
    """
    n = found.tags.size
    if found.filled is None:
        texts = texts_at(found.data, found.starts, found.ends, found.tags != ABSENT)
        changed: Mask = texts.ne_missing(texts.shift()).to_numpy().copy()
        written = [found.tags]
    else:
        changed = np.arange(n) == 0
        written = [found.tags, *found.filled.values.reshape(n, -1).T]
    for each in written:
        changed[1:] |= each[1:] != each[:-1]
    return changed


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
