"""Kernels become object files for systems that are not here, and ask little of those."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import NIGHTLY
from tests.jit.lowered import SETTINGS, TRIPLES, defined, undefined

ROOT = Path(__file__).parents[2]
SOME = ("fastscore_kernels.file_rows:_read_rows", "fastscore_kernels.inequality:_gini")
C_LIBRARY = {"bzero", "free", "malloc", "memcpy", "memset"}
OF_SYSTEM = {"windows": {"ReadFile", "_get_osfhandle"}, "linux": {"pread"}, "darwin": {"pread"}}


def test_kernels_call_nothing_but_the_c_library(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "tests.jit.lowered", str(tmp_path), *(() if NIGHTLY else SOME)],
        env={**os.environ, **SETTINGS},
        cwd=ROOT,
        check=True,
    )
    made = sorted(tmp_path.iterdir())
    assert len(made) >= (60 if NIGHTLY else len(SOME)) * len(TRIPLES)
    for path in made:
        code = path.read_bytes()
        system = next(name for name in OF_SYSTEM if name in path.name)
        assert undefined(code) <= C_LIBRARY | OF_SYSTEM[system], path.name
        assert "fastscore_kernel" in defined(code), path.name


def test_names_of_this_system_are_read_as_its_own_tools_read_them(tmp_path):
    source = tmp_path / "code.c"
    source.write_text(
        "int other(void); int shared; static int own; int mine(void) {return other();}"
    )
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("there is no C compiler here")
    subprocess.run([compiler, "-c", source, "-o", tmp_path / "code.o"], check=True)
    code = (tmp_path / "code.o").read_bytes()
    assert undefined(code) == {"other"}
    assert defined(code) >= {"mine", "shared"}
    assert "own" not in undefined(code) | defined(code)
