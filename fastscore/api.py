"""Scoring from Python: frames or logs in, frames or a run directory out."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import polars as pl

from fastscore.errors import InputError, UsageError
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.byte_ranges import ByteRange, Shard
from fastscore.logs.plan.shards import plan_shards
from fastscore.processors import available_processors
from fastscore.results.runs import Run, open_run
from fastscore.run.config import DEFAULT_EMBEDDER, DEFAULT_MAX_REJECTS, RunConfig
from fastscore.run.context import embedder_identity, run_context
from fastscore.run.drive import execute
from fastscore.run.progress import SilentReporter
from fastscore.run.tasks import ShardScores, compute_tables

StrPath = str | os.PathLike[str]
FRAME_NAME = "frame.parquet"


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores in memory.

    Parameters
    ----------
    tables
        One frame a table of the suite, rows in input order.
    summary
        One row a group and metric.
    rejects
        Rows that could not be used, each with its place and reason.
    signature
        The line that pins the numbers.
    """

    tables: Mapping[str, pl.DataFrame]
    summary: pl.DataFrame
    rejects: pl.DataFrame
    signature: str


@overload
def score(
    source: Any,
    suite: str,
    *,
    output: None = None,
    embedder: str | None = ...,
    precision: str = ...,
    dim: int | None = ...,
    store: StrPath | None = ...,
    workers: int | None = ...,
    max_rejects: float = ...,
    overwrite: bool = ...,
    **options: Any,
) -> Scores: ...


@overload
def score(
    source: StrPath | Sequence[StrPath],
    suite: str,
    *,
    output: StrPath,
    embedder: str | None = ...,
    precision: str = ...,
    dim: int | None = ...,
    store: StrPath | None = ...,
    workers: int | None = ...,
    max_rejects: float = ...,
    overwrite: bool = ...,
    **options: Any,
) -> Run: ...


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
    max_rejects: float = DEFAULT_MAX_REJECTS,
    overwrite: bool = False,
    **options: Any,
) -> Scores | Run:
    """Score dialogues by a suite.

    Parameters
    ----------
    source
        A file, folder or glob, several of them, or a frame: polars, or anything that speaks the
        Arrow PyCapsule interface. A frame has the columns that the suite's logs have.
    suite
        The suite's name, for example ``"score_dialogue"``.
    output
        A run directory; scoring into the same one again finishes an interrupted run. Without it
        everything stays in memory.
    embedder
        The model recipe; None turns the semantic part off where the suite allows that.
    precision
        The precision in which the model runs: ``"fp32"``, or ``"bf16"`` where the processor can and
        `fastscore models verify` has measured its accuracy.
    dim
        The width to which vectors are truncated; None for the model's own.
    store
        The folder of vector stores; None for the one in the cache.
    workers
        How many shards of a run are scored at once; None for as many as there are processors.
    max_rejects
        The share of rejected lines above which a run raises; what could be scored is committed
        all the same, and `open_run` reads it.
    overwrite
        Whether a run with another signature in `output` is replaced.
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
    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    is_frame = hasattr(source, "__arrow_c_stream__")
    config = RunConfig(
        suite=suite,
        inputs=() if is_frame else _paths(source),
        output=Path(output) if output is not None else Path(),
        options=options,
        embedder=embedder,
        precision=precision,
        dim=dim,
        store=None if store is None else Path(store),
        workers=workers or available_processors(),
        max_rejects=max_rejects,
        overwrite=overwrite,
    )
    if output is None:
        return _score_in_memory(config, source if is_frame else None)
    if is_frame:
        raise UsageError("A frame is scored in memory.", "Leave out output.")
    outcome = execute(config, SilentReporter())
    if outcome.refusal is not None:
        raise outcome.refusal
    return open_run(config.output)


def _score_in_memory(config: RunConfig, frame: Any) -> Scores:
    suite, options = config.load()
    identity = embedder_identity(config, suite, options)
    context = run_context(config, suite, options, identity)
    with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
        shards = (
            _planned(config, config.source(suite), Path(scratch))
            if frame is None
            else [_frame_shard(frame, Path(scratch))]
        )
        parts = [compute_tables(replace(context, run=Path(scratch)), shard) for shard in shards]
    tables = {table.name: _joined(parts, table.name, table.schema) for table in suite.tables}
    if tables[suite.tables[0].name].is_empty():
        n_rejects = sum(part.counts["rejects"] for part in parts)
        raise InputError(
            f"Nothing was scored: there is no row for {suite.tables[0].name}, {n_rejects:,} rows "
            "are rejects."
        )
    summary = suite.summarise({name: part.lazy() for name, part in tables.items()}, options)
    rejects = pl.concat([part.rejects for part in parts])
    return Scores(tables, summary, rejects, context.signature)


def _joined(parts: Sequence[ShardScores], name: str, schema: Mapping[str, Any]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=schema), *(part.tables[name] for part in parts)])


def _planned(config: RunConfig, source: Any, scratch: Path) -> Sequence[Shard]:
    files = resolve_inputs(config.inputs, source.formats)
    return plan_shards(files, source, scratch=scratch, threads=config.workers).shards


def _frame_shard(frame: Any, scratch: Path) -> Shard:
    """Write a frame where the log reader finds it: its columns are checked as a log's are."""
    rows = pl.DataFrame(frame)
    path = scratch / FRAME_NAME
    rows.write_parquet(path, compression="uncompressed")
    byte_range = ByteRange(FRAME_NAME, str(path), "parquet", "none", 0, rows.height)
    return Shard(0, (byte_range,), path.stat().st_size, "")


def _paths(source: Any) -> tuple[str, ...]:
    if isinstance(source, str | os.PathLike):
        return (os.fspath(source),)
    try:
        return tuple(os.fspath(path) for path in source)
    except TypeError as error:
        raise UsageError(
            f"The source is of type {type(source).__name__}, expected a path, paths or a frame."
        ) from error
