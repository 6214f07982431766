"""Small runs to compare: of miners by their skill, of guests by their states."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

import fastscore
from fastscore.results.runs import Run
from tests.by_keywords import score_by_keywords

WORDS = ["please", "book", "a", "table", "for", "two", "near", "the", "station"]


def miner_rows(miner: str, skill: float, dialogues: range) -> Iterator[dict[str, Any]]:
    """Yield a miner's log: in each step it guesses a part of the words that depends on skill."""
    for dialogue in dialogues:
        chance = random.Random(f"{miner}{dialogue}")
        for utterance in range(1 + dialogue % 3):
            place = {
                "dialogue_uid": f"d{dialogue:02d}",
                "miner_uid": miner,
                "challenge_type": ("easy", "hard")[dialogue % 2],
                "utterance_index": utterance,
            }
            # the third dialogue's utterances have no step, so its average is null
            for step in range(0 if dialogue == 2 else 1 + dialogue % 2):
                guess = [word if chance.random() < skill else "um" for word in WORDS]
                yield {**place, "event": "predicted", "step": step, "prediction": " ".join(guess)}
            yield {**place, "event": "utterance_complete", "ground_truth": " ".join(WORDS)}


def scored(folder: Path, name: str, *logs: tuple[str, float, range], **options: Any) -> Run:
    source = folder / f"{name}.jsonl"
    rows = [row for log in logs for row in miner_rows(*log)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    chosen = {"lex_weight": 1.0, **options}
    run = score_by_keywords(source, "score_dialogue", output=folder / name, embedder=None, **chosen)
    assert isinstance(run, Run)
    return run


def row_of(frame: pl.DataFrame, **where: str) -> dict[str, Any]:
    return frame.row(
        by_predicate=pl.all_horizontal(True, *(pl.col(k) == v for k, v in where.items())),
        named=True,
    )


ADA = {"full_name": "Ada", "message_generation_attributes": {
    "next_message_menu_exploration_style": "explores_menu",
    "next_message_ordering_style": "one_by_one",
}}  # fmt: skip


STATES = {1.0: ("no", "explores_menu", "one_by_one"), 0.0: ("yes", "no_menu", "all_at_once")}


def guests(folder: Path, name: str, *conversations: tuple[str, int, list[float]]) -> Run:
    """Score conversations of (id, level, each message's PAS), each in the file of its level."""
    for index, (stem, level, scores) in enumerate(conversations):
        names = ("is_ordering_complete", "menu_exploration_style", "ordering_style")
        sender = {"role": "agent", "name": "guest_simulation_agent", "content": "hello"}
        rows = [{**sender, **dict(zip(names, STATES[score], strict=True))} for score in scores]
        content = json.dumps({"guest_persona": ADA, "target_order": {"order_items": []}})
        rows.append({"role": "system", "name": "test_case_info", "content": content})
        file = folder / name / "logs" / f"{index}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        place = {"conversation_id": stem, "experiment_level": level}
        file.write_text("".join(json.dumps({**place, **row}) + "\n" for row in rows))
    run = fastscore.score(folder / name / "logs", "guest_simulation", output=folder / name / "run")
    assert isinstance(run, Run)
    return run
