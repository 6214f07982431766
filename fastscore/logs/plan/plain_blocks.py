"""Blocks of a plain file: each is read, hashed and looked at by one thread, from its cache."""

import os
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from fastscore.logs.read.batches import map_ordered
from fastscore.logs.read.blocks import unreadable

_BLOCK_BYTES = 4 << 20

Result = TypeVar("Result")


def map_blocks(
    path: str,
    observe: Callable[[memoryview], object],
    look: Callable[[int, memoryview], Result],
    threads: int,
) -> Iterator[Result]:
    """Yield, in order, what is seen in the blocks of a file that is not compressed.

    Parameters
    ----------
    path
        The file.
    observe
        Called with each block, in order, by one thread at a time.
    look
        Called with each block's place in the file and the block, which is overwritten afterwards.
    threads
        How many threads look at blocks; the blocks do not depend on it.

    Raises
    ------
    InputError
        When the file cannot be read.
    """
    own = threading.local()

    def look_at(begin: int, before: threading.Event, after: threading.Event) -> Result:
        try:
            if not hasattr(own, "buffer"):
                own.buffer = np.empty(min(size, _BLOCK_BYTES), np.uint8).data
            block = _read(file.fileno(), begin, own.buffer)
            before.wait()
            observe(block)
        finally:
            after.set()
        return look(begin, block)

    try:
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            begins = range(0, size, _BLOCK_BYTES)
            turns = _ordering_events(begins)
            yield from map_ordered(lambda turn: look_at(*turn), turns, min(threads, len(begins)))
    except OSError as error:
        raise unreadable(path, error) from error


def _read(file: int, begin: int, buffer: memoryview) -> memoryview:
    """Fill a buffer, less at the file's end, and return what is filled."""
    filled = 0
    while count := os.preadv(file, [buffer[filled:]], begin + filled):
        filled += count
    return buffer[:filled]


def _ordering_events(begins: range) -> Iterator[tuple[int, threading.Event, threading.Event]]:
    """Give each block what tells that the one before, and that itself was observed."""
    before = threading.Event()
    before.set()
    for begin in begins:
        after = threading.Event()
        yield begin, before, after
        before = after
