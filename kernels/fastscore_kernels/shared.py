"""Common members of two lists, and common character n-grams of two texts.

A row's members are inserted into one small table, those of the first side before those of the
other. Stamps mark the slots of earlier rows as empty, so the table is never cleared.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, UInt8Array, UInt64Array
from fastscore_jit.arrow import string_column
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined, inlined
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_offsets, as_vector, same_length

from fastscore_kernels.levenshtein import decode

LONGEST_NGRAM = 6
"""Number of code points that fit into two words."""

_ROWS_PER_CHUNK = 1 << 12
_BITS = 21
_PER_WORD = 3
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_OTHER_MULTIPLIER = np.uint64(0xC2B2AE3D27D4EB4F)

Lists = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]


class _Lists(NamedTuple):
    """Members of two words each, and where each list begins, (lists + 1,)."""

    high: UInt64Array
    low: UInt64Array
    offsets: Int64Array


class _Texts(NamedTuple):
    """UTF-8 of all texts, and where each begins, (texts + 1,)."""

    data: UInt8Array
    offsets: Int64Array


class _Table(NamedTuple):
    """Slots of members, and their stamps: the row and the side that last used each."""

    high: UInt64Array
    low: UInt64Array
    stamps: Int64Array


def count_shared_members(a: Lists, b: Lists, *, threads: int | None = None) -> Int64Array:
    """Count the distinct members of each pair of lists.

    Parameters
    ----------
    a, b : (uint64 high words, uint64 low words, int64 offsets)
        Two columns with equal numbers of lists. Two members are equal if both words are.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    int64 (3, n)
        The numbers of distinct members of ``a``, of ``b`` and of both.
    """
    left, right = _validate("a", a), _validate("b", b)
    same_length("a", left.offsets.size - 1, "b", right.offsets.size - 1)
    counts = np.empty((3, left.offsets.size - 1), np.int64)
    run_chunks(
        lambda start, stop: _count_members(left, right, counts, start, stop),
        counts.shape[1],
        chunk=_ROWS_PER_CHUNK,
        threads=threads,
    )
    return counts


def count_shared_ngrams(a: Any, b: Any, order: int, *, threads: int | None = None) -> Int64Array:
    """Count the distinct character n-grams of each pair of texts.

    Parameters
    ----------
    a, b
        Columns with equal numbers of strings, without nulls; see `levenshtein_pairs`.
    order
        Code points per n-gram, 1 to 6. A shorter text is one n-gram.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    int64 (3, n)
        The numbers of distinct n-grams of ``a``, of ``b`` and of both.
    """
    if not 1 <= order <= LONGEST_NGRAM:
        raise ValueError(f"`order` is {order}; expected 1 to {LONGEST_NGRAM}")
    one, other = string_column("a", a), string_column("b", b)
    same_length("a", len(one), "b", len(other))
    left, right = _Texts(one.data, one.offsets), _Texts(other.data, other.offsets)
    counts = np.empty((3, len(one)), np.int64)
    run_chunks(
        lambda start, stop: _count_ngrams(left, right, order, counts, start, stop),
        counts.shape[1],
        chunk=_ROWS_PER_CHUNK,
        threads=threads,
    )
    return counts


def _validate(name: str, column: Lists) -> _Lists:
    high = as_vector(f"{name}[0]", column[0], np.uint64)
    low = as_vector(f"{name}[1]", column[1], np.uint64)
    same_length(f"{name}[0]", high.size, f"{name}[1]", low.size)
    return _Lists(high, low, as_offsets(f"{name}[2]", column[2], high.size))


@always_inlined
def _find(table, mask, shift, empty, high, low):  # type: ignore[no-untyped-def]
    """Return a member's slot, or the free slot for it; stamps up to ``empty`` are old."""
    mixed = (high * _MULTIPLIER) ^ (low * _OTHER_MULTIPLIER)
    slot = np.int64(mixed >> shift)  # upper bits, which depend on all bits of both words
    while table.stamps[slot] > empty and (table.high[slot] != high or table.low[slot] != low):
        slot = (slot + 1) & mask
    return slot


@inlined
def _count(table, number, one, other, counts):  # type: ignore[no-untyped-def]
    """Count (3,) the distinct members of two lists; ``number`` is the number of earlier pairs."""
    empty = 2 * number
    high, low = one
    other_high, other_low = other
    mask, shift = np.int64(15), np.uint64(60)
    while mask < 2 * (high.size + other_high.size):
        mask, shift = 2 * mask + 1, shift - np.uint64(1)
    counts[0] = counts[1] = counts[2] = 0
    for at in range(high.size):
        slot = _find(table, mask, shift, empty, high[at], low[at])
        if table.stamps[slot] <= empty:
            table.high[slot], table.low[slot] = high[at], low[at]
            table.stamps[slot] = empty + 1
            counts[0] += 1
    for at in range(other_high.size):
        slot = _find(table, mask, shift, empty, other_high[at], other_low[at])
        if table.stamps[slot] <= empty:
            table.high[slot], table.low[slot] = other_high[at], other_low[at]
        elif table.stamps[slot] == empty + 1:
            counts[2] += 1
        else:
            continue
        table.stamps[slot] = empty + 2
        counts[1] += 1


@inlined
def _longest(offsets, start, stop):  # type: ignore[no-untyped-def]
    longest = np.int64(0)
    for row in range(start, stop):
        longest = max(longest, offsets[row + 1] - offsets[row])
    return longest


@inlined
def _make_table(members):  # type: ignore[no-untyped-def]
    """Return a table of which two lists of a number of members fill at most half."""
    size = np.int64(16)
    while size - 1 < 2 * members:
        size *= 2
    return _Table(np.empty(size, np.uint64), np.empty(size, np.uint64), np.zeros(size, np.int64))


@kernel(
    "_Lists(uint64[:], uint64[:], int64[:]), _Lists(uint64[:], uint64[:], int64[:]), "
    "out(int64[:, :]), int64, int64",
    fastmath=False,
)
def _count_members(a: _Lists, b: _Lists, counts, start, stop):  # type: ignore[no-untyped-def]
    """Count the members of lists ``start`` to ``stop``."""
    table = _make_table(_longest(a.offsets, start, stop) + _longest(b.offsets, start, stop))
    found = np.empty(3, np.int64)
    for row in range(start, stop):
        i, i_stop = a.offsets[row], a.offsets[row + 1]
        j, j_stop = b.offsets[row], b.offsets[row + 1]
        one, other = (a.high[i:i_stop], a.low[i:i_stop]), (b.high[j:j_stop], b.low[j:j_stop])
        _count(table, row - start, one, other, found)
        counts[0, row], counts[1, row], counts[2, row] = found[0], found[1], found[2]


@inlined
def _pack(points, size, order, high, low):  # type: ignore[no-untyped-def]
    """Write the n-grams of a text's code points in two words each; return their number.

    Code points count from 1, so that no shorter text is equal to an n-gram that begins with 0.
    """
    order = min(order, size)
    grams = size - order + 1 if size else np.int64(0)
    first = min(order, _PER_WORD)
    for at in range(grams):
        key = np.uint64(0)
        for step in range(first):
            key = (key << np.uint64(_BITS)) | np.uint64(points[at + step] + 1)
        high[at] = key
        key = np.uint64(0)
        for step in range(first, order):
            key = (key << np.uint64(_BITS)) | np.uint64(points[at + step] + 1)
        low[at] = key
    return grams


@kernel(
    "_Texts(uint8[:], int64[:]), _Texts(uint8[:], int64[:]), int64, out(int64[:, :]), int64, int64",
    fastmath=False,
)
def _count_ngrams(a: _Texts, b: _Texts, order, counts, start, stop):  # type: ignore[no-untyped-def]
    """Count the n-grams of texts ``start`` to ``stop``."""
    longest = max(_longest(a.offsets, start, stop), _longest(b.offsets, start, stop))
    table = _make_table(2 * longest)
    points, found = np.empty(longest, np.int32), np.empty(3, np.int64)
    high, low = np.empty((2, longest), np.uint64), np.empty((2, longest), np.uint64)
    for row in range(start, stop):
        size = decode(a.data, a.offsets[row], a.offsets[row + 1], points)
        grams = _pack(points, size, order, high[0], low[0])
        one = (high[0, :grams], low[0, :grams])
        size = decode(b.data, b.offsets[row], b.offsets[row + 1], points)
        grams = _pack(points, size, order, high[1], low[1])
        other = (high[1, :grams], low[1, :grams])
        _count(table, row - start, one, other, found)
        counts[0, row], counts[1, row], counts[2, row] = found[0], found[1], found[2]
