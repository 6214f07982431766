"""Charts as inline SVG whose colours are those of the page, light or dark.

Drawn by matplotlib with colours that stand for the page's own; its ids are made unique, because
many drawings stand in one document. Texts stay texts, set in the page's font.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from markupsafe import Markup

from fastscore.extras import explained
from fastscore.suites.showing import Chart, Series
from fastscore.svg import svg_of, with_new_letters, with_own_ids

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
            for place, (name, heights) in enumerate(counts[:MOST_SERIES]):
                colour = COLOURS[place]
                if len(counts) == 1:
                    widths = np.diff(edges)
                    axis.bar(edges[:-1], heights, widths * 0.94, align="edge", color=colour)
                else:
                    shares = np.asarray(heights) / max(1, sum(heights))
                    axis.stairs(
                        shares, edges, color=colour, lw=1.6, ls=LINES[place], label=shortened(name)
                    )
            if len(counts) == 1:
                axis.set_ylabel("values")
                axis.locator_params(axis="y", integer=True)
            else:
                axis.set_ylabel("share of values")
            axis.set_xlim(edges[0], edges[-1])
            axis.grid(axis="x", visible=False)
            if len(counts) > 1:
                _add_legend(figure)
            return self._drawn(figure, title)

    def intervals(
        self,
        rows: Sequence[tuple[str, float, float | None, float | None]],
        title: str,
        *,
        beside: Sequence[float] = (),
        minimum: float | None = None,
        maximum: float | None = None,
    ) -> Markup:
        """Draw means of groups with their intervals, one a line.

        The axis is that of the charts that stand `beside` it, and where there is only one value
        the range from `minimum` to `maximum`.
        """
        with _figure(0.55 + 0.24 * len(rows)) as figure:
            axis = figure.add_subplot()
            for place, (_, mean, low, high) in enumerate(rows):
                if low is not None and high is not None:
                    axis.plot([low, high], [place, place], color=COLOURS[0], lw=1.6)
                axis.plot([mean], [place], "o", color=COLOURS[0])
            axis.set_yticks(range(len(rows)), [shortened(name) for name, *_ in rows])
            axis.set_ylim(len(rows) - 0.5, -0.5)
            ends = [*beside, *(end for _, *reach in rows for end in reach if end is not None)]
            low, high = min(ends), max(ends)
            if low == high:
                low, high = _around(low, minimum, maximum)
            margin = 0.03 * (high - low)
            axis.set_xlim(low - margin, high + margin)
            axis.grid(axis="y", visible=False)
            return self._drawn(figure, title)

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
def _figure(height: float) -> Iterator["Figure"]:
    with explained("A report with charts"):
        import matplotlib as mpl
        from matplotlib.figure import Figure
    with mpl.rc_context():
        mpl.rcdefaults()
        parameters: Any = mpl.rcParams
        parameters.update(_SETTINGS)
        yield Figure(figsize=(WIDTH, height), layout="constrained")


def _draw_series(axis: Any, series: Series, place: int, *, bars: bool, flat: bool) -> None:
    frame, colour = series.frame, COLOURS[place]
    x, y = frame["x"].to_list(), frame["y"].to_list()
    if bars and flat:
        axis.barh([shortened(str(name)) for name in x], y, color=colour, height=0.7)
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


def _around(value: float, minimum: float | None, maximum: float | None) -> tuple[float, float]:
    """Choose the ends of an axis for one value alone: its range, where that has ends."""
    room = max(1.0, abs(value))
    low = value - room if minimum is None else minimum
    high = max(value, low) + room if maximum is None else maximum
    return low, high


def shortened(name: str, length: int = 28, prefix: str = "") -> str:
    """Cut a long name in its middle: names of one log begin alike, or end alike.

    What is known to begin all names goes first.
    """
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
