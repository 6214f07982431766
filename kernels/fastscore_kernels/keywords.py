"""Keyword search: which keywords occur in which texts, in one pass of one automaton.

Keywords come in groups. The result for a text is whether it contains any keyword of a group. The
automaton is a dense Aho-Corasick table over UTF-8 bytes, whose states carry the groups of all
keywords that end there. Substrings of valid UTF-8 match on bytes exactly as on code points. Outside
a match, whole blocks are first filtered by the keywords' first six bytes. The automaton starts only
at candidate positions.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import UInt8Array, UInt64Array
from fastscore_jit.arrow import text_rows
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.byte_blocks import lower_bytes, prefetch_text
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import inlined
from fastscore_jit.memory import BLOCK, View, Views, load_byte, load_word
from fastscore_jit.validation import read_only

UnsignedInts = npt.NDArray[np.uint32]

_WORD = 64
_ROWS_AHEAD = 1
_PREFIX_BYTES, _NEXT_BYTE = 3, 5
_PREFIX_BITS = 15
_ANY_NEXT = (1 << 32) - 1
_NONE, _ALL = np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE, _LOW_FIVE_BITS, _NEXT_SHIFT = np.uint64(1), np.uint64(31), np.uint64(8 * _NEXT_BYTE)


def keyword_groups(texts: Any, groups: Sequence[Sequence[str]]) -> UInt64Array:
    """Search texts for the keywords of all groups at once.

    Parameters
    ----------
    texts
        Strings without nulls, as `fastscore_jit.arrow.string_column` takes them.
    groups
        The keywords of each group, not empty.

    Returns
    -------
    ndarray
        uint64 (texts, words): bit g % 64 of word g // 64 is set if any keyword of group g is a
        substring of the text.

    Raises
    ------
    ValueError
        A keyword is empty.
    """
    if any(not keyword for keywords in groups for keyword in keywords):
        raise ValueError("`groups` has an empty keyword; expected at least one character")
    rows = text_rows("texts", texts)
    bits = np.zeros((rows.lengths.size, max(1, -(-len(groups) // _WORD))), np.uint64)
    if any(groups) and rows.lengths.size:
        automaton = _automaton(tuple(map(tuple, groups)))
        _search(rows.views, *automaton, bits)
    return bits


@lru_cache(maxsize=2)
def _automaton(
    groups: tuple[tuple[str, ...], ...],
) -> tuple[UnsignedInts, UInt8Array, UInt64Array, UnsignedInts]:
    """Return the tables for `_search`, cached, as most shards search for equal keywords."""
    groups_of: dict[bytes, list[int]] = {}
    for group, keywords in enumerate(groups):
        for keyword in keywords:
            groups_of.setdefault(keyword.encode(), []).append(group)
    n_words = -(-len(groups) // _WORD)
    table = _build_automaton(list(groups_of), list(groups_of.values()), n_words)
    return *table, _index_prefixes(groups_of)


def _index_prefixes(keywords: Collection[bytes]) -> UnsignedInts:
    """Index how keywords begin: the next bytes, as bits, by the number of their first bytes."""
    # two bytes more: the last positions are read as eight-byte words, too
    next_bytes = np.zeros((1 << _PREFIX_BITS) + 2, np.uint32)
    for keyword in keywords:
        prefix = np.uint64(int.from_bytes(keyword[:_PREFIX_BYTES], "little"))
        if len(keyword) < _PREFIX_BYTES:
            # any bytes may follow
            following = np.arange(1 << 8 * (_PREFIX_BYTES - len(keyword)), dtype=np.uint64)
            next_bytes[_number_prefix(prefix | following << np.uint64(8 * len(keyword)))] = (
                _ANY_NEXT
            )
        elif len(keyword) <= _NEXT_BYTE:
            next_bytes[_number_prefix(prefix)] = _ANY_NEXT
        else:
            next_bytes[_number_prefix(prefix)] |= 1 << (keyword[_NEXT_BYTE] & 31)
    return read_only(next_bytes)


def _number_prefix(word: Any) -> Any:
    """Return the number of three first bytes, without bits common to all three-byte characters."""
    return (word >> np.uint64(7)) & np.uint64((1 << _PREFIX_BITS) - 1)


_prefix_number = inlined(_number_prefix)


def _build_automaton(
    keywords: list[bytes], groups: list[list[int]], n_words: int
) -> tuple[UnsignedInts, UInt8Array, UInt64Array]:
    """Return transitions (states, classes), byte classes (256,), group bits (states, words).

    A transition is the next state times two, plus one if that state ends a keyword.
    """
    data = np.frombuffer(b"".join(keywords), np.uint8)
    offsets = np.concatenate(([0], np.cumsum([len(keyword) for keyword in keywords])))
    masks = np.zeros((len(keywords), n_words), np.uint64)
    for row, of_keyword in enumerate(groups):
        for group in of_keyword:
            masks[row, group // _WORD] |= np.uint64(1 << (group % _WORD))
    used = np.unique(data)
    classes = np.zeros(256, np.uint8)
    # one class is for bytes in no keyword; 0xFF never occurs in UTF-8
    classes[used] = np.arange(1, len(used) + 1)
    table: tuple[UnsignedInts, UInt64Array] = _compute_transitions(
        data, offsets, classes, len(used) + 1, masks
    )
    return table[0], classes, table[1]


@kernel(
    "uint8[:], int64[:], uint8[:], int64, uint64[:, :]",
    returns="uint32[:, :], uint64[:, :]",
    fastmath=False,
)
def _compute_transitions(data: Any, offsets: Any, classes: Any, n_classes: int, masks: Any) -> Any:
    """Build the trie, then follow failure links breadth first until every transition is known."""
    n_keywords, n_words = masks.shape
    step = np.zeros((data.size + 1, n_classes), np.int32)
    bits = np.zeros((data.size + 1, n_words), np.uint64)
    n_states = 1
    for keyword in range(n_keywords):
        state = 0
        for position in range(offsets[keyword], offsets[keyword + 1]):
            byte_class = classes[data[position]]
            if step[state, byte_class] == 0:
                step[state, byte_class] = n_states
                n_states += 1
            state = step[state, byte_class]
        for word in range(n_words):
            bits[state, word] |= masks[keyword, word]
    failure, queue = np.zeros(n_states, np.int32), np.zeros(n_states, np.int32)
    taken = given = 0
    for byte_class in range(n_classes):
        if step[0, byte_class]:
            queue[given] = step[0, byte_class]
            given += 1
    while taken < given:
        state = queue[taken]
        taken += 1
        for word in range(n_words):
            bits[state, word] |= bits[failure[state], word]
        for byte_class in range(n_classes):
            after = step[state, byte_class]
            fallback = step[failure[state], byte_class]
            if after == 0:
                step[state, byte_class] = fallback
            else:
                failure[after] = fallback
                queue[given] = after
                given += 1
    for state in range(n_states):
        for byte_class in range(n_classes):
            after = step[state, byte_class]
            ends = False
            for word in range(n_words):
                ends |= bits[after, word] != 0
            step[state, byte_class] = 2 * after + ends
    return step[:n_states].astype(np.uint32), bits[:n_states].copy()


@inlined
def _mark_prefixes(text: View, block: int, next_bytes: Any) -> Any:
    """Mark the positions of a block at which a keyword may begin; read eight bytes after it."""
    characters = lower_bytes(text, block, 0x80) | ~lower_bytes(text, block, 0xC0)
    marks = _NONE
    while characters != _NONE:
        place = trailing_zeros(characters)
        characters &= characters - _ONE
        word = load_word(text, block + place)
        following = load_word(next_bytes, 4 * np.int64(_prefix_number(word)))
        marks |= (following >> (word >> _NEXT_SHIFT & _LOW_FIVE_BITS) & _ONE) << np.uint64(place)
    return marks


@inlined
def _marks_from(marks: Any, place: int) -> Any:
    """Keep the marks from a position of the block on."""
    if place >= BLOCK:
        return _NONE
    return marks >> np.uint64(place) << np.uint64(place)


@kernel(
    "Views(int64[:], int64[:]), uint32[:, :], uint8[:], uint64[:, :], uint32[:], out(uint64[:, :])",
    fastmath=False,
)
def _search(
    rows: Views, step: Any, classes: Any, state_bits: Any, next_bytes: Any, bits: Any
) -> None:
    """Set the bits of each row (rows, words) for the groups whose keywords it contains."""
    addresses, lengths = rows
    for row in range(lengths.size):
        if row + _ROWS_AHEAD < lengths.size:
            prefetch_text(View(addresses[row + _ROWS_AHEAD], lengths[row + _ROWS_AHEAD]))
        text, position, stop = View(addresses[row], lengths[row]), 0, lengths[row]
        while position < stop:
            # the last block overlaps the one before; short rows are searched without filter
            block = min(position, stop - BLOCK - 8)
            after = block + BLOCK
            if block >= 0 and position < after:
                marks = _marks_from(_mark_prefixes(text, block, next_bytes), position - block)
            else:
                block, after = position, min(position + BLOCK, stop)
                marks = _ALL >> np.uint64(BLOCK - (after - block))
            while marks != _NONE:
                position = block + trailing_zeros(marks)
                # unsigned indices spare Numba's check for negative ones
                state = np.uint64(0)
                while position < stop:
                    entry = step[state, classes[np.uint64(load_byte(text, position))]]
                    state = np.uint64(entry >> np.uint32(1))
                    position += 1
                    if entry & np.uint32(1):
                        for word in range(bits.shape[1]):
                            bits[row, word] |= state_bits[state, word]
                    if state == 0:
                        break
                marks = _marks_from(marks, position - block)
            position = max(position, after)
