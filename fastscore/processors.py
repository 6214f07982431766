"""How many processors this process may use."""

import os


def available_processors() -> int:
    """Count the processors that the process may run on; all of them where none can say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
