"""Where each dialogue of each file begins and ends, in one pass over the input."""

import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl
from fastscore_kernels.jsonl import JsonlRuns, changes

from fastscore.content_hash import ContentHash
from fastscore.errors import InputError, RunError
from fastscore.logs.batches import Batch, gather, map_ordered
from fastscore.logs.columns import array_key, convert, places, wanted_keys
from fastscore.logs.csv_records import csv_header, read_records
from fastscore.logs.inputs import Compression, InputFile
from fastscore.logs.json_documents import read_document
from fastscore.logs.line_scan import LineScan
from fastscore.logs.parquet import parquet_rows, read_parquet
from fastscore.logs.pieces import Damage, Piece
from fastscore.logs.seals import stamp
from fastscore.logs.streams import DamageError, Lines, read_blocks, read_lines
from fastscore.suites.base import Column, Source

DIGEST_BYTES = 16
_CELLS_PER_SHARD = 256
FILE_KEY = b""
"""Stands for the dialogue that is its file."""

Runs = list[tuple[int, bytes, int, int, int, int]]
"""Runs of rows of one dialogue: part, key, first and last row start, first line, dialogues."""


@dataclass(slots=True)
class Span:
    """Rows of a dialogue, or of dialogues of a row each that stand near each other.

    Parameters
    ----------
    first, last
        The first and the last row's start (byte, or Parquet row).
    line
        The first row's line.
    dialogues
        How many dialogues they are.
    """

    first: int
    last: int
    line: int
    dialogues: int


@dataclass(slots=True)
class FileState:
    """What is known of an input file so far.

    Parameters
    ----------
    file
        The input.
    index
        Its place among the inputs.
    path, compression
        What is read for it: the input, or what it was unpacked to.
    size
        Its bytes, unpacked, or its rows.
    read
        Its bytes as they were read from disk.
    digest
        Their hash.
    damage
        Why it could not be unpacked to its end, None otherwise.
    unpacked
        Whether it was unpacked to the scratch folder.
    spans
        The dialogues, by the hash of their key; see `is_local` for other keys.
    header
        Of a CSV file, once it was asked for.
    stamp
        Of the input before it was read; see `seals.stamp`.
    """

    file: InputFile
    index: int = 0
    path: str = ""
    compression: Compression = "none"
    size: int = 0
    read: int = 0
    digest: ContentHash = field(default_factory=ContentHash)
    damage: Damage | None = None
    unpacked: bool = False
    spans: dict[bytes, Span] = field(default_factory=dict)
    header: bytes = b""
    stamp: str = ""

    def observe(self, block: bytes) -> None:
        """Count and hash bytes as they are read from disk."""
        self.read += len(block)
        self.digest.update(block)

    def widen(self, key: bytes, first: int, last: int, line: int, dialogues: int) -> None:
        """Add rows to a dialogue, later ones than it has."""
        span = self.spans.get(key)
        if span is None:
            self.spans[key] = Span(first, last, line, dialogues)
        else:
            span.last = last
            if key != FILE_KEY and is_local(key):
                span.dialogues += dialogues

    def header_before(self, start: int) -> bytes:
        """Return what governs the bytes from ``start`` on but stands before them."""
        if self.file.format != "csv" or start == 0:
            return b""
        self.header = self.header or csv_header(self.path)
        return self.header


def is_local(key: bytes) -> bool:
    """Whether a key names no dialogue outside of its file: the file itself, or rows of their own.

    Rows that are dialogues of their own are kept together by their place in the file, so that
    their number costs no memory.
    """
    return len(key) != DIGEST_BYTES


def index_files(
    states: Sequence[FileState], source: Source, shard_bytes: int, scratch: Path, threads: int
) -> Iterator[FileState]:
    """Yield each file, in order, when its dialogues and its hash are known."""
    for index, state in enumerate(states):
        state.index, state.path, state.compression = index, state.file.path, state.file.compression
        state.stamp = stamp(state.path)
    for format, group in itertools.groupby(states, lambda state: state.file.format):
        if format == "parquet":
            yield from map_ordered(
                lambda state: _index_parquet(state, source, shard_bytes, scratch), group, threads
            )
        else:
            yield from _index_lines(tuple(group), source, shard_bytes, scratch, threads)


def _index_lines(
    states: Sequence[FileState], source: Source, shard_bytes: int, scratch: Path, threads: int
) -> Iterator[FileState]:
    """Index files of one format, made of lines, in batches."""
    keys = _keys_alone(source)
    cell = 0
    if states[0].file.format in source.row_dialogues:
        cell = max(1, shard_bytes // _CELLS_PER_SHARD)
    streams = (
        (part, _lines(state, keys, shard_bytes, scratch)) for part, state in enumerate(states)
    )
    ready = 0
    for batch, found in map_ordered(
        lambda batch: (batch, _spans(batch, keys, cell)), gather(streams), threads
    ):
        while ready < int(batch.parts[0]):
            yield states[ready]
            ready += 1
        for part, key, first, last, line, dialogues in found:
            states[part].widen(key, first, last, line, dialogues)
    yield from states[ready:]


def _index_parquet(state: FileState, source: Source, shard_bytes: int, scratch: Path) -> FileState:
    """Index a Parquet file by its key columns; a compressed one is unpacked first."""
    blocks = read_blocks(state.path, state.compression, observe=state.observe)
    if state.compression == "none":
        for _ in blocks:
            pass
    else:
        for _ in _spilled(blocks, state, -1, scratch):
            pass
        if state.damage is not None:
            raise InputError(f"The file {state.file.path!r} cannot be read: {state.damage.found}.")
    state.size = parquet_rows(state.path, state.file.path)
    piece = Piece(state.file.path, state.path, "parquet", "none", 0, state.size)
    cell = 0
    if "parquet" in source.row_dialogues:
        cell = max(1, shard_bytes * state.size // (_CELLS_PER_SHARD * max(state.file.size, 1)))
    columns = key_columns(source)
    names = [f"key{index}" for index in range(len(columns))]
    for _, rows, _ in read_parquet(piece, columns):
        frame = rows.rename({c.name: name for c, name in zip(columns, names, strict=True)})
        frame = frame.with_columns(
            part=pl.lit(0), first=pl.col("line") - 1, last=pl.col("line") - 1
        )
        frame = frame.with_columns(rows=pl.lit(1))
        for _, key, first, last, line, dialogues in spans_of(frame, names, cell):
            state.widen(key, first, last, line, dialogues)
    return state


def key_columns(source: Source) -> tuple[Column, ...]:
    """Return the columns of a source's dialogue key, in its order."""
    columns = {column.name: column for column in source.columns}
    return tuple(columns[name] for name in source.dialogue_key)


def _keys_alone(source: Source) -> Source:
    """Return a source that reads no more than is needed to tell dialogues apart."""
    columns = key_columns(source)
    # an array is a row too, one without a key
    whole = tuple(column for column in source.columns if column.name == source.array_column)
    return replace(source, columns=(*columns, *whole))


def _lines(state: FileState, keys: Source, shard_bytes: int, scratch: Path) -> Iterator[Lines]:
    """Stream a file's lines, unpacking it to the scratch folder when it is large."""
    blocks = read_blocks(state.path, state.compression, observe=state.observe)
    if state.compression == "none":
        blocks = _counted(blocks, state)
    else:
        blocks = _spilled(blocks, state, shard_bytes, scratch)
    if state.file.format == "csv":
        return read_records(blocks, state.file.path, keys.columns)
    if state.file.format == "json":
        whole_array = keys.array_column is not None
        return read_document(blocks, state.file.path, whole_array=whole_array)
    return read_lines(blocks)


def _counted(blocks: Iterator[bytes], state: FileState) -> Iterator[bytes]:
    """Count a plain file's bytes."""
    for block in blocks:
        state.size += len(block)
        yield block


def _spilled(
    blocks: Iterator[bytes], state: FileState, shard_bytes: int, scratch: Path
) -> Iterator[bytes]:
    """Hand unpacked blocks on, and write them to the scratch folder once they exceed a shard."""
    kept: list[bytes] = []
    out: IO[bytes] | None = None
    temporary = scratch / f"{state.index:06d}.{os.getpid()}.tmp"
    try:
        try:
            for block in blocks:
                state.size += len(block)
                kept.append(block)
                if state.size > shard_bytes:
                    if out is None:
                        scratch.mkdir(parents=True, exist_ok=True)
                        out = temporary.open("wb")
                    out.writelines(kept)
                    kept.clear()
                yield block
        except DamageError as error:
            state.damage = error.damage
        if out is not None:
            out.close()
            path = scratch / f"{state.digest.hexdigest()}.{state.file.format}"
            os.replace(temporary, path)
            state.path, state.compression, state.unpacked = str(path), "none", True
    except OSError as error:
        raise RunError(
            f"{state.file.path!r} cannot be unpacked to {str(scratch)!r}: {error.strerror}.",
            "Free some space or name another output folder.",
        ) from error
    finally:
        if out is not None:
            out.close()
            temporary.unlink(missing_ok=True)


def _spans(batch: Batch, source: Source, cell: int) -> Runs:
    """Find the dialogues of a batch; rows that are some are kept together by ``cell`` bytes."""
    if batch.alone:
        return []
    columns, keys = key_columns(source), wanted_keys(source.columns)
    runs: LineScan | JsonlRuns
    if cell or source.array_column is not None or batch.in_records:
        runs = batch.scan(keys, array_key(source))
        last_starts = runs.start
    else:
        runs = batch.runs(keys)
        last_starts = runs.last
    if runs.start.size == 0:
        return []
    parts, offsets = batch.places(runs.start)
    _, last_offsets = batch.places(last_starts)
    found = [places(runs, keys, column, names_dialogue=True) for column in columns]
    # neighbouring runs may be of one dialogue: only where its name changes is it read
    begins = np.concatenate(([True], parts[1:] != parts[:-1]))
    if cell:
        begins[1:] |= offsets[1:] // cell != offsets[:-1] // cell
    for place in found:
        begins |= changes(place.data, place.tags, place.starts, place.ends)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], parts.size) - 1
    good = np.ones(first.size, np.bool_)
    named: dict[str, pl.Series] = {}
    for index, (place, column) in enumerate(zip(found, columns, strict=True)):
        at_first = replace(
            place, tags=place.tags[first], starts=place.starts[first], ends=place.ends[first]
        )
        converted = convert(at_first, column)
        named[f"key{index}"] = converted.values
        good &= converted.faults == 0
    spans = pl.DataFrame(
        {
            "part": parts[first],
            "first": offsets[first],
            "last": last_offsets[last],
            "line": runs.line[first],
            "rows": last - first + 1,
            **named,
        }
    )
    return spans_of(spans.filter(pl.Series(good)), list(named), cell)


def spans_of(runs: pl.DataFrame, key_names: Sequence[str], cell: int) -> Runs:
    """Group runs of rows (``part``, ``first``, ``last``, ``line``, ``rows``, keys) by dialogue.

    Rows without a key are those of the file's dialogue; or, with a ``cell`` (bytes, or rows of
    Parquet), dialogues of their own, which are kept together by the cell that they start in.
    """
    nameless = pl.lit(True)
    if key_names:
        nameless = pl.col(key_names[0]).is_null()
        runs = runs.with_columns(
            pl.when(~nameless).then(pl.col(name)).alias(name) for name in key_names
        )
    place = pl.when(nameless).then(pl.col("first") // cell) if cell else pl.lit(None, pl.Int64)
    grouped = (
        runs.with_columns(place.alias("place"))
        .group_by("part", "place", *key_names, maintain_order=True)
        .agg(
            pl.col("first").first(),
            pl.col("last").last(),
            pl.col("line").first(),
            pl.col("rows").sum(),
        )
    )
    return [
        (part, _key_hash(key), first, last, line, 1)
        if place is None
        else (part, place.to_bytes(8, "big"), first, last, line, rows)
        for part, place, *key, first, last, line, rows in grouped.rows()
    ]


def _key_hash(key: Sequence[object]) -> bytes:
    """Hash a dialogue's key; no two keys are written alike."""
    if not key or key[0] is None:
        return FILE_KEY
    return hashlib.blake2b(repr(key).encode(), digest_size=DIGEST_BYTES).digest()
