"""What a run says at first sight, in sentences: high, low, null, rejected, different by group."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from fastscore.results.number_text import counted, decimals_for, number_text
from fastscore.results.readings import reading_of
from fastscore.results.runs import Run
from fastscore.results.summary_table import main_reason
from fastscore.suites.declarations import Metric
from fastscore.suites.registry import load_suite
from fastscore.suites.summary import ALL, NORMAL_QUANTILE
from fastscore.terminal import plain

Kind = Literal["high", "low", "reading", "null", "rejects", "groups", "none"]
EACH = 3
GROUP_DIFFERENCES = 4
HIGH, LOW = 0.8, 0.2
"""Where a mean lies in its range, seen in the direction that is better."""
MANY_NULLS = 0.2
LEAST_GROUP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A sentence about a run.

    Parameters
    ----------
    kind
        What it is about.
    text
        The sentence.
    metric
        The id of its metric, empty where it has none.
    """

    kind: Kind
    text: str
    metric: str = ""


def find(run: Run) -> list[Finding]:
    """Return what stands out in a run, from its summary and manifest alone.

    First what is good and poor among the metrics that have a direction and a range, then what
    differs between groups of dialogues beyond its 95 % interval, the clearest in full and the rest
    by name, what is null, what was rejected.
    """
    suite = load_suite(run.manifest.suite)
    summary = run.summary
    whole = {
        record["metric"]: record
        for record in summary.filter(pl.col("group") == ALL).iter_rows(named=True)
    }
    headline = [metric for metric in suite.metrics if metric.id in whole and not metric.part]
    return [
        *_extremes(headline, whole),
        *_groups(headline, summary),
        *_nulls(headline, whole),
        *_rejects(run),
    ]


def findings_lines(run: Run, *, width: int = 80, lines: int = 10) -> list[str]:
    """Return a run's findings in so many lines of text, whole sentences, the first of each kind.

    What is good and poor, what differs, what is null and what was rejected take turns, so that no
    kind crowds out another.
    """
    by_kind: dict[str, list[str]] = {}
    for finding in find(run):
        wrapped = textwrap.wrap(plain(finding.text), width - 2)
        by_kind.setdefault(finding.kind, []).append(
            "\n".join(("- " if not place else "  ") + line for place, line in enumerate(wrapped))
        )
    order = [
        (place, kind, text) for kind, texts in by_kind.items() for place, text in enumerate(texts)
    ]
    kinds = list(by_kind)
    chosen: list[tuple[int, int, str]] = []
    left = lines
    for place, kind, text in sorted(order, key=lambda one: (one[0], kinds.index(one[1]))):
        height = text.count("\n") + 1
        if height <= left:
            left -= height
            chosen.append((kinds.index(kind), place, text))
    return [line for _, _, text in sorted(chosen) for line in text.split("\n")]


def position(metric: Metric, value: float | None) -> float | None:
    """Return where a value lies in its metric's range, from 0 (worst) to 1 (best)."""
    if value is None or metric.better == "neither":
        return None
    if metric.minimum is None or metric.maximum is None:
        return None
    place = (value - metric.minimum) / (metric.maximum - metric.minimum)
    return place if metric.better == "higher" else 1 - place


def with_interval(record: Mapping[str, Any]) -> str:
    """Write a summary's mean with its interval."""
    decimals = max(1, decimals_for([record["mean"]]) - 1)
    text = number_text(record["mean"], decimals)
    if record["ci_low"] is None:
        return text
    return f"{text} ± {number_text(record['mean'] - record['ci_low'], decimals)}"


def _extremes(metrics: Sequence[Metric], whole: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    placed = []
    for metric in metrics:
        place = position(metric, whole[metric.id]["mean"])
        if place is not None and metric.table == "dialogues":
            placed.append((place, metric))
    best = sorted((pair for pair in placed if pair[0] >= HIGH), key=lambda pair: -pair[0])[:EACH]
    worst = sorted((pair for pair in placed if pair[0] <= LOW), key=lambda pair: pair[0])[:EACH]
    found = []
    for kind, pairs in (("high", best), ("low", worst)):
        for _, metric in pairs:
            record = whole[metric.id]
            word = "good" if kind == "high" else "poor"
            found.append(
                Finding(
                    kind="high" if kind == "high" else "low",
                    text=f"{_named(metric)} is {word}: {with_interval(record)}"
                    f"{_range_of(metric)}{_reading(metric, record)}.",
                    metric=metric.id,
                )
            )
    named = {finding.metric for finding in found}
    for metric in metrics:
        reading = _reading(metric, whole[metric.id])
        if reading and metric.id not in named:
            text = f"{_named(metric)} is {with_interval(whole[metric.id])}{reading}."
            found.append(Finding(kind="reading", text=text, metric=metric.id))
    return found or _nearest_to_ends(placed, whole)


def _nearest_to_ends(
    placed: Sequence[tuple[float, Metric]], whole: Mapping[str, Mapping[str, Any]]
) -> list[Finding]:
    """Name what is nearest to good and to poor where nothing is either."""
    ordered = sorted(placed, key=lambda pair: -pair[0])
    ends = dict.fromkeys([metric.id for _, metric in (*ordered[:1], *ordered[-1:])])
    by_id = {metric.id: metric for _, metric in ordered}
    return [
        Finding(
            kind="reading",
            text=f"{_named(by_id[id])} is {with_interval(whole[id])}{_range_of(by_id[id])}.",
            metric=id,
        )
        for id in ends
    ]


def _groups(metrics: Sequence[Metric], summary: pl.DataFrame) -> list[Finding]:
    """Name the clearest differences between the best and the worst group of each metric.

    Rows are dialogues, groups independent: the interval is that of two normal means.
    """
    ids = [metric.id for metric in metrics if metric.table == "dialogues"]
    by_id = {metric.id: metric for metric in metrics}
    differences = []
    groups = summary.filter(
        pl.col("group") != ALL, pl.col("metric").is_in(ids), pl.col("n") >= LEAST_GROUP
    )
    for (group, id), rows in groups.group_by("group", "metric", maintain_order=True):
        if rows.height < 2:
            continue
        ordered = rows.sort("mean", maintain_order=True)
        low, high = ordered.row(0, named=True), ordered.row(-1, named=True)
        difference = high["mean"] - low["mean"]
        half = NORMAL_QUANTILE * math.sqrt(high["sd"] ** 2 / high["n"] + low["sd"] ** 2 / low["n"])
        if difference > half:
            spread = math.sqrt((high["sd"] ** 2 + low["sd"] ** 2) / 2)
            effect = difference / spread if spread else math.inf
            differences.append((effect, str(group), by_id[str(id)], low, high, half))
    differences.sort(key=lambda found: -found[0])
    found = []
    taken: set[str] = set()
    others: dict[str, list[str]] = {}
    for _, group, metric, low, high, half in differences:
        if metric.id in taken or len(taken) == GROUP_DIFFERENCES:
            others.setdefault(group, []).append(metric.id)
            continue
        taken.add(metric.id)
        difference = high["mean"] - low["mean"]
        decimals = max(1, decimals_for([high["mean"]]) - 1)
        low_end, high_end = (number_text(difference + sign * half, decimals) for sign in (-1, 1))
        found.append(
            Finding(
                kind="groups",
                text=f"{_named(metric)} differs by {group}: {high['value']} has "
                f"{number_text(high['mean'], decimals)}, {low['value']} "
                f"{number_text(low['mean'], decimals)} (difference "
                f"{number_text(difference, decimals)} [{low_end}, {high_end}]).",
                metric=metric.id,
            )
        )
    more = [f"by {group} ({len(ids):,}): {', '.join(ids)}" for group, ids in others.items()]
    if more:
        found.append(Finding(kind="groups", text=f"Others that differ {'; '.join(more)}."))
    return found


def _nulls(metrics: Sequence[Metric], whole: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    everywhere = [metric for metric in metrics if not whole[metric.id]["n"]]
    found = []
    if everywhere:
        reasons = sorted({main_reason(whole[metric.id]) for metric in everywhere})
        names = ", ".join(metric.id for metric in everywhere)
        found.append(Finding(kind="null", text=f"Null everywhere ({', '.join(reasons)}): {names}."))
    for metric in metrics:
        record = whole[metric.id]
        rows = record["n"] + record["n_null"]
        if metric not in everywhere and record["n_null"] > MANY_NULLS * rows:
            found.append(
                Finding(
                    kind="null",
                    text=f"{_named(metric)} is null in {record['n_null']:,} of {rows:,} "
                    f"{metric.table} ({main_reason(record)}).",
                    metric=metric.id,
                )
            )
    return found


def _rejects(run: Run) -> list[Finding]:
    n_rejects = run.manifest.counts.get("rejects", 0)
    if not n_rejects:
        return [Finding(kind="none", text="No line was rejected.")]
    commonest = (
        run.rejects.group_by("reason")
        .agg(n=pl.col("count").sum())
        .sort("n", "reason", descending=[True, False])
        .head(1)
        .collect()
    )
    reason, n = commonest.row(0)
    text = f"{counted(n_rejects, 'rejects')}, most for {reason} ({n:,})."
    return [Finding(kind="rejects", text=text)]


def _named(metric: Metric) -> str:
    return f"{metric.name} ({metric.id})"


def _range_of(metric: Metric) -> str:
    return f" (from {metric.minimum:g} to {metric.maximum:g})"


def _reading(metric: Metric, record: Mapping[str, Any]) -> str:
    reading = reading_of(record["mean"], metric.bands)
    return f", by its source {reading}" if reading else ""
