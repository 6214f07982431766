"""Suite ``preference_shift``: how recommenders follow a user's shifting preferences.

Concepts of a catalogue in what user and system say, turn by turn: overlap (CC), weighted
similarity (CR), copying (I), their sum (TAS), recovery after shifts, and CAS.
"""

from fastscore.suites.base import Suite
from fastscore.suites.declarations import Design
from fastscore.suites.preference_shift import schema
from fastscore.suites.preference_shift.metrics import METRICS
from fastscore.suites.preference_shift.options import PreferenceShift

__all__ = ["SUITE", "PreferenceShift"]

SUITE = Suite(
    name="preference_shift",
    package=__name__,
    title="How conversational recommenders follow a user whose preferences shift",
    papers=(
        "The authors of llm-eval-workspace (2026): CRS Preference-Shift Evaluation, commit "
        "9dbd02f. https://github.com/abhiramoggu/llm-eval-workspace. No paper is known.",
    ),
    agreement="No study of agreement with people is known. `fastscore analyse` with a judge's file "
    "correlates metrics with its scores.",
    version=3,
    options=PreferenceShift,
    source=schema.SOURCE,
    tables=schema.TABLES,
    metrics=METRICS,
    design=Design(pair=("session_id",), groups=schema.GROUPS),
    check="concepts:prepared_matcher",
    read="events:read_events",
    texts="events:texts_to_embed",
    score="score:score_events",
)
