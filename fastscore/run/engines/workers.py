"""What worker processes do: set their threads, do tasks. Imports nothing that starts threads."""

import importlib
import os
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from fastscore.errors import FastscoreError
from fastscore.logs.integrity.limits import Limits
from fastscore.processors import THREADS_VARIABLE, available_processors
from fastscore.run.engines.engine import Done, Key
from fastscore.run.interrupt import limit_memory, own_stop_flag

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


def attempt(limits: Limits, task: Callable[[Key], Done], key: Key) -> Done | Failure:
    """Do a task within the memory that a process may take.

    An error is returned, so that it reaches the other side as it is; without its traceback, whose
    frames would hold what the task held for as long as the outcome waits to be fetched.
    """
    worker = f"A worker (host {socket.gethostname()}, process {os.getpid()})"
    try:
        with own_stop_flag(), limit_memory(limits, worker):
            return task(key)
    except FastscoreError as error:
        for each in filter(None, (error, error.__context__)):
            traceback.clear_frames(each.__traceback__)  # a cycle may hold them
        error.__context__ = error.__cause__ = error.__traceback__ = None
        return Failure(error)
    except Exception:
        return Failure(TaskError(f"in process {os.getpid()}:\n{traceback.format_exc()}"))


def result_of(outcome: Done | Failure) -> Done:
    """Return what came of an attempt, or raise its error."""
    if isinstance(outcome, Failure):
        raise outcome.error
    return outcome
