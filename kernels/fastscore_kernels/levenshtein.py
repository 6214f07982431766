"""Levenshtein distance of two columns of strings, over Unicode code points.

A pair is computed bit-parallel: Myers (1999) in Hyyro's (2003) formulation. The words of a long
pattern are computed side by side in the lanes of a register. Patterns of up to `LANES` words share
a register with others. A longer pattern is cut into strips of `LANES` words, and only a band of
columns of each strip is computed (Ukkonen 1985). The result is never too small, and exact if it is
within the band's bound. The bound grows until it is.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrow import AddressedStrings, addressed_strings
from fastscore_jit.bits import count_ones
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import inlined
from fastscore_jit.memory import (
    View,
    Views,
    address_of,
    load_byte,
    load_int32,
    load_word,
    store_word,
)
from fastscore_jit.threads import StoppedError, interruptible, is_stopped, run_chunks, stop_flag
from fastscore_jit.validation import same_length

from fastscore_kernels._lanes import (
    LANES,
    LONG,
    STATE_ROWS,
    advance_diagonal,
    lane_distances,
    similarities,
)
from fastscore_kernels._sorting import STACK_SIZE, sort_ascending
from fastscore_kernels._texts import all_ascii, copy_bytes, count_code_points, strip_affixes


@inlined
def decode(data, start, stop, out):  # type: ignore[no-untyped-def]
    """Write a row's code points to ``out`` and return their number."""
    count = np.int64(0)
    at = start
    while at < stop:
        lead = np.int64(data[at])
        if lead < 0x80:
            out[count] = lead
            at += 1
        elif lead < 0xE0:
            out[count] = ((lead & 0x1F) << 6) | (np.int64(data[at + 1]) & 0x3F)
            at += 2
        elif lead < 0xF0:
            out[count] = (
                ((lead & 0x0F) << 12)
                | ((np.int64(data[at + 1]) & 0x3F) << 6)
                | (np.int64(data[at + 2]) & 0x3F)
            )
            at += 3
        else:
            out[count] = (
                ((lead & 0x07) << 18)
                | ((np.int64(data[at + 1]) & 0x3F) << 12)
                | ((np.int64(data[at + 2]) & 0x3F) << 6)
                | (np.int64(data[at + 3]) & 0x3F)
            )
            at += 4
        count += 1
    return count


_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# at most half of the slots are used
_MOST_SLOTS = 1 << 22
_FEW = 1024


@inlined
def _direct_symbols(pattern, m, text, n):  # type: ignore[no-untyped-def]
    """Assign numbers to symbols as `dense_symbols` does, if the pattern's are small."""
    numbers = np.zeros(_FEW, np.int32)
    count = np.int32(1)
    for at in range(m):
        symbol = pattern[at]
        if numbers[symbol] == 0:
            numbers[symbol] = count
            count += 1
        pattern[at] = numbers[symbol]
    for at in range(n):
        text[at] = numbers[text[at]] if text[at] < _FEW else 0
    return np.int64(count)


@inlined
def dense_symbols(pattern, m, text, n):  # type: ignore[no-untyped-def]
    """Assign numbers from 1 to the pattern's symbols, in place; symbols only in the text are 0."""
    widest = np.int64(0)
    for at in range(m):
        widest = max(widest, np.int64(pattern[at]))
    if widest < _FEW:
        return _direct_symbols(pattern, m, text, n)
    size = np.int64(16)
    while size < 2 * m + 2 and size < _MOST_SLOTS:
        size *= 2
    keys = np.zeros(size, np.int64)
    numbers = np.zeros(size, np.int64)
    count = np.int64(1)
    for at in range(m):
        key = np.int64(pattern[at]) + 1
        slot = np.int64((np.uint64(key) * _MULTIPLIER) >> np.uint64(40)) & (size - 1)
        while keys[slot] != 0 and keys[slot] != key:
            slot = (slot + 1) & (size - 1)
        if keys[slot] == 0:
            keys[slot] = key
            numbers[slot] = count
            count += 1
        pattern[at] = numbers[slot]
    for at in range(n):
        key = np.int64(text[at]) + 1
        slot = np.int64((np.uint64(key) * _MULTIPLIER) >> np.uint64(40)) & (size - 1)
        while keys[slot] != 0 and keys[slot] != key:
            slot = (slot + 1) & (size - 1)
        text[at] = numbers[slot]
    return count


_STRIP = 64 * LANES
_STEPS_PER_CHUNK = 256
_NEVER = np.uint64(1 << 62)
_PLUS = np.uint8(1)
_SMALLEST_BOUND = 512
_BOUND_GROWTH = 8
_ROW_MASK = 0xFFFFFFFF
_WORD_BYTES = 8
_ROW_BYTES = _WORD_BYTES * LANES


@inlined
def _code_points(text, out):  # type: ignore[no-untyped-def]
    """Write a row's code points and return their number."""
    length = text.length
    if all_ascii(text):
        for at in range(length):
            out[at] = load_byte(text, at)
        return length
    held = np.empty(length, np.uint8)
    copy_bytes(text, held)
    return decode(held, 0, length, out)


@inlined
def _reset_state(state):  # type: ignore[no-untyped-def]
    """Reset the state: no lane is active."""
    for lane in range(LANES):
        state[0, lane] = _ALL
        state[1, lane] = state[2, lane] = state[3, lane] = 0
        state[4, lane] = _NEVER
        state[5, lane] = state[6, lane] = 0


@inlined
def _assign_lanes(state, lane, words, columns):  # type: ignore[no-untyped-def]
    """Assign the lanes from ``lane`` on to a pattern."""
    for word in range(words):
        state[4, lane + word] = word
        state[5, lane + word] = columns + word - 1
    # the first lane's input comes from outside
    state[6, lane] = _ONE if lane else 0


@inlined
def _write_matches(matches, width, words, text, done, steps, equal, lane):  # type: ignore[no-untyped-def]
    """Write which symbols of a pattern equal the text's, each word one step after the other."""
    for word in range(words):
        written = _WORD_BYTES * (lane + word)
        for step in range(max(0, word - done), min(steps, text.size + word - done)):
            symbol = load_int32(text, 4 * (done + step - word))
            found = load_word(matches, _WORD_BYTES * (width * symbol + word))
            store_word(equal, written + _ROW_BYTES * step, found)


@inlined
def _advance(equal, steps, done, state, given, left):  # type: ignore[no-untyped-def]
    """Run `advance_diagonal` on arrays."""
    advance_diagonal(
        address_of(equal, 0, _ROW_BYTES * steps),
        steps,
        done,
        address_of(state, 0, _ROW_BYTES * STATE_ROWS),
        address_of(given, 0, steps),
        address_of(left, 0, steps),
    )


@inlined
def _column_sum(state, lane, words, m):  # type: ignore[no-untyped-def]
    """Sum the vertical deltas of a pattern of ``m`` symbols."""
    total = np.int64(0)
    for word in range(words):
        inside = _ALL
        if word == words - 1:
            inside = _ALL >> np.uint64((64 - (m & 63)) & 63)
        total += count_ones(state[0, lane + word] & inside)
        total -= count_ones(state[1, lane + word] & inside)
    return total


@inlined
def _advance_strip(matches, words, text, carry, state, equal, stop):  # type: ignore[no-untyped-def]
    """Run a strip over a text; ``carry`` has the steps above it, then the steps below it.

    ``carry`` begins `LANES` bytes before the first column. Returns whether the strip was completed.
    """
    _reset_state(state)
    _assign_lanes(state, 0, words, text.size)
    total = text.size + words - 1
    for done in range(0, total, _STEPS_PER_CHUNK):
        if is_stopped(stop):
            return False
        steps = min(_STEPS_PER_CHUNK, total - done)
        _write_matches(matches, LANES, words, text, done, steps, equal, 0)
        _advance(equal, steps, done, state, carry[LANES + done :], carry[1 + done :])
    return True


@inlined
def _steps_sum(carry, columns):  # type: ignore[no-untyped-def]
    """Sum horizontal steps over columns."""
    total = np.int64(0)
    for column in range(columns):
        step = np.int64(carry[LANES + column])
        total += (step & 1) - (step >> 1)
    return total


@inlined
def _distance_within(pattern, text, bound, matches, carry, state, equal, stop):  # type: ignore[no-untyped-def]
    """Return the distance of paths within a band, exact if it does not exceed the bound.

    Values outside the band count as maximal. `LONG` if stopped.
    """
    m, n = pattern.size, text.size
    carry[:] = _PLUS
    low, high = (n - m - bound) >> 1, (n - m + bound) >> 1
    corner = np.int64(0)
    for top in range(0, m, _STRIP):
        bottom = min(m, top + _STRIP)
        begin, end = max(0, top + low), min(n, bottom + high)
        words, columns = (bottom - top + 63) >> 6, end - begin
        for row in range(top, bottom):
            matches[pattern[row] * LANES + ((row - top) >> 6)] |= _ONE << np.uint64(row & 63)
        if bottom == m:
            corner += _steps_sum(carry[begin:], columns)
        went = _advance_strip(matches, words, text[begin:end], carry[begin:], state, equal, stop)
        for row in range(top, bottom):
            matches[pattern[row] * LANES + ((row - top) >> 6)] = 0
        if not went:
            break
        if bottom == m:
            return corner + _column_sum(state, 0, words, m)
        corner += bottom - top + _steps_sum(carry[begin:], max(0, bottom + low) - begin)
    return np.int64(LONG)


@inlined
def _strip_distance(a, b, state, equal, stop):  # type: ignore[no-untyped-def]
    """Return the distance of a pair of long texts; `LONG` if stopped."""
    pattern = np.empty(a.length, np.int32)
    text = np.empty(b.length, np.int32)
    m = _code_points(a, pattern)
    n = _code_points(b, text)
    matches = np.zeros(dense_symbols(pattern, m, text, n) * LANES, np.uint64)
    pattern, text = pattern[:m], text[:n]
    carry = np.empty(n + 2 * LANES, np.uint8)
    bound = abs(n - m) + _SMALLEST_BOUND
    while True:
        if bound + _STRIP >= max(m, n):
            bound = m + n
        distance = _distance_within(pattern, text, bound, matches, carry, state, equal, stop)
        if distance <= bound:
            return distance
        bound = min(distance, _BOUND_GROWTH * bound)


@inlined
def _write_shared_lanes(rows, pairs, matches, state, equal, stop, out):  # type: ignore[no-untyped-def]
    """Write the distances of pairs whose patterns share the lanes."""
    capacity = np.int64(0)
    for row in rows:
        capacity += pairs[row, 1] + pairs[row, 3]
    symbols = np.empty(capacity, np.int32)
    places = np.empty((rows.size, 2), np.int64)
    used, held, lane = np.int64(0), np.int64(0), np.int64(0)
    columns = np.int64(0)
    _reset_state(state)
    for number in range(rows.size):
        row = rows[number]
        m, n, words = pairs[row, 4], pairs[row, 5], (pairs[row, 4] + 63) >> 6
        pattern = symbols[used:]
        text = symbols[used + m :]
        _code_points(View(pairs[row, 0], pairs[row, 1]), pattern)
        _code_points(View(pairs[row, 2], pairs[row, 3]), text)
        size = dense_symbols(pattern, m, text, n) * words
        matches[held : held + size] = 0
        for place in range(m):
            at = held + pattern[place] * words + (place >> 6)
            matches[at] |= _ONE << np.uint64(place & 63)
        _assign_lanes(state, lane, words, n)
        places[number, 0], places[number, 1] = used + m, held
        columns = max(columns, n + words - 1)
        used, held, lane = used + m + n, held + size, lane + words
    outside = np.full(_STEPS_PER_CHUNK, _PLUS)
    below = np.empty(_STEPS_PER_CHUNK, np.uint8)
    for done in range(0, columns, _STEPS_PER_CHUNK):
        if is_stopped(stop):
            return
        steps = min(_STEPS_PER_CHUNK, columns - done)
        lane = np.int64(0)
        for number in range(rows.size):
            row = rows[number]
            words = (pairs[row, 4] + 63) >> 6
            first = places[number, 0]
            text = symbols[first : first + pairs[row, 5]]
            own = matches[places[number, 1] :]
            _write_matches(own, words, words, text, done, steps, equal, lane)
            lane += words
        _advance(equal, steps, done, state, outside, below)
    lane = np.int64(0)
    for row in rows:
        words = (pairs[row, 4] + 63) >> 6
        out[row] = pairs[row, 5] + _column_sum(state, lane, words, pairs[row, 4])
        lane += words


@inlined
def _sort_by_columns(rows, columns, count):  # type: ignore[no-untyped-def]
    """Return rows in ascending order of their columns."""
    keys = np.empty(count, np.int64)
    for at in range(count):
        keys[at] = (columns[at] << 32) | rows[at]
    sort_ascending(keys, 0, count, np.empty(STACK_SIZE, np.int64))
    for at in range(count):
        keys[at] &= _ROW_MASK
    return keys


@kernel(
    "Views(int64[:], int64[:]), Views(int64[:], int64[:]), int64[:], out(int32[:])", fastmath=False
)
def long_distances(a: Views, b: Views, stop, out):  # type: ignore[no-untyped-def]
    """Write the distances (n,) that `lane_distances` left open; if stopped, some stay open."""
    a_addresses, a_lengths = a
    b_addresses, b_lengths = b
    count = np.int64(0)
    for row in range(out.size):
        count += out[row] == LONG
    pairs = np.empty((out.size, 6), np.int64)
    columns = np.zeros(count, np.int64)
    open_rows = np.empty(count, np.int64)
    state = np.empty((STATE_ROWS, LANES), np.uint64)
    equal = np.zeros((_STEPS_PER_CHUNK, LANES), np.uint64)
    matches = np.empty((_STRIP + 1) * LANES, np.uint64)
    count = np.int64(0)
    for row in range(out.size):
        if out[row] != LONG:
            continue
        if is_stopped(stop):
            return
        one, other = strip_affixes(
            View(a_addresses[row], a_lengths[row]), View(b_addresses[row], b_lengths[row])
        )
        m, n = count_code_points(one), count_code_points(other)
        if ((m + 63) >> 6) * n > ((n + 63) >> 6) * m:
            one, m, other, n = other, n, one, m
        if m > _STRIP:
            out[row] = _strip_distance(one, other, state, equal, stop)
            continue
        pairs[row, 0], pairs[row, 1] = one.address, one.length
        pairs[row, 2], pairs[row, 3] = other.address, other.length
        pairs[row, 4], pairs[row, 5] = m, n
        open_rows[count], columns[count] = row, n
        count += 1
    order = _sort_by_columns(open_rows, columns, count)
    first = np.int64(0)
    while first < count and not is_stopped(stop):
        after, lanes = first, np.int64(0)
        while after < count and lanes + ((pairs[order[after], 4] + 63) >> 6) <= LANES:
            lanes += (pairs[order[after], 4] + 63) >> 6
            after += 1
        _write_shared_lanes(order[first:after], pairs, matches, state, equal, stop, out)
        first = after
    for row in range(out.size):
        if out[row] < LONG:
            out[row] = out[-2 - out[row]]


_ROWS_PER_CHUNK = 1 << 13


def levenshtein_pairs(a: Any, b: Any, *, threads: int | None = None) -> npt.NDArray[np.int32]:
    """Compute the edit distance of each pair of rows: insertions, deletions, substitutions.

    Parameters
    ----------
    a, b
        Columns of as many strings each, without nulls: Arrow arrays (string, large_string,
        string_view, dictionaries of them), polars Series, or sequences of ``str``.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    int32 (n,)
        Unit-cost distance in code points. Texts are not normalised; case and white space count.
    """
    column_a, column_b = _columns(a, b)
    out = np.empty(len(column_a), np.int32)
    _write_distances(column_a, column_b, out, None, threads)
    return out


def levenshtein_similarity_pairs(
    a: Any, b: Any, *, threads: int | None = None
) -> npt.NDArray[np.float64]:
    """Compute ``1 - distance / length of the longer``, in code points.

    Parameters
    ----------
    a, b
        As `levenshtein_pairs`.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    float64 (n,)
        From 0 to 1, the double that Python's ``max(0.0, 1.0 - distance / longest)`` gives; 0.0 if
        both are empty.
    """
    column_a, column_b = _columns(a, b)
    out = np.empty(len(column_a), np.float64)
    _write_distances(column_a, column_b, np.empty(len(column_a), np.int32), out, threads)
    return out


def _columns(a: Any, b: Any) -> tuple[AddressedStrings, AddressedStrings]:
    column_a, column_b = addressed_strings("a", a), addressed_strings("b", b)
    same_length("a", len(column_a), "b", len(column_b))
    return column_a, column_b


def _write_distances(
    a: AddressedStrings,
    b: AddressedStrings,
    distance: npt.NDArray[np.int32],
    similarity: npt.NDArray[np.float64] | None,
    threads: int | None,
) -> None:
    def work(start: int, stop: int) -> None:
        rows = a.rows(start, stop), b.rows(start, stop)
        lane_distances(*rows, distance[start:stop])
        if distance[start:stop].min(initial=0) < 0:
            flag = stop_flag()
            interruptible(lambda: long_distances(*rows, flag, distance[start:stop]))
            # not by the flag, which may have been cleared since
            if distance[start:stop].min() < 0:
                raise StoppedError
        if similarity is not None:
            similarities(*rows, distance[start:stop], similarity[start:stop])

    run_chunks(work, len(a), chunk=_ROWS_PER_CHUNK, threads=threads)
