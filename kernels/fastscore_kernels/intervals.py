"""Names with an interval of the day behind them, where both are written in the plainest ways.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_kernels._jit import always_inlined, first_use, kernel
from fastscore_kernels._jsonl_bytes import load_byte
from fastscore_kernels._validate import read_only
from fastscore_kernels.arrow import string_column, text_rows

Longs = npt.NDArray[np.int64]

_ZERO, _COLON, _COMMA, _SPACE, _LOWER_CASE = 0x30, 0x3A, 0x2C, 0x20, 0x20
_A, _P, _M = 0x61, 0x70, 0x6D
_BETWEEN = read_only(np.frombuffer(b" to ", np.uint8))
_IMPOSSIBLE, _NO_TIME = -1, -2


def plain_intervals(strings: Any, leads: Any) -> tuple[Longs, Longs, Longs]:
    """Find texts that are a name, a lead, and ``TIME to TIME``, and end there or at a comma.

    A time is ``7:30``, ``07:30``, ``7:30 AM`` or ``7:30pm``. The first colon of the text is that of
    the first time, and an ASCII character that is no blank ends the name: in such a text no pattern
    that allows more than this finds anything else.

    Parameters
    ----------
    strings
        Arrow strings or a polars Series, without nulls or white space around them.
    leads
        What may stand between name and interval, such as ``", visit from "``.

    Returns
    -------
    tuple of int64 arrays (n,)
        The code points of the name, -1 where a text is not of this form; and the minutes of the day
        at which the interval begins and ends, -1 for an impossible time: an hour above 24, one of
        AM or PM that is not 1 to 12, a minute above 59.
    """
    rows, known = text_rows("strings", strings), string_column("leads", leads)
    compile_kernels()
    found = _find(
        read_only(rows.addresses), read_only(rows.lengths), known.data, known.offsets, _BETWEEN
    )
    return found[0], found[1], found[2]


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    none, offsets = read_only(np.zeros(0, np.int64)), read_only(np.zeros(1, np.int64))
    _find(none, none, read_only(np.zeros(0, np.uint8)), offsets, _BETWEEN)


@always_inlined
def _stands(address, at, data, start, stop):  # type: ignore[no-untyped-def]
    """Tell whether ``data[start:stop]`` stands at a place of a text."""
    for place in range(start, stop):
        if load_byte(address, at + place - start) != data[place]:
            return False
    return True


@always_inlined
def _digit(address, at):  # type: ignore[no-untyped-def]
    """Read a digit; -1 where there is none."""
    digit = load_byte(address, at) - _ZERO
    return digit if 0 <= digit <= 9 else -1


@always_inlined
def _half(address, at, length):  # type: ignore[no-untyped-def]
    """Return the letter of AM or PM in lower case, 0 for neither."""
    if at + 2 > length or load_byte(address, at + 1) | _LOWER_CASE != _M:
        return 0
    letter = load_byte(address, at) | _LOWER_CASE
    return letter if letter == _A or letter == _P else 0


@always_inlined
def _clock(address, begin, colon, length):  # type: ignore[no-untyped-def]
    """Read a time whose colon is known: its minutes, or why it has none, and its end."""
    if colon - begin < 1 or colon - begin > 2 or colon + 3 > length:
        return _NO_TIME, colon
    ones, tens = _digit(address, colon - 1), _digit(address, begin)
    high, low = _digit(address, colon + 1), _digit(address, colon + 2)
    if ones < 0 or tens < 0 or high < 0 or low < 0:
        return _NO_TIME, colon
    hour = ones + 10 * tens if colon - begin == 2 else ones
    minute, end = 10 * high + low, colon + 3
    is_possible = hour <= 24 and minute <= 59
    at = end + 1 if end < length and load_byte(address, end) == _SPACE else end
    half = _half(address, at, length)
    if half != 0:
        end = at + 2
        is_possible = 1 <= hour <= 12 and minute <= 59
        hour = hour % 12 + (12 if half == _P else 0)
    return 60 * hour + minute if is_possible else _IMPOSSIBLE, end


@always_inlined
def _next_colon(address, at, length):  # type: ignore[no-untyped-def]
    while at < length and load_byte(address, at) != _COLON:
        at += 1
    return at


@kernel(fastmath=False)
def _find(addresses, lengths, leads, offsets, between):  # type: ignore[no-untyped-def]
    found = np.full((3, lengths.size), -1)
    for row in range(lengths.size):
        address, length = addresses[row], lengths[row]
        colon = _next_colon(address, np.int64(0), length)
        if colon < 2:
            continue
        begin = colon - (2 if _digit(address, colon - 2) >= 0 else 1)
        starts, at = _clock(address, begin, colon, length)
        second = at + between.size
        if starts == _NO_TIME or second > length:
            continue
        if not _stands(address, at, between, 0, between.size):
            continue
        ends, end = _clock(address, second, _next_colon(address, second, length), length)
        if ends == _NO_TIME or (end < length and load_byte(address, end) != _COMMA):
            continue
        for lead in range(offsets.size - 1):
            size = begin - (offsets[lead + 1] - offsets[lead])
            if size < 1 or not _stands(address, size, leads, offsets[lead], offsets[lead + 1]):
                continue
            last = load_byte(address, size - 1)
            if 0x20 < last < 0x7F:
                points = np.int64(0)
                for at in range(size):
                    points += np.int64(load_byte(address, at) & 0xC0 != 0x80)
                found[0, row], found[1, row], found[2, row] = points, starts, ends
            break
    return found
