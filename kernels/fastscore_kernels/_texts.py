"""Texts in place, inside kernels: code points, common prefixes and suffixes, decoding."""

import numpy as np
from fastscore_jit.bits import count_ones, leading_zeros, trailing_zeros
from fastscore_jit.declaring import always_inlined, inlined
from fastscore_jit.memory import load_byte, load_int32, load_short, load_word, subview

_LOW_BITS = np.uint64(0x0101010101010101)
_HIGH_BITS = np.uint64(0x8080808080808080)
_SURROGATES = 0xD800
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
MOST_SUPPLEMENTARY = 64


@inlined
def count_code_points(text):  # type: ignore[no-untyped-def]
    """Count a row's code points: its bytes less the continuation bytes."""
    count = text.length
    at = np.int64(0)
    while at + 8 <= text.length:
        word = load_word(text, at)
        count -= count_ones((word >> np.uint64(7)) & ~(word >> np.uint64(6)) & _LOW_BITS)
        at += 8
    while at < text.length:
        count -= np.int64((load_byte(text, at) & 0xC0) == 0x80)
        at += 1
    return count


@always_inlined
def all_ascii(text):  # type: ignore[no-untyped-def]
    """Return whether every byte of a row is below 128."""
    if text.length < 8:
        return (load_short(text, 0, text.length) & _HIGH_BITS) == 0
    at = np.int64(0)
    while at + 8 < text.length:
        if (load_word(text, at) & _HIGH_BITS) != 0:
            return False
        at += 8
    return (load_word(text, text.length - 8) & _HIGH_BITS) == 0


@always_inlined
def hash_edges(text):  # type: ignore[no-untyped-def]
    """Return a word that depends on a row's first and last eight bytes and its length."""
    length = text.length
    if length < 8:
        return load_short(text, 0, length) ^ (np.uint64(length) << np.uint64(56))
    first = load_word(text, 0)
    last = load_word(text, length - 8)
    return (first * _MULTIPLIER) ^ (first >> np.uint64(29)) ^ last ^ np.uint64(length)


@always_inlined
def common_prefix(a, b, length):  # type: ignore[no-untyped-def]
    """Return how many leading bytes are equal, of ``length`` at most."""
    if length < 8:
        difference = load_short(a, 0, length) ^ load_short(b, 0, length)
        return length if difference == 0 else trailing_zeros(difference) >> 3
    at = np.int64(0)
    while at + 8 < length:
        difference = load_word(a, at) ^ load_word(b, at)
        if difference != 0:
            return at + (trailing_zeros(difference) >> 3)
        at += 8
    at = length - 8
    difference = load_word(a, at) ^ load_word(b, at)
    return length if difference == 0 else at + (trailing_zeros(difference) >> 3)


@always_inlined
def common_suffix(a, b, length):  # type: ignore[no-untyped-def]
    """Return how many trailing bytes are equal, of ``length`` at most."""
    a_stop, b_stop = a.length, b.length
    if length < 8:
        difference = load_short(a, a_stop - length, length) ^ load_short(b, b_stop - length, length)
        if difference == 0:
            return length
        return length - 8 + (leading_zeros(difference) >> 3)
    at = np.int64(0)
    while at + 8 < length:
        difference = load_word(a, a_stop - at - 8) ^ load_word(b, b_stop - at - 8)
        if difference != 0:
            return at + (leading_zeros(difference) >> 3)
        at += 8
    difference = load_word(a, a_stop - length) ^ load_word(b, b_stop - length)
    return length if difference == 0 else length - 8 + (leading_zeros(difference) >> 3)


@always_inlined
def strip_affixes(a, b):  # type: ignore[no-untyped-def]
    """Cut the common prefix and suffix off two rows, never through a code point."""
    shorter = min(a.length, b.length)
    prefix = common_prefix(a, b, shorter)
    if prefix < shorter:
        while prefix > 0 and (load_byte(a, prefix) & 0xC0) == 0x80:
            prefix -= 1
    suffix = common_suffix(a, b, shorter - prefix)
    while suffix > 0 and (load_byte(a, a.length - suffix) & 0xC0) == 0x80:
        suffix -= 1
    return (
        subview(a, prefix, a.length - prefix - suffix),
        subview(b, prefix, b.length - prefix - suffix),
    )


@inlined
def copy_bytes(text, out):  # type: ignore[no-untyped-def]
    """Copy a row's bytes to ``out``."""
    for at in range(text.length):
        out[at] = load_byte(text, at)


@inlined
def decode_halfwords(text, out, supplementary, known):  # type: ignore[no-untyped-def]
    """Write a row's symbols to ``out`` as 16-bit codes that are equal where code points are.

    A code point above 0xFFFF is encoded as a surrogate, which valid text never contains: its index
    in ``supplementary``, which both rows of a pair share. Returns the size of ``supplementary``, -1
    if there are too many.
    """
    count, at = np.int64(0), np.int64(0)
    while at < text.length:
        lead = load_byte(text, at)
        if lead < 0x80:
            code = lead
            at += 1
        elif lead < 0xE0:
            code = ((lead & 0x1F) << 6) | (load_byte(text, at + 1) & 0x3F)
            at += 2
        elif lead < 0xF0:
            code = (
                ((lead & 0x0F) << 12)
                | ((load_byte(text, at + 1) & 0x3F) << 6)
                | (load_byte(text, at + 2) & 0x3F)
            )
            at += 3
        else:
            code = load_int32(text, at)
            place = np.int64(0)
            while place < known and supplementary[place] != code:
                place += 1
            if place == known:
                if known == MOST_SUPPLEMENTARY:
                    return np.int64(-1)
                supplementary[known] = code
                known += 1
            code = _SURROGATES + place
            at += 4
        out[count] = code
        count += 1
    return known
