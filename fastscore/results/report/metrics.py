"""The metrics of a page: means beside each other, distributions, differences and groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from markupsafe import Markup

from fastscore.results.compare import Comparison
from fastscore.results.defined_rows import Part, defined_parts, defined_value
from fastscore.results.headlines import Headlines, baseline_text, part_estimate, part_key
from fastscore.results.metric_cards import metric_range
from fastscore.results.number_text import (
    bands_text,
    decimals_for,
    estimate_text,
    interval_text,
    p_text,
    reading_of,
)
from fastscore.results.report.charts import Charts
from fastscore.results.report.values import Named, Values
from fastscore.results.summary_table import ARROWS, main_reason
from fastscore.statistics.clustered import Estimate
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Metric
from fastscore.suites.summary import ALL

BINS = 20
GROUPS_SHOWN = 12

Binned = Mapping[str, tuple[list[float], list[int]]]
"""The edges and counts of a run's distributions, by metric."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows of a run's metrics.

    Parameters
    ----------
    named
        The run.
    whole
        The summary's row of each metric over all dialogues.
    headlines
        The headline metrics with their baselines.
    parts
        By metric the parts of those whose definition leaves rows out or has several scales, and of
        headline metrics.
    """

    named: Named
    whole: Mapping[str, Values]
    headlines: Headlines
    parts: Mapping[str, Sequence[Part]]

    @classmethod
    def of(cls, suite: Suite, named: Named, headlines: Headlines) -> "Shown":
        """Read what is shown of a run beside its headline metrics."""
        rows = headlines.summary.filter(pl.col("group") == ALL)
        whole = {row["metric"]: row for row in rows.iter_rows(named=True)}
        others = [
            metric
            for metric in suite.metrics
            if metric.id in whole
            and metric not in headlines.metrics
            and (metric.fixed_where or metric.scale_by)
        ]
        more = defined_parts(suite, named.run.lazy_tables, others, labels=headlines.labels)
        parts: dict[str, list[Part]] = {}
        for part in (*headlines.parts, *more):
            parts.setdefault(part.metric.id, []).append(part)
        return cls(named, whole, headlines, parts)


def metrics_of(
    suite: Suite,
    shown: Sequence[Shown],
    comparisons: Mapping[str, Comparison],
    charts: Charts,
) -> list[Values]:
    """Return what a page shows of every metric that a run summarises, in the tables' order."""
    declared = {metric.id: metric for metric in suite.metrics}
    tables = [table.name for table in reversed(suite.tables)]
    ids = [id for id in declared if any(id in one.whole for one in shown)]
    ids.sort(key=lambda id: (declared[id].is_secondary, tables.index(declared[id].table)))
    binned = {one.named.name: _bins(one, [declared[id] for id in ids], shown) for one in shown}
    return [_metric(declared[id], shown, binned, comparisons, charts) for id in ids]


def _metric(
    metric: Metric,
    shown: Sequence[Shown],
    binned: Mapping[str, Binned],
    comparisons: Mapping[str, Comparison],
    charts: Charts,
) -> Values:
    return {
        "metric": metric,
        "arrow": ARROWS[metric.better].strip(),
        "range": metric_range(metric),
        "bands": bands_text(metric.bands),
        "sides": [_side(metric, one) for one in shown],
        "differences": [
            _difference(metric, name, comparison) for name, comparison in comparisons.items()
        ],
        "histogram": None if metric.is_secondary else _histogram(metric, binned, charts),
        "groups": [] if metric.is_secondary else _groups(metric, shown, charts),
    }


def _side(metric: Metric, shown: Shown) -> Values:
    record = shown.whole.get(metric.id)
    name = shown.named.name
    if record is None:
        empty = dict.fromkeys(("mean", "micro"))
        return {"run": name, "n": 0, "n_null": 0, "reason": "", "parts": [], **empty}
    parts = [
        _part(metric, part.where, part_estimate(part, record), shown, part)
        for part in shown.parts.get(metric.id, ())
    ]
    is_split = any(part["where"] for part in parts)
    return {
        "run": name,
        "mean": parts[0]["mean"] if parts else record["mean"],
        "n": record["n"],
        "n_null": record["n_null"],
        "reason": _reason(record),
        "micro": None if is_split else record["micro"],
        "parts": parts or [_part(metric, "", _estimate(record), shown, None)],
    }


def _part(
    metric: Metric, where: str, estimate: Estimate, shown: Shown, part: Part | None
) -> Values:
    """Write a mean with its interval, its reading and baselines, and the rows that it is of."""
    baselines = shown.headlines.baselines.get(part_key(part), ()) if part else ()
    bands = () if metric.scale_by and not where else metric.bands
    return {
        "where": where,
        "mean": estimate.value,
        "text": estimate_text(estimate),
        "reading": reading_of(estimate.value, estimate.low, estimate.high, bands),
        "baselines": baseline_text(baselines),
        "n": None if part is None else int(part.units["n"].sum()),
    }


def _estimate(record: Values) -> Estimate:
    return Estimate(record["mean"], record["ci_low"], record["ci_high"])


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
        return {"run": name, "text": "-", "p": "-", "verdict": "", "value": None}
    row = rows.row(0, named=True)
    decimals = decimals_for((row["mean_a"], row["mean_b"]))
    return {
        "run": name,
        "value": row["difference"],
        "text": interval_text(row["difference"], row["low"], row["high"], decimals),
        "p": p_text(row["p_holm"]),
        "verdict": row["verdict"],
    }


def _groups(metric: Metric, shown: Sequence[Shown], charts: Charts) -> list[Values]:
    """Show the means by group, of the groups in which the metric is defined."""
    found = []
    summaries = [_defined_groups(metric, one) for one in shown]
    for one, summary in zip(shown, summaries, strict=True):
        for (group,), rows in summary.group_by("group", maintain_order=True):
            if not rows.height >= 2:
                continue
            first = rows.head(GROUPS_SHOWN).to_dicts()
            points = [
                (str(row["value"]), row["mean"], row["ci_low"], row["ci_high"]) for row in first
            ]
            name = f"{metric.name} by {group}"
            found.append(
                {
                    "title": name if len(shown) == 1 else f"{name}, {one.named.name}",
                    "group": group,
                    "rows": [
                        {**row, "text": estimate_text(_estimate(row)), "reason": _reason(row)}
                        for row in first
                    ],
                    "more": rows.height - len(first),
                    "chart": charts.intervals(
                        points,
                        f"Mean of {name} with 95 % intervals",
                        beside=[end for other in summaries for end in _ends(other, group)],
                        minimum=metric.minimum,
                        maximum=metric.maximum,
                    ),
                }
            )
    return found


def _defined_groups(metric: Metric, shown: Shown) -> pl.DataFrame:
    """Return the summary's rows of groups that have a value which is not fixed by definition."""
    rows = shown.headlines.summary.filter(
        pl.col("metric") == metric.id, pl.col("group") != ALL, pl.col("n") > 0
    )
    parts = shown.parts.get(metric.id, ())
    if not metric.fixed_where or not parts:
        return rows
    labels = shown.headlines.labels
    defined = {
        label: {value for part in parts for value in part.units[label].unique()} for label in labels
    }
    kept = [
        row["value"] in defined[row["group"]] if row["group"] in labels else True
        for row in rows.iter_rows(named=True)
    ]
    return rows.filter(pl.Series(kept, dtype=pl.Boolean))


def _ends(summary: pl.DataFrame, group: object) -> list[float]:
    """List what an axis must reach to show the groups of a run."""
    rows = summary.filter(pl.col("group") == group).head(GROUPS_SHOWN)
    return [end for name in ("mean", "ci_low", "ci_high") for end in rows[name].drop_nulls()]


def _reason(row: Values) -> str:
    return main_reason(row) if row["n_null"] else ""


def _bins(
    one: Shown, metrics: Sequence[Metric], shown: Sequence[Shown]
) -> dict[str, tuple[list[float], list[int]]]:
    """Count the values of metrics in equal bins over their range, all in one pass a table.

    Values that a definition fixes are left out, and so are metrics with several scales.
    """
    ends = {}
    for metric in metrics:
        seen = [other.whole[metric.id] for other in shown if metric.id in other.whole]
        lows = [row["minimum"] for row in seen if row["minimum"] is not None]
        highs = [row["maximum"] for row in seen if row["maximum"] is not None]
        several = any(len(other.parts.get(metric.id, ())) > 1 for other in shown)
        if metric.is_secondary or not lows or several or metric.id not in one.whole:
            continue
        low = min(lows) if metric.minimum is None else min(metric.minimum, *lows)
        high = max(highs) if metric.maximum is None else max(metric.maximum, *highs)
        if metric.minimum == -1.0 and min(lows) >= 0:
            low = 0.0
        ends[metric.id] = (low, high if high > low else low + 1.0)
    chosen = [metric for metric in metrics if metric.id in ends]
    queries = [
        one.named.run.scan(metric.table)
        .select(
            (
                (defined_value(metric).cast(pl.Float64) - ends[metric.id][0])
                * _scale(*ends[metric.id])
            )
            .floor()
            .clip(0, BINS - 1)
            .cast(pl.Int32)
            .alias("bin")
        )
        .drop_nulls()
        .group_by("bin")
        .agg(pl.len().alias("n"))
        for metric in chosen
    ]
    found = {}
    for metric, frame in zip(chosen, pl.collect_all(queries, engine="streaming"), strict=True):
        low, high = ends[metric.id]
        counts = dict(frame.iter_rows())
        edges = [low + (high - low) * place / BINS for place in range(BINS + 1)]
        found[metric.id] = (edges, [counts.get(place, 0) for place in range(BINS)])
    return found


def _scale(low: float, high: float) -> float:
    return BINS / (high - low)
