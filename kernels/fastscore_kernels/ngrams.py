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
from fastscore_machine.arrow import string_column
from fastscore_machine.compiling import JIT_DISABLED, always_inlined, kernel
from fastscore_machine.threads import run_chunks
from fastscore_machine.validation import read_only, same_length

from fastscore_kernels._words import BLOCK, KEY_BYTES, words

_ROWS_PER_CHUNK = 1 << 12
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_PACKED_ORDER = 4
_PACKED_WORDS = 0xFFFF


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
    out = np.empty(len(left), np.float64)
    run_chunks(
        partial(
            _copy_ratios,
            left.data,
            left.offsets,
            right.data,
            right.offsets,
            read_only(np.unique(lengths)),
            out,
        ),
        out.size,
        chunk=_ROWS_PER_CHUNK,
        threads=threads,
    )
    return out


@always_inlined
def _mask_for(count):  # type: ignore[no-untyped-def]
    """Return a table mask that leaves at least three in four slots empty."""
    size = np.int64(8)
    while size < 4 * count:
        size *= 2
    return size - 1


@always_inlined
def _slot(key, mask):  # type: ignore[no-untyped-def]
    # A short word's key has its bytes on top, where alone a product would not bring them down.
    mixed = (key ^ (key >> np.uint64(32))) * _MULTIPLIER
    return np.int64(mixed >> np.uint64(32)) & mask


@always_inlined
def _number_words(  # type: ignore[no-untyped-def]
    count, user_count, folded, begins, sizes, keys, numbers, slots
):
    """Give words the number of their first occurrence in the system's turn, -1 where in none."""
    mask = _mask_for(count)
    for slot in range(mask + 1):
        slots[slot] = 0
    for side in range(2):
        for word in range(count if side == 0 else user_count):
            key = keys[side, word]
            size = sizes[side, word]
            slot = _slot(key, mask)
            number = np.int64(-1)
            while slots[slot] > 0:
                other = slots[slot] - 1
                if keys[0, other] == key and sizes[0, other] == size:
                    same = True
                    # A key holds a short word whole, but where nothing is compiled it is a hash.
                    if size > KEY_BYTES or JIT_DISABLED:
                        begin = begins[0, other]
                        for at in range(size):
                            same &= folded[0, begin + at] == folded[side, begins[side, word] + at]
                    if same:
                        number = other
                        break
                slot = (slot + 1) & mask
            if number < 0 and side == 0:
                slots[slot] = word + 1
                number = np.int64(word)
            numbers[side, word] = number


@always_inlined
def _packed_slot(key, grams, mask):  # type: ignore[no-untyped-def]
    slot = _slot(key, mask)
    while grams[slot] != 0 and grams[slot] != key:
        slot = (slot + 1) & mask
    return slot


@always_inlined
def _packed_share(  # type: ignore[no-untyped-def]
    numbers, count, user_numbers, user_count, order, grams, hits
):
    """Return the share of distinct n-grams that the user has, an n-gram packed in one word.

    Sixteen bits a word, complemented: no n-gram of the system is zero, which marks empty slots.
    """
    mask = _mask_for(count)
    for slot in range(mask + 1):
        grams[slot] = 0
        hits[slot] = 0
    top = np.uint64(16 * (order - 1))
    distinct = np.int64(0)
    key = np.uint64(0)
    for last in range(count):
        key = (key >> np.uint64(16)) | (np.uint64(~numbers[last] & 0xFFFF) << top)
        if last >= order - 1:
            slot = _packed_slot(key, grams, mask)
            distinct += np.int64(grams[slot] == 0)
            grams[slot] = key
    key = np.uint64(0)
    for last in range(user_count):
        key = (key >> np.uint64(16)) | (np.uint64(~user_numbers[last] & 0xFFFF) << top)
        if last >= order - 1:
            slot = _packed_slot(key, grams, mask)
            hits[slot] |= grams[slot] != 0
    common = np.int64(0)
    for slot in range(mask + 1):
        common += hits[slot]
    return np.float64(common) / np.float64(distinct)


@always_inlined
def _gram_slot(numbers, at, grams, order, slots, mask):  # type: ignore[no-untyped-def]
    """Return the slot of the system's n-gram equal to the one at ``at``, or an empty one."""
    hashed = np.uint64(order)
    for step in range(order):
        hashed = (hashed ^ np.uint64(numbers[at + step])) * _MULTIPLIER
        hashed ^= hashed >> np.uint64(29)
    slot = _slot(hashed, mask)
    while slots[slot] > 0:
        same = True
        for step in range(order):
            same &= grams[slots[slot] - 1 + step] == numbers[at + step]
        if same:
            break
        slot = (slot + 1) & mask
    return slot


@always_inlined
def _any_share(  # type: ignore[no-untyped-def]
    numbers, count, user_numbers, user_count, order, slots, hits
):
    """Return the share of distinct n-grams that the user has, for any order and length."""
    mask = _mask_for(count)
    for slot in range(mask + 1):
        slots[slot] = 0
        hits[slot] = 0
    distinct = np.int64(0)
    for at in range(count - order + 1):
        slot = _gram_slot(numbers, at, numbers, order, slots, mask)
        if slots[slot] == 0:
            slots[slot] = at + 1
            distinct += 1
    known = np.int64(0)
    for last in range(user_count):
        known = known + 1 if user_numbers[last] >= 0 else np.int64(0)
        if known >= order:
            slot = _gram_slot(user_numbers, last - order + 1, numbers, order, slots, mask)
            hits[slot] |= slots[slot] > 0
    common = np.int64(0)
    for slot in range(mask + 1):
        common += hits[slot]
    return np.float64(common) / np.float64(distinct)


@always_inlined
def _longest(offsets, start, stop):  # type: ignore[no-untyped-def]
    longest = np.int64(0)
    for row in range(start, stop):
        longest = max(longest, offsets[row + 1] - offsets[row])
    return longest


@always_inlined
def _least(orders):  # type: ignore[no-untyped-def]
    least = orders[0]
    for order in orders:
        least = min(least, order)
    return least


@kernel(
    "uint8[:], int64[:], uint8[:], int64[:], int64[:], out(float64[:]), int64, int64",
    fastmath=False,
)
def _copy_ratios(  # type: ignore[no-untyped-def]
    a, a_offsets, b, b_offsets, orders, out, start, stop
):
    longest = max(_longest(a_offsets, start, stop), _longest(b_offsets, start, stop))
    most = (longest + 1) // 2
    shortest = _least(orders)
    folded = np.empty((2, longest + 2 * BLOCK), np.uint8)
    inside = np.empty(longest // BLOCK + 2, np.uint64)
    spare = np.zeros(BLOCK, np.uint8)
    begins = np.empty((2, most), np.int64)
    sizes = np.empty((2, most), np.int64)
    keys = np.empty((2, most), np.uint64)
    numbers = np.empty((2, most), np.int64)
    slots = np.empty(_mask_for(most) + 1, np.int64)
    grams = np.empty(slots.size, np.uint64)
    hits = np.empty(slots.size, np.uint8)
    for row in range(start, stop):
        best = 0.0
        count = words(
            a,
            a_offsets[row],
            a_offsets[row + 1] - a_offsets[row],
            folded[0],
            inside,
            spare,
            begins[0],
            sizes[0],
            keys[0],
        )
        if count >= shortest:
            user_count = words(
                b,
                b_offsets[row],
                b_offsets[row + 1] - b_offsets[row],
                folded[1],
                inside,
                spare,
                begins[1],
                sizes[1],
                keys[1],
            )
            _number_words(count, user_count, folded, begins, sizes, keys, numbers, slots)
            for order in orders:
                if order > count:
                    continue
                if order <= _PACKED_ORDER and count < _PACKED_WORDS:
                    share = _packed_share(
                        numbers[0], count, numbers[1], user_count, order, grams, hits
                    )
                else:
                    share = _any_share(
                        numbers[0], count, numbers[1], user_count, order, slots, hits
                    )
                best = max(best, share)
                # A longer n-gram is shared only where the shorter ones in it are.
                if share == 0.0 or share == 1.0:
                    break
        out[row] = best
