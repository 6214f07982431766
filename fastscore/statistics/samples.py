"""Samples for statistics: finite, one-dimensional, in a defined order."""

import math

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
TIE_BITS = 40
"""Differences of pairs within 2^-40 of the largest value are equal, as 0.3 - 0.2 and 0.2 - 0.1."""
LEAST_EXPONENT = -1022
"""Of the finest grid on which values are put: 2^-1022, the least normal double."""


def pair_differences(a: npt.ArrayLike, b: npt.ArrayLike) -> Values:
    """Return a - b of pairs in ascending order, on a grid of 2^-40 of the largest value.

    The grid makes differences equal that differ only by the rounding of decimals, so that ranks
    are tied and variances zero where a reader of the numbers expects it.
    """
    first, second = paired(a, b)
    largest = max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0))
    if largest == 0.0:
        return np.zeros(first.size)
    grid = np.exp2(max(np.floor(np.log2(largest)) - TIE_BITS, LEAST_EXPONENT))
    return np.sort(np.round((first - second) / grid) * grid) + 0.0


def paired(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Values, Values]:
    """Return two finite arrays of one length, in their order."""
    first, second = finite(a, "a"), finite(b, "b")
    if first.size != second.size:
        raise ValueError(f"a has {first.size} values and b {second.size}, expected pairs")
    return first, second


def finite(values: npt.ArrayLike, name: str) -> Values:
    """Return values as a one-dimensional float64 array."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}, expected (n,)")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ValueError(f"{name}[{bad[0]}] is {array[bad[0]]}, expected finite values only")
    return array


def ascending(values: npt.ArrayLike, name: str) -> Values:
    """Return values in ascending order, so that sums are the same for any order."""
    return np.sort(finite(values, name))


def is_constant(sample: Values) -> bool:
    """Return whether all values of a sample are equal."""
    return bool(sample.min() == sample.max())


def deviation(sample: Values, ddof: int) -> float:
    """Return the standard deviation; exactly 0 for equal values, whatever their mean rounds to."""
    return 0.0 if is_constant(sample) else float(sample.std(ddof=ddof))


def pooled_deviation(first: Values, second: Values) -> float:
    """Return the standard deviation that two samples share, with n + m - 2 degrees of freedom."""
    parts = [deviation(part, 1) * math.sqrt(part.size - 1) for part in (first, second)]
    return math.hypot(*parts) / math.sqrt(first.size + second.size - 2)


def quotients(numerators: Values, denominators: Values) -> Values:
    """Return numerators / denominators; NaN where a denominator is not positive."""
    undefined = np.full(denominators.shape, np.nan)
    return np.asarray(np.divide(numerators, denominators, out=undefined, where=denominators > 0))
