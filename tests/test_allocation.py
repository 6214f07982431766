"""What a command asks of the C library, seen in the memory that it holds."""

import platform
import subprocess
import sys

import pytest

FREED = """
import numpy as np
from fastscore.allocation import give_back_freed_memory

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

blocks = [np.ones(1 << 13) for _ in range(2_000)]
last, before = blocks.pop(), held()
del blocks
give_back_freed_memory()
print(before, held())
"""


def run(code: str) -> list[int]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library is left alone")
def test_freed_memory_is_given_back() -> None:
    before, after = run(FREED)
    pages = 2_000 * (1 << 16) // 4_096
    assert before - after > pages / 2


def test_a_library_without_the_function_is_left_alone() -> None:
    run(
        "import ctypes; ctypes.CDLL = lambda name: object()\n"
        "from fastscore.allocation import give_back_freed_memory; give_back_freed_memory()"
    )
