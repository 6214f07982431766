"""How every figure looks: colours that colour-blind readers tell apart, and never colour alone.

Models differ by colour, marker, line and hatch together, so that a figure reads in grey too. Text
is drawn as outlines, as a page must look alike wherever it is opened; the same data give the same
bytes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.figure import Figure

from fastscore.svg import svg_of, with_own_ids

WIDTH = 7.2
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
FACE = "#F2F2F2"

_SETTINGS: dict[str, Any] = {
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


@dataclass(frozen=True, slots=True)
class Look:
    """How one model is drawn in all figures."""

    colour: str
    marker: str
    line: Any
    hatch: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure: its file's name, its title, what it shows, and its SVG text."""

    name: str
    title: str
    caption: str
    svg: str


@contextmanager
def settings() -> Iterator[None]:
    """Draw with the settings of this module and nothing that a user's own would change."""
    with mpl.rc_context():
        mpl.rcdefaults()
        parameters: Any = mpl.rcParams
        parameters.update(_SETTINGS)
        yield


def looks(models: Sequence[str]) -> dict[str, Look]:
    """Return each model's look, by its place among the sorted names."""
    return {
        model: Look(
            *(choices[place % len(choices)] for choices in (COLOURS, MARKERS, LINES, HATCHES))
        )
        for place, model in enumerate(models)
    }


def blank(height: float) -> Figure:
    """Return an empty figure of the page's width and this height in inches."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def draw(figure: Figure, name: str, title: str, caption: str) -> Drawn:
    """Write a figure as SVG, with its title and caption for those who cannot see it."""
    return Drawn(name, title, caption, _named(svg_of(figure), name, title, caption))


def _named(svg: str, name: str, title: str, caption: str) -> str:
    """Make ids unique to the figure, and describe it."""
    opening, rest = with_own_ids(svg, name).split(">", 1)
    described = (
        f'{opening} role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(caption)}</desc>'
    )
    return described + rest


def offset_models(n_models: int) -> list[float]:
    """Return small offsets that keep the error bars of models at one place apart."""
    step = min(0.12, 0.5 / n_models)
    return [(place - (n_models - 1) / 2) * step for place in range(n_models)]


def with_errors(axis: Any, x: pl.Series, means: pl.DataFrame, look: Look, n_models: int) -> Any:
    """Draw means (columns mean, low, high) as a line with error bars; returns the line.

    With more models than `ERRORS_SHOWN` the bars would hide the lines and are left out.
    """
    return axis.errorbar(
        x,
        means["mean"].fill_null(np.nan),
        yerr=error_bars(means) if n_models <= ERRORS_SHOWN else None,
        color=look.colour,
        marker=look.marker,
        ls=look.line,
        elinewidth=0.9,
        capsize=1.5,
    )


def interval_words(n_models: int) -> str:
    """Return what a caption says of the intervals of `with_errors`."""
    if n_models <= ERRORS_SHOWN:
        return "with 95 % confidence intervals"
    return "without their intervals, which would hide the lines"


def error_bars(
    means: pl.DataFrame, column: str = "mean", ends: tuple[str, str] = ("low", "high")
) -> list[Any]:
    """Return how far a column's interval reaches below and above it; NaN if it has no end."""
    values = means[column].fill_null(np.nan).to_numpy()
    return [np.abs(means[end].fill_null(np.nan).to_numpy() - values).clip(0) for end in ends]


def legend_above(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Put one legend above all panels."""
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=min(len(labels), 4 if len(labels) > 6 else 6),
        handlelength=2.8,
    )


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: 1 shift, 2 shifts, 1,200 shifts."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
