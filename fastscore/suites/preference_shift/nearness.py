"""Nearest values of texts: by vectors, and by character n-grams as the successor's ``embed``.

By vectors, texts are compared with values (extraction) and with texts (segments). By n-grams,
TF-IDF over n-grams of 3 to 5 characters within words is fitted on the values of each field. The
values of highest cosine count, from a threshold on. Exact: see `fastscore_kernels`.
"""

import threading
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices
from fastscore_kernels import (
    CharacterNgrams,
    cosine_pairs,
    index_character_ngrams,
    nearest_by_character_ngrams,
)

from fastscore.suites.base import Events
from fastscore.suites.grouping import place_in_group
from fastscore.suites.preference_shift.catalogue import load_catalogue
from fastscore.suites.preference_shift.concepts import Concepts, Sets, as_sets, concepts_of
from fastscore.suites.preference_shift.matching import (
    CodePoints,
    code_points,
    cut_in_parts,
    join_lower,
)
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.preference_shift.topics import joined_topics

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


Codes = npt.NDArray[np.int32]

_TEXTS_PER_BLOCK = 1024
_SPARE, _MORE = 13, 8
"""How many values more than are wanted are asked for, and how many times as many next."""
_MARGIN = 1e-4
"""Far more than a product of unit rows in float32 can be off by."""


def texts_to_embed(events: Events, options: PreferenceShift) -> pl.Series:
    """Return the distinct texts that need a vector with these options.

    For the extractor ``embed`` all texts and all values; for segments the user's texts in
    conversations of several turns without shift metadata.
    """
    turns, dialogues = events.frames["turns"], events.frames["dialogues"]
    parts = [pl.Series("text", [], dtype=pl.String)]
    if options.extract == "embed":
        concepts = concepts_of(load_catalogue(options.catalogue), options)
        texts = [turns["user_text"], turns["system_text"], events.frames["gold"]["text"]]
        parts += [*texts, concepts.terms["value"]]
    if options.is_legacy:
        texts = [turns["user_text"], turns["system_text"]]
        parts += [*texts, *map(joined_topics, texts)]
    elif options.extract != "embed" and options.segments != "metadata":
        several = turns["dialogue_row"].is_duplicated()
        without = ~dialogues["has_shift_metadata"].gather(turns["dialogue_row"])
        parts.append(turns["user_text"].filter(several & without))
    return pl.concat([part.rename("text") for part in parts]).unique(maintain_order=True)


def nearest_concepts(
    texts: pl.Series, concepts: Concepts, vectors: "VectorView", options: PreferenceShift
) -> Sets:
    """Find for each text the values of each field that are nearest in meaning.

    Parameters
    ----------
    texts
        Distinct strings without nulls.
    concepts
        The candidates.
    vectors
        Vectors of texts and values.
    options
        How many values of a field count, and from which cosine on.

    Returns
    -------
    tuple
        A set of concepts a text; a blank text has none. Of equal cosines the value that sorts
        first wins. A set depends on its text alone: a search of the vectors chooses
        candidates with a margin, and the cosines that decide are computed pair by pair.
    """
    spoken = np.flatnonzero((texts.str.strip_chars() != "").to_numpy())
    text_rows = vectors.codes(texts.gather(pl.Series(spoken)))
    value_rows = vectors.codes(concepts.terms["value"])
    rows, members = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for _, of_field in concepts.terms.with_row_index().group_by("field", maintain_order=True):
        candidates = of_field["index"].to_numpy().astype(np.int64)
        among = value_rows[candidates]
        for first in range(0, len(spoken), _TEXTS_PER_BLOCK):
            block = text_rows[first : first + _TEXTS_PER_BLOCK]
            row, column = _possible(vectors, block, among, options)
            cosine = cosine_pairs(vectors.matrix, block[row], among[column])
            kept = _nearest(row, column, cosine, options)
            rows.append(spoken[first + row[kept]])
            members.append(candidates[column[kept]])
    return as_sets(np.concatenate(rows), np.concatenate(members), len(texts))


def _possible(
    vectors: "VectorView", texts: Codes, values: Codes, options: PreferenceShift
) -> tuple[Indices, Indices]:
    """Return pairs that may be among the nearest, by a search whose cosines are off by little.

    Where the last of the values that were asked for could still be among them, more are asked for.
    """
    top = min(options.embed_top, len(values))
    rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    left, asked = np.arange(len(texts)), top + _SPARE
    while len(left):
        asked = min(asked, len(values))
        found, cosines = vectors.nearest(texts[left], values, asked)
        floor = np.maximum(cosines[:, top - 1], options.embed_threshold) - _MARGIN
        cut = (cosines[:, -1] >= floor) & (asked < len(values))
        place, rank = np.nonzero((cosines >= floor[:, None]) & ~cut[:, None])
        rows.append(left[place])
        columns.append(found[place, rank])
        left, asked = left[cut], asked * _MORE
    return np.concatenate(rows), np.concatenate(columns)


def _nearest(
    row: Indices, column: Indices, cosine: Float64Array, options: PreferenceShift
) -> Indices:
    order = np.lexsort((column, -cosine, row))
    rank = place_in_group(row[order])
    chosen = (rank < options.embed_top) & (cosine[order] >= options.embed_threshold)
    found: Indices = order[chosen]
    return found


def consecutive_cosines(texts: pl.Series, rows: Indices, vectors: "VectorView") -> Float64Array:
    """Return the cosine of each of these texts with the one before it.

    Parameters
    ----------
    texts
        The user's texts of all turns.
    rows
        Turns, none of them the first; float64 (rows,) comes back.
    vectors
        Vectors of these texts and of those before them.
    """
    if not len(rows):
        return np.zeros(0)
    earlier = vectors.codes(texts.gather(pl.Series(rows - 1)))
    later = vectors.codes(texts.gather(pl.Series(rows)))
    cosines: Float64Array = cosine_pairs(vectors.matrix, earlier, later)
    return cosines


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
            # terms are in the order of field=value, so a field's are together
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
