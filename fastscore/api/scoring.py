"""Scoring from Python: frames or logs in, frames or a run directory out."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Never

import polars as pl
from fastscore_jit.threads import own_stop_flag

from fastscore.api.advice import fitting_suite_named
from fastscore.api.arguments import SuiteName, check_workers_find, request_of, unknown_keyword
from fastscore.api.runs import Run, open_run
from fastscore.errors import UsageError, names_arguments, warn_caller
from fastscore.logs.inputs.files import Format
from fastscore.logs.inputs.frames import FRAME_NAME
from fastscore.logs.integrity.limits import DEFAULT_LIMITS
from fastscore.logs.integrity.rejects import describe_reject
from fastscore.logs.read.chosen import Choice, choose_among, naming_source, take_first
from fastscore.logs.read.rows import Rows, join_parts
from fastscore.logs.score_input import RejectsWarning, ScoreInput
from fastscore.results.runs import Scores
from fastscore.run.commit import CUT_TEXTS, REJECTS
from fastscore.run.context import RunContext, embedder_identity, run_context
from fastscore.run.drive import execute
from fastscore.run.engines.engine import LOCAL
from fastscore.run.folder import describe_inputs, new_manifest
from fastscore.run.inputs import NamedInputs, named_inputs, plan_inputs
from fastscore.run.notes import add_counts, note_run, refusal
from fastscore.run.progress import OnProgress, Reporter, chosen_reporter
from fastscore.run.request import DEFAULT_EMBEDDER, Request, StrPath
from fastscore.run.scoring import ShardScores, compute_rows, compute_tables
from fastscore.settings.options import SuiteOptions
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Source
from fastscore.suites.identity import RunNames
from fastscore.suites.own_metrics import OwnMetric
from fastscore.suites.summary import summarise

if TYPE_CHECKING:
    from fastscore.vectors.embedder import Embed, Embedder, FunctionEmbedder


@names_arguments
def score(
    source: Any,
    suite: SuiteName | SuiteOptions | Suite,
    *,
    metrics: Sequence[OwnMetric | str] = (),
    output: StrPath | None = None,
    embedder: "StrPath | Embedder | Embed | None" = DEFAULT_EMBEDDER,
    precision: Literal["fp32", "bf16"] = "fp32",
    device: Literal["cpu", "cuda"] = "cpu",
    dim: int | None = None,
    store: StrPath | None = None,
    workers: int | None = None,
    engine: Literal["local", "dask", "ray"] = "local",
    address: str | None = None,
    max_rejects: float = 0.001,
    max_memory: int | None = None,
    max_unpacked: int = DEFAULT_LIMITS.unpacked,
    max_ratio: float = DEFAULT_LIMITS.ratio,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, str]] | None = None,
    layout: str | None = None,
    alternate: Literal["user", "assistant"] | None = None,
    sort_by: str | None = None,
    dialogue: str | None = None,
    without: str | None = None,
    strict: bool = False,
    overwrite: bool = False,
    format: Format | None = None,
    limit: int | None = None,
    sample: int | None = None,
    seed: int | None = None,
    progress: bool | OnProgress = False,
    **_others: Never,
) -> Run:
    """Score dialogues by a suite.

    Parameters
    ----------
    source
        A file, folder or glob, or several of them. Or a frame with the columns of the suite's logs:
        polars, pandas, Arrow, DuckDB or a dataset with ``to_polars``. Or dicts, also generated.
    suite
        The suite's options, for example ``fastscore.ScoreDialogue(lex_weight=1.0)``. The name of a
        suite means its defaults: ``"score_dialogue"``.
    metrics
        Metrics of your own beside the suite's: functions decorated with `fastscore.metric`, Python
        files of them, or the names of installed ones.
    output
        A run directory, where the same call finishes an interrupted run. Default: in memory.
    embedder
        A model's name, the folder of an exported model, an `Embedder`, or a function from a list of
        texts to a matrix. None or ``"none"`` turns the semantic part off, if the suite allows it.
    precision
        ``"fp32"``, or ``"bf16"`` if `fastscore models verify` has measured its accuracy here.
    device
        ``"cuda"`` is an NVIDIA GPU, and needs the extra `cuda` and `models verify --device cuda`.
    dim
        The dimension to which vectors are truncated. Default: the model's own.
    store
        The folder of vector stores. Default: the one in the cache. For a function: none.
    workers
        Number of shards of a run to score at once. Default: one per processor.
    engine
        The engine of a run: ``"local"``, this process, or ``"dask"`` or ``"ray"``.
    address
        The address of the engine's scheduler. None starts processes on this machine.
    max_rejects
        The share of rejected lines above which scoring raises. The scored dialogues of a run are
        still committed, and `open_run` reads them. Fewer rejects in memory give a `RejectsWarning`.
    max_memory
        Maximum memory of the process in MiB. Default: three quarters of the machine's.
    max_unpacked, max_ratio
        Maximum unpacked MiB of a compressed file, and unpacked / packed size beyond 64 MiB.
    columns
        Keys of columns that have another key in the logs: ``{"text": "turns[].content"}``.
    values
        The suite's values for the values of a text column: ``{"speaker": {"user": "USER"}}``.
    layout
        A named layout (``"openai"``) or a TOML file. `columns` and `values` take precedence.
    alternate
        Who begins, if turns name no speaker and alternate: ``"user"`` or ``"assistant"``.
    sort_by
        The key of a turn by which the turns of each dialogue are sorted.
    dialogue
        The key that names a dialogue. Documents with the same name are joined.
    without
        Names of tags that are left out of texts, separated by commas: ``"think"``.
    strict
        If True, a metric that is null in every row, because its column is missing, is an error.
    overwrite
        If True, a run with another signature in `output` is replaced.
    format
        The format of standard input (``"-"``), and of named files without a known suffix.
    limit
        Number of dialogues to score, from the start.
    sample, seed
        Number of dialogues to score, those whose names, with the seed, have the smallest hashes.
        The sample does not depend on the order of the log.
    progress
        True shows the progress on stderr: bars on a terminal, lines elsewhere. A callable is called
        with the stage, its tasks that are done, and all its tasks.

    Returns
    -------
    Run
        Tables, summary, rejects and signature, with the same functions in memory as on disk.

    Raises
    ------
    UsageError
        An unknown suite, or an option that cannot be used.
    InputError
        Nothing to read, nothing of it could be scored, or more rejects than `max_rejects`.
    ModelError
        The model is not exported, or the function of `embedder` failed.
    RunConflictError
        `output` holds a run with another signature, or another process writes it.

    Examples
    --------
    >>> run = fastscore.score("logs", fastscore.ScoreDialogue(lex_weight=1.0), output="run")
    >>> run.summary.select("metric", "mean", "ci_low", "ci_high")
    """
    if _others:
        raise unknown_keyword(next(iter(_others)), suite, score)
    request = request_of(locals())
    if engine != LOCAL:
        check_workers_find(request.suite)
    if engine != LOCAL and _function(request) is not None:
        raise UsageError(
            f"The engine is {engine!r}, and the embedder is a function of this process.",
            "Name a model that all workers have.",
        )
    if output is None and engine != LOCAL:
        raise UsageError(
            f"The engine is {engine!r}, and no output is named.",
            "Name a run directory that all workers see.",
        )
    with fitting_suite_named(request):
        if output is None:
            return score_in_memory(request, chosen_reporter(progress))
        outcome = execute(request, chosen_reporter(progress))
    if outcome.refusal is not None:
        raise outcome.refusal
    return replace(open_run(request.folder), frame=request.memory, embedder=_function(request))


def _function(request: Request) -> "FunctionEmbedder | None":
    model = request.model
    return None if model is None or isinstance(model.recipe, str) else model.recipe


@own_stop_flag()
def score_in_memory(request: Request, reporter: Reporter) -> Run:
    """Score the input, and keep the tables in memory."""
    suite, options = request.load_suite(), request.options
    named = named_inputs(request, suite)
    identity = embedder_identity(request.model, suite, options)
    context = run_context(request, suite, identity, named.columns)
    declared = named.source
    given = request.memory or ScoreInput(paths=request.inputs, format=request.format)
    inputs: list[dict[str, Any]] = []
    if given.is_frame:
        given.screen(declared, suite.name)
        rows = _rows_in_memory(given, declared, request.choice)
        with reporter.stage("score", 1) as progress:
            parts = [compute_rows(context.load(), rows, [FRAME_NAME])]
            progress.advance({"rows": parts[0].counts["rows"]})
    else:
        parts, inputs = _scored_shards(named, context, reporter)
    tables = {
        table.name: pl.concat(
            [pl.DataFrame(schema=table.schema), *(part.tables[table.name] for part in parts)]
        )
        for table in suite.tables
    }
    lazy = {name: part.lazy() for name, part in tables.items()}
    summary = summarise(suite, lazy, options)
    rejects = pl.concat([part.rejects for part in parts])
    cut = pl.concat([part.cut_texts for part in parts])
    cut = cut.unique(["id_high", "id_low"], maintain_order=True)
    unknown = pl.concat([part.unknown_words for part in parts]).lazy()
    dialogues = tables.get("dialogues", pl.DataFrame()).lazy()
    records = given.records(declared)
    manifest = new_manifest(request, suite, context, identity)
    manifest.status, manifest.inputs = "complete", inputs
    manifest.counts = add_counts(part.counts for part in parts)
    manifest.tables = {name: {"rows": table.height, "parts": 1} for name, table in tables.items()}
    note_run(manifest, suite, options, declared, unknown, summary, records, dialogues)
    refused = refusal(request, manifest, rejects)
    if refused is not None:
        raise refused
    n_lost, n_lines = manifest.lost_lines
    if n_lost:
        first = describe_reject(rejects.row(0, named=True))
        warn_caller(
            f"Not scored: {n_lost:,} of {n_lines:,} lines. {first}. All of them: run.rejects.",
            RejectsWarning,
        )
    frames = {**tables, REJECTS: rejects, CUT_TEXTS: cut}
    scores = Scores(frames, summary, given)
    return Run(Path(str(given)), manifest, scores=scores, embedder=_function(request))


def _rows_in_memory(given: ScoreInput, source: Source, choice: Choice) -> Rows:
    parts = given.read(source)
    if choice.limit is not None:
        naming = given.read(naming_source(source, of_places=True))
        first = take_first(naming, source, choice.limit).chosen
        parts = (first.kept(part, source) for part in parts)
    if choice.sample is None:
        return join_parts(parts, source, RunNames())
    return join_parts(
        parts, source, RunNames(), lambda names: choose_among(names, choice).sampled(names)
    )


def _scored_shards(
    inputs: NamedInputs, context: RunContext, reporter: Reporter
) -> tuple[list[ShardScores], list[dict[str, Any]]]:
    """Score shards one after another. Return also the name, size and hash of each input."""
    with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
        folder = Path(scratch)
        planned = plan_inputs(inputs, folder)
        context = replace(
            context, run=folder, chosen=planned.chosen, shared_names=planned.plan.shared_names
        )
        loaded = context.load()
        parts = []
        with reporter.stage("score", len(planned.plan.shards)) as progress:
            for shard in planned.plan.shards:
                parts.append(compute_tables(loaded, shard))
                progress.advance({"rows": parts[-1].counts["rows"]})
        return parts, describe_inputs(planned.plan)
