"""The suite against the plain-Python oracle, on random logs."""

import hashlib
import random
from typing import Any

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from fastscore.suites.declarations import INCOMPLETE, NO_SUCH_STEP, REPLACED_ROWS
from fastscore.suites.score_dialogue import SUITE, ScoreDialogue
from fastscore.vectors.view import VectorView
from tests.conftest import often
from tests.oracles.score_dialogue import score_log
from tests.suites.score_dialogue.comparing import (
    Row,
    assert_tables_equal_oracle,
    raw_frame,
    refused_without_id,
    score_frame,
)

TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", "EOF", "aEOF", "a EOF EOF", "\x1fhello\u2003EOF\x85", "hello there", "hello",
         "a b a", "b\u00a0a", "naïve", "naive", "e\u0301té", "👩‍👩‍👧 ok", "你好，世界", "eof"]
    ),
    st.text(alphabet="ab EOF\u3000é你", max_size=12),
)  # fmt: skip
FALSY = st.sampled_from([None, 0, 0.0, False, [], {}])
ODD = st.sampled_from([1, 2.5, True, ["x"], {"x": 1}])
VALUES = st.one_of(TEXTS, TEXTS, TEXTS, TEXTS, TEXTS, FALSY, ODD)
INDICES = st.one_of(
    st.integers(-1, 3),
    st.sampled_from(["1", " 2 ", 1.7, -0.5, True, None, "x", float("nan"), float("inf"), [1]]),
)
STEPS = st.one_of(st.integers(-1, 4), st.sampled_from(["2", 2.0, None, True, False, 10**30]))
LABELS = st.sampled_from([{}, {}, {"miner_uid": "m"}, {"miner_uid": 7, "challenge_type": 1.5},
                          {"challenge_uid": "c/1"}, {"challenge_type": "t"},
                          {"miner_hotkey": "h", "challenge_uid": "c"}])  # fmt: skip
UIDS = st.sampled_from([{}, {}, {}, {"dialogue_uid": "d"}, {"dialogue_uid": 1},
                        {"dialogue_uid": None}, {"dialogue_uid": [1]}])  # fmt: skip


@st.composite
def event_rows(draw: st.DrawFn) -> dict[str, Any]:
    event = draw(
        st.sampled_from(["predicted"] * 6 + ["utterance_complete"] * 4 + ["revealed", "step", None])
    )
    row = {"event": event, **draw(UIDS), **draw(LABELS)}
    if draw(st.integers(0, 9)):
        row["utterance_index"] = draw(INDICES)
    if event != "utterance_complete" or not draw(st.integers(0, 4)):
        row["step"] = draw(STEPS)
    if event in ("predicted", "step") or not draw(st.integers(0, 4)):
        row["prediction"] = draw(VALUES)
    if event == "utterance_complete" or not draw(st.integers(0, 4)):
        row["ground_truth"] = draw(VALUES)
    return row


@st.composite
def plain_rows(draw: st.DrawFn) -> dict[str, Any]:
    """Rows without odd types, so that most logs have several scored utterances."""
    event = draw(st.sampled_from(["predicted", "predicted", "utterance_complete"]))
    row = {"event": event, "utterance_index": draw(st.integers(0, 2))}
    if event == "predicted":
        return row | {"step": draw(st.integers(0, 3)), "prediction": draw(TEXTS)}
    return row | {"ground_truth": draw(TEXTS)}


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    kind = draw(st.sampled_from([event_rows(), plain_rows()]))
    rows = draw(st.lists(kind, max_size=25))
    cut = draw(st.integers(0, len(rows)))
    first = [("one.jsonl", line, row) for line, row in enumerate(rows[:cut], 1)]
    return first + [("two.jsonl", line, row) for line, row in enumerate(rows[cut:], 1)]


def exact_vector(text):
    """Give the text a unit vector whose cosines are multiples of 1/4: exact in any order."""
    digest = hashlib.sha256(text.encode()).digest()
    places = sorted(range(8), key=lambda place: digest[place])[:4]
    vector = [0.0] * 8
    for place in places:
        vector[place] = 0.5 if digest[8 + place] < 200 else -0.5
    return vector


def check(rows, options):
    """Compare the scores of rows, read from disk, bit by bit; return the number of dialogues."""
    rows = refused_without_id(raw_frame(rows)[0], rows, options)
    raw, rejected = raw_frame(rows)
    texts = SUITE.texts(SUITE.read(raw, options), options)
    assert texts.dtype == pl.String
    assert texts.n_unique() == texts.len()
    assert bool(texts.len()) <= SUITE.needs_vectors(options)
    vectors = {text: exact_vector(text) for text in texts}
    matrix = np.array(list(vectors.values()), dtype=np.float32).reshape(-1, 8)
    events, tables = score_frame(raw, options, VectorView.from_texts(texts, matrix))
    expected, expected_rejected, ignored = score_log(
        rows,
        weight=options.lex_weight,
        semantic=options.semantic,
        vectors=vectors,
        pairs=options.baseline_pairs,
        seed=options.baseline_seed,
    )
    assert rejected == expected_rejected
    assert events.counts["ignored"] == ignored
    # each row is counted once; a replaced and a late one have an event too
    noted = (REPLACED_ROWS, NO_SUCH_STEP, INCOMPLETE)
    assert sum(n for name, n in events.counts.items() if name not in noted) == raw.height
    assert events.counts.get(INCOMPLETE, 0) == sum(d["n_incomplete"] for d in expected)
    assert events.counts.get(NO_SUCH_STEP, 0) == sum(d["n_no_such_step"] for d in expected)
    assert events.rejects.is_empty()
    assert_tables_equal_oracle(tables, expected, options)
    return len(expected)


@pytest.mark.parametrize("semantic", ["calibrated", "cosine", "jaccard"])
@settings(max_examples=often(30, 1_000))
@given(rows=logs(), weight=st.sampled_from([0.0, 0.3, 0.5, 1.0]), seed=st.integers(-2, 2))
def test_suite_equals_oracle(rows, semantic, weight, seed):
    options = ScoreDialogue(
        lex_weight=weight, semantic=semantic, baseline_pairs=7, baseline_seed=seed
    )
    check(rows, options)


# --- random dialogues, many at once

DIALOGUES, AT_ONCE = often(400, 100_000), 400
WORDS = (
    *(
        "hello",
        "there",
        "a",
        "table",
        "for",
        "two",
        "EOF",
        "naïve",
        "e\u0301té",
        "你好",
        "👩‍👧",
        "",
    ),
    *("\u2003", "\x1f", "a\u00a0b", '"quoted"', "back\\slash", "tab\there", "please", "book"),
)
OF_OTHER_KINDS = (None, 0, False, [], {}, 1, 2.5, True, ["x"], {"x": 1}, "2", float("nan"))


def text(rng):
    return rng.choice(("", " ", " ", "\n")).join(rng.choices(WORDS, k=rng.randrange(7)))


def dialogue(rng, uid):
    """Make a dialogue of a few utterances, now and then with a value of another kind."""
    rows = []
    for utterance in range(rng.randrange(1, 4)):
        truth = text(rng)
        for step in range(rng.randrange(5)):
            said = truth[: rng.randrange(len(truth) + 1)] + rng.choice(("", text(rng)))
            rows.append({"event": "predicted", "step": step, "prediction": said})
            if rng.random() < 0.3:
                rows.append({"event": "revealed", "step": step})
        if rng.random() < 0.9:
            rows.append({"event": "utterance_complete", "ground_truth": truth})
        for row in rows:
            row.setdefault("utterance_index", utterance)
    if rng.random() < 0.3:
        rng.shuffle(rows)
    for row in rows:
        row |= {"dialogue_uid": uid, "miner_uid": rng.choice(("m", "n", 7))}
        if rng.random() < 0.02:
            row[rng.choice(sorted(row))] = rng.choice(OF_OTHER_KINDS)
    return rows


@pytest.mark.parametrize("seed", range(DIALOGUES // AT_ONCE))
def test_random_dialogues_are_scored_as_by_the_plain_scorer(seed):
    rng = random.Random(seed)
    options = ScoreDialogue(
        lex_weight=rng.choice((0.0, 0.3, 0.5, 1.0)),
        semantic=rng.choice(("calibrated", "cosine", "jaccard")),
        baseline_pairs=7,
    )
    rows = [row for number in range(AT_ONCE) for row in dialogue(rng, f"d{number}")]
    assert check([("log.jsonl", line, row) for line, row in enumerate(rows, 1)], options) >= AT_ONCE
