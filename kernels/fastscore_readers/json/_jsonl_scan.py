"""The JSON Lines scanner: one pass over bytes, every line validated, wanted values located.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

import numpy as np
from fastscore_machine.compiling import inlined
from fastscore_machine.memory import load_byte

from fastscore_readers.json.tokens import (
    ABSENT,
    ESCAPED,
    FALSE,
    FLOAT,
    INTEGER,
    NULL,
    STRING,
    TRUE,
)
from fastscore_readers.text_bytes import (
    MINUS,
    NINE,
    QUOTE,
    ZERO,
    first_word,
    scan_number,
    scan_string,
)

_COMMA, _COLON = 0x2C, 0x3A
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
# a fault that is a matter of depth is told apart by this offset
_DEEP = 1 << 62

_NULL_WORD, _FALSE_WORD, _TRUE_WORD, _NAN_WORD, _INFINITY_WORD = (
    np.uint64(int.from_bytes(word, "little"))
    for word in (b"null", b"false", b"true", b"NaN", b"Infinity")
)


@inlined
def _literal(data: int, index: int, stop: int, length: int, word: np.uint64) -> int:
    """Position behind ``word`` at ``index``, or ``-1 - index`` when it does not stand there."""
    if index + length > stop or first_word(data, index, length, stop) != word:
        return -1 - index
    return index + length


@inlined
def scan_scalar(data: int, index: int, stop: int) -> tuple[int, int]:
    """Walk a scalar: (position behind it or ``-1 - fault``, tag)."""
    byte = load_byte(data, index)
    if byte == QUOTE:
        end, escaped = scan_string(data, index + 1, stop)
        return (end + 1 if end >= 0 else end), (ESCAPED if escaped else STRING)
    if ZERO <= byte <= NINE or byte == MINUS:
        end, integer = scan_number(data, index, stop)
        if end < 0 and byte == MINUS:
            infinity = _literal(data, index + 1, stop, 8, _INFINITY_WORD)
            if infinity >= 0:
                return infinity, FLOAT
        return end, (INTEGER if integer else FLOAT)
    if byte == 0x74:
        return _literal(data, index, stop, 4, _TRUE_WORD), TRUE
    if byte == 0x66:
        return _literal(data, index, stop, 5, _FALSE_WORD), FALSE
    if byte == 0x6E:
        return _literal(data, index, stop, 4, _NULL_WORD), NULL
    if byte == 0x4E:
        return _literal(data, index, stop, 3, _NAN_WORD), FLOAT
    if byte == 0x49:
        return _literal(data, index, stop, 8, _INFINITY_WORD), FLOAT
    return -1 - index, ABSENT
