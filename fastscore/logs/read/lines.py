"""Bytes of logs in bounded blocks, and whole lines, cut at line ends.

Blocks are read into buffers that are kept for the next blocks. Fresh memory is cleared by the
system page by page, which can cost as much as reading the file. Buffers are given back when nothing
reads any more: a process holds none between runs.

Memory is bounded by the blocks' size and by the longest line that is read (`MAX_RECORD_BYTES`);
longer lines are skipped and named.
"""

import codecs
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from fastscore_readers.json.line_ends import count_line_ends, last_end
from fastscore_readers.line_scan import LineScan

from fastscore.errors import InputError
from fastscore.logs.inputs.archives import open_packed
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, MAX_RECORD_BYTES, Limits
from fastscore.logs.integrity.rejects import Reject
from fastscore.logs.objects import open_file
from fastscore.unpacked import Compression, Damage, DamageError, as_utf8, unpacked

_MORE = 1 << 12
_KEPT = {(8 << 20) + _MORE: 16, (64 << 20) + _MORE: 4}
"""Of which sizes buffers are kept, and how many at most while nothing uses them.

The texts of a block are kept in as many bytes and a little more.
"""

# appending and popping need no lock, which a finalizer could find taken by its own thread
_free = {size: deque[npt.NDArray[np.uint8]](maxlen=kept) for size, kept in _KEPT.items()}

_lock = threading.Lock()
_keepers = 0


def keep_buffers() -> None:
    """Keep buffers from now on, for as long as this process lasts."""
    global _keepers
    with _lock:
        _keepers += 1


@contextmanager
def buffers_kept() -> Iterator[None]:
    """Keep buffers while the body goes on; then give back those that nothing uses."""
    global _keepers
    keep_buffers()
    try:
        yield
    finally:
        with _lock:
            _keepers -= 1
            if not _keepers:
                for shelf in _free.values():
                    shelf.clear()


def _put_back(size: int, memory: npt.NDArray[np.uint8]) -> None:
    if _keepers:
        _free[size].append(memory)


def take_buffer(size: int) -> memoryview:
    """Return memory of some size; it may be kept when no view of it, or of a part, is left.

    Parameters
    ----------
    size
        How many bytes are wanted; memory of few, or of more than the largest size, is not kept.
    """
    buffer_bytes = next((fitting for fitting in _KEPT if fitting // 16 <= size <= fitting), 0)
    if not buffer_bytes:
        return np.empty(size, np.uint8).data
    try:
        memory = _free[buffer_bytes].pop()
    except IndexError:
        # numpy asks for large pages: some page faults instead of thousands
        memory = np.empty(buffer_bytes, np.uint8)
    # views of a memoryview keep alive what it is of, unlike those of an array
    lease = memory[:size]
    weakref.finalize(lease, _put_back, buffer_bytes, memory).atexit = False
    return lease.data


BLOCK_BYTES = 8 << 20
_LARGEST_WHOLE = 8
_SHORT_PART = 8
"""A cut line is read again if it is less than one such part of a block."""


def read_blocks(
    path: str,
    compression: Compression,
    start: int = 0,
    stop: int | None = None,
    observe: Callable[[bytes], object] | None = None,
    *,
    whole: bool = False,
    limits: Limits | None = DEFAULT_LIMITS,
) -> Iterator[bytes]:
    """Yield a file's bytes in blocks of about `BLOCK_BYTES`, unpacked.

    Parameters
    ----------
    path, compression
        The file.
    start, stop
        The bytes to read of a file that is not compressed.
    observe
        Called with the bytes as they stand on disk.
    whole
        Take a part of a file that is not compressed for one block if it is no larger than
        `_LARGEST_WHOLE` of them: what is kept until it is scored need not be cut.
    limits
        How much a compressed file may become, None where that is known.

    Raises
    ------
    InputError
        When the file cannot be read, or becomes more.
    DamageError
        After the last bytes that could be unpacked.
    """
    try:
        if compression == "none":
            yield from _plain_blocks(path, start, stop, observe, whole=whole)
        else:
            yield from _unpacked_blocks(path, compression, observe, limits)
    except OSError as error:
        raise unreadable(path, error) from error


def _plain_blocks(
    path: str,
    start: int,
    stop: int | None,
    observe: Callable[[bytes], object] | None,
    *,
    whole: bool,
) -> Iterator[bytes]:
    with open_file(path, stop=stop) as file:
        file.seek(start)
        left = (1 << 63) if stop is None else stop - start
        size = max(left, 1) if whole and left <= _LARGEST_WHOLE * BLOCK_BYTES else BLOCK_BYTES
        while block := file.read(min(size, left)):
            left -= len(block)
            if observe is not None:
                observe(block)
            yield block


def _unpacked_blocks(
    path: str,
    compression: Compression,
    observe: Callable[[bytes], object] | None,
    limits: Limits | None,
) -> Iterator[bytes]:
    with open_packed(path, compression) as packed:

        def read(size: int) -> bytes:
            block = packed.read(size)
            if observe is not None:
                observe(block)
            return block

        parts = as_utf8(unpacked(read, compression, BLOCK_BYTES))
        if limits is not None and not compression.startswith("utf"):
            parts = _bounded(parts, path, packed.size, limits)
        yield from gathered(parts, BLOCK_BYTES)


def gathered(parts: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Join parts to blocks of a size; what came before damage is yielded before it."""
    joined: list[bytes] = []
    waiting = 0
    damage: DamageError | None = None
    while True:
        try:
            part = next(parts, None)
        except DamageError as error:
            part, damage = None, error
        if part is None:
            break
        joined.append(part)
        waiting += len(part)
        if waiting >= size:
            yield b"".join(joined)
            joined, waiting = [], 0
    if joined:
        yield b"".join(joined)
    if damage is not None:
        raise damage


def line_blocks(
    path: str,
    observe: Callable[[bytes | memoryview], object],
    start: int,
    stop: int,
    *,
    whole: bool = False,
) -> Iterator[bytes | memoryview]:
    """Yield bytes of a file that is not compressed in blocks that mostly end at line ends.

    Views are of whole lines; what was read of the line after them is read again. That costs less
    than to join it to the next block, unless it is much.

    Parameters
    ----------
    path
        The file.
    observe
        Called with each block once it is used.
    start, stop
        The bytes to read; they are whole lines.
    whole
        As in `read_blocks`.

    Raises
    ------
    InputError
        When the file cannot be read.
    """
    fits = whole and stop - start <= _LARGEST_WHOLE * BLOCK_BYTES
    left = stop - start
    try:
        with open_file(path, stop=stop) as file:
            file.seek(start)
            if not left:
                file.read(1)  # what cannot be read is no empty file
            while left > 0:
                buffer = take_buffer(left if fits else min(left, BLOCK_BYTES))
                block = buffer[: file.readinto(buffer)]
                if not block:
                    break
                cut = len(block) if len(block) == left else last_end(block)
                if cut and (len(block) - cut) * _SHORT_PART < len(block):
                    file.seek(cut - len(block), os.SEEK_CUR)
                    block = block[:cut]
                    yield block
                else:
                    yield block.tobytes()
                observe(block)
                left -= len(block)
    except OSError as error:
        raise unreadable(path, error) from error


def _bounded(parts: Iterator[bytes], path: str, packed: int, limits: Limits) -> Iterator[bytes]:
    """Hand on what is unpacked of a file as long as it is not too much."""
    unpacked = 0
    for part in parts:
        unpacked += len(part)
        limits.check_unpacked(path, packed, unpacked)
        yield part


def unreadable(path: str, error: OSError) -> InputError:
    """Say why a file cannot be read."""
    return InputError(f"The file {path!r} cannot be read: {error.strerror}.")


def first_end(data: bytes) -> tuple[int, int]:
    """Bounds of the first line end that surely is one, (-1, -1) without any."""
    newline = data.find(b"\n")
    returned = data.find(b"\r", 0, newline if newline >= 0 else max(len(data) - 1, 0))
    if returned < 0:
        return (newline, newline + 1) if newline >= 0 else (-1, -1)
    return returned, returned + (2 if newline == returned + 1 else 1)


MOST_LINES = 1 << 18
"""More lines of a block are handed on in several parts: what is noted of each takes memory."""
_SAMPLE_STRIDE = 1021
"""A prime: of what comes again every few bytes all are met."""
_HEAD_BYTES = 1 << 10
BOM = codecs.BOM_UTF8
_NEWLINE, _RETURN = 10, 13


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines of a stream, or a fault in it.

    Parameters
    ----------
    data
        The lines; of a line that is too long, its beginning.
    offset
        The byte of the (unpacked) file at which they start.
    line
        The number of the first of them.
    long_line
        The length of a line that is too long, 0 for ordinary lines.
    damage
        Why the stream ends after these lines though the file does not, None otherwise.
    numbers
        Ascending positions of lines in ``data`` and their numbers in the file, int64 (n, 2), where
        these are not consecutive; None otherwise.
    offsets
        The bytes of the file at which these lines start, int64 (n,), if the file contains other
        bytes than ``data``; None otherwise.
    records
        The lines as CSV records, scanned; positions are those in ``data``.
    refused
        Why a part of the file is no line at all; there are no data then.
    dense
        Whether they are very many for their bytes, so that no others are joined to them.
    in_document
        Whether they are values of JSON documents, of which one line may contain many.
    """

    data: bytes | memoryview
    offset: int
    line: int
    long_line: int = 0
    damage: Damage | None = None
    numbers: npt.NDArray[np.int64] | None = None
    offsets: npt.NDArray[np.int64] | None = None
    records: LineScan | None = None
    refused: Reject | None = None
    dense: bool = False
    in_document: bool = False


Block: TypeAlias = bytes | memoryview


class BlockStream:
    """Blocks without their byte order mark; their damage is kept as data."""

    def __init__(self, blocks: Iterator[Any], at_start: bool, damage: Damage | None) -> None:
        self.damage = damage
        self.ended = False
        self.mark = 0
        self._blocks = blocks
        self._at_start = at_start

    @property
    def final(self) -> bool:
        """Whether everything was read and nothing is missing."""
        return self.ended and self.damage is None

    def next(self) -> Any:
        """Return the next block, None after the last."""
        try:
            block = next(self._blocks, None)
        except DamageError as error:
            block, self.damage = None, error.damage
        self.ended = block is None
        if self._at_start and block is not None and block[: len(BOM)] == BOM:
            block, self.mark = block[len(BOM) :], len(BOM)
        self._at_start = False
        return block

    def more(self, least: int = 1, before: Block = b"") -> Block:
        """Return the next blocks after ``before``, ``least`` bytes unless the stream ends."""
        joined: list[Block] = [before] if len(before) else []
        size = 0
        while not self.ended and size < max(least, 1):
            block = self.next()
            if block is not None:
                joined.append(block)
                size += len(block)
        return joined[0] if len(joined) == 1 else b"".join(joined)


def read_lines(
    blocks: Iterator[bytes] | Iterator[bytes | memoryview],
    *,
    offset: int = 0,
    line: int = 1,
    damage: Damage | None = None,
    max_line: int = MAX_RECORD_BYTES,
    stop: int | None = None,
) -> Iterator[Lines]:
    """Cut blocks at line ends; a byte order mark at byte 0 is taken off.

    Parameters
    ----------
    blocks
        The stream; a view is of whole lines.
    offset, line
        Byte and number of its first line.
    damage
        Damage that is known to stand past the stream's end.
    max_line
        Longer lines are skipped; no less than the blocks' size.
    stop
        Where the stream ends, where that is known: lines before it are not counted.
    """
    stream = BlockStream(blocks, offset == 0, damage)
    cutter = _LineSplitter(offset, line, max_line, stop)
    while (block := stream.next()) is not None:
        cutter.offset, stream.mark = cutter.offset + stream.mark, 0
        yield from cutter.cut(block)
    yield from cutter.rest(stream.damage)


@dataclass(slots=True)
class _LineSplitter:
    """The place of a stream up to which lines were handed on, and what waits for its line's end."""

    offset: int
    line: int
    max_line: int
    stop: int | None
    pending: list[bytes] = field(default_factory=list)
    size: int = 0
    head: bytes = b""
    dropped: int = 0
    """Bytes that were skipped of a line that is too long; `head` is its beginning."""

    def cut(self, block: bytes | memoryview) -> Iterator[Lines]:
        """Hand on the lines that end in a block."""
        if isinstance(block, memoryview):
            if not self.pending:
                yield from self._whole(block)
                return
            block = block.tobytes()
        self.pending.append(block)
        self.size += len(block)
        if self.size <= self.max_line and not self.dropped and not last_end(block):
            return
        data = yield from self._skip_long(b"".join(self.pending))
        end = 0 if self.dropped else last_end(data)
        if end:
            # a view: whole blocks are not copied for their last, cut line
            yield from self._whole(memoryview(data)[:end])
        self.size = len(data) - end
        self.pending = [data[end:]] if self.size or self.dropped else []

    def rest(self, damage: Damage | None) -> Iterator[Lines]:
        """Hand on what no line end follows, and why the stream ends."""
        rest = b"".join(self.pending)
        length = self.dropped + len(rest.rstrip(b"\r\n"))
        if self.dropped or length > self.max_line:
            yield Lines(self.head or rest[:_HEAD_BYTES], self.offset, self.line, long_line=length)
            self.offset += self.dropped + len(rest)
            self.line += 1
            rest = b""
        if rest or damage:
            yield from _parts(Lines(rest, self.offset, self.line, damage=damage))

    def _whole(self, data: bytes | memoryview) -> Iterator[Lines]:
        yield from _parts(Lines(data, self.offset, self.line))
        self.offset += len(data)
        if self.offset != self.stop:
            self.line += count_line_ends(np.frombuffer(data, np.uint8))

    def _skip_long(self, data: bytes) -> Generator[Lines, None, bytes]:
        """Name the lines that are too long; return what follows them."""
        while self.size > self.max_line or self.dropped:
            end, after = first_end(data)
            length = end if end >= 0 else len(data.removesuffix(b"\r"))
            if not self.dropped and length <= self.max_line:
                break
            self.head = self.head or data[:_HEAD_BYTES]
            if end < 0:
                self.dropped += length
                return data[length:]
            yield Lines(self.head, self.offset, self.line, long_line=self.dropped + end)
            self.offset += self.dropped + after
            self.line += 1
            data, self.head, self.dropped = data[after:], b"", 0
            self.size = len(data)
        return data


def _parts(lines: Lines) -> Iterator[Lines]:
    """Part lines that are very many; damage stands after the last of them."""
    data = memoryview(lines.data)
    if len(data) <= MOST_LINES or _estimate_line_count(data) <= MOST_LINES:
        yield lines
        return
    half = len(data) // 2
    middle = last_end(data[:half])
    if not middle:
        after = first_end(bytes(data[half:]))[1]
        middle = half + after if after > 0 else len(data)
    if middle == len(data):
        yield lines
        return
    count = count_line_ends(np.frombuffer(data[:middle], np.uint8))
    first = replace(lines, data=data[:middle], damage=None, dense=True)
    last = replace(
        lines,
        data=data[middle:],
        offset=lines.offset + middle,
        line=lines.line + count,
        dense=True,
    )
    yield from _parts(first)
    yield from _parts(last)


def _estimate_line_count(data: memoryview) -> int:
    """Guess by a sample how many lines there are."""
    sample = np.frombuffer(data, np.uint8)[::_SAMPLE_STRIDE]
    return int(
        np.count_nonzero((sample == _NEWLINE) | (sample == _RETURN)) * len(data) / sample.size
    )
