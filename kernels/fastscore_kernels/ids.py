"""Ids of 128 bits: hashes of texts, deduplication, and lookup in sorted ids.

Texts are hashed by MurmurHash3_x64_128 (Austin Appleby, public domain) with seed 0. An id is two
words. "Sorted" means by first word, then by second. Ids are hashes, so their first words are
uniformly distributed. Other ids are found, too, but more slowly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, UInt64Array
from fastscore_jit.arrow import text_rows
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import inlined
from fastscore_jit.memory import View, Views, address_of, load_short, load_word, prefetch
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import read_only, same_length

_ROWS_PER_CHUNK = 1 << 16
_WORD_BYTES = 8
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
    rows = _id_rows(ids)
    order = read_only(np.argsort(ids[:, 0]))
    first, second = np.empty(len(ids), np.uint64), np.empty(len(ids), np.uint64)
    positions, inverse = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
    count = _distinct(rows, order, first, second, positions, inverse)
    return first[:count], second[:count], positions[:count], inverse


def _id_rows(ids: UInt64Array) -> UInt64Array:
    if ids.dtype != np.uint64 or ids.ndim != 2 or ids.shape[1] != 2:
        raise ValueError(
            f"`ids` has dtype {ids.dtype}, shape {ids.shape}; expected uint64 of shape (n, 2)"
        )
    return read_only(np.ascontiguousarray(ids))


_ROW_BITS, _GROUP_BITS = 32, 24
_ID_SHIFT = np.uint64(_ROW_BITS + _GROUP_BITS)
_ROWS_AHEAD = 16

IdGroup = tuple[UInt64Array, UInt64Array]
"""The first and the second words of some ids, uint64 (n,) each, C-contiguous."""


@dataclass(frozen=True, slots=True, eq=False)
class IdIndex:
    """Groups of ids, ready to be searched; made by `index_ids`."""

    groups: tuple[IdGroup, ...]
    _words: Views  # the first and the second words of each group
    # Each id has a word in the slot of its top bits, or in the next free one, so sorted ids have
    # theirs side by side: 32 bits of its row, 24 of its group's number from 1 on, 8 of the id. The
    # last slot counts the groups.
    _slots: UInt64Array

    def find(self, ids: UInt64Array, *, threads: int | None = None) -> Int64Array:
        """Find ids.

        Parameters
        ----------
        ids : uint64 (n, 2)
            In any order.
        threads
            Number of threads; None for one per processor.

        Returns
        -------
        int64 (n,)
            2**32 times the id's group, plus its row there; -1 if it is missing. If several groups
            have it, the first counts.
        """
        rows, places = _id_rows(ids), np.empty(len(ids), np.int64)
        run_chunks(
            lambda start, stop: _find(rows, start, stop, self._words, self._slots, places),
            len(rows),
            chunk=_ROWS_PER_CHUNK,
            threads=threads,
        )
        return places


def index_ids(groups: Sequence[IdGroup], former: IdIndex | None = None) -> IdIndex:
    """Index groups of distinct ids; an id takes 11 to 21 bytes.

    Parameters
    ----------
    groups
        The ids of each group, best sorted. Their words are not copied.
    former
        An index of the first of these groups, the same objects: only the others are added. It
        finds the same as before, also in threads that use it meanwhile. Other indexes are ignored.
    """
    size = sum(len(first) for first, _ in groups)
    known = () if former is None else former.groups
    if (
        former is None
        or former._slots[-1] != len(known)  # another index took the free slots
        or 4 * size > 3 * (former._slots.size - 1)
        or len(known) > len(groups)
        or not all(map(is_, known, groups))
    ):
        slots = np.zeros(max(2, 1 << (4 * size // 3).bit_length()) + 1, np.uint64)
        known, words = (), Views(np.empty(0, np.int64), np.empty(0, np.int64))
    else:
        slots, words = former._slots, former._words
    if len(groups) >> _GROUP_BITS:
        raise ValueError(f"There are {len(groups)} groups; expected fewer than {2**_GROUP_BITS}")
    places = []
    for group in groups[len(known) :]:
        for name, each in zip(("first", "second"), group, strict=True):
            if each.dtype != np.uint64 or each.ndim != 1 or not each.flags.c_contiguous:
                raise ValueError(
                    f"`{name}` has dtype {each.dtype}, shape {each.shape}; expected contiguous "
                    "uint64 (n,)"
                )
            places.append((each.ctypes.data, each.nbytes))
        same_length("first", len(group[0]), "second", len(group[1]))
    addresses, lengths = np.array(places, np.int64).reshape(-1, 2).T
    words = Views(
        read_only(np.append(words.addresses, addresses)),
        read_only(np.append(words.lengths, lengths)),
    )
    for number, (first, _) in enumerate(groups[len(known) :], start=len(known) + 1):
        _add(read_only(first), number, slots)
    return IdIndex(tuple(groups), words, slots)


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


@inlined
def _slot_shift(slots):  # type: ignore[no-untyped-def]
    """Return by how many bits a first word is shifted to give its slot."""
    return np.uint64(64 - trailing_zeros(np.uint64(slots.size - 1)))


@kernel("uint64[:], int64, out(uint64[:])", fastmath=False)
def _add(first: Any, number: Any, slots: Any) -> None:
    """Add a group to the slots."""
    shift, last = _slot_shift(slots), slots.size - 2
    for row in range(first.size):
        at = np.int64(first[row] >> shift)
        while slots[at]:
            at = (at + 1) & last
        slots[at] = first[row] << _ID_SHIFT | np.uint64(number << _ROW_BITS | row)
    slots[last + 1] = number


@kernel(
    "uint64[:, :], int64, int64, Views(int64[:], int64[:]), uint64[:], out(int64[:])",
    fastmath=False,
)
def _find(ids, start, stop, words: Views, slots, places):  # type: ignore[no-untyped-def]
    """Write the place of each id from ``start`` to ``stop``, (n,); -1 if it is missing."""
    addresses, lengths = words
    shift, last = _slot_shift(slots), slots.size - 2
    for row in range(start, stop):
        ahead = min(row + _ROWS_AHEAD, stop - 1)
        prefetch(address_of(slots, _WORD_BYTES * np.int64(ids[ahead, 0] >> shift), _WORD_BYTES))
        first, second = ids[row, 0], ids[row, 1]
        at = np.int64(first >> shift)
        places[row] = -1
        while slots[at]:
            found = slots[at]
            at = (at + 1) & last
            group = np.int64(found >> np.uint64(_ROW_BITS) & np.uint64(2**_GROUP_BITS - 1)) - 1
            # groups of a larger index that shares the slots do not count
            if found >> _ID_SHIFT != first & np.uint64(0xFF) or 2 * group >= lengths.size:
                continue
            held = np.int64(found & np.uint64(2**_ROW_BITS - 1))
            own = View(addresses[2 * group], lengths[2 * group])
            other = View(addresses[2 * group + 1], lengths[2 * group + 1])
            place = _WORD_BYTES * held
            if load_word(own, place) == first and load_word(other, place) == second:
                places[row] = group << _ROW_BITS | held
                break
