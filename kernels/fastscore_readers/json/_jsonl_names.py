"""Values of wanted keys in JSON lines of which no more is read than it takes to find them.

Only where a key stands between quotes, or an escape may spell one, a line is walked, and no
further than to the last such place. Comparisons are spelled out: `in` over a tuple compiles to
slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
from fastscore_machine.bits import trailing_zeros
from fastscore_machine.byte_blocks import BLOCK, equal_bytes, lower_bytes
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import address_of, load_byte, load_word, same_bytes, store_byte

from fastscore_readers.json._json_keys import find_escaped_key, find_key
from fastscore_readers.json._json_skips import skip_container, skip_scalar, skip_string
from fastscore_readers.json._jsonl_runs import before_blanks, behind_line_end
from fastscore_readers.json._jsonl_scan import line_end, note_value, skip_spaces
from fastscore_readers.json.tokens import ABSENT, ARRAY, ESCAPED, OBJECT, STRING
from fastscore_readers.text_bytes import BACKSLASH, QUOTE, SPACE, ZERO, skip_blanks

_NONE, _1 = np.uint64(0), np.uint64(1)
_COMMA, _COLON, _SMALL_U = 0x2C, 0x3A, 0x75
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY = 0x7B, 0x7D, 0x5B
# the escapes of printable ASCII begin with these digits
_FIRST_DIGIT, _BEHIND_DIGITS = 0x32, 0x38


@inlined
def _spells_ascii(at: int) -> bool:
    r"""Whether an escape like ``\u0061`` begins within the block at an address."""
    marks = equal_bytes(at, BACKSLASH)
    if marks == _NONE:
        return False
    marks &= equal_bytes(at + 1, _SMALL_U) & equal_bytes(at + 2, ZERO) & equal_bytes(at + 3, ZERO)
    marks &= lower_bytes(at + 4, _BEHIND_DIGITS) & ~lower_bytes(at + 4, _FIRST_DIGIT)
    return bool(marks != _NONE)


@inlined
def _last_place(
    data: int, index: int, end: int, stop: int, names: int, offsets: int, n_keys: int, longest: Any
) -> int:
    """Last position in [index, end) at which a wanted key may begin, or -1 without any."""
    last = -1
    while index < end and index + BLOCK + longest + 4 < stop:
        at = data + index
        if _spells_ascii(at):
            return end
        quotes = equal_bytes(at, QUOTE)
        for key in range(n_keys):
            name: Any = np.int64(load_word(offsets, 8 * key))
            length: Any = np.int64(load_word(offsets, 8 * key + 8)) - name
            marks = quotes & equal_bytes(at + 1 + length, QUOTE)
            marks &= equal_bytes(at + 1, load_byte(names, name))
            while marks != _NONE:
                place = index + trailing_zeros(marks)
                # the block may reach into the next line
                if place < end and same_bytes(names + name, data + place + 1, length):
                    last = max(last, place)
                marks &= marks - _1
        index += BLOCK
    while index < end:
        byte = load_byte(data, index)
        if byte == BACKSLASH:
            return end
        if byte == QUOTE:
            for key in range(n_keys):
                name = np.int64(load_word(offsets, 8 * key))
                behind: Any = index + 1 + np.int64(load_word(offsets, 8 * key + 8)) - name
                if behind < end and load_byte(data, behind) == QUOTE:
                    last = index
        index += 1
    return last


@inlined
def _note_members(
    data: int,
    index: int,
    last: int,
    end: int,
    names: int,
    offsets: int,
    words: int,
    n_keys: int,
    slot: int,
    capacity: int,
    tags: int,
    starts: int,
    ends: int,
) -> bool:
    """Note the wanted members of an object up to ``last``; whether it may be valid.

    ``slot``, ``capacity`` and the addresses are those of `scan_object`.
    """
    index = skip_blanks(data, index + 1, end)
    while index <= last and index < end and load_byte(data, index) == QUOTE:
        name = index + 1
        name_end, name_escaped, _ = skip_string(data, name, end)
        index = skip_blanks(data, name_end + 1, end)
        if index >= end or load_byte(data, index) != _COLON:
            return False
        value = skip_blanks(data, index + 1, end)
        if value >= end:
            return False
        byte = load_byte(data, value)
        if byte == _OPEN_ARRAY or byte == _OPEN_OBJECT:
            tag = OBJECT if byte == _OPEN_OBJECT else ARRAY
            index, _ = skip_container(data, value, end)
        else:
            index, tag, _ = skip_scalar(data, value, end)
        if name_escaped:
            key = find_escaped_key(data, name, name_end, names, offsets, words, n_keys)
        else:
            key = find_key(data, name, name_end, end, names, offsets, words, n_keys)
        if key >= 0:
            inside = 1 if tag == STRING or tag == ESCAPED else 0
            if index - inside < value + inside:
                return False
            note_value(
                tags, starts, ends, key * capacity + slot, tag, value + inside, index - inside
            )
        index = skip_blanks(data, index, end)
        if index >= end:
            return False
        byte = load_byte(data, index)
        if byte != _COMMA:
            return bool(byte == _CLOSE_OBJECT)
        index = skip_blanks(data, index + 1, end)
    return True


@inlined
def _may_end_object(data: int, index: int, end: int) -> bool:
    """Whether a brace, or what `str.strip` may take off behind one, stands last in a line."""
    byte = load_byte(data, before_blanks(data, end - 1, index))
    return bool(byte == _CLOSE_OBJECT or byte <= SPACE or byte >= 0x80)


@kernel(
    "uint8[:], int64, uint8[:], int64[:], uint64[:], out(int64[:, :]), "
    "out(uint8[:, :]), out(int64[:, :]), out(int64[:, :])",
    returns="int64",
    fastmath=False,
)
def note_names(
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
    """Note the wanted values of lines that are objects; return how many lines those are.

    ``lines`` (3, capacity) takes each one's number, the first line's being ``number``, and its
    start twice. Returns -1 when there are more.
    """
    stop = data.size
    base = address_of(data)
    name_bytes, name_offsets, name_words = address_of(names), address_of(offsets), address_of(words)
    tag_bytes, start_words, end_words = address_of(tags), address_of(starts), address_of(ends)
    n_keys = words.size
    longest = np.int64(0)
    for key in range(n_keys):
        longest = max(longest, offsets[key + 1] - offsets[key])
    row = index = 0
    while index < stop:
        start = index
        end = line_end(base, start, stop)
        index = skip_spaces(base, start, end)
        if index < end and load_byte(base, index) == _OPEN_OBJECT:
            if row == lines.shape[1]:
                return -1
            last = _last_place(base, index, end, stop, name_bytes, name_offsets, n_keys, longest)
            if _may_end_object(base, index, end) and _note_members(
                base,
                index,
                last,
                end,
                name_bytes,
                name_offsets,
                name_words,
                n_keys,
                row,
                tags.shape[1],
                tag_bytes,
                start_words,
                end_words,
            ):
                lines[0, row], lines[1, row], lines[2, row] = number, start, start
                row += 1
            else:
                for key in range(n_keys):
                    tags[key, row] = ABSENT
        index = behind_line_end(base, end, stop)
        number += 1
    return int(row)


@kernel(
    "uint8[:], int64, out(uint8[:, :]), out(int64[:, :]), out(int64[:, :]), out(uint8[:])",
    returns="int64",
    fastmath=False,
)
def keep_values(data: Any, n_rows: int, tags: Any, starts: Any, ends: Any, kept: Any) -> int:
    """Copy values side by side and let ``starts`` and ``ends`` say where; return their bytes.

    What is absent is empty.
    """
    base, target = address_of(data), address_of(kept)
    used = 0
    for row in range(n_rows):
        for key in range(tags.shape[0]):
            start, length = starts[key, row], ends[key, row] - starts[key, row]
            if tags[key, row] == ABSENT:
                length = 0
            for position in range(length):
                store_byte(target, used + position, load_byte(base, start + position))
            starts[key, row], ends[key, row] = used, used + length
            used += length
    return used
