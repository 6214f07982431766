"""Which keywords stand in which texts: one pass of one automaton for all of them.

Keywords come in groups, and a text is asked only whether it has a keyword of a group. The
automaton is a dense Aho-Corasick table over UTF-8 bytes, whose states carry the groups of every
keyword that ends there; substrings of valid UTF-8 are found on bytes exactly as on code points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels._jit import first_use, kernel
from fastscore_kernels.arrow import string_column

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

LARGEST_AUTOMATON = 1 << 16
"""Groups whose keywords have more bytes than this together are searched for pair by pair."""

_WORD = 64


@dataclass(frozen=True, slots=True)
class GroupMatches:
    """Which texts have a keyword of which groups.

    Parameters
    ----------
    bits
        Bit g of row t: text t has a keyword of group g; uint64 (texts, words).
    """

    bits: Words

    def of_group(self, group: int) -> Mask:
        """Return for each text whether it has a keyword of the group."""
        found: Mask = (self.bits[:, group // _WORD] >> np.uint64(group % _WORD)) & np.uint64(1) > 0
        return found

    def of_pairs(self, texts: Indices, groups: Indices) -> Mask:
        """Return for each pair of a text and a group whether the text has a keyword of it."""
        words = self.bits[texts, groups // _WORD]
        found: Mask = (words >> (groups % _WORD).astype(np.uint64)) & np.uint64(1) > 0
        return found


def match_groups(texts: pl.Series, groups: Sequence[Sequence[str]]) -> GroupMatches:
    """Search texts for the keywords of all groups at once.

    Parameters
    ----------
    texts
        Strings without nulls.
    groups
        The keywords of each group; none of them empty.

    Returns
    -------
    GroupMatches
        For each text and group whether any keyword of the group is a substring of the text.
    """
    n_words = max(1, -(-len(groups) // _WORD))
    bits = np.zeros((len(texts), n_words), np.uint64)
    groups_of: dict[bytes, list[int]] = {}
    for group, keywords in enumerate(groups):
        for keyword in keywords:
            groups_of.setdefault(keyword.encode(), []).append(group)
    if groups_of and len(texts):
        column = string_column("texts", texts)
        automaton = _build(list(groups_of), list(groups_of.values()), n_words)
        _scan(column.data, column.offsets, *automaton, bits)
    return GroupMatches(bits)


def contains(texts: pl.Series, needles: pl.Series) -> Mask:
    """Return for each pair whether the text has the needle as a substring."""
    pairs = pl.DataFrame({"text": texts, "needle": needles})
    found = pairs.select(pl.col("text").str.contains(pl.col("needle"), literal=True))
    return found.to_series().to_numpy()


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    column = string_column("texts", [""])
    _scan(column.data, column.offsets, *_build([b"a"], [[0]], 1), np.zeros((1, 1), np.uint64))


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
def _scan(data: Any, offsets: Any, step: Any, classes: Any, state_bits: Any, bits: Any) -> None:
    n_words = bits.shape[1]
    for row in range(offsets.size - 1):
        state = np.uint64(0)
        for position in range(offsets[row], offsets[row + 1]):
            # unsigned indices spare Numba's check for negative ones
            after = step[state, classes[data[np.uint64(position)]]]
            state = np.uint64(after >> np.uint32(1))
            if after & np.uint32(1):
                for word in range(n_words):
                    bits[row, word] |= state_bits[state, word]
