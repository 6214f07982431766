"""Convergent validity: whether the suite's scores order conversations as a judge does."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from fastscore.statistics.correlation import (
    bootstrap_kendall,
    bootstrap_spearman,
    kendall,
    spearman,
)
from fastscore.statistics.significance import holm
from fastscore.suites.judged import Judged
from fastscore.suites.preference_shift.analysis.scored import GROUP_SCHEMA, Scored, by_group

SCORES = ("tas", "cas", "cas_all", "cc", "cr", "i", "recovery_rate")
HEADLINES = ("tas", "cas", "cas_all")

CONVERGENT_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "score": pl.String(),
    "judge": pl.String(),
    "n": pl.Int64(),
    "n_null_score": pl.Int64(),
    "n_null_judge": pl.Int64(),
    "rho": pl.Float64(),
    "rho_low": pl.Float64(),
    "rho_high": pl.Float64(),
    "rho_p": pl.Float64(),
    "rho_holm_p": pl.Float64(),
    "tau": pl.Float64(),
    "tau_low": pl.Float64(),
    "tau_high": pl.Float64(),
    "tau_p": pl.Float64(),
    "tau_holm_p": pl.Float64(),
    "reason": pl.String(),
}
"""Spearman's rho and Kendall's tau-b of a score and a judge's score over the ``n`` conversations of
a group that have both, with 95 % intervals from resampled dialogues (tau's for TAS and CAS alone);
``n_null_score`` conversations lack the suite's score, ``n_null_judge`` more the judge's. The
``holm`` p-values are corrected for all rows of the group; ``reason`` says why there is no rho."""


def convergent_validity(scored: Scored, judged: Judged, *, samples: int, seed: int) -> pl.DataFrame:
    """Correlate the suite's scores with a judge's.

    Parameters
    ----------
    scored, judged
        The run's scores and the judge's.
    samples, seed
        Of the bootstrap by dialogue.

    Returns
    -------
    pl.DataFrame
        In `CONVERGENT_SCHEMA`; no row without judge scores.
    """
    rows: list[dict[str, Any]] = []
    for group, frame in by_group(with_judge(scored, judged)):
        of_group = [
            _correlate(frame, score, judge, samples, seed)
            for score in SCORES
            for judge in judged.names
        ]
        for measure in ("rho", "tau"):
            corrected = holm([row[f"{measure}_p"] for row in of_group])
            of_group = [
                {**row, f"{measure}_holm_p": p} for row, p in zip(of_group, corrected, strict=True)
            ]
        rows += [{**group, **row} for row in of_group]
    return pl.DataFrame(rows, schema=CONVERGENT_SCHEMA)


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


def _correlate(
    frame: pl.DataFrame, score: str, judge: str, samples: int, seed: int
) -> dict[str, Any]:
    column = f"judge:{judge}"
    scored = frame.drop_nulls(score)
    both = scored.drop_nulls(column)
    x, y, clusters = (both[name].to_numpy() for name in (score, column, "cluster"))
    rho, tau = spearman(x, y), kendall(x, y)
    rho_interval = bootstrap_spearman(x, y, clusters, samples=samples, seed=seed)
    row: dict[str, Any] = {
        "score": score,
        "judge": judge,
        "n": both.height,
        "n_null_score": frame.height - scored.height,
        "n_null_judge": scored.height - both.height,
        "rho": rho.statistic,
        "rho_low": rho_interval.low,
        "rho_high": rho_interval.high,
        "rho_p": rho.p_value,
        "tau": tau.statistic,
        "tau_p": tau.p_value,
        "reason": rho.reason,
    }
    if score in HEADLINES:
        tau_interval = bootstrap_kendall(x, y, clusters, samples=samples, seed=seed)
        row |= {"tau_low": tau_interval.low, "tau_high": tau_interval.high}
    return row
