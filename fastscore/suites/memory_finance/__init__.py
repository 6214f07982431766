"""Suite ``memory_finance``: memory, profile, risk, compliance and explanation in financial advice.

The metrics M1 to M5 of the MemFinRobot evaluation, over its traces.
"""

from fastscore.suites.base import Suite
from fastscore.suites.declarations import Design
from fastscore.suites.memory_finance import schema
from fastscore.suites.memory_finance.metrics import METRICS
from fastscore.suites.memory_finance.options import MemoryFinance

__all__ = ["SUITE", "MemoryFinance"]

_ASKED = (
    "turns",
    *(f"m{number}_turns" for number in (1, 3, 4, 5)),
    *("required_key_total", "risk_required_total", "rubric_required_total"),
)
"""Turns that were answered, and what their labels require."""

SUITE = Suite(
    name="memory_finance",
    package=__name__,
    title="How a financial assistant remembers, discloses risk, complies and explains",
    papers=(
        "The authors of MemFinRobot (2026): the evaluation of MemFinRobot, folder eval, commit "
        "3c5479a. https://github.com/nj-guiqi/MemFinRobot. No paper is known.",
    ),
    agreement="No study of agreement with people is known. The judge score M5 is a heuristic.",
    version=3,
    options=MemoryFinance,
    source=schema.SOURCE,
    tables=schema.TABLES,
    metrics=METRICS,
    design=Design(pair=("dialog_id",), groups=schema.GROUPS, asked=_ASKED),
    read="events:read_events",
    score="score:score_events",
    summarise="summarise:summarised",
)
