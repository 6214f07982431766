"""Scoring from Python: the same numbers as the command line's, frames in and out."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fastscore
from fastscore.errors import InputError, UsageError
from fastscore.options import build_options
from tests.by_keywords import score_by_keywords
from tests.run.logs import write_logs


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    return write_logs(tmp_path / "logs")


def test_bad_requests_are_named(logs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="lex_wait"):
        fastscore.ScoreDialogue(lex_wait=1.0)
    with pytest.raises(UsageError, match="Did you mean 'lex_weight'"):
        build_options(fastscore.ScoreDialogue, {"lex_wait": 1.0})
    with pytest.raises(UsageError, match="expected a number from 0 to 1"):
        fastscore.ScoreDialogue(lex_weight=float("nan"))
    with pytest.raises(UsageError, match="expected float"):
        fastscore.ScoreDialogue(lex_weight="1")
    with pytest.raises(UsageError, match="Did you mean 'jaccard'"):
        fastscore.ScoreDialogue(semantic="jacard")
    with pytest.raises(InputError, match="No such file"):
        fastscore.score(tmp_path / "gone.jsonl", fastscore.ScoreDialogue(lex_weight=1.0))
    with pytest.raises(UsageError, match="Both limit and sample"):
        fastscore.score(logs, "score_dialogue", limit=1, sample=1)


def test_a_wrong_suite_is_answered_with_a_sentence(logs: list[Path]) -> None:
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    for suite in (options, "score_dialogue"):
        with pytest.raises(UsageError, match=r"The logs come first: fastscore.score\(logs, "):
            fastscore.score(suite, logs)
    with pytest.raises(UsageError, match=r"Make options of it: ScoreDialogue\(\)"):
        fastscore.score(logs, fastscore.ScoreDialogue)
    with pytest.raises(UsageError, match="Did you mean 'score_dialogue'"):
        fastscore.score(logs, "score_dialog")
    with pytest.raises(UsageError, match="The suite is of type dict; expected its name or"):
        fastscore.score(logs, {"lex_weight": 1.0})


def test_options_are_whole_numbers_or_floats_as_declared() -> None:
    assert fastscore.ScoreDialogue(lex_weight=1) == fastscore.ScoreDialogue(lex_weight=1.0)
    assert repr(fastscore.ScoreDialogue(lex_weight=1)).startswith("ScoreDialogue(lex_weight=1.0, ")
    assert fastscore.PreferenceShift(catalogue="x", match=None).match == "word"


def test_public_names_are_documented_and_import_lazily() -> None:
    for name in fastscore.__all__:
        assert getattr(fastscore, name) is not None
    with pytest.raises(AttributeError):
        fastscore.nothing  # noqa: B018


def test_every_semantic_mode_scores(logs: list[Path], tmp_path: Path, default_model: str) -> None:
    for mode in ("calibrated", "cosine"):
        scores = fastscore.score(
            logs,
            fastscore.ScoreDialogue(lex_weight=0.0, semantic=mode),
            embedder=default_model,
            store=tmp_path / "store",
        )
        steps = scores.tables["steps"]
        cosines = steps["semantic_cosine_raw"]
        assert cosines.is_between(-1 - 1e-6, 1 + 1e-6).all()
        by_step = steps.group_by("step").agg(pl.col("semantic_cosine_raw").mean()).sort("step")
        assert by_step["semantic_cosine_raw"].is_sorted()  # every step knows one word more
        assert np.all(np.isfinite(steps["U_step"].to_numpy()))
        assert steps["lexical_similarity"].null_count() == steps.height


def test_vectors_do_not_depend_on_store_or_shards(
    logs: list[Path], tmp_path: Path, default_model: str
) -> None:
    common = {"embedder": default_model, "lex_weight": 0.5, "baseline_pairs": 100}
    cold = score_by_keywords(logs, "score_dialogue", store=tmp_path / "a", **common)
    warm = score_by_keywords(logs, "score_dialogue", store=tmp_path / "a", **common)
    parts = [
        score_by_keywords(path, "score_dialogue", store=tmp_path / "b", **common) for path in logs
    ]
    assert warm.tables["steps"].equals(cold.tables["steps"])
    joined = pl.concat([part.tables["steps"] for part in parts])
    difference = (joined["U_step"] - cold.tables["steps"]["U_step"]).abs().max()
    assert isinstance(difference, float)
    assert difference < 1e-6


@pytest.mark.parametrize("share", [float("nan"), -0.1, 2.0])
def test_a_share_of_rejects_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(fastscore.FastscoreError, match=r"max_rejects is .*, expected a number"):
        fastscore.score("logs", fastscore.ScoreDialogue(lex_weight=1.0), max_rejects=share)
