"""Small runs to compare, of miners and of guests; sides that are made of their values."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import fastscore
from fastscore.results.compare import Inference, Side, compare_sides
from fastscore.results.comparison import Comparison
from fastscore.results.runs import Run
from fastscore.suites.declarations import Design, Metric
from fastscore.suites.sums import Sums
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


def metric(id: str = "share", **how: object) -> Metric:
    facts = {"better": "higher", "minimum": 0.0, "maximum": 1.0, "headline": True} | how
    return Metric(id=id, name=id, table="dialogues", formula="", null_rule="", source="", **facts)  # type: ignore[arg-type]


BITS = 50


def sums_of(
    columns: Mapping[str, Sequence[float]],
    pairs: Sequence[object] | None = None,
    *,
    counts: Sequence[int] | None = None,
    repeats: Sequence[str] | None = None,
    metrics: Sequence[Metric] = (),
) -> Sums:
    """Make the sums of dialogues with these values, NaN for null, and as many rows each."""
    n = len(next(iter(columns.values())))
    names = [str(name) for name in (range(n) if pairs is None else pairs)]
    declared = tuple(metrics) or tuple(metric(id) for id in columns)
    parts: dict[str, Any] = {
        "id": [f"{name}#{place}" for place, name in enumerate(names)],
        "pair": names,
        "unit": names,
        "repeat": repeats if repeats is not None else [None] * n,
    }
    nulls = []
    for one in declared:
        values = np.asarray(columns[one.id], np.float64)
        known = ~np.isnan(values)
        rows = known * (np.ones(n, np.int64) if counts is None else np.asarray(counts))
        sums = np.where(known, values, 0.0) * rows
        parts |= {
            f"{one.id}:exact": [round(total * 2**BITS) for total in sums.tolist()],
            f"{one.id}:sum": sums,
            f"{one.id}:n": rows,
            f"{one.id}:at_minimum": ((values == one.minimum) * rows).astype(np.int64),
            f"{one.id}:at_maximum": ((values == one.maximum) * rows).astype(np.int64),
            f"{one.id}:fixed": np.zeros(n, np.int64),
            f"{one.id}:left_out": np.zeros(n, np.int64),
        }
        nulls += [(parts["id"][place], one.id, "bad_input", 1) for place in np.flatnonzero(~known)]
    schema = {"id": pl.String, "metric": pl.String, "reason": pl.String, "n": pl.Int64}
    return Sums(
        metrics=declared,
        design=Design(),
        frame=pl.DataFrame(parts, schema_overrides={"repeat": pl.String}),
        nulls=pl.DataFrame(nulls, schema=schema, orient="row"),
        bits=dict.fromkeys((one.id for one in declared), BITS),
        lacking={},
    )


def compared(sides: Mapping[str, Sums], repeats: str = "", **how: Any) -> Comparison:
    """Compare sides by their pairs."""
    metrics = next(iter(sides.values())).metrics
    group = [Side(None, name, sums) for name, sums in sides.items()]
    design = Design(repeat=repeats)
    return compare_sides("", [group], metrics, Inference(design=design, **how))
