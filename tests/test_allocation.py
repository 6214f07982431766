"""What a command asks of the C library."""

import subprocess
import sys


def test_freed_memory_is_kept_or_the_library_left_alone() -> None:
    code = (
        "import ctypes\n"
        "from fastscore.allocation import keep_freed_memory\n"
        "keep_freed_memory()\n"
        "import numpy as np\n"
        "assert np.ones(1 << 24).sum() == 1 << 24\n"
        "ctypes.CDLL = lambda name: object()  # a library without the function\n"
        "keep_freed_memory()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
