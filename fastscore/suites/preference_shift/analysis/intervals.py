"""Means of columns and differences of pairs of columns, with units of dependent rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from fastscore.statistics.clustered import (
    Clusters,
    Estimate,
    clustered_difference,
    clustered_mean,
    hedges_g,
    least_detectable,
    t_p_value,
)
from fastscore.statistics.samples import Values
from fastscore.statistics.significance import holm

Bounds = tuple[float | None, float | None]
ALPHA = 0.05
UNBOUNDED: Bounds = (None, None)


DIFFERENCE_SCHEMA: dict[str, pl.DataType] = {
    "n_pair_units": pl.Int64(),
    "difference": pl.Float64(),
    "difference_low": pl.Float64(),
    "difference_high": pl.Float64(),
    "effect_g": pl.Float64(),
    "effect_low": pl.Float64(),
    "effect_high": pl.Float64(),
    "standard_error": pl.Float64(),
    "df": pl.Float64(),
    "p": pl.Float64(),
    "family": pl.Int64(),
    "holm_p": pl.Float64(),
    "is_significant": pl.Boolean(),
    "detectable": pl.Float64(),
    "reason": pl.String(),
}
"""A mean difference of pairs over ``n_pair_units`` units: its 95 % interval, Hedges' g with its
interval, and the t test that belongs to the interval. ``holm_p`` is p corrected by Holm's procedure
for the ``family`` headline tests of the group, null for others. ``is_significant`` is whether it is
below 0.05 and the interval excludes 0. ``detectable`` is the smallest true difference that such
data show with a power of 80 %. ``reason`` is why there is no test."""


def mean_intervals(
    frame: pl.DataFrame, columns: Sequence[str], bounds: Mapping[str, Bounds]
) -> list[Estimate]:
    """Return the mean of every column over its rows that are not null, with a 95 % interval.

    Parameters
    ----------
    frame
        Rows with a ``cluster``: the number of the unit that they belong to.
    columns
        Names of columns of numbers.
    bounds
        The range of each column that has one: its interval stays in it.
    """
    _, sums, counts = cluster_sums(frame, columns)
    found = []
    for k, column in enumerate(columns):
        minimum, maximum = bounds.get(column, UNBOUNDED)
        found.append(clustered_mean(sums[:, k], counts[:, k], minimum=minimum, maximum=maximum))
    return found


def paired_difference(
    frame: pl.DataFrame, first: str, second: str, bounds: Bounds
) -> dict[str, Any]:
    """Compare two columns of one range over the rows that have both, first minus second.

    Returns
    -------
    dict
        The columns of `DIFFERENCE_SCHEMA` that need no other test.
    """
    _, sums, counts = cluster_sums(frame.drop_nulls([first, second]), [first, second])
    of_first, of_second = (Clusters(sums[:, k], counts[:, k]) for k in range(2))
    found = clustered_difference(
        of_second, of_first, shared=True, minimum=bounds[0], maximum=bounds[1]
    )
    effect = hedges_g(of_second, of_first, paired=True) or (None, None, None)
    return {
        "n_pair_units": found.n_units,
        "difference": found.value,
        "difference_low": found.low,
        "difference_high": found.high,
        **dict(zip(("effect_g", "effect_low", "effect_high"), effect, strict=True)),
        "standard_error": found.standard_error,
        "df": found.degrees_of_freedom,
        "p": t_p_value(found),
        "reason": found.reason,
    }


def with_corrected(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Correct the headline tests of one group as a family, by Holm's procedure.

    Parameters
    ----------
    rows
        What `paired_difference` returns, with more columns. Rows without ``is_headline`` are
        headlines, and rows without a test are no members of the family.
    """
    p_values = [row.get("p") if row.get("is_headline", True) else None for row in rows]
    family = sum(p is not None for p in p_values)
    found = []
    for row, corrected in zip(rows, holm(p_values), strict=True):
        is_member = corrected is not None
        estimate = Estimate(
            None, standard_error=row.get("standard_error"), degrees_of_freedom=row.get("df")
        )
        found.append(
            {
                **row,
                "family": family if is_member else None,
                "holm_p": corrected,
                "is_significant": is_significant(
                    corrected, row.get("difference_low"), row.get("difference_high")
                ),
                "detectable": least_detectable(
                    estimate, alpha=ALPHA / family if is_member else ALPHA
                ),
            }
        )
    return found


def is_significant(corrected: float | None, low: float | None, high: float | None) -> bool | None:
    """Tell whether a corrected p is below 0.05 and the interval excludes 0; None without a p."""
    if corrected is None:
        return None
    return corrected < ALPHA and low is not None and high is not None and not low <= 0.0 <= high


def cluster_sums(frame: pl.DataFrame, columns: Sequence[str]) -> tuple[int, Values, Values]:
    """Return how many clusters there are, and sums and counts, each (clusters, columns).

    Values are added in ascending order within a cluster, so that no order of rows shows.
    """
    labels, codes = np.unique(frame["cluster"].to_numpy(), return_inverse=True)
    sums, counts = np.zeros((2, labels.size, len(columns)))
    for k, column in enumerate(columns):
        values = frame[column].cast(pl.Float64)
        present = values.is_not_null().to_numpy()
        numbers, of = values.drop_nulls().to_numpy(), codes[present]
        order = np.lexsort((numbers, of))
        sums[:, k] = np.bincount(of[order], weights=numbers[order], minlength=labels.size)
        counts[:, k] = np.bincount(of, minlength=labels.size)
    return labels.size, sums, counts
