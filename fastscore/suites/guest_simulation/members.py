r"""Members of cells that are nearly Python, or nearly JSON, found by key.

Logs hold calls and results as Python's ``repr`` wrote them, escaped once, twice or, where a
backslash was lost, wrongly. No parser takes them, and nothing may evaluate them. Cells are searched
for members, at any depth and also inside texts:

- A *member* is a key, a whole identifier, quoted or not, and ``=`` or ``:``; what follows is its
  value.
- A *simple value* is a text up to the next quote or backslash, the member's name of an enumeration
  that is written ``<Class.MEMBER: ...>``, or a bare word; empty where there is none of them.
"""

# ruff: noqa: SIM109

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.arrow import TextRows
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.byte_blocks import (
    BLOCK,
    TRIGRAM_BYTES,
    TRIGRAMS,
    aligned,
    equal_bytes,
    mark_trigrams,
    prefetch_text,
)
from fastscore_jit.compiling import always_inlined, kernel
from fastscore_jit.memory import View, Views, load_byte
from fastscore_jit.validation import read_only
from fastscore_jit.views import same_bytes

from fastscore.suites.guest_simulation.item_lists import (
    after_spaces,
    after_word,
    filled,
    is_quote,
    is_word,
    key_table,
)

_BACKSLASH, _COLON, _EQUALS, _LESS, _POINT, _PLUS, _MINUS = b"\\:=<.+-"
_DOUBLE, _SINGLE = b"\"'"
# rows lie far apart, and only a loop that goes on within one is foreseen by the processor
_ROWS_AHEAD, _BYTES_AHEAD = 4, 1024
_MEMBERS_PER_CELL = 8


class Members(NamedTuple):
    """Members of cells, by row and place: int64 (n,) each.

    Parameters
    ----------
    row, key
        The cell, and the number of the key.
    begin, value
        The bytes in the cell at which the key and its value begin.
    start, end
        The bytes of the simple value.
    """

    row: Int64Array
    key: Int64Array
    begin: Int64Array
    value: Int64Array
    start: Int64Array
    end: Int64Array


class SoughtKeys(NamedTuple):
    """Keys as the kernel looks for them: bytes, offsets, trigrams and their places in the keys."""

    names: UInt8Array
    offsets: Int64Array
    trigrams: UInt8Array
    places: Int64Array


def find_members(cells: TextRows, keys: tuple[bytes, ...]) -> Members:
    """Find the members of cells under keys, distinct ASCII identifiers; a null has none."""
    fill = partial(_walk, cells.views, _sought(keys))
    return Members(*filled(fill, len(Members._fields), _MEMBERS_PER_CELL * len(cells) + 1))


@lru_cache(maxsize=8)
def _sought(keys: tuple[bytes, ...]) -> SoughtKeys:
    if not all(key.decode("ascii", "replace").isidentifier() for key in keys):
        raise ValueError(f"keys are {list(keys)!r}; expected ASCII identifiers")
    if len(set(keys)) != len(keys):
        raise ValueError(f"keys are {list(keys)!r}; expected distinct ones")
    trigrams, places = choose_trigrams(keys)
    return SoughtKeys(*key_table(keys), read_only(trigrams), read_only(places))


def choose_trigrams(keys: Sequence[bytes]) -> tuple[UInt8Array, Int64Array]:
    """Choose the byte trigrams by which keys are looked for: few, and rare in other words.

    Returns
    -------
    tuple
        The trigrams as `mark_trigrams` takes them, and where in each key the one stands by which it
        is found, int64 (keys,).
    """
    trigrams: list[bytes] = []
    left = set(keys)

    def rank(trigram: bytes) -> tuple[bool, int]:
        # where two words of a key meet is found in few other words
        return trigram[1:2] == b"_", sum(trigram in key for key in left)

    while left:
        there_are = {key[at : at + TRIGRAM_BYTES] for key in left for at in range(len(key) - 2)}
        if not there_are or len(trigrams) == TRIGRAMS:
            raise ValueError(f"keys hold {sorted(left)!r}; expected longer ones, or more alike")
        trigrams.append(max(sorted(there_are), key=rank))
        left -= {key for key in left if trigrams[-1] in key}
    places = [next(key.index(trigram) for trigram in trigrams if trigram in key) for key in keys]
    table = np.frombuffer(b"".join(trigrams * TRIGRAMS)[: TRIGRAMS * TRIGRAM_BYTES], np.uint8)
    return aligned(np.repeat(table, BLOCK)), np.array(places, np.int64)


@always_inlined
def _mark_trigrams_from(cell: View, at: int, trigrams: Any) -> Any:
    """Mark where a trigram begins from ``at`` on: the first of 64 places, and the marks."""
    base = cell.length + 1 - BLOCK - TRIGRAM_BYTES
    if at <= base:
        return at, mark_trigrams(cell, at, trigrams, 0)
    if base >= 0:
        passed = np.uint64(at - base)
        return base, (mark_trigrams(cell, base, trigrams, 0) >> passed) << passed
    # a short cell: what stands after it may not be there
    marks = np.uint64(0)
    for place in range(at, cell.length + 1 - TRIGRAM_BYTES):
        for trigram in range(0, trigrams.size, BLOCK * TRIGRAM_BYTES):
            alike = True
            for byte in range(TRIGRAM_BYTES):
                alike &= load_byte(cell, place + byte) == trigrams[trigram + BLOCK * byte]
            if alike:
                marks |= np.uint64(1) << np.uint64(place - at)
    return at, marks


@always_inlined
def _find_key(cell: View, place: int, names: Any, offsets: Any, trigram_places: Any) -> Any:
    """Find the key whose trigram stands at a place: its number, -1 without one, and its bytes."""
    for key in range(offsets.size - 1):
        begin = place - trigram_places[key]
        length = offsets[key + 1] - offsets[key]
        if (
            begin >= 0
            and begin + length <= cell.length
            and load_byte(cell, begin) == load_byte(names, offsets[key])
            and same_bytes(cell, begin, names, offsets[key], length)
            and (begin == 0 or not is_word(load_byte(cell, begin - 1)))
        ):
            return key, begin, begin + length
    return -1, place, place


@always_inlined
def _value_after(cell: View, at: int) -> int:
    """Find where the value of a key that ends at a place begins, -1 where the key has none."""
    at = after_spaces(cell, _skip_quotes(cell, at, cell.length), cell.length)
    if at >= cell.length or not _is_separator(load_byte(cell, at)):
        return -1
    return after_spaces(cell, at + 1, cell.length)


@always_inlined
def _skip_quotes(data: View, at: int, stop: int) -> int:
    """Skip quotes and backslashes."""
    while at < stop and (is_quote(load_byte(data, at)) or load_byte(data, at) == _BACKSLASH):
        at += 1
    return at


@always_inlined
def _simple_value(data: View, at: int, stop: int) -> Any:
    """Find the text, enumeration member or bare word that begins at a place."""
    quote = at
    while quote < stop and load_byte(data, quote) == _BACKSLASH:
        quote += 1
    if quote < stop and is_quote(load_byte(data, quote)):
        begin = end = quote + 1
        if end + BLOCK <= stop:
            marks = equal_bytes(data, end, _DOUBLE) | equal_bytes(data, end, _SINGLE)
            marks |= equal_bytes(data, end, _BACKSLASH)
            end += trailing_zeros(marks) if marks != 0 else BLOCK
        while (
            end < stop and not is_quote(load_byte(data, end)) and load_byte(data, end) != _BACKSLASH
        ):
            end += 1
        return begin, end
    if at < stop and load_byte(data, at) == _LESS:
        point = after_word(data, at + 1, stop)
        if point > at + 1 and point < stop and load_byte(data, point) == _POINT:
            return point + 1, after_word(data, point + 1, stop)
        return at, at
    end = at
    while end < stop and (
        is_word(load_byte(data, end))
        or load_byte(data, end) == _POINT
        or load_byte(data, end) == _PLUS
        or load_byte(data, end) == _MINUS
    ):
        end += 1
    return at, end


@always_inlined
def _is_separator(byte: int) -> bool:
    return byte == _COLON or byte == _EQUALS


@kernel(
    "Views(int64[:], int64[:]), SoughtKeys(uint8[:], int64[:], uint8[:], int64[:]), "
    "out(int64[:, :])",
    returns="int64",
    fastmath=False,
    allocates=False,
)
def _walk(cells: Views, keys: SoughtKeys, found: Any) -> Any:
    """List `Members` in the columns of ``found``: their number, -1 if it has no room for all."""
    addresses, lengths = cells
    names, offsets, trigrams, places = keys
    count = 0
    for row in range(lengths.size):
        cell, stop = View(addresses[row], lengths[row]), lengths[row]
        ahead = min(row + _ROWS_AHEAD, lengths.size - 1)
        prefetch_text(View(addresses[ahead], min(lengths[ahead], _BYTES_AHEAD)))
        at = 0
        while at <= stop - TRIGRAM_BYTES:
            base, marks = _mark_trigrams_from(cell, at, trigrams)
            at = base + BLOCK
            while marks != 0:
                place = base + trailing_zeros(marks)
                marks &= marks - np.uint64(1)
                key, begin, end = _find_key(cell, place, names, offsets, places)
                value = _value_after(cell, end) if key >= 0 else -1
                if value < 0:
                    continue
                if count == found.shape[1]:
                    return -1
                first, last = _simple_value(cell, value, stop)
                found[0, count], found[1, count], found[2, count] = row, key, begin
                found[3, count], found[4, count], found[5, count] = value, first, last
                count += 1
    return count
