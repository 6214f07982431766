"""What TAS and CAS would be without some of their parts, from the scores of turns alone."""

from typing import Any

import polars as pl

from fastscore.statistics.clustered import Estimate
from fastscore.suites.preference_shift.analysis.scored import (
    DIFFERENCE_SCHEMA,
    GROUP_SCHEMA,
    MODEL,
    SCORE_RANGES,
    Scored,
    by_group,
    mean_intervals,
    paired_difference,
    with_corrected,
)
from fastscore.suites.preference_shift.options import PreferenceShift

VARIANTS = {
    "tas": "tas",
    "tas_without_copying": "tas",
    "cc_only": "tas",
    "cr_only": "tas",
    "cas": "cas",
    "cas_all": "cas_all",
    "cas_without_recovery": "cas",
}
"""The variants, each with the score that it is an ablation of."""

ABLATION_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "variant": pl.String(),
    "reference": pl.String(),
    "n": pl.Int64(),
    "n_units": pl.Int64(),
    "n_null": pl.Int64(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "rank": pl.Int64(),
    "n_pairs": pl.Int64(),
    **DIFFERENCE_SCHEMA,
}
"""A variant of a score in a group: its mean over ``n`` conversations of ``n_units`` units with a
95 % interval, the model's rank by it (1 is the highest), and its mean difference from the unaltered
score over the ``n_pairs`` conversations that have both, as in `DIFFERENCE_SCHEMA`. The four
variants of a group are one family."""


def ablations(scored: Scored) -> pl.DataFrame:
    """Compare TAS and CAS with variants that lack some of their parts.

    Parameters
    ----------
    scored
        The run's scores.

    Returns
    -------
    pl.DataFrame
        In `ABLATION_SCHEMA`.
    """
    variants = ablated_scores(scored)
    rows: list[dict[str, Any]] = []
    for group, frame in by_group(variants):
        rows += [group | row for row in with_corrected(_compare(frame))]
    ranked = pl.col("mean").rank("min", descending=True).over("group", "variant")
    unranked = {name: dtype for name, dtype in ABLATION_SCHEMA.items() if name != "rank"}
    return pl.DataFrame(rows, schema=unranked).select(
        pl.when(pl.col("group") == MODEL).then(ranked).cast(pl.Int64).alias("rank")
        if name == "rank"
        else pl.col(name)
        for name in ABLATION_SCHEMA
    )


def ablated_scores(scored: Scored) -> pl.DataFrame:
    """Return every variant for each conversation.

    Returns
    -------
    pl.DataFrame
        conversation, cluster, model and a column a variant. TAS variants are means over turns of
        the weighted parts that remain, clipped to [-1, 1] turn by turn; a conversation without
        turns has the value that the run gave its TAS. CAS without recovery weighs 1 - I, CC and CR
        alone, their weights scaled to sum 1, and so also exists where nothing recovered.
    """
    o = scored.options
    kept = {
        "tas_without_copying": o.alpha * pl.col("cc") + o.beta * pl.col("cr"),
        "cc_only": o.alpha * pl.col("cc"),
        "cr_only": o.beta * pl.col("cr"),
    }
    means = scored.turns.group_by("conversation", maintain_order=True).agg(
        score.clip(-1.0, 1.0).mean().alias(variant) for variant, score in kept.items()
    )
    return scored.conversations.join(
        means, on="conversation", how="left", maintain_order="left"
    ).select(
        "conversation",
        "cluster",
        "model",
        "tas",
        *(
            pl.when(pl.col("n_turns") == 0).then("tas").otherwise(variant).alias(variant)
            for variant in kept
        ),
        "cas",
        "cas_all",
        _without_recovery(o).alias("cas_without_recovery"),
    )


def _without_recovery(options: PreferenceShift) -> pl.Expr:
    shares = options.cas_shares
    parts = {
        "topic_interference": 1.0 - pl.col("i").clip(0.0, 1.0),
        "cross_coherence": pl.col("cc"),
        "context_retention": pl.col("cr"),
    }
    total = sum(shares[name] for name in parts)
    if total == 0:
        return pl.lit(None, dtype=pl.Float64)
    weighted = [shares[name] / total * part for name, part in parts.items()]
    return pl.when(pl.col("n_turns") > 0).then(pl.sum_horizontal(weighted, ignore_nulls=False))


def _compare(frame: pl.DataFrame) -> list[dict[str, Any]]:
    ranges = {variant: SCORE_RANGES[reference] for variant, reference in VARIANTS.items()}
    means = mean_intervals(frame, list(VARIANTS), ranges)
    return [_row(frame, variant, mean) for variant, mean in zip(VARIANTS, means, strict=True)]


def _row(frame: pl.DataFrame, variant: str, mean: Estimate) -> dict[str, Any]:
    reference = VARIANTS[variant]
    n = frame[variant].count()
    row: dict[str, Any] = {
        "variant": variant,
        "reference": reference,
        "n": n,
        "n_units": mean.n_units,
        "n_null": frame.height - n,
        "mean": mean.value,
        "low": mean.low,
        "high": mean.high,
    }
    if variant == reference:
        return row
    return row | {
        "n_pairs": frame.drop_nulls([variant, reference]).height,
        **paired_difference(frame, variant, reference, SCORE_RANGES[reference]),
    }
