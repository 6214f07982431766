"""The suite's metrics: one record each, those of dialogues apart from those of their parts."""

from fastscore.suites.preference_shift.metrics.dialogues import DIALOGUE_METRICS
from fastscore.suites.preference_shift.metrics.sources import ECHOING, REFUSING
from fastscore.suites.preference_shift.metrics.turns import (
    SEGMENT_METRICS,
    SHIFT_METRICS,
    TURN_METRICS,
)

__all__ = [
    "DIALOGUE_METRICS",
    "ECHOING",
    "METRICS",
    "REFUSING",
    "SEGMENT_METRICS",
    "SHIFT_METRICS",
    "TURN_METRICS",
]

METRICS = (*DIALOGUE_METRICS, *TURN_METRICS, *SEGMENT_METRICS, *SHIFT_METRICS)
"""Every metric of the suite, those of dialogues first."""
