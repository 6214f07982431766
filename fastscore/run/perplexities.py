"""Pseudo-perplexities of a shard's texts: evaluated where the store lacks them, and looked up."""

from typing import TYPE_CHECKING, Any

import polars as pl

from fastscore.errors import StoreError
from fastscore.run.context import PerplexitySettings
from fastscore.run.interrupt import stop_if_asked
from fastscore.run.model_cache import open_perplexity_model, open_store
from fastscore.suites.base import Events, Suite
from fastscore.vectors.missing import embed_missing
from fastscore.vectors.view import VectorView

if TYPE_CHECKING:
    from fastscore.vectors.store import VectorStore

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
