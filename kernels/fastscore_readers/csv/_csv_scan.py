"""The CSV scanner: one pass over bytes, records cut as Python's csv module cuts them.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
from fastscore_machine.bits import trailing_zeros
from fastscore_machine.byte_blocks import BLOCK, equal_bytes
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import address_of, copy_block, load_byte, store_byte

from fastscore_readers.block_scans import first_bad_byte, line_ends_within
from fastscore_readers.json.faults import NOT_UTF8
from fastscore_readers.json.tokens import ESCAPED, FALSE, FLOAT, INTEGER, STRING, TRUE
from fastscore_readers.text_bytes import (
    MINUS,
    NEWLINE,
    PLUS,
    QUOTE,
    RETURN,
    SPACE,
    TAB,
    scan_number,
    skip_digits,
)

# numbered apart from the faults of JSON Lines
WRONG_CELL_COUNT, UNTERMINATED_QUOTE, TEXT_BEHIND_QUOTE, TOO_LONG = range(17, 21)

_COMMA = 0x2C
_NONE, _PAIR = np.uint64(0), np.uint64(3)


@inlined
def _closing_quote(data: int, index: int, stop: int) -> tuple[int, bool]:
    """Position of the first quote from ``index`` on that is not doubled, ``stop`` without any.

    Also whether doubled ones stand before it.
    """
    doubled = False
    while index + BLOCK <= stop:
        quotes = equal_bytes(data + index, QUOTE)
        size = BLOCK
        while quotes != _NONE:
            place = trailing_zeros(quotes)
            behind = index + place + 1
            if behind >= stop or load_byte(data, behind) != QUOTE:
                return index + place, doubled
            doubled = True
            quotes &= ~(_PAIR << np.uint64(place))
            if place == BLOCK - 1:
                size = BLOCK + 1
        index += size
    while index < stop:
        if load_byte(data, index) == QUOTE:
            if index + 1 >= stop or load_byte(data, index + 1) != QUOTE:
                return index, doubled
            doubled = True
            index += 1
        index += 1
    return stop, doubled


@inlined
def _plain_end(data: int, index: int, stop: int) -> int:
    """First position from ``index`` on of a comma or line end, ``stop`` without any."""
    while index + BLOCK <= stop:
        at = data + index
        ends = equal_bytes(at, _COMMA) | equal_bytes(at, NEWLINE) | equal_bytes(at, RETURN)
        if ends != _NONE:
            return int(index + trailing_zeros(ends))
        index += BLOCK
    while index < stop:
        byte = load_byte(data, index)
        if byte == _COMMA or byte == NEWLINE or byte == RETURN:
            break
        index += 1
    return index


@inlined
def _line_end(data: int, index: int, stop: int) -> int:
    """First position from ``index`` on of a line end, ``stop`` without any."""
    while index < stop:
        byte = load_byte(data, index)
        if byte == NEWLINE or byte == RETURN:
            break
        index += 1
    return index


@inlined
def _behind_line_end(data: int, index: int, stop: int, final: bool) -> int:
    """Position behind the line end at ``index``, -1 when it may be half of one."""
    if load_byte(data, index) == NEWLINE:
        return index + 1
    if index + 1 == stop:
        return stop if final else -1
    return index + 2 if load_byte(data, index + 1) == NEWLINE else index + 1


@inlined
def _scan_cell(data: int, index: int, stop: int) -> tuple[int, int, int, int, int]:
    """Walk a cell from its first byte.

    Returns the position behind it, the bounds of its text, its tag, and what is wrong with it;
    the first is the fault's position where something is.
    """
    if index >= stop or load_byte(data, index) != QUOTE:
        end = _plain_end(data, index, stop)
        return end, index, end, STRING, 0
    at, doubled = _closing_quote(data, index + 1, stop)
    tag = ESCAPED if doubled else STRING
    if at >= stop:
        return index, index, stop, tag, UNTERMINATED_QUOTE
    behind = at + 1
    if behind < stop:
        byte = load_byte(data, behind)
        if byte != _COMMA and byte != NEWLINE and byte != RETURN:
            return behind, index, at, tag, TEXT_BEHIND_QUOTE
    return behind, index + 1, at, tag, 0


@kernel(
    "uint8[:], int64, int64, bool, int64, int64[:], out(int64[:, :]), "
    "out(uint8[:, :]), out(int64[:, :]), out(int64[:, :]), out(int64[:, :]), "
    "out(int64[:])",
    fastmath=False,
)
def scan_records(
    data: Any,
    index: int,
    line: int,
    final: bool,
    limit: int,
    slots: Any,
    rows: Any,
    tags: Any,
    starts: Any,
    ends: Any,
    faults: Any,
    counts: Any,
) -> None:
    """Scan records of ``data`` from ``index`` on, as many as are whole and fit the arrays.

    ``slots`` has an item for each cell of a record: the row of ``tags``, ``starts`` and ``ends``
    that takes it, or -1. ``rows`` (3, capacity) takes line, start and end of the good records,
    ``faults`` (6, capacity) those of the faulty ones with status, position and number of cells;
    ``counts`` the numbers of rows, faults, records and blank lines, the next record's position
    and line, and whether a record that is too long goes on behind the data. Without ``final`` the
    data go on behind their end; a record longer than ``limit`` is given up.
    """
    stop = data.size
    base = address_of(data)
    n_cells = slots.size
    row = fault = total = blank = 0
    counts[6] = 0
    while index < stop and row < rows.shape[1] and fault < faults.shape[1]:
        begin = index
        byte = load_byte(base, index)
        if byte == NEWLINE or byte == RETURN:
            behind = _behind_line_end(base, index, stop, final)
            if behind < 0:
                break
            index = behind
            blank += 1
            total += 1
            line += 1
            continue
        cell = status = 0
        quoted = False
        while True:
            quoted |= index < stop and load_byte(base, index) == QUOTE
            index, first, last, tag, status = _scan_cell(base, index, stop)
            if status != 0:
                break
            if cell < n_cells and slots[cell] >= 0:
                slot = slots[cell]
                tags[slot, row], starts[slot, row], ends[slot, row] = tag, first, last
            cell += 1
            if index >= stop or load_byte(base, index) != _COMMA:
                break
            index += 1
        position = index
        if not final and (index >= stop or status == UNTERMINATED_QUOTE):
            if stop - begin <= limit:
                index = begin
                break
            status = TOO_LONG
        end = index
        if status != 0:
            # broken quoting may swallow good records: reading goes on at the next line
            end = _line_end(base, begin, stop)
            if end >= stop and not final:
                if stop - begin <= limit:
                    index = begin
                    break
                status = TOO_LONG
                counts[6] = 1
        else:
            position = first_bad_byte(base, begin, end)
            if position >= 0:
                status = NOT_UTF8
            elif cell != n_cells:
                status, position = WRONG_CELL_COUNT, begin
        behind = stop
        if end < stop:
            behind = _behind_line_end(base, end, stop, final)
            if behind < 0:
                index = begin
                break
        if status == 0:
            rows[0, row], rows[1, row], rows[2, row] = line, begin, end
            row += 1
        else:
            faults[0, fault], faults[1, fault], faults[2, fault] = line, begin, end
            faults[3, fault], faults[4, fault], faults[5, fault] = status, position, cell
            fault += 1
        index = behind
        total += 1
        line += 1
        if quoted:
            line += line_ends_within(base, begin, end)
    counts[0], counts[1], counts[2], counts[3] = row, fault, total, blank
    counts[4], counts[5] = index, line


@inlined
def _unquote(data: int, index: int, stop: int, out: int, at: int) -> int:
    """Write a cell's text, its doubled quotes once: position behind it.

    Up to a block behind ``stop`` is read, and behind the text written.
    """
    while index < stop:
        quotes = equal_bytes(data + index, QUOTE)
        begin = 0
        while quotes != _NONE and begin < BLOCK:
            place = trailing_zeros(quotes)
            copy_block(data, index + begin, out, at)
            # a pair that the cell's end cuts is none of the cell's
            at += min(place + 1, stop - index) - begin
            begin = place + 2
            quotes &= ~(_PAIR << np.uint64(place))
            if index + begin >= stop:
                return at
        if begin < BLOCK:
            copy_block(data, index + begin, out, at)
            at += min(BLOCK, stop - index) - begin
        index += max(BLOCK, begin)
    return at


@kernel(
    "uint8[:], int64[:], int64[:], out(uint8[:]), out(int64[:]), out(int64[:])",
    returns="int64",
    fastmath=False,
)
def unquote_cells(
    data: Any, starts: Any, ends: Any, out: Any, out_starts: Any, out_ends: Any
) -> int:
    """Write cells one behind another, their doubled quotes once; ``out`` has a block to spare."""
    base, target = address_of(data), address_of(out)
    at = 0
    for row in range(starts.size):
        out_starts[row] = at
        index, end = starts[row], ends[row]
        # a cell near the data's end is written byte by byte
        if end + 2 * BLOCK <= data.size:
            at = _unquote(base, index, end, target, at)
        else:
            while index < end:
                byte = load_byte(base, index)
                store_byte(target, at, byte)
                at += 1
                index += 2 if byte == QUOTE else 1
        out_ends[row] = at
    return at


@inlined
def _spells(data: int, start: int, end: int, word: int, length: int) -> bool:
    """Whether the bytes are ``word`` (lower case, little-endian) in any case."""
    if end - start != length:
        return False
    for position in range(length):
        if load_byte(data, start + position) | 0x20 != (word >> (8 * position)) & 0xFF:
            return False
    return True


_TRUE_WORD, _FALSE_WORD, _NAN_WORD, _INF_WORD, _INFINITY_WORD = (
    int.from_bytes(word, "little") for word in (b"true", b"false", b"nan", b"inf", b"infinity")
)


@kernel("uint8[:], out(int64[:]), out(int64[:]), out(uint8[:])", fastmath=False)
def spell_types(data: Any, starts: Any, ends: Any, tags: Any) -> None:
    """Give cells the tag of the JSON value that they spell, and its bounds, where they do."""
    base = address_of(data)
    for row in range(tags.size):
        if tags[row] != STRING:
            continue
        start, end = starts[row], ends[row]
        while start < end and (load_byte(base, start) == SPACE or load_byte(base, start) == TAB):
            start += 1
        while start < end and (
            load_byte(base, end - 1) == SPACE or load_byte(base, end - 1) == TAB
        ):
            end -= 1
        if start == end:
            continue
        sign = load_byte(base, start)
        digits = start + 1 if sign == MINUS or sign == PLUS else start
        tag = STRING
        if _spells(base, start, end, _TRUE_WORD, 4):
            tag = TRUE
        elif _spells(base, start, end, _FALSE_WORD, 5):
            tag = FALSE
        elif (
            _spells(base, digits, end, _NAN_WORD, 3)
            or _spells(base, digits, end, _INF_WORD, 3)
            or _spells(base, digits, end, _INFINITY_WORD, 8)
        ):
            tag = FLOAT
        elif digits < end:
            # zeros may lead, as they may not in JSON
            if skip_digits(base, digits, end) == end:
                tag = INTEGER
            elif load_byte(base, digits) != MINUS:
                behind, _ = scan_number(base, digits, end)
                if behind == end:
                    tag = FLOAT
        if tag != STRING:
            tags[row] = tag
            starts[row] = digits if sign == PLUS else start
            ends[row] = end
