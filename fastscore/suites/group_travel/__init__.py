"""Suite ``group_travel``: how groups plan a trip together with a mediating assistant.

The metrics M1 to M16 and the welfare measures W1 to W3, over dialogues and their plans.
"""

from fastscore.suites.base import Suite
from fastscore.suites.declarations import Design
from fastscore.suites.group_travel import schema
from fastscore.suites.group_travel.metrics import METRICS
from fastscore.suites.group_travel.options import GroupTravel

__all__ = ["SUITE", "GroupTravel"]

SUITE = Suite(
    name="group_travel",
    package=__name__,
    title="How well an assistant mediates a group's wishes, and the trip plan that results",
    papers=(
        "The authors of the repository dialogue (2026): Metric Reference, commit 4c1ab84. "
        "https://github.com/rakeshvytla9/dialogue. No paper is known.",
    ),
    agreement="No study of agreement with people is known.",
    version=3,
    options=GroupTravel,
    source=schema.SOURCE,
    tables=schema.TABLES,
    metrics=METRICS,
    design=Design(pair=("scenario",), groups=("condition",)),
    read="events:read_events",
    texts="events:texts_to_embed",
    score="score:score_events",
    summarise="score:summarised",
)
