"""Which tests belong together: families of distinct tests, over which corrections run.

A suite's headline metrics are one family, all others a second one. A metric that is a copy of
another under its own name is tested once with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fastscore.suites.declarations import Metric


@dataclass(frozen=True, slots=True)
class Family:
    """Tests that are corrected together.

    Parameters
    ----------
    name
        ``headline``, or ``others``: the suite's other metrics.
    tests
        The ids of the metrics of each distinct test. The first one's p-value counts, and its
        corrected value holds for the others, which are copies of it.
    """

    name: Literal["headline", "others"]
    tests: tuple[tuple[str, ...], ...]


def headline_metrics(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """Return the metrics that a suite declares as headline, else all that are no parts."""
    declared = tuple(metric for metric in metrics if metric.headline)
    return declared or tuple(metric for metric in metrics if not metric.is_secondary)


def families(metrics: Sequence[Metric]) -> tuple[Family, ...]:
    """Return the families of distinct tests among metrics, the headline metrics' first.

    Parameters
    ----------
    metrics
        The metrics that are tested. A copy whose original is not among them is a test of its own,
        and so is the first of several copies of a metric that is not among them.

    Returns
    -------
    tuple of Family
        Those that have a test, with tests and metrics in the order of `metrics`.
    """
    headline = {metric.id for metric in headline_metrics(metrics)}
    tests: dict[str, list[str]] = {}
    for metric in metrics:
        copies = tests.setdefault(metric.same_test_as or metric.id, [])
        copies.insert(len(copies) if metric.same_test_as else 0, metric.id)
    groups = [tuple(ids) for ids in tests.values()]
    found = (
        Family("headline", tuple(ids for ids in groups if headline & set(ids))),
        Family("others", tuple(ids for ids in groups if not headline & set(ids))),
    )
    return tuple(family for family in found if family.tests)
