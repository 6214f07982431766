"""A bundled suite has all parts, and what it lacks is named."""

import tomllib
from pathlib import Path
from typing import get_args

import pytest

import fastscore
from benchmarks.example_logs import LICENCES
from fastscore.api.arguments import SuiteName
from fastscore.suites.registry import OWN, load_suite
from tests.results.conftest import SUITES
from tests.suites.test_families import HEADLINE

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACT = "Suites do not know each other"
BENCHMARKS = {"score_dialogue": "end_to_end"}
"""Benchmarks that have another name than their suite."""


def parts_of(suite: str) -> dict[str, bool]:
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
        "its headline metrics in HEADLINE of tests/suites/test_families.py": suite in HEADLINE,
        "turns for a judge (`Suite.turns`)": load_suite(suite).turns is not None,
        "its name in SuiteName of fastscore/api/arguments.py": suite in get_args(SuiteName),
        "its options in fastscore/__init__.py": load_suite(suite).options.__name__
        in fastscore.__all__,
        f"its package in the contract {CONTRACT!r} of pyproject.toml": f"fastscore.suites.{suite}"
        in apart,
    }


@pytest.mark.parametrize("suite", OWN)
def test_a_suite_lacks_nothing(suite: str) -> None:
    lacking = [name for name, is_there in parts_of(suite).items() if not is_there]
    assert not lacking, f"{suite} lacks {', '.join(lacking)}"
