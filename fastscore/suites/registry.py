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
        No suite has this name, two packages declare it, or a table of its lacks a column of a key.
    """
    entries = _entries()
    if name not in entries:
        raise UsageError(f"Unknown suite {name!r}.", nearest(name, entries))
    suite: Suite = entries[name].load()
    _check_keys(suite)
    return suite


def _check_keys(suite: Suite) -> None:
    """Refuse tables whose rows cannot be told by dialogue: the suite's author reads it."""
    for table in suite.tables:
        schema = table.schema
        for keyed in suite.tables if table.name == "dialogues" else (table, suite.tables[0]):
            for column in keyed.dialogue_key:
                if column not in schema:
                    raise UsageError(
                        f"Suite {suite.name!r}: table {table.name!r} has no column {column!r}, "
                        f"which the `dialogue_key` of table {keyed.name!r} names; expected "
                        f"{', '.join(map(repr, keyed.dialogue_key))} among its columns.",
                        "Declare the column and write it in `score`, or declare a `dialogue_key` "
                        "of columns that every table has.",
                    )
