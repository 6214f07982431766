"""Bytes of logs in bounded blocks: as they are in a file, or unpacked.

Blocks are read into buffers that are kept for the next blocks. Fresh memory is cleared by the
system page by page, which can cost as much as reading the file. Buffers are given back when nothing
reads any more: a process holds none between runs.
"""

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
from fastscore_readers.json.line_ends import last_end

from fastscore.errors import InputError
from fastscore.logs.inputs.archives import open_packed
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.logs.objects import open_file
from fastscore.unpacked import Compression, DamageError, as_utf8, unpacked

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
