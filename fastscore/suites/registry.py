"""Finding suites by name: our own, and those of the entry-point group ``fastscore.suites``."""

import contextlib
import os
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from fastscore.errors import UsageError, did_you_mean
from fastscore.settings.extras import EntryPoint, entry_points, load_entry
from fastscore.suites.base import Suite

GROUP = "fastscore.suites"
OWN = ("group_travel", "guest_simulation", "memory_finance", "preference_shift", "score_dialogue")
_DIALOGUES = "dialogues"


@cache
def _entries() -> Mapping[str, EntryPoint]:
    found = {name: EntryPoint(name, f"{__package__}.{name}:SUITE") for name in OWN}
    for entry in entry_points(group=GROUP):
        earlier = found.setdefault(entry.name, entry)
        if earlier.value != entry.value:
            raise UsageError(
                f"Two installed suites are called {entry.name!r}: {earlier.value} and "
                f"{entry.value}.",
                "Uninstall one of the packages that declare them.",
            )
    return found


_declared_here: dict[str, Suite] = {}
"""Suites that this process declared by ``@fastscore.suite``. Workers do not find them."""


def declare(suite: Suite) -> None:
    """Make a suite known in this process, after checking it."""
    _check(suite)
    _declared_here[suite.name] = suite


_scored_elsewhere: dict[str, Suite] = {}


def declare_scored(suite: Suite) -> None:
    """Make a suite known whose scores are read and never computed: no list has it."""
    _check(suite)
    _scored_elsewhere[suite.name] = suite


def is_installed(name: str) -> bool:
    """Tell whether a suite is in a package, where workers find it too."""
    return name in _entries()


def suite_names() -> tuple[str, ...]:
    """Return the names of all installed and declared suites, sorted."""
    return tuple(sorted({*_entries(), *_declared_here}))


_POLARS = re.compile(r"polars-\d")
_started: list[str] = []
_lost: list[str] = []


def _note_threads() -> None:
    """Note the threads of polars that have started, before a fork (Linux)."""
    with contextlib.suppress(OSError):  # a thread may end meanwhile
        names = (path.read_text() for path in Path("/proc/self/task").glob("*/comm"))
        _started[:] = filter(_POLARS.match, names)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_note_threads, after_in_child=lambda: _lost.extend(_started))


def check_fork() -> None:
    """Refuse a process that was forked from one with threads of polars: it would wait for ever."""
    if _lost:
        raise UsageError(
            "This process was forked after polars had started its threads, which no fork has.",
            "Use multiprocessing.get_context('spawn') or 'forkserver'.",
        )


def load_suite(name: str) -> Suite:
    """Import a suite."""
    check_fork()
    known = _declared_here | _scored_elsewhere
    return known[name] if name in known else _installed(name)


def _installed(name: str) -> Suite:
    entries = _entries()
    if name not in entries:
        raise UsageError(
            f"Unknown suite {name!r}.",
            f"{did_you_mean(name, suite_names())} For a suite of your own, import its file first, "
            "or install it with an entry point. In a shell, for mine.py: python -c 'import mine; "
            "from fastscore.cli import main; main()' COMMAND.",
        )
    entry = entries[name]
    suite = load_entry(entry, "suite")
    if not isinstance(suite, Suite):
        raise UsageError(
            f"Suite {name!r}: {entry.value} is a {type(suite).__name__}, expected a "
            "fastscore.suites.base.Suite.",
            "Declare the suite anew, as docs/design.md describes under 'Adding a suite'.",
        )
    if suite.name != name:
        raise UsageError(
            f"{entry.value} declares suite {suite.name!r}, but its entry point is called {name!r}.",
            "Give both the same name.",
        )
    _check(suite)
    return suite


def _check(suite: Suite) -> None:
    """Refuse metrics and groups without a column, and tables without the keys of dialogues."""
    columns = {table.name: table.schema for table in suite.tables}
    if _DIALOGUES not in columns:
        raise UsageError(
            f"Suite {suite.name!r} has no table {_DIALOGUES!r}; found {', '.join(columns)}."
        )
    wanted = [("metric", metric.id, metric.table) for metric in suite.metrics]
    wanted += [("group", group, _DIALOGUES) for group in suite.design.groups]
    for what, column, table in wanted:
        if column not in columns.get(table, {}):
            raise UsageError(
                f"Suite {suite.name!r}: {what} {column!r} has no column in table {table!r}.",
                "Declare the column and write it in `score`.",
            )
    several = [id for id, n in Counter(metric.id for metric in suite.metrics).items() if n > 1]
    if several:
        raise UsageError(f"Suite {suite.name!r} declares metric {several[0]!r} twice.")
    for table, schema in columns.items():
        if "dialogue" not in schema:
            raise UsageError(
                f"Suite {suite.name!r}: table {table!r} has no column 'dialogue', which names a "
                "row's dialogue in every table.",
                "Declare the column and write it in `score`.",
            )
