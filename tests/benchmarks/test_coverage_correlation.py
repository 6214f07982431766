"""Correlations of users by models keep their level, which rows taken as independent do not."""

import math

from benchmarks.coverage import DESIGNS, rates
from tests.conftest import often

DIFFERING = DESIGNS[2]


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
