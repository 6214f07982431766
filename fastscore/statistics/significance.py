"""Intervals, tests and effect sizes over plain arrays, the same for every suite.

Values are one-dimensional and finite: null and NaN are refused, because leaving them out is the
caller's decision, who also counts them. What a statistic cannot be computed from gives no NaN but
None and the reason. No result depends on the order of the values (pairs keep together).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fastscore.extras import scipy_stats
from fastscore.statistics.samples import (
    Values,
    ascending,
    deviation,
    is_constant,
    pair_differences,
    pooled_deviation,
)
from fastscore.statistics.student import t_below, t_inverse

StatisticReason = Literal["too_few_values", "zero_variance"]
LEVEL = 0.95
NORMAL_QUANTILE = 1.96
"""The published half width of a 95 % interval, in standard errors."""
EXACT_WITH_TIES = 13
"""The most differences, some tied, for which Wilcoxon's test counts every choice of signs."""
EXACT_AGAINST_MANY = 8
"""The most values of the smaller sample for which Mann and Whitney's U is exact, without ties."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its confidence interval.

    Parameters
    ----------
    value
        The estimate; None where there is none.
    low, high
        The interval's ends; None where ``reason`` says why.
    reason
        Why a part is None.
    """

    value: float | None
    low: float | None
    high: float | None
    reason: StatisticReason | None = None


@dataclass(frozen=True, slots=True)
class Significance:
    """The outcome of a two-sided test.

    Parameters
    ----------
    statistic
        The test's own statistic: t, U, W, rho or tau.
    p_value
        Its two-sided p-value.
    degrees_of_freedom
        Of a t-test; None of others.
    reason
        Why all of them are None.
    """

    statistic: float | None
    p_value: float | None
    degrees_of_freedom: float | None = None
    reason: StatisticReason | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect size, or the reason why there is none."""

    value: float | None
    reason: StatisticReason | None = None


def mean_interval(
    values: npt.ArrayLike, *, method: Literal["t", "normal"] = "t", ddof: Literal[0, 1] = 1
) -> Interval:
    """Return the mean and its 95 % interval.

    Parameters
    ----------
    values
        Shape (n,).
    method
        ``t``: mean ± t(0.975, n - 1) s / sqrt(n); ``normal``: mean ± 1.96 s / sqrt(n), as the
        guest_simulation definitions have it.
    ddof
        s divides by n - ddof: 1 for a sample, 0 as the published guest_simulation code.

    Returns
    -------
    Interval
        No ends for fewer than two values, no mean for none; of width 0 where all are equal.
    """
    sample = ascending(values, "values")
    if sample.size < 2:
        return Interval(float(sample[0]) if sample.size else None, None, None, "too_few_values")
    mean = float(sample.mean())
    quantile = NORMAL_QUANTILE if method == "normal" else -t_inverse(sample.size - 1, 0.025)
    half = quantile * deviation(sample, ddof) / np.sqrt(sample.size)
    return Interval(mean, float(mean - half), float(mean + half))


def welch_t(a: npt.ArrayLike, b: npt.ArrayLike) -> Significance:
    """Test whether two independent samples have one mean, by Welch's t (unequal variances).

    Parameters
    ----------
    a, b
        Shapes (n,) and (m,); t is positive where a's mean is larger.

    Returns
    -------
    Significance
        too_few_values below two in either; zero_variance where each is constant.
    """
    first, second = ascending(a, "a"), ascending(b, "b")
    reason = _no_spread(first, second)
    if reason:
        return Significance(None, None, reason=reason)
    errors = [deviation(part, 1) / math.sqrt(part.size) for part in (first, second)]
    error = math.hypot(*errors)
    # Welch and Satterthwaite's degrees, each error as a share of the whole
    inverse = sum(
        (own / error) ** 4 / (part.size - 1)
        for own, part in zip(errors, (first, second), strict=True)
    )
    return _t_test(first.mean() - second.mean(), error, 1 / inverse)


def student_t(a: npt.ArrayLike, b: npt.ArrayLike) -> Significance:
    """Test as `welch_t` does, by Student's t (one variance for both samples)."""
    first, second = ascending(a, "a"), ascending(b, "b")
    reason = _no_spread(first, second)
    if reason:
        return Significance(None, None, reason=reason)
    error = pooled_deviation(first, second) * math.sqrt(1 / first.size + 1 / second.size)
    return _t_test(first.mean() - second.mean(), error, float(first.size + second.size - 2))


def cohens_d(
    a: npt.ArrayLike, b: npt.ArrayLike, *, pooling: Literal["sample", "population"] = "sample"
) -> Effect:
    """Return Cohen's d of two independent samples, (mean a - mean b) / pooled deviation.

    Parameters
    ----------
    a, b
        Shapes (n,) and (m,).
    pooling
        ``sample``: sqrt(((n - 1) s_a^2 + (m - 1) s_b^2) / (n + m - 2)) with sample variances;
        ``population``: sqrt((v_a + v_b) / 2) with variances over n and m, as the published
        guest_simulation code has it.

    Returns
    -------
    Effect
        too_few_values below two in either; zero_variance where each is constant.
    """
    first, second = ascending(a, "a"), ascending(b, "b")
    reason = _no_spread(first, second)
    if reason:
        return Effect(None, reason)
    if pooling == "sample":
        pooled = pooled_deviation(first, second)
    else:
        pooled = math.hypot(deviation(first, 0), deviation(second, 0)) / math.sqrt(2)
    return Effect(float((first.mean() - second.mean()) / pooled))


def mann_whitney_u(a: npt.ArrayLike, b: npt.ArrayLike) -> Significance:
    """Test whether values of one independent sample tend to be larger, by Mann and Whitney's U.

    Parameters
    ----------
    a, b
        Shapes (n,) and (m,); the statistic is the number of pairs in which a's value is larger,
        ties a half. The p-value is exact where one sample has at most 8 values and none is tied,
        else by the normal approximation with corrections for ties and continuity.

    Returns
    -------
    Significance
        too_few_values where either is empty; zero_variance where all values are equal.
    """
    first, second = ascending(a, "a"), ascending(b, "b")
    if not first.size or not second.size:
        return Significance(None, None, reason="too_few_values")
    together = np.concatenate([first, second])
    if is_constant(together):
        return Significance(None, None, reason="zero_variance")
    is_tied = np.unique(together).size < together.size
    if is_tied or min(first.size, second.size) > EXACT_AGAINST_MANY:
        return _significance(scipy_stats().mannwhitneyu(first, second, method="asymptotic"))
    return _exact_mann_whitney(first, second)


def paired_t(a: npt.ArrayLike, b: npt.ArrayLike) -> Significance:
    """Test whether the mean difference a - b of pairs is zero, by the paired t.

    Parameters
    ----------
    a, b
        Shape (n,) each; position i of both is one pair.

    Returns
    -------
    Significance
        too_few_values below two pairs; zero_variance where all differences are equal.
    """
    differences = pair_differences(a, b)
    reason = _no_spread(differences)
    if reason:
        return Significance(None, None, reason=reason)
    error = deviation(differences, 1) / math.sqrt(differences.size)
    return _t_test(differences.mean(), error, float(differences.size - 1))


def cohens_dz(a: npt.ArrayLike, b: npt.ArrayLike) -> Effect:
    """Return the effect size of pairs, mean (a - b) / sample deviation of (a - b).

    Parameters
    ----------
    a, b
        Shape (n,) each; position i of both is one pair.

    Returns
    -------
    Effect
        too_few_values below two pairs; zero_variance where all differences are equal.
    """
    differences = pair_differences(a, b)
    reason = _no_spread(differences)
    if reason:
        return Effect(None, reason)
    return Effect(float(differences.mean() / deviation(differences, 1)))


def wilcoxon_signed_rank(a: npt.ArrayLike, b: npt.ArrayLike) -> Significance:
    """Test whether differences a - b of pairs lie evenly around zero, by Wilcoxon's signed ranks.

    Parameters
    ----------
    a, b
        Shape (n,) each; position i of both is one pair. Pairs without a difference are left out,
        as in Wilcoxon's own test. The statistic is the smaller sum of ranks. The p-value is exact
        up to 50 differences without ties and up to 13 with them, else by the normal approximation
        with the correction for ties.

    Returns
    -------
    Significance
        too_few_values without pairs; zero_variance where no pair differs.
    """
    differences = pair_differences(a, b)
    if not differences.size:
        return Significance(None, None, reason="too_few_values")
    differing = differences[differences != 0.0]
    if not differing.size:
        return Significance(None, None, reason="zero_variance")
    ranks = scipy_stats().rankdata(np.abs(differing))
    is_tied = np.unique(ranks).size < ranks.size
    if is_tied and differing.size <= EXACT_WITH_TIES:
        return _exact_signed_rank(differing, ranks)
    return _significance(scipy_stats().wilcoxon(differing))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Correct p-values of one family for multiplicity, by Holm's step-down procedure.

    Parameters
    ----------
    p_values
        Shape (n,), each in [0, 1]; None where a test gave no p-value: it is no member of the
        family and stays None.

    Returns
    -------
    list
        Corrected p-values, each the largest of (family size - rank) * p over equal and lower
        ranks, at most 1.
    """
    members = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    if any(not 0.0 <= p <= 1.0 for p, _ in members):
        raise ValueError(f"p-values lie in [0, 1], found {[p for p, _ in members]}")
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, position) in enumerate(members):
        highest = max(highest, min(1.0, (len(members) - rank) * p))
        corrected[position] = highest
    return corrected


def _no_spread(*samples: Values) -> StatisticReason | None:
    if any(sample.size < 2 for sample in samples):
        return "too_few_values"
    varying = any(deviation(sample, 1) > 0.0 for sample in samples)
    return None if varying else "zero_variance"


def _t_test(difference: float, standard_error: float, degrees_of_freedom: float) -> Significance:
    t = float(difference / standard_error)
    return Significance(t, 2 * t_below(degrees_of_freedom, -abs(t)), degrees_of_freedom)


def _exact_signed_rank(differences: Values, ranks: Values) -> Significance:
    """Count every choice of signs, as SciPy's permutation test does one by one.

    Tied ranks are multiples of a half, so their doubles are whole and sums can be counted.
    """
    doubled = np.rint(2 * ranks).astype(np.int64)
    choices = np.zeros(doubled.sum() + 1)
    choices[0] = 1.0
    for rank in doubled:
        choices[rank:] += choices[:-rank].copy()
    positive = int(doubled[differences > 0].sum())
    tails = choices[: positive + 1].sum(), choices[positive:].sum()
    p_value = min(1.0, 2 * float(min(tails)) / float(choices.sum()))
    return Significance(min(positive, int(doubled.sum()) - positive) / 2, p_value)


def _exact_mann_whitney(first: Values, second: Values) -> Significance:
    """Count every choice of places, in time linear in the larger sample (SciPy's is quadratic).

    How many choices have a U of k is the coefficient of q^k in the Gaussian binomial, the product
    of (1 - q^(many + i)) / (1 - q^i) for i from 1 to few; none beyond the smaller U is needed.
    """
    few, many = sorted((first.size, second.size))
    u = int(np.searchsorted(second, first).sum())
    smaller = min(u, few * many - u)
    choices = np.zeros(smaller + 1)
    choices[0] = 1.0
    for i in range(1, few + 1):
        rows = np.zeros((smaller // i + 1, i))
        rows.ravel()[: choices.size] = choices
        choices = rows.cumsum(axis=0).ravel()[: choices.size]
        choices[many + i :] -= choices[: -(many + i)].copy()
    p_value = min(1.0, 2 * float(choices.sum()) / math.comb(few + many, few))
    return Significance(float(u), p_value)


def _significance(result: Any) -> Significance:
    return Significance(float(result.statistic), float(result.pvalue))
