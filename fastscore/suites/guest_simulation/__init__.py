"""Suite ``guest_simulation``: how well a simulated guest plays its persona and orders its order.

The metrics PAS, BVS, ORA, DEI and CRRS of the simulated restaurant guests, over conversation logs.
"""

from fastscore.suites.base import Suite
from fastscore.suites.declarations import Design
from fastscore.suites.guest_simulation import schema
from fastscore.suites.guest_simulation.metrics import METRICS
from fastscore.suites.guest_simulation.options import GROUPS, GuestSimulation

__all__ = ["SUITE", "GuestSimulation"]

SUITE = Suite(
    name="guest_simulation",
    package=__name__,
    title="How well a simulated guest plays its persona and orders what it was told to",
    papers=(
        "Karthikeyan (2025): Agentic Persona Control and Task State Tracking for Realistic User "
        "Simulation in Interactive Scenarios. https://arxiv.org/abs/2601.15290",
        "Its code, commit cad52ed, with the document Simulation Quality Assessment Metrics: "
        "https://github.com/HareeshwarKarthikeyan/agentic-human-user-simulation-for-ordering",
    ),
    agreement="No study of agreement with people is known.",
    version=3,
    options=GuestSimulation,
    source=schema.SOURCE,
    tables=schema.TABLES,
    metrics=METRICS,
    design=Design(pair=("test_case",), groups=GROUPS),
    check="states:check_files",
    read="events:read_events",
    score="score:score_events",
)
