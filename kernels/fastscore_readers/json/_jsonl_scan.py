"""The JSON Lines scanner: one pass over bytes, every line validated, wanted values located.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
from fastscore_machine.bits import count_ones, trailing_zeros
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import address_of, load_byte, store_byte, store_word

from fastscore_readers.json._json_keys import NODE_BYTES, member_key
from fastscore_readers.text_bytes import (
    MINUS,
    NEWLINE,
    NINE,
    QUOTE,
    RETURN,
    ZERO,
    first_word,
    line_end_mask,
    return_mask,
    scan_number,
    scan_string,
    skip_blanks,
    space_length,
    utf8_fault,
)

ABSENT, NULL, FALSE, TRUE, INTEGER, FLOAT, STRING, ESCAPED, ARRAY, OBJECT = range(10)
NOT_JSON, NOT_OBJECT, NOT_UTF8, TOO_DEEP = range(1, 5)
MAX_DEPTH = 500

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


@kernel(fastmath=False)
def count_ends(data: Any) -> int:
    """Count line ends; a return at the very end is one."""
    base, size = address_of(data), data.size
    count, index = np.int64(0), 0
    while index < size:
        if index + 64 <= size and return_mask(base, index) == np.uint64(0):
            count += count_ones(line_end_mask(base, index))
        else:
            for position in range(index, min(index + 64, size)):
                byte = load_byte(base, position)
                if byte == NEWLINE:
                    count += 1
                elif byte == RETURN:
                    count += position + 1 == size or load_byte(base, position + 1) != NEWLINE
        index += 64
    return int(count)


@kernel(fastmath=False)
def note_starts(data: Any, after_return: bool, starts: Any) -> int:
    """Note where lines begin behind line ends; return how many.

    ``after_return`` says that a return stands before the data: a newline first in them belongs to
    it. Behind a return at the very end nothing is noted.
    """
    base, size = address_of(data), data.size
    count, index = 0, 0
    if after_return and size > 0:
        index = 1 if load_byte(base, 0) == NEWLINE else 0
        starts[0] = index
        count = 1
    while index < size:
        index = line_end(base, index, size)
        if index >= size:
            break
        returned = load_byte(base, index) == RETURN
        index += 1
        if returned:
            if index == size:
                break
            if load_byte(base, index) == NEWLINE:
                index += 1
        starts[count] = index
        count += 1
    return count


@kernel(fastmath=False)
def scan_lines(
    data: Any,
    restarts: Any,
    restart_lines: Any,
    names: Any,
    offsets: Any,
    words: Any,
    array_key: int,
    lines: Any,
    tags: Any,
    starts: Any,
    ends: Any,
    faults: Any,
    counts: Any,
) -> None:
    """Scan all lines of ``data``; a line that is an array is the value of ``array_key`` unless -1.

    ``restarts`` are ascending positions of line starts at which the line number becomes
    ``restart_lines``; the last is ``data.size``. ``lines`` (3, capacity) takes number, start and
    end of the rows, ``faults`` (5, capacity) those of the faulty lines with status and position,
    ``counts`` the numbers of rows, faults, lines and blank lines the next line's number
    and whether there were more lines than the capacity.
    """
    stop = data.size
    room = np.zeros(MAX_DEPTH + NODE_BYTES, np.uint8)
    objects = address_of(room)
    recent = objects + MAX_DEPTH
    base = address_of(data)
    name_bytes, name_offsets, name_words = address_of(names), address_of(offsets), address_of(words)
    tag_bytes, start_words, end_words = address_of(tags), address_of(starts), address_of(ends)
    n_keys = words.size
    row = fault = total = blank = restart = 0
    number = 1
    index = 0
    counts[5] = 0
    while index < stop:
        if row == lines.shape[1] or fault == faults.shape[1]:
            counts[5] = 1
            break
        if index >= restarts[restart]:
            number = restart_lines[restart]
            restart += 1
        start = index
        status = 0
        index = skip_blanks(base, index, stop)
        if index < stop and load_byte(base, index) != _OPEN_OBJECT:
            index = skip_spaces(base, index, stop)
        if index >= stop or ends_line(base, index):
            blank += 1
        else:
            if load_byte(base, index) == _OPEN_OBJECT:
                after = scan_object(
                    base,
                    index,
                    stop,
                    name_bytes,
                    name_offsets,
                    name_words,
                    n_keys,
                    recent,
                    objects,
                    row,
                    tags.shape[1],
                    tag_bytes,
                    start_words,
                    end_words,
                )
            else:
                status = NOT_OBJECT
                after = scan_container(base, index, stop, 0, objects)
                if array_key >= 0 and load_byte(base, index) == _OPEN_ARRAY:
                    status = 0
                    tags[array_key, row] = ARRAY
                    starts[array_key, row], ends[array_key, row] = index, after
            position = index
            if after >= 0:
                index = skip_spaces(base, after, stop)
                if index < stop and not ends_line(base, index):
                    after = -1 - index
            if after < 0:
                position = -1 - after
                status = NOT_JSON
                if position >= _DEEP:
                    position -= _DEEP
                    status = TOO_DEEP
                index = line_end(base, position, stop)
                broken = utf8_fault(base, start, index)
                if broken >= 0:
                    status, position = NOT_UTF8, broken
            if status == 0:
                lines[0, row], lines[1, row], lines[2, row] = number, start, index
                row += 1
            else:
                for key in range(n_keys):
                    tags[key, row] = ABSENT
                faults[0, fault], faults[1, fault], faults[2, fault] = number, start, index
                faults[3, fault], faults[4, fault] = status, position
                fault += 1
        if index < stop:
            returned = load_byte(base, index) == RETURN
            index += 1
            if returned and index < stop and load_byte(base, index) == NEWLINE:
                index += 1
        number += 1
        total += 1
    counts[0], counts[1], counts[2], counts[3], counts[4] = row, fault, total, blank, number
    # naming the array here keeps it alive until its address is used no more
    counts[5] += room.size - MAX_DEPTH - NODE_BYTES
