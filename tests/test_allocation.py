"""What a command asks of the C library, seen in the pages that the system clears for it."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(1 << 22, np.uint64)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(*(faults() for _ in range(3)))
"""
KEEP = "from fastscore.allocation import keep_freed_memory; keep_freed_memory()"
GIVE_BACK = "from fastscore.allocation import give_back_freed_memory; give_back_freed_memory()"


def faults(*code: str) -> list[int]:
    """Return how many pages were new to each of three arrays, the one before freed each time."""
    words = [sys.executable, "-c", "\n".join(code)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library is left alone")
def test_freed_memory_is_kept_for_the_next_array() -> None:
    first, *others = faults(KEEP, FAULTS)
    assert max(others) < first / 2
    first, *others = faults(FAULTS)  # each array is fresh memory
    assert min(others) > first / 2


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library is left alone")
def test_kept_memory_is_given_back_when_asked_for() -> None:
    kept = faults(KEEP, FAULTS, GIVE_BACK, "print(faults())")
    assert kept[3] > kept[0] / 2


def test_a_library_without_the_functions_is_left_alone() -> None:
    without = "import ctypes; ctypes.CDLL = lambda name: object()"
    assert len(faults(without, KEEP, GIVE_BACK, FAULTS)) == 3
