"""The figures of an analysis, as SVG; here those of turns and shifts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from matplotlib.lines import Line2D

from fastscore.suites.judged import Judged
from fastscore.suites.preference_shift.analysis.model_figures import (
    COLOURS,
    GREY,
    LOOKS,
    MARKERS,
    MODELS_SHOWN,
    SETTINGS,
    ablation_bars,
    bars,
    blank,
    by_model,
    counted,
    distributions,
    draw,
    error_bars,
    interval_words,
    judge_figure,
    legend_above,
    radar,
    rows_of,
    weight_maps,
    with_errors,
)
from fastscore.suites.preference_shift.analysis.scored import (
    ALL,
    SCORE_NAMES,
    SCORE_RANGES,
    Scored,
    mean_intervals,
    of_models,
    turns_around_shifts,
)
from fastscore.suites.showing import Drawing
from fastscore.suites.svg import drawing_settings


def recovery_figure(scored: Scored, sweep: pl.DataFrame, models: list[str]) -> Drawing | None:
    """Draw how long recovery takes, and how its rate grows with the window."""
    if scored.shifts.is_empty():
        return None
    window = max(1, scored.options.window)
    groups = by_model(scored.shifts, models)
    figure = blank(3.1)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.1])
    ticks = [f"{delay}" for delay in range(window)] + ["not\nrecovered"]
    rates = sweep.filter(pl.col("test") == "run").rename({"rate": "mean"})
    for place, (model, shifts) in enumerate(groups.items()):
        known = shifts.filter(pl.col("recovered").is_not_null())
        delays = known["delay"].fill_null(window).to_numpy()
        shares = np.bincount(delays, minlength=window + 1) / max(1, len(delays))
        bars(left, shares, place, len(groups))
        rows = rows_of(rates, model)
        with_errors(right, "window", rows, place, len(groups)).set_label(model)
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
        f"{interval_words(len(groups))}; the dashed line is the run's window."
    )
    return draw(figure, "recovery", "Recovery after shifts", caption)


def construct_figure(table: pl.DataFrame) -> Drawing | None:
    """Draw the differences of the construct-validity tests over all conversations."""
    rows = table.filter((pl.col("group") == ALL) & pl.col("difference").is_not_null())
    if rows.is_empty():
        return None
    figure = blank(0.7 + 0.27 * rows.height)
    axis = figure.subplots()
    places = np.arange(rows.height)
    values = rows["difference"].to_numpy()
    ends = error_bars(rows.select(mean="difference", low="difference_low", high="difference_high"))
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


PARTS = {"cc": "CC", "cr": "CR", "i": "I (copying)"}
PART_LINES = ("-", "--", ":")
TURNS_SHOWN = 60
PANELS_SHOWN = 6
LEAST_REACH = 0.5
EMPTY: dict[str, Any] = {
    "ls": "",
    "marker": MARKERS[0],
    "color": COLOURS[0],
    "markerfacecolor": "white",
    "zorder": 3,
}
"""How CC is drawn where neither side names a concept."""


def timelines(scored: Scored, models: list[str]) -> Drawing | None:
    """Draw CC, CR and I by turn for one dialogue with a shift, as each model answered it."""
    chosen = _example(scored, models)
    if chosen.is_empty():
        return None
    figure = blank(0.55 + 1.25 * chosen.height)
    axes = figure.subplots(chosen.height, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axis, conversation, model in zip(
        axes, chosen["conversation"], chosen["model"], strict=True
    ):
        turns = scored.turns.filter(pl.col("conversation") == conversation).head(TURNS_SHOWN)
        for part, colour, marker, line in zip(PARTS, COLOURS, MARKERS, PART_LINES, strict=False):
            axis.plot(turns["turn"], turns[part], color=colour, marker=marker, ls=line)
        empty = turns.filter("both_empty")
        axis.plot(empty["turn"], empty["cc"], **EMPTY)
        shifts = scored.shifts.filter(
            (pl.col("conversation") == conversation) & (pl.col("turn") <= TURNS_SHOWN)
        )
        for turn, delay in shifts.select("turn", "delay").rows():
            axis.axvline(turn, color=GREY, ls=(0, (4, 2)), lw=1)
            if delay is not None:
                axis.plot(turn + delay, 1.09, marker=7, color="black", clip_on=False, ms=7)
        axis.set(ylim=(-0.05, 1.05), yticks=[0, 0.5, 1])
        axis.set_title(model or "no model named", pad=8)
    axes[-1].set_xlabel("turn (pair of user and system)")
    axes[-1].xaxis.get_major_locator().set_params(integer=True)
    handles = [
        Line2D([], [], color=colour, marker=marker, ls=line)
        for colour, marker, line in zip(COLOURS, MARKERS, PART_LINES, strict=False)
    ]
    handles += [Line2D([], [], **EMPTY), Line2D([], [], color=GREY, ls=(0, (4, 2)), lw=1)]
    labels = [*PARTS.values(), "CC of no concepts", "shift"]
    if scored.shifts["delay"].is_not_null().any():
        handles.append(Line2D([], [], color="black", marker=7, ls="", ms=7))
        labels.append("recovered")
    legend_above(figure, handles, labels)
    dialogue = scored.conversations.filter(pl.col("conversation") == chosen["conversation"][0])
    caption = (
        f"Dialogue {dialogue['dialogue'].item()}, the first among those with a shift that most "
        f"models answered; {counted(chosen.height, 'conversation')}, the first {TURNS_SHOWN} turns "
        "at most. A dashed line marks the turn of a shift, a triangle above the first turn "
        "of the window that meets the recovery test; a shift without a triangle is not known to be "
        "recovered. Where neither side names a concept CC is 1 by convention: the hollow circles. "
        "A turn that lacks a text is null and has no mark."
    )
    return draw(figure, "timelines", "CC, CR and copying turn by turn", caption)


def _example(scored: Scored, models: list[str]) -> pl.DataFrame:
    """Choose the conversations of the first dialogue with a shift that most models answered."""
    shifted = scored.shifts.filter("in_dialogue")["conversation"].unique()
    candidates = scored.conversations.filter(
        pl.col("conversation").is_in(shifted.implode())
        & (pl.col("model").is_null() | pl.col("model").is_in(models))
    )
    answered = candidates.group_by("cluster").agg(
        pl.col("model").n_unique().alias("n"), pl.col("conversation").min().alias("first")
    )
    best = answered.sort(["n", "first"], descending=[True, False]).head(1)
    return (
        candidates.join(best, on="cluster", how="semi")
        .unique("model", keep="first", maintain_order=True)
        .sort("model", nulls_last=True)
        .head(PANELS_SHOWN)
    )


def around_shifts_figure(scored: Scored, models: list[str]) -> Drawing | None:
    """Draw the mean CC, CR and I of the turns around shifts, by distance from the shift."""
    window = max(1, scored.options.window)
    near = turns_around_shifts(scored, window, 2 * window, tuple(PARTS))
    reached = pl.len().over("distance") >= LEAST_REACH * pl.col("shift_row").n_unique()
    near = near.filter(reached)
    if near.is_empty():
        return None
    groups = by_model(near, models)
    figure = blank(2.7)
    axes = figure.subplots(1, len(PARTS), sharex=True)
    for place, rows in enumerate(groups.values()):
        for axis, part in zip(axes, PARTS, strict=True):
            with_errors(axis, "distance", _means_by_distance(rows, part), place, len(groups))
    for axis, label in zip(axes, PARTS.values(), strict=True):
        axis.axvline(0, color=GREY, ls=(0, (4, 2)), lw=1)
        axis.set(title=label, xlabel="turns from the shift", ylim=(-0.02, 1.02))
    handles = [look.handle(look.line) for look in LOOKS[: len(groups)]]
    legend_above(figure, handles, list(groups))
    n_by = near.group_by("distance").len()["len"].to_numpy()
    caption = (
        f"Means over {counted(near['shift_row'].n_unique(), 'shift')} "
        f"{interval_words(len(groups))}; 0 is the shift's own turn. Turns beyond another shift are "
        f"left out, so n falls with distance: from {n_by.max():,} to {n_by.min():,} turns; "
        "distances that fewer than half of the shifts reach are not drawn. CC is 1 where neither "
        "side names a concept. No turn is null."
    )
    return draw(figure, "around_shifts", "What happens around a shift", caption)


def _means_by_distance(rows: pl.DataFrame, part: str) -> pl.DataFrame:
    wide = rows.pivot("distance", index=["shift_row", "cluster"], values=part)
    distances = sorted(wide.columns[2:], key=int)
    means = mean_intervals(wide, distances, dict.fromkeys(distances, SCORE_RANGES[part]))
    schema = dict.fromkeys(("mean", "low", "high"), pl.Float64)
    return pl.DataFrame(means, schema=schema).with_columns(
        distance=pl.Series(distances, dtype=pl.String).cast(pl.Int64)
    )


def draw_figures(
    scored: Scored, judged: Judged, tables: Mapping[str, pl.DataFrame]
) -> list[Drawing]:
    """Draw every figure that the run has something for, the first models by name in each."""
    models = scored.models[:MODELS_SHOWN]
    shown = of_models(scored, models)
    with drawing_settings(SETTINGS):
        figures = (
            distributions(shown, models),
            radar(shown, models),
            timelines(shown, models),
            around_shifts_figure(shown, models),
            recovery_figure(shown, tables["window_sweep"], models),
            ablation_bars(tables["ablations"], models),
            weight_maps(tables["weight_grid"], models),
            construct_figure(tables["construct_validity"]),
            judge_figure(scored, judged, tables["convergent_validity"], models),
        )
    return [figure for figure in figures if figure is not None]
