"""Percentile bootstrap by cluster: whole dialogues are drawn again, never single rows.

Rows of one dialogue depend on each other, so an interval from single rows would be too narrow.
Clusters are numbered by their sorted labels and every sample has a generator of its own: an
interval is a function of the values, the labels and the seed, to the last bit, and not of the rows'
order, the block size, the number of threads or what else is resampled with them.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fastscore.processors import available_processors
from fastscore.statistics.samples import LEAST_EXPONENT, Values
from fastscore.statistics.significance import LEVEL, Interval

SAMPLES = 2_000
SEED = 0
_BLOCK_VALUES = 2_000_000
_KEPT_VALUES = 1_000_000

Estimator = Callable[[Values], Values]
"""From draws, shape (samples, clusters), how often each was drawn, to estimates (samples, ...)."""


def resample_means(
    sums: Values, counts: Values, *, samples: int = SAMPLES, seed: int = SEED, stream: int = 0
) -> Values:
    """Return the means of several columns over clusters that are drawn again, the same for all.

    Parameters
    ----------
    sums, counts
        Shape (clusters, columns): each cluster's sum of values and their number, in the order of
        the clusters' sorted labels.
    samples, seed
        How many times clusters are drawn with replacement, as many as there are, and the seed.
    stream
        Tells apart draws that must be independent of each other under one seed.

    Returns
    -------
    ndarray
        Shape (samples, columns); NaN where a sample has no value of a column. Each is a sum that
        is exact up to its own rounding, over a number of values.
    """
    clusters, columns = sums.shape
    high, low = _exact_parts(sums)
    parts = np.hstack([high, low, counts])

    def means(draws: Values) -> Values:
        totals = draws @ parts
        of_high, of_low, drawn = (totals[:, k * columns :][:, :columns] for k in range(3))
        return quotients(of_high + of_low, drawn)

    return resample_clusters(means, clusters, clusters, samples=samples, seed=seed, stream=stream)


def percentile_interval(
    value: float, resampled: Values, *, clusters: int, level: float = LEVEL
) -> Interval:
    """Return an estimate with the percentiles of its resampled values, NaN left out."""
    usable = resampled[~np.isnan(resampled)]
    if clusters < 2 or not usable.size:
        return Interval(value, None, None, "too_few_values")
    low, high = np.quantile(usable, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))


def number_clusters(clusters: npt.ArrayLike, rows: int) -> tuple[int, npt.NDArray[np.int64]]:
    """Return how many clusters there are, and each row's, numbered by their sorted labels."""
    labels = np.asarray(clusters)
    if labels.shape != (rows,):
        raise ValueError(f"clusters has shape {labels.shape}, expected ({rows},)")
    distinct, codes = np.unique(labels, return_inverse=True)
    return distinct.size, codes.astype(np.int64)


def resample_clusters(
    estimator: Estimator, clusters: int, rows: int, *, samples: int, seed: int, stream: int = 0
) -> Values:
    """Draw clusters and estimate, in blocks that fit the cache, on all processors.

    Parameters
    ----------
    estimator
        From draws, shape (samples, clusters), to estimates.
    clusters, rows
        The number of clusters, and of rows: what a block's size follows from.
    samples, seed, stream
        As in `resample_means`.
    """
    block = max(1, _BLOCK_VALUES // max(clusters, rows))
    small = samples * clusters <= _KEPT_VALUES
    kept = _kept_draws(samples, clusters, seed, stream) if small else None

    def estimate(start: int) -> Values:
        stop = min(start + block, samples)
        if kept is not None:
            return estimator(kept[start:stop])
        return estimator(_draw(range(start, stop), clusters, seed, stream))

    with ThreadPoolExecutor(available_processors()) as pool:
        return np.concatenate(list(pool.map(estimate, range(0, samples, block))))


def _draw(rows: range, clusters: int, seed: int, stream: int) -> Values:
    """Return how often each cluster is drawn in each of the samples, whatever others there are."""
    draws = np.empty((len(rows), clusters))
    for place, row in enumerate(rows):
        drawn = np.random.default_rng((seed, stream, row)).integers(0, clusters, size=clusters)
        draws[place] = np.bincount(drawn, minlength=clusters)
    return draws


@lru_cache(maxsize=4)
def _kept_draws(samples: int, clusters: int, seed: int, stream: int) -> Values:
    """Return all draws of a small bootstrap: an analysis asks for the same ones again and again."""
    draws = _draw(range(samples), clusters, seed, stream)
    draws.flags.writeable = False
    return draws


def _exact_parts(sums: Values) -> tuple[Values, Values]:
    """Part each column in two that a matrix product adds up without rounding, in any order.

    Each part is a whole number of at most `bits` bits times a power of two, and a sample draws as
    many clusters as there are: no partial sum has more than 53 bits. What is below both parts,
    2^(-2 bits) of the column's largest value, is rounded off.
    """
    bits = 52 - len(sums).bit_length()
    largest = np.abs(sums).max(axis=0, initial=0.0)
    exponents = np.maximum(np.frexp(largest)[1] - bits, LEAST_EXPONENT + bits)
    grid = np.ldexp(1.0, exponents)
    high = np.rint(sums / grid) * grid
    fine_grid = np.ldexp(grid, -bits)
    return high, np.rint((sums - high) / fine_grid) * fine_grid


def quotients(numerators: Values, denominators: Values) -> Values:
    """Return numerators / denominators; NaN where a denominator is not positive."""
    undefined = np.full(denominators.shape, np.nan)
    return np.asarray(np.divide(numerators, denominators, out=undefined, where=denominators > 0))
