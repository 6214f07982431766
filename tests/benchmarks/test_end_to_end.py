"""The measuring itself: costs, agreement, sizes and ratios, without timing anything."""

import json
from pathlib import Path
from typing import Any

import click
import polars as pl
import pytest

from benchmarks.end_to_end import distinct_pairs, net_rate
from benchmarks.processes import Cost
from benchmarks.scenarios import DisagreementError, Side, check_agreement

STEP = {
    "lexical_similarity": 0.5,
    "earliness": 1.0,
    "semantic_cosine_raw": 0.25,
    "semantic_similarity": 0.125,
    "U_step": 0.3125,
}


def write_scores(folder: Path, **changed: float) -> Path:
    folder.mkdir()
    step = {"step": 0, **STEP, **changed, "prediction": "x"}
    document = {"utterances": [{"utterance_number": 3, "steps": [step]}]}
    (folder / "talk-score.json").write_text(json.dumps(document))
    return folder


def write_run(folder: Path, **changed: Any) -> Path:
    for name in ("dialogues", "steps"):
        (folder / name).mkdir(parents=True)
    pl.DataFrame({"dialogue": ["d"], "file": ["logs/talk.jsonl"]}).write_parquet(
        folder / "dialogues" / "part-00000.parquet"
    )
    row = {"dialogue": "d", "utterance_index": 3, "step": 0, **STEP, **changed}
    pl.DataFrame([row]).write_parquet(folder / "steps" / "part-00000.parquet")
    return folder


@pytest.mark.parametrize(
    ("column", "change", "agrees"),
    [
        ("lexical_similarity", 0.0001, False),
        ("lexical_similarity", 0.00001, True),
        ("semantic_cosine_raw", 0.0001, True),
        ("semantic_similarity", 0.0001, True),
        ("semantic_similarity", 0.0002, False),
        ("semantic_similarity", float("nan"), False),
        ("U_step", 0.0001, True),
        ("U_step", -0.0003, False),
    ],
)
def test_each_part_has_its_tolerance(tmp_path, column, change, agrees):
    scores = write_scores(tmp_path / "scores")
    run = write_run(tmp_path / "run", **{column: STEP[column] + change})
    if agrees:
        check_agreement(scores, run, lexical_only=False)
    else:
        with pytest.raises(DisagreementError, match=column):
            check_agreement(scores, run, lexical_only=False)


def test_rows_that_only_one_side_has_are_named(tmp_path):
    scores, run = write_scores(tmp_path / "scores"), write_run(tmp_path / "run", step=1)
    with pytest.raises(DisagreementError, match="same logs"):
        check_agreement(scores, run, lexical_only=True)


def test_pairs_are_counted_once(tmp_path):
    texts = ["a", "b", "a", "a"]
    rows = [{"event": "predicted", "prediction": text} for text in texts]
    lines = [*rows[:3], {"event": "utterance_complete", "ground_truth": "a"}]
    lines += [rows[3], {"event": "utterance_complete", "ground_truth": "b"}]
    (tmp_path / "part.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert distinct_pairs(tmp_path) == 3


def side(rows: int, *walls: float) -> Side:
    return Side(rows, [Cost(wall, wall / 2, 100.0) for wall in walls])


def test_start_up_is_taken_off_the_rate():
    sides = {"x": side(101, 3.0, 11.0, 7.0), "x start-up": side(1, 2.0)}
    assert net_rate(sides, "x", "wall") == 20.0
    sides["x start-up"] = side(1, 7.0)
    with pytest.raises(click.ClickException, match="more rows"):
        net_rate(sides, "x", "wall")
