"""The confidence curve of a difference of means: interval and p-values come from one method.

`difference_curve` chooses the method by what the data are. Then `Curve.interval` gives the
interval at any level, `Curve.p_value` tests "no difference", and `Curve.p_above` and
`Curve.p_below` test any limit. A verdict, a margin and a gate of the same data therefore agree.

====================  ====================================  ==================================
method                interval                              p-value
====================  ====================================  ==================================
t                     cluster-robust (`clustered`)          t, or permutations of its t
pooled t              t with the spread of both sides       as t; one side has no spread
hybrid                Newcombe's (1998) combination of      its inversion, or permutations
                      both sides' own intervals
proportions           Newcombe's method 10                  Fisher's exact test
paired proportions    Bonett and Price (2012)               McNemar's exact test
sign                  none: all pairs differ by one amount  sign test
====================  ====================================  ==================================
"""

import itertools
import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from fastscore.statistics.clustered import (
    LEAST_UNITS,
    LEVEL,
    POWER,
    UNBOUNDED,
    Clusters,
    Ends,
    Estimate,
    EstimateReason,
    clustered_difference,
    clustered_mean,
    deletions_of,
    t_quantile,
)
from fastscore.statistics.significance import TIE_BITS, Values, t_below, t_inverse

Method = Literal[
    "t", "pooled t", "hybrid", "proportions", "paired proportions", "sign", "constant", "none"
]
CONSTANT = ("sign", "constant")
"""Methods of pairs with one difference, and of sides with one value each."""
Array = npt.NDArray[Any]
Test = Literal["auto", "t"]
BY_T = ("t", "pooled t")
GRID = 2.0**-TIE_BITS
"""Numbers within this share of each other are equal: decimals leave dust of 1e-16."""
HALF = 0.5
"""The share of a side at an end of the range from which on the hybrid method serves."""
_HALVINGS = 40
_MOST_UNITS = 10_000_000


@dataclass(frozen=True, slots=True)
class Curve:
    """A difference of means ``b - a`` with everything that its interval and tests need.

    ``n_units`` counts pairs, or units of the smaller side. ``sides`` are those of method
    ``hybrid``, ``counts`` are ``(x, n, y, m)`` of proportions and ``(higher, lower, n)`` of paired
    ones. ``permuted`` is the p-value and the name of a permutation test, ``least_p`` the smallest p
    that it can give, and ``rearranges`` what it does if units are few. More repeats reduce
    ``repeat_variance``, more dialogues do not. ``third`` is the third cumulant. ``reason`` is that
    of a missing interval or test.
    """

    method: Method
    value: float | None
    n_units: int = 0
    error: float | None = None
    degrees: float | None = None
    sides: tuple[Clusters, ...] = ()
    counts: tuple[int, ...] = ()
    ends: Ends = UNBOUNDED
    permuted: tuple[float, str] | None = None
    least_p: float = 0.0
    rearranges: Literal["signs", "sides"] | None = None
    repeat_variance: float = 0.0
    third: float = 0.0
    reason: str | None = None

    @property
    def test(self) -> str | None:
        """The name of the test of no difference."""
        if self.permuted is not None:
            return self.permuted[1]
        names = {"proportions": "Fisher", "paired proportions": "McNemar", "none": None}
        names["constant"] = "exact permutation"
        return names.get(self.method, self.method)

    def interval(self, level: float) -> tuple[float | None, float | None]:
        """Return the confidence interval at a level; no ends if there is none."""
        width = self.width
        if self.method in ("none", *CONSTANT) or self.value is None:
            return None, None
        if self.method in BY_T:
            half = t_quantile(_known(self.degrees), level) * _known(self.error)
            low, high = self.value - half, self.value + half
        elif self.method == "hybrid":
            low, high = self._hybrid(level)
        else:
            of_counts = newcombe if self.method == "proportions" else bonett_price
            low, high = (end * _known(width) for end in of_counts(*self.counts, level=level))
        return (low, high) if width is None else (max(low, -width), min(high, width))

    @property
    def estimate(self) -> Estimate:
        """The difference with its 95 % interval."""
        low, high = self.interval(LEVEL)
        degrees, n = self.degrees, self.n_units
        reason = cast("EstimateReason | None", self.reason)
        return Estimate(self.value, low, high, self.error, degrees, n, reason)

    def p_value(self) -> float | None:
        """Return the two-sided p of no difference; None if nothing was seen to differ."""
        if self.method == "none" or self.value is None:
            return None
        if self.permuted is not None:
            return self.permuted[0]
        if self.method == "proportions":
            return fisher(*self.counts)
        if self.method in CONSTANT and self.value == 0.0:
            return None
        return min(1.0, 2 * min(self._above(0.0), self.opposite()._above(0.0)))

    def p_above(self, limit: float) -> float | None:
        """Return the one-sided p of a true difference of at most `limit`."""
        return None if self.method == "none" else self._above(limit)

    def p_below(self, limit: float) -> float | None:
        """Return the one-sided p of a true difference of at least `limit`."""
        return self.opposite().p_above(-limit)

    def p_above_skewed(self, limit: float) -> float | None:
        """Return the larger p of `p_above` and of Hall's transformed t (1992).

        A sample that lacks the rare large values of its population misleads it less than t.
        """
        p = self.p_above(limit)
        if p is None or self.method not in BY_T:
            return p
        error = _known(self.error)
        t, skew = (_known(self.value) - limit) / error, self.third / error**3
        transformed = t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6
        return max(p, t_below(_known(self.degrees), -transformed))

    def p_skewed(self) -> float | None:
        """Return the two-sided p of no difference, at least that of the adjusted t."""
        p = self.p_value()
        if p is None or self.method not in BY_T:
            return p
        ends = (self.p_above_skewed(0.0), self.opposite().p_above_skewed(0.0))
        return max(p, min(1.0, 2 * min(end for end in ends if end is not None)))

    def p_equal(self, margin: float) -> float | None:
        """Return the p of two one-sided tests: the true difference is `margin` or more, or less."""
        ends = (self.p_above(-margin), self.p_below(margin))
        return None if ends[0] is None or ends[1] is None else max(ends[0], ends[1])

    def detectable(self, alpha: float) -> float | None:
        """Return the true difference that such data show at a level in `POWER` of cases."""
        if self.method not in BY_T or self.least_p >= alpha:
            return None
        return _reach(_known(self.degrees), alpha) * _known(self.error)

    def units_needed(self, difference: float, alpha: float) -> int | None:
        """Return how many units show a true difference at a level in `POWER` of cases.

        The variance between units is taken to fall with their number, that between repeats to stay.
        """
        falls = (self.error or 0.0) ** 2 - self.repeat_variance
        n = self._needed(difference, alpha, falls, self.n_units)
        # a permutation test of few units has no p below the level, however large the difference
        while n is not None and self._least_p_of(n) >= alpha:
            n += 1
        return n

    def repeats_needed(self, difference: float, alpha: float, n_repeats: int) -> int | None:
        """Return the same for the number of repeats of each side, with the units as they are."""
        if self.least_p >= alpha:
            return None
        return self._needed(difference, alpha, self.repeat_variance, n_repeats)

    def _least_p_of(self, n: int) -> float:
        """Return the smallest p of a permutation test of n units, or of n on each side."""
        if self.rearranges is None or n > MOST_EXACT:
            return 0.0
        number = 2**n if self.rearranges == "signs" else math.comb(2 * n, n)
        return 0.0 if number > MOST_EXACT else 2 / number

    def _needed(self, difference: float, alpha: float, falls: float, n: int) -> int | None:
        """Find the least number of which one part of the variance falls enough."""
        if self.method not in BY_T or not difference or not falls:
            return None
        stays = _known(self.error) ** 2 - falls

        def shows(number: int) -> bool:
            reach = _reach(max(1.0, _known(self.degrees) * number / n), alpha)
            return reach * math.sqrt(stays + falls * n / number) <= abs(difference)

        numbers = range(LEAST_UNITS, _MOST_UNITS + 1)
        place = bisect_left(numbers, True, key=shows)
        return numbers[place] if place < len(numbers) else None

    def opposite(self) -> "Curve":
        """Return the curve of ``a - b``."""
        counts = self.counts
        if self.method == "proportions":
            counts = (*counts[2:], *counts[:2])
        elif counts:
            counts = (counts[1], counts[0], counts[2])
        return replace(
            self,
            value=None if self.value is None else 0.0 - self.value,
            sides=self.sides[::-1],
            counts=counts,
            third=0.0 - self.third,
        )

    def _above(self, limit: float) -> float:
        if self.method in CONSTANT:
            is_above = _known(self.value) > limit + GRID * max(1.0, abs(limit))
            return self.least_p if is_above else 1.0
        if self.method in BY_T:
            return t_below(_known(self.degrees), (limit - _known(self.value)) / _known(self.error))
        if limit == 0.0 and self.method == "paired proportions":
            higher, lower, _ = self.counts
            return binomial_tail(higher, higher + lower)
        if limit == 0.0 and self.method == "proportions":
            return hypergeometric_tail(*self.counts)
        if _known(self.value) <= limit:
            return 1.0 - self.opposite()._inverted(-limit)
        return self._inverted(limit)

    def _inverted(self, limit: float) -> float:
        """Return the one-sided p at which the interval's lower end reaches a limit, by halving."""
        low, high = 1e-12, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            reaches = _known(self.interval(1 - middle)[0]) <= limit
            low, high = (middle, high) if reaches else (low, middle)
        return (low + high) / 4

    def _hybrid(self, level: float) -> tuple[float, float]:
        value, reaches = _known(self.value), []
        for side in self.sides:
            found = clustered_mean(side.sums, side.counts, self.ends, level=level)
            mean, low, high = map(_known, (found.value, found.low, found.high))
            reaches.append((mean - low, high - mean))
        (below_a, above_a), (below_b, above_b) = reaches
        return value - math.hypot(below_b, above_a), value + math.hypot(above_b, below_a)

    @property
    def width(self) -> float | None:
        """The width of the range, None without two ends."""
        low, high = self.ends
        return None if low is None or high is None else high - low


def difference_curve(
    a: Clusters,
    b: Clusters,
    *,
    shared: bool,
    ends: Ends = UNBOUNDED,
    test: Test = "auto",
    repeated: Estimate | None = None,
) -> Curve:
    """Choose the method by what the data are, and return the curve of ``mean b - mean a``."""
    found = clustered_difference(a, b, shared=shared)
    curve = Curve("t", found.value, found.n_units, ends=ends)
    degrees = found.degrees_of_freedom if repeated is None else repeated.degrees_of_freedom
    is_unknown = degrees is not None and degrees < 1  # repeats so unlike say less than two units
    if found.value is None or found.n_units < LEAST_UNITS or is_unknown:
        return replace(curve, method="none", reason="too_few_units")
    curve = replace(curve, error=found.standard_error, degrees=found.degrees_of_freedom)
    if repeated is not None and repeated.standard_error:
        more = repeated.standard_error**2 - _known(found.standard_error) ** 2
        return replace(
            curve,
            error=repeated.standard_error,
            degrees=repeated.degrees_of_freedom,
            repeat_variance=max(0.0, more),
        )
    of_proportions = _of_proportions(curve, a, b, shared=shared)
    if of_proportions is not None:
        return of_proportions
    if not shared and _is_hybrid(a, b, ends):
        curve = replace(curve, method="hybrid", sides=(a, b))
    elif not found.standard_error:
        largest = max(abs(a.mean), abs(b.mean))
        value = 0.0 if abs(found.value) <= GRID * largest else found.value
        # of all signs of the pairs, or all divisions of the units, one has this difference
        n, m = a.counts.size, b.counts.size
        one = 2.0**-curve.n_units if shared else math.exp(-_log_choose(n + m, n))
        constant = replace(curve, value=value, error=0.0, least_p=one, reason="zero_variance")
        if shared:
            return replace(constant, method="sign")
        # of sides of equal sizes the opposite division is as far from 0
        two_sided = ((1 + (n == m)) * one, "exact permutation") if value else None
        return replace(constant, method="constant", permuted=two_sided)
    elif not shared and any(_is_constant(side) for side in (a, b)):
        return _pooled(curve, a, b)
    influences = (b.deletions - a.deletions,) if shared else (b.deletions, -a.deletions)
    curve = replace(
        curve,
        third=float(sum((one**3).sum() for one in influences)),
        rearranges=None if test == "t" else "signs" if shared else "sides",
    )
    n_rearranged = rearrangements(a, b, shared=shared)
    if test == "t" or n_rearranged > MOST_EXACT:
        return curve
    permuted, name = permutation_test(a, b, shared=shared), "exact permutation"
    if permuted is None:
        return curve
    if np.ptp(np.concatenate([a.counts, b.counts])):
        # units of unequal sizes are not exchangeable, and the interval may include 0: both count
        permuted, name = max(permuted, _known(curve.p_value())), f"{name} and {curve.method}"
    # a rearrangement and its mirror are equally far from 0
    is_mirrored = shared or a.counts.size == b.counts.size
    least = (2 if is_mirrored else 1) / n_rearranged
    return replace(curve, permuted=(permuted, name), least_p=least)


def wilson(x: int, n: int, *, level: float) -> tuple[float, float]:
    """Return Wilson's score interval (1927) of x successes in n trials."""
    z, p = _normal_quantile(level), x / n
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)


def newcombe(x: int, n: int, y: int, m: int, *, level: float) -> tuple[float, float]:
    """Return Newcombe's interval (1998, method 10) of y / m - x / n."""
    p, q = x / n, y / m
    (low_p, high_p), (low_q, high_q) = wilson(x, n, level=level), wilson(y, m, level=level)
    return q - p - math.hypot(q - low_q, high_p - p), q - p + math.hypot(high_q - q, p - low_p)


def bonett_price(higher: int, lower: int, n: int, *, level: float) -> tuple[float, float]:
    """Return Bonett and Price's interval (2012) of a difference of paired proportions."""
    p, q = (higher + 1) / (n + 2), (lower + 1) / (n + 2)
    half = _normal_quantile(level) * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
    value = (higher - lower) / n
    return min(p - q - half, value), max(p - q + half, value)


def fisher(x: int, n: int, y: int, m: int) -> float:
    """Return the two-sided p of Fisher's exact test: tables that are at most as likely."""
    successes, shares = _hypergeometric(x, n, y, m)
    seen = shares[successes == y][0]
    return min(1.0, float(shares[shares <= seen * (1 + 1e-9)].sum()))


def hypergeometric_tail(x: int, n: int, y: int, m: int) -> float:
    """Return the probability of y successes or more of the second side, given the margins."""
    successes, shares = _hypergeometric(x, n, y, m)
    return min(1.0, float(shares[successes >= y].sum()))


def binomial_tail(k: int, n: int) -> float:
    """Return the probability of k heads or more of n tosses of a fair coin."""
    if not n:
        return 1.0
    if n <= _SUMMED_EXACTLY:
        return float(sum(math.comb(n, i) for i in range(k, n + 1)) / 2**n)
    heads = np.arange(k, n)
    steps = np.cumsum(np.log((n - heads) / (heads + 1)))  # of one number of heads to the next
    return float(math.exp(_log_choose(n, k) - n * math.log(2)) * (1 + np.exp(steps).sum()))


def sign_test(higher: int, lower: int) -> float:
    """Return the two-sided p of as many pairs that are higher and lower; ties do not count."""
    return min(1.0, 2 * binomial_tail(max(higher, lower), higher + lower))


def _of_proportions(curve: Curve, a: Clusters, b: Clusters, *, shared: bool) -> Curve | None:
    """Return the curve of units that are all at an end of the range; None if not all are.

    All must have as many rows.
    """
    minimum, maximum = curve.ends
    if minimum is None or maximum is None:
        return None
    if shared and not (((a.counts > 0) & (b.counts > 0)).all() and a.counts[0] == b.counts[0]):
        return None
    sides = []
    for side in (a, b):
        means = side.sums / side.counts
        if np.ptp(side.counts) != 0.0 or not ((means == minimum) | (means == maximum)).all():
            return None
        sides.append(means == maximum)
    x, y = sides
    if not shared:
        counts = (int(x.sum()), x.size, int(y.sum()), y.size)
        return replace(curve, method="proportions", counts=counts)
    higher, lower = int((y & ~x).sum()), int((x & ~y).sum())
    if not higher + lower:
        return replace(curve, method="sign", value=0.0, error=0.0, reason="zero_variance")
    return replace(curve, method="paired proportions", counts=(higher, lower, x.size))


def _is_hybrid(a: Clusters, b: Clusters, ends: Ends) -> bool:
    """Tell whether half of a side is at an end of the range, where samples spread too little for t.

    Both sides then have intervals of their own.
    """
    if None in ends:
        return False
    at_ends = []
    for side in (a, b):
        means = side.sums / side.counts
        at_ends += [float((means == end).mean()) for end in ends]
        if clustered_mean(side.sums, side.counts, ends).low is None:
            return False
    return max(at_ends) >= HALF


def _is_constant(side: Clusters) -> bool:
    means = side.sums / side.counts
    return bool(np.ptp(means) <= GRID * np.abs(means).max())


def _pooled(curve: Curve, a: Clusters, b: Clusters) -> Curve:
    """Return Student's curve: a side without spread has an error, that of the spread of both."""
    x, y = a.unit_values(), b.unit_values()
    degrees = x.size + y.size - 2
    variance = (x.var() * x.size + y.var() * y.size) / degrees
    error = math.sqrt(variance * float((a.shares**2).sum() + (b.shares**2).sum()))
    # no more degrees than twice the smaller side: its spread is not known
    return replace(
        curve,
        method="pooled t",
        error=max(error, _known(curve.error)),
        degrees=min(float(degrees), 2.0 * min(x.size, y.size)),
    )


def _known(value: float | None) -> float:
    """Return a number that a curve's method has."""
    assert value is not None
    return value


def _reach(degrees: float, alpha: float) -> float:
    """Return the difference, in standard errors, that a level shows in `POWER` of cases."""
    return t_quantile(degrees, 1 - alpha) + t_inverse(degrees, POWER)


def _hypergeometric(x: int, n: int, y: int, m: int) -> tuple[Array, Values]:
    """Return the numbers of successes of the second side, given the margins, and their shares."""
    total, size = x + y, n + m
    successes = np.arange(max(0, total - n), min(m, total) + 1)
    if successes.size > _ALL_COUNTED:  # others have no share that a float can have
        spread = math.sqrt(total * m / size * n / size * (size - total) / (size - 1))
        is_near = np.abs(successes - total * m / size) <= _DEVIATIONS * spread
        successes = successes[is_near | (successes == y)]
    logs = [
        _log_choose(m, k) + _log_choose(n, total - k) - _log_choose(n + m, total)
        for k in successes.tolist()
    ]
    return successes, np.exp(logs)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


@cache
def _normal_quantile(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


_ALL_COUNTED, _DEVIATIONS = 10_000, 45
"""Of more tables, those within so many standard deviations of the mean are counted."""
_SUMMED_EXACTLY = 1_000
"""The most tosses whose tail is summed in whole numbers: their digits grow with the tosses."""
MOST_EXACT = 10_000
WILD_DRAWS = 999
_CLOSE = 1e-9
"""Statistics within this share of the observed one are equal to it."""
_AT_ONCE = 2_000_000


def rearrangements(a: Clusters, b: Clusters, *, shared: bool) -> int:
    """Return how many ways there are to swap pairs, or to deal the units to the sides."""
    if shared:
        return int(2 ** int((a.is_present | b.is_present).sum()))
    n, m = int(a.is_present.sum()), int(b.is_present.sum())
    return math.comb(n + m, n)


def permutation_test(a: Clusters, b: Clusters, *, shared: bool) -> float | None:
    """Test whether two sides have one mean, by swapping pairs or dealing units, whole clusters.

    The statistic is the difference over its standard error in each rearrangement, which keeps the
    level if variances differ (Janssen 1997; Chung and Romano 2013). None without variation.
    """
    kept = [a.is_present | b.is_present] * 2 if shared else [a.is_present, b.is_present]
    a, b = (
        Clusters(side.sums[own], side.counts[own]) for side, own in zip((a, b), kept, strict=True)
    )
    if min(a.counts.size, b.counts.size) < LEAST_UNITS:
        return None
    moves = _swaps(a.counts.size) if shared else _deals(a.counts.size, b.counts.size)
    found = _moved_t(moves, a, b, shared=shared)
    observed = float(found[0])  # nothing is moved in the first rearrangement
    if math.isnan(observed):
        return None
    # without variation a rearrangement has no t: it is as far from 0 as can be, unless it is 0
    return int((found >= observed * (1 - _CLOSE)).sum()) / len(found)


def wild_omnibus(
    sums: Values, counts: Values, *, draws: int = WILD_DRAWS, seed: int = 0
) -> float | None:
    """Test whether several groups have one mean, by a wild bootstrap of the largest t of a pair.

    Each unit's residuals take a random sign, so every group keeps its own spread and size, and a
    unit in several groups moves in all of them. A permutation test would mix the spreads: its error
    is above .1 for groups of unequal size and spread, even with t as its statistic.
    """
    kept = (counts > 0).sum(axis=0) >= LEAST_UNITS
    if kept.sum() < 2:
        return None
    sums, counts = sums[:, kept], counts[:, kept]
    rows = counts.sum(axis=0)
    means = sums.sum(axis=0) / rows
    residuals = sums - means * counts
    if np.abs(residuals).max() <= 1e-12 * max(1.0, np.abs(sums).max()):
        return None
    # as CR2: a unit with many of the rows draws the mean towards itself
    widened = residuals / np.sqrt(np.maximum(1 - counts / rows, 1e-3))
    observed = _largest_t((residuals / rows)[np.newaxis], means[np.newaxis], counts)[0]
    generator = np.random.default_rng(seed)
    at_once, hits = max(1, _AT_ONCE // sums.size), 0
    for start in range(0, draws, at_once):
        signs = generator.choice([-1.0, 1.0], (min(at_once, draws - start), len(sums)))
        moved = signs @ widened / rows
        errors = signs[:, :, np.newaxis] * widened - moved[:, np.newaxis, :] * counts
        hits += int((_largest_t(errors / rows, moved, counts) >= observed * (1 - _CLOSE)).sum())
    return (1 + hits) / (1 + draws)


def _largest_t(errors: Values, means: Values, counts: Values) -> Values:
    """Return the largest |t| of a pair of groups in each draw."""
    has, largest = counts > 0, np.zeros(len(means))
    for i, j in itertools.combinations(range(means.shape[1]), 2):
        a, b, either = errors[:, :, i], errors[:, :, j], (has[:, i] | has[:, j]).sum()
        if (has[:, i] & has[:, j]).any():
            variances = ((a - b) ** 2).sum(axis=1) * either / (either - 1)
        else:
            n, m = has[:, i].sum(), has[:, j].sum()
            variances = (a**2).sum(axis=1) * n / (n - 1) + (b**2).sum(axis=1) * m / (m - 1)
        distances = np.abs(means[:, i] - means[:, j])
        largest = np.maximum(largest, distances / np.sqrt(np.maximum(variances, 1e-28)))
    return largest


def _swaps(n_pairs: int) -> Values:
    """Return which pairs are swapped, 1.0 for a swap, shape (rearrangements, pairs)."""
    numbers = np.arange(2**n_pairs)
    return np.asarray((numbers[:, np.newaxis] >> np.arange(n_pairs)) & 1, np.float64)


def _deals(n: int, m: int) -> Values:
    """Return which units go to the first side, 1.0 for these, shape (rearrangements, units)."""
    chosen = np.array(list(itertools.combinations(range(n + m), n)))
    deals = np.zeros((len(chosen), n + m))
    np.put_along_axis(deals, chosen, 1.0, axis=1)
    return deals


def _moved_t(moves: Values, a: Clusters, b: Clusters, *, shared: bool) -> Values:
    """Return |t| of the difference for each choice of swapped pairs, or of the first side."""
    if shared:
        sides = [
            (
                own.sums + moves * (other.sums - own.sums),
                own.counts + moves * (other.counts - own.counts),
            )
            for own, other in ((a, b), (b, a))
        ]
    else:
        sums, counts = (np.concatenate(parts) for parts in ((a.sums, b.sums), (a.counts, b.counts)))
        sides = [(chosen * sums, chosen * counts) for chosen in (moves, 1.0 - moves)]
    mean_a, mean_b = (sums.sum(axis=1) / counts.sum(axis=1) for sums, counts in sides)
    of_a, of_b = (deletions_of(*side) for side in sides)
    if shared:
        variances = ((of_b - of_a) ** 2).sum(axis=1)
    else:
        n, m = a.counts.size, b.counts.size
        variances = (of_a**2).sum(axis=1) * (n - 1) / n + (of_b**2).sum(axis=1) * (m - 1) / m
    return _studentised(mean_b - mean_a, variances)


def _studentised(differences: Values, variances: Values) -> Values:
    """Return |difference| / error: infinity without an error, NaN without a difference too."""
    distances = np.abs(differences)
    still = variances <= 1e-28
    with np.errstate(divide="ignore", invalid="ignore"):
        found = distances / np.sqrt(np.where(still, 0.0, variances))
    return np.where(still & (distances <= 1e-14), np.nan, found)
