"""One structural index of a block of JSON Lines: the positions of its tokens, in one pass.

Sixty-four bytes are classified at once, as in Langdale and Lemire, "Parsing gigabytes of JSON per
second" (VLDB Journal 28, 2019). UTF-8, escapes, control characters and line ends are checked in the
same pass. All JSON readers walk this index. Invalid bytes are only recorded, and their lines are
validated one by one (`faults`).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.bits import after_odd, count_ones, trailing_zeros
from fastscore_jit.byte_blocks import byte_marks
from fastscore_jit.declaring import always_inlined, inlined
from fastscore_jit.memory import BLOCK, address_of, block_at, item_at, put_item, store_positions

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
