"""Scoring that leaves no run directory: rows of a frame, or shards of logs, one after another."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.logs.inputs.choice import Choice
from fastscore.logs.inputs.frames import FRAME_NAME
from fastscore.logs.plan.chosen import choose, naming_source
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.read.rows import Part, join_parts
from fastscore.logs.read.score_input import ScoreInput
from fastscore.results.runs import Run, Scores
from fastscore.run.commit import CUT_TEXTS, REJECTS
from fastscore.run.config import RunConfig
from fastscore.run.context import RunContext, embedder_identity, run_context
from fastscore.run.folder import describe_inputs, new_manifest
from fastscore.run.inputs import readable_inputs, with_own_turns
from fastscore.run.interrupt import own_stop_flag
from fastscore.run.notes import (
    describe_reject,
    no_row_error,
    notes_on_run,
    nothing_error,
    strict_error,
)
from fastscore.run.progress import Reporter
from fastscore.run.scoring import ShardScores, compute_rows, compute_tables
from fastscore.suites.declarations import Source


@own_stop_flag()
def score_in_memory(config: RunConfig, given: ScoreInput, reporter: Reporter) -> Run:
    """Score what was given, and keep the tables."""
    suite, options = config.load()
    config = with_own_turns(config, suite)
    identity = embedder_identity(config, suite, options)
    context = run_context(config, suite, options, identity)
    declared = config.source(suite)
    inputs: list[dict[str, Any]] = []
    if given.is_frame:
        given.screen(declared, suite.name)
        rows = join_parts(_chosen(given, declared, config.choice), declared)
        with reporter.stage("score", 1) as progress:
            parts = [compute_rows(context.load(), rows, [FRAME_NAME])]
            progress.advance(parts[0].counts)
    else:
        parts, inputs = _scored_shards(config, context, declared, reporter)
    tables = {table.name: _joined(parts, table.name, table.schema) for table in suite.tables}
    summary = suite.summary({name: part.lazy() for name, part in tables.items()}, options)
    rejects = pl.concat([part.rejects for part in parts])
    cut = pl.concat([part.cut_texts for part in parts])
    cut = cut.unique(["id_high", "id_low"], maintain_order=True)
    counts: dict[str, int] = {}
    for part in parts:
        for name, value in part.counts.items():
            counts[name] = counts.get(name, 0) + value
    unknown = pl.concat([part.unknown_words for part in parts]).lazy()
    dialogues = tables.get("dialogues", pl.DataFrame()).lazy()
    run_notes = notes_on_run(
        counts, unknown, declared, summary, options, given.records(declared), dialogues
    )
    finest = suite.tables[0].name
    if tables[finest].is_empty():
        where = None if rejects.is_empty() else describe_reject(rejects.row(0, named=True)) + "."
        raise no_row_error(finest, counts, run_notes.notes, str(given), where)
    if run_notes.nothing_scored:
        raise nothing_error(suite.name, run_notes.lacking)
    if config.strict and run_notes.lacking:
        raise strict_error(run_notes.lacking)
    manifest = new_manifest(config, suite, options, identity, context.signature)
    manifest.status, manifest.inputs = "complete", inputs
    manifest.lacking, manifest.notes, manifest.counts = run_notes.lacking, run_notes.notes, counts
    manifest.tables = {name: {"rows": table.height, "parts": 1} for name, table in tables.items()}
    frames = {**tables, REJECTS: rejects, CUT_TEXTS: cut}
    return Run(Path(str(given)), manifest, scores=Scores(frames, summary, given))


def _joined(parts: Sequence[ShardScores], name: str, schema: Mapping[str, Any]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=schema), *(part.tables[name] for part in parts)])


def _chosen(given: ScoreInput, source: Source, choice: Choice) -> Iterator[Part]:
    parts = given.read(source)
    if not choice:
        return parts
    chosen = choose(given.read(naming_source(source, choice)), source, choice).chosen
    return (chosen.kept(part, source) for part in parts)


def _scored_shards(
    config: RunConfig, context: RunContext, source: Source, reporter: Reporter
) -> tuple[list[ShardScores], list[dict[str, Any]]]:
    """Score shards one after another. Return also the name, size and hash of each input."""
    with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
        folder = Path(scratch)
        readable = readable_inputs(config, source, folder / "inputs")
        plan = plan_shards(
            readable.files, source, scratch=folder, threads=config.workers, limits=config.limits
        )
        context = replace(context, run=folder, chosen=readable.chosen)
        loaded = context.load()
        parts = []
        with reporter.stage("score", len(plan.shards)) as progress:
            for shard in plan.shards:
                parts.append(compute_tables(loaded, shard))
                progress.advance(parts[-1].counts)
        return parts, describe_inputs(plan)
