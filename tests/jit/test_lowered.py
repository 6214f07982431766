"""Kernels become object files for systems that are not here, and ask little of those."""

import os
import subprocess
import sys
from pathlib import Path

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
