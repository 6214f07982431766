"""One structural index of a block of JSON Lines: the positions of its tokens, in one pass.

Sixty-four bytes are classified at once, as in Langdale and Lemire, "Parsing gigabytes of JSON per
second" (VLDB Journal 28, 2019). UTF-8, escapes, control characters and line ends are checked in the
same pass. All JSON readers walk this index. Invalid bytes are only recorded, and their lines are
validated one by one (`faults`).

The parsers of tokens are here, too: scalars, keys, skipped containers, strings. Comparisons are
spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.bits import after_odd, count_ones, trailing_zeros
from fastscore_jit.byte_blocks import byte_marks
from fastscore_jit.declaring import always_inlined, inlined
from fastscore_jit.memory import (
    BLOCK,
    address_of,
    block_at,
    byte_at,
    item_at,
    low_bytes,
    put_block,
    put_byte,
    put_item,
    same_bytes,
    signed,
    store_positions,
    word_at,
)

POSITION = 0x7FFFFFFF
"""The bits of a token with its position."""
WITH_ESCAPES = np.uint32(0x80000000)
"""The bit of a closing quote's token that is set if its string has escapes."""

BYTES_AFTER = 128
"""Number of bytes that must be readable after a block."""
TOKENS_AFTER = 64
"""Number of tokens that may be written after the last token."""

_CONTROLS = range(0x20)
_token_marks = byte_marks(b'"', b"\\", b"{}[]:,", b"\n\r", b" \t", _CONTROLS, range(0x80, 0x100))
_escape_marks = byte_marks(b'"\\/bfnrt', b"u", b"0123456789abcdefABCDEF")
_character_marks = byte_marks(
    range(0xC0),
    range(0xC2),
    range(0xE0),
    range(0xF0),
    range(0xF5),
    range(0x90),
    range(0xA0),
    b"\xe0",
    b"\xed",
    b"\xf0",
    b"\xf4",
)

_NONE, _ALL, _EVEN = np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0x5555555555555555)
_1, _2, _3, _4 = (np.uint64(shift) for shift in (1, 2, 3, 4))
_60, _61, _62, _63 = (np.uint64(shift) for shift in (60, 61, 62, 63))


class Index(NamedTuple):
    """Memory for the index of a block."""

    # uint32: ascending positions of brackets, colons, commas, quotes, line ends and the first bytes
    # of other scalars, then line ends after the block. Closing quotes may have `WITH_ESCAPES`.
    tokens: npt.NDArray[np.uint32]
    bad: npt.NDArray[np.uint32]  # uint32: ascending positions of invalid bytes, then `POSITION`
    is_utf8: npt.NDArray[np.int64]  # int64 (1,): whether the block is known to be UTF-8


def allocate_index(size: int) -> Index:
    """Allocate memory for blocks of up to ``size`` bytes."""
    return Index(
        np.empty(size + TOKENS_AFTER + BLOCK, np.uint32),
        np.empty(size + 1 + BLOCK, np.uint32),
        np.zeros(1, np.int64),
    )


@always_inlined
def _escaped_bytes(slashes: Any, odd: Any) -> tuple[Any, Any, Any]:
    """Return the backslashes that escape, the bytes they escape, and ``odd`` of the next block.

    ``odd`` is whether the block's first byte is escaped.
    """
    slashes &= ~odd
    after = (slashes << _1) | odd
    starts = slashes & ~_EVEN & ~after
    total = starts + slashes
    odd = np.uint64(total < starts)
    return slashes, (_EVEN ^ (total << _1)) & after, odd


@inlined
def note_bits(bad: Any, count: Any, at: Any, bits: Any) -> Any:
    """Record the positions of set bits, which are rare."""
    while bits != _NONE:
        put_item(bad, count, at + trailing_zeros(bits))
        count += 1
        bits &= bits - _1
    return count


@inlined
def mark_invalid_utf8(at: Any, high: Any, follow: Any, special: Any) -> tuple[Any, Any, Any]:
    """Mark bytes that are invalid UTF-8; return them with the state for the next block.

    ``follow`` marks the bytes at the block's beginning that continue a character of the block
    before. The bits of ``special`` are set if that character begins with E0, ED, F0 or F4, which
    restrict the byte after them.
    """
    below_c0, below_c2, below_e0, below_f0, below_f5, below_90, below_a0, e0, ed, f0, f4 = (
        _character_marks(at)
    )
    two, three, four = below_e0 & ~below_c2, below_f0 & ~below_e0, below_f5 & ~below_f0
    longer = three | four
    leads = two | longer
    expected = (leads << _1) | (longer << _2) | (four << _3) | follow
    wrong = (expected ^ (below_c0 & high)) | (below_c2 & ~below_c0) | ~below_f5
    wrong |= ((e0 << _1) | (special & _1)) & below_a0
    wrong |= ((ed << _1) | (special >> _1 & _1)) & ~below_a0
    wrong |= ((f0 << _1) | (special >> _2 & _1)) & below_90
    wrong |= ((f4 << _1) | (special >> _3 & _1)) & ~below_90
    follow = (leads >> _63) | (longer >> _62) | (four >> _61)
    special = (e0 >> _63) | (ed >> _63) << _1 | (f0 >> _63) << _2 | (f4 >> _63) << _3
    return wrong, follow, special


@inlined
def _flag(tokens: Any, first: Any, bits: Any, closing: Any) -> None:
    """Mark the tokens at some bits as ends of strings with escapes."""
    while closing != _NONE:
        lowest = closing & (~closing + _1)
        token = first + count_ones(bits & (lowest - _1))
        put_item(tokens, token, item_at(tokens, token) | WITH_ESCAPES)
        closing ^= lowest


INDEX = "Index(out(uint32[:]), out(uint32[:]), int64[:])"
"""Types of an index that is written."""


@inlined
def index_block(data: Any, index: Any, state: Any) -> None:
    """Index a block, whose size is the first number of ``state``, and the line end after it.

    The block ends with a line end, followed by spaces up to a multiple of 64, then by line ends.
    UTF-8 is not checked if it is known to be valid: the check takes most of the time of non-ASCII
    text.
    """
    tokens, bad, known = index
    size, is_utf8 = state[0] + 1, known[0] != 0
    n = n_bad = 0
    # state passed from one block of 64 to the next: words with some first or last bits set
    odd = follow = special = inside = scalar_before = carry = digits = _NONE
    for at in range(0, size, BLOCK):
        here = block_at(data, at)
        quotes, slashes, operators, ends, blanks, low, high = _token_marks(here)
        wrong = taken = _NONE
        if slashes | odd != _NONE:
            slashes, taken, odd = _escaped_bytes(slashes, odd)
            quotes &= ~taken
        strings = after_odd(quotes) ^ inside
        broken = ends & strings
        while broken != _NONE:
            # a line end ends a string that is not closed
            first = broken & (~broken + _1)
            wrong |= first
            strings ^= ~first + _1
            broken = ends & strings
        inside = ~(strings >> _63) + _1 if strings >> _63 != _NONE else _NONE
        escaped = _NONE
        if taken | digits | carry != _NONE:
            simple, letters, hexadecimal = _escape_marks(here)
            letters &= taken & strings
            needed = (letters << _1) | (letters << _2) | (letters << _3) | (letters << _4) | digits
            digits = (letters >> _63) | (letters >> _62) | (letters >> _61) | (letters >> _60)
            wrong |= taken & strings & ~(simple | letters)
            wrong |= needed & ~hexadecimal & (strings ^ quotes)
            # added to the string's bytes, an escape carries to the quote that closes it
            marks = (slashes | taken) & strings
            total = strings + marks
            more = total + carry
            carried = (total < strings) | (more < total)
            carry = np.uint64(carried) if inside != _NONE else _NONE
            escaped = more & quotes & ~strings
        wrong |= low & strings
        if not is_utf8 and high | follow != _NONE:
            characters, follow, special = mark_invalid_utf8(here, high, follow, special)
            wrong |= characters
        if wrong != _NONE:
            n_bad = note_bits(bad, n_bad, at, wrong)
        scalars = ~(strings | quotes | operators | ends | blanks)
        begins = scalars & ~((scalars << _1) | scalar_before)
        scalar_before = scalars >> _63
        bits = ((operators | ends) & ~strings) | quotes | begins
        place = address_of(tokens, 4 * n, 4 * BLOCK)
        if escaped != _NONE:
            store_positions(place, at, bits)
            _flag(tokens, n, bits, escaped)
            n += count_ones(bits)
        else:
            n += store_positions(place, at, bits)
    for after in range(TOKENS_AFTER):
        put_item(tokens, n + after, size)
    put_item(bad, n_bad, POSITION)


ABSENT, NULL, FALSE, TRUE, INTEGER, FLOAT, STRING, ESCAPED, ARRAY, OBJECT = range(10)
"""Kinds of values: a string without escapes, a string with escapes."""
MAX_DEPTH = 500

QUOTE, BACKSLASH, COMMA, COLON, MINUS, PLUS, POINT = 0x22, 0x5C, 0x2C, 0x3A, 0x2D, 0x2B, 0x2E
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
NEWLINE, RETURN, SPACE, TAB = 0x0A, 0x0D, 0x20, 0x09
TO_CLOSING = 2
"""The code of a closing bracket less the code of its opening bracket."""
_SMALL_U = 0x75

_NULL_WORD, _TRUE_WORD, _FALSE_WORD, _NAN_WORD, _INFINITY_WORD = (
    np.uint64(int.from_bytes(word, "little"))
    for word in (b"null", b"true", b"false", b"NaN", b"Infinity")
)

_MIXER = 0x9E3779B97F4A7C15
_N_SLOTS, _SLOT_BITS = 256, 8
_ENTRY = 5
_LENGTH, _FIRST, _LAST, _AT, _NEXT = range(_ENTRY)

_ESCAPED_BYTES = np.frombuffer(bytes.maketrans(b"bfnrt", b"\b\f\n\r\t"), np.uint8)
"""The character of each escape, by the byte after the backslash."""
_backslashes = byte_marks(b"\\")


class Keys(NamedTuple):
    """Hash table of wanted keys, by their length and their first and last eight bytes."""

    # uint64: 256 slots, each 0 or the number of a key plus 1. Then for each key: its length, first
    # and last word, its place in `names`, and the next key of its slot plus 1.
    table: npt.NDArray[np.uint64]
    names: npt.NDArray[np.uint8]  # uint8: the keys, concatenated


def key_table(keys: Sequence[bytes]) -> Keys:
    """Make the table of some keys, which must be distinct."""
    if len(set(keys)) != len(keys):
        raise ValueError(f"keys must be distinct, found {list(keys)!r}")
    table = np.zeros(_N_SLOTS + _ENTRY * len(keys), np.uint64)
    at = 0
    for number, key in enumerate(keys):
        first = int.from_bytes(key[:8], "little")
        last = int.from_bytes(key[-8:], "little") if len(key) >= 8 else 0
        mixed = (first ^ (last * _MIXER) ^ len(key)) * _MIXER % (1 << 64)
        slot = mixed >> 64 - _SLOT_BITS
        entry = _N_SLOTS + _ENTRY * number
        table[entry : entry + _ENTRY] = (len(key), first, last, at, table[slot])
        table[slot] = number + 1
        at += len(key)
    return Keys(table, np.frombuffer(b"".join(keys), np.uint8).copy())


@always_inlined
def find_key(data: Any, at: Any, length: Any, keys: Any) -> Any:
    """Return the number of the wanted key in ``data[at : at + length]``, or -1.

    Eight bytes are read from ``at`` on, for any length.
    """
    first = low_bytes(word_at(data, at), length)
    last = word_at(data, at + length - 8) if length >= 8 else np.uint64(0)
    mixed = (first ^ (last * np.uint64(_MIXER)) ^ np.uint64(length)) * np.uint64(_MIXER)
    slot = signed(mixed >> np.uint64(64 - _SLOT_BITS))
    key = signed(item_at(keys.table, slot)) - 1
    while key >= 0:
        entry = _N_SLOTS + _ENTRY * key
        if (
            signed(item_at(keys.table, entry + _LENGTH)) == length
            and item_at(keys.table, entry + _FIRST) == first
            and item_at(keys.table, entry + _LAST) == last
            and (
                length <= 16
                or same_bytes(data, at, keys.names, item_at(keys.table, entry + _AT), length)
            )
        ):
            break
        key = signed(item_at(keys.table, entry + _NEXT)) - 1
    return key


@always_inlined
def token_at(tokens: Any, token: Any) -> Any:
    """Return the position of a token."""
    return signed(item_at(tokens, token)) & POSITION


@always_inlined
def ends_line(byte: Any) -> Any:
    """Return whether a byte is a line end, or half of one."""
    return byte == NEWLINE or byte == RETURN


@always_inlined
def _is_digit(byte: Any) -> Any:
    return 0x30 <= byte <= 0x39


@inlined
def _scan_number(data: Any, at: Any) -> tuple[Any, Any]:
    """Return the end of the number at a position, -1 if it is invalid, and its kind."""
    byte = byte_at(data, at)
    if byte == MINUS:
        at += 1
        byte = byte_at(data, at)
        if byte == 0x49:
            return (at + 8 if word_at(data, at) == _INFINITY_WORD else -1), FLOAT
    if byte == 0x30:
        at += 1
    elif _is_digit(byte):
        while _is_digit(byte_at(data, at)):
            at += 1
    else:
        return -1, FLOAT
    kind = INTEGER
    if byte_at(data, at) == POINT:
        if not _is_digit(byte_at(data, at + 1)):
            return -1, FLOAT
        at += 2
        while _is_digit(byte_at(data, at)):
            at += 1
        kind = FLOAT
    if byte_at(data, at) | 0x20 == 0x65:
        at += 1
        if byte_at(data, at) == PLUS or byte_at(data, at) == MINUS:
            at += 1
        if not _is_digit(byte_at(data, at)):
            return -1, FLOAT
        while _is_digit(byte_at(data, at)):
            at += 1
        kind = FLOAT
    return at, kind


@inlined
def scan_scalar(data: Any, at: Any) -> tuple[Any, Any]:
    """Return the end of the number or literal at a position, -1 if it is invalid, and its kind."""
    byte = byte_at(data, at)
    kind = FLOAT
    if byte == 0x6E:
        end, kind = (at + 4 if low_bytes(word_at(data, at), 4) == _NULL_WORD else -1), NULL
    elif byte == 0x74:
        end, kind = (at + 4 if low_bytes(word_at(data, at), 4) == _TRUE_WORD else -1), TRUE
    elif byte == 0x66:
        end, kind = (at + 5 if low_bytes(word_at(data, at), 5) == _FALSE_WORD else -1), FALSE
    elif byte == 0x4E:
        end = at + 3 if low_bytes(word_at(data, at), 3) == _NAN_WORD else -1
    elif byte == 0x49:
        end = at + 8 if word_at(data, at) == _INFINITY_WORD else -1
    else:
        end, kind = _scan_number(data, at)
    if end >= 0:
        byte = byte_at(data, end)
        is_end = byte == COMMA or byte == CLOSE_OBJECT or byte == CLOSE_ARRAY
        if not (is_end or byte == SPACE or byte == TAB or ends_line(byte)):
            end = -1
    return end, kind


@always_inlined
def starts_member(data: Any, tokens: Any, token: Any) -> Any:
    """Return whether a key and its colon begin at a token. The value is three tokens later."""
    return (
        byte_at(data, token_at(tokens, token)) == QUOTE
        and byte_at(data, token_at(tokens, token + 2)) == COLON
    )


@inlined
def walk_container(data: Any, tokens: Any, token: Any, depth: Any, stack: Any) -> Any:
    """Walk the array or object that opens at a token, ``depth`` levels deep; return the next token.

    -1 if it is invalid JSON. ``stack`` has `MAX_DEPTH` bytes.
    """
    base = depth
    while True:
        # here a value begins
        byte = byte_at(data, token_at(tokens, token))
        if byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            if depth == MAX_DEPTH:
                return -1
            token += 1
            if byte_at(data, token_at(tokens, token)) != byte + TO_CLOSING:
                put_byte(stack, depth, byte)
                depth += 1
                if byte == OPEN_OBJECT:
                    if not starts_member(data, tokens, token):
                        return -1
                    token += 3
                continue
            token += 1
        elif byte == QUOTE:
            token += 2
        else:
            end, _ = scan_scalar(data, token_at(tokens, token))
            if end < 0:
                return -1
            token += 1
        while True:
            # here a value has ended
            if depth == base:
                return token
            byte = byte_at(data, token_at(tokens, token))
            opened = byte_at(stack, depth - 1)
            token += 1
            if byte == COMMA:
                if opened == OPEN_OBJECT:
                    if not starts_member(data, tokens, token):
                        return -1
                    token += 3
                break
            if byte != opened + TO_CLOSING:
                return -1
            depth -= 1


@inlined
def _hex4(data: Any, at: Any) -> Any:
    """Return the value of four hexadecimal digits."""
    value = 0
    for place in range(4):
        byte = byte_at(data, at + place)
        value = value * 16 + (byte - 0x30 if byte < 0x3A else (byte | 0x20) - 0x57)
    return value


@inlined
def _encode(point: Any, out: Any, at: Any) -> Any:
    """Write a code point as UTF-8 and return the position after it."""
    if point < 0x80:
        put_byte(out, at, point)
        return at + 1
    if point < 0x800:
        put_byte(out, at, 0xC0 | point >> 6)
        put_byte(out, at + 1, 0x80 | point & 0x3F)
        return at + 2
    if point < 0x10000:
        put_byte(out, at, 0xE0 | point >> 12)
        put_byte(out, at + 1, 0x80 | point >> 6 & 0x3F)
        put_byte(out, at + 2, 0x80 | point & 0x3F)
        return at + 3
    put_byte(out, at, 0xF0 | point >> 18)
    put_byte(out, at + 1, 0x80 | point >> 12 & 0x3F)
    put_byte(out, at + 2, 0x80 | point >> 6 & 0x3F)
    put_byte(out, at + 3, 0x80 | point & 0x3F)
    return at + 4


@inlined
def _copy_plain(data: Any, at: Any, end: Any, out: Any, to: Any) -> Any:
    """Copy bytes up to a backslash and return their number. Nothing after the end is read."""
    first, shift = at, to - at
    while at + BLOCK <= end:
        put_block(out, at + shift, data, at)
        slashes = _backslashes(block_at(data, at))
        if slashes != np.uint64(0):
            return at + trailing_zeros(slashes) - first
        at += BLOCK
    while at < end and byte_at(data, at) != BACKSLASH:
        put_byte(out, at + shift, byte_at(data, at))
        at += 1
    return at - first


@inlined
def unescape(data: Any, at: Any, end: Any, out: Any, to: Any) -> Any:
    """Write the unescaped text of a valid string to ``out`` from ``to`` on; return its end.

    -1 if it contains a lone surrogate. ``out`` has room for the escaped string.
    """
    while at < end:
        length = _copy_plain(data, at, end, out, to)
        at, to = at + length, to + length
        if at >= end:
            break
        kind = byte_at(data, at + 1)
        at += 2
        if kind != _SMALL_U:
            put_byte(out, to, item_at(_ESCAPED_BYTES, kind))
            to += 1
            continue
        point = _hex4(data, at)
        at += 4
        if 0xD800 <= point < 0xE000:
            low = 0
            if at + 6 <= end and byte_at(data, at) == BACKSLASH:
                low = _hex4(data, at + 2) if byte_at(data, at + 1) == _SMALL_U else 0
            if point >= 0xDC00 or low < 0xDC00 or low > 0xDFFF:
                return -1
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
            at += 6
        to = _encode(point, out, to)
    return to
