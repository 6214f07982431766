"""Ending long tasks soon: an interrupted run asks, tasks look between their batches.

The directory's lock is held until every task of the process has ended, so that nothing commits
into a directory that another run has taken over.
"""

import threading

_stopping = threading.Event()


class StoppedError(Exception):
    """A task ended early because its run was interrupted or another task failed."""


def ask_to_stop() -> None:
    """Ask the tasks of this process to end."""
    _stopping.set()


def allow_again() -> None:
    """Let tasks run again, after all of them have ended."""
    _stopping.clear()


def stop_if_asked(done: int, total: int) -> None:
    """Raise `StoppedError` when asked to; has the form of an embedder's progress callback."""
    if _stopping.is_set():
        raise StoppedError
