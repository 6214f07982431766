"""Bootstrap of means by cluster, and permutation tests of their differences.

Rows of one dialogue depend on each other. Every sample has a generator of its own, so the means are
a function of the clusters and the seed, to the last bit. They do not depend on the block size, the
number of threads or the other columns.

Every test is two-sided and studentised: the statistic is the difference over its standard error in
each rearrangement, which keeps the level if variances differ (Janssen 1997; Chung and Romano 2013).
If there are at most `MOST_EXACT` rearrangements, all of them count and the p-value is exact.
Otherwise `DRAWS` are drawn with a seed, and ``p = (1 + hits) / (1 + draws)``.
"""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fastscore.options import available_processors
from fastscore.statistics import SAMPLES
from fastscore.statistics.clustered import LEAST_UNITS, Clusters
from fastscore.statistics.samples import LEAST_EXPONENT, Values
from fastscore.statistics.significance import chi_squared_above

SEED = 0
_BLOCK_VALUES = 2_000_000
_KEPT_VALUES = 1_000_000


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
    block = max(1, _BLOCK_VALUES // max(1, clusters))
    small = samples * clusters <= _KEPT_VALUES
    kept = _kept_draws(samples, clusters, seed, stream) if small else None

    def means(start: int) -> Values:
        rows = range(start, min(start + block, samples))
        drawn = _draw(rows, clusters, seed, stream) if kept is None else kept[start : rows.stop]
        totals = drawn @ parts
        of_high, of_low, n = (totals[:, k * columns :][:, :columns] for k in range(3))
        return quotients(of_high + of_low, n)

    # blocks fit the cache
    with ThreadPoolExecutor(available_processors()) as pool:
        return np.concatenate(list(pool.map(means, range(0, samples, block))))


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


MOST_EXACT = 10_000
DRAWS = 9_999
MOST_SHUFFLED = 2_000
_CLOSE = 1e-9
"""Statistics within this share of the observed one are equal to it."""
_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class Permutation:
    """The outcome of a permutation test.

    Parameters
    ----------
    p_value
        The two-sided p; None for fewer than three units or without variation.
    is_exact
        Whether every rearrangement was counted.
    """

    p_value: float | None
    is_exact: bool


def rearrangements(a: Clusters, b: Clusters, *, shared: bool) -> int:
    """Return how many ways there are to swap pairs, or to deal the units to the sides."""
    if shared:
        return int(2 ** int(((a.counts > 0) | (b.counts > 0)).sum()))
    n, m = int((a.counts > 0).sum()), int((b.counts > 0).sum())
    return math.comb(n + m, n)


def permutation_test(a: Clusters, b: Clusters, *, shared: bool, seed: int = 0) -> Permutation:
    """Test whether two sides have one mean, by swapping pairs or dealing units anew.

    Parameters
    ----------
    a, b, shared
        As in `fastscore.statistics.clustered.clustered_difference`: sides with shared clusters swap
        them, independent sides deal theirs anew.
    seed
        Seed of the rearrangements, if not all of them are counted.
    """
    if shared:
        kept = (a.counts > 0) | (b.counts > 0)
        a, b = (Clusters(side.sums[kept], side.counts[kept]) for side in (a, b))
        n_units = int(kept.sum())
    else:
        a, b = (
            Clusters(side.sums[side.counts > 0], side.counts[side.counts > 0]) for side in (a, b)
        )
        n_units = min(a.counts.size, b.counts.size)
    if n_units < LEAST_UNITS:
        return Permutation(None, False)
    exact = rearrangements(a, b, shared=shared) <= MOST_EXACT
    moves = _swaps(n_units, seed, exact) if shared else _deals(a, b, seed, exact)
    block = max(1, _AT_ONCE // moves.shape[1])
    statistic = _swapped_t if shared else _dealt_t
    found = np.concatenate(
        [statistic(moves[start : start + block], a, b) for start in range(0, len(moves), block)]
    )
    observed = float(statistic(_unmoved(a, b, shared=shared), a, b)[0])
    if math.isnan(observed):
        return Permutation(None, exact)
    # without variation a rearrangement has no t: it is as far from 0 as can be, unless it is 0
    hits = int((found >= observed * (1 - _CLOSE)).sum())
    p_value = hits / len(found) if exact else (1 + hits) / (1 + len(found))
    return Permutation(p_value, exact)


def omnibus_test(
    sums: Values,
    counts: Values,
    groups: npt.NDArray[np.int64],
    blocks: npt.NDArray[np.int64] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> float | None:
    """Test whether several groups have one mean, by permuting the groups of units.

    The statistic is ``sum over groups of (T - R N)^2 / N`` with a group's sum T, its rows N and the
    mean R of all: the sum of squares between groups. Above `MOST_SHUFFLED` units without blocks the
    limit of its permutation distribution is used, that of chi-square.

    Parameters
    ----------
    sums, counts
        float64 (n,): each unit's sum of values and their number, above 0.
    groups
        int64 (n,): each unit's group, from 0.
    blocks
        int64 (n,): units of one block (a dialogue in several conditions) exchange their groups
        among themselves only. Without blocks all units exchange theirs.
    draws, seed
        How many permutations are drawn, and their seed.

    Returns
    -------
    float or None
        ``(1 + hits) / (1 + draws)``; None for fewer than two groups with three units each or if
        all units are equal.
    """
    sizes = np.bincount(groups)
    if (sizes >= LEAST_UNITS).sum() < 2:
        return None
    residuals = sums - sums.sum() / counts.sum() * counts
    if np.abs(residuals).max() <= 1e-12 * max(1.0, np.abs(sums).max()):
        return None
    order = np.lexsort((groups, sums, counts) if blocks is None else (groups, sums, counts, blocks))
    residuals, counts, groups = residuals[order], counts[order], groups[order]
    totals, rows = (np.bincount(groups, of_units, sizes.size) for of_units in (residuals, counts))
    present = sizes > 0
    observed = float((totals[present] ** 2 / rows[present]).sum())
    if blocks is None and order.size > MOST_SHUFFLED:
        scale = residuals.var(ddof=1) / counts.mean()
        return chi_squared_above(int(present.sum()) - 1, observed / scale)
    # integers separate the blocks, random fractions shuffle within them
    keys = np.zeros(order.size)
    if blocks is not None:
        keys = np.unique(blocks[order], return_inverse=True)[1].astype(np.float64)
    is_in = np.eye(sizes.size)[groups][:, present]
    generator = np.random.default_rng(seed)
    at_once = max(1, _AT_ONCE // order.size)
    hits = 0
    for start in range(0, draws, at_once):
        drawn = generator.random((min(at_once, draws - start), order.size))
        moved = np.argsort(keys + drawn, axis=1)
        between = ((residuals[moved] @ is_in) ** 2 / (counts[moved] @ is_in)).sum(axis=1)
        hits += int((between >= observed * (1 - _CLOSE)).sum())
    return (1 + hits) / (1 + draws)


def _unmoved(a: Clusters, b: Clusters, *, shared: bool) -> Values:
    if shared:
        return np.zeros((1, a.counts.size))
    return np.concatenate([np.ones(a.counts.size), np.zeros(b.counts.size)])[np.newaxis]


def _swaps(n_pairs: int, seed: int, exact: bool) -> Values:
    """Return which pairs are swapped, 1.0 for a swap, shape (rearrangements, pairs)."""
    if exact:
        numbers = np.arange(2**n_pairs)
        return np.asarray((numbers[:, np.newaxis] >> np.arange(n_pairs)) & 1, np.float64)
    generator = np.random.default_rng(seed)
    return generator.integers(0, 2, (DRAWS, n_pairs)).astype(np.float64)


def _deals(a: Clusters, b: Clusters, seed: int, exact: bool) -> Values:
    """Return which units go to the first side, 1.0 for these, shape (rearrangements, units)."""
    n, total = a.counts.size, a.counts.size + b.counts.size
    if exact:
        chosen = np.array(list(itertools.combinations(range(total), n)))
    else:
        generator = np.random.default_rng(seed)
        chosen = np.argsort(generator.random((DRAWS, total)), axis=1)[:, :n]
    deals = np.zeros((len(chosen), total))
    np.put_along_axis(deals, chosen, 1.0, axis=1)
    return deals


def _swapped_t(swaps: Values, a: Clusters, b: Clusters) -> Values:
    """Return |t| of the difference for each choice of swapped pairs."""
    sums = [side.sums + swaps * (other.sums - side.sums) for side, other in ((a, b), (b, a))]
    counts = [
        side.counts + swaps * (other.counts - side.counts) for side, other in ((a, b), (b, a))
    ]
    (mean_a, of_a), (mean_b, of_b) = (
        _deletions(totals, numbers) for totals, numbers in zip(sums, counts, strict=True)
    )
    return _studentised(mean_b - mean_a, ((of_b - of_a) ** 2).sum(axis=1))


def _dealt_t(deals: Values, a: Clusters, b: Clusters) -> Values:
    """Return |t| of the difference for each choice of the first side's units."""
    sums, counts = (np.concatenate(parts) for parts in ((a.sums, b.sums), (a.counts, b.counts)))
    (mean_a, of_a), (mean_b, of_b) = (
        _deletions(chosen * sums, chosen * counts) for chosen in (deals, 1.0 - deals)
    )
    n, m = a.counts.size, b.counts.size
    variances = (of_a**2).sum(axis=1) * (n - 1) / n + (of_b**2).sum(axis=1) * (m - 1) / m
    return _studentised(mean_b - mean_a, variances)


def _deletions(sums: Values, counts: Values) -> tuple[Values, Values]:
    """Return each rearrangement's mean, and how far it falls without each unit."""
    rows = counts.sum(axis=1, keepdims=True)
    means = sums.sum(axis=1, keepdims=True) / rows
    left = 1.0 - counts / rows
    left[left <= 0.0] = 1.0
    residuals = sums - means * counts
    residuals[np.abs(residuals) <= 1e-14 * np.abs(sums)] = 0.0
    return means[:, 0], residuals / rows / left


def _studentised(differences: Values, variances: Values) -> Values:
    """Return |difference| / error: infinity without an error, NaN without a difference too."""
    distances = np.abs(differences)
    still = variances <= 1e-28
    with np.errstate(divide="ignore", invalid="ignore"):
        found = distances / np.sqrt(np.where(still, 0.0, variances))
    return np.where(still & (distances <= 1e-14), np.nan, found)
