"""Comparing the suite's tables with the oracle's dialogues."""

import itertools
import json
import re
from typing import Any

import polars as pl
import pytest

from fastscore.errors import InputError
from fastscore.suites.base import Events
from fastscore.suites.score_dialogue import SUITE, ScoreDialogue
from fastscore.vectors.view import VectorView
from tests.oracles.score_dialogue import added_in_order, rows_without_id
from tests.suites.reading import read_lines

NOT_APPLICABLE = "not_applicable"
Row = tuple[str, int, dict[str, Any]]
PERPLEXITIES = {"pppl_prediction", "pppl_ground_truth", "pppl_penalty"}


def raw_frame(rows: list[Row]) -> tuple[pl.DataFrame, int]:
    """Return (file, line, object) rows as they are read, and how many were rejected."""
    frames, rejected = [read_lines(SUITE.source, []).frame], 0
    for file, of_file in itertools.groupby(rows, key=lambda row: row[0]):
        # every other line without escapes
        numbered = {line: json.dumps(row, ensure_ascii=line % 2 == 0) for _, line, row in of_file}
        lines = [numbered.get(line, "") for line in range(1, max(numbered) + 1)]
        read = read_lines(SUITE.source, lines)
        frames.append(read.frame.with_columns(file=pl.lit(file)))
        rejected += read.rejects.height
    return pl.concat(frames), rejected


def score_frame(
    raw: pl.DataFrame, options: ScoreDialogue, view: VectorView | None = None
) -> tuple[Events, dict[str, pl.DataFrame]]:
    events = SUITE.read(raw, options)
    tables = SUITE.score(events, view or VectorView.empty(), options)
    for table in SUITE.tables:
        assert dict(tables[table.name].schema) == table.schema
    return events, tables


def refused_without_id(raw: pl.DataFrame, rows: list[Row], options: ScoreDialogue) -> list[Row]:
    """Check that the first row without an id that its file has elsewhere is refused; drop such."""
    without = rows_without_id(rows)
    if without:
        file, line = without[0]
        with pytest.raises(InputError, match=f"^{re.escape(file)}:{line}: dialogue_uid: empty"):
            SUITE.read(raw, options)
    return [row for row in rows if row[:2] not in without]


def switched_off(options: ScoreDialogue) -> set[str]:
    off = set()
    if not options.pppl_model:
        off |= PERPLEXITIES
    if options.lex_weight <= 0:
        off.add("lexical_similarity")
    if options.lex_weight >= 1:
        off |= {"semantic_cosine_raw", "semantic_similarity", "semantic_baseline_b"}
    if options.semantic == "jaccard":
        off |= {"semantic_cosine_raw", "semantic_baseline_b"}
    if options.semantic == "cosine":
        off.add("semantic_baseline_b")
    return off


def reasons(metrics: set[str], reason: str = NOT_APPLICABLE) -> set[tuple[str, str]]:
    return {(metric, reason) for metric in metrics}


def null_reasons(row: dict[str, Any]) -> set[tuple[str, str]]:
    return {(entry["metric"], entry["reason"]) for entry in row["null_reasons"]}


def assert_tables_equal_oracle(
    tables: dict[str, pl.DataFrame], expected: list[dict[str, Any]], options: ScoreDialogue
) -> None:
    """Compare every cell, doubles bit by bit."""
    off = switched_off(options)
    step_metrics = {
        "lexical_similarity",
        "semantic_cosine_raw",
        "semantic_similarity",
        *PERPLEXITIES,
    }
    steps, utterances = tables["steps"].rows(named=True), tables["utterances"].rows(named=True)
    dialogues = tables["dialogues"].rows(named=True)
    assert len(dialogues) == len(expected)
    next_step, next_utterance = iter(steps), iter(utterances)
    for row, dialogue in zip(dialogues, expected, strict=True):
        scored = [u for u in dialogue["utterances"] if u["steps"]]
        assert {label: row[label] for label in dialogue["labels"]} == dialogue["labels"]
        assert row["file"] == dialogue["file"]
        assert row["n_utterances"] == len(dialogue["utterances"])
        assert row["n_scored"] == len(scored)
        for count in ("n_incomplete", "n_predictions", "n_predictions_unscored"):
            assert row[count] == dialogue[count]
        assert row["U_best_sum"] == added_in_order([u["U_best"] for u in scored])
        assert row["average_U_best_early"] == dialogue["average"]
        expected_b = None if "semantic_baseline_b" in off else dialogue["baseline"]
        assert row["semantic_baseline_b"] == expected_b
        expected_reasons = reasons(off & {"semantic_baseline_b"})
        if not scored:
            expected_reasons |= reasons({"average_U_best_early"}, "missing_input")
        assert null_reasons(row) == expected_reasons
        for utterance in dialogue["utterances"]:
            found = next(next_utterance)
            assert found["dialogue"] == row["dialogue"]
            for field in ("utterance_index", "ground_truth", "line", "U_best", "best_step"):
                assert found[field] == utterance[field], field
            assert found["total_steps"] == len(utterance["steps"])
            assert found["status"] == ("ok" if utterance["steps"] else "no_steps")
            missing = set() if utterance["steps"] else {"U_best"}
            assert null_reasons(found) == reasons(missing, "missing_input")
            for step in utterance["steps"]:
                found = next(next_step)
                assert found["dialogue"] == row["dialogue"]
                assert found["utterance_index"] == utterance["utterance_index"]
                for field, value in step.items():
                    assert found[field] == (None if field in off else value), field
                assert null_reasons(found) == reasons(off & step_metrics - PERPLEXITIES)
    assert next(next_step, None) is None
    assert next(next_utterance, None) is None
