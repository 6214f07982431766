"""Variance between repeats beside an analysis of variance by hand and by simulation."""

import numpy as np
import pytest

from fastscore.statistics.clustered import (
    _by_cluster,
    clustered_difference,
    repeated_difference,
    variance_components,
)
from fastscore.statistics.curves import difference_curve

RNG = np.random.default_rng(22)


def crossed(n_dialogues: int, n_repeats: int, spread: tuple[float, float, float]) -> np.ndarray:
    between, repeated, rest = spread
    return (
        RNG.normal(0, between, (n_dialogues, 1))
        + RNG.normal(0, repeated, (1, n_repeats))
        + RNG.normal(0, rest, (n_dialogues, n_repeats))
    )


def cells(values: np.ndarray) -> dict[str, np.ndarray]:
    n, m = values.shape
    return {
        "sums": values.ravel(),
        "counts": np.ones(n * m),
        "clusters": np.repeat([f"d{k}" for k in range(n)], m),
        "repeats": np.tile([f"r{k}" for k in range(m)], n),
    }


def test_components_of_a_balanced_design_are_those_of_the_analysis_of_variance() -> None:
    # dialogues 1, 3, 8 (means of rows), repeats 3, 5: values by hand
    values = np.array([[0.0, 2.0], [2.0, 4.0], [7.0, 9.0]])
    # every repeat adds 2 to every dialogue: no rest. MS(dialogues) = 2 * var(1, 3, 8) = 26,
    # MS(repeats) = 3 * var(3, 5) = 6, MS(rest) = 0; components 26 / 2, 6 / 3, 0
    dialogues, repeats = np.repeat([0, 1, 2], 2), np.tile([0, 1], 3)
    found = variance_components(values.ravel(), dialogues, repeats)
    assert found == pytest.approx((13.0, 2.0, 0.0))


def test_without_repeats_there_are_no_components() -> None:
    zeros = np.zeros(3, np.int64)
    assert variance_components(np.arange(3.0), np.arange(3), zeros) == (None, None, None)


def test_intervals_hold_for_new_repeats_too() -> None:
    # 300 differences of two systems without a true one, four repeats each, all seeds new:
    # the interval over dialogues alone misses 0 far too often
    missed = alone = 0
    for _ in range(300):
        a, b = (cells(crossed(12, 4, (1.0, 0.5, 0.5))) for _ in range(2))
        sides = _by_cluster(a, b)
        for repeated in (repeated_difference(a, b), None):
            curve = difference_curve(*sides, shared=True, repeated=repeated, test="t")
            low, high = curve.interval(0.95)
            assert low is not None
            assert high is not None
            missed += repeated is not None and not low <= 0 <= high
            alone += repeated is None and not low <= 0 <= high
    assert missed <= 0.05 * 300 + 3 * (0.05 * 0.95 * 300) ** 0.5
    assert alone > missed


def test_without_differences_between_repeats_the_interval_is_that_over_dialogues() -> None:
    values = np.repeat(RNG.normal(size=(9, 1)), 3, axis=1)
    other = values + np.repeat(RNG.normal(size=(9, 1)), 3, axis=1)
    found = repeated_difference(cells(values), cells(other))
    alone = clustered_difference(*_by_cluster(cells(values), cells(other)), shared=True)
    assert found.standard_error == pytest.approx(alone.standard_error)
    assert found.degrees_of_freedom == pytest.approx(alone.degrees_of_freedom)


def test_one_row_of_a_second_repeat_says_nothing_of_new_repeats() -> None:
    # twelve dialogues in one repeat, and one row of another: less than one degree of freedom
    def side(values: np.ndarray, lone: float) -> dict[str, np.ndarray]:
        return {
            "sums": np.append(values, lone),
            "counts": np.ones(13),
            "clusters": np.array([*(f"d{k}" for k in range(12)), "d0"]),
            "repeats": np.array(["r0"] * 12 + ["r1"]),
        }

    a, b = side(np.arange(12.0), 40.0), side(np.arange(12.0) + 1, 3.0)
    repeated = repeated_difference(a, b)
    assert repeated.degrees_of_freedom is not None
    assert repeated.degrees_of_freedom < 1
    curve = difference_curve(*_by_cluster(a, b), shared=True, repeated=repeated, test="t")
    assert (curve.method, curve.reason) == ("none", "too_few_units")
    assert curve.interval(0.95) == (None, None)
