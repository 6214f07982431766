"""Ending long kernels soon: a flag in memory that they look at between pieces of their work.

Whoever is interrupted sets it (`request_stop`); a kernel that finds it set returns at once, and
its caller raises `StoppedError`, so that nothing of an unfinished result is used. A run has a flag
of its own (`own_stop_flag`), which the threads that it begins share: another run of the same
process, in another thread, ends by its own.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, ParamSpec, TypeVar

import numpy as np

from fastscore_jit import llvm
from fastscore_jit.arrays import Int64Array
from fastscore_jit.compiling import instruction

Given = ParamSpec("Given")
Result = TypeVar("Result")

_PROCESS_FLAG = np.zeros(1, np.int64)
_STOP_FLAG: ContextVar[Int64Array] = ContextVar("fastscore_stop_flag", default=_PROCESS_FLAG)
_open_flags: dict[int, Int64Array] = {}

POLL_SECONDS = 0.1
"""How often a main thread that waits lets Python look for signals."""

_SIGNALLED = 2


class StoppedError(Exception):
    """Work ended early because it was interrupted."""


@contextmanager
def own_stop_flag() -> Iterator[None]:
    """Give this thread, and those that a `StoppablePool` begins for it, a flag of their own."""
    flag = np.zeros(1, np.int64)
    _open_flags[id(flag)] = flag
    if was_signalled():
        flag[0] = _SIGNALLED
    token = _STOP_FLAG.set(flag)
    try:
        yield
    finally:
        _STOP_FLAG.reset(token)
        del _open_flags[id(flag)]


def stop_flag() -> Int64Array:
    """Return the flag of what this thread works for, which kernels take: not zero is stop."""
    return _STOP_FLAG.get()


def request_stop(*, signalled: bool = False) -> None:
    """Ask the kernels and tasks of this run to end; those of the process when signalled."""
    if not signalled:
        stop_flag()[0] = max(int(stop_flag()[0]), 1)
        return
    for flag in (_PROCESS_FLAG, *_open_flags.values()):
        flag[0] = _SIGNALLED


def clear_stop() -> None:
    """Let work run again, after all of it has ended; what a signal asked for stays."""
    stop_flag()[0] = 0
    if was_signalled():  # meanwhile, too
        stop_flag()[0] = _SIGNALLED


def was_signalled() -> bool:
    """Tell whether a signal has asked this process to end."""
    return bool(_PROCESS_FLAG[0] == _SIGNALLED)


def raise_if_stopped() -> None:
    """Raise `StoppedError` when asked to stop."""
    if stop_flag()[0]:
        raise StoppedError


class StoppablePool(ThreadPoolExecutor):
    """Threads whose work ends when what they work for is asked to."""

    def submit(
        self, work: Callable[Given, Result], /, *given: Given.args, **named: Given.kwargs
    ) -> Future[Result]:
        """Do work in a thread, with the flag of the one that asks for it."""
        context = copy_context()
        return super().submit(lambda: context.run(work, *given, **named))


def _plain_is_stopped(flag: Any) -> bool:
    return bool(flag[0])


@instruction("array -> int64", plain=_plain_is_stopped)
def is_stopped(builder: Any, flag: Any) -> Any:
    """Read the flag anew, whatever the compiler knows of it."""
    place = llvm.pointer(builder, flag, llvm.number(64))
    return builder.load_atomic(place, "monotonic", 8)


def result_of(future: Future[Result]) -> Result:
    """Wait for a result, and look meanwhile whether it is still wanted.

    A handler that others have put before Python's may leave a wait without an end as it is.
    """
    while not wait([future], POLL_SECONDS).done:
        raise_if_stopped()
    return future.result()


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

    worker = threading.Thread(
        target=copy_context().run, args=(run,), name="fastscore-interruptible"
    )
    worker.start()
    try:
        # a handler that others have put before Python's may leave the wait as it is
        while worker.is_alive():
            worker.join(POLL_SECONDS)
    except BaseException:
        request_stop()
        worker.join()
        clear_stop()
        raise
    if errors:
        raise errors[0]
    return results[0]
