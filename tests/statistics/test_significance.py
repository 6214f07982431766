"""Tests of significance and Student's t: values by hand, published figures, SciPy, and counting."""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from fastscore.statistics import significance as fs
from fastscore.statistics.clustered import Clusters
from fastscore.statistics.curves import (
    difference_curve,
    permutation_test,
    rearrangements,
    wild_omnibus,
)
from fastscore.statistics.significance import noncentrality, t_below, t_inverse
from tests.conftest import often
from tests.statistics.test_clustered import units


def published(a, b):
    return fs.published_statistics(np.array(a, np.float64), np.array(b, np.float64))


FEW = [1.0, 2.0, 3.0]
MORE = [2.0, 4.0, 6.0, 8.0]


def interval_of(*values):
    found = published([], values)
    return found["mean_b"], found["normal_low_b"], found["normal_high_b"]


def test_published_interval_by_hand():
    # s over n: sqrt(2), 1.96 * sqrt(2 / 5) = 1.239613
    found = interval_of(5.0, 3.0, 1.0, 2.0, 4.0)
    assert found == pytest.approx((3.0, 1.760387, 4.239613), abs=1e-6)


def test_published_interval_without_enough_values():
    assert interval_of() == (None, None, None)
    assert interval_of(0.25) == (0.25, None, None)
    assert interval_of(0.25, 0.25) == (0.25, 0.25, 0.25)


def test_cohens_d_by_hand():
    # variances over n: 2/3 and 5
    assert published(MORE, FEW)["cohens_d"] == pytest.approx(-3 / math.sqrt(17 / 6))


@pytest.mark.parametrize(
    ("d_sample", "d_population", "student_p"),
    [
        (0.541, 0.546, 0.00367),
        (2.299, 2.318, 1.4e-23),
        (0.527, 0.531, 0.00467),
        (3.114, 3.140, 1.2e-33),
    ],
    ids=["PAS", "BVS", "ORA", "CRRS"],
)
def test_published_level_5_against_level_1(d_sample, d_population, student_p):
    """For groups of 60 and of one variance, d fixes the other d and p (d is known to 0.0005)."""
    unit = np.resize([-1.0, 1.0], 60) * math.sqrt(59 / 60)
    low, middle, high = (unit + d for d in (d_sample - 5e-4, d_sample, d_sample + 5e-4))
    pooled = math.sqrt((middle.var(ddof=1) + unit.var(ddof=1)) / 2)
    assert (middle.mean() - unit.mean()) / pooled == pytest.approx(d_sample)
    population = published(unit, middle)["cohens_d"]
    assert population == pytest.approx(d_population, abs=1.1e-3)
    most, least = (published(unit, shifted)["student_p"] for shifted in (low, high))
    assert least * 0.96 <= student_p <= most * 1.04


def test_mann_whitney_by_hand():
    # 3 > 2 once and 2 = 2 once
    assert published(MORE, FEW)["mann_whitney_u"] == 1.5
    # of the 10 orders of two and three values two are as extreme
    found = published([3.0, 4.0, 5.0], [1.0, 2.0])
    assert (found["mann_whitney_u"], found["mann_whitney_p"]) == (0.0, pytest.approx(0.2))


def test_what_has_no_p_is_no_member_of_a_family():
    assert fs.holm([0.01, None, 0.03]) == pytest.approx([0.02, None, 0.03])
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        fs.holm([1.5])


@given(st.lists(st.floats(0, 1), max_size=8), st.sampled_from([0.001, 0.05, 0.5]))
def test_holm_rejects_what_stepping_down_rejects(p_values, alpha):
    rejected = set()
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if (len(p_values) - rank) * p_values[i] > alpha:
            break
        rejected.add(i)
    corrected = fs.holm(p_values)
    assert {i for i, p in enumerate(corrected) if p is not None and p <= alpha} == rejected


def test_too_few_values_and_no_variance_have_no_test():
    for a, b in (([1.0], [2.0]), ([], []), ([1.0], MORE), ([0.1] * 3, [0.3] * 3)):
        assert not {"welch_p", "student_p", "cohens_d"} & published(a, b).keys()
    for a, b in (([], [1.0]), ([1.0, 1.0], [1.0])):
        assert "mann_whitney_u" not in published(a, b)


def test_values_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match=r"a\[1\] is nan"):
        fs.finite([1.0, math.nan], "a")
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        fs.finite([[1.0, 2.0]], "a")


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=3), st.randoms())
def test_order_never_matters(pairs, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert published(*np.array(pairs).T) == published(*np.array(shuffled).T)


# --- permutation tests


RNG = np.random.default_rng(21)


def test_swapped_pairs_are_scipys_sign_flips():
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


def test_dealt_units_are_scipys_permutations():
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


def test_four_pairs_that_all_rise_have_two_of_sixteen_rearrangements():
    a, b = units(*np.array([0.1, 0.2, 0.3, 0.4])), units(*np.array([0.3, 0.5, 0.4, 0.8]))
    assert rearrangements(a, b, shared=True) == 16
    assert permutation_test(a, b, shared=True) == 2 / 16


def test_nothing_to_test_has_no_p():
    ones = units(*np.ones(4))
    assert permutation_test(ones, ones, shared=True) is None
    assert permutation_test(units(*np.ones(2)), units(*np.zeros(2)), shared=True) is None


def test_clusters_of_rows_are_swapped_whole():
    # by hand: of the 8 swaps of 3 pairs, unswapped and all swapped are equally far apart
    a = Clusters(np.array([1.0, 6.0, 2.0]), np.array([2.0, 10.0, 3.0]))
    b = Clusters(np.array([1.6, 4.4, 3.5]), np.array([2.0, 5.0, 4.0]))
    found = permutation_test(a, b, shared=True)
    assert found == 2 / 8


def test_a_wild_bootstrap_is_that_of_a_plain_loop():
    """Independent groups of one row a unit: every draw is a sample with Welch's t of its pairs."""
    generator = np.random.default_rng(22)
    groups = [generator.normal(0.1 * k, 1 + k, 6 + 3 * k) for k in range(3)]

    def largest(samples):
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


def test_a_wild_bootstrap_keeps_its_level_with_unequal_spread_and_size():
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


def test_groups_without_variation_or_units_have_no_wild_bootstrap():
    assert wild_omnibus(np.ones((10, 2)), np.ones((10, 2))) is None
    few = np.repeat(np.eye(2), [2, 8], axis=0)
    assert wild_omnibus(few * RNG.normal(size=(10, 1)), few) is None


@pytest.mark.parametrize("shared", [True, False])
def test_a_small_p_of_unequal_units_never_stands_beside_an_interval_across_0(shared):
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
        assert p >= 0.05 or low > 0 or high < 0
        found = permutation_test(*sides, shared=shared)
        alone += found is not None and found < 0.05 and low <= 0 <= high
    assert alone


# --- Student's t, the noncentral t and chi-squared


DEGREES = (0.5, 1, 1.5, 2, 3, 10, 19.9, 20, 29.3, 60, 1000.5, 1e6, 1e12)


@pytest.mark.parametrize("degrees", DEGREES)
def test_probabilities_of_t_are_those_of_scipy(degrees):
    for t in (-15.0, -3.0, -1.96, -1.7, -0.5, 0.0, 0.01, 1.0, 4.0):
        expected = float(scipy.special.stdtr(degrees, t))
        assert t_below(degrees, t) == pytest.approx(expected, rel=2e-13)


def t_by_beta(degrees, probability):
    """Return a quantile of t by SciPy's incomplete beta; its `stdtrit` was exact to 1e-11 once."""
    tails = 2 * min(probability, 1 - probability)
    x = float(scipy.special.betaincinv(degrees / 2, 0.5, tails))
    y = float(scipy.special.betainccinv(0.5, degrees / 2, tails))  # 1 - x
    t = math.sqrt(degrees * y / (1 - y) if y < 0.5 else degrees * (1 - x) / x)
    return math.copysign(t, probability - 0.5)


@pytest.mark.parametrize("degrees", DEGREES)
def test_quantiles_of_t_are_those_of_scipy(degrees):
    for probability in (1e-9, 1e-4, 0.005, 0.025, 0.2, 0.5, 0.8, 0.975):
        expected = t_by_beta(degrees, probability)
        assert t_inverse(degrees, probability) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_quantiles_with_a_closed_form():
    assert t_inverse(1, 0.975) == pytest.approx(math.tan(0.475 * math.pi), rel=1e-13)
    assert t_inverse(2, 0.975) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)), rel=1e-13)
    assert t_inverse(math.inf, 0.975) == pytest.approx(1.959963984540054, rel=1e-14)


@pytest.mark.parametrize("degrees", [1, 2, 3, 8, 20, 1e3, 1e5])
def test_a_noncentrality_gives_back_its_probability(degrees):
    for t in (-20.0, -3.0, 0.0, 0.3, 4.0, 20.0):
        for probability in (0.025, 0.5, 0.975):
            found = noncentrality(degrees, probability, t)
            # scipy's own inversion is exact to 1e-8 of the probability only
            side = math.copysign(1.0, t)
            below = float(scipy.special.nctdtr(degrees, side * found, abs(t)))
            expected = probability if side > 0 else 1 - probability
            assert below == pytest.approx(expected, abs=1e-9)


def test_noncentrality_without_an_effect_is_normal():
    assert noncentrality(30, 0.975, 0.0) == pytest.approx(-1.959963984540054, rel=1e-9)
