"""Runs of JSON lines that give the wanted keys the same values, most read at their end only.

Logs often repeat what names a dialogue at the end of each line. From the comma before the first
wanted member on, the bytes of a scanned line prove what a line that ends alike holds: the last of
equal keys wins, and in a valid line such an ending can only stand where it stood in the other one
(inside a string, or one level deeper, the line would be no JSON). Comparisons are spelled out:
`in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import address_of, load_byte, load_word, same_bytes

from fastscore_readers.json._json_keys import NODE_BYTES
from fastscore_readers.json._jsonl_scan import ends_line, line_end, scan_object, skip_spaces
from fastscore_readers.json.tokens import ABSENT, ESCAPED, MAX_DEPTH, STRING
from fastscore_readers.text_bytes import NEWLINE, QUOTE, RETURN, SPACE, TAB, skip_blanks

_COMMA, _COLON, _OPEN_OBJECT = 0x2C, 0x3A, 0x7B


@inlined
def _is_word_byte(byte: int) -> bool:
    """Whether a byte is a letter or underscore, or belongs to a character beyond ASCII."""
    letter = byte | 0x20
    return 0x61 <= letter <= 0x7A or byte == 0x5F or byte >= 0x80


@inlined
def before_blanks(data: int, index: int, start: int) -> int:
    """Last position at or before ``index`` that is no blank, ``start - 1`` without any."""
    while index >= start:
        byte = load_byte(data, index)
        if byte != SPACE and byte != TAB:
            break
        index -= 1
    return index


@inlined
def _member_comma(data: int, start: int, value: int, names: int, name: int, length: int) -> int:
    """Position of the comma before the member whose value starts at ``value``, or -1.

    -1 also where the key is written with escapes, does not start with a letter, or stands first.
    """
    if length == 0 or not _is_word_byte(load_byte(names, name)):
        return -1
    index = before_blanks(data, value - 1, start)
    if index < start or load_byte(data, index) != _COLON:
        return -1
    index = before_blanks(data, index - 1, start)
    if index - length - 1 < start or load_byte(data, index) != QUOTE:
        return -1
    index -= length
    for position in range(length):
        if load_byte(data, index + position) != load_byte(names, name + position):
            return -1
    if load_byte(data, index - 1) != QUOTE:
        return -1
    index = before_blanks(data, index - 2, start)
    return index if index >= start and load_byte(data, index) == _COMMA else -1


@inlined
def _ending(
    data: int,
    start: int,
    names: int,
    offsets: int,
    n_keys: int,
    row: int,
    tags: Any,
    starts: Any,
) -> Any:
    """Position of the comma before the first wanted member of a row, or -1 without proof."""
    ending: Any = np.int64(-1)
    for key in range(n_keys):
        tag = tags[key, row]
        if tag == ABSENT:
            return -1
        name: Any = np.int64(load_word(offsets, 8 * key))
        length: Any = np.int64(load_word(offsets, 8 * key + 8)) - name
        inside = 1 if tag == STRING or tag == ESCAPED else 0
        comma = _member_comma(data, start, starts[key, row] - inside, names, name, length)
        if comma < 0:
            return -1
        if ending < 0 or comma < ending:
            ending = comma
    return ending


@inlined
def behind_line_end(data: int, index: int, stop: int) -> int:
    """Position of the line behind the line end at ``index``."""
    if index >= stop:
        return stop
    if load_byte(data, index) == RETURN and index + 1 < stop:
        return index + 2 if load_byte(data, index + 1) == NEWLINE else index + 1
    return index + 1


@kernel(
    "uint8[:], int64, uint8[:], int64[:], uint64[:], out(int64[:, :]), "
    "out(uint8[:, :]), out(int64[:, :]), out(int64[:, :])",
    returns="int64",
    fastmath=False,
)
def scan_runs(
    data: Any,
    number: int,
    names: Any,
    offsets: Any,
    words: Any,
    lines: Any,
    tags: Any,
    starts: Any,
    ends: Any,
) -> int:
    """Find runs of lines that give the wanted keys the same values.

    ``lines`` (3, capacity) takes, for each run, the number of its first line, the first of all
    being ``number``, and the starts of its first and its last line. Returns the number of runs, or
    -1 when there are more.
    """
    stop = data.size
    room = np.zeros(MAX_DEPTH + NODE_BYTES, np.uint8)
    objects, base = address_of(room), address_of(data)
    recent = objects + MAX_DEPTH
    name_bytes, name_offsets, name_words = address_of(names), address_of(offsets), address_of(words)
    tag_bytes, start_words, end_words = address_of(tags), address_of(starts), address_of(ends)
    n_keys = words.size
    row = index = 0
    ending: Any = np.int64(0)
    length: Any = np.int64(0)
    while index < stop:
        start = index
        if length > 0:
            index = line_end(base, start, stop)
            if index - start > length and same_bytes(base + index - length, base + ending, length):
                lines[2, row - 1] = start
                index = behind_line_end(base, index, stop)
                number += 1
                continue
            index = start
        if row == lines.shape[1]:
            return -1
        index = skip_blanks(base, index, stop)
        if index < stop and load_byte(base, index) != _OPEN_OBJECT:
            index = skip_spaces(base, index, stop)
        if index < stop and load_byte(base, index) == _OPEN_OBJECT:
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
            index = skip_spaces(base, after, stop) if after >= 0 else -1
            if index >= 0 and (index >= stop or ends_line(base, index)):
                lines[0, row], lines[1, row], lines[2, row] = number, start, start
                ending = _ending(base, start, name_bytes, name_offsets, n_keys, row, tags, starts)
                length = index - ending if ending >= 0 else 0
                row += 1
            else:
                for key in range(n_keys):
                    tags[key, row] = ABSENT
                index = start
        index = behind_line_end(base, line_end(base, index, stop), stop)
        number += 1
    # naming the array here keeps it alive until its address is used no more
    return int(row + room.size - MAX_DEPTH - NODE_BYTES)
