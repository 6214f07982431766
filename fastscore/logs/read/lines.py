"""Logs in bounded blocks, and complete lines: those of text, or elements of JSON documents.

Blocks are read into reusable buffers. The system clears new memory page by page, which can take as
long as reading the file. Buffers are freed when no reader is left, so a process keeps none between
runs.

Memory is bounded by the size of blocks and by the longest line that is read (`MAX_RECORD_BYTES`).
Longer lines are skipped and reported. Elements are yielded while their document is read, so it may
have any size. What blocks cut is read again after the data have doubled: at most twice.
"""

import codecs
import io
import itertools
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from fastscore_readers.fill import LineScan
from fastscore_readers.json.documents import (
    AFTER_COMMA,
    AFTER_ELEMENT,
    AT_START,
    BETWEEN_VALUES,
    JsonElements,
    elements,
    skip_value,
)
from fastscore_readers.json.line_ends import count_line_ends, last_end, line_begins

from fastscore.errors import InputError
from fastscore.files import Compression, Damage, DamageError, as_utf8, unpacked
from fastscore.logs.inputs.document_values import load_json
from fastscore.logs.inputs.folders import open_packed
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, MAX_RECORD_BYTES, Limits
from fastscore.logs.integrity.rejects import Reject, decode
from fastscore.logs.objects import open_file
from fastscore.suites.declarations import RejectReason

_MORE = 1 << 12
_KEPT = {(8 << 20) + _MORE: 16, (64 << 20) + _MORE: 4}
"""Sizes of reusable buffers, and the maximum number of unused buffers of each.

The texts of a block need its size and a little more.
"""

# append and pop need no lock, which a finalizer's own thread could already hold
_free = {size: deque[npt.NDArray[np.uint8]](maxlen=kept) for size, kept in _KEPT.items()}

_lock = threading.Lock()
_keepers = 0


def keep_buffers() -> None:
    """Keep buffers for reuse for the rest of this process."""
    global _keepers
    with _lock:
        _keepers += 1


@contextmanager
def buffers_kept() -> Iterator[None]:
    """Keep buffers for reuse inside the block, then free the unused ones."""
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
    """Return memory of some size, which is reused when no view of it is left."""
    buffer_bytes = next((fitting for fitting in _KEPT if fitting // 16 <= size <= fitting), 0)
    if not buffer_bytes:
        return np.empty(size, np.uint8).data
    try:
        memory = _free[buffer_bytes].pop()
    except IndexError:
        # numpy asks for large pages: some page faults instead of thousands
        memory = np.empty(buffer_bytes, np.uint8)
    # views of a memoryview keep its memory alive, unlike views of an array
    lease = memory[:size]
    weakref.finalize(lease, _put_back, buffer_bytes, memory).atexit = False
    return lease.data


BLOCK_BYTES = 8 << 20
_LARGEST_WHOLE = 8
_SHORT_PART = 8
"""A cut line is read again if it is shorter than this fraction of a block."""


Block: TypeAlias = bytes | memoryview


def read_blocks(
    path: str,
    compression: Compression,
    start: int = 0,
    stop: int | None = None,
    observe: Callable[[Block], object] | None = None,
    *,
    whole: bool = False,
    limits: Limits | None = DEFAULT_LIMITS,
    block_bytes: int | None = None,
) -> Iterator[Block]:
    """Yield a file's bytes in blocks, unpacked.

    Blocks of an uncompressed file mostly end at line ends: views contain complete lines. A line
    that a block cuts is read again, unless it is long. That is faster than joining it to the next.
    """
    size = block_bytes or BLOCK_BYTES
    try:
        if compression == "none":
            yield from _plain_blocks(path, start, stop, observe, size, whole=whole)
        else:
            yield from _unpacked_blocks(path, compression, observe, limits, size)
    except OSError as error:
        raise InputError(f"The file {path!r} cannot be read: {error.strerror}.") from error


def _end_of(file: io.FileIO) -> int:
    """Return a file's size, 0 of one that cannot be read: reading it says why."""
    try:
        return file.seek(0, os.SEEK_END)
    except OSError:
        return 0


def _plain_blocks(
    path: str,
    start: int,
    stop: int | None,
    observe: Callable[[Block], object] | None,
    size: int,
    *,
    whole: bool,
) -> Iterator[Block]:
    with open_file(path, stop=stop) as file:
        left = (_end_of(file) if stop is None else stop) - start
        size = left if whole and left <= _LARGEST_WHOLE * BLOCK_BYTES else size
        file.seek(start)
        if not left:
            file.read(1)  # an unreadable file is not an empty one
        while left > 0:
            buffer = take_buffer(min(left, size))
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
            if observe is not None:
                observe(block)
            left -= len(block)


def _unpacked_blocks(
    path: str,
    compression: Compression,
    observe: Callable[[Block], object] | None,
    limits: Limits | None,
    size: int,
) -> Iterator[bytes]:
    with open_packed(path, compression) as (read_packed, packed_bytes):

        def read(count: int) -> bytes:
            block = read_packed(count)
            if observe is not None:
                observe(block)
            return block

        bounds = None if compression.startswith("utf") else limits

        def parts() -> Iterator[bytes]:
            n_bytes = 0
            for part in as_utf8(unpacked(read, compression, size)):
                n_bytes += len(part)
                if bounds is not None:
                    bounds.check_unpacked(path, packed_bytes, n_bytes)
                yield part

        yield from gathered(parts(), size)


def gathered(parts: Iterator[Block], size: int) -> Iterator[bytes]:
    """Join parts to blocks of a size. Data before damage are yielded before it."""
    joined: list[Block] = []
    waiting = 0
    try:
        for part in parts:
            joined.append(part)
            waiting += len(part)
            if waiting >= size:
                yield b"".join(joined)
                joined, waiting = [], 0
    except DamageError:
        if joined:
            yield b"".join(joined)
        raise
    if joined:
        yield b"".join(joined)


def first_end(data: bytes) -> tuple[int, int]:
    """Return the bounds of the first complete line end, (-1, -1) without any."""
    newline = data.find(b"\n")
    returned = data.find(b"\r", 0, newline if newline >= 0 else max(len(data) - 1, 0))
    if returned < 0:
        return (newline, newline + 1) if newline >= 0 else (-1, -1)
    return returned, returned + (2 if newline == returned + 1 else 1)


MOST_LINES = 1 << 18
"""Maximum number of lines per part, as the notes of each line take memory."""
_SAMPLE_STRIDE = 1021
"""A prime, so that the sample covers periodic data."""
_HEAD_BYTES = 1 << 10
BOM = codecs.BOM_UTF8
_NEWLINE, _RETURN = 10, 13


@dataclass(frozen=True, slots=True)
class Lines:
    """Complete lines of a stream, or a fault in it."""

    data: bytes | memoryview  # the lines
    offset: int  # the byte of the (unpacked) file at which they start
    line: int  # the number of the first line
    # why the stream ends after these lines before the file does; None otherwise
    damage: Damage | None = None
    # ascending positions of lines in `data` and their numbers in the file, int64 (n, 2), if these
    # are not consecutive; None otherwise
    numbers: npt.NDArray[np.int64] | None = None
    # the bytes of the file at which these lines start, int64 (n,), if the file has other bytes than
    # `data`; None otherwise
    offsets: npt.NDArray[np.int64] | None = None
    # the lines as scanned CSV records; positions are those in `data`
    records: LineScan | None = None
    refused: Reject | None = None  # why a part of the file is not a line; there are no data then
    dense: bool = False  # whether the lines are so short that no others are joined to them
    # whether they are values of JSON documents, of which one line may contain many
    in_document: bool = False


def too_long(file: str, line: int, offset: int, size: int, text: Block) -> Reject:
    """Return the reject of a line, or an element of a document, that is skipped for its length."""
    expected = f"at most {MAX_RECORD_BYTES} bytes"
    raw = decode(bytes(text[:_HEAD_BYTES]))
    return Reject(file, line, offset, None, "line_too_long", f"{size} bytes", expected, raw)


class BlockStream:
    """Blocks without their byte order mark. Damage is stored, not raised."""

    def __init__(self, blocks: Iterator[Any], at_start: bool, damage: Damage | None) -> None:
        self.damage = damage
        self.ended = False
        self.mark = 0
        self._blocks = blocks
        self._at_start = at_start

    @property
    def final(self) -> bool:
        """Whether everything was read without damage."""
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
    blocks: Iterator[Block],
    file: str,
    *,
    offset: int = 0,
    line: int = 1,
    damage: Damage | None = None,
) -> Iterator[Lines]:
    """Cut blocks at line ends, and remove a byte order mark at byte 0; line 0 counts no lines."""
    stream = BlockStream(blocks, offset == 0, damage)
    pending: Block = b""
    before: Block = b""  # lines that were yielded, and are counted once others follow
    while not stream.ended:
        # a line that blocks cut is joined to as much again
        pending = stream.more(min(len(pending), MAX_RECORD_BYTES + 1 - len(pending)), pending)
        offset, stream.mark = offset + stream.mark, 0
        if not stream.ended and len(pending) <= MAX_RECORD_BYTES and not last_end(pending):
            continue
        if line and pending:
            line, before = line + count_line_ends(np.frombuffer(before, np.uint8)), b""
        while len(pending) > MAX_RECORD_BYTES:
            end = first_end(bytes(pending))[0]
            if (end if end >= 0 else len(bytes(pending).rstrip(b"\r\n"))) <= MAX_RECORD_BYTES:
                break
            rest, size, taken = skip_line(stream, bytes(pending))
            yield Lines(b"", offset, line, refused=too_long(file, line, offset, size, pending))
            pending, offset, line = rest, offset + taken, line + 1
        end = last_end(pending)
        if end:
            # a view, so that blocks are not copied because of their cut last line
            before, pending = memoryview(pending)[:end], bytes(pending[end:])
            yield from _parts(Lines(before, offset, line))
            offset += end
    if pending or stream.damage:
        line += count_line_ends(np.frombuffer(before, np.uint8)) if line else 0
        yield from _parts(Lines(pending, offset, line, damage=stream.damage))


def skip_line(stream: BlockStream, pending: bytes) -> tuple[bytes, int, int]:
    """Skip a line; return the data after it, and its bytes without and with its end."""
    skipped = 0
    while True:
        end, after = first_end(pending)
        if end >= 0:
            return pending[after:], skipped + end, skipped + after
        if stream.ended:
            size = skipped + len(pending.rstrip(b"\r\n"))
            return b"", size, skipped + len(pending)
        # a carriage return at the end may be the first half of a line end
        kept = pending[-1:] if pending.endswith(b"\r") else b""
        skipped += len(pending) - len(kept)
        pending = bytes(stream.more(before=kept))


def _parts(lines: Lines) -> Iterator[Lines]:
    """Split a large number of lines into parts; damage follows the last."""
    data = memoryview(lines.data)
    if len(data) <= MOST_LINES or _estimate_line_count(data) <= MOST_LINES:
        yield lines
        return
    begins = line_begins(np.frombuffer(data, np.uint8))
    edges = np.unique([0, *begins[MOST_LINES - 1 :: MOST_LINES], len(data)]).tolist()
    for number, (begin, end) in enumerate(itertools.pairwise(edges)):
        yield replace(
            lines,
            data=data[begin:end],
            offset=lines.offset + begin,
            line=lines.line + number * MOST_LINES,
            damage=lines.damage if end == len(data) else None,
            dense=True,
        )


def _estimate_line_count(data: memoryview) -> int:
    sample = np.frombuffer(data, np.uint8)[::_SAMPLE_STRIDE]
    return int(
        np.count_nonzero((sample == _NEWLINE) | (sample == _RETURN)) * len(data) / sample.size
    )


_SHOWN_BYTES, _FIRST_BYTES = 1 << 10, 1 << 14


def read_document(
    blocks: Iterator[Block],
    file: str,
    *,
    holds_rows: Callable[[Any], bool],
    offset: int = 0,
    line: int = 1,
    in_array: bool = False,
    goes_on: bool = False,
    damage: Damage | None = None,
) -> Iterator[Lines]:
    """Split a document into lines, from an element on: whether it is in the document's array.

    If the document goes on after the blocks, more elements follow.
    """
    stream = BlockStream(blocks, offset == 0, damage)
    place = AT_START if offset == 0 else AFTER_COMMA if in_array else BETWEEN_VALUES
    pending: Block = b""
    wanted = 0
    ended = False
    # a document that is read from its middle is an array of rows, or consecutive values
    whole_array = None if place == AT_START else not in_array
    while not ended:
        pending = stream.more(wanted - len(pending), pending)
        offset, stream.mark = offset + stream.mark, 0
        ended = stream.ended
        if whole_array is None:
            whole_array = _is_whole(bytes(pending), holds_rows, final=ended)
            if whole_array is None:
                wanted = 2 * len(pending)
                continue
        found = elements(
            np.frombuffer(pending, np.uint8),
            whole_array=whole_array,
            place=place,
            line=line,
            final=ended and not goes_on,
        )
        yield from _element_lines(found, file, pending, offset, stream.damage if ended else None)
        if found.fault >= 0 and (stream.damage is None or not ended):
            yield _after_fault(stream, found, file, pending, offset)
            return
        pending, place, line = pending[found.stop :], found.place, found.next_line
        offset += found.stop
        wanted = min(2 * len(pending), MAX_RECORD_BYTES + 1)
        if len(pending) > MAX_RECORD_BYTES and not ended:
            blocks_left = itertools.chain([pending], iter(stream.next, None))
            n_bytes, after, rest = skip_value(blocks_left, line)
            refused = too_long(file, line, offset, n_bytes, pending)
            yield Lines(b"", offset, line, refused=refused)
            pending, line, wanted = rest, after, 0
            offset += n_bytes
            place = BETWEEN_VALUES if place in (AT_START, BETWEEN_VALUES) else AFTER_ELEMENT
    if place == AT_START and stream.damage is None:
        what = "an empty file", "a JSON object or an array", ""
        yield Lines(b"", 0, 1, refused=Reject(file, 1, 0, None, "not_json", *what))


def _is_whole(text: bytes, holds_rows: Callable[[Any], bool], *, final: bool) -> bool | None:
    """Return whether an array is one line; None if its first element is incomplete."""
    if text.lstrip(b" \t\r\n")[:1] != b"[":
        return True if text.strip(b" \t\r\n") or final else None
    found = elements(
        np.frombuffer(text, np.uint8), whole_array=False, place=AT_START, line=1, final=final
    )
    if not found.start.size:
        return not holds_rows(None) if final or len(text) > MAX_RECORD_BYTES else None
    end = int(found.start[1]) if found.start.size > 1 else found.data.size
    try:
        return not holds_rows(load_json(found.data[found.start[0] : end].tobytes().strip()))
    except ValueError:
        return not holds_rows({})


def is_array_of_rows(path: str, holds_rows: Callable[[Any], bool]) -> bool:
    """Return whether an uncompressed document is an array of rows."""
    text = b""
    for block in read_blocks(path, "none"):
        text += block if text else bytes(block).removeprefix(BOM)
        whole = _is_whole(text, holds_rows, final=False)
        if whole is not None:
            return not whole and text.lstrip(b" \t\r\n")[:1] == b"["
    return _is_whole(text, holds_rows, final=True) is False


def first_text(path: str, compression: Compression) -> bytes:
    """Return the first bytes of a file after white space, empty if they are damaged."""
    blocks = read_blocks(path, compression, limits=None, block_bytes=_FIRST_BYTES)
    with suppress(DamageError):
        for block in blocks:
            text = bytes(block).removeprefix(BOM).lstrip(b" \t\r\n")
            if text:
                return text
    return b""


def _element_lines(
    found: JsonElements, file: str, text: Block, offset: int, damage: Damage | None
) -> Iterator[Lines]:
    """Yield elements as lines, many of them in several parts; damage follows the last."""
    ends = np.append(found.start, found.data.size)[1:]
    is_long = {
        element: size
        for element in np.flatnonzero(ends - found.start > MAX_RECORD_BYTES).tolist()
        if (
            size := len(found.data[found.start[element] : ends[element]].tobytes().rstrip(b" \t\n"))
        )
        > MAX_RECORD_BYTES
    }
    long, many_edges = np.array([*is_long], np.int64), np.arange(0, ends.size, MOST_LINES)
    edges = np.unique(np.concatenate((many_edges, long, long + 1, [ends.size])))
    for first, after in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        begin, line = int(found.start[first]), int(found.line[first])
        end = int(found.start[after]) - 1 if after < found.start.size else found.data.size
        if first in is_long:
            refused = too_long(file, line, offset + begin, is_long[first], text[begin:end])
            yield Lines(b"", offset + begin, line, refused=refused)
            continue
        numbers = np.stack([found.start[first:after] - begin, found.line[first:after]], 1)
        own = damage if after == found.start.size else None
        data = found.data[begin:end].tobytes()
        many = len(many_edges) > 1
        found_at = offset + begin
        yield Lines(data, found_at, line, damage=own, numbers=numbers, dense=many, in_document=True)
    if damage is not None and not found.start.size:
        numbers = np.empty((0, 2), np.int64)
        yield Lines(b"", offset + found.data.size, 1, damage=damage, numbers=numbers)


def _after_fault(
    stream: BlockStream, found: JsonElements, file: str, pending: Block, offset: int
) -> Lines:
    """Read the rest after a fault between two elements: it is ignored, or damaged."""
    rest = bytes(pending[found.fault :])
    left = len(rest)
    while (block := stream.next()) is not None:  # the reader hashes the whole file
        left += len(block)
        rest += block[: max(0, _SHOWN_BYTES - len(rest))]
    offset += found.fault
    if stream.damage is not None:
        numbers = np.empty((0, 2), np.int64)
        return Lines(b"", offset, found.next_line, damage=stream.damage, numbers=numbers)
    what = "the end of the document"
    if rest:
        byte = rest[:4].decode(errors="replace")[:1]
        what = f"{byte!r}, from which on {left} bytes are left aside"
    expected = "elements separated by commas up to a closing bracket"
    raw = decode(rest[:_SHOWN_BYTES])
    # nothing is lost between a last comma and the bracket
    reason: RejectReason = "not_json" if rest.strip() == b"]" else "broken_document"
    refused = Reject(file, found.next_line, offset, None, reason, what, expected, raw)
    return Lines(b"", offset, found.next_line, refused=refused)
