"""The tasks of a run: read files, compute, commit to a fixed name, return a receipt.

Every task is idempotent and independent of its siblings: done twice, or on another machine that
sees the same folders, it leaves the same bytes under the same names. Only task keys and receipts
pass between a task and the engine that runs it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from fastscore_jit.threads import raise_if_stopped

from fastscore.errors import RunConflictError
from fastscore.logs.integrity.file_state import Shard
from fastscore.run.commit import (
    CUT_TEXTS,
    REJECTS,
    UNKNOWN_WORDS,
    WORK,
    Committed,
    Receipt,
    attempt_name,
    commit_table,
    committed_receipt,
    load_receipt,
    names_of_parts,
    part_name,
    receipt_path,
    receipts_folder,
    save_receipt,
    texts_part,
)
from fastscore.run.context import Loaded, RunContext
from fastscore.run.engines.engine import Done, Engine
from fastscore.run.progress import StageProgress
from fastscore.run.request import EmbedderSettings
from fastscore.run.scoring import (
    TEXT_KEY,
    ShardScores,
    TextsToEmbed,
    compute_tables,
    count_lacking,
    embed_listed,
    files_of,
    fill_perplexities,
    open_embedder,
    open_store,
    perplexity_texts,
    read_events,
    score_events,
)
from fastscore.run.signature import package_version
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Table
from fastscore.suites.summary import (
    Added,
    Sizes,
    add_up_parts,
    joint_sizes,
    measure_parts,
    summarise,
)
from fastscore.vectors.view import claimed
from fastscore.version import __version__

TEXTS_PER_BUCKET = 16_384
LARGEST_BUCKET_COUNT = 4096
BUCKETS_PER_PROCESS = 4
LEAST_TEXTS_PER_BUCKET = 1024
TEXTS_PER_COUNT = 1 << 22
"""Bounds memory: ids are compared with the store's for so many texts at a time."""


SHARDS_PER_GROUP = 64
"""The most shards that one task checks or adds up."""
GROUPS_PER_WORKER = 8


@dataclass(frozen=True, slots=True)
class Checked:
    """What of a shard is committed."""

    index: int  # the shard
    # the receipt of its outputs; None unless all of them are as they were committed
    receipt: Receipt | None
    damaged: tuple[str, ...] = ()  # the outputs that exist, but not as they were committed


@dataclass(frozen=True, slots=True)
class Bucket:
    """The texts whose id's high word lies in ``[low, high]``."""

    index: int
    low: int
    high: int


def score_outputs(context: RunContext, tables: Iterable[str], index: int) -> frozenset[str]:
    """Return the names of the files that scoring a shard commits, relative to the run."""
    beside = (REJECTS,) if context.embedder is None else (REJECTS, CUT_TEXTS)
    return frozenset(f"{folder}/{part_name(index)}" for folder in (*beside, *tables))


def _group_size(n: int, workers: int) -> int:
    """Return how many of ``n`` shards one task takes, so that each worker has several tasks."""
    return max(1, min(SHARDS_PER_GROUP, n // (GROUPS_PER_WORKER * workers)))


def grouped(shards: Sequence[Shard], workers: int) -> list[Sequence[Shard]]:
    """Split shards into groups that one task checks, several for each worker."""
    size = _group_size(len(shards), workers)
    return [shards[begin : begin + size] for begin in range(0, len(shards), size)]


def check_scores(
    columns: Mapping[str, frozenset[str]], context: RunContext, shards: Sequence[Shard]
) -> list[Checked]:
    """Read the committed scores of some shards and compare them with their receipts.

    `columns` are those of each table in this release.
    """
    return [_check_scores(columns, context, shard, shard.fingerprint) for shard in shards]


def check_moved(
    columns: Mapping[str, frozenset[str]], context: RunContext, shards: Sequence[Shard]
) -> list[Checked]:
    """Check scores as `check_scores` does, of shards whose files may have had other names."""
    if context.metrics:  # may read names
        return [Checked(shard.index, None) for shard in shards]
    return [_check_scores(columns, context, shard, shard.content_fingerprint) for shard in shards]


def _check_scores(
    columns: Mapping[str, frozenset[str]], context: RunContext, shard: Shard, fingerprint: str
) -> Checked:
    outputs = score_outputs(context, columns, shard.index)
    optional = frozenset({f"{UNKNOWN_WORDS}/{part_name(shard.index)}"})
    checked = _check(context, "score", shard, fingerprint, outputs, optional)
    if package_version(context.signature) == __version__:
        return checked
    has_columns = _has_columns(context.run, columns, checked)
    return checked if has_columns else replace(checked, receipt=None)


def columns_of(suite: Suite) -> dict[str, frozenset[str]]:
    """Return the columns of each table of a suite."""
    return {table.name: frozenset(table.schema) for table in suite.tables}


def is_scored(context: RunContext, suite: Suite, run: Path, shard: Shard) -> bool:
    """Tell whether a shard's scores are committed in a run, under any names of its files."""
    context, columns = replace(context, run=run), columns_of(suite)
    return any(
        check(columns, context, [shard])[0].receipt is not None
        for check in (check_scores, check_moved)
    )


def check_texts(context: RunContext, shards: Sequence[Shard]) -> list[Checked]:
    """Read the collected texts of some shards and compare them with their receipts."""
    parts = {shard.index: texts_part(context.run, shard.index) for shard in shards}
    return [
        _check(
            context,
            "texts",
            shard,
            shard.fingerprint,
            outputs=frozenset({parts[shard.index].relative_to(context.run).as_posix()}),
        )
        for shard in shards
    ]


def _check(
    context: RunContext,
    stage: str,
    shard: Shard,
    fingerprint: str,
    outputs: frozenset[str],
    optional: frozenset[str] = frozenset(),
) -> Checked:
    raise_if_stopped()
    damaged: list[str] = []
    receipt = committed_receipt(
        context.run,
        receipts_folder(context.run, stage),
        stage,
        shard.index,
        context.fingerprint(fingerprint),
        outputs,
        optional,
        damaged=damaged.append,
    )
    return Checked(shard.index, receipt, tuple(damaged))


def _has_columns(run: Path, columns: Mapping[str, frozenset[str]], checked: Checked) -> bool:
    """Tell whether the tables of a committed shard have these columns."""
    receipt = checked.receipt
    return receipt is None or all(
        pl.read_parquet_schema(run / part).keys() == names
        for table, names in columns.items()
        for part in names_of_parts([receipt], table)
    )


def text_buckets(n_texts: int, processes: int = 1) -> tuple[Bucket, ...]:
    """Split the ids of about `n_texts` texts into ranges that fit one embedding task each.

    Ids are hashes, so ranges of one width hold equally many texts of every length. Several
    processes get several ranges each, equally many, unless they would be small.
    """
    count = max(1, min(LARGEST_BUCKET_COUNT, -(-n_texts // TEXTS_PER_BUCKET)))
    if processes > 1:
        most = max(1, n_texts // LEAST_TEXTS_PER_BUCKET)
        count = max(count, min(BUCKETS_PER_PROCESS * processes, most))
        count = min(-(-count // processes) * processes, max(count, most))
    return _equal_buckets(count)


def _equal_buckets(count: int) -> tuple[Bucket, ...]:
    edges = [(index << 64) // count for index in range(count + 1)]
    return tuple(Bucket(index, edges[index], edges[index + 1] - 1) for index in range(count))


def score_or_collect_texts(context: RunContext, shard: Shard) -> Receipt:
    """Score the shard at once where the store has all of its texts; else commit its texts."""
    loaded = context.load()
    events, found = read_events(loaded, shard)
    compared = TextsToEmbed.of(loaded.suite, events, loaded.options)
    listed = compared.listed(_settings(context))
    if context.perplexity is not None or listed["missing"].any():
        return _commit_texts(context, shard, listed)
    scored = score_events(loaded, files_of(shard), events, found, compared)
    _commit_scores(loaded, shard, scored)
    # the receipt of the scores says what is done
    return Receipt(
        stage="texts",
        index=shard.index,
        fingerprint=context.fingerprint(shard.fingerprint),
        counts={"distinct": len(compared), "missing": 0, "rows": found.counts["rows"]},
    )


def collect_texts(context: RunContext, shard: Shard) -> Receipt:
    """Commit the shard's distinct texts, sorted by id; those that the store has without text."""
    loaded = context.load()
    events, _ = read_events(loaded, shard)
    compared = TextsToEmbed.of(loaded.suite, events, loaded.options)
    return _commit_texts(context, shard, compared.listed(_settings(context)))


def _commit_texts(context: RunContext, shard: Shard, listed: pl.DataFrame) -> Receipt:
    path = texts_part(context.run, shard.index)
    frame = listed.with_columns(pl.when("missing").then("text").alias("text"))
    return _receipt(
        context,
        shard,
        "texts",
        outputs=(commit_output(context, path, frame, {}),),
        counts={"distinct": listed.height, "missing": int(listed["missing"].sum()), "rows": 0},
    )


def embed_bucket(context: RunContext, bucket: Bucket) -> Receipt:
    """Embed the bucket's texts over all shards, each distinct one once.

    Other runs that fill the same store meanwhile leave the bucket's ids to this one.
    """
    settings = _settings(context)
    listed = _missing_texts(context, bucket).sort(TEXT_KEY).collect()
    folder = open_store(open_embedder(settings), settings.store).folder
    with claimed(folder, bucket.low, bucket.high, check_cancelled=raise_if_stopped):
        embedded = embed_listed(listed, settings)
    # the store itself says what is done: no receipt is kept
    return Receipt(
        stage="embed",
        index=bucket.index,
        fingerprint=f"{bucket.low:x}-{bucket.high:x}",
        counts={"texts": listed.height, "embedded": embedded},
    )


def count_texts_to_embed(context: RunContext, missing: int) -> int:
    """Count the distinct texts of all shards that the store still lacks."""
    settings = _settings(context)
    buckets = _equal_buckets(-(-missing // TEXTS_PER_COUNT))
    keys = (_missing_texts(context, bucket).select(TEXT_KEY).collect() for bucket in buckets)
    return sum(count_lacking(each, settings) for each in keys)


def _missing_texts(context: RunContext, bucket: Bucket) -> pl.LazyFrame:
    """Scan the bucket's distinct texts that the store lacked when they were collected."""
    in_bucket = pl.col("id_high").is_between(pl.lit(bucket.low, pl.UInt64), bucket.high)
    parts = pl.scan_parquet(collected_parts(context.run), glob=False)
    return parts.filter(in_bucket, "missing").unique(TEXT_KEY, keep="any")


def evaluate_perplexity(context: RunContext, shard: Shard) -> Receipt:
    """Evaluate the pseudo-perplexity of the shard's texts that the store lacks.

    Shard after shard, so that a text of several is evaluated once.
    """
    if context.perplexity is None:
        raise TypeError("this run evaluates no perplexities")
    loaded = context.load()
    events, _ = read_events(loaded, shard)
    texts = perplexity_texts(loaded.suite, events, loaded.options)
    evaluated = fill_perplexities(context.perplexity, texts)
    # the store itself says what is done: no receipt is kept
    return Receipt(
        stage="perplexity",
        index=shard.index,
        fingerprint=shard.fingerprint,
        counts={"evaluated": evaluated},
    )


def collected_parts(run: Path) -> list[Path]:
    """Return the parts of collected texts, in order."""
    return sorted((run / WORK / "texts").rglob("part-*.parquet"))


def count_texts(run: Path) -> dict[str, int]:
    """Count the distinct texts of all shards whose texts are collected."""
    return (
        pl.scan_parquet(collected_parts(run), glob=False)
        .unique(TEXT_KEY, keep="any")
        .select(
            texts=pl.len(),
            cached_texts=(~pl.col("missing")).sum(),
            missing_texts=pl.col("missing").sum(),
        )
        .collect(engine="streaming")
        .row(0, named=True)
    )


def score_shard(context: RunContext, shard: Shard) -> Receipt:
    """Score a shard and commit its tables and rejects."""
    loaded = context.load()
    return _commit_scores(loaded, shard, compute_tables(loaded, shard))


def rename_files(context: RunContext, shard: Shard) -> Receipt:
    """Write the names that a shard's files have now into its committed scores."""
    loaded, run = context.load(), context.run
    receipt = load_receipt(receipt_path(receipts_folder(run, "score"), "score", shard.index))
    if receipt is None:
        raise RunConflictError(
            f"{run}: the receipt of shard {shard.index} is gone.", "Run the same command again."
        )
    new = dict(zip(receipt.names, files_of(shard), strict=True))
    frames = {}
    for output in receipt.outputs:
        frame = pl.read_parquet(run / output.path, glob=False)
        if "file" in frame.columns:
            frame = frame.with_columns(pl.col("file").replace(new))
        frames[Path(output.path).parts[0]] = frame
    counts = {name: count for name, count in receipt.counts.items() if name[:5] != "rows:"}
    empty = pl.DataFrame()
    rejects = frames.pop(REJECTS)
    cut, unknown = frames.pop(CUT_TEXTS, empty), frames.pop(UNKNOWN_WORDS, empty)
    return _commit_scores(loaded, shard, ShardScores(frames, rejects, counts, cut, unknown))


def _commit_scores(loaded: Loaded, shard: Shard, scored: ShardScores) -> Receipt:
    context, suite = loaded.context, loaded.suite
    counts = dict(scored.counts)
    outputs = []
    for table in suite.tables:
        raise_if_stopped()
        frame = scored.tables[table.name]
        path = context.run / table.name / part_name(shard.index)
        metadata = table_metadata(context.signature, suite, table)
        outputs.append(commit_output(context, path, frame, metadata))
        counts[f"rows:{table.name}"] = frame.height
    beside = {REJECTS: scored.rejects}
    if context.embedder is not None:
        beside[CUT_TEXTS] = scored.cut_texts
    if scored.unknown_words.height:
        beside[UNKNOWN_WORDS] = scored.unknown_words
    for folder, frame in beside.items():
        path = context.run / folder / part_name(shard.index)
        metadata = {"fastscore.signature": context.signature}
        outputs.append(commit_output(context, path, frame, metadata))
    return _receipt(
        context,
        shard,
        "score",
        outputs=tuple(outputs),
        counts=counts,
        content=context.fingerprint(shard.content_fingerprint),
        names=tuple(files_of(shard)),
    )


def table_metadata(signature: str, suite: Suite, table: Table) -> dict[str, str]:
    """Return a table's Parquet metadata: the signature, and what each column means."""
    metrics = {metric.id: metric for metric in suite.metrics if metric.table == table.name}
    columns = {}
    for column in table.columns:
        about: dict[str, Any] = {"description": column.description}
        metric = metrics.get(column.metric or "")
        if metric is not None:
            about |= {
                "metric": metric.id,
                "formula": metric.formula.text,
                "range": [metric.scale.minimum, metric.scale.maximum],
                "unit": metric.scale.unit,
                "better": metric.scale.better,
                "null_rule": metric.null_rule,
            }
        columns[column.name] = about
    return {
        "fastscore.signature": signature,
        "fastscore.table": table.name,
        "fastscore.grain": table.grain,
        "fastscore.columns": orjson.dumps(columns).decode(),
    }


def _settings(context: RunContext) -> EmbedderSettings:
    if context.embedder is None:
        raise TypeError("this run has no embedder")
    return context.embedder


def commit_output(
    context: RunContext, path: Path, frame: pl.DataFrame, metadata: Mapping[str, str]
) -> Committed:
    """Commit a task's table, unless the run directory is another writer's by now."""
    context.check_writer()
    committed = commit_table(path, frame, metadata)
    return replace(committed, path=path.relative_to(context.run).as_posix())


def _receipt(context: RunContext, shard: Shard, stage: str, **about: Any) -> Receipt:
    context.check_writer()
    receipt = Receipt(
        stage=stage,
        index=shard.index,
        fingerprint=context.fingerprint(shard.fingerprint),
        attempt=attempt_name(),
        **about,
    )
    if receipt.stage == "score" and context.writer is not None:
        context.writer.commit_receipt(context.run, receipt)
    else:
        save_receipt(receipts_folder(context.run, receipt.stage), receipt)
    return replace(receipt, names=())  # a shard may have thousands of files


DIALOGUES_PER_GROUP = 1 << 17


@dataclass(frozen=True, slots=True)
class Parts:
    """Committed parts of each table, named relative to the run, that one task adds up."""

    index: int
    tables: Mapping[str, tuple[str, ...]]

    def scan(self, run: Path) -> dict[str, pl.LazyFrame]:
        """Scan the parts of each table of a run."""
        return {
            table: pl.scan_parquet([run / name for name in names], glob=False)
            for table, names in self.tables.items()
        }


def parts_to_add_up(suite: Suite, receipts: Sequence[Receipt], workers: int) -> list[Parts]:
    """Split the parts of all shards into groups that one task adds up, in their order.

    A task holds the sums of each dialogue: a group has about `DIALOGUES_PER_GROUP` of them.
    """
    size = _group_size(len(receipts), workers)
    groups: list[list[Receipt]] = []
    dialogues = 0
    for receipt in receipts:
        more = receipt.counts.get("rows:dialogues", 0)
        if not groups or len(groups[-1]) == size or dialogues + more > DIALOGUES_PER_GROUP:
            groups.append([])
            dialogues = 0
        groups[-1].append(receipt)
        dialogues += more
    return [
        Parts(
            index, {table.name: tuple(names_of_parts(group, table.name)) for table in suite.tables}
        )
        for index, group in enumerate(groups)
    ]


def measure_tables(context: RunContext, parts: Parts) -> Sizes:
    """Measure what grids depend on, of some parts."""
    loaded = context.load()
    return measure_parts(loaded.suite, parts.scan(context.run), loaded.options)


def add_up_tables(context: RunContext, sizes: Sizes, parts: Parts) -> Receipt:
    """Add up some parts on the grids of tables of these sizes, and commit the sums."""
    loaded = context.load()
    added = add_up_parts(loaded.suite, parts.scan(context.run), loaded.options, sizes)
    outputs = []
    for number, of_tables in enumerate(added):
        for table, sums in of_tables.items():
            for name, frame in (("sums", sums.sums), ("reasons", sums.reasons)):
                folder = context.run / _sums_folder(number, table, name)
                path = folder / part_name(parts.index)
                outputs.append(commit_output(context, path, frame.collect(), {}))
    # the sums are read by the run that asked for them: no receipt is kept
    return Receipt(stage="summary", index=parts.index, fingerprint="", outputs=tuple(outputs))


def _sums_folder(number: int, table: str, name: str) -> str:
    """Return where the sums of a table are until the summary is made, relative to the run.

    `number` counts how often the suite's summary adds up metrics.
    """
    return f"{WORK}/summary/{number}/{table}/{name}"


def _added_tables(run: Path, sizes: Sizes, receipts: Sequence[Receipt]) -> list[dict[str, Added]]:
    """Return what the tables of a run add up to, by the receipts of `add_up_tables`."""

    def scan(folder: str) -> pl.LazyFrame:
        parts = [run / name for name in names_of_parts(receipts, folder)]
        return pl.scan_parquet(parts, glob=False)

    return [
        {
            table: Added(
                scan(_sums_folder(number, table, "sums")),
                scan(_sums_folder(number, table, "reasons")),
                size,
            )
            for table, size in of_tables.items()
        }
        for number, of_tables in enumerate(sizes)
    ]


def summary_by_tasks(
    engine: Engine,
    context: RunContext,
    groups: Sequence[Parts],
    tables: Mapping[str, pl.LazyFrame],
    progress: StageProgress,
) -> pl.DataFrame:
    """Have an engine's workers measure and add up parts; finish the summary from their sums.

    `tables` are those of all parts: what a suite does not add up by parts is computed from them.
    """

    def advanced(task: Callable[[Parts], Done]) -> Iterator[Done]:
        for done in engine.map(task, groups, lost=progress.lost):
            progress.advance({})
            yield done

    sizes = joint_sizes([*advanced(partial(measure_tables, context))])
    receipts = [*advanced(partial(add_up_tables, context, sizes))]
    added = _added_tables(context.run, sizes, receipts)
    loaded = context.load()
    return summarise(loaded.suite, tables, loaded.options, added=added)
