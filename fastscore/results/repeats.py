"""Repeated runs of the same tasks: what varies between them, and pass^k of metrics that are 0 or 1.

pass^k is the chance that k independent repeats of a task all pass (Yao et al. 2024, tau-bench). Of
a task with n repeats, c of which pass, C(c, k) / C(n, k) estimates it without bias.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, islice
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.errors import UsageError, counted
from fastscore.results.metric_text import interval_text, number_text
from fastscore.results.runs import Run
from fastscore.settings.options import check_arguments
from fastscore.statistics.clustered import Clusters, Estimate, clustered_mean, variance_components
from fastscore.statistics.curves import difference_curve
from fastscore.statistics.significance import Values
from fastscore.suites.declarations import LABEL_TABLE, Metric
from fastscore.suites.sums import (
    ALONE,
    BETWEEN,
    likely_labels,
    require_labels,
    sum_metrics,
    sum_values,
)
from fastscore.terminal.grids import Column, Grid, column_of

REPEATS_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("group", "side", "metric"), pl.String()),
    **dict.fromkeys(("n_dialogues", "n_repeats"), pl.Int64()),
    **dict.fromkeys(("mean", "sd_dialogues", "sd_repeats", "sd_residual"), pl.Float64()),
}
"""One row a group, side and metric: standard deviations between dialogues, between repeats and of
the rest, by the method of moments of a crossed design; a negative variance counts as 0."""

PASS_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("group", "side", "against", "metric"), pl.String()),
    **dict.fromkeys(("k", "n_tasks"), pl.Int64()),
    **dict.fromkeys(("pass_k", "low", "high"), pl.Float64()),
    "reason": pl.String(),
}
"""One row a group, side, metric and k: pass^k over tasks with its 95 % confidence interval, by task
or cluster. If ``against`` names a second side, ``pass_k`` is the difference from that side, and k
begins with 2: pass^1 differs as the metric does."""


def pass_k(passed: npt.ArrayLike, trials: npt.ArrayLike) -> Values:
    """Estimate pass^1 to pass^k of each task without bias, k its least number of trials."""
    c, n = (np.asarray(each, np.float64)[:, None] for each in (passed, trials))
    drawn = np.arange(int(n.min())) if n.size else np.zeros(0)
    return np.asarray(np.cumprod(np.maximum(c - drawn, 0.0) / (n - drawn), axis=1))


def describe_repeats(
    group: str | None, side: str, values: pl.DataFrame, metrics: Sequence[Metric]
) -> Iterator[dict[str, Any]]:
    """Part each metric's variance into that between dialogues, between repeats and the rest."""
    for metric in metrics:
        rows = values.filter(pl.col(f"{metric.id}:n") > 0).drop_nulls("repeat")
        cells = sum_values(rows, metric, "pair", "repeat")
        codes = (
            cells[name].rank("dense").to_numpy().astype(np.int64) - 1 for name in ("pair", "repeat")
        )
        parts = variance_components((cells["sum"] / cells["n"]).to_numpy(), *codes)
        deviations = (None if part is None else math.sqrt(part) for part in parts)
        names = ("sd_dialogues", "sd_repeats", "sd_residual")
        yield {
            "group": group,
            "side": side,
            "metric": metric.id,
            "n_dialogues": cells["pair"].n_unique(),
            "n_repeats": cells["repeat"].n_unique(),
            "mean": float(cells["sum"].to_numpy().sum() / cells["n"].to_numpy().sum())
            if cells.height
            else None,
            **dict(zip(names, deviations, strict=True)),
        }


def describe_passes(
    group: str | None, sides: Mapping[str, pl.DataFrame], metrics: Sequence[Metric]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Estimate pass^k of each side, and the differences of two sides over their common tasks."""
    rows, notes = [], []
    for metric in metrics:
        tasks = {name: _tasks(values, metric) for name, values in sides.items()}
        found = {name: frame for name, frame in tasks.items() if frame is not None}
        for name, frame in found.items():
            place = {"group": group, "side": name, "metric": metric.id}
            notes += _uneven(frame, metric, name)
            for k, one in enumerate(_passes(frame), 1):
                estimate = clustered_mean(one.sums, one.counts, (0, 1))
                rows.append({**place, **_row(k, frame.height, estimate)})
        for (a, first), (b, second) in combinations(found.items(), 2):
            pairs = first.join(second, on=["pair", "unit"], suffix="/b", maintain_order="left")
            place = {"group": group, "side": b, "against": a, "metric": metric.id}
            if pairs.is_empty():
                continue
            # the difference of pass^1 is that of the metric, which has an interval for new repeats
            sides_of_k = zip(_passes(pairs), _passes(pairs, "/b"), strict=False)
            for k, (one, two) in islice(enumerate(sides_of_k, 1), 1, None):
                curve = difference_curve(one, two, shared=True, ends=(0, 1), test="t")
                rows.append({**place, **_row(k, pairs.height, curve.estimate)})
    return rows, notes


def run_passes(
    run: Run,
    repeats: str | None,
    *,
    task: str | None = None,
    by: str | None = None,
    metrics: Sequence[str] = (),
) -> tuple[pl.DataFrame, list[str]]:
    """Estimate pass^k of a run, with notes; see `fastscore.pass_k`."""
    check_arguments(run_passes, locals())
    design, labels = run.suite.design, [by] if by else []
    repeat = repeats or design.repeat
    if not repeat:
        raise UsageError(
            f"Suite {run.manifest.suite!r} declares no column of repeats.",
            "Set repeats to the column that tells them apart, such as trial. Known: "
            f"{', '.join(likely_labels(run.scan(LABEL_TABLE)))}.",
        )
    if task:
        unit = design.clustered_by(task).unit
        design = replace(design, pair=unit, unit=unit)
    if design.pair == (repeat,):
        raise UsageError(
            f"Tasks are named by {repeat!r} alone, which tells repeats apart.",
            "Name the columns of the tasks: `task` of pass_k, `cluster` of summary.",
        )
    design = design.repeated_by(repeat)
    require_labels(run.scan(LABEL_TABLE), [*design.columns, *labels], str(run.path))
    for id in metrics:
        run.suite.metric(id)  # raises where there is none
    chosen = [
        metric
        for metric in run.suite.metrics
        if (metric.scale.minimum, metric.scale.maximum) == (0, 1)
        and (metric.id in metrics if metrics else metric.id in set(run.summary["metric"]))
    ]
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for sums in sum_metrics(
        run.suite, run.lazy_tables, chosen, options=run.options, design=design, labels=labels
    ):
        groups: dict[tuple[str | None, ...], pl.DataFrame] = {(None,): sums.frame}
        if by:
            label = f"label:{by}"
            groups = sums.frame.drop_nulls(label).partition_by(label, as_dict=True)
        for (group,), part in groups.items():
            found, more = describe_passes(group, {str(run.path): part}, sums.metrics)
            rows += found
            notes += more
    if not any(row["k"] > 1 for row in rows):
        raise UsageError(
            f"{run.path}: no {BETWEEN.join(design.pair)} has a metric of 0 or 1 with one value in "
            f"each of two values of {repeat} or more, so there is no pass^2.",
            "Name the columns of the tasks: `task` of pass_k, `cluster` of summary.",
        )
    return pl.DataFrame(rows, PASS_SCHEMA), notes


def _tasks(values: pl.DataFrame, metric: Metric) -> pl.DataFrame | None:
    """Count the trials of each task, and those that pass; None if values are not 0 and 1."""
    n, zeros, ones = (pl.col(f"{metric.id}:{name}") for name in ("n", "at_minimum", "at_maximum"))
    rows = values.filter((n > 0) & ~pl.col("pair").str.starts_with(ALONE)).drop_nulls("repeat")
    if (metric.scale.minimum, metric.scale.maximum) != (0, 1) or rows.is_empty():
        return None
    # one value in each repeat: two models that meet a task are not two repeats of it
    trials = rows.group_by("pair", "unit", "repeat").agg(zeros.sum(), ones.sum(), n.sum())
    if trials.select((n != 1).any() | (zeros + ones != n).any()).item():
        return None
    tasks = trials.group_by("pair", "unit").agg(passed=ones.sum(), trials=n.sum())
    return tasks.sort("pair", "unit")


def _uneven(tasks: pl.DataFrame, metric: Metric, side: str) -> list[str]:
    least, most = (int(end) for end in tasks.select(a=pl.min("trials"), b=pl.max("trials")).row(0))
    if least == most:
        return []
    few = tasks.filter(pl.col("trials") == least)
    return [
        f"{side}: {metric.id}: pass^k ends at k = {least}: {counted(few.height, 'tasks')} (such as "
        f"{few['pair'][0]!r}) of {tasks.height:,} have {least} repeats with a value, others up to "
        f"{most}"
    ]


def _passes(tasks: pl.DataFrame, side: str = "") -> Iterator[Clusters]:
    """Yield pass^1 to pass^k by unit, of the columns of one side."""
    _, codes = np.unique(tasks["unit"].cast(pl.String).to_numpy(), return_inverse=True)
    for values in pass_k(tasks[f"passed{side}"], tasks[f"trials{side}"]).T:
        sums, counts = np.bincount(codes, values), np.bincount(codes)
        yield Clusters(sums.astype(np.float64), counts.astype(np.float64))


def _row(k: int, n_tasks: int, found: Estimate) -> dict[str, Any]:
    interval = {"low": found.low, "high": found.high, "reason": found.reason}
    return {"k": k, "n_tasks": n_tasks, "pass_k": found.value, **interval}


def repeats_grid(rows: pl.DataFrame, names: Sequence[Column]) -> Grid:
    """Lay out rows of `REPEATS_SCHEMA`; `names` are the columns that name the metrics."""
    column = partial(column_of, rows.to_dicts())
    columns = [
        column("side", _side, right=False),
        *names,
        column("mean", lambda row: number_text(row["mean"], 4)),
        column("sd dialogues", lambda row: number_text(row["sd_dialogues"], 4)),
        column("sd repeats", lambda row: number_text(row["sd_repeats"], 4)),
        column("sd rest", lambda row: number_text(row["sd_residual"], 4)),
        column("repeats", lambda row: f"{row['n_repeats']:,}"),
    ]
    return Grid("variation between dialogues and between repeats", tuple(columns))


def passes_grid(rows: pl.DataFrame, unit: str) -> Grid:
    """Lay out rows of `PASS_SCHEMA`, each side and metric named once."""
    least = pl.min("k").over("group", "side", "against", "metric")
    records = rows.with_columns(is_first=pl.col("k") == least).to_dicts()
    column = partial(column_of, records)

    def once(write: Callable[[Mapping[str, Any]], str]) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: write(row) if row["is_first"] else ""

    columns = (
        column("side", once(_side), right=False, wraps=True),
        column("metric", once(lambda row: str(row["metric"])), right=False),
        column("tasks", once(lambda row: f"{row['n_tasks']:,}")),
        column("k", lambda row: str(row["k"])),
        column(
            "pass^k [95 % CI]", lambda row: interval_text(row["pass_k"], row["low"], row["high"], 3)
        ),
    )
    title = f"pass^k: chance that k repeats of a task all pass (unit: {unit}; repeats independent)"
    own = "; pass^1 differs as the metric does" * bool(rows["against"].count())
    return Grid(f"{title}{own}", columns)


def _side(row: Mapping[str, Any]) -> str:
    name = row["side"] if row.get("against") is None else f"{row['side']} - {row['against']}"
    return name if row["group"] is None else f"{row['group']}: {name}"
