"""A published number changes with its suite's version, or not at all."""

import ast
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from fastscore.api.examples import example_names
from fastscore.suites.registry import load_suite, suite_names
from tests.suites.golden.numbers import differing, numbers, standing

SUITES = Path(__file__).parents[1]
HAND_WORKED = {
    "group_travel": "group_travel/test_definitions.py",
    "guest_simulation": "guest_simulation/test_definitions.py",
    "memory_finance": "memory_finance/test_rules.py",
    "preference_shift": "preference_shift/test_definitions.py",
    "score_dialogue": "score_dialogue/test_definitions.py",
}
"""Where dialogues stand whose scores were worked out by hand from the definitions."""


@pytest.mark.parametrize("suite", example_names())
def test_numbers_are_those_of_the_suites_version(
    suite: str, example_run: Callable[[str], Path]
) -> None:
    expected = standing(suite)
    assert load_suite(suite).version == expected["version"], (
        "the version was raised: write its numbers by `python -m tests.suites.golden.numbers`"
    )
    changed = differing(numbers(example_run(suite)), expected["numbers"])
    assert not changed, (
        f"numbers of {suite} changed under version {expected['version']}: raise it, or undo that"
    )


def cases_of(path: Path) -> int:
    """Count the tests of a file, each as often as the lists it is tried on are long."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return sum(
        math.prod(
            len(mark.args[1].elts)
            for mark in test.decorator_list
            if isinstance(mark, ast.Call) and isinstance(mark.args[-1], ast.List)
        )
        for test in tests
        if test.name.startswith("test_")
    )


def test_every_suite_has_twenty_dialogues_worked_by_hand() -> None:
    assert set(HAND_WORKED) == set(example_names()) <= set(suite_names())
    found = {suite: cases_of(SUITES / path) for suite, path in HAND_WORKED.items()}
    assert min(found.values()) >= 20, found
