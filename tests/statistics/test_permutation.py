"""Permutation tests beside scipy's, and by counting."""

import math

import numpy as np
import pytest
import scipy.stats

from fastscore.statistics.clustered import Clusters
from fastscore.statistics.curves import (
    difference_curve,
    permutation_test,
    rearrangements,
    wild_omnibus,
)
from fastscore.statistics.significance import Values
from tests.conftest import often
from tests.statistics.test_clustered import units

RNG = np.random.default_rng(21)


def test_swapped_pairs_are_scipys_sign_flips() -> None:
    x = RNG.normal(size=8)
    y = x + RNG.normal(0.5, 1.0, size=8)
    expected = scipy.stats.permutation_test(
        (y - x,),
        lambda d: abs(d.mean()) / d.std(ddof=1),
        permutation_type="samples",
        alternative="greater",
        n_resamples=math.inf,
    )
    found = permutation_test(units(*x), units(*y), shared=True)
    assert found == pytest.approx(expected.pvalue)


def test_dealt_units_are_scipys_permutations() -> None:
    x, y = RNG.normal(size=6), RNG.normal(1.0, 3.0, size=5)
    expected = scipy.stats.permutation_test(
        (x, y),
        lambda a, b: abs(a.mean() - b.mean()) / math.sqrt(a.var(ddof=1) / 6 + b.var(ddof=1) / 5),
        permutation_type="independent",
        alternative="greater",
        n_resamples=math.inf,
    )
    found = permutation_test(units(*x), units(*y), shared=False)
    assert found == pytest.approx(expected.pvalue)


def test_four_pairs_that_all_rise_have_two_of_sixteen_rearrangements() -> None:
    a, b = units(*np.array([0.1, 0.2, 0.3, 0.4])), units(*np.array([0.3, 0.5, 0.4, 0.8]))
    assert rearrangements(a, b, shared=True) == 16
    assert permutation_test(a, b, shared=True) == 2 / 16


def test_nothing_to_test_has_no_p() -> None:
    ones = units(*np.ones(4))
    assert permutation_test(ones, ones, shared=True) is None
    assert permutation_test(units(*np.ones(2)), units(*np.zeros(2)), shared=True) is None


def test_clusters_of_rows_are_swapped_whole() -> None:
    # by hand: of the 8 swaps of 3 pairs, unswapped and all swapped are equally far apart
    a = Clusters(np.array([1.0, 6.0, 2.0]), np.array([2.0, 10.0, 3.0]))
    b = Clusters(np.array([1.6, 4.4, 3.5]), np.array([2.0, 5.0, 4.0]))
    found = permutation_test(a, b, shared=True)
    assert found == 2 / 8


def test_a_wild_bootstrap_is_that_of_a_plain_loop() -> None:
    """Independent groups of one row a unit: every draw is a sample with Welch's t of its pairs."""
    generator = np.random.default_rng(22)
    groups = [generator.normal(0.1 * k, 1 + k, 6 + 3 * k) for k in range(3)]

    def largest(samples: list[Values]) -> float:
        found = 0.0
        for i in range(3):
            for j in range(i):
                a, b = samples[i], samples[j]
                error = math.sqrt(a.var(ddof=1) / a.size + b.var(ddof=1) / b.size)
                found = max(found, abs(a.mean() - b.mean()) / error)
        return found

    observed, hits, draws = largest(groups), 0, 199
    signs = np.random.default_rng(5).choice([-1.0, 1.0], (draws, sum(map(len, groups))))
    for row in signs:
        moved, start = [], 0
        for group in groups:
            own = row[start : start + group.size]
            moved.append((group - group.mean()) / math.sqrt(1 - 1 / group.size) * own)
            start += group.size
        hits += largest(moved) >= observed
    counts = np.repeat(np.eye(3), [group.size for group in groups], axis=0)
    sums = counts * np.concatenate(groups)[:, np.newaxis]
    assert wild_omnibus(sums, counts, draws=draws, seed=5) == (1 + hits) / (1 + draws)


def test_a_wild_bootstrap_keeps_its_level_with_unequal_spread_and_size() -> None:
    # three wide groups of 6 and a narrow one of 100: a permutation test errs in .73 of cases.
    # 200 tests at .05: 10 expected, deviation 3.1; 10 + 3 * 3.1 = 19
    generator = np.random.default_rng(24)
    counts = np.repeat(np.eye(4), [6, 6, 6, 100], axis=0)
    width = np.repeat([0.5, 0.5, 0.5, 0.08], [6, 6, 6, 100])
    below = 0
    for seed in range(200):
        values = 0.5 + generator.choice([-1, 1], 118) * width * generator.random(118)
        p = wild_omnibus(values[:, np.newaxis] * counts, counts, draws=199, seed=seed)
        below += p is not None and p <= 0.05
    assert below <= 19


def test_groups_without_variation_or_units_have_no_wild_bootstrap() -> None:
    assert wild_omnibus(np.ones((10, 2)), np.ones((10, 2))) is None
    few = np.repeat(np.eye(2), [2, 8], axis=0)
    assert wild_omnibus(few * RNG.normal(size=(10, 1)), few) is None


@pytest.mark.parametrize("shared", [True, False])
def test_a_small_p_of_unequal_units_never_stands_beside_an_interval_across_0(
    shared: bool,
) -> None:
    """A unit with most of the rows leaves few degrees of freedom, which permutations ignore."""
    alone = 0
    for seed in range(often(40, 120)):
        generator = np.random.default_rng(seed)
        counts = np.full((2, 7), 3.0)
        counts[0, 0] = counts[1, -1] = 60
        values = generator.normal(0.5, 0.1, (2, 7))
        sides = [Clusters(*side) for side in zip(counts * values, counts, strict=True)]
        curve = difference_curve(*sides, shared=shared)
        p, (low, high) = curve.p_value(), curve.interval(0.95)
        assert p is not None
        assert low is not None
        assert high is not None
        assert p >= 0.05 or low > 0 or high < 0
        found = permutation_test(*sides, shared=shared)
        alone += found is not None and found < 0.05 and low <= 0 <= high
    assert alone
