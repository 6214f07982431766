"""Ending long tasks soon: an interrupted run asks, tasks and kernels look between their pieces.

Runs of one process, in several threads, ask each their own (`own_stop_flag`); a signal asks all.

The directory's lock is held until every task of the process has ended, so that nothing commits
into a directory that another run has taken over.
"""

from fastscore_jit.stopping import (
    POLL_SECONDS,
    StoppedError,
    clear_stop,
    own_stop_flag,
    raise_if_stopped,
    request_stop,
)

__all__ = [
    "POLL_SECONDS",
    "StoppedError",
    "clear_stop",
    "own_stop_flag",
    "request_stop",
    "stop_if_asked",
]


def stop_if_asked(done: int, total: int) -> None:
    """Raise `StoppedError` when asked to; has the form of an embedder's progress callback."""
    raise_if_stopped()
