"""The headline metrics of a run over the rows in which they are defined, beside trivial agents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from fastscore.errors import UsageError
from fastscore.results.defined_rows import Part, defined_parts
from fastscore.results.dialogue_sums import LABEL_TABLE
from fastscore.results.groups import summarise_run
from fastscore.results.number_text import decimals_for, estimate_text, number_text
from fastscore.results.runs import Run
from fastscore.results.trivial_baselines import Baseline, PartKey, part_key, trivial_baselines
from fastscore.statistics.clustered import Estimate
from fastscore.suites.declarations import Metric
from fastscore.suites.families import headline_metrics
from fastscore.suites.summary import ALL
from fastscore.terminal.grids import Column, Grid


@dataclass(frozen=True, slots=True)
class Headlines:
    """The headline metrics of a run where they are defined, and what trivial agents score.

    Parameters
    ----------
    summary
        The run's summary, with these units.
    metrics
        The headline metrics in it.
    labels
        The columns of table ``dialogues`` that group the summary.
    parts
        Their parts that have a value.
    baselines
        By part what trivial agents score.
    lacking
        Why there are no baselines, if they cannot be computed.
    cluster
        The column that names the units; None if they are dialogues.
    """

    summary: pl.DataFrame
    metrics: tuple[Metric, ...]
    labels: tuple[str, ...]
    parts: tuple[Part, ...]
    baselines: Mapping[PartKey, Sequence[Baseline]] = field(default_factory=dict)
    lacking: str = ""
    cluster: str | None = None

    @property
    def unit(self) -> str:
        """The units, in the plural."""
        return "dialogues" if self.cluster is None else f"values of {self.cluster}"

    def of(self, id: str) -> list[Part]:
        """Return the parts of a metric."""
        return [part for part in self.parts if part.metric.id == id]


def read_headlines(run: Run, *, cluster: str | None = None) -> Headlines:
    """Read the headline metrics of a run.

    Parameters
    ----------
    run
        A complete run.
    cluster
        The column of table ``dialogues`` that names the units. Default: the dialogue.

    Raises
    ------
    UsageError
        No such column.
    RunError
        Another version of fastscore wrote the run, without a column of this one.
    """
    run.require_declared()
    suite = run.suite
    summary = summarise_run(run, cluster=cluster)
    whole = set(summary.filter(pl.col("group") == ALL)["metric"])
    metrics = tuple(one for one in headline_metrics(suite.metrics) if one.id in whole)
    columns = run.scan(LABEL_TABLE).collect_schema().names()
    groups = summary["group"].unique(maintain_order=True)
    labels = tuple(name for name in groups if name in columns)
    parts = tuple(defined_parts(suite, run.lazy_tables, metrics, labels=labels, cluster=cluster))
    baselines: Mapping[PartKey, Sequence[Baseline]] = {}
    lacking = ""
    try:
        baselines = trivial_baselines(run, metrics, parts, labels=labels, cluster=cluster)
    except UsageError as error:
        lacking = error.message
    return Headlines(summary, metrics, labels, parts, baselines, lacking, cluster)


def baseline_text(baselines: Iterable[Baseline]) -> str:
    """Write what trivial agents score: ``baselines: always refusing 0.960, ...``."""
    scores = [
        f"{one.agent} {number_text(one.value, max(1, decimals_for([one.value]) - 1))}"
        for one in baselines
    ]
    return f"baseline{'s' * (len(scores) > 1)}: {', '.join(scores)}" if scores else ""


def part_estimate(part: Part, record: Mapping[str, Any]) -> Estimate:
    """Return the mean of a part: that of the summary, if it is of all rows."""
    if part.where:
        return part.estimate
    return Estimate(
        record["mean"],
        record["ci_low"],
        record["ci_high"],
        n_units=record["n_units"],
        reason=record["interval_reason"],
    )


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
        for one in headlines.baselines.get(part_key(part), ())
    ]


def baseline_grid(headlines: Headlines) -> Grid:
    """Lay out the headline metrics that have baselines, with the score of each trivial agent."""
    whole = {
        row["metric"]: row for row in headlines.summary.filter(pl.col("group") == ALL).to_dicts()
    }
    parts = [part for part in headlines.parts if headlines.baselines.get(part_key(part))]
    scores = [
        {one.agent: one.value for one in headlines.baselines[part_key(part)]} for part in parts
    ]
    agents = dict.fromkeys(agent for of_part in scores for agent in of_part)
    estimates = [part_estimate(part, whole[part.metric.id]) for part in parts]
    return Grid(
        f"trivial agents on the same log (units: {headlines.unit})",
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
