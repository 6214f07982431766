"""Small right logs of every suite, to be made wrong."""

import json
from pathlib import Path
from typing import Any

import polars as pl

Row = dict[str, Any]

RIGHT: dict[str, list[Row]] = {
    "score_dialogue": [
        {"event": "predicted", "utterance_index": 0, "step": 0, "prediction": "hello you"},
        {"event": "predicted", "utterance_index": 0, "step": 1, "prediction": "hello there"},
        {"event": "utterance_complete", "utterance_index": 0, "ground_truth": "hello there"},
    ],
    "preference_shift": [
        {
            "session_id": "s1",
            "conversation": [
                {"speaker": "USER", "text": "a comedy"},
                {"speaker": "SYSTEM", "text": "try this comedy"},
            ],
        }
    ],
    "memory_finance": [
        {
            "dialog_id": "d1",
            "valid_dialog": True,
            "turns": [
                {"turn_pair_id": 1, "turn_status": "ok", "pred_assistant_text": "funds may fall"},
                {"turn_pair_id": 2, "turn_status": "ok", "pred_assistant_text": "hold bonds"},
            ],
        }
    ],
    "guest_simulation": [
        {"conversation_id": "c1", "role": "agent", "content": "a burger please"},
        {"conversation_id": "c1", "role": "assistant", "content": "anything else?"},
    ],
    "group_travel": [
        {"dialogue_id": "t1", "speaker": "ann", "intent": "user_provide_cuisine", "utterance": "x"},
        {"dialogue_id": "t1", "speaker": "system", "intent": "sys_present_plan", "utterance": "y"},
    ],
}
NEEDED = {
    "score_dialogue": "prediction",
    "preference_shift": "text",
    "memory_finance": "pred_assistant_text",
    "guest_simulation": "role",
    "group_travel": "utterance",
}
OTHER_NAMES = {
    "score_dialogue": "text",
    "preference_shift": "content",
    "memory_finance": "response",
    "guest_simulation": "speaker",
    "group_travel": "message",
}
ARRAYS = {"preference_shift": "conversation", "memory_finance": "turns"}


def changed(suite: str, change: Any) -> list[Row]:
    """Return a suite's right rows with a change made to every object that holds what it needs."""
    rows: list[Row] = json.loads(json.dumps(RIGHT[suite]))
    array = ARRAYS.get(suite)
    if array is None:
        return [change(row) if NEEDED[suite] in row else row for row in rows]
    return [{**row, array: [change(turn) for turn in row[array]]} for row in rows]


def renamed(suite: str, name: str) -> list[Row]:
    needed = NEEDED[suite]
    return changed(suite, lambda row: {name if k == needed else k: v for k, v in row.items()})


def without(suite: str) -> list[Row]:
    needed = NEEDED[suite]
    return changed(suite, lambda row: {k: v for k, v in row.items() if k != needed})


def nulled(suite: str) -> list[Row]:
    return changed(suite, lambda row: {**row, NEEDED[suite]: None})


def nested(suite: str, holder: str) -> list[Row]:
    """Return rows whose needed column stands in an object."""
    needed = NEEDED[suite]

    def inside(row: Row) -> Row:
        rest = {k: v for k, v in row.items() if k != needed}
        return {**rest, holder: {needed: row[needed]}}

    return changed(suite, inside)


def write(path: Path, rows: list[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pl.DataFrame(rows).write_parquet(path)
    elif path.suffix == ".csv":
        pl.DataFrame(rows).write_csv(path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
