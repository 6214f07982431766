"""The files that the published evaluation wrote.

What the seed's own analysis reads is where it expects it. Values are those of the tables: a
metric that is null there is null here too. A judge's score outside the rubric enters no mean.
"""

import re
from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl
from fastscore_jit.arrays import Mask
from fastscore_readers.json.tokens import FLOAT, INTEGER, OBJECT

from fastscore.suites.json_values import JsonValues, Problems, column_values, members, raw_texts
from fastscore.suites.preference_shift.options import PreferenceShift

_ROW = "dialogue_row"
MOST_FREQUENT = 10
JUDGE_SCORES = ("proactiveness", "coherence", "personalization")
JUDGE_RANGE = (1, 5)
_JUDGE_REJECTS = "judge_rejects.csv"
_KINDS = ("missing", "hallucinated")
_KEY = "dialogue"

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
    means = [pl.col(column).mean().alias(name) for name, column in columns.items()]
    return dialogues.group_by("model", maintain_order=True).agg(means).sort("model")


def _results(tables: Mapping[str, pl.DataFrame], options: PreferenceShift) -> bytes:
    """Write one line a conversation."""
    structured = options.profile == "structured"
    frame = tables["dialogues"].with_row_index(_ROW)
    rows = frame.select(_KEY, _ROW)
    turns = tables["turns"].join(rows, on=_KEY, how="left", maintain_order="left")
    segments = tables["segments"].join(rows, on=_KEY, how="left", maintain_order="left")
    per_turn = {
        "turn_level": _turn_item(options),
        **{f"{kind}_concepts_per_turn": _json(f"{kind}_concepts") for kind in _KINDS},
        **({f"{metric}_per_turn": _number(metric) for metric in _DST} if structured else {}),
    }
    for items in (
        _listed_by_row(turns, per_turn),
        _listed_by_row(segments, {"segments": _segment_item()}),
        *(_most_frequent(turns, kind) for kind in _KINDS),
    ):
        frame = frame.join(items, on=_ROW, how="left", maintain_order="left")
    members = [
        pl.concat_str(pl.lit(f'"{key}":'), value) for key, value in _members(structured).items()
    ]
    line = pl.concat_str(pl.lit("{"), pl.concat_str(members, separator=","), pl.lit("}\n"))
    return "".join(frame.select(line).to_series().to_list()).encode()


def _listed_by_row(frame: pl.DataFrame, items: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Join the items of each conversation by commas."""
    written = frame.select(_ROW, *(item.alias(name) for name, item in items.items()))
    return written.group_by(_ROW, maintain_order=True).agg(pl.col(*items).str.join(","))


def _members(structured: bool) -> dict[str, pl.Expr]:
    """Return the members of a line in order, each as JSON text."""
    names = {"model": _json("model"), **({"model_name": _json("model")} if structured else {})}
    members = {
        **names,
        "session_id": _json("session_id"),
        **{key: _number(column) for key, column in _HEADLINES.items()},
        **{f"{kind}_concepts_total": _number(f"{kind}_concepts_total") for kind in _KINDS},
        **{f"{kind}_concepts_per_turn": _listed(f"{kind}_concepts_per_turn") for kind in _KINDS},
        **{f"{kind}_concepts_topk": _listed(f"{kind}_concepts_topk") for kind in _KINDS},
    }
    if structured:
        members |= {column: _number(column) for column in _COSINE}
        members |= {f"{metric}_mean": _number(f"{metric}_mean") for metric in _DST}
        members |= {f"{metric}_per_turn": _listed(f"{metric}_per_turn") for metric in _DST}
    points = pl.concat_str(
        pl.lit("["), pl.col("shift_points").cast(pl.List(pl.String)).list.join(","), pl.lit("]")
    )
    n_turns = (
        pl.when(pl.col("n_turns") > 0)
        .then(pl.format(',"num_turns":{}', "n_turns"))
        .otherwise(pl.lit(""))
    )
    detail = pl.concat_str(
        pl.lit('{"turn_level":'),
        _listed("turn_level"),
        pl.lit(',"segments":'),
        _listed("segments"),
        pl.lit(',"shift_points":'),
        points,
        n_turns,
        pl.lit("}"),
    )
    return {**members, "detail": detail, "judge": pl.col("judge").fill_null("{}")}


def _number(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).fill_null("null")


def _json(column: str) -> pl.Expr:
    """Write a column's value as JSON."""
    encoded = pl.struct(v=column).struct.json_encode()
    return encoded.str.strip_prefix('{"v":').str.strip_suffix("}")


def _listed(column: str) -> pl.Expr:
    return pl.concat_str(pl.lit("["), pl.col(column).fill_null(""), pl.lit("]"))


def _turn_item(options: PreferenceShift) -> pl.Expr:
    """Return a turn as JSON text: with its metadata as they were in the log."""
    head = pl.struct("turn", "cc", "cr", "i", "tas").struct.json_encode()
    rest = [pl.col("missing_concepts"), pl.col("hallucinated_concepts")]
    if options.profile == "structured":
        rest += [
            pl.col("user_text"),
            pl.col("system_text"),
            pl.col("user_concepts"),
            pl.col("system_concepts"),
            pl.col("gold_concepts").alias("gold_constraint_concepts"),
            *_by_field(options),
        ]
    return pl.concat_str(
        head.str.strip_suffix("}"),
        pl.lit(',"user_meta":'),
        pl.col("user_meta").fill_null("{}"),
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
            pl.col(column)
            .list.eval(pl.element().filter(pl.element().str.starts_with(f"{field}=")))
            .list.eval(pl.element().str.strip_prefix(f"{field}="))
            .alias(field)
            for field in fields
        ).alias(name)


def _segment_item() -> pl.Expr:
    return pl.struct(
        "start_turn",
        "end_turn",
        *(pl.col(f"segment_{name}").alias(name) for name in ("cc", "cr", "i", "tas")),
        "missing_concepts",
        "hallucinated_concepts",
    ).struct.json_encode()


def _most_frequent(turns: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Return each conversation's most frequent concepts; on a draw the one counted first."""
    name = f"{kind}_concepts_topk"
    counted = (
        turns.select(_ROW, pl.col(f"{kind}_concepts").alias("concept"))
        .explode("concept")
        .drop_nulls("concept")
        .with_row_index("place")
        .group_by(_ROW, "concept")
        .agg(pl.len().cast(pl.Int64).alias("count"), pl.col("place").min())
        .sort(_ROW, "count", "place", descending=[False, True, False])
        .filter(pl.int_range(pl.len()).over(_ROW) < MOST_FREQUENT)
    )
    return _listed_by_row(counted, {name: pl.struct("concept", "count").struct.json_encode()})
