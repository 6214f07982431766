"""Ids of dialogues: no two dialogues share one, whatever they are called."""

from pathlib import Path

import polars as pl

import fastscore


def test_a_dialogue_named_like_a_file_is_not_that_file(tmp_path: Path) -> None:
    rows = [
        '{"event": "predicted", "utterance_index": 0, "step": 0, "prediction": "yes"%s}',
        '{"event": "utterance_complete", "utterance_index": 0, "ground_truth": "yes"%s}',
    ]
    path = tmp_path / "a.jsonl"
    named = [row % f', "dialogue_uid": "{path}"' for row in rows]
    path.write_text("\n".join([row % "" for row in rows] + named) + "\n")
    dialogues = fastscore.score(path, fastscore.ScoreDialogue(lex_weight=1.0)).tables["dialogues"]
    escaped = str(path).replace("/", "%2F").removesuffix(".jsonl") + "%2Ejsonl"
    assert dialogues["dialogue"].to_list() == [str(path), escaped]
    assert dialogues.select(pl.col("average_U_best_early").sum()).item() == 2.0
