"""Suite ``preference_shift``: how recommenders follow a user's shifting preferences.

Concepts of a catalogue in what user and system say, turn by turn: overlap (CC), weighted
similarity (CR), copying (I), their sum (TAS), recovery after shifts, and CAS.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from fastscore.suites.base import AnalysisContents, AnalysisSettings, CommittedRun, Events
from fastscore.suites.declarations import Metric, Source, Table
from fastscore.suites.preference_shift import schema
from fastscore.suites.preference_shift.metrics import METRICS
from fastscore.suites.preference_shift.options import PreferenceShift

if TYPE_CHECKING:
    from fastscore.suites.showing import Derivation, Dialogue, DialogueView, Section
    from fastscore.vectors.view import VectorView

__all__ = ["SUITE", "PreferenceShift", "PreferenceShiftSuite"]


@dataclass(frozen=True, slots=True)
class PreferenceShiftSuite:
    """Conversations with recommenders, against a catalogue of what they may recommend."""

    name: str = "preference_shift"
    title: str = "How conversational recommenders follow a user whose preferences shift"
    version: int = 3
    options: type[PreferenceShift] = PreferenceShift
    source: Source = schema.SOURCE
    tables: tuple[Table, ...] = schema.TABLES
    metrics: tuple[Metric, ...] = METRICS
    runs_without_embedder: bool = False
    texts_in_logs: bool = False

    def check(self, options: PreferenceShift) -> None:
        """Refuse a catalogue that cannot be read or lacks the fields; compile a new one."""
        from fastscore.suites.preference_shift.extraction import prepared_matcher

        prepared_matcher(options)

    def needs_vectors(self, options: PreferenceShift) -> bool:
        """Whether concepts or segments are found by vectors."""
        return options.needs_vectors

    def events(self, raw: pl.DataFrame, options: PreferenceShift) -> Events:
        """Read logs into conversations, pairs of turns, shift points and gold constraints."""
        from fastscore.suites.preference_shift.events import read_logs

        return read_logs(raw, options)

    def texts(self, events: Events, options: PreferenceShift) -> pl.Series:
        """Return the distinct texts that need a vector."""
        from fastscore.suites.preference_shift.nearness import texts_to_embed

        return texts_to_embed(events, options)

    def score(
        self, events: Events, vectors: "VectorView", options: PreferenceShift
    ) -> dict[str, pl.DataFrame]:
        """Score whole conversations into the tables turns, segments, shifts and dialogues."""
        from fastscore.suites.preference_shift.score import score_logs

        return score_logs(events, vectors, options)

    def summarise(
        self,
        tables: Mapping[str, pl.LazyFrame],
        options: PreferenceShift,
        *,
        cluster: str | None = None,
    ) -> pl.DataFrame:
        """Summarise every metric over all conversations, and by model."""
        from fastscore.suites.preference_shift.summarise import summarise_logs

        return summarise_logs(tables, cluster=cluster)

    def legacy_files(
        self,
        tables: Mapping[str, pl.LazyFrame],
        inputs: tuple[str, ...],
        options: PreferenceShift,
    ) -> dict[str, bytes]:
        """Return the public evaluation's files by name; none without the option."""
        from fastscore.suites.preference_shift.legacy import legacy_files

        if not options.legacy_files:
            return {}
        return legacy_files({name: table.collect() for name, table in tables.items()}, options)

    def judge_source(self, settings: AnalysisSettings) -> Source:
        """Return the columns of a judge's file."""
        from fastscore.suites.judged import judge_source

        return judge_source(settings.judge_columns)

    def analyse(
        self,
        run: CommittedRun,
        judgements: tuple[pl.DataFrame, pl.DataFrame] | None,
        options: PreferenceShift,
        settings: AnalysisSettings,
    ) -> AnalysisContents:
        """Ablations, weight grid, window sweep, convergent and construct validity, figures."""
        from fastscore.suites.preference_shift.analysis import analyse_run

        return analyse_run(run, judgements, options, settings)

    def show_dialogue(self, dialogue: "Dialogue", options: PreferenceShift) -> "DialogueView":
        """Lay a dialogue out turn by turn, with its scores and the evidence in its texts."""
        from fastscore.suites.preference_shift.show import show_dialogue

        return show_dialogue(dialogue)

    def score_trivial_agents(
        self, tables: Mapping[str, pl.LazyFrame], options: PreferenceShift
    ) -> pl.DataFrame:
        """Score agents that pay no attention, on the log of these tables."""
        from fastscore.suites.preference_shift.trivial_agents import score_trivial_agents

        return score_trivial_agents(tables, options)

    def report_sections(self, run: CommittedRun, options: PreferenceShift) -> "Sequence[Section]":
        """Return the parts of a report that only this suite has."""
        from fastscore.suites.preference_shift.show import report_sections

        return report_sections(self, run, options)

    def explain(
        self,
        dialogue: "Dialogue",
        metric: Metric,
        row: Mapping[str, Any],
        options: PreferenceShift,
    ) -> "Derivation":
        """Explain a metric's value in a row of its table."""
        from fastscore.suites.preference_shift.explain import explain

        return explain(dialogue, metric, row, options)


SUITE = PreferenceShiftSuite()
