"""The tasks of a run: read files, compute, commit to a fixed name, return a receipt.

Every task is idempotent and independent of its siblings: done twice, or on another machine that
sees the same folders, it leaves the same bytes under the same names. Only task keys and receipts
pass between a task and the engine that runs it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from fastscore_machine.stopping import raise_if_stopped

from fastscore.errors import StoreError
from fastscore.logs.integrity.limits import Limits
from fastscore.logs.integrity.rejects import listed_rejects
from fastscore.logs.plan.shards import Shard
from fastscore.logs.read.rows import Part, Rows, join_parts, read_parts
from fastscore.run.commit import Committed, commit_table
from fastscore.run.compared_texts import TEXT_KEY, ComparedTexts, embed_listed
from fastscore.run.context import EmbedderSettings, PerplexitySettings, RunContext
from fastscore.run.interrupt import stop_if_asked
from fastscore.run.layout import (
    CUT_TEXTS,
    REJECTS,
    UNKNOWN_WORDS,
    WORK,
    part_name,
    receipts_folder,
    texts_part,
)
from fastscore.run.missing import Counted, count_lacks
from fastscore.run.opened import open_embedder, open_perplexity_model, open_store
from fastscore.run.receipts import Receipt, attempt_name, save_receipt
from fastscore.suites.base import Events, ScoresPerplexity, Suite
from fastscore.suites.declarations import REJECTS_TABLE, Table
from fastscore.vectors.claims import claimed
from fastscore.vectors.missing import embed_missing
from fastscore.vectors.store import VectorStore
from fastscore.vectors.view import VectorView

TEXTS_PER_BUCKET = 16_384
LARGEST_BUCKET_COUNT = 4096
BUCKETS_PER_PROCESS = 4
LEAST_TEXTS_PER_BUCKET = 1024
PERPLEXITIES_PER_APPEND = 1024
CELL_BYTES = 16
"""What a text takes in a column beside its bytes; numbers take less."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """The texts whose id's high word lies in ``[low, high]``."""

    index: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class ShardScores:
    """What scoring a shard gives.

    Frames by table, rejects in input order, counts by name, the texts that the model cut, and the
    words that the suite does not know.
    """

    tables: Mapping[str, pl.DataFrame]
    rejects: pl.DataFrame
    counts: Mapping[str, int]
    cut_texts: pl.DataFrame
    unknown_words: pl.DataFrame


def score_outputs(context: RunContext, suite: Suite, index: int) -> frozenset[str]:
    """Return the names of the files that scoring a shard commits, relative to the run."""
    beside = (REJECTS,) if context.embedder is None else (REJECTS, CUT_TEXTS)
    return frozenset(
        f"{folder}/{part_name(index)}"
        for folder in (*beside, *(table.name for table in suite.tables))
    )


def may_output(index: int) -> frozenset[str]:
    """Return the names of the files that scoring a shard may commit beside those."""
    return frozenset({f"{UNKNOWN_WORDS}/{part_name(index)}"})


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
    edges = [(index << 64) // count for index in range(count + 1)]
    return tuple(Bucket(index, edges[index], edges[index + 1] - 1) for index in range(count))


def score_or_collect_texts(context: RunContext, shard: Shard) -> Receipt:
    """Score the shard at once where the store has all of its texts; else commit its texts."""
    suite, options = context.load()
    events, found = _read_events(context, suite, options, shard)
    compared = ComparedTexts.of(suite, events, options)
    listed = compared.listed(_settings(context))
    if context.perplexity is not None or listed["missing"].any():
        return _commit_texts(context, shard, listed)
    scored = _score_events(context, _files(shard), events, found, compared)
    _commit_scores(context, shard, scored)
    # the receipt of the scores says what is done
    return Receipt(
        stage="texts",
        index=shard.index,
        fingerprint=context.fingerprint(shard.fingerprint),
        counts={"distinct": len(compared), "missing": 0, "rows": found.counts["rows"]},
    )


def collect_texts(context: RunContext, shard: Shard) -> Receipt:
    """Commit the shard's distinct texts, sorted by id; those that the store has without text."""
    suite, options = context.load()
    events, _ = _read_events(context, suite, options, shard)
    compared = ComparedTexts.of(suite, events, options)
    return _commit_texts(context, shard, compared.listed(_settings(context)))


def _commit_texts(context: RunContext, shard: Shard, listed: pl.DataFrame) -> Receipt:
    path = texts_part(context.run, shard.index)
    frame = listed.with_columns(pl.when("missing").then("text").alias("text"))
    return _receipt(
        context,
        Receipt(
            stage="texts",
            index=shard.index,
            fingerprint=context.fingerprint(shard.fingerprint),
            outputs=(_commit(context, path, frame, {}),),
            counts={
                "distinct": listed.height,
                "missing": int(listed["missing"].sum()),
                "rows": 0,
            },
        ),
    )


def embed_bucket(context: RunContext, bucket: Bucket) -> Receipt:
    """Embed the bucket's texts over all shards, each distinct one once.

    Other runs that fill the same store meanwhile leave the bucket's ids to this one.
    """
    settings = _settings(context)
    in_bucket = pl.col("id_high").is_between(pl.lit(bucket.low, pl.UInt64), bucket.high)
    listed = (
        pl.scan_parquet(collected_parts(context.run), glob=False)
        .filter(in_bucket, "missing")
        .unique(TEXT_KEY, keep="any")
        .sort(TEXT_KEY)
        .collect()
    )
    folder = open_store(open_embedder(settings), settings.store).folder
    with claimed(folder, bucket.low, bucket.high, watch=lambda: stop_if_asked(0, 0)):
        embedded = embed_listed(listed, settings)
    # the store itself says what is done: no receipt is kept
    return Receipt(
        stage="embed",
        index=bucket.index,
        fingerprint=f"{bucket.low:x}-{bucket.high:x}",
        counts={"texts": listed.height, "embedded": embedded},
    )


def evaluate_perplexity(context: RunContext, shard: Shard) -> Receipt:
    """Evaluate the pseudo-perplexity of the shard's texts that the store lacks.

    Shard after shard, so that a text of several is evaluated once.
    """
    suite, options = context.load()
    if context.perplexity is None:
        raise TypeError("this run evaluates no perplexities")
    events, _ = _read_events(context, suite, options, shard)
    evaluated = _fill_perplexities(context.perplexity, _perplexity_texts(suite, events, options))
    # the store itself says what is done: no receipt is kept
    return Receipt(
        stage="perplexity",
        index=shard.index,
        fingerprint=shard.fingerprint,
        counts={"evaluated": evaluated},
    )


def collected_parts(run: Path) -> list[Path]:
    """Return the parts of collected texts, in order."""
    return sorted((run / WORK / "texts").glob("part-*.parquet"))


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
    return _commit_scores(context, shard, compute_tables(context, shard))


def _commit_scores(context: RunContext, shard: Shard, scored: ShardScores) -> Receipt:
    suite, _ = context.load()
    counts = dict(scored.counts)
    outputs = []
    for table in suite.tables:
        raise_if_stopped()
        frame = scored.tables[table.name]
        path = context.run / table.name / part_name(shard.index)
        metadata = table_metadata(context.signature, suite, table)
        outputs.append(_commit(context, path, frame, metadata))
        counts[f"rows:{table.name}"] = frame.height
    beside = {REJECTS: scored.rejects}
    if context.embedder is not None:
        beside[CUT_TEXTS] = scored.cut_texts
    if scored.unknown_words.height:
        beside[UNKNOWN_WORDS] = scored.unknown_words
    for folder, frame in beside.items():
        path = context.run / folder / part_name(shard.index)
        metadata = {"fastscore.signature": context.signature}
        outputs.append(_commit(context, path, frame, metadata))
    return _receipt(
        context,
        Receipt(
            stage="score",
            index=shard.index,
            fingerprint=context.fingerprint(shard.fingerprint),
            outputs=tuple(outputs),
            counts=counts,
        ),
    )


def compute_tables(context: RunContext, shard: Shard) -> ShardScores:
    """Score a shard in memory, embedding the texts that the store lacks."""
    suite, _ = context.load()
    return compute_rows(context, _read_rows(context, suite, shard), _files(shard))


def compute_rows(context: RunContext, rows: Rows, files: Sequence[str]) -> ShardScores:
    """Score rows of whole dialogues, of files named in their order, as `compute_tables` does."""
    suite, options = context.load()
    events, found = _events(context, suite, options, rows)
    compared = ComparedTexts.of(suite, events, options)
    return _score_events(context, files, events, found, compared)


def _files(shard: Shard) -> list[str]:
    return [byte_range.file for byte_range in shard.byte_ranges]


def vectors_of(context: RunContext, events: Events, compared: ComparedTexts) -> VectorView:
    """Return what a suite scores events by: vectors of texts, and perplexities where asked for."""
    suite, options = context.load()
    vectors = compared.view(context.embedder)
    if context.perplexity is None:
        return vectors
    judged = _perplexity_texts(suite, events, options)
    return replace(vectors, log_perplexities=_perplexity_view(context.perplexity, judged))


def _score_events(
    context: RunContext,
    files: Sequence[str],
    events: Events,
    found: Counted,
    compared: ComparedTexts,
) -> ShardScores:
    suite, options = context.load()
    vectors = vectors_of(context, events, compared)
    raise_if_stopped()
    tables = suite.score(events, vectors, options)
    rejects = _in_input_order(listed_rejects(events.rejects), files)
    return ShardScores(
        tables={table.name: _declared(table, tables[table.name]) for table in suite.tables},
        rejects=rejects,
        counts={**found.counts, "rejects": int(rejects["count"].sum())},
        cut_texts=compared.cut(context.embedder),
        unknown_words=found.unknown,
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
                "formula": metric.formula,
                "range": [metric.minimum, metric.maximum],
                "unit": metric.unit,
                "better": metric.better,
                "null_rule": metric.null_rule,
            }
        columns[column.name] = about
    return {
        "fastscore.signature": signature,
        "fastscore.table": table.name,
        "fastscore.grain": table.grain,
        "fastscore.columns": orjson.dumps(columns).decode(),
    }


def _read_events(
    context: RunContext, suite: Suite, options: Any, shard: Shard
) -> tuple[Events, Counted]:
    return _events(context, suite, options, _read_rows(context, suite, shard))


def _read_rows(context: RunContext, suite: Suite, shard: Shard) -> Rows:
    source, chosen = context.source(suite), context.chosen
    parts = _within_limits(read_parts(shard.byte_ranges, source), context.limits, shard)
    if chosen is not None:
        parts = (chosen.kept(part, source) for part in parts)
    return join_parts(parts, source)


def _within_limits(parts: Iterator[Part], limits: Limits, shard: Shard) -> Iterator[Part]:
    """Hand parts on until too much memory is taken or the run is asked to stop.

    What is handed on will be joined, which takes as much again; and a column that is null in some
    parts then has room for its values in all of them.
    """
    held = n_rows = 0
    filled: set[str] = set()
    for part in parts:
        raise_if_stopped()
        held += int(part.frame.estimated_size())
        n_rows += part.frame.height
        filled.update(column.name for column in part.frame if column.null_count() < column.len())
        more = max(held, n_rows * len(filled) * CELL_BYTES)
        limits.check_memory(shard.byte_ranges[0].file, more=more)
        yield part


def _events(context: RunContext, suite: Suite, options: Any, rows: Rows) -> tuple[Events, Counted]:
    raise_if_stopped()
    events = suite.events(rows.frame, options)
    raise_if_stopped()
    found = count_lacks(rows.frame, context.source(suite), events)
    found = replace(found, counts={**rows.counts, **events.counts, **found.counts})
    of_suite = events.rejects.with_columns(pl.lit(1, pl.Int64).alias("count"), last_line="line")
    rejects = pl.concat([rows.rejects, of_suite])
    return replace(events, rejects=rejects), found


def _settings(context: RunContext) -> EmbedderSettings:
    if context.embedder is None:
        raise TypeError("this run has no embedder")
    return context.embedder


def _perplexity_texts(suite: Suite, events: Events, options: Any) -> pl.Series:
    if not isinstance(suite, ScoresPerplexity):
        raise TypeError(f"suite {suite.name} scores no perplexities")
    return suite.perplexity_texts(events, options)


def _fill_perplexities(settings: PerplexitySettings, texts: pl.Series) -> int:
    """Evaluate the texts that the store lacks; return how many."""
    return embed_missing(
        texts,
        open_perplexity_model(settings),
        _perplexity_store(settings),
        progress=stop_if_asked,
        texts_per_append=PERPLEXITIES_PER_APPEND,
    )


def _perplexity_view(settings: PerplexitySettings, texts: pl.Series) -> VectorView:
    _fill_perplexities(settings, texts)
    try:
        return _perplexity_store(settings).view(texts)
    except StoreError:
        # a damaged segment is set aside when it is met: its texts are evaluated again
        _fill_perplexities(settings, texts)
        return _perplexity_store(settings).view(texts)


def _perplexity_store(settings: PerplexitySettings) -> VectorStore:
    return open_store(open_perplexity_model(settings), settings.store)


def _declared(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    if dict(frame.schema) != table.schema:
        raise TypeError(f"table {table.name!r}: got {frame.schema}, declared {table.schema}")
    return frame


def _in_input_order(rejects: pl.DataFrame, files: Sequence[str]) -> pl.DataFrame:
    if rejects.is_empty():
        return rejects.select(REJECTS_TABLE.keys())
    position = {file: index for index, file in enumerate(files)}
    file_position = pl.col("file").replace_strict(position, return_dtype=pl.Int64)
    return rejects.sort(file_position, "line", maintain_order=True).select(REJECTS_TABLE.keys())


def _commit(
    context: RunContext, path: Path, frame: pl.DataFrame, metadata: Mapping[str, str]
) -> Committed:
    context.check_writer()
    committed = commit_table(path, frame, metadata)
    return replace(committed, path=path.relative_to(context.run).as_posix())


def _receipt(context: RunContext, receipt: Receipt) -> Receipt:
    context.check_writer()
    receipt = replace(receipt, attempt=attempt_name())
    save_receipt(receipts_folder(context.run, receipt.stage), receipt)
    return receipt
