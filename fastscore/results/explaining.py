"""Single dialogues of a run: found by name or by score, read again, scored again, and explained."""

import dataclasses
import io
import shlex
import tempfile
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from os import PathLike
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fastscore.errors import (
    InputError,
    ModelError,
    RunError,
    UsageError,
    counted,
    listed,
    names_arguments,
)
from fastscore.logs.inputs.column_map import map_from, map_source
from fastscore.logs.inputs.files import STDIN, resolve_inputs
from fastscore.logs.inputs.folders import split_member
from fastscore.logs.inputs.frames import FRAME_NAME
from fastscore.logs.objects import is_remote, size_of
from fastscore.logs.plan.shards import Plan, plan_shards
from fastscore.logs.read.chosen import CHOICE_NAMES
from fastscore.logs.read.rows import join_parts, read_shard
from fastscore.results.metric_text import json_text, value_text
from fastscore.results.runs import Run, as_run
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

    def find(self, name: str) -> int:
        """Return the row of the dialogue with a name, or that begins with it, or contains it.

        A name that no dialogue has is looked for as logs spell ids.
        """
        names = self.names
        for spelled in (names, unescaped(names)):
            for how, matches in (
                ("are", spelled == name),
                ("begin with", spelled.str.starts_with(name)),
                ("contain", spelled.str.contains(name, literal=True)),
            ):
                found = matches.arg_true()
                if len(found) == 1:
                    return int(found[0])
                if len(found):
                    raise UsageError(
                        f"{self.run.path}: the names of {len(found):,} dialogues {how} {name!r}: "
                        f"{_listed(names.gather(found))}.",
                        "Give more of the name.",
                    )
        hint = f"Its {counted(len(names), 'dialogues')}: {_listed(names)}."
        if name in self.suite.metric_by_id:
            hint = f"That is a metric: put a dialogue before it, or set worst to {name}."
        raise UsageError(f"{self.run.path}: no dialogue's name contains {name!r}.", hint)

    def ranked(self, metric: str) -> list[int]:
        """Return the rows of the dialogues that have a metric, the worst by their mean first.

        What has no direction counts by its value.
        """
        declared = self.suite.metric(metric)
        values = self.run.scan(declared.table).group_by(NAME)
        means = values.agg(pl.col(metric).cast(pl.Float64).mean().alias("value"))
        rows = self.names.to_frame().lazy().with_row_index("row")
        return (
            rows.join(means.drop_nulls("value"), on=NAME)
            .sort("value", NAME, descending=[declared.scale.better == "lower", False])
            .collect()["row"]
            .to_list()
        )

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
        tables = self.tables(rows)
        return [
            Dialogue(tables=of_one, raw=raw, events=self.suite.read(raw, self.options))
            for of_one, raw in zip(tables, self._raw_rows(tables), strict=True)
        ]

    def rescore(self, committed: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
        """Read a dialogue again, by its rows of the run's tables, and score it with evidence.

        Return the frames of its events, its tables, and as ``log`` its rows of the log.
        """
        context = self._context()
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
        (raw,) = self._raw_rows([committed])
        events = self.suite.read(raw, self.options)
        compared = TextsToEmbed.of(self.suite, events, self.options)
        vectors = vectors_of(context.load(), events, compared)
        score = self.suite.evidence or self.suite.score
        scored = score(events, vectors, self.options)
        whole = scored[LABEL_TABLE].columns
        own = [name for name in committed[LABEL_TABLE].columns if name not in whole]
        if own:  # their functions are not part of the run
            values = committed[LABEL_TABLE].select("null_reasons", *own)
            scored = {**scored, LABEL_TABLE: scored[LABEL_TABLE].with_columns(values)}
        return {**events.frames, **scored, "log": raw}

    def _context(self) -> RunContext:
        manifest = self.run.manifest
        about = manifest.embedder
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

    def _raw_rows(self, dialogues: Iterable[Mapping[str, pl.DataFrame]]) -> Iterator[pl.DataFrame]:
        """Yield each dialogue's rows of its log; a log is planned once, the last shard kept."""
        run = self.run
        source = map_source(self.suite.source, map_from(run.manifest.column_map))
        files = file_names([*(about["name"] for about in run.manifest.inputs), FRAME_NAME])
        given = run.frame if run.scores is None else run.scores.source
        with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
            plan_of = cache(partial(_plan_log, run, source, Path(scratch)))
            read = lru_cache(1)(lambda file, shard: read_shard(plan_of(file).shards[shard], source))
            for tables in dialogues:
                file, line = _place(tables)
                if given is not None and given.is_frame:
                    rows = join_parts(given.read(source), source).frame
                else:
                    starts = [shard.file_ranges[0].first_line for shard in plan_of(file).shards]
                    rows = read(file, max(0, bisect_right(starts, line) - 1)).frame
                (name,) = tables[LABEL_TABLE][NAME]
                found = rows.filter(is_named(rows, source, name, files))
                if found.is_empty():
                    raise InputError(
                        f"{file}:{line}: there is no row any more.", "Score the log again."
                    )
                yield found


def _listed(names: pl.Series) -> str:
    return listed([*map(repr, names)], NAMES_LISTED)


def _plan_log(run: Run, source: Source, scratch: Path, file: str) -> Plan:
    """Plan the reading of a log of a run; one that is no longer what was scored is refused."""
    about = next((one for one in run.manifest.inputs if one["name"] == file), {"name": file})
    (found,) = resolve_inputs((place_of_log(about),), source.formats)
    if found.path != file:  # a log is called as it was typed
        found = replace(found, path=file, stored=found.location)
    # of a limited run the last log was read in part
    is_known = len(about) > 1 and "|limit=" not in run.signature
    has_changed = is_known and about["bytes"] != size_of(found.location)
    if not has_changed:
        plan = plan_shards((found,), source, scratch=scratch)
        if not is_known or about["content_hash"] == plan.inputs[0].content_hash:
            return plan
    raise InputError(f"{file}: the log is no longer what was scored.", "Score it again.")


def place_of_log(about: Mapping[str, Any]) -> str:
    """Return where a log of a run is: where it was when scored, or by the name that was typed."""
    name = str(about["name"])
    for place in (about.get("path", ""), name):
        if place and (is_remote(place) or Path(place).exists() or split_member(place)):
            return place
    if name in (STDIN, FRAME_NAME):
        what = "standard input" if name == STDIN else "a frame"
        raise InputError(
            f"The run was scored from {what}, of which nothing is kept: no dialogue can be read "
            "again.",
            "Write it to a file and score that.",
        )
    here = "" if Path(name).is_absolute() else f" (looked for from {Path.cwd()})"
    raise InputError(f"{name}: the log is no longer there{here}.", "Put it back, or score again.")


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
            file=io.StringIO(),
            width=TEXT_WIDTH,
            highlight=False,
            markup=False,
            emoji=False,
            color_system=None,
            force_jupyter=False,
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


def explain_metrics(dialogues: Dialogues, row: int, metrics: Sequence[str]) -> list[Explanation]:
    """Explain metrics of the dialogue in a row of table ``dialogues``, row by row."""
    chosen = [dialogues.suite.metric(id) for id in metrics]
    dialogues.run.require_declared()
    (committed,) = dialogues.tables([row])
    frames = dialogues.rescore(committed)
    by_meaning = dialogues.run.manifest.embedder is not None
    found = []
    for metric in chosen:
        again, before = (tables[metric.table][metric.id] for tables in (frames, committed))
        if not _same(again, before, by_meaning):
            raise RunError(
                f"{dialogues.run.path}: {metric.id} of {dialogues.names[row]!r} is not "
                "what it is when the dialogue is scored again.",
                "See what is damaged with `fastscore summary RUN --verify`.",
            )
        rows = frames[metric.table].iter_rows(named=True)
        found += [
            explain_value(metric, one, value, frames, dialogues.options)
            for one, value in zip(rows, before, strict=True)
        ]
    return found


def _same(again: pl.Series, before: pl.Series, by_meaning: bool) -> bool:
    """Tell whether scores are the same: bit by bit, or with vectors within 1e-6."""
    if not by_meaning or not again.dtype.is_numeric():
        return again.equals(before)
    if len(again) != len(before) or not again.is_null().equals(before.is_null()):
        return False
    return bool(((again - before).abs().fill_null(0.0) <= SEMANTIC_TOLERANCE).all())


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
        raise UsageError(f"{dialogues.run.path}: no dialogue has a value of {metric}.")
    return ranked[0 if worst else -1]


@names_arguments
def explain(
    run: Run | str | PathLike[str],
    dialogue: str | None = None,
    metric: str | None = None,
    *,
    worst: str | None = None,
    best: str | None = None,
    random: bool = False,
    seed: int | None = None,
    embedder: "Embed | None" = None,
) -> Explanations:
    """Explain a number of a dialogue: formula, values in it, and evidence.

    Parameters
    ----------
    run
        A run, or its directory.
    dialogue
        The dialogue's name, or a unique part of it.
    metric
        The metric's id. Default: every metric of dialogues.
    worst, best
        Instead of a dialogue: a metric, whose worst or best dialogue is explained.
    random, seed
        Instead of a dialogue: one at random, drawn by the seed. Default: 0.
    embedder
        The function that embedded the texts of the run, if another process scored it.

    Raises
    ------
    UsageError
        No such dialogue or metric, or several dialogues.
    InputError
        The log is missing, or has changed since it was scored.
    ModelError
        The run's model is not exported, or was a function that is not given.

    Examples
    --------
    >>> fastscore.explain("run", worst="average_U_best_early")
    """
    check_arguments(explain, locals())
    opened = as_run(run)
    if embedder is not None:
        from fastscore.vectors.embedder import FunctionEmbedder  # late: few explanations need it

        opened = replace(opened, embedder=FunctionEmbedder(embedder))
    dialogues = Dialogues(opened)
    row = choose_dialogue(dialogues, dialogue, worst=worst, best=best, random=random, seed=seed)
    if opened.scores is not None and opened.scores.source is None:
        (tables,) = dialogues.tables([row])
        place = ":".join(map(str, _place(tables)))
        raise UsageError(
            f"{dialogues.names[row]!r} ({place}) was scored by a judge, which gives no reasons.",
            f"{opened.path / 'repeats.parquet'} has its score of each repeat.",
        )
    chosen = metric or worst or best
    of_dialogues = [
        one.id for one in dialogues.suite.metrics if one.table == LABEL_TABLE and one.role != "part"
    ]
    found = explain_metrics(dialogues, row, [chosen] if chosen else of_dialogues)
    (tables,) = dialogues.tables([row])
    return Explanations(
        dialogues.names[row],
        tables[LABEL_TABLE]["file"][0],
        tuple(found),
        dialogues.suite,
        # no command reads scores in memory
        "RUN" if opened.scores is not None else str(opened.path),
    )


TEXT_WIDTH = 100
EVIDENCE_SHOWN = 12
LONGEST_TEXT, LEAD = 600, 200


def print_explanations(console: Console, found: Explanations) -> None:
    """Print explanations; matched characters are set off by brackets and, in a terminal, colour."""
    console.print(Text(plain(found.dialogue), style="bold"), soft_wrap=True)
    console.print(Text(plain(found.file)), soft_wrap=True)
    for one in found.explanations:
        metric = found.suite.metric_by_id[one.metric]
        value = _written(one.value)
        place = f", {one.place}" if one.place else ""
        shown = value if one.value is not None else f"{value} {one.reason}"
        console.print()
        console.print(Text(plain(f"{metric.heading}{place}: {shown}"), "bold"))
        facts = {"formula": metric.formula.text}
        if one.value is None:
            facts["null"] = metric.null_rule
        else:
            facts["here"] = f"{one.working} = {value}"
            if one.denominator is not None:
                facts["ratio"] = f"{_written(one.numerator or 0)} / {_written(one.denominator)}"
            if one.lines:
                ends = sorted({one.lines[0], one.lines[-1]})
                facts["lines" if ends[1:] else "line"] = f"{'-'.join(map(str, ends))} of the log"
        for name, fact in facts.items():
            _print_beside(console, name, 9, Text(plain(fact)))
        for evidence in one.evidence[:EVIDENCE_SHOWN]:
            print_evidence(console, evidence)
        more = len(one.evidence) - EVIDENCE_SHOWN
        if more > 0:
            words = ("fastscore", "explain", found.run, found.dialogue, one.metric, "--json")
            more_text = f"  ... and {more:,} more: `{shlex.join(words)}` has all"
            console.print(Text(plain(more_text)), soft_wrap=True)


def _written(value: Number) -> str:
    """Write a number; a count without decimals."""
    return f"{value:,}" if isinstance(value, int) else value_text(value)


def print_evidence(console: Console, evidence: Evidence) -> None:
    """Print what a number was computed from; of a long text, the part with the evidence."""
    found = evidence.found
    shown = value_text(found) if isinstance(found, float) else found
    texts = [Text(plain(evidence.what if shown is None else f"{evidence.what}: {shown}"))]
    if evidence.text:
        texts.append(_with_marks(evidence.text, evidence.marks))
    _print_beside(console, "-", 3, *texts)


def _print_beside(console: Console, name: str, width: int, *texts: Text) -> None:
    """Print texts under each other beside a name, which has a column of this width."""
    layout = Table.grid(padding=(0, 1, 0, 0))
    layout.add_column(width=width)
    layout.add_column(overflow="fold")
    for place, text in enumerate(texts):
        layout.add_row("" if place else f"  {name}", text)
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


def explain_value(
    metric: Metric, row: Row, value: Number, frames: Mapping[str, pl.DataFrame], options: Any
) -> Explanation:
    """Show how a metric's value in a row came about, by what it declares and the tables have.

    `value` is the run's own, the row that of the dialogue scored again.
    """
    places: tuple[str, ...] = ()
    lines = tuple(frames["log"]["line"].unique().sort())
    if metric.table != LABEL_TABLE:
        places = tuple(f"{_spaced(name)} {row[name]}" for name in _PLACES if name in row)
        lines = lines if row.get("line") is None else (row["line"],)
    explanation = partial(
        Explanation, metric=metric.id, value=value, place=", ".join(places), lines=lines
    )
    if value is None:
        reasons = {entry["metric"]: entry["reason"] for entry in row["null_reasons"] or ()}
        reason = reasons.get(metric.id, "switched off")
        return explanation(reason=reason, working=metric.formula.text)
    found = tuple(piece for of in metric.evidence for piece in _pieces(row, of, frames, options))
    switches = tuple(
        Evidence(what=_spaced(of.column), found=_shown(of.value))
        for of in metric.fixed_where
        if row[of.column] == of.value
    )
    none = (Evidence(what=metric.name.lower(), found=0),) if metric.evidence else ()
    evidence = (*switches, *found) or none  # a suite of one's own declares no evidence
    explanation = partial(explanation, evidence=evidence)
    working, columns = metric.derivation, metric.micro
    if isinstance(working, Ratio):
        columns, working = (working.above, working.below), working.working
    if not isinstance(working, str):
        working = working(row, options)
    result = row[metric.id]
    if columns is None:
        return explanation(working=_filled(working, row, found), result=result)
    above, below = columns
    if not row[below]:
        because = [f"{piece.what} is {piece.found}" for piece in switches]
        return explanation(working=", ".join([f"{result:g}", *because]), result=result)
    return explanation(
        working=_filled(working or f"{{{above}}} / {{{below}}}", row, found),
        result=row[above] / row[below],
        numerator=row[above],
        denominator=row[below],
    )


def _filled(template: str, row: Row, evidence: Sequence[Evidence]) -> str:
    """Write values into a formula: those of all rows of the evidence, else of the row."""
    lists: dict[str, list[str]] = {}
    for piece in evidence:
        for name, value in piece.values.items():
            lists.setdefault(name, []).append(_shown(value))
    values = defaultdict(lambda: "nothing", {name: _shown(value) for name, value in row.items()})
    return template.format_map(values | {name: ", ".join(shown) for name, shown in lists.items()})


def _pieces(
    row: Row, of: EvidenceRows, frames: Mapping[str, pl.DataFrame], options: Any
) -> Iterator[Evidence]:
    """Yield the evidence that a metric declares, as it is for a row."""
    if of.only_with is not None and getattr(options, of.only_with[0]) != of.only_with[1]:
        return
    if not of.table and not of.within:
        evidence = partial(Evidence, **_text_of(of, row))
        for name in of.columns:
            yield evidence(what=_spaced(name), found=_shown(row[name]), values={name: row[name]})
        if not of.columns:
            yield evidence(what=_spaced(of.text))
        return
    for one in _evident_rows(row, of, frames, options):
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


def _evident_rows(
    row: Row, of: EvidenceRows, frames: Mapping[str, pl.DataFrame], options: Any
) -> Iterator[Row]:
    if of.within:
        yield from (one for one in row[of.within] or () if one[of.columns[0]] is not None)
        return
    frame = frames.get(of.table)
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
