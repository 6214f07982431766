"""Which keywords stand in which texts: one pass of one automaton for all of them.

Keywords come in groups, and a text is asked only whether it has a keyword of a group. The
automaton is a dense Aho-Corasick table over UTF-8 bytes, whose states carry the groups of every
keyword that ends there; substrings of valid UTF-8 are found on bytes exactly as on code points.
Characters with which no keyword begins are passed over whole while nothing has begun; of three
bytes, as most are where words are short, also those that the next bytes show to begin none.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_kernels._jit import first_use, inlined, kernel
from fastscore_kernels._jsonl_bytes import load_byte, load_word
from fastscore_kernels._validate import read_only
from fastscore_kernels.arrow import text_rows

Words = npt.NDArray[np.uint64]

_WORD = 64
_BEGINNING_BYTES = 6
_BEGINNING_BITS = 13
_BEGINNING = np.uint64((1 << 8 * _BEGINNING_BYTES) - 1)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_NEVER, _BY_BEGINNING, _ALWAYS = range(3)


def keyword_groups(texts: Any, groups: Sequence[Sequence[str]]) -> Words:
    """Search texts for the keywords of all groups at once.

    Parameters
    ----------
    texts
        Strings without nulls, as `fastscore_kernels.arrow.string_column` takes them.
    groups
        The keywords of each group; none of them empty.

    Returns
    -------
    ndarray
        uint64 (texts, words): bit g % 64 of word g // 64 is set where any keyword of group g is a
        substring of the text.

    Raises
    ------
    ValueError
        A keyword is empty.
    """
    if any(not keyword for keywords in groups for keyword in keywords):
        raise ValueError("`groups` has an empty keyword; expected at least one character")
    rows = text_rows("texts", texts)
    n_words = max(1, -(-len(groups) // _WORD))
    bits = np.zeros((rows.lengths.size, n_words), np.uint64)
    groups_of: dict[bytes, list[int]] = {}
    for group, keywords in enumerate(groups):
        for keyword in keywords:
            groups_of.setdefault(keyword.encode(), []).append(group)
    if groups_of and rows.lengths.size:
        compile_kernels()
        automaton = _build(list(groups_of), list(groups_of.values()), n_words)
        places = read_only(rows.addresses), read_only(rows.lengths)
        _search(*places, *automaton, *_begins(groups_of), bits)
    return bits


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    automaton = _build([b"a"], [[0]], 1)
    none = read_only(np.zeros(0, np.int64))
    _search(none, none, *automaton, *_begins([b"a"]), np.zeros((0, 1), np.uint64))


def _begins(keywords: Iterable[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Tell with what keywords begin.

    Returns
    -------
    tuple of arrays
        For each code point below 2^16 whether no keyword begins with it, or only such that are
        known by their first six bytes, or any; and the numbers of these beginnings.
    """
    begins = np.full(1 << 16, _NEVER, np.uint8)
    beginnings = np.zeros(1 << _BEGINNING_BITS, np.bool_)
    for keyword in keywords:
        point = ord(keyword.decode()[0])
        if point >= len(begins):
            continue
        # a character of three bytes, and another at least
        known = point >= 0x800 and len(keyword) >= _BEGINNING_BYTES
        begins[point] = max(begins[point], _BY_BEGINNING if known else _ALWAYS)
        if known:
            word = int.from_bytes(keyword[:_BEGINNING_BYTES], "little")
            mixed = word * int(_MULTIPLIER) & ((1 << 64) - 1)
            beginnings[mixed >> (64 - _BEGINNING_BITS)] = True
    return read_only(begins), read_only(beginnings)


@inlined
def _number_of_beginning(word: Any) -> Any:
    return ((word & _BEGINNING) * _MULTIPLIER) >> np.uint64(64 - _BEGINNING_BITS)


def _build(
    keywords: list[bytes], groups: list[list[int]], n_words: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8], Words]:
    """Return transitions (states, classes), byte classes (256,), group bits (states, words).

    A transition is the next state times two, plus one where that state ends a keyword.
    """
    data = np.frombuffer(b"".join(keywords), np.uint8)
    offsets = np.concatenate(([0], np.cumsum([len(keyword) for keyword in keywords])))
    masks = np.zeros((len(keywords), n_words), np.uint64)
    for row, of_keyword in enumerate(groups):
        for group in of_keyword:
            masks[row, group // _WORD] |= np.uint64(1 << (group % _WORD))
    used = np.unique(data)
    classes = np.zeros(256, np.uint8)
    # a class of its own is left for bytes that no keyword has; 0xFF is none in UTF-8
    classes[used] = np.arange(1, len(used) + 1)
    table: tuple[npt.NDArray[np.uint32], Words] = _link(
        data, offsets, classes, len(used) + 1, masks
    )
    return table[0], classes, table[1]


@kernel(fastmath=False)
def _link(data: Any, offsets: Any, classes: Any, n_classes: int, masks: Any) -> Any:
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


@kernel(fastmath=False)
def _search(
    addresses: Any,
    lengths: Any,
    step: Any,
    classes: Any,
    state_bits: Any,
    begins: Any,
    beginnings: Any,
    bits: Any,
) -> None:
    n_words = bits.shape[1]
    for row in range(lengths.size):
        # unsigned indices spare Numba's check for negative ones
        state = np.uint64(0)
        text, position, stop = addresses[row], 0, lengths[row]
        while position < stop:
            if state == 0 and position + 8 <= stop:
                word = load_word(text, position)
                if word & np.uint64(0xF0) == np.uint64(0xE0):
                    point = (
                        (word & np.uint64(0x0F)) << np.uint64(12)
                        | (word >> np.uint64(8) & np.uint64(0x3F)) << np.uint64(6)
                        | (word >> np.uint64(16) & np.uint64(0x3F))
                    )
                    kind = begins[point]
                    if kind == _NEVER or (
                        kind == _BY_BEGINNING and not beginnings[_number_of_beginning(word)]
                    ):
                        position += 3
                        continue
            byte = np.uint64(load_byte(text, position))
            if state == 0:
                point, length = byte, 1
                if byte >= 0xE0:
                    if byte < 0xF0:
                        second = np.uint64(load_byte(text, position + 1))
                        third = np.uint64(load_byte(text, position + 2))
                        point = (
                            (byte & np.uint64(0x0F)) << np.uint64(12)
                            | (second & np.uint64(0x3F)) << np.uint64(6)
                            | (third & np.uint64(0x3F))
                        )
                        length = 3
                elif byte >= 0xC0:
                    second = np.uint64(load_byte(text, position + 1))
                    point = (byte & np.uint64(0x1F)) << np.uint64(6) | (second & np.uint64(0x3F))
                    length = 2
                # what stands inside a character, and the longest ones, the automaton looks at
                if begins[point] == _NEVER and (byte < 0x80 or length > 1):
                    position += length
                    continue
            after = step[state, classes[byte]]
            state = np.uint64(after >> np.uint32(1))
            if after & np.uint32(1):
                for word in range(n_words):
                    bits[row, word] |= state_bits[state, word]
            position += 1
