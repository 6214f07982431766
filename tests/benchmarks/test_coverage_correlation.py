"""Correlations of users by models keep their level, which rows taken as independent do not."""

import math

import numpy as np
import pytest

from benchmarks.coverage import DESIGNS, rates, simulate, true_value
from tests.conftest import often

DIFFERING = DESIGNS[2]


def test_designs_are_what_they_are_called():
    generator = np.random.default_rng(0)
    for design in DESIGNS:
        log = simulate(design, 30, 0.0, generator)
        assert np.unique(log.user).size == 30
        assert np.unique(log.model).size == design.models
        full = 30 * design.models * design.dialogues
        assert (log.user.size < full) == (design.answered < 1)
        assert (np.unique(log.judge).size < log.judge.size) == design.is_tied


def test_the_true_values_are_those_of_the_normal_law():
    # Spearman's rho is 6 / pi * asin(r / 2), Kendall's tau 2 / pi * asin(r)
    assert true_value(DESIGNS[0], "rho", 0.5) == pytest.approx(
        6 / np.pi * np.arcsin(0.25), abs=0.01
    )
    assert true_value(DESIGNS[0], "tau", 0.5) == pytest.approx(2 / np.pi * np.arcsin(0.5), abs=0.01)


def test_models_that_differ_make_no_false_correlations():
    logs = often(60, 250)
    most = 0.05 + 3 * math.sqrt(0.05 * 0.95 / logs)
    found = {
        rate.name.partition(": ")[2]: rate.found for rate in rates(DIFFERING, 20, "rho", 0.48, logs)
    }
    assert found["p < 0.05 if rows were independent"] > 0.2
    assert found["p < 0.05"] <= most
    assert found["verdicts"] <= most
    assert found["interval covers 0"] >= 1 - most
    assert found["interval covers 0.48"] >= 1 - most
