"""Which compiled kernels a suite's run calls, and compiling them before anything waits for them."""

import importlib
import pkgutil
import shutil
import types
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from fastscore_jit.compiling import (
    Kernel,
    Listener,
    Progress,
    compiling_note,
    missing_kernels,
    request,
)
from fastscore_jit.declaring import CompilationError, Declaration, declared_kernels
from fastscore_jit.objects import find_library, platform_folder
from fastscore_jit.threads import result_of

from fastscore.errors import FastscoreError
from fastscore.run.progress import Reporter, SilentReporter
from fastscore.suites.registry import load_suite, suite_names

PACKAGES = ("fastscore_jit", "fastscore_kernels", "fastscore_readers")
_RUN = ("fastscore.run.tasks", "fastscore.logs.plan.shards", "fastscore.suites.summary")
_VECTORS = tuple(f"fastscore.vectors.{name}" for name in ("embedder", "perplexity", "store"))
_found: set[Declaration] = set()
"""Kernels whose libraries this process has looked for and found."""


@contextmanager
def compiled(kernels: Iterable[Declaration], reporter: Reporter) -> Iterator[None]:
    """Compile what is missing of some kernels, while the body goes on; after it they are there.

    A stage of its own says so: no other stage's rate counts the time.
    """
    open_kernels = [kernel for kernel in kernels if kernel not in _found]
    missing = missing_kernels(open_kernels)
    _found.update(set(open_kernels).difference(missing))
    if not missing:
        yield
        return
    reporter.note(compiling_note(len(missing)))
    with reporter.stage("compile", len(missing)) as progress:
        done = 0

        def listen(compiled: Progress) -> None:
            nonlocal done
            if compiled.note:
                reporter.note(compiled.note)
            for _ in range(compiled.done - done):
                progress.advance({}, compiled.share)
            done = compiled.done

        asked = _requested(missing, listen)
        yield
        try:
            for future in asked:
                result_of(future)
        except CompilationError as error:
            raise FastscoreError(
                f"A kernel cannot be compiled. {error}",
                "`fastscore doctor` says what is installed; please report what it says.",
            ) from error


def _requested(kernels: list[Declaration], listener: Listener) -> list[Future[Path]]:
    try:
        return request(kernels, listener)
    except CompilationError as error:
        raise FastscoreError(str(error)) from error


def every_kernel() -> list[Declaration]:
    """Import all modules that declare kernels and return the kernels."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if found.name != "fastscore_jit.building":  # which imports Numba
                importlib.import_module(found.name)
    for suite in suite_names():
        kernels_of(suite)
    return declared_kernels()


WITHOUT_VECTORS = ("fastscore.vectors",)
_READERS = {"csv": "fastscore_readers.csv_records", "json": "fastscore_readers.json.documents"}


def unread(formats: Iterable[str]) -> tuple[str, ...]:
    """Return the modules that read other formats than those of a run's inputs."""
    return tuple(_READERS[name] for name in _READERS.keys() - set(formats))


def kernels_of(suite: str, without: tuple[str, ...] = ()) -> list[Kernel]:
    """Return the kernels that a run of the suite may call: those of the modules that it imports.

    The modules that read, score and summarise are imported, as the run itself would. ``without``
    are modules that the run does not use, by the beginning of their names.
    """
    found = load_suite(suite)
    functions = (found.read, found.score, found.summarise)
    roots = [*_RUN, *(function.__module__ for function in functions if function is not None)]
    if not set(WITHOUT_VECTORS) <= set(without):
        roots += _VECTORS  # which are imported late
    modules = _imported(tuple(roots), without)
    declared = (kernel for kernel in declared_kernels() if kernel.module in modules)
    return [kernel for kernel in declared if isinstance(kernel, Kernel)]


@cache
def _imported(roots: tuple[str, ...], without: tuple[str, ...]) -> frozenset[str]:
    """Return modules of this project and those that they take a name from."""
    found: set[str] = set()
    waiting = [*roots]
    while waiting:
        name = waiting.pop()
        if name in found or not name.startswith("fastscore") or name.startswith(without):
            continue
        found.add(name)
        module = importlib.import_module(name)
        # a package has a name for each of its modules that is imported by anyone
        for value in vars(module).values() if not hasattr(module, "__path__") else ():
            is_module = isinstance(value, types.ModuleType)
            waiting.append(str(getattr(value, "__name__" if is_module else "__module__", "")))
    return frozenset(found)


def load_kernels(suite: str, without: tuple[str, ...] = ()) -> None:
    """Load what a run of the suite may call, as of `kernels_of`; what is missing is compiled."""
    kernels = kernels_of(suite, without)
    with compiled(kernels, SilentReporter()):
        pass
    for kernel in kernels:
        kernel.load()


def compile_kernels(suites: Iterable[str], reporter: Reporter) -> list[Declaration]:
    """Compile what is missing of the kernels of some suites, of all without one; return them."""
    kernels = _chosen(suites)
    with compiled(kernels, reporter):
        pass
    return kernels


def ship_kernels(kernels: Iterable[Declaration], folder: Path) -> None:
    """Copy libraries to where a wheel takes them from."""
    place = folder / platform_folder()
    place.mkdir(parents=True, exist_ok=True)
    for kernel in kernels:
        library = find_library(kernel)
        if library is not None:
            shutil.copy(library, place)


def _chosen(suites: Iterable[str]) -> list[Declaration]:
    chosen: dict[int, Declaration] = {
        id(kernel): kernel for suite in suites for kernel in kernels_of(suite)
    }
    return list(chosen.values()) or every_kernel()
