"""Judge scores of conversations of any suite: from the log, or from a file joined to the run.

A score is a number inside the rubric's range. Anything else is refused: listed with its place, and
never used, clamped or filled. A file's score replaces the log's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from fastscore.errors import UsageError
from fastscore.suites.declarations import Column, Source

RUBRIC = ("proactiveness", "coherence", "personalization")
OVERALL = "overall"
MEAN = "mean of scores"
VERDICTS = {"A": 1.0, "tie": 0.5, "B": 0.0}
"""What a verdict on a pair is worth for side A."""
FOUND_LENGTH = 80

JUDGE_SCHEMA = pl.Schema(
    {"conversation": pl.get_index_type(), "judge": pl.String(), "score": pl.Float64()}
)
"""A judge's score of a conversation, under its name."""

JUDGE_REJECT_SCHEMA: dict[str, pl.DataType] = {
    "file": pl.String(),
    "line": pl.Int64(),
    **dict.fromkeys(("dialogue", "model", "field", "reason", "found", "expected"), pl.String()),
}
"""A judge's value that was refused, and where it stood."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A judge's scores."""

    # in `JUDGE_SCHEMA`: the scores that count, and per conversation that has all of them their mean
    # as `MEAN` where there are several names
    scores: pl.DataFrame
    rejects: pl.DataFrame  # in `JUDGE_REJECT_SCHEMA`
    names: tuple[str, ...]  # the scores' names: the rubric's first, others sorted, `MEAN` last
    scale: tuple[float, float]  # the range that was required
    # `conversation` and `judge` of the scores of conversations that were refused
    refused: pl.DataFrame
    # what the joined rows of the file name as their judge (`judged_by`), sorted
    judges: tuple[str, ...]


def collect_judged(
    conversations: pl.DataFrame,
    judgements: tuple[pl.DataFrame, pl.DataFrame] | None,
    scale: tuple[float, float],
    extra: Sequence[str] = (),
) -> Judged:
    """Collect judge scores."""
    given = _from_objects(conversations.select(*_PLACE, "judge"))
    judges: list[str] = []
    rejects = [pl.DataFrame(schema=JUDGE_REJECT_SCHEMA)]
    if judgements is not None:
        rows, refused = judgements
        joined, unjoined = _join(rows, conversations)
        judges = joined["judged_by"].drop_nulls().unique().sort().to_list()
        from_file = _from_columns(joined, extra)
        given = pl.concat([from_file, given.join(from_file, on=_SCORE, how="anti")])
        nothing = pl.lit(None, pl.String)
        rejects += [refused.with_columns(dialogue=nothing, model=nothing), unjoined]
    checked = _check(given, scale)
    refused_scores = checked.filter(pl.col("reason").is_not_null())
    rejects.append(refused_scores)
    scores = checked.filter(pl.col("reason").is_null())
    found = scores["judge"].unique().to_list()
    names = [name for name in (*RUBRIC, OVERALL) if name in found]
    names += sorted(set(found) - set(names))
    counted = scores.select(*JUDGE_SCHEMA)
    if len(names) > 1:
        counted = pl.concat([counted, _means(counted, len(names))])
        names.append(MEAN)
    return Judged(
        counted.sort("conversation", "judge"),
        pl.concat([part.select(*JUDGE_REJECT_SCHEMA) for part in rejects]),
        tuple(names),
        scale,
        refused_scores.select(*_SCORE),
        tuple(judges),
    )


def list_ratings(
    rows: pl.DataFrame, scale: tuple[float, float], extra: Sequence[str] = ()
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """List the scores of a judge's file by themselves, joined to no run; verdicts on pairs too."""
    are_named = pl.when(pl.col("model_a").is_not_null() & pl.col("model_b").is_not_null())
    numbered = rows.with_row_index("conversation").with_columns(
        pl.coalesce("judge", "verdict"),
        # the model that comes first in the alphabet is A, whichever side a rater saw it on
        is_flipped=(pl.col("model_a") > pl.col("model_b")).fill_null(False),
        system_a=are_named.then(pl.min_horizontal("model_a", "model_b")),
        system_b=are_named.then(pl.max_horizontal("model_a", "model_b")),
    )
    both = pl.format("{} / {}", "system_a", "system_b")
    numbered = numbered.with_columns(model=pl.coalesce(both, "model"))
    given = _from_columns(numbered, extra)
    verdict = pl.col("text").str.strip_chars(' "')
    n_verdicts = given.select(verdict.is_in(list(VERDICTS)).sum()).item()
    names_both = rows.height > 0 and not rows["model_b"].has_nulls()
    is_pair = names_both or 2 * n_verdicts > given.height
    if is_pair:
        flipped = numbered.filter("is_flipped")["conversation"]
        score = verdict.replace_strict(VERDICTS, default=None, return_dtype=pl.Float64)
        given = given.with_columns(
            score=pl.when(pl.col("conversation").is_in(flipped.implode()))
            .then(1 - score)
            .otherwise(score)
        )
    checked = _check(given, None if is_pair else scale)
    about = numbered.select(
        "conversation", pl.col("^judged_.*$"), pl.col("^system_.$"), is_pair=pl.lit(is_pair)
    )
    counted = (
        checked.filter(pl.col("reason").is_null())
        .join(about, on="conversation", how="left", maintain_order="left")
        .rename({"judge": "dimension"})
        .select(*_RATING_COLUMNS)
    )
    refused = checked.filter(pl.col("reason").is_not_null())
    return counted, refused.select(*JUDGE_REJECT_SCHEMA)


_RATING_COLUMNS = (
    "file",
    "line",
    "dialogue",
    "model",
    "judged_file",
    "judged_line",
    "judged_by",
    "is_pair",
    "system_a",
    "system_b",
    "dimension",
    "score",
)


def _means(scores: pl.DataFrame, n_names: int) -> pl.DataFrame:
    return (
        scores.sort("conversation", "judge")
        .group_by("conversation", maintain_order=True)
        .agg(pl.col("score").mean(), pl.len().alias("n"))
        .filter(pl.col("n") == n_names)
        .select("conversation", pl.lit(MEAN).alias("judge"), "score")
    )


_PLACE = ("conversation", "file", "line", "dialogue", "model")
_SCORE = ("conversation", "judge")


def _from_columns(rows: pl.DataFrame, extra: Sequence[str]) -> pl.DataFrame:
    """Return a row a value of a joined file, those of the object and those of the columns."""
    named = [name for name in _score_columns(extra) if name in rows.columns]
    flat = (
        rows.drop("judge")
        .unpivot(named, index=_PLACE, variable_name="judge", value_name="text")
        .pipe(_with_numbers)
    )
    return pl.concat([_from_objects(rows.select(*_PLACE, "judge")), flat])


def _from_objects(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row a member of the objects; an object is read once for all rows that have it."""
    distinct = rows["judge"].drop_nulls().unique(maintain_order=True)
    members = pl.DataFrame(
        [
            (text, name, orjson.dumps(value).decode())
            for text in distinct
            for name, value in _members(text)
        ],
        schema={"object": pl.String, "judge": pl.String, "text": pl.String},
        orient="row",
    )
    return (
        rows.rename({"judge": "object"})
        .join(members, on="object", how="inner", maintain_order="left_right")
        .select(*_PLACE, "judge", "text")
        .pipe(_with_numbers)
    )


def _members(text: str) -> list[tuple[str, Any]]:
    """Read an object's members; what is no object (or, in CSV, no JSON) is one bad score."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = text
    if isinstance(value, dict):
        return list(value.items())
    return [] if value is None else [("judge", value)]


def _with_numbers(rows: pl.DataFrame) -> pl.DataFrame:
    """Read JSON numbers; CSV cells contain them alike. What is null or blank is no score."""
    number = pl.col("text").str.strip_chars()
    is_number = number.str.contains(r"^-?\d+(\.\d+)?([eE][+-]?\d+)?$")
    return rows.filter(~number.is_in(["null", ""])).with_columns(
        pl.when(is_number).then(number).cast(pl.Float64, strict=False).alias("score")
    )


def _check(given: pl.DataFrame, scale: tuple[float, float] | None) -> pl.DataFrame:
    """Name what is wrong with scores on a scale; without one, with verdicts on pairs."""
    low, high = scale or (0.0, 1.0)
    kind = "number" if scale else "verdict"
    wanted = f"a number from {low:g} to {high:g}, or null" if scale else ", ".join(VERDICTS)
    # the first that holds counts
    faults = (
        (pl.col("judge") == MEAN, "reserved name", "another name: that of the scores' own mean"),
        (
            ~pl.struct(_SCORE).is_first_distinct(),
            "given before",
            "one score of this name for a conversation",
        ),
        (pl.col("score").is_null(), f"not a {kind}", wanted),
        (~pl.col("score").is_between(low, high), "out of range", wanted),
    )
    reasons, expected = (
        [pl.when(fault[0]).then(pl.lit(fault[of])) for fault in faults] for of in (1, 2)
    )
    return given.with_columns(
        pl.coalesce(reasons).alias("reason"),
        ("judge." + pl.col("judge")).alias("field"),
        pl.col("text").str.slice(0, FOUND_LENGTH).alias("found"),
        pl.coalesce(expected).alias("expected"),
    )


def check_scale(scale: tuple[float, float]) -> None:
    """Refuse a scale whose first number is not the smaller one, or one that is not finite."""
    if not scale[0] < scale[1] or not all(map(math.isfinite, scale)):
        raise UsageError(f"judge_scale is {scale}, expected a smaller and a larger number.")


def _score_columns(extra: Sequence[str]) -> list[str]:
    return list(dict.fromkeys((*RUBRIC, OVERALL, *extra)))


def judge_source(extra: Sequence[str]) -> Source:
    """Return the columns of a judge's file, a row a conversation.

    ``session_id`` (or dialogue, dialogue_id, id), ``model`` (or model_name) if an id names
    several models, ``judged_file`` and ``judged_line`` if one is in several files or lines,
    ``judged_by`` (or rater, annotator), and the scores in an object ``judge`` or in columns named
    after the rubric, ``overall`` or `extra`. Of pairs ``model_a`` and ``model_b``, and verdicts in
    an object ``verdict`` or in those columns.
    """
    return Source(
        columns=(
            Column(
                "dialogue",
                "text",
                accepts=("integer",),
                otherwise="required",
                aliases=("session_id", "dialogue_id", "id"),
            ),
            Column("model", "text", aliases=("model_name",)),
            Column("judge", "json"),
            *(Column(name, "text") for name in ("model_a", "model_b")),
            Column("verdict", "json"),
            Column("judged_file", "text"),
            Column("judged_line", "integer", otherwise="null", accepts=("string",)),
            Column("judged_by", "text", aliases=("rater", "annotator")),
            *(Column(name, "json") for name in _score_columns(extra)),
        ),
        formats=("csv", "json", "jsonl", "parquet"),
    )


def _join(rows: pl.DataFrame, conversations: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Find the conversation of every row; rows without one, or with several, are rejects."""
    known = conversations.select(
        "conversation",
        pl.concat_list(pl.col("^(dialogue|identity)$")).list.unique().alias("dialogue"),
        pl.col("model").alias("of_model"),
        pl.col("file").alias("of_file"),
        pl.col("line").alias("of_line"),
    ).explode("dialogue")
    is_named = pl.col("model").is_null() | pl.col("model").eq_missing(pl.col("of_model"))
    candidates = (
        rows.with_row_index("row")
        .join(known, on="dialogue", how="left", maintain_order="left")
        .with_columns((pl.col("conversation").is_not_null() & is_named).alias("fits"))
        .pipe(_narrow_by_place, _is_same_file())
        .pipe(_narrow_by_place, pl.col("judged_line").eq(pl.col("of_line")))
        .with_columns(pl.col("fits").sum().over("row").alias("n_fits"))
        .filter(pl.col("fits") | (pl.col("n_fits") == 0))
    )
    first = pl.col("row").filter(pl.col("n_fits") == 1).min().over("conversation")
    reason = (
        pl.when(pl.col("n_fits") == 0)
        .then(pl.lit("not in the run"))
        .when(pl.col("n_fits") > 1)
        .then(pl.lit("several conversations of the run"))
        .when(pl.col("row") != first)
        .then(pl.lit("given before"))
    )
    judged = candidates.with_columns(reason.alias("reason"))
    rejects = (
        judged.filter(pl.col("reason").is_not_null())
        .unique("row", keep="first", maintain_order=True)
        .with_columns(
            pl.lit("dialogue").alias("field"),
            pl.col("dialogue").alias("found"),
            pl.lit("one conversation by dialogue and model, once").alias("expected"),
        )
    )
    accepted = judged.filter(pl.col("reason").is_null())
    return accepted, rejects.select(*JUDGE_REJECT_SCHEMA)


def _narrow_by_place(candidates: pl.DataFrame, is_it: pl.Expr) -> pl.DataFrame:
    """Tell those that fit apart by a place, where a row has several and names a place of one."""
    at_place = pl.col("fits") & is_it.fill_null(False)
    several = pl.col("fits").sum().over("row") > 1
    return candidates.with_columns(
        pl.when(several & at_place.any().over("row")).then(at_place).otherwise("fits").alias("fits")
    )


def _is_same_file() -> pl.Expr:
    """Whether two paths end alike: each is as it was given, from whatever folder that was."""
    ours, theirs = (
        "/" + pl.col(name).str.replace(r"^(\.{0,2}/)+", "") for name in ("of_file", "judged_file")
    )
    return ours.str.ends_with(theirs) | theirs.str.ends_with(ours)


def describe_rejects(judged: Judged) -> str:
    """Return one line on what was refused, empty where nothing was."""
    if judged.rejects.is_empty():
        return ""
    first = judged.rejects.row(0, named=True)
    place = f"{first['file']}:{first['line']}: {first['field']}: {first['reason']}"
    return f"{judged.rejects.height:,} judge values refused, the first {place} ({first['found']})."
