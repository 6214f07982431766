"""Figures of recovery after shifts and of the tests around them."""

from typing import Any

import numpy as np
import polars as pl

from fastscore.suites.preference_shift.analysis.figures.style import (
    ALL_LABEL,
    GREY,
    Drawn,
    Look,
    blank,
    counted,
    draw,
    error_bars,
    interval_words,
    legend_above,
    looks,
    offset_models,
    with_errors,
)
from fastscore.suites.preference_shift.analysis.scored import ALL, MODEL, SCORE_NAMES, Scored


def recovery_figure(scored: Scored, sweep: pl.DataFrame, models: list[str]) -> Drawn | None:
    """Draw how long recovery takes, and how its rate grows with the window.

    Returns
    -------
    Drawn or None
        None where no conversation has a shift.
    """
    if scored.shifts.is_empty():
        return None
    window = max(1, scored.options.window)
    names = models or [ALL_LABEL]
    figure = blank(3.1)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.1])
    ticks = [f"{delay}" for delay in range(window)] + ["not\nrecovered"]
    offsets = offset_models(len(names))
    for place, ((model, look), offset) in enumerate(
        zip(looks(names).items(), offsets, strict=True)
    ):
        shifts = scored.shifts.filter(pl.col("model") == model) if models else scored.shifts
        _delay_bars(left, shifts, window, place - (len(names) - 1) / 2, 0.8 / len(names), look)
        rows = _sweep_of(sweep, model if models else None)
        line = with_errors(
            right, rows["window"] + offset, rows.rename({"rate": "mean"}), look, len(names)
        )
        line.set_label(model)
    left.set_xticks(range(window + 1), ticks)
    left.set(xlabel="turns until recovery", ylabel="share of shifts", title="Delay")
    left.grid(axis="x", visible=False)
    right.axvline(window, color=GREY, ls=(0, (4, 2)), lw=1)
    right.set(xlabel="window W in turns", ylim=(-0.02, 1.02), title="Recovery rate by window")
    right.set_ylabel("share of shifts recovered")
    right.xaxis.get_major_locator().set_params(integer=True)
    legend_above(figure, *right.get_legend_handles_labels())
    n, unknown = scored.shifts.height, scored.shifts["recovered"].null_count()
    missed = scored.shifts["delay"].null_count() - unknown
    caption = (
        f"{counted(n, 'shift')}. Left: delay within the run's window of {window}, from 0 (the "
        f"shift's own turn); {missed:,} were not recovered in it and have no delay (null); of "
        f"{unknown:,} it is unknown for want of a text, and they count for nothing. Right: "
        "the share of shifts that a turn of the window meets the run's recovery test for, "
        f"{interval_words(len(names))}; the dashed line is the run's window."
    )
    return draw(figure, "recovery", "Recovery after shifts", caption)


def _delay_bars(
    axis: Any, shifts: pl.DataFrame, window: int, place: float, width: float, look: Look
) -> None:
    """Draw the share of shifts of each delay, so many widths beside the delay's tick."""
    known = shifts.filter(pl.col("recovered").is_not_null())
    delays = known["delay"].fill_null(window).to_numpy()
    shares = np.bincount(delays, minlength=window + 1) / max(1, len(delays))
    axis.bar(
        np.arange(window + 1) + place * width,
        shares,
        width=width * 0.92,
        color=look.colour,
        alpha=0.75,
        hatch=look.hatch,
        edgecolor="black",
        lw=0.6,
    )


def _sweep_of(sweep: pl.DataFrame, model: str | None) -> pl.DataFrame:
    rows = sweep.filter(pl.col("test") == "run")
    if model is None or not (rows["group"] == MODEL).any():
        return rows.filter(pl.col("group") == ALL)
    return rows.filter((pl.col("group") == MODEL) & (pl.col("value") == model))


def construct_figure(table: pl.DataFrame) -> Drawn | None:
    """Draw the differences of the construct-validity tests over all conversations.

    Returns
    -------
    Drawn or None
        None where no contrast has a conversation.
    """
    rows = table.filter((pl.col("group") == ALL) & pl.col("difference").is_not_null())
    if rows.is_empty():
        return None
    figure = blank(0.7 + 0.27 * rows.height)
    axis = figure.subplots()
    places = np.arange(rows.height)
    values = rows["difference"].to_numpy()
    ends = error_bars(rows, "difference", ("difference_low", "difference_high"))
    is_clear = rows["is_significant"].fill_null(False).to_numpy()
    axis.errorbar(values, places, xerr=ends, fmt="none", ecolor="black", elinewidth=1, capsize=2)
    for chosen, face, label in (
        (is_clear, "#0072B2", "significant: Holm p < 0.05"),
        (~is_clear, "white", "not significant, or exploratory"),
    ):
        axis.plot(
            values[chosen],
            places[chosen],
            ls="",
            marker="o",
            ms=6,
            color="black",
            markerfacecolor=face,
            label=label,
        )
    axis.axvline(0, color=GREY, lw=1)
    names = [
        f"{SCORE_NAMES[score]}: {first} \N{MINUS SIGN} {second} (n = {n:,})"
        for score, first, second, n in rows.select("score", "first", "second", "n").rows()
    ]
    axis.set_yticks(places, names)
    axis.invert_yaxis()
    axis.set_xlabel("mean difference over conversations, 95 % confidence interval")
    legend_above(figure, *axis.get_legend_handles_labels())
    nulls = rows["n_null"].to_numpy().max()
    caption = (
        "Scores at a shift's turn against the turns of a window before and after it, and the "
        "cosine of user and system within segments against neighbouring ones. Scores are averaged "
        f"over a conversation's shifts. Up to {nulls:,} conversations with a shift lack one side "
        "of a contrast and are null there. Three contrasts are tested: CC is expected to drop at a "
        "shift and to rise after it, and CR to be higher within segments."
    )
    return draw(figure, "construct", "How the scores move with the shifts", caption)
