"""What TAS and CAS would be without some of their parts, from the scores of turns alone."""

from typing import Any

import polars as pl

from fastscore.statistics.significance import Interval, cohens_dz, holm, wilcoxon_signed_rank
from fastscore.suites.preference_shift.analysis.intervals import mean_intervals
from fastscore.suites.preference_shift.analysis.scored import GROUP_SCHEMA, MODEL, Scored, by_group
from fastscore.suites.preference_shift.options import PreferenceShiftOptions

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
    "n_null": pl.Int64(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "rank": pl.Int64(),
    "n_pairs": pl.Int64(),
    "difference": pl.Float64(),
    "difference_low": pl.Float64(),
    "difference_high": pl.Float64(),
    "effect_dz": pl.Float64(),
    "wilcoxon_p": pl.Float64(),
    "holm_p": pl.Float64(),
}
"""A variant of a score in a group: its mean over ``n`` conversations with a 95 % interval, the
model's rank by it (1 is the highest), and its mean difference from the unaltered score over the
``n_pairs`` conversations that have both, with interval, effect size and Wilcoxon's test; ``holm_p``
is corrected for all variants of the group."""


def ablations(scored: Scored, *, samples: int, seed: int) -> pl.DataFrame:
    """Compare TAS and CAS with variants that lack some of their parts.

    Parameters
    ----------
    scored
        The run's scores.
    samples, seed
        Of the bootstrap by dialogue.

    Returns
    -------
    pl.DataFrame
        In `ABLATION_SCHEMA`.
    """
    variants = ablated_scores(scored)
    rows: list[dict[str, Any]] = []
    for group, frame in by_group(variants):
        of_group = _compare(frame, samples, seed)
        corrected = holm([row["wilcoxon_p"] for row in of_group])
        rows += [{**group, **row, "holm_p": p} for row, p in zip(of_group, corrected, strict=True)]
    ranked = pl.col("mean").rank("min", descending=True).over("group", "variant")
    return pl.DataFrame(
        rows, schema={k: v for k, v in ABLATION_SCHEMA.items() if k != "rank"}
    ).select(
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


def _without_recovery(options: PreferenceShiftOptions) -> pl.Expr:
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


def _compare(frame: pl.DataFrame, samples: int, seed: int) -> list[dict[str, Any]]:
    altered = [variant for variant, reference in VARIANTS.items() if variant != reference]
    frame = frame.with_columns(
        (pl.col(variant) - pl.col(VARIANTS[variant])).alias(f"{variant}:difference")
        for variant in altered
    )
    columns = [*VARIANTS, *(f"{variant}:difference" for variant in altered)]
    intervals = mean_intervals(frame, columns, samples=samples, seed=seed)
    found = dict(zip(columns, intervals, strict=True))
    return [_row(frame, variant, found) for variant in VARIANTS]


def _row(frame: pl.DataFrame, variant: str, found: dict[str, Interval]) -> dict[str, Any]:
    reference = VARIANTS[variant]
    mean, n = found[variant], frame[variant].count()
    row: dict[str, Any] = {
        "variant": variant,
        "reference": reference,
        "n": n,
        "n_null": frame.height - n,
        "mean": mean.value,
        "low": mean.low,
        "high": mean.high,
        "wilcoxon_p": None,
    }
    if variant == reference:
        return row
    both = frame.drop_nulls([variant, reference])
    difference = found[f"{variant}:difference"]
    return row | {
        "n_pairs": both.height,
        "difference": difference.value,
        "difference_low": difference.low,
        "difference_high": difference.high,
        "effect_dz": cohens_dz(both[variant], both[reference]).value,
        "wilcoxon_p": wilcoxon_signed_rank(both[variant], both[reference]).p_value,
    }
