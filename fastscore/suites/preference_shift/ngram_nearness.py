"""Extraction as in the successor's mode ``embed``: values whose character n-grams are nearest.

By field, TF-IDF over n-grams of 3 to 5 characters within words, fitted on the field's values; of a
text the values of highest cosine, from a threshold on. Exact: see `fastscore_kernels`.
"""

import threading

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices
from fastscore_kernels import (
    CharacterNgrams,
    index_character_ngrams,
    nearest_by_character_ngrams,
)

from fastscore.suites.preference_shift.code_points import (
    CodePoints,
    code_points,
    cut_in_parts,
    join_lower,
)
from fastscore.suites.preference_shift.concepts import Concepts, Sets, as_sets
from fastscore.suites.preference_shift.options import PreferenceShift

_SPACE = " "
_BEYOND_SPACES = 0x3001
_IS_SPACE = np.array([chr(point).isspace() for point in range(_BEYOND_SPACES)] + [False])


def concepts_by_ngrams(texts: pl.Series, concepts: Concepts, options: PreferenceShift) -> Sets:
    """Find for each text the values of each field whose n-grams are nearest.

    Parameters
    ----------
    texts
        Distinct strings without nulls.
    concepts
        The candidates; plot keywords are none.
    options
        How many values of a field count, and from which cosine on.

    Returns
    -------
    tuple
        A set of concepts a text. Of equal cosines the value that sorts first wins.
    """
    rows, index = _indexed(concepts)
    found_rows, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    done = 0
    for part in cut_in_parts(texts):
        nearest = nearest_by_character_ngrams(
            index, *_spaced(part), top=options.embed_top, least=options.embed_threshold, threads=1
        )
        row, place = np.nonzero(nearest >= 0)
        found_rows.append(row + done)
        found.append(rows[nearest[row, place]])
        done += len(part)
    return as_sets(np.concatenate(found_rows), np.concatenate(found), len(texts))


_lock = threading.Lock()
_latest: list[tuple[Concepts, Indices, CharacterNgrams]] = []


def _indexed(concepts: Concepts) -> tuple[Indices, CharacterNgrams]:
    """Return the rows of the candidates and their index, made once for all shards."""
    with _lock:
        if not _latest or _latest[0][0] is not concepts:
            terms = concepts.terms.with_row_index("row").filter(~pl.col("is_plot"))
            # terms are in the order of field=value, so a field's stand together
            sizes = terms.group_by("field", maintain_order=True).len()["len"].to_numpy()
            groups = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
            index = index_character_ngrams(*_spaced(terms["value"]), groups)
            _latest[:] = [(concepts, terms["row"].cast(pl.Int64).to_numpy(), index)]
        return _latest[0][1:]


def _spaced(texts: pl.Series) -> tuple[CodePoints, Indices]:
    """Return the code points of texts in lower case with one kind of space, and its places."""
    if texts.is_empty():
        return code_points(_SPACE), np.zeros(1, np.int64)
    joined, marks = join_lower(texts, _SPACE)
    points = code_points(joined)
    is_space = _IS_SPACE[np.minimum(points, _BEYOND_SPACES)]
    return np.where(is_space, np.uint32(ord(_SPACE)), points), marks
