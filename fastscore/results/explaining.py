"""Single dialogues of a run: found by name or by score, read again, scored again, and explained."""

import dataclasses
import io
import shlex
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fastscore.errors import InputError, ModelError, RunError, UsageError, counted
from fastscore.logs.inputs.column_map import map_from
from fastscore.logs.inputs.files import STDIN, resolve_inputs
from fastscore.logs.inputs.folders import split_member
from fastscore.logs.inputs.frames import FRAME_NAME
from fastscore.logs.integrity.file_state import Shard
from fastscore.logs.objects import is_remote, size_of
from fastscore.logs.plan.shards import Plan, plan_shards
from fastscore.logs.read.chosen import CHOICE_NAMES
from fastscore.logs.read.rows import Rows, join_parts, read_shard
from fastscore.results.metric_text import json_text, value_text
from fastscore.results.runs import Run
from fastscore.run.context import RunContext, embedder_identity, run_context
from fastscore.run.request import Request
from fastscore.run.scoring import TextsToEmbed, vectors_of
from fastscore.run.signature import deciding_differences
from fastscore.settings.options import check_arguments
from fastscore.suites.base import Dialogue, Suite
from fastscore.suites.declarations import LABEL_TABLE, Metric, Ratio, Source
from fastscore.suites.identity import file_names, is_named, unescaped
from fastscore.suites.showing import (
    Evidence,
    EvidenceRows,
    Explanation,
    Mark,
    Number,
    Row,
    marked_parts,
)
from fastscore.terminal import plain

if TYPE_CHECKING:
    from fastscore.vectors.embedder import Embed


NAMES_LISTED = 3

NAME = "dialogue"


@dataclass(frozen=True)
class Dialogues:
    """The dialogues of a complete run, each by its row of table ``dialogues``."""

    run: Run

    @cached_property
    def suite(self) -> Suite:
        """The run's suite."""
        return self.run.suite

    @cached_property
    def options(self) -> Any:
        """The options that the run was scored with."""
        return self.run.options

    @cached_property
    def source(self) -> Source:
        """How the run's logs are read."""
        return self._context(scores=False).source(self.suite)

    @cached_property
    def names(self) -> pl.Series:
        """The names of the dialogues, in the order of the table."""
        schema = next(one.schema for one in self.suite.tables if one.name == LABEL_TABLE)
        for column in (NAME, "file"):
            if column not in schema:
                raise UsageError(
                    f"Suite {self.suite.name!r}: table {LABEL_TABLE!r} has no column {column!r}; "
                    "expected `dialogue` and `file`, by which a dialogue is named and read again.",
                    "Declare the column in the suite and score the log again.",
                )
        rows = self.run.scan(LABEL_TABLE).select(pl.col(NAME).cast(pl.String).fill_null("(no id)"))
        return rows.collect(engine="streaming").to_series()

    def place(self, row: int) -> tuple[str, str]:
        """Return the name of a dialogue and its file."""
        (tables,) = self.tables([row])
        return self.names[row], tables[LABEL_TABLE]["file"][0]

    def find(self, name: str) -> int:
        """Return the row of the dialogue with a name, or that begins with it, or contains it.

        A name that no dialogue has is looked for as logs spell ids.
        """
        names = self.names
        ways = (
            way
            for spelled in (names, unescaped(names))
            for way in (
                ("are", spelled == name),
                ("begin with", spelled.str.starts_with(name)),
                ("hold", spelled.str.contains(name, literal=True)),
            )
        )
        for how, matches in ways:
            found = np.flatnonzero(matches.to_numpy())
            if len(found) == 1:
                return int(found[0])
            if len(found):
                raise UsageError(
                    f"{self.run.path}: the names of {len(found):,} dialogues {how} {name!r}: "
                    f"{_listed(names.gather(found))}.",
                    "Give more of the name.",
                )
        hint = f"Its {counted(len(names), 'dialogues')}: {_listed(names)}."
        if name in {metric.id for metric in self.suite.metrics}:
            hint = f"That is a metric: put a dialogue before it, or set worst to {name}."
        raise UsageError(f"{self.run.path}: no dialogue's name contains {name!r}.", hint)

    def ranked(self, metric: str) -> list[int]:
        """Return the rows of the dialogues that have a metric, the worst by their mean first.

        What has no direction counts by its value.
        """
        declared = self.suite.metric(metric)
        values = (
            self.run.scan(declared.table)
            .group_by(NAME)
            .agg(pl.col(metric).cast(pl.Float64).mean().alias("value"))
        )
        ordered = (
            self.names.to_frame()
            .lazy()
            .with_row_index("row")
            .join(values.drop_nulls("value"), on=NAME)
            .sort("value", NAME, descending=[declared.scale.better == "lower", False])
            .select("row")
            .collect()
        )
        return ordered["row"].to_list()

    def tables(self, rows: Sequence[int]) -> list[dict[str, pl.DataFrame]]:
        """Return the rows of every table of some dialogues, dialogue by dialogue."""
        keys = self.names[list(rows)].to_frame().with_row_index("_dialogue")
        queries = [
            self.run.scan(table.name).join(keys.lazy(), on=NAME, how="inner", maintain_order="left")
            for table in self.suite.tables
        ]
        frames = pl.collect_all(queries, engine="streaming")
        return [
            {
                table.name: frame.filter(pl.col("_dialogue") == place).select(*table.schema)
                for table, frame in zip(self.suite.tables, frames, strict=True)
            }
            for place in range(len(rows))
        ]

    def read(self, rows: Sequence[int]) -> list[Dialogue]:
        """Read dialogues again from their logs: their rows, and the run's own scores."""
        found = []
        with _open_logs(self.run, self.source) as logs:
            for tables in self.tables(rows):
                raw = logs.rows_of(tables)
                events = self.suite.read(raw.frame, self.options)
                found.append(Dialogue(tables=tables, raw=raw.frame, events=events))
        return found

    def rescore(self, committed: Mapping[str, pl.DataFrame]) -> Dialogue:
        """Read a dialogue again, by its rows of the run's tables, and score it with evidence."""
        context = self._context(scores=True)
        differing = deciding_differences(self.run.signature, context.signature)
        # which dialogues were chosen changes none of them
        names = [each.name for each in differing if each.name not in CHOICE_NAMES]
        if names:
            raise UsageError(
                f"{self.run.path} was scored with other files, models or versions than there are "
                f"now: {', '.join(names)}.\n  run: {self.run.signature}\n"
                f"  now: {context.signature}",
                "Score the logs again.",
            )
        with _open_logs(self.run, context.source(self.suite)) as logs:
            raw = logs.rows_of(committed)
        events = self.suite.read(raw.frame, self.options)
        compared = TextsToEmbed.of(self.suite, events, self.options)
        vectors = vectors_of(context.load(), events, compared)
        score = self.suite.evidence or self.suite.score
        scored = score(events, vectors, self.options)
        whole = scored[LABEL_TABLE].columns
        own = [name for name in committed[LABEL_TABLE].columns if name not in whole]
        if own:  # their functions are not part of the run
            values = committed[LABEL_TABLE].select("null_reasons", *own)
            scored = {**scored, LABEL_TABLE: scored[LABEL_TABLE].with_columns(values)}
        return Dialogue(tables=scored, raw=raw.frame, events=events)

    def _context(self, *, scores: bool) -> RunContext:
        manifest = self.run.manifest
        about = manifest.embedder if scores else None
        embedder: Any = (self.run.embedder or about["recipe"]) if about else None
        request = Request(
            suite=manifest.suite,
            options=self.options,
            output=self.run.folder,
            embedder=embedder,
            precision=about["precision"] if about else "fp32",
            device=about.get("device", "cpu") if about else "cpu",
            dim=about["dim"] if about else None,
        )
        try:
            model = request.model
            identity = embedder_identity(model, self.suite, self.options) if about else None
        except ModelError as error:
            raise ModelError(
                f"{self.run.path} was scored with the embedder {embedder}. {error.message}",
                f"{error.hint or ''} If it is a function: fastscore.explain(run, ..., "
                f"embedder={embedder}).".lstrip(),
            ) from error
        return run_context(request, self.suite, identity, map_from(manifest.column_map))


def _listed(names: pl.Series) -> str:
    more = len(names) - NAMES_LISTED
    first = ", ".join(map(repr, names.head(NAMES_LISTED)))
    return f"{first} and {more:,} more" if more > 0 else first


@contextmanager
def _open_logs(run: Run, source: Source) -> "Iterator[_Logs]":
    """Open the logs of a run: shards of packed ones are unpacked until the block ends."""
    with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
        yield _Logs(run, source, Path(scratch))


class _Logs:
    """The logs of a run, each planned once, the last shard that was read kept."""

    def __init__(self, run: Run, source: Source, scratch: Path) -> None:
        self._source, self._scratch = source, scratch
        # of a limited run the last log was read in part
        self._is_whole = "|limit=" not in run.signature
        self._scored = {about["name"]: about for about in run.manifest.inputs}
        self._given = run.frame if run.scores is None else run.scores.source
        self._plans: dict[str, Plan] = {}
        self._files = file_names([*self._scored, FRAME_NAME])
        self._read: tuple[Shard, Rows] | None = None

    def rows_of(self, tables: Mapping[str, pl.DataFrame]) -> Rows:
        """Read the rows of one dialogue, of which one's place is known from its tables."""
        file, line = _place(tables)
        if self._given is not None and self._given.is_frame:
            rows = join_parts(self._given.read(self._source), self._source)
        else:
            plan = self._plan(file)
            starts = [shard.file_ranges[0].first_line for shard in plan.shards]
            place = int(np.searchsorted(starts, line, side="right")) - 1
            rows = self._rows(plan.shards[max(0, place)])
        source, (name,) = self._source, tables[LABEL_TABLE][NAME]
        found = rows.frame.filter(is_named(rows.frame, source, name, self._files))
        if found.is_empty():
            raise InputError(f"{file}:{line}: there is no row any more.", "Score the log again.")
        return replace(rows, frame=found, rejects=rows.rejects.clear())

    def _plan(self, file: str) -> Plan:
        if file not in self._plans:
            about = self._scored.get(file, {"name": file})
            (found,) = resolve_inputs((place_of_log(about),), self._source.formats)
            if found.path != file:  # a log is called as it was typed
                found = replace(found, path=file, stored=found.location)
            scored = about if self._is_whole and len(about) > 1 else None
            if scored and scored["bytes"] != size_of(found.location):
                raise _log_has_changed(file)
            plan = plan_shards((found,), self._source, scratch=self._scratch)
            if scored and scored["content_hash"] != plan.inputs[0].content_hash:
                raise _log_has_changed(file)
            self._plans[file] = plan
        return self._plans[file]

    def _rows(self, shard: Shard) -> Rows:
        if self._read is None or self._read[0] is not shard:
            self._read = shard, read_shard(shard, self._source)
        return self._read[1]


def place_of_log(about: Mapping[str, Any]) -> str:
    """Return where a log of a run is: where it was when scored, or by the name that was typed."""
    name = str(about["name"])
    for place in (about.get("path", ""), name):
        if place and (is_remote(place) or Path(place).exists() or split_member(place)):
            return place
    raise _log_is_gone(name)


def _log_is_gone(file: str) -> InputError:
    """Say that a log is not where it was, or never was a file."""
    if file in (STDIN, FRAME_NAME):
        what = "standard input" if file == STDIN else "a frame"
        return InputError(
            f"The run was scored from {what}, of which nothing is kept: no dialogue can be read "
            "again.",
            "Write it to a file and score that.",
        )
    here = "" if Path(file).is_absolute() else f" (looked for from {Path.cwd()})"
    return InputError(f"{file}: the log is no longer there{here}.", "Put it back, or score again.")


def _log_has_changed(file: str) -> InputError:
    return InputError(f"{file}: the log is no longer what was scored.", "Score it again.")


def _place(tables: Mapping[str, pl.DataFrame]) -> tuple[str, int]:
    file = tables[LABEL_TABLE]["file"][0]
    for frame in (tables[LABEL_TABLE], *tables.values()):
        if "line" in frame.columns and frame["line"].drop_nulls().len():
            return file, int(frame["line"].drop_nulls()[0])
    raise InputError(
        f"{file}: the run's tables have no line of the dialogue, so it cannot be read again.",
        "Choose a dialogue that has a score.",
    )


SEMANTIC_TOLERANCE = 1e-6
_PLACES = ("utterance_index", "step", "turn", "segment", "shift", "turn_pair_id", "message_id")


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Explanations:
    """Formulas, values and evidence of a dialogue's numbers.

    Parameters
    ----------
    dialogue
        The dialogue's name.
    file
        Its log.
    explanations
        One for each value: formula, numbers in it, and evidence.
    suite
        The suite of the run.
    run
        The run's directory.

    Examples
    --------
    >>> found = fastscore.explain("run", best="average_U_best_early")
    >>> found.dialogue, found.explanations[0].value
    """

    dialogue: str
    file: str
    explanations: tuple[Explanation, ...]
    suite: Suite
    run: str = "RUN"

    @property
    def text(self) -> str:
        """All of it as text, for people."""
        console = Console(
            file=io.StringIO(), width=TEXT_WIDTH, highlight=False, markup=False, emoji=False
        )
        with console.capture() as capture:
            print_explanations(console, self)
        return "\n".join(line.rstrip() for line in capture.get().rstrip().split("\n"))

    @property
    def json(self) -> str:
        """All of it as JSON, every number at full precision."""
        found = [dataclasses.asdict(one) for one in self.explanations]
        return json_text({"dialogue": self.dialogue, "file": self.file, "explanations": found})

    def __repr__(self) -> str:
        return self.text


def explain(dialogues: Dialogues, row: int, metrics: Sequence[str]) -> list[Explanation]:
    """Explain metrics of the dialogue in a row of table ``dialogues``, row by row."""
    chosen = [dialogues.suite.metric(id) for id in metrics]
    dialogues.run.require_declared()
    (committed,) = dialogues.tables([row])
    dialogue = dialogues.rescore(committed)
    found = []
    for metric in chosen:
        again, before = (tables[metric.table][metric.id] for tables in (dialogue.tables, committed))
        if not _same(again, before, dialogues.run.manifest.embedder is not None):
            raise RunError(
                f"{dialogues.run.path}: {metric.id} of {dialogues.names[row]!r} is not "
                "what it is when the dialogue is scored again.",
                "See what is damaged with `fastscore summary RUN --verify`.",
            )
        found += _rows(dialogues, dialogue, metric, before.to_list())
    return found


def _same(again: pl.Series, before: pl.Series, by_meaning: bool) -> bool:
    """Tell whether scores are the same: bit by bit, or with vectors within 1e-6."""
    if not by_meaning or not again.dtype.is_numeric():
        return again.equals(before)
    if len(again) != len(before) or not again.is_null().equals(before.is_null()):
        return False
    return bool(((again - before).abs().fill_null(0.0) <= SEMANTIC_TOLERANCE).all())


def _rows(
    dialogues: Dialogues, dialogue: Dialogue, metric: Metric, committed: Sequence[Number]
) -> list[Explanation]:
    found = []
    rows = dialogue.tables[metric.table].iter_rows(named=True)
    for row, value in zip(rows, committed, strict=True):
        if value is None:
            reasons = {entry["metric"]: entry["reason"] for entry in row["null_reasons"] or ()}
            reason = reasons.get(metric.id, "switched off")
            one = Explanation(metric=metric.id, reason=reason, working=metric.formula.text)
        else:
            one = derive(dialogue, metric, row, dialogues.options)
        of_dialogue = metric.table == LABEL_TABLE
        place = ", ".join(
            f"{name.replace('_', ' ')} {row[name]}"
            for name in _PLACES
            if name in row and not of_dialogue
        )
        lines = _lines(dialogue, None if of_dialogue else row.get("line"))
        found.append(dataclasses.replace(one, value=value, place=place, lines=lines))
    return found


def _lines(dialogue: Dialogue, line: int | None) -> tuple[int, ...]:
    """Return the line of a row, all lines of its dialogue where a row is one."""
    if line is not None:
        return (line,)
    return () if dialogue.raw is None else tuple(dialogue.raw["line"].unique().sort())


def choose_dialogue(
    dialogues: Dialogues,
    name: str | None = None,
    *,
    worst: str | None = None,
    best: str | None = None,
    random: bool = False,
    seed: int | None = None,
) -> int:
    """Choose a dialogue: by a part of its name, by a metric, or at random."""
    if seed is not None and not random:
        raise UsageError("seed is given without random.", "Set random, or leave out seed.")
    ways = [way for way in (name, worst, best, random or None) if way is not None]
    if len(ways) > 1:
        raise UsageError(
            f"A dialogue is chosen in one way, not in {len(ways)}.",
            "Give its name, set worst or best to a metric, or set random.",
        )
    if dialogues.names.is_empty():
        raise UsageError(
            f"{dialogues.run.path}: the run has no dialogue.",
            "See its rejected lines in table `rejects`.",
        )
    if not ways:
        raise UsageError(
            f"No dialogue of {dialogues.run.path} is named.",
            f"Give its name, such as {dialogues.names[0]!r}, or set random, or set worst or best "
            "to a metric.",
        )
    if name is not None:
        return dialogues.find(name)
    if random:
        return Random(seed or 0).randrange(len(dialogues.names))
    metric = str(worst or best)
    ranked = dialogues.ranked(metric)
    if not ranked:
        raise UsageError(f"{dialogues.run.path}: no dialogue has a {metric}.")
    return ranked[0 if worst else -1]


def explain_run(
    run: Run,
    dialogue: str | None = None,
    metric: str | None = None,
    *,
    worst: str | None = None,
    best: str | None = None,
    random: bool = False,
    seed: int | None = None,
    embedder: "Embed | None" = None,
) -> Explanations:
    """Explain numbers of a dialogue that is named or chosen; see `fastscore.explain`."""
    check_arguments(explain_run, locals())
    if embedder is not None:
        from fastscore.vectors.embedder import FunctionEmbedder

        run = dataclasses.replace(run, embedder=FunctionEmbedder(embedder))
    dialogues = Dialogues(run)
    row = choose_dialogue(dialogues, dialogue, worst=worst, best=best, random=random, seed=seed)
    chosen = metric or worst or best
    of_dialogues = [
        one.id for one in dialogues.suite.metrics if one.table == LABEL_TABLE and one.role != "part"
    ]
    found = explain(dialogues, row, [chosen] if chosen else of_dialogues)
    shown = {} if run.scores is not None else {"run": str(run.path)}  # no command reads memory
    return Explanations(*dialogues.place(row), tuple(found), dialogues.suite, **shown)


TEXT_WIDTH = 100
EVIDENCE_SHOWN = 12
LONGEST_TEXT, LEAD = 600, 200


def print_explanations(console: Console, found: Explanations) -> None:
    """Print explanations; matched characters are set off by brackets and, in a terminal, colour."""
    declared = found.suite.metric_by_id
    console.print(Text(plain(found.dialogue), style="bold"), soft_wrap=True)
    console.print(Text(plain(found.file)), soft_wrap=True)
    for one in found.explanations:
        metric = declared[one.metric]
        value = _written(one.value)
        place = f", {one.place}" if one.place else ""
        console.print()
        heading = f"{metric.name} ({metric.id}){place}: {value}"
        console.print(
            Text(plain(heading if one.value is not None else f"{heading} {one.reason}"), "bold")
        )
        facts = {"formula": metric.formula.text}
        if one.value is None:
            console.print(_facts(facts | {"null": metric.null_rule}))
            continue
        facts["here"] = f"{one.working} = {value}"
        if one.denominator is not None:
            facts["ratio"] = f"{_written(one.numerator or 0)} / {_written(one.denominator)}"
        if one.lines:
            ends = sorted({one.lines[0], one.lines[-1]})
            facts["lines" if ends[1:] else "line"] = f"{'-'.join(map(str, ends))} of the log"
        console.print(_facts(facts))
        for evidence in one.evidence[:EVIDENCE_SHOWN]:
            print_evidence(console, evidence)
        more = len(one.evidence) - EVIDENCE_SHOWN
        if more > 0:
            words = ("fastscore", "explain", found.run, found.dialogue, one.metric, "--json")
            typed = shlex.join(words)
            console.print(
                Text(plain(f"  ... and {more:,} more: `{typed}` has all")), soft_wrap=True
            )


def _facts(facts: Mapping[str, str]) -> Table:
    """Lay facts out under each other, long ones beside their name."""
    table = Table.grid(padding=(0, 1))
    table.add_column(width=9)
    table.add_column()
    for name, fact in facts.items():
        table.add_row(f"  {name}", Text(plain(fact)))
    return table


def _written(value: Number) -> str:
    """Write a number; a count without decimals."""
    return f"{value:,}" if isinstance(value, int) else value_text(value)


def print_evidence(console: Console, evidence: Evidence) -> None:
    """Print what a number was computed from; of a long text, the part with the evidence."""
    found = evidence.found
    found = value_text(found) if isinstance(found, float) else found
    layout = Table.grid(padding=(0, 1, 0, 0))
    layout.add_column(width=3, justify="right")
    layout.add_column(overflow="fold")
    layout.add_row(
        "-", Text(plain(evidence.what if found is None else f"{evidence.what}: {found}"))
    )
    if evidence.text:
        layout.add_row("", _with_marks(evidence.text, evidence.marks))
    console.print(layout)


def _lines_kept(text: str) -> str:
    """Return a text without control characters, its lines where they were."""
    return "\n".join(plain(line) for line in text.split("\n"))


def _with_marks(text: str, marks: Sequence[Mark]) -> Text:
    start = 0
    if marks and marks[0].stop > LONGEST_TEXT:  # begin where there is something to see
        start = max(0, marks[0].start - LEAD)
    stop = min(len(text), start + LONGEST_TEXT)
    shown = Text("... " if start else "")
    for piece, mark in marked_parts(text, marks, start, stop):
        if mark is None:
            shown.append(_lines_kept(piece))
            continue
        open_, close = ("[", "]") if mark.good else ("{", "}")
        shown.append(f"{open_}{_lines_kept(piece)}{close}", "green" if mark.good else "red")
    if stop < len(text):
        shown.append(f" ... {len(text) - stop:,} more characters")
    return shown


_PLACE_COLUMNS = ("file", "dialogue", "dialogue_row", "null_reasons")
"""Columns that name the dialogue of a row, or say nothing of its values."""


def derive(dialogue: Dialogue, metric: Metric, row: Row, options: Any) -> Explanation:
    """Show how a metric's value in a row came about, by what it declares and the tables have."""
    found = tuple(piece for of in metric.evidence for piece in _pieces(dialogue, row, of, options))
    switches = tuple(
        Evidence(what=_spaced(of.column), found=_shown(of.value))
        for of in metric.fixed_where
        if row[of.column] == of.value
    )
    written, columns = metric.derivation, metric.micro
    if isinstance(written, Ratio):
        columns, written = (written.above, written.below), written.working
    if not isinstance(written, str):
        written = written(row, options)
    evidence = (*switches, *found) or (Evidence(what=metric.name.lower(), found=0),)
    value = row[metric.id]
    derived = partial(Explanation, metric=metric.id, value=value, evidence=evidence)
    if columns is None:
        return derived(working=_filled(written, row, found), result=value)
    above, below = columns
    numerator, denominator = row[above], row[below]
    if not denominator:
        because = [f"{piece.what} is {piece.found}" for piece in switches]
        return derived(working=", ".join([f"{value:g}", *because]), result=value)
    return derived(
        working=_filled(written or f"{{{above}}} / {{{below}}}", row, found),
        result=numerator / denominator,
        numerator=numerator,
        denominator=denominator,
    )


def _filled(template: str, row: Row, evidence: Sequence[Evidence]) -> str:
    """Write values into a formula: those of all rows of the evidence, else of the row."""
    lists: dict[str, list[str]] = {}
    for piece in evidence:
        for name, value in piece.values.items():
            lists.setdefault(name, []).append(_shown(value))
    values = defaultdict(lambda: "nothing", {name: _shown(value) for name, value in row.items()})
    return template.format_map(values | {name: ", ".join(shown) for name, shown in lists.items()})


def _pieces(dialogue: Dialogue, row: Row, of: EvidenceRows, options: Any) -> Iterator[Evidence]:
    if of.only_with is not None and getattr(options, of.only_with[0]) != of.only_with[1]:
        return
    if not of.table and not of.within:
        evidence = partial(Evidence, **_text_of(of, row))
        for name in of.columns:
            yield evidence(what=_spaced(name), found=_shown(row[name]), values={name: row[name]})
        if not of.columns:
            yield evidence(what=_spaced(of.text))
        return
    for one in _evident_rows(dialogue, row, of, options):
        names = of.columns
        if not names and not of.text:
            names = tuple(name for name, value in one.items() if value is not None)
        values = {name: one[name] for name in names}
        named = [_named(name, one[name]) for name in of.names if one[name] not in (None, "")]
        yield Evidence(
            what=", ".join(named) or _spaced(of.table or of.within),
            found=", ".join(f"{_spaced(name)} {_shown(value)}" for name, value in values.items()),
            values=values,
            **_text_of(of, one),
        )


def _text_of(of: EvidenceRows, row: Row) -> dict[str, Any]:
    """Return the text of a row with its marks, if evidence has a text."""
    text = row[of.text] if of.text else ""
    return {"text": text, "marks": tuple(of.marks(row)) if of.marks else ()} if text else {}


def _evident_rows(dialogue: Dialogue, row: Row, of: EvidenceRows, options: Any) -> Iterator[Row]:
    if of.within:
        yield from (one for one in row[of.within] or () if one[of.columns[0]] is not None)
        return
    frames = {} if dialogue.events is None else dialogue.events.frames
    frame = dialogue.tables.get(of.table, frames.get(of.table))
    if of.table == "log":
        frame = dialogue.raw
    if frame is None:
        return
    if of.where is not None:
        frame = frame.filter(of.where(row, options) if callable(of.where) else of.where)
    for name in of.same:
        frame = frame.filter(pl.col(name).eq_missing(row[name]))
    if of.columns:
        frame = frame.drop_nulls(of.columns[:1])
    elif not of.text:
        frame = frame.drop(_PLACE_COLUMNS, strict=False)
    yield from frame.iter_rows(named=True)


def _named(name: str, value: object) -> str:
    return f"{_spaced(name)} {value}" if isinstance(value, int) else str(value)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
