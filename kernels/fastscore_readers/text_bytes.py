"""Bytes of CSV and of Python literals: words, UTF-8, white space, digits, numbers.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
from fastscore_machine.compiling import inlined
from fastscore_machine.memory import load_byte, load_word

QUOTE, BACKSLASH, SPACE, TAB, NEWLINE, RETURN = 0x22, 0x5C, 0x20, 0x09, 0x0A, 0x0D
ZERO, NINE, MINUS, PLUS, POINT = 0x30, 0x39, 0x2D, 0x2B, 0x2E


@inlined
def skip_space(data: int, index: int, stop: int) -> int:
    """First position from ``index`` on that holds no white space of JSON."""
    while index < stop:
        byte = load_byte(data, index)
        if byte != SPACE and byte != NEWLINE and byte != RETURN and byte != TAB:
            break
        index += 1
    return index


@inlined
def first_word(data: int, index: int, length: int, stop: int) -> Any:
    """Up to eight bytes as one little-endian word, missing ones zero."""
    if index + 8 <= stop:
        word = load_word(data, index)
        if length >= 8:
            return word
        return word & ((np.uint64(1) << np.uint64(8 * length)) - np.uint64(1))
    word = np.uint64(0)
    for position in range(min(length, 8)):
        word |= np.uint64(load_byte(data, index + position)) << np.uint64(8 * position)
    return word


@inlined
def sequence_length(data: int, index: int, stop: int) -> int:
    """Length of the UTF-8 sequence at ``index`` (2 to 4), 0 when it is not valid."""
    first = load_byte(data, index)
    if first < 0xC2 or first > 0xF4:
        return 0
    length = 2 if first < 0xE0 else (3 if first < 0xF0 else 4)
    if index + length > stop:
        return 0
    second = load_byte(data, index + 1)
    low, high = 0x80, 0xBF
    if first == 0xE0:
        low = 0xA0
    elif first == 0xED:
        high = 0x9F
    elif first == 0xF0:
        low = 0x90
    elif first == 0xF4:
        high = 0x8F
    if second < low or second > high:
        return 0
    for position in range(index + 2, index + length):
        if load_byte(data, position) & 0xC0 != 0x80:
            return 0
    return length


@inlined
def utf8_fault(data: int, start: int, stop: int) -> int:
    """Position of the first byte in [start, stop) that is not valid UTF-8, or -1."""
    index = start
    while index < stop:
        if load_byte(data, index) < 0x80:
            index += 1
            continue
        length = sequence_length(data, index, stop)
        if length == 0:
            return index
        index += length
    return -1


@inlined
def hex_value(byte: int) -> int:
    """Value of a hexadecimal digit, -1 for another byte."""
    if 0x30 <= byte <= 0x39:
        return byte - 0x30
    lower = byte | 0x20
    if 0x61 <= lower <= 0x66:
        return lower - 0x57
    return -1


@inlined
def hex4(data: int, index: int, stop: int) -> int:
    """Value of the four hexadecimal digits at ``index``, -1 when there are not four."""
    if index + 4 > stop:
        return -1
    value = 0
    for position in range(index, index + 4):
        digit = hex_value(load_byte(data, position))
        if digit < 0:
            return -1
        value = value * 16 + digit
    return value


@inlined
def skip_digits(data: int, index: int, stop: int) -> int:
    """First position from ``index`` on that holds no ASCII digit."""
    while index < stop:
        byte = load_byte(data, index)
        if byte < ZERO or byte > NINE:
            break
        index += 1
    return index


@inlined
def scan_number(data: int, index: int, stop: int) -> tuple[int, bool]:
    """Walk a number as Python's json reads it (without NaN and Infinity).

    Returns the position behind it, or ``-1 - position`` of a fault, and whether it is an integer.
    """
    if load_byte(data, index) == MINUS:
        index += 1
    if index >= stop:
        return -1 - stop, True
    if load_byte(data, index) == ZERO:
        index += 1
    else:
        end = skip_digits(data, index, stop)
        if end == index:
            return -1 - index, True
        index = end
    integer = True
    if index + 1 < stop and load_byte(data, index) == POINT:
        end = skip_digits(data, index + 1, stop)
        if end > index + 1:
            index, integer = end, False
    if index + 1 < stop and load_byte(data, index) | 0x20 == 0x65:
        digits = index + 1
        sign = load_byte(data, digits)
        if sign == MINUS or sign == PLUS:
            digits += 1
        end = skip_digits(data, digits, stop)
        if end > digits:
            index, integer = end, False
    return index, integer
