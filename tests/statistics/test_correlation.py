"""Rank correlations against values worked by hand, SciPy, and leaving out clusters one by one."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fastscore.statistics.agreement import (
    MEASURES,
    Correlation,
    clustered_correlation,
    detectable_correlation,
)

clustered_spearman, clustered_kendall = (partial(clustered_correlation, one) for one in MEASURES)

Rows = list[tuple[int, int, str, str]]
ROWS = st.lists(
    st.tuples(
        st.integers(-3, 3), st.integers(-3, 3), st.sampled_from("abcde"), st.sampled_from("mn")
    ),
    min_size=3,
    max_size=16,
)
ONE = ("one stratum",) * 9
FEW_PAIRS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=5)


def plain_spearman(rows: Sequence[tuple[Any, ...]]) -> float:
    """Correlate (x, y, stratum) by ranks within strata, in plain Python."""
    x_grades, y_grades = [], []
    for stratum in {row[2] for row in rows}:
        part = [row for row in rows if row[2] == stratum]
        for side, grades in ((0, x_grades), (1, y_grades)):
            for row in part:
                below = sum(other[side] < row[side] for other in part)
                equal = sum(other[side] == row[side] for other in part)
                grades.append(Fraction(2 * below + equal, 2 * len(part)) - Fraction(1, 2))
    return quotient(
        sum(x * y for x, y in zip(x_grades, y_grades, strict=True)),
        sum(x * x for x in x_grades),
        sum(y * y for y in y_grades),
    )


def plain_kendall(rows: Sequence[tuple[Any, ...]]) -> float:
    """Compare all pairs of one stratum, in plain Python."""
    pairs = [
        (np.sign(first[0] - second[0]), np.sign(first[1] - second[1]))
        for place, first in enumerate(rows)
        for second in rows[:place]
        if first[2] == second[2]
    ]
    return quotient(
        sum(x * y for x, y in pairs), sum(x * x for x, _ in pairs), sum(y * y for _, y in pairs)
    )


def quotient(products: Any, of_x: Any, of_y: Any) -> float:
    if not of_x or not of_y:
        return math.nan
    return float(products) / math.sqrt(float(of_x) * float(of_y))


PLAIN = [(clustered_spearman, plain_spearman), (clustered_kendall, plain_kendall)]


def arrays(rows: Rows) -> tuple[list[Any], ...]:
    x, y, clusters, strata = map(list, zip(*rows, strict=True))
    return x, y, clusters, strata


@settings(max_examples=40)
@given(FEW_PAIRS)
def test_few_pairs_count_every_order(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert {measure(x, y, range(len(x))).reason for measure, _ in PLAIN} == {"zero_variance"}
        return
    for measure, plain in PLAIN:
        own, *others = [plain(list(zip(x, order, ONE, strict=False))) for order in permutations(y)]
        as_large = sum(abs(value) >= abs(own) - 1e-9 for value in (own, *others))
        expected = Fraction(as_large, math.factorial(len(pairs)))
        found = measure(x, y, range(len(x)))
        assert found.value == pytest.approx(own)
        assert found.p_value == pytest.approx(float(expected))


def test_more_pairs_have_the_value_of_scipy() -> None:
    x, y = np.random.default_rng(4).normal(size=(2, 30))
    found = [measure(x, y, range(30)).value for measure, _ in PLAIN]
    expected = [stats.spearmanr(x, y).statistic, stats.kendalltau(x, y).statistic]
    assert found == pytest.approx(expected)


def test_too_few_pairs_and_constant_sides_give_reasons() -> None:
    for clustered, _ in PLAIN:
        assert clustered([], [], []) == Correlation(None, 0, 0, reason="too_few_units")
        constant = clustered([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [1, 2, 3])
        assert constant == Correlation(None, 3, 3, reason="zero_variance")
        two = clustered([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1, 2, 2])
        assert two == Correlation(pytest.approx(1.0), 3, 2, reason="too_few_units")
    with pytest.raises(ValueError, match=r"clusters has shape \(1,\), expected \(2,\)"):
        clustered_spearman([1.0, 2.0], [1.0, 2.0], ["a"])


@given(ROWS)
def test_clusters_are_left_out_one_by_one(rows: Rows) -> None:
    """Value, interval and p of the jackknife, each replicate computed from the rows that remain."""
    x, y, clusters, strata = arrays(rows)
    for clustered, plain in PLAIN:
        found = clustered(x, y, clusters, strata)
        value = plain([(row[0], row[1], row[3]) for row in rows])
        if math.isnan(value):
            assert found.value is None
            continue
        assert found.value == pytest.approx(value)
        labels = sorted(set(clusters))
        left = [plain([(r[0], r[1], r[3]) for r in rows if r[2] != label]) for label in labels]
        expected = jackknife_interval(value, left) if len(labels) > 2 else None
        if expected is None:
            assert (found.low, found.high) == (None, None)
            continue
        low, high, p_value = expected
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)
        if found.method == "jackknife":
            assert found.p_value == pytest.approx(p_value)


def jackknife_interval(value: float, replicates: list[float]) -> tuple[float, float, float] | None:
    n = len(replicates)
    if abs(value) > 0.9999 or any(math.isnan(replicate) for replicate in replicates):
        return None
    of_replicates = [math.atanh(min(max(r, -0.9999), 0.9999)) for r in replicates]
    pseudovalues = [n * math.atanh(value) - (n - 1) * z for z in of_replicates]
    if max(pseudovalues) - min(pseudovalues) < 1e-8:
        return None
    test = stats.ttest_1samp(pseudovalues, 0.0)
    ends = test.confidence_interval(0.95)
    low, high = math.tanh(ends.low), math.tanh(ends.high)
    return min(low, value), max(high, value), float(test.pvalue)


@settings(max_examples=30)
@given(st.integers(3, 5), st.integers(1, 3), st.lists(st.integers(-2, 2), min_size=30, max_size=30))
def test_few_complete_clusters_count_every_order_of_them(
    n_clusters: int, n_strata: int, values: list[int]
) -> None:
    """Whole clusters are exchanged: what a stratum adds to all of its values changes nothing."""
    x, y = np.reshape(values, (2, 15))[:, : n_clusters * n_strata].reshape(2, n_clusters, -1)
    codes, strata = np.indices(x.shape).reshape(2, -1)
    for clustered, plain in PLAIN:
        found = clustered(x.ravel(), y.ravel(), codes, strata)
        if found.value is None:
            continue
        sizes = [
            abs(plain(list(zip(x.ravel(), y[list(order)].ravel(), strata, strict=True))))
            for order in permutations(range(n_clusters))
        ]
        as_large = Fraction(sum(size >= sizes[0] - 1e-9 for size in sizes), len(sizes))
        largest = Fraction(sum(size >= max(sizes) - 1e-9 for size in sizes), len(sizes))
        assert found.method == "exact"
        assert (found.p_value, found.smallest_p) == pytest.approx((as_large, largest))
        shifted = clustered(x.ravel() + 9 * strata, y.ravel() - 7 * strata, codes, strata)
        assert (shifted.value, shifted.p_value) == (found.value, found.p_value)


def test_incomplete_clusters_have_the_test_of_their_interval() -> None:
    x, y = [1.0, 2.0, 3.0, 5.0, 4.0], [2.0, 1.0, 4.0, 3.0, 5.0]
    assert clustered_spearman(x, y, [1, 2, 3, 4, 5]).method == "exact"
    assert clustered_spearman(x, y, [1, 2, 3, 4, 4]).method == "jackknife"
    assert clustered_spearman(x, y, [1, 2, 3, 4, 5], ["m", "m", "m", "n", "n"]).method != "exact"


def test_perfect_correlation_has_no_interval() -> None:
    found = clustered_spearman([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1, 2, 3])
    assert (found.value, found.low, found.p_value) == (1.0, None, pytest.approx(1 / 3))
    assert found.smallest_p == pytest.approx(1 / 3)
    assert found.reason == "zero_variance"
    many = clustered_spearman(np.arange(20.0), np.arange(20.0), np.arange(20))
    assert (many.value, many.p_value, many.reason) == (1.0, None, "zero_variance")


@given(ROWS, st.randoms())
def test_order_never_matters(rows: Rows, random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    for clustered, _ in PLAIN:
        assert clustered(*arrays(rows)) == clustered(*arrays(shuffled))


def test_smallest_detectable_correlation_by_hand() -> None:
    # t(0.975, 9) = 2.262157, t(0.8, 9) = 0.883404: tanh(3.145561 * 0.2)
    found = Correlation(0.1, 10, 10, error=0.2, smallest_p=0.0)
    assert detectable_correlation(found) == pytest.approx(math.tanh(0.6291122), abs=1e-6)
    assert detectable_correlation(Correlation(1.0, 10, 10)) is None
    # three clusters: p is at least 1 / 3
    assert detectable_correlation(Correlation(0.5, 3, 3, error=0.2, smallest_p=1 / 3)) is None


def test_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a\[1\] is nan"):
        clustered_spearman([1.0, math.nan, 2.0], [1.0, 2.0, 3.0], [1, 2, 3])
