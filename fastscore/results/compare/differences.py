"""Two sides of a comparison, metric by metric: means, and their difference with interval and test.

A side is summed by dialogue, label, cluster and repeat. The mean is that over rows, as a summary
has it. The interval, the test and the effect size are of the same mean, over clusters.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from fastscore.results.dialogue_sums import CLUSTER, KEY, REPEAT, DialogueSums
from fastscore.statistics import significance
from fastscore.statistics.clustered import (
    Clusters,
    Estimate,
    clustered_difference,
    clustered_mean,
    hedges_g,
    least_detectable,
    t_p_value,
)
from fastscore.statistics.permutation import MOST_EXACT, permutation_test, rearrangements
from fastscore.statistics.repeats import repeated_difference, variance_components
from fastscore.statistics.samples import Values
from fastscore.suites.declarations import NULL_REASONS, Metric

Test = Literal["auto", "t", "permutation"]
TESTS: tuple[Test, ...] = ("auto", "t", "permutation")


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The dialogues of one side by one table.

    Parameters
    ----------
    group
        The group to which both sides belong, or None.
    name
        The side's name.
    sums
        Its dialogues.
    """

    group: str | None
    name: str
    sums: DialogueSums


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """How differences are tested.

    Parameters
    ----------
    test
        ``t``, ``permutation``, or ``auto``: exact permutations if there are at most 10,000, else t.
    alpha
        The two-sided level of significance.
    seed
        Seed of drawn permutations and bootstrap samples.
    samples
        The number of bootstrap samples.
    has_repeats
        Whether a column tells repeated runs apart.
    by_definition
        The metrics whose definition depends on the levels that are compared: they have no p.
    """

    test: Test = "auto"
    alpha: float = 0.05
    seed: int = 0
    samples: int = 2_000
    has_repeats: bool = False
    by_definition: frozenset[str] = frozenset()


def describe_side(side: Side, metrics: Sequence[Metric]) -> Iterator[dict[str, Any]]:
    """Count each metric's values and nulls on a side, with the mean over rows and its interval."""
    null_rows = {
        (metric, reason): n
        for metric, reason, n in side.sums.nulls.select("metric", "reason", "n").rows()
    }
    for metric in metrics:
        rows = _rows_with_values(side.sums.values, metric)
        found = clustered_mean(
            *_by_cluster(rows, metric), minimum=metric.minimum, maximum=metric.maximum
        )
        nulls = {f"n_{reason}": null_rows.get((metric.id, reason), 0) for reason in NULL_REASONS}
        yield {
            "group": side.group,
            "side": side.name,
            "metric": metric.id,
            "n": int(rows[f"{metric.id}:n"].sum()),
            "n_null": sum(nulls.values()),
            **nulls,
            "n_dialogues": rows[KEY].n_unique(),
            "n_units": found.n_units,
            "mean": found.value,
            "low": found.low,
            "high": found.high,
            "standard_error": found.standard_error,
            "degrees_of_freedom": found.degrees_of_freedom,
            "reason": found.reason,
        }


def differences(
    a: Side, b: Side, metrics: Sequence[Metric], how: Inference, *, paired: bool
) -> Iterator[dict[str, Any]]:
    """Compare two sides, metric by metric.

    Parameters
    ----------
    a, b
        The sides; differences are those of `b` from `a`.
    metrics
        Metrics of one table.
    how
        The test and its level.
    paired
        Whether only dialogues with a value on both sides count. If the sides share clusters, these
        have one error for both, paired or not.
    """
    for metric in metrics:
        first, second = (_rows_with_values(side.sums.values, metric) for side in (a, b))
        if paired:
            first, second = (
                rows.filter(pl.col(KEY).is_in(other[KEY].implode()))
                for rows, other in ((first, second), (second, first))
            )
        sizes = first[KEY].n_unique(), second[KEY].n_unique()
        sides, shared = align_clusters(first, second, metric)
        yield {
            "group": a.group,
            "a": a.name,
            "b": b.name,
            "metric": metric.id,
            "design": "paired" if paired else "independent",
            "n_a": sizes[0],
            "n_b": sizes[1],
            "alpha": how.alpha,
            **_tested(sides, (first, second), metric, how, shared=shared, paired=paired),
        }


def align_clusters(
    first: pl.DataFrame, second: pl.DataFrame, metric: Metric
) -> tuple[tuple[Clusters, Clusters], bool]:
    """Return both sides by cluster, and whether they share clusters, position by position then."""
    sums = [
        rows.group_by(CLUSTER).agg(pl.col(f"{metric.id}:sum").sum(), pl.col(f"{metric.id}:n").sum())
        for rows in (first, second)
    ]
    both = sums[0].join(sums[1], on=CLUSTER, how="full", coalesce=True, suffix="/b").sort(CLUSTER)
    columns = [
        both[f"{metric.id}:{part}{suffix}"].fill_null(0).cast(pl.Float64).to_numpy()
        for suffix in ("", "/b")
        for part in ("sum", "n")
    ]
    a, b = Clusters(columns[0], columns[1]), Clusters(columns[2], columns[3])
    shared = bool(((a.counts > 0) & (b.counts > 0)).any())
    if not shared:
        a, b = (
            Clusters(side.sums[side.counts > 0], side.counts[side.counts > 0]) for side in (a, b)
        )
    return (a, b), shared


def published_differences(a: Side, b: Side, metrics: Sequence[Metric]) -> Iterator[dict[str, Any]]:
    """Compute the statistics of the public guest_simulation code, one value a dialogue."""
    for metric in metrics:
        values = [_dialogue_means(side.sums.values, metric) for side in (a, b)]
        row: dict[str, Any] = {"group": a.group, "a": a.name, "b": b.name, "metric": metric.id}
        for name, of_side in zip(("a", "b"), values, strict=True):
            normal = significance.mean_interval(of_side, method="normal", ddof=0)
            row |= {
                f"n_{name}": of_side.size,
                f"mean_{name}": normal.value,
                f"normal_low_{name}": normal.low,
                f"normal_high_{name}": normal.high,
            }
        x, y = values
        for name, test in (("student", significance.student_t), ("welch", significance.welch_t)):
            found = test(y, x)
            row |= {f"{name}_t": found.statistic, f"{name}_p": found.p_value}
        ranks = significance.mann_whitney_u(y, x)
        yield row | {
            "cohens_d": significance.cohens_d(y, x, pooling="population").value,
            "mann_whitney_u": ranks.statistic,
            "mann_whitney_p": ranks.p_value,
        }


def describe_repeats(side: Side, metrics: Sequence[Metric]) -> Iterator[dict[str, Any]]:
    """Part each metric's variance into that between dialogues, between repeats and the rest."""
    for metric in metrics:
        rows = _rows_with_values(side.sums.values, metric).drop_nulls(REPEAT)
        cells = (
            rows.group_by(KEY, REPEAT)
            .agg(value=pl.col(f"{metric.id}:sum").sum() / pl.col(f"{metric.id}:n").sum())
            .sort(KEY, REPEAT)
        )
        parts = variance_components(
            cells["value"].to_numpy(),
            cells[KEY].rank("dense").to_numpy().astype(np.int64) - 1,
            cells[REPEAT].cast(pl.String).rank("dense").to_numpy().astype(np.int64) - 1,
        )
        yield {
            "group": side.group,
            "side": side.name,
            "metric": metric.id,
            "n_dialogues": cells[KEY].n_unique(),
            "n_repeats": cells[REPEAT].n_unique(),
            "mean": _mean(rows, metric),
            **{
                f"sd_{name}": None if part is None else math.sqrt(part)
                for name, part in zip(("dialogues", "repeats", "residual"), parts, strict=True)
            },
        }


def _tested(
    sides: tuple[Clusters, Clusters],
    rows: tuple[pl.DataFrame, pl.DataFrame],
    metric: Metric,
    how: Inference,
    *,
    shared: bool,
    paired: bool,
) -> dict[str, Any]:
    """Return the numbers of a difference: means, interval, p-value, effect size, power."""
    a, b = sides
    least, most = metric.minimum, metric.maximum
    found = clustered_difference(a, b, shared=shared, minimum=least, maximum=most)
    if how.has_repeats and found.reason is None:
        cells = [_cells(each, metric) for each in rows]
        found = repeated_difference(cells[0], cells[1], minimum=least, maximum=most)
    defined = metric.id in how.by_definition
    test, p = (None, None) if defined else test_difference(found, a, b, shared=shared, how=how)
    effect = None if found.reason else hedges_g(a, b, paired=paired)
    return {
        "n_units": found.n_units,
        "mean_a": a.mean if a.counts.sum() else None,
        "mean_b": b.mean if b.counts.sum() else None,
        "difference": found.value,
        "low": found.low,
        "high": found.high,
        "standard_error": found.standard_error,
        "degrees_of_freedom": found.degrees_of_freedom,
        "test": test,
        "p": p,
        "effect": effect and effect[0],
        "effect_low": effect and effect[1],
        "effect_high": effect and effect[2],
        "detectable": least_detectable(found, alpha=how.alpha),
        "reason": found.reason or ("by_definition" if defined else None),
    }


def test_difference(
    found: Estimate, a: Clusters, b: Clusters, *, shared: bool, how: Inference
) -> tuple[str | None, float | None]:
    """Return the name of the test that serves, and its p."""
    if found.reason is not None:
        return None, None
    few = rearrangements(a, b, shared=shared) <= MOST_EXACT and not how.has_repeats
    by_t = how.test == "t" or (how.test == "auto" and not few)
    if by_t and found.standard_error:
        return "t", t_p_value(found)
    permuted = permutation_test(a, b, shared=shared, seed=how.seed)
    return ("exact permutation" if permuted.is_exact else "permutation"), permuted.p_value


def _rows_with_values(values: pl.DataFrame, metric: Metric) -> pl.DataFrame:
    return values.filter(pl.col(f"{metric.id}:n") > 0)


def _by_cluster(rows: pl.DataFrame, metric: Metric) -> tuple[Values, Values]:
    sums = (
        rows.group_by(CLUSTER)
        .agg(pl.col(f"{metric.id}:sum").sum(), pl.col(f"{metric.id}:n").sum())
        .sort(CLUSTER)
    )
    return (
        sums[f"{metric.id}:sum"].to_numpy(),
        sums[f"{metric.id}:n"].cast(pl.Float64).to_numpy(),
    )


def _mean(rows: pl.DataFrame, metric: Metric) -> float | None:
    n = int(rows[f"{metric.id}:n"].sum())
    return float(rows[f"{metric.id}:sum"].sum()) / n if n else None


def _dialogue_means(values: pl.DataFrame, metric: Metric) -> Values:
    rows = _rows_with_values(values, metric)
    means = rows.group_by(KEY).agg(
        mean=pl.col(f"{metric.id}:sum").sum() / pl.col(f"{metric.id}:n").sum()
    )
    return means.sort(KEY)["mean"].to_numpy()


def _cells(rows: pl.DataFrame, metric: Metric) -> Mapping[str, Any]:
    """Return sums and counts by cluster and repeat."""
    cells = (
        rows.drop_nulls(REPEAT)
        .group_by(CLUSTER, REPEAT)
        .agg(pl.col(f"{metric.id}:sum").sum(), pl.col(f"{metric.id}:n").sum())
        .sort(CLUSTER, REPEAT)
    )
    return {
        "sums": cells[f"{metric.id}:sum"].to_numpy(),
        "counts": cells[f"{metric.id}:n"].cast(pl.Float64).to_numpy(),
        "clusters": cells[CLUSTER].cast(pl.String).to_numpy(),
        "repeats": cells[REPEAT].cast(pl.String).to_numpy(),
    }
