"""The figure of TAS against a judge's scores."""

from typing import Any

import polars as pl
from matplotlib.lines import Line2D

from fastscore.suites.judged import Judged
from fastscore.suites.preference_shift.analysis.convergent import CONVERSATION, with_judge
from fastscore.suites.preference_shift.analysis.figures.style import (
    ALL_LABEL,
    Drawn,
    Look,
    blank,
    counted,
    draw,
    legend_above,
    looks,
)
from fastscore.suites.preference_shift.analysis.scored import ALL, Scored

POINTS_SHOWN = 2_000
PANELS_SHOWN = 4
SPREAD = 0.24
GOLDEN = 0.6180339887498949


def judge_figure(
    scored: Scored, judged: Judged, table: pl.DataFrame, models: list[str]
) -> Drawn | None:
    """Draw each conversation's TAS against the judge's scores, with Spearman's rho within models.

    Returns
    -------
    Drawn or None
        None where no conversation has both.
    """
    names = judged.names[-PANELS_SHOWN:]
    frame = with_judge(scored, judged).drop_nulls("tas")
    counts = {name: frame[f"judge:{name}"].count() for name in names}
    if not any(counts.values()):
        return None
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    figure = blank(0.5 + 2.5 * rows)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    low, high = judged.scale
    shown = looks(models or [ALL_LABEL])
    for axis, name in zip(axes, names, strict=False):
        points = _points(frame, f"judge:{name}")
        for model, look in shown.items():
            _scatter(axis, points.filter(pl.col("model") == model) if models else points, look)
        axis.set_title(f"{name}\n")
        axis.text(0, 1.02, _rho(table, name), transform=axis.transAxes, va="bottom")
        axis.set_ylim(low - 0.3, high + 0.3)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    figure.supxlabel("TAS of the conversation", fontsize=8.5)
    figure.supylabel("judge's score", fontsize=8.5)
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, markerfacecolor="none", ls="")
        for look in shown.values()
    ]
    legend_above(figure, handles, list(shown))
    listed = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    caption = (
        f"n: {listed}, of {counted(scored.conversations.height, 'conversation')}; those without "
        "TAS or without the judge's score are null and left out, and "
        f"{counted(judged.rejects.height, 'judge value')} refused. rho is Spearman's within "
        "models, with its 95 % confidence interval over units. "
        f"Points of whole scores are spread by up to {SPREAD / 2:.2f} in height, and at most "
        f"{POINTS_SHOWN:,} are drawn, evenly chosen. A judge is no ground truth."
    )
    return draw(figure, "judge", "TAS against the judge's scores", caption)


def _scatter(axis: Any, points: pl.DataFrame, look: Look) -> None:
    axis.plot(
        points["tas"],
        points["height"],
        ls="",
        marker=look.marker,
        color=look.colour,
        markerfacecolor="none",
        ms=4,
        alpha=0.8,
    )


def _points(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Choose the conversations that are drawn, and the height of each."""
    judged = frame.drop_nulls(column)
    points = judged.gather_every(max(1, -(-judged.height // POINTS_SHOWN)))
    # equal scores would hide each other: an even, repeatable spread around each of them
    spread = (pl.col("conversation") * GOLDEN % 1.0 - 0.5) * SPREAD
    score = pl.col(column)
    height = pl.when((score == score.round()).all()).then(score + spread).otherwise(score)
    return points.with_columns(height.alias("height"))


def _rho(table: pl.DataFrame, judge: str) -> str:
    row = table.filter(
        pl.col("group") == ALL,
        pl.col("level") == CONVERSATION,
        pl.col("score") == "tas",
        pl.col("judge") == judge,
    ).row(0, named=True)
    if row["rho"] is None:
        return f"no rho ({row['reason']}), n = {row['n']:,}"
    ends = "" if row["rho_low"] is None else f" [{row['rho_low']:.2f}, {row['rho_high']:.2f}]"
    return f"\u03c1 = {row['rho']:.2f}{ends}, n = {row['n']:,}"
