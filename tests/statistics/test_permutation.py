"""Permutation tests beside scipy's, and by counting."""

import math

import numpy as np
import pytest
import scipy.stats

from fastscore.statistics.clustered import Clusters
from fastscore.statistics.resampling import omnibus_test, permutation_test, rearrangements
from fastscore.statistics.samples import Values

RNG = np.random.default_rng(21)


def units(values: Values) -> Clusters:
    return Clusters(np.asarray(values, np.float64), np.ones(len(values)))


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
    found = permutation_test(units(x), units(y), shared=True)
    assert found.is_exact
    assert found.p_value == pytest.approx(expected.pvalue)


def test_dealt_units_are_scipys_permutations() -> None:
    x, y = RNG.normal(size=6), RNG.normal(1.0, 3.0, size=5)
    expected = scipy.stats.permutation_test(
        (x, y),
        lambda a, b: abs(a.mean() - b.mean()) / math.sqrt(a.var(ddof=1) / 6 + b.var(ddof=1) / 5),
        permutation_type="independent",
        alternative="greater",
        n_resamples=math.inf,
    )
    found = permutation_test(units(x), units(y), shared=False)
    assert found.is_exact
    assert found.p_value == pytest.approx(expected.pvalue)


def test_four_pairs_that_all_rise_have_two_of_sixteen_rearrangements() -> None:
    a, b = units(np.array([0.1, 0.2, 0.3, 0.4])), units(np.array([0.3, 0.5, 0.4, 0.8]))
    assert rearrangements(a, b, shared=True) == 16
    assert permutation_test(a, b, shared=True).p_value == 2 / 16


def test_pairs_that_rise_alike_and_units_at_both_ends() -> None:
    zeros, ones = units(np.zeros(4)), units(np.ones(4))
    assert permutation_test(zeros, ones, shared=True).p_value == 2 / 16
    assert permutation_test(zeros, ones, shared=False).p_value == pytest.approx(2 / 70)


def test_nothing_to_test_has_no_p() -> None:
    ones = units(np.ones(4))
    assert permutation_test(ones, ones, shared=True).p_value is None
    assert permutation_test(units(np.ones(2)), units(np.zeros(2)), shared=True).p_value is None


def test_drawn_rearrangements_are_near_the_exact_ones() -> None:
    x, y = RNG.normal(size=40), RNG.normal(0.5, 1.0, size=40)
    found = permutation_test(units(x), units(y), shared=False, seed=1)
    assert not found.is_exact
    assert found.p_value == pytest.approx(scipy.stats.ttest_ind(x, y).pvalue, abs=0.015)
    assert found == permutation_test(units(x), units(y), shared=False, seed=1)


def test_clusters_of_rows_are_swapped_whole() -> None:
    # by hand: of the 8 swaps of 3 pairs, unswapped and all swapped are equally far apart
    a = Clusters(np.array([1.0, 6.0, 2.0]), np.array([2.0, 10.0, 3.0]))
    b = Clusters(np.array([1.6, 4.4, 3.5]), np.array([2.0, 5.0, 4.0]))
    found = permutation_test(a, b, shared=True)
    assert found.is_exact
    assert found.p_value == 2 / 8


def test_an_omnibus_test_is_near_the_f_test_of_normal_values() -> None:
    groups = np.repeat(np.arange(3), 20)
    values = RNG.normal(size=60) + 0.4 * groups
    expected = scipy.stats.f_oneway(*(values[groups == k] for k in range(3))).pvalue
    assert omnibus_test(values, np.ones(60), groups) == pytest.approx(expected, abs=0.02)


def test_an_omnibus_test_keeps_its_level_with_shuffled_labels() -> None:
    # 400 tests at .05: 20 expected, deviation sqrt(400 * .05 * .95) = 4.36; 20 + 3 * 4.36 = 33
    groups = np.repeat(np.arange(4), [3, 5, 10, 12])
    below = 0
    for seed in range(400):
        counts = RNG.integers(1, 20, 30).astype(np.float64)
        sums = RNG.beta(0.5, 2.0, 30) * counts
        p = omnibus_test(sums, counts, RNG.permutation(groups), draws=199, seed=seed)
        below += p is not None and p <= 0.05
    assert below <= 33


def test_an_omnibus_test_of_many_units_is_near_the_f_test() -> None:
    # with one row a unit and 3,000 units the F distribution is chi-square's / 3
    groups = np.repeat(np.arange(4), 750)
    values = RNG.normal(size=3_000) + 0.06 * groups
    expected = scipy.stats.f_oneway(*(values[groups == k] for k in range(4))).pvalue
    assert omnibus_test(values, np.ones(3_000), groups) == pytest.approx(expected, rel=0.05)


def test_an_omnibus_test_of_many_units_keeps_its_level() -> None:
    # 1,000 tests at .05: 50 expected, deviation sqrt(1000 * .05 * .95) = 6.9; 50 +- 3 * 6.9
    groups = np.repeat(np.arange(3), [400, 700, 1_000])
    counts = RNG.integers(1, 20, 2_100).astype(np.float64)
    sums = RNG.beta(0.5, 2.0, 2_100) * counts
    found = [omnibus_test(sums, counts, RNG.permutation(groups)) for _ in range(1_000)]
    assert 29 <= sum(p is not None and p <= 0.05 for p in found) <= 71


def test_blocks_exchange_among_themselves() -> None:
    # each dialogue has both levels; the second is always larger: 2 of 2^5 exchanges are as far
    dialogues = np.repeat(np.arange(5), 2)
    groups = np.tile([0, 1], 5)
    values = dialogues * 10.0 + groups
    p = omnibus_test(values, np.ones(10), groups, dialogues, draws=4_999)
    assert p == pytest.approx(2 / 32, abs=0.012)
    assert omnibus_test(np.ones(10), np.ones(10), groups) is None
