"""Contiguous chunks of rows over threads; each chunk writes its own rows of the output."""

import os
from collections.abc import Callable

from fastscore_jit.stopping import StoppablePool, interruptible
from fastscore_jit.system import processors


def thread_count(threads: int | None) -> int:
    """Return the number of threads to use: the argument, or one per usable processor.

    If several processes share the processors, ``$FASTSCORE_THREADS`` is this process's share.
    """
    if threads is None:
        told = os.environ.get("FASTSCORE_THREADS", "")
        if told.isdecimal() and int(told):
            return int(told)
        return processors()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"`threads` is {threads!r}; expected None or an integer of at least 1")
    return threads


def run_chunks(
    work: Callable[[int, int], object], rows: int, *, chunk: int, threads: int | None
) -> None:
    """Call ``work(start, stop)`` for consecutive chunks of at most ``chunk`` rows.

    ``work`` must release the GIL to run in parallel. Its results must not depend on the chunks.
    """
    count = thread_count(threads)
    if count == 1 or rows <= chunk:
        for start in range(0, rows, chunk):
            work(start, min(rows, start + chunk))
        return
    starts = range(0, rows, chunk)

    def spread() -> None:
        with StoppablePool(min(count, len(starts)), "fastscore-kernel") as pool:
            for _ in pool.map(lambda start: work(start, min(rows, start + chunk)), starts):
                pass

    interruptible(spread)
