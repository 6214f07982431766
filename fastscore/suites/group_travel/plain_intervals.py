"""Names with an interval of the day after them, where both are written in the plainest ways.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109, SIM110

from typing import Any

import numpy as np
from fastscore_jit.arrays import Int64Array
from fastscore_jit.arrow import string_column, text_rows
from fastscore_jit.compiling import always_inlined, kernel
from fastscore_jit.memory import View, Views, load_byte

_ZERO, _COLON, _COMMA, _SPACE, _LOWER_CASE = 0x30, 0x3A, 0x2C, 0x20, 0x20
_HYPHEN, _NEWLINE, _A, _P, _M, _T, _O = 0x2D, 0x0A, 0x61, 0x70, 0x6D, 0x74, 0x6F
_IMPOSSIBLE, _NO_TIME = -1, -2


def plain_intervals(
    strings: Any, leads: Any
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Find texts that are a name with an interval before or after it.

    After: a name, a lead, and the interval, at whose end the text ends or has a comma; the first
    colon of the text is that of the interval. Before: the interval, a colon, a space, and a name
    without a colon or line end. The interval is ``TIME to TIME`` or ``TIME - TIME``, a time
    ``7:30``, ``07:30``, ``7:30 AM`` or ``7:30pm``; next to it the name has an ASCII character that
    is no blank. In such a text no pattern that allows more than this finds anything else.

    Parameters
    ----------
    strings
        Arrow strings or a polars Series, without nulls or white space around them.
    leads
        What may stand between name and interval, such as ``", visit from "``.

    Returns
    -------
    tuple of int64 arrays (n,)
        At which code point the name begins, and how many it has, -1 where a text is of neither
        form; and the minutes of the day at which the interval begins and ends, -1 for an impossible
        time: an hour above 24, one of AM or PM that is not 1 to 12, a minute above 59.
    """
    rows, known = text_rows("strings", strings), string_column("leads", leads)
    found = _find(rows.views, known.data, known.offsets)
    return found[0], found[1], found[2], found[3]


@always_inlined
def _matches_at(text: View, at: int, data: Any, start: int, stop: int) -> bool:
    """Tell whether ``data[start:stop]`` stands at a place of a text."""
    for place in range(start, stop):
        if load_byte(text, at + place - start) != data[place]:
            return False
    return True


@always_inlined
def _digit(text: View, at: int) -> int:
    """Read a digit; -1 where there is none."""
    digit = load_byte(text, at) - _ZERO
    return digit if 0 <= digit <= 9 else -1


@always_inlined
def _read_meridiem(text: View, at: int) -> int:
    """Return the letter of AM or PM in lower case, 0 for neither."""
    if at + 2 > text.length or load_byte(text, at + 1) | _LOWER_CASE != _M:
        return 0
    letter = load_byte(text, at) | _LOWER_CASE
    return letter if letter == _A or letter == _P else 0


@always_inlined
def _clock(text: View, begin: int, colon: int) -> tuple[int, int]:
    """Read a time whose colon is known: its minutes, or why it has none, and its end."""
    if colon - begin < 1 or colon - begin > 2 or colon + 3 > text.length:
        return _NO_TIME, colon
    ones, tens = _digit(text, colon - 1), _digit(text, begin)
    high, low = _digit(text, colon + 1), _digit(text, colon + 2)
    if ones < 0 or tens < 0 or high < 0 or low < 0:
        return _NO_TIME, colon
    hour = ones + 10 * tens if colon - begin == 2 else ones
    minute, end = 10 * high + low, colon + 3
    is_possible = hour <= 24 and minute <= 59
    at = end + 1 if end < text.length and load_byte(text, end) == _SPACE else end
    meridiem = _read_meridiem(text, at)
    if meridiem != 0:
        end = at + 2
        is_possible = 1 <= hour <= 12 and minute <= 59
        hour = hour % 12 + (12 if meridiem == _P else 0)
    return 60 * hour + minute if is_possible else _IMPOSSIBLE, end


@always_inlined
def _next_colon(text: View, at: Any) -> Any:
    while at < text.length and load_byte(text, at) != _COLON:
        at += 1
    return at


@always_inlined
def _after_between(text: View, at: int) -> int:
    """Return where `` to `` or `` - `` ends; -1 where neither stands."""
    if at + 4 > text.length or load_byte(text, at) != _SPACE:
        return -1
    first, second = load_byte(text, at + 1), load_byte(text, at + 2)
    if first == _HYPHEN and second == _SPACE:
        return at + 3
    is_to = first == _T and second == _O and load_byte(text, at + 3) == _SPACE
    return at + 4 if is_to else -1


@always_inlined
def _name_after(text: View, end: int) -> Any:
    """Return where the name after an interval begins; -1 where there is none."""
    begin = end + 2
    if begin >= text.length or load_byte(text, end) != _COLON:
        return -1
    if load_byte(text, end + 1) != _SPACE or not 0x20 < load_byte(text, begin) < 0x7F:
        return -1
    for at in range(begin, text.length):
        if load_byte(text, at) == _COLON or load_byte(text, at) == _NEWLINE:
            return -1
    return begin


@always_inlined
def _name_before(text: View, begin: int, leads: Any, offsets: Any) -> Any:
    """Return where the name before an interval and its lead ends; -1 where there is none."""
    for lead in range(offsets.size - 1):
        end = begin - (offsets[lead + 1] - offsets[lead])
        if end >= 1 and _matches_at(text, end, leads, offsets[lead], offsets[lead + 1]):
            return end if 0x20 < load_byte(text, end - 1) < 0x7F else -1
    return -1


@always_inlined
def _code_points(text: View, begin: Any, end: Any) -> Any:
    count = np.int64(0)
    for at in range(begin, end):
        count += np.int64(load_byte(text, at) & 0xC0 != 0x80)
    return count


@kernel("Views(int64[:], int64[:]), uint8[:], int64[:]", returns="int64[:, :]", fastmath=False)
def _find(rows: Views, leads: Any, offsets: Any) -> Any:
    """Write (4, rows) what `plain_intervals` returns of each text."""
    addresses, lengths = rows
    found = np.full((4, lengths.size), -1)
    for row in range(lengths.size):
        text, length = View(addresses[row], lengths[row]), lengths[row]
        colon = _next_colon(text, np.int64(0))
        if colon < 1:
            continue
        begin = colon - (2 if colon >= 2 and _digit(text, colon - 2) >= 0 else 1)
        starts, at = _clock(text, begin, colon)
        second = _after_between(text, at)
        if starts == _NO_TIME or second < 0:
            continue
        ends, end = _clock(text, second, _next_colon(text, second))
        if ends == _NO_TIME:
            continue
        first, last = np.int64(-1), length
        if begin == 0:
            first = _name_after(text, end)
        elif end == length or load_byte(text, end) == _COMMA:
            last = _name_before(text, begin, leads, offsets)
            first = np.int64(0) if last >= 0 else last
        if first >= 0:
            found[0, row], found[1, row] = first, _code_points(text, first, last)
            found[2, row], found[3, row] = starts, ends
    return found
