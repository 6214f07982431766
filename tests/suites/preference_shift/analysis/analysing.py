"""Tables of a run of preference_shift, made by the plain scorer."""

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from fastscore.suites.preference_shift.analysis.tables import Scored, make_scored
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.preference_shift.schema import TABLES
from tests.oracles import preference_shift as plain
from tests.oracles import preference_shift_concepts as plain_concepts

Row = dict[str, Any]


def tables_of(
    logs: Sequence[Row], catalogue: plain_concepts.Catalogue, profile: str = "default"
) -> dict[str, pl.LazyFrame]:
    """Score logs plainly and lay the scores out as the suite does, as far as an analysis reads."""
    rows: dict[str, list[Row]] = {table.name: [] for table in TABLES}
    for line, log in enumerate(logs, start=1):
        scored = plain.score_conversation(log, catalogue, plain_concepts.PROFILES[profile])
        place = {
            "file": "logs.jsonl",
            "line": line,
            "dialogue": f"{scored['session_id']}/model={scored['model_name']}",
            "session_id": scored["session_id"],
            "model": scored["model_name"],
        }
        for name, found in _rows(log, scored).items():
            rows[name] += [{**place, **row} for row in found]
    return {table.name: pl.LazyFrame(rows[table.name], schema=table.schema) for table in TABLES}


def scored_of(tables: dict[str, pl.LazyFrame], **options: Any) -> Scored:
    return make_scored(
        tables, PreferenceShift(**{"catalogue": "catalogue.jsonl"} | options), "signature"
    )


def _rows(log: Row, scored: Row) -> dict[str, list[Row]]:
    starts = [segment["start_turn"] for segment in scored["segments"]]
    points = scored["shift_points"]
    turns = [
        {
            "turn": turn,
            "segment": sum(start <= turn for start in starts),
            "is_shift": turn in points,
            **{name: row[name] for name in ("cc", "cr", "i", "tas")},
            "both_empty": not row["user_concepts"] and not row["system_concepts"],
            "user_concepts": sorted(row["user_concepts"]),
            "system_concepts": sorted(row["system_concepts"]),
        }
        for turn, row in enumerate(scored["turns"], start=1)
    ]
    shifts = [
        {
            "turn": turn,
            "in_dialogue": turn <= scored["num_turns"],
            "recovered": recovered,
            "delay": delay,
        }
        for turn, delay, recovered in zip(
            points, scored["delays"], scored["recovered"], strict=True
        )
    ]
    dialogue = {
        "n_turns": scored["num_turns"],
        "n_shifts": len(points),
        "cross_coherence": scored["cc"],
        "context_retention": scored["cr"],
        "topic_interference": scored["i"],
        "context_adaptation_score": scored["tas"],
        "topic_recovery_rate": scored["recovery_rate"],
        "avg_recovery_delay": scored["avg_recovery_delay"],
        "cas": scored["cas"],
        "cas_all": scored["cas_all"],
        "topic_interference_around_shifts": scored["i_around_shifts"],
        "judge": json.dumps(log["judge"]) if "judge" in log else None,
    }
    return {"turns": turns, "shifts": shifts, "segments": [], "dialogues": [dialogue]}
