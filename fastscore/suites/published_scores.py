"""Scores that public scripts wrote, read back number by number."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    if isinstance(log, str):
        log = log.rpartition("/")[2]
    rows: list[tuple[Any, ...]] = []
    for utterance in document["utterances"]:
        place = str(utterance["utterance_number"])
        rows.append(("utterances", place, "U_best", utterance["U_best"]))
        for step in utterance.get("steps", ()):
            here = f"{place}/{step['step']}"
            rows += [("steps", here, *number) for number in _numbers(step, metrics["steps"])]
    rows += [(*_OF_DIALOGUE, *number) for number in document["dialogue_summary"].items()]
    return _frame((log, dialogue, None, *row) for row in rows)


def memory_finance_scores(name: str, content: bytes, metrics: Ids) -> pl.DataFrame:
    """Read what MemFinRobot wrote: a summary with its dialogues, or the numbers of turns."""
    if not name.endswith(".json"):
        return _frame(
            (None, row["dialog_id"], None, "turns", str(row["turn_pair_id"]), *number)
            for row in _lines(content)
            for number in _numbers(row, TURN_NUMBERS)
        )
    found: list[tuple[Any, ...]] = []
    for group, written in json.loads(content, parse_float=_Written)["metrics"].items():
        found += [
            (None, dialogue, None, "dialogues", "", *number)
            for dialogue, values in written["by_dialog"].items()
            for number in values.items()
        ]
        found += [
            (None, None, None, "summary", f"{group} {part}", *number)
            for part in ("micro", "macro", "counts")
            for number in written[part].items()
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
    return _frame(
        (
            None,
            row.get("session_id"),
            row.get("model") or row.get("model_name"),
            *_OF_DIALOGUE,
            *one,
        )
        for row in _lines(content)
        for one in _numbers(row, metrics["dialogues"])
        if isinstance(one[1], int | float | None)
    )


def guest_simulation_scores(name: str, content: bytes, metrics: Ids) -> pl.DataFrame:
    """Read an ``all_conversations_metrics.csv``; its folder ``exp<k>`` names the level."""
    level = re.search(r"exp(\d+)", name)
    return _frame(
        (None, row["conversation_id"], level and level[1], *_OF_DIALOGUE, metric, _Written(text))
        for row in csv.DictReader(io.StringIO(content.decode("utf-8-sig")))
        for metric, text in _numbers(row, metrics["dialogues"])
        if text
    )


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


_OF_DIALOGUE = ("dialogues", "")
"""The table and the place of a dialogue's numbers."""


def _lines(content: bytes) -> Iterator[dict[str, Any]]:
    return (json.loads(line, parse_float=_Written) for line in content.splitlines() if line.strip())


def _numbers(row: Mapping[str, Any], metrics: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield those of some metrics that a row has."""
    return ((metric, row[metric]) for metric in metrics if metric in row)


def _frame(rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    written = [
        (*place, None if value is None else float(value), getattr(value, "decimals", 0))
        for *place, value in rows
    ]
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
