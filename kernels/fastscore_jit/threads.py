"""Runs chunks of rows on threads, and stops long kernels early by a flag that they check.

An interruption sets the flag (`request_stop`). A kernel that finds it set returns at once. Its
caller raises `StoppedError`, so unfinished results are never used. Each run has its own flag
(`own_stop_flag`), shared by its threads, so runs in other threads of the process continue.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, ParamSpec, TypeVar

import numpy as np

from fastscore_jit import llvm
from fastscore_jit.arrays import Int64Array
from fastscore_jit.declaring import instruction
from fastscore_jit.system import processors

Given = ParamSpec("Given")
Result = TypeVar("Result")

_PROCESS_FLAG = np.zeros(1, np.int64)
_STOP_FLAG: ContextVar[Int64Array] = ContextVar("fastscore_stop_flag", default=_PROCESS_FLAG)
_open_flags: dict[int, Int64Array] = {}

POLL_SECONDS = 0.1
"""Interval at which a waiting main thread lets Python handle signals."""

_SIGNALLED = 2


class StoppedError(Exception):
    """Work ended early because it was interrupted."""


@contextmanager
def own_stop_flag() -> Iterator[None]:
    """Give this thread, and the threads that a `StoppablePool` starts for it, their own flag."""
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
    """Return this thread's stop flag, an argument of kernels; non-zero means stop."""
    return _STOP_FLAG.get()


def request_stop(*, signalled: bool = False) -> None:
    """Ask the kernels and tasks of this run to stop; after a signal, those of the process."""
    if not signalled:
        stop_flag()[0] = max(int(stop_flag()[0]), 1)
        return
    for flag in (_PROCESS_FLAG, *_open_flags.values()):
        flag[0] = _SIGNALLED


def clear_stop() -> None:
    """Allow work again after all of it has ended. A signal's request remains."""
    stop_flag()[0] = 0
    if was_signalled():  # meanwhile, too
        stop_flag()[0] = _SIGNALLED


def was_signalled() -> bool:
    """Return whether a signal has asked this process to stop."""
    return bool(_PROCESS_FLAG[0] == _SIGNALLED)


def raise_if_stopped() -> None:
    """Raise `StoppedError` if a stop was requested."""
    if stop_flag()[0]:
        raise StoppedError


class StoppablePool(ThreadPoolExecutor):
    """Thread pool whose tasks stop when the run that submitted them is stopped."""

    def submit(
        self, work: Callable[Given, Result], /, *given: Given.args, **named: Given.kwargs
    ) -> Future[Result]:
        """Run work in a thread, with the stop flag of the submitting thread."""
        context = copy_context()
        return super().submit(lambda: context.run(work, *given, **named))


@instruction("array -> int64")
def is_stopped(builder: Any, flag: Any) -> Any:
    """Read the flag from memory, which the compiler must not cache."""
    place = llvm.pointer(builder, flag, llvm.number(64))
    return builder.load_atomic(place, "monotonic", 8)


def result_of(future: Future[Result]) -> Result:
    """Wait for a result, and check for a stop meanwhile.

    Without the checks, a custom signal handler could leave the wait running forever.
    """
    while not wait([future], POLL_SECONDS).done:
        raise_if_stopped()
    return future.result()


def interruptible(work: Callable[[], Result]) -> Result:
    """Run long work so that Ctrl-C ends it.

    Python handles signals only in its main thread, between two calls. So the main thread waits
    while another thread works.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    found: Future[Result] = Future()

    def run() -> None:
        try:
            found.set_result(work())
        except BaseException as error:
            found.set_exception(error)

    worker = threading.Thread(
        target=copy_context().run, args=(run,), name="fastscore-interruptible"
    )
    worker.start()
    try:
        # a custom signal handler may not end the wait
        while worker.is_alive():
            worker.join(POLL_SECONDS)
    except BaseException:
        request_stop()
        worker.join()
        clear_stop()
        raise
    return found.result()


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
