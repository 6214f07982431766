"""Intervals, tests and effect sizes over plain arrays, and the distributions that they need.

A statistic that cannot be computed is None, never NaN. No result depends on the order of values.
"""

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from fastscore.settings.extras import scipy_stats

Values = npt.NDArray[np.float64]
TIE_BITS = 40
"""Differences of pairs within 2^-40 of the largest value are equal, as 0.3 - 0.2 and 0.2 - 0.1."""
_SERIES_FROM = 30.0
"""The asymptotic series of a ratio of gamma functions has an error below 1e-16 from here on."""
_INTEGRATED_FROM = 20.0
"""Degrees of freedom: a continued fraction is exact below, an integral above."""
_LOWEST_EXPONENT = 45.0
_STEP = 9.0
"""Standard deviations on either side of a step of the normal distribution."""
_STEPS = 200
_NORMAL = NormalDist()


def t_below(degrees_of_freedom: float, t: float) -> float:
    """Return the probability that Student's t is below `t`."""
    above = _t_above(degrees_of_freedom, abs(t))
    return above if t < 0 else 1.0 - above


@lru_cache(maxsize=1 << 16)
def t_inverse(degrees_of_freedom: float, probability: float) -> float:
    """Return the value that Student's t is below with a probability between 0 and 1."""
    if probability == 0.5:
        return 0.0
    if probability > 0.5:
        return -t_inverse(degrees_of_freedom, 1.0 - probability)
    t = -_NORMAL.inv_cdf(probability)
    low, high = 0.0, math.inf
    for _ in range(_STEPS):
        above = _t_above(degrees_of_freedom, t)
        low, high = (t, high) if above > probability else (low, t)
        # Newton's step on the logarithm of the tail, which is nearly straight
        step = math.log(above / probability) * above / _t_density(degrees_of_freedom, t)
        following = t + step
        if not low <= following <= high:
            following = 2 * t if math.isinf(high) else (low + high) / 2
        if abs(following - t) <= 1e-15 * t:
            return -following
        t = following
    return -t


def noncentrality(degrees_of_freedom: float, probability: float, t: float) -> float:
    """Return the noncentrality for which the noncentral t is below `t` with a probability."""
    spread = math.sqrt(1 + t * t / (2 * degrees_of_freedom))
    shift = t - spread * _NORMAL.inv_cdf(probability)
    low, high = -math.inf, math.inf
    for _ in range(_STEPS):
        below, slope = _noncentral_t(degrees_of_freedom, shift, t)
        low, high = (shift, high) if below > probability else (low, shift)
        following = shift + (below - probability) / slope if slope else math.nan
        if not low < following < high:
            ends = (low, shift + spread) if math.isinf(high) else (low, high)
            ends = (shift - spread, ends[1]) if math.isinf(low) else ends
            following = sum(ends) / 2
        if abs(following - shift) <= 1e-14 * max(1.0, abs(shift)):
            return following
        shift = following
    return shift


def _t_above(degrees: float, t: float) -> float:
    """Return the probability that Student's t is above `t`, which is not negative."""
    if t == 0.0:
        return 0.5
    if math.isinf(degrees):
        return math.erfc(t / math.sqrt(2)) / 2
    if degrees >= _INTEGRATED_FROM:
        return _integrated_tail(degrees, t)
    a, share = degrees / 2, t * t / degrees
    x = 1 / (1 + share)
    power = math.exp(-a * math.log1p(share) - math.log1p(1 / share) / 2)
    front = power * gamma_ratio(a) / math.sqrt(math.pi)
    if x < (a + 1) / (a + 2.5):
        return front / a * _beta_fraction(a, 0.5, x) / 2
    return 0.5 - front * _beta_fraction(0.5, a, share / (1 + share))


def _t_density(degrees: float, t: float) -> float:
    if math.isinf(degrees):
        return _NORMAL.pdf(t)
    power = math.exp(-(degrees + 1) / 2 * math.log1p(t * t / degrees))
    return power * gamma_ratio(degrees / 2) / math.sqrt(math.pi * degrees)


def _integrated_tail(degrees: float, t: float) -> float:
    """Integrate cos(angle) ** (degrees - 1) from the angle of `t` to where nothing is left."""
    slope = t / math.sqrt(degrees)
    angle, power = math.atan(slope), degrees - 1
    reach = min(math.sqrt(2 * _LOWEST_EXPONENT / power), _LOWEST_EXPONENT / (power * slope))
    nodes, weights = _quadrature()
    width = min(reach, math.pi / 2 - angle)
    sines = np.sin(angle + width * nodes)
    with np.errstate(divide="ignore"):  # nothing is left at a right angle
        area = width * float(weights @ np.exp(power / 2 * np.log1p(-sines * sines)))
    return gamma_ratio(degrees / 2) / math.sqrt(math.pi) * area


def _noncentral_t(degrees: float, shift: float, t: float) -> tuple[float, float]:
    """Return the probability that the noncentral t is below `t`, and its fall by the shift.

    The normal probability is integrated over the standard deviation, which has a chi density.

    The parts before, at and after the step of the probability are integrated one by one.
    """
    nodes, weights = _quadrature()
    reach = math.sqrt(2 * _LOWEST_EXPONENT / degrees)
    first, last = max(0.0, 1 - reach), 1 + reach
    step = sorted(((shift - _STEP) / t, (shift + _STEP) / t)) if t else []
    edges = [first, *(min(max(edge, first), last) for edge in step), last]
    mass = below = slope = 0.0
    for low, high in pairwise(sorted(set(edges))):
        deviations = low + (high - low) * nodes
        logs = (degrees - 1) * np.log(deviations) - degrees / 2 * (deviations**2 - 1)
        density = (high - low) * weights * np.exp(logs)
        distances = shift - t * deviations
        normal = [math.erfc(one / math.sqrt(2)) / 2 for one in distances.tolist()]
        mass += float(density.sum())
        below += float(density @ np.array(normal))
        slope += float(density @ np.exp(-(distances**2) / 2)) / math.sqrt(2 * math.pi)
    return below / mass, slope / mass


@lru_cache(maxsize=64)
def gamma_ratio(a: float) -> float:
    """Return gamma(a + 1/2) / gamma(a)."""
    if a < _SERIES_FROM:
        return math.exp(math.lgamma(a + 0.5) - math.lgamma(a))
    series = -1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5) + 17 / (14336 * a**7)
    return math.sqrt(a) * math.exp(series)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, _STEPS):
        for top in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / (1.0 + top * d)
            c = 1.0 + top / c
            result *= c * d
        if abs(c * d - 1.0) < 4e-16:
            break
    return result


@cache
def _quadrature() -> tuple[Values, Values]:
    """Return nodes and weights of Gauss and Legendre on 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    return (nodes + 1) / 2, weights / 2


def finite(values: npt.ArrayLike, name: str) -> Values:
    """Return values as a one-dimensional float64 array."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}, expected (n,)")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ValueError(f"{name}[{bad[0]}] is {array[bad[0]]}, expected finite values only")
    return array


def is_constant(sample: Values) -> bool:
    """Return whether all values of a sample are equal."""
    return bool(sample.min() == sample.max())


def deviation(sample: Values, ddof: int) -> float:
    """Return the standard deviation; exactly 0 for equal values, whatever their mean rounds to."""
    return 0.0 if is_constant(sample) else float(sample.std(ddof=ddof))


NORMAL_QUANTILE = 1.96
"""The published half width of a 95 % interval, in standard errors."""
MOST_EXACT_RANKS = 10_000


def published_statistics(a: Values, b: Values) -> dict[str, float | None]:
    """Return the statistics of the public guest_simulation code for independent samples.

    Variances of intervals and of Cohen's d are over n. Tests and effects are of b against a.
    """
    x, y = np.sort(a), np.sort(b)
    n, m = x.size, y.size
    found: dict[str, float | None] = {}
    for name, sample in (("a", x), ("b", y)):
        mean = float(sample.mean()) if sample.size else None
        low = high = None
        if mean is not None and sample.size > 1:
            half = NORMAL_QUANTILE * deviation(sample, 0) / math.sqrt(sample.size)
            low, high = mean - half, mean + half
        found[f"n_{name}"], found[f"mean_{name}"] = sample.size, mean
        found[f"normal_low_{name}"], found[f"normal_high_{name}"] = low, high
    stats = scipy_stats()
    if min(n, m) > 1 and (deviation(x, 1) or deviation(y, 1)):
        moments = [part for one in (y, x) for part in (one.mean(), deviation(one, 1), one.size)]
        for name, equal in (("student", True), ("welch", False)):
            t, p = stats.ttest_ind_from_stats(*moments, equal_var=equal)
            found |= {f"{name}_t": float(t), f"{name}_p": float(p)}
        pooled = math.hypot(deviation(y, 0), deviation(x, 0)) / math.sqrt(2)
        found["cohens_d"] = float((y.mean() - x.mean()) / pooled)
    if n and m and not is_constant(np.concatenate([x, y])):
        # exact for few values without ties, in time that grows with their product
        method = "auto" if n * m <= MOST_EXACT_RANKS else "asymptotic"
        u, p = stats.mannwhitneyu(y, x, method=method)
        found |= {"mann_whitney_u": float(u), "mann_whitney_p": float(p)}
    return found


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Correct p-values of one family for multiplicity, by Holm's step-down procedure."""
    members = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    if any(not 0.0 <= p <= 1.0 for p, _ in members):
        raise ValueError(f"p-values lie in [0, 1], found {[p for p, _ in members]}")
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, position) in enumerate(members):
        highest = max(highest, min(1.0, (len(members) - rank) * p))
        corrected[position] = highest
    return corrected
