"""How a command's memory is kept between the shards that use it."""

import ctypes
import os

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
_LARGEST = 1 << 30


def keep_freed_memory() -> None:
    """Keep what is freed for the next shard, where the C library is glibc.

    Otherwise each large array is fresh memory, which the system clears page by page; with it, a
    lexical run meets two thirds of the page faults. For a process that does nothing else, before
    it loads numpy: that would ask for large pages, more of which are cleared than are used.
    """
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    try:
        tune = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for parameter, value in (
        (_ARENA_MAX, 1),
        (_MMAP_THRESHOLD, _LARGEST),
        (_TRIM_THRESHOLD, _LARGEST),
        (_TOP_PAD, 64 << 20),
    ):
        tune(parameter, value)
