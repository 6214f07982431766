"""Vectors for one file at a time, the latest ones kept from call to call."""

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.vectors.embedder import Embedder
from fastscore.vectors.view import VectorView

if TYPE_CHECKING:
    from fastscore.compat.environment import ScorerEnvironment

_lock = threading.Lock()
_embedders: dict[str, Embedder] = {}
_vectors: OrderedDict[tuple[str, int | None, str], npt.NDArray[np.float32]] = OrderedDict()


def load_embedder(name: str) -> Embedder:
    """Return the process's embedder of that name; a hub id stands for the recipe that names it.

    Raises
    ------
    ModelError
        If the model is unknown, not exported or damaged.
    """
    with _lock:
        if name not in _embedders:
            _embedders[name] = Embedder(_recipe_name(name))
        return _embedders[name]


def view_texts(texts: pl.Series, environment: "ScorerEnvironment") -> VectorView:
    """Return the vectors of distinct texts; those that an earlier call embedded are not redone."""
    embedder = load_embedder(environment.embedder)
    keys = [(embedder.fingerprint, environment.dim, text) for text in texts]
    with _lock:
        known = {key: _vectors[key] for key in keys if key in _vectors}
    missing = [key for key in keys if key not in known]
    if missing:
        encoded = embedder.encode([text for _, _, text in missing], dim=environment.dim)
        known.update(zip(missing, encoded, strict=True))
        _keep(dict(zip(missing, encoded, strict=True)), environment.cached_texts)
    return VectorView.from_texts(texts, np.stack([known[key] for key in keys]))


def _keep(vectors: dict[tuple[str, int | None, str], npt.NDArray[np.float32]], limit: int) -> None:
    with _lock:
        for key, vector in vectors.items():
            # a copy, so that one kept row does not hold its whole batch
            _vectors[key] = vector.copy()
        while len(_vectors) > max(limit, 0):
            _vectors.popitem(last=False)


def _recipe_name(name: str) -> str:
    from fastscore_models import list_recipes, load_recipe

    if name.endswith(".toml"):
        return name
    recipes = (load_recipe(known) for known in list_recipes())
    return next((recipe.name for recipe in recipes if recipe.source.hub == name), name)
