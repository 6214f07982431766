"""Scoring from Python: frames or logs in, frames or a run directory out."""

import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import polars as pl

from fastscore.errors import UsageError
from fastscore.logs.inputs.choice import Choice
from fastscore.logs.inputs.column_map import column_map, mapped
from fastscore.logs.inputs.files import STDIN, Format
from fastscore.logs.inputs.frames import FRAME_NAME
from fastscore.logs.inputs.inspection import Inspection, inspect_logs
from fastscore.logs.inputs.layout import layout_map
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.logs.plan.chosen import choose
from fastscore.logs.plan.index import keys_alone
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.read.given import Given
from fastscore.logs.read.rows import Part, join_parts
from fastscore.logs.read.scan import LogsWarning, scan_rejects, scan_rows
from fastscore.processors import available_processors
from fastscore.results.runs import Run, open_run
from fastscore.results.scores import Scores
from fastscore.run.config import DEFAULT_EMBEDDER, DEFAULT_MAX_REJECTS, NO_EMBEDDER, RunConfig
from fastscore.run.context import RunContext, embedder_identity, run_context
from fastscore.run.drive import execute
from fastscore.run.engines.engine import LOCAL
from fastscore.run.inputs import readable_inputs
from fastscore.run.notes import notes_on_run
from fastscore.run.progress import SilentReporter
from fastscore.run.refusals import no_row_error, nothing_error, strict_error, told_reject
from fastscore.run.scoring import ShardScores, compute_rows, compute_tables
from fastscore.score_options import (
    GroupTravelKeywords,
    GuestSimulationKeywords,
    MemoryFinanceKeywords,
    PreferenceShiftKeywords,
    ScoreDialogueKeywords,
)
from fastscore.suites.declarations import Source
from fastscore.suites.registry import load_suite, suite_names

StrPath = str | os.PathLike[str]


@overload
def score(
    source: Any,
    suite: Literal["group_travel"],
    *,
    output: None = None,
    **options: Unpack[GroupTravelKeywords],
) -> Scores: ...


@overload
def score(
    source: Any,
    suite: Literal["group_travel"],
    *,
    output: StrPath,
    **options: Unpack[GroupTravelKeywords],
) -> Run: ...


@overload
def score(
    source: Any,
    suite: Literal["guest_simulation"],
    *,
    output: None = None,
    **options: Unpack[GuestSimulationKeywords],
) -> Scores: ...


@overload
def score(
    source: Any,
    suite: Literal["guest_simulation"],
    *,
    output: StrPath,
    **options: Unpack[GuestSimulationKeywords],
) -> Run: ...


@overload
def score(
    source: Any,
    suite: Literal["memory_finance"],
    *,
    output: None = None,
    **options: Unpack[MemoryFinanceKeywords],
) -> Scores: ...


@overload
def score(
    source: Any,
    suite: Literal["memory_finance"],
    *,
    output: StrPath,
    **options: Unpack[MemoryFinanceKeywords],
) -> Run: ...


@overload
def score(
    source: Any,
    suite: Literal["preference_shift"],
    *,
    output: None = None,
    **options: Unpack[PreferenceShiftKeywords],
) -> Scores: ...


@overload
def score(
    source: Any,
    suite: Literal["preference_shift"],
    *,
    output: StrPath,
    **options: Unpack[PreferenceShiftKeywords],
) -> Run: ...


@overload
def score(
    source: Any,
    suite: Literal["score_dialogue"],
    *,
    output: None = None,
    **options: Unpack[ScoreDialogueKeywords],
) -> Scores: ...


@overload
def score(
    source: Any,
    suite: Literal["score_dialogue"],
    *,
    output: StrPath,
    **options: Unpack[ScoreDialogueKeywords],
) -> Run: ...


@overload
def score(source: Any, suite: str, *, output: None = None, **options: Any) -> Scores: ...


@overload
def score(source: Any, suite: str, *, output: StrPath, **options: Any) -> Run: ...


def score(
    source: Any,
    suite: str,
    *,
    output: StrPath | None = None,
    embedder: str | None = DEFAULT_EMBEDDER,
    precision: str = "fp32",
    dim: int | None = None,
    store: StrPath | None = None,
    workers: int | None = None,
    engine: str = LOCAL,
    address: str | None = None,
    max_rejects: float = DEFAULT_MAX_REJECTS,
    max_memory: int | None = None,
    max_unpacked: int = DEFAULT_LIMITS.unpacked,
    max_ratio: float = DEFAULT_LIMITS.ratio,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, str]] | None = None,
    layout: str | None = None,
    strict: bool = False,
    overwrite: bool = False,
    format: Format | None = None,
    limit: int | None = None,
    sample: int | None = None,
    seed: int | None = None,
    **options: Any,
) -> Scores | Run:
    """Score dialogues by a suite.

    Parameters
    ----------
    source
        A file, folder or glob, several of them; a frame: polars, anything that speaks the Arrow
        PyCapsule interface, or a dataset with ``to_polars``; or a list of dicts. A frame has the
        columns that the suite's logs have.
    suite
        The suite's name, for example ``"score_dialogue"``.
    output
        A run directory; scoring into the same one again finishes an interrupted run. Without it
        everything stays in memory.
    embedder
        The model recipe; None or ``"none"`` turns the semantic part off where the suite allows it.
    precision
        The precision in which the model runs: ``"fp32"``, or ``"bf16"`` where the processor can and
        `fastscore models verify` has measured its accuracy.
    dim
        The width to which vectors are truncated; None for the model's own.
    store
        The folder of vector stores; None for the one in the cache.
    workers
        How many shards of a run are scored at once; None for as many as there are processors.
    engine
        Who does the work of a run: ``"local"``, this process, or ``"dask"`` or ``"ray"``.
    address
        Of the engine's scheduler; None for processes of our own on this machine.
    max_rejects
        The share of rejected lines above which a run raises; what could be scored is committed
        all the same, and `open_run` reads it.
    max_memory
        The most MiB of memory that reading and scoring may take; None for three quarters of the
        machine's.
    max_unpacked, max_ratio
        The most MiB that one compressed file may unpack to, and how many times larger it may
        become beyond 64 MiB.
    columns
        Where columns stand whose key is another: ``{"text": "turns[].content"}``.
    values
        What the words in a text column mean: ``{"speaker": {"user": "USER"}}``.
    layout
        A named layout (``"openai"``, ``"sharegpt"``) or the TOML file of one; `columns` and
        `values` win over it.
    strict
        Whether a metric that is null in every row for want of its column is an error.
    overwrite
        Whether a run with another signature in `output` is replaced.
    format
        The format of standard input (``"-"``), and of named files whose suffix names none.
    limit
        Score so many dialogues, from the start.
    sample, seed
        Score so many dialogues, those whose names, with the seed, have the smallest hashes: the
        same ones in any order of the log.
    **options
        The suite's options by name, for example ``lex_weight=1.0``.

    Returns
    -------
    Scores or Run
        A `Run` where `output` is named.

    Raises
    ------
    UsageError
        An unknown suite, an unknown option or a value out of its range.
    InputError
        Nothing to read, or nothing of it could be scored.
    ModelError
        The model is not exported.
    """
    given = Given.of(source, format)
    config = RunConfig(
        suite=suite,
        inputs=given.paths,
        output=Path(output) if output is not None else Path(),
        options=options,
        embedder=None if embedder == NO_EMBEDDER else embedder,
        precision=precision,
        dim=dim,
        store=None if store is None else Path(store),
        workers=workers or available_processors(),
        engine=engine,
        address=address,
        max_rejects=max_rejects,
        overwrite=overwrite,
        columns=layout_map(layout, suite) | column_map(columns, values),
        strict=strict,
        format=format,
        choice=Choice(limit, sample, seed),
        limits=Limits(max_memory, max_unpacked, max_ratio),
        memory=given if given.is_frame else None,
    )
    if output is None and engine != LOCAL:
        raise UsageError(
            f"The engine is {engine!r}, and no output is named.",
            "Name a run directory that all workers see.",
        )
    if output is None:
        return _score_in_memory(config, given)
    outcome = execute(config, SilentReporter())
    if outcome.refusal is not None:
        raise outcome.refusal
    return open_run(config.output)


def scan(
    source: Any,
    suite: str,
    *,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, str]] | None = None,
    layout: str | None = None,
    rejects: bool = False,
    workers: int | None = None,
) -> pl.LazyFrame:
    """Scan logs lazily, with the rows that a suite would score.

    The project's reader as a polars source: sharded logs of every format, packed or not, broken
    lines left aside and named. Projections, predicates and row limits of a query are used while
    it is read, and only a few batches are in memory at once.

    Parameters
    ----------
    source
        A file, folder or glob, several of them, a frame, or rows, as `score` takes.
    suite
        The suite whose columns are read.
    columns
        Where columns stand whose key is another: ``{"prediction": "guess.text"}``.
    values
        What the words in a text column mean: ``{"event": {"guess": "predicted"}}``.
    layout
        A named layout or the TOML file of one, as `score` takes.
    rejects
        Scan what no row could be made of instead: place, field, reason, what was found.
    workers
        How many threads read at once; None for as many as there are processors. The rows do not
        depend on it.

    Returns
    -------
    pl.LazyFrame
        The columns ``file``, ``line`` (from 1; a row's number in Parquet and frames) and
        ``byte_offset`` (null where rows have none), then those of the suite, in input order; or
        the rejects. A query over rows that meets rejects ends with a `RejectsWarning`. Files in a
        folder that are no logs of the suite are left aside, and a `LogsWarning` names them, or
        what no row has that every metric of the suite needs.

    Raises
    ------
    UsageError
        An unknown suite, or standard input.
    InputError
        Nothing matches. What goes wrong while a query runs is raised by polars, which names it.

    Examples
    --------
    >>> turns = fastscore.scan("logs/", "score_dialogue")  # doctest: +SKIP
    >>> turns.filter(pl.col("step") == 0).select("file", "line", "prediction")  # doctest: +SKIP
    """
    moved = layout_map(layout, suite) | column_map(columns, values)
    declared = mapped(load_suite(suite).source, moved)
    given = Given.of(source)
    if STDIN in given.paths:
        raise UsageError("Standard input can be read only once.", "Name files, or score it.")
    given, note = given.logs(declared, suite)
    if note:
        warnings.warn(note, LogsWarning, stacklevel=2)
    read = partial(given.read, threads=workers or available_processors())
    return (scan_rejects if rejects else scan_rows)(read, declared, f"{suite}: {given}")


def inspect(*logs: StrPath) -> Inspection:
    """Look at logs: their keys, which suites can read them, with which flags.

    Parameters
    ----------
    *logs
        Files, folders and globs.

    Raises
    ------
    InputError
        Nothing is there.
    """
    sources = {name: load_suite(name).source for name in suite_names()}
    return inspect_logs(tuple(os.fspath(log) for log in logs), sources)


def _score_in_memory(config: RunConfig, given: Given) -> Scores:
    suite, options = config.load()
    identity = embedder_identity(config, suite, options)
    context = run_context(config, suite, options, identity)
    declared = config.source(suite)
    if given.is_frame:
        given.screen(declared, suite.name)
        rows = join_parts(_chosen(given, declared, config.choice), declared)
        parts = [compute_rows(context.load(), rows, [FRAME_NAME])]
    else:
        parts = _scored_shards(config, context, declared)
    tables = {table.name: _joined(parts, table.name, table.schema) for table in suite.tables}
    summary = suite.summarise({name: part.lazy() for name, part in tables.items()}, options)
    rejects = pl.concat([part.rejects for part in parts])
    cut = pl.concat([part.cut_texts for part in parts])
    cut = cut.unique(["id_high", "id_low"], maintain_order=True)
    counts: dict[str, int] = {}
    for part in parts:
        for name, value in part.counts.items():
            counts[name] = counts.get(name, 0) + value
    unknown = pl.concat([part.unknown_words for part in parts]).lazy()
    said = notes_on_run(counts, unknown, declared, summary, options, given.records(declared))
    finest = suite.tables[0].name
    if tables[finest].is_empty():
        where = None if rejects.is_empty() else told_reject(rejects.row(0, named=True)) + "."
        raise no_row_error(finest, counts, said.notes, str(given), where)
    if said.nothing_scored:
        raise nothing_error(suite.name, said.lacking)
    if config.strict and said.lacking:
        raise strict_error(said.lacking)
    return Scores(
        suite.name, tables, summary, rejects, context.signature, cut, (*said.lacking, *said.notes)
    )


def _joined(parts: Sequence[ShardScores], name: str, schema: Mapping[str, Any]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=schema), *(part.tables[name] for part in parts)])


def _chosen(given: Given, source: Source, choice: Choice) -> Iterator[Part]:
    parts = given.read(source)
    if not choice:
        return parts
    chosen = choose(given.read(keys_alone(source)), source, choice).chosen
    return (chosen.kept(part, source) for part in parts)


def _scored_shards(config: RunConfig, context: RunContext, source: Source) -> list[ShardScores]:
    with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
        folder = Path(scratch)
        readable = readable_inputs(config, source, folder / "inputs")
        plan = plan_shards(
            readable.files, source, scratch=folder, threads=config.workers, limits=config.limits
        )
        context = replace(context, run=folder, chosen=readable.chosen)
        loaded = context.load()
        return [compute_tables(loaded, shard) for shard in plan.shards]
