"""Means and differences of means over clusters and over repeats: intervals and tests.

Rows of one dialogue depend on each other, so a dialogue (or another unit that the caller names) is
one cluster. A mean of rows is ``R = sum(s) / sum(n)`` over clusters with sums ``s`` and row counts
``n``. A cluster with one row is the ordinary case: then ``R`` is the sample mean, its interval the
t interval and the difference of two means Welch's or the paired t test.

Standard errors are cluster-robust: CR2 of Bell and McCaffrey (2002) for a mean, the delete-one
jackknife for a difference, both with Bell and McCaffrey's degrees of freedom under independent
rows. They are equal if all clusters have as many rows. With CR2, a difference of means in which one
dialogue has most of the rows was significant in 8 % of cases without a true one. Intervals of
bounded metrics are Wilson's score interval (1927) with the effective number of units
``R (1 - R) / variance`` and a quantile of t: they stay in the metric's range and have a width if
every unit has the same extreme value. A range with one end has the limit of that interval.
`benchmarks/coverage.py` measures the coverage of all of them.

No result depends on the order of the clusters. A number that cannot be computed is None with a
reason.

If every repeat has the same dialogues, the two are crossed: a value is ``mean + dialogue + repeat +
rest``. The variance of the mean is ``V_dialogues + V_repeats - V_rest``, each of the first two
cluster-robust over its own units, because both contain the rest (Cameron, Gelbach and Miller 2011,
with the rest in the place of their intersection, which is too large for few repeats).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fastscore.statistics.significance import Values, finite, gamma_ratio, noncentrality, t_inverse

LEVEL = 0.95
POWER = 0.8
"""The power that a smallest detectable difference or correlation refers to."""
LEAST_UNITS = 3
"""The fewest units with an interval or a test: two have one degree of freedom, so say nothing."""

Ends = tuple[float | None, float | None]
"""The smallest and the largest possible value, None without a limit."""
UNBOUNDED: Ends = (None, None)

EstimateReason = Literal["too_few_units", "zero_variance", "several_scales"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean or a difference of means over ``n_units`` clusters with a row; None without a row.

    ``reason`` is that of a missing interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    degrees_of_freedom: float | None = None
    n_units: int = 0
    reason: EstimateReason | None = None


@dataclass(frozen=True, slots=True)
class Clusters:
    """The sum of each cluster's values and their number; one without a row does not contribute."""

    sums: Values
    counts: Values

    @property
    def mean(self) -> float:
        """The mean over rows."""
        return float(self.sums.sum() / self.counts.sum())

    @property
    def shares(self) -> Values:
        """Each cluster's share of the rows, its leverage on the mean."""
        return np.asarray(self.counts / self.counts.sum())

    @property
    def deletions(self) -> Values:
        """By how much the mean falls without each cluster, for the jackknife."""
        return deletions_of(self.sums, self.counts)

    @property
    def is_present(self) -> npt.NDArray[np.bool_]:
        """Which clusters have a row."""
        return np.asarray(self.counts > 0)

    def unit_values(self, units: npt.NDArray[np.bool_] | None = None) -> Values:
        """One value a cluster: their mean is the mean over rows, their spread its error.

        A cluster with one row has its own value, so effect sizes of dialogue metrics are the usual.
        Those of `units` count, by default those with a row.
        """
        kept = self.is_present if units is None else units
        residuals = (self.sums - self.mean * self.counts)[kept]
        return np.asarray(self.mean + residuals * kept.sum() / self.counts.sum())


def clustered_mean(
    sums: npt.ArrayLike, counts: npt.ArrayLike, ends: Ends = UNBOUNDED, *, level: float = LEVEL
) -> Estimate:
    """Return a mean over rows with an interval that takes clusters as the units."""
    totals, numbers = finite(sums, "sums"), finite(counts, "counts")
    (found,) = clustered_means(totals, numbers, (0, totals.size), ends, level=level)
    if found.value is None and found.n_units:  # too few for an interval
        return replace(found, value=Clusters(totals, numbers).mean)
    return found


def clustered_means(
    sums: npt.ArrayLike,
    counts: npt.ArrayLike,
    bounds: Sequence[int],
    ends: Ends = UNBOUNDED,
    *,
    level: float = LEVEL,
) -> list[Estimate]:
    """Return the estimates of `clustered_mean` for many groups of clusters."""
    totals, numbers = finite(sums, "sums"), finite(counts, "counts")
    if totals.size != numbers.size:
        raise ValueError(f"sums has {totals.size} values and counts {numbers.size}")
    places = np.asarray(bounds, np.int64)
    sizes = places[1:] - places[:-1]
    groups = np.repeat(np.arange(sizes.size), sizes)
    kept = numbers > 0
    totals, numbers, groups = totals[kept], numbers[kept], groups[kept]
    # in an order that depends on the clusters' numbers alone
    order = np.lexsort((totals, numbers, groups))
    totals, numbers = totals[order], numbers[order]
    n_units = np.bincount(groups, minlength=sizes.size)
    begins = np.cumsum(n_units) - n_units
    found = [Estimate(None, n_units=n, reason="too_few_units") for n in n_units.tolist()]
    # groups of as many clusters are computed side by side
    for n in np.unique(n_units[n_units >= LEAST_UNITS]).tolist():
        alike = np.flatnonzero(n_units == n)
        chosen = begins[alike, None] + np.arange(n)
        of_units, counts_of = totals[chosen], numbers[chosen]
        rows = counts_of.sum(axis=1, keepdims=True)
        means = of_units.sum(axis=1) / rows[:, 0]
        variances = (_influences(of_units, counts_of) ** 2).sum(axis=1)
        moments = np.column_stack([means, variances, satterthwaite_degrees(counts_of / rows)])
        for place, (mean, variance, degrees) in zip(alike.tolist(), moments.tolist(), strict=True):
            found[place] = _bounded(mean, variance, degrees, n, ends, level)
    return found


def _influences(sums: Values, counts: Values) -> Values:
    """Return what each cluster of each row adds to the error of the mean."""
    rows = counts.sum(axis=-1, keepdims=True)
    residuals = sums - sums.sum(axis=-1, keepdims=True) / rows * counts
    # rounding leaves residuals of 1e-17 where all values are equal
    residuals[np.abs(residuals) <= 1e-14 * np.abs(sums)] = 0.0
    return np.asarray(residuals / rows / np.sqrt(_one_minus(counts / rows)))


def deletions_of(sums: Values, counts: Values) -> Values:
    """Return by how much the mean of each row falls without each of its clusters."""
    shares = counts / counts.sum(axis=-1, keepdims=True)
    return np.asarray(_influences(sums, counts) / np.sqrt(_one_minus(shares)))


def clustered_difference(a: Clusters, b: Clusters, *, shared: bool) -> Estimate:
    """Return the difference of two means, ``mean b - mean a``, with its error: no interval."""
    n_units = _units(a, b, shared=shared)
    if not a.counts.sum() or not b.counts.sum():
        return Estimate(None, n_units=n_units, reason="too_few_units")
    value = b.mean - a.mean
    if n_units < LEAST_UNITS:
        return Estimate(value, n_units=n_units, reason="too_few_units")
    variance, degrees = _difference_variance(a, b, shared=shared)
    if variance == 0.0:
        return Estimate(value, None, None, 0.0, None, n_units, "zero_variance")
    return Estimate(value, None, None, math.sqrt(variance), degrees, n_units)


def satterthwaite_degrees(shares: Values) -> Values:
    """Return Bell and McCaffrey's degrees of freedom of a mean over each row of clusters."""
    left = _one_minus(shares)
    squares, fourths = (shares**2).sum(axis=-1), (shares**4 / left**2).sum(axis=-1)
    return np.asarray(1.0 / (squares - fourths + (shares**2 / left).sum(axis=-1) ** 2))


def t_quantile(degrees_of_freedom: float, level: float = LEVEL) -> float:
    """Return the quantile of t that leaves ``(1 - level) / 2`` above it."""
    return -t_inverse(degrees_of_freedom, (1.0 - level) / 2)


def hedges_g(a: Clusters, b: Clusters, *, paired: bool) -> tuple[float, float, float] | None:
    """Return Hedges' g of two sides and its interval from the noncentral t distribution."""
    if _units(a, b, shared=paired) < LEAST_UNITS:
        return None
    difference = b.mean - a.mean
    if paired:
        either = a.is_present | b.is_present
        spread = b.unit_values(either) - a.unit_values(either)
        degrees, scale = spread.size - 1, math.sqrt(spread.size)
        deviation = float(spread.std(ddof=1))
    else:
        first, second = a.unit_values(), b.unit_values()
        n, m = first.size, second.size
        degrees, scale = n + m - 2, math.sqrt(n * m / (n + m))
        pooled = (first.var(ddof=1) * (n - 1) + second.var(ddof=1) * (m - 1)) / degrees
        deviation = math.sqrt(pooled)
    if deviation <= 1e-12 * max(1.0, abs(difference)):
        return None
    t = difference / deviation * scale
    unbiased = math.sqrt(2 / degrees) * gamma_ratio((degrees - 1) / 2)
    tail = (1 - LEVEL) / 2
    low, high = (noncentrality(degrees, p, t) for p in (1 - tail, tail))
    return tuple(float(unbiased * end / scale) for end in (t, low, high))  # type: ignore[return-value]


def _units(a: Clusters, b: Clusters, *, shared: bool) -> int:
    if shared:
        return int((a.is_present | b.is_present).sum())
    return int(min(a.is_present.sum(), b.is_present.sum()))


def _difference_variance(a: Clusters, b: Clusters, *, shared: bool) -> tuple[float, float]:
    """Return the jackknife variance of a difference of two means and its degrees of freedom."""
    if shared:
        first, second = a.deletions, b.deletions
        deletions = second - first
        largest = max(np.abs(first).max(), np.abs(second).max())
        deletions[np.abs(deletions) <= 1e-12 * largest] = 0.0
        degrees = float(satterthwaite_degrees((a.shares + b.shares) / 2))
        return _jackknife(deletions, _units(a, b, shared=True)), degrees
    variances = [_jackknife(side.deletions, int(side.is_present.sum())) for side in (a, b)]
    if not any(variances):
        return 0.0, math.nan
    # Welch and Satterthwaite: the larger error counts for more
    total = sum(variances)
    inverse = sum(
        (variance / total) ** 2 / float(satterthwaite_degrees(side.shares))
        for variance, side in zip(variances, (a, b), strict=True)
    )
    return total, 1 / inverse


def _half_bounded(mean: float, half: float, ends: Ends) -> tuple[float, float]:
    """Return the interval of a range with at most one end: then the variance grows away from it.

    This is the limit of Wilson's interval as the other end goes to infinity.
    """
    minimum, maximum = ends
    if minimum is not None and maximum is None and mean > minimum:
        low, high = _half_bounded(-mean, half, (None, -minimum))
        return -high, -low
    if minimum is not None or maximum is None or mean >= maximum:
        return mean - half, mean + half
    # (mean - m)^2 = half^2 (maximum - m) / (maximum - mean), solved for m
    share = half**2 / (2 * (maximum - mean))
    reach = math.sqrt(half**2 + share**2)
    return mean - share - reach, mean - share + reach


def _jackknife(deletions: Values, n_units: int) -> float:
    return float((deletions**2).sum()) * (n_units - 1) / n_units


def _one_minus(shares: Values) -> Values:
    """Return 1 - share; a cluster with all rows has no error to correct."""
    return np.asarray(np.where(shares < 1.0, 1.0 - shares, 1.0))


def _bounded(
    mean: float, variance: float, degrees: float, n_units: int, ends: Ends, level: float
) -> Estimate:
    """Return the interval of a mean: Wilson's in a range that has two ends, else that of t."""
    error, (minimum, maximum) = math.sqrt(variance), ends
    quantile = t_quantile(degrees, level)
    if minimum is None or maximum is None or not minimum <= mean <= maximum:
        if variance == 0.0:
            return Estimate(mean, None, None, 0.0, degrees, n_units, "zero_variance")
        low, high = _half_bounded(mean, quantile * error, ends)
        return Estimate(mean, low, high, error, degrees, n_units)
    width = maximum - minimum
    place = (mean - minimum) / width
    spread = place * (1.0 - place)
    if variance == 0.0 and spread > 0.0:
        return Estimate(mean, None, None, 0.0, degrees, n_units, "zero_variance")
    effective = spread * width**2 / variance if variance > 0.0 else float(n_units)
    # a mean that differs from an end only by rounding leaves no spread
    effective = effective if effective > 0.0 else float(n_units)
    squared = quantile**2
    centre = (place + squared / (2 * effective)) / (1 + squared / effective)
    deviation = math.sqrt(spread / effective + squared / (4 * effective**2))
    half = quantile / (1 + squared / effective) * deviation
    low = minimum + width * max(0.0, min(centre - half, place))
    high = minimum + width * min(1.0, max(centre + half, place))
    return Estimate(mean, low, high, error, degrees, n_units)


Codes = npt.NDArray[np.int64]


def variance_components(
    values: Values, dialogues: Codes, repeats: Codes
) -> tuple[float | None, float | None, float | None]:
    """Estimate the variances between dialogues, between repeats and of the rest.

    Half the mean squared difference of two values is, in expectation, ``repeat + rest`` for one
    dialogue in two repeats, ``dialogue + rest`` for two dialogues in one repeat, and the sum of all
    three for values that share neither. In a balanced design this is the analysis of variance.
    """
    if not values.size:
        return None, None, None
    shares = [_half_squares(values, codes) for codes in (dialogues, repeats)]
    whole, pairs = _half_squares(values, np.zeros(values.size, np.int64))
    whole, pairs = whole - sum(each for each, _ in shares), pairs - sum(n for _, n in shares)
    if not pairs or not all(n for _, n in shares):
        return None, None, None
    in_dialogue, in_repeat = (each / n for each, n in shares)
    apart = whole / pairs
    parts = apart - in_dialogue, apart - in_repeat, in_dialogue + in_repeat - apart
    return tuple(max(0.0, float(part)) for part in parts)  # type: ignore[return-value]


def repeated_difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> Estimate:
    """Return the difference of two means, with an error for new dialogues and new repeats."""
    sides = _by_cluster(first, second)
    shared = bool((sides[0].is_present & sides[1].is_present).any())
    found = clustered_difference(*sides, shared=shared)
    if not found.standard_error or found.degrees_of_freedom is None:
        return found
    of_dialogues = found.standard_error**2
    variance, uncertain = of_dialogues, of_dialogues**2 / found.degrees_of_freedom
    for cells in (first, second):
        of_repeats, rest, degrees = _repeat_variance(cells)
        variance += of_repeats - rest
        uncertain += of_repeats**2 / degrees
    variance = max(variance, of_dialogues)
    error, degrees = math.sqrt(variance), variance**2 / uncertain
    return replace(found, standard_error=error, degrees_of_freedom=degrees)


def _repeat_variance(cells: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the variance of a side's mean over repeats, that of the rest, and its degrees."""
    labels, repeats = np.unique(cells["repeats"], return_inverse=True)
    _, clusters = np.unique(cells["clusters"], return_inverse=True)
    if labels.size < 2:
        return 0.0, 0.0, 1.0
    of_repeats = _clusters(repeats, cells, labels.size)
    shares = cells["counts"] / cells["counts"].sum()
    rest = variance_components(cells["sums"] / cells["counts"], clusters, repeats)[2] or 0.0
    variance = float((_influences(of_repeats.sums, of_repeats.counts) ** 2).sum())
    return (
        variance,
        min(variance, rest * float((shares**2).sum())),
        float(satterthwaite_degrees(of_repeats.shares)),
    )


def _by_cluster(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Clusters]:
    labels = np.unique(np.concatenate([first["clusters"], second["clusters"]]))
    return [
        _clusters(np.searchsorted(labels, cells["clusters"]), cells, labels.size)
        for cells in (first, second)
    ]


def _clusters(codes: Codes, cells: Mapping[str, Any], n_clusters: int) -> Clusters:
    sums, counts = (
        np.bincount(codes, cells[part], n_clusters).astype(np.float64)
        for part in ("sums", "counts")
    )
    return Clusters(sums, counts)


def _half_squares(values: Values, groups: Codes) -> tuple[float, int]:
    """Add up half the squared differences of ordered pairs within groups, and count the pairs."""
    sizes = np.bincount(groups)
    centred = values - values.mean()
    totals, squares = np.bincount(groups, centred), np.bincount(groups, centred**2)
    return float((sizes * squares - totals**2).sum()), int((sizes * (sizes - 1)).sum())
