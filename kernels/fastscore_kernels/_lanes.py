"""Edit distances of a chunk of pairs, sixteen at a time.

Vector instructions are written as LLVM IR, so that each processor gets its own. Texts are given by
address. For each symbol of the text, Myers' algorithm needs the equal symbols of the pattern.
`equality_words` compares 64 of them at once, so no table of the alphabet is filled or cleared.
`advance_lanes` then runs the recurrence for `LANES` pairs. The words of a longer pattern occupy
adjacent lanes: `advance_diagonal` runs each word one column after the word before it, whose
horizontal step it receives.
"""

from typing import Any

import numpy as np
from fastscore_jit import llvm
from fastscore_jit.bits import count_ones
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import inlined, instruction
from fastscore_jit.memory import View, Views, address_of, readable, subview

from fastscore_kernels._texts import (
    MOST_SUPPLEMENTARY,
    all_ascii,
    common_prefix,
    count_code_points,
    decode_halfwords,
    hash_edges,
    strip_affixes,
)

LANES = 16
STATE_ROWS = 7
"""Vectors of `advance_diagonal`'s state: vertical deltas, plus and minus; last horizontal steps,
plus and minus; first and last step (exclusive) of each lane; which lanes begin a pattern."""

_WORD = 8


def _splat(value: int) -> Any:
    return llvm.constant(llvm.vector(64, LANES), value)


def _equality_words(bits: int, words: int) -> Any:
    """Return the comparison for symbols of some bits and patterns of some 64-symbol words."""

    @instruction("int64, int64, int64, int64")
    def compare(builder: Any, pattern: Any, text: Any, symbols: Any, out: Any) -> None:
        size = bits // 8
        kind = llvm.vector(bits, 64)
        blocks = [
            llvm.load(builder, builder.add(pattern, llvm.integer(64 * size * word)), kind)
            for word in range(words)
        ]
        with llvm.loop(builder, symbols) as index:
            at = builder.add(text, builder.mul(index, llvm.integer(size)))
            wanted = llvm.broadcast(builder, llvm.load(builder, at, llvm.number(bits)), 64)
            stride = llvm.integer(_WORD * LANES * words)
            row = builder.add(out, builder.mul(index, stride))
            for word, block in enumerate(blocks):
                equal = builder.bitcast(builder.icmp_signed("==", block, wanted), llvm.number(64))
                place = builder.add(row, llvm.integer(_WORD * LANES * word))
                llvm.store(builder, equal, place, _WORD)

    return compare


def _advance_lanes(words: int) -> Any:
    """Return the recurrence for patterns of a number of words."""

    @instruction("int64, int64, int64, int64, int64")
    def advance(builder: Any, equal: Any, columns: Any, first: Any, plus: Any, minus: Any) -> None:
        kind = llvm.vector(64, LANES)
        first = llvm.load(builder, first, kind, _WORD)
        vertical = [
            (llvm.variable(builder, kind), llvm.variable(builder, kind)) for _ in range(words)
        ]
        for place_plus, place_minus in vertical:
            builder.store(_splat(-1), place_plus)
            builder.store(_splat(0), place_minus)
        with llvm.loop(builder, columns) as index:
            row = builder.add(equal, builder.mul(index, llvm.integer(_WORD * LANES * words)))
            column = llvm.broadcast(builder, index, LANES)
            live = builder.icmp_signed(">=", column, first)
            # A lane whose text has not begun gets no horizontal step and stays as it is.
            carry_plus, carry_minus = builder.zext(live, kind), None
            for word, places in enumerate(vertical):
                at = builder.add(row, llvm.integer(_WORD * LANES * word))
                x = llvm.load(builder, at, kind, _WORD)
                carry_plus, carry_minus = _step(builder, x, *places, carry_plus, carry_minus)
        for word, places in enumerate(vertical):
            for place, out in zip(places, (plus, minus), strict=True):
                address = builder.add(out, llvm.integer(_WORD * LANES * word))
                llvm.store(builder, builder.load(place), address, _WORD)

    return advance


def _step(  # type: ignore[no-untyped-def]
    builder, x, place_plus, place_minus, carry_plus, carry_minus
):
    """Advance one word of the vertical deltas by one column (Hyyro 2003); return the carries."""
    ones, one, top = _splat(-1), _splat(1), _splat(63)
    plus, minus = builder.load(place_plus), builder.load(place_minus)
    if carry_minus is not None:
        x = builder.or_(x, carry_minus)
    sums = builder.add(builder.and_(x, plus), plus)
    diagonal = builder.or_(builder.or_(builder.xor(sums, plus), x), minus)
    horizontal_plus = builder.or_(minus, builder.xor(builder.or_(diagonal, plus), ones))
    horizontal_minus = builder.and_(diagonal, plus)
    next_plus = builder.lshr(horizontal_plus, top)
    next_minus = builder.lshr(horizontal_minus, top)
    shifted_plus = builder.or_(builder.shl(horizontal_plus, one), carry_plus)
    shifted_minus = builder.shl(horizontal_minus, one)
    if carry_minus is not None:
        shifted_minus = builder.or_(shifted_minus, carry_minus)
    neither = builder.xor(builder.or_(diagonal, shifted_plus), ones)
    builder.store(builder.or_(shifted_minus, neither), place_plus)
    builder.store(builder.and_(shifted_plus, diagonal), place_minus)
    return next_plus, next_minus


equal_bytes_1, equal_bytes_2, equal_bytes_3, equal_bytes_4 = (
    _equality_words(8, words) for words in (1, 2, 3, 4)
)
equal_halfwords_1, equal_halfwords_2, equal_halfwords_3, equal_halfwords_4 = (
    _equality_words(16, words) for words in (1, 2, 3, 4)
)
advance_1, advance_2, advance_3, advance_4 = (_advance_lanes(words) for words in (1, 2, 3, 4))


@instruction("int64, int64, int64, int64, int64, int64")
def advance_diagonal(
    builder: Any, equal: Any, steps: Any, done: Any, state: Any, given: Any, left: Any
) -> None:
    """Advance each lane by a column per step, starting from step ``done``.

    ``equal`` has a vector per step. ``given`` and ``left`` have a byte per step: the horizontal
    step into the first lane, and the one out of the last (1 for plus, 2 for minus).
    """
    kind, row_bytes = llvm.vector(64, LANES), _WORD * LANES
    places = [builder.add(state, llvm.integer(row_bytes * row)) for row in range(STATE_ROWS)]
    rows = [llvm.load(builder, place, kind, _WORD) for place in places]
    first, last, begins = rows[4:]
    joined = builder.sub(begins, _splat(1))
    variables = [llvm.variable(builder, kind) for _ in range(4)]
    for row, place in zip(rows, variables, strict=False):
        builder.store(row, place)
    byte, wide = llvm.number(8), llvm.number(64)
    shifted_lanes = llvm.constant(llvm.vector(32, LANES), [LANES, *range(LANES - 1)])
    last_lane = llvm.constant(llvm.number(32), LANES - 1)

    def entering(steps_before: Any, entered: Any) -> Any:
        """Pass each lane the step of the lane before it."""
        from_outside = llvm.broadcast(builder, entered, LANES)
        moved = builder.shuffle_vector(steps_before, from_outside, shifted_lanes)
        return builder.and_(moved, joined)

    with llvm.loop(builder, steps) as index:
        step = llvm.broadcast(builder, builder.add(done, index), LANES)
        live = builder.and_(
            builder.icmp_signed(">=", step, first), builder.icmp_signed("<=", step, last)
        )
        came = builder.zext(llvm.load(builder, builder.add(given, index), byte), wide)
        plus, minus, steps_plus, steps_minus = variables
        carry_plus = entering(builder.load(steps_plus), builder.and_(came, llvm.integer(1)))
        carry_plus = builder.or_(carry_plus, begins)
        carry_minus = entering(builder.load(steps_minus), builder.lshr(came, llvm.integer(1)))
        before = builder.load(plus), builder.load(minus)
        at = builder.add(equal, builder.mul(index, llvm.integer(row_bytes)))
        x = llvm.load(builder, at, kind, _WORD)
        next_plus, next_minus = _step(builder, x, plus, minus, carry_plus, carry_minus)
        for place, unchanged in zip((plus, minus), before, strict=True):
            builder.store(builder.select(live, builder.load(place), unchanged), place)
        builder.store(next_plus, steps_plus)
        builder.store(next_minus, steps_minus)
        out_minus = builder.shl(builder.extract_element(next_minus, last_lane), llvm.integer(1))
        out = builder.or_(builder.extract_element(next_plus, last_lane), out_minus)
        llvm.store(builder, builder.trunc(out, byte), builder.add(left, index))
    for variable, place in zip(variables, places, strict=False):
        llvm.store(builder, builder.load(variable), place, _WORD)


_MOST_WORDS = 4
_MOST_SYMBOLS = 512
_WORD_BYTES = 8
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# Computing a shorter pair is as fast as finding an equal one.
_LEAST_WORDS_LOOKED_UP = 2
_SEEN_BITS = 13
_TAG = np.uint64(0xFFFFFFFF00000000)
LONG = -1
"""Placeholder distance of pairs that are too long for a lane or have too many symbols."""


@inlined
def _write_matches(wide, words, pattern, text, symbols, out):  # type: ignore[no-untyped-def]
    """Write for each symbol of the text which symbols of the pattern are equal to it."""
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

    Each slot remembers one row. A missed repetition is computed again.
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
    """Compute easy pairs; write the pattern, text and shape bucket of all others.

    ``pairs`` has address and bytes of pattern and text, then the code points of both. The key of a
    repeated pair is ``-2`` less the row that it repeats.
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

    Long pairs are left to `long_distances`: they get `LONG`, or ``-2`` less the row that they
    repeat.
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
    """Write ``1 - distance / code points of the longer row``; 0 if both are empty."""
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
