"""The drop-in's perplexity penalty: off unless asked for, by flag, variable or argument."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from fastscore.compat import environment
from fastscore.compat.score_dialogue import main, score_jsonl
from fastscore.errors import ModelError, UsageError
from fastscore.vectors.view import VectorView
from tests.conftest import write_lines
from tests.vectors.conftest import masked_cache, masked_folder  # noqa: F401

PERPLEXITIES = {"w1 w2": 2.0, "w1 w3": 8.0, "w1 wx": 1.5, "": math.nan}
LOG = [
    *(
        {"event": "predicted", "utterance_index": 0, "step": step, "prediction": text}
        for step, text in enumerate(["w1 w3", "w1 wx", ""])
    ),
    {"event": "utterance_complete", "utterance_index": 0, "ground_truth": "w1 w2"},
]


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for variable in ("PPPL_MODEL", "PPPL_WEIGHT", "EMBED_DEVICE", "BB_SCORER_DEVICE"):
        monkeypatch.delenv(variable, raising=False)
    write_lines(Path("x.jsonl"), LOG)


@pytest.fixture
def by_hand(monkeypatch):
    """Judge texts by perplexities given by hand; returns the names of the models asked."""
    asked = []

    def judge_texts(texts, model, environment):
        asked.append(model)
        logs = np.log([PERPLEXITIES[text] for text in texts])
        return VectorView.from_texts(texts, logs[:, None])

    monkeypatch.setattr(environment, "judge_texts", judge_texts)
    return asked


def test_the_penalty_worked_by_hand(by_hand):
    document = score_jsonl("x.jsonl", 1.0, pppl_model="any", pppl_weight=1.0)
    first, second, third = document["utterances"][0]["steps"]
    # one letter of five differs, 0.8; 2 / 8 = 1/4
    assert first == {
        "step": 0,
        "lexical_similarity": 0.8,
        "semantic_cosine_raw": 0.0,
        "semantic_similarity": 0.0,
        "earliness": 1.0,
        "U_step": 0.2,
        "pppl_prediction": 8.0,
        "pppl_ground_truth": 2.0,
        "pppl_penalty": 0.25,
        "prediction": "w1 w3",
    }
    # what reads better than the ground truth is not rewarded; now step 1 is the best
    assert (second["pppl_penalty"], second["U_step"]) == (1.0, 0.4)
    assert (third["pppl_prediction"], third["pppl_penalty"], third["U_step"]) == (None, None, 0.0)
    assert document["utterances"][0]["best_step"] == 1
    assert document["dialogue_summary"] == {
        "average_U_best_early": 0.4,
        "semantic_baseline_b": 0.0,
        "pppl_model": "any",
        "pppl_weight": 1.0,
    }


def test_without_a_model_nothing_is_judged_and_no_key_is_added(by_hand):
    document = score_jsonl("x.jsonl", 1.0)
    assert by_hand == []
    assert "pppl" not in json.dumps(document)
    assert document["utterances"][0]["U_best"] == 0.8


def test_variables_count_where_nothing_is_given(by_hand, monkeypatch):
    monkeypatch.setenv("PPPL_MODEL", "from-variable")
    monkeypatch.setenv("PPPL_WEIGHT", "0.5")
    assert score_jsonl("x.jsonl", 1.0)["utterances"][0]["U_best"] == 0.4
    given = score_jsonl("x.jsonl", 1.0, pppl_model="given", pppl_weight=0.0)
    assert given["utterances"][0]["U_best"] == 0.8
    assert given["utterances"][0]["steps"][0]["pppl_prediction"] == 8.0
    assert by_hand == ["from-variable", "given"]
    assert main(["--jsonl", "x.jsonl", "--lex-weight", "1", "--pppl-weight", "0.25"]) == 0
    assert by_hand[-1] == "from-variable"
    monkeypatch.setenv("PPPL_MODEL", "")
    with pytest.raises(UsageError, match=r"pppl_weight is 0\.5, but no pppl_model"):
        score_jsonl("x.jsonl", 1.0)


def test_the_command_says_that_its_score_is_not_the_published_one(by_hand, capsys):
    command = ["--jsonl", "x.jsonl", "--lex-weight", "1", "--pppl-model", "any"]
    assert main([*command, "--pppl-weight", "0.5"]) == 0
    out = [line.split(" | ", 2)[2] for line in capsys.readouterr().out.splitlines()]
    assert "Perplexity penalty: model any, weight 0.5; not part of the published score" in out
    assert (
        "step\tlex\tcos_raw\tsem_cal\tearli\tU_step\tpppl_prediction\tpppl_ground_truth\t"
        "pppl_penalty\tprediction"
    ) in out
    assert "0\t0.8000\t0.0000\t0.0000\t1.0000\t0.4000\t8.0000\t2.0000\t0.5000\tw1 w3" in out
    assert "2\t0.0000\t0.0000\t0.0000\t0.3333\t0.0000\t-\t2.0000\t-\t" in out
    assert "Dialogue average U (best-early): 0.4000" in out


def test_a_weight_without_a_model_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as exit:
        main(["--jsonl", "x.jsonl", "--pppl-weight", "0.5"])
    assert exit.value.code == 2
    assert "--pppl-weight needs a masked language model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("much", "PPPL_WEIGHT is 'much', expected a number"),
        ("-1", r"PPPL_WEIGHT is -1\.0, expected a number from 0 to 1000"),
        ("nan", "PPPL_WEIGHT is nan, expected a number from 0 to 1000"),
    ],
)
def test_a_variable_that_is_no_weight_is_named(value, message, monkeypatch):
    monkeypatch.setenv("PPPL_WEIGHT", value)
    with pytest.raises(UsageError, match=message):
        score_jsonl("x.jsonl", 1.0)


def test_a_model_that_is_not_exported_is_an_error(capsys):
    with pytest.raises(ModelError):
        score_jsonl("x.jsonl", 1.0, pppl_model="no-such-model")
    command = ["--jsonl", "x.jsonl", "--lex-weight", "1", "--pppl-model", "no-such-model"]
    assert main(command) == 1
    assert "no-such-model" in capsys.readouterr().err
