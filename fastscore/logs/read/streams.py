"""Bytes of logs in bounded blocks, unpacked and cut at line ends.

Damage to a compressed file ends its stream early and is handed on as data: what stands before it
is read. Memory is bounded by the block size and by the longest line that is read
(`MAX_RECORD_BYTES`); longer lines are skipped and named.
"""

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import zstandard
from fastscore_readers.csv.records import CsvScan
from fastscore_readers.json.line_ends import count_line_ends

from fastscore.errors import InputError
from fastscore.logs.inputs.files import Compression
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, MAX_RECORD_BYTES, Limits
from fastscore.logs.integrity.rejects import Reject
from fastscore.logs.plan.byte_ranges import Damage
from fastscore.logs.read.buffer_pool import take_room

BLOCK_BYTES = 8 << 20
_LARGEST_WHOLE = 8
_SHORT_PART = 8
"""A cut line is read again if it is less than one such part of a block."""
# whoever looks at such a block finds it in the cache
_PASSING_BYTES = 4 << 20
MOST_LINES = 1 << 18
"""More lines of a block are handed on in several pieces: what is noted of each takes memory."""
_SAMPLED_BYTES = 1 << 16

# small enough that the densest zstd input unpacks to some 64 MB a step
_ZST_STEP = 2 << 10
_ZST_WINDOW = 1 << 27
_HEAD_BYTES = 1 << 10
BOM = b"\xef\xbb\xbf"
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
    records
        The lines as CSV records, scanned in order; positions are those in ``data``.
    width
        How many cells a record has.
    refused
        Why a part of the file is no line at all; there are no data then.
    dense
        Whether they are very many for their bytes, so that no others are joined to them.
    """

    data: bytes | memoryview
    offset: int
    line: int
    long_line: int = 0
    damage: Damage | None = None
    numbers: npt.NDArray[np.int64] | None = None
    records: tuple[CsvScan, ...] = ()
    width: int = 0
    refused: Reject | None = None
    dense: bool = False


class DamageError(Exception):
    """A compressed stream that ends early or cannot be unpacked further."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(damage.found)
        self.damage = damage


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
        with open(path, "rb", buffering=0) as file:
            file.seek(start)
            left = (1 << 63) if stop is None or compression != "none" else stop - start

            def read(size: int) -> bytes:
                nonlocal left
                block = file.read(min(size, left))
                left -= len(block)
                if observe is not None:
                    observe(block)
                return block

            if compression == "none":
                fits = whole and left <= _LARGEST_WHOLE * BLOCK_BYTES
                while block := read(max(left, 1) if fits else BLOCK_BYTES):
                    yield block
            else:
                parts = _gunzip(read) if compression == "gz" else _unzstd(read)
                if limits is not None:
                    parts = _bounded(parts, path, os.fstat(file.fileno()).st_size, limits)
                yield from _gathered(parts)
    except OSError as error:
        raise unreadable(path, error) from error


def passing_lines(
    path: str, observe: Callable[[bytes | memoryview], object]
) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a file that is not compressed in blocks that mostly end at line ends.

    Views are of whole lines, and overwritten by the next block.

    Parameters
    ----------
    path
        The file.
    observe
        Called with each block once it is used.

    Raises
    ------
    InputError
        When the file cannot be read.
    """
    try:
        size = os.stat(path).st_size
    except OSError as error:
        raise unreadable(path, error) from error
    room = np.empty(max(1, min(size, _PASSING_BYTES)), np.uint8).data
    return _line_blocks(path, observe, 0, sys.maxsize, lambda left: room)


def line_blocks(
    path: str, observe: Callable[[bytes | memoryview], object], start: int, stop: int
) -> Iterator[bytes | memoryview]:
    """Yield bytes of a file that is not compressed as `passing_lines` does, in blocks to be kept.

    Parameters
    ----------
    path, observe
        As there.
    start, stop
        The bytes to read; they are whole lines. They are one block if they are no more than
        `_LARGEST_WHOLE` of `BLOCK_BYTES`: what is kept until it is scored need not be cut.

    Raises
    ------
    InputError
        When the file cannot be read.
    """
    fits = stop - start <= _LARGEST_WHOLE * BLOCK_BYTES
    return _line_blocks(
        path, observe, start, stop, lambda left: take_room(left if fits else min(left, BLOCK_BYTES))
    )


def _line_blocks(
    path: str,
    observe: Callable[[bytes | memoryview], object],
    start: int,
    stop: int,
    room_for: Callable[[int], memoryview],
) -> Iterator[bytes | memoryview]:
    """Read into rooms; what was read of the line after whole ones is read again.

    That costs less than to join it to the next block, unless it is much.
    """
    left = stop - start
    try:
        with open(path, "rb", buffering=0) as file:
            file.seek(start)
            while left > 0:
                room = room_for(left)[:left]
                block = room[: file.readinto(room)]
                if not block:
                    break
                cut = len(block) if len(block) == left else _cut(block)
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


def unreadable(path: str, error: OSError) -> InputError:
    """Say why a file cannot be read."""
    return InputError(f"The file {path!r} cannot be read: {error.strerror}.")


def _bounded(parts: Iterator[bytes], path: str, packed: int, limits: Limits) -> Iterator[bytes]:
    """Hand on what is unpacked of a file as long as it is not too much."""
    unpacked = 0
    for part in parts:
        unpacked += len(part)
        limits.check_unpacked(path, packed, unpacked)
        yield part


def _gathered(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Join small parts to blocks; what came before damage is yielded before it."""
    gathered: list[bytes] = []
    size = 0
    damage: DamageError | None = None
    while True:
        try:
            part = next(parts, None)
        except DamageError as error:
            part, damage = None, error
        if part is None:
            break
        gathered.append(part)
        size += len(part)
        if size >= BLOCK_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)
    if damage is not None:
        raise damage


def _truncated(format: str) -> Damage:
    return Damage("truncated_compression", f"the {format} stream ends early")


def _damaged(format: str, error: Exception) -> Damage:
    return Damage("damaged_compression", f"the {format} stream is damaged ({error})")


def _gunzip(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Unpack the members of a gzip file; zeros after the last are padding."""
    packed = read(1 << 16)
    while packed:
        member = zlib.decompressobj(wbits=31)
        try:
            while not member.eof:
                if part := member.decompress(packed, BLOCK_BYTES):
                    yield part
                packed = member.unconsumed_tail or (b"" if member.eof else read(1 << 16))
                if not packed and not member.eof:
                    # an empty input flushes what the last block still holds
                    if part := member.decompress(b"", BLOCK_BYTES):
                        yield part
                        continue
                    raise DamageError(_truncated("gzip"))
        except zlib.error as error:
            raise DamageError(_damaged("gzip", error)) from error
        packed = member.unused_data.lstrip(b"\0")
        while not packed and (more := read(1 << 16)):
            packed = more.lstrip(b"\0")


def _unzstd(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Unpack the frames of a zstd file."""
    packed = read(1 << 16)
    while packed:
        frame = zstandard.ZstdDecompressor(max_window_size=_ZST_WINDOW).decompressobj()
        try:
            while not frame.eof:
                for begin in range(0, len(packed), _ZST_STEP):
                    if part := frame.decompress(packed[begin : begin + _ZST_STEP]):
                        yield part
                    if frame.eof:
                        packed = frame.unused_data + packed[begin + _ZST_STEP :]
                        break
                else:
                    packed = read(1 << 16)
                    if not packed:
                        raise DamageError(_truncated("zstd"))
        except zstandard.ZstdError as error:
            raise DamageError(_damaged("zstd", error)) from error
        packed = packed or read(1 << 16)


def _cut(data: bytes | memoryview) -> int:
    """Position after the last line end of ``data`` that surely is one, 0 without any."""
    end, step = len(data), _HEAD_BYTES
    while end > 0:
        begin = max(0, end - step)
        cut = bytes(data[begin:end]).rfind(b"\n") + 1
        if cut:
            return begin + cut
        end, step = begin, 2 * step
    # a return at the very end may be half of a line end
    return bytes(data).rfind(b"\r", 0, max(len(data) - 1, 0)) + 1


def first_end(data: bytes) -> tuple[int, int]:
    """Bounds of the first line end that surely is one, (-1, -1) without any."""
    newline = data.find(b"\n")
    returned = data.find(b"\r", 0, newline if newline >= 0 else max(len(data) - 1, 0))
    if returned < 0:
        return (newline, newline + 1) if newline >= 0 else (-1, -1)
    return returned, returned + (2 if newline == returned + 1 else 1)


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
    pending: list[bytes] = []
    size = dropped = 0
    head = b""
    while True:
        try:
            block = next(blocks, None)
        except DamageError as error:
            block, damage = None, error.damage
        if block is None:
            break
        if isinstance(block, memoryview):
            if not pending and (offset or block[: len(BOM)] != BOM):
                yield from _pieces(Lines(block, offset, line))
                offset += len(block)
                if offset != stop:
                    line += count_line_ends(np.frombuffer(block, np.uint8))
                continue
            block = block.tobytes()
        if offset == 0 and not pending and block.startswith(BOM):
            block, offset = block[len(BOM) :], len(BOM)
        pending.append(block)
        size += len(block)
        if size <= max_line and not dropped and not _cut(block):
            continue
        data = b"".join(pending)
        while size > max_line or dropped:
            end, after = first_end(data)
            length = end if end >= 0 else len(data.removesuffix(b"\r"))
            if not dropped and length <= max_line:
                break
            head = head or data[:_HEAD_BYTES]
            if end < 0:
                dropped += length
                data = data[length:]
                break
            yield Lines(head, offset, line, long_line=dropped + end)
            offset, line = offset + dropped + after, line + 1
            data, head, dropped = data[after:], b"", 0
            size = len(data)
        cut = 0 if dropped else _cut(data)
        if cut:
            # a view: whole blocks are not copied for their last, cut line
            whole = memoryview(data)[:cut]
            yield from _pieces(Lines(whole, offset, line))
            offset += cut
            if offset != stop:
                line += count_line_ends(np.frombuffer(whole, np.uint8))
        size = len(data) - cut
        pending = [data[cut:]] if size or dropped else []
    rest = b"".join(pending)
    if dropped or len(rest.rstrip(b"\r\n")) > max_line:
        length = dropped + len(rest.rstrip(b"\r\n"))
        yield Lines(head or rest[:_HEAD_BYTES], offset, line, long_line=length)
        offset, line, rest = offset + dropped + len(rest), line + 1, b""
    if rest or damage:
        yield from _pieces(Lines(rest, offset, line, damage=damage))


def _pieces(lines: Lines) -> Iterator[Lines]:
    """Part lines that are very many; damage stands behind the last of them."""
    data = memoryview(lines.data)
    if len(data) <= MOST_LINES or _guessed_ends(data) <= MOST_LINES:
        yield lines
        return
    half = len(data) // 2
    middle = _cut(data[:half])
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
    yield from _pieces(first)
    yield from _pieces(last)


def _guessed_ends(data: memoryview) -> int:
    """Guess by a sample how many lines there are."""
    sample = np.frombuffer(data, np.uint8)[:: max(1, len(data) // _SAMPLED_BYTES)]
    return int(
        np.count_nonzero((sample == _NEWLINE) | (sample == _RETURN)) * len(data) / sample.size
    )
