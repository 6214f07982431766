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


def test_miners_by_a_shorter_key_are_told_apart() -> None:
    rows = [
        {"dialogue_uid": "d", "miner": miner, "utterance_index": 0, "step": 0, "event": event}
        | text
        for miner, said in (("m1", "yes"), ("m2", "no"))
        for event, text in (
            ("predicted", {"prediction": said}),
            ("utterance_complete", {"ground_truth": "yes"}),
        )
    ]
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    dialogues = fastscore.score(rows, options).tables["dialogues"]
    # one step: U is the similarity of the letters, 1 and 0
    assert dialogues["miner_uid"].to_list() == ["m1", "m2"]
    assert dialogues["average_U_best_early"].to_list() == [1.0, 0.0]
