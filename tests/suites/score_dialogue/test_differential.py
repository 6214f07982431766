"""Random dialogues, read from disk and scored at once, against the plain scorer, bit by bit."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fastscore.logs.integrity.file_state import whole_file
from fastscore.logs.read.rows import read_shard
from fastscore.suites.score_dialogue import SUITE, ScoreDialogue
from fastscore.vectors.view import VectorView
from tests.conftest import often
from tests.oracles.score_dialogue import score_log
from tests.suites.score_dialogue.comparing import (
    assert_tables_equal_oracle,
    refused_without_id,
    score_frame,
)
from tests.suites.score_dialogue.test_oracle import exact_vector

DIALOGUES = often(400, 100_000)
AT_ONCE = 400
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
ODD = (None, 0, False, [], {}, 1, 2.5, True, ["x"], {"x": 1}, "2", float("nan"))


def text(rng: random.Random) -> str:
    return rng.choice(("", " ", " ", "\n")).join(rng.choices(WORDS, k=rng.randrange(7)))


def dialogue(rng: random.Random, uid: str) -> list[dict[str, Any]]:
    """Make a dialogue of a few utterances, now and then with a value of another kind."""
    rows: list[dict[str, Any]] = []
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
            row[rng.choice(sorted(row))] = rng.choice(ODD)
    return rows


@pytest.mark.parametrize("seed", range(DIALOGUES // AT_ONCE))
def test_random_dialogues_are_scored_as_by_the_plain_scorer(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    options = ScoreDialogue(
        lex_weight=rng.choice((0.0, 0.3, 0.5, 1.0)),
        semantic=rng.choice(("calibrated", "cosine", "jaccard")),
        baseline_pairs=7,
    )
    path = tmp_path / "log.jsonl"
    lines = [
        json.dumps(row, ensure_ascii=rng.random() < 0.5)
        for number in range(AT_ONCE)
        for row in dialogue(rng, f"d{number}")
    ]
    path.write_text("\n".join(lines) + "\n")
    read = read_shard(whole_file(str(path)), SUITE.source)
    rows = [(str(path), number, json.loads(line)) for number, line in enumerate(lines, 1)]
    rows = refused_without_id(read.frame, rows, options)
    left = {number for _, number, _ in rows}
    kept = [line if number in left else "" for number, line in enumerate(lines, 1)]
    path.write_text("\n".join(kept) + "\n")
    read = read_shard(whole_file(str(path)), SUITE.source)
    texts = SUITE.texts(SUITE.read(read.frame, options), options).to_list()
    vectors = {each: exact_vector(each) for each in texts}
    matrix = np.array(list(vectors.values()), dtype=np.float32).reshape(-1, 8)
    view = VectorView.from_texts(pl.Series("text", texts, dtype=pl.String), matrix)
    _, tables = score_frame(read.frame, options, view)
    expected, rejected, _ = score_log(
        rows, weight=options.lex_weight, semantic=options.semantic, vectors=vectors, pairs=7
    )
    assert read.rejects.height == rejected
    assert len(expected) >= AT_ONCE
    assert_tables_equal_oracle(tables, expected, options)
