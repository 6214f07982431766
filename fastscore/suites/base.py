"""What a suite is: one declaration, the data between it and a run, and its families of tests.

A suite's headline metrics are one family, all others a second one. A metric that is a copy of
another under its own name is tested once with it.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import polars as pl

from fastscore.errors import UsageError, did_you_mean
from fastscore.suites.declarations import Design, Metric, NullReason, Source, Table

if TYPE_CHECKING:
    from fastscore.suites.showing import DialogueView, Drawing, Section
    from fastscore.vectors.view import VectorView


@dataclass(frozen=True, slots=True)
class Events:
    """The typed frames that a suite makes of a shard's rows."""

    frames: Mapping[str, pl.DataFrame]  # frames by name, rows in input order
    # rows that the suite's definitions cannot use, in the schema of `REJECT_SCHEMA`
    rejects: pl.DataFrame
    # how many rows were read, used and left aside, by name. `PARTIAL_REJECTS` counts rejects that
    # are only parts of a row which is scored all the same.
    counts: Mapping[str, int] = field(default_factory=dict)
    # of items that metrics need, by their path (``conversation[].text``), how often they are null
    nulls: Mapping[str, "Nulls"] = field(default_factory=dict)
    # whether texts that are null count as empty ones, as a published evaluation has it
    nulls_are_empty: bool = False
    # how many turns, messages or steps of them are scored. Default: the rows of the largest frame.
    n_units: int | None = None

    @property
    def n_scored(self) -> int:
        """How many turns, messages or steps are scored."""
        if self.n_units is not None:
            return self.n_units
        return max((frame.height for frame in self.frames.values()), default=0)


@dataclass(frozen=True, slots=True)
class Nulls:
    """How often a column or an item lacks a value, or has one that means nothing."""

    null: int  # in how many rows, or objects, it is absent or null
    asked: int  # in how many it is expected
    # words that are unknown to the suite, with their numbers
    unknown: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """One dialogue with all that is known of it."""

    # its rows of every table; of a dialogue that was scored again, all that the suite's `evidence`
    # returns
    tables: Mapping[str, pl.DataFrame]
    # its rows of the log, as the suite's source declares them; None where they were not read
    raw: pl.DataFrame | None = None
    events: Events | None = None  # what the suite makes of those rows; None with them


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedRun:
    """What an analysis sees of a run."""

    name: str  # what the run is called
    signature: str  # the line that pins its numbers
    tables: Mapping[str, pl.LazyFrame]  # its tables by name, scanned lazily, rows in input order


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisSettings:
    """How a run is analysed."""

    # names of columns with scores in a judge's file, beside the rubric's
    judge_columns: tuple[str, ...] = ()
    # the smallest and largest score of the rubric; others are refused and listed
    judge_scale: tuple[float, float] = (1.0, 5.0)
    # the column of table ``dialogues`` whose values are the units of intervals and tests. Empty for
    # the suite's own.
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisContents:
    """What a suite's analysis of a run consists of, unwritten."""

    title: str  # what the page is about
    facts: tuple[str, ...]  # what was analysed, and how its numbers are to be read: paragraphs
    findings: tuple[str, ...]  # what came out, a sentence each
    # the parts of the page, with the figures that there was something to draw for
    sections: tuple["Section", ...]
    tables: Mapping[str, pl.DataFrame]  # frames by name
    notes: tuple[str, ...]  # what is missing and why, a sentence each

    @property
    def drawings(self) -> tuple["Drawing", ...]:
        """The figures of all sections."""
        return tuple(drawing for section in self.sections for drawing in section.drawings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarised:
    """Metrics that a summary adds up together."""

    metrics: Sequence[Metric]  # what is summarised; each names its table, and its column by its id
    # makes of table ``dialogues`` the one that is summarised. None: as it is.
    dialogues: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None
    # label columns of table ``dialogues`` to group by; left out where no row has the label
    groups: Sequence[str] = ()
    # metrics that the options make null in every row, and the reason: it is counted without being
    # read
    switched_off: Mapping[str, NullReason] = field(default_factory=dict)
    # metrics all nulls of which have one reason, whatever the options, and that reason
    sole_reasons: Mapping[str, NullReason] = field(default_factory=dict)
    by_parts: bool = True  # whether parts of a run can be added up apart
    # makes further rows of the summary of these metrics; not for other groups
    more: Callable[[pl.DataFrame], pl.DataFrame] | None = None


F = TypeVar("F")
_Tables = Mapping[str, pl.LazyFrame]
_Texts = Callable[[Events, Any], pl.Series]
_Score = Callable[[Events, "VectorView", Any], dict[str, pl.DataFrame]]
_REQUIRED: Any = object()
_PLACE = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")


class LazyFunction(Generic[F]):
    """A field of `Suite`: a function, or its place ``module:function`` in the suite's package.

    A place is imported when the function is first used.
    """

    def __init__(self, default: Any = _REQUIRED) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, suite: "Suite | None", owner: type) -> F:
        if suite is None:  # `dataclass` asks the class for the default
            if self._default is _REQUIRED:
                raise AttributeError(self._name)
            default: F = self._default
            return default
        found = vars(suite)[self._name]
        if isinstance(found, str):
            found = vars(suite)[self._name] = self._import(suite, found)
        function: F = found
        return function

    def __set__(self, suite: "Suite", function: F | str) -> None:
        if isinstance(function, str) and not _PLACE.fullmatch(function):
            raise UsageError(
                f"Suite {suite.name!r}: {self._name} is {function!r}, expected a function or "
                "'module:function' in the suite's package."
            )
        vars(suite)[self._name] = function

    def _import(self, suite: "Suite", place: str) -> Any:
        module, _, function = place.partition(":")
        found = getattr(import_module(f"{suite.package}.{module}"), function, None)
        if found is None:
            raise UsageError(
                f"Suite {suite.name!r}: {self._name} is {place!r}, but "
                f"{suite.package}.{module} has no {function!r}."
            )
        return found


class FunctionAt(Generic[F]):
    """A function, or another value, at its place in a suite's package; None where there is none."""

    def __init__(self, place: str) -> None:
        self._module, _, self._name = place.partition(":")

    def __get__(self, suite: "Suite", owner: type) -> F | None:
        module = f"{suite.package}.{self._module}"
        # a suite of users is in a module, which has no modules within
        is_package = hasattr(sys.modules.get(suite.package), "__path__")
        if not is_package or find_spec(module) is None:
            return None
        found: F | None = getattr(import_module(module), self._name, None)
        return found


@dataclass(frozen=True)
class SignedFunction:
    """A function of users: the signature has its source, as ``name:hash``."""

    function: Callable[..., Any]
    code: tuple[str, ...]

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return self.function(*arguments)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Suite:
    """A metric system: what it reads and writes, and the pure functions between.

    Functions are given by themselves or by their place in the package (``"score:score_events"``),
    which is imported on first use. An optional function that is absent is None. Other functions are
    found in the package by their names, such as ``show_dialogue`` in its module ``show``.

    Parameters
    ----------
    name
        The suite's name: ``fastscore score NAME``.
    package
        The package of the functions' modules: ``__name__`` of the module that declares the suite.
    title
        What the suite scores, one line.
    papers
        Authors, title, year and address of what defines the metrics, a line each.
    agreement
        What is known of the metrics' agreement with people, a sentence.
    version
        Rises whenever a number may change. Part of the signature.
    options
        A frozen dataclass of `option` fields. Its property ``needs_vectors``, if there is one,
        decides whether scoring with these options needs an embedder. ``runs_without_embedder =
        True`` accepts ``--embedder none`` although it does: metrics that compare by meaning are
        then null. Its property ``ranges`` contains, by metric, a range that is narrower than the
        declared one under these options.
    source
        The columns that are read.
    tables
        The tables that `score` returns.
    metrics
        The metrics in those tables.
    design
        How dialogues are grouped and compared.
    read
        ``(raw, options)``: typed frames of raw rows (`ROW_SCHEMA`, then the declared columns).
    score
        ``(events, vectors, options)``: one frame for each table, in the table's schema.
    check
        ``(options)``: raises `UsageError` for options that cannot be used, such as an unreadable
        file. Called before anything is written.
    texts
        ``(events, options)``: the distinct texts that need a vector.
    summarise
        ``(options, columns)``: what a summary adds up, a `Summarised` each. ``columns`` are those
        of table ``dialogues`` that are needed beside `Design.groups`. None: all metrics by them.
    """

    name: str
    package: str
    title: str
    version: int
    options: type[Any]
    source: Source
    tables: tuple[Table, ...]
    metrics: tuple[Metric, ...]
    papers: tuple[str, ...] = ()
    agreement: str = ""
    design: Design = field(default_factory=Design)
    read: LazyFunction[Callable[[pl.DataFrame, Any], Events]] = LazyFunction()
    score: LazyFunction[_Score] = LazyFunction()
    check: LazyFunction[Callable[[Any], object] | None] = LazyFunction(None)
    texts: LazyFunction[_Texts | None] = LazyFunction(None)
    summarise: LazyFunction[Callable[[Any, Sequence[str]], Sequence[Summarised]] | None] = (
        LazyFunction(None)
    )
    long_texts = FunctionAt[_Texts]("events:long_texts")
    """``(events, options)``: the distinct texts that `score` finds in the view's ``windowed``:
    texts longer than models take, read in windows."""

    perplexity_texts = FunctionAt[_Texts]("events:perplexity_texts")
    """``(events, options)``: the distinct texts whose pseudo-perplexity `score` finds in the view.
    The model is the option that `names_masked_model`."""

    notes = FunctionAt[Callable[[pl.LazyFrame, Any], list[str]]]("score:notes_on_run")
    """``(dialogues, options)``: sentences about a run for its outcome, from its table of dialogues:
    what was estimated because the log lacks it."""

    cases = FunctionAt[Callable[[_Tables], pl.DataFrame]]("summarise:count_cases")
    """``(tables)``: ``of`` (what is counted), then one Int64 column for each count."""

    legacy_files = FunctionAt[Callable[[_Tables, tuple[str, ...], Any], dict[str, bytes]]](
        "summarise:legacy_files"
    )
    """``(tables, inputs, options)``: the files of the published evaluation, by name."""

    show = FunctionAt[Callable[[Dialogue], "DialogueView"]]("show:show_dialogue")
    """``(dialogue)``: a dialogue's turns with their scores and the evidence in them."""

    texts_in_logs = FunctionAt[bool]("show:TEXTS_IN_LOGS")
    """Whether `show` needs texts that are only in the logs, not in the suite's tables."""

    evidence = FunctionAt[_Score]("show:evidence")
    """``(events, vectors, options)``: what `score` returns of one dialogue, with further columns
    and frames that only `Metric.evidence` shows. None: by `score`."""

    turns = FunctionAt[Callable[[pl.DataFrame, Mapping[str, Any]], pl.DataFrame]](
        "show:spoken_turns"
    )
    """``(raw, options)``: the turns of dialogues in the schema of `showing.SPOKEN_TURNS`, for a
    judge. Options are those of a run by name, none for logs alone. A suite without turns cannot be
    judged."""

    trivial_agents = FunctionAt[Callable[[_Tables, Any], pl.DataFrame]](
        "score:score_trivial_agents"
    )
    """``(tables, options)``: a row for each dialogue and agent of `Metric.baselines`. Columns are
    ``agent``, the key of table ``dialogues``, and the metrics with such a baseline. A value is null
    if the agent is not among the metric's baselines, or the dialogue has no value."""

    sections = FunctionAt[Callable[[CommittedRun, Any], "Sequence[Section]"]](
        "show:report_sections"
    )
    """``(run, options)``: parts of a report, only from the run's tables."""

    analyse = FunctionAt[
        Callable[
            [CommittedRun, tuple[pl.DataFrame, pl.DataFrame] | None, Any, AnalysisSettings],
            AnalysisContents,
        ]
    ]("analysis:analyse_run")
    """``(run, judgements, options, settings)``: the suite's own analysis of a run (``fastscore
    analyse``), with the rows and rejects of a judge's file if there is one."""

    def __repr__(self) -> str:
        return f"Suite({self.name!r}, version={self.version})"

    @property
    def runs_without_embedder(self) -> bool:
        """Whether ``--embedder none`` is accepted although the suite compares vectors."""
        return bool(getattr(self.options, "runs_without_embedder", False))

    def under(self, *options: Any) -> "Suite":
        """Return the suite with the ranges that metrics have under all these options."""
        ranges, *others = (getattr(each, "ranges", {}) for each in options)
        metrics = list(self.metrics)
        for place, metric in enumerate(metrics):
            if metric.id in ranges and all(metric.id in each for each in others):
                minimum, maximum = ranges[metric.id]
                scale = replace(metric.scale, minimum=minimum, maximum=maximum)
                metrics[place] = replace(metric, scale=scale)
        return Suite(**(vars(self) | {"metrics": tuple(metrics)})) if ranges else self

    @property
    def code(self) -> tuple[str, ...]:
        """What the signature has of users' functions that score; the version covers all others."""
        code: tuple[str, ...] = getattr(vars(self)["score"], "code", ())
        return code

    @property
    def metric_by_id(self) -> dict[str, Metric]:
        """The metrics by their ids."""
        return {metric.id: metric for metric in self.metrics}

    def metric(self, id: str) -> Metric:
        """Return a metric by its id.

        Raises
        ------
        UsageError
            There is no metric of this id.
        """
        declared = self.metric_by_id
        if id not in declared:
            message = f"Suite {self.name!r} has no metric {id!r}."
            raise UsageError(message, did_you_mean(id, declared))
        return declared[id]

    def needs_vectors(self, options: Any) -> bool:
        """Whether scoring with these options needs an embedder."""
        return self.texts is not None and bool(getattr(options, "needs_vectors", True))

    def summarised(self, options: Any, columns: Sequence[str] = ()) -> Sequence[Summarised]:
        """Return what a summary adds up: by `summarise`, or all metrics by groups."""
        if self.summarise is not None:
            declared = {metric.id: metric for metric in self.metrics}
            return [
                replace(one, metrics=[declared.get(each.id, each) for each in one.metrics])
                for one in self.summarise(options, columns)
            ]
        return [Summarised(metrics=self.metrics, groups=self.design.groups)]


def headline_metrics(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """Return the metrics that a suite declares as headline, else all that are no parts."""
    declared = tuple(metric for metric in metrics if metric.role == "headline")
    return declared or tuple(metric for metric in metrics if metric.role != "part")


Family = Literal["headline", "others"]


def families(metrics: Sequence[Metric]) -> dict[str, tuple[Family, str]]:
    """Return by metric the family of its test, and the id of the metric whose p-value counts.

    Parameters
    ----------
    metrics
        The metrics that are tested. A copy whose original is not among them is a test of its own,
        and so is the first of several copies of a metric that is not among them.
    """
    headline = {metric.id for metric in metrics if metric.role == "headline"}
    tests: dict[str, list[str]] = {}
    for metric in metrics:
        copies = tests.setdefault(metric.same_test_as or metric.id, [])
        copies.insert(len(copies) if metric.same_test_as else 0, metric.id)
    return {
        id: ("others" if headline.isdisjoint(ids) else "headline", ids[0])
        for ids in tests.values()
        for id in ids
    }
