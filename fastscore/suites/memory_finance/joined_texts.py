"""What was recalled: JSON strings, searched in place.

Nothing is unescaped but what must be to be searched, and that into memory that stays in the cache.
Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Int64Array, Mask, UInt8Array
from fastscore_jit.arrow import text_rows
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.byte_blocks import equal_bytes, lower_bytes, prefetch_text
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import inlined
from fastscore_jit.memory import BLOCK, View, Views, load_byte, put_byte, same_bytes, subview
from fastscore_jit.validation import read_only, same_length
from fastscore_readers.json import tokens
from fastscore_readers.json.located_values import views
from fastscore_readers.json.tokens import BACKSLASH, NEWLINE, QUOTE, SPACE, unescape

from fastscore.suites.json_values import JsonValues, Problems, string_views, unescape_rows

PLAIN, ESCAPED, NUMBERED = range(3)
r"""How a JSON string is written: without escapes, with two-character ones, or also with ``\u``."""

_PAIRS_AHEAD = 2
_NONE, _ONE = np.uint64(0), np.uint64(1)
_SLASH = 0x2F


def written_texts(
    columns: Sequence[JsonValues], problems: Problems
) -> tuple[pl.Series, UInt8Array]:
    """Return the insides of strings as they are written, and how (`PLAIN` ...).

    What is missing is the empty text; values of other types, and a lone surrogate, are
    noted.
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
    written: Any, escapes: UInt8Array, offsets: Int64Array, haystacks: Int64Array, needles: Any
) -> Mask:
    r"""Tell whether texts hold others, the former being JSON strings joined by line ends."""
    parts, wanted = text_rows("written", written), text_rows("needles", needles)
    found = np.zeros(haystacks.size, np.bool_)
    same_length("needles", len(wanted.lengths), "haystacks", found.size)
    same_length("written", len(parts.lengths), "escapes", escapes.size)
    ends = np.append(0, np.cumsum(parts.lengths + 1))
    scratch = np.empty(int(np.diff(ends[offsets]).max(initial=0)), np.uint8)
    ways, places, chosen = read_only(escapes), read_only(offsets), read_only(haystacks)
    _search(parts.views, ways, places, chosen, wanted.views, scratch, found)
    return found


@inlined
def _find(text: View, needle: View) -> int:
    """Where a text holds another, of at least one byte; -1 if nowhere."""
    size, length = text.length, needle.length
    last = length - 1
    # of a character the last byte tells most
    first = min(2, last)
    first_byte, last_byte = load_byte(needle, first), load_byte(needle, last)
    index, after = 0, size - last
    while index < after:
        if after < BLOCK:
            if load_byte(text, index + last) == last_byte and same_bytes(
                text, index, needle, 0, length
            ):
                return int(index)
            index += 1
            continue
        # the last block overlaps the one before
        index = min(index, after - BLOCK)
        found = equal_bytes(text, index + first, first_byte)
        found &= equal_bytes(text, index + last, last_byte)
        while found != _NONE:
            place = index + trailing_zeros(found)
            if same_bytes(text, place, needle, 0, length):
                return int(place)
            found &= found - _ONE
        index += BLOCK
    return -1


@inlined
def _needs_no_escape(needle: View) -> bool:
    """Whether no escape of two characters can mean a character of a text."""
    index = 0
    while index + BLOCK <= needle.length:
        special = equal_bytes(needle, index, QUOTE) | equal_bytes(needle, index, BACKSLASH)
        special |= equal_bytes(needle, index, _SLASH) | lower_bytes(needle, index, SPACE)
        if special != _NONE:
            return False
        index += BLOCK
    while index < needle.length:
        byte = load_byte(needle, index)
        if byte < SPACE or byte == QUOTE or byte == BACKSLASH or byte == _SLASH:
            return False
        index += 1
    return True


@inlined
def _contains_unescaped(parts: Any, escapes: Any, first: Any, after: Any, needle: View) -> int:
    """Whether a text without escapes is in any of some strings: 1, 0, or -1 if unsure."""
    for part in range(first, after):
        if escapes[part] == NUMBERED:
            return -1
        text = View(parts.addresses[part], parts.lengths[part])
        at = _find(text, needle)
        if at < 0:
            continue
        # what follows a backslash may be its letter
        if at > 0 and escapes[part] != PLAIN and load_byte(text, at - 1) == BACKSLASH:
            return -1
        return 1
    return 0


@kernel(
    "Views(int64[:], int64[:]), uint8[:], int64[:], int64[:], Views(int64[:], int64[:]), "
    "out(uint8[:]), out(bool[:])",
    fastmath=False,
    allocates=False,
)
def _search(
    parts: Views,
    escapes: Any,
    offsets: Any,
    haystacks: Any,
    needles: Views,
    scratch: Any,
    found: Any,
) -> None:
    """Search haystacks; one that is not searched as it is written is unescaped to ``scratch``."""
    searched, text = np.int64(-1), subview(scratch, 0, 0)
    for pair in range(haystacks.size):
        if pair + _PAIRS_AHEAD < haystacks.size:
            prefetch_text(
                View(needles.addresses[pair + _PAIRS_AHEAD], needles.lengths[pair + _PAIRS_AHEAD])
            )
            ahead = haystacks[pair + _PAIRS_AHEAD]
            for part in range(offsets[ahead], offsets[ahead + 1]):
                prefetch_text(View(parts.addresses[part], parts.lengths[part]))
        needle = View(needles.addresses[pair], needles.lengths[pair])
        if needle.length == 0:
            found[pair] = True
            continue
        first, after = offsets[haystacks[pair]], offsets[haystacks[pair] + 1]
        if _needs_no_escape(needle):
            held = _contains_unescaped(parts, escapes, first, after, needle)
            if held >= 0:
                found[pair] = held == 1
                continue
        if haystacks[pair] != searched:
            searched = haystacks[pair]
            if after - first == 1 and escapes[first] == PLAIN:
                text = View(parts.addresses[first], parts.lengths[first])
            else:
                size: Any = np.int64(0)
                for part in range(first, after):
                    if part > first:
                        put_byte(scratch, size, NEWLINE)
                        size += 1
                    written = View(parts.addresses[part], parts.lengths[part])
                    # a lone surrogate makes the empty text
                    size = max(size, unescape(written, 0, written.length, scratch, size))
                text = subview(scratch, 0, size)
        found[pair] = _find(text, needle) >= 0
