"""What a run says at first sight: its headline metrics, and findings that its data bear out.

Findings are group differences that an omnibus test shows, baselines that the run does not beat,
the headline metrics with their intervals over the rows in which they are defined, nulls and
rejects. Trivial agents are baselines on the same log.
"""

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from fastscore.errors import UsageError, counted, listed
from fastscore.results.compare import MOST_LEVELS, compare_runs
from fastscore.results.comparison import beside, design_text
from fastscore.results.differences import Inference
from fastscore.results.metric_text import (
    REASONS,
    Record,
    decimals_for,
    estimate_text,
    interval_text,
    number_text,
    p_text,
    reading_of,
)
from fastscore.results.runs import Run, defined_parts, label_columns, summarise_run
from fastscore.results.summary_table import DIALOGUES, main_reason, unit_name
from fastscore.statistics import ALPHA
from fastscore.statistics.clustered import LEAST_UNITS, Clusters, Estimate
from fastscore.statistics.curves import difference_curve
from fastscore.statistics.significance import holm
from fastscore.suites.base import headline_metrics
from fastscore.suites.declarations import LABEL_TABLE, NULL_REASONS, Metric
from fastscore.suites.summary import overall_rows
from fastscore.suites.sums import UNIT, Part, PartKey
from fastscore.terminal import plain


@dataclass(frozen=True, slots=True)
class Baseline:
    """A trivial agent's mean where the run has a value, the run's (``own``), and own - agent's."""

    agent: str
    value: float
    own: float
    difference: Estimate


def _trivial_baselines(
    run: Run, metrics: Sequence[Metric], parts: Sequence[Part], cluster: str | None
) -> dict[PartKey, list[Baseline]]:
    """Return by metric and scale what each trivial agent of table ``dialogues`` scores.

    A file that the run's options name and that can no longer be read is a `UsageError`.
    """
    metrics = [metric for metric in metrics if metric.baselines and metric.table == LABEL_TABLE]
    if not metrics or run.suite.trivial_agents is None:
        return {}
    scored = run.suite.trivial_agents(run.lazy_tables, run.options)
    own = {part.key: part for part in parts}
    found: dict[PartKey, list[Baseline]] = {}
    for agent in scored["agent"].unique(maintain_order=True):
        chosen = [metric for metric in metrics if agent in metric.baselines]
        ids = [metric.id for metric in chosen]
        of_agent = scored.lazy().filter(pl.col("agent") == agent).select("dialogue", *ids)
        dialogues = run.scan(LABEL_TABLE).join(of_agent, on="dialogue", how="left", suffix=":agent")
        # the agent's score where the run has one, and its count for suites that merge dialogues
        replaced = [pl.when(pl.col(id).is_not_null()).then(f"{id}:agent").alias(id) for id in ids]
        replaced += [
            (pl.col(f"{metric.id}:agent") * pl.col(metric.micro[1])).alias(metric.micro[0])
            for metric in chosen
            if metric.micro
        ]
        tables = {**run.lazy_tables, LABEL_TABLE: dialogues.with_columns(replaced)}
        for part in defined_parts(run, chosen, cluster, tables):
            if part.key in own:
                found.setdefault(part.key, []).append(_compare(agent, own[part.key], part))
    return found


def _compare(agent: str, own: Part, other: Part) -> Baseline:
    """Pair the units that both have."""
    a, b = (
        part.units.group_by(UNIT).agg(pl.col("sum", "n").sum().cast(pl.Float64))
        for part in (other, own)
    )
    pairs = a.join(b, on=UNIT, suffix="/own").sort(UNIT)
    of_agent, of_run = (
        Clusters(pairs[f"sum{side}"].to_numpy(), pairs[f"n{side}"].to_numpy())
        for side in ("", "/own")
    )
    curve = difference_curve(of_agent, of_run, shared=True, ends=own.metric.scale.ends, test="t")
    return Baseline(agent, of_agent.mean, of_run.mean, curve.estimate)


@dataclass(frozen=True, slots=True)
class Headlines:
    """The headline metrics of a run where they are defined, and what trivial agents score.

    ``name`` is what a page calls the run. ``whole`` are the summary's rows over all dialogues by
    metric. ``parts`` are of headline metrics, then of others whose definition leaves rows out or
    has several scales. ``lacking`` is the reason for absent baselines, ``unit`` the name of the
    units.
    """

    name: str
    run: Run
    summary: pl.DataFrame
    whole: Mapping[str, Mapping[str, Any]]
    metrics: tuple[Metric, ...]
    labels: tuple[str, ...]
    parts: tuple[Part, ...]
    baselines: Mapping[PartKey, Sequence[Baseline]]
    lacking: str
    unit: str

    def of(self, id: str) -> list[Part]:
        """Return the parts of a metric."""
        return [part for part in self.parts if part.metric.id == id]

    def baselines_of(self, part: Part) -> Sequence[Baseline]:
        """Return what trivial agents score in a part."""
        return self.baselines.get(part.key, ())


def read_headlines(run: Run, *, cluster: str | None = None) -> Headlines:
    """Read the headline metrics of a run, with the units of a column or of the design."""
    run.require_declared()
    suite = run.suite
    summary = summarise_run(run, cluster=cluster)
    whole = overall_rows(summary)
    metrics = tuple(one for one in headline_metrics(suite.metrics) if one.id in whole)
    others = [
        metric
        for metric in suite.metrics
        if metric.id in whole and metric not in metrics and (metric.fixed_where or metric.scale.by)
    ]
    parts = tuple(defined_parts(run, [*metrics, *others], cluster))
    baselines, lacking = dict[PartKey, list[Baseline]](), ""
    try:
        baselines = _trivial_baselines(run, metrics, parts, cluster)
    except UsageError as error:
        lacking = error.message
    unit = unit_name(suite, cluster)
    labels = tuple(label_columns(run))
    name = str(run.path)
    return Headlines(name, run, summary, whole, metrics, labels, parts, baselines, lacking, unit)


def baseline_text(baselines: Iterable[Baseline]) -> str:
    """Write what trivial agents score: ``baselines: always refusing 0.960, ...``."""
    scores = [
        f"{one.agent} {number_text(one.value, max(1, decimals_for([one.value]) - 1))}"
        for one in baselines
    ]
    return f"baseline{'s' * (len(scores) > 1)}: {', '.join(scores)}" if scores else ""


def estimate_of(record: Mapping[str, Any]) -> Estimate:
    """Return the mean of a summary's row with its interval."""
    n_units, reason = record["n_units"], record["interval_reason"]
    ends = record["ci_low"], record["ci_high"]
    return Estimate(record["mean"], *ends, n_units=n_units, reason=reason)


MOST_GROUPS = 20
"""The most groups whose pairs are compared in a report."""


def compare_groups(
    headlines: Headlines, how: Inference
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Compare the groups of each label in the headline metrics, as `compare` does.

    Return a record for each label and metric, with ``p_holm`` corrected over all of them and the
    ``clearest`` difference of two groups with a verdict, and by label why it was not tested.
    """
    run = headlines.run
    tests: list[dict[str, Any]] = []
    untested = dict[str, str]()
    for label in headlines.labels:
        sizes = run.scan(LABEL_TABLE).group_by(label).len().drop_nulls().collect()
        levels = sizes.filter(pl.col("len") >= LEAST_UNITS)[label].cast(pl.String).sort().to_list()
        if len(sizes) < 2:
            continue
        if not 2 <= len(levels) <= MOST_GROUPS:
            untested[label] = (
                f"fewer than two groups have {LEAST_UNITS} dialogues"
                if len(levels) < 2
                else f"{len(levels):,} groups, at most {MOST_GROUPS} are compared"
            )
            continue
        chosen = levels if len(sizes) > MOST_LEVELS else ()
        of_label = replace(how, by=label, levels=tuple(chosen), omnibus=True)
        try:
            found = compare_runs([run], headlines.metrics, of_label)
        except UsageError as error:
            untested[label] = error.message
            continue
        told = found.differences.filter(pl.col("verdict") != "").sort(pl.col("difference").abs())
        clearest = {row["metric"]: row for row in told.iter_rows(named=True)}
        n_groups = found.sides["side"].n_unique()
        for test in found.omnibus.iter_rows(named=True):
            more = {"label": label, "n_groups": n_groups, "clearest": clearest.get(test["metric"])}
            tests.append(test | more)
    for test, p in zip(tests, holm([test["p"] for test in tests]), strict=True):
        test["p_holm"] = p
    return tests, untested


Kind = Literal["groups", "baseline", "mean", "null", "rejects", "none"]
GROUP_DIFFERENCES = 6
NAMED = 3
MANY_NULLS = 0.2
MANY_AT_END = 0.5


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence about a run, and the id of its metric if it has one."""

    kind: Kind
    text: str
    metric: str = ""


def list_findings(headlines: Headlines, how: Inference | None = None) -> list[Finding]:
    """Return findings about headline metrics that were read already, in a user's design."""
    means = ((metric, _means(headlines, metric)) for metric in headlines.metrics)
    return [
        *_groups(headlines, how or Inference.of(headlines.run.suite.design)),
        *_unbeaten(headlines),
        *(Finding("mean", f"{one.heading}{text}.", one.id) for one, text in means if text),
        *_nulls(headlines),
        _rejects(headlines.run),
    ]


def findings_lines(findings: Sequence[Finding], *, width: int = 80, lines: int = 10) -> list[str]:
    """Return findings in so many lines of text, whole sentences; the kinds take turns."""
    by_kind: dict[str, list[list[str]]] = {}
    for finding in findings:
        wrapped = textwrap.wrap(
            plain(finding.text), width, initial_indent="- ", subsequent_indent="  "
        )
        by_kind.setdefault(finding.kind, []).append(wrapped)
    chosen: list[tuple[int, int, list[str]]] = []
    left = lines
    for place in range(max(map(len, by_kind.values()), default=0)):
        for kind, texts in enumerate(by_kind.values()):
            if place < len(texts) and len(texts[place]) <= left:
                left -= len(texts[place])
                chosen.append((kind, place, texts[place]))
    return [line for _, _, text in sorted(chosen) for line in text]


def _means(headlines: Headlines, metric: Metric) -> str:
    """Write the mean of each part with its interval, units, reading and baselines."""
    texts = []
    parts = headlines.of(metric.id)
    for part in parts:
        estimate = part.estimate
        band = reading_of(estimate.value, estimate.low, estimate.high, metric.scale.bands)
        facts = [
            estimate_text(estimate),
            f"{band} by its source" if band else "",
            _counted_rows(part, estimate.n_units, headlines.unit),
            REASONS.get(estimate.reason or "", ""),
            _at_end(part),
        ]
        shown = ", ".join(fact for fact in facts if fact)
        baselines = baseline_text(headlines.baselines_of(part))
        where = f"{', in' if len(parts) == 1 else ''} {part.where}: " if part.where else ": "
        texts.append(f"{where}{shown}{f' ({baselines})' if baselines else ''}")
    return texts[0] if len(texts) == 1 else ":" + ";".join(texts) if texts else ""


def _counted_rows(part: Part, n_units: int, unit: str) -> str:
    """Count the values of a part, and the units that they are in, if these are others."""
    rows = counted(part.n, part.metric.table)
    units = counted(n_units, unit if unit == DIALOGUES else "units")
    return rows if n_units == part.n else f"{rows} in {units}"


def _at_end(part: Part) -> str:
    """Say how many values lie at an end of the range, if it is at least half of them."""
    n = part.n
    ends = (("at_minimum", part.metric.scale.minimum), ("at_maximum", part.metric.scale.maximum))
    for column, end in ends:
        at_end = int(part.units[column].sum())
        if end is not None and n >= LEAST_UNITS and at_end >= MANY_AT_END * n:
            return f"{'all' if at_end == n else f'{at_end:,} of {n:,}'} at {end:g}"
    return ""


def _unbeaten(headlines: Headlines) -> Iterator[Finding]:
    """Name the metrics in which the run is worse than a trivial agent, and not clearly better."""
    texts: dict[tuple[str, str], list[str]] = {}
    for part in headlines.parts:
        for one in headlines.baselines_of(part):
            verdict = against_agent(part.metric, one.difference)
            if verdict:
                own, other = (number_text(mean, 3) for mean in (one.own, one.value))
                is_split = len(headlines.of(part.metric.id)) > 1
                named = f"{part.metric.id} in {part.where}" if is_split else part.metric.id
                text = f"{named} ({own} against {other})"
                texts.setdefault((verdict, one.agent), []).append(text)
    for (verdict, agent), metrics in sorted(texts.items(), reverse=True):
        named = listed(metrics, NAMED)
        yield Finding("baseline", f"{verdict} an agent that is {agent}, on the same log: {named}.")
    if headlines.lacking:
        yield Finding("baseline", f"No trivial baselines: {headlines.lacking}")


def against_agent(metric: Metric, difference: Estimate) -> str:
    """Return how a run compares with a trivial agent; empty if better, or without an interval."""
    if metric.scale.better == "neither" or difference.low is None or difference.high is None:
        return ""
    low, high = difference.low, difference.high
    if metric.scale.better == "lower":
        low, high = -high, -low
    if low > 0:
        return ""
    return "Clearly worse than" if high < 0 else "Cannot be told from"


def _groups(headlines: Headlines, how: Inference) -> Iterator[Finding]:
    """Name the metrics that differ between groups, and the clearest pair of each."""
    tests, untested = compare_groups(headlines, how)
    n = sum(test["p"] is not None for test in tests)
    family = f"Holm over {counted(n, 'tests')}"
    differing = [test for test in tests if test["p_holm"] is not None and test["p_holm"] < ALPHA]
    differing.sort(
        key=lambda test: -abs(test["clearest"]["effect"] or 0.0) if test["clearest"] else math.inf
    )
    named = {metric.id: metric.heading for metric in headlines.metrics}
    for test in differing[:GROUP_DIFFERENCES]:
        id = test["metric"]
        yield Finding("groups", _difference_text(named[id], test, family), id)
    if n and not differing:
        labels = ", ".join(dict.fromkeys(test["label"] for test in tests))
        text = f"No headline metric clearly differs by {labels} ({family}, {ALPHA:g})."
        yield Finding("groups", text)
    others: dict[str, list[str]] = {}
    for test in differing[GROUP_DIFFERENCES:]:
        others.setdefault(test["label"], []).append(test["metric"])
    more = [f"by {label} ({len(ids):,}): {', '.join(ids)}" for label, ids in others.items()]
    if more:
        yield Finding("groups", f"Others that differ {'; '.join(more)}.")
    for label, reason in untested.items():
        text = f"Not tested for differences by {label}: {reason.removesuffix('.')}."
        yield Finding("groups", text)


def _difference_text(metric: str, test: Record, family: str) -> str:
    """State a difference with the one p that it rests on: of the clearest pair, else of all."""
    message, row = f"{metric} differs by {test['label']}", test["clearest"]
    if not row:
        groups = f"{test['n_groups']:,} groups"
        return (
            f"{message} (p of all {groups} = {p_text(test['p_holm'])}, {family}); no pair of them "
            "is clear by itself."
        )
    decimals = max(1, decimals_for((row["mean_a"], row["mean_b"])) - 1)
    a, b = (number_text(row[f"mean_{side}"], decimals) for side in ("a", "b"))
    difference = interval_text(row["difference"], row["low"], row["high"], decimals)
    return (
        f"{message}: {row['b']} has {b} and is {row['verdict']} than {row['a']} with {a}, "
        f"difference {difference} (p of this pair = {p_text(row['p_holm'])}, Holm over "
        f"{counted(row['family_size'], 'tests')} of this label; {design_text(row)})"
        f"{beside(row)}."
    )


def _nulls(headlines: Headlines) -> Iterator[Finding]:
    """Name the metrics that are null everywhere, then those that are null in many rows."""
    metrics, whole = headlines.metrics, headlines.whole
    everywhere = [metric for metric in metrics if not whole[metric.id]["n"]]
    if everywhere:
        rows = [whole[metric.id] for metric in everywhere]
        reasons: list[str] = [
            name for name in NULL_REASONS if any(row[f"n_{name}"] for row in rows)
        ]
        reasons = reasons or ["switched off"]
        names = ", ".join(metric.id for metric in everywhere)
        yield Finding("null", f"Null everywhere ({', '.join(reasons)}): {names}.")
    for metric in metrics:
        record = whole[metric.id]
        reason, n_null = main_reason(record), record["n_null"]
        rows = record["n"] + n_null
        # nulls outside the rows in which it is defined are no news
        by_definition = any(part.where for part in headlines.of(metric.id))
        is_told = metric in everywhere or (by_definition and reason == "not_applicable")
        if n_null > MANY_NULLS * rows and not is_told:
            nulls = f"null in {n_null:,} of {rows:,} {metric.table} ({reason})"
            yield Finding("null", f"{metric.heading} is {nulls}.", metric.id)


def _rejects(run: Run) -> Finding:
    n_rejects = run.manifest.counts.get("rejects", 0)
    if not n_rejects:
        return Finding("none", "No line was rejected.")
    by_reason = run.rejects.group_by("reason").agg(n=pl.col("count").sum())
    reason, n = by_reason.sort("n", "reason", descending=[True, False]).row(0)
    return Finding("rejects", f"{counted(n_rejects, 'rejects')}, most for {reason} ({n:,}).")
