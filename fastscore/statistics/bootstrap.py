"""Bootstrap of means by cluster: whole dialogues are drawn again, never single rows.

Rows of one dialogue depend on each other. Every sample has a generator of its own, so the means are
a function of the clusters and the seed, to the last bit. They do not depend on the block size, the
number of threads or the other columns.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from fastscore.options import available_processors
from fastscore.statistics import SAMPLES
from fastscore.statistics.samples import LEAST_EXPONENT, Values

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

    return _resample(means, clusters, samples=samples, seed=seed, stream=stream)


def _resample(
    estimator: Estimator, clusters: int, *, samples: int, seed: int, stream: int
) -> Values:
    """Draw clusters and estimate, in blocks that fit the cache, on all processors."""
    block = max(1, _BLOCK_VALUES // max(1, clusters))
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
