"""Texts to vectors: the embedder, the store that keeps every vector, a shard's view of it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastscore.vectors.description import StoreCheck, StoreStats
    from fastscore.vectors.embedder import Embedder
    from fastscore.vectors.perplexity import PerplexityModel
    from fastscore.vectors.store import VectorStore
    from fastscore.vectors.view import VectorView, embed_missing

_MODULE_OF = {
    "Embedder": "embedder",
    "PerplexityModel": "perplexity",
    "StoreCheck": "description",
    "StoreStats": "description",
    "VectorStore": "store",
    "VectorView": "view",
    "embed_missing": "view",
}

__all__ = [
    "Embedder",
    "PerplexityModel",
    "StoreCheck",
    "StoreStats",
    "VectorStore",
    "VectorView",
    "embed_missing",
]


def __getattr__(name: str) -> Any:
    """Import the module that holds the public name, on first use."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
