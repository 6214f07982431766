"""Contents of a store after runs."""

from pathlib import Path

from fastscore.vectors.embedder import Embedder
from fastscore.vectors.segments import StoreStats
from fastscore.vectors.store import VectorStore


def count_vectors(cache: Path, root: Path) -> StoreStats:
    """Count a store's vectors; those that two processes embedded count twice."""
    embedder = Embedder("tiny", cache_dir=cache)
    return VectorStore.open(embedder.fingerprint, embedder.dim, root=root).stats()
