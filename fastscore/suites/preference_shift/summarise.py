"""The files that the published evaluation wrote.

What the seed's own analysis reads is where it expects it. Values are those of the tables: a
metric that is null there is null here too. A judge's score outside the rubric enters no mean.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import polars as pl
from fastscore_jit.arrays import Mask
from fastscore_readers.json.tokens import FLOAT, INTEGER, OBJECT
from polars import col as C

from fastscore.suites.json_values import JsonValues, Problems, column_values, members, raw_texts
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.showing import Row

_ROW = "dialogue_row"
MOST_FREQUENT = 10
JUDGE_SCORES = ("proactiveness", "coherence", "personalization")
JUDGE_RANGE = (1, 5)
_JUDGE_REJECTS = "judge_rejects.csv"
_KINDS = ("missing", "hallucinated")

_HEADLINES = {
    "cross_coherence": "cross_coherence",
    "context_retention": "context_retention",
    "topic_interference": "topic_interference",
    "context_adaptation_score": "context_adaptation_score",
    "concept_overlap_mean": "cross_coherence",
    "constraint_similarity_mean": "context_retention",
    "weighted_constraint_similarity_mean": "context_retention",
    "copying_penalty_mean": "topic_interference",
    "adaptation_score_mean": "context_adaptation_score",
    "trajectory_adaptation_score_mean": "context_adaptation_score",
    "topic_recovery_rate": "topic_recovery_rate",
    "concept_recovery_rate": "topic_recovery_rate",
    "avg_recovery_delay": "avg_recovery_delay",
    "avg_concept_recovery_delay": "avg_recovery_delay",
}
"""The published keys, several for one number, and the column that holds it."""

_COSINE = ("recovery_rate_cosine", "avg_recovery_delay_cosine")
_DST = ("dst_precision", "dst_recall", "dst_f1", "dst_joint_accuracy")
_MEANS = ("cross_coherence", "context_retention", "topic_interference", "context_adaptation_score")
_RECOVERY = ("topic_recovery_rate", "avg_recovery_delay")
_MODEL_METRICS = (*_RECOVERY, "topic_interference", *_MEANS[:2], "context_adaptation_score")
_STRUCTURED_MODEL_METRICS = (
    *_MEANS,
    *("concept_overlap_mean", "constraint_similarity_mean", "copying_penalty_mean"),
    *("adaptation_score_mean", "weighted_constraint_similarity_mean"),
    *("trajectory_adaptation_score_mean", "concept_recovery_rate", "avg_concept_recovery_delay"),
    *_RECOVERY,
    *(f"{kind}_concepts_total" for kind in _KINDS),
    *(f"{metric}_mean" for metric in _DST),
    *_COSINE,
    *(f"judge.{name}" for name in JUDGE_SCORES),
)
"""The successor's columns in its order; its other table of models has the judge's plain names."""


def legacy_files(
    lazy_tables: Mapping[str, pl.LazyFrame], inputs: tuple[str, ...], options: PreferenceShift
) -> dict[str, bytes]:
    """Make the public evaluation's files; none without the option."""
    if not options.legacy_files:
        return {}
    tables = {name: table.collect() for name, table in lazy_tables.items()}
    dialogues, refused = _judged(tables["dialogues"])
    files = {
        "results.jsonl": _results({**tables, "dialogues": dialogues}, options),
        "model_metrics.csv": _model_metrics(dialogues, options).write_csv().encode(),
    }
    by_model = dialogues.drop_nulls("model").partition_by("model", as_dict=True)
    for (model,), rows in by_model.items():
        content = rows.select("model", *JUDGE_SCORES).write_csv()
        files[f"{_file_name(str(model))}_judge_scores.csv"] = content.encode()
    if refused.height:
        files[_JUDGE_REJECTS] = refused.write_csv().encode()
    return files


def _file_name(model: str) -> str:
    """Return a model's name as a file can have it: no two models share one."""
    return re.sub(r"[%/\\\x00-\x1f]", lambda found: f"%{ord(found[0]):02X}", model)


def _judged(dialogues: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the conversations with the judge's object and scores, and what is none of them."""
    problems = Problems()
    judge = column_values(dialogues["judge"])
    scores = members(judge, JUDGE_SCORES, problems)
    usable = judge.tags == OBJECT
    usable[list(problems.by_dialogue)] = False
    columns = [raw_texts(judge.where(usable)).alias("judge")]
    refused = [_refused(judge, ~judge.is_missing & ~usable, "judge", "an object of scores")]
    low, high = JUDGE_RANGE
    for name, values in scores.items():
        is_number = (values.tags == INTEGER) | (values.tags == FLOAT)
        number = raw_texts(values.where(usable & is_number)).cast(pl.Float64, strict=False)
        inside = number.is_between(low, high).fill_null(False)
        columns.append(pl.select(pl.when(inside).then(number).alias(name)).to_series())
        faulty = usable & ~values.is_missing & ~inside.to_numpy()
        expected = f"a number from {low} to {high}, or null"
        refused.append(_refused(values, faulty, f"judge.{name}", expected))
    places = dialogues.select("file", "line", "model", "session_id")
    listed = pl.concat(refused).sort(_ROW, maintain_order=True)
    return (
        dialogues.with_columns(columns),
        pl.concat([places[listed[_ROW]], listed.drop(_ROW)], how="horizontal"),
    )


def _refused(values: JsonValues, faulty: Mask, field: str, expected: str) -> pl.DataFrame:
    rows = np.flatnonzero(faulty)
    found = [values.describe(row) for row in rows.tolist()]
    return pl.DataFrame({_ROW: rows, "found": pl.Series(found, dtype=pl.String)}).select(
        _ROW, pl.lit(field).alias("field"), "found", pl.lit(expected).alias("expected")
    )


def _model_metrics(dialogues: pl.DataFrame, options: PreferenceShift) -> pl.DataFrame:
    of_profile = _STRUCTURED_MODEL_METRICS if options.profile == "structured" else _MODEL_METRICS
    columns = {name: _HEADLINES.get(name, name.removeprefix("judge.")) for name in of_profile}
    columns |= {name: name for name in JUDGE_SCORES}
    means = [C(column).mean().alias(name) for name, column in columns.items()]
    return dialogues.group_by("model", maintain_order=True).agg(means).sort("model")


def _results(tables: Mapping[str, pl.DataFrame], options: PreferenceShift) -> bytes:
    """Write one line a conversation."""
    written = ("dialogue", *(f"{kind}_concepts" for kind in _KINDS), *_DST)
    items = tables["turns"].select(*written, item=_turn_item(options))
    turns, segments = (
        frame.rows_by_key("dialogue", named=True) for frame in (items, tables["segments"])
    )
    lines = (
        _result(row, turns.get(row["dialogue"], []), segments.get(row["dialogue"], []), options)
        for row in tables["dialogues"].iter_rows(named=True)
    )
    return b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)


def _result(
    row: Row, turns: Sequence[Row], segments: Sequence[Row], options: PreferenceShift
) -> dict[str, Any]:
    """Return what the published evaluation writes of a conversation."""
    structured = options.profile == "structured"
    per_turn = {kind: [turn[f"{kind}_concepts"] for turn in turns] for kind in _KINDS}
    found = {
        "model": row["model"],
        **({"model_name": row["model"]} if structured else {}),
        "session_id": row["session_id"],
        **{key: row[column] for key, column in _HEADLINES.items()},
        **{f"{kind}_concepts_total": row[f"{kind}_concepts_total"] for kind in _KINDS},
        **{f"{kind}_concepts_per_turn": per_turn[kind] for kind in _KINDS},
        **{f"{kind}_concepts_topk": _most_frequent(per_turn[kind]) for kind in _KINDS},
    }
    if structured:
        found |= {column: row[column] for column in _COSINE}
        found |= {f"{metric}_mean": row[f"{metric}_mean"] for metric in _DST}
        found |= {f"{metric}_per_turn": [turn[metric] for turn in turns] for metric in _DST}
    detail = {
        "turn_level": [orjson.Fragment(turn["item"]) for turn in turns],
        "segments": [
            {
                "start_turn": segment["start_turn"],
                "end_turn": segment["end_turn"],
                **{name: segment[f"segment_{name}"] for name in ("cc", "cr", "i", "tas")},
                **{f"{kind}_concepts": segment[f"{kind}_concepts"] for kind in _KINDS},
            }
            for segment in segments
        ],
        "shift_points": row["shift_points"],
        **({"num_turns": row["n_turns"]} if turns else {}),
    }
    return found | {"detail": detail, "judge": orjson.Fragment(row["judge"] or "{}")}


def _turn_item(options: PreferenceShift) -> pl.Expr:
    """Return a turn as JSON text: with its metadata as they were in the log."""
    head = pl.struct("turn", "cc", "cr", "i", "tas").struct.json_encode()
    rest = [C("missing_concepts"), C("hallucinated_concepts")]
    if options.profile == "structured":
        rest += [
            C("user_text"),
            C("system_text"),
            C("user_concepts"),
            C("system_concepts"),
            C("gold_concepts").alias("gold_constraint_concepts"),
            *_by_field(options),
        ]
    return pl.concat_str(
        head.str.strip_suffix("}"),
        pl.lit(',"user_meta":'),
        C("user_meta").fill_null("{}"),
        pl.lit(","),
        pl.struct(rest).struct.json_encode().str.strip_prefix("{"),
    )


def _by_field(options: PreferenceShift) -> Iterable[pl.Expr]:
    fields = (*options.field_names, *((options.plot_prefix,) if options.plot_keywords else ()))
    for column, name in (
        ("user_concepts", "user_concepts_by_field"),
        ("system_concepts", "system_concepts_by_field"),
        ("missing_concepts", "missing_by_field"),
        ("hallucinated_concepts", "hallucinated_by_field"),
    ):
        yield pl.struct(
            C(column)
            .list.eval(pl.element().filter(pl.element().str.starts_with(f"{field}=")))
            .list.eval(pl.element().str.strip_prefix(f"{field}="))
            .alias(field)
            for field in fields
        ).alias(name)


def _most_frequent(per_turn: Iterable[Sequence[str]]) -> list[dict[str, Any]]:
    """Return the most frequent concepts; on a draw the one counted first."""
    counted = Counter(concept for concepts in per_turn for concept in concepts)
    return [{"concept": name, "count": n} for name, n in counted.most_common(MOST_FREQUENT)]
