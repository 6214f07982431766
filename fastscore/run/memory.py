"""Keeping a stage within its memory: what the process has taken is looked at while it works."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fastscore.allocation import give_back_freed_memory
from fastscore.logs.integrity.limits import Limits, own_memory
from fastscore.run.interrupt import StoppedError, allow_again, ask_to_stop

LOOK_SECONDS = 0.05


@contextmanager
def kept_within(limits: Limits, stage: str) -> Iterator[None]:
    """Stop the tasks and kernels of this process when it takes more memory than it may.

    What was freed but kept for later is given back before that.

    Raises
    ------
    MemoryLimitError
        A stage took more, even where it ended before it was stopped.
    """
    ended = threading.Event()
    found: list[int] = []

    def watch() -> None:
        while not ended.wait(LOOK_SECONDS) and not found:
            look()

    def look() -> None:
        if own_memory() <= limits.memory_bytes:
            return
        give_back_freed_memory()
        taken = own_memory()
        if taken > limits.memory_bytes:
            found.append(taken)
            ask_to_stop()

    watcher = threading.Thread(target=watch, name="fastscore-memory", daemon=True)
    watcher.start()
    try:
        yield
        look()
    except StoppedError:
        if not found:
            raise
    finally:
        ended.set()
        watcher.join()
        if found:
            allow_again()
    if found:
        raise limits.exceeded(f"The stage {stage!r}", found[0])
