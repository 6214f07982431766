"""The versions of Numba and llvmlite that the package allows are those that were tested."""

import inspect
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.jit.processes import compiled_only

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BOUND = re.compile(r"(numba|llvmlite)>=0\.(\d+),<0\.(\d+)")
BOUNDS = {
    found[1]: (int(found[2]), int(found[3]))
    for each in PROJECT["optional-dependencies"]["compile"]
    if (found := BOUND.fullmatch(each))
}


def minor(text: str) -> int:
    return int(text.split(".")[1])


@pytest.mark.parametrize("package", ["numba", "llvmlite"])
def test_the_bound_is_what_is_tested(package: str) -> None:
    least, beyond = BOUNDS[package]
    locked = re.search(rf"^{package}==(\S+)", (ROOT / "requirements/dev.lock").read_text(), re.M)
    assert locked is not None
    assert beyond == minor(locked[1]) + 1
    assert least <= minor(version(package)) < beyond


def test_the_target_that_tests_the_oldest_takes_that_of_the_bound() -> None:
    assert f"OLDEST_NUMBA := 0.{BOUNDS['numba'][0]}\n" in (ROOT / "Makefile").read_text()


@compiled_only
def test_every_pass_that_is_left_out_is_one_of_numbas() -> None:
    from fastscore_jit import building

    passes = inspect.getsource(building.compiler.DefaultPassBuilder)
    assert len(building._SKIPPED_PASSES) == 11
    for each in building._SKIPPED_PASSES:
        assert each.__name__ in passes
