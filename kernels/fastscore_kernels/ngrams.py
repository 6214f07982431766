"""Copy ratio: the share of a system turn's word n-grams that also occur in the user's turn.

A word is ``[A-Za-z0-9]+(?:'[A-Za-z0-9]+)?`` with ASCII letters in lower case. Every other character
separates words. Words and n-grams are looked up by hash and then compared, so collisions never
change a result.

Sixty-four bytes are classified at once into bits. Words are then sequences of set bits. The key of
a word is its bytes if there are at most eight, otherwise a hash of them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit import llvm
from fastscore_jit.arrays import Int64Array, UInt8Array, UInt64Array
from fastscore_jit.arrow import string_column
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined, instruction
from fastscore_jit.memory import load_byte, load_word, readable, subview
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import read_only, same_length

BLOCK = 64
KEY_BYTES = 8

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_APOSTROPHE = 39


@instruction("int64, bytes(64) -> uint64")
def _fold_block(builder: Any, address: Any, out: Any) -> Any:
    """Write 64 bytes at ``index`` after ``out`` in lower case; mark letters and digits."""
    kind = llvm.vector(8, BLOCK)
    block = llvm.load(builder, address, kind)
    # The bit that makes letters lower case is set in digits and the apostrophe anyway.
    folded = builder.or_(block, llvm.constant(kind, 0x20))
    llvm.store(builder, folded, out)

    def within(symbols: Any, first: str, count: int) -> Any:
        start = llvm.constant(kind, ord(first))
        return builder.icmp_unsigned("<", builder.sub(symbols, start), llvm.constant(kind, count))

    marks = builder.or_(within(folded, "a", 26), within(block, "0", 10))
    return builder.bitcast(marks, llvm.number(64))


@always_inlined
def _classify(text, folded, inside, spare):  # type: ignore[no-untyped-def]
    """Convert a row to lower case and mark letters and digits; return the number of blocks."""
    blocks = (text.length + BLOCK - 1) // BLOCK
    for block in range(blocks):
        at = BLOCK * block
        there = min(text.length - at, BLOCK)
        letters = _fold_block(readable(text, at, there, BLOCK, spare), folded, at)
        if there < BLOCK:
            letters &= (np.uint64(1) << np.uint64(there)) - np.uint64(1)
        inside[block] = letters
    inside[blocks] = np.uint64(0)
    return blocks


@always_inlined
def _next_outside(inside, at):  # type: ignore[no-untyped-def]
    """Return the first position from ``at`` whose bit is not set; there is always one."""
    word = at >> 6
    rest = ~inside[word] >> np.uint64(at & 63)
    if rest != 0:
        return at + trailing_zeros(rest)
    word += 1
    while ~inside[word] == 0:
        word += 1
    return word * 64 + trailing_zeros(~inside[word])


@always_inlined
def _next_inside(inside, at, blocks):  # type: ignore[no-untyped-def]
    """Return the first position from ``at`` whose bit is set, or the end of all blocks."""
    word = at >> 6
    rest = inside[word] >> np.uint64(at & 63)
    if rest != 0:
        return at + trailing_zeros(rest)
    word += 1
    while word < blocks and inside[word] == 0:
        word += 1
    if word >= blocks:
        return blocks * BLOCK
    return word * 64 + trailing_zeros(inside[word])


@always_inlined
def _key(folded, begin, size):  # type: ignore[no-untyped-def]
    """Return a word's bytes, or a hash of them if they do not fit into a key."""
    if size <= KEY_BYTES:
        return load_word(folded, begin) << np.uint64(64 - 8 * size)
    key = np.uint64(size)
    at = np.int64(0)
    while at < size:
        chunk = load_word(folded, begin + min(at, size - KEY_BYTES))
        key = (key ^ chunk) * _MULTIPLIER
        key ^= key >> np.uint64(32)
        at += KEY_BYTES
    return key


@always_inlined
def scan_words(text, folded, inside, spare, begins, sizes, keys):  # type: ignore[no-untyped-def]
    """Write begin, size and key of each word of a row; return the number of words.

    ``folded`` has room for the row and two blocks, ``inside`` for a word per block and one more,
    ``spare`` for a block.
    """
    blocks = _classify(text, folded, inside, spare)
    count = np.int64(0)
    at = _next_inside(inside, 0, blocks) if blocks else np.int64(0)
    while at < text.length:
        end = _next_outside(inside, at)
        joins = end + 1 < text.length and load_byte(text, end) == _APOSTROPHE
        if joins and (inside[(end + 1) >> 6] >> np.uint64((end + 1) & 63)) & np.uint64(1):
            end = _next_outside(inside, end + 1)
        begins[count] = at
        sizes[count] = end - at
        keys[count] = _key(folded, at, end - at)
        count += 1
        at = _next_inside(inside, end, blocks)
    return count


_ROWS_PER_CHUNK = 1 << 12
_PACKED_ORDER = 4
_PACKED_WORDS = 0xFFFF


class _Column(NamedTuple):
    """A column of strings, as `StringColumn`."""

    data: UInt8Array
    offsets: Int64Array


class _Turns(NamedTuple):
    """The words of a system's turn and of a user's, by side (2, words); see `scan_words`."""

    folded: UInt8Array  # the turns in lower case (2, bytes)
    begins: Int64Array
    sizes: Int64Array
    keys: UInt64Array
    numbers: Int64Array  # the index of the first equal word of the system, -1 without one


class _Scratch(NamedTuple):
    """Working memory: letters by bits, a block to read from, and tables of words and n-grams."""

    inside: UInt64Array
    spare: UInt8Array
    slots: Int64Array
    grams: UInt64Array
    hits: UInt8Array


def ngram_copy_ratio(
    system: Any, user: Any, orders: Sequence[int] = (3, 4), *, threads: int | None = None
) -> npt.NDArray[np.float64]:
    """Compute the maximum over orders of the share of system n-grams found in the user's turn.

    Parameters
    ----------
    system, user
        Columns with equal numbers of strings, without nulls; see `levenshtein_pairs`.
    orders
        Numbers of words of the n-grams, each at least 1.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    float64 (n,)
        ``max over n of |G_n(system) & G_n(user)| / |G_n(system)|`` with sets of n-grams, from 0 to
        1. Orders for which the system has no n-gram are skipped; 0.0 if all are.
    """
    lengths = np.asarray(orders, dtype=np.int64)
    if lengths.ndim != 1 or lengths.size == 0 or lengths.min() < 1:
        raise ValueError(f"`orders` is {orders!r}; expected one or more integers of at least 1")
    left, right = string_column("system", system), string_column("user", user)
    same_length("system", len(left), "user", len(right))
    columns = _Column(left.data, left.offsets), _Column(right.data, right.offsets)
    out, wanted = np.empty(len(left), np.float64), read_only(np.unique(lengths))

    def work(start: int, stop: int) -> None:
        longest = max(
            int(np.diff(column.offsets[start : stop + 1]).max(initial=0)) for column in columns
        )
        _copy_ratios(*columns, wanted, *_allocate_scratch(longest), out, start, stop)

    run_chunks(work, out.size, chunk=_ROWS_PER_CHUNK, threads=threads)
    return out


def _allocate_scratch(longest: int) -> tuple[_Turns, _Scratch]:
    """Allocate the working memory for turns of up to ``size`` bytes."""
    most = (longest + 1) // 2
    slots = np.empty(_table_mask(most) + 1, np.int64)
    turns = _Turns(
        np.empty((2, longest + 2 * BLOCK), np.uint8),
        np.empty((2, most), np.int64),
        np.empty((2, most), np.int64),
        np.empty((2, most), np.uint64),
        np.empty((2, most), np.int64),
    )
    scratch = _Scratch(
        np.empty(longest // BLOCK + 2, np.uint64),
        np.zeros(BLOCK, np.uint8),
        slots,
        np.empty(slots.size, np.uint64),
        np.empty(slots.size, np.uint8),
    )
    return turns, scratch


def _table_mask(count: int) -> int:
    """Return a table mask that leaves at least three in four slots empty."""
    size = 8
    while size < 4 * count:
        size *= 2
    return size - 1


_mask_for = always_inlined(_table_mask)


@always_inlined
def _slot(key, mask):  # type: ignore[no-untyped-def]
    # A short word's key has its bytes on top, where a product alone would not reach the low bits.
    mixed = (key ^ (key >> np.uint64(32))) * _MULTIPLIER
    return np.int64(mixed >> np.uint64(32)) & mask


@always_inlined
def _number_words(count, user_count, turns, slots):  # type: ignore[no-untyped-def]
    """Assign words the number of their first occurrence in the system's turn, -1 without one."""
    folded, begins, sizes, keys, numbers = turns
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
                    if size > KEY_BYTES:  # a key contains a whole short word
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
    """Return the share of distinct n-grams that the user has, each n-gram packed in one word.

    Sixteen bits per word, complemented, so no n-gram of the system is zero, which marks empty
    slots.
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
def _general_share(  # type: ignore[no-untyped-def]
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
def _find_words(column, row, side, turns, scratch):  # type: ignore[no-untyped-def]
    """Find the words of a turn; return their number."""
    data, offsets = column
    folded, begins, sizes, keys, _ = turns
    text = subview(data, offsets[row], offsets[row + 1] - offsets[row])
    return scan_words(
        text, folded[side], scratch.inside, scratch.spare, begins[side], sizes[side], keys[side]
    )


@always_inlined
def _greatest_share(count, user_count, orders, numbers, scratch):  # type: ignore[no-untyped-def]
    """Return the maximum share of n-grams that the user has, over ascending orders."""
    best = 0.0
    for order in orders:
        if order > count:
            break
        if order <= _PACKED_ORDER and count < _PACKED_WORDS:
            share = _packed_share(
                numbers[0], count, numbers[1], user_count, order, scratch.grams, scratch.hits
            )
        else:
            share = _general_share(
                numbers[0], count, numbers[1], user_count, order, scratch.slots, scratch.hits
            )
        best = max(best, share)
        # A longer n-gram is shared only if the shorter ones in it are.
        if share == 0.0 or share == 1.0:
            break
    return best


@kernel(
    "_Column(uint8[:], int64[:]), _Column(uint8[:], int64[:]), int64[:], "
    "_Turns(out(uint8[:, :]), out(int64[:, :]), out(int64[:, :]), out(uint64[:, :]), "
    "out(int64[:, :])), "
    "_Scratch(out(uint64[:]), out(uint8[:]), out(int64[:]), out(uint64[:]), out(uint8[:])), "
    "out(float64[:]), int64, int64",
    fastmath=False,
    allocates=False,
)
def _copy_ratios(  # type: ignore[no-untyped-def]
    system: _Column, user: _Column, orders, turns: _Turns, scratch: _Scratch, out, start, stop
):
    """Write the ratios of rows ``start`` to ``stop``; orders ascend."""
    for row in range(start, stop):
        out[row] = 0.0
        count = _find_words(system, row, 0, turns, scratch)
        if count >= orders[0]:
            user_count = _find_words(user, row, 1, turns, scratch)
            _number_words(count, user_count, turns, scratch.slots)
            out[row] = _greatest_share(count, user_count, orders, turns.numbers, scratch)
