"""Ending long tasks soon: when a run is interrupted, or takes more memory than it may.

Tasks and kernels look between their pieces whether they are asked to end.

Runs of one process, in several threads, ask each their own (`own_stop_flag`); a signal asks all.

The directory's lock is held until every task of the process has ended, so that nothing commits
into a directory that another run has taken over.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context

from fastscore_jit.system import give_back_freed_memory, own_memory
from fastscore_jit.threads import StoppedError, clear_stop, raise_if_stopped, request_stop

from fastscore.logs.integrity.limits import Limits


def stop_if_asked(done: int, total: int) -> None:
    """Raise `StoppedError` when asked to; has the form of an embedder's progress callback."""
    raise_if_stopped()


MEMORY_POLL_SECONDS = 0.05
RELEASE_SECONDS = 1.5
"""What is freed counts for so long: polars' allocator gives it back within a second or so."""


@contextmanager
def limit_memory(limits: Limits, doing: str) -> Iterator[None]:
    """Stop the tasks and kernels of this run when its process takes more memory than it may.

    Memory counts that stays for `RELEASE_SECONDS`; what the C library keeps is given back before.
    """
    ended = threading.Event()
    found: list[int] = []

    def poll() -> None:
        while not ended.wait(MEMORY_POLL_SECONDS):
            if found:
                request_stop()  # again: a pool that ends takes the wish with it
            else:
                look(ended.wait)

    def look(wait: Callable[[float], object]) -> None:
        until = time.monotonic() + RELEASE_SECONDS
        while (taken := own_memory()) > limits.memory_bytes:
            if time.monotonic() > until:
                found.append(taken)
                return
            give_back_freed_memory()
            wait(MEMORY_POLL_SECONDS)

    # with this thread's context: what it works for is what is stopped
    watcher = threading.Thread(
        target=copy_context().run, args=(poll,), name="fastscore-memory", daemon=True
    )
    watcher.start()
    try:
        yield
        ended.set()
        watcher.join()
        if not found:
            look(time.sleep)
    except StoppedError:
        if not found:
            raise
    finally:
        ended.set()
        watcher.join()
        if found:
            clear_stop()
    if found:
        raise limits.exceeded(doing, found[0])
