"""What ``embedder=`` takes: a name, an export's folder, an `Embedder`, a function."""

import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fastscore
from fastscore.errors import FastscoreError, ModelError
from fastscore.vectors.embedder import Embedder, FunctionEmbedder, WindowEmbedder

OPTIONS = fastscore.ScoreDialogue(lex_weight=0.0, semantic="cosine")
ROWS = [
    {"event": "predicted", "utterance_index": 0, "step": 0, "prediction": "w1 w2"},
    {"event": "predicted", "utterance_index": 0, "step": 1, "prediction": "w3"},
    {"event": "utterance_complete", "utterance_index": 0, "ground_truth": "w1 w4"},
]


def lengths_and_firsts(texts: list[str]) -> list[list[float]]:
    """A vector that a person works out: the text's length, and the code of its last character."""
    return [[float(len(text)), float(ord(text[-1]))] for text in texts]


def cosine(a: list[float], b: list[float]) -> float:
    return float(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))


def cosines(**given: Any) -> list[float]:
    run = fastscore.score(ROWS, OPTIONS, **given)
    return list(run.tables["steps"]["semantic_cosine_raw"])


def test_a_function_gives_the_vectors(tmp_path):
    run = fastscore.score(ROWS, OPTIONS, embedder=lengths_and_firsts, store=tmp_path)
    (truth,) = lengths_and_firsts(["w1 w4"])
    expected = [cosine(each, truth) for each in lengths_and_firsts(["w1 w2", "w3"])]
    found = run.tables["steps"]["semantic_cosine_raw"].to_list()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert "embedder=lengths_and_firsts@" in run.signature
    assert run.signature.count("dim=2")


def test_a_vector_of_zeros_is_refused_by_its_text():
    """Its cosines would be 0 without a word."""

    def embed(texts: list[str]) -> list[list[float]]:
        return [[0.0, 0.0] if text == "w3" else [1.0, 2.0] for text in texts]

    with pytest.raises(ModelError, match=r"The embedder .*embed gave a vector of zeros for 'w3'"):
        cosines(embedder=embed)
    blank = [{**row, "prediction": " "} if row.get("step") == 1 else row for row in ROWS]
    scored = fastscore.score(
        blank, OPTIONS, embedder=lambda texts: [[float(bool(text.strip())), 0.0] for text in texts]
    )
    assert scored.tables["steps"].height == 2


def test_a_run_of_a_function_is_explained_with_it(tmp_path):
    log, output = tmp_path / "log.jsonl", tmp_path / "run"
    log.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    of_frame = fastscore.score(ROWS, OPTIONS, embedder=lengths_and_firsts)
    of_log = fastscore.score(log, OPTIONS, embedder=lengths_and_firsts, output=output)
    # what another process has: the folder alone
    opened = fastscore.open_run(output)
    again = fastscore.explain(opened, random=True, embedder=lengths_and_firsts)
    values = {
        tuple(one.value for one in found.explanations)
        for found in (of_frame.explain(random=True), of_log.explain(random=True), again)
    }
    assert values == {(of_log.tables["dialogues"]["average_U_best_early"][0],)}
    with pytest.raises(ModelError, match=r"scored with the embedder lengths_and_firsts.*=lengths"):
        opened.explain(random=True)
    with pytest.raises(FastscoreError, match=r"other files, models or versions.*embedder"):
        opened.explain(random=True, embedder=lambda texts: [[1.0, 2.0]] * len(texts))


def test_another_function_of_one_name_is_another_model(tmp_path):
    def function(salt: str) -> Any:
        def embed(texts: list[str]) -> npt.NDArray[np.float64]:
            digests = [hashlib.sha256((salt + text).encode()).digest() for text in texts]
            return np.array([list(digest) for digest in digests]) - 128.0

        return embed

    assert (
        FunctionEmbedder(function("a")).fingerprint == FunctionEmbedder(function("a")).fingerprint
    )
    assert (
        FunctionEmbedder(function("a")).fingerprint != FunctionEmbedder(function("b")).fingerprint
    )
    first = cosines(embedder=function("a"), store=tmp_path)
    assert first != cosines(embedder=function("b"), store=tmp_path)
    assert first == cosines(embedder=function("a"), store=tmp_path)


def test_vectors_of_a_function_do_not_outlive_the_call():
    """It may give other vectors tomorrow, of texts that nothing compares it by."""
    known = {"w1 w4": [1.0, 0.0]}

    def embed(texts: list[str]) -> list[list[float]]:
        return [known.get(text, [0.0, 1.0]) for text in texts]

    assert cosines(embedder=embed) == [0.0, 0.0]
    known["w3"] = [1.0, 0.0]
    assert cosines(embedder=embed) == [0.0, 1.0]


def test_names_folders_and_embedders_are_one_model(tiny_cache, tmp_path, monkeypatch):
    monkeypatch.setenv("FASTSCORE_CACHE", str(tiny_cache))
    embedder, folder = Embedder("tiny"), tiny_cache / "models" / "tiny"
    by_name = fastscore.score(ROWS, OPTIONS, embedder="tiny", store=tmp_path)
    for given in (embedder, folder, str(folder)):
        run = fastscore.score(ROWS, OPTIONS, embedder=given, store=tmp_path)
        assert run.signature == by_name.signature
        assert run.tables["steps"].equals(by_name.tables["steps"])
    assert fastscore.Scorer(OPTIONS, embedder=embedder).signature == by_name.signature
    monkeypatch.setenv("FASTSCORE_CACHE", str(tmp_path / "empty"))
    monkeypatch.chdir(folder.parent)
    assert Embedder("tiny").fingerprint == embedder.fingerprint


class Model:
    def __call__(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError

    def encode(self, texts: list[str]) -> list[list[float]]:
        return lengths_and_firsts(texts)


@pytest.mark.parametrize("given", [3, ["minilm-l6-v2"], b"minilm-l6-v2", Embedder, np.eye(2)])
def test_anything_else_is_refused_in_one_sentence(given):
    with pytest.raises(FastscoreError, match="expected the name or folder of a model") as raised:
        fastscore.score(ROWS, OPTIONS, embedder=given)
    assert type(given).__name__ in str(raised.value)


def test_the_method_of_a_model_object_is_named(tmp_path):
    with pytest.raises(FastscoreError, match=r"embedder=model\.encode"):
        fastscore.score(ROWS, OPTIONS, embedder=Model())
    assert len(cosines(embedder=Model().encode, store=tmp_path)) == 2


@pytest.mark.parametrize(
    "function",
    [
        lambda texts: 1 / 0,
        lambda texts: None,
        lambda texts: np.ones(len(texts)),
        lambda texts: np.ones((len(texts) + 1, 3)),
        lambda texts: np.full((len(texts), 3), np.nan),
    ],
)
def test_a_function_that_gives_no_matrix_is_refused(function, tmp_path):
    with pytest.raises(ModelError, match=r"The embedder .*lambda"):
        fastscore.score(ROWS, OPTIONS, embedder=function, store=tmp_path)


def test_a_text_of_a_function_is_read_whole_and_counts_by_its_characters():
    (found,) = WindowEmbedder(FunctionEmbedder(lengths_and_firsts)).encode(["abc"])
    vector = np.array([3.0, 99.0])
    np.testing.assert_allclose(found, 3 * vector / np.linalg.norm(vector), rtol=1e-6)
