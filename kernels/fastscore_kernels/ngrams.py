"""Copy ratio: the share of a system turn's word n-grams that the user's turn has too.

A word is ``[A-Za-z0-9]+(?:'[A-Za-z0-9]+)?`` with ASCII letters folded to lower case; every other
character separates. Words and n-grams are found by hash and then compared: a collision costs
time, never a result.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_kernels._jit import first_use, inlined, kernel
from fastscore_kernels._threads import run_chunks
from fastscore_kernels._validate import read_only, same_length
from fastscore_kernels.arrow import string_column

_ROWS_PER_CHUNK = 1 << 12
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_APOSTROPHE = 39


def _folded_bytes() -> npt.NDArray[np.uint8]:
    """Return the byte that each byte of a word folds to, 0 for those of no word."""
    folded = np.zeros(256, np.uint8)
    for character in b"0123456789abcdefghijklmnopqrstuvwxyz":
        folded[character] = character
        folded[ord(chr(character).upper())] = character
    return folded


_FOLDED = _folded_bytes()


def ngram_copy_ratio(
    system: Any, user: Any, orders: Sequence[int] = (3, 4), *, threads: int | None = None
) -> npt.NDArray[np.float64]:
    """Compute the greatest share of the system's n-grams found in the user's, over the orders.

    Parameters
    ----------
    system, user
        Columns of as many strings each, without nulls; see `levenshtein_pairs`.
    orders
        Numbers of words of the n-grams, each at least 1.
    threads
        None for one a processor.

    Returns
    -------
    float64 (n,)
        ``max over n of |G_n(system) & G_n(user)| / |G_n(system)|`` with sets of n-grams, from 0
        to 1. Orders of which the system has no n-gram do not count; 0.0 where none counts.
    """
    lengths = np.asarray(orders, dtype=np.int64)
    if lengths.ndim != 1 or lengths.size == 0 or lengths.min() < 1:
        raise ValueError(f"`orders` is {orders!r}; expected one or more integers of at least 1")
    left, right = string_column("system", system), string_column("user", user)
    same_length("system", len(left), "user", len(right))
    compile_kernels()
    out = np.empty(len(left), np.float64)
    run_chunks(
        partial(
            _copy_ratios,
            left.data,
            left.offsets,
            right.data,
            right.offsets,
            read_only(lengths),
            out,
        ),
        out.size,
        chunk=_ROWS_PER_CHUNK,
        threads=threads,
    )
    return out


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    data, offsets = read_only(np.zeros(0, np.uint8)), read_only(np.zeros(1, np.int64))
    _copy_ratios(data, offsets, data, offsets, read_only(np.zeros(1, np.int64)), np.empty(0), 0, 0)


@inlined
def _words(data, start, stop, folded, begins, ends, hashes):  # type: ignore[no-untyped-def]
    """Fold a row's letters into ``folded`` and note its words; return how many there are."""
    count = np.int64(0)
    at = start
    while at < stop:
        while at < stop and _FOLDED[data[at]] == 0:
            at += 1
        if at == stop:
            break
        begins[count] = at - start
        hashed = np.uint64(0)
        apostrophes = np.int64(0)
        while at < stop:
            byte = _FOLDED[data[at]]
            if byte == 0:
                joins = (
                    data[at] == _APOSTROPHE
                    and apostrophes == 0
                    and at + 1 < stop
                    and _FOLDED[data[at + 1]] != 0
                )
                if not joins:
                    break
                apostrophes = np.int64(1)
                byte = np.uint8(_APOSTROPHE)
            folded[at - start] = byte
            hashed = (hashed ^ np.uint64(byte)) * _MULTIPLIER
            hashed ^= hashed >> np.uint64(32)
            at += 1
        ends[count] = at - start
        hashes[count] = hashed
        count += 1
    return count


@inlined
def _same_bytes(a, a_start, a_stop, b, b_start, b_stop):  # type: ignore[no-untyped-def]
    if a_stop - a_start != b_stop - b_start:
        return False
    same = True
    for at in range(a_stop - a_start):
        same &= a[a_start + at] == b[b_start + at]
    return same


@inlined
def _mask_for(count):  # type: ignore[no-untyped-def]
    """Return a table mask that leaves at least half of the slots empty."""
    size = np.int64(4)
    while size < 2 * count:
        size *= 2
    return size - 1


@inlined
def _number_words(  # type: ignore[no-untyped-def]
    system, user, numbers_system, numbers_user, slots, epochs, epoch
):
    """Give words the number of their first occurrence in the system's turn, -1 where in none."""
    bytes_system, begins, ends, hashes, count = system
    bytes_user, user_begins, user_ends, user_hashes, user_count = user
    mask = _mask_for(count)
    for word in range(count):
        slot = np.int64(hashes[word] >> np.uint64(8)) & mask
        numbers_system[word] = word
        while epochs[slot] == epoch:
            other = slots[slot]
            if hashes[other] == hashes[word] and _same_bytes(
                bytes_system, begins[other], ends[other], bytes_system, begins[word], ends[word]
            ):
                numbers_system[word] = other
                break
            slot = (slot + 1) & mask
        if epochs[slot] != epoch:
            epochs[slot] = epoch
            slots[slot] = word
    for word in range(user_count):
        slot = np.int64(user_hashes[word] >> np.uint64(8)) & mask
        numbers_user[word] = -1
        while epochs[slot] == epoch:
            other = slots[slot]
            if hashes[other] == user_hashes[word] and _same_bytes(
                bytes_system,
                begins[other],
                ends[other],
                bytes_user,
                user_begins[word],
                user_ends[word],
            ):
                numbers_user[word] = other
                break
            slot = (slot + 1) & mask


@inlined
def _gram_slot(  # type: ignore[no-untyped-def]
    numbers, at, grams, order, slots, epochs, epoch, mask
):
    """Return the slot that holds the n-gram ``numbers[at:at + order]``, or the empty one for it."""
    hashed = np.uint64(0)
    for step in range(order):
        hashed = (hashed + np.uint64(numbers[at + step]) + np.uint64(1)) * _MULTIPLIER
        hashed ^= hashed >> np.uint64(29)
    slot = np.int64(hashed >> np.uint64(8)) & mask
    while epochs[slot] == epoch:
        same = True
        for step in range(order):
            same &= grams[slots[slot] + step] == numbers[at + step]
        if same:
            break
        slot = (slot + 1) & mask
    return slot


@inlined
def _share_copied(  # type: ignore[no-untyped-def]
    system, count, user, user_count, order, slots, epochs, hits, epoch
):
    """Return the share of the system's distinct n-grams of one order that the user has."""
    mask = _mask_for(count - order + 1)
    distinct = np.int64(0)
    for at in range(count - order + 1):
        slot = _gram_slot(system, at, system, order, slots, epochs, epoch, mask)
        if epochs[slot] != epoch:
            epochs[slot] = epoch
            slots[slot] = at
            distinct += 1
    common = np.int64(0)
    run = np.int64(0)
    for last in range(user_count):
        run = run + 1 if user[last] >= 0 else np.int64(0)
        if run >= order:
            slot = _gram_slot(user, last - order + 1, system, order, slots, epochs, epoch, mask)
            if epochs[slot] == epoch and hits[slot] != epoch:
                hits[slot] = epoch
                common += 1
    return np.float64(common) / np.float64(distinct)


@kernel(fastmath=False)
def _copy_ratios(  # type: ignore[no-untyped-def]
    a, a_offsets, b, b_offsets, orders, out, start, stop
):
    longest = np.int64(0)
    for row in range(start, stop):
        longest = max(longest, a_offsets[row + 1] - a_offsets[row])
        longest = max(longest, b_offsets[row + 1] - b_offsets[row])
    most = (longest + 1) // 2
    folded = np.empty((2, longest), np.uint8)
    begins = np.empty((2, most), np.int64)
    ends = np.empty((2, most), np.int64)
    hashes = np.empty((2, most), np.uint64)
    numbers = np.empty((2, most), np.int64)
    size = _mask_for(most) + 1
    slots = np.empty(size, np.int64)
    epochs = np.zeros(size, np.int64)
    hits = np.zeros(size, np.int64)
    epoch = np.int64(0)
    for row in range(start, stop):
        out[row] = 0.0
        count = _words(
            a, a_offsets[row], a_offsets[row + 1], folded[0], begins[0], ends[0], hashes[0]
        )
        if count < orders.min():
            continue
        user_count = _words(
            b, b_offsets[row], b_offsets[row + 1], folded[1], begins[1], ends[1], hashes[1]
        )
        epoch += 1
        _number_words(
            (folded[0], begins[0], ends[0], hashes[0], count),
            (folded[1], begins[1], ends[1], hashes[1], user_count),
            numbers[0],
            numbers[1],
            slots,
            epochs,
            epoch,
        )
        for order in orders:
            if order <= count:
                epoch += 1
                share = _share_copied(
                    numbers[0], count, numbers[1], user_count, order, slots, epochs, hits, epoch
                )
                out[row] = max(out[row], share)
