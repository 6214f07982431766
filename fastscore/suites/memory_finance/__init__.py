"""Suite ``memory_finance``: memory, profile, risk, compliance and explanation in financial advice.

The metrics M1 to M5 of the MemFinRobot evaluation, over its traces.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from fastscore.suites.base import CommittedRun, Events
from fastscore.suites.declarations import Metric, Source, Table
from fastscore.suites.memory_finance import schema
from fastscore.suites.memory_finance.options import MemoryFinance

if TYPE_CHECKING:
    from fastscore.suites.showing import Derivation, Dialogue, DialogueView, Section
    from fastscore.vectors.view import VectorView

__all__ = ["SUITE", "MemoryFinance", "MemoryFinanceSuite"]


@dataclass(frozen=True, slots=True)
class MemoryFinanceSuite:
    """Traces of a financial assistant with memory, against labelled dialogues."""

    name: str = "memory_finance"
    title: str = "How a financial assistant remembers, discloses risk, complies and explains"
    version: int = 3
    options: type[MemoryFinance] = MemoryFinance
    source: Source = schema.SOURCE
    tables: tuple[Table, ...] = schema.TABLES
    metrics: tuple[Metric, ...] = schema.METRICS
    runs_without_embedder: bool = False
    texts_in_logs: bool = True

    def needs_vectors(self, options: MemoryFinance) -> bool:
        """Nothing is compared by meaning."""
        return False

    def events(self, raw: pl.DataFrame, options: MemoryFinance) -> Events:
        """Read trace lines into dialogues, turns and what their labels require."""
        from fastscore.suites.memory_finance.events import read_traces

        return read_traces(raw, options)

    def texts(self, events: Events, options: MemoryFinance) -> pl.Series:
        """No text needs a vector."""
        return pl.Series("text", [], dtype=pl.String)

    def score(
        self, events: Events, vectors: "VectorView", options: MemoryFinance
    ) -> dict[str, pl.DataFrame]:
        """Score whole dialogues into the tables turns and dialogues."""
        from fastscore.suites.memory_finance.score import score_traces

        return score_traces(events, options)

    def summarise(
        self,
        tables: Mapping[str, pl.LazyFrame],
        options: MemoryFinance,
        *,
        cluster: str | None = None,
    ) -> pl.DataFrame:
        """Summarise every metric over all dialogues, and by scenario and difficulty."""
        from fastscore.suites.memory_finance.summarise import summarise_traces

        return summarise_traces(tables, cluster=cluster)

    def cases(self, tables: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
        """Count the turns and dialogues that each metric is defined for, skips and fails."""
        from fastscore.suites.memory_finance.summarise import count_cases

        return count_cases(tables)

    def legacy_files(
        self,
        tables: Mapping[str, pl.LazyFrame],
        inputs: tuple[str, ...],
        options: MemoryFinance,
    ) -> dict[str, bytes]:
        """Return the published evaluation's files by name; none without the option."""
        from fastscore.suites.memory_finance.legacy import legacy_files, suffix_of

        if not options.legacy_files:
            return {}
        dataset_path = options.legacy_dataset_path or " ".join(inputs)
        frames = {name: table.collect() for name, table in tables.items()}
        return legacy_files(frames, dataset_path=dataset_path, suffix=suffix_of(inputs))

    def show_dialogue(self, dialogue: "Dialogue", options: MemoryFinance) -> "DialogueView":
        """Lay a dialogue out turn by turn, with its scores and the evidence in its texts."""
        from fastscore.suites.memory_finance.show import show_dialogue

        return show_dialogue(dialogue)

    def score_trivial_agents(
        self, tables: Mapping[str, pl.LazyFrame], options: MemoryFinance
    ) -> pl.DataFrame:
        """Score agents that pay no attention, on the log of these tables."""
        from fastscore.suites.memory_finance.trivial_agents import score_trivial_agents

        return score_trivial_agents(tables, options)

    def report_sections(self, run: CommittedRun, options: MemoryFinance) -> "Sequence[Section]":
        """Return the parts of a report that only this suite has."""
        from fastscore.suites.memory_finance.show import report_sections

        return report_sections(run)

    def explain(
        self,
        dialogue: "Dialogue",
        metric: Metric,
        row: Mapping[str, Any],
        options: MemoryFinance,
    ) -> "Derivation":
        """Explain a metric's value in a row of its table."""
        from fastscore.suites.memory_finance.explain import explain

        return explain(dialogue, metric, row, options)


SUITE = MemoryFinanceSuite()
