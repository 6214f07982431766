"""What is installed beside fastscore: entry points of packages, and their versions."""

import re
from functools import cache
from importlib import metadata
from typing import Any


def entry_points(group: str) -> metadata.EntryPoints:
    """Return the entry points of a group; packages are looked through once in a process."""
    found: metadata.EntryPoints = _installed().select(group=group)
    return found


@cache
def _installed() -> Any:
    return metadata.entry_points()


def installed_version(package: str) -> str:
    """Return the version of an installed package, without parsing all that it says of itself.

    Raises
    ------
    importlib.metadata.PackageNotFoundError
        It is not installed.
    """
    written = metadata.distribution(package).read_text("METADATA") or ""
    found = re.search(r"^Version: *(\S+)", written, re.MULTILINE)
    return found[1] if found else metadata.version(package)
