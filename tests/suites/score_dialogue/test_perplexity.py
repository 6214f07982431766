"""The perplexity penalty: worked by hand, and through whole runs with a tiny masked model."""

import math

import numpy as np
import polars as pl
import pytest

import fastscore
from fastscore.errors import ModelError, UsageError
from fastscore.settings.options import build_options
from fastscore.suites.score_dialogue import SUITE, ScoreDialogue
from fastscore.vectors.perplexity import PerplexityModel
from fastscore.vectors.view import VectorView
from tests.by_keywords import score_by_keywords
from tests.conftest import write_lines
from tests.run.logs import utterance
from tests.suites.reading import read_lines
from tests.suites.score_dialogue.comparing import PERPLEXITIES, null_reasons, reasons
from tests.vectors.conftest import masked_cache, masked_folder  # noqa: F401


def write_log(path, predictions, ground_truth="w1 w2", dialogue="d"):
    write_lines(path, utterance(ground_truth, *predictions, dialogue_uid=dialogue))


def score_steps(tmp_path, predictions, perplexities, weight):
    """Score steps by letters and by perplexities given by hand."""
    write_log(tmp_path / "log.jsonl", predictions)
    options = ScoreDialogue(lex_weight=1.0, pppl_model="any", pppl_weight=weight)
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    events = SUITE.read(read_lines(SUITE.source, lines).frame, options)
    assert set(SUITE.perplexity_texts(events, options)) == {*predictions, "w1 w2"}
    logs = np.log(np.array(list(perplexities.values())))[:, None]
    view = VectorView.from_texts(list(perplexities), logs)
    vectors = VectorView(*_empty(), log_perplexities=view)
    return SUITE.score(events, vectors, options)["steps"].rows(named=True)


def _empty():
    empty = VectorView.empty()
    return empty.matrix, empty.ids


def test_worked_by_hand(tmp_path):
    # w = 1, so U without penalty is (1 - distance / length) / (step + 1)
    perplexities = {"w1 w2": 2.0, "w1 w3": 8.0, "w1 wx": 1.5, "": math.nan, "w1 w4": math.nan}
    steps = score_steps(tmp_path, ["w1 w3", "w1 wx", "", "w1 w4"], perplexities, 0.5)
    assert steps[0]["pppl_prediction"] == pytest.approx(8, rel=1e-6)
    assert steps[0]["pppl_ground_truth"] == pytest.approx(2, rel=1e-6)
    # (8 / 2) ** -0.5 is 1/2; one letter of five differs
    assert steps[0]["pppl_penalty"] == pytest.approx(0.5, rel=1e-6)
    assert steps[0]["U_step"] == pytest.approx(0.8 * 0.5, rel=1e-6)
    # a prediction that reads better than the ground truth is not rewarded
    assert steps[1]["pppl_penalty"] == 1
    assert steps[1]["U_step"] == pytest.approx(0.8 / 2)
    # an empty prediction has no perplexity, and no penalty
    assert steps[2]["pppl_prediction"] is None
    assert steps[2]["pppl_penalty"] is None
    assert steps[2]["pppl_ground_truth"] == pytest.approx(2, rel=1e-6)
    # nor has one without tokens, which keeps its utility
    assert (steps[3]["pppl_penalty"], steps[3]["U_step"]) == (None, 0.8 / 4)
    off = {"semantic_cosine_raw", "semantic_similarity"}
    assert null_reasons(steps[0]) == reasons(off)
    assert null_reasons(steps[2]) == reasons(off | {"pppl_prediction", "pppl_penalty"})


def test_weight_0_reports_and_changes_no_number(tmp_path):
    perplexities = {"w1 w2": 2.0, "w1 w3": 8.0}
    (step,) = score_steps(tmp_path, ["w1 w3"], perplexities, 0.0)
    assert step["pppl_prediction"] == pytest.approx(8, rel=1e-6)
    assert (step["pppl_penalty"], step["U_step"]) == (1, 0.8)


def test_a_weight_without_a_model_is_refused():
    with pytest.raises(UsageError, match=r"pppl_weight is 0\.5, but no pppl_model"):
        build_options(ScoreDialogue, {"pppl_weight": 0.5})
    with pytest.raises(UsageError, match=r"pppl_weight is -1\.0"):
        build_options(ScoreDialogue, {"pppl_weight": -1.0, "pppl_model": "any"})


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(4):
        predictions = ["w3", f"w{number} w5", "w1 w2", ""]
        write_log(folder / f"{number}.jsonl", predictions, dialogue=f"d{number}")
    return folder


def test_a_run_judges_each_text_once(tmp_path, logs, masked_cache, monkeypatch):  # noqa: F811
    monkeypatch.setenv("FASTSCORE_CACHE", str(masked_cache))
    judged = []
    plain = PerplexityModel.encode

    def encode(self, texts, **options):
        judged.extend(texts)
        return plain(self, texts, **options)

    monkeypatch.setattr(PerplexityModel, "encode", encode)
    settings = {
        "suite": "score_dialogue",
        "lex_weight": 1.0,
        "pppl_model": "tiny-mlm",
        "store": tmp_path / "store",
    }
    run = score_by_keywords(logs, output=tmp_path / "run", workers=2, pppl_weight=0.5, **settings)
    texts = {"w3", "w1 w2", "", *(f"w{number} w5" for number in range(4))}
    assert sorted(judged) == sorted(texts)
    model = PerplexityModel("tiny-mlm")
    assert f"|pppl_model=tiny-mlm@{model.fingerprint[:8]}|pppl_weight=0.5|" in run.signature
    steps = pl.read_parquet(tmp_path / "run" / "steps" / "*.parquet").rows(named=True)
    expected = dict(zip(texts, plain(model, list(texts))[:, 0].tolist(), strict=True))
    for step in steps:
        log, truth = expected[step["prediction"]], expected["w1 w2"]
        assert step["pppl_ground_truth"] == pytest.approx(math.exp(truth), rel=1e-6)
        if step["prediction"]:
            penalty = math.exp(-0.5 * max(0.0, log - truth))
            assert step["pppl_penalty"] == pytest.approx(penalty, rel=1e-6)
        else:
            assert step["pppl_penalty"] is None
            penalty = 1.0
        plain_utility = step["lexical_similarity"] * step["earliness"]
        assert step["U_step"] == pytest.approx(plain_utility * penalty, rel=1e-6)
    # the store has them all: nothing is judged again, in memory or with another weight
    judged.clear()
    scores = score_by_keywords(logs, pppl_weight=2.0, **settings)
    assert judged == []
    assert scores.signature != run.signature


def test_a_model_that_is_not_exported_is_refused_before_logs_are_scored(
    tmp_path, logs, monkeypatch
):
    monkeypatch.setenv("FASTSCORE_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="'gone' has not been exported"):
        fastscore.score(logs, fastscore.ScoreDialogue(lex_weight=1.0, pppl_model="gone"))


def test_without_a_model_the_columns_are_null_and_not_summarised(tmp_path, logs):
    scores = fastscore.score(logs, fastscore.ScoreDialogue(lex_weight=1.0))
    for step in scores.tables["steps"].rows(named=True):
        assert {step[name] for name in PERPLEXITIES} == {None}
        assert not reasons(PERPLEXITIES) & null_reasons(step)
    assert not PERPLEXITIES & set(scores.summary["metric"])
