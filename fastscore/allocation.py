"""How a command's memory is kept between the shards that use it."""

import contextlib
import ctypes
import os

_LARGEST = 1 << 30
_SETTINGS = (
    (-8, "MALLOC_ARENA_MAX", 1),
    (-3, "MALLOC_MMAP_THRESHOLD_", _LARGEST),
    (-1, "MALLOC_TRIM_THRESHOLD_", _LARGEST),
    (-2, "MALLOC_TOP_PAD_", 64 << 20),
)
"""What `mallopt` knows by a number, and a process that begins by an environment variable."""
_LARGE_PAGES = "NUMPY_MADVISE_HUGEPAGE"


def kept_memory_variables() -> dict[str, str]:
    """Return the environment in which a process keeps freed memory from its beginning on.

    What has threads before it can call `keep_freed_memory` needs that: each thread has taken an
    arena of its own by then, and gives back what is large.
    """
    return {_LARGE_PAGES: "0", **{name: str(value) for _, name, value in _SETTINGS}}


def keep_freed_memory() -> None:
    """Keep what is freed for the next shard, where the C library is glibc.

    Otherwise each large array is fresh memory, which the system clears page by page; with it, a
    lexical run meets two thirds of the page faults. For a process that does nothing else, before
    it loads numpy: that would ask for large pages, more of which are cleared than are used.
    """
    os.environ.setdefault(_LARGE_PAGES, "0")
    try:
        tune = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for parameter, _, value in _SETTINGS:
        tune(parameter, value)


def give_back_freed_memory() -> None:
    """Give back what is freed, where the C library is glibc."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
