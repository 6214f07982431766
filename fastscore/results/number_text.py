"""Numbers as a person or a spreadsheet reads them, and what a source document calls them."""

from collections.abc import Iterable, Sequence

import polars as pl

from fastscore.errors import counted as counted
from fastscore.statistics.clustered import Estimate
from fastscore.suites.declarations import Band

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


def reading_of(
    value: float | None, low: float | None, high: float | None, bands: Sequence[Band]
) -> str | None:
    """Return the reading of the first band that holds a mean and its whole interval.

    Parameters
    ----------
    value
        A mean of the metric, as it is: not rounded.
    low, high
        The ends of its interval.
    bands
        The metric's bands, in their order.

    Returns
    -------
    str or None
        None without an interval, or if no band holds all of it.
    """
    if value is None or low is None or high is None:
        return None
    return next(
        (band.reading for band in bands if all(_holds(band, end) for end in (low, value, high))),
        None,
    )


def band_bounds(band: Band) -> str:
    """Write the bounds of a band: ``above 0.8``, ``0.7 to 0.85``, ``1``."""
    if band.at_least is not None and band.at_least == band.at_most:
        return f"{band.at_least:g}"
    if band.at_least is not None and band.at_most is not None:
        return f"{band.at_least:g} to {band.at_most:g}"
    named = (
        ("at least", band.at_least),
        ("above", band.above),
        ("at most", band.at_most),
        ("below", band.below),
    )
    return " and ".join(f"{word} {bound:g}" for word, bound in named if bound is not None)


def bands_text(bands: Sequence[Band]) -> str:
    """Write all bands of a metric in a line: ``above 0.8 excellent; below 0.5 poor``."""
    return ", ".join(f"{band_bounds(band)} {band.reading}" for band in bands)


def _holds(band: Band, value: float) -> bool:
    return (
        (band.at_least is None or value >= band.at_least)
        and (band.above is None or value > band.above)
        and (band.at_most is None or value <= band.at_most)
        and (band.below is None or value < band.below)
    )


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the start of a formula, or strips before one."""


def write_csv(frame: pl.DataFrame) -> str:
    """Write a frame as CSV; an apostrophe goes before text that a spreadsheet would compute.

    Only text is touched: a negative number stays a number.
    """
    text = pl.col(pl.String)
    is_formula = text.str.slice(0, 1).is_in(FORMULA_STARTS)
    safe = frame.with_columns(pl.when(is_formula).then("'" + text).otherwise(text).name.keep())
    return safe.rename(
        {name: f"'{name}" for name in frame.columns if name.startswith(FORMULA_STARTS)}
    ).write_csv()
