"""Runs in the places where people keep results: one module a service, with one function."""

from typing import Any

from fastscore.results.runs import Run
from fastscore.suites.summary import overall_rows


def numbers_of(run: Run) -> dict[str, float]:
    """Return each metric's mean over all dialogues and the ends of its interval, if not null.

    The names are ``metric``, ``metric.ci_low`` and ``metric.ci_high``.
    """
    columns = {"": "mean", ".ci_low": "ci_low", ".ci_high": "ci_high"}
    return {
        f"{metric}{end}": row[column]
        for metric, row in overall_rows(run.summary).items()
        for end, column in columns.items()
        if row[column] is not None
    }


def options_of(run: Run) -> dict[str, Any]:
    """Return the run's suite, its options and its signature."""
    return {
        "suite": run.manifest.suite,
        **run.manifest.options,
        "signature": run.signature,
    }
