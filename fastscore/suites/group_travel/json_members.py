"""Members of JSON objects whose keys are not known beforehand.

The kernel takes valid JSON; its memory is safe for any bytes. Comparisons are spelled out, because
`in` over a tuple compiles to slower code.
"""
# ruff: noqa: SIM109

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices, Int64Array, Mask
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.byte_blocks import byte_marks
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined, inlined
from fastscore_jit.memory import BLOCK, block_at, byte_at, item_at
from fastscore_jit.validation import as_ranges, as_vector
from fastscore_kernels import number_ranges
from fastscore_readers.json.located_values import value_kinds
from fastscore_readers.json.tokens import (
    ARRAY,
    BACKSLASH,
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COMMA,
    ESCAPED,
    FLOAT,
    INTEGER,
    OBJECT,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    SPACE,
    TRUE,
)

from fastscore.suites.columns import replace_lone_surrogates
from fastscore.suites.grouping import factorize, first_of_each
from fastscore.suites.json_values import JsonValues, Problems, texts

BLANKS = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
"""What Python's ``strip`` takes off."""
_MEMBERS_PER_OBJECT = 16
_ends_of_strings = byte_marks(b'"\\')
_marks_of_containers = byte_marks(b'"[]{}')


@dataclass(frozen=True, slots=True)
class KeyedMembers:
    """All members of objects, in the order of their text."""

    values: JsonValues  # the values of the members
    owner: Indices  # the row of each one's object, ascending
    key: Indices  # the number of each one's key, int64 (n,)
    keys: pl.Series  # the distinct keys

    def take(self, rows: Indices) -> "KeyedMembers":
        """Return the members in these rows."""
        return replace(
            self, values=self.values.take(rows), owner=self.owner[rows], key=self.key[rows]
        )


def all_members(values: JsonValues) -> KeyedMembers:
    """Find all members of objects, whatever their keys are; of equal keys the last counts."""
    is_object = values.tags == OBJECT
    start, end = (np.where(is_object, place, 0) for place in (values.start, values.end))
    found = find_members(values.data, start, end)
    written, firsts = number_ranges(values.data, found.key_start, found.key_end)
    key_start, key_end = found.key_start[firsts], found.key_end[firsts]
    tags = np.full(len(firsts), ESCAPED, np.uint8)
    as_written = JsonValues(values.data, tags, key_start, key_end, np.arange(len(tags)), str)
    # one key may be written in several ways
    codes, keys = factorize(texts_or_replaced(as_written))
    key, owner = codes[written], found.owner
    tags, start, end = value_kinds(values.data, found.start, found.end)
    below = JsonValues(values.data, tags, start, end, values.dialogue[owner], values.path)
    everything = KeyedMembers(below, owner, key, keys)
    latest = len(key) - 1 - first_of_each((owner * len(keys) + key)[::-1])[::-1]
    return everything if len(latest) == len(key) else everything.take(latest)


def texts_or_replaced(values: JsonValues) -> pl.Series:
    """Return strings, null where a value is none; a lone surrogate is U+FFFD."""
    numbered, problems = replace(values, dialogue=np.arange(len(values))), Problems()
    found = texts(numbered, problems)
    rows = list(problems.by_dialogue)
    return found.scatter(rows, [replace_lone_surrogates(values.python(row)) for row in rows])


def is_container(values: JsonValues) -> Mask:
    """Tell which values are arrays or objects."""
    found: Mask = (values.tags == ARRAY) | (values.tags == OBJECT)
    return found


def scalars(values: JsonValues) -> pl.Series:
    """Return scalars as Python's ``str`` writes them, null for nothing, null and containers."""
    found = texts_or_replaced(values)
    others = np.flatnonzero(~values.is_text & ~values.is_missing & ~is_container(values))
    return found.scatter(others, [_scalar(values, row) for row in others.tolist()])


def _scalar(values: JsonValues, row: int) -> str:
    try:
        return str(values.python(row))
    except ValueError:
        # more digits than Python converts
        return values.raw(row)


def is_bare(texts: pl.Series, words: Sequence[str]) -> pl.Series:
    """Tell which texts are one of some words. Case and blanks around them do not count."""
    bare = pl.col("text").str.strip_chars(BLANKS).str.to_lowercase()
    is_word = bare.is_in(list(words)).fill_null(False)
    return texts.to_frame("text").select(is_word).to_series()


def flags(values: JsonValues) -> pl.Series:
    """Return flags: true, 1, "true", "yes" and "1" are true, null is unknown, others are false."""
    written = is_bare(texts_or_replaced(values), ("true", "yes", "1"))
    true = written.to_numpy() | (values.tags == TRUE)
    numbers = np.flatnonzero((values.tags == INTEGER) | (values.tags == FLOAT))
    true[numbers] = [float(values.raw(row)) == 1 for row in numbers.tolist()]
    return pl.Series(true).set(pl.Series(values.is_missing), None)


class Members(NamedTuple):
    """Members in the order of their text, int64 (m,) each."""

    owner: Int64Array  # the range that contains the object
    # the bytes of the key, inside its quotes
    key_start: Int64Array
    key_end: Int64Array
    # the bytes of the value
    start: Int64Array
    end: Int64Array


def find_members(data: npt.ArrayLike, starts: npt.ArrayLike, ends: npt.ArrayLike) -> Members:
    """Find the members of the objects in byte ranges; a range without an object has none."""
    flat = as_vector("data", data, np.uint8)
    first, last = as_ranges("starts", starts, "ends", ends, flat.size)
    found = np.empty((5, _MEMBERS_PER_OBJECT * first.size), np.int64)
    count = _find(flat, first, last, found)
    if count > found.shape[1]:
        found = np.empty((5, count), np.int64)
        _find(flat, first, last, found)
    return Members(*found[:, :count])


@always_inlined
def _after_blanks(data: Any, at: Any, end: Any) -> Any:
    while at < end and byte_at(data, at) <= SPACE:
        at += 1
    return at


@inlined
def _after_string(data: Any, at: Any, end: Any) -> Any:
    """Return where a string ends, its quote included; ``at`` is after its first quote."""
    while at < end:
        if at + BLOCK <= end:
            marks = _ends_of_strings(block_at(data, at))
            if marks == 0:
                at += BLOCK
                continue
            at += trailing_zeros(marks)
        byte = byte_at(data, at)
        if byte == QUOTE:
            return at + 1
        at += 2 if byte == BACKSLASH else 1
    return end


@inlined
def _after_container(data: Any, at: Any, end: Any) -> Any:
    """Return where the array or object at a place ends."""
    depth = 0
    while at < end:
        if at + BLOCK <= end:
            marks = _marks_of_containers(block_at(data, at))
            if marks == 0:
                at += BLOCK
                continue
            at += trailing_zeros(marks)
        byte = byte_at(data, at)
        at += 1
        if byte == QUOTE:
            at = _after_string(data, at, end)
        elif byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            depth += 1
        elif byte == CLOSE_OBJECT or byte == CLOSE_ARRAY:
            depth -= 1
            if depth == 0:
                break
    return at


@inlined
def _after_value(data: Any, at: Any, end: Any) -> Any:
    byte = byte_at(data, at)
    if byte == QUOTE:
        return _after_string(data, at + 1, end)
    if byte == OPEN_OBJECT or byte == OPEN_ARRAY:
        return _after_container(data, at, end)
    while at < end and byte_at(data, at) > SPACE:
        byte = byte_at(data, at)
        if byte == COMMA or byte == CLOSE_OBJECT:
            break
        at += 1
    return at


@kernel(
    "uint8[:], int64[:], int64[:], out(int64[:, :])",
    returns="int64",
    fastmath=False,
    allocates=False,
)
def _find(data: Any, starts: Any, ends: Any, found: Any) -> int:
    """List `Members` in the columns of ``found`` as far as there is room; return their number."""
    count = 0
    for row in range(starts.size):
        end = item_at(ends, row)
        at = _after_blanks(data, item_at(starts, row), end)
        is_object = at < end and byte_at(data, at) == OPEN_OBJECT
        at = _after_blanks(data, at + 1, end)
        while is_object and at < end and byte_at(data, at) == QUOTE:
            key = at + 1
            at = _after_string(data, key, end)
            key_end = max(key, at - 1)
            # the colon is between them
            start = _after_blanks(data, _after_blanks(data, at, end) + 1, end)
            if start >= end:
                break
            at = _after_value(data, start, end)
            if count < found.shape[1]:
                found[0, count], found[1, count], found[2, count] = row, key, key_end
                found[3, count], found[4, count] = start, at
            count += 1
            # a comma is between members
            at = _after_blanks(data, _after_blanks(data, at, end) + 1, end)
    return count
