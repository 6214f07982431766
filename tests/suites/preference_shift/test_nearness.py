"""Effects of vectors: extraction by meaning, and segments without metadata."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import fastscore
from fastscore.suites.preference_shift import SUITE
from fastscore.suites.preference_shift.catalogue import load_catalogue
from fastscore.suites.preference_shift.concepts import concepts_of, nearest_concepts
from fastscore.vectors.view import VectorView
from tests.suites.preference_shift.conversing import (
    exchange,
    log,
    options,
    read,
    score,
)


def view(texts: list[str], vectors: list[list[float]]) -> VectorView:
    matrix = np.array(vectors, np.float64)
    return VectorView.from_texts(texts, matrix / np.linalg.norm(matrix, axis=1, keepdims=True))


def test_extraction_equals_cosines_one_by_one(catalogue: str) -> None:
    rng = np.random.default_rng(3)
    texts = [f"text {number}" for number in range(40)] + ["  ", ""]
    chosen = options(catalogue, extract="embed", embed_threshold=0.2, embed_top=2)
    concepts = concepts_of(load_catalogue(catalogue), chosen)
    values = concepts.terms["value"].unique(maintain_order=True).to_list()
    vectors = view(texts + values, rng.normal(size=(len(texts) + len(values), 8)).tolist())
    found = concepts.names(nearest_concepts(pl.Series(texts), concepts, vectors, chosen)).to_list()
    rows = concepts.terms.select("concept", "field", "value").rows()
    matrix = dict(zip(texts + values, vectors.matrix[vectors.codes(texts + values)], strict=True))
    for text, got in zip(texts, found, strict=True):
        expected = []
        for name in {field for _, field, _ in rows} if text.strip() else ():
            ranked = sorted(
                (-float(matrix[text] @ matrix[value]), concept)
                for concept, field, value in rows
                if field == name
            )
            expected += [concept for cosine, concept in ranked[:2] if -cosine >= 0.2]
        assert got == sorted(expected)


def test_of_equal_values_the_first_wins(catalogue: str) -> None:
    chosen = options(catalogue, extract="embed", embed_top=1, fields="genre")
    concepts = concepts_of(load_catalogue(catalogue), chosen)
    values = concepts.terms["value"].to_list()
    vectors = view(["film", *values], [[1.0, 0.0]] * (1 + len(values)))
    found = nearest_concepts(pl.Series(["film"]), concepts, vectors, chosen)
    assert concepts.names(found).to_list() == [["genre=crime"]]


def test_of_almost_equal_values_the_nearest_wins(catalogue: str) -> None:
    """Their cosines differ by less than the margin of the search that chooses candidates."""
    chosen = options(catalogue, extract="embed", embed_top=1, fields="genre")
    concepts = concepts_of(load_catalogue(catalogue), chosen)
    values = concepts.terms["value"].to_list()
    angles = [0.9 - 2e-6 * place for place in range(len(values))]
    vectors = view(
        ["film", *values], [[1.0, 0.0], *([np.cos(angle), np.sin(angle)] for angle in angles)]
    )
    found = nearest_concepts(pl.Series(["film"]), concepts, vectors, chosen)
    assert concepts.names(found).to_list() == [[concepts.terms["concept"].to_list()[-1]]]


def wanted(logs: list[Any], catalogue: str, **values: Any) -> set[str]:
    chosen = options(catalogue, **values)
    return set(SUITE.texts(read(logs, chosen), chosen).to_list())


def test_only_texts_that_are_compared_get_a_vector(catalogue: str) -> None:
    logs = [
        log(*exchange("a", "b", "c", "d")),
        log(*exchange("e", "f", "g", "h"), shift_events=[]),
        log(*exchange("i", "j")),
    ]
    assert wanted(logs, catalogue) == set()
    assert not SUITE.needs_vectors(options(catalogue))
    assert wanted(logs, catalogue, segments="embedding") == {"a", "c"}
    assert SUITE.needs_vectors(options(catalogue, segments="heuristic"))
    embedded = wanted(logs, catalogue, extract="embed")
    assert embedded >= set("abcdefghij") | {"drama", "al pacino"}


ANGLES = {"start": 0.0, "near": 50.0, "far": 110.0, "same": 111.0}
VECTORS = view(
    list(ANGLES), [[np.cos(np.radians(a)), np.sin(np.radians(a))] for a in ANGLES.values()]
)


def test_boundaries_by_vectors_are_no_shifts(catalogue: str) -> None:
    # concepts are none, so that topics never overlap: every turn begins a segment, as published
    logs = [log(*exchange("start", "x", "near", "x", "far", "x"))]
    tables = score(logs, options(catalogue, segments="embedding"), VECTORS)
    assert tables["segments"]["start_turn"].to_list() == [1, 2, 3]
    assert tables["shifts"].is_empty()
    assert tables["dialogues"]["segments_by"].to_list() == ["embedding"]
    assert tables["turns"]["is_shift"].to_list() == [False] * 3


def test_a_turn_stays_where_words_and_concepts_are_near(catalogue: str) -> None:
    texts = ["drama a", "drama b", "drama c", "drama horror crime d", "horror crime e"]
    angles = [0.0, 56.0, 113.5, 113.5, 113.5]
    vectors = view(texts, [[np.cos(np.radians(a)), np.sin(np.radians(a))] for a in angles])
    logs = [log(*exchange(*(part for text in texts for part in (text, "x"))))]
    tables = score(logs, options(catalogue, segments="embedding"), vectors)
    # cos 56 is above 0.55, cos 57.5 below; 1/3 is below 0.35, 2/3 above
    assert tables["segments"]["start_turn"].to_list() == [1, 3, 4]


def test_segments_by_the_shared_embedder(
    tmp_path: Path, catalogue: str, default_model: str
) -> None:
    frame = pl.DataFrame(
        {
            "session_id": ["1"],
            "conversation": [
                exchange("A drama please", "drama", "another drama please", "drama",
                         "Now some horror", "horror")
            ],
        }
    )  # fmt: skip
    scores = fastscore.score(
        frame,
        fastscore.PreferenceShift(catalogue=catalogue),
        embedder=default_model,
        store=tmp_path / "s",
    )
    assert scores.tables["segments"]["start_turn"].to_list() == [1, 3]
    meaning = fastscore.score(
        frame,
        fastscore.PreferenceShift(catalogue=catalogue, extract="embed", fields="genre"),
        embedder=default_model,
        store=tmp_path / "s",
    )
    assert "genre=drama" in meaning.tables["turns"]["user_concepts"][0].to_list()
