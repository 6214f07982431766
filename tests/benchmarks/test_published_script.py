"""The benchmark's peer reproduces the published script, digit for digit."""

import json
import os
from pathlib import Path

import pytest

from tests.oracles.published_script import SentenceTransformerSemantics, score_log

GOLDEN = Path(__file__).parents[1] / "suites" / "score_dialogue" / "golden"


def expected(name):
    return json.loads((GOLDEN / f"{name}.expected.json").read_text())


@pytest.mark.parametrize("stem", ["a", "b", "empty_steps"])
def test_lexical_scores_are_the_published_ones(stem, monkeypatch):
    monkeypatch.chdir(GOLDEN)
    assert score_log(Path(f"{stem}.jsonl"), None, 1.0) == expected(f"{stem}.lex1.0")


@pytest.mark.parametrize("stem", ["a", "b"])
@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_semantic_scores_are_the_published_ones(stem, weight, monkeypatch):
    folder = os.environ.get("FASTSCORE_MINILM")
    if folder is None:
        pytest.skip("FASTSCORE_MINILM names no sentence-transformers folder of MiniLM")
    pytest.importorskip("sentence_transformers", reason="needs the bench extra")
    monkeypatch.chdir(GOLDEN)
    semantics = SentenceTransformerSemantics(Path(folder), dim=64, pairs=100, seed=0)
    document = score_log(Path(f"{stem}.jsonl"), semantics, weight)
    wanted = expected(f"{stem}.lex{weight}")
    assert flatten(document) == pytest.approx(flatten(wanted), abs=1.01e-4)


def flatten(document, path=""):
    """List a document's leaves by path."""
    items = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else None
    )
    if items is None:
        return {path: document}
    leaves = {}
    for key, value in items:
        leaves |= flatten(value, f"{path}/{key}")
    return leaves
