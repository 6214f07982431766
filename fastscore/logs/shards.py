"""Planning: which whole dialogues are read together, and what their content is.

One pass over all input finds where each dialogue begins and ends. Memory is bounded by a few
blocks of input and by the number of dialogues (a 128-bit hash and a place each). The plan depends
on the input alone, not on threads or timing.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fastscore.content_hash import ContentHash
from fastscore.errors import InputError
from fastscore.logs.batches import map_ordered
from fastscore.logs.index import DIGEST_BYTES, FileState, Span, index_files, is_local
from fastscore.logs.inputs import InputFile
from fastscore.logs.pieces import Piece, Shard
from fastscore.logs.seals import changed, stamp
from fastscore.logs.streams import read_blocks
from fastscore.suites.base import Source

__all__ = ["SHARD_BYTES", "InputContent", "Piece", "Plan", "Shard", "plan_shards"]

SHARD_BYTES = 32 << 20


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
        How many dialogues the shards hold.
    """

    shards: tuple[Shard, ...]
    inputs: tuple[InputContent, ...]
    n_dialogues: int


def plan_shards(
    files: Sequence[InputFile],
    source: Source,
    *,
    shard_bytes: int = SHARD_BYTES,
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
        The size that a shard does not exceed unless one dialogue does.
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
    states = [FileState(file) for file in files]
    total = sum(file.size for file in files)
    done = 0
    known: dict[bytes, tuple[int, int]] = {}
    runs: list[_Run] = []
    n_dialogues = 0
    for state in index_files(states, source, shard_bytes, scratch, threads):
        for key, span in state.spans.items():
            if not (source.key_within_file or is_local(key)):
                _check_one_file(key, span, state, states, known)
        n_dialogues += sum(span.dialogues for span in state.spans.values())
        runs.extend(_runs(state))
        state.spans.clear()
        done += state.file.size
        if progress is not None:
            progress(done, total)
    packed = _pack(runs, shard_bytes)
    shards = map_ordered(lambda item: _shard(*item, states), enumerate(packed), threads)
    inputs = tuple(
        InputContent(state.file.path, state.read, state.digest.hexdigest()) for state in states
    )
    return Plan(tuple(shards), inputs, n_dialogues)


@dataclass(frozen=True, slots=True)
class _Run:
    """Dialogues of one file that cannot be parted."""

    file: int
    start: int
    stop: int
    line: int
    n_bytes: int


def _check_one_file(
    key: bytes,
    span: Span,
    state: FileState,
    states: Sequence[FileState],
    known: dict[bytes, tuple[int, int]],
) -> None:
    """Refuse a dialogue that another file holds rows of."""
    earlier = known.setdefault(key, (state.index, span.line))
    if earlier[0] != state.index:
        raise InputError(
            f"One dialogue stands in two files: {states[earlier[0]].file.path}:{earlier[1]} and "
            f"{state.file.path}:{span.line}.",
            "Put all rows of a dialogue into one file, or give the dialogues different names.",
        )


def _runs(state: FileState) -> Iterator[_Run]:
    """Part a file where no dialogue is open; every byte belongs to one run."""
    if state.compression != "none" or state.file.format == "json":
        # neither packed bytes nor an array can be entered in the middle
        yield _Run(state.index, 0, state.size, 1, state.size)
        return
    weight = state.file.size / max(state.size, 1) if state.file.format == "parquet" else 1.0
    cuts = [(0, 1)]
    open_until = -1
    for span in sorted(state.spans.values(), key=lambda span: span.first):
        if span.first > open_until and open_until >= 0:
            cuts.append((span.first, span.line))
        open_until = max(open_until, span.last)
    stops = [start for start, _ in cuts[1:]] + [state.size]
    for (start, line), stop in zip(cuts, stops, strict=True):
        yield _Run(state.index, start, stop, line, round((stop - start) * weight))


def _pack(runs: Sequence[_Run], shard_bytes: int) -> list[list[_Run]]:
    """Pack runs in order, as many as fit; neighbours in one file become one."""
    packed: list[list[_Run]] = []
    size = 0
    for run in runs:
        if not packed or size + run.n_bytes > shard_bytes:
            packed.append([])
            size = 0
        packed[-1].append(run)
        size += run.n_bytes
    return [_joined(shard) for shard in packed]


def _joined(runs: Sequence[_Run]) -> list[_Run]:
    """Join the runs of each file, which stand side by side."""
    joined = []
    for file, group in itertools.groupby(runs, lambda run: run.file):
        members = tuple(group)
        first, last = members[0], members[-1]
        n_bytes = sum(run.n_bytes for run in members)
        joined.append(_Run(file, first.start, last.stop, first.line, n_bytes))
    return joined


def _shard(index: int, runs: Sequence[_Run], states: Sequence[FileState]) -> Shard:
    """Make a shard, hashing what it holds."""
    pieces: list[Piece] = []
    fingerprint = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for run in runs:
        state = states[run.file]
        whole = run.start == 0 and run.stop == state.size
        piece = Piece(
            state.file.path,
            state.path,
            state.file.format,
            state.compression,
            run.start,
            run.stop,
            run.line,
            state.damage if run.stop == state.size and state.unpacked else None,
            state.header_before(run.start),
        )
        content = state.digest.digest() if whole else _content(piece, state)
        pieces.append(replace(piece, seal=_seal(state, content, whole)))
        place = repr(
            (piece.file, piece.start, piece.stop, piece.first_line, piece.damage, piece.header)
        )
        fingerprint.update(hashlib.blake2b(place.encode("utf-8", "surrogateescape")).digest())
        fingerprint.update(content)
    size = sum(run.n_bytes for run in runs)
    return Shard(index, tuple(pieces), size, fingerprint.hexdigest())


def _seal(state: FileState, content: bytes, whole: bool) -> str:
    """Return a piece's seal; a file that is cut must not have changed since it was indexed."""
    if state.unpacked:
        return ""
    if not whole and stamp(state.path) != state.stamp:
        raise changed(state.file.path)
    return state.stamp if state.file.format == "parquet" else content.hex()


def _content(piece: Piece, state: FileState) -> bytes:
    """Hash a part of a file; of a Parquet file, whose rows lie scattered, all of it."""
    if piece.format == "parquet":
        return state.digest.digest()
    digest = ContentHash()
    for block in read_blocks(piece.path, piece.compression, piece.start, piece.stop):
        digest.update(block)
    return digest.digest()
