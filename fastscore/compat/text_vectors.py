"""Vectors and perplexities for one file at a time, the latest ones kept from call to call."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from fastscore_jit.arrays import Vectors

from fastscore.compat.environment import other_device
from fastscore.vectors.embedder import Embedder
from fastscore.vectors.perplexity import PerplexityModel
from fastscore.vectors.view import VectorView

if TYPE_CHECKING:
    from fastscore.compat.environment import ScorerEnvironment

Key = tuple[str, int | None, str]

_logger = logging.getLogger("score_dialogue")
_lock = threading.Lock()
_embedders: dict[str, Embedder] = {}
_judges: dict[str, PerplexityModel] = {}
_vectors: OrderedDict[Key, Vectors] = OrderedDict()


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
            device = other_device()
            if device:
                _logger.warning("%s: the embedder runs on the CPU; numbers are the same", device)
        return _embedders[name]


def view_texts(texts: pl.Series, environment: "ScorerEnvironment") -> VectorView:
    """Return the vectors of distinct texts; those that an earlier call embedded are not redone."""
    embedder = load_embedder(environment.embedder)
    return _view(
        texts,
        (embedder.fingerprint, environment.dim),
        lambda missing: embedder.encode(missing, dim=environment.dim),
        environment.cached_texts,
    )


def judge_texts(texts: pl.Series, model: str, environment: "ScorerEnvironment") -> VectorView:
    """Return the logarithms of distinct texts' pseudo-perplexities, a vector of width 1 each.

    Raises
    ------
    ModelError
        If the masked language model is not exported, or damaged.
    """
    with _lock:
        if model not in _judges:
            _judges[model] = PerplexityModel(model)
        judge = _judges[model]
    return _view(texts, (judge.fingerprint, None), judge.encode, environment.cached_texts)


def _view(
    texts: pl.Series,
    model: tuple[str, int | None],
    encode: Callable[[list[str]], Vectors],
    limit: int,
) -> VectorView:
    """Look texts up among those of earlier calls, and encode the rest."""
    keys = [(*model, text) for text in texts]
    with _lock:
        known = {key: _vectors[key] for key in keys if key in _vectors}
    missing = [key for key in keys if key not in known]
    if missing:
        encoded = dict(zip(missing, encode([text for _, _, text in missing]), strict=True))
        known |= encoded
        _cache_vectors(encoded, limit)
    return VectorView.from_texts(texts, np.stack([known[key] for key in keys]))


def _cache_vectors(vectors: dict[Key, Vectors], limit: int) -> None:
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
