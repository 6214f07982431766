"""Searching JSON strings where they stand.

Nothing is unescaped but what must be to be searched, and that into memory that stays in the cache.
Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrow import text_rows
from fastscore_machine.bits import trailing_zeros
from fastscore_machine.byte_blocks import BLOCK, equal_bytes, lower_bytes, prefetch_text
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import (
    address_of,
    copy_block,
    load_byte,
    load_word,
    same_bytes,
    store_byte,
    store_word,
)
from fastscore_machine.validation import read_only, same_length

from fastscore_readers.json.tokens import BACKSLASH, NEWLINE, QUOTE, SPACE, unescape

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

PLAIN, ESCAPED, NUMBERED = range(3)
r"""How a JSON string is written: without escapes, with such of two characters, or any by ``\u``."""

_AHEAD = 2
_NONE, _1 = np.uint64(0), np.uint64(1)
_SLASH = 0x2F


def joined_contain(
    written: Any, escapes: Bytes, offsets: Longs, haystacks: Longs, needles: Any
) -> Mask:
    r"""Tell whether texts hold others, the former being JSON strings joined by line ends.

    Parameters
    ----------
    written
        The insides of valid JSON strings as they are written: strings (n,) without nulls, as
        `fastscore_machine.arrow.string_column` takes them.
    escapes
        How each is written, `PLAIN`, `ESCAPED` or `NUMBERED`, uint8 (n,); half of a surrogate pair
        makes the empty text.
    offsets
        Haystack ``h`` is the texts from ``offsets[h]`` to ``offsets[h + 1]``, joined by ``\n``;
        int64 (haystacks + 1,).
    haystacks
        The haystack of each pair, int64 (pairs,); pairs of one haystack stand together best.
    needles
        What is looked for: strings (pairs,) without nulls.

    Returns
    -------
    bool (pairs,)
        Whether the needle is a substring of the haystack.
    """
    parts, wanted = text_rows("written", written), text_rows("needles", needles)
    found = np.zeros(haystacks.size, np.bool_)
    same_length("needles", len(wanted.lengths), "haystacks", found.size)
    same_length("written", len(parts.lengths), "escapes", escapes.size)
    _search(
        read_only(escapes),
        read_only(parts.addresses),
        read_only(parts.lengths),
        read_only(offsets),
        read_only(haystacks),
        read_only(wanted.addresses),
        read_only(wanted.lengths),
        found,
    )
    return found


@inlined
def _place(text: int, size: int, needle: int, length: int) -> int:
    """Where the bytes at one address hold those at another, at least one; -1 if nowhere."""
    last = length - 1
    # of a character the last byte tells most
    first = min(2, last)
    first_byte, last_byte = load_byte(needle, first), load_byte(needle, last)
    index, behind = 0, size - last
    while index < behind:
        if behind < BLOCK:
            if load_byte(text, index + last) == last_byte and same_bytes(
                text + index, needle, length
            ):
                return index
            index += 1
            continue
        # the last block overlaps the one before
        index = min(index, behind - BLOCK)
        at = text + index
        found = equal_bytes(at + first, first_byte) & equal_bytes(at + last, last_byte)
        while found != _NONE:
            place = index + trailing_zeros(found)
            if same_bytes(text + place, needle, length):
                return int(place)
            found &= found - _1
        index += BLOCK
    return -1


@inlined
def _stands_for_itself(needle: int, length: int) -> bool:
    """Whether no escape of two characters can stand for any character of a text."""
    index = 0
    while index + BLOCK <= length:
        at = needle + index
        special = equal_bytes(at, QUOTE) | equal_bytes(at, BACKSLASH) | equal_bytes(at, _SLASH)
        if (special | lower_bytes(at, SPACE)) != _NONE:
            return False
        index += BLOCK
    while index < length:
        byte = load_byte(needle, index)
        if byte < SPACE or byte == QUOTE or byte == BACKSLASH or byte == _SLASH:
            return False
        index += 1
    return True


@inlined
def _holds_as_written(
    parts: int, sizes: int, escapes: int, first: int, behind: int, needle: int, length: int
) -> int:
    """Whether a text that stands for itself is in any of some strings: 1, 0, or -1 if unsure."""
    for part in range(first, behind):
        how = load_byte(escapes, part)
        if how == NUMBERED:
            return -1
        text: Any = np.int64(load_word(parts, 8 * part))
        size: Any = np.int64(load_word(sizes, 8 * part))
        at = _place(text, size, needle, length)
        if at < 0:
            continue
        # what follows a backslash may be its letter
        if at > 0 and how != PLAIN and load_byte(text, at - 1) == BACKSLASH:
            return -1
        return 1
    return 0


@inlined
def _copied(source: int, target: int, length: int) -> int:
    """Copy bytes from one address to another; return how many."""
    at = 0
    while at + BLOCK <= length:
        copy_block(source, at, target, at)
        at += BLOCK
    while at + 8 <= length:
        store_word(target, at, load_word(source, at))
        at += 8
    while at < length:
        store_byte(target, at, load_byte(source, at))
        at += 1
    return length


@kernel(
    "uint8[:], int64[:], int64[:], int64[:], int64[:], int64[:], int64[:], out(bool[:])",
    fastmath=False,
)
def _search(
    escapes: Any,
    parts: Any,
    sizes: Any,
    offsets: Any,
    haystacks: Any,
    needles: Any,
    lengths: Any,
    found: Any,
) -> None:
    # addresses: an array costs a call much more
    part_places, part_sizes = address_of(parts), address_of(sizes)
    part_escapes = address_of(escapes)
    room = np.empty(1 << 16, np.uint8)
    searched: Any = np.int64(-1)
    text: Any = np.int64(0)
    size: Any = np.int64(0)
    for pair in range(haystacks.size):
        if pair + _AHEAD < haystacks.size:
            prefetch_text(needles[pair + _AHEAD], lengths[pair + _AHEAD])
            ahead = haystacks[pair + _AHEAD]
            for part in range(offsets[ahead], offsets[ahead + 1]):
                prefetch_text(parts[part], sizes[part])
        if lengths[pair] == 0:
            found[pair] = True
            continue
        first, behind = offsets[haystacks[pair]], offsets[haystacks[pair] + 1]
        if _stands_for_itself(needles[pair], lengths[pair]):
            held = _holds_as_written(
                part_places,
                part_sizes,
                part_escapes,
                first,
                behind,
                needles[pair],
                lengths[pair],
            )
            if held >= 0:
                found[pair] = held == 1
                continue
        if haystacks[pair] != searched:
            searched = haystacks[pair]
            if behind - first == 1 and escapes[first] == PLAIN:
                text, size = parts[first], sizes[first]
            else:
                needed = behind - first
                for part in range(first, behind):
                    needed += sizes[part]
                if needed > room.size:
                    room = np.empty(2 * needed, np.uint8)
                text, size = address_of(room), 0
                for part in range(first, behind):
                    if part > first:
                        store_byte(text, size, NEWLINE)
                        size += 1
                    if escapes[part] != PLAIN:
                        size = max(size, unescape(parts[part], 0, sizes[part], text, size))
                    else:
                        size += _copied(parts[part], text + size, sizes[part])
        found[pair] = _place(text, size, needles[pair], lengths[pair]) >= 0
    # naming the array here keeps it alive until its address is used no more
    if room.size == 0:
        found[:] = False
