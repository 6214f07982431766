"""Traces for tests: made in a few words, read and scored as a run does."""

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from fastscore.suites.base import Events
from fastscore.suites.memory_finance import SUITE, MemoryFinance
from fastscore.vectors.view import VectorView
from tests.suites import reading

DEFAULTS = MemoryFinance()


def turn(reply: Any = "", *, keys: Any = None, **more: Any) -> dict[str, Any]:
    """Make an ok turn; tags by their short names, the rest as it stands in a trace."""
    tags = {
        "memory_required_keys_gt": keys,
        "risk_disclosure_required_gt": more.pop("risks", None),
        "explainability_rubric_gt": more.pop("rubric", None),
        "compliance_label_gt": more.pop("label", None),
    }
    return {
        "turn_pair_id": 1,
        "turn_status": "ok",
        "user_text": "",
        "gt_turn_tags": tags,
        "pred_assistant_text": reply,
        **more,
    }


def dialog(*turns: Any, **more: Any) -> dict[str, Any]:
    return {
        "dialog_id": "d",
        "run_id": "r",
        "valid_dialog": True,
        "dialog_status": "ok",
        "turns": list(turns),
        **more,
    }


def read_lines(
    lines: Sequence[str], options: MemoryFinance = DEFAULTS
) -> tuple[Events, pl.DataFrame]:
    """Read trace lines as a run does; return the events and the rejects of reading."""
    rows = reading.read_lines(SUITE.source, lines, "dialog_trace.jsonl")
    return SUITE.read(rows.frame, options), rows.rejects


def read(*dialogs: Any, options: MemoryFinance = DEFAULTS) -> Events:
    events, rejects = read_lines([json.dumps(d, ensure_ascii=False) for d in dialogs], options)
    assert rejects.is_empty()
    return events


def score(*dialogs: Any, options: MemoryFinance = DEFAULTS) -> dict[str, pl.DataFrame]:
    events = read(*dialogs, options=options)
    assert events.rejects.is_empty(), events.rejects.to_dicts()
    return SUITE.score(events, VectorView.empty(), options)


def first_turn(*dialogs: Any) -> dict[str, Any]:
    return score(*dialogs)["turns"].row(0, named=True)


def first_dialogue(*dialogs: Any) -> dict[str, Any]:
    return score(*dialogs)["dialogues"].row(0, named=True)
