"""Means of several columns and their intervals, from one set of resampled dialogues."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from fastscore.statistics.bootstrap import number_clusters, percentile_interval, resample_means
from fastscore.statistics.samples import Values
from fastscore.statistics.significance import Interval


def mean_intervals(
    frame: pl.DataFrame, columns: Sequence[str], *, samples: int, seed: int
) -> list[Interval]:
    """Return the mean of every column over its rows that are not null, with a 95 % interval.

    Parameters
    ----------
    frame
        Rows with a ``cluster``: the number of the dialogue that is drawn as a whole.
    columns
        Names of columns of numbers.
    samples, seed
        As in `fastscore.statistics.bootstrap.resample_means`.

    Returns
    -------
    list of Interval
        One a column; without a mean where all rows are null, without ends where fewer than two
        dialogues have a value.
    """
    n_clusters, sums, counts = cluster_sums(frame, columns)
    if not n_clusters:
        return [Interval(None, None, None, "too_few_values")] * len(columns)
    resampled = resample_means(sums, counts, samples=samples, seed=seed)
    return [
        percentile_interval(
            float(sums[:, k].sum() / counts[:, k].sum()),
            resampled[:, k],
            clusters=int(np.count_nonzero(counts[:, k])),
        )
        if counts[:, k].any()
        else Interval(None, None, None, "too_few_values")
        for k in range(len(columns))
    ]


def cluster_sums(frame: pl.DataFrame, columns: Sequence[str]) -> tuple[int, Values, Values]:
    """Return how many clusters there are, and sums and counts, each (clusters, columns).

    Values are added in ascending order within a cluster, so that no order of rows shows.
    """
    n_clusters, codes = number_clusters(frame["cluster"].to_numpy(), frame.height)
    sums, counts = np.zeros((2, n_clusters, len(columns)))
    for k, column in enumerate(columns):
        values = frame[column].cast(pl.Float64)
        present = values.is_not_null().to_numpy()
        numbers, of = values.drop_nulls().to_numpy(), codes[present]
        order = np.lexsort((numbers, of))
        sums[:, k] = np.bincount(of[order], weights=numbers[order], minlength=n_clusters)
        counts[:, k] = np.bincount(of, minlength=n_clusters)
    return n_clusters, sums, counts
