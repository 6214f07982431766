"""What a metric's source document calls a value, and the bounds of what it names."""

from collections.abc import Sequence

from fastscore.suites.declarations import Band


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
