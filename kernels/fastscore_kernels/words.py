"""Texts reduced to plain words of a-z and 0-9 in lower case, and phrases in them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.arrow import StringColumn, string_column
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined
from fastscore_jit.memory import View, load_byte, same_bytes, subview
from fastscore_jit.validation import as_offsets, as_vector, read_only

_SPACE = 32
_DOTTED_I, _KELVIN = np.uint8(ord("i")), np.uint8(ord("k"))


def plain_words(strings: Any, *, without: Sequence[str] = ()) -> StringColumn:
    """Reduce texts to lower-case words of a-z and 0-9 between single spaces.

    All other characters separate words, other letters too. Two characters beyond ASCII count as
    letters, because their lower case contains one of a to z: the Kelvin sign and the dotted capital
    I.

    Parameters
    ----------
    strings
        Arrow strings or a polars Series, without nulls.
    without
        Words to leave out.

    Returns
    -------
    StringColumn
        As many texts.
    """
    left_out, texts = string_column("without", list(without)), string_column("strings", strings)
    offsets = np.zeros(len(texts) + 1, np.int64)
    out = np.empty(int(texts.offsets[-1] - texts.offsets[0]), np.uint8)
    _write_words(texts.data, texts.offsets, left_out.data, left_out.offsets, _LOWER, offsets, out)
    return StringColumn(read_only(out[: offsets[-1]]), read_only(offsets))


def count_phrases(
    texts: Any, text: npt.ArrayLike, phrases: Any, wanted: tuple[Any, Any], owner: npt.ArrayLike
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Count the phrases in rows of text, among the wanted phrases of each row's owner.

    Parameters
    ----------
    texts, phrases
        Plain words, as `plain_words` writes them. Wanted phrases are not empty.
    text : int64 (n,)
        The text of each row.
    wanted : tuple of int64 arrays
        The distinct phrases of each owner, and the offsets (owners + 1,) of each owner.
    owner : int64 (n,)
        The owner of each row.

    Returns
    -------
    tuple of int64 (n,)
        The number of phrases that occur in a row as whole words; the number that occur in no
        earlier row of its owner; and the number of its owner's phrases that no earlier row has.
    """
    column, named = string_column("texts", texts), string_column("phrases", phrases)
    rows, owners = as_vector("text", text, np.int64), as_vector("owner", owner, np.int64)
    phrase = as_vector("wanted", wanted[0], np.int64)
    offsets = as_offsets("offsets", wanted[1], phrase.size)
    if rows.size != owners.size:
        raise ValueError(f"`text` has {rows.size} rows, `owner` {owners.size}; expected as many")
    for name, places, size in (
        ("text", rows, len(column)),
        ("owner", owners, offsets.size - 1),
        ("wanted", phrase, len(named)),
    ):
        if places.size and not 0 <= places.min() <= places.max() < size:
            raise ValueError(f"`{name}` reaches beyond the {size} there are")
    counts = np.zeros((3, rows.size), np.int64)
    left_of = np.diff(offsets)
    owned = _Rows(column.data, column.offsets, rows, owners)
    _count_phrases(owned, _Phrases(named.data, named.offsets, phrase, offsets), left_of, counts)
    found, new, left = counts
    return found, new, left


def _lower() -> npt.NDArray[np.uint8]:
    """Map the bytes of words to lower case, all others to a space."""
    table = np.full(256, _SPACE, np.uint8)
    for character in "abcdefghijklmnopqrstuvwxyz0123456789":
        table[[ord(character), ord(character.upper())]] = ord(character)
    return read_only(table)


_LOWER = _lower()


@always_inlined
def _is_one_of(data: Any, start: int, end: int, words: Any, offsets: Any) -> bool:
    for word in range(offsets.size - 1):
        first = offsets[word]
        if offsets[word + 1] - first != end - start:
            continue
        place = 0
        while place < end - start and data[start + place] == words[first + place]:
            place += 1
        if place == end - start:
            return True
    return False


@kernel(
    "uint8[:], int64[:], uint8[:], int64[:], uint8[:], out(int64[:]), out(uint8[:])", fastmath=False
)
def _write_words(
    data: Any, offsets: Any, words: Any, word_offsets: Any, lower: Any, out_offsets: Any, out: Any
) -> None:
    """Concatenate the words of each text."""
    size = 0
    for row in range(offsets.size - 1):
        begins = size
        before = word = -1
        at, stop = offsets[row], offsets[row + 1]
        while at < stop:
            byte = data[np.uint64(at)]
            letter, taken = lower[byte], 1
            if byte == 0xC4 and at + 1 < stop and data[at + 1] == 0xB0:
                letter, taken = _DOTTED_I, 2
            elif byte == 0xE2 and at + 2 < stop and data[at + 1] == 0x84 and data[at + 2] == 0xAA:
                letter, taken = _KELVIN, 3
            if letter != _SPACE:
                if word < 0:
                    before = size
                    if size > begins:
                        out[np.uint64(size)] = _SPACE
                        size += 1
                    word = size
                out[np.uint64(size)] = letter
                size += 1
            at += taken
            # the dot above the dotted I separates words
            if word >= 0 and (letter == _SPACE or taken == 2 or at == stop):
                if _is_one_of(out, word, size, words, word_offsets):
                    size = before
                word = -1
        out_offsets[row + 1] = size


@always_inlined
def _contains_phrase(text: View, phrase: View) -> bool:
    """Return whether a text of single-spaced words contains a phrase as consecutive words."""
    at, size, length = 0, text.length, phrase.length
    while at + length <= size:
        if same_bytes(text, at, phrase, 0, length) and (
            at + length == size or load_byte(text, at + length) == _SPACE
        ):
            return True
        while at < size and load_byte(text, at) != _SPACE:
            at += 1
        at += 1
    return False


class _Rows(NamedTuple):
    """Texts and their offsets, and for each row its text and its owner."""

    texts: UInt8Array
    offsets: Int64Array
    text_of: Int64Array
    owner_of: Int64Array


class _Phrases(NamedTuple):
    """Phrases and their offsets, the wanted phrases of owners, and offsets of these."""

    phrases: UInt8Array
    offsets: Int64Array
    wanted: Int64Array
    wanted_offsets: Int64Array


@kernel(
    "_Rows(uint8[:], int64[:], int64[:], int64[:]), "
    "_Phrases(uint8[:], int64[:], int64[:], int64[:]), out(int64[:]), out(int64[:, :])",
    fastmath=False,
)
def _count_phrases(rows: _Rows, phrases: _Phrases, left: Any, counts: Any) -> None:
    """Count (3, rows) a row's phrases, the new ones, and the remaining ones before it."""
    texts, offsets, text_of, owner_of = rows
    named, phrase_offsets, wanted, wanted_offsets = phrases
    seen = np.zeros(wanted.size, np.bool_)
    for row in range(text_of.size):
        owner, begin = owner_of[row], offsets[text_of[row]]
        text = subview(texts, begin, offsets[text_of[row] + 1] - begin)
        counts[2, row] = left[owner]
        for place in range(wanted_offsets[owner], wanted_offsets[owner + 1]):
            first = phrase_offsets[wanted[place]]
            length = phrase_offsets[wanted[place] + 1] - first
            if _contains_phrase(text, subview(named, first, length)):
                counts[0, row] += 1
                if not seen[place]:
                    seen[place] = True
                    counts[1, row] += 1
                    left[owner] -= 1
