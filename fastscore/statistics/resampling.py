"""Permutation tests of differences of means, and a wild bootstrap of several means.

Rows of one dialogue depend on each other, so that clusters are swapped, dealt or signed as a whole.
Every test is studentised: the statistic is the difference over its standard error in each
rearrangement, which keeps the level of two sides if variances differ (Janssen 1997; Chung and
Romano 2013). All rearrangements count, so there may be at most `MOST_EXACT`.
"""

import itertools
import math

import numpy as np

from fastscore.statistics.clustered import LEAST_UNITS, Clusters, deletions_of
from fastscore.statistics.significance import Values

MOST_EXACT = 10_000
WILD_DRAWS = 999
_CLOSE = 1e-9
"""Statistics within this share of the observed one are equal to it."""
_AT_ONCE = 2_000_000


def rearrangements(a: Clusters, b: Clusters, *, shared: bool) -> int:
    """Return how many ways there are to swap pairs, or to deal the units to the sides."""
    if shared:
        return int(2 ** int((a.is_present | b.is_present).sum()))
    n, m = int(a.is_present.sum()), int(b.is_present.sum())
    return math.comb(n + m, n)


def permutation_test(a: Clusters, b: Clusters, *, shared: bool) -> float | None:
    """Test whether two sides have one mean, by swapping pairs or dealing units anew.

    There is no p of fewer than three units, or without variation.
    """
    kept = [a.is_present | b.is_present] * 2 if shared else [a.is_present, b.is_present]
    a, b = (
        Clusters(side.sums[own], side.counts[own]) for side, own in zip((a, b), kept, strict=True)
    )
    if min(a.counts.size, b.counts.size) < LEAST_UNITS:
        return None
    moves = _swaps(a.counts.size) if shared else _deals(a.counts.size, b.counts.size)
    block = max(1, _AT_ONCE // moves.shape[1])
    found = np.concatenate(
        [
            _moved_t(moves[start : start + block], a, b, shared=shared)
            for start in range(0, len(moves), block)
        ]
    )
    unmoved = np.zeros(a.counts.size)
    if not shared:
        unmoved = np.concatenate([np.ones(a.counts.size), np.zeros(b.counts.size)])
    observed = float(_moved_t(unmoved[np.newaxis], a, b, shared=shared)[0])
    if math.isnan(observed):
        return None
    # without variation a rearrangement has no t: it is as far from 0 as can be, unless it is 0
    return int((found >= observed * (1 - _CLOSE)).sum()) / len(found)


def wild_omnibus(
    sums: Values, counts: Values, *, draws: int = WILD_DRAWS, seed: int = 0
) -> float | None:
    """Test whether several groups have one mean, by a wild bootstrap of the largest t of a pair.

    Each unit's residuals take a random sign, so every group keeps its own spread and size, and a
    unit in several groups moves in all of them. A permutation test would mix the spreads: its error
    is above .1 for groups of unequal size and spread, even with t as its statistic.
    """
    kept = (counts > 0).sum(axis=0) >= LEAST_UNITS
    if kept.sum() < 2:
        return None
    sums, counts = sums[:, kept], counts[:, kept]
    rows = counts.sum(axis=0)
    means = sums.sum(axis=0) / rows
    residuals = sums - means * counts
    if np.abs(residuals).max() <= 1e-12 * max(1.0, np.abs(sums).max()):
        return None
    # as CR2: a unit with many of the rows draws the mean towards itself
    widened = residuals / np.sqrt(np.maximum(1 - counts / rows, 1e-3))
    observed = _largest_t((residuals / rows)[np.newaxis], means[np.newaxis], counts)[0]
    generator = np.random.default_rng(seed)
    at_once, hits = max(1, _AT_ONCE // sums.size), 0
    for start in range(0, draws, at_once):
        signs = generator.choice([-1.0, 1.0], (min(at_once, draws - start), len(sums)))
        moved = signs @ widened / rows
        errors = signs[:, :, np.newaxis] * widened - moved[:, np.newaxis, :] * counts
        hits += int((_largest_t(errors / rows, moved, counts) >= observed * (1 - _CLOSE)).sum())
    return (1 + hits) / (1 + draws)


def _largest_t(errors: Values, means: Values, counts: Values) -> Values:
    """Return the largest |t| of a pair of groups in each draw."""
    has, largest = counts > 0, np.zeros(len(means))
    for i, j in itertools.combinations(range(means.shape[1]), 2):
        a, b, either = errors[:, :, i], errors[:, :, j], (has[:, i] | has[:, j]).sum()
        if (has[:, i] & has[:, j]).any():
            variances = ((a - b) ** 2).sum(axis=1) * either / (either - 1)
        else:
            n, m = has[:, i].sum(), has[:, j].sum()
            variances = (a**2).sum(axis=1) * n / (n - 1) + (b**2).sum(axis=1) * m / (m - 1)
        distances = np.abs(means[:, i] - means[:, j])
        largest = np.maximum(largest, distances / np.sqrt(np.maximum(variances, 1e-28)))
    return largest


def _swaps(n_pairs: int) -> Values:
    """Return which pairs are swapped, 1.0 for a swap, shape (rearrangements, pairs)."""
    numbers = np.arange(2**n_pairs)
    return np.asarray((numbers[:, np.newaxis] >> np.arange(n_pairs)) & 1, np.float64)


def _deals(n: int, m: int) -> Values:
    """Return which units go to the first side, 1.0 for these, shape (rearrangements, units)."""
    chosen = np.array(list(itertools.combinations(range(n + m), n)))
    deals = np.zeros((len(chosen), n + m))
    np.put_along_axis(deals, chosen, 1.0, axis=1)
    return deals


def _moved_t(moves: Values, a: Clusters, b: Clusters, *, shared: bool) -> Values:
    """Return |t| of the difference for each choice of swapped pairs, or of the first side."""
    if shared:
        sides = [
            (
                own.sums + moves * (other.sums - own.sums),
                own.counts + moves * (other.counts - own.counts),
            )
            for own, other in ((a, b), (b, a))
        ]
    else:
        sums, counts = (np.concatenate(parts) for parts in ((a.sums, b.sums), (a.counts, b.counts)))
        sides = [(chosen * sums, chosen * counts) for chosen in (moves, 1.0 - moves)]
    mean_a, mean_b = (sums.sum(axis=1) / counts.sum(axis=1) for sums, counts in sides)
    of_a, of_b = (deletions_of(*side) for side in sides)
    if shared:
        variances = ((of_b - of_a) ** 2).sum(axis=1)
    else:
        n, m = a.counts.size, b.counts.size
        variances = (of_a**2).sum(axis=1) * (n - 1) / n + (of_b**2).sum(axis=1) * (m - 1) / m
    return _studentised(mean_b - mean_a, variances)


def _studentised(differences: Values, variances: Values) -> Values:
    """Return |difference| / error: infinity without an error, NaN without a difference too."""
    distances = np.abs(differences)
    still = variances <= 1e-28
    with np.errstate(divide="ignore", invalid="ignore"):
        found = distances / np.sqrt(np.where(still, 0.0, variances))
    return np.where(still & (distances <= 1e-14), np.nan, found)
