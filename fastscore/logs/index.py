"""Where each dialogue of each file begins and ends, in one pass over the input."""

import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl
from fastscore_kernels.jsonl import changes

from fastscore.content_hash import ContentHash
from fastscore.errors import InputError, RunError
from fastscore.logs.batches import Batch, gather, map_ordered
from fastscore.logs.columns import Places, convert, places, wanted_keys
from fastscore.logs.inputs import Compression, InputFile
from fastscore.logs.parquet import parquet_rows, read_parquet
from fastscore.logs.pieces import Damage, Piece
from fastscore.logs.streams import DamageError, Lines, read_blocks, read_lines
from fastscore.suites.base import Column, Source

DIGEST_BYTES = 16
FILE_KEY = b""
"""Stands for the dialogue that is its file."""


@dataclass(slots=True)
class Span:
    """First and last row start (byte, or Parquet row) of a dialogue, and its first line."""

    first: int
    last: int
    line: int


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
        The dialogues, by the hash of their key.
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

    def observe(self, block: bytes) -> None:
        """Count and hash bytes as they are read from disk."""
        self.read += len(block)
        self.digest.update(block)

    def widen(self, key: bytes, first: int, last: int, line: int) -> None:
        """Add rows to a dialogue, later ones than it has."""
        span = self.spans.get(key)
        if span is None:
            self.spans[key] = Span(first, last, line)
        else:
            span.last = last


def index_files(
    states: Sequence[FileState], source: Source, shard_bytes: int, scratch: Path, threads: int
) -> Iterator[FileState]:
    """Yield each file, in order, when its dialogues and its hash are known."""
    for index, state in enumerate(states):
        state.index, state.path, state.compression = index, state.file.path, state.file.compression
    for format, group in itertools.groupby(states, lambda state: state.file.format):
        if format == "parquet":
            yield from map_ordered(
                lambda state: _index_parquet(state, source, scratch), group, threads
            )
        else:
            yield from _index_jsonl(tuple(group), source, shard_bytes, scratch, threads)


def _index_jsonl(
    states: Sequence[FileState], source: Source, shard_bytes: int, scratch: Path, threads: int
) -> Iterator[FileState]:
    """Index files of JSON Lines in batches."""
    columns = key_columns(source)
    keys = wanted_keys(Source(columns=columns))
    streams = ((part, _lines(state, shard_bytes, scratch)) for part, state in enumerate(states))
    ready = 0
    for batch, found in map_ordered(
        lambda batch: (batch, _spans(batch, columns, keys)), gather(streams), threads
    ):
        while ready < int(batch.parts[0]):
            yield states[ready]
            ready += 1
        for part, key, first, last, line in found:
            states[part].widen(key, first, last, line)
    yield from states[ready:]


def _index_parquet(state: FileState, source: Source, scratch: Path) -> FileState:
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
    columns = key_columns(source)
    names = [f"key{index}" for index in range(len(columns))]
    for _, rows, _ in read_parquet(piece, columns):
        frame = rows.rename({c.name: name for c, name in zip(columns, names, strict=True)})
        frame = frame.with_columns(
            part=pl.lit(0), first=pl.col("line") - 1, last=pl.col("line") - 1
        )
        for _, key, first, last, line in spans_of(frame, names):
            state.widen(key, first, last, line)
    return state


def key_columns(source: Source) -> tuple[Column, ...]:
    """Return the columns of a source's dialogue key, in its order."""
    columns = {column.name: column for column in source.columns}
    return tuple(columns[name] for name in source.dialogue_key)


def _lines(state: FileState, shard_bytes: int, scratch: Path) -> Iterator[Lines]:
    """Stream a file's lines, unpacking it to the scratch folder when it is large."""
    blocks = read_blocks(state.path, state.compression, observe=state.observe)
    if state.compression == "none":
        blocks = _counted(blocks, state)
    else:
        blocks = _spilled(blocks, state, shard_bytes, scratch)
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


def _spans(
    batch: Batch, columns: Sequence[Column], keys: tuple[bytes, ...]
) -> list[tuple[int, bytes, int, int, int]]:
    """Find the dialogues of a batch: (part, key, first row start, last row start, first line)."""
    if batch.segments[-1].long_line:
        return []
    runs = batch.runs(keys)
    if runs.start.size == 0:
        return []
    parts, offsets = batch.places(runs.start)
    _, last_offsets = batch.places(runs.last)
    found = [places(runs, keys, column) for column in columns]
    # neighbouring runs may be of one dialogue: only where its name changes is it read
    begins = np.concatenate(([True], parts[1:] != parts[:-1]))
    for place in found:
        begins |= changes(place.data, place.tags, place.starts, place.ends)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], parts.size) - 1
    good = np.ones(first.size, np.bool_)
    named: dict[str, pl.Series] = {}
    for index, (place, column) in enumerate(zip(found, columns, strict=True)):
        converted = convert(
            Places(place.data, place.tags[first], place.starts[first], place.ends[first]), column
        )
        named[f"key{index}"] = converted.values
        good &= converted.faults == 0
    spans = pl.DataFrame(
        {
            "part": parts[first],
            "first": offsets[first],
            "last": last_offsets[last],
            "line": runs.line[first],
            **named,
        }
    )
    return spans_of(spans.filter(pl.Series(good)), list(named))


def spans_of(
    runs: pl.DataFrame, key_names: Sequence[str]
) -> list[tuple[int, bytes, int, int, int]]:
    """Group runs of rows (``part``, ``first``, ``last``, ``line``, keys) by dialogue, in order."""
    if key_names:
        nameless = pl.col(key_names[0]).is_null()
        runs = runs.with_columns(
            pl.when(~nameless).then(pl.col(name)).alias(name) for name in key_names
        )
    grouped = runs.group_by("part", *key_names, maintain_order=True).agg(
        pl.col("first").first(), pl.col("last").last(), pl.col("line").first()
    )
    return [
        (part, _key_hash(key), first, last, line)
        for part, *key, first, last, line in grouped.rows()
    ]


def _key_hash(key: Sequence[object]) -> bytes:
    """Hash a dialogue's key; no two keys are written alike."""
    if not key or key[0] is None:
        return FILE_KEY
    return hashlib.blake2b(repr(key).encode(), digest_size=DIGEST_BYTES).digest()
