"""Suite ``group_travel``: how groups plan a trip together with a mediating assistant.

The metrics M1 to M16 and the welfare measures W1 to W3, over dialogues and their plans.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from fastscore.suites.base import CommittedRun, Events
from fastscore.suites.declarations import Metric, Source, Table
from fastscore.suites.group_travel import schema
from fastscore.suites.group_travel.metrics import METRICS
from fastscore.suites.group_travel.options import GroupTravel

if TYPE_CHECKING:
    from fastscore.suites.showing import Derivation, Dialogue, DialogueView, Section
    from fastscore.vectors.view import VectorView

__all__ = ["SUITE", "GroupTravel", "GroupTravelSuite"]


@dataclass(frozen=True, slots=True)
class GroupTravelSuite:
    """Dialogues of groups with an assistant, the plan they end in, and what it draws on."""

    name: str = "group_travel"
    title: str = "How well an assistant mediates a group's wishes, and the trip plan that results"
    version: int = 3
    options: type[GroupTravel] = GroupTravel
    source: Source = schema.SOURCE
    tables: tuple[Table, ...] = schema.TABLES
    metrics: tuple[Metric, ...] = METRICS
    runs_without_embedder: bool = True
    texts_in_logs: bool = True

    def needs_vectors(self, options: GroupTravel) -> bool:
        """Preferences are compared by meaning, whatever the options."""
        return True

    def events(self, raw: pl.DataFrame, options: GroupTravel) -> Events:
        """Read raw rows into preferences, syntheses, texts of plans, places and records."""
        from fastscore.suites.group_travel.events import read_dialogues

        return read_dialogues(raw, options)

    def texts(self, events: Events, options: GroupTravel) -> pl.Series:
        """Return the distinct texts that any metric compares by meaning."""
        return events.frames["compared"]["text"]

    def long_texts(self, events: Events, options: GroupTravel) -> pl.Series:
        """Return the distinct texts that M12 reads in windows; none where it cuts them."""
        return events.frames["windowed"]["text"]

    def score(
        self, events: Events, vectors: "VectorView", options: GroupTravel
    ) -> dict[str, pl.DataFrame]:
        """Score whole dialogues into the tables pairs, places and dialogues."""
        from fastscore.suites.group_travel.score import score_dialogues

        return score_dialogues(events, vectors, options)

    def summarise(
        self,
        tables: Mapping[str, pl.LazyFrame],
        options: GroupTravel,
        *,
        cluster: str | None = None,
    ) -> pl.DataFrame:
        """Summarise every metric over all dialogues and by condition; compare conditions."""
        from fastscore.suites.group_travel.summarise import summarise_dialogues

        return summarise_dialogues(tables, options, cluster=cluster)

    def legacy_files(
        self,
        tables: Mapping[str, pl.LazyFrame],
        inputs: tuple[str, ...],
        options: GroupTravel,
    ) -> dict[str, bytes]:
        """Return the scores and the summary as CSV and Markdown; none without the option."""
        from fastscore.suites.group_travel.legacy import legacy_files

        return legacy_files(tables, options) if options.legacy_files else {}

    def show_dialogue(self, dialogue: "Dialogue", options: GroupTravel) -> "DialogueView":
        """Lay a dialogue out turn by turn, with its scores and the evidence in its texts."""
        from fastscore.suites.group_travel.show import show_dialogue

        return show_dialogue(dialogue)

    def score_trivial_agents(
        self, tables: Mapping[str, pl.LazyFrame], options: GroupTravel
    ) -> pl.DataFrame:
        """Score agents that pay no attention, on the log of these tables."""
        from fastscore.suites.group_travel.trivial_agents import score_trivial_agents

        return score_trivial_agents(tables, options)

    def report_sections(self, run: CommittedRun, options: GroupTravel) -> "Sequence[Section]":
        """Return the parts of a report that only this suite has."""
        from fastscore.suites.group_travel.show import report_sections

        return report_sections(run)

    def explain(
        self,
        dialogue: "Dialogue",
        metric: Metric,
        row: Mapping[str, Any],
        options: GroupTravel,
    ) -> "Derivation":
        """Explain a metric's value in a row of its table."""
        from fastscore.suites.group_travel.explain import explain

        return explain(dialogue, metric, row, options)


SUITE = GroupTravelSuite()
