"""From texts to sets of concepts: each distinct text once, by the extractor of the options."""

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from fastscore.suites.grouping import factorize
from fastscore.suites.preference_shift.aliases import read_aliases
from fastscore.suites.preference_shift.annotated import annotated_concepts
from fastscore.suites.preference_shift.catalogue import load_catalogue
from fastscore.suites.preference_shift.concepts import (
    Concepts,
    Sets,
    as_sets,
    concepts_of,
    gather_sets,
)
from fastscore.suites.preference_shift.matching import Matcher, matcher_of
from fastscore.suites.preference_shift.nearness import concepts_by_ngrams, nearest_concepts
from fastscore.suites.preference_shift.options import PreferenceShift

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


@dataclass(frozen=True, slots=True)
class Extracted:
    """Columns of sets of concepts of a shard.

    Parameters
    ----------
    user, system
        E(U) and E(S) of each turn.
    gold
        The concepts of each turn's gold constraints; empty where it has none.
    """

    user: Sets
    system: Sets
    gold: Sets


def extract_concepts(
    turns: pl.DataFrame,
    gold: pl.DataFrame,
    vectors: "VectorView",
    options: PreferenceShift,
) -> tuple[Concepts, Extracted]:
    """Extract the concepts of both texts of each turn and of its gold constraints.

    Parameters
    ----------
    turns, gold
        The frames of `read_logs`.
    vectors
        Vectors of texts and values, for the extractor ``embed``.
    options
        Which concepts there are, and how they are found.
    """
    concepts, matcher = prepared_matcher(options)
    said = pl.concat([turns["user_text"], turns["system_text"], gold["text"]])
    codes, texts = factorize(said)
    if options.extract == "embed":
        found = nearest_concepts(texts, concepts, vectors, options)
    elif options.extract == "ngrams":
        found = concepts_by_ngrams(texts, concepts, options)
        if options.plot_keywords:
            found = _with_plot_keywords(found, matcher.extract(texts), concepts)
    elif options.extract == "llm":
        matched = matcher.extract(texts)
        found = annotated_concepts(texts, matched, concepts, options)
        if options.plot_keywords:
            found = _with_plot_keywords(found, matched, concepts)
    else:
        found = matcher.extract(texts)
    height = turns.height
    return concepts, Extracted(
        gather_sets(found, codes[:height]),
        gather_sets(found, codes[height : 2 * height]),
        _gold_sets(gather_sets(found, codes[2 * height :]), gold, concepts, height),
    )


def _with_plot_keywords(found: Sets, matched: Sets, concepts: Concepts) -> Sets:
    """Add to each set the plot keywords among what was matched."""
    members, offsets = matched
    n_texts = len(offsets) - 1
    is_plot = concepts.terms["is_plot"].to_numpy()[members]
    rows = [np.repeat(np.arange(n_texts), np.diff(sets[1])) for sets in (found, matched)]
    return as_sets(
        np.concatenate((rows[0], rows[1][is_plot])),
        np.concatenate((found[0], members[is_plot])).astype(np.int64),
        n_texts,
    )


def _gold_sets(values: Sets, gold: pl.DataFrame, concepts: Concepts, n_turns: int) -> Sets:
    """Unite what the constraints' values yield in their own field, by turn."""
    members, offsets = values
    owner = np.repeat(np.arange(gold.height), np.diff(offsets))
    of_field = (
        concepts.terms["field"].gather(pl.Series(members)) == gold["field"].gather(pl.Series(owner))
    ).to_numpy()
    rows = gold["turn_row"].to_numpy()[owner[of_field]]
    return as_sets(rows, members[of_field].astype(np.int64), n_turns)


_lock = threading.Lock()
_latest: list[tuple[tuple[object, ...], Concepts, Matcher]] = []


def prepared_matcher(options: PreferenceShift) -> tuple[Concepts, Matcher]:
    """Return the concepts of the options and their automaton, built once for all shards.

    Raises
    ------
    UsageError
        The catalogue or the aliases cannot be read, or it has none of the fields.
    """
    catalogue = load_catalogue(options.catalogue)
    aliases = read_aliases(options.aliases, catalogue)
    key = (
        catalogue.digest,
        options.field_names,
        options.plot_keywords,
        options.plot_prefix,
        options.match,
        aliases.rows(),
    )
    with _lock:
        if not _latest or _latest[0][0] != key:
            concepts = concepts_of(catalogue, options)
            matcher = matcher_of(concepts, aliases, words=options.match == "word")
            _latest[:] = [(key, concepts, matcher)]
        return _latest[0][1:]
