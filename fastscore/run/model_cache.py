"""The models and vector stores that tasks share: each loaded once in a process.

What runs them is imported when the first is opened: lexical runs open none.
"""

import functools
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fastscore.paths import cache_root
from fastscore.run.context import EmbedderSettings, PerplexitySettings
from fastscore.vectors.missing import Encoder

if TYPE_CHECKING:
    from fastscore.vectors.embedder import Embedder
    from fastscore.vectors.perplexity import PerplexityModel
    from fastscore.vectors.store import VectorStore

KINDS_OF_STORES = 4
"""Vectors, sums over windows, counts of tokens, perplexities."""

_model_lock = threading.Lock()


class StoredEncoder(Encoder, Protocol):
    """What makes rows of numbers of texts, which a store keeps."""

    @property
    def fingerprint(self) -> str:
        """What decides the numbers."""

    @property
    def dim(self) -> int:
        """How many there are of a text."""


def open_embedder(settings: EmbedderSettings) -> "Embedder":
    """Return the run's embedder."""
    with _model_lock:
        return _loaded_embedder(settings.recipe, settings.precision, _cache_of(settings))


def open_perplexity_model(settings: PerplexitySettings) -> "PerplexityModel":
    """Return the run's masked language model."""
    with _model_lock:
        return _loaded_perplexity_model(settings.model, _cache_of(settings))


def open_store(encoder: StoredEncoder, root: Path | None) -> "VectorStore":
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
def _loaded_embedder(recipe: str, precision: str, cache: Path) -> "Embedder":
    from fastscore.vectors.embedder import Embedder

    return Embedder(recipe, precision=precision, cache_dir=cache)


@functools.cache
def _loaded_perplexity_model(name: str, cache: Path) -> "PerplexityModel":
    from fastscore.vectors.perplexity import PerplexityModel

    return PerplexityModel(name, cache_dir=cache)


@functools.lru_cache(maxsize=KINDS_OF_STORES)
def _opened_store(fingerprint: str, dim: int, root: Path) -> "VectorStore":
    from fastscore.vectors.store import VectorStore

    return VectorStore.open(fingerprint, dim, root=root)
