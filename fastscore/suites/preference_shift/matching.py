"""Values in texts: lexical matches, nearest values by vectors, and nearest by character n-grams.

Texts are lowered by Python and joined, thousands in one string. The separator is in no value and is
no letter, so no text changes because of its neighbour. Matches are places in one array of code
points. Which text, whether a word is cut, and which keyword comes first is array arithmetic.

By vectors, texts are compared with values (extraction) and with texts (segments). By n-grams,
TF-IDF over n-grams of 3 to 5 characters within words is fitted on the values of each field. The
values of highest cosine count, from a threshold on. Exact: see `fastscore_kernels`.
"""

import threading
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices, Mask
from fastscore_kernels import (
    CharacterNgrams,
    cosine_pairs,
    index_character_ngrams,
    nearest_by_character_ngrams,
)

from fastscore.suites.grouping import place_in_group, take
from fastscore.suites.preference_shift.concepts import (
    Concepts,
    Sets,
    as_sets,
)
from fastscore.suites.preference_shift.options import PreferenceShift

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


CodePoints = npt.NDArray[np.uint32]

_CHARACTERS_PER_PART = 1 << 18
_GROWS = "\u0130"
"""The one character whose lower case is two code points."""


def cut_in_parts(texts: pl.Series) -> list[pl.Series]:
    """Cut texts into parts of about as many characters as should be joined at once."""
    ends = texts.str.len_chars().cast(pl.Int64).cum_sum().to_numpy()
    marks = np.arange(_CHARACTERS_PER_PART, ends[-1] if len(ends) else 0, _CHARACTERS_PER_PART)
    edges = [0, *np.searchsorted(ends, marks).tolist(), len(texts)]
    return [texts[low:high] for low, high in pairwise(edges) if low < high]


def join_lower(texts: pl.Series, mark: str) -> tuple[str, Indices]:
    """Join texts in lower case."""
    sizes = texts.str.len_chars() + texts.str.count_matches(_GROWS, literal=True)
    marks = np.concatenate(([0], np.cumsum(sizes.cast(pl.Int64).to_numpy() + 1)))
    return f"{mark}{texts.str.join(mark).item()}{mark}".lower(), marks


def code_points(text: str) -> CodePoints:
    """Return the code points of a text, read-only."""
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


PLOT_LIMIT = 3
"""The most plot keywords of a text: the first ones, as published."""

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
        rows, concepts = [], []
        done = 0
        for part in cut_in_parts(texts):
            found, of_row = self._search(part)
            rows.append(found + done)
            concepts.append(of_row)
            done += len(part)
        return as_sets(_joined(rows), _joined(concepts), len(texts))

    def _search(self, texts: pl.Series) -> tuple[Indices, Indices]:
        """Return pairs of a text and a concept, repeats among them."""
        joined, marks = join_lower(texts, self.separator)
        matches = self.automaton.find_matches_as_indexes(joined, overlapping=True)
        flat = np.fromiter(chain.from_iterable(matches), np.int64, 3 * len(matches))
        value, start, end = flat.reshape(-1, 3).T
        points = code_points(joined)
        concept, bounds = take((self.concepts, self.offsets), value)
        match = np.repeat(np.arange(len(value)), np.diff(bounds))
        row = (np.searchsorted(marks, start) - 1)[match]
        is_plot = self.is_plot[concept]
        kept = ~is_plot
        if self.words:
            kept &= _cuts_no_word(points, start, end)[match]
        if is_plot.any():
            is_keyword = is_plot & _is_letter_run(points, start, end)[match]
            kept[_first_keywords(row, concept, start[match], is_keyword)] = True
        return row[kept], concept[kept]


def matcher_of(concepts: Concepts, aliases: pl.DataFrame, *, words: bool) -> Matcher:
    """Build the automaton of the concepts' values and their aliases."""
    from ahocorasick_rs import AhoCorasick

    named = concepts.terms.with_row_index("concept_row").select("concept_row", "field", "value")
    spelled = aliases.join(named, on=["field", "value"], how="inner")
    terms = (
        pl.concat(
            [
                named.select("value", "concept_row"),
                spelled.select(pl.col("spelling").alias("value"), "concept_row"),
            ]
        )
        .unique()
        .sort("value", "concept_row")
    )
    rows_of = terms.group_by("value", maintain_order=True).agg(pl.len())["len"].to_numpy()
    patterns = terms["value"].unique(maintain_order=True).to_list()
    return Matcher(
        automaton=AhoCorasick(patterns),
        separator=_separator(patterns),
        concepts=terms["concept_row"].cast(pl.Int64).to_numpy(),
        offsets=np.concatenate(([0], np.cumsum(rows_of, dtype=np.int64))),
        is_plot=concepts.terms["is_plot"].to_numpy(),
        words=words,
    )


def _separator(patterns: Iterable[str]) -> str:
    used = set().union(*patterns)
    codes = chain((0x0A,), range(0x20), _PRIVATE_USE)
    return next(chr(code) for code in codes if chr(code) not in used)


def _joined(parts: list[Indices]) -> Indices:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


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


def _is_letter_run(points: CodePoints, start: Indices, end: Indices) -> Mask:
    """Whether no ASCII letter is before or after: texts are in lower case."""
    letter = (points >= ord("a")) & (points <= ord("z"))
    found: Mask = ~letter[start - 1] & ~letter[end]
    return found


def _cuts_no_word(points: CodePoints, start: Indices, end: Indices) -> Mask:
    """Whether at neither edge of a match both neighbours are characters of words."""
    word = is_word_character(points)
    inside_left = word[start - 1] & word[start]
    inside_right = word[end - 1] & word[end]
    found: Mask = ~inside_left & ~inside_right
    return found


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
    kinds = _kinds[points]
    unknown = kinds == _UNKNOWN
    if unknown.any():
        for point in np.unique(points[unknown]).tolist():
            _kinds[point] = _WORD if _joins_words(point) else _OTHER
        kinds = _kinds[points]
    found: Mask = kinds == _WORD
    return found


def _joins_words(point: int) -> bool:
    category = unicodedata.category(chr(point))
    if category[0] not in "LMN" and category != "Pc":
        return False
    return not any(low <= point <= high for low, high in _UNSPACED)


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
    """Return the cosine of each of these texts with the one before it."""
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
    """Find for each text the values of each field whose n-grams are nearest."""
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
