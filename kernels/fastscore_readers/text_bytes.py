"""Byte-level building blocks of the log scanners: words, line ends, UTF-8, white space, numbers.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from collections.abc import Callable
from typing import Any

import numpy as np
from fastscore_machine import llvm, plain
from fastscore_machine.bits import trailing_zeros
from fastscore_machine.byte_blocks import text_run
from fastscore_machine.compiling import inlined, instruction
from fastscore_machine.memory import load_byte, load_word, store_word

QUOTE, BACKSLASH, SPACE, TAB, NEWLINE, RETURN = 0x22, 0x5C, 0x20, 0x09, 0x0A, 0x0D
ZERO, NINE, MINUS, PLUS, POINT = 0x30, 0x39, 0x2D, 0x2B, 0x2E

_ONES = np.uint64(0x0101010101010101)
_SPACES = np.uint64(0x2020202020202020)
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_TOPS = np.uint64(0x8080808080808080)


def _byte_mask(builder: Any, address: Any, width: int, wanted: Callable[..., Any]) -> Any:
    """One bit for each of ``width`` bytes at an address, set where ``wanted`` says so."""
    kind = llvm.vector(8, width)
    loaded = llvm.load(builder, address, kind)

    def compare(operator: str, byte: int) -> Any:
        return builder.icmp_signed(operator, loaded, llvm.constant(kind, byte))

    bits = builder.bitcast(wanted(compare), llvm.number(width))
    return builder.zext(bits, llvm.number(64)) if width < 64 else bits


@instruction("bytes(32) -> uint64", plain=plain.string_stop_mask)
def string_stop_mask(builder: Any, address: Any) -> Any:
    """Mark which of the 32 bytes are quotes, backslashes, control or non-ASCII bytes."""

    def stops(compare: Callable[..., Any]) -> Any:
        # as signed bytes, those beyond ASCII are negative
        marks = builder.or_(compare("==", QUOTE), compare("==", BACKSLASH))
        return builder.or_(marks, compare("<", SPACE))

    return _byte_mask(builder, address, 32, stops)


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
def copy_plain(source: int, target: int, length: int) -> int:
    """Copy up to a backslash by words: how many bytes were copied of ``length`` at most.

    As many bytes are written behind them as fit into their last word.
    """
    copied = 0
    while copied + 8 <= length:
        word = load_word(source, copied)
        store_word(target, copied, word)
        difference = word ^ _BACKSLASHES
        # the lowest flagged byte is exact: a borrow only reaches bytes above a flagged one
        flags = (difference - _ONES) & ~difference & _TOPS
        if flags != np.uint64(0):
            return int(copied + (trailing_zeros(flags) >> 3))
        copied += 8
    return copied


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
def escape_length(data: int, index: int, stop: int) -> int:
    """Length of the escape whose backslash stands at ``index``, 0 when it is not one."""
    if index + 1 >= stop:
        return 0
    kind = load_byte(data, index + 1)
    if kind == 0x75:
        return 6 if hex4(data, index + 2, stop) >= 0 else 0
    # quote, backslash, slash, b, f, n, r, t
    plain = kind == QUOTE or kind == BACKSLASH or kind == 0x2F or kind == 0x62
    return 2 if plain or kind == 0x66 or kind == 0x6E or kind == 0x72 or kind == 0x74 else 0


@inlined
def plain_run(data: int, index: int, stop: int) -> int:
    """First position from ``index`` on of a quote, backslash, control or non-ASCII byte."""
    while index + 32 <= stop:
        stops = string_stop_mask(data, index)
        if stops != np.uint64(0):
            index += trailing_zeros(stops)
            return index
        index += 32
    while index + 8 <= stop:
        word = load_word(data, index)
        # the lowest flagged byte is exact: a borrow only reaches bytes above a flagged one
        flags = (
            (word - _SPACES) | ((word ^ _QUOTES) - _ONES) | ((word ^ _BACKSLASHES) - _ONES) | word
        ) & _TOPS
        if flags != np.uint64(0):
            index += trailing_zeros(flags) >> 3
            return index
        index += 8
    while index < stop:
        byte = load_byte(data, index)
        if byte == QUOTE or byte == BACKSLASH or byte < SPACE or byte >= 0x80:
            break
        index += 1
    return index


@inlined
def scan_string(data: int, index: int, stop: int) -> tuple[int, bool]:
    """Walk a string from behind its opening quote.

    Returns the position of the closing quote, or ``-1 - position`` of a fault, and whether the
    string holds escapes.
    """
    escaped = False
    while True:
        index = text_run(data, index, stop)
        if index < stop and load_byte(data, index) == QUOTE:
            return index, escaped
        index = plain_run(data, index, stop)
        if index >= stop:
            return -1 - stop, escaped
        byte = load_byte(data, index)
        if byte == QUOTE:
            return index, escaped
        if byte == BACKSLASH:
            length = escape_length(data, index, stop)
            escaped = True
        elif byte >= 0x80:
            length = sequence_length(data, index, stop)
        else:
            length = 0
        if length == 0:
            return -1 - index, escaped
        index += length


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
