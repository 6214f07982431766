"""Numbers for distinct texts that kernels come upon, none of which is copied."""

from typing import Any, NamedTuple

import numpy as np
from fastscore_jit.arrays import Int64Array
from fastscore_jit.compiling import always_inlined, kernel
from fastscore_jit.memory import View, load_short, load_word
from fastscore_jit.views import same_bytes

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class DistinctTexts(NamedTuple):
    """Distinct texts, by number: whoever holds them keeps what they belong to alive.

    Parameters
    ----------
    places : int64 (3, capacity)
        Where each begins, by address, its bytes, and its hash.
    table : int64
        Numbers by their hashes, twice the capacity, a power of two; -1 is free.
    """

    places: Int64Array
    table: Int64Array


def allocate_texts(capacity: int) -> DistinctTexts:
    """Allocate memory for so many distinct texts, a power of two."""
    return DistinctTexts(np.empty((3, capacity), np.int64), np.full(2 * capacity, -1, np.int64))


def double_capacity(known: DistinctTexts) -> DistinctTexts:
    """Allocate memory for twice as many and take the known ones over."""
    larger = allocate_texts(2 * known.places.shape[1])
    larger.places[:, : known.places.shape[1]] = known.places
    _rehash(known.places.shape[1], larger)
    return larger


@always_inlined
def _hash(text: View) -> Any:
    value, at, length = np.uint64(text.length), 0, text.length
    while at + 8 < length:
        value = (value ^ load_word(text, at)) * _MULTIPLIER
        value ^= value >> np.uint64(32)
        at += 8
    last = load_word(text, length - 8) if length >= 8 else load_short(text, 0, length)
    value = (value ^ last) * _MULTIPLIER
    value = (value ^ (value >> np.uint64(32))) * _MULTIPLIER
    return value ^ (value >> np.uint64(32))


@always_inlined
def text_number(text: View, places: Any, table: Any, count: int) -> Any:
    """Return the number of a text among `DistinctTexts`; a new one is the next, and is noted."""
    value = _hash(text)
    mask = table.size - 1
    slot = np.int64(value) & mask
    while table[slot] >= 0:
        number = table[slot]
        if places[2, number] == np.int64(value) and places[1, number] == text.length:
            other = View(places[0, number], text.length)
            if same_bytes(other, 0, text, 0, text.length):
                return number
        slot = (slot + 1) & mask
    table[slot] = count
    places[0, count], places[1, count] = text.address, text.length
    places[2, count] = np.int64(value)
    return np.int64(count)


@kernel("int64, DistinctTexts(int64[:, :], out(int64[:]))", fastmath=False)
def _rehash(count: int, known: DistinctTexts) -> None:
    """Put known texts into a table that has none."""
    places, table = known
    mask = table.size - 1
    for number in range(count):
        slot = places[2, number] & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = number
