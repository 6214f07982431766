"""What a run would do, said before it is begun."""

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fastscore.logs.plan.shards import Plan, plan_shards
from fastscore.run import tasks
from fastscore.run.config import RunConfig
from fastscore.run.context import RunContext, embedder_identity, run_context
from fastscore.run.engines.engine import LOCAL, Engine, open_engine
from fastscore.run.inputs import readable_inputs, share_paths, unread_inputs, with_own_turns
from fastscore.run.interrupt import limit_memory, own_stop_flag, stop_if_asked
from fastscore.run.manifest import read_manifest
from fastscore.run.progress import Reporter
from fastscore.run.shared_files import absolute, check_workers
from fastscore.signature import deciding_differences


@own_stop_flag()
def preview(config: RunConfig, reporter: Reporter) -> dict[str, Any]:
    """Say what a run would do, reading the input but writing nothing that stays.

    Returns
    -------
    dict
        ``signature``, ``conflict`` (why the run would be refused, where it would) and counts:
        ``files``, ``bytes``, ``shards``, ``scored_shards`` (committed
        already), ``texts`` (distinct), ``cached_texts`` and ``missing_texts``.
    """
    with limit_memory(config.limits, "Reading the options"):
        suite, options = config.load()
        config = with_own_turns(config, suite, reporter.note)
    identity = embedder_identity(config, suite, options)
    with (
        open_engine(config.engine, config.address, config.workers, config.limits) as engine,
        limit_memory(config.limits, "The stage 'plan'"),
        tempfile.TemporaryDirectory(prefix="fastscore-", dir=_scratch_parent(config)) as scratch,
    ):
        context = replace(run_context(config, suite, options, identity), run=Path(scratch))
        readable = readable_inputs(
            config, context.source(suite), Path(scratch) / "inputs", reporter.note
        )
        unread_inputs(config, suite, readable.files, reporter.note)
        context = replace(context, chosen=readable.chosen)
        if config.engine != LOCAL:
            context = absolute(context)
            model = identity.fingerprint if identity else None
            check_workers(engine, context, readable.files, model)
        plan = plan_shards(
            share_paths(readable.files, config.engine),
            context.source(suite),
            shard_bytes=config.shard_bytes,
            scratch=context.run / "unpacked",
            threads=max(config.workers, engine.processes()),
            map_tasks=engine.map,
            check_cancelled=partial(stop_if_asked, 0, 0),
            limits=config.limits,
        )
        texts = _preview_texts(engine, context, plan, reporter) if identity else {}
    earlier = None if config.overwrite else read_manifest(config.output)
    conflict = {}
    if earlier is not None and deciding_differences(earlier.signature, context.signature):
        conflict = {"conflict": f"{config.output} holds a run signed {earlier.signature}"}
    elif earlier is not None:
        context = replace(context, signature=earlier.signature)
    scored = [tasks.committed_scores(context, suite, config.output, shard) for shard in plan.shards]
    return {
        "signature": context.signature,
        **conflict,
        "files": len(plan.inputs),
        "bytes": sum(shard.n_bytes for shard in plan.shards),
        "shards": len(plan.shards),
        "scored_shards": sum(receipt is not None for receipt in scored),
        **texts,
    }


def _scratch_parent(config: RunConfig) -> Path | None:
    """Return a folder that all workers see; None, the system's, where we are the only one."""
    if config.engine == LOCAL:
        return None
    return next(folder for folder in config.output.absolute().parents if folder.is_dir())


def _preview_texts(
    engine: Engine, context: RunContext, plan: Plan, reporter: Reporter
) -> dict[str, int]:
    collect = partial(tasks.collect_texts, context)
    with reporter.stage("texts", len(plan.shards)) as progress:
        for receipt in engine.map(collect, plan.shards, lost=progress.lost):
            progress.advance({"distinct texts": receipt.counts["distinct"]})
    return tasks.count_texts(context.run)
