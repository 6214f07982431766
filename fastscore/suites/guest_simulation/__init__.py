"""Suite ``guest_simulation``: how well a simulated guest plays its persona and orders its order.

The metrics PAS, BVS, ORA, DEI and CRRS of the simulated restaurant guests, over conversation logs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from fastscore.suites.base import CommittedRun, Events
from fastscore.suites.declarations import Metric, Source, Table
from fastscore.suites.guest_simulation import schema
from fastscore.suites.guest_simulation.options import GuestSimulation

if TYPE_CHECKING:
    from fastscore.suites.showing import Derivation, Dialogue, DialogueView, Section
    from fastscore.vectors.view import VectorView

__all__ = ["SUITE", "GuestSimulation", "GuestSimulationSuite"]


@dataclass(frozen=True, slots=True)
class GuestSimulationSuite:
    """Conversations of a simulated guest with a restaurant, against persona and target order."""

    name: str = "guest_simulation"
    title: str = "How well a simulated guest plays its persona and orders what it was told to"
    version: int = 3
    options: type[GuestSimulation] = GuestSimulation
    source: Source = schema.SOURCE
    tables: tuple[Table, ...] = schema.TABLES
    metrics: tuple[Metric, ...] = schema.METRICS
    runs_without_embedder: bool = False
    texts_in_logs: bool = True

    def check(self, options: GuestSimulation) -> None:
        """Refuse a folder of states that is none."""
        from fastscore.suites.guest_simulation.state_files import find_state_files

        if options.states_from:
            find_state_files(options.states_from)

    def needs_vectors(self, options: GuestSimulation) -> bool:
        """Nothing is compared by meaning."""
        return False

    def events(self, raw: pl.DataFrame, options: GuestSimulation) -> Events:
        """Read messages into conversations, states, final orders and target orders."""
        from fastscore.suites.guest_simulation.events import read_conversations

        return read_conversations(raw, options)

    def texts(self, events: Events, options: GuestSimulation) -> pl.Series:
        """No text needs a vector."""
        return pl.Series("text", [], dtype=pl.String)

    def score(
        self, events: Events, vectors: "VectorView", options: GuestSimulation
    ) -> dict[str, pl.DataFrame]:
        """Score whole conversations into the tables messages and dialogues."""
        from fastscore.suites.guest_simulation.score import score_conversations

        return score_conversations(events, options)

    def summarise(
        self,
        tables: Mapping[str, pl.LazyFrame],
        options: GuestSimulation,
        *,
        cluster: str | None = None,
    ) -> pl.DataFrame:
        """Summarise every metric over all conversations, and by experiment level."""
        from fastscore.suites.summary import summarise_metrics

        return summarise_metrics(
            tables, self.metrics, schema.GROUPS, suite=self.name, cluster=cluster
        )

    def legacy_files(
        self,
        tables: Mapping[str, pl.LazyFrame],
        inputs: tuple[str, ...],
        options: GuestSimulation,
    ) -> dict[str, bytes]:
        """Return no files: the public evaluation's are tables and plots of the same numbers."""
        return {}

    def show_dialogue(self, dialogue: "Dialogue", options: GuestSimulation) -> "DialogueView":
        """Lay a dialogue out turn by turn, with its scores and the evidence in its texts."""
        from fastscore.suites.guest_simulation.show import show_dialogue

        return show_dialogue(dialogue)

    def score_trivial_agents(
        self, tables: Mapping[str, pl.LazyFrame], options: GuestSimulation
    ) -> pl.DataFrame:
        """Score agents that pay no attention, on the log of these tables."""
        from fastscore.suites.guest_simulation.trivial_agents import score_trivial_agents

        return score_trivial_agents(tables, options)

    def report_sections(self, run: CommittedRun, options: GuestSimulation) -> "Sequence[Section]":
        """Return the parts of a report that only this suite has."""
        from fastscore.suites.guest_simulation.show import report_sections

        return report_sections(run)

    def explain(
        self,
        dialogue: "Dialogue",
        metric: Metric,
        row: Mapping[str, Any],
        options: GuestSimulation,
    ) -> "Derivation":
        """Explain a metric's value in a row of its table."""
        from fastscore.suites.guest_simulation.explain import explain

        return explain(dialogue, metric.id, row)


SUITE = GuestSimulationSuite()
