"""Memory that blocks of logs are read into, kept for the next blocks.

Fresh memory is cleared by the system page by page before it is first written, and on a virtual
machine its host may have to find each page: that can cost as much as reading the file. What is kept
is given back when nothing reads any more: a process that imports this holds none between runs.
"""

import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

_KEPT = {8 << 20: 16, 64 << 20: 4}
"""Of which sizes buffers are kept, and how many at most while nothing uses them."""

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
