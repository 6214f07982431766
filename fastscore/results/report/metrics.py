"""The metrics of a page: means beside each other, distributions, differences and groups."""

from collections.abc import Mapping, Sequence

import polars as pl
from markupsafe import Markup

from fastscore.results.compare import Comparison
from fastscore.results.findings import with_interval
from fastscore.results.metric_cards import metric_range
from fastscore.results.number_text import decimals_for, interval_text, p_text
from fastscore.results.readings import bands_text, reading_of
from fastscore.results.report.charts import Charts
from fastscore.results.report.values import Named, Values
from fastscore.results.summary_table import ARROWS, main_reason
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Metric
from fastscore.suites.summary import ALL

BINS = 20
GROUPS_SHOWN = 12

Binned = Mapping[str, tuple[list[float], list[int]]]
"""The edges and counts of a run's distributions, by metric."""


def metrics_of(
    suite: Suite,
    named: Sequence[Named],
    comparisons: Mapping[str, Comparison],
    charts: Charts,
) -> list[Values]:
    """Return what a page shows of every metric that a run summarises, in the tables' order."""
    wholes = {
        one.name: {
            row["metric"]: row
            for row in one.run.summary.filter(pl.col("group") == ALL).iter_rows(named=True)
        }
        for one in named
    }
    declared = {metric.id: metric for metric in suite.metrics}
    tables = [table.name for table in reversed(suite.tables)]
    ids = [id for id in declared if any(id in whole for whole in wholes.values())]
    ids.sort(key=lambda id: (declared[id].part, tables.index(declared[id].table)))
    binned = {one.name: _bins(one, [declared[id] for id in ids], wholes) for one in named}
    return [_metric(declared[id], named, wholes, binned, comparisons, charts) for id in ids]


def _metric(
    metric: Metric,
    named: Sequence[Named],
    wholes: Mapping[str, Mapping[str, Values]],
    binned: Mapping[str, Binned],
    comparisons: Mapping[str, Comparison],
    charts: Charts,
) -> Values:
    return {
        "metric": metric,
        "arrow": ARROWS[metric.better].strip(),
        "range": metric_range(metric),
        "bands": bands_text(metric.bands),
        "sides": [_side(metric, one.name, wholes[one.name].get(metric.id)) for one in named],
        "differences": [
            _difference(metric, name, comparison) for name, comparison in comparisons.items()
        ],
        "histogram": None if metric.part else _histogram(metric, binned, charts),
        "groups": [] if metric.part else _groups(metric, named, charts),
    }


def _side(metric: Metric, name: str, record: Values | None) -> Values:
    if record is None:
        empty = dict.fromkeys(("mean", "micro", "reading", "minimum", "maximum"))
        return {"run": name, "text": "-", "n": 0, "n_null": 0, "reason": "", **empty}
    return {
        "run": name,
        "mean": record["mean"],
        "text": with_interval(record),
        "n": record["n"],
        "n_null": record["n_null"],
        "reason": _reason(record),
        "micro": record["micro"],
        "reading": reading_of(record["mean"], metric.bands),
        "minimum": record["minimum"],
        "maximum": record["maximum"],
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


def _groups(metric: Metric, named: Sequence[Named], charts: Charts) -> list[Values]:
    found = []
    summaries = [
        one.run.summary.filter(
            pl.col("metric") == metric.id, pl.col("group") != ALL, pl.col("n") > 0
        )
        for one in named
    ]
    for one, summary in zip(named, summaries, strict=True):
        for (group,), rows in summary.group_by("group", maintain_order=True):
            if not rows.height >= 2:
                continue
            shown = rows.head(GROUPS_SHOWN).to_dicts()
            points = [
                (str(row["value"]), row["mean"], row["ci_low"], row["ci_high"]) for row in shown
            ]
            name = f"{metric.name} by {group}"
            found.append(
                {
                    "title": name if len(named) == 1 else f"{name}, {one.name}",
                    "group": group,
                    "rows": [
                        {**row, "text": with_interval(row), "reason": _reason(row)} for row in shown
                    ],
                    "more": rows.height - len(shown),
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


def _ends(summary: pl.DataFrame, group: object) -> list[float]:
    """List what an axis must reach to show the groups of a run."""
    rows = summary.filter(pl.col("group") == group).head(GROUPS_SHOWN)
    return [end for name in ("mean", "ci_low", "ci_high") for end in rows[name].drop_nulls()]


def _reason(row: Values) -> str:
    return main_reason(row) if row["n_null"] else ""


def _bins(
    one: Named, metrics: Sequence[Metric], wholes: Mapping[str, Mapping[str, Values]]
) -> dict[str, tuple[list[float], list[int]]]:
    """Count the values of metrics in equal bins over their range, all in one pass a table."""
    ends = {}
    for metric in metrics:
        seen = [whole[metric.id] for whole in wholes.values() if metric.id in whole]
        lows = [row["minimum"] for row in seen if row["minimum"] is not None]
        highs = [row["maximum"] for row in seen if row["maximum"] is not None]
        if metric.part or not lows or metric.id not in wholes[one.name]:
            continue
        low = min(lows) if metric.minimum is None else min(metric.minimum, *lows)
        high = max(highs) if metric.maximum is None else max(metric.maximum, *highs)
        if metric.minimum == -1.0 and min(lows) >= 0:
            low = 0.0
        ends[metric.id] = (low, high if high > low else low + 1.0)
    chosen = [metric for metric in metrics if metric.id in ends]
    queries = [
        one.run.table(metric.table)
        .select(
            ((pl.col(metric.id).cast(pl.Float64) - ends[metric.id][0]) * _scale(*ends[metric.id]))
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
