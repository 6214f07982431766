"""Numbers as a person reads them."""

from collections.abc import Iterable

from fastscore.errors import counted as counted
from fastscore.statistics.clustered import Estimate

NONE = "-"


def decimals_for(values: Iterable[float | None]) -> int:
    """Return how many decimals numbers of one kind are written with, by the largest of them."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    return 4 if largest < 10 else 2 if largest < 1_000 else 1


def number_text(value: float | None, decimals: int = 4) -> str:
    """Write a number, a dash for none; what rounds to zero has no sign."""
    return NONE if value is None else f"{value:z,.{decimals}f}"


def interval_text(
    value: float | None, low: float | None, high: float | None, decimals: int = 4
) -> str:
    """Write a number and the ends of its interval, where it has one."""
    if low is None or high is None:
        return number_text(value, decimals)
    ends = f"{number_text(low, decimals)}, {number_text(high, decimals)}"
    return f"{number_text(value, decimals)} [{ends}]"


def estimate_text(estimate: Estimate) -> str:
    """Write a mean with its interval, where it has one, to three decimals."""
    decimals = max(1, decimals_for([estimate.value]) - 1)
    return interval_text(estimate.value, estimate.low, estimate.high, decimals)


def p_text(p: float | None) -> str:
    """Write a p-value: four decimals, small ones by their power of ten."""
    if p is None:
        return NONE
    return f"{p:.4f}" if p >= 1e-4 else f"{p:.0e}"
