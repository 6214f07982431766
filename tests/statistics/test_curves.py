"""Confidence curves beside scipy's tests, published intervals and numbers worked out by hand."""

import math

import numpy as np
import pytest
import scipy.stats

from fastscore.statistics.clustered import Clusters, repeated_difference
from fastscore.statistics.curves import (
    Curve,
    binomial_tail,
    bonett_price,
    difference_curve,
    fisher,
    hypergeometric_tail,
    newcombe,
    sign_test,
    wilson,
)
from tests.statistics.test_clustered import units

RANGE = {"ends": (0.0, 1.0)}


def flags(successes, n):
    return units(*[1.0] * successes, *[0.0] * (n - successes))


def normal(n, seed, mean=0.0):
    return np.random.default_rng(seed).normal(mean, 1.0, n)


def test_pairs_have_the_paired_t_at_every_level_and_limit():
    x, y = normal(20, 1), normal(20, 2, 0.4)
    curve = difference_curve(units(*x), units(*y), shared=True)
    expected = scipy.stats.ttest_rel(y, x)
    assert (curve.method, curve.test) == ("t", "t")
    assert curve.p_value() == pytest.approx(expected.pvalue)
    for level in (0.8, 0.95, 0.999):
        assert curve.interval(level) == pytest.approx(tuple(expected.confidence_interval(level)))
    above = scipy.stats.ttest_rel(y, x + 0.2, alternative="greater").pvalue
    assert curve.p_above(0.2) == pytest.approx(above)
    assert curve.p_below(0.2) == pytest.approx(1 - above)


def test_independent_samples_have_welchs_t():
    x, y = normal(15, 3), 2 * normal(25, 4, 0.4)
    curve = difference_curve(units(*x), units(*y), shared=False)
    expected = scipy.stats.ttest_ind(y, x, equal_var=False)
    assert curve.p_value() == pytest.approx(expected.pvalue)
    # the mirror of a curve is the curve of the mirror
    mirrored = difference_curve(units(*y), units(*x), shared=False)
    assert curve.opposite().interval(0.9) == pytest.approx(mirrored.interval(0.9))
    assert curve.p_above(0.3) == pytest.approx(mirrored.p_below(-0.3))


LARGE = (30_000, 60_000, 30_500, 60_000)


@pytest.mark.parametrize(
    ("x", "n", "y", "m"), [(8, 8, 25, 32), (3, 20, 14, 25), (0, 9, 1, 11), LARGE]
)
def test_fisher_is_scipys(x, n, y, m):
    table = [[y, m - y], [x, n - x]]
    assert fisher(x, n, y, m) == pytest.approx(scipy.stats.fisher_exact(table).pvalue)
    greater = scipy.stats.fisher_exact(table, alternative="greater").pvalue
    assert hypergeometric_tail(x, n, y, m) == pytest.approx(greater)


def test_wilson_is_scipys_and_newcombes_is_his_example():
    expected = scipy.stats.binomtest(13, 40).proportion_ci(0.9, "wilson")
    assert wilson(13, 40, level=0.9) == pytest.approx((expected.low, expected.high))
    # Newcombe (1998), table II: 56 of 70 against 48 of 80
    assert newcombe(48, 80, 56, 70, level=0.95) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_bonett_and_prices_interval_by_hand():
    # (1 + 1) / 23 = .086957, (7 + 1) / 23 = .347826: difference -.260870,
    # variance (.434783 - .068053) / 23 = .015945, 1.959964 * sqrt(.015945) = .24749
    assert bonett_price(1, 7, 21, level=0.95) == pytest.approx((-0.50836, -0.01338), abs=1e-5)


def test_a_constant_side_of_a_proportion_has_an_error():
    # 8 of 8 against 25 of 32: Welch's t says p = .006
    curve = difference_curve(flags(8, 8), flags(25, 32), shared=False, **RANGE)
    assert curve.method == "proportions"
    assert curve.test == "Fisher"
    assert curve.p_value() == pytest.approx(scipy.stats.fisher_exact([[8, 0], [25, 7]]).pvalue)
    low, high = curve.interval(0.95)
    assert low < 0 < high


def test_paired_proportions_have_mcnemars_exact_test():
    before = units(*[1] * 10, *[0] * 10)
    after = units(*[1] * 8, *[0] * 2, *[1] * 7, *[0] * 3)
    curve = difference_curve(before, after, shared=True, **RANGE)
    assert curve.counts == (7, 2, 20)
    assert curve.value == pytest.approx(0.25)
    assert curve.p_value() == pytest.approx(scipy.stats.binomtest(7, 9).pvalue)
    assert curve.interval(0.95) == bonett_price(7, 2, 20, level=0.95)


@pytest.mark.parametrize("limit", [-0.4, -0.1, 0.05, 0.2])
def test_a_limit_at_an_end_of_the_interval_has_the_ends_p(limit):
    """Of every method: the interval of level L ends where the one-sided p is (1 - L) / 2."""
    x = np.r_[np.ones(14), np.linspace(0.2, 0.9, 6)]
    y = np.r_[np.ones(5), np.linspace(0.1, 0.95, 11)]
    curves = [
        difference_curve(flags(15, 20), flags(11, 20), shared=False, **RANGE),
        difference_curve(units(*x), units(*y), shared=False, test="t", **RANGE),
        difference_curve(units(*x), units(*x[::-1]), shared=True, test="t", **RANGE),
    ]
    assert [curve.method for curve in curves] == ["proportions", "hybrid", "t"]
    for curve in curves:
        for side, sign in ((curve, 1.0), (curve.opposite(), -1.0)):
            p = side.p_above(sign * limit)
            if 1e-6 < p < 0.499:
                assert side.interval(1 - 2 * p)[0] == pytest.approx(sign * limit, abs=1e-6)


def test_equal_shifts_of_all_pairs_have_a_sign_test():
    before = np.arange(20, 70) / 100
    curve = difference_curve(units(*before), units(*(before + 0.01)), shared=True, **RANGE)
    assert curve.method == "sign"
    assert curve.p_value() == 2 * 0.5**50
    assert curve.interval(0.95) == (None, None)


@pytest.mark.parametrize(("high", "low"), [(0.8, 0.7), (0.3, 0.2), (0.9, 0.8), (0.6, 0.5)])
def test_a_limit_that_is_met_exactly_is_met(high, low):
    drop = difference_curve(units(*[low] * 8), units(*[high] * 8), shared=True, **RANGE)
    assert drop.p_above(0.1) == 1.0
    assert drop.p_above(0.09) == 0.5**8


def test_a_side_without_spread_has_the_spread_of_both():
    # x: 4 units of 2; y: 1, 2, 3, 4. Pooled variance 5 / 6, error sqrt(5 / 6 * (1/4 + 1/4))
    curve = difference_curve(units(2, 2, 2, 2), units(1, 2, 3, 4), shared=False, test="t")
    assert curve.method == "pooled t"
    assert curve.error == pytest.approx(math.sqrt(1.25 / 4 * 4 / 3))
    # Welch's error of y alone is larger here: it is kept
    x, y = [2.0] * 4, list(np.tile([1.0, 2.0, 3.0, 4.0], 10))
    curve = difference_curve(units(*x), units(*y), shared=False, test="t")
    assert curve.error == pytest.approx(math.sqrt(50 / 42 * (1 / 4 + 1 / 40)))
    assert curve.degrees == 8.0


def test_halls_transformation_by_hand():
    d = np.array([-0.04] * 9 + [0.5, 0.01, 0.02])
    curve = difference_curve(units(*np.zeros(12)), units(*d), shared=True, test="t")
    n, mean, s = d.size, d.mean(), d.std(ddof=1)
    t = (mean - 0.005) / (s / math.sqrt(n))
    # the jackknife's influences are (d - mean) / (n - 1)
    skew = ((d - mean) ** 3).sum() / (n - 1) ** 3 / (s / math.sqrt(n)) ** 3
    adjusted = t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6
    expected = max(scipy.stats.t.sf(t, n - 1), scipy.stats.t.sf(adjusted, n - 1))
    assert curve.p_above_skewed(0.005) == pytest.approx(expected)


def test_a_sign_test_and_its_tail_are_scipys():
    assert sign_test(3, 9) == pytest.approx(scipy.stats.binomtest(3, 12).pvalue)
    assert binomial_tail(9, 12) == pytest.approx(scipy.stats.binom.sf(8, 12, 0.5))
    assert sign_test(0, 0) == 1.0
    for k, n in ((501, 1_001), (5_150, 10_000), (502_000, 1_000_000), (1_200, 1_200)):
        assert binomial_tail(k, n) == pytest.approx(scipy.stats.binom.sf(k - 1, n, 0.5), rel=1e-7)


def test_planned_units_have_the_power_that_they_are_planned_for():
    pilot = difference_curve(units(*np.zeros(20)), units(*normal(20, 7)), shared=True)
    for alpha, wanted in ((0.05, 0.5), (0.05 / 9, 0.4)):
        n = pilot.units_needed(wanted, alpha)
        deviation = (pilot.error or 0.0) * math.sqrt(20)

        def power(count, wanted=wanted, alpha=alpha):
            quantile = scipy.stats.t.ppf(1 - alpha / 2, count - 1)
            shift = wanted / deviation * math.sqrt(count)  # noqa: B023
            return float(scipy.stats.nct.sf(quantile, count - 1, shift))

        assert power(n) == pytest.approx(0.8, abs=0.02)
        assert power(n - 3) < 0.8
    assert pilot.units_needed(0.0, 0.05) is None


def test_the_detectable_difference_has_the_power_it_names():
    curve = difference_curve(units(*normal(30, 12)), units(*normal(30, 13)), shared=False, test="t")
    for alpha in (0.05, 0.05 / 6):
        least = curve.detectable(alpha)
        quantile = scipy.stats.t.ppf(1 - alpha / 2, curve.degrees)
        power = scipy.stats.nct.sf(quantile, curve.degrees, least / curve.error)
        assert power == pytest.approx(0.8, abs=0.01)
    # five pairs cannot have an exact p below 2 / 32
    few = difference_curve(units(*np.zeros(5)), units(*normal(5, 14)), shared=True)
    assert few.detectable(0.05) is None
    # six pairs can (2 / 64), and with 779 tests fourteen, of which t and not permutations decides
    assert [few.units_needed(1_000.0, alpha) for alpha in (0.05, 0.05 / 779)] == [6, 14]


def test_repeats_reduce_only_their_part_of_the_variance():
    generator = np.random.default_rng(8)
    cells = []
    for side in "ab":
        shifts = np.repeat(generator.normal(0, 0.5, 4), 25)
        cells.append(
            {
                "sums": generator.normal(0, 1, 100) + shifts,
                "counts": np.ones(100),
                "clusters": np.tile(np.arange(25), 4),
                "repeats": np.repeat([f"{side}{k}" for k in range(4)], 25),
            }
        )
    of_units = [Clusters(c["sums"].reshape(4, 25).sum(0), np.full(25, 4.0)) for c in cells]
    found = repeated_difference(*cells)
    curve = difference_curve(*of_units, shared=True, repeated=found)
    assert curve.error == found.standard_error
    plain = difference_curve(*of_units, shared=True, test="t")
    extra = (curve.error or 0) ** 2 - (plain.error or 0) ** 2
    assert curve.repeat_variance == pytest.approx(extra)
    # no number of dialogues gets below the part of the repeats
    floor = math.sqrt(extra) * 2.8
    assert curve.units_needed(floor / 2, 0.05) is None
    assert curve.units_needed(floor * 2, 0.05) is not None


def test_too_few_units_have_no_curve():
    curve = difference_curve(units(1, 2), units(2, 4), shared=True)
    assert curve == Curve("none", 1.5, 2, reason="too_few_units")
    assert curve.p_value() is None
    assert curve.p_equal(0.1) is None


def test_differences_that_rounding_alone_makes_are_none():
    shifted, plain = [0.3, 0.4, 1.3], [0.2, 0.3, 1.2]
    assert len({a - b for a, b in zip(shifted, plain, strict=True)}) == 3
    curve = difference_curve(units(*plain), units(*shifted), shared=True)
    assert (curve.method, curve.reason) == ("sign", "zero_variance")


def test_sides_of_one_value_each_are_divided_in_one_way_of_all():
    # 8! / (4! 4!) = 70 divisions of eight units, of which one is at least as far above
    curve = difference_curve(units(4, 4, 4, 4), units(3, 3, 3, 3), shared=False)
    assert (curve.value, curve.test, curve.reason) == (-1.0, "exact permutation", "zero_variance")
    assert curve.p_value() == pytest.approx(2 / 70)
    assert curve.p_below(-0.5) == pytest.approx(1 / 70)
    assert curve.p_below(-1.0) == curve.p_above(-0.5) == 1.0
    assert curve.interval(0.95) == (None, None)
    # 7! / (4! 3!) = 35, and no other division is as far from 0
    uneven = difference_curve(units(4, 4, 4, 4), units(3, 3, 3), shared=False)
    assert uneven.p_value() == pytest.approx(1 / 35)
    same = difference_curve(units(4, 4, 4), units(4, 4, 4), shared=False)
    assert (same.value, same.p_value(), same.test) == (0.0, None, "exact permutation")
