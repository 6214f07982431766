"""Readers with the bounds of every access checked."""

import os
import subprocess
import sys

import numba
import pytest

BEYOND = """
import numpy as np
from fastscore_readers.json.index import index_block, allocate_index
try:
    index_block(np.zeros(10, np.uint8), allocate_index(64), np.array([63]))
except IndexError as error:
    print(error)
"""


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_an_access_out_of_bounds_names_kernel_index_and_length() -> None:
    run = subprocess.run(
        [sys.executable, "-c", BEYOND],
        env={**os.environ, "FASTSCORE_CHECKED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == (
        "kernel `fastscore_readers.json.index:index_block` touches 64 items at index 0 of 10\n"
    )
