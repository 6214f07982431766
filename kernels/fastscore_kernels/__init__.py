"""Numba kernels over Arrow strings and flat numpy arrays.

Every public function validates its arguments and names what is wrong with them; below it, a
compiled kernel releases the GIL and works on contiguous chunks, so that a call is safe from
several threads at once and its result does not depend on their number. Names are imported when
first used: importing the package costs nothing.
"""

from importlib import import_module
from typing import Any

_MODULE_OF = {
    "cosine_pairs": "cosine",
    "levenshtein_pairs": "levenshtein",
    "levenshtein_similarity_pairs": "levenshtein",
    "mean_pair_cosine_groups": "cosine",
    "mt19937_pairs": "sampling",
    "segment_first_argmax": "segments",
    "text_hash128": "hashing",
}

__all__ = [
    "cosine_pairs",
    "levenshtein_pairs",
    "levenshtein_similarity_pairs",
    "mean_pair_cosine_groups",
    "mt19937_pairs",
    "segment_first_argmax",
    "text_hash128",
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
