"""The models that can embed: which there are, making them ready, and checking them."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import fastscore_models
from fastscore_models import ExportedModel, ModelExportError, NotExportedError, Recipe

from fastscore.errors import ModelError
from fastscore.paths import cache_root
from fastscore.vectors.embedder import Embedder
from fastscore.vectors.store import VectorStore


@dataclass(frozen=True, slots=True)
class ModelListing:
    """A recipe, and its export where there is one.

    Parameters
    ----------
    recipe
        The recipe.
    exported
        Its export in the cache, or None.
    """

    recipe: Recipe
    exported: ExportedModel | None

    @property
    def line(self) -> str:
        """The listing as one line of text."""
        state = f"exported ({self.exported.onnx_sha256[:8]})" if self.exported else "not exported"
        dims = "/".join(map(str, self.recipe.dims))
        return (
            f"{self.recipe.name:<40} {dims:<16} {self.recipe.pooling:<5} "
            f"{self.recipe.licence:<12} {state}"
        )


def list_models() -> list[ModelListing]:
    """List the recipes that ship with the package and the exports of others in the cache."""
    cache = cache_root()
    with _explained():
        listings = []
        for name in fastscore_models.list_recipes():
            exported = None
            with contextlib.suppress(NotExportedError):
                exported = fastscore_models.find_exported(name, cache)
            listings.append(ModelListing(fastscore_models.load_recipe(name), exported))
        known = {listing.recipe.name for listing in listings}
        others = [name for name in fastscore_models.list_exported(cache) if name not in known]
        for name in others:
            exported = fastscore_models.find_exported(name, cache)
            listings.append(ModelListing(exported.recipe, exported))
    return listings


def export_model(name: str, folder: Path | None) -> ExportedModel:
    """Export a model into the cache, from a folder or from where its recipe says.

    Raises
    ------
    ModelError
        The recipe is unknown, or its weights are missing, damaged or of another kind.
    """
    with _explained():
        recipe = fastscore_models.load_recipe(name)
        return fastscore_models.export(recipe, cache_root(), folder=folder)


def verify_model(name: str) -> tuple[ExportedModel, float]:
    """Check an exported model; returns it and how far its test vector is off.

    Raises
    ------
    ModelError
        The model is not exported, or damaged.
    """
    with _explained():
        exported = fastscore_models.find_exported(name, cache_root())
        return exported, fastscore_models.verify(exported)


def open_store(name: str, root: Path | None) -> VectorStore:
    """Open the store of an exported model's fp32 vectors.

    Raises
    ------
    ModelError
        The model is not exported.
    StoreError
        The store cannot be read.
    """
    embedder = Embedder(name)
    return VectorStore.open(embedder.fingerprint, embedder.dim, root=root)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except ModelExportError as error:
        raise ModelError(error.message, error.hint) from error
