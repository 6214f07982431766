"""Statistics against values worked by hand, published figures, and their own definitions."""

import math
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from fastscore.statistics import significance as fs

student_t = partial(fs.independent_t, one_variance=True)
welch_t = partial(fs.independent_t, one_variance=False)
FEW = [1.0, 2.0, 3.0]
MORE = [2.0, 4.0, 6.0, 8.0]


def test_published_interval_by_hand() -> None:
    # s over n: sqrt(2), 1.96 * sqrt(2 / 5) = 1.239613
    found = fs.published_interval([5.0, 3.0, 1.0, 2.0, 4.0])
    assert found == pytest.approx((3.0, 1.760387, 4.239613), abs=1e-6)


def test_published_interval_without_enough_values() -> None:
    assert fs.published_interval([]) == (None, None, None)
    assert fs.published_interval([0.25]) == (0.25, None, None)
    assert fs.published_interval([0.25, 0.25]) == (0.25, 0.25, 0.25)


def test_cohens_d_by_hand() -> None:
    # variances over n: 2/3 and 5
    assert fs.cohens_d(FEW, MORE) == pytest.approx(-3 / math.sqrt(17 / 6))
    assert fs.cohens_d([1.0], MORE) is None
    assert fs.cohens_d([1.0, 1.0], [2.0, 2.0]) is None


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
def test_published_level_5_against_level_1(
    d_sample: float, d_population: float, student_p: float
) -> None:
    """For groups of 60 and of one variance, d fixes the other d and p (d is known to 0.0005)."""
    unit = np.resize([-1.0, 1.0], 60) * math.sqrt(59 / 60)
    low, middle, high = (unit + d for d in (d_sample - 5e-4, d_sample, d_sample + 5e-4))
    pooled = math.sqrt((middle.var(ddof=1) + unit.var(ddof=1)) / 2)
    assert (middle.mean() - unit.mean()) / pooled == pytest.approx(d_sample)
    population = fs.cohens_d(middle, unit)
    assert population == pytest.approx(d_population, abs=1.1e-3)
    most, least = (student_t(shifted, unit).p_value for shifted in (low, high))
    assert most is not None
    assert least is not None
    assert least * 0.96 <= student_p <= most * 1.04


SAMPLE = st.lists(st.integers(-9, 9).map(lambda value: value / 8), min_size=2, max_size=9)


@given(SAMPLE, SAMPLE)
@example([1.0, 1.0], FEW)
@pytest.mark.filterwarnings("ignore:Precision loss")
def test_t_tests_are_those_of_scipy(a: list[float], b: list[float]) -> None:
    peers = [
        (welch_t(a, b), lambda: stats.ttest_ind(a, b, equal_var=False)),
        (student_t(a, b), lambda: stats.ttest_ind(a, b)),
    ]
    for ours, scipy_test in peers:
        if ours.reason is None:
            theirs = scipy_test()
            assert ours.statistic == pytest.approx(theirs.statistic)
            assert ours.p_value == pytest.approx(theirs.pvalue)
            assert ours.degrees_of_freedom == pytest.approx(theirs.df)


def test_mann_whitney_by_hand() -> None:
    # 3 > 2 once and 2 = 2 once
    assert fs.mann_whitney_u(FEW, MORE).statistic == 1.5
    # of the 10 orders of two and three values two are as extreme
    least = fs.mann_whitney_u([1.0, 2.0], [3.0, 4.0, 5.0])
    assert (least.statistic, least.p_value) == (0.0, pytest.approx(0.2))


@given(st.integers(1, 8), st.integers(1, 30), st.randoms())
def test_mann_whitney_of_few_values_is_exact(few: int, many: int, random: Random) -> None:
    values = random.sample(range(100), few + many)
    a, b = values[:few], values[few:]
    for first, second in ((a, b), (b, a)):
        found = fs.mann_whitney_u(first, second)
        expected = stats.mannwhitneyu(first, second, method="exact")
        assert found.statistic == expected.statistic
        assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)


def test_mann_whitney_of_few_values_against_very_many() -> None:
    # each of the 40,001 places is as likely: the lowest one and the highest
    many = np.arange(1.0, 40_001.0)
    assert fs.mann_whitney_u([0.0], many).p_value == pytest.approx(2 / 40_001)
    assert fs.mann_whitney_u([20_000.5], many).p_value == 1.0
    # one of all choices of 8 among 40,008 places is as low as this
    lowest = fs.mann_whitney_u(np.arange(-8.0, 0.0), many)
    assert lowest.statistic == 0.0
    assert lowest.p_value == pytest.approx(2 / math.comb(40_008, 8))
    # in the middle the normal law is close
    across = np.linspace(5_000.5, 30_000.5, 8)
    normal = stats.mannwhitneyu(across, many, method="asymptotic").pvalue
    assert fs.mann_whitney_u(across, many).p_value == pytest.approx(normal, abs=0.01)


def test_what_has_no_p_is_no_member_of_a_family() -> None:
    assert fs.holm([0.01, None, 0.03]) == pytest.approx([0.02, None, 0.03])
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        fs.holm([1.5])


@given(st.lists(st.floats(0, 1), max_size=8), st.sampled_from([0.001, 0.05, 0.5]))
def test_holm_rejects_what_stepping_down_rejects(p_values: list[float], alpha: float) -> None:
    rejected = set()
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if (len(p_values) - rank) * p_values[i] > alpha:
            break
        rejected.add(i)
    corrected = fs.holm(p_values)
    assert {i for i, p in enumerate(corrected) if p is not None and p <= alpha} == rejected


def test_too_few_values_and_no_variance_give_reasons() -> None:
    for statistic in (welch_t, student_t):
        assert statistic([1.0], [2.0]).reason == "too_few_values"
        assert statistic([], []).reason == "too_few_values"
        assert statistic([0.1] * 3, [0.3] * 3).reason == "zero_variance"
    assert fs.mann_whitney_u([], [1.0]).reason == "too_few_values"
    assert fs.mann_whitney_u([1.0, 1.0], [1.0]).reason == "zero_variance"


def test_values_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a\[1\] is nan"):
        welch_t([1.0, math.nan], FEW)
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        fs.published_interval([[1.0, 2.0]])


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=3), st.randoms())
def test_order_never_matters(pairs: list[tuple[float, float]], random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for statistic in (welch_t, fs.mann_whitney_u):
        assert statistic(*np.array(pairs).T) == statistic(*np.array(shuffled).T)
