"""Suites as declared: found by name, complete, with families of metrics."""

import os
import sys
import tomllib
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import get_args

import polars as pl
import pytest

import fastscore
from benchmarks.example_logs import LICENCES
from fastscore.api.arguments import SuiteName
from fastscore.errors import UsageError
from fastscore.settings.extras import EntryPoint
from fastscore.suites import registry
from fastscore.suites.base import Suite, families, headline_metrics
from fastscore.suites.declarations import (
    Design,
    Formula,
    Metric,
    OutputColumn,
    Scale,
    Source,
    Table,
)
from fastscore.suites.registry import OWN, load_suite
from tests.conftest import python_process
from tests.results.conftest import SUITES

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


def suite_of(*tables, **fields):
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


def loaded(monkeypatch, *tables, **fields):
    return registered(monkeypatch, suite_of(*tables, **fields))


def registered(monkeypatch, suite):
    monkeypatch.setattr(EntryPoint, "load", lambda self: suite)
    point = EntryPoint("short", "short:SUITE")
    monkeypatch.setattr(registry, "_entries", lambda: {"short": point})
    return registry.load_suite("short")


def test_a_table_that_does_not_name_dialogues_is_refused(monkeypatch):
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
def test_a_declaration_that_contradicts_itself_is_refused(monkeypatch, fields, message):
    with pytest.raises(UsageError, match=message):
        loaded(monkeypatch, TURNS, DIALOGUES, **fields)


def test_a_metric_that_is_declared_twice_is_refused(monkeypatch):
    named = replace(METRIC, id="dialogue")
    with pytest.raises(UsageError, match="Suite 'short' declares metric 'dialogue' twice"):
        loaded(monkeypatch, TURNS, DIALOGUES, metrics=(named, named))


def test_what_is_no_suite_is_refused(monkeypatch):
    with pytest.raises(
        UsageError, match=r"short:SUITE is a dict, expected a fastscore\.suites\.base\.Suite"
    ):
        registered(monkeypatch, {})
    monkeypatch.undo()
    point = EntryPoint("gone", "fastscore_gone:SUITE")
    monkeypatch.setattr(registry, "_entries", lambda: {"gone": point})
    with pytest.raises(UsageError, match="fastscore_gone:SUITE cannot be imported"):
        registry.load_suite("gone")


def test_a_suite_in_a_module_finds_no_function():
    suite = suite_of(TURNS, DIALOGUES)
    assert (suite.package, suite.show, suite.texts_in_logs) == ("json", None, None)
    alone = suite_of(TURNS, DIALOGUES, package="json.tool")
    assert alone.show is None


def test_a_function_is_imported_on_first_use_and_kept():
    suite = suite_of(TURNS, DIALOGUES, read="tool:main")
    sys.modules.pop("json.tool", None)
    assert suite.evidence is None
    assert suite.score is len
    assert "json.tool" not in sys.modules
    first = suite.read
    assert first is sys.modules["json.tool"].main
    sys.modules.pop("json.tool")
    assert suite.read is first


def test_a_function_that_is_not_there_is_named():
    suite = suite_of(TURNS, DIALOGUES, read="tool:gone")
    with pytest.raises(UsageError, match=r"read is 'tool:gone', but json\.tool has no 'gone'"):
        _ = suite.read
    with pytest.raises(UsageError, match="score is 'score', expected a function or 'module:func"):
        suite_of(TURNS, DIALOGUES, score="score")
    with pytest.raises(TypeError, match="read"):
        Suite(name="short")
    with pytest.raises(FrozenInstanceError):
        suite.read = len


def test_loading_the_suites_imports_none_of_their_functions():
    program = (
        "import sys; from fastscore.suites.registry import load_suite, suite_names; "
        "[load_suite(name) for name in suite_names()]; "
        "print(sorted(name for name in sys.modules if name.startswith('fastscore.suites.') and "
        "name.rpartition('.')[2] in ('events', 'score', 'summarise', 'explain', 'show')))"
    )
    done = python_process(program)
    assert done.stdout == "[]\n", done.stderr


def test_another_package_declares_a_suite(tmp_path):
    declared = tmp_path / "short-1.0.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text("Metadata-Version: 2.1\nName: short\nVersion: 1.0\n")
    (declared / "entry_points.txt").write_text("[fastscore.suites]\nshort = short:SUITE\n")
    named = "from fastscore.suites.registry import suite_names; print(*suite_names())"
    found = python_process(named, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=True)
    assert found.stdout.split() == [*sorted({*registry.OWN, "short"})]


def test_help_does_not_import_what_reads_packages():
    command = (
        "import sys; from fastscore.cli import suite_verbs; print(*suite_verbs()); "
        "print('importlib.metadata' in sys.modules)"
    )
    found = python_process(command, check=True)
    assert found.stdout.split() == ["catalogue", "False"]


# --- parts of a bundled suite


ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACT = "Suites do not know each other"
BENCHMARKS = {"score_dialogue": "end_to_end"}
"""Benchmarks that have another name than their suite."""


def parts_of(suite):
    """Return what a suite should have, and whether it has it."""
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    apart = next(each["modules"] for each in contracts if each["name"] == CONTRACT)
    files = (
        f"docs/suites/{suite}.md",
        f"tests/oracles/{suite}.py",
        f"tests/suites/golden/{suite}.json",
        f"benchmarks/{BENCHMARKS.get(suite, suite)}.py",
    )
    return {
        **{name: (ROOT / name).is_file() for name in files},
        f"docs/suites/{suite}.md in mkdocs.yml": f"suites/{suite}.md"
        in (ROOT / "mkdocs.yml").read_text(),
        "a licence in benchmarks/example_logs.py": suite in LICENCES,
        "a run in SUITES of tests/results/conftest.py": suite in SUITES,
        "its headline metrics in HEADLINE of tests/suites/test_registry.py": suite in HEADLINE,
        "turns for a judge (`Suite.turns`)": load_suite(suite).turns is not None,
        "its name in SuiteName of fastscore/api/arguments.py": suite in get_args(SuiteName),
        "its options in fastscore/__init__.py": load_suite(suite).options.__name__
        in fastscore.__all__,
        f"its package in the contract {CONTRACT!r} of pyproject.toml": f"fastscore.suites.{suite}"
        in apart,
    }


@pytest.mark.parametrize("suite", OWN)
def test_a_suite_lacks_nothing(suite):
    lacking = [name for name, is_there in parts_of(suite).items() if not is_there]
    assert not lacking, f"{suite} lacks {', '.join(lacking)}"


# --- families of metrics


HEADLINE = {
    "score_dialogue": "average_U_best_early",
    "group_travel": "W1 W2 W3 M1 M2 M3 M4 M4b M5 M8 M9 M11 M12 M13 M14 M15 M16",
    "guest_simulation": "PAS BVS ORA DEI CRRS",
    "preference_shift": "cross_coherence context_retention topic_interference "
    "context_adaptation_score topic_recovery_rate avg_recovery_delay",
    "memory_finance": "key_coverage strict_key_hit_rate contradiction_rate risk_level_acc "
    "horizon_acc liquidity_acc profile_score risk_coverage strict_risk_coverage_rate "
    "compliance_label_acc severe_violation_rate rubric_hit_rate judge_score_mean",
}
"""The main tables of the source documents: of preference_shift the columns of its table of models,
of memory_finance what its section 6 asks for."""


def metric(id, **how):
    return Metric(
        id=id,
        name=id,
        formula=Formula(text=""),
        scale=Scale("higher"),
        source="",
        **how,
    )


@pytest.mark.parametrize("name", HEADLINE)
def test_headline_metrics_of_the_source_are_one_family(name):
    metrics = load_suite(name).metrics
    headline, found = headline_metrics(metrics), families(metrics)
    assert [one.id for one in headline] == HEADLINE[name].split()
    assert not any(one.role == "part" or one.same_test_as for one in headline)
    assert sorted(found) == sorted(metric.id for metric in metrics)
    tests = {test for family, test in found.values() if family == "headline"}
    assert tests == {*HEADLINE[name].split()}


COPIES = [metric("percent", same_test_as="share"), metric("one_minus", same_test_as="share")]
PLAIN = [metric("score"), metric("count", role="part")]


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        (
            [*COPIES, metric("share", role="headline"), metric("length")],
            dict.fromkeys(("percent", "one_minus", "share"), ("headline", "share"))
            | {"length": ("others", "length")},
        ),
        (COPIES, dict.fromkeys(("percent", "one_minus"), ("others", "percent"))),
        (PLAIN, {"score": ("others", "score"), "count": ("others", "count")}),
        ([], {}),
    ],
    ids=["copies", "without their original", "no headline", "none"],
)
def test_families_count_copies_once(metrics, expected):
    assert families(metrics) == expected


def test_a_suite_without_headline_metrics_shows_all_but_parts():
    assert headline_metrics(PLAIN) == (PLAIN[0],)
