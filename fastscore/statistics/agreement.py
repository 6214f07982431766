"""Agreement of several ratings of the same things."""

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


def krippendorff_alpha(ratings: npt.ArrayLike) -> float | None:
    """Return Krippendorff's alpha for interval data.

    Parameters
    ----------
    ratings
        Ratings by unit and rater, float64 (units, raters); NaN where there is none. Units with
        fewer than two ratings count for nothing.

    Returns
    -------
    float or None
        1 minus observed over expected disagreement, squared differences: 1 for perfect agreement,
        0 for chance, below 0 for worse. None where no unit has two ratings, or all are equal, so
        that there is nothing to agree about.

    Notes
    -----
    Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C with the interval
    difference function.
    """
    values = np.asarray(ratings, np.float64)
    rated = np.isfinite(values)
    usable = rated.sum(axis=1) >= 2
    values, rated = values[usable], rated[usable]
    pool = values[rated]
    if len(pool) < 2 or np.ptp(pool) == 0:
        return None
    filled = np.where(rated, values, 0.0)
    count = rated.sum(axis=1)
    # the squared differences of all pairs of a sample: 2 (n * sum of squares - square of the sum)
    within = 2 * (count * (filled**2).sum(axis=1) - filled.sum(axis=1) ** 2)
    observed = (within / (count - 1)).sum() / len(pool)
    overall = 2 * (len(pool) * (pool**2).sum() - pool.sum() ** 2)
    expected = overall / (len(pool) * (len(pool) - 1))
    return float(1.0 - observed / expected)
