"""Searching the store for the texts of runs: against a plain search over all vectors."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fastscore.errors import StoreError
from fastscore.results.dialogues import nearest_texts, run_texts
from fastscore.results.runs import Run
from fastscore.vectors.embedder import Embedder


def test_the_nearest_are_those_of_a_plain_search(
    suite_runs: Mapping[str, Run], default_model: str, store: Path
) -> None:
    run = suite_runs["score_dialogue"]
    texts = pl.concat(list(run_texts(run))).unique().sort()
    query = "I want to book a table"
    model = Embedder(default_model)
    cosines = model.encode(texts) @ model.encode(pl.Series([query]))[0]
    found = nearest_texts(
        query, [run, run], 5, embedder=default_model, precision="fp32", root=store
    )
    assert found.height == 5
    assert found["text"].n_unique() == 5
    expected = np.sort(cosines)[::-1][:5]
    assert np.allclose(found["cosine"].to_numpy(), expected, atol=1e-5)
    by_text = dict(zip(texts, cosines.tolist(), strict=True))
    assert all(abs(by_text[text] - cosine) < 1e-5 for text, cosine in found.iter_rows())


def test_a_store_without_the_texts_says_so(
    suite_runs: Mapping[str, Run], default_model: str, tmp_path: Path
) -> None:
    run = suite_runs["score_dialogue"]
    with pytest.raises(StoreError, match="No text of these runs has a vector"):
        nearest_texts("a", [run], 1, embedder=default_model, precision="fp32", root=tmp_path)
