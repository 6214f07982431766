"""Scores that public scripts wrote, read back number by number."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("log", "dialogue", "label", "table", "place", "metric"), pl.String()),
    "value": pl.Float64(),
    "decimals": pl.Int64(),
}
"""One row a number: the log's name without folders (null where the file does not say), the
dialogue's id, what tells apart those of one id, the table and place of ours with the same,
and how many decimals were written."""

Ids = Mapping[str, Sequence[str]]
"""The ids of a suite's metrics by table."""

_DECIMALS = re.compile(r"\.(\d+)$")


def score_dialogue_scores(name: str, content: bytes, metrics: Ids) -> pl.DataFrame:
    """Read a ``*-score.json`` of score_dialogue.py."""
    document = json.loads(content, parse_float=_Written)
    log, dialogue = document.get("log_file"), document.get("dialogue_uid")
    log = log.rpartition("/")[2] if isinstance(log, str) else log
    rows = []
    for utterance in document["utterances"]:
        place = str(utterance["utterance_number"])
        rows.append(("utterances", place, "U_best", utterance["U_best"]))
        for step in utterance.get("steps", ()):
            here = f"{place}/{step['step']}"
            rows += [
                ("steps", here, metric, step[metric])
                for metric in metrics["steps"]
                if metric in step
            ]
    for metric, value in document["dialogue_summary"].items():
        rows.append(("dialogues", "", metric, value))
    return _frame((log, dialogue, None, *row) for row in rows)


def memory_finance_scores(name: str, content: bytes, metrics: Ids) -> pl.DataFrame:
    """Read what MemFinRobot wrote: a summary with its dialogues, or the numbers of turns."""
    found: list[tuple[Any, ...]] = []
    if name.endswith(".json"):
        summary = json.loads(content, parse_float=_Written)
        for group, written in summary["metrics"].items():
            found += [
                (None, dialogue, None, "dialogues", "", metric, value)
                for dialogue, values in written["by_dialog"].items()
                for metric, value in values.items()
            ]
            found += [
                (None, None, None, "summary", f"{group} {part}", metric, value)
                for part in ("micro", "macro", "counts")
                for metric, value in written[part].items()
            ]
        return _frame(found)
    for line in content.splitlines():
        if line.strip():
            row = json.loads(line, parse_float=_Written)
            place = str(row["turn_pair_id"])
            found += [
                (None, row["dialog_id"], None, "turns", place, metric, row[metric])
                for metric in TURN_NUMBERS
                if metric in row
            ]
    return _frame(found)


TURN_NUMBERS = (
    *(f"eligible_m{number}" for number in range(1, 6) if number != 2),
    "constraint_contradiction",
    "risk_tag_hits",
    "judge_score_1_5",
)
"""The columns of memory_finance's turn rows that are numbers, or true or false; M2 has no turns."""


def preference_shift_scores(name: str, content: bytes, metrics: Ids) -> pl.DataFrame:
    """Read a ``results.jsonl``: the numbers of each conversation that have our names."""
    found = []
    for line in content.splitlines():
        if line.strip():
            row = json.loads(line, parse_float=_Written)
            label = row.get("model") or row.get("model_name")
            found += [
                (None, row.get("session_id"), label, "dialogues", "", metric, row[metric])
                for metric in metrics["dialogues"]
                if isinstance(row.get(metric, ""), int | float | None)
            ]
    return _frame(found)


def guest_simulation_scores(name: str, content: bytes, metrics: Ids) -> pl.DataFrame:
    """Read an ``all_conversations_metrics.csv``; its folder ``exp<k>`` names the level."""
    level = re.search(r"exp(\d+)", name)
    found = []
    for row in csv.DictReader(io.StringIO(content.decode("utf-8-sig"))):
        found += [
            (
                None,
                row["conversation_id"],
                level.group(1) if level else None,
                "dialogues",
                "",
                metric,
                _Written(row[metric]),
            )
            for metric in metrics["dialogues"]
            if row.get(metric)
        ]
    return _frame(found)


READERS: Mapping[str, Callable[[str, bytes, Ids], pl.DataFrame]] = {
    "score_dialogue": score_dialogue_scores,
    "memory_finance": memory_finance_scores,
    "preference_shift": preference_shift_scores,
    "guest_simulation": guest_simulation_scores,
}
"""What reads a suite's published scores: from a file's name, its content and our metrics."""


class _Written(float):
    """A number that remembers how many decimals it was written with."""

    decimals: int

    def __new__(cls, text: str) -> "_Written":
        number = super().__new__(cls, text)
        found = _DECIMALS.search(text)
        number.decimals = len(found.group(1)) if found else 17 if "e" in text.lower() else 0
        return number


def _frame(rows: Iterator[tuple[Any, ...]] | Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    written = []
    for *place, value in rows:
        number = None if value is None else float(value)
        written.append((*place, number, getattr(value, "decimals", 0)))
    return pl.DataFrame(written, schema=SCHEMA, orient="row")


DIFFERS_BY = {
    "": "--profile, --catalogue, --extract, --match, --window",
    "PAS": "--profile published, --states, --states-from, --personas",
    "BVS": "--profile published, --states, --states-from",
    "ORA": "--profile published, --states-from",
    "DEI": "--profile published, --level",
    "CRRS": "--profile published",
    "judge_score_1_5": "--lexicon",
    "lexical_similarity": "no option, but other texts or steps spelt 1.0",
    "semantic_cosine_raw": "--embedder, --precision, --dim",
    "semantic_similarity": "--semantic, --embedder, --dim, --baseline-pairs, --baseline-seed",
    "U_step": "--lex-weight, --pppl-weight, other texts or steps spelt 1.0",
    "U_best": "--lex-weight, --pppl-weight, other texts or steps spelt 1.0",
    "average_U_best_early": "--lex-weight, --pppl-weight, other texts or steps spelt 1.0",
    "semantic_baseline_b": "--embedder, --dim, --baseline-pairs, --baseline-seed",
}
"""By metric the options by which it may differ, in words; those of "" for all others."""
