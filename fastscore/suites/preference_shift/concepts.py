"""Concepts of a catalogue under some options, columns of sets of them, and topic words of a text.

A concept is a pair of a field and a normalised value, written ``field=value``. Concepts are
numbered in the order of what is written, so that a sorted set of numbers reads as a sorted list.

This is keyword spotting, not topic modelling, and is offered only for segments.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices
from fastscore_kernels import distinct_counts_ragged

from fastscore.suites.columns import list_column
from fastscore.suites.grouping import factorize
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
    """The concepts that texts are searched for."""

    # one row a concept, in the order of `concept`: `concept` (`field=value`), `field`, `value`,
    # `is_plot` and `n_items`
    terms: pl.DataFrame
    idf: npt.NDArray[np.float64]  # `ln((1 + N) / (1 + df)) + 1` of each, float64

    def __len__(self) -> int:
        return self.terms.height

    def names(self, sets: Sets) -> pl.Series:
        """Return sets of concepts as lists of what they are written as."""
        values, offsets = sets
        return list_column(self.terms["concept"].gather(pl.Series(values)), offsets)


def concepts_of(catalogue: Catalogue, options: PreferenceShift) -> Concepts:
    """Give numbers to the concepts of the fields that the options name."""
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
    """Return the inverse document frequency of every concept that the options know."""
    concepts = concepts_of(load_catalogue(options.catalogue), options)
    return concepts.terms.select("concept", pl.Series("idf", concepts.idf))


def sets_of(pairs: pl.DataFrame, n_rows: int) -> Sets:
    """Make a column of sets of ``row`` and ``concept``."""
    return as_sets(pairs["row"].to_numpy(), pairs["concept"].to_numpy(), n_rows)


def as_sets(rows: Indices, concepts: Indices, n_rows: int) -> Sets:
    """Make a column of sets of pairs of a row and a concept, in any order and with repeats."""
    if (rows[1:] < rows[:-1]).any():
        order = np.argsort(rows, kind="stable")
        rows, concepts = rows[order], concepts[order]
    offsets = np.searchsorted(rows, np.arange(n_rows + 1))
    values, _, bounds = distinct_counts_ragged(concepts.astype(np.int32), offsets)
    return values, bounds


def pairs_of(sets: Sets) -> pl.DataFrame:
    """Return the pairs of a row and a concept of a column of sets."""
    rows = np.repeat(np.arange(len(sets[1]) - 1), sizes_of(sets))
    return pl.DataFrame({"row": rows, "concept": sets[0]}).cast(pl.Int64)


def gather_sets(sets: Sets, rows: Indices) -> Sets:
    """Return the sets of these rows, in this order and with repeats."""
    values, offsets = sets
    sizes = offsets[rows + 1] - offsets[rows]
    found = np.concatenate(([0], np.cumsum(sizes)))
    places = np.arange(found[-1]) + np.repeat(offsets[rows] - found[:-1], sizes)
    return values[places], found


class Bags(NamedTuple):
    """A column of bags: the distinct members of each, ascending, and how often it has them."""

    values: npt.NDArray[np.int32]
    counts: Indices
    offsets: Indices

    @property
    def sets(self) -> Sets:
        """The members without their counts."""
        return self.values, self.offsets

    @property
    def sizes(self) -> Indices:
        """How many distinct members each has."""
        return sizes_of(self.sets)


def unite_sets(sets: Sets, owners: pl.Series, n_owners: int) -> Bags:
    """Put the sets of each owner in one bag; owners are ascending row numbers."""
    values, offsets = sets
    first_sets = np.searchsorted(owners.to_numpy(), np.arange(n_owners + 1))
    return Bags(*distinct_counts_ragged(values, offsets[first_sets]))


def sizes_of(sets: Sets) -> Indices:
    """Return how many members each set has."""
    return np.diff(sets[1])


MOST_TOPICS = 5
STOP_WORDS = frozenset(
    """
    a about after an and are as at be been before being between by can could did do does during for
    from had has have in into is like may might more most must no nor not of on or over should that
    the these this those to very was were will with would
    """.split()  # noqa: SIM905
)
HINTS = (
    "romance",
    "horror",
    "sci-fi",
    "science fiction",
    "drama",
    "comedy",
    "thriller",
    "actor",
    "actors",
    "cast",
    "director",
    "plot",
    "ending",
    "mood",
    "emotional",
    "gore",
    "space",
    "aliens",
    "ghost",
    "jump scare",
    "recommendation",
    "movie",
    "film",
)
GENERIC = (
    "recommendation",
    "conversation",
    "system",
    "response",
    "chat",
    "user",
    "talk",
    "suggestion",
    "question",
    "answer",
    "film",
    "movie",
    "thing",
    "stuff",
)
_SCORED = "love|fear|sad|happy|romantic|tense|dark|space|sci|ghost|drama|emot"
_KEPT = "love|fear|sad|happy|romantic|tense|dark|futur|drama|emot|space|ghost|sci"
_BONUS = 2
_HINT_PATTERN = "|".join(re.escape(hint) for hint in HINTS)


def topic_sets(texts: pl.Series) -> Sets:
    """Return a set of topic words for each text.

    A word scores one for each time it occurs, two more if it is a hint and two if it has a
    stem of feeling or setting; of the five that score best (the earlier on a draw) those stay that
    contain a hint or one of these stems and are not generic.
    """
    codes, once = factorize(texts)
    words = _topic_words(once)
    numbers, _ = factorize(words["word"])
    sets = as_sets(words["text"].to_numpy(), numbers, len(once))
    return gather_sets(sets, codes)


def joined_topics(texts: pl.Series) -> pl.Series:
    """Return the topic words of each text, best first, with spaces between; empty for none."""
    codes, once = factorize(texts)
    joined = _topic_words(once).group_by("text").agg(pl.col("word").str.join(" "))
    numbers = pl.DataFrame({"text": range(len(once))}, schema={"text": pl.Int64})
    found = numbers.join(joined, on="text", how="left", maintain_order="left")
    return found["word"].fill_null("").gather(pl.Series(codes))


def _topic_words(texts: pl.Series) -> pl.DataFrame:
    """Return the topic words of each text, best first: ``text`` (its number) and ``word``."""
    return _best_words(texts).filter(
        pl.col("word").str.len_chars() >= 2,
        ~pl.col("word").is_in(GENERIC),
        pl.col("word").str.contains(f"{_HINT_PATTERN}|{_KEPT}"),
    )


def _best_words(texts: pl.Series) -> pl.DataFrame:
    """Return the words of each text that score best: ``text`` (its number) and ``word``."""
    cleaned = pl.col("word").str.to_lowercase().str.replace_all(r"[^a-z0-9\s-]", " ")
    return (
        pl.DataFrame(
            {"text": range(len(texts)), "word": texts}, schema_overrides={"text": pl.Int64}
        )
        .with_columns(cleaned.str.extract_all(r"\S+"))
        .explode("word")
        .drop_nulls("word")
        .filter(~pl.col("word").is_in(STOP_WORDS))
        .with_row_index("place")
        .group_by("text", "word")
        .agg(pl.len().cast(pl.Int64).alias("score"), pl.col("place").min())
        .with_columns(
            pl.col("score")
            + _BONUS * pl.col("word").is_in(HINTS).cast(pl.Int64)
            + _BONUS * pl.col("word").str.contains(_SCORED).cast(pl.Int64)
        )
        .sort("text", "score", "place", descending=[False, True, False])
        .filter(pl.int_range(pl.len()).over("text") < MOST_TOPICS)
    )
