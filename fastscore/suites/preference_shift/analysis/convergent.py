"""Convergent validity: whether the suite's scores order conversations as a judge does.

Three questions are kept apart. Do scores order the conversations of one model as the judge does?
Conversations are ranked within their model, and a dialogue that several models answered is one
unit. Do they order the models as the judge does? The models' means are ranked. Ranking all
conversations of all models together mixes the two: this correlation has no test.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl

from fastscore.statistics.correlation import (
    EXACT_UNITS,
    Correlation,
    clustered_kendall,
    clustered_spearman,
    detectable_correlation,
    kendall,
    spearman,
)
from fastscore.statistics.significance import holm
from fastscore.suites.judged import MEAN, OVERALL, Judged
from fastscore.suites.preference_shift.analysis.scored import (
    ALL,
    ALPHA,
    GROUP_SCHEMA,
    Scored,
    by_group,
    is_significant,
)

SCORES = ("tas", "cas", "cas_all", "cc", "cr", "i", "recovery_rate")
HEADLINES = ("tas", "cas")
"""The published scores. CAS over all shifts is a variant of CAS, and the others are their parts."""
CONVERSATION, MODELS, POOLED = "conversation", "model", "pooled"

CONVERGENT_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "level": pl.String(),
    "score": pl.String(),
    "judge": pl.String(),
    "is_headline": pl.Boolean(),
    "n": pl.Int64(),
    "n_units": pl.Int64(),
    "n_null_score": pl.Int64(),
    "n_null_judge": pl.Int64(),
    "rho": pl.Float64(),
    "rho_low": pl.Float64(),
    "rho_high": pl.Float64(),
    "rho_p": pl.Float64(),
    "p_method": pl.String(),
    "family": pl.Int64(),
    "rho_holm_p": pl.Float64(),
    "smallest_holm_p": pl.Float64(),
    "is_significant": pl.Boolean(),
    "detectable_rho": pl.Float64(),
    "tau": pl.Float64(),
    "tau_low": pl.Float64(),
    "tau_high": pl.Float64(),
    "tau_p": pl.Float64(),
    "tau_holm_p": pl.Float64(),
    "reason": pl.String(),
}
"""Spearman's rho and Kendall's tau-b of a score and a judge's score. ``level`` is ``conversation``
(within models), ``model`` (the models' means) or ``pooled`` (all conversations together). ``n`` is
how many conversations, or models, have both scores, and ``n_units`` how many units they are.
``n_null_score`` conversations lack the suite's score, ``n_null_judge`` more the judge's. Intervals
have 95 %. ``rho_holm_p`` is corrected by Holm's procedure for the ``family`` headline tests of the
group. ``smallest_holm_p`` is the smallest that any correlation of these conversations can have, and
``detectable_rho`` the smallest true correlation that is found with a power of 80 %. Tau is a second
measure of rho's test, so ``tau_holm_p`` is its p-value times ``family`` (Bonferroni). ``reason`` is
why there is no rho, no p or no interval."""


def convergent_validity(scored: Scored, judged: Judged) -> pl.DataFrame:
    """Correlate the suite's scores with a judge's.

    Parameters
    ----------
    scored, judged
        The run's scores and the judge's.

    Returns
    -------
    pl.DataFrame
        In `CONVERGENT_SCHEMA`; no row without judge scores.
    """
    rows: list[dict[str, Any]] = []
    groups = by_group(with_judge(scored, judged)) if judged.names else ()
    for group, frame in groups:
        of_group = [
            _within_models(frame, score, judge) for score in SCORES for judge in judged.names
        ]
        of_group = _with_corrected(of_group, _headline_judge(judged))
        if group["group"] == ALL and len(scored.models) > 1:
            of_group += [
                compare(frame, score, judge)
                for compare in (_between_models, _pooled)
                for score in SCORES
                for judge in judged.names
            ]
        rows += [group | row for row in of_group]
    return pl.DataFrame(rows, schema=CONVERGENT_SCHEMA)


def untestable(table: pl.DataFrame) -> str:
    """Return a sentence if no headline correlation over all conversations can be significant."""
    headlines = table.filter(
        pl.col("group") == ALL, pl.col("is_headline"), pl.col("rho").is_not_null()
    )
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
    frame = scored.conversations.drop("judge")
    for name, scores in _by_name(judged):
        frame = frame.join(scores, on="conversation", how="left", maintain_order="left").rename(
            {"score": f"judge:{name}"}
        )
    return frame


def _by_name(judged: Judged) -> Iterator[tuple[str, pl.DataFrame]]:
    for name in judged.names:
        yield (
            name,
            judged.scores.filter(pl.col("judge") == name).select("conversation", "score"),
        )


def _headline_judge(judged: Judged) -> str:
    """Return the judge's overall score, or else the mean of its scores, or its only score."""
    return next((name for name in (OVERALL, MEAN) if name in judged.names), judged.names[0])


def _with_corrected(rows: list[dict[str, Any]], headline_judge: str) -> list[dict[str, Any]]:
    """Correct the headline correlations of one group as a family."""
    members = [row["score"] in HEADLINES and row["judge"] == headline_judge for row in rows]
    p_values = [
        row["rho_p"] if is_member else None for row, is_member in zip(rows, members, strict=True)
    ]
    family = sum(p is not None for p in p_values)
    found = []
    for row, is_member, corrected in zip(rows, members, holm(p_values), strict=True):
        more: dict[str, Any] = {"is_headline": is_member}
        rho: Correlation = row["of_rho"]
        if corrected is not None and rho.smallest_p is not None:
            more |= {
                "family": family,
                "rho_holm_p": corrected,
                "smallest_holm_p": min(1.0, rho.smallest_p * family),
                "is_significant": is_significant(corrected, rho.low, rho.high),
            }
            if row["tau_p"] is not None:
                more["tau_holm_p"] = min(1.0, row["tau_p"] * family)
        alpha = ALPHA if corrected is None else ALPHA / family
        more["detectable_rho"] = detectable_correlation(rho, alpha=alpha)
        found.append({name: value for name, value in row.items() if name != "of_rho"} | more)
    return found


def _with_both(frame: pl.DataFrame, score: str, judge: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return the conversations that have both scores, with the columns of names and counts."""
    scored = frame.drop_nulls(score)
    both = scored.drop_nulls(f"judge:{judge}")
    return both, {
        "score": score,
        "judge": judge,
        "is_headline": False,
        "n": both.height,
        "n_null_score": frame.height - scored.height,
        "n_null_judge": scored.height - both.height,
    }


def _within_models(frame: pl.DataFrame, score: str, judge: str) -> dict[str, Any]:
    both, row = _with_both(frame, score, judge)
    pairs = both[score], both[f"judge:{judge}"], both["cluster"], both["model"].fill_null("")
    rho, tau = clustered_spearman(*pairs), clustered_kendall(*pairs)
    return row | {
        "level": CONVERSATION,
        "n_units": rho.clusters,
        "rho": rho.value,
        "rho_low": rho.low,
        "rho_high": rho.high,
        "rho_p": rho.p_value,
        "p_method": rho.method,
        "tau": tau.value,
        "tau_low": tau.low,
        "tau_high": tau.high,
        "tau_p": tau.p_value,
        "reason": rho.reason,
        "of_rho": rho,
    }


def _between_models(frame: pl.DataFrame, score: str, judge: str) -> dict[str, Any]:
    both, row = _with_both(frame, score, judge)
    column = f"judge:{judge}"
    means = (
        both.drop_nulls("model")
        .sort("model", score, column)
        .group_by("model", maintain_order=True)
        .agg(pl.col(score, column).mean())
    )
    rho, tau = (measure(means[score], means[column]) for measure in (spearman, kendall))
    method = "exact" if means.height <= EXACT_UNITS else "t"
    return row | {
        "level": MODELS,
        "n": means.height,
        "n_units": means.height,
        "rho": rho.statistic,
        "rho_p": rho.p_value,
        "p_method": None if rho.p_value is None else method,
        "tau": tau.statistic,
        "tau_p": tau.p_value,
        "reason": rho.reason,
    }


def _pooled(frame: pl.DataFrame, score: str, judge: str) -> dict[str, Any]:
    both, row = _with_both(frame, score, judge)
    rho, tau = (measure(both[score], both[f"judge:{judge}"]) for measure in (spearman, kendall))
    return row | {
        "level": POOLED,
        "n_units": both["cluster"].n_unique(),
        "rho": rho.statistic,
        "tau": tau.statistic,
        "reason": rho.reason or "mixes_models",
    }
