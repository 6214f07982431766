"""Ending long tasks soon: an interrupted run asks, tasks and kernels look between their pieces.

Runs of one process, in several threads, ask each their own (`stopped_alone`); a signal asks all.

The directory's lock is held until every task of the process has ended, so that nothing commits
into a directory that another run has taken over.
"""

from fastscore_machine.stopping import (
    LOOK_SECONDS,
    StoppedError,
    allow_again,
    ask_to_stop,
    raise_if_stopped,
    stopped_alone,
)

__all__ = [
    "LOOK_SECONDS",
    "StoppedError",
    "allow_again",
    "ask_to_stop",
    "stop_if_asked",
    "stopped_alone",
]


def stop_if_asked(done: int, total: int) -> None:
    """Raise `StoppedError` when asked to; has the form of an embedder's progress callback."""
    raise_if_stopped()
