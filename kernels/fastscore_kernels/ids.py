"""Ids of 128 bits: hashes of texts, deduplication, and lookup in sorted ids.

Texts are hashed by MurmurHash3_x64_128 (Austin Appleby, public domain) with seed 0. An id is two
words. "Sorted" means by first word, then by second. Ids are hashes, so their first words are
uniformly distributed. Other ids are found, too, but more slowly.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, UInt64Array
from fastscore_jit.arrow import text_rows
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import inlined
from fastscore_jit.memory import View, Views, load_short, load_word
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_vector, read_only, same_length

_ROWS_PER_CHUNK = 1 << 16
_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)


def text_hash128(strings: Any, *, threads: int | None = None) -> npt.NDArray[np.uint64]:
    """Hash the UTF-8 bytes of each string.

    Parameters
    ----------
    strings
        Arrow strings or a polars Series, without nulls.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    uint64 (n, 2)
        The two words of MurmurHash3_x64_128 with seed 0, the same on every platform. The empty
        string is (0, 0).
    """
    rows = text_rows("strings", strings)
    views, out = rows.views, np.empty((len(rows), 2), np.uint64)
    run_chunks(
        lambda start, stop: _hash_rows(views, start, stop, out),
        len(out),
        chunk=_ROWS_PER_CHUNK,
        threads=threads,
    )
    return out


@inlined
def _rotate_left(word, count):  # type: ignore[no-untyped-def]
    return (word << np.uint64(count)) | (word >> np.uint64(64 - count))


@inlined
def _little_endian(text, start, stop):  # type: ignore[no-untyped-def]
    """Read up to eight bytes as one word."""
    if stop - start == 8:
        return load_word(text, start)
    return load_short(text, start, stop - start)


@inlined
def _finish(word):  # type: ignore[no-untyped-def]
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xFF51AFD7ED558CCD)
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


@kernel("Views(int64[:], int64[:]), int64, int64, out(uint64[:, :])", fastmath=False)
def _hash_rows(rows: Views, start, stop, out):  # type: ignore[no-untyped-def]
    """Write the two words of each row's hash (rows, 2), from ``start`` to ``stop``."""
    addresses, lengths = rows
    for row in range(start, stop):
        text, end = View(addresses[row], lengths[row]), lengths[row]
        at = np.int64(0)
        length = np.uint64(end)
        h1 = np.uint64(0)
        h2 = np.uint64(0)
        while at + 16 <= end:
            k1 = _rotate_left(load_word(text, at) * _C1, 31) * _C2
            h1 = (_rotate_left(h1 ^ k1, 27) + h2) * np.uint64(5) + np.uint64(0x52DCE729)
            k2 = _rotate_left(load_word(text, at + 8) * _C2, 33) * _C1
            h2 = (_rotate_left(h2 ^ k2, 31) + h1) * np.uint64(5) + np.uint64(0x38495AB5)
            at += 16
        if at + 8 < end:
            h2 ^= _rotate_left(_little_endian(text, at + 8, end) * _C2, 33) * _C1
        if at < end:
            h1 ^= _rotate_left(_little_endian(text, at, min(end, at + 8)) * _C1, 31) * _C2
        h1 ^= length
        h2 ^= length
        h1 += h2
        h2 += h1
        h1 = _finish(h1)
        h2 = _finish(h2)
        h1 += h2
        h2 += h1
        out[row, 0] = h1
        out[row, 1] = h2


_MOST_IDS = 2**31 - 1
_SCANNED = 8


def distinct_ids(ids: UInt64Array) -> tuple[UInt64Array, UInt64Array, Int64Array, Int64Array]:
    """Sort ids and drop repeats.

    Parameters
    ----------
    ids : uint64 (n, 2)

    Returns
    -------
    first, second : uint64 (m,)
        The words of the distinct ids, sorted.
    positions : int64 (m,)
        The position of each distinct id's first occurrence in `ids`.
    inverse : int64 (n,)
        The index of each id among the distinct ids.
    """
    if ids.dtype != np.uint64 or ids.ndim != 2 or ids.shape[1] != 2:
        raise ValueError(
            f"`ids` has dtype {ids.dtype}, shape {ids.shape}; expected uint64 of shape (n, 2)"
        )
    order = read_only(np.argsort(ids[:, 0]))
    first, second = np.empty(len(ids), np.uint64), np.empty(len(ids), np.uint64)
    positions, inverse = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
    rows = read_only(np.ascontiguousarray(ids))
    count = _distinct(rows, order, first, second, positions, inverse)
    return first[:count], second[:count], positions[:count], inverse


def bucket_starts(sorted_first: UInt64Array) -> npt.NDArray[np.int32]:
    """Index sorted ids for `find_ids`: the first id of each bucket of first words.

    Parameters
    ----------
    sorted_first : uint64 (n,)
        First words, ascending.

    Returns
    -------
    int32 (buckets + 1,)
        The number of buckets is a power of two, about n.
    """
    words = as_vector("sorted_first", sorted_first, np.uint64)
    if words.size > _MOST_IDS:
        raise ValueError(f"`sorted_first` has {words.size} words; expected at most {_MOST_IDS}")
    starts = np.empty((1 << max(1, words.size.bit_length() - 1)) + 1, np.int32)
    _bucket_starts(words, starts)
    return starts


def find_ids(
    first: UInt64Array,
    second: UInt64Array,
    sorted_first: UInt64Array,
    sorted_second: UInt64Array,
    starts: npt.NDArray[np.int32],
) -> Int64Array:
    """Find ids among sorted, distinct ones.

    Parameters
    ----------
    first, second : uint64 (n,)
        The ids to find, in any order.
    sorted_first, sorted_second : uint64 (m,)
        The ids to find them among.
    starts : int32
        `bucket_starts` of `sorted_first`.

    Returns
    -------
    int64 (n,)
        The index of each id among the sorted ids; -1 if it is missing.
    """
    needles = as_vector("first", first, np.uint64), as_vector("second", second, np.uint64)
    sought = (
        as_vector("sorted_first", sorted_first, np.uint64),
        as_vector("sorted_second", sorted_second, np.uint64),
    )
    same_length("first", len(first), "second", len(second))
    same_length("sorted_first", len(sorted_first), "sorted_second", len(sorted_second))
    bounds = as_vector("starts", starts, np.int32)
    if bounds.size < 3 or bounds[-1] != len(sorted_first):
        raise ValueError("`starts` was made of other ids than `sorted_first`")
    places = np.empty(len(first), np.int64)
    _find(*needles, *sought, bounds, places)
    return places


@kernel(
    "uint64[:, :], int64[:], out(uint64[:]), out(uint64[:]), out(int64[:]), out(int64[:])",
    returns="int64",
    fastmath=False,
)
def _distinct(  # type: ignore[no-untyped-def]
    ids, order, first, second, positions, inverse
):
    """Walk ids in the order of their first words; compare second words if first words are equal."""
    size = order.size
    for at in range(size):
        row = order[at]
        first[at], second[at] = ids[row, 0], ids[row, 1]
    count = 0
    at = 0
    while at < size:
        word = first[at]
        stop = at + 1
        while stop < size and first[stop] == word:
            stop += 1
        if stop == at + 1:
            first[count], second[count], positions[count] = word, second[at], order[at]
            inverse[order[at]] = count
            count += 1
        lowest, left = np.uint64(0), stop - at if stop > at + 1 else 0
        while left > 0:
            # the smallest remaining second word, and its first row
            least, position = np.uint64(0xFFFFFFFFFFFFFFFF), ids.shape[0]
            for place in range(at, stop):
                other = ids[order[place], 1]
                if other >= lowest and other < least:
                    least = other
            for place in range(at, stop):
                if ids[order[place], 1] == least:
                    position = min(position, order[place])
                    inverse[order[place]] = count
                    left -= 1
            first[count], second[count], positions[count] = word, least, position
            count += 1
            lowest = least + np.uint64(1)
        at = stop
    return count


@kernel("uint64[:], out(int32[:])", fastmath=False)
def _bucket_starts(words: Any, starts: Any) -> None:
    """Write the index of the first id of each bucket, (buckets + 1,)."""
    shift = np.uint64(64)
    buckets = starts.size - 1
    while buckets > 1:
        shift -= np.uint64(1)
        buckets >>= 1
    bucket = np.int64(0)
    for at in range(words.size):
        own = np.int64(words[at] >> shift)
        while bucket <= own:
            starts[bucket] = at
            bucket += 1
    starts[bucket:] = words.size


@kernel("uint64[:], uint64[:], uint64[:], uint64[:], int32[:], out(int64[:])", fastmath=False)
def _find(  # type: ignore[no-untyped-def]
    first, second, sorted_first, sorted_second, starts, places
):
    """Write the index of each id among the sorted ids, (n,); -1 if it is missing."""
    shift = np.uint64(64)
    buckets = starts.size - 1
    while buckets > 1:
        shift -= np.uint64(1)
        buckets >>= 1
    for row in range(first.size):
        word = first[row]
        bucket = np.int64(word >> shift)
        at = np.int64(starts[bucket])
        stop = np.int64(starts[bucket + 1])
        end = stop
        while end - at > _SCANNED:
            middle = (at + end) >> 1
            if sorted_first[middle] < word:
                at = middle + 1
            else:
                end = middle
        while at < stop and sorted_first[at] < word:
            at += 1
        places[row] = -1
        while at < stop and sorted_first[at] == word:
            if sorted_second[at] == second[row]:
                places[row] = at
                break
            at += 1
