"""What is compared by vectors: texts with values (extraction), texts with texts (segments)."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import cosine_pairs

from fastscore.suites.base import Events
from fastscore.suites.columns import place_in_group
from fastscore.suites.preference_shift.catalogue import load_catalogue
from fastscore.suites.preference_shift.concepts import Concepts, Sets, as_sets, concepts_of
from fastscore.suites.preference_shift.options import PreferenceShiftOptions
from fastscore.suites.preference_shift.topics import joined_topics

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

Indices = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

_TEXTS_PER_BLOCK = 1024
_MARGIN = 1e-4
"""Far more than a matrix product of unit rows in float32 can be off by."""


def texts_to_embed(events: Events, options: PreferenceShiftOptions) -> pl.Series:
    """Return the distinct texts that need a vector with these options.

    For the extractor ``embed`` all texts and all values; for segments the user's texts in
    conversations of several turns without shift metadata.
    """
    turns, dialogues = events.frames["turns"], events.frames["dialogues"]
    parts = [pl.Series("text", [], dtype=pl.String)]
    if options.extract == "embed":
        concepts = concepts_of(load_catalogue(options.catalogue), options)
        said = [turns["user_text"], turns["system_text"], events.frames["gold"]["text"]]
        parts += [*said, concepts.terms["value"]]
    if options.is_legacy:
        said = [turns["user_text"], turns["system_text"]]
        parts += [*said, *map(joined_topics, said)]
    elif options.extract != "embed" and options.segments != "metadata":
        several = turns["dialogue_row"].is_duplicated()
        without = ~dialogues["has_shift_metadata"].gather(turns["dialogue_row"])
        parts.append(turns["user_text"].filter(several & without))
    return pl.concat([part.rename("text") for part in parts]).unique(maintain_order=True)


def nearest_concepts(
    texts: pl.Series, concepts: Concepts, vectors: "VectorView", options: PreferenceShiftOptions
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
        first wins. A set depends on its text alone: products over whole blocks choose
        candidates with a margin, and the cosines that decide are computed pair by pair.
    """
    spoken = np.flatnonzero((texts.str.strip_chars() != "").to_numpy())
    text_rows = vectors.codes(texts.gather(pl.Series(spoken)))
    value_rows = vectors.codes(concepts.terms["value"])
    rows, members = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for _, of_field in concepts.terms.with_row_index().group_by("field", maintain_order=True):
        candidates = of_field["index"].to_numpy().astype(np.int64)
        matrix = vectors.matrix[value_rows[candidates]]
        for first in range(0, len(spoken), _TEXTS_PER_BLOCK):
            block = text_rows[first : first + _TEXTS_PER_BLOCK]
            row, column = _possible(vectors.matrix[block] @ matrix.T, options)
            cosine = cosine_pairs(vectors.matrix, block[row], value_rows[candidates[column]])
            kept = _nearest(row, column, cosine, options)
            rows.append(spoken[first + row[kept]])
            members.append(candidates[column[kept]])
    return as_sets(np.concatenate(rows), np.concatenate(members), len(texts))


def _possible(
    products: npt.NDArray[np.float32], options: PreferenceShiftOptions
) -> tuple[Indices, Indices]:
    """Return pairs that may be among the nearest, by products that may be off by little."""
    top = min(options.embed_top, products.shape[1])
    least = np.partition(products, products.shape[1] - top, axis=1)[:, products.shape[1] - top]
    floor = np.maximum(least, options.embed_threshold) - _MARGIN
    row, column = np.nonzero(products >= floor[:, None])
    return row, column


def _nearest(
    row: Indices, column: Indices, cosine: Reals, options: PreferenceShiftOptions
) -> Indices:
    order = np.lexsort((column, -cosine, row))
    rank = place_in_group(row[order])
    chosen = (rank < options.embed_top) & (cosine[order] >= options.embed_threshold)
    found: Indices = order[chosen]
    return found


def consecutive_cosines(texts: pl.Series, rows: Indices, vectors: "VectorView") -> Reals:
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
    cosines: Reals = cosine_pairs(vectors.matrix, earlier, later)
    return cosines
