"""What trivial agents score on a run's log, beside the run and over the same rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from fastscore.options import build_options
from fastscore.results.defined_rows import UNIT, Part, defined_parts
from fastscore.results.dialogue_sums import LABEL_TABLE
from fastscore.results.runs import Run
from fastscore.statistics.clustered import Clusters, Estimate, clustered_difference
from fastscore.suites.declarations import Metric

PartKey = tuple[str, str | int | bool | None]
"""A metric's id and the scale of a part of it."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a trivial agent scores where the run has a value.

    Parameters
    ----------
    agent
        What the agent does: ``always refusing``.
    value, own
        Its mean, and the run's over the same units.
    difference
        The run's mean less the agent's, with its interval over units.
    """

    agent: str
    value: float
    own: float
    difference: Estimate


def part_key(part: Part) -> PartKey:
    """Return what names a part."""
    return part.metric.id, part.scale


def trivial_baselines(
    run: Run,
    metrics: Sequence[Metric],
    parts: Sequence[Part],
    *,
    labels: Sequence[str],
    cluster: str | None = None,
) -> dict[PartKey, list[Baseline]]:
    """Return by metric and scale what each of its trivial agents scores.

    Parameters
    ----------
    run
        A complete run.
    metrics
        Metrics of its table ``dialogues``; those without a baseline have none.
    parts, labels, cluster
        The parts of these metrics, and how they were made by `defined_parts`.

    Raises
    ------
    UsageError
        A file that the run's options name can no longer be read.
    """
    suite = run.suite
    metrics = [metric for metric in metrics if metric.baselines and metric.table == LABEL_TABLE]
    if not metrics or suite.trivial_agents is None:
        return {}
    options = build_options(suite.options, run.manifest.options)
    scored = suite.trivial_agents(run.lazy_tables, options)
    own = {part_key(part): part for part in parts}
    found: dict[PartKey, list[Baseline]] = {}
    for agent in scored["agent"].unique(maintain_order=True):
        chosen = [metric for metric in metrics if agent in metric.baselines]
        tables = _with_scores(run, scored.filter(pl.col("agent") == agent), chosen)
        for part in defined_parts(suite, tables, chosen, labels=labels, cluster=cluster):
            key = part_key(part)
            if key in own:
                found.setdefault(key, []).append(_compare(agent, own[key], part))
    return found


def _with_scores(
    run: Run, scored: pl.DataFrame, metrics: Sequence[Metric]
) -> Mapping[str, pl.LazyFrame]:
    """Return the run's tables with an agent's scores in place of its own, where it has one."""
    suite = run.suite
    key = next(list(one.dialogue_key) for one in suite.tables if one.name == LABEL_TABLE)
    ids = [metric.id for metric in metrics]
    dialogues = run.scan(LABEL_TABLE).join(
        scored.lazy().select(*key, *ids), on=key, how="left", nulls_equal=True, suffix=":agent"
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
    difference = clustered_difference(
        of_agent,
        of_run,
        shared=True,
        minimum=own.metric.minimum,
        maximum=own.metric.maximum,
    )
    return Baseline(agent, of_agent.mean, of_run.mean, difference)
