"""Runs in the places where people keep results: one module a service, with one function."""

from typing import Any

import polars as pl

from fastscore.results.runs import Run
from fastscore.suites.summary import ALL


def numbers_of(run: Run) -> dict[str, float]:
    """Return the mean of each metric over all dialogues, and the ends of its interval.

    Returns
    -------
    dict
        ``metric``, ``metric.ci_low`` and ``metric.ci_high``, without those that are null.
    """
    rows = run.summary.filter(pl.col("group") == ALL)
    found: dict[str, float] = {}
    for row in rows.select("metric", "mean", "ci_low", "ci_high").iter_rows(named=True):
        values = {"": row["mean"], ".ci_low": row["ci_low"], ".ci_high": row["ci_high"]}
        found |= {
            f"{row['metric']}{end}": value for end, value in values.items() if value is not None
        }
    return found


def options_of(run: Run) -> dict[str, Any]:
    """Return the run's suite, its options and its signature."""
    return {
        "suite": run.manifest.suite,
        **run.manifest.options,
        "signature": run.signature,
    }


__all__ = ["numbers_of", "options_of"]
