"""Memory that the C library keeps after it is freed."""

import contextlib
import ctypes


def give_back_freed_memory() -> None:
    """Give back what is freed, where the C library is glibc."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
