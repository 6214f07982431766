"""Construct and convergent validity: scores at shifts, and scores beside a judge.

The paired unit is a conversation: scores are averaged over its shifts, or its segments, first.
Correlations with a judge are within models, between the models' means, or pooled: that one mixes
the other two and has no test.
"""

from typing import Any

import polars as pl
from polars import col as C

from fastscore.statistics.agreement import (
    MEASURES,
    Correlation,
    clustered_correlation,
    detectable_correlation,
)
from fastscore.statistics.significance import holm
from fastscore.suites.judged import MEAN, OVERALL, Judged
from fastscore.suites.preference_shift.analysis.tables import (
    ALL,
    ALPHA,
    DIFFERENCE_SCHEMA,
    GROUP_SCHEMA,
    NAME,
    SCORE_RANGES,
    Scored,
    by_group,
    is_significant,
    paired_difference,
    turns_around_shifts,
    with_corrected,
)

TURN_SCORES = ("cc", "cc_of_concepts", "cr", "tas")
PHASES = (("at", "before"), ("after", "at"), ("after", "before"))
AROUND_SHIFTS = [(score, first, second) for score in TURN_SCORES for first, second in PHASES]
SEGMENTS = ("cr", "within", "across")

EXPECTED_AT_SHIFTS = (("cc", "at", "before"), ("cc", "after", "at"), SEGMENTS)
"""What controlled shifts should show. CC with concepts is a variant of CC, and TAS contains CC."""

CONSTRUCT_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    **dict.fromkeys(("score", "first", "second"), pl.String()),
    "is_headline": pl.Boolean(),
    "n": pl.Int64(),
    "n_null": pl.Int64(),
    "mean_first": pl.Float64(),
    "mean_second": pl.Float64(),
    **DIFFERENCE_SCHEMA,
}
"""A score at two places of a conversation, over the ``n`` conversations that have both."""


def construct_validity(scored: Scored, segment_cosines: pl.DataFrame | None) -> pl.DataFrame:
    """Compare scores at, before and after shifts, and within and across segments."""
    pairs = _conversation_pairs(scored, segment_cosines)
    rows: list[dict[str, Any]] = []
    for group, frame in by_group(pairs):
        of_group = [_row(frame, *contrast) for contrast in (*AROUND_SHIFTS, SEGMENTS)]
        if segment_cosines is None:
            of_group[-1]["reason"] = "missing_input"
        rows += [group | row for row in with_corrected(of_group)]
    return pl.DataFrame(rows, schema=CONSTRUCT_SCHEMA)


def around_shifts(scored: Scored) -> pl.DataFrame:
    """Return the mean scores at every shift and in the turns on either side of it.

    Before are up to a window's turns of the segment that the shift ends, after up to a window's
    turns that follow it in the segment that it begins: no turn beyond another shift counts.
    """
    window = max(1, scored.options.window)
    near = turns_around_shifts(scored, window, window, TURN_SCORES)
    distance = C("distance")
    phases = {"before": distance < 0, "at": distance == 0, "after": distance > 0}
    return (
        near.drop("turn")
        .rename({"shift": "turn"})
        .group_by("shift_row", "conversation", "cluster", "model", "turn", maintain_order=True)
        .agg(
            C(score).filter(is_in).mean().alias(f"{score}:{phase}")
            for phase, is_in in phases.items()
            for score in TURN_SCORES
        )
        .sort("shift_row")
        .drop("shift_row")
    )


def segment_similarities(
    turns: pl.LazyFrame, idf: pl.DataFrame, conversations: pl.DataFrame
) -> pl.DataFrame:
    """Return how alike user and system are within segments, and across neighbouring ones."""
    labels = conversations.lazy().select("conversation", dialogue=NAME)
    rows = (
        turns.select("dialogue", "segment", "user_concepts", "system_concepts")
        .join(labels, on="dialogue", how="inner", maintain_order="left")
        .filter(C("segment").n_unique().over("conversation") > 1)
        .collect()
    )
    user, system = (_vectors(rows, f"{side}_concepts", idf) for side in ("user", "system"))
    segments = rows.select("conversation", "segment").unique()
    pair = ("conversation", "segment", "segment_system")
    cosines = (
        user.join(system, on=["conversation", "concept"], suffix="_system")
        .sort(*pair, "concept")
        .group_by(pair, maintain_order=True)
        .agg(
            cosine=(C("weight") * C("weight_system")).sum()
            / (C("norm").first() * C("norm_system").first())
        )
    )
    step = (C("segment_system") - C("segment")).abs()
    return (
        segments.join(segments, on="conversation", suffix="_system")
        .join(cosines, on=pair, how="left")
        .sort(pair)
        .with_columns(C("cosine").fill_null(0.0))
        .group_by("conversation", maintain_order=True)
        .agg(
            C("cosine").filter(step == distance).mean().alias(f"cr:{name}")
            for name, distance in (("within", 0), ("across", 1))
        )
    )


def _vectors(rows: pl.DataFrame, side: str, idf: pl.DataFrame) -> pl.DataFrame:
    """Return the weight of every concept of one side in every segment, and the vector's norm."""
    segment = ("conversation", "segment")
    weights = (
        rows.select(*segment, concept=side)
        .explode("concept")
        .drop_nulls("concept")
        .group_by(*segment, "concept")
        .len("count")
        .join(idf, on="concept", how="inner")
        .select(*segment, "concept", weight=C("count") * C("idf"))
        .sort(*segment, "concept")
    )
    norms = weights.group_by(segment, maintain_order=True).agg(norm=(C("weight") ** 2).sum().sqrt())
    return weights.join(norms, on=segment)


def _conversation_pairs(scored: Scored, segment_cosines: pl.DataFrame | None) -> pl.DataFrame:
    """Return both means of every contrast for each conversation with a shift.

    Only shifts that have both sides of a contrast count in it.
    """
    means = (
        around_shifts(scored)
        .group_by("conversation", maintain_order=True)
        .agg(
            C(f"{score}:{side}")
            .filter(C(f"{score}:{other}").is_not_null())
            .mean()
            .alias(f"{score}:{first}-{second}:{side}")
            for score, first, second in AROUND_SHIFTS
            for side, other in ((first, second), (second, first))
        )
    )
    shifted = scored.conversations.filter(C("n_shifts") > 0).select(
        "conversation", "cluster", "model"
    )
    if segment_cosines is None:
        schema = {"conversation": pl.UInt32, "cr:within": pl.Float64, "cr:across": pl.Float64}
        segment_cosines = pl.DataFrame(schema=schema)
    for of_conversation in (means, segment_cosines):
        shifted = shifted.join(
            of_conversation, on="conversation", how="left", maintain_order="left"
        )
    return shifted


def _row(frame: pl.DataFrame, score: str, first: str, second: str) -> dict[str, Any]:
    name = score if (score, first, second) == SEGMENTS else f"{score}:{first}-{second}"
    of_first, of_second = f"{name}:{first}", f"{name}:{second}"
    both = frame.drop_nulls([of_first, of_second])
    return {
        "score": score,
        "first": first,
        "second": second,
        "is_headline": (score, first, second) in EXPECTED_AT_SHIFTS,
        "n": both.height,
        "n_null": frame.height - both.height,
        "mean_first": both[of_first].sort().mean(),
        "mean_second": both[of_second].sort().mean(),
        **paired_difference(both, of_first, of_second, SCORE_RANGES[score]),
    }


SCORES = ("tas", "cas", "cas_all", "cc", "cr", "i", "recovery_rate")
HEADLINES = ("tas", "cas")
"""The published scores. CAS over all shifts is a variant of CAS, and the others are their parts."""
CONVERSATION, MODELS, POOLED = "conversation", "model", "pooled"

CONVERGENT_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    **dict.fromkeys(("level", "score", "judge"), pl.String()),
    "is_headline": pl.Boolean(),
    **dict.fromkeys(("n", "n_units", "n_null_score", "n_null_judge"), pl.Int64()),
    **dict.fromkeys(("rho", "rho_low", "rho_high", "rho_p"), pl.Float64()),
    "p_method": pl.String(),
    "family": pl.Int64(),
    "rho_holm_p": pl.Float64(),
    "smallest_holm_p": pl.Float64(),
    "is_significant": pl.Boolean(),
    **dict.fromkeys(("detectable_rho", "tau", "tau_low", "tau_high", "tau_p"), pl.Float64()),
    "tau_holm_p": pl.Float64(),
    "reason": pl.String(),
}
"""Spearman's rho and Kendall's tau-b of a score and a judge's score, by level. Tau is a second
measure of rho's test, so ``tau_holm_p`` is its p-value times ``family`` (Bonferroni)."""


def convergent_validity(scored: Scored, judged: Judged) -> pl.DataFrame:
    """Correlate the suite's scores with a judge's."""
    # the judge's overall score, or else the mean of its scores, or its only score
    named = [name for name in (OVERALL, MEAN, *judged.names) if name in judged.names]
    headlines = [(score, judge) for score in HEADLINES for judge in named[:1]]
    pairs = [(score, judge) for score in SCORES for judge in judged.names]
    rows: list[dict[str, Any]] = []
    for group, frame in by_group(with_judge(scored, judged)):
        of_group = [
            _correlate(frame, *pair, CONVERSATION) | {"is_headline": pair in headlines}
            for pair in pairs
        ]
        of_group = _with_corrected(of_group)
        if group["group"] == ALL and len(scored.models) > 1:
            of_group += [
                _correlate(frame, *pair, level) for level in (MODELS, POOLED) for pair in pairs
            ]
        rows += [group | row for row in of_group]
    return pl.DataFrame(rows, schema=CONVERGENT_SCHEMA)


def untestable(table: pl.DataFrame) -> str:
    """Return a sentence if no headline correlation over all conversations can be significant."""
    headlines = table.filter(C("group") == ALL, C("is_headline"), C("rho").is_not_null())
    smallest = headlines["smallest_holm_p"].fill_null(1.0).min()
    if headlines.is_empty() or not isinstance(smallest, float) or smallest < ALPHA:
        return ""
    units = ", ".join(f"{n}" for n in headlines["n_units"].unique().sort())
    return (
        f"Too few units for a significant correlation: with {units} units and {headlines.height} "
        f"headline correlations the smallest possible corrected p is {smallest:.3f}."
    )


def with_judge(scored: Scored, judged: Judged) -> pl.DataFrame:
    """Return the conversations with a column ``judge:NAME`` for every score of the judge."""
    scores = judged.scores.pivot(
        "judge", on_columns=judged.names, index="conversation", values="score"
    ).select("conversation", pl.exclude("conversation").name.prefix("judge:"))
    return scored.conversations.drop("judge").join(
        scores, on="conversation", how="left", maintain_order="left"
    )


def _with_corrected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Correct the headline correlations of one group as a family."""
    p_values = [row["rho_p"] if row["is_headline"] else None for row in rows]
    family = sum(p is not None for p in p_values)
    found = []
    for row, corrected in zip(rows, holm(p_values), strict=True):
        rho: Correlation = row["of_rho"]
        alpha = ALPHA if corrected is None else ALPHA / family
        more: dict[str, Any] = {"detectable_rho": detectable_correlation(rho, alpha=alpha)}
        if corrected is not None and rho.smallest_p is not None:
            more |= {
                "family": family,
                "rho_holm_p": corrected,
                "smallest_holm_p": min(1.0, rho.smallest_p * family),
                "is_significant": is_significant(corrected, rho.low, rho.high),
            }
            if row["tau_p"] is not None:
                more["tau_holm_p"] = min(1.0, row["tau_p"] * family)
        found.append(row | more)
    return found


def _correlate(frame: pl.DataFrame, score: str, judge: str, level: str) -> dict[str, Any]:
    """Correlate a score with a judge's: of conversations within models, of models, or of all."""
    column = f"judge:{judge}"
    scored = frame.drop_nulls(score)
    both = scored.drop_nulls(column)
    rows, labels = both, [both["cluster"]]
    if level == CONVERSATION:
        labels.append(both["model"].fill_null(""))
    elif level == MODELS:
        rows = (
            both.drop_nulls("model")
            .sort("model", score, column)
            .group_by("model", maintain_order=True)
            .agg(C(score, column).mean())
        )
        labels = [rows["model"]]
    rho, tau = (
        clustered_correlation(measure, rows[score], rows[column], *labels) for measure in MEASURES
    )
    found = {
        "level": level,
        "score": score,
        "judge": judge,
        "is_headline": False,
        "n": rows.height,
        "n_units": rho.clusters if level == CONVERSATION else labels[0].n_unique(),
        "n_null_score": frame.height - scored.height,
        "n_null_judge": scored.height - both.height,
        "rho": rho.value,
        "tau": tau.value,
        "reason": rho.reason,
    }
    if level == POOLED:
        return found | {"reason": (rho.reason if rho.value is None else None) or "mixes_models"}
    found |= {"rho_p": rho.p_value, "p_method": rho.method, "tau_p": tau.p_value}
    if level == MODELS:
        return found | {"reason": rho.reason if rho.p_value is None else None}
    ends = {"rho_low": rho.low, "rho_high": rho.high, "tau_low": tau.low, "tau_high": tau.high}
    return found | ends | {"of_rho": rho}
