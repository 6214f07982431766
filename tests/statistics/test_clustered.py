"""Clustered means and differences, and the variance between repeats, beside SciPy and by hand."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from fastscore.statistics.clustered import (
    Clusters,
    Estimate,
    _by_cluster,
    clustered_difference,
    clustered_mean,
    hedges_g,
    repeated_difference,
    variance_components,
)
from fastscore.statistics.curves import difference_curve

RNG = np.random.default_rng(20)


def units(*values):
    return Clusters(np.array(values, np.float64), np.ones(len(values)))


def by_matrices(rows):
    """Return CR2's variance of a mean and its degrees of freedom from the projection matrices."""
    sizes = [len(cluster) for cluster in rows]
    y, total = np.concatenate(rows), sum(sizes)
    ones = np.ones((total, 1))
    residual_maker = np.eye(total) - ones @ ones.T / total
    residuals = residual_maker @ y
    variance, columns, start = 0.0, [], 0
    for size in sizes:
        own = slice(start, start + size)
        block = residual_maker[own, own]
        values, vectors = np.linalg.eigh(block)
        root = vectors @ np.diag(np.where(values > 1e-9, values, 1.0) ** -0.5) @ vectors.T
        weights = np.ones(size) @ root / total
        variance += float(weights @ residuals[own]) ** 2
        columns.append(residual_maker[:, own] @ weights)
        start += size
    gram = np.array(columns) @ np.array(columns).T
    return variance, float(np.trace(gram) ** 2 / (gram**2).sum())


def test_a_mean_of_rows_has_the_error_of_cr2_by_matrices():
    rows = [RNG.normal(size=size) for size in (4, 1, 7, 30, 2, 2)]
    sums, counts = np.array([r.sum() for r in rows]), np.array([float(len(r)) for r in rows])
    found = clustered_mean(sums, counts)
    variance, degrees = by_matrices(rows)
    assert found.value == pytest.approx(np.concatenate(rows).mean())
    assert found.standard_error == pytest.approx(math.sqrt(variance))
    assert found.degrees_of_freedom == pytest.approx(degrees)
    half = scipy.stats.t.ppf(0.975, degrees) * math.sqrt(variance)
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))


def test_twenty_successes_of_twenty_have_the_score_interval_of_t():
    # Wilson at p = 1: low = n / (n + q^2), with the 97.5 % quantile of t with 19 degrees, 2.0930
    found = clustered_mean(np.ones(20), np.ones(20), (0.0, 1.0))
    assert found.low == pytest.approx(20 / (20 + 2.0930240544082634**2), abs=1e-12)
    assert found.high == 1.0


def test_a_share_has_wilsons_interval_with_the_effective_number_of_units():
    # 3 of 10: variance p (1 - p) / (n - 1), so 9 effective units; quantile of t with 9: 2.2622
    found = clustered_mean(np.arange(10) < 3, np.ones(10), (0.0, 1.0))
    n, q = 9, 2.2621571628540993
    low, high = sorted(np.roots([1 + q**2 / n, -(2 * 0.3 + q**2 / n), 0.09]).tolist())
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_fewer_than_three_units_have_no_interval(n):
    found = clustered_mean(np.full(n, 0.5), np.ones(n), (0.0, 1.0))
    assert found == Estimate(0.5 if n else None, n_units=n, reason="too_few_units")


def test_equal_units_within_the_range_have_no_interval():
    found = clustered_mean(np.full(5, 0.5), np.ones(5), (0.0, 1.0))
    assert (found.low, found.high, found.reason) == (None, None, "zero_variance")


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9)), min_size=0, max_size=12),
    st.randoms(use_true_random=False),
)
def test_intervals_stay_in_the_range_and_hold_the_mean_in_any_order(clusters, shuffler):
    sums = np.array([mean * count for mean, count in clusters])
    counts = np.array([float(count) for _, count in clusters])
    found = clustered_mean(sums, counts, (0.0, 1.0))
    assert found.n_units == (counts > 0).sum()
    if found.low is not None:
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    order = np.argsort(
        [hash((float(s), float(c), str(shuffler))) for s, c in zip(sums, counts, strict=True)]
    )
    again = clustered_mean(sums[order], counts[order], (0.0, 1.0))
    assert again == found


def test_hedges_g_by_its_definition():
    x, y = np.array([1.0, 2, 3, 4]), np.array([2.0, 4, 6, 8, 10])
    # pooled variance (3 * 5/3 + 4 * 10) / 7 = 45 / 7; J(7) = gamma(3.5) / (sqrt(3.5) gamma(3))
    d = (6 - 2.5) / math.sqrt(45 / 7)
    correction = math.gamma(3.5) / (math.sqrt(3.5) * math.gamma(3.0))
    found = hedges_g(units(*x), units(*y), paired=False)
    assert found[0] == pytest.approx(correction * d)
    scale = math.sqrt(4 * 5 / 9)
    for end, p in ((found[1], 0.975), (found[2], 0.025)):
        centre = end / correction * scale
        assert scipy.stats.nct.cdf(d * scale, 7, centre) == pytest.approx(p, abs=1e-6)


def test_hedges_g_of_pairs_counts_units_that_one_side_lacks():
    a, b = Clusters(np.array([1.0, 2, 3, 0]), np.array([1.0, 1, 1, 0])), units(2, 4, 3, 5)
    # values around the means 2 and 3.5, those of a times 4 / 3: 2/3, 2, 10/3 and 2
    differences = [4 / 3, 2, -1 / 3, 3]  # their mean is 3.5 - 2, their squares add up to 212 / 36
    assert np.mean(differences) == pytest.approx(1.5)
    d = 1.5 / math.sqrt(212 / 36 / 3)
    correction = math.sqrt(2 / 3) * math.gamma(1.5)
    found = hedges_g(a, b, paired=True)
    assert found[0] == pytest.approx(correction * d)


def test_hedges_g_of_two_units_is_refused():
    assert hedges_g(units(1.0, 2.0), units(50.0, 51.0), paired=False) is None


def test_a_difference_of_rows_has_the_error_of_deleting_each_cluster():
    counts = np.array([4.0, 1, 7, 60, 2, 2])
    sums = RNG.random(6) * counts
    a, b = Clusters(sums, counts), units(*RNG.random(5))
    found = clustered_difference(a, b, shared=False)
    variance = 0.0
    for side in (a, b):
        n = side.counts.size
        without = [
            np.delete(side.sums, k).sum() / np.delete(side.counts, k).sum() for k in range(n)
        ]
        variance += (n - 1) / n * sum((mean - side.mean) ** 2 for mean in without)
    assert found.standard_error == pytest.approx(math.sqrt(variance))


def test_a_range_with_one_end_has_the_limit_of_wilsons_interval():
    values = RNG.exponential(size=9)
    found = clustered_mean(values, np.ones(9), (0.0, None))
    # Wilson's in a range so wide that its other end does not count
    wide = clustered_mean(values, np.ones(9), (0.0, 1e9))
    assert (found.low, found.high) == pytest.approx((wide.low, wide.high), rel=1e-6)
    mirrored = clustered_mean(-values, np.ones(9), (None, 0.0))
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))
    # by hand: 1, 2, 6 with mean 3 and error sqrt(7 / 3): (3 - m)^2 = q^2 (7 / 3) m / 3, q = 4.3027
    q = scipy.stats.t.ppf(0.975, 2)
    low, high = sorted(np.roots([1, -(6 + q**2 * 7 / 9), 9]).tolist())
    by_hand = clustered_mean(np.array([1.0, 2.0, 6.0]), np.ones(3), (0.0, None))
    assert (by_hand.low, by_hand.high) == pytest.approx((low, high))


# --- repeats


REPEATED = np.random.default_rng(22)


def crossed(n_dialogues, n_repeats, spread):
    between, repeated, rest = spread
    return (
        REPEATED.normal(0, between, (n_dialogues, 1))
        + REPEATED.normal(0, repeated, (1, n_repeats))
        + REPEATED.normal(0, rest, (n_dialogues, n_repeats))
    )


def cells(values):
    n, m = values.shape
    return {
        "sums": values.ravel(),
        "counts": np.ones(n * m),
        "clusters": np.repeat([f"d{k}" for k in range(n)], m),
        "repeats": np.tile([f"r{k}" for k in range(m)], n),
    }


def test_components_of_a_balanced_design_are_those_of_the_analysis_of_variance():
    # dialogues 1, 3, 8 (means of rows), repeats 3, 5: values by hand
    values = np.array([[0.0, 2.0], [2.0, 4.0], [7.0, 9.0]])
    # every repeat adds 2 to every dialogue: no rest. MS(dialogues) = 2 * var(1, 3, 8) = 26,
    # MS(repeats) = 3 * var(3, 5) = 6, MS(rest) = 0; components 26 / 2, 6 / 3, 0
    dialogues, repeats = np.repeat([0, 1, 2], 2), np.tile([0, 1], 3)
    found = variance_components(values.ravel(), dialogues, repeats)
    assert found == pytest.approx((13.0, 2.0, 0.0))


def test_without_repeats_there_are_no_components():
    zeros = np.zeros(3, np.int64)
    assert variance_components(np.arange(3.0), np.arange(3), zeros) == (None, None, None)


def test_intervals_hold_for_new_repeats_too():
    # 300 differences of two systems without a true one, four repeats each, all seeds new:
    # the interval over dialogues alone misses 0 far too often
    missed = alone = 0
    for _ in range(300):
        a, b = (cells(crossed(12, 4, (1.0, 0.5, 0.5))) for _ in range(2))
        sides = _by_cluster(a, b)
        for repeated in (repeated_difference(a, b), None):
            curve = difference_curve(*sides, shared=True, repeated=repeated, test="t")
            low, high = curve.interval(0.95)
            missed += repeated is not None and not low <= 0 <= high
            alone += repeated is None and not low <= 0 <= high
    assert missed <= 0.05 * 300 + 3 * (0.05 * 0.95 * 300) ** 0.5
    assert alone > missed


def test_without_differences_between_repeats_the_interval_is_that_over_dialogues():
    values = np.repeat(REPEATED.normal(size=(9, 1)), 3, axis=1)
    other = values + np.repeat(REPEATED.normal(size=(9, 1)), 3, axis=1)
    found = repeated_difference(cells(values), cells(other))
    alone = clustered_difference(*_by_cluster(cells(values), cells(other)), shared=True)
    assert found.standard_error == pytest.approx(alone.standard_error)
    assert found.degrees_of_freedom == pytest.approx(alone.degrees_of_freedom)


def test_one_row_of_a_second_repeat_says_nothing_of_new_repeats():
    # twelve dialogues in one repeat, and one row of another: less than one degree of freedom
    def side(values, lone):
        return {
            "sums": np.append(values, lone),
            "counts": np.ones(13),
            "clusters": np.array([*(f"d{k}" for k in range(12)), "d0"]),
            "repeats": np.array(["r0"] * 12 + ["r1"]),
        }

    a, b = side(np.arange(12.0), 40.0), side(np.arange(12.0) + 1, 3.0)
    repeated = repeated_difference(a, b)
    assert repeated.degrees_of_freedom < 1
    curve = difference_curve(*_by_cluster(a, b), shared=True, repeated=repeated, test="t")
    assert (curve.method, curve.reason) == ("none", "too_few_units")
    assert curve.interval(0.95) == (None, None)
