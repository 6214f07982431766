"""Scoring a shard: its texts and their vectors, its tables and its rejects.

Models and stores are imported when the first is opened: lexical runs open none.
"""

import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
from fastscore_jit.threads import raise_if_stopped

from fastscore.errors import StoreError
from fastscore.files import cache_root
from fastscore.logs.integrity.file_state import Shard
from fastscore.logs.integrity.limits import Limits
from fastscore.logs.integrity.rejects import listed_rejects
from fastscore.logs.read.rows import Part, Rows, join_parts, read_parts
from fastscore.run.context import Loaded, PerplexitySettings
from fastscore.run.notes import RowCounts, count_missing
from fastscore.run.progress import current_stage, told_to
from fastscore.run.request import EmbedderSettings
from fastscore.suites.base import Events, Suite
from fastscore.suites.declarations import REJECTS_TABLE, Table
from fastscore.suites.identity import RunNames
from fastscore.vectors.view import VectorView, text_ids

if TYPE_CHECKING:
    from fastscore.vectors.embedder import Embedder, FunctionEmbedder
    from fastscore.vectors.perplexity import PerplexityModel
    from fastscore.vectors.precisions import DeviceName, Precision
    from fastscore.vectors.store import Encoder, VectorStore

    class StoredEncoder(Encoder, Protocol):
        """What makes rows of numbers of texts, which a store keeps."""

        @property
        def fingerprint(self) -> str:
            """What decides the numbers."""

        @property
        def dim(self) -> int:
            """How many there are of a text."""


KINDS_OF_STORES = 4
"""Vectors, sums over windows, counts of tokens, perplexities."""

_model_lock = threading.Lock()


def open_embedder(settings: EmbedderSettings) -> "Embedder | FunctionEmbedder":
    """Return the run's embedder."""
    if not isinstance(settings.recipe, str):
        return settings.recipe
    with _model_lock:
        return _loaded_embedder(
            settings.recipe, settings.precision, settings.device, _cache_of(settings)
        )


def open_perplexity_model(settings: PerplexitySettings) -> "PerplexityModel":
    """Return the run's masked language model."""
    with _model_lock:
        return _loaded_perplexity_model(settings.model, _cache_of(settings))


def open_store(encoder: "StoredEncoder", root: Path | None) -> "VectorStore":
    """Return the store of what an encoder makes, below the folder of stores."""
    wanted = (encoder.fingerprint, encoder.dim, root or cache_root() / "vectors")
    with _model_lock:
        store = _opened_store(*wanted)
        if not store.folder.is_dir():  # removed since
            _opened_store.cache_clear()
            store = _opened_store(*wanted)
    return store


def _cache_of(settings: EmbedderSettings | PerplexitySettings) -> Path:
    """Return the folder that a run's models are in: another run's may be another."""
    return (settings.cache or cache_root()).absolute()


@functools.cache
def _loaded_embedder(
    recipe: str, precision: "Precision", device: "DeviceName", cache: Path
) -> "Embedder":
    from fastscore.vectors.embedder import Embedder

    return Embedder(recipe, precision=precision, device=device, cache_dir=cache)


@functools.cache
def _loaded_perplexity_model(name: str, cache: Path) -> "PerplexityModel":
    from fastscore.vectors.perplexity import PerplexityModel

    return PerplexityModel(name, cache_dir=cache)


@functools.lru_cache(maxsize=KINDS_OF_STORES)
def _opened_store(fingerprint: str, dim: int, root: Path) -> "VectorStore":
    from fastscore.vectors.store import VectorStore

    return VectorStore.open(fingerprint, dim, root=root)


TEXT_SCHEMA: dict[str, pl.DataType] = {
    "windowed": pl.Boolean(),
    "id_high": pl.UInt64(),
    "id_low": pl.UInt64(),
    "text": pl.String(),
    "missing": pl.Boolean(),
}
"""One row a text: whether it is read in windows, its id, and whether its store lacks it."""

TEXT_KEY = ("windowed", "id_high", "id_low")

CUT_SCHEMA: dict[str, pl.DataType] = {
    "id_high": pl.UInt64(),
    "id_low": pl.UInt64(),
    "tokens": pl.Int64(),
    "limit": pl.Int64(),
    "text": pl.String(),
}
"""One row a text of which the model took the beginning only: its id, its tokens, how many the model
takes, and how it begins."""
_NONE_CUT = pl.DataFrame(schema=CUT_SCHEMA)

_SHOWN_CHARACTERS = 200
_BYTES_OF_ANY_TEXT = 16
"""What a text costs beside its bytes: the tokens that the model puts around it."""


@dataclass(frozen=True, slots=True)
class TextsToEmbed:
    """The distinct texts of a shard: those that the model takes or cuts, and those in windows."""

    texts: pl.Series
    long_texts: pl.Series

    @classmethod
    def of(cls, suite: Suite, events: Events, options: Any) -> "TextsToEmbed":
        """Ask a suite for the texts of its events."""
        texts, long_texts = (
            pl.Series("text", [], dtype=pl.String) if of is None else of(events, options)
            for of in (suite.texts, suite.long_texts)
        )
        return cls(texts, long_texts)

    def __len__(self) -> int:
        return len(self.texts) + len(self.long_texts)

    def listed(self, settings: EmbedderSettings) -> pl.DataFrame:
        """Return all texts in `TEXT_SCHEMA`, sorted by id."""
        parts = []
        for windowed, texts in ((False, self.texts), (True, self.long_texts)):
            ids = text_ids(texts)
            store = open_store(_encoder(settings, windowed=windowed), settings.store)
            missing = store.missing(ids) if len(texts) else np.zeros(0, np.bool_)
            parts.append(
                pl.DataFrame(
                    {
                        "windowed": np.full(len(texts), windowed),
                        "id_high": ids[:, 0],
                        "id_low": ids[:, 1],
                        "text": texts,
                        "missing": missing,
                    },
                    schema=TEXT_SCHEMA,
                )
            )
        return pl.concat(parts).sort(TEXT_KEY)

    def view(self, settings: EmbedderSettings | None) -> VectorView:
        """Return the texts' vectors, after embedding those that the store lacks."""
        if settings is None:
            return VectorView.empty()
        view = VectorView.empty()
        if len(self.texts):
            view = _filled_view(open_embedder(settings), settings, self.texts, settings.dim)
        if not len(self.long_texts):
            return view
        windowed = _filled_view(_encoder(settings, windowed=True), settings, self.long_texts, None)
        # sums are not scaled to length 1: only whoever joins them does that
        matrix = np.ascontiguousarray(windowed.matrix[:, : settings.dim])
        return replace(view, windowed=replace(windowed, matrix=matrix))

    def cut(self, settings: EmbedderSettings | None) -> pl.DataFrame:
        """Return the texts of which the model takes the beginning only, in `CUT_SCHEMA`."""
        if settings is None:
            return _NONE_CUT
        from fastscore.vectors.embedder import Embedder, TokenCounter  # late: it loads models

        embedder = open_embedder(settings)
        if not isinstance(embedder, Embedder):  # a function takes texts whole
            return pl.DataFrame(schema=CUT_SCHEMA)
        counter = TokenCounter(embedder)
        texts = self.texts.filter(pl.Series(counter.may_be_cut(self.texts)))
        if texts.is_empty():
            return pl.DataFrame(schema=CUT_SCHEMA)
        with told_to(None):  # tokens are counted, and nothing is embedded
            counts = _filled_view(counter, settings, texts, None)
        tokens = counts.matrix[counts.codes(texts), 0].astype(np.int64)
        ids = text_ids(texts)
        return pl.DataFrame(
            {
                "id_high": ids[:, 0],
                "id_low": ids[:, 1],
                "tokens": tokens,
                "limit": np.full(len(texts), counter.limit),
                "text": texts.str.head(_SHOWN_CHARACTERS),
            },
            schema=CUT_SCHEMA,
        ).filter(pl.col("tokens") > counter.limit)


def check_interrupt(done: int, total: int) -> None:
    """Raise `StoppedError` when asked to; has the form of an embedder's progress callback."""
    raise_if_stopped()


def embed_listed(listed: pl.DataFrame, settings: EmbedderSettings) -> int:
    """Embed texts in `TEXT_SCHEMA`; return how many their stores lacked."""
    embedded = 0
    for windowed in (False, True):
        texts = listed.filter(pl.col("windowed") == windowed)["text"]
        if len(texts):
            embedded += _embed(_encoder(settings, windowed=windowed), settings, texts)
    return embedded


def count_lacking(keys: pl.DataFrame, settings: EmbedderSettings) -> int:
    """Count the texts, given by `TEXT_KEY`, that their stores lack."""
    lacking = 0
    for windowed in (False, True):
        ids = keys.filter(pl.col("windowed") == windowed).select("id_high", "id_low")
        if len(ids):
            store = open_store(_encoder(settings, windowed=windowed), settings.store)
            lacking += int(store.missing(np.ascontiguousarray(ids.to_numpy())).sum())
    return lacking


def _encoder(settings: EmbedderSettings, *, windowed: bool) -> "StoredEncoder":
    from fastscore.vectors.embedder import WindowEmbedder

    embedder = open_embedder(settings)
    return WindowEmbedder(embedder) if windowed else embedder


def _embed(encoder: "StoredEncoder", settings: EmbedderSettings, texts: pl.Series) -> int:
    from fastscore.vectors.store import embed_missing

    store = open_store(encoder, settings.store)
    return embed_missing(texts, encoder, store, progress=_told(texts))


def _told(texts: pl.Series) -> Callable[[int, int], None]:
    """Return what tells the stage how many of the texts are embedded, shortest first."""
    costs = np.cumsum(np.sort(texts.str.len_bytes().to_numpy()) + _BYTES_OF_ANY_TEXT)
    stage = current_stage()
    told, cost = 0, 0.0

    def progress(done: int, total: int) -> None:
        nonlocal told, cost
        check_interrupt(done, total)
        if stage is None:
            return
        now = total * float(costs[len(costs) * done // total - 1] / costs[-1])
        stage.embedded(done - told, now - cost, 0 if told else total)
        told, cost = done, now

    return progress


def _filled_view(
    encoder: "StoredEncoder", settings: EmbedderSettings, texts: pl.Series, dim: int | None
) -> VectorView:
    embed = functools.partial(_embed, encoder, settings, texts)
    return _view(encoder, settings.store, texts, embed, dim)


def _view(
    encoder: "StoredEncoder",
    root: Path | None,
    texts: pl.Series,
    fill: Callable[[], int],
    dim: int | None = None,
) -> VectorView:
    """View what a store has of texts, after filling in those that it lacks."""

    def view() -> VectorView:
        store = open_store(encoder, root)
        if store.missing(text_ids(texts)).any():
            fill()
        return store.view(texts, dim)

    try:
        return view()
    except StoreError:
        # a damaged segment is set aside when it is met: its texts are filled in again
        return view()


PERPLEXITIES_PER_APPEND = 1024


def perplexity_texts(suite: Suite, events: Events, options: Any) -> pl.Series:
    """Return the texts whose pseudo-perplexity the suite compares."""
    if suite.perplexity_texts is None:
        raise TypeError(f"suite {suite.name} scores no perplexities")
    return suite.perplexity_texts(events, options)


def fill_perplexities(settings: PerplexitySettings, texts: pl.Series) -> int:
    """Evaluate the texts that the store lacks; return how many."""
    from fastscore.vectors.store import embed_missing

    model = open_perplexity_model(settings)
    return embed_missing(
        texts,
        model,
        open_store(model, settings.store),
        progress=check_interrupt,
        texts_per_append=PERPLEXITIES_PER_APPEND,
    )


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


def compute_tables(loaded: Loaded, shard: Shard) -> ShardScores:
    """Score a shard in memory, embedding the texts that the store lacks."""
    return compute_rows(loaded, _read_rows(loaded, shard), files_of(shard))


def compute_rows(loaded: Loaded, rows: Rows, files: Sequence[str]) -> ShardScores:
    """Score rows of whole dialogues, of files named in their order, as `compute_tables` does."""
    events, found = _events(loaded, rows)
    compared = TextsToEmbed.of(loaded.suite, events, loaded.options)
    return score_events(loaded, files, events, found, compared)


def score_events(
    loaded: Loaded, files: Sequence[str], events: Events, found: RowCounts, compared: TextsToEmbed
) -> ShardScores:
    """Score what was read, of files named in their order."""
    suite = loaded.suite
    vectors = vectors_of(loaded, events, compared)
    raise_if_stopped()
    tables = suite.score(events, vectors, loaded.options)
    rejects = _in_input_order(listed_rejects(events.rejects), files)
    return ShardScores(
        tables={table.name: _declared(table, tables[table.name]) for table in suite.tables},
        rejects=rejects,
        counts={**found.counts, "rejects": int(rejects["count"].sum())},
        cut_texts=compared.cut(loaded.context.embedder),
        unknown_words=found.unknown,
    )


def vectors_of(loaded: Loaded, events: Events, compared: TextsToEmbed) -> VectorView:
    """Return what a suite scores events by: vectors of texts, and perplexities where asked for."""
    vectors, settings = compared.view(loaded.context.embedder), loaded.context.perplexity
    if settings is None:
        return vectors
    judged = perplexity_texts(loaded.suite, events, loaded.options)
    evaluate = functools.partial(fill_perplexities, settings, judged)
    model = open_perplexity_model(settings)
    found = _view(model, settings.store, judged, evaluate)
    return replace(vectors, log_perplexities=found)


def read_events(loaded: Loaded, shard: Shard) -> tuple[Events, RowCounts]:
    """Read a shard's rows as the suite's events, and count what they lack."""
    return _events(loaded, _read_rows(loaded, shard))


def _read_rows(loaded: Loaded, shard: Shard) -> Rows:
    source, context = loaded.source, loaded.context
    chosen = context.chosen
    ranges = [replace(file_range, limits=context.limits) for file_range in shard.file_ranges]
    parts = _within_limits(read_parts(ranges, source), context.limits, shard)
    if chosen is not None:
        parts = (chosen.kept(part, source) for part in parts)
    files = {file_range.file: file_range.name for file_range in ranges}
    names = RunNames(context.shared_names, files)
    return join_parts(parts, source, names, None if chosen is None else chosen.sampled)


def _within_limits(parts: Iterator[Part], limits: Limits, shard: Shard) -> Iterator[Part]:
    """Hand parts on until too much memory is taken or the run is asked to stop.

    What is handed on will be joined, which takes as much again.
    """
    held = 0
    for part in parts:
        raise_if_stopped()
        held += int(part.frame.estimated_size())
        limits.check_memory(shard.file_ranges[0].file, more=held)
        yield part


def _events(loaded: Loaded, rows: Rows) -> tuple[Events, RowCounts]:
    raise_if_stopped()
    events = loaded.suite.read(rows.frame, loaded.options)
    raise_if_stopped()
    found = count_missing(rows.frame, loaded.source, events)
    found = replace(found, counts={**rows.counts, **events.counts, **found.counts})
    rejects, of_suite = rows.rejects, events.rejects
    if of_suite.height:
        of_suite = of_suite.with_columns(pl.lit(1, pl.Int64).alias("count"), last_line="line")
        rejects = pl.concat([rejects, of_suite])
    return replace(events, rejects=rejects), found


def files_of(shard: Shard) -> list[str]:
    """Return the files of a shard, in their order."""
    return [file_range.file for file_range in shard.file_ranges]


def _declared(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    if dict(frame.schema) != table.schema:
        raise TypeError(f"table {table.name!r}: got {frame.schema}, declared {table.schema}")
    return frame


def _in_input_order(rejects: pl.DataFrame, files: Sequence[str]) -> pl.DataFrame:
    if rejects.is_empty():
        return rejects[list(REJECTS_TABLE)]
    position = {file: index for index, file in enumerate(files)}
    file_position = pl.col("file").replace_strict(position, return_dtype=pl.Int64)
    return rejects.sort(file_position, "line", maintain_order=True).select(REJECTS_TABLE.keys())
