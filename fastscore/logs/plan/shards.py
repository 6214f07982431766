"""Planning: which whole dialogues are read together, and what their content is.

One pass over all input finds where each dialogue begins and ends. Memory is bounded by a few
blocks of input and by the number of dialogues (a 128-bit hash and a place each). The plan depends
on the input alone, not on threads or timing.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.content_hash import hash_part
from fastscore.errors import InputError
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.integrity.file_state import FileState
from fastscore.logs.integrity.fingerprints import changed, stamp
from fastscore.logs.plan.byte_ranges import ByteRange, Shard
from fastscore.logs.plan.index import index_files
from fastscore.logs.plan.spans import Spans
from fastscore.logs.read.batches import map_ordered
from fastscore.suites.base import Source

Longs = npt.NDArray[np.int64]

__all__ = ["ByteRange", "InputContent", "Plan", "Shard", "plan_shards"]

LEFT_PARTS = 2
"""A shard is at most this part of what is left, as long as it is not much smaller than"""
SHARD_PARTS = 2
"""this part of a whole one: each shard costs something by itself."""
DIGEST_BYTES = 16


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


def plan_shards(
    files: Sequence[InputFile],
    source: Source,
    *,
    shard_bytes: int | None = None,
    scratch: Path,
    progress: Callable[[int, int], object] | None = None,
    threads: int = 1,
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
        stay until the shards are read.
    progress
        Called with the bytes that were read and the bytes there are.
    threads
        How many threads read at once; the plan does not depend on it.

    Raises
    ------
    InputError
        When a file cannot be read or changes meanwhile, or rows of one dialogue stand in two files
        (unless `Source.key_within_file`).
    """
    shard_bytes = shard_bytes or source.shard_bytes
    states = [FileState(file) for file in files]
    found = Spans()
    total = sum(file.size for file in files)
    done = 0
    for state in index_files(states, found, source, shard_bytes, scratch, threads):
        done += state.file.size
        if progress is not None:
            progress(done, total)
    spans = found.joined()
    if not source.key_within_file:
        _check_one_file(spans, states)
    packed = _pack(_stretches(spans, states), shard_bytes)
    shards = map_ordered(lambda item: _shard(*item, states), enumerate(packed), threads)
    inputs = tuple(
        InputContent(state.file.path, state.read, state.digest.hexdigest()) for state in states
    )
    return Plan(tuple(shards), inputs, int(spans["dialogues"].sum()))


@dataclass(frozen=True, slots=True)
class _Stretches:
    """Parts of files in order, each of whole dialogues that cannot be parted; int64 arrays."""

    file: Longs
    start: Longs
    stop: Longs
    line: Longs
    n_bytes: Longs


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Neighbouring stretches of one file."""

    file: int
    start: int
    stop: int
    line: int
    n_bytes: int


def _check_one_file(spans: pl.DataFrame, states: Sequence[FileState]) -> None:
    """Refuse a dialogue that two files hold rows of."""
    if len(states) < 2:
        return
    named = spans.filter(~pl.col("is_local"))
    again = named.filter(~pl.struct("key_high", "key_low").is_first_distinct()).head(1)
    if again.is_empty():
        return
    two = pl.concat([named.join(again, on=("key_high", "key_low"), how="semi").head(1), again])
    places = [
        f"{states[file].file.path}:{line}" for file, line in two.select("file", "line").rows()
    ]
    raise InputError(
        f"One dialogue stands in two files: {places[0]} and {places[1]}.",
        "Put all rows of a dialogue into one file, or give the dialogues different names.",
    )


def _stretches(spans: pl.DataFrame, states: Sequence[FileState]) -> _Stretches:
    """Part files where no dialogue is open; every byte belongs to one stretch."""
    # neither packed bytes nor an array can be entered in the middle
    entered = [state.compression == "none" and state.file.format != "json" for state in states]
    weights = [
        state.file.size / max(state.size, 1) if state.file.format == "parquet" else 1.0
        for state in states
    ]
    sizes = np.array([state.size for state in states], np.int64)
    begins = np.cumsum(sizes) - sizes
    # places as if the files stood one after another: what is open in one is closed in the next
    of_span = spans["file"].to_numpy()
    first = begins[of_span] + spans["first"].to_numpy()
    open_until = np.maximum.accumulate(begins[of_span] + spans["last"].to_numpy())
    cuts = 1 + np.flatnonzero(
        (first[1:] > open_until[:-1])
        & (of_span[1:] == of_span[:-1])
        & np.array(entered, np.bool_)[of_span[1:]]
    )
    start = np.concatenate((begins, first[cuts]))
    order = np.argsort(start, kind="stable")
    start = start[order]
    stop = np.append(start, sizes.sum())[1:]
    file = np.concatenate((np.arange(sizes.size), of_span[cuts]))[order]
    lines = np.concatenate((np.ones(sizes.size, np.int64), spans["line"].to_numpy()[cuts]))
    n_bytes = np.rint((stop - start) * np.array(weights)[file]).astype(np.int64)
    return _Stretches(file, start - begins[file], stop - begins[file], lines[order], n_bytes)


def _pack(stretches: _Stretches, shard_bytes: int) -> list[list[_Stretch]]:
    """Pack stretches in order, as many as fit; neighbours in one file become one.

    The last shards are smaller, so that no worker is left alone with a large one.
    """
    ends = np.cumsum(stretches.n_bytes)
    packed = []
    first, smallest = 0, max(1, shard_bytes // SHARD_PARTS)
    while first < ends.size:
        packed_bytes = int(ends[first - 1]) if first else 0
        left = int(ends[-1]) - packed_bytes
        even = -(-left // max(1, round(left / smallest)))
        room = min(shard_bytes, max(left // LEFT_PARTS, even))
        after = int(np.searchsorted(ends, packed_bytes + room, side="right"))
        after = max(after, first + 1)
        packed.append(_joined(stretches, first, after))
        first = after
    return packed


def _joined(stretches: _Stretches, first: int, after: int) -> list[_Stretch]:
    """Join the neighbouring stretches of each file from ``first`` to ``after``."""
    file = stretches.file[first:after]
    begins = first + np.flatnonzero(np.diff(file, prepend=-1))
    lasts = np.append(begins[1:], after) - 1
    n_bytes = np.add.reduceat(stretches.n_bytes[:after], begins)
    columns = (
        stretches.file[begins],
        stretches.start[begins],
        stretches.stop[lasts],
        stretches.line[begins],
        n_bytes,
    )
    return [_Stretch(*row) for row in np.stack(columns, axis=1).tolist()]


def _shard(index: int, stretches: Sequence[_Stretch], states: Sequence[FileState]) -> Shard:
    """Make a shard, hashing what it holds."""
    byte_ranges: list[ByteRange] = []
    fingerprint = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for stretch in stretches:
        state = states[stretch.file]
        whole = stretch.start == 0 and stretch.stop == state.size
        byte_range = ByteRange(
            state.file.path,
            state.path,
            state.file.format,
            state.compression,
            stretch.start,
            stretch.stop,
            stretch.line,
            state.damage if stretch.stop == state.size and state.unpacked else None,
            state.header_before(stretch.start),
        )
        content = state.hash_blocks.digest() if whole else _content(byte_range, state)
        byte_ranges.append(replace(byte_range, fingerprint=_fingerprint(state, content, whole)))
        place = repr(
            (
                byte_range.file,
                byte_range.start,
                byte_range.stop,
                byte_range.first_line,
                byte_range.damage,
                byte_range.header,
            )
        )
        fingerprint.update(hashlib.blake2b(place.encode("utf-8", "surrogateescape")).digest())
        fingerprint.update(content)
    size = sum(stretch.n_bytes for stretch in stretches)
    return Shard(index, tuple(byte_ranges), size, fingerprint.hexdigest())


def _fingerprint(state: FileState, content: bytes, whole: bool) -> str:
    """Return a byte range's fingerprint; a file that is cut must be as it was indexed."""
    if state.unpacked:
        return ""
    if not whole and stamp(state.path) != state.stamp:
        raise changed(state.file.path)
    return state.stamp if state.file.format == "parquet" else content.hex()


def _content(byte_range: ByteRange, state: FileState) -> bytes:
    """Hash a part of a file; of a Parquet file, whose rows lie scattered, all of it."""
    if byte_range.format == "parquet":
        return state.hash_blocks.digest()
    blocks = () if state.unpacked else state.hash_blocks.blocks
    try:
        return hash_part(Path(byte_range.path), byte_range.start, byte_range.stop, blocks)
    except OSError as error:
        raise InputError(
            f"The file {byte_range.path!r} cannot be read: {error.strerror}."
        ) from error
