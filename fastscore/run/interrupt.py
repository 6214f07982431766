"""Ending long tasks soon: an interrupted run asks, tasks and kernels look between their pieces.

The directory's lock is held until every task of the process has ended, so that nothing commits
into a directory that another run has taken over.
"""

from fastscore_machine.stopping import StoppedError, allow_again, ask_to_stop, raise_if_stopped

__all__ = ["StoppedError", "allow_again", "ask_to_stop", "stop_if_asked"]


def stop_if_asked(done: int, total: int) -> None:
    """Raise `StoppedError` when asked to; has the form of an embedder's progress callback."""
    raise_if_stopped()
