"""The JSON Lines scanner: one pass over bytes, every line validated, wanted values located.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

import numpy as np
from fastscore_machine.bits import trailing_zeros
from fastscore_machine.compiling import inlined
from fastscore_machine.memory import load_byte, store_byte, store_word

from fastscore_readers.json._json_keys import member_key
from fastscore_readers.json.tokens import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    FLOAT,
    INTEGER,
    MAX_DEPTH,
    NULL,
    OBJECT,
    STRING,
    TRUE,
)
from fastscore_readers.text_bytes import (
    MINUS,
    NEWLINE,
    NINE,
    QUOTE,
    RETURN,
    ZERO,
    first_word,
    line_end_mask,
    scan_number,
    scan_string,
    skip_blanks,
    space_length,
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


@inlined
def _scan_key(data: int, index: int, stop: int) -> int:
    """Walk a member's key and its colon from the key's opening quote: position of the value."""
    if index >= stop or load_byte(data, index) != QUOTE:
        return -1 - index
    end, _ = scan_string(data, index + 1, stop)
    if end < 0:
        return end
    end = skip_blanks(data, end + 1, stop)
    if end >= stop or load_byte(data, end) != _COLON:
        return -1 - end
    return skip_blanks(data, end + 1, stop)


@inlined
def scan_container(data: int, index: int, stop: int, depth: int, objects: int) -> int:
    """Walk an array or object that stands at ``depth``: position behind it, or a fault."""
    base = depth
    while True:
        # here a value starts at index
        if index >= stop:
            return -1 - stop
        byte = load_byte(data, index)
        opened = False
        if byte == _OPEN_ARRAY or byte == _OPEN_OBJECT:
            if depth >= MAX_DEPTH:
                return -1 - index - _DEEP
            store_byte(objects, depth, byte == _OPEN_OBJECT)
            depth += 1
            index = skip_blanks(data, index + 1, stop)
            closing = _CLOSE_OBJECT if byte == _OPEN_OBJECT else _CLOSE_ARRAY
            if index < stop and load_byte(data, index) == closing:
                depth -= 1
                index += 1
            else:
                opened = True
        else:
            index, _ = scan_scalar(data, index, stop)
            if index < 0:
                return index
        while not opened:
            # here a value has ended
            if depth == base:
                return index
            index = skip_blanks(data, index, stop)
            if index >= stop:
                return -1 - stop
            byte = load_byte(data, index)
            if byte == _COMMA:
                index = skip_blanks(data, index + 1, stop)
                break
            closing = _CLOSE_OBJECT if load_byte(objects, depth - 1) else _CLOSE_ARRAY
            if byte != closing:
                return -1 - index
            depth -= 1
            index += 1
        if load_byte(objects, depth - 1):
            index = _scan_key(data, index, stop)
            if index < 0:
                return index


@inlined
def note_value(
    tags: int, starts: int, ends: int, place: int, tag: int, start: int, end: int
) -> None:
    """Note a value's type and bytes. Addresses: arrays as arguments cost more than the rest."""
    store_byte(tags, place, tag)
    store_word(starts, 8 * place, np.uint64(start))
    store_word(ends, 8 * place, np.uint64(end))


@inlined
def scan_object(
    data: int,
    index: int,
    stop: int,
    names: int,
    offsets: int,
    words: int,
    n_keys: int,
    recent: int,
    objects: int,
    slot: int,
    capacity: int,
    tags: int,
    starts: int,
    ends: int,
) -> int:
    """Walk a line's object from its brace, and note the wanted members of it.

    The values of a key stand at ``capacity`` places; ``slot`` is the first one's for this line.
    """
    index = skip_blanks(data, index + 1, stop)
    if index < stop and load_byte(data, index) == _CLOSE_OBJECT:
        return index + 1
    turn = 0
    while True:
        value, key, turn = member_key(
            data, index, stop, 0, n_keys, names, offsets, words, recent, turn
        )
        if value < 0:
            return value
        if value >= stop:
            return -1 - stop
        byte = load_byte(data, value)
        if byte == _OPEN_ARRAY or byte == _OPEN_OBJECT:
            tag = OBJECT if byte == _OPEN_OBJECT else ARRAY
            index = scan_container(data, value, stop, 1, objects)
        else:
            index, tag = scan_scalar(data, value, stop)
        if index < 0:
            return index
        if key >= 0:
            inside = 1 if tag == STRING or tag == ESCAPED else 0
            note_value(
                tags, starts, ends, key * capacity + slot, tag, value + inside, index - inside
            )
        index = skip_blanks(data, index, stop)
        if index >= stop:
            return -1 - stop
        byte = load_byte(data, index)
        if byte == _CLOSE_OBJECT:
            return index + 1
        if byte != _COMMA:
            return -1 - index
        index = skip_blanks(data, index + 1, stop)


@inlined
def skip_spaces(data: int, index: int, stop: int) -> int:
    """First position from ``index`` on that `space_length` does not count as space."""
    while index < stop:
        length = space_length(data, index, stop)
        if length == 0:
            break
        index += length
    return index


@inlined
def ends_line(data: int, index: int) -> bool:
    """Whether a line end stands at ``index``."""
    byte = load_byte(data, index)
    return bool(byte == NEWLINE or byte == RETURN)


@inlined
def line_end(data: int, index: int, stop: int) -> int:
    """Position of the line end at or behind ``index``."""
    while index + 64 <= stop:
        ends = line_end_mask(data, index)
        if ends != np.uint64(0):
            index += trailing_zeros(ends)
            return index
        index += 64
    while index < stop:
        byte = load_byte(data, index)
        if byte == NEWLINE or byte == RETURN:
            break
        index += 1
    return index
