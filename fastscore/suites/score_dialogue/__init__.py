"""Suite ``score_dialogue``: early prediction of utterances, as babelbit_subnet scores it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from fastscore.suites.base import CommittedRun, Events
from fastscore.suites.declarations import Metric, Source, Table
from fastscore.suites.score_dialogue import schema
from fastscore.suites.score_dialogue.options import ScoreDialogue

if TYPE_CHECKING:
    from fastscore.suites.showing import Derivation, Dialogue, DialogueView, Section
    from fastscore.vectors.view import VectorView

__all__ = ["SUITE", "ScoreDialogue", "ScoreDialogueSuite"]


@dataclass(frozen=True, slots=True)
class ScoreDialogueSuite:
    """Miners' step-by-step predictions of each utterance, against what was said."""

    name: str = "score_dialogue"
    title: str = "How early and how well each utterance of a dialogue was predicted"
    version: int = 1
    options: type[ScoreDialogue] = ScoreDialogue
    source: Source = schema.SOURCE
    tables: tuple[Table, ...] = schema.TABLES
    metrics: tuple[Metric, ...] = schema.METRICS
    runs_without_embedder: bool = False
    texts_in_logs: bool = False

    def needs_vectors(self, options: ScoreDialogue) -> bool:
        """Whether the semantic part has weight and compares vectors."""
        return options.needs_vectors

    def events(self, raw: pl.DataFrame, options: ScoreDialogue) -> Events:
        """Group raw rows into dialogues, utterances and steps."""
        from fastscore.suites.score_dialogue.events import group_events

        return group_events(raw, options.max_text)

    def texts(self, events: Events, options: ScoreDialogue) -> pl.Series:
        """Return the distinct predictions and ground truths that need a vector."""
        from fastscore.suites.score_dialogue.score import distinct_texts

        return distinct_texts(events, options)

    def perplexity_model(self, options: ScoreDialogue) -> str:
        """Return the masked language model that judges texts, empty for none."""
        return options.pppl_model

    def perplexity_texts(self, events: Events, options: ScoreDialogue) -> pl.Series:
        """Return the distinct predictions and ground truths of all steps."""
        from fastscore.suites.score_dialogue.perplexity import judged_texts

        return judged_texts(events)

    def score(
        self, events: Events, vectors: "VectorView", options: ScoreDialogue
    ) -> dict[str, pl.DataFrame]:
        """Score whole dialogues into the tables steps, utterances and dialogues."""
        from fastscore.suites.score_dialogue.score import score_events

        return score_events(events, vectors, options)

    def summarise(
        self,
        tables: Mapping[str, pl.LazyFrame],
        options: ScoreDialogue,
        *,
        cluster: str | None = None,
    ) -> pl.DataFrame:
        """Summarise every metric that was asked for over all dialogues, by miner and challenge."""
        from fastscore.suites.summary import summarise_metrics

        asked = [
            metric
            for metric in self.metrics
            if options.pppl_model or metric.id not in schema.PERPLEXITIES
        ]
        return summarise_metrics(
            tables,
            asked,
            schema.GROUPS,
            suite=self.name,
            cluster=cluster,
            switched_off=options.switched_off,
        )

    def legacy_files(
        self,
        tables: Mapping[str, pl.LazyFrame],
        inputs: tuple[str, ...],
        options: ScoreDialogue,
    ) -> dict[str, bytes]:
        """Return no files: ``score-dialogue`` writes the published script's."""
        return {}

    def show_dialogue(self, dialogue: "Dialogue", options: ScoreDialogue) -> "DialogueView":
        """Lay a dialogue out turn by turn, with its scores and the evidence in its texts."""
        from fastscore.suites.score_dialogue.show import show_dialogue

        return show_dialogue(dialogue)

    def report_sections(self, run: CommittedRun, options: ScoreDialogue) -> "Sequence[Section]":
        """Return the parts of a report that only this suite has."""
        from fastscore.suites.score_dialogue.show import report_sections

        return report_sections(run)

    def explain(
        self,
        dialogue: "Dialogue",
        metric: Metric,
        row: Mapping[str, Any],
        options: ScoreDialogue,
    ) -> "Derivation":
        """Explain a metric's value in a row of its table."""
        from fastscore.suites.score_dialogue.explain import explain

        return explain(dialogue, metric.id, row, options)


SUITE = ScoreDialogueSuite()
