"""Student's t beside SciPy, the noncentral t beside SciPy's distribution, chi-squared by both."""

import math

import pytest
import scipy.special

from fastscore.statistics.significance import noncentrality, t_below, t_inverse

DEGREES = (0.5, 1, 1.5, 2, 3, 10, 19.9, 20, 29.3, 60, 1000.5, 1e6, 1e12)


@pytest.mark.parametrize("degrees", DEGREES)
def test_probabilities_of_t_are_those_of_scipy(degrees: float) -> None:
    for t in (-15.0, -3.0, -1.96, -1.7, -0.5, 0.0, 0.01, 1.0, 4.0):
        expected = float(scipy.special.stdtr(degrees, t))
        assert t_below(degrees, t) == pytest.approx(expected, rel=2e-13)


def t_by_beta(degrees: float, probability: float) -> float:
    """Return a quantile of t by SciPy's incomplete beta; its `stdtrit` was exact to 1e-11 once."""
    tails = 2 * min(probability, 1 - probability)
    x = float(scipy.special.betaincinv(degrees / 2, 0.5, tails))
    y = float(scipy.special.betainccinv(0.5, degrees / 2, tails))  # 1 - x
    t = math.sqrt(degrees * y / (1 - y) if y < 0.5 else degrees * (1 - x) / x)
    return math.copysign(t, probability - 0.5)


@pytest.mark.parametrize("degrees", DEGREES)
def test_quantiles_of_t_are_those_of_scipy(degrees: float) -> None:
    for probability in (1e-9, 1e-4, 0.005, 0.025, 0.2, 0.5, 0.8, 0.975):
        expected = t_by_beta(degrees, probability)
        assert t_inverse(degrees, probability) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_quantiles_with_a_closed_form() -> None:
    assert t_inverse(1, 0.975) == pytest.approx(math.tan(0.475 * math.pi), rel=1e-13)
    assert t_inverse(2, 0.975) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)), rel=1e-13)
    assert t_inverse(math.inf, 0.975) == pytest.approx(1.959963984540054, rel=1e-14)


@pytest.mark.parametrize("degrees", [1, 2, 3, 8, 20, 1e3, 1e5])
def test_a_noncentrality_gives_back_its_probability(degrees: float) -> None:
    for t in (-20.0, -3.0, 0.0, 0.3, 4.0, 20.0):
        for probability in (0.025, 0.5, 0.975):
            found = noncentrality(degrees, probability, t)
            # scipy's own inversion is exact to 1e-8 of the probability only
            side = math.copysign(1.0, t)
            below = float(scipy.special.nctdtr(degrees, side * found, abs(t)))
            expected = probability if side > 0 else 1 - probability
            assert below == pytest.approx(expected, abs=1e-9)


def test_noncentrality_without_an_effect_is_normal() -> None:
    assert noncentrality(30, 0.975, 0.0) == pytest.approx(-1.959963984540054, rel=1e-9)
