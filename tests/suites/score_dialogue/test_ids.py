"""Ids of dialogues: no two dialogues share one, whatever they are called."""

from pathlib import Path

import polars as pl

import fastscore


def test_a_dialogue_named_like_a_file_is_not_that_file(tmp_path: Path) -> None:
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
