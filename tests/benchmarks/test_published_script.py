"""The benchmark's peer reproduces the published script, digit for digit."""

import json
from pathlib import Path

import pytest

from tests.oracles.published_script import score_log

GOLDEN = Path(__file__).parents[1] / "suites" / "score_dialogue" / "golden"


def expected(name):
    return json.loads((GOLDEN / f"{name}.expected.json").read_text())


@pytest.mark.parametrize("stem", ["a", "b", "empty_steps"])
def test_lexical_scores_are_the_published_ones(stem, monkeypatch):
    monkeypatch.chdir(GOLDEN)
    assert score_log(Path(f"{stem}.jsonl"), None, 1.0) == expected(f"{stem}.lex1.0")
