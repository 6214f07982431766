"""Which metrics differ between groups of units: an omnibus test, then pairs.

For each metric and label an omnibus test asks whether all groups have one mean. Holm's correction
runs over these tests. Only if one is significant are its pairs of groups compared, corrected over
the pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.results.defined_rows import UNIT, Part
from fastscore.statistics.clustered import (
    LEAST_UNITS,
    Clusters,
    Estimate,
    clustered_difference,
    t_p_value,
)
from fastscore.statistics.permutation import omnibus_test, permutation_test
from fastscore.statistics.samples import Values
from fastscore.statistics.significance import holm
from fastscore.suites.declarations import Metric

ALPHA = 0.05
MOST_PAIRED = 60
"""The most groups whose pairs are compared."""
FIRST_DRAWS, PROMISING = 199, 0.1
"""A first look at the omnibus test: only a p up to this is worth all permutations."""


@dataclass(frozen=True, slots=True)
class GroupTest:
    """A metric by a label, as arrays over units.

    Parameters
    ----------
    metric, where, label
        What is tested: the metric, over which of its rows, and by which label.
    names
        The label's values with at least three units, ascending.
    groups
        int64 (n,): the place in `names` of each unit.
    units
        int64 (n,): the number of each unit. Units may be in several groups.
    sums, counts
        float64 (n,): the sum of each unit's values and their number, above 0.
    shares_units
        Whether a unit is in several groups.
    """

    metric: Metric
    where: str
    label: str
    names: tuple[str, ...]
    groups: npt.NDArray[np.int64]
    units: npt.NDArray[np.int64]
    sums: Values
    counts: Values
    shares_units: bool


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """A test that is significant after correction.

    Parameters
    ----------
    test
        What was tested.
    p
        The omnibus test's p-value, corrected over all tests.
    low, high
        The names of the groups of the clearest pair; None if no pair is significant by itself.
    means
        Their means.
    difference
        The difference of the two means.
    pair_p
        Its p-value, corrected over all pairs.
    """

    test: GroupTest
    p: float
    low: str | None = None
    high: str | None = None
    means: tuple[float, float] | None = None
    difference: Estimate | None = None
    pair_p: float | None = None


def group_tests(parts: Sequence[Part], labels: Sequence[str]) -> list[GroupTest]:
    """Return what can be tested: parts with two groups or more of at least three units."""
    found = []
    for part in parts:
        for label in labels:
            rows = (
                part.units.drop_nulls(label)
                .group_by(UNIT, label, maintain_order=True)
                .agg(pl.col("sum", "n").sum())
            )
            rows = rows.filter(pl.len().over(label) >= LEAST_UNITS).sort(label, UNIT)
            names = rows[label].unique(maintain_order=True)
            if names.len() < 2:
                continue
            found.append(
                GroupTest(
                    metric=part.metric,
                    where=part.where,
                    label=label,
                    names=tuple(names),
                    groups=rows[label].rle_id().to_numpy().astype(np.int64),
                    units=rows[UNIT].rank("dense").to_numpy().astype(np.int64),
                    sums=rows["sum"].to_numpy(),
                    counts=rows["n"].cast(pl.Float64).to_numpy(),
                    shares_units=rows[UNIT].n_unique() < rows.height,
                )
            )
    return found


def group_differences(
    tests: Sequence[GroupTest], *, alpha: float = ALPHA, seed: int = 0
) -> list[GroupDifference]:
    """Return the tests that are significant after Holm's correction, the largest effects first.

    Parameters
    ----------
    tests
        One family of tests.
    alpha
        The level of the omnibus tests together, and of the pairs of each.
    seed
        Seed of the permutations.
    """
    corrected = holm([_omnibus_p(test, seed) for test in tests])
    found = [
        _clearest_pair(test, p, alpha)
        for test, p in zip(tests, corrected, strict=True)
        if p is not None and p < alpha
    ]
    return sorted(found, key=lambda one: (one.difference is None, -_explained(one.test)))


def _omnibus_p(test: GroupTest, seed: int) -> float | None:
    """Return the p of a short permutation test, or of a long one if the short one is promising.

    A p above the threshold stays as it is, so errors are no more frequent than with the long one.
    """
    how: dict[str, Any] = {"blocks": test.units if test.shares_units else None, "seed": seed}
    arguments = test.sums, test.counts, test.groups
    p = omnibus_test(*arguments, **how, draws=FIRST_DRAWS)
    if p is None or p > PROMISING:
        return p
    return omnibus_test(*arguments, **{**how, "seed": seed + 1})


def _clearest_pair(test: GroupTest, p: float, alpha: float) -> GroupDifference:
    """Find the largest difference among the pairs that are significant after correction."""
    if len(test.names) > MOST_PAIRED:
        return GroupDifference(test, p)
    pairs = list(combinations(range(len(test.names)), 2))
    sides = [_sides(test, *pair) for pair in pairs]
    shared = test.shares_units
    bounds: dict[str, Any] = {"minimum": test.metric.minimum, "maximum": test.metric.maximum}
    estimates = [clustered_difference(a, b, shared=shared, **bounds) for a, b in sides]
    corrected = holm(
        [
            t_p_value(estimate)
            if estimate.standard_error
            else permutation_test(a, b, shared=shared).p_value
            for estimate, (a, b) in zip(estimates, sides, strict=True)
        ]
    )
    clear = [
        (abs(estimate.value), place)
        for place, (estimate, pair_p) in enumerate(zip(estimates, corrected, strict=True))
        if pair_p is not None and pair_p < alpha and estimate.value
    ]
    if not clear:
        return GroupDifference(test, p)
    _, place = max(clear, key=lambda one: (one[0], -one[1]))
    pair, (a, b), estimate = pairs[place], sides[place], estimates[place]
    if estimate.value is not None and estimate.value < 0:
        pair, a, b = pair[::-1], b, a
        estimate = clustered_difference(a, b, shared=shared, **bounds)
    low, high = (test.names[group] for group in pair)
    return GroupDifference(test, p, low, high, (a.mean, b.mean), estimate, corrected[place])


def _sides(test: GroupTest, first: int, second: int) -> tuple[Clusters, Clusters]:
    """Return two groups; if units are in several, position i of both is one unit."""
    chosen = [np.flatnonzero(test.groups == group) for group in (first, second)]
    if not test.shares_units:
        a, b = (Clusters(test.sums[rows], test.counts[rows]) for rows in chosen)
        return a, b
    units = np.unique(test.units[np.concatenate(chosen)])
    sides = []
    for rows in chosen:
        sums, counts = np.zeros(units.size), np.zeros(units.size)
        places = np.searchsorted(units, test.units[rows])
        sums[places], counts[places] = test.sums[rows], test.counts[rows]
        sides.append(Clusters(sums, counts))
    return sides[0], sides[1]


def _explained(test: GroupTest) -> float:
    """Return the share of the units' variation that lies between the groups."""
    means = test.sums / test.counts
    spread = ((means - means.mean()) ** 2).sum()
    sizes = np.bincount(test.groups)
    between = (sizes * (np.bincount(test.groups, means) / sizes - means.mean()) ** 2).sum()
    return float(between / spread) if spread > 0 else 0.0
