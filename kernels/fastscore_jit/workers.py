"""Parallel compilation of kernels in other processes, with locks against duplicate work.

A process first looks for a kernel's library, and loads it without waiting. Missing kernels are
compiled by as many processes as there are processors. The calling process never imports Numba, and
continues until it calls a kernel that is not ready. A lock on each kernel lets other runs wait for
it instead of compiling it, too. After a timeout they compile it themselves, as the owner of the
lock may be suspended.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastscore_jit import objects
from fastscore_jit.declaring import CompilationError, Declaration, declared_kernels
from fastscore_jit.threads import result_of, thread_count

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
    """Progress of a compilation.

    Attributes
    ----------
    done, total
        Numbers of kernels compiled, and of kernels that were missing.
    share
        Share of the code that is compiled: half of the time is for one kernel in ten.
    note
        The reason for waiting; empty without one.
    """

    done: int
    total: int
    share: float
    note: str = ""


Listener = Callable[[Progress], object]


def missing_kernels(kernels: Iterable[Declaration] | None = None) -> list[Declaration]:
    """Return the kernels without a library here, of some kernels or of all that are declared."""
    chosen = declared_kernels() if kernels is None else kernels
    return [kernel for kernel in chosen if objects.find_library(kernel) is None]


def compiled_library(kernel: Declaration) -> Path:
    """Return a kernel's library. If it is missing, compile the missing kernels of its module."""
    found = objects.find_library(kernel)
    if found is not None:
        return found
    beside = [each for each in declared_kernels() if each.module == kernel.module]
    others = [each for each in missing_kernels(beside) if each is not kernel]
    return result_of(request([kernel, *others], _announce_once())[0])


def request(kernels: Iterable[Declaration], listener: Listener) -> list[Future[Path]]:
    """Start to compile kernels and return at once; ``listener`` is called after each.

    A kernel that this process requested before is not compiled again.

    Returns
    -------
    list of Future
        The future library of each kernel.
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


def compiling_note(count: int) -> str:
    """Return the message about kernels that are being compiled."""
    kernels = "1 kernel" if count == 1 else f"{count} kernels"
    return f"compiling {kernels} for this processor, once{objects.cache_note()}"


def _announce_once() -> Listener:
    """Return a listener that prints each message about compiling or waiting to stderr once."""
    printed: set[str] = set()

    def listen(progress: Progress) -> None:
        message = progress.note or compiling_note(progress.total)
        if message not in printed and progress.done < progress.total:
            printed.add(message)
            print(f"fastscore: {message}", file=sys.stderr, flush=True)

    return listen


class _Queue:
    """Kernels to be compiled by several processes, which cache compiled functions."""

    def __init__(self, kernels: Iterable[Declaration], processes: int) -> None:
        self._open = {kernel: objects.reachable_functions(kernel) for kernel in kernels}
        self.sizes = {name: size for each in self._open.values() for name, size in each.items()}
        self._compiled: list[set[Any]] = [set() for _ in range(processes)]
        self._lock = threading.Lock()

    def take(self, process: int) -> Iterator[tuple[Declaration, dict[Any, int]]]:
        """Yield the kernels that a process compiles, and the functions of each.

        Large kernels come first, to keep the last ones short. Kernels whose functions this process
        has compiled are preferred over those whose functions another process has.
        """
        own = self._compiled[process]
        while True:
            with self._lock:
                if not self._open:
                    return
                others = set().union(*self._compiled) - own
                kernel = max(self._open, key=lambda each: _priority(self._open[each], own, others))
                functions = self._open.pop(kernel)
                own.update(functions)
            yield kernel, functions


def _priority(functions: dict[Any, int], own: set[Any], others: set[Any]) -> int:
    shared = sum(2 * size for each, size in functions.items() if each in own)
    doubled = sum(2 * size for each, size in functions.items() if each in others)
    return sum(functions.values()) + shared - doubled


class _Compilation:
    """Kernels compiled by processes, each of which takes the next kernel when it is done."""

    def __init__(self, kernels: list[Declaration], listener: Listener) -> None:
        self._total, self._done, self._listener = len(kernels), 0, listener
        self._notifying = threading.Lock()
        self._compiled_sizes: dict[Any, int] = {}
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

    def _notify(self, note: str = "", compiled: Mapping[Any, int] | None = None) -> None:
        with self._notifying:
            if compiled is not None:
                self._done += 1
                self._compiled_sizes.update(compiled)
            # what two processes compile twice is done once: close to how long it takes
            share = sum(self._compiled_sizes.values()) / max(sum(self._open.sizes.values()), 1)
            self._listener(Progress(self._done, self._total, share, note))

    def _run_worker(self, number: int) -> None:
        with tempfile.TemporaryFile("w+") as errors:
            worker = None
            for kernel, functions in self._open.take(number):
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
                # notify the listener before any waiting thread continues
                self._notify(compiled=functions)
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

    def _compiled(self, worker: "subprocess.Popen[str]", kernel: Declaration) -> Path:
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
    """Start a process that compiles requested kernels, for this process's processor level."""
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
        [sys.executable, "-P", "-c", _PROGRAM],
        env=settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )
