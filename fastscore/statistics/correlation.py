"""Rank correlations over plain arrays, with tests and intervals by cluster."""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy  # whose parts are imported when they are first used: `stats` takes half a second

from fastscore.statistics.bootstrap import (
    SAMPLES,
    SEED,
    number_clusters,
    percentile_interval,
    quotients,
    resample_clusters,
)
from fastscore.statistics.samples import Values, is_constant, paired
from fastscore.statistics.significance import LEVEL, Interval, Significance

_LARGEST_PAIR_TABLE = 2_000


def spearman(a: npt.ArrayLike, b: npt.ArrayLike) -> Significance:
    """Return Spearman's rank correlation rho of pairs, ties by mean ranks, with its p-value.

    Parameters
    ----------
    a, b
        Shape (n,) each; position i of both is one pair.

    Returns
    -------
    Significance
        too_few_values below three pairs; zero_variance where either side is constant.
    """
    return _correlation(scipy.stats.spearmanr, a, b)


def kendall(a: npt.ArrayLike, b: npt.ArrayLike) -> Significance:
    """Return Kendall's rank correlation tau-b of pairs, with its p-value.

    Parameters and reasons are those of `spearman`.
    """
    return _correlation(scipy.stats.kendalltau, a, b)


def bootstrap_spearman(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
    level: float = LEVEL,
) -> Interval:
    """Return Spearman's rho of pairs and its percentile interval over resampled clusters.

    Parameters
    ----------
    a, b
        Shape (n,) each, finite: the pairs.
    clusters
        Shape (n,): each pair's cluster, integers or text.
    samples
        How many times clusters are drawn with replacement, as many as there are.
    seed
        Seed of the draws.
    level
        The interval's coverage.

    Returns
    -------
    Interval
        No rho where `spearman` has none. Samples in which a side is constant have none either and
        are left out; no ends for fewer than two clusters, or where no sample remains.
    """
    first, second = paired(a, b)
    clustered, codes = number_clusters(clusters, first.size)
    found = spearman(first, second)
    if found.statistic is None:
        return Interval(None, None, None, found.reason)
    estimator = partial(
        _weighted_spearman, codes=codes, first=_rank_plan(first), second=_rank_plan(second)
    )
    resampled = resample_clusters(estimator, clustered, first.size, samples=samples, seed=seed)
    return percentile_interval(found.statistic, resampled, clusters=clustered, level=level)


def bootstrap_kendall(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
    level: float = LEVEL,
) -> Interval:
    """Return Kendall's tau-b of pairs and its percentile interval over resampled clusters.

    Parameters and nulls are those of `bootstrap_spearman`.
    """
    first, second = paired(a, b)
    clustered, codes = number_clusters(clusters, first.size)
    found = kendall(first, second)
    if found.statistic is None:
        return Interval(None, None, None, found.reason)
    estimator = partial(_weighted_kendall, codes=codes, first=first, second=second)
    resampled = resample_clusters(estimator, clustered, first.size, samples=samples, seed=seed)
    return percentile_interval(found.statistic, resampled, clusters=clustered, level=level)


def _correlation(measure: Any, a: npt.ArrayLike, b: npt.ArrayLike) -> Significance:
    first, second = paired(a, b)
    if first.size < 3:
        return Significance(None, None, reason="too_few_values")
    if is_constant(first) or is_constant(second):
        return Significance(None, None, reason="zero_variance")
    order = np.lexsort((second, first))
    result = measure(first[order], second[order])
    return Significance(float(result.statistic), float(result.pvalue))


_RankPlan = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _rank_plan(values: Values) -> _RankPlan:
    """Return the ascending order of values, where runs of equal ones start, each value's run."""
    _, runs, counts = np.unique(values, return_inverse=True, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(counts[:-1])]).astype(np.int64)
    return np.argsort(runs, kind="stable"), starts, runs


def _weighted_spearman(
    draws: Values, *, codes: npt.NDArray[np.int64], first: _RankPlan, second: _RankPlan
) -> Values:
    """Correlate the mean ranks of rows that stand in a sample as often as their cluster."""
    weights = draws[:, codes]
    middle = (weights.sum(axis=1, keepdims=True) + 1) / 2
    x, y = (_mean_ranks(weights, plan) - middle for plan in (first, second))
    spread = np.sqrt((weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1))
    products = (weights * x * y).sum(axis=1)
    return quotients(products, spread)


def _mean_ranks(weights: Values, plan: _RankPlan) -> Values:
    order, starts, runs = plan
    in_run = np.add.reduceat(weights[:, order], starts, axis=1)
    last = np.cumsum(in_run, axis=1)
    return np.asarray((last - in_run / 2 + 0.5)[:, runs])


def _weighted_kendall(
    draws: Values, *, codes: npt.NDArray[np.int64], first: Values, second: Values
) -> Values:
    """Correlate the order of rows that stand in a sample as often as their cluster."""
    if first.size > _LARGEST_PAIR_TABLE:
        return _repeated_kendall(draws.astype(np.int64), codes, first, second)
    weights = draws[:, codes]
    x, y = (np.sign(side[:, None] - side) for side in (first, second))

    def over_pairs(table: Values) -> Values:
        return np.asarray(((weights @ table) * weights).sum(axis=1))

    return quotients(over_pairs(x * y), np.sqrt(over_pairs(x * x) * over_pairs(y * y)))


def _repeated_kendall(
    draws: npt.NDArray[np.int64], codes: npt.NDArray[np.int64], first: Values, second: Values
) -> Values:
    """Correlate written-out samples, where a table of all pairs would be slower."""
    estimates = np.full(len(draws), np.nan)
    for sample, drawn in enumerate(draws):
        x, y = (np.repeat(side, drawn[codes]) for side in (first, second))
        if np.ptp(x) > 0 and np.ptp(y) > 0:
            estimates[sample] = scipy.stats.kendalltau(x, y, method="asymptotic").statistic
    return estimates
