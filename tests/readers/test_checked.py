"""Readers with the bounds of every access checked."""

import os
import subprocess
import sys

BEYOND = """
import numpy as np
from fastscore_readers.json.line_ends import _note_begins
try:
    _note_begins(np.zeros(100, np.uint8), np.zeros(1, np.uint32))
except IndexError as error:
    print(error)
"""


def test_an_access_out_of_bounds_names_kernel_index_and_length() -> None:
    run = subprocess.run(
        [sys.executable, "-c", BEYOND],
        env={**os.environ, "FASTSCORE_CHECKED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == (
        "kernel `fastscore_readers.json.line_ends:_note_begins` touches 256 items at index 0 of 4\n"
    )
