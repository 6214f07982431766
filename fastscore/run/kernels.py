"""Which compiled kernels a suite's run calls, and compiling them before anything waits for them."""

import importlib
import pkgutil
import sys
import types
from collections.abc import Iterator
from typing import Any

from fastscore_machine.compiling import Kernel, declared_kernels

from fastscore.suites.registry import load_suite, suite_names

PACKAGES = ("fastscore_machine", "fastscore_kernels", "fastscore_readers")
_COMPILERS = ("building", "bounds", "worker")
_RUN = ("fastscore.run.tasks", "fastscore.logs.plan.shards", "fastscore.logs.read")
_SUITE = ("events", "score", "summarise")


def every_kernel() -> list[Kernel]:
    """Import all modules that declare kernels and return the kernels."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if found.name.rpartition(".")[2] not in _COMPILERS:
                importlib.import_module(found.name)
    for suite in suite_names():
        kernels_of(suite)
    return declared_kernels()


def kernels_of(suite: str) -> list[Kernel]:
    """Return the kernels that a run of the suite may call: those its modules and the readers reach.

    What the modules that read, score and summarise import is imported, as the run itself would.
    """
    package = type(load_suite(suite)).__module__
    roots = [*_RUN, *(f"{package}.{name}" for name in _SUITE)]
    modules = [module for name in roots if (module := _imported(name)) is not None]
    reached: dict[int, Any] = {}
    for module in modules:
        for value in vars(module).values():
            _reach(value, reached)
    return [value for value in reached.values() if isinstance(value, Kernel)]


def _imported(name: str) -> types.ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return None


def _reach(value: Any, reached: dict[int, Any]) -> None:
    """Follow what functions and classes of this project name, down to kernels."""
    open_values = [value]
    while open_values:
        found = open_values.pop()
        if id(found) in reached or not _is_followed(found):
            continue
        reached[id(found)] = found
        if isinstance(found, dict):
            open_values += found.values()
        elif isinstance(found, tuple | list):
            open_values += found
        elif isinstance(found, type):
            open_values += vars(found).values()
        elif not isinstance(found, Kernel):
            function = getattr(found, "__func__", found)
            open_values += _named(function)


def _is_followed(value: Any) -> bool:
    if isinstance(value, Kernel | dict | tuple | list):
        return True
    if not isinstance(value, type | types.FunctionType | classmethod | staticmethod):
        return False
    return str(getattr(value, "__module__", "")).startswith("fastscore")


def _named(function: types.FunctionType) -> Iterator[Any]:
    """Yield the values that a function's code names: globals, members of modules, imports."""
    names = set(_names(function.__code__))
    modules = [sys.modules[name] for name in names if name in sys.modules]
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            modules.append(value)
        elif value is not None:
            yield value
    for module in modules:
        if module.__name__.startswith("fastscore"):
            yield from (vars(module).get(name) for name in names)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
