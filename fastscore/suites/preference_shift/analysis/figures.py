"""The figures of an analysis, as SVG.

Models differ by colour, marker, line and hatch together, so that a figure reads in grey too. Text
is drawn as outlines, as a page must look alike wherever it is opened; the same data give the same
bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from polars import col as C

from fastscore.errors import counted
from fastscore.suites.judged import Judged
from fastscore.suites.preference_shift.analysis.tables import (
    ALL,
    MODEL,
    SCORE_NAMES,
    VARIANTS,
    Scored,
    with_judge,
)
from fastscore.suites.preference_shift.metrics import SLOWEST_DELAY
from fastscore.suites.showing import Drawing
from fastscore.suites.svg import drawing_settings, svg_of, with_own_ids
from fastscore.terminal import wrapped

WIDTH = 7.2
NAME_WIDTH = 24
MODELS_SHOWN = 8
ERRORS_SHOWN = 4
ALL_LABEL = "all conversations"

COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D00"),
)
"""Okabe and Ito's palette, with an ochre for its yellow, which is too light on paper."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: tuple[Any, ...] = (
    *("-", "--", "-.", ":"),
    *((0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2, 1, 2))),
)
HATCHES = ("", "////", "||||", "\\\\\\\\", "xxxx", "----", "++++", "//--")
"""Of lines: one of dots or circles takes 250 KB."""
GREY = "#555555"
DASHED: dict[str, Any] = {"color": GREY, "ls": (0, (4, 2)), "lw": 1}
"""Of lines that mark a shift, or the run's window."""

SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.6,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "fastscore",
}


LINE_STYLES: list[dict[str, Any]] = [
    {"color": colour, "marker": marker, "ls": line}
    for colour, marker, line in zip(COLOURS, MARKERS, LINES, strict=True)
]
"""Of lines through points of the models, by place among the sorted names."""
FILLS: list[dict[str, Any]] = [
    {"facecolor": colour, "hatch": hatch, "edgecolor": "black"}
    for colour, hatch in zip(COLOURS, HATCHES, strict=True)
]
"""Of areas."""


def by_model(frame: pl.DataFrame, models: list[str]) -> dict[str, pl.DataFrame]:
    """Return the rows of every model that is shown, or all rows where none is named."""
    if not models:
        return {ALL_LABEL: frame}
    return {model: frame.filter(C("model") == model) for model in models}


def blank(height: float) -> Figure:
    """Return an empty figure of the page's width and this height in inches."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def draw(figure: Figure, name: str, title: str, caption: str) -> Drawing:
    """Write a figure as SVG, with its title and caption for those who cannot see it."""
    opening, rest = with_own_ids(svg_of(figure), name).split(">", 1)
    described = (
        f'{opening} role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(caption)}</desc>'
    )
    return Drawing(name=name, title=title, caption=caption, svg=described + rest)


def error_bars(means: pl.DataFrame) -> list[Any]:
    """Return how far low and high are from a mean; NaN if it has no interval."""
    mean, low, high = means.select(C("mean", "low", "high").fill_null(np.nan))
    return [(end - mean).abs().to_numpy() for end in (low, high)]


def legend_above(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Put one legend above all panels, in as many columns as fit, and add its height."""
    names = [wrapped(label, NAME_WIDTH) for label in labels]
    longest = max(len(line) for name in names for line in name.split("\n"))
    columns = max(1, min(len(names), int(WIDTH * 72 / (45 + 4.8 * longest))))
    lines = max(name.count("\n") + 1 for name in names)
    figure.legend(handles, names, loc="outside upper center", ncols=columns, handlelength=2.8)
    figure.set_figheight(figure.get_figheight() + 0.15 * lines * -(-len(names) // columns))


HOLLOW: dict[str, Any] = {"ls": "", "markerfacecolor": "none"}
POINTS_SHOWN = 2_000
PANELS_SHOWN = 4
SPREAD = 0.24
GOLDEN = 0.6180339887498949


def judge_figure(
    scored: Scored, judged: Judged, table: pl.DataFrame, models: list[str]
) -> Drawing | None:
    """Draw conversations' TAS against the judge's scores, with Spearman's rho within models."""
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
    for axis, name in zip(axes, names, strict=False):
        groups = by_model(_points(frame, f"judge:{name}"), models)
        for points, style in zip(groups.values(), LINE_STYLES, strict=False):
            axis.plot(points["tas"], points["height"], ms=4, alpha=0.8, **style | HOLLOW)
        axis.set_title(f"{name}\n")
        axis.text(0, 1.02, _rho(table, name), transform=axis.transAxes, va="bottom")
        axis.set_ylim(low - 0.3, high + 0.3)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    figure.supxlabel("TAS of the conversation", fontsize=8.5)
    figure.supylabel("judge's score", fontsize=8.5)
    shown = models or [ALL_LABEL]
    handles = [Line2D([], [], **style | HOLLOW) for style in LINE_STYLES[: len(shown)]]
    legend_above(figure, handles, shown)
    listed = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    caption = (
        f"n: {listed}, of {counted(scored.conversations.height, 'conversations')}; those without "
        "TAS or without the judge's score are null and left out, and "
        f"{counted(judged.rejects.height, 'judge values')} refused. rho is Spearman's within "
        "models, with its 95 % confidence interval over units. "
        f"Points of whole scores are spread by up to {SPREAD / 2:.2f} in height, and at most "
        f"{POINTS_SHOWN:,} are drawn, evenly chosen. A judge is no ground truth."
    )
    return draw(figure, "judge", "TAS against the judge's scores", caption)


def _points(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Choose the conversations that are drawn, and the height of each."""
    judged = frame.drop_nulls(column)
    points = judged.gather_every(max(1, -(-judged.height // POINTS_SHOWN)))
    # equal scores would hide each other: an even, repeatable spread around each of them
    spread = (C("conversation") * GOLDEN % 1.0 - 0.5) * SPREAD
    score = C(column)
    height = pl.when((score == score.round()).all()).then(score + spread).otherwise(score)
    return points.with_columns(height.alias("height"))


def _rho(table: pl.DataFrame, judge: str) -> str:
    row = table.filter(group=ALL, score="tas", judge=judge).row(0, named=True)
    if row["rho"] is None:
        return f"no rho ({row['reason']}), n = {row['n']:,}"
    ends = "" if row["rho_low"] is None else f" [{row['rho_low']:.2f}, {row['rho_high']:.2f}]"
    return f"\u03c1 = {row['rho']:.2f}{ends}, n = {row['n']:,}"


BOXES = ("cc", "cr", "i", "tas")
BOX_STYLE: dict[str, Any] = {
    "orientation": "horizontal",
    "whis": (5, 95),
    "showfliers": False,
    "showmeans": True,
    "patch_artist": True,
    "widths": 0.62,
    "medianprops": {"color": "black", "lw": 1.6},
    "meanprops": {"marker": "D", "mfc": "white", "mec": "black", "ms": 4.5},
}
VARIANT_NAMES = {
    "tas": "TAS",
    "tas_without_copying": "without\ncopying",
    "cc_only": "CC only",
    "cr_only": "CR only",
    "cas": "CAS",
    "cas_all": "CAS over\nall shifts",
    "cas_without_recovery": "without\nrecovery",
}
SPOKES = {
    "CC": C("cc"),
    "CR": C("cr"),
    "1 − I": 1 - C("i"),
    "recovery\nrate": C("recovery_rate").filter(C("n_shifts") > 0),
    "1 − delay/5": 1 - (C("recovery_delay") / SLOWEST_DELAY).clip(0, 1),
}


def distributions(scored: Scored, models: list[str]) -> Drawing:
    """Draw the distribution of each part of TAS over conversations, a box a model."""
    groups = by_model(scored.conversations, models)
    figure = blank(1.1 + 2 * 0.3 * max(3, len(groups)))
    axes = figure.subplots(2, 2, sharey=True).ravel()
    counts = [frame.select(C(BOXES).count()).row(0) for frame in groups.values()]
    for axis, score in zip(axes, BOXES, strict=True):
        values = [frame[score].drop_nulls().to_numpy() for frame in groups.values()]
        drawn = axis.boxplot(values, **BOX_STYLE)
        for box, fill in zip(drawn["boxes"], FILLS, strict=False):
            box.set(alpha=0.55, **fill)
        axis.grid(axis="y", visible=False)
        axis.set_title(SCORE_NAMES[score])
    names = []
    for model, n in zip(groups, counts, strict=True):
        ends = dict.fromkeys((f"{min(n):,}", f"{max(n):,}"))
        names.append(wrapped(f"{model} ({' to '.join(ends)})", NAME_WIDTH))
    axes[0].set_yticks(range(1, len(groups) + 1), names)
    axes[0].invert_yaxis()
    nulls = sum(frame["tas"].null_count() for frame in groups.values())
    caption = (
        "Conversation means: the box spans the middle half, the line is the median, the diamond "
        "the mean, the whiskers reach the 5th and 95th percentile; n of the scores in parentheses. "
        f"{counted(nulls, 'conversations')} without a turn are null and left out. CC counts 1 for "
        "turns in which neither side names a concept."
    )
    return draw(figure, "distributions", "TAS and its parts by model", caption)


def radar(scored: Scored, models: list[str]) -> Drawing:
    """Draw every model's mean parts on a radar where outward is better."""
    groups = by_model(scored.conversations, models)
    figure = blank(4.1)
    axis: Any = figure.add_subplot(projection="polar")
    angles = np.linspace(0, 2 * np.pi, len(SPOKES), endpoint=False)
    for (model, frame), style in zip(groups.items(), LINE_STYLES, strict=False):
        values = frame.select(value.mean().alias(name) for name, value in SPOKES.items()).row(0)
        present = [k for k, value in enumerate(values) if value is not None]
        around = [*present, *present[:1]]
        reach = [values[k] for k in around]
        axis.plot(angles[around], reach, **style, label=model, clip_on=False)
    axis.set_theta_offset(np.pi / 2)
    axis.set_theta_direction(-1)
    axis.set_xticks(angles, list(SPOKES))
    axis.tick_params(axis="x", pad=16)
    axis.set(ylim=(0, 1), yticks=[0.25, 0.5, 0.75])
    for label in axis.get_yticklabels():
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8})
    axis.set_rlabel_position(108)
    legend_above(figure, *axis.get_legend_handles_labels())
    drawn = pl.concat(groups.values())
    shifted, recovered = (drawn["n_shifts"] > 0).sum(), drawn["recovery_delay"].count()
    caption = (
        f"Means over {counted(drawn.height, 'conversations')}; the recovery rate over the "
        f"{shifted:,} with a shift, the delay over the {recovered:,} in which one was recovered: "
        "it is null in the others, and a spoke without any value is left out. Outward is better "
        "on every spoke; the area means nothing."
    )
    return draw(figure, "radar", "Means of the parts by model", caption)


def ablation_bars(table: pl.DataFrame, models: list[str]) -> Drawing:
    """Draw the mean of TAS, CAS and their ablations, a bar a model."""
    names = models or [ALL_LABEL]
    figure = blank(3.3)
    axes = figure.subplots(1, 2, width_ratios=[4, 3], sharey=True)
    for axis, references in zip(axes, (("tas",), ("cas", "cas_all")), strict=True):
        variants = [name for name, of in VARIANTS.items() if of in references]
        for place, model in enumerate(names):
            rows = rows_of(table, model).filter(C("variant").is_in(variants))
            means, errors = rows["mean"].fill_null(np.nan), {"lw": 0.9, "capsize": 2}
            bars(axis, means, place, len(names), yerr=error_bars(rows), error_kw=errors)
        axis.set_xticks(range(len(variants)), [VARIANT_NAMES[variant] for variant in variants])
        axis.axhline(0, color="black", lw=0.8)
        axis.grid(axis="x", visible=False)
        axis.set_title(f"{references[0].upper()} and its ablations")
    axes[0].set_ylabel("mean over conversations")
    handles = [Patch(alpha=0.75, **fill) for fill in FILLS[: len(names)]]
    legend_above(figure, handles, names)
    drawn = pl.concat([rows_of(table, model) for model in names])
    of_tas, of_cas = (drawn.filter(C("variant") == name) for name in ("tas", "cas"))
    n_tas, n_cas, null_cas = of_tas["n"].sum(), of_cas["n"].sum(), of_cas["n_null"].sum()
    caption = (
        f"Means with 95 % confidence intervals: TAS over {n_tas:,} conversations, "
        f"CAS over {n_cas:,}: null in the {null_cas:,} without a shift or without a recovery. Over "
        "all shifts it is null only without a shift: what never recovered counts as slowest. CAS "
        "without recovery weighs 1 - I, CC and CR alone and exists in those too, so compare the "
        "two by the paired differences in the table."
    )
    return draw(figure, "ablations", "TAS and CAS without some of their parts", caption)


def rows_of(table: pl.DataFrame, model: str) -> pl.DataFrame:
    """Return the rows of a model; those of all conversations if none or only one is named."""
    of_model = table.filter(group=MODEL, value=model)
    return of_model if (table["group"] == MODEL).any() else table.filter(group=ALL)


def bars(axis: Any, heights: Any, place: int, n_models: int, **more: Any) -> None:
    """Draw a model's bars beside those of the other models."""
    width = 0.8 / n_models
    axis.bar(
        np.arange(len(heights)) + (place - (n_models - 1) / 2) * width,
        heights,
        width=width * 0.92,
        alpha=0.75,
        **FILLS[place],
        lw=0.6,
        **more,
    )


def recovery_figure(scored: Scored, sweep: pl.DataFrame, models: list[str]) -> Drawing | None:
    """Draw how long recovery takes, and how its rate grows with the window."""
    if scored.shifts.is_empty():
        return None
    window = max(1, scored.options.window)
    groups = by_model(scored.shifts, models)
    has_bars = len(groups) <= ERRORS_SHOWN  # those of more would hide the lines
    figure = blank(3.1)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.1])
    ticks = [f"{delay}" for delay in range(window)] + ["not\nrecovered"]
    rates = sweep.rename({"rate": "mean"})
    for place, (model, shifts) in enumerate(groups.items()):
        known = shifts.filter(C("recovered").is_not_null())
        delays = known["delay"].fill_null(window).to_numpy()
        shares = np.bincount(delays, minlength=window + 1) / max(1, len(delays))
        bars(left, shares, place, len(groups))
        rows = rows_of(rates, model)
        right.errorbar(
            rows["window"] + (place - (len(groups) - 1) / 2) * min(0.12, 0.5 / len(groups)),
            rows["mean"].fill_null(np.nan),
            yerr=error_bars(rows) if has_bars else None,
            **LINE_STYLES[place],
            elinewidth=0.9,
            capsize=1.5,
            label=model,
        )
    left.set_xticks(range(window + 1), ticks)
    left.set(xlabel="turns until recovery", ylabel="share of shifts", title="Delay")
    left.grid(axis="x", visible=False)
    right.axvline(window, **DASHED)
    right.set(xlabel="window W in turns", ylim=(-0.02, 1.02), title="Recovery rate by window")
    right.set_ylabel("share of shifts recovered")
    right.xaxis.get_major_locator().set_params(integer=True)
    legend_above(figure, *right.get_legend_handles_labels())
    n, unknown = scored.shifts.height, scored.shifts["recovered"].null_count()
    missed = scored.shifts["delay"].null_count() - unknown
    caption = (
        f"{counted(n, 'shifts')}. Left: delay within the run's window of {window}, from 0 (the "
        f"shift's own turn); {missed:,} were not recovered in it and have no delay (null); "
        f"{unknown:,} have no text, so it is unknown; they are not counted. Right: "
        "the share of shifts that a turn of the window meets the run's recovery test for, "
        f"with{'' if has_bars else 'out'} 95 % confidence intervals; the dashed line is the run's "
        "window."
    )
    return draw(figure, "recovery", "Recovery after shifts", caption)


PARTS = {"cc": "CC", "cr": "CR", "i": "I (copying)"}
PART_STYLES: dict[str, dict[str, Any]] = {
    part: {"color": colour, "marker": marker, "ls": line}
    for part, colour, marker, line in zip(PARTS, COLOURS, MARKERS, ("-", "--", ":"), strict=False)
}
RECOVERED: dict[str, Any] = {"color": "black", "marker": 7, "ms": 7}
TURNS_SHOWN = 60
TIMELINES_SHOWN = 6
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
        turns = scored.turns.filter(C("conversation") == conversation).head(TURNS_SHOWN)
        for part, style in PART_STYLES.items():
            axis.plot(turns["turn"], turns[part], **style)
        empty = turns.filter("both_empty")
        axis.plot(empty["turn"], empty["cc"], **EMPTY)
        shifts = scored.shifts.filter(
            (C("conversation") == conversation) & (C("turn") <= TURNS_SHOWN)
        )
        for turn, delay in shifts.select("turn", "delay").rows():
            axis.axvline(turn, **DASHED)
            if delay is not None:
                axis.plot(turn + delay, 1.09, **RECOVERED, clip_on=False)
        axis.set(ylim=(-0.05, 1.05), yticks=[0, 0.5, 1])
        axis.set_title(model or "no model named", pad=8)
    axes[-1].set_xlabel("turn (pair of user and system)")
    axes[-1].xaxis.get_major_locator().set_params(integer=True)
    handles = [Line2D([], [], **style) for style in (*PART_STYLES.values(), EMPTY, DASHED)]
    labels = [*PARTS.values(), "CC of no concepts", "shift"]
    if scored.shifts["delay"].is_not_null().any():
        handles.append(Line2D([], [], **RECOVERED, ls=""))
        labels.append("recovered")
    legend_above(figure, handles, labels)
    dialogue = scored.conversations.filter(C("conversation") == chosen["conversation"][0])
    caption = (
        f"Dialogue {dialogue['dialogue'].item()}, the first among those with a shift that most "
        f"models answered; {counted(chosen.height, 'conversations')}, the first {TURNS_SHOWN} "
        "turns at most. A dashed line marks the turn of a shift, a triangle above the first turn "
        "of the window that meets the recovery test; a shift without a triangle is not known to be "
        "recovered. Where neither side names a concept CC is 1 by convention: the hollow circles. "
        "A turn that lacks a text is null and has no mark."
    )
    return draw(figure, "timelines", "CC, CR and copying turn by turn", caption)


def _example(scored: Scored, models: list[str]) -> pl.DataFrame:
    """Choose the conversations of the first dialogue with a shift that most models answered."""
    shifted = scored.shifts.filter("in_dialogue")["conversation"].unique()
    candidates = scored.conversations.filter(
        C("conversation").is_in(shifted.implode())
        & (C("model").is_null() | C("model").is_in(models))
    )
    answered = candidates.group_by("cluster").agg(
        C("model").n_unique().alias("n"), C("conversation").min().alias("first")
    )
    best = answered.sort(["n", "first"], descending=[True, False]).head(1)
    return (
        candidates.join(best, on="cluster", how="semi")
        .unique("model", keep="first", maintain_order=True)
        .sort("model", nulls_last=True)
        .head(TIMELINES_SHOWN)
    )


def draw_figures(
    scored: Scored, judged: Judged, tables: Mapping[str, pl.DataFrame]
) -> list[Drawing]:
    """Draw every figure that the run has something for, the first models by name in each."""
    models = scored.models[:MODELS_SHOWN]
    frames = {name: getattr(scored, name) for name in ("conversations", "turns", "shifts")}
    of_shown = {name: frame.filter(C("model").is_in(models)) for name, frame in frames.items()}
    shown = replace(scored, **of_shown if models else frames)
    with drawing_settings(SETTINGS):
        figures = (
            distributions(shown, models),
            radar(shown, models),
            timelines(shown, models),
            recovery_figure(shown, tables["window_sweep"], models),
            ablation_bars(tables["ablations"], models),
            judge_figure(scored, judged, tables["convergent_validity"], models),
        )
    return [figure for figure in figures if figure is not None]
