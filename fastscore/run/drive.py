"""Driving a run through its stages: plan, texts, embed, score, summary.

Each stage is a map of tasks whose committed outputs are skipped, so a rerun of the same command
finishes what an interrupted one began. Vectors live in a store outside the run: what was embedded
stays, whatever becomes of the run. `preview` tells what a run would do.
"""

import dataclasses
import os
import platform
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from fastscore_jit.system import peak_memory
from fastscore_jit.threads import own_stop_flag

from fastscore.errors import FastscoreError, InputError, RunConflictError, StoreError, UsageError
from fastscore.files import cache_root
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.integrity.file_state import Shard
from fastscore.logs.integrity.limits import SHARD_MEMORY, limit_memory
from fastscore.logs.objects import is_remote
from fastscore.logs.plan.shards import Plan
from fastscore.logs.read.lines import buffers_kept
from fastscore.logs.samples.records import read_records
from fastscore.run import tasks
from fastscore.run.commit import (
    CUT_TEXTS,
    LEGACY,
    SUMMARY_JSON,
    SUMMARY_PARQUET,
    WORK,
    Receipt,
    commit_bytes,
    commit_json,
    commit_table,
    count_cut_texts,
    hash_of_outputs,
    load_receipt,
    names_of_parts,
    place_of,
    receipt_path,
    receipts_folder,
    remove_temporaries,
    scan_unknown_words,
    texts_part,
)
from fastscore.run.context import RunContext, embedder_identity, run_context
from fastscore.run.engines.engine import LOCAL, Engine, open_engine
from fastscore.run.folder import accept_inputs, open_manifest
from fastscore.run.inputs import NamedInputs, PlannedInputs, named_inputs, plan_inputs
from fastscore.run.kernels import WITHOUT_VECTORS, compiled, kernels_of, load_kernels, unread
from fastscore.run.manifest import MANIFEST_NAME, Manifest, read_manifest
from fastscore.run.notes import add_counts, note_run, refusal
from fastscore.run.progress import Reporter, StageProgress
from fastscore.run.request import Request
from fastscore.run.signature import EmbedderIdentity, deciding_differences
from fastscore.run.tasks import Checked
from fastscore.run.writer import Writer, writing
from fastscore.settings.extras import installed_version
from fastscore.suites.base import Suite
from fastscore.suites.summary import summarise

Key = TypeVar("Key")
_CheckTask = Callable[[RunContext, Sequence[Shard]], list[Checked]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    manifest: Manifest  # the run's manifest, complete
    # why the input counts as refused although what could be scored was, or None
    refusal: InputError | None

    @property
    def is_scored(self) -> bool:
        """Whether any metric has a value."""
        finest = next(iter(self.manifest.tables.values()))
        return finest["rows"] > 0 and not self.manifest.all_null


@dataclass(slots=True)
class _Execution:
    folder: Path
    request: Request
    suite: Suite
    context: RunContext
    writer: Writer
    engine: Engine
    manifest: Manifest
    reporter: Reporter

    @property
    def work(self) -> Path:
        return self.folder / WORK

    @contextmanager
    def stage(self, name: str, total: int, texts: int | None = None) -> Iterator[StageProgress]:
        """Show a stage and add its tasks and seconds to the manifest, however it ends."""
        started = time.monotonic()
        try:
            with (
                limit_memory(self.request.limits, f"The stage {name!r}"),
                self.reporter.stage(name, total, texts) as progress,
            ):
                yield progress
        finally:
            self.add_time(name, total, time.monotonic() - started)
            self.context.check_writer()
            self.manifest.save(self.folder)

    def add_time(self, name: str, total: int, seconds: float) -> None:
        """Add a stage's tasks and seconds to those of earlier runs into the directory."""
        stage = self.manifest.stages.setdefault(name, {"tasks": 0, "seconds": 0.0})
        stage["tasks"] += total
        stage["seconds"] = round(stage["seconds"] + seconds, 3)
        peak = max(self.manifest.peak_memory_bytes, peak_memory())
        self.manifest.peak_memory_bytes = peak

    def check(self, task: _CheckTask, shards: Sequence[Shard]) -> list[Checked]:
        """Return what of each shard is committed, in their order."""
        groups = tasks.grouped(shards, max(self.request.threads, self.engine.processes()))
        checked = self.engine.map(partial(task, self.context), groups)
        found = {one.index: one for some in checked for one in some}
        return [found[shard.index] for shard in shards]

    def map(
        self,
        name: str,
        task: Callable[[RunContext, Key], Receipt],
        keys: Sequence[Key],
        shown: dict[str, str],
        *,
        exclusive: bool = False,
        texts: int | None = None,
    ) -> None:
        """Run a stage's open tasks; `shown` names the counts that are shown as rates."""
        if not keys:
            return
        with self.stage(name, len(keys), texts) as progress:
            here = partial(task, self.context)
            for receipt in self.engine.map(here, keys, exclusive=exclusive, lost=progress.lost):
                progress.advance({label: receipt.counts[key] for key, label in shown.items()})


@own_stop_flag()
@buffers_kept()
def execute(request: Request, reporter: Reporter) -> Outcome:
    """Score logs into a run directory, resuming what is there."""
    with limit_memory(request.limits, "Reading the options"):
        suite = request.load_suite()
    inputs = named_inputs(request, suite, reporter.note)
    without = unread(file.format for file in inputs.files)
    if request.model is None or not suite.needs_vectors(request.options):
        without += WITHOUT_VECTORS
    # a missing model is refused first
    identity = embedder_identity(request.model, suite, request.options)
    with compiled(kernels_of(suite.name, without), reporter):
        context = run_context(request, suite, identity, inputs.columns)
    with (
        writing(request.folder, replaces=request.overwrite, note=reporter.note) as (folder, writer),
        _workers(
            replace(context, run=folder, writer=writer), inputs, identity, without, reporter.note
        ) as (engine, context),
    ):
        manifest = open_manifest(
            folder, request, suite, context, identity, note=reporter.note, name=writer.name
        )
        context = replace(context, signature=manifest.signature)
        run = _Execution(folder, request, suite, context, writer, engine, manifest, reporter)
        with limit_memory(request.limits, "The stage 'plan'"):
            planned = _plan(run, inputs)
        plan = planned.plan
        _score(run, plan)
        receipts = _score_receipts(run, plan)
        summary = _summarise(run, receipts)
        with limit_memory(request.limits, "The stage 'summary'"):
            _describe(run, receipts, summary, planned.files)
        run.context.check_writer()
        manifest.status = "complete"
        run.writer.commit_manifest(folder, manifest)
        if request.engine != LOCAL:
            remove_temporaries(folder)  # of workers that died
        shutil.rmtree(run.work, ignore_errors=True)
        return Outcome(run.manifest, refusal(request, run.manifest, folder))


@contextmanager
def _workers(
    context: RunContext,
    inputs: NamedInputs,
    identity: EmbedderIdentity | None,
    without: tuple[str, ...],
    note: Callable[[str], object],
) -> Iterator[tuple[Engine, RunContext]]:
    """Open the engine of a run; workers elsewhere must see what this process sees."""
    request = inputs.request
    where = (request.engine, request.address, request.threads, request.limits)
    if request.engine == LOCAL:
        with open_engine(*where) as engine:
            yield engine, context
        return
    context = absolute(context)
    expected = Expected(context, identity.fingerprint if identity else None)
    with open_engine(*where, partial(check_here, expected)) as engine:
        if not check_workers(engine, expected, inputs.stored_files, without):
            note(f"no worker has joined {request.address} yet: it is waited for")
        yield engine, context


def _plan(run: _Execution, inputs: NamedInputs) -> PlannedInputs:
    """Plan the shards. Until the inputs are accepted, the directory's run stays as it is.

    A directory in which nothing was planned before is left empty if the inputs are refused.
    """
    started = time.monotonic()
    try:
        planned = plan_inputs(
            inputs,
            run.context.run / WORK,
            note=run.reporter.note,
            stage=run.reporter.stage,
            engine=run.engine,
        )
    except InputError:
        run.context.check_writer()
        if not run.manifest.inputs:
            shutil.rmtree(run.work, ignore_errors=True)
            (run.folder / MANIFEST_NAME).unlink(missing_ok=True)
        raise
    run.manifest.left_aside = list(planned.left_aside)
    run.context = replace(
        run.context, chosen=planned.chosen, shared_names=planned.plan.shared_names
    )
    run.context.check_writer()
    accept_inputs(run.folder, run.manifest, planned.plan, run.writer)
    run.add_time("plan", len(planned.files), time.monotonic() - started)
    return planned


def _score(run: _Execution, plan: Plan) -> None:
    fingerprints = {
        shard.index: run.context.fingerprint(shard.fingerprint) for shard in plan.shards
    }
    contents = {
        shard.index: run.context.fingerprint(shard.content_fingerprint) for shard in plan.shards
    }
    stated = run.writer.restore(run.folder, fingerprints, contents)
    open_shards = _open_shards(run, plan.shards)
    void = stated.intersection(fingerprints[shard.index] for shard in open_shards)
    run.writer = run.writer.reopen(sorted(void))
    run.context = replace(run.context, writer=run.writer)
    found = run.check(partial(tasks.check_moved, tasks.columns_of(run.suite)), open_shards)
    renamed = {checked.index for checked in found if checked.receipt is not None}
    moved = [shard for shard in open_shards if shard.index in renamed]
    open_shards = [shard for shard in open_shards if shard.index not in renamed]
    if len(open_shards) < len(plan.shards):
        done = len(plan.shards) - len(open_shards)
        run.reporter.note(f"{done} of {len(plan.shards)} shards are scored already")
    run.map("rename", tasks.rename_files, moved, {"rows": "rows"})
    if run.context.embedder is not None and open_shards:
        open_shards = _embed(run, open_shards)
    if run.context.perplexity is not None:
        # one shard at a time in a process: the model uses every core by itself
        shown = {"evaluated": "texts"}
        run.map("perplexity", tasks.evaluate_perplexity, open_shards, shown, exclusive=True)
    shown = {"rows": "rows"}
    run.map("score", tasks.score_shard, open_shards, shown, exclusive=_one_by_one(run, open_shards))


def _one_by_one(run: _Execution, shards: Sequence[Shard]) -> bool:
    """Tell whether as many shards at once as there are workers would take too much memory."""
    largest = max((shard.n_bytes for shard in shards), default=0)
    return run.request.threads * largest * SHARD_MEMORY > run.request.limits.memory_bytes


def _open_shards(run: _Execution, shards: Sequence[Shard]) -> list[Shard]:
    """Return the shards whose scores are not committed, or no longer as they were committed."""
    found = run.check(partial(tasks.check_scores, tasks.columns_of(run.suite)), shards)
    for checked in found:
        for name in checked.damaged:
            run.reporter.note(
                f"{run.writer.name}/{name}: not what was committed; its shard is scored again"
            )
    return [shard for shard, one in zip(shards, found, strict=True) if one.receipt is None]


def _embed(run: _Execution, shards: Sequence[Shard]) -> list[Shard]:
    """Embed what the store lacks; return the shards that were not scored at once without it."""
    folder = receipts_folder(run.folder, "texts")
    parts = {shard.index: texts_part(run.folder, shard.index) for shard in shards}
    run.context.check_writer()
    for part in tasks.collected_parts(run.folder):
        if part not in parts.values():
            part.unlink()  # of another plan
    collected = run.check(tasks.check_texts, shards)
    waiting = [shard for shard, one in zip(shards, collected, strict=True) if one.receipt is None]
    shown = {"distinct": "texts", "rows": "rows scored"}
    exclusive = _one_by_one(run, waiting)
    run.map("texts", tasks.score_or_collect_texts, waiting, shown, exclusive=exclusive)
    left = _open_shards(run, shards)
    counted = [load_receipt(receipt_path(folder, "texts", shard.index)) for shard in left]
    missing = sum(receipt.counts["missing"] for receipt in counted if receipt is not None)
    buckets = tasks.text_buckets(missing, run.engine.processes()) if missing else ()
    shown = {"embedded": "texts"}
    texts = tasks.count_texts_to_embed(run.context, missing) if missing else 0
    # one bucket at a time in a process: the embedder uses every core by itself
    run.map("embed", tasks.embed_bucket, buckets, shown, exclusive=True, texts=texts)
    return left


def _score_receipts(run: _Execution, plan: Plan) -> list[Receipt]:
    receipts = []
    check = partial(tasks.check_scores, tasks.columns_of(run.suite))
    for checked in run.check(check, plan.shards):
        if checked.receipt is None:
            raise RunConflictError(
                f"{run.writer.name}: the output of shard {checked.index} was changed while it was "
                "scored.",
                "Run the same command again.",
            )
        receipts.append(checked.receipt)
    return receipts


def _summarise(run: _Execution, receipts: Sequence[Receipt]) -> pl.DataFrame:
    """Commit the summary of all parts, and what the suite's published code writes."""
    groups: Sequence[tasks.Parts] = ()
    if run.request.engine != LOCAL:  # threads of this process add up whole tables, without files
        groups = tasks.parts_to_add_up(run.suite, receipts, run.engine.processes())
    with run.stage("summary", 1 + 2 * len(groups)) as progress:
        scanned = _scanned_tables(run, receipts)
        if groups:
            summary = tasks.summary_by_tasks(run.engine, run.context, groups, scanned, progress)
        else:
            summary = summarise(run.suite, scanned, run.request.options)
        run.context.check_writer()
        pinned = {"fastscore.signature": run.context.signature}
        content = {"signature": run.context.signature, "summary": summary.to_dicts()}
        outputs = [
            commit_table(run.folder / SUMMARY_PARQUET, summary, pinned),
            commit_json(run.folder / SUMMARY_JSON, content),
        ]
        inputs = tuple(entry["name"] for entry in run.manifest.inputs)
        files = run.suite.legacy_files
        for name, data in files(scanned, inputs, run.request.options).items() if files else ():
            committed = commit_bytes(run.folder / LEGACY / name, data)
            outputs.append(replace(committed, path=f"{LEGACY}/{name}"))
        run.manifest.outputs = [asdict(output) for output in outputs]
        progress.advance({})
    return summary


def _scanned_tables(run: _Execution, receipts: Sequence[Receipt]) -> dict[str, pl.LazyFrame]:
    """Scan the parts of each table."""
    return {
        table.name: pl.scan_parquet(
            [run.folder / name for name in names_of_parts(receipts, table.name)], glob=False
        )
        if receipts
        else pl.LazyFrame(schema=table.schema)
        for table in run.suite.tables
    }


def _describe(
    run: _Execution, receipts: Sequence[Receipt], summary: pl.DataFrame, files: Sequence[InputFile]
) -> None:
    """Add up what was counted, and say what rows lack."""
    counts = add_counts(receipt.counts for receipt in receipts)
    run.manifest.tables = {
        table.name: {"rows": counts.pop(f"rows:{table.name}", 0), "parts": len(receipts)}
        for table in run.suite.tables
    }
    if run.context.embedder is not None:
        counts[CUT_TEXTS] = count_cut_texts(run.folder, receipts)
    source = run.context.source(run.suite)
    rows = (row for file in files for row in read_records(file, source))
    unknown = scan_unknown_words(run.folder, receipts)
    dialogues = _scanned_tables(run, receipts).get("dialogues", pl.LazyFrame())
    run.manifest.counts = counts
    note_run(
        run.manifest,
        suite=run.suite,
        options=run.request.options,
        source=source,
        unknown=unknown,
        summary=summary,
        rows=rows,
        dialogues=dialogues,
    )
    run.manifest.parts_hash = hash_of_outputs(receipts)


@own_stop_flag()
def preview(request: Request, reporter: Reporter) -> dict[str, Any]:
    """Say what a run would do, reading the input but writing nothing that stays."""
    with limit_memory(request.limits, "Reading the options"):
        suite = request.load_suite()
        inputs = named_inputs(request, suite, reporter.note)
    identity = embedder_identity(request.model, suite, request.options)
    context = run_context(request, suite, identity, inputs.columns)
    with (
        tempfile.TemporaryDirectory(prefix="fastscore-", dir=_scratch_parent(request)) as scratch,
        _workers(replace(context, run=Path(scratch)), inputs, identity, (), reporter.note) as (
            engine,
            context,
        ),
        limit_memory(request.limits, "The stage 'plan'"),
    ):
        planned = plan_inputs(inputs, context.run, note=reporter.note, engine=engine)
        plan, context = planned.plan, replace(context, chosen=planned.chosen)
        texts = _preview_texts(engine, context, plan, reporter) if identity else {}
    earlier, is_scored = _earlier_run(request, suite)
    conflict = {}
    if earlier is not None and deciding_differences(earlier.signature, context.signature):
        conflict = {
            "conflict": f"{place_of(request.folder)} holds a run signed {earlier.signature}"
        }
    elif earlier is not None:
        context = replace(context, signature=earlier.signature)
    return {
        "signature": context.signature,
        **conflict,
        "files": len(plan.inputs),
        "bytes": sum(shard.n_bytes for shard in plan.shards),
        "shards": len(plan.shards),
        "scored_shards": sum(is_scored(context, shard) for shard in plan.shards),
        **texts,
    }


def _earlier_run(
    request: Request, suite: Suite
) -> tuple[Manifest | None, Callable[[RunContext, Shard], bool]]:
    """Return the manifest of the run in the output, and what tells whether a shard is scored."""
    place = place_of(request.folder)
    if isinstance(place, Path):
        manifest = None if request.overwrite else read_manifest(place)
        return manifest, lambda context, shard: tasks.is_scored(context, suite, place, shard)
    from fastscore.run.remote.runs import earlier_run  # late: few runs are in a store

    manifest, fingerprints = earlier_run(place.url)
    return (
        None if request.overwrite else manifest,
        lambda context, shard: context.fingerprint(shard.fingerprint) in fingerprints,
    )


def _scratch_parent(request: Request) -> Path | None:
    """Return a folder that all workers see; None, the system's, where we are the only one."""
    if request.engine == LOCAL:
        return None
    place = place_of(request.folder)
    output = place if isinstance(place, Path) else cache_root() / "runs"
    return next(folder for folder in output.absolute().parents if folder.is_dir())


def _preview_texts(
    engine: Engine, context: RunContext, plan: Plan, reporter: Reporter
) -> dict[str, int]:
    collect = partial(tasks.collect_texts, context)
    with reporter.stage("texts", len(plan.shards)) as progress:
        for receipt in engine.map(collect, plan.shards, lost=progress.lost):
            progress.advance({"texts": receipt.counts["distinct"]})
    return tasks.count_texts(context.run)


# What every worker elsewhere must see as this process does: checked before anything starts

DECIDING_PACKAGES = ("fastscore-dialogue", "polars", "numpy", "numba", "onnxruntime", "tokenizers")
"""What decides a table's bytes."""
MOST_INPUTS = 64

_NEEDED = (
    "All workers need this fastscore, and the run directory, the inputs, the store and the model "
    "under the same paths as here."
)


def absolute(context: RunContext) -> RunContext:
    """Name everything so that a process with another working directory and cache finds it."""
    paths = {}
    for option in dataclasses.fields(context.options):
        path = getattr(context.options, option.name)
        if path and (option.metadata["names_file"] or option.metadata["names_folder"]):
            paths[option.name] = str(Path(path).absolute())
    embedder, perplexity = context.embedder, context.perplexity
    cache = cache_root().absolute()
    if embedder is not None:
        from fastscore.vectors.embedder import is_model_folder

        recipe = embedder.recipe
        if isinstance(recipe, str) and (recipe.endswith(".toml") or is_model_folder(recipe)):
            recipe = str(Path(recipe).absolute())
        store = (embedder.store or cache / "vectors").absolute()
        embedder = replace(embedder, recipe=recipe, store=store, cache=cache)
    if perplexity is not None:
        store = (perplexity.store or cache / "vectors").absolute()
        perplexity = replace(perplexity, store=store, cache=cache)
    return replace(
        context,
        run=context.run.absolute(),
        options=replace(context.options, **paths),
        embedder=embedder,
        perplexity=perplexity,
    )


@dataclass(frozen=True, slots=True)
class Expected:
    """What this process sees, and a worker must see too."""

    context: RunContext  # of the run, with its `writer`
    model: str | None  # the fingerprint of the embedder's model, if there is one
    # files that were written into the stores for this, each with what it holds
    tokens: Mapping[Path, str] = field(default_factory=dict)
    sizes: Mapping[Path, int] = field(default_factory=dict)  # the bytes of some inputs
    # of what decides a table's bytes
    versions: Mapping[str, str] = field(default_factory=lambda: _versions())


def check_workers(
    engine: Engine, expected: Expected, inputs: Sequence[InputFile], unused: tuple[str, ...] = ()
) -> int:
    """Make sure that all workers see what this process sees; returns how many there are.

    Each worker then loads the kernels of the run, and compiles missing ones, except those of the
    modules `unused`.
    """
    with _tokens(expected.context) as tokens:
        sizes = {
            Path(file.location).absolute(): file.size
            for file in inputs[:MOST_INPUTS]
            if not is_remote(file.location)
        }
        seen = engine.ask(partial(_look, replace(expected, tokens=tokens, sizes=sizes), unused))
    for worker, (host, process, mismatch) in sorted(seen.items()):
        if mismatch is not None:
            raise UsageError(
                f"The worker {worker} (host {host}, process {process}) {mismatch}.",
                f"{_NEEDED} Nothing was started.",
            )
    return len(seen)


def _look(expected: Expected, unused: tuple[str, ...]) -> tuple[str, int, str | None]:
    """Return a worker's host and process, and what it does not see as it should, or None."""
    mismatch = _find_mismatch(expected)
    if mismatch is None:
        load_kernels(expected.context.suite, unused)
    return socket.gethostname(), os.getpid(), mismatch


_verified_runs: set[str] = set()
"""The runs for which this process was found to see what it should, by their writers' tokens."""


def check_here(expected: Expected) -> None:
    """Make sure, once a run, that this process sees what it should.

    A worker does that before each task: it may have joined while the run lasts, when inputs and
    stores are not looked at any more.
    """
    writer = expected.context.writer
    run = "" if writer is None else writer.token
    if run in _verified_runs:
        return
    mismatch = _find_mismatch(expected)
    if mismatch is not None:
        raise UsageError(
            f"A worker (host {socket.gethostname()}, process {os.getpid()}) {mismatch}.",
            f"{_NEEDED} End it and run the same command again; what is committed is kept.",
        )
    _verified_runs.add(run)


@contextmanager
def _tokens(context: RunContext) -> Iterator[dict[Path, str]]:
    """Write a file into every store; they are removed afterwards."""
    folders = [
        settings.store
        for settings in (context.embedder, context.perplexity)
        if settings is not None and settings.store is not None
    ]
    tokens: dict[Path, str] = {}
    try:
        for folder in dict.fromkeys(folders):
            token = secrets.token_hex(8)
            path = folder / f".seen-{token}"
            tokens[path] = token
            try:
                folder.mkdir(parents=True, exist_ok=True)
                path.write_text(token)
            except OSError as error:
                raise StoreError(
                    f"{folder}: cannot write there ({error.strerror or error}).",
                    "Name another folder, or mend its permissions.",
                ) from error
        yield tokens
    finally:
        for path in tokens:
            path.unlink(missing_ok=True)


def _find_mismatch(expected: Expected) -> str | None:
    """Say what this process does not see as expected."""
    return (
        _other_versions(expected.versions)
        or _unseen_run(expected.context)
        or _unseen_token(expected.tokens)
        or _unseen_input(expected.sizes)
        or _other_model(expected)
    )


def _versions() -> dict[str, str]:
    versions = {package: installed_version(package) or "absent" for package in DECIDING_PACKAGES}
    return {"python": platform.python_version(), **versions}


def _other_versions(expected: Mapping[str, str]) -> str | None:
    for package, found in _versions().items():
        if found != expected[package]:
            return f"has {package} {found}, expected {expected[package]} as here"
    return None


def _unseen_run(context: RunContext) -> str | None:
    try:
        context.check_writer()
    except RunConflictError:
        return f"does not see this process's lock in the run directory {context.run}"
    return _not_writable(context.run)


def _not_writable(folder: Path) -> str | None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return f"cannot write to {folder}: {error.strerror or error}"


def _unseen_token(tokens: Mapping[Path, str]) -> str | None:
    for path, token in tokens.items():
        try:
            found = path.read_text()
        except OSError as error:
            return f"does not see what was written to {path}: {error.strerror or error}"
        if found != token:
            return f"sees something else in {path} than was written there"
        mismatch = _not_writable(path.parent)
        if mismatch:
            return mismatch
    return None


def _unseen_input(sizes: Mapping[Path, int]) -> str | None:
    for path, size in sizes.items():
        try:
            found = path.stat().st_size
        except OSError as error:
            return f"does not see the input {path}: {error.strerror or error}"
        if found != size:
            return f"sees {found:,} bytes in the input {path}, expected {size:,}"
    return None


def _other_model(expected: Expected) -> str | None:
    settings: Any = expected.context.embedder
    if settings is None:
        return None
    from fastscore.vectors.embedder import Embedder

    try:
        embedder = Embedder(
            settings.recipe,
            precision=settings.precision,
            device=settings.device,
            cache_dir=settings.cache,
        )
    except FastscoreError as error:
        return f"cannot use the model {settings.recipe} in {settings.cache}: {error.message}"
    if embedder.fingerprint != expected.model:
        return f"has another model {settings.recipe} in {settings.cache} than this process"
    return None
