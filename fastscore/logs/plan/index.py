"""Where each dialogue of each file begins and ends, in one pass over the input."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Int64Array, Mask
from fastscore_kernels import text_hash128
from fastscore_readers.json.tokens import ABSENT

from fastscore.logs.inputs.chats import array_holds_rows
from fastscore.logs.inputs.files import Format
from fastscore.logs.inputs.partitions import Partition, partition_of, with_partition
from fastscore.logs.integrity.file_state import (
    FileState,
    file_blocks,
    file_line_blocks,
    map_stream,
    read_whole,
)
from fastscore.logs.integrity.fingerprints import stamp
from fastscore.logs.plan.byte_ranges import ByteRange
from fastscore.logs.plan.line_strides import block_strides, line_strides
from fastscore.logs.plan.spans import FILE_KEY, SPAN_SCHEMA, Spans
from fastscore.logs.plan.stretches import ROW_BYTES
from fastscore.logs.read.arrow_series import texts_at
from fastscore.logs.read.batches import Batch, gather, map_ordered
from fastscore.logs.read.blocks import BLOCK_BYTES
from fastscore.logs.read.chat_lines import chat_lines, line_source
from fastscore.logs.read.columns import convert
from fastscore.logs.read.csv_records import read_records
from fastscore.logs.read.json_documents import read_document
from fastscore.logs.read.lines import Lines, read_lines
from fastscore.logs.read.mapped_rows import key_places, mapped_rows, stored_source
from fastscore.logs.read.parquet import parquet_rows, read_parquet
from fastscore.logs.read.places import Places, array_key, fills, wanted_keys
from fastscore.suites.declarations import Column, Source

_STRIDES_PER_SHARD = 256
_BATCHES_AT_ONCE = 8
_NULL_HASH, _ODD = np.array([0x9AE16A3B2F90404F, 0x9E3779B97F4A7C15], np.uint64)
# what a file costs beside its bytes
_LEAST_FILE_BYTES = 8 << 10


def index_files(
    states: Sequence[FileState],
    spans: Spans,
    source: Source,
    shard_bytes: int,
    scratch: Path,
    threads: int,
) -> Iterator[FileState]:
    """Yield each file, in order, when its dialogues are among ``spans`` and its hash is known."""
    for index, state in enumerate(states):
        state.index, state.path = index, state.file.location
        state.compression = state.file.compression
        state.stamp = stamp(state.path)
    for (format, _), together in itertools.groupby(states, _format_and_partition):
        group = tuple(together)
        own = with_partition(source, group[0].file.path)
        if format == "parquet":
            for state, found in map_ordered(
                partial(_index_parquet, source=own, shard_bytes=shard_bytes, scratch=scratch),
                group,
                threads,
            ):
                spans.add(found)
                yield state
        elif format == "jsonl" and (source.dialogue_key or format in source.row_dialogues):
            groups = tuple(_by_size(group))
            # of several groups the files, of one the blocks are shared out
            find = partial(
                _index_jsonl,
                source=own,
                shard_bytes=shard_bytes,
                scratch=scratch,
                threads=max(1, threads // len(groups)),
            )
            found_in = map_ordered(find, groups, min(threads, len(groups)))
            for some, found in zip(groups, found_in, strict=True):
                spans.add(found)
                yield from some
        else:
            yield from _index_lines(group, spans, own, shard_bytes, scratch, threads)


def _format_and_partition(state: FileState) -> tuple[Format, Partition]:
    return state.file.format, partition_of(state.file.path)


def _by_size(states: Iterable[FileState]) -> Iterator[tuple[FileState, ...]]:
    """Gather small files, to about `BLOCK_BYTES`, so that each costs little."""
    gathered: list[FileState] = []
    size = 0
    for state in states:
        gathered.append(state)
        size += state.file.size + _LEAST_FILE_BYTES
        if size >= BLOCK_BYTES:
            yield tuple(gathered)
            gathered, size = [], 0
    if gathered:
        yield tuple(gathered)


def _index_lines(
    states: Sequence[FileState],
    spans: Spans,
    source: Source,
    shard_bytes: int,
    scratch: Path,
    threads: int,
) -> Iterator[FileState]:
    """Index files of one format, made of lines, in batches."""
    keys = replace(keys_alone(line_source(source, states[0].file.format)), chat=None)
    stride = 0
    if states[0].file.format in source.row_dialogues:
        stride = max(1, shard_bytes // _STRIDES_PER_SHARD)
    streams = (
        (part, _lines(state, keys, source, shard_bytes, scratch))
        for part, state in enumerate(states)
    )
    offset = states[0].index
    ready = 0
    for batch, found in map_ordered(
        lambda batch: (batch, _batch_spans(batch, keys, stride)), gather(streams), threads
    ):
        while ready < int(batch.parts[0]):
            yield states[ready]
            ready += 1
        states[0].limits.check_memory(states[int(batch.parts[-1])].file.path)
        spans.add(found.with_columns(pl.col("file") + offset))
    yield from states[ready:]


def _index_jsonl(
    states: tuple[FileState, ...], source: Source, shard_bytes: int, scratch: Path, threads: int
) -> pl.DataFrame:
    """Index files of JSON Lines."""
    if source.dialogue_key:
        return _index_names(states, source, shard_bytes, scratch)
    return _index_rows(states, shard_bytes, scratch, threads)


def _index_rows(
    states: tuple[FileState, ...], shard_bytes: int, scratch: Path, threads: int
) -> pl.DataFrame:
    """Index files each line of which is a dialogue of its own: none is read for that."""
    width = max(1, shard_bytes // _STRIDES_PER_SHARD)
    look = partial(block_strides, stride=width)
    found = [
        line_strides(map_stream(state, look, shard_bytes, scratch, threads), width)
        for state in states
    ]
    stride, first, last, line, lines = np.concatenate(found, axis=1)
    spans = {
        "file": np.repeat(
            [state.index for state in states], [strides.shape[1] for strides in found]
        ),
        "is_local": np.ones(len(stride), np.bool_),
        "key_high": np.zeros(len(stride), np.uint64),
        "key_low": stride.astype(np.uint64),
        "first": first,
        "last": last,
        "line": line,
        "dialogues": lines,
    }
    return pl.DataFrame(spans, schema=SPAN_SCHEMA)


def _index_names(
    states: tuple[FileState, ...], source: Source, shard_bytes: int, scratch: Path
) -> pl.DataFrame:
    """Index files of JSON Lines by what the lines name."""
    naming = _names_alone(line_source(source, "jsonl"))
    stride = max(1, shard_bytes // _STRIDES_PER_SHARD) if "jsonl" in source.row_dialogues else 0
    streams = (
        (place, _lines(state, naming, source, shard_bytes, scratch))
        for place, state in enumerate(states)
    )
    spans = [pl.DataFrame(schema=SPAN_SCHEMA)]
    found: list[_Sequences] = []
    for batch in gather(streams):
        states[0].limits.check_memory(states[int(batch.parts[-1])].file.path)
        found += _batch_sequences(batch, naming, stride)
        # asking polars of a batch costs what scanning it does
        if len(found) == _BATCHES_AT_ONCE:
            spans.append(_spans_of(_joined_sequences(found), stride))
            found.clear()
    if found:
        spans.append(_spans_of(_joined_sequences(found), stride))
    return pl.concat(spans).with_columns(pl.col("file") + states[0].index)


def _index_parquet(
    state: FileState, source: Source, shard_bytes: int, scratch: Path
) -> tuple[FileState, pl.DataFrame]:
    """Index a Parquet file by its key columns; a compressed one is unpacked first."""
    # rows lie scattered
    read_whole(state, scratch)
    state.size = parquet_rows(state.path, state.file.path)
    byte_range = ByteRange(
        state.file.path, state.path, "parquet", "none", 0, state.size, limits=state.limits
    )
    stride = 0
    if "parquet" in source.row_dialogues:
        size = max(state.file.size, ROW_BYTES * state.size, 1)
        stride = max(1, shard_bytes * state.size // (_STRIDES_PER_SHARD * size))
    naming = _names_alone(source)
    names = [f"key{index}" for index in range(len(naming.columns))]
    new = {column.name: name for column, name in zip(naming.columns, names, strict=True)}
    found = Spans()
    for _, rows, _ in read_parquet(byte_range, stored_source(naming).columns):
        placed = rows.with_columns(file=pl.lit(""), byte_offset=pl.lit(None, pl.Int64))
        frame = mapped_rows(placed, naming, "parquet")[0].rename(new)
        row = frame["line"].to_numpy() - 1
        file, one = np.full(row.size, state.index), np.ones(row.size, np.int64)
        keys = [frame[name] for name in names]
        found.add(_spans_of(_Sequences(file, row, row, row + 1, one, keys), stride))
    return state, found.joined()


def key_columns(source: Source) -> tuple[Column, ...]:
    """Return the columns of a source's dialogue key, in its order."""
    columns = {column.name: column for column in source.columns}
    return tuple(columns[name] for name in source.dialogue_key)


def _names_alone(source: Source) -> Source:
    """Return a source that reads what names dialogues."""
    return replace(source, columns=key_columns(source), rows="", chat=None)


def keys_alone(source: Source) -> Source:
    """Return a source that reads no more than is needed to tell dialogues apart."""
    # an array is a row too, one without a key
    whole = tuple(column for column in source.columns if column.name == source.array_column)
    return replace(source, columns=(*key_columns(source), *whole), rows="")


def _lines(
    state: FileState, keys: Source, source: Source, shard_bytes: int, scratch: Path
) -> Iterator[Lines]:
    """Stream a file's lines, unpacking it to the scratch folder when it is large."""
    lines = _found_lines(state, keys, source, shard_bytes, scratch)
    return chat_lines(lines, source, state.file.path, state.file.format)


def _found_lines(
    state: FileState, keys: Source, source: Source, shard_bytes: int, scratch: Path
) -> Iterator[Lines]:
    """Stream a file's lines as they are in it."""
    if state.file.format == "json":
        blocks = file_blocks(state, shard_bytes, scratch)
        return read_document(blocks, state.file.path, holds_rows=array_holds_rows(source))
    lines = file_line_blocks(state, shard_bytes, scratch)
    if state.file.format == "csv":
        return read_records(lines, state.file.path, stored_source(keys).columns)
    return read_lines(lines)


def _batch_spans(batch: Batch, source: Source, stride: int) -> pl.DataFrame:
    """Find the dialogues of a batch."""
    sequences = _batch_sequences(batch, source, stride)
    return _spans_of(sequences[0], stride) if sequences else pl.DataFrame(schema=SPAN_SCHEMA)


def _batch_sequences(batch: Batch, source: Source, stride: int) -> list["_Sequences"]:
    """Find the sequences of rows of a batch, if it has a row."""
    if batch.alone:
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
) -> "_Sequences":
    """Find sequences of rows; rows that are dialogues are kept together by ``stride`` bytes."""
    # neighbouring sequences may be of one dialogue: only where its name changes is it read
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
    sequences = _Sequences(
        file=parts[first],
        first=offsets[first],
        last=offsets[last],
        line=lines[first],
        rows=last - first + 1,
        keys=keys,
    )
    return sequences if good.all() else sequences.where(good)


@dataclass(frozen=True, slots=True)
class _Sequences:
    """Rows that follow each other with one key: n sequences as int64 (n,), columns of keys."""

    file: Int64Array
    first: Int64Array
    last: Int64Array
    line: Int64Array
    rows: Int64Array
    keys: Sequence[pl.Series]

    def where(self, chosen: Mask) -> "_Sequences":
        """Return some of the sequences."""
        return _Sequences(
            self.file[chosen],
            self.first[chosen],
            self.last[chosen],
            self.line[chosen],
            self.rows[chosen],
            [column.filter(pl.Series(chosen)) for column in self.keys],
        )


def _joined_sequences(found: Sequence[_Sequences]) -> _Sequences:
    """Put sequences of one key's columns one after another."""
    columns = zip(*(sequences.keys for sequences in found), strict=True)
    return _Sequences(
        file=np.concatenate([sequences.file for sequences in found]),
        first=np.concatenate([sequences.first for sequences in found]),
        last=np.concatenate([sequences.last for sequences in found]),
        line=np.concatenate([sequences.line for sequences in found]),
        rows=np.concatenate([sequences.rows for sequences in found]),
        keys=[pl.concat(column) for column in columns],
    )


def changes(found: Places) -> Mask:
    """Mark the first row, and those whose value is not the one before, or is written otherwise.

    A text that is as the one before has its view, but at the beginning of a block.
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


def _spans_of(sequences: _Sequences, stride: int) -> pl.DataFrame:
    """Make spans of sequences of rows.

    Rows without a key are those of the file's dialogue; or, with a ``stride`` (bytes, or rows of
    Parquet), dialogues of their own, which are kept together by the stride that they start in.
    """
    is_local = np.ones(sequences.first.size, np.bool_)
    if sequences.keys:
        is_local = sequences.keys[0].is_null().to_numpy()
    # sequences of one dialogue may come by turns with others': `Spans` joins them
    keys = _key_hashes(sequences.keys, sequences.first.size)
    keys[is_local] = 0
    if stride:
        keys[is_local, 1] = sequences.first[is_local] // stride
    else:
        keys[is_local] = FILE_KEY
    return pl.DataFrame(
        {
            "file": sequences.file,
            "is_local": is_local,
            "key_high": keys[:, 0],
            "key_low": keys[:, 1],
            "first": sequences.first,
            "last": sequences.last,
            "line": sequences.line,
            "dialogues": sequences.rows,
        },
        schema=SPAN_SCHEMA,
    )


def _key_hashes(keys: Sequence[pl.Series], n: int) -> npt.NDArray[np.uint64]:
    """Hash keys of several columns, uint64 (n, 2): each column adds to the hash of those before."""
    hashes = np.zeros((n, 2), np.uint64)
    for column in keys:
        texts = column.cast(pl.String())
        words = text_hash128(texts.fill_null("") if texts.null_count() else texts, threads=1)
        words[texts.is_null().to_numpy()] = _NULL_HASH
        hashes = hashes * _ODD + words
    return hashes
