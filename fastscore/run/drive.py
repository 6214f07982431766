"""Driving a run through its stages: plan, texts, embed, score, summary.

Each stage is a map of tasks whose committed outputs are skipped, so a rerun of the same command
finishes what an interrupted one began. Vectors live in a store outside the run: what was embedded
stays, whatever becomes of the run.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from fastscore.errors import InputError, RunConflictError
from fastscore.logs.inputs import resolve_inputs
from fastscore.logs.shards import Plan, plan_shards
from fastscore.run import tasks
from fastscore.run.commit import commit_bytes, commit_json, commit_table
from fastscore.run.config import RunConfig
from fastscore.run.context import RunContext, embedder_identity, run_context
from fastscore.run.engines import map_local
from fastscore.run.folder import accept_inputs, open_manifest
from fastscore.run.layout import (
    LEGACY,
    REJECTS,
    SUMMARY_JSON,
    SUMMARY_PARQUET,
    WORK,
    part_name,
    receipts_folder,
)
from fastscore.run.lock import sole_writer
from fastscore.run.manifest import Manifest
from fastscore.run.progress import Reporter, StageProgress, peak_memory_bytes
from fastscore.run.receipts import Receipt, committed_receipt, load_receipt, receipt_path
from fastscore.suites.base import Suite

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Parameters
    ----------
    manifest
        The run's manifest, complete.
    refusal
        Why the input counts as refused although what could be scored was, or None.
    """

    manifest: Manifest
    refusal: InputError | None


@dataclass(slots=True)
class _Run:
    config: RunConfig
    suite: Suite
    options: Any
    context: RunContext
    manifest: Manifest
    reporter: Reporter

    @property
    def folder(self) -> Path:
        return self.config.output

    @property
    def work(self) -> Path:
        return self.folder / WORK

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[StageProgress]:
        """Show a stage and add its tasks and seconds to the manifest, however it ends."""
        started = time.monotonic()
        stage = self.manifest.stages.setdefault(name, {"tasks": 0, "seconds": 0.0})
        try:
            with self.reporter.stage(name, total) as progress:
                yield progress
            stage["tasks"] += total
        finally:
            stage["seconds"] = round(stage["seconds"] + time.monotonic() - started, 3)
            self.manifest.peak_memory_bytes = max(
                self.manifest.peak_memory_bytes, peak_memory_bytes()
            )
            self.manifest.save(self.folder)

    def map(
        self,
        name: str,
        task: Callable[[RunContext, Key], Receipt],
        keys: Sequence[Key],
        shown: dict[str, str],
        *,
        workers: int,
    ) -> None:
        """Run a stage's open tasks; `shown` names the counts that are shown as rates."""
        with self.stage(name, len(keys)) as progress:
            for receipt in map_local(partial(task, self.context), keys, workers=workers):
                progress.advance({label: receipt.counts[key] for key, label in shown.items()})


def execute(config: RunConfig, reporter: Reporter) -> Outcome:
    """Score logs into a run directory, resuming what stands there.

    Raises
    ------
    UsageError
        An unknown suite or a bad option.
    InputError
        Nothing matched, nothing could be read, or a dialogue spans files.
    RunConflictError
        The directory is held by another writer, has another signature or other inputs.
    """
    suite, options = config.load()
    identity = embedder_identity(config, suite, options)
    context = run_context(config, suite, options, identity)
    files = resolve_inputs(config.inputs, suite.source.formats)
    with sole_writer(config.output):
        manifest = open_manifest(config, suite, options, identity, context.signature)
        run = _Run(config, suite, options, context, manifest, reporter)
        with run.stage("plan", 1) as progress:
            plan = plan_shards(
                files,
                suite.source,
                shard_bytes=config.shard_bytes,
                scratch=run.work / "unpacked",
                threads=config.workers,
            )
            progress.advance({"bytes": sum(shard.n_bytes for shard in plan.shards)})
        accept_inputs(run.folder, run.manifest, plan)
        _score(run, plan)
        receipts = _score_receipts(run, plan)
        _summarise(run, receipts)
        shutil.rmtree(run.work, ignore_errors=True)
    return Outcome(run.manifest, _refusal(config, run.manifest))


def _score(run: _Run, plan: Plan) -> None:
    folder = receipts_folder(run.folder, "score")
    open_shards = [
        shard
        for shard in plan.shards
        if committed_receipt(run.folder, folder, "score", shard.index, shard.fingerprint) is None
    ]
    if len(open_shards) < len(plan.shards):
        done = len(plan.shards) - len(open_shards)
        run.reporter.note(f"{done} of {len(plan.shards)} shards are scored already")
    if run.context.embedder is not None and open_shards:
        _embed(run, open_shards)
    shown = {"rows": "rows"}
    run.map("score", tasks.score_shard, open_shards, shown, workers=run.config.workers)


def _embed(run: _Run, shards: Sequence[Any]) -> None:
    folder = receipts_folder(run.folder, "texts")
    collected = {
        shard.index: committed_receipt(run.folder, folder, "texts", shard.index, shard.fingerprint)
        for shard in shards
    }
    waiting = [shard for shard in shards if collected[shard.index] is None]
    shown = {"distinct": "distinct texts", "missing": "to embed"}
    run.map("texts", tasks.collect_texts, waiting, shown, workers=run.config.workers)
    counted = [load_receipt(receipt_path(folder, "texts", shard.index)) for shard in shards]
    missing = sum(receipt.counts["missing"] for receipt in counted if receipt is not None)
    buckets = tasks.text_buckets(missing) if missing else ()
    # one bucket at a time: the embedder uses every core by itself
    run.map("embed", tasks.embed_bucket, buckets, {"embedded": "texts"}, workers=1)


def _score_receipts(run: _Run, plan: Plan) -> list[Receipt]:
    folder = receipts_folder(run.folder, "score")
    receipts = []
    for shard in plan.shards:
        receipt = committed_receipt(run.folder, folder, "score", shard.index, shard.fingerprint)
        if receipt is None:
            raise RunConflictError(
                f"{run.folder}: the output of shard {shard.index} was changed while it was scored.",
                "Run the same command again.",
            )
        receipts.append(receipt)
    return receipts


def _summarise(run: _Run, receipts: Sequence[Receipt]) -> None:
    with run.stage("summary", 1) as progress:
        scanned = {
            table.name: pl.scan_parquet(
                [run.folder / table.name / part_name(receipt.index) for receipt in receipts]
            )
            if receipts
            else pl.LazyFrame(schema=table.schema)
            for table in run.suite.tables
        }
        summary = run.suite.summarise(scanned, run.options)
        pinned = {"fastscore.signature": run.context.signature}
        commit_table(run.folder / SUMMARY_PARQUET, summary, pinned)
        commit_json(
            run.folder / SUMMARY_JSON,
            {"signature": run.context.signature, "summary": summary.to_dicts()},
        )
        inputs = tuple(entry["name"] for entry in run.manifest.inputs)
        for name, content in run.suite.legacy_files(scanned, inputs, run.options).items():
            commit_bytes(run.folder / LEGACY / name, content)
        progress.advance({})
    counts: dict[str, int] = {}
    for receipt in receipts:
        for name, value in receipt.counts.items():
            counts[name] = counts.get(name, 0) + value
    run.manifest.tables = {
        table.name: {"rows": counts.pop(f"rows:{table.name}", 0), "parts": len(receipts)}
        for table in run.suite.tables
    }
    run.manifest.counts = counts
    run.manifest.status = "complete"
    run.manifest.save(run.folder)


def _refusal(config: RunConfig, manifest: Manifest) -> InputError | None:
    counts = manifest.counts
    rejects, lines = counts.get("rejects", 0), counts.get("lines", 0) - counts.get("blank", 0)
    where = f"They are listed with file and line in {config.output / REJECTS}."
    if not any(table["rows"] for table in manifest.tables.values()):
        found = f"{rejects:,} of {lines:,} lines are rejects" if rejects else "no dialogue in it"
        return InputError(f"Nothing was scored: {found}.", where if rejects else None)
    if rejects > config.max_rejects * max(lines, 1):
        return InputError(
            f"{rejects:,} of {lines:,} lines are rejects, more than --max-rejects "
            f"{config.max_rejects:g} allows; the others are scored.",
            where,
        )
    return None


def preview(config: RunConfig, reporter: Reporter) -> dict[str, Any]:
    """Say what a run would do, reading the input but writing nothing that stays.

    Returns
    -------
    dict
        ``signature``, and counts: ``files``, ``bytes``, ``shards``, ``scored_shards`` (committed
        already), ``texts`` (distinct), ``cached_texts`` and ``missing_texts``.
    """
    suite, options = config.load()
    identity = embedder_identity(config, suite, options)
    files = resolve_inputs(config.inputs, suite.source.formats)
    with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
        context = replace(run_context(config, suite, options, identity), run=Path(scratch))
        plan = plan_shards(
            files,
            suite.source,
            shard_bytes=config.shard_bytes,
            scratch=Path(scratch) / "unpacked",
            threads=config.workers,
        )
        texts = _preview_texts(config, context, plan, reporter) if identity else {}
    folder = receipts_folder(config.output, "score")
    scored = [
        committed_receipt(config.output, folder, "score", shard.index, shard.fingerprint)
        for shard in plan.shards
    ]
    return {
        "signature": context.signature,
        "files": len(plan.inputs),
        "bytes": sum(shard.n_bytes for shard in plan.shards),
        "shards": len(plan.shards),
        "scored_shards": sum(receipt is not None for receipt in scored),
        **texts,
    }


def _preview_texts(
    config: RunConfig, context: RunContext, plan: Plan, reporter: Reporter
) -> dict[str, int]:
    collect = partial(tasks.collect_texts, context)
    with reporter.stage("texts", len(plan.shards)) as progress:
        for receipt in map_local(collect, plan.shards, workers=config.workers):
            progress.advance({"distinct texts": receipt.counts["distinct"]})
    return tasks.count_texts(context.run)
