"""Parts of a page: its charts, its small tables and values, and a section for each metric.

Charts are inline SVG whose colours are those of the page, light or dark. They are drawn by
matplotlib with colours that stand for the page's own; its ids are made unique, because many
drawings are in one document. Texts stay texts, set in the page's font.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from markupsafe import Markup

from fastscore.results.comparison import Comparison
from fastscore.results.findings import Headlines, baseline_text, estimate_of
from fastscore.results.metric_text import (
    decimals_for,
    estimate_text,
    interval_text,
    p_text,
    reading_of,
    value_text,
)
from fastscore.results.summary_table import ARROWS
from fastscore.settings.extras import explained
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Metric
from fastscore.suites.showing import Chart, Listing, Series
from fastscore.suites.summary import ALL
from fastscore.suites.sums import defined_value
from fastscore.suites.svg import drawing_settings, svg_of, with_new_letters, with_own_ids
from fastscore.terminal import wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Values = dict[str, Any]


def columns_of(listing: Listing) -> list[tuple[str, bool]]:
    """Return the names of a small table's columns, and whether each is aligned as numbers are."""
    schema = listing.frame.schema.items()
    return [(name, dtype.is_numeric() or name in listing.written) for name, dtype in schema]


def cell_of(value: Any) -> str:
    """Write a value for a person."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return value_text(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


WIDTH = 5.4
INK, RULE = "#010203", "#040506"
COLOURS = ("#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04", "#0a0b05", "#0a0b06")
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", "-.", ":", "-", "--")
MOST_SERIES = len(COLOURS)
_PAGE_COLOURS = {INK: "currentColor", RULE: "var(--rule)"} | {
    colour: f"var(--c{place})" for place, colour in enumerate(COLOURS, start=1)
}
_SETTINGS: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "fastscore",
}


Interval = tuple[float | None, float | None, float | None, int]
"""A mean, the ends of its interval, and the number of values."""


class Charts:
    """Draws the charts of one page, each with ids of its own."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._letters: set[str] = set()

    def histogram(
        self, edges: Sequence[float], counts: Sequence[tuple[str, Sequence[int]]], title: str
    ) -> Markup:
        """Draw how many values lie in each bin, of one run or of several as outlines."""
        with _figure(1.9) as figure:
            axis = figure.add_subplot()
            if len(counts) == 1:
                widths = np.diff(edges) * 0.94
                axis.bar(edges[:-1], counts[0][1], widths, align="edge", color=COLOURS[0])
                axis.set_ylabel("values")
                axis.locator_params(axis="y", integer=True)
            else:
                for (name, heights), colour, line in zip(counts, COLOURS, LINES, strict=False):
                    shares = np.asarray(heights) / max(1, sum(heights))
                    label = _label(f"{name} (n {sum(heights):,})")
                    axis.stairs(shares, edges, color=colour, lw=1.6, ls=line, label=label)
                axis.set_ylabel("share of values")
                _add_legend(figure)
            axis.margins(x=0.02, y=0.08)
            axis.grid(axis="x", visible=False)
            return self._drawn(figure, title)

    def means(
        self,
        names: Sequence[str],
        panels: Sequence[tuple[str, Sequence[Interval]]],
        title: str,
        *,
        reach: tuple[float, float] | None = None,
    ) -> Markup:
        """Draw means with their intervals and n, one a line, of each panel side by side.

        With the `reach` of its axis one panel is as wide as a column of the page.
        """
        columns = min(3, len(panels))
        lines = -(-len(panels) // columns)
        labels = [_label(name) for name in names]
        width = WIDTH * 2 if reach is None else WIDTH
        height = sum(0.24 if "\n" not in label else 0.36 for label in labels)  # inches
        with _figure(lines * (0.6 + height), width) as figure:
            axes = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
            for axis, (heading, rows) in zip(axes, panels, strict=False):
                draw_means(axis, rows)
                axis.set_title(_label(heading, 40))
                axis.margins(x=0.08)
                axis.grid(axis="y", visible=False)
                if reach is not None:
                    axis.set_xlim(*reach)
            axes[0].set_yticks(range(len(names)), labels)
            axes[0].set_ylim(len(names) - 0.5, -0.5)
            for axis in axes[len(panels) :]:
                axis.set_visible(False)
            return self._drawn(figure, title)

    def of_runs(
        self, names: Sequence[str], panels: Sequence[tuple[Metric, Sequence[Interval]]]
    ) -> Markup | None:
        """Draw the means of metrics by run, if there are any."""
        named = [(f"{one.name} {ARROWS[one.scale.better].strip()}", rows) for one, rows in panels]
        return self.means(names, named, f"Means of {len(named)} metrics by run") if named else None

    def chart(self, chart: Chart) -> Markup:
        """Draw a chart that a suite describes."""
        named = any(series.frame["x"].dtype == pl.String for series in chart.series)
        rows = max((series.frame.height for series in chart.series), default=0)
        height = 0.6 + 0.24 * rows if named and chart.bars else 2.4
        with _figure(height) as figure:
            axis = figure.add_subplot()
            for place, series in enumerate(chart.series[:MOST_SERIES]):
                _draw_series(axis, series, place, bars=chart.bars, flat=named)
            if named and chart.bars:
                axis.invert_yaxis()
                axis.set_xlabel(chart.y_label)
                axis.grid(axis="y", visible=False)
            else:
                axis.set_xlabel(chart.x_label)
                axis.set_ylabel(chart.y_label)
                if all(series.frame["x"].dtype.is_integer() for series in chart.series):
                    axis.locator_params(axis="x", integer=True)
            if len(chart.series) > 1:
                _add_legend(figure)
            return self._drawn(figure, chart.title)

    def placed(self, svg: str, title: str) -> Markup:
        """Put a finished drawing into the page, with ids of its own."""
        named = _named(svg, f"d{next(self._numbers)}", title)
        return Markup(with_new_letters(named, self._letters))

    def _drawn(self, figure: "Figure", title: str) -> Markup:
        svg = svg_of(figure)
        for colour, name in _PAGE_COLOURS.items():
            svg = svg.replace(colour, name)
        svg = svg.replace("sans-serif", "inherit")
        return Markup(_named(svg, f"d{next(self._numbers)}", title))


@contextmanager
def _figure(height: float, width: float = WIDTH) -> Iterator["Figure"]:
    with explained("A report with charts"):
        from matplotlib.figure import Figure
    with drawing_settings(_SETTINGS):
        yield Figure(figsize=(width, height), layout="constrained")


def _label(name: str, width: int = 24) -> str:
    """Write a name in two lines at most."""
    return wrapped(shortened(name, 2 * width - 6), width)


def draw_means(axis: Any, rows: Sequence[Interval], colour: str = COLOURS[0]) -> None:
    """Draw a mean with its interval a line, and beside the axis how many values it is of."""
    for place, (mean, low, high, n) in enumerate(rows):
        if low is not None and high is not None:
            axis.plot([low, high], [place, place], color=colour, lw=1.6)
        if mean is not None:
            axis.plot([mean], [place], "o", color=colour)
        beside = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": 8.5}
        axis.annotate(f" n {n:,}", (1.0, place), **beside)


def _draw_series(axis: Any, series: Series, place: int, *, bars: bool, flat: bool) -> None:
    frame, colour = series.frame, COLOURS[place]
    x, y = frame["x"].to_list(), frame["y"].to_list()
    if bars and flat:
        axis.barh([_label(str(name)) for name in x], y, color=colour, height=0.7)
    elif bars:
        axis.bar(x, y, color=colour, width=0.8)
    else:
        if "low" in frame.columns:
            low, high = (frame[name].fill_null(frame["y"]).to_list() for name in ("low", "high"))
            axis.fill_between(x, low, high, color=colour, alpha=0.18, lw=0)
        axis.plot(x, y, color=colour, ls=LINES[place], marker=MARKERS[place], label=series.name)


def _add_legend(figure: "Figure") -> None:
    """Name the series above the drawing, where the legend hides no value."""
    figure.legend(loc="outside upper left", ncols=2)
    figure.set_figheight(figure.get_figheight() + 0.2)


def shortened(name: str, length: int = 28, prefix: str = "") -> str:
    """Cut a long name in its middle; what is known to begin all names goes first."""
    if len(name) <= length:
        return name
    if len(prefix) > 1 and name.startswith(prefix):
        rest = name[len(prefix) - 1 :]
        return f"…{rest[1:]}" if len(rest) <= length else shortened(f"…{rest[1:]}", length)
    head, tail = (length - 1) // 2, length // 2
    return f"{name[:head]}…{name[-tail:]}"


def _named(svg: str, name: str, title: str) -> str:
    """Make ids unique to the drawing, and name it for those who cannot see it."""
    svg = with_own_ids(svg, name)
    svg = re.sub(r' role="img"| aria-labelledby="[^"]*"', "", svg)
    opening, rest = svg.split(">", 1)
    return f'{opening} role="img" aria-label="{escape(title)}">{rest}'


BINS = 20
GROUPS_SHOWN = 12

Binned = Mapping[str, tuple[list[float], list[int]]]
"""The edges and counts of a run's distributions, by metric."""


def metrics_of(
    suite: Suite, shown: Sequence[Headlines], comparisons: Mapping[str, Comparison], charts: Charts
) -> list[Values]:
    """Return what a page shows of every metric that a run summarises, headline metrics first."""
    declared = suite.metric_by_id
    tables = [table.name for table in reversed(suite.tables)]
    ids = [id for id in declared if any(id in one.whole for one in shown)]
    ids.sort(
        key=lambda id: (
            declared[id].role == "part",
            declared[id].role != "headline",
            tables.index(declared[id].table),
        )
    )
    binned = {one.name: _bins(one, [declared[id] for id in ids], shown) for one in shown}
    return [
        {
            "metric": metric,
            "kind": _kind(metric, shown),
            "sides": [_side(metric, one) for one in shown],
            "differences": [
                _difference(metric, name, comparison) for name, comparison in comparisons.items()
            ],
            "histogram": _histogram(metric, binned, charts),
            "histogram_n": sum(binned[shown[0].name].get(metric.id, ([], []))[1]),
            "groups": [] if metric.role == "part" else _groups(metric, shown, charts),
        }
        for metric in map(declared.__getitem__, ids)
    ]


_KINDS = {"headline": "", "part": "Parts and counts"}


def _kind(metric: Metric, shown: Sequence[Headlines]) -> str:
    """Return what a metric's card is folded under; headline metrics with a value are not."""
    if not any(one.whole[metric.id]["n"] for one in shown if metric.id in one.whole):
        return "Without a value"
    return _KINDS.get(metric.role, "Other metrics")


def _side(metric: Metric, shown: Headlines) -> Values:
    """Write a metric's means in a run: of its parts, or of all rows if it has none."""
    record = shown.whole.get(metric.id, {"n": 0, "n_null": 0, "micro": None})
    parts = [
        (part.where, part.n, part.estimate, shown.baselines_of(part))
        for part in shown.of(metric.id)
    ]
    if not parts and metric.id in shown.whole:
        parts = [("", record["n"], estimate_of(record), ())]
    means = []
    for where, n, estimate, baselines in parts:
        ends = estimate.value, estimate.low, estimate.high
        reading = reading_of(*ends, metric.scale.bands)
        texts = {"text": estimate_text(estimate), "reading": reading}
        means.append(
            texts | {"where": where, "n": n, "ends": ends, "baselines": baseline_text(baselines)}
        )
    return {
        "run": shown.name,
        "mean": parts[0][2].value if parts else None,
        "record": record,
        "micro": None if any(part["where"] for part in means) else record["micro"],
        "parts": means,
    }


def _histogram(metric: Metric, binned: Mapping[str, Binned], charts: Charts) -> Markup | None:
    bins = [(name, found[metric.id]) for name, found in binned.items() if metric.id in found]
    if not bins:
        return None
    edges = bins[0][1][0]
    title = f"Distribution of {metric.name} over {metric.table}"
    return charts.histogram(edges, [(name, counts) for name, (_, counts) in bins], title)


def _difference(metric: Metric, name: str, comparison: Comparison) -> Values:
    rows = comparison.differences.filter(pl.col("metric") == metric.id)
    if rows.is_empty():
        return {"run": name, "text": "-", "p": "-", "verdict": "", "value": None, "lacking": ""}
    row = rows.row(0, named=True)
    decimals = decimals_for((row["mean_a"], row["mean_b"]))
    return {
        "run": name,
        "value": row["difference"],
        "text": interval_text(row["difference"], row["low"], row["high"], decimals),
        "p": p_text(row["p_holm"]),
        "verdict": row["verdict"],
        "lacking": row["lacking"],
    }


def _groups(metric: Metric, shown: Sequence[Headlines], charts: Charts) -> list[Values]:
    """Show the means by group, of the groups with a value that is not fixed by definition."""
    found = []
    is_shown = (pl.col("metric") == metric.id, pl.col("group") != ALL, pl.col("n") > 0)
    summaries = [one.summary.filter(*is_shown) for one in shown]
    ends = ("mean", "ci_low", "ci_high")
    for one, summary in zip(shown, summaries, strict=True):
        for (group,), rows in summary.group_by("group", maintain_order=True):
            if rows.height < 2:
                continue
            first = rows.head(GROUPS_SHOWN).to_dicts()
            beside = [other.filter(group=group).head(GROUPS_SHOWN) for other in summaries]
            name = f"{metric.name} by {group}"
            found.append(
                {
                    "title": name if len(shown) == 1 else f"{name}, {one.name}",
                    "group": group,
                    "rows": first,
                    "more": rows.height - len(first),
                    "chart": charts.means(
                        [str(row["value"]) for row in first],
                        [("", [(*(row[end] for end in ends), row["n"]) for row in first])],
                        f"Mean of {name} with 95 % intervals",
                        reach=axis_reach(metric, [other[end] for other in beside for end in ends]),
                    ),
                }
            )
    return found


def axis_reach(metric: Metric, beside: Iterable[pl.Series]) -> tuple[float, float]:
    """Return the ends of an axis that reaches all values, or the range of a metric with one."""
    ends = [end for values in beside for end in values.drop_nulls()]
    low, high = min(ends), max(ends)
    if low == high:
        room = max(1.0, abs(low))
        low = low - room if metric.scale.minimum is None else metric.scale.minimum
        high = max(high, low) + room if metric.scale.maximum is None else metric.scale.maximum
    margin = 0.03 * (high - low)
    return low - margin, high + margin


def _bins(
    one: Headlines, metrics: Sequence[Metric], shown: Sequence[Headlines]
) -> dict[str, tuple[list[float], list[int]]]:
    """Count the values of metrics on one scale in equal bins over their range, but fixed ones."""
    ends, queries = {}, []
    for metric in metrics:
        seen = [other.whole[metric.id] for other in shown if metric.id in other.whole]
        lows = [row["minimum"] for row in seen if row["minimum"] is not None]
        highs = [row["maximum"] for row in seen if row["maximum"] is not None]
        several = any(len(other.of(metric.id)) > 1 for other in shown)
        if metric.role == "part" or not lows or several or metric.id not in one.whole:
            continue
        low = min(lows) if metric.scale.minimum is None else min(metric.scale.minimum, *lows)
        high = max(highs) if metric.scale.maximum is None else max(metric.scale.maximum, *highs)
        if metric.scale.minimum == -1.0 and min(lows) >= 0:
            low = 0.0
        high = high if high > low else low + 1.0
        ends[metric.id] = low, high
        place = (defined_value(metric).cast(pl.Float64) - low) * (BINS / (high - low))
        bins = one.run.scan(metric.table).select(bin=place.floor().clip(0, BINS - 1).cast(pl.Int32))
        queries.append(bins.drop_nulls().group_by("bin").agg(n=pl.len()))
    found = {}
    frames = pl.collect_all(queries, engine="streaming")
    for (id, (low, high)), frame in zip(ends.items(), frames, strict=True):
        counts = dict(frame.iter_rows())
        edges = [low + (high - low) * place / BINS for place in range(BINS + 1)]
        found[id] = (edges, [counts.get(place, 0) for place in range(BINS)])
    return found
