"""The versions of Numba that the package allows were tested, and have what is used of them."""

import ast
import contextlib
import inspect
import re
import tomllib
from functools import reduce
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest
from fastscore_jit import building

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BOUND = re.compile(r"(numba|llvmlite)>=0\.(\d+),<0\.(\d+)")
BOUNDS = {
    found[1]: (int(found[2]), int(found[3]))
    for each in PROJECT["optional-dependencies"]["compile"]
    if (found := BOUND.fullmatch(each))
}


def minor(text):
    return int(text.split(".")[1])


@pytest.mark.parametrize("package", ["numba", "llvmlite"])
def test_the_bound_is_what_is_tested(package):
    least, beyond = BOUNDS[package]
    locked = re.search(rf"^{package}==(\S+)", (ROOT / "requirements/dev.lock").read_text(), re.M)
    assert beyond == minor(locked[1]) + 1
    assert least <= minor(version(package)) < beyond


def test_the_target_that_tests_the_oldest_takes_that_of_the_bound():
    assert f"OLDEST_NUMBA := 0.{BOUNDS['numba'][0]}\n" in (ROOT / "Makefile").read_text()


TWICE = "machine code is made of each function, too, which takes most of the time"
IN_ENGINE = "looks for a function in LLVM's engine, where none is, and fails"
COUNTED = "reference counting is compiled for this processor, not for the level"
INNER = {
    "cgutils.do_boundscheck": "a checked kernel does not say which index is out of bounds",
    "cgutils._StructProxy._getvalue": "an argument is no array",
    "codegen.JITCPUCodegen": TWICE,
    "codegen.JITCPUCodegen._add_module": TWICE,
    "codegen.JITCPUCodegen._library_class": TWICE,
    "codegen.JITCPUCodegen.set_env": IN_ENGINE,
    "codegen.JITCodeLibrary": TWICE,
    "codegen.JITCodeLibrary._ensure_finalized": "functions are not linked when one is asked for",
    "codegen.JITCodeLibrary._final_module": "there is no module to emit an object file of",
    "codegen.JITCodeLibrary._finalize_specific": IN_ENGINE,
    "codegen.JITCodeLibrary._optimize_final_module": TWICE,
    "codegen.JITCodeLibrary.get_pointer_to_function": IN_ENGINE,
    "compiler_lock.global_compiler_lock": "two threads compile at once",
    "cpu.CPUContext._internal_codegen": TWICE,
    "cpu.CPUTargetOptions._nrt": "references to arrays are counted in every kernel",
    "cpu.CPUTargetOptions.no_cfunc_wrapper": "a wrapper is compiled that nothing calls",
    "cpu.CPUTargetOptions.no_cpython_wrapper": "a wrapper is compiled that nothing calls",
    "registry.cpu_target": TWICE,
    "runtime.nrt.rtsys": COUNTED,
    "runtime.nrt.rtsys._library": COUNTED,
    "runtime.nrtdynmod.compile_nrt_functions": COUNTED,
    "numba.np.arrayobj.make_array": "an argument is no array",
    "numba.np.arrayobj.populate_array": "an argument is no array",
}
"""What `building` uses of Numba's inner parts, in `numba.core`, and what breaks without it."""


def holder(path):
    """Return what has the last name of a path."""
    *parts, _ = (path if path.startswith("numba.") else f"numba.core.{path}").split(".")
    for end in range(len(parts), 0, -1):
        with contextlib.suppress(ModuleNotFoundError):
            return reduce(getattr, parts[end:], import_module(".".join(parts[:end])))
    raise AssertionError(path)


@pytest.mark.parametrize(("path", "breaks"), INNER.items(), ids=INNER)
def test_numba_has_the_inner_part_without_which_something_breaks(path, breaks):
    found, name = holder(path), path.rpartition(".")[2]
    # some are set by methods only
    assert hasattr(found, name) or name in source(found), breaks


def source(found):
    return inspect.getsource(found if isinstance(found, type) else type(found))


def test_every_inner_part_that_is_used_is_named():
    """By imports from inner modules, names with an underscore, and methods that are replaced."""
    modules, used = set(), set()
    tree = ast.parse(Path(building.__file__).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba."):
            for each in node.names:
                is_module = isinstance(getattr(building, each.name), ModuleType)
                (modules if is_module else used).add(each.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            of_module = isinstance(node.value, ast.Name) and node.value.id in modules
            if of_module or (node.attr.startswith("_") and not node.attr.startswith("__")):
                used.add(node.attr)
    for ours in (building._Codegen, building._Functions):
        used |= vars(ours).keys() & vars(ours.__base__).keys()
    public = {"intrinsic"}
    used = {name for name in used if not name.startswith(("__", "_abc_"))} - public
    options = {"_nrt", "no_cfunc_wrapper", "no_cpython_wrapper"}  # given as words
    assert used | options == {path.rpartition(".")[2] for path in INNER}
