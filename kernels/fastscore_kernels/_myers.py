"""Bit-parallel edit distance of one pair: Myers (1999) in Hyyro's (2003) formulation."""

import numpy as np
from fastscore_jit.compiling import inlined

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# there are fewer code points than half of that
_MOST_SLOTS = 1 << 22
_FEW = 1024


@inlined
def _direct_symbols(pattern, m, text, n):  # type: ignore[no-untyped-def]
    """Give symbols numbers as `dense_symbols` does, where the pattern's are small."""
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
    """Give the pattern's symbols numbers from 1, in place; 0 to those of the text alone."""
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


@inlined
def _blocked_distance(pattern, m, text, n, symbols):  # type: ignore[no-untyped-def]
    """Return the distance, the pattern cut into words of 64 symbols."""
    words = (m + 63) >> 6
    matches = np.zeros((symbols, words), np.uint64)
    for at in range(m):
        matches[pattern[at], at >> 6] |= _ONE << np.uint64(at & 63)
    plus = np.full(words, _ALL)
    minus = np.zeros(words, np.uint64)
    top = np.uint64((m - 1) & 63)
    distance = m
    for column in range(n):
        symbol = text[column]
        carry_plus = _ONE
        carry_minus = np.uint64(0)
        for word in range(words):
            vp = plus[word]
            vn = minus[word]
            x = matches[symbol, word] | carry_minus
            d0 = (((x & vp) + vp) ^ vp) | x | vn
            hp = vn | ~(d0 | vp)
            hn = d0 & vp
            if word == words - 1:
                distance += np.int64((hp >> top) & _ONE) - np.int64((hn >> top) & _ONE)
            next_plus = hp >> np.uint64(63)
            next_minus = hn >> np.uint64(63)
            hp = (hp << _ONE) | carry_plus
            hn = (hn << _ONE) | carry_minus
            plus[word] = hn | ~(d0 | hp)
            minus[word] = hp & d0
            carry_plus = next_plus
            carry_minus = next_minus
    return distance


@inlined
def symbol_distance(a, a_size, b, b_size):  # type: ignore[no-untyped-def]
    """Return the distance of two sequences of code points, which it overwrites."""
    if a_size > b_size:
        a, a_size, b, b_size = b, b_size, a, a_size
    if a_size == 0:
        return b_size
    return _blocked_distance(a, a_size, b, b_size, dense_symbols(a, a_size, b, b_size))
