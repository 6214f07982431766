"""What was recalled: JSON strings, searched where they stand.

Nothing is unescaped but what must be to be searched, and that into memory that stays in the cache.
Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from fastscore_machine.arrays import Bytes, Longs, Mask
from fastscore_machine.arrow import text_rows
from fastscore_machine.bits import trailing_zeros
from fastscore_machine.byte_blocks import BLOCK, equal_bytes, lower_bytes, prefetch_text
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import (
    address_of,
    load_byte,
    same_bytes,
)
from fastscore_machine.validation import read_only, same_length
from fastscore_machine.views import put_byte
from fastscore_readers.json import tokens
from fastscore_readers.json.located_values import views
from fastscore_readers.json.tokens import BACKSLASH, NEWLINE, QUOTE, SPACE, unescape

from fastscore.suites.json_scalars import string_views, unescape_rows
from fastscore.suites.json_values import JsonValues, Problems

PLAIN, ESCAPED, NUMBERED = range(3)
r"""How a JSON string is written: without escapes, with such of two characters, or any by ``\u``."""

_AHEAD = 2
_NONE, _1 = np.uint64(0), np.uint64(1)
_SLASH = 0x2F


class _Texts(NamedTuple):
    """Where texts lie: addresses and lengths, int64 (n,)."""

    addresses: Longs
    lengths: Longs


def written_texts(columns: Sequence[JsonValues], problems: Problems) -> tuple[pl.Series, Bytes]:
    """Return the insides of strings as they are written, and how (`PLAIN` ...).

    What is missing is the empty text; values of other types, and half of a surrogate pair, are
    noted.

    Parameters
    ----------
    columns
        Values of one buffer; their texts stand one column after another.
    problems
        Where faulty values are noted.
    """
    ends = np.cumsum([len(values) for values in columns])
    out, written = np.zeros((ends[-1], 4), np.int32), np.empty(ends[-1], np.uint8)
    for values, end in zip(columns, ends.tolist(), strict=True):
        present, escaped = values.is_text, values.tags == tokens.ESCAPED
        problems.note(values, np.flatnonzero(~present & ~values.is_missing), "a string")
        if values.numbered_escapes:
            rows = np.flatnonzero(escaped)
            unescape_rows(values, rows, problems)
        own = slice(end - len(values), end)
        of_escaped = NUMBERED if values.numbered_escapes else ESCAPED
        written[own] = np.where(escaped, of_escaped, PLAIN)
        views(values.data, np.where(present, values.start, -1), values.end, 0, out[own])
    return string_views(None, out, (columns[0].data,)), written


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
    ends = np.append(0, np.cumsum(parts.lengths + 1))
    room = np.empty(int(np.diff(ends[offsets]).max(initial=0)), np.uint8)
    haystack = _Texts(read_only(parts.addresses), read_only(parts.lengths))
    needle = _Texts(read_only(wanted.addresses), read_only(wanted.lengths))
    ways, places, chosen = read_only(escapes), read_only(offsets), read_only(haystacks)
    _search(haystack, ways, places, chosen, needle, room, found)
    return found


@inlined
def _place(text: Any, size: Any, needle: Any, length: Any) -> int:
    """Where the bytes at one address hold those at another, at least one; -1 if nowhere."""
    last = length - 1
    # of a character the last byte tells most
    first = min(2, last)
    first_byte, last_byte = load_byte(needle, first), load_byte(needle, last)
    index, after = 0, size - last
    while index < after:
        if after < BLOCK:
            if load_byte(text, index + last) == last_byte and same_bytes(
                text + index, needle, length
            ):
                return index
            index += 1
            continue
        # the last block overlaps the one before
        index = min(index, after - BLOCK)
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
def _stands_for_itself(needle: Any, length: Any) -> bool:
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
def _holds_as_written(parts: Any, escapes: Any, first: Any, after: Any, needle: Any) -> int:
    """Whether a text that stands for itself is in any of some strings: 1, 0, or -1 if unsure."""
    wanted, length = needle
    for part in range(first, after):
        if escapes[part] == NUMBERED:
            return -1
        text = parts.addresses[part]
        at = _place(text, parts.lengths[part], wanted, length)
        if at < 0:
            continue
        # what follows a backslash may be its letter
        if at > 0 and escapes[part] != PLAIN and load_byte(text, at - 1) == BACKSLASH:
            return -1
        return 1
    return 0


@kernel(
    "_Texts(int64[:], int64[:]), uint8[:], int64[:], int64[:], _Texts(int64[:], int64[:]), "
    "out(uint8[:]), out(bool[:])",
    fastmath=False,
    allocates=False,
)
def _search(
    parts: Any, escapes: Any, offsets: Any, haystacks: Any, needles: Any, room: Any, found: Any
) -> None:
    """Search haystacks; one that is not searched as it is written is written to a room."""
    searched = text = size = np.int64(-1)
    for pair in range(haystacks.size):
        if pair + _AHEAD < haystacks.size:
            prefetch_text(needles.addresses[pair + _AHEAD], needles.lengths[pair + _AHEAD])
            ahead = haystacks[pair + _AHEAD]
            for part in range(offsets[ahead], offsets[ahead + 1]):
                prefetch_text(parts.addresses[part], parts.lengths[part])
        needle, length = needles.addresses[pair], needles.lengths[pair]
        if length == 0:
            found[pair] = True
            continue
        first, after = offsets[haystacks[pair]], offsets[haystacks[pair] + 1]
        if _stands_for_itself(needle, length):
            held = _holds_as_written(parts, escapes, first, after, (needle, length))
            if held >= 0:
                found[pair] = held == 1
                continue
        if haystacks[pair] != searched:
            searched = haystacks[pair]
            if after - first == 1 and escapes[first] == PLAIN:
                text, size = parts.addresses[first], parts.lengths[first]
            else:
                text, size = address_of(room), np.int64(0)
                for part in range(first, after):
                    if part > first:
                        put_byte(room, size, NEWLINE)
                        size += 1
                    # half of a surrogate pair makes the empty text
                    end = unescape(parts.addresses[part], 0, parts.lengths[part], room, size)
                    size = max(size, end)
        found[pair] = _place(text, size, needle, length) >= 0
