"""What an engine is, opening one by its name, and the local engine: threads of this process.

Kernels, polars and the embedder release the interpreter lock, so threads share one model and one
set of mapped vectors.
"""

import importlib
import os
import secrets
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from fastscore_jit.threads import (
    POLL_SECONDS,
    StoppablePool,
    clear_stop,
    own_stop_flag,
    request_stop,
)

from fastscore.errors import FastscoreError, UsageError
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits, limit_memory
from fastscore.settings.extras import require
from fastscore.settings.options import THREADS_VARIABLE, available_processors

Key = TypeVar("Key")
Done = TypeVar("Done")
"""What a task returns: a receipt, or in planning what is known of some files."""
Answer = TypeVar("Answer")

Lost = Callable[[str, int], object]
"""Called with a worker that died, and how many tasks are done again for it."""

Check = Callable[[], object]
"""What a worker does before each task; raises an error if it cannot do the task."""

LOCAL = "local"
ENGINES = {LOCAL: "", "dask": "distributed", "ray": "ray"}
"""Every engine by name, with the package that it needs."""


class Engine(Protocol):
    """Does tasks, each in some process that sees the same files under the same names."""

    def map(
        self,
        task: Callable[[Key], Done],
        keys: Sequence[Key],
        *,
        exclusive: bool = False,
        lost: Lost = lambda worker, tasks: None,
    ) -> Iterator[Done]:
        """Do a task for every key; yields what they return as it comes."""

    def processes(self) -> int:
        """Count the processes that do tasks now."""

    def ask(self, question: Callable[[], Answer]) -> dict[str, Answer]:
        """Put a question to each worker that there is now; empty where there are none but us."""


def open_engine(
    name: str,
    address: str | None,
    workers: int,
    limits: Limits = DEFAULT_LIMITS,
    check: Check = lambda: None,
) -> AbstractContextManager[Engine]:
    """Open an engine for a run; threads of this process need no check."""
    if name == LOCAL and address is not None:
        raise UsageError(
            f"address is {address}, and engine is {LOCAL}.",
            "Set engine to the one that runs there: dask or ray.",
        )
    package = ENGINES[name]
    if package:
        require(name, f"engine {name}")
    if name == "ray" and address is None:
        _make_ray_token()
    if name == LOCAL:
        return nullcontext(LocalEngine(workers))
    module: Any = importlib.import_module(f"fastscore.run.engines.{name}")
    engine: AbstractContextManager[Engine] = module.open_engine(address, workers, limits, check)
    return engine


def _make_ray_token() -> None:
    """Make a token for our own Ray cluster, which Ray asks of whoever connects to it.

    Ray reads the mode when it is imported, and not again. A user's own setting is kept.
    """
    if "RAY_AUTH_MODE" not in os.environ and "ray" not in sys.modules:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


TASKS_PER_WORKER = 2


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Does tasks on threads of this process."""

    workers: int

    def map(
        self,
        task: Callable[[Key], Done],
        keys: Sequence[Key],
        *,
        exclusive: bool = False,
        lost: Lost = lambda worker, tasks: None,
    ) -> Iterator[Done]:
        """Do a task for every key; yields what they return as it comes.

        An exception in a task, in the consumer, or from the keyboard drops the tasks that have not
        started and asks the others to end; it is raised when they have.
        """
        workers = 1 if exclusive else self.workers
        pool = StoppablePool(max_workers=workers, thread_name_prefix="fastscore")
        waiting: Iterable[Key] = iter(keys)
        running: set[Future[Done]] = set()
        try:
            for key in waiting:
                running.add(pool.submit(task, key))
                if len(running) >= workers * TASKS_PER_WORKER:
                    done, running = _first_done(running)
                    yield from (future.result() for future in done)
            while running:
                done, running = _first_done(running)
                yield from (future.result() for future in done)
        except BaseException:
            request_stop()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            clear_stop()

    def processes(self) -> int:
        """Count this process."""
        return 1

    def ask(self, question: Callable[[], Answer]) -> dict[str, Answer]:
        """Ask nobody: this process is the only worker."""
        return {}


def _first_done(running: set[Future[Done]]) -> tuple[set[Future[Done]], set[Future[Done]]]:
    """Wait until a task is done.

    Polars' handler of Ctrl-C has system calls begin again, so that Python would look for signals
    only when the wait is over: it is over now and then.
    """
    done: set[Future[Done]] = set()
    while not done:
        done, running = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
    return done, running


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


def load_tasks() -> None:
    """Import what tasks import: a second or more of a process that has just begun."""
    importlib.import_module("fastscore.run.tasks")
    importlib.import_module("fastscore.logs.read.lines").keep_buffers()


class TaskError(Exception):
    """A fault of fastscore's own in a task; the message has the worker's traceback."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A task's error as a value: what an engine would make of an exception differs."""

    error: Exception


def attempt(limits: Limits, check: Check, task: Callable[[Key], Done], key: Key) -> Done | Failure:
    """Do a task within the memory that a process may take.

    An error is returned, so that it reaches the other side as it is; without its traceback, whose
    frames would hold what the task held for as long as the outcome waits to be fetched.
    """
    worker = f"A worker (host {socket.gethostname()}, process {os.getpid()})"
    try:
        with own_stop_flag(), limit_memory(limits, worker):
            check()
            return task(key)
    except FastscoreError as error:
        for each in filter(None, (error, error.__context__)):
            traceback.clear_frames(each.__traceback__)  # a cycle may hold them
        error.__context__ = error.__cause__ = error.__traceback__ = None
        return Failure(error)
    except Exception:
        return Failure(TaskError(f"in process {os.getpid()}:\n{traceback.format_exc()}"))


def done_or_raise(outcome: Done | Failure) -> Done:
    """Return what came of an attempt, or raise its error."""
    if isinstance(outcome, Failure):
        raise outcome.error
    return outcome
