"""The concepts of a catalogue under some options, and columns of sets of them.

A concept is a pair of a field and a normalised value, written ``field=value``. Concepts are
numbered in the order of what is written, so that a sorted set of numbers reads as a sorted list.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices
from fastscore_kernels import distinct_counts_ragged

from fastscore.suites.columns import list_column
from fastscore.suites.preference_shift.catalogue import (
    PLOT,
    Catalogue,
    check_fields,
    inverse_document_frequency,
    load_catalogue,
)
from fastscore.suites.preference_shift.options import ATTRIBUTES, PreferenceShift

Sets = tuple[npt.NDArray[np.int32], Indices]
"""A column of sets: row i has ``values[offsets[i]:offsets[i + 1]]``, strictly ascending."""


@dataclass(frozen=True, slots=True)
class Concepts:
    """The concepts that texts are searched for.

    Parameters
    ----------
    terms
        One row a concept, in the order of ``concept``: ``concept`` (``field=value``), ``field``,
        ``value``, ``is_plot`` and ``n_items``.
    idf
        ``ln((1 + N) / (1 + df)) + 1`` of each, float64.
    """

    terms: pl.DataFrame
    idf: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return self.terms.height

    def names(self, sets: Sets) -> pl.Series:
        """Return sets of concepts as lists of what they are written as."""
        values, offsets = sets
        return list_column(self.terms["concept"].gather(pl.Series(values)), offsets)


def concepts_of(catalogue: Catalogue, options: PreferenceShift) -> Concepts:
    """Give numbers to the concepts of the fields that the options name.

    Raises
    ------
    UsageError
        The catalogue has none of the fields, or one that cannot be used.
    """
    check_fields(catalogue, options.field_names, (*ATTRIBUTES, "name"))
    names = (*options.field_names, *((PLOT,) if options.plot_keywords else ()))
    written = {name: options.plot_prefix if name == PLOT else name for name in names}
    terms = (
        pl.concat([catalogue.field_terms(name) for name in names])
        .select(
            pl.concat_str(pl.col("field").replace(written), pl.col("value"), separator="=").alias(
                "concept"
            ),
            "field",
            "value",
            (pl.col("field") == PLOT).alias("is_plot"),
            "n_items",
        )
        .sort("concept")
    )
    # the logarithm of Python's math, as published: vectorised ones differ in the last bit
    idf = {
        having: inverse_document_frequency(len(catalogue), having)
        for having in terms["n_items"].unique().to_list()
    }
    weights = [idf[having] for having in terms["n_items"].to_list()]
    return Concepts(terms, np.array(weights, np.float64))


def concept_idf(options: PreferenceShift) -> pl.DataFrame:
    """Return the inverse document frequency of every concept that the options know.

    Returns
    -------
    pl.DataFrame
        ``concept`` (``field=value``, as in the tables) and ``idf``, sorted by concept.

    Raises
    ------
    UsageError
        The catalogue cannot be read, or has none of the fields.
    """
    concepts = concepts_of(load_catalogue(options.catalogue), options)
    return concepts.terms.select("concept", pl.Series("idf", concepts.idf))


def as_sets(rows: Indices, concepts: Indices, n_rows: int) -> Sets:
    """Make a column of sets of pairs of a row and a concept, in any order and with repeats."""
    if (rows[1:] < rows[:-1]).any():
        order = np.argsort(rows, kind="stable")
        rows, concepts = rows[order], concepts[order]
    offsets = np.searchsorted(rows, np.arange(n_rows + 1))
    values, _, bounds = distinct_counts_ragged(concepts.astype(np.int32), offsets)
    return values, bounds


def gather_sets(sets: Sets, rows: Indices) -> Sets:
    """Return the sets of these rows, in this order and with repeats."""
    values, offsets = sets
    sizes = offsets[rows + 1] - offsets[rows]
    found = np.concatenate(([0], np.cumsum(sizes)))
    places = np.arange(found[-1]) + np.repeat(offsets[rows] - found[:-1], sizes)
    return values[places], found


def sizes_of(sets: Sets) -> Indices:
    """Return how many members each set has."""
    return np.diff(sets[1])
