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
    """A model: its recipe, and its export where there is one.

    Parameters
    ----------
    name
        The model's name.
    state
        ``"exported"``, ``"not exported"``, or ``"damaged"``: its manifest cannot be used.
    recipe
        The recipe; None where only a damaged export, or one of another version, is known.
    exported
        Its export in the cache, or None.
    """

    name: str
    state: str
    recipe: Recipe | None
    exported: ExportedModel | None

    @property
    def line(self) -> str:
        """The listing as one line of text."""
        dims = pooling = licence = "?"
        if self.recipe is not None:
            dims = "/".join(map(str, self.recipe.dims))
            pooling, licence = self.recipe.pooling, self.recipe.licence
        digest = f" ({self.exported.onnx_sha256[:8]})" if self.exported is not None else ""
        return f"{self.name:<40} {dims:<16} {pooling:<5} {licence:<12} {self.state}{digest}"


def list_models() -> list[ModelListing]:
    """List the recipes that ship with the package and the exports of others in the cache."""
    cache = cache_root()
    with _explained():
        shipped = {
            name: fastscore_models.load_recipe(name) for name in fastscore_models.list_recipes()
        }
    others = [name for name in fastscore_models.list_exported(cache) if name not in shipped]
    return [_listing(name, shipped.get(name), cache) for name in (*shipped, *others)]


def _listing(name: str, recipe: Recipe | None, cache: Path) -> ModelListing:
    """List one model; a shipped recipe counts as exported only as it is now."""
    try:
        exported = fastscore_models.find_exported(name, cache)
    except NotExportedError:
        return ModelListing(name, "not exported", recipe, None)
    except ModelExportError:
        return ModelListing(name, "damaged", recipe, None)
    if recipe is not None and not fastscore_models.is_export_of(exported, recipe):
        return ModelListing(name, "not exported", recipe, None)
    return ModelListing(name, "exported", recipe or exported.recipe, exported)


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
