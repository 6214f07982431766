"""Examples worked by hand from the definitions."""

import sys

import numpy as np
import polars as pl
import pytest

import fastscore
from fastscore.suites.declarations import REJECT_SCHEMA
from fastscore.suites.score_dialogue import SUITE, ScoreDialogue
from fastscore.suites.score_dialogue.events import MAXIMUM_STEPS
from fastscore.suites.score_dialogue.metrics import PYTHON_WHITESPACE, SEMANTIC
from fastscore.suites.summary import summarise
from fastscore.vectors.view import VectorView
from tests.run.logs import utterance
from tests.suites.score_dialogue.comparing import raw_frame, score_frame

LEXICAL = ScoreDialogue(lex_weight=1.0)


def predicted(utterance, step, prediction, **more):
    row = {"utterance_index": utterance, "step": step, "prediction": prediction}
    return {"event": "predicted", **row, **more}


def complete(utterance, ground_truth, **more):
    row = {"utterance_index": utterance, "ground_truth": ground_truth}
    return {"event": "utterance_complete", **row, **more}


def revealed(utterance, step):
    return {"event": "revealed", "utterance_index": utterance, "step": step}


def score(*rows, options=LEXICAL, view=None):
    raw, _ = raw_frame([("log.jsonl", line, row) for line, row in enumerate(rows, 1)])
    return score_frame(raw, options, view)[1]


def test_whitespace_is_that_of_python():
    characters = map(chr, range(sys.maxunicode + 1))
    assert {c for c in characters if c.isspace()} == set(PYTHON_WHITESPACE)


def test_utility_is_similarity_times_earliness():
    tables = score(predicted(0, 0, "abcd"), predicted(0, 1, "abcx"), complete(0, "abcx"))
    assert tables["steps"]["lexical_similarity"].to_list() == [0.75, 1.0]
    assert tables["steps"]["earliness"].to_list() == [1.0, 0.5]
    assert tables["steps"]["U_step"].to_list() == [0.75, 0.5]
    assert tables["utterances"].row(0, named=True)["best_step"] == 0


def test_ties_go_to_the_earliest_step():
    tables = score(predicted(0, 0, "ab"), predicted(0, 1, "abcd"), complete(0, "abcd"))
    assert tables["steps"]["U_step"].to_list() == [0.5, 0.5]
    assert tables["utterances"]["best_step"].to_list() == [0]


def test_texts_that_are_null_count_as_empty_ones():
    options = ScoreDialogue(lex_weight=1.0)
    assert SUITE.read(raw_frame([("log.jsonl", 1, complete(0, None))])[0], options).nulls_are_empty


def test_dialogue_ids_tell_miners_and_challenges_apart():
    labels = [
        {"dialogue_uid": "d"},
        {"dialogue_uid": "d", "miner_uid": 7},
        {"dialogue_uid": "d", "challenge_uid": 7},
        {"dialogue_uid": "d", "challenge_uid": "c", "miner_uid": 1, "miner_hotkey": "5F"},
        {"dialogue_uid": "d/miner=7"},
        {"dialogue_uid": "50%"},
    ]
    tables = score(*(complete(0, "a", **label) for label in labels))
    assert tables["dialogues"]["dialogue"].to_list() == [
        "d",
        "d/miner=7",
        "d/challenge=7",
        "d/challenge=c/miner=1/hotkey=5F",
        "d%2Fminer=7",
        "50%25",
    ]


def unit_view(**vectors):
    return VectorView.from_texts(list(vectors), np.array(list(vectors.values()), dtype=np.float32))


def test_semantic_similarity_is_the_cosine_above_the_baseline():
    view = unit_view(a=[1.0, 0.0], b=[0.6, 0.8], p=[0.8, 0.6])
    rows = [predicted(0, 0, "p"), complete(0, "a"), predicted(1, 0, "a"), complete(1, "b")]
    tables = score(*rows, options=ScoreDialogue(lex_weight=0.0), view=view)
    # two ground truths: every pair of the baseline is (a, b), with cosine 0.6
    assert tables["dialogues"]["semantic_baseline_b"].item() == pytest.approx(0.6, abs=1e-6)
    found = tables["steps"]["semantic_similarity"].to_list()
    assert found == pytest.approx([(0.8 - 0.6) / 0.4, 0.0], abs=1e-6)


def test_word_jaccard_by_hand():
    predictions = ["a b c", "a a", "", "A", "x\x1cy\u2003z"]
    texts = pl.DataFrame(
        {"prediction": predictions, "ground_truth": ["b c d", "a", " ", "a", "x y"]}
    )
    found = texts.select(SEMANTIC["jaccard"]).to_series()
    assert found.to_list() == [0.5, 1.0, 0.0, 0.0, 2 / 3]


def test_texts_are_asked_for_only_where_vectors_count():
    raw, _ = raw_frame([("f", 1, predicted(0, 0, "p")), ("f", 2, complete(0, "g"))])
    for options, expected in [
        (ScoreDialogue(), ["p", "g"]),
        (ScoreDialogue(semantic="cosine"), ["p", "g"]),
        (ScoreDialogue(semantic="jaccard"), []),
        (LEXICAL, []),
    ]:
        assert SUITE.texts(SUITE.read(raw, options), options).to_list() == expected
        assert SUITE.needs_vectors(options) is bool(expected)


def test_a_revealed_step_beyond_reason_is_a_reject():
    rows = [predicted(0, 0, "a"), revealed(0, MAXIMUM_STEPS), complete(0, "a")]
    raw, _ = raw_frame([("log.jsonl", line, row) for line, row in enumerate(rows, 1)])
    events, tables = score_frame(raw, LEXICAL)
    assert dict(events.rejects.schema) == REJECT_SCHEMA
    (reject,) = events.rejects.rows(named=True)
    assert (reject["file"], reject["line"], reject["field"]) == ("log.jsonl", 2, "step")
    assert reject["reason"] == "out_of_range"
    assert tables["utterances"]["total_steps"].to_list() == [1]


def test_similarity_is_at_most_1_where_rounding_makes_a_cosine_greater():
    view = unit_view(a=[1.001, 0.0], b=[0.6, 0.8])
    rows = [predicted(0, 0, "a"), complete(0, "a"), complete(1, "b")]
    tables = score(*rows, options=ScoreDialogue(lex_weight=0.0), view=view)
    assert tables["steps"]["semantic_cosine_raw"].item() > 1
    assert tables["steps"]["semantic_similarity"].to_list() == [1.0]


def test_summary_groups_by_miner_and_challenge():
    rows = []
    for miner, uid, guesses in [(1, "x", ["ab"]), (1, "y", ["a", "ab"]), (2, "x", ["b"])]:
        labels = {"dialogue_uid": uid, "miner_uid": miner}
        for index, guess in enumerate(guesses):
            rows += [predicted(index, 0, guess, **labels), complete(index, "ab", **labels)]
    tables = {name: table.lazy() for name, table in score(*rows).items()}
    summary = summarise(SUITE, tables, LEXICAL)
    found = {(row["group"], row["value"], row["metric"]): row for row in summary.rows(named=True)}
    assert {(group, value) for group, value, _ in found} == {
        ("all", None),
        ("miner_uid", "1"),
        ("miner_uid", "2"),
    }
    # dialogue means 1, 0.75 and 0.5; utterance scores 1, 0.5, 1 and 0.5
    average = found["all", None, "average_U_best_early"]
    assert (average["n"], average["mean"], average["micro"]) == (3, 0.75, 0.75)
    first = found["miner_uid", "1", "average_U_best_early"]
    assert (first["n"], first["mean"]) == (2, 0.875)
    assert (first["micro_numerator"], first["micro_denominator"]) == (2.5, 3.0)
    assert found["miner_uid", "1", "U_best"]["n"] == 3
    off = found["miner_uid", "2", "semantic_similarity"]
    assert (off["n"], off["n_null"], off["n_not_applicable"], off["mean"]) == (0, 1, 1, None)


# --- ids of dialogues


def test_a_dialogue_named_like_a_file_is_not_that_file(tmp_path):
    rows = [
        '{"event": "predicted", "utterance_index": 0, "step": 0, "prediction": "yes"%s}',
        '{"event": "utterance_complete", "utterance_index": 0, "ground_truth": "yes"%s}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(row % "" for row in rows) + "\n")
    named = [row % ', "dialogue_uid": "a.jsonl"' for row in rows]
    (tmp_path / "b.jsonl").write_text("\n".join(named) + "\n")
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    dialogues = fastscore.score(tmp_path, options).tables["dialogues"]
    assert dialogues["dialogue"].to_list() == ["a.jsonl", "a%2Ejsonl"]
    assert dialogues.select(pl.col("average_U_best_early").sum()).item() == 2.0


def test_miners_by_a_shorter_key_are_told_apart():
    rows = [
        row
        for miner, said in (("m1", "yes"), ("m2", "no"))
        for row in utterance("yes", said, dialogue_uid="d", miner=miner)
    ]
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    dialogues = fastscore.score(rows, options).tables["dialogues"]
    # one step: U is the similarity of the letters, 1 and 0
    assert dialogues["miner_uid"].to_list() == ["m1", "m2"]
    assert dialogues["average_U_best_early"].to_list() == [1.0, 0.0]


def test_a_utility_is_negative_only_by_a_plain_cosine():
    said = ["a", "b", "b", "b", "b", "b"]  # the letter a is right once, at step 0
    rows = [
        row | {"dialogue_uid": f"d{number}", "utterance_index": 0}
        for number, prediction in enumerate(said)
        for row in (
            {"event": "predicted", "step": 0, "prediction": prediction},
            {"event": "utterance_complete", "ground_truth": "a"},
        )
    ]
    run = fastscore.score(rows, LEXICAL)
    (mean,) = run.summary.filter(metric="U_best", group="all").iter_rows(named=True)
    # Wilson's interval of 1 in 6 with t = 2.5706 of 5 degrees of freedom and (5/36) / (1/36) units:
    # (1/6 + t^2/10) / (1 + t^2/5) -+ t / (1 + t^2/5) * sqrt(1/36 + t^2/100)
    assert mean["mean"] == pytest.approx(1 / 6)
    assert (mean["ci_low"], mean["ci_high"]) == pytest.approx((0.017201, 0.695639), abs=1e-6)


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ([{}], (0.0, 1.0)),
        ([{"semantic": "jaccard"}], (0.0, 1.0)),
        ([{"semantic": "cosine"}], (-1.0, 1.0)),
        ([{"semantic": "cosine", "lex_weight": 1.0}], (0.0, 1.0)),
        ([{}, {"semantic": "cosine"}], (-1.0, 1.0)),
    ],
)
def test_runs_that_are_compared_have_the_range_of_all(options, ends):
    suite = SUITE.under(*(ScoreDialogue(**each) for each in options))
    assert {suite.metric(id).scale.ends for id in ("U_step", "U_best")} == {ends}
