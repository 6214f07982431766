"""Concepts of a catalogue under some options, sets of them, and how they are found in texts.

A concept is a pair of a field and a normalised value, written ``field=value``. Concepts are
numbered in the order of what is written, so that a sorted set of numbers reads as a sorted list.
Texts are lowered by Python. Thousands are joined to one string, by a separator that is no letter
and that no value contains. Matches are positions in the array of its code points.
"""

import re
import threading
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels import (
    CharacterNgrams,
    cosine_pairs,
    distinct_counts_ragged,
    index_character_ngrams,
    nearest_by_character_ngrams,
)
from polars import col as C

from fastscore.suites.columns import list_column
from fastscore.suites.grouping import factorize, offsets_of, place_in_group, take
from fastscore.suites.preference_shift.catalogue import (
    PLOT,
    Catalogue,
    check_fields,
    inverse_document_frequency,
)
from fastscore.suites.preference_shift.options import ATTRIBUTES, PreferenceShift

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

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

    @property
    def weights(self) -> pl.DataFrame:
        """The inverse document frequency of every concept: ``concept`` and ``idf``."""
        return self.terms.select("concept", pl.Series("idf", self.idf))

    def names(self, sets: Sets) -> pl.Series:
        """Return sets of concepts as lists of what they are written as."""
        values, offsets = sets
        return list_column(self.terms["concept"][values], offsets)


def concepts_of(catalogue: Catalogue, options: PreferenceShift) -> Concepts:
    """Give numbers to the concepts of the fields that the options name."""
    check_fields(catalogue, options.field_names, (*ATTRIBUTES, "name"))
    names = (*options.field_names, *((PLOT,) if options.plot_keywords else ()))
    written = {name: options.plot_prefix if name == PLOT else name for name in names}
    terms = (
        pl.concat([catalogue.field_terms(name) for name in names])
        .select(
            "field",
            "value",
            "n_items",
            concept=pl.concat_str(C("field").replace(written), "value", separator="="),
            is_plot=C("field") == PLOT,
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
    found = offsets_of(sizes)
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
    *("romance", "horror", "sci-fi", "science fiction", "drama", "comedy", "thriller", "actor"),
    *("actors", "cast", "director", "plot", "ending", "mood", "emotional", "gore", "space"),
    *("aliens", "ghost", "jump scare", "recommendation", "movie", "film"),
)
GENERIC = (
    *("recommendation", "conversation", "system", "response", "chat", "user", "talk"),
    *("suggestion", "question", "answer", "film", "movie", "thing", "stuff"),
)
_SCORED = "love|fear|sad|happy|romantic|tense|dark|space|sci|ghost|drama|emot"
_KEPT = "love|fear|sad|happy|romantic|tense|dark|futur|drama|emot|space|ghost|sci"
_BONUS = 2
_HINT_PATTERN = "|".join(re.escape(hint) for hint in HINTS)


def topics_of(texts: pl.Series) -> tuple[Sets, pl.Series]:
    """Return the topic words of each text: a set, and joined by spaces, the best first.

    A word scores one for each time it occurs, two more if it is a hint and two if it has a
    stem of feeling or setting; of the five that score best (the earlier on a draw) those stay that
    contain a hint or one of these stems and are not generic.
    """
    codes, once = factorize(texts)
    cleaned = C("word").str.to_lowercase().str.replace_all(r"[^a-z0-9\s-]", " ")
    n_reasons = C("word").is_in(HINTS).cast(pl.Int64) + C("word").str.contains(_SCORED)
    words = (
        pl.DataFrame({"word": once})
        .with_row_index("text")
        .select(C("text").cast(pl.Int64), cleaned.str.extract_all(r"\S+"))
        .explode("word")
        .drop_nulls("word")
        .filter(~C("word").is_in(STOP_WORDS))
        .with_row_index("place")
        .group_by("text", "word")
        .agg(C("place").min(), score=pl.len().cast(pl.Int64))
        .with_columns(C("score") + _BONUS * n_reasons)
        .sort("text", "score", "place", descending=[False, True, False])
        .filter(pl.int_range(pl.len()).over("text") < MOST_TOPICS)
        .filter(
            C("word").str.len_chars() >= 2,
            ~C("word").is_in(GENERIC),
            C("word").str.contains(f"{_HINT_PATTERN}|{_KEPT}"),
        )
    )
    numbers, _ = factorize(words["word"])
    sets = as_sets(words["text"].to_numpy(), numbers, len(once))
    joined = words.group_by("text").agg(C("word").str.join(" "))
    rows = pl.DataFrame({"text": range(len(once))}, schema={"text": pl.Int64})
    found = rows.join(joined, on="text", how="left", maintain_order="left")["word"]
    return gather_sets(sets, codes), found.fill_null("")[codes]


CodePoints = npt.NDArray[np.uint32]

_CHARACTERS_PER_PART = 1 << 18
_GROWS = "\u0130"
"""The one character whose lower case is two code points."""


def find_in_parts(texts: pl.Series, find: Callable[[pl.Series], tuple[Indices, Indices]]) -> Sets:
    """Find the concepts of texts, of about as many characters at once as should be joined.

    ``find`` returns pairs of a text and a concept.
    """
    ends = texts.str.len_chars().cast(pl.Int64).cum_sum().to_numpy()
    marks = np.arange(_CHARACTERS_PER_PART, ends[-1] if len(ends) else 0, _CHARACTERS_PER_PART)
    edges = [0, *np.searchsorted(ends, marks).tolist(), len(texts)]
    rows, concepts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for low, high in pairwise(edges):
        if low < high:
            row, concept = find(texts[low:high])
            rows.append(row + low)
            concepts.append(concept)
    return as_sets(np.concatenate(rows), np.concatenate(concepts), len(texts))


def join_lower(texts: pl.Series, mark: str) -> tuple[str, CodePoints, Indices]:
    """Join texts in lower case; return also the code points, and where the marks between are."""
    sizes = texts.str.len_chars() + texts.str.count_matches(_GROWS, literal=True)
    marks = offsets_of(sizes.cast(pl.Int64).to_numpy() + 1)
    joined = f"{mark}{texts.str.join(mark).item()}{mark}".lower()
    return joined, np.frombuffer(joined.encode("utf-32-le"), np.uint32), marks


PLOT_LIMIT = 3
"""The maximum number of plot keywords of a text. The first ones are used, as published."""

_PRIVATE_USE = range(0xE000, 0xF900)


@dataclass(frozen=True, slots=True)
class Matcher:
    """Searches texts for the values of concepts."""

    automaton: Any  # finds the distinct values, by number
    separator: str  # A character of no value that joins no word
    # concepts of value v: `concepts[offsets[v]:offsets[v + 1]]`
    concepts: Indices
    offsets: Indices
    is_plot: Mask  # which concepts are plot keywords
    words: bool  # whether values match as whole words only

    def extract(self, texts: pl.Series) -> Sets:
        """Find the concepts of texts."""
        return find_in_parts(texts, self._search)

    def _search(self, texts: pl.Series) -> tuple[Indices, Indices]:
        """Return pairs of a text and a concept, repeats among them."""
        joined, points, marks = join_lower(texts, self.separator)
        matches = self.automaton.find_matches_as_indexes(joined, overlapping=True)
        flat = np.fromiter(chain.from_iterable(matches), np.int64, 3 * len(matches))
        value, start, end = flat.reshape(-1, 3).T
        concept, bounds = take((self.concepts, self.offsets), value)
        match = np.repeat(np.arange(len(value)), np.diff(bounds))
        row = (np.searchsorted(marks, start) - 1)[match]
        is_plot = self.is_plot[concept]
        kept = ~is_plot
        if self.words:
            # at neither edge of a match both neighbours are characters of words
            word = is_word_character(points)
            kept &= ~((word[start - 1] & word[start]) | (word[end - 1] & word[end]))[match]
        if is_plot.any():
            # a keyword has no letter before or after it: texts are in lower case
            letter = (points >= ord("a")) & (points <= ord("z"))
            is_keyword = is_plot & ~(letter[start - 1] | letter[end])[match]
            kept[_first_keywords(row, concept, start[match], is_keyword)] = True
        return row[kept], concept[kept]


def matcher_of(concepts: Concepts, aliases: pl.DataFrame, *, words: bool) -> Matcher:
    """Build the automaton of the concepts' values and their aliases."""
    from ahocorasick_rs import AhoCorasick

    named = concepts.terms.with_row_index("concept_row").select("concept_row", "field", "value")
    spelled = aliases.join(named, on=["field", "value"], how="inner")
    spellings = spelled.select("concept_row", value="spelling")
    values = pl.concat([named.select("concept_row", "value"), spellings])
    terms = values.unique().sort("value", "concept_row")
    rows_of = terms.group_by("value", maintain_order=True).agg(pl.len())["len"].to_numpy()
    patterns = terms["value"].unique(maintain_order=True).to_list()
    used = set().union(*patterns)
    marks = map(chr, chain((0x0A,), range(0x20), _PRIVATE_USE))
    return Matcher(
        automaton=AhoCorasick(patterns),
        separator=next(mark for mark in marks if mark not in used),
        concepts=terms["concept_row"].cast(pl.Int64).to_numpy(),
        offsets=offsets_of(rows_of),
        is_plot=concepts.terms["is_plot"].to_numpy(),
        words=words,
    )


def _first_keywords(row: Indices, concept: Indices, start: Indices, is_keyword: Mask) -> Indices:
    """Return where the first distinct keywords of each text are, in the order of the text."""
    found = (
        pl.DataFrame({"text": row, "keyword": concept, "start": start})
        .with_row_index("at")
        .filter(pl.Series(is_keyword))
        .sort("start", maintain_order=True)
        .unique(["text", "keyword"], keep="first", maintain_order=True)
        .filter(pl.int_range(pl.len()).over("text") < PLOT_LIMIT)
    )
    return found["at"].cast(pl.Int64).to_numpy()


_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
"""Scripts written without spaces: between two of their characters there is always an edge."""

_UNKNOWN, _OTHER, _WORD = 0, 1, 2
_kinds = np.zeros(0x110000, np.uint8)


def is_word_character(points: CodePoints) -> Mask:
    """Return which code points are characters of words.

    Letters, marks, numbers and connecting punctuation are (categories L, M, N, Pc), but those of
    scripts that are written without spaces are not.
    """
    for point in np.unique(points[_kinds[points] == _UNKNOWN]).tolist():
        category = unicodedata.category(chr(point))
        is_of_words = category[0] in "LMN" or category == "Pc"
        is_unspaced = any(low <= point <= high for low, high in _UNSPACED)
        _kinds[point] = _WORD if is_of_words and not is_unspaced else _OTHER
    found: Mask = _kinds[points] == _WORD
    return found


Codes = npt.NDArray[np.int32]

_TEXTS_PER_BLOCK = 1024
_SPARE, _MORE = 13, 8
"""How many values more than are wanted are asked for, and how many times as many next."""
_MARGIN = 1e-4
"""Far more than a product of unit rows in float32 can be off by."""


def nearest_concepts(
    texts: pl.Series, concepts: Concepts, vectors: "VectorView", options: PreferenceShift
) -> Sets:
    """Find for each text the values of each field that are nearest in meaning."""
    spoken = np.flatnonzero((texts.str.strip_chars() != "").to_numpy())
    text_rows = vectors.codes(texts[spoken])
    value_rows = vectors.codes(concepts.terms["value"])
    rows, members = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for _, of_field in concepts.terms.with_row_index().group_by("field", maintain_order=True):
        candidates = of_field["index"].to_numpy().astype(np.int64)
        among = value_rows[candidates]
        for first in range(0, len(spoken), _TEXTS_PER_BLOCK):
            block = text_rows[first : first + _TEXTS_PER_BLOCK]
            row, column = _possible(vectors, block, among, options)
            cosine = cosine_pairs(vectors.matrix, block[row], among[column])
            order = np.lexsort((column, -cosine, row))
            rank = place_in_group(row[order])
            is_near = (rank < options.embed_top) & (cosine[order] >= options.embed_threshold)
            kept = order[is_near]
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


_SPACE = " "
_BEYOND_SPACES = 0x3001
_IS_SPACE = np.array([chr(point).isspace() for point in range(_BEYOND_SPACES)] + [False])


def concepts_by_ngrams(texts: pl.Series, concepts: Concepts, options: PreferenceShift) -> Sets:
    """Find for each text the values of each field whose n-grams are nearest.

    TF-IDF over n-grams of 3 to 5 characters within words is fitted on the values of each field.
    """
    rows, index = _indexed(concepts)

    def find(part: pl.Series) -> tuple[Indices, Indices]:
        nearest = nearest_by_character_ngrams(
            index, *_spaced(part), top=options.embed_top, least=options.embed_threshold, threads=1
        )
        row, place = np.nonzero(nearest >= 0)
        return row, rows[nearest[row, place]]

    return find_in_parts(texts, find)


_lock = threading.Lock()
_latest: list[tuple[Concepts, Indices, CharacterNgrams]] = []


def _indexed(concepts: Concepts) -> tuple[Indices, CharacterNgrams]:
    """Return the rows of the candidates and their index, made once for all shards."""
    with _lock:
        if not _latest or _latest[0][0] is not concepts:
            terms = concepts.terms.with_row_index("row").filter(~C("is_plot"))
            # terms are in the order of field=value, so a field's are together
            sizes = terms.group_by("field", maintain_order=True).len()["len"].to_numpy()
            groups = offsets_of(sizes)
            index = index_character_ngrams(*_spaced(terms["value"]), groups)
            _latest[:] = [(concepts, terms["row"].cast(pl.Int64).to_numpy(), index)]
        return _latest[0][1:]


def _spaced(texts: pl.Series) -> tuple[CodePoints, Indices]:
    """Return the code points of texts in lower case with one kind of space, and its places."""
    if texts.is_empty():
        return np.array([ord(_SPACE)], np.uint32), np.zeros(1, np.int64)
    _, points, marks = join_lower(texts, _SPACE)
    is_space = _IS_SPACE[np.minimum(points, _BEYOND_SPACES)]
    return np.where(is_space, np.uint32(ord(_SPACE)), points), marks
