"""Ending long kernels soon: a word in memory that they look at between pieces of their work.

Whoever is interrupted sets it (`ask_to_stop`); a kernel that finds it set returns at once, and
its caller raises `StoppedError`, so that nothing of an unfinished result is used.
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from fastscore_machine import llvm
from fastscore_machine.compiling import instruction

Result = TypeVar("Result")

STOP = np.zeros(1, np.int64)
"""Not zero when work is to end; kernels take it as an argument."""

LOOK_SECONDS = 0.1
"""How often a main thread that waits lets Python look for signals."""

_SIGNALLED = 2


class StoppedError(Exception):
    """Work ended early because it was interrupted."""


def ask_to_stop(*, signalled: bool = False) -> None:
    """Ask the kernels and tasks of this process to end; for good when a signal asked for it."""
    STOP[0] = _SIGNALLED if signalled else max(int(STOP[0]), 1)


def allow_again() -> None:
    """Let work run again, after all of it has ended; what a signal asked for stays."""
    if not was_signalled():
        STOP[0] = 0


def was_signalled() -> bool:
    """Tell whether a signal has asked this process to end."""
    return bool(STOP[0] == _SIGNALLED)


def raise_if_stopped() -> None:
    """Raise `StoppedError` when asked to stop."""
    if STOP[0]:
        raise StoppedError


def _plain_is_stopped(flag: Any) -> bool:
    return bool(flag[0])


@instruction("array -> int64", plain=_plain_is_stopped)
def is_stopped(builder: Any, flag: Any) -> Any:
    """Read the word anew, whatever the compiler knows of it."""
    place = llvm.pointer(builder, flag, llvm.number(64))
    return builder.load_atomic(place, "monotonic", 8)


def interruptible(work: Callable[[], Result]) -> Result:
    """Do what may take long so that Ctrl-C ends it.

    Python hears of a signal in its main thread alone, and there only between two calls: so the
    main thread waits while another one works.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=run, name="fastscore-interruptible")
    worker.start()
    try:
        # a handler that others have put before Python's may leave the wait as it is
        while worker.is_alive():
            worker.join(LOOK_SECONDS)
    except BaseException:
        ask_to_stop()
        worker.join()
        allow_again()
        raise
    if errors:
        raise errors[0]
    return results[0]
