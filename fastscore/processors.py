"""How many processors this process may use, and what they can compute."""

import os
from functools import cache
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


def available_processors() -> int:
    """Count the processors that the process may run on; all of them where none can say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def processor_flags() -> frozenset[str]:
    """Return the names of the processor's instruction sets as Linux has them; else none."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())
