"""What installed packages add to fastscore: entry points, looked for once in a process."""

from functools import cache
from importlib import metadata
from typing import Any


def entry_points(group: str) -> metadata.EntryPoints:
    """Return the entry points of a group that installed packages declare."""
    return _installed().select(group=group)


@cache
def _installed() -> Any:
    return metadata.entry_points()
