"""Suites are found by name, and refused where their tables cannot be told by dialogue."""

import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastscore.errors import UsageError
from fastscore.settings.extras import EntryPoint
from fastscore.suites import registry
from fastscore.suites.base import Suite
from fastscore.suites.declarations import (
    Design,
    Formula,
    Metric,
    OutputColumn,
    Scale,
    Source,
    Table,
)

TURNS = Table(
    name="turns",
    grain="a turn",
    columns=tuple(
        OutputColumn(name=name, dtype=pl.String(), description="A name.")
        for name in ("file", "dialogue")
    ),
)
DIALOGUES = replace(TURNS, name="dialogues", grain="a dialogue")

METRIC = Metric(
    id="words",
    name="Words",
    table="turns",
    formula=Formula(text="words"),
    scale=Scale("neither", maximum=None),
    source="this test",
)


def suite_of(*tables: Table, **fields: Any) -> Suite:
    given = {
        "name": "short",
        "package": "json",
        "title": "Short",
        "version": 1,
        "options": object,
        "source": Source(columns=()),
        "tables": tables,
        "metrics": (),
        "read": "decoder:JSONDecoder",
        "score": len,
    }
    return Suite(**(given | fields))


def loaded(monkeypatch: pytest.MonkeyPatch, *tables: Table, **fields: Any) -> object:
    return registered(monkeypatch, suite_of(*tables, **fields))


def registered(monkeypatch: pytest.MonkeyPatch, suite: object) -> object:
    monkeypatch.setattr(EntryPoint, "load", lambda self: suite)
    point = EntryPoint("short", "short:SUITE")
    monkeypatch.setattr(registry, "_entries", lambda: {"short": point})
    return registry.load_suite("short")


def test_a_table_that_does_not_name_dialogues_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    message = r"Suite 'short': table 'turns' has no column 'dialogue', which names a row's dialogue"
    with pytest.raises(UsageError, match=message):
        loaded(monkeypatch, replace(TURNS, columns=TURNS.columns[:1]), DIALOGUES)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "long"}, "declares suite 'long', but its entry point is called 'short'"),
        ({"metrics": (METRIC,)}, "metric 'words' has no column in table 'turns'"),
        ({"design": Design(groups=("model",))}, "group 'model' has no column in table 'dialogues'"),
        ({"tables": (TURNS,)}, "Suite 'short' has no table 'dialogues'; found turns"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        loaded(monkeypatch, TURNS, DIALOGUES, **fields)


def test_a_metric_that_is_declared_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    named = replace(METRIC, id="dialogue")
    with pytest.raises(UsageError, match="Suite 'short' declares metric 'dialogue' twice"):
        loaded(monkeypatch, TURNS, DIALOGUES, metrics=(named, named))


def test_what_is_no_suite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UsageError, match=r"short:SUITE is a dict, expected a fastscore\.suites\.base\.Suite"
    ):
        registered(monkeypatch, {})
    monkeypatch.undo()
    point = EntryPoint("gone", "fastscore_gone:SUITE")
    monkeypatch.setattr(registry, "_entries", lambda: {"gone": point})
    with pytest.raises(UsageError, match="fastscore_gone:SUITE cannot be imported"):
        registry.load_suite("gone")


def test_a_suite_in_a_module_finds_no_function() -> None:
    suite = suite_of(TURNS, DIALOGUES)
    assert (suite.package, suite.show, suite.texts_in_logs) == ("json", None, None)
    alone = suite_of(TURNS, DIALOGUES, package="json.tool")
    assert alone.show is None


def test_a_function_is_imported_on_first_use_and_kept() -> None:
    suite = suite_of(TURNS, DIALOGUES, read="tool:main")
    sys.modules.pop("json.tool", None)
    assert suite.evidence is None
    assert suite.score is len
    assert "json.tool" not in sys.modules
    first = suite.read
    assert first is sys.modules["json.tool"].main
    sys.modules.pop("json.tool")
    assert suite.read is first


def test_a_function_that_is_not_there_is_named() -> None:
    suite = suite_of(TURNS, DIALOGUES, read="tool:gone")
    with pytest.raises(UsageError, match=r"read is 'tool:gone', but json\.tool has no 'gone'"):
        _ = suite.read
    with pytest.raises(UsageError, match="score is 'score', expected a function or 'module:func"):
        suite_of(TURNS, DIALOGUES, score="score")
    with pytest.raises(TypeError, match="read"):
        Suite(name="short")
    with pytest.raises(FrozenInstanceError):
        suite.read = len


def test_loading_the_suites_imports_none_of_their_functions() -> None:
    program = (
        "import sys; from fastscore.suites.registry import load_suite, suite_names; "
        "[load_suite(name) for name in suite_names()]; "
        "print(sorted(name for name in sys.modules if name.startswith('fastscore.suites.') and "
        "name.rpartition('.')[2] in ('events', 'score', 'summarise', 'explain', 'show')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_another_package_declares_a_suite(tmp_path: Path) -> None:
    declared = tmp_path / "short-1.0.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text("Metadata-Version: 2.1\nName: short\nVersion: 1.0\n")
    (declared / "entry_points.txt").write_text("[fastscore.suites]\nshort = short:SUITE\n")
    named = "from fastscore.suites.registry import suite_names; print(*suite_names())"
    found = subprocess.run(
        [sys.executable, "-c", named],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == [*sorted({*registry.OWN, "short"})]


def test_help_does_not_import_what_reads_packages() -> None:
    command = (
        "import sys; from fastscore.cli import suite_verbs; print(*suite_verbs()); "
        "print('importlib.metadata' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["catalogue", "False"]
