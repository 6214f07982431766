"""Single dialogues of a run: found by name or by score, read again from the log, scored again."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fastscore.errors import InputError, ModelError, UsageError, counted
from fastscore.logs.inputs.column_map import map_from
from fastscore.logs.inputs.files import STDIN, InputFile, resolve_inputs
from fastscore.logs.inputs.folders import split_member
from fastscore.logs.inputs.frames import FRAME_NAME
from fastscore.logs.integrity.file_state import Shard
from fastscore.logs.objects import is_remote, size_of
from fastscore.logs.plan.shards import Plan, plan_shards
from fastscore.logs.read.chosen import CHOICE_NAMES
from fastscore.logs.read.rows import Rows, join_parts, read_shard
from fastscore.results.runs import Run
from fastscore.run.context import RunContext, embedder_identity, run_context
from fastscore.run.request import Request
from fastscore.run.scoring import TextsToEmbed, vectors_of
from fastscore.run.signature import deciding_differences
from fastscore.suites.base import Dialogue, Suite
from fastscore.suites.declarations import LABEL_TABLE, Source
from fastscore.suites.identity import file_names, is_named, unescaped

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
            found = find_log(about, self._source)
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


def find_log(about: Mapping[str, Any], source: Source) -> InputFile:
    """Find a log of a run, under the name that was typed; see `place_of_log`."""
    (file,) = resolve_inputs((place_of_log(about),), source.formats)
    name = str(about["name"])
    return file if file.path == name else replace(file, path=name, stored=file.location)


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
