"""The suite's metrics: one record each, in one file for each family of the source document."""

import re

from fastscore.suites.group_travel.metrics import (
    conversation,
    meaning,
    places,
    satisfaction,
    synthesis,
)

_FAMILIES = (satisfaction, conversation, synthesis, meaning, places)


def _order(id: str) -> tuple[bool, int]:
    """Return the place of an id in the source document: W1 to W3, then M1 to M16."""
    return id.startswith("M"), int(re.findall(r"\d+", id)[0])


METRICS = tuple(
    sorted(
        (metric for family in _FAMILIES for metric in family.METRICS),
        key=lambda metric: _order(metric.id),
    )
)
_BESIDE = [metric.id for metric in METRICS].index("M10") + 1
SUMMARISED = (*METRICS[:_BESIDE], *satisfaction.FIRINGS, *METRICS[_BESIDE:])
"""The rows of the summary, in order."""
