"""A published number changes with its suite's version, or not at all."""

import pytest

from fastscore.api.examples import example_names
from fastscore.suites.registry import load_suite
from tests.suites.golden.numbers import differing, numbers, standing


@pytest.mark.parametrize("suite", example_names())
def test_numbers_are_those_of_the_suites_version(suite, example_run):
    expected = standing(suite)
    assert load_suite(suite).version == expected["version"], (
        "the version was raised: write its numbers by `python -m tests.suites.golden.numbers`"
    )
    changed = differing(numbers(example_run(suite)), expected["numbers"])
    assert not changed, (
        f"numbers of {suite} changed under version {expected['version']}: raise it, or undo that"
    )
