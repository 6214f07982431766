"""Edit distances of a chunk of pairs, sixteen at a time."""

import numpy as np
from fastscore_machine.addressed_texts import (
    MOST_ASTRAL,
    all_ascii,
    common_prefix,
    copy_bytes,
    count_code_points,
    decode_halves,
    edge_words,
    strip_affixes,
)
from fastscore_machine.bits import count_ones
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import address_of

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
    equal_halves_1,
    equal_halves_2,
    equal_halves_3,
    equal_halves_4,
)

_WORDS = 4
_STEPS = 512
_PAGE = 4096
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# A shorter pair is computed in the time that it takes to find an equal one.
_WORDS_WORTH_FINDING = 2
_SEEN_BITS = 13
_TAG = np.uint64(0xFFFFFFFF00000000)
LONG = -1
"""The distance of a pair that no lane takes: one of long texts, or of very many symbols."""


@inlined
def _equal(wide, words, pattern, text, symbols, out):  # type: ignore[no-untyped-def]
    """Write for each symbol of the text which of the pattern's are equal to it."""
    if wide:
        if words == 1:
            equal_halves_1(pattern, text, symbols, out)
        elif words == 2:
            equal_halves_2(pattern, text, symbols, out)
        elif words == 3:
            equal_halves_3(pattern, text, symbols, out)
        else:
            equal_halves_4(pattern, text, symbols, out)
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
def _earlier(pairs, row, seen):  # type: ignore[no-untyped-def]
    """Return an earlier row with the same pattern and text, or -1; remember this row.

    One row is remembered a slot: a repetition may go unseen, which costs its computation.
    """
    mixed = edge_words(pairs[row, 0], pairs[row, 1]) * _MULTIPLIER
    mixed = (mixed ^ (mixed >> np.uint64(32)) ^ edge_words(pairs[row, 2], pairs[row, 3])) * (
        _MULTIPLIER
    )
    slot = np.int64(mixed >> np.uint64(64 - _SEEN_BITS))
    tag = mixed & _TAG
    entry = seen[slot]
    seen[slot] = tag | np.uint64(row + 1)
    if (entry & _TAG) != tag or entry == 0:
        return np.int64(-1)
    other = np.int64(entry & ~_TAG) - 1
    size, text_size = pairs[row, 1], pairs[row, 3]
    if (
        pairs[other, 1] != size
        or pairs[other, 3] != text_size
        or common_prefix(pairs[other, 0], pairs[row, 0], size) != size
        or common_prefix(pairs[other, 2], pairs[row, 2], text_size) != text_size
    ):
        return np.int64(-1)
    seen[slot] = entry
    return other


@inlined
def _assign(  # type: ignore[no-untyped-def]
    a_addresses, a_lengths, b_addresses, b_lengths, pairs, symbols, keys, counts, out
):
    """Settle easy pairs; give every other its pattern, its text and the bucket of its shape.

    ``pairs`` holds address and bytes of pattern and text, ``symbols`` their code points. The key
    of a repeated pair is ``-2`` less the row that it repeats.
    """
    seen = np.zeros(1 << _SEEN_BITS, np.uint64)
    for row in range(out.size):
        keys[row] = -1
        a, a_length, b, b_length = strip_affixes(
            a_addresses[row], a_lengths[row], b_addresses[row], b_lengths[row]
        )
        if a_length == 0 or b_length == 0:
            out[row] = count_code_points(a, a_length) + count_code_points(b, b_length)
            continue
        narrow = all_ascii(a, a_length) and all_ascii(b, b_length)
        m = a_length if narrow else count_code_points(a, a_length)
        n = b_length if narrow else count_code_points(b, b_length)
        if ((m + 63) >> 6) * n > ((n + 63) >> 6) * m:
            a, a_length, m, b, b_length, n = b, b_length, n, a, a_length, m
        pairs[row, 0] = a
        pairs[row, 1] = a_length
        pairs[row, 2] = b
        pairs[row, 3] = b_length
        words = (m + 63) >> 6
        if words >= _WORDS_WORTH_FINDING:
            other = _earlier(pairs, row, seen)
            if other >= 0:
                keys[row] = -2 - other
                continue
        if words > _WORDS or n > _STEPS:
            out[row] = LONG
            continue
        symbols[row, 0] = m
        symbols[row, 1] = n
        key = ((0 if narrow else _WORDS) + words - 1) * _STEPS + n - 1
        keys[row] = key
        counts[key + 1] += 1


@kernel("int64[:], int64[:], int64[:], int64[:], out(int32[:])", fastmath=False)
def lane_distances(  # type: ignore[no-untyped-def]
    a_addresses, a_lengths, b_addresses, b_lengths, out
):
    """Write the distance of each pair of rows, given by address and length in bytes.

    What is long is left to `long_distances`: `LONG`, or ``-2`` less the row that it repeats.
    """
    rows = out.size
    pairs = np.empty((rows, 4), np.int64)
    symbols = np.empty((rows, 2), np.int64)
    keys = np.empty(rows, np.int64)
    counts = np.zeros(2 * _WORDS * _STEPS + 1, np.int64)
    _assign(a_addresses, a_lengths, b_addresses, b_lengths, pairs, symbols, keys, counts, out)
    for key in range(1, counts.size):
        counts[key] += counts[key - 1]
    order = np.empty(counts[-1], np.int64)
    place = counts.copy()
    for row in range(rows):
        if keys[row] >= 0:
            order[place[keys[row]]] = row
            place[keys[row]] += 1
    equal = np.zeros(_STEPS * _WORDS * LANES, np.uint64)
    vertical = np.zeros((2, _WORDS * LANES), np.uint64)
    first = np.zeros(LANES, np.int64)
    halves = np.zeros((2, _STEPS + 64 * _WORDS), np.uint16)
    astral = np.empty(MOST_ASTRAL, np.int64)
    for shape in range(2 * _WORDS):
        wide = shape >= _WORDS
        words = shape % _WORDS + 1
        stop = counts[(shape + 1) * _STEPS]
        for start in range(counts[shape * _STEPS], stop, LANES):
            group = order[start : min(stop, start + LANES)]
            columns = symbols[group[-1], 1]
            for lane in range(group.size):
                row = group[lane]
                n = symbols[row, 1]
                idle = columns - n
                first[lane] = idle
                for word in range(idle * words):
                    equal[word * LANES + lane] = 0
                pattern, text = pairs[row, 0], pairs[row, 2]
                if wide:
                    known = decode_halves(pattern, pairs[row, 1], halves[0], astral, 0)
                    if known >= 0:
                        known = decode_halves(text, pairs[row, 3], halves[1], astral, known)
                    if known < 0:
                        symbols[row, 0] = -1
                        continue
                    pattern, text = address_of(halves[0]), address_of(halves[1])
                elif (pattern & (_PAGE - 1)) + 64 * words > _PAGE:
                    # The comparison reads whole words: never into a page that may not be there.
                    scratch = halves[0].view(np.uint8)
                    copy_bytes(pattern, pairs[row, 1], scratch)
                    pattern = address_of(scratch)
                target = address_of(equal) + 8 * (idle * words * LANES + lane)
                _equal(wide, words, pattern, text, n, target)
            _advance(
                words,
                address_of(equal),
                columns,
                address_of(first),
                address_of(vertical[0]),
                address_of(vertical[1]),
            )
            for lane in range(group.size):
                row = group[lane]
                m = symbols[row, 0]
                if m < 0:
                    out[row] = LONG
                    continue
                distance = symbols[row, 1]
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
    "int64[:], int64[:], int64[:], int64[:], int32[:], out(float64[:])",
    fastmath=False,
)
def similarities(  # type: ignore[no-untyped-def]
    a_addresses, a_lengths, b_addresses, b_lengths, distance, out
):
    """Write one less the distance by the code points of the longer row; 0 where both are empty."""
    for row in range(out.size):
        longest = max(
            count_code_points(a_addresses[row], a_lengths[row]),
            count_code_points(b_addresses[row], b_lengths[row]),
        )
        if longest == 0:
            out[row] = 0.0
        else:
            out[row] = max(0.0, 1.0 - np.float64(distance[row]) / np.float64(longest))
