"""Limits of reading: the length of a record, the unpacked size, and memory.

Exceeding a limit is an error or a reject, and never skips data silently. Memory is this process's
private memory, checked between parts of the input. Mapped files do not count.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass

from fastscore_jit.system import give_back_freed_memory, machine_memory, own_memory
from fastscore_jit.threads import StoppedError, clear_stop, request_stop

from fastscore.errors import InputError, MemoryLimitError
from fastscore.files import SMALL_BYTES, USUAL_RATIO

MAX_RECORD_BYTES = 64 << 20
"""Maximum size of a line, a CSV record, an element of a document or the texts of a Parquet row."""

MEMORY_SHARE = 0.75
"""Default limit of memory, as a share of the machine's."""

SHARD_MEMORY = 16
"""Approximate memory of scoring a shard / its bytes."""

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run."""

    memory: int | None = None  # maximum memory in MiB, None for `MEMORY_SHARE` of the machine's
    unpacked: int = 100 << 10  # maximum unpacked size of one compressed file in MiB
    ratio: float = USUAL_RATIO  # maximum ratio of unpacked to packed size, beyond 64 MiB

    @property
    def memory_bytes(self) -> int:
        """The maximum memory in bytes."""
        if self.memory is None:
            return int(MEMORY_SHARE * machine_memory())
        return self.memory * _MIB

    def check_memory(self, reading: str, more: int = 0) -> None:
        """Raise `MemoryLimitError` if the process exceeds the limit with additional bytes."""
        if own_memory() + more > self.memory_bytes:
            give_back_freed_memory()
            taken = own_memory() + more
            if taken > self.memory_bytes:
                raise self.exceeded(f"Reading {reading}", taken)

    def exceeded(self, doing: str, taken: int) -> MemoryLimitError:
        """Return the error for exceeding a limit of bytes."""
        return MemoryLimitError(
            f"{doing} takes {taken / _MIB:,.0f} MiB of memory, more than "
            f"max_memory allows ({self.memory_bytes / _MIB:,.0f} MiB).",
            "Allow more, or take fewer workers: the same command goes on with what a run has "
            "committed. With a smaller shard_size it begins again, and keeps its vectors.",
        )

    def check_unpacked(self, path: str, packed: int, unpacked: int) -> None:
        """Raise `InputError` if a compressed file of ``packed`` bytes unpacks to too much."""
        if unpacked > self.unpacked * _MIB:
            raise InputError(
                f"The file {path!r} unpacks to more than {self.unpacked:,} MiB, the most that "
                "max_unpacked allows.",
                "Raise it if the file is what it should be.",
            )
        if unpacked > SMALL_BYTES and unpacked > self.ratio * max(packed, 1):
            raise InputError(
                f"The file {path!r} of {packed:,} bytes unpacks to more than {self.ratio:g} times "
                f"as much ({unpacked:,} bytes so far), the most that max_ratio allows.",
                "Raise it if the file is what it should be.",
            )


DEFAULT_LIMITS = Limits()


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
