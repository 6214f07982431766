"""The texts of which a suite needs vectors or pseudo-perplexities, and what the store lacks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from fastscore.errors import StoreError
from fastscore.run.context import EmbedderSettings, PerplexitySettings
from fastscore.run.interrupt import stop_if_asked
from fastscore.run.model_cache import (
    StoredEncoder,
    open_embedder,
    open_perplexity_model,
    open_store,
)
from fastscore.run.progress import current_stage, told_to
from fastscore.suites.base import Events, Suite
from fastscore.vectors.missing import embed_missing
from fastscore.vectors.text_ids import text_ids
from fastscore.vectors.view import VectorView

if TYPE_CHECKING:
    from fastscore.vectors.store import VectorStore

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
            return pl.DataFrame(schema=CUT_SCHEMA)
        from fastscore.vectors.embedder import TokenCounter  # late: it loads what runs models

        counter = TokenCounter(open_embedder(settings))
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


def _encoder(settings: EmbedderSettings, *, windowed: bool) -> StoredEncoder:
    from fastscore.vectors.embedder import WindowEmbedder

    embedder = open_embedder(settings)
    return WindowEmbedder(embedder) if windowed else embedder


def _embed(encoder: StoredEncoder, settings: EmbedderSettings, texts: pl.Series) -> int:
    store = open_store(encoder, settings.store)
    return embed_missing(texts, encoder, store, progress=_told(texts))


def _told(texts: pl.Series) -> Callable[[int, int], None]:
    """Return what tells the stage how many of the texts are embedded, shortest first."""
    costs = np.cumsum(np.sort(texts.str.len_bytes().to_numpy()) + _BYTES_OF_ANY_TEXT)
    stage = current_stage()
    told, cost = 0, 0.0

    def progress(done: int, total: int) -> None:
        nonlocal told, cost
        stop_if_asked(done, total)
        if stage is None:
            return
        now = total * float(costs[len(costs) * done // total - 1] / costs[-1])
        stage.embedded(done - told, now - cost, 0 if told else total)
        told, cost = done, now

    return progress


def _filled_view(
    encoder: StoredEncoder, settings: EmbedderSettings, texts: pl.Series, dim: int | None
) -> VectorView:
    try:
        return _embedded_view(encoder, settings, texts, dim)
    except StoreError:
        # a damaged segment is set aside when it is met: its texts are embedded again
        return _embedded_view(encoder, settings, texts, dim)


def _embedded_view(
    encoder: StoredEncoder, settings: EmbedderSettings, texts: pl.Series, dim: int | None
) -> VectorView:
    store = open_store(encoder, settings.store)
    if store.missing(text_ids(texts)).any():
        _embed(encoder, settings, texts)
    return store.view(texts, dim)


PERPLEXITIES_PER_APPEND = 1024


def perplexity_texts(suite: Suite, events: Events, options: Any) -> pl.Series:
    """Return the texts whose pseudo-perplexity the suite compares."""
    if suite.perplexity_texts is None:
        raise TypeError(f"suite {suite.name} scores no perplexities")
    return suite.perplexity_texts(events, options)


def fill_perplexities(settings: PerplexitySettings, texts: pl.Series) -> int:
    """Evaluate the texts that the store lacks; return how many."""
    return embed_missing(
        texts,
        open_perplexity_model(settings),
        _perplexity_store(settings),
        progress=stop_if_asked,
        texts_per_append=PERPLEXITIES_PER_APPEND,
    )


def perplexity_view(settings: PerplexitySettings, texts: pl.Series) -> VectorView:
    """Look texts up, once those that the store lacks are evaluated."""
    fill_perplexities(settings, texts)
    try:
        return _perplexity_store(settings).view(texts)
    except StoreError:
        # a damaged segment is set aside when it is met: its texts are evaluated again
        fill_perplexities(settings, texts)
        return _perplexity_store(settings).view(texts)


def _perplexity_store(settings: PerplexitySettings) -> "VectorStore":
    return open_store(open_perplexity_model(settings), settings.store)
