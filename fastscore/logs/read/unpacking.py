"""Compressed files, unpacked in bounded steps.

Damage ends a stream early and is handed on as data: what stands before it is read.
"""

import zlib
from collections.abc import Callable, Iterator

import zstandard

from fastscore.logs.inputs.files import Compression
from fastscore.logs.plan.byte_ranges import Damage

# small enough that the densest zstd input unpacks to some 64 MB a step
_ZST_STEP = 2 << 10
_ZST_WINDOW = 1 << 27


class DamageError(Exception):
    """A compressed stream that ends early or cannot be unpacked further."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(damage.found)
        self.damage = damage


def unpacked(read: Callable[[int], bytes], compression: Compression, size: int) -> Iterator[bytes]:
    """Yield what a compressed file holds, as it is unpacked.

    Parameters
    ----------
    read
        Returns at most so many further bytes of the file, none at its end.
    compression
        How it is compressed.
    size
        The most bytes to which one step unpacks gzip.

    Raises
    ------
    DamageError
        After the last bytes that could be unpacked.
    """
    return _gunzip(read, size) if compression == "gz" else _unzstd(read)


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


def _gunzip(read: Callable[[int], bytes], size: int) -> Iterator[bytes]:
    """Unpack the members of a gzip file; zeros after the last are padding."""
    packed = read(1 << 16)
    while packed:
        member = zlib.decompressobj(wbits=31)
        try:
            while not member.eof:
                if part := member.decompress(packed, size):
                    yield part
                packed = member.unconsumed_tail or (b"" if member.eof else read(1 << 16))
                if not packed and not member.eof:
                    # an empty input flushes what the last block still holds
                    if part := member.decompress(b"", size):
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


def _truncated(format: str) -> Damage:
    return Damage("truncated_compression", f"the {format} stream ends early")


def _damaged(format: str, error: Exception) -> Damage:
    return Damage("damaged_compression", f"the {format} stream is damaged ({error})")
