"""The tasks of a run: read files, compute, commit to a fixed name, return a receipt.

Every task is idempotent and independent of its siblings: done twice, or on another machine that
sees the same folders, it leaves the same bytes under the same names. Only task keys and receipts
pass between a task and the engine that runs it.
"""

import functools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from fastscore.errors import StoreError
from fastscore.logs.plan.shards import Shard
from fastscore.logs.read.rows import Rows, join_parts, read_parts, read_shard
from fastscore.paths import cache_root
from fastscore.run.commit import Committed, commit_table
from fastscore.run.context import PerplexitySettings, RunContext
from fastscore.run.interrupt import stop_if_asked
from fastscore.run.layout import REJECTS, WORK, part_name, receipts_folder, texts_part
from fastscore.run.receipts import Receipt, save_receipt
from fastscore.suites.base import REJECT_SCHEMA, Events, ScoresPerplexity, Suite, Table
from fastscore.vectors.embedder import Embedder
from fastscore.vectors.missing import embed_missing
from fastscore.vectors.perplexity import PerplexityModel
from fastscore.vectors.store import VectorStore
from fastscore.vectors.text_ids import text_ids
from fastscore.vectors.view import VectorView

TEXTS_PER_BUCKET = 16_384
LARGEST_BUCKET_COUNT = 256
PERPLEXITIES_PER_APPEND = 1024


@dataclass(frozen=True, slots=True)
class Bucket:
    """The texts whose id's high word lies in ``[low, high]``."""

    index: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class ShardScores:
    """What scoring a shard gives: frames by table, rejects in input order, counts by name."""

    tables: Mapping[str, pl.DataFrame]
    rejects: pl.DataFrame
    counts: Mapping[str, int]


def score_outputs(suite: Suite, index: int) -> frozenset[str]:
    """Return the names of the files that scoring a shard commits, relative to the run."""
    return frozenset(
        f"{folder}/{part_name(index)}"
        for folder in (REJECTS, *(table.name for table in suite.tables))
    )


def text_buckets(n_texts: int) -> tuple[Bucket, ...]:
    """Split the ids of about `n_texts` texts into ranges that fit one embedding task each."""
    count = max(1, min(LARGEST_BUCKET_COUNT, -(-n_texts // TEXTS_PER_BUCKET)))
    edges = [(index << 64) // count for index in range(count + 1)]
    return tuple(Bucket(index, edges[index], edges[index + 1] - 1) for index in range(count))


def score_or_collect_texts(context: RunContext, shard: Shard) -> Receipt:
    """Score the shard at once where the store has all of its texts; else commit its texts."""
    suite, options = context.load()
    events, counts = _read_events(context, suite, options, shard)
    texts = suite.texts(events, options)
    ids = text_ids(texts)
    missing = _store(context).missing(ids)
    if context.perplexity is not None or missing.any():
        return _commit_texts(context, shard, texts, ids, missing)
    _commit_scores(context, shard, _score_events(context, _files(shard), events, counts, texts))
    # the receipt of the scores says what is done
    return Receipt(
        stage="texts",
        index=shard.index,
        fingerprint=context.fingerprint(shard.fingerprint),
        counts={"distinct": texts.len(), "missing": 0, "rows": counts["rows"]},
    )


def collect_texts(context: RunContext, shard: Shard) -> Receipt:
    """Commit the shard's distinct texts, sorted by id; those that the store has without text."""
    suite, options = context.load()
    events, _ = _read_events(context, suite, options, shard)
    texts = suite.texts(events, options)
    ids = text_ids(texts)
    return _commit_texts(context, shard, texts, ids, _store(context).missing(ids))


def _commit_texts(
    context: RunContext,
    shard: Shard,
    texts: pl.Series,
    ids: npt.NDArray[np.uint64],
    missing: npt.NDArray[np.bool_],
) -> Receipt:
    frame = pl.DataFrame(
        {"id_high": ids[:, 0], "id_low": ids[:, 1], "text": texts, "missing": missing}
    )
    frame = frame.with_columns(pl.when("missing").then("text").alias("text")).sort(
        "id_high", "id_low"
    )
    path = texts_part(context.run, shard.index)
    return _receipt(
        context,
        Receipt(
            stage="texts",
            index=shard.index,
            fingerprint=context.fingerprint(shard.fingerprint),
            outputs=(_commit(context, path, frame, {}),),
            counts={"distinct": texts.len(), "missing": int(missing.sum()), "rows": 0},
        ),
    )


def embed_bucket(context: RunContext, bucket: Bucket) -> Receipt:
    """Embed the bucket's texts over all shards, each distinct one once."""
    in_bucket = pl.col("id_high").is_between(pl.lit(bucket.low, pl.UInt64), bucket.high)
    texts = (
        pl.scan_parquet(collected_parts(context.run), glob=False)
        .filter(in_bucket, "missing")
        .unique(["id_high", "id_low"], keep="any")
        .sort("id_high", "id_low")
        .select("text")
        .collect()
        .to_series()
    )
    embedded = embed_missing(texts, _embedder(context), _store(context), progress=stop_if_asked)
    # the store itself says what is done: no receipt is kept
    return Receipt(
        stage="embed",
        index=bucket.index,
        fingerprint=f"{bucket.low:x}-{bucket.high:x}",
        counts={"texts": texts.len(), "embedded": embedded},
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
        .unique(["id_high", "id_low"], keep="any")
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
        frame = scored.tables[table.name]
        path = context.run / table.name / part_name(shard.index)
        metadata = table_metadata(context.signature, suite, table)
        outputs.append(_commit(context, path, frame, metadata))
        counts[f"rows:{table.name}"] = frame.height
    path = context.run / REJECTS / part_name(shard.index)
    metadata = {"fastscore.signature": context.signature}
    outputs.append(_commit(context, path, scored.rejects, metadata))
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
    events, counts = _events(suite, options, rows)
    return _score_events(context, files, events, counts, suite.texts(events, options))


def _files(shard: Shard) -> list[str]:
    return [byte_range.file for byte_range in shard.byte_ranges]


def _score_events(
    context: RunContext,
    files: Sequence[str],
    events: Events,
    counts: Mapping[str, int],
    texts: pl.Series,
) -> ShardScores:
    suite, options = context.load()
    vectors = _view(context, texts)
    if context.perplexity is not None:
        judged = _perplexity_texts(suite, events, options)
        vectors = replace(vectors, log_perplexities=_perplexity_view(context.perplexity, judged))
    tables = suite.score(events, vectors, options)
    rejects = _in_input_order(events.rejects, files)
    return ShardScores(
        tables={table.name: _declared(table, tables[table.name]) for table in suite.tables},
        rejects=rejects,
        counts={**counts, "rejects": rejects.height},
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
) -> tuple[Events, dict[str, int]]:
    return _events(suite, options, _read_rows(context, suite, shard))


def _read_rows(context: RunContext, suite: Suite, shard: Shard) -> Rows:
    source, chosen = context.source(suite), context.chosen
    if chosen is None:
        return read_shard(shard, source)
    parts = read_parts(shard.byte_ranges, source)
    return join_parts((chosen.kept(part, source) for part in parts), source)


def _events(suite: Suite, options: Any, rows: Rows) -> tuple[Events, dict[str, int]]:
    events = suite.events(rows.frame, options)
    counts = {**rows.counts, **events.counts}
    rejects = pl.concat([rows.rejects, events.rejects])
    return replace(events, rejects=rejects), counts


def _view(context: RunContext, texts: pl.Series) -> VectorView:
    if context.embedder is None or texts.is_empty():
        return VectorView.empty()
    store = _store(context)
    try:
        return _embedded_view(context, store, texts)
    except StoreError:
        # a damaged segment is set aside when it is met: its texts are embedded again
        return _embedded_view(context, store, texts)


def _embedded_view(context: RunContext, store: VectorStore, texts: pl.Series) -> VectorView:
    if store.missing(text_ids(texts)).any():
        embed_missing(texts, _embedder(context), store, progress=stop_if_asked)
    return store.view(texts, context.embedder.dim if context.embedder else None)


def _perplexity_texts(suite: Suite, events: Events, options: Any) -> pl.Series:
    if not isinstance(suite, ScoresPerplexity):
        raise TypeError(f"suite {suite.name} scores no perplexities")
    return suite.perplexity_texts(events, options)


def _fill_perplexities(settings: PerplexitySettings, texts: pl.Series) -> int:
    """Evaluate the texts that the store lacks; return how many."""
    return embed_missing(
        texts,
        _perplexity_model(settings.model),
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
    model = _perplexity_model(settings.model)
    return _kept_store(model.fingerprint, model.dim, settings.store)


def _declared(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    if dict(frame.schema) != table.schema:
        raise TypeError(f"table {table.name!r}: got {frame.schema}, declared {table.schema}")
    return frame


def _in_input_order(rejects: pl.DataFrame, files: Sequence[str]) -> pl.DataFrame:
    if rejects.is_empty():
        return rejects.select(REJECT_SCHEMA.keys())
    position = {file: index for index, file in enumerate(files)}
    file_position = pl.col("file").replace_strict(position, return_dtype=pl.Int64)
    return rejects.sort(file_position, "line", maintain_order=True).select(REJECT_SCHEMA.keys())


def _commit(
    context: RunContext, path: Path, frame: pl.DataFrame, metadata: Mapping[str, str]
) -> Committed:
    context.check_writer()
    committed = commit_table(path, frame, metadata)
    return replace(committed, path=path.relative_to(context.run).as_posix())


def _receipt(context: RunContext, receipt: Receipt) -> Receipt:
    context.check_writer()
    save_receipt(receipts_folder(context.run, receipt.stage), receipt)
    return receipt


_model_lock = threading.Lock()


@functools.cache
def _loaded_embedder(recipe: str, precision: str) -> Embedder:
    return Embedder(recipe, precision=precision)


@functools.lru_cache(maxsize=2)  # vectors and perplexities
def _opened_store(fingerprint: str, dim: int, root: Path) -> VectorStore:
    return VectorStore.open(fingerprint, dim, root=root)


@functools.cache
def _loaded_perplexity_model(name: str) -> PerplexityModel:
    return PerplexityModel(name)


def _perplexity_model(name: str) -> PerplexityModel:
    with _model_lock:
        return _loaded_perplexity_model(name)


def _embedder(context: RunContext) -> Embedder:
    settings = context.embedder
    if settings is None:
        raise TypeError("this run has no embedder")
    with _model_lock:
        return _loaded_embedder(settings.recipe, settings.precision)


def _store(context: RunContext) -> VectorStore:
    settings = context.embedder
    embedder = _embedder(context)
    if settings is None:
        raise TypeError("this run has no embedder")
    return _kept_store(embedder.fingerprint, embedder.dim, settings.store)


def _kept_store(fingerprint: str, dim: int, root: Path | None) -> VectorStore:
    root = root or cache_root() / "vectors"
    with _model_lock:
        store = _opened_store(fingerprint, dim, root)
        if not store.folder.is_dir():  # removed since
            _opened_store.cache_clear()
            store = _opened_store(fingerprint, dim, root)
    return store
