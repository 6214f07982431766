"""Construct validity: whether scores move at shifts as what they measure should.

The paired unit is a conversation: scores are averaged over its shifts, or its segments, first.
"""

from typing import Any

import polars as pl

from fastscore.suites.preference_shift.analysis.scored import (
    DIFFERENCE_SCHEMA,
    GROUP_SCHEMA,
    SCORE_RANGES,
    Scored,
    by_group,
    paired_difference,
    with_corrected,
)

TURN_SCORES = ("cc", "cc_of_concepts", "cr", "tas")
PHASES = (("at", "before"), ("after", "at"), ("after", "before"))
WITHIN_ACROSS = ("within", "across")

HEADLINES = (("cc", "at", "before"), ("cc", "after", "at"), ("cr", *WITHIN_ACROSS))
"""What controlled shifts should show: CC drops at a shift and rises after it, and CR is higher
within segments than across them. CC with concepts is a variant of CC, and TAS contains CC."""

CONSTRUCT_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "score": pl.String(),
    "first": pl.String(),
    "second": pl.String(),
    "is_headline": pl.Boolean(),
    "n": pl.Int64(),
    "n_null": pl.Int64(),
    "mean_first": pl.Float64(),
    "mean_second": pl.Float64(),
    **DIFFERENCE_SCHEMA,
}
"""A score compared between two places of a conversation, ``first`` minus ``second``, over the ``n``
conversations of the group that have both (``n_null`` have a shift, but not both): means, and the
mean difference as in `DIFFERENCE_SCHEMA`. The headline contrasts of a group are one family."""


def construct_validity(scored: Scored, segment_cosines: pl.DataFrame | None) -> pl.DataFrame:
    """Compare scores at, before and after shifts, and within and across segments.

    Parameters
    ----------
    scored
        The run's scores.
    segment_cosines
        What `segment_similarities` returns; None where the concepts' weights are not known.

    Returns
    -------
    pl.DataFrame
        In `CONSTRUCT_SCHEMA`.
    """
    pairs = _conversation_pairs(scored, segment_cosines)
    rows: list[dict[str, Any]] = []
    for group, frame in by_group(pairs):
        of_group = [_row(frame, *contrast) for contrast in _contrasts()]
        if segment_cosines is None:
            of_group[-1]["reason"] = "missing_input"
        rows += [group | row for row in with_corrected(of_group)]
    return pl.DataFrame(rows, schema=CONSTRUCT_SCHEMA)


def around_shifts(scored: Scored) -> pl.DataFrame:
    """Return the mean scores at every shift and in the turns on either side of it.

    Before are up to a window's turns of the segment that the shift ends, after up to a window's
    turns that follow it in the segment that it begins: no turn beyond another shift counts.

    Returns
    -------
    pl.DataFrame
        A row a shift that the conversation has a turn for: conversation, cluster, model, turn, and
        ``SCORE:PHASE`` for each turn score and phase, null where there is no such turn.
    """
    window = max(1, scored.options.window)
    turns = scored.turns.select(
        "conversation", "segment", pl.col("turn").alias("at_turn"), *TURN_SCORES
    )
    shifts = (
        scored.shifts.select("conversation", "cluster", "model", "turn")
        .join(
            turns.select("conversation", "segment", pl.col("at_turn").alias("turn")),
            on=["conversation", "turn"],
            how="inner",
        )
        .sort("conversation", "turn")
    )
    distance = pl.col("at_turn") - pl.col("turn")
    phases = {
        "before": (pl.col("segment") - 1, distance.is_between(-window, -1)),
        "at": (pl.col("segment"), distance == 0),
        "after": (pl.col("segment"), distance.is_between(1, window)),
    }
    for phase, (segment, is_near) in phases.items():
        means = (
            shifts.select("conversation", "turn", segment)
            .join(turns, on=["conversation", "segment"], how="inner", maintain_order="left_right")
            .filter(is_near)
            .group_by("conversation", "turn", maintain_order=True)
            .agg(pl.col(score).mean().alias(f"{score}:{phase}") for score in TURN_SCORES)
        )
        shifts = shifts.join(means, on=["conversation", "turn"], how="left", maintain_order="left")
    return shifts


def segment_similarities(
    turns: pl.LazyFrame, idf: pl.DataFrame, conversations: pl.DataFrame
) -> pl.DataFrame:
    """Return how alike user and system are within segments, and across neighbouring ones.

    Parameters
    ----------
    turns
        The run's table of turns: file, line, segment, user_concepts, system_concepts.
    idf
        Every concept's weight: concept, idf.
    conversations
        Those of `Scored`.

    Returns
    -------
    pl.DataFrame
        A row a conversation of several segments: conversation, and ``cr:within`` and ``cr:across``,
        the mean cosines of the user's and the system's summed vectors (a concept counts as often as
        turns have it, times its weight; an empty vector gives 0, as in CR) of one segment, and of
        two neighbours, either way.
    """
    several = (
        turns.select("file", "line", "segment").unique().collect().group_by("file", "line").len()
    )
    labels = conversations.select("file", "line", "conversation").join(
        several.filter(pl.col("len") > 1), on=["file", "line"], how="semi"
    )
    rows = (
        turns.select("file", "line", "segment", "user_concepts", "system_concepts")
        .join(labels.lazy(), on=["file", "line"], how="inner", maintain_order="left")
        .drop("file", "line")
        .collect()
    )
    user, system = (_vectors(rows, side, idf) for side in ("user", "system"))
    dots = (
        user.join(system, on=["conversation", "concept"], how="inner", suffix="_system")
        .sort("conversation", "segment", "segment_system", "concept")
        .group_by("conversation", "segment", "segment_system", maintain_order=True)
        .agg((pl.col("weight") * pl.col("weight_system")).sum().alias("dot"))
    )
    segments = rows.select("conversation", "segment").unique().sort("conversation", "segment")
    cosine = pl.col("dot") / (pl.col("norm") * pl.col("norm_system"))
    step = (pl.col("segment_system") - pl.col("segment")).abs()
    return (
        segments.join(_norms(user), on=["conversation", "segment"], how="left")
        .join(
            segments.join(_norms(system), on=["conversation", "segment"], how="left"),
            on="conversation",
            suffix="_system",
        )
        .filter(step <= 1)
        .join(dots, on=["conversation", "segment", "segment_system"], how="left")
        .sort("conversation", "segment", "segment_system")
        .with_columns(cosine.fill_null(0.0).alias("cosine"))
        .group_by("conversation", maintain_order=True)
        .agg(
            pl.col("cosine").filter(step == 0).mean().alias("cr:within"),
            pl.col("cosine").filter(step == 1).mean().alias("cr:across"),
        )
    )


def _vectors(rows: pl.DataFrame, side: str, idf: pl.DataFrame) -> pl.DataFrame:
    """Return the weight of every concept of one side in every segment."""
    return (
        rows.lazy()
        .select("conversation", "segment", pl.col(f"{side}_concepts").alias("concept"))
        .explode("concept")
        .drop_nulls("concept")
        .group_by("conversation", "segment", "concept")
        .len("count")
        .join(idf.lazy(), on="concept", how="inner")
        .select(
            "conversation",
            "segment",
            "concept",
            (pl.col("count") * pl.col("idf")).alias("weight"),
        )
        .sort("conversation", "segment", "concept")
        .collect()
    )


def _norms(vectors: pl.DataFrame) -> pl.DataFrame:
    return vectors.group_by("conversation", "segment", maintain_order=True).agg(
        (pl.col("weight") ** 2).sum().sqrt().alias("norm")
    )


def _contrasts() -> list[tuple[str, str, str]]:
    around = [(score, first, second) for score in TURN_SCORES for first, second in PHASES]
    return [*around, ("cr", *WITHIN_ACROSS)]


def _conversation_pairs(scored: Scored, segment_cosines: pl.DataFrame | None) -> pl.DataFrame:
    """Return both means of every contrast for each conversation with a shift.

    Only shifts that have both sides of a contrast count in it.
    """
    contrasts = [contrast for contrast in _contrasts() if contrast[1:] != WITHIN_ACROSS]
    means = (
        around_shifts(scored)
        .group_by("conversation", maintain_order=True)
        .agg(
            pl.col(f"{score}:{side}")
            .filter(pl.col(f"{score}:{other}").is_not_null())
            .mean()
            .alias(f"{_pair_name(score, first, second)}:{side}")
            for score, first, second in contrasts
            for side, other in ((first, second), (second, first))
        )
    )
    shifted = scored.conversations.filter(pl.col("n_shifts") > 0).select(
        "conversation", "cluster", "model"
    )
    cosines = (
        pl.DataFrame(
            schema={"conversation": pl.UInt32, "cr:within": pl.Float64, "cr:across": pl.Float64}
        )
        if segment_cosines is None
        else segment_cosines
    ).rename({f"cr:{side}": f"{_pair_name('cr', *WITHIN_ACROSS)}:{side}" for side in WITHIN_ACROSS})
    return shifted.join(means, on="conversation", how="left", maintain_order="left").join(
        cosines, on="conversation", how="left", maintain_order="left"
    )


def _row(frame: pl.DataFrame, score: str, first: str, second: str) -> dict[str, Any]:
    name = _pair_name(score, first, second)
    columns = of_first, of_second = f"{name}:{first}", f"{name}:{second}"
    both = frame.drop_nulls(columns)
    return {
        "score": score,
        "first": first,
        "second": second,
        "is_headline": (score, first, second) in HEADLINES,
        "n": both.height,
        "n_null": frame.height - both.height,
        "mean_first": both[of_first].sort().mean(),
        "mean_second": both[of_second].sort().mean(),
        **paired_difference(both, of_first, of_second, SCORE_RANGES[score]),
    }


def _pair_name(score: str, first: str, second: str) -> str:
    return f"{score}:{first}-{second}"
