"""Concepts of a catalogue, sets of them, and from texts to sets: each distinct text once.

A concept is a pair of a field and a normalised value, written ``field=value``. Concepts are
numbered in the order of what is written, so that a sorted set of numbers reads as a sorted list.
Texts are lowered by Python. Thousands are joined to one string, by a separator that is no letter
and that no value contains. Matches are positions in the array of its code points.

Aliases are other spellings of the catalogue's values: an alias adds to what is found and removes
nothing. Annotations are concepts that a chat model, or a person, has read from texts. A line of
their file has a ``text`` and its ``concepts``, lists of values by field as they were written.
A text without a catalogue value gets the concepts of its words, as published.
"""

import difflib
import re
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
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

from fastscore.errors import UsageError, counted, did_you_mean
from fastscore.settings.options import read_option_file
from fastscore.suites.columns import list_column
from fastscore.suites.grouping import factorize, offsets_of, place_in_group, take
from fastscore.suites.preference_shift.catalogue import (
    PLOT,
    YEAR,
    Catalogue,
    Record,
    check_fields,
    inverse_document_frequency,
    load_catalogue,
    normalise,
    read_csv,
)
from fastscore.suites.preference_shift.options import USUAL_FIELDS, PreferenceShift

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

Sets = tuple[npt.NDArray[np.int32], Indices]
"""A column of sets: row i has ``values[offsets[i]:offsets[i + 1]]``, strictly ascending."""


@dataclass(frozen=True, eq=False)
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
    check_fields(catalogue, options.field_names, USUAL_FIELDS)
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
    with _lock:
        rows, index = _indexed(concepts)

    def find(part: pl.Series) -> tuple[Indices, Indices]:
        nearest = nearest_by_character_ngrams(
            index, *_spaced(part), top=options.embed_top, least=options.embed_threshold, threads=1
        )
        row, place = np.nonzero(nearest >= 0)
        return row, rows[nearest[row, place]]

    return find_in_parts(texts, find)


_lock = threading.Lock()


@lru_cache(1)  # once for all shards
def _indexed(concepts: Concepts) -> tuple[Indices, CharacterNgrams]:
    """Return the rows of the candidates and their index."""
    terms = concepts.terms.with_row_index("row").filter(~C("is_plot"))
    # terms are in the order of field=value, so a field's are together
    sizes = terms.group_by("field", maintain_order=True).len()["len"].to_numpy()
    index = index_character_ngrams(*_spaced(terms["value"]), offsets_of(sizes))
    return terms["row"].cast(pl.Int64).to_numpy(), index


def _spaced(texts: pl.Series) -> tuple[CodePoints, Indices]:
    """Return the code points of texts in lower case with one kind of space, and its places."""
    if texts.is_empty():
        return np.array([ord(_SPACE)], np.uint32), np.zeros(1, np.int64)
    _, points, marks = join_lower(texts, _SPACE)
    is_space = _IS_SPACE[np.minimum(points, _BEYOND_SPACES)]
    return np.where(is_space, np.uint32(ord(_SPACE)), points), marks


def extract_concepts(
    turns: pl.DataFrame, gold: pl.DataFrame, vectors: "VectorView", options: PreferenceShift
) -> tuple[Concepts, Sets, Sets, Sets]:
    """Extract the concepts of both texts of each turn and of its gold constraints.

    Returns the concepts, then E(U), E(S) and the gold ones of each turn, empty if it has none.
    """
    concepts, matcher = prepared_matcher(options)
    written = pl.concat([turns["user_text"], turns["system_text"], gold["text"]])
    codes, texts = factorize(written)
    if options.extract == "embed":
        found = nearest_concepts(texts, concepts, vectors, options)
    elif options.extract == "ngrams":
        found = concepts_by_ngrams(texts, concepts, options)
    else:
        found = matcher.extract(texts)
    if options.extract == "llm":
        found = annotated_concepts(texts, found, concepts, options)
    if options.plot_keywords and options.extract in ("ngrams", "llm"):
        words = pairs_of(matcher.extract(texts))
        plots = words.filter(concepts.terms["is_plot"].gather(words["concept"]))
        found = sets_of(pl.concat([pairs_of(found), plots]), len(texts))
    n_turns = turns.height
    user, system = codes[:n_turns], codes[n_turns : 2 * n_turns]
    # the constraints of a turn are what their values yield in their own field
    pairs = pairs_of(gather_sets(found, codes[2 * n_turns :]))
    of_value = gold.select(C("turn_row", "field").gather(pairs["row"]))
    of_field = concepts.terms["field"].gather(pairs["concept"]) == of_value["field"]
    wanted = sets_of(pairs.with_columns(row=of_value["turn_row"]).filter(of_field), n_turns)
    return concepts, gather_sets(found, user), gather_sets(found, system), wanted


_prepared: list[tuple[tuple[object, ...], Concepts, Matcher]] = []


def prepared_matcher(options: PreferenceShift) -> tuple[Concepts, Matcher]:
    """Return the concepts of the options and their automaton, built once for all shards."""
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
        if not _prepared or _prepared[0][0] != key:
            concepts = concepts_of(catalogue, options)
            matcher = matcher_of(concepts, aliases, words=options.match == "word")
            _prepared[:] = [(key, concepts, matcher)]
        return _prepared[0][1:]


SPELLING, VALUE, FIELD = "spelling", "value", "field"
ALIAS_SCHEMA = {SPELLING: pl.String(), FIELD: pl.String(), VALUE: pl.String()}


def read_aliases(path: str, catalogue: Catalogue) -> pl.DataFrame:
    """Read a table of aliases."""
    if not path:
        return pl.DataFrame(schema=ALIAS_SCHEMA)
    if PurePath(path).suffix.lower() != ".csv":
        raise UsageError(f"aliases {path}: expected a CSV file with spelling, value and field.")
    try:
        content = read_option_file(path)
    except OSError as error:
        raise UsageError(f"aliases {path}: cannot be read: {error.strerror}.") from error
    values = {
        name: set(terms["value"])
        for (name,), terms in catalogue.terms.group_by("field", maintain_order=True)
        if name != PLOT
    }
    records = list(read_csv(path, content))
    if not records:
        raise UsageError(f"{path}: holds no alias, expected a header and at least one line.")
    rows = [row for record in records for row in _aliases(path, record, values)]
    return pl.DataFrame(rows, schema=ALIAS_SCHEMA, orient="row").unique(maintain_order=True)


def _aliases(
    path: str, record: Record, values: dict[str, set[str]]
) -> Iterator[tuple[str, str, str]]:
    place = f"{path}: {record.place}"
    unknown = record.fields.keys() - ALIAS_SCHEMA.keys()
    if unknown or not {SPELLING, VALUE} <= record.fields.keys():
        found = ", ".join(record.fields)
        raise UsageError(
            f"{path}: line 1: the columns are {found}, expected {SPELLING}, {VALUE} and perhaps "
            f"{FIELD}.",
            did_you_mean(min(unknown), ALIAS_SCHEMA) if unknown else None,
        )
    field = str(record.fields.get(FIELD, "")).strip()
    if field and field not in values:
        raise UsageError(
            f"{place}: {FIELD} is {field!r}, expected a field of the catalogue or nothing.",
            did_you_mean(field, values),
        )
    spellings = [text.lower() for text in _texts(place, record, SPELLING)]
    for value in _texts(place, record, VALUE):
        # a year's digits are in other values, too
        is_year = value.isascii() and value.isdigit()
        names = [field] if field else [name for name in values if name != YEAR or is_year]
        of_fields = [
            (name, normalise(name, value))
            for name in names
            if normalise(name, value) in values[name]
        ]
        if not of_fields:
            where = f"the catalogue's field {field!r}" if field else "a field of the catalogue"
            known = sorted(values[field] if field else set().union(*values.values()))
            near = difflib.get_close_matches(value.lower(), known, n=1, cutoff=0.5)
            close = f"Did you mean {near[0]!r}? " if near else ""
            raise UsageError(
                f"{place}: {VALUE} is {value!r}, expected a value of {where}.",
                f"{close}`fastscore catalogue show` lists the values.",
            )
        for spelling in spellings:
            for name, normal in of_fields:
                yield spelling, name, normal


def _texts(place: str, record: Record, name: str) -> Iterator[str]:
    found = record.fields[name]
    for cell in found if isinstance(found, list) else [found]:
        if not isinstance(cell, str) or not cell.strip():
            raise UsageError(f"{place}: {name} is {cell!r}, expected a text.")
        yield cell.strip()


_SCHEMA = {
    "text": pl.String(),
    "concepts": pl.List(pl.Struct({"field": pl.String(), "value": pl.String()})),
    "fields": pl.List(pl.String()),
}


def read_annotations(path: str) -> pl.DataFrame:
    """Read a file of annotations; once for all shards."""
    try:
        state = Path(path).stat()
        with _lock:
            return _read_annotations(path, (state.st_mtime_ns, state.st_size))
    except OSError as error:
        raise UsageError(f"annotations {path}: cannot be read: {error.strerror}.") from error


@lru_cache(1)
def _read_annotations(path: str, state: tuple[int, int]) -> pl.DataFrame:
    rows = list(_parse(path, read_option_file(path)))
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return frame.unique("text", keep="first", maintain_order=True)


def _parse(path: str, content: bytes) -> Iterator[tuple[str, list[dict[str, str]], list[str]]]:
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = orjson.loads(line)
            text, concepts = found["text"], found["concepts"]
            pairs = [(name, value) for name, values in concepts.items() for value in values]
            is_sound = all(isinstance(each, str) for each in (text, *(value for _, value in pairs)))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            is_sound = False
        if not is_sound:
            raise UsageError(
                f"annotations {path}:{number}: no annotation, expected an object with "
                "a text and, under 'concepts', lists of texts by field."
            )
        yield text, [{"field": name, "value": value} for name, value in pairs], [*concepts]


def annotated_concepts(
    texts: pl.Series, matched: Sets, concepts: Concepts, options: PreferenceShift
) -> Sets:
    """Return the concepts of texts by the annotations of the options."""
    given = read_annotations(options.annotations)
    fields = given["fields"].explode().drop_nulls().unique().sort().to_list()
    there = set(concepts.terms["field"].unique())
    lacking = [name for name in options.field_names if name in there.difference(fields)]
    if fields and lacking:
        raise UsageError(
            f"annotations {options.annotations}: has the fields {', '.join(fields)}, and not "
            f"{', '.join(lacking)}.",
            "Annotate these logs: `fastscore annotate concepts`, with the same fields.",
        )
    rows = (
        texts.to_frame("text")
        .with_row_index("row")
        .join(given.with_columns(known=True), on="text", how="left", maintain_order="left")
    )
    unknown = rows.filter(C("known").is_null() & (C("text").str.strip_chars() != ""))
    if unknown.height:
        raise UsageError(
            f"annotations {options.annotations}: has no line for "
            f"{counted(unknown.height, 'texts')} of the logs, the first "
            f"{unknown['text'][0][:60]!r}.",
            "Annotate these logs: `fastscore annotate concepts`, with the same merge_speakers.",
        )
    written = (
        rows.select("row", "concepts").explode("concepts").drop_nulls("concepts").unnest("concepts")
    )
    meanings = _meanings(written.select("field", "value").unique(), concepts, options)
    pairs = written.join(meanings, on=["field", "value"], how="inner")
    found = pairs.select("row", "concept").cast(pl.Int64)
    # a text without a value of the catalogue has the concepts of its words
    others = pairs_of(matched).join(found, on="row", how="anti")
    return sets_of(pl.concat([found, others]), len(texts))


def _meanings(pairs: pl.DataFrame, concepts: Concepts, options: PreferenceShift) -> pl.DataFrame:
    """Return the concept of each pair of a field and a written value.

    A value that is not in the catalogue means the first value of its field, in the catalogue's
    order, that contains it or is contained in it, or else nothing.
    """
    terms = concepts.terms.with_row_index("number").filter(~C("is_plot"))
    numbers = {(name, value): n for name, value, n in terms["field", "value", "number"].rows()}
    catalogue = load_catalogue(options.catalogue)
    order = {
        name: catalogue.field_terms(name)["value"].to_list() for name in terms["field"].unique()
    }
    found = []
    for name, value in pairs.iter_rows():
        normal = normalise(name, value)
        near = (other for other in order.get(name, ()) if normal in other or other in normal)
        meant = normal if (name, normal) in numbers or not normal else next(near, "")
        if (name, meant) in numbers:
            found.append((name, value, numbers[name, meant]))
    schema: Mapping[str, Any] = {"field": pl.String, "value": pl.String, "concept": pl.Int64}
    return pl.DataFrame(found, schema=schema, orient="row")
