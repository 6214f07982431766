"""The headline metrics of a run over the rows in which they are defined, beside trivial agents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fastscore.errors import UsageError
from fastscore.results.metric_text import decimals_for, estimate_text, number_text
from fastscore.results.runs import Run, defined_parts, label_columns, summarise_run
from fastscore.results.summary_table import unit_name
from fastscore.statistics.clustered import Clusters, Estimate
from fastscore.statistics.curves import difference_curve
from fastscore.suites.base import headline_metrics
from fastscore.suites.declarations import LABEL_TABLE, Metric
from fastscore.suites.estimates import UNIT, Part, PartKey
from fastscore.suites.summary import overall_rows
from fastscore.terminal.grids import Column, Grid


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
    suite = run.suite
    metrics = [metric for metric in metrics if metric.baselines and metric.table == LABEL_TABLE]
    if not metrics or suite.trivial_agents is None:
        return {}
    scored = suite.trivial_agents(run.lazy_tables, run.options)
    own = {part.key: part for part in parts}
    found: dict[PartKey, list[Baseline]] = {}
    for agent in scored["agent"].unique(maintain_order=True):
        chosen = [metric for metric in metrics if agent in metric.baselines]
        tables = _with_scores(run, scored.filter(pl.col("agent") == agent), chosen)
        for part in defined_parts(run, chosen, cluster, tables):
            if part.key in own:
                found.setdefault(part.key, []).append(_compare(agent, own[part.key], part))
    return found


def _with_scores(
    run: Run, scored: pl.DataFrame, metrics: Sequence[Metric]
) -> Mapping[str, pl.LazyFrame]:
    """Return the run's tables with an agent's scores in place of its own, where it has one."""
    ids = [metric.id for metric in metrics]
    dialogues = run.scan(LABEL_TABLE).join(
        scored.lazy().select("dialogue", *ids), on="dialogue", how="left", suffix=":agent"
    )
    replaced = [pl.when(pl.col(id).is_not_null()).then(f"{id}:agent").alias(id) for id in ids]
    return {**run.lazy_tables, LABEL_TABLE: dialogues.with_columns(replaced)}


def _compare(agent: str, own: Part, other: Part) -> Baseline:
    """Pair the units that both have."""
    a, b = (
        part.units.group_by(UNIT).agg(pl.col("sum", "n").sum().cast(pl.Float64))
        for part in (other, own)
    )
    pairs = a.join(b, on=UNIT, suffix="/own").sort(UNIT)
    of_agent = Clusters(pairs["sum"].to_numpy(), pairs["n"].to_numpy())
    of_run = Clusters(pairs["sum/own"].to_numpy(), pairs["n/own"].to_numpy())
    low, high = own.metric.scale.minimum, own.metric.scale.maximum
    curve = difference_curve(of_agent, of_run, shared=True, test="t", minimum=low, maximum=high)
    return Baseline(agent, of_agent.mean, of_run.mean, curve.estimate)


@dataclass(frozen=True, slots=True)
class Headlines:
    """The headline metrics of a run where they are defined, and what trivial agents score.

    ``whole`` are the summary's rows over all dialogues by metric. ``parts`` are of headline
    metrics, then of others whose definition leaves rows out or has several scales. ``lacking``
    says why there are no baselines, ``unit`` is what the units are called.
    """

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
    return Headlines(summary, whole, metrics, labels, parts, baselines, lacking, unit)


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


def baseline_records(headlines: Headlines) -> list[dict[str, Any]]:
    """Return a record for each trivial agent and part, every number at full precision."""
    return [
        {
            "metric": part.metric.id,
            "rows": part.where or "all",
            "agent": one.agent,
            "agent_mean": one.value,
            "run_mean": one.own,
            "difference": one.difference.value,
            "low": one.difference.low,
            "high": one.difference.high,
        }
        for part in headlines.parts
        for one in headlines.baselines_of(part)
    ]


def baseline_grid(headlines: Headlines) -> Grid:
    """Lay out the headline metrics that have baselines, with the score of each trivial agent."""
    parts = [part for part in headlines.parts if headlines.baselines_of(part)]
    scores = [{one.agent: one.value for one in headlines.baselines_of(part)} for part in parts]
    agents = dict.fromkeys(agent for of_part in scores for agent in of_part)
    estimates = [part.estimate for part in parts]
    return Grid(
        f"trivial agents on the same log (unit: {headlines.unit})",
        (
            Column("metric", tuple(part.metric.id for part in parts), right=False),
            Column("rows", tuple(part.where or "all" for part in parts), right=False, wraps=True),
            Column("mean [95 % CI]", tuple(map(estimate_text, estimates))),
            *(
                Column(agent, tuple(number_text(of_part.get(agent), 3) for of_part in scores))
                for agent in agents
            ),
        ),
    )
