"""One figure of a metric: its distribution, or its means by a label."""

import io
from typing import TYPE_CHECKING

import polars as pl
from matplotlib.figure import Figure

from fastscore.results.report.metrics import draw_means
from fastscore.results.runs import summarise_run
from fastscore.results.summary_table import ARROWS
from fastscore.suites.summary import ALL
from fastscore.terminal import wrapped

if TYPE_CHECKING:
    from fastscore.results.runs import Run

BINS = 20
COLOUR = "#0072B2"


class Picture(Figure):
    """A figure of matplotlib that notebooks show as a picture."""

    def _repr_svg_(self) -> str:
        file = io.StringIO()
        self.savefig(file, format="svg")
        return file.getvalue()


def plot_metric(run: "Run", metric: str, *, by: str | None = None) -> Picture:
    """Draw a metric of a run."""
    about = run.suite.metric(metric)
    figure = Picture(figsize=(6.4, 3.2))
    figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.12)
    axis = figure.add_subplot()
    title = f"{about.name} {ARROWS[about.scale.better]}".rstrip().replace("$", r"\$")
    figure.suptitle(title, fontsize=11)
    if by is None:
        values = run.scan(about.table).select(metric).drop_nulls().collect().to_series()
        axis.hist(values.to_numpy(), bins=BINS, color=COLOUR, edgecolor="white")
        axis.set_xlabel(f"{metric} (n={len(values):,})")
        axis.set_ylabel(about.table)
    else:
        groups = summarise_run(run, by)
        rows = groups.filter(pl.col("metric") == metric, pl.col("group") != ALL).drop_nulls("mean")
        names = [wrapped(name, 28).replace("$", r"\$") for name in rows["value"]]
        figure.set_figheight(max(3.2, 1.2 + 0.4 * len(names)))
        draw_means(axis, rows.select("mean", "ci_low", "ci_high", "n").rows(), COLOUR)
        axis.set_yticks(range(rows.height), names)
        axis.invert_yaxis()
        has_intervals = rows["ci_low"].count() > 0
        interval = "95 % confidence interval" if has_intervals else "too few units for an interval"
        axis.set_xlabel(f"mean of {metric}, {interval}")
        axis.set_ylabel(by)
    axis.margins(0.05, 0.1)
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    return figure
