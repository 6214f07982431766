"""The suite's metrics, a record each: of dialogues, of the plan, and of meaning."""

import re

from fastscore.suites.declarations import Metric
from fastscore.suites.group_travel.metrics import dialogue, meaning, plan


def _order(metric: Metric) -> tuple[bool, int]:
    """Return a metric's place in the source document: W1 to W3, then M1 to M16."""
    return metric.id.startswith("M"), int(re.findall(r"\d+", metric.id)[0])


METRICS = tuple(sorted((*plan.METRICS, *dialogue.METRICS, *meaning.METRICS), key=_order))
_BESIDE = METRICS.index(plan.M10) + 1
SUMMARISED = (*METRICS[:_BESIDE], *plan.FIRINGS, *METRICS[_BESIDE:])
"""The rows of the summary, in order."""
