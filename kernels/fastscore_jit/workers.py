"""Kernels compiled in other processes, all at once, and the locks that spare them double work.

A process that needs a kernel first looks for its library, and never waits to load one. What is
missing is compiled by as many processes as there are processors; the calling one, which imports
no Numba, goes on until it calls a kernel that is not there yet. A lock on each kernel that is
being compiled lets other runs wait for it instead of compiling it too: for a while, after which
they compile it themselves, for a lock may be held by a process that was stopped.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastscore_jit import objects
from fastscore_jit.compiling import CompilationError, Kernel, declared_kernels
from fastscore_jit.stopping import result_of
from fastscore_jit.threads import thread_count

_PROGRAM = "from fastscore_jit.worker import main; main()"
_MOST_QUOTED = 2_000

_lock = threading.Lock()
_requested: dict[str, Future[Path]] = {}


NO_COMPILER = (
    "Compiling kernels for this processor needs the packages numba and llvmlite. "
    "Run: pip install 'fastscore-dialogue[compile]'"
)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a compilation is.

    Attributes
    ----------
    done, total
        Kernels that are compiled, of those that were missing.
    note
        What is waited for, where something is; else nothing.
    """

    done: int
    total: int
    note: str = ""


Listener = Callable[[Progress], object]


def missing_kernels(kernels: Iterable[Kernel] | None = None) -> list[Kernel]:
    """Return the kernels, of all that are declared or of some, that have no library here."""
    chosen = declared_kernels() if kernels is None else kernels
    return [kernel for kernel in chosen if objects.find_library(kernel) is None]


def compiled_library(kernel: Kernel) -> Path:
    """Return a kernel's library, compiled now if it is missing, with those beside it."""
    found = objects.find_library(kernel)
    if found is not None:
        return found
    beside = [each for each in declared_kernels() if each.module == kernel.module]
    others = [each for each in missing_kernels(beside) if each is not kernel]
    return result_of(request([kernel, *others], _announce_once())[0])


def request(kernels: Iterable[Kernel], listener: Listener) -> list[Future[Path]]:
    """Begin to compile kernels and return at once; ``listener`` hears of each that is done.

    A kernel that this process asked for already is not compiled again.

    Returns
    -------
    list of Future
        The library of each kernel, to come.
    """
    wanted = list(kernels)
    if importlib.util.find_spec("llvmlite") is None or importlib.util.find_spec("numba") is None:
        raise CompilationError(NO_COMPILER)
    with _lock:
        new = [each for each in wanted if each.identity not in _requested]
        for kernel in new:
            _requested[kernel.identity] = Future()
        futures = [_requested[each.identity] for each in wanted]
    if new:
        _Compilation(new, listener).start()
    return futures


def _announce_once() -> Listener:
    """Return a listener that says on stderr, once, that something is compiled or awaited."""
    said: set[str] = set()

    def listen(progress: Progress) -> None:
        kernels = "1 kernel" if progress.total == 1 else f"{progress.total} kernels"
        message = progress.note or f"compiling {kernels} for this processor, once"
        if message not in said and progress.done < progress.total:
            said.add(message)
            print(f"fastscore: {message}", file=sys.stderr, flush=True)

    return listen


class _Queue:
    """Kernels to be compiled by several processes, each of which keeps what it has compiled."""

    def __init__(self, kernels: Iterable[Kernel], processes: int) -> None:
        self._open = {kernel: objects.reachable_functions(kernel) for kernel in kernels}
        self._compiled: list[set[Any]] = [set() for _ in range(processes)]
        self._lock = threading.Lock()

    def take(self, process: int) -> Iterator[Kernel]:
        """Yield the kernels that a process compiles.

        Large ones first, so that none is left to the end; rather those whose functions this process
        has compiled than those whose functions another one has.
        """
        own = self._compiled[process]
        while True:
            with self._lock:
                if not self._open:
                    return
                others = set().union(*self._compiled) - own
                kernel = max(self._open, key=lambda each: _priority(self._open[each], own, others))
                own.update(self._open.pop(kernel))
            yield kernel


def _priority(functions: dict[Any, int], own: set[Any], others: set[Any]) -> int:
    shared = sum(2 * size for each, size in functions.items() if each in own)
    doubled = sum(2 * size for each, size in functions.items() if each in others)
    return sum(functions.values()) + shared - doubled


class _Compilation:
    """Kernels that are compiled by processes, each of which asks for the next when it is done."""

    def __init__(self, kernels: list[Kernel], listener: Listener) -> None:
        self._total, self._done, self._listener = len(kernels), 0, listener
        self._notifying = threading.Lock()
        self._processes = min(thread_count(None), self._total)
        self._open = _Queue(kernels, self._processes)

    def start(self) -> None:
        self._notify()
        for number in range(self._processes):
            threading.Thread(
                target=self._run_worker,
                args=(number,),
                name=f"fastscore-compile-{number}",
                daemon=True,
            ).start()

    def _notify(self, note: str = "", done: int = 0) -> None:
        with self._notifying:
            self._done += done
            self._listener(Progress(self._done, self._total, note))

    def _run_worker(self, number: int) -> None:
        with tempfile.TemporaryFile("w+") as errors:
            worker = None
            for kernel in self._open.take(number):
                try:
                    if worker is None or worker.poll() is not None:
                        worker = _started_worker(errors.fileno())
                    library, failure = self._compiled(worker, kernel), None
                except Exception as error:
                    errors.seek(0)
                    tail = errors.read()[-_MOST_QUOTED:]
                    failure = CompilationError(
                        f"{kernel.identity} was not compiled: {error}\n{tail}"
                    )
                # whoever waits has heard of it before it goes on
                self._notify(done=1)
                with _lock:
                    future = _requested[kernel.identity]
                    if failure is not None:
                        del _requested[kernel.identity]
                if failure is None:
                    future.set_result(library)
                else:
                    future.set_exception(failure)
            if worker is not None and worker.stdin is not None:
                worker.stdin.close()
                worker.wait()

    def _compiled(self, worker: "subprocess.Popen[str]", kernel: Kernel) -> Path:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(f"{kernel.identity}\n")
        worker.stdin.flush()
        for line in worker.stdout:
            kind, _, text = line.rstrip("\n").partition(" ")
            if kind == "done":
                return Path(text)
            if kind == "failed":
                raise CompilationError(text)
            self._notify(note=text)
        raise CompilationError(f"its process ended with {worker.wait()}")


def _started_worker(errors: int) -> "subprocess.Popen[str]":
    """Start a process that compiles what it is told, for the processor level of this one."""
    level = objects.processor_level()
    settings = {
        **os.environ,
        "FASTSCORE_PROCESSOR": level.name,
        "NUMBA_CPU_NAME": level.processor,
        "NUMBA_CPU_FEATURES": level.features,
        "NUMBA_DISABLE_INTEL_SVML": "1",
        "NUMBA_DISABLE_JIT": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        env=settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )
