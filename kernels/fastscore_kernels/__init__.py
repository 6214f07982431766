"""Numba kernels over Arrow strings and flat numpy arrays.

Every public function validates its arguments and names an invalid one. Its compiled kernel releases
the GIL and works on contiguous chunks. So calls are thread-safe, and results do not depend on the
number of threads. Names are imported at first use, which keeps the import of the package fast.
"""

from importlib import import_module
from typing import Any

_MODULE_OF = {
    "CharacterNgrams": "character_ngrams",
    "checksum_rows": "file_rows",
    "cosine_pairs": "cosine",
    "count_phrases": "words",
    "count_shared_members": "shared",
    "count_shared_ngrams": "shared",
    "count_token_hits": "targets",
    "distinct_counts_ragged": "bags",
    "distinct_ids": "ids",
    "find_phrases": "targets",
    "gini_ragged": "inequality",
    "group_rows": "ragged",
    "idf_cosine_counted_csr": "bags",
    "idf_cosine_csr": "sets",
    "index_character_ngrams": "character_ngrams",
    "index_ids": "ids",
    "intersection_size_csr": "sets",
    "jaccard_csr": "sets",
    "keyword_groups": "keywords",
    "levenshtein_pairs": "levenshtein",
    "levenshtein_similarity_pairs": "levenshtein",
    "max_cosine_ragged": "cosine",
    "mean_pair_cosine_groups": "cosine",
    "mt19937_pairs": "cosine",
    "nearest_by_character_ngrams": "character_ngrams",
    "ngram_copy_ratio": "ngrams",
    "number_hashes": "numbering",
    "number_ranges": "numbering",
    "number_texts": "numbering",
    "number_tokens": "tokens",
    "outer_whitespace": "strings",
    "plain_words": "words",
    "read_rows": "file_rows",
    "replace_characters": "characters",
    "segment_first_argmax": "segments",
    "segment_moments": "segments",
    "set_difference_csr": "sets",
    "string_changes": "strings",
    "take_ranges": "ragged",
    "text_hash128": "ids",
}

__all__ = list(_MODULE_OF)


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
