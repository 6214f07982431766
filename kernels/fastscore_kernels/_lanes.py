"""Edit distances of a chunk of pairs, sixteen at a time."""

import numpy as np
from fastscore_jit.addressed_texts import (
    MOST_SUPPLEMENTARY,
    all_ascii,
    common_prefix,
    count_code_points,
    decode_halfwords,
    hash_edges,
    strip_affixes,
)
from fastscore_jit.bits import count_ones
from fastscore_jit.compiling import inlined, kernel
from fastscore_jit.memory import View, Views, address_of, readable, subview

from fastscore_kernels._lane_instructions import (
    LANES,
    advance_1,
    advance_2,
    advance_3,
    advance_4,
    equal_bytes_1,
    equal_bytes_2,
    equal_bytes_3,
    equal_bytes_4,
    equal_halfwords_1,
    equal_halfwords_2,
    equal_halfwords_3,
    equal_halfwords_4,
)

_MOST_WORDS = 4
_MOST_SYMBOLS = 512
_WORD_BYTES = 8
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# A shorter pair is computed in the time that it takes to find an equal one.
_LEAST_WORDS_LOOKED_UP = 2
_SEEN_BITS = 13
_TAG = np.uint64(0xFFFFFFFF00000000)
LONG = -1
"""The distance of a pair that no lane takes: one of long texts, or of very many symbols."""


@inlined
def _write_matches(wide, words, pattern, text, symbols, out):  # type: ignore[no-untyped-def]
    """Write for each symbol of the text which of the pattern's are equal to it."""
    if wide:
        if words == 1:
            equal_halfwords_1(pattern, text, symbols, out)
        elif words == 2:
            equal_halfwords_2(pattern, text, symbols, out)
        elif words == 3:
            equal_halfwords_3(pattern, text, symbols, out)
        else:
            equal_halfwords_4(pattern, text, symbols, out)
    elif words == 1:
        equal_bytes_1(pattern, text, symbols, out)
    elif words == 2:
        equal_bytes_2(pattern, text, symbols, out)
    elif words == 3:
        equal_bytes_3(pattern, text, symbols, out)
    else:
        equal_bytes_4(pattern, text, symbols, out)


@inlined
def _advance(words, equal, columns, first, plus, minus):  # type: ignore[no-untyped-def]
    """Run the recurrence over all columns of a group of lanes."""
    if words == 1:
        advance_1(equal, columns, first, plus, minus)
    elif words == 2:
        advance_2(equal, columns, first, plus, minus)
    elif words == 3:
        advance_3(equal, columns, first, plus, minus)
    else:
        advance_4(equal, columns, first, plus, minus)


@inlined
def _find_repeat(pairs, row, seen):  # type: ignore[no-untyped-def]
    """Return an earlier row with the same pattern and text, or -1; remember this row.

    One row is remembered a slot: a repetition may go unseen, which costs its computation.
    """
    pattern, text = View(pairs[row, 0], pairs[row, 1]), View(pairs[row, 2], pairs[row, 3])
    mixed = hash_edges(pattern) * _MULTIPLIER
    mixed = (mixed ^ (mixed >> np.uint64(32)) ^ hash_edges(text)) * _MULTIPLIER
    slot = np.int64(mixed >> np.uint64(64 - _SEEN_BITS))
    tag = mixed & _TAG
    entry = seen[slot]
    seen[slot] = tag | np.uint64(row + 1)
    if (entry & _TAG) != tag or entry == 0:
        return np.int64(-1)
    other = np.int64(entry & ~_TAG) - 1
    size, text_size = pattern.length, text.length
    if (
        pairs[other, 1] != size
        or pairs[other, 3] != text_size
        or common_prefix(View(pairs[other, 0], size), pattern, size) != size
        or common_prefix(View(pairs[other, 2], text_size), text, text_size) != text_size
    ):
        return np.int64(-1)
    seen[slot] = entry
    return other


@inlined
def _bucket_pairs(  # type: ignore[no-untyped-def]
    a_addresses, a_lengths, b_addresses, b_lengths, pairs, keys, counts, out
):
    """Settle easy pairs; give every other its pattern, its text and the bucket of its shape.

    ``pairs`` holds address and bytes of pattern and text, then the code points of both. The key
    of a repeated pair is ``-2`` less the row that it repeats.
    """
    seen = np.zeros(1 << _SEEN_BITS, np.uint64)
    for row in range(out.size):
        keys[row] = -1
        a, b = strip_affixes(
            View(a_addresses[row], a_lengths[row]), View(b_addresses[row], b_lengths[row])
        )
        if a.length == 0 or b.length == 0:
            out[row] = count_code_points(a) + count_code_points(b)
            continue
        narrow = all_ascii(a) and all_ascii(b)
        m = a.length if narrow else count_code_points(a)
        n = b.length if narrow else count_code_points(b)
        if ((m + 63) >> 6) * n > ((n + 63) >> 6) * m:
            a, m, b, n = b, n, a, m
        pairs[row, 0], pairs[row, 1] = a.address, a.length
        pairs[row, 2], pairs[row, 3] = b.address, b.length
        pairs[row, 4], pairs[row, 5] = m, n
        words = (m + 63) >> 6
        if words >= _LEAST_WORDS_LOOKED_UP:
            other = _find_repeat(pairs, row, seen)
            if other >= 0:
                keys[row] = -2 - other
                continue
        if words > _MOST_WORDS or n > _MOST_SYMBOLS:
            out[row] = LONG
            continue
        key = ((0 if narrow else _MOST_WORDS) + words - 1) * _MOST_SYMBOLS + n - 1
        keys[row] = key
        counts[key + 1] += 1


@kernel("Views(int64[:], int64[:]), Views(int64[:], int64[:]), out(int32[:])", fastmath=False)
def lane_distances(a: Views, b: Views, out):  # type: ignore[no-untyped-def]
    """Write the distance of each pair of rows, int32 (n,).

    What is long is left to `long_distances`: `LONG`, or ``-2`` less the row that it repeats.
    """
    rows = out.size
    a_addresses, a_lengths = a
    b_addresses, b_lengths = b
    pairs = np.empty((rows, 6), np.int64)
    keys = np.empty(rows, np.int64)
    counts = np.zeros(2 * _MOST_WORDS * _MOST_SYMBOLS + 1, np.int64)
    _bucket_pairs(a_addresses, a_lengths, b_addresses, b_lengths, pairs, keys, counts, out)
    for key in range(1, counts.size):
        counts[key] += counts[key - 1]
    order = np.empty(counts[-1], np.int64)
    place = counts.copy()
    for row in range(rows):
        if keys[row] >= 0:
            order[place[keys[row]]] = row
            place[keys[row]] += 1
    equal = np.zeros(_MOST_SYMBOLS * _MOST_WORDS * LANES, np.uint64)
    vertical = np.zeros((2, _MOST_WORDS * LANES), np.uint64)
    first = np.zeros(LANES, np.int64)
    halfwords = np.zeros((2, _MOST_SYMBOLS + 64 * _MOST_WORDS), np.uint16)
    spare = subview(halfwords, 0, 64 * _MOST_WORDS)
    supplementary = np.empty(MOST_SUPPLEMENTARY, np.int64)
    stride = _WORD_BYTES * LANES
    for shape in range(2 * _MOST_WORDS):
        wide = shape >= _MOST_WORDS
        words = shape % _MOST_WORDS + 1
        width = stride * words
        stop = counts[(shape + 1) * _MOST_SYMBOLS]
        for start in range(counts[shape * _MOST_SYMBOLS], stop, LANES):
            group = order[start : min(stop, start + LANES)]
            columns = pairs[group[-1], 5]
            for lane in range(group.size):
                row = group[lane]
                n = pairs[row, 5]
                idle = columns - n
                first[lane] = idle
                for word in range(idle * words):
                    equal[word * LANES + lane] = 0
                pattern = View(pairs[row, 0], pairs[row, 1])
                text = View(pairs[row, 2], pairs[row, 3])
                if wide:
                    known = decode_halfwords(pattern, halfwords[0], supplementary, 0)
                    if known >= 0:
                        known = decode_halfwords(text, halfwords[1], supplementary, known)
                    if known < 0:
                        pairs[row, 4] = -1
                        continue
                    first_symbols = address_of(halfwords[0], 0, 2 * 64 * words)
                    second_symbols = address_of(halfwords[1], 0, 2 * n)
                else:
                    first_symbols = readable(pattern, 0, pattern.length, 64 * words, spare)
                    second_symbols = address_of(text, 0, n)
                index = _WORD_BYTES * (idle * words * LANES + lane)
                target = address_of(
                    equal, index, width * (n - 1) + stride * (words - 1) + _WORD_BYTES
                )
                _write_matches(wide, words, first_symbols, second_symbols, n, target)
            _advance(
                words,
                address_of(equal, 0, width * columns),
                columns,
                address_of(first, 0, stride),
                address_of(vertical[0], 0, width),
                address_of(vertical[1], 0, width),
            )
            for lane in range(group.size):
                row = group[lane]
                m = pairs[row, 4]
                if m < 0:
                    out[row] = LONG
                    continue
                distance = pairs[row, 5]
                for word in range(words):
                    inside = _ALL
                    if word == words - 1:
                        inside = _ALL >> np.uint64((64 - (m & 63)) & 63)
                    distance += count_ones(vertical[0, word * LANES + lane] & inside)
                    distance -= count_ones(vertical[1, word * LANES + lane] & inside)
                out[row] = distance
    for row in range(rows):
        if keys[row] < -1:
            other = -2 - keys[row]
            out[row] = keys[row] if out[other] == LONG else out[other]


@kernel(
    "Views(int64[:], int64[:]), Views(int64[:], int64[:]), int32[:], out(float64[:])",
    fastmath=False,
)
def similarities(a: Views, b: Views, distance, out):  # type: ignore[no-untyped-def]
    """Write one less the distance by the code points of the longer row; 0 where both are empty."""
    a_addresses, a_lengths = a
    b_addresses, b_lengths = b
    for row in range(out.size):
        longest = max(
            count_code_points(View(a_addresses[row], a_lengths[row])),
            count_code_points(View(b_addresses[row], b_lengths[row])),
        )
        if longest == 0:
            out[row] = 0.0
        else:
            out[row] = max(0.0, 1.0 - np.float64(distance[row]) / np.float64(longest))
