"""The one Protocol by which a suite plugs in, what it makes of rows, and what more it may offer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import polars as pl

from fastscore.suites.declarations import Metric, Source, Table

if TYPE_CHECKING:
    from fastscore.suites.showing import Derivation, Dialogue, DialogueView, Section
    from fastscore.vectors.view import VectorView


@dataclass(frozen=True, slots=True)
class Events:
    """The typed frames that a suite makes of a shard's rows.

    Parameters
    ----------
    frames
        Frames by name, rows in input order.
    rejects
        Rows that the suite's definitions cannot use, in the schema of `REJECT_SCHEMA`.
    counts
        How many rows were read, used and left aside, by name. `PARTIAL_REJECTS` counts rejects
        that are only parts of a row which is scored all the same.
    nulls
        Of items that metrics need, by their path (``conversation[].text``), how often they are
        null.
    nulls_are_empty
        Whether texts that are null count as empty ones, as a published evaluation has it.
    n_units
        How many turns, messages or steps of them are scored. Default: the rows of the largest
        frame.
    """

    frames: Mapping[str, pl.DataFrame]
    rejects: pl.DataFrame
    counts: Mapping[str, int] = field(default_factory=dict)
    nulls: Mapping[str, "Nulls"] = field(default_factory=dict)
    nulls_are_empty: bool = False
    n_units: int | None = None

    @property
    def n_scored(self) -> int:
        """How many turns, messages or steps are scored."""
        if self.n_units is not None:
            return self.n_units
        return max((frame.height for frame in self.frames.values()), default=0)


@dataclass(frozen=True, slots=True)
class Nulls:
    """How often a column or an item lacks a value, or has one that means nothing.

    Parameters
    ----------
    null
        In how many rows, or objects, it is absent or null.
    asked
        In how many it should stand.
    unknown
        Words that the suite does not know, with their numbers.
    """

    null: int
    asked: int
    unknown: Mapping[str, int] = field(default_factory=dict)


class Suite(Protocol):
    """A published metric system: what it reads, what it writes, and the pure functions between."""

    @property
    def name(self) -> str:
        """The suite's name: ``fastscore score NAME``."""

    @property
    def title(self) -> str:
        """What it scores, one line."""

    @property
    def version(self) -> int:
        """Rises whenever a number may change; part of the signature."""

    @property
    def options(self) -> type[Any]:
        """A frozen dataclass of `option` fields."""

    @property
    def source(self) -> Source:
        """The columns that it reads."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that `score` returns."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics in those tables."""

    @property
    def runs_without_embedder(self) -> bool:
        """Whether ``--embedder none`` turns off what is compared by meaning.

        Otherwise it is refused where `needs_vectors` says so.
        """

    def needs_vectors(self, options: Any) -> bool:
        """Whether scoring with these options needs an embedder."""

    def events(self, raw: pl.DataFrame, options: Any) -> Events:
        """Make typed frames of raw rows (`ROW_SCHEMA`, then the declared columns)."""

    def texts(self, events: Events, options: Any) -> pl.Series:
        """Return the distinct texts that need a vector."""

    def score(self, events: Events, vectors: "VectorView", options: Any) -> dict[str, pl.DataFrame]:
        """Score whole dialogues: one frame a table, in each table's declared schema."""

    def summarise(
        self, tables: Mapping[str, pl.LazyFrame], options: Any, *, cluster: str | None = None
    ) -> pl.DataFrame:
        """Summarise committed tables by group, in the schema of `suites.summary`.

        Intervals take the dialogue as the unit, or the values of the column ``cluster``, which
        every table then has.
        """

    def legacy_files(
        self, tables: Mapping[str, pl.LazyFrame], inputs: tuple[str, ...], options: Any
    ) -> dict[str, bytes]:
        """Return the files of the published evaluation by name; none unless options ask."""


@runtime_checkable
class ChecksOptions(Protocol):
    """A suite whose options name things that can be wrong in themselves, such as files."""

    def check(self, options: Any) -> None:
        """Raise `UsageError` for options that cannot be used; called before anything is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedRun:
    """What an analysis sees of a run.

    Parameters
    ----------
    name
        What the run is called.
    signature
        The line that pins its numbers.
    tables
        Its tables by name, scanned lazily, rows in input order.
    """

    name: str
    signature: str
    tables: Mapping[str, pl.LazyFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisSettings:
    """How a run is analysed.

    Parameters
    ----------
    judge_columns
        Names of columns with scores in a judge's file, beside the rubric's.
    judge_scale
        The smallest and largest score of the rubric; others are refused and listed.
    unit
        The column of table ``dialogues`` whose values are the units of intervals and tests.
    """

    judge_columns: tuple[str, ...] = ()
    judge_scale: tuple[float, float] = (1.0, 5.0)
    unit: str = "dialogue"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisContents:
    """What a suite's analysis of a run consists of, unwritten.

    Parameters
    ----------
    page
        One self-contained HTML page.
    tables
        Frames by name.
    figures
        SVG drawings by name; those that there was something to draw for.
    notes
        What is missing and why, a sentence each.
    captions
        The title of each figure, and what it shows.
    """

    page: str
    tables: Mapping[str, pl.DataFrame]
    figures: Mapping[str, str]
    notes: tuple[str, ...]
    captions: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@runtime_checkable
class AnalysesRuns(Protocol):
    """A suite with an analysis of its own: ``fastscore analyse``."""

    def judge_source(self, settings: AnalysisSettings) -> Source:
        """Return the columns of a judge's file."""

    def analyse(
        self,
        run: CommittedRun,
        judgements: tuple[pl.DataFrame, pl.DataFrame] | None,
        options: Any,
        settings: AnalysisSettings,
    ) -> AnalysisContents:
        """Analyse a run from its tables, and a judge's rows and rejects where there are any."""


@runtime_checkable
class ScoresPerplexity(Protocol):
    """What a suite has besides when it scores pseudo-perplexities of texts."""

    def perplexity_model(self, options: Any) -> str:
        """Return the name of the masked language model, empty for none."""

    def perplexity_texts(self, events: Events, options: Any) -> pl.Series:
        """Return the distinct texts whose pseudo-perplexity `score` finds in the view."""


@runtime_checkable
class ComparesLongTexts(Protocol):
    """A suite that compares texts longer than models take, read in windows."""

    def long_texts(self, events: Events, options: Any) -> pl.Series:
        """Return the distinct texts that `score` finds in the view's ``windowed``; may be empty."""


@runtime_checkable
class CountsCases(Protocol):
    """A suite whose published summary counts what each group of metrics left aside."""

    def cases(self, tables: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
        """Return ``of`` (what is counted), then one Int64 column a count, one row a group."""


@runtime_checkable
class ShowsDialogues(Protocol):
    """A suite that lays a dialogue out turn by turn for a report."""

    @property
    def texts_in_logs(self) -> bool:
        """Whether the texts stand in the logs alone, not in the suite's tables."""

    def show_dialogue(self, dialogue: "Dialogue", options: Any) -> "DialogueView":
        """Return a dialogue's turns with their scores and the evidence in them."""


@runtime_checkable
class ExplainsMetrics(Protocol):
    """A suite that says why a number is what it is."""

    def explain(
        self, dialogue: "Dialogue", metric: Metric, row: Mapping[str, Any], options: Any
    ) -> "Derivation":
        """Explain a metric's value in a row of its table, of a dialogue that was scored again."""


@runtime_checkable
class ScoresTrivialAgents(Protocol):
    """A suite that says what trivial agents score on a log, from the tables of a run over it."""

    def score_trivial_agents(
        self, tables: Mapping[str, pl.LazyFrame], options: Any
    ) -> pl.DataFrame:
        """Return a row for each dialogue and agent of `Metric.baselines`.

        The columns are ``agent``, the key of table ``dialogues``, and the metrics that have such a
        baseline: null if the agent is none of the metric's, or the dialogue has no value.
        """


@runtime_checkable
class ContributesSections(Protocol):
    """A suite with parts of a report of its own."""

    def report_sections(self, run: CommittedRun, options: Any) -> "Sequence[Section]":
        """Return the parts, from the run's tables alone."""
