"""TF-IDF of characters: the candidates with n-grams within words most similar to a text's.

A word's n-grams are its substrings of 3 to 5 characters, with a space before and after the word. A
shorter word is one n-gram. The arithmetic is scikit-learn's, operation by operation
(``TfidfVectorizer`` with ``char_wb`` and its defaults, then ``cosine_similarity``), so that cosines
are equal to the last bit. For that, n-grams are numbered in sorted order, and every sum adds in
that order.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Float64Array, Indices
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_offsets, as_vector, read_only

from fastscore_kernels._sorting import STACK_SIZE, sort_ascending

SHORTEST, LONGEST = 3, 5
_SPACE = 32
_BITS = 21
"""Bits of a code point plus one. Zero is no character."""

_ROWS_PER_CHUNK = 256

Points = npt.NDArray[np.uint32]


class NgramTrie(NamedTuple):
    """Lookup of n-grams: by search for those of three characters, then by the next characters."""

    trigrams: npt.NDArray[np.uint64]  # n-grams of three characters, packed and ascending
    trigram_ids: Indices  # the number of each among all n-grams
    child_offsets: Indices  # for each n-gram (n-grams + 1,)
    child_points: Points  # the characters that continue it, ascending
    children: Indices  # and the resulting n-grams


class NgramPostings(NamedTuple):
    """Inverted index from n-grams to candidates."""

    entry_offsets: Indices  # for each n-gram (n-grams + 1,)
    entry_groups: Indices  # the groups whose candidates contain it
    entry_idf: Float64Array  # and its inverse document frequency there
    posting_offsets: Indices  # for each entry (entries + 1,)
    owners: npt.NDArray[np.int32]  # its candidates
    weights: Float64Array  # and the n-gram's weight in their unit vectors
    group_offsets: Indices  # the candidates of each group (groups + 1,)


@dataclass(frozen=True, slots=True)
class CharacterNgrams:
    """Index of candidates' n-grams, created by `index_character_ngrams`."""

    trie: NgramTrie
    postings: NgramPostings


def index_character_ngrams(
    points: npt.ArrayLike, offsets: npt.ArrayLike, group_offsets: npt.ArrayLike
) -> CharacterNgrams:
    """Index candidates by their n-grams.

    Parameters
    ----------
    points : uint32
        Code points of all candidates, each between two spaces; neighbours share one. All white
        space must be U+0020, and letters must be normalised.
    offsets : int64 (candidates + 1,)
        The position of the space before each candidate, and of the last space.
    group_offsets : int64 (groups + 1,)
        Groups of candidates. Each is a separate document collection.

    Returns
    -------
    CharacterNgrams
    """
    characters, places = _validate("points", points, offsets)
    groups = as_offsets("group_offsets", group_offsets, places.size - 1)
    high, low, owner = _extract_ngrams(characters, places)
    order = np.lexsort((owner, low, high))
    high, low, owner = high[order], low[order], owner[order]
    begins = np.ones(high.size, np.bool_)
    begins[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    gram = np.cumsum(begins) - 1
    high, low = high[begins], low[begins]

    first = np.ones(gram.size, np.bool_)
    first[1:] = (gram[1:] != gram[:-1]) | (owner[1:] != owner[:-1])
    at = np.flatnonzero(first)
    counts = np.diff(np.append(at, gram.size)).astype(np.float64)
    gram, owner = gram[at], owner[at]
    entry, entry_gram, entry_group, idf = _number_entries(gram, owner, groups)
    weights = counts * idf[entry]
    for _ in range(2):  # the cosine normalises again, which changes the last bits
        squares = np.bincount(owner, weights * weights, places.size - 1)
        weights = weights / np.sqrt(squares)[owner]
    postings = NgramPostings(
        read_only(np.searchsorted(entry_gram, np.arange(high.size + 1))),
        read_only(entry_group),
        read_only(idf),
        read_only(np.searchsorted(entry, np.arange(idf.size + 1))),
        read_only(owner.astype(np.int32)),
        read_only(weights),
        groups,
    )
    return CharacterNgrams(_build_trie(high, low), postings)


def nearest_by_character_ngrams(
    index: CharacterNgrams,
    points: npt.ArrayLike,
    offsets: npt.ArrayLike,
    *,
    top: int,
    least: float,
    threads: int | None = None,
) -> npt.NDArray[np.int32]:
    """Find, for each text, the candidates of each group with the highest cosines.

    Parameters
    ----------
    index
        The candidates.
    points, offsets
        The texts, in the format of the candidates.
    top
        Maximum number of candidates per group, at least 1.
    least
        Cosine threshold, above 0.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    int32 (texts, groups * top)
        For each group the candidates' rows, by descending cosine, then by row; padded with -1.
    """
    characters, places = _validate("points", points, offsets)
    if top < 1 or not least > 0.0:
        raise ValueError(
            f"`top` is {top} and `least` {least}; expected at least 1 and a number above 0"
        )
    n_groups = index.postings.group_offsets.size - 1
    out = np.full((places.size - 1, n_groups * top), -1, np.int32)
    run_chunks(
        partial(_nearest, index.trie, index.postings, (characters, places), top, float(least), out),
        places.size - 1,
        chunk=_ROWS_PER_CHUNK,
        threads=threads,
    )
    return out


def _validate(name: str, points: npt.ArrayLike, offsets: npt.ArrayLike) -> tuple[Points, Indices]:
    characters: Points = as_vector(name, points, np.uint32)
    places = as_offsets("offsets", offsets, characters.size - 1)
    if (characters[places] != _SPACE).any() or (np.diff(places) < 1).any():
        raise ValueError(f"`{name}` has no space at an offset; expected one around each text")
    return characters, places


def _extract_ngrams(
    points: Points, offsets: Indices
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], Indices]:
    """Return the n-grams of all texts, packed in two words, and the text of each.

    An n-gram belongs to one word: only its first and last characters can be spaces.
    """
    inside = points != _SPACE
    packed = points.astype(np.uint64) + np.uint64(1)
    at = np.flatnonzero(inside[1 : offsets[-1]])
    at = at[at >= offsets[0]]
    high = packed[at] << np.uint64(2 * _BITS) | packed[at + 1] << np.uint64(_BITS) | packed[at + 2]
    low = np.zeros(at.size, np.uint64)
    parts = [(high, low, at)]
    for length in range(SHORTEST + 1, LONGEST + 1):
        longer = inside[at + length - 2]
        at, high, low = at[longer], high[longer], low[longer]
        shift = np.uint64(_BITS * (LONGEST - length))
        low = low | packed[at + length - 1] << shift
        parts.append((high, low, at))
    high, low, at = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return high, low, np.searchsorted(offsets, at, side="right") - 1


def _number_entries(
    gram: Indices, owner: Indices, group_offsets: Indices
) -> tuple[Indices, Indices, Indices, Float64Array]:
    """Return the entry of each posting; and n-gram, group and IDF of each entry."""
    group = np.searchsorted(group_offsets, owner, side="right") - 1
    begins = np.ones(gram.size, np.bool_)
    begins[1:] = (gram[1:] != gram[:-1]) | (group[1:] != group[:-1])
    entry = np.cumsum(begins) - 1
    group = group[begins]
    having = np.bincount(entry).astype(np.float64)
    idf = np.diff(group_offsets).astype(np.float64)[group] + 1.0
    idf /= having + 1.0
    return entry, gram[begins], group, np.log(idf) + 1.0


def _build_trie(high: npt.NDArray[np.uint64], low: npt.NDArray[np.uint64]) -> NgramTrie:
    number = np.arange(high.size)
    last = low & np.uint64((1 << _BITS) - 1)
    is_trigram = low == 0
    is_middle = ~is_trigram & (last == 0)
    # an n-gram's prefix sorts before it, with no n-gram of that length in between
    of_trigram = np.maximum.accumulate(np.where(is_trigram, number, 0))
    of_middle = np.maximum.accumulate(np.where(is_middle, number, 0))
    longer = np.flatnonzero(~is_trigram)
    parent = np.where(is_middle, of_trigram, of_middle)[longer]
    point = np.where(is_middle, low >> np.uint64(_BITS), last)[longer] - np.uint64(1)
    order = np.argsort(parent, kind="stable")
    return NgramTrie(
        read_only(high[is_trigram]),
        read_only(np.flatnonzero(is_trigram)),
        read_only(np.searchsorted(parent[order], np.arange(high.size + 1))),
        read_only(point[order].astype(np.uint32)),
        read_only(longer[order]),
    )


@always_inlined
def _binary_search(values, low, high, value):  # type: ignore[no-untyped-def]
    """Return the index of a value in an ascending range, or -1."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        elif values[middle] > value:
            high = middle
        else:
            return middle
    return np.int64(-1)


@always_inlined
def _collect_ngrams(points, begin, end, trie, found):  # type: ignore[no-untyped-def]
    """Write the numbers of a text's known n-grams; return their count."""
    trigrams, trigram_ids, child_offsets, child_points, children = trie
    count = np.int64(0)
    bits = np.uint64(_BITS)
    one = np.uint64(1)
    for at in range(begin, end - 1):
        if points[at + 1] == _SPACE:
            continue
        key = (np.uint64(points[at]) + one) << (bits + bits)
        key |= (np.uint64(points[at + 1]) + one) << bits
        key |= np.uint64(points[at + 2]) + one
        place = _binary_search(trigrams, np.int64(0), np.int64(trigrams.size), key)
        if place < 0:
            continue
        gram = trigram_ids[place]
        found[count] = gram
        count += 1
        for step in range(2):
            if points[at + 2 + step] == _SPACE:
                break
            place = _binary_search(
                child_points, child_offsets[gram], child_offsets[gram + 1], points[at + 3 + step]
            )
            if place < 0:
                break
            gram = children[place]
            found[count] = gram
            count += 1
    return count


@always_inlined
def _count_distinct(found, count, counts, stack):  # type: ignore[no-untyped-def]
    """Sort n-grams, drop repeats and write their counts; return the number of distinct ones."""
    sort_ascending(found, 0, count, stack)
    kept = np.int64(0)
    for place in range(count):
        if kept > 0 and found[kept - 1] == found[place]:
            counts[kept - 1] += 1.0
        else:
            found[kept] = found[place]
            counts[kept] = 1.0
            kept += 1
    return kept


@always_inlined
def _insert_ranked(owner, score, rows, scores, top):  # type: ignore[no-untyped-def]
    """Insert a candidate into its group's ranking; -1 marks free places."""
    place = np.int64(top)
    while place > 0 and (
        rows[place - 1] < 0
        or scores[place - 1] < score
        or (scores[place - 1] == score and rows[place - 1] > owner)
    ):
        place -= 1
    if place == top:
        return
    for other in range(top - 1, place, -1):
        rows[other] = rows[other - 1]
        scores[other] = scores[other - 1]
    rows[place] = owner
    scores[place] = score


@always_inlined
def _compute_norms(found, counts, postings, norms):  # type: ignore[no-untyped-def]
    """Write the two divisors of a text's weights for each group, (2, groups).

    The vector is scaled to length 1, and again by the cosine.
    """
    entry_offsets, entry_groups, entry_idf, _, _, _, _ = postings
    norms[:] = 0.0
    for scaling in range(2):
        for place in range(found.size):
            for entry in range(entry_offsets[found[place]], entry_offsets[found[place] + 1]):
                group = entry_groups[entry]
                weight = counts[place] * entry_idf[entry]
                if scaling == 1:
                    weight /= norms[0, group]
                norms[scaling, group] += weight * weight
        for group in range(norms.shape[1]):
            norms[scaling, group] = np.sqrt(norms[scaling, group])


@always_inlined
def _accumulate_cosines(found, counts, postings, norms, sums, touched):  # type: ignore[no-untyped-def]
    """Add up the cosines of all candidates that share an n-gram; return their number."""
    entry_offsets, entry_groups, entry_idf, posting_offsets, owners, weights, _ = postings
    n_touched = np.int64(0)
    for place in range(found.size):
        for entry in range(entry_offsets[found[place]], entry_offsets[found[place] + 1]):
            group = entry_groups[entry]
            weight = counts[place] * entry_idf[entry] / norms[0, group] / norms[1, group]
            for posting in range(posting_offsets[entry], posting_offsets[entry + 1]):
                owner = owners[posting]
                if sums[owner] == 0.0:
                    touched[n_touched] = owner
                    n_touched += 1
                sums[owner] += weight * weights[posting]
    return n_touched


@kernel(
    "NgramTrie(uint64[:], int64[:], int64[:], uint32[:], int64[:]), "
    "NgramPostings(int64[:], int64[:], float64[:], int64[:], int32[:], float64[:], int64[:]), "
    "(uint32[:], int64[:]), int64, float64, out(int32[:, :]), int64, int64",
    fastmath=False,
)
def _nearest(  # type: ignore[no-untyped-def]
    trie: NgramTrie, postings: NgramPostings, texts, top, least, out, start, stop
):
    """Write the nearest candidates of texts ``start`` to ``stop``; ``out`` is filled with -1."""
    points, offsets = texts
    group_offsets = postings.group_offsets
    n_groups = group_offsets.size - 1
    longest = np.int64(0)
    for row in range(start, stop):
        longest = max(longest, offsets[row + 1] - offsets[row])
    found = np.empty(3 * longest, np.int64)
    counts = np.empty(3 * longest, np.float64)
    stack = np.empty(STACK_SIZE, np.int64)
    norms = np.empty((2, n_groups), np.float64)
    sums = np.zeros(group_offsets[n_groups], np.float64)
    touched = np.empty(sums.size, np.int64)
    scores = np.empty(n_groups * top, np.float64)
    for row in range(start, stop):
        count = _collect_ngrams(points, offsets[row], offsets[row + 1], trie, found)
        kept = found[: _count_distinct(found, count, counts, stack)]
        _compute_norms(kept, counts, postings, norms)
        for place in range(_accumulate_cosines(kept, counts, postings, norms, sums, touched)):
            owner = touched[place]
            score = sums[owner]
            sums[owner] = 0.0
            if score >= least:
                group = np.searchsorted(group_offsets, owner, side="right") - 1
                best = slice(group * top, (group + 1) * top)
                _insert_ranked(owner, score, out[row, best], scores[best], top)
