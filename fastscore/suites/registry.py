"""Finding suites by name through the entry-point group ``fastscore.suites``."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint

from fastscore.errors import UsageError, nearest
from fastscore.plugins import entry_points
from fastscore.suites.base import Suite

GROUP = "fastscore.suites"


@cache
def _entries() -> Mapping[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        earlier = found.setdefault(entry.name, entry)
        if earlier.value != entry.value:
            raise UsageError(
                f"Two installed suites are called {entry.name!r}: {earlier.value} and "
                f"{entry.value}.",
                "Uninstall one of the packages that declare them.",
            )
    return found


def suite_names() -> tuple[str, ...]:
    """Return the names of all installed suites, sorted."""
    return tuple(sorted(_entries()))


def load_suite(name: str) -> Suite:
    """Import an installed suite.

    Raises
    ------
    UsageError
        No suite has this name, or two packages declare it.
    """
    entries = _entries()
    if name not in entries:
        raise UsageError(f"Unknown suite {name!r}.", nearest(name, entries))
    suite: Suite = entries[name].load()
    return suite
