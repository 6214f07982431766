"""All stores of vectors in a folder: whose they are, their sizes, and removing those of nobody."""

import contextlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from fastscore_models import list_masked

from fastscore.errors import ModelError, StoreError
from fastscore.paths import cache_root
from fastscore.vectors.description import STORE_FILE
from fastscore.vectors.embedder import Embedder, TokenCounter, WindowEmbedder
from fastscore.vectors.models import list_models
from fastscore.vectors.perplexity import PerplexityModel
from fastscore.vectors.precisions import EXACT, PRECISIONS
from fastscore.vectors.store import VectorStore


@dataclass(frozen=True, slots=True)
class StoreListing:
    """A store in the folder of stores.

    Attributes
    ----------
    folder
        Where it lies.
    model, precision
        The exported model whose vectors it has; None if no exported model computes them.
    vectors, segments, bytes
        What it holds.
    """

    folder: Path
    model: str | None
    precision: str | None
    vectors: int
    segments: int
    bytes: int


def list_stores(root: Path | None) -> list[StoreListing]:
    """List the stores in a folder, the largest first.

    Parameters
    ----------
    root
        The folder of stores. None for that of the cache.
    """
    folder = root or cache_root() / "vectors"
    known = _fingerprints()
    found = []
    for description in sorted(folder.glob(f"*/{STORE_FILE}")):
        with contextlib.suppress(StoreError, OSError, ValueError, KeyError):
            about = json.loads(description.read_text(encoding="utf-8"))
            store = VectorStore.open(
                about["fingerprint"], about["dim"], root=folder, vector_dtype=about["vector_dtype"]
            )
            model, precision = known.get(about["fingerprint"], (None, None))
            stats = store.stats()
            found.append(
                StoreListing(
                    store.folder, model, precision, stats.vectors, stats.segments, stats.bytes
                )
            )
    return sorted(found, key=lambda each: -each.bytes)


def prune_stores(root: Path | None, *, dry_run: bool) -> list[StoreListing]:
    """Remove the stores whose vectors no exported model computes; return them.

    Parameters
    ----------
    root
        The folder of stores. None for that of the cache.
    dry_run
        Only list them.
    """
    unused = [each for each in list_stores(root) if each.model is None]
    for each in unused if not dry_run else ():
        shutil.rmtree(each.folder)
    return unused


def _fingerprints() -> dict[str, tuple[str, str]]:
    """Return the model and precision of each fingerprint that can be computed here."""
    found = {}
    for listing in list_models():
        for precision in PRECISIONS if listing.exported is not None else ():
            with contextlib.suppress(ModelError):
                embedder = Embedder(listing.name, precision=precision)
                for each in (embedder, WindowEmbedder(embedder), TokenCounter(embedder)):
                    found[each.fingerprint] = (listing.name, precision)
    for name in list_masked(cache_root()):
        with contextlib.suppress(ModelError):
            found[PerplexityModel(name).fingerprint] = (name, EXACT)
    return found
