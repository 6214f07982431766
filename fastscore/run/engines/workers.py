"""What a worker process is told before its first task. Imports nothing that starts threads."""

import os
import sys

from fastscore.processors import THREADS_VARIABLE, available_processors

_POLARS_THREADS = "POLARS_MAX_THREADS"


def thread_variables(threads: int) -> dict[str, str]:
    """Return the environment of a process that computes on so many threads."""
    return {THREADS_VARIABLE: str(threads), _POLARS_THREADS: str(threads)}


def set_threads(threads: int) -> None:
    """Set how many threads this process computes on; polars listens before it is imported."""
    os.environ[THREADS_VARIABLE] = str(threads)
    if "polars" not in sys.modules:
        os.environ[_POLARS_THREADS] = str(threads)


def threads_each(processes: int) -> int:
    """Return how many threads each of some processes has when they share this machine."""
    return max(1, available_processors() // processes)
