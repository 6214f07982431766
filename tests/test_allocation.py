"""A command's use of the C library's allocator, measured by its memory."""

import platform
import subprocess
import sys

import pytest

FREED = """
import numpy as np
from fastscore_jit.system import give_back_freed_memory

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

blocks = [np.ones(1 << 13) for _ in range(2_000)]
last, before = blocks.pop(), held()
del blocks
give_back_freed_memory()
print(before, held())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library is left alone")
def test_freed_memory_is_given_back():
    words = [sys.executable, "-c", FREED]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    pages = 2_000 * (1 << 16) // 4_096
    assert before - after > pages / 2
