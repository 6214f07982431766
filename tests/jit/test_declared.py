"""Declarations of kernels and their packages: names, types, flags, and imports of the compiler."""

import ast
from pathlib import Path

import fastscore_kernels
import numpy as np
import pytest
from fastscore_jit.calling import writer
from fastscore_jit.compiling import Kernel
from fastscore_jit.declaring import parse

import fastscore.suites
from fastscore.run.kernels import every_kernel
from tests.jit.processes import FOLDERS

SUITES = Path(fastscore.suites.__file__).parent
ALLOWED_FASTMATH = {"reassoc", "contract", "arcp", "afn", "nsz"}


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fastscore_kernels.nothing


def test_an_argument_of_another_type_is_refused():
    kernel = Kernel(lambda: None, "uint8[:], out(int64[:, :])", "", False)
    read, written = parse(kernel.parameters, {})
    words = []
    writer(read, "argument 1,")(np.zeros(3, np.uint8), words, [])
    assert len(words) == 1
    for kind, wrong, found in (
        (read, np.zeros(3, np.int8), "int8 of shape"),
        (read, np.zeros((3, 1), np.uint8), r"shape \(3, 1\)"),
        (read, np.zeros(6, np.uint8)[::2], "not C-contiguous"),
        (written, np.broadcast_to(np.int64(0), (1, 1)), "read-only"),
    ):
        with pytest.raises(TypeError, match=found):
            writer(kind, "argument 1,")(wrong, [], [])


def sources():
    return sorted(path for folder in [*FOLDERS, SUITES] for path in folder.rglob("*.py"))


def test_every_kernel_declares_its_types_and_flags():
    declared = 0
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            for decorator in getattr(node, "decorator_list", []):
                named = decorator.func if isinstance(decorator, ast.Call) else decorator
                if getattr(named, "id", "") != "kernel":
                    continue
                where = f"{path.name}: {node.name}"
                assert isinstance(decorator, ast.Call), where
                assert len(decorator.args) == 1, where
                given = {word.arg: ast.literal_eval(word.value) for word in decorator.keywords}
                assert given["fastmath"] is False or given["fastmath"] <= ALLOWED_FASTMATH, where
                declared += 1
    assert declared >= 15


def test_every_declared_type_can_be_read():
    for kernel in every_kernel():
        names = kernel.function.__globals__
        count = kernel.function.__code__.co_argcount
        assert len(parse(kernel.parameters, names)) == count, kernel
        parse(kernel.returns, names)


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_numba_is_the_compiler_alone():
    for path in sources():
        tree = ast.parse(path.read_text())
        found = {name.partition(".")[0] for name in imported(tree)}
        if path.name != "building.py":
            assert "numba" not in found, path
        if path.name not in ("building.py", "llvm.py", "calling.py"):
            assert "llvmlite" not in found, path


def test_raw_memory_is_touched_in_one_place():
    for path in sources():
        if path.name not in ("llvm.py", "building.py"):
            assert "inttoptr" not in path.read_text(), path
