"""Located JSON values as column values: integers, doubles, texts, Arrow string views.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.compiling import always_inlined, kernel
from fastscore_machine.memory import prefetch
from fastscore_machine.validation import read_only
from fastscore_machine.views import (
    byte_at,
    low_bytes,
    room_at,
    word_at,
)

from fastscore_readers.json.tokens import MINUS, PLUS, POINT, unescape

__all__ = ["EXACT", "INEXACT", "OVERFLOW", "floats", "integers", "unescaped", "views"]


EXACT, INEXACT, OVERFLOW = range(3)

INLINE = 12
"""The longest text that stands in its view."""
_ROWS_AHEAD = 8
_HALF = np.uint64(32)
_ZERO, _NINE = 0x30, 0x39
_LEAST, _LEAST_TENTH = -(2**63), -922337203685477580
_POWERS = np.array([10.0**exponent for exponent in range(23)])
_MAX_MANTISSA, _MOST_DIGITS, _MOST_POWER, _LONGEST_POWER = 1 << 53, 18, 22, 6


def _ranges(data: Bytes, starts: Longs, ends: Longs) -> tuple[Bytes, Longs, Longs]:
    """Check bytes and ranges of them, and view them as the kernels take them."""
    if starts.shape != ends.shape or starts.ndim != 1:
        raise ValueError(f"starts have shape {starts.shape}, ends {ends.shape}; expected one (n,)")
    return (
        read_only(data),
        read_only(starts.astype(np.int64, copy=False)),
        read_only(ends.astype(np.int64, copy=False)),
    )


def integers(data: Bytes, starts: Longs, ends: Longs) -> tuple[Longs, Bytes]:
    """Parse byte ranges as decimal integers.

    Returns
    -------
    tuple of arrays
        Values, int64 (n,), and states, uint8 (n,): `EXACT`, `OVERFLOW` for digits that do not fit
        int64, `INEXACT` for anything but ``-?[0-9]+``; the value is 0 unless exact.
    """
    values, states = np.empty(starts.size, np.int64), np.empty(starts.size, np.uint8)
    _parse_integers(*_ranges(data, starts, ends), values, states)
    return values, states


@kernel("uint8[:], int64[:], int64[:], out(int64[:]), out(uint8[:])", fastmath=False)
def _parse_integers(data: Any, starts: Any, ends: Any, values: Any, states: Any) -> None:
    for row in range(starts.size):
        at, end = starts[row], ends[row]
        negative = at < end and byte_at(data, at) == MINUS
        at += negative
        state = EXACT if at < end else INEXACT
        # summed downwards, since the least int64 has no positive counterpart
        total = 0
        while at < end:
            byte = byte_at(data, at)
            if byte < _ZERO or byte > _NINE:
                state = INEXACT
                break
            digit = byte - _ZERO
            if total < _LEAST_TENTH or total * 10 < _LEAST + digit:
                state = OVERFLOW
            else:
                total = total * 10 - digit
            at += 1
        if state == EXACT and not negative and total == _LEAST:
            state = OVERFLOW
        states[row] = state
        values[row] = 0 if state != EXACT else (total if negative else -total)


def floats(data: Bytes, starts: Longs, ends: Longs) -> tuple[npt.NDArray[np.float64], Bytes]:
    """Parse byte ranges that hold JSON numbers as doubles.

    Returns
    -------
    tuple of arrays
        Values, float64 (n,), and states, uint8 (n,): `EXACT` where the value is the nearest
        double, `INEXACT` where the caller must parse the text (more than 18 digits, a mantissa
        above 2^53, a power of ten beyond 22, NaN, Infinity); the value is 0 there.
    """
    values, states = np.empty(starts.size, np.float64), np.empty(starts.size, np.uint8)
    _parse_floats(*_ranges(data, starts, ends), values, states)
    return values, states


@kernel("uint8[:], int64[:], int64[:], out(float64[:]), out(uint8[:])", fastmath=False)
def _parse_floats(data: Any, starts: Any, ends: Any, values: Any, states: Any) -> None:
    """Parse numbers whose nearest double one exact operation gives; others are `INEXACT`."""
    for row in range(starts.size):
        at, end = starts[row], ends[row]
        values[row] = 0.0
        states[row] = INEXACT
        negative = at < end and byte_at(data, at) == MINUS
        at += negative
        mantissa = exponent = digits = 0
        fraction = False
        while at < end and digits <= _MOST_DIGITS:
            byte = byte_at(data, at)
            if byte == POINT:
                fraction = True
            elif byte < _ZERO or byte > _NINE:
                break
            else:
                digits += 1
                mantissa = mantissa * 10 + (byte - _ZERO)
                exponent -= fraction
            at += 1
        if digits == 0 or digits > _MOST_DIGITS or mantissa > _MAX_MANTISSA:
            continue
        if at < end:
            if byte_at(data, at) | 0x20 != 0x65 or end - at > _LONGEST_POWER:
                continue
            at += 1
            below = byte_at(data, at) == MINUS
            at += below or byte_at(data, at) == PLUS
            power = 0
            while at < end:
                power = power * 10 + (byte_at(data, at) - _ZERO)
                at += 1
            exponent += -power if below else power
        if exponent < -_MOST_POWER or exponent > _MOST_POWER:
            continue
        value = float(mantissa)
        value = value / _POWERS[-exponent] if exponent < 0 else value * _POWERS[exponent]
        values[row] = -value if negative else value
        states[row] = EXACT


def unescaped(data: Bytes, starts: Longs, ends: Longs) -> tuple[Bytes, Longs, Longs]:
    """Unescape byte ranges that hold the insides of valid JSON strings.

    Returns
    -------
    tuple of arrays
        UTF-8 bytes, uint8, and the ranges of the texts in them, int64 (n,) each; the end is -1
        where a string holds half of a surrogate pair, which UTF-8 cannot.
    """
    data, starts, ends = _ranges(data, starts, ends)
    out = np.empty(int((ends - starts).sum()), np.uint8)
    out_starts, out_ends = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    used = _unescape_strings(data, starts, ends, out, out_starts, out_ends)
    return out[:used], out_starts, out_ends


@kernel(
    "uint8[:], int64[:], int64[:], out(uint8[:]), out(int64[:]), out(int64[:])",
    returns="int64",
    fastmath=False,
)
def _unescape_strings(
    data: Any, starts: Any, ends: Any, out: Any, out_starts: Any, out_ends: Any
) -> int:
    to = 0
    for row in range(starts.size):
        out_starts[row] = to
        end = unescape(data, starts[row], ends[row], out, to)
        out_ends[row] = end
        to = max(to, end)
    return to


def views(data: Bytes, starts: Longs, ends: Longs, buffer: int, out: npt.NDArray[np.int32]) -> None:
    """Write Arrow string views of byte ranges into ``out``, int32 (n, 4).

    Parameters
    ----------
    data
        The bytes, shorter than 2 GiB.
    starts, ends
        The ranges, int64 (n,), none of which ends before it begins; a row with a negative start
        is left as it is.
    buffer
        The index of ``data`` among the array's data buffers.
    out
        The views; zero where there is none.
    """
    if data.size >= 1 << 31:
        raise ValueError(f"a string view reaches 2 GiB of data, found {data.size} bytes")
    if out.shape != (starts.size, 4):
        raise ValueError(f"out has shape {out.shape}; expected ({starts.size}, 4)")
    if ((ends < starts) & (starts >= 0)).any():
        raise ValueError("a range ends before it begins")
    _write_views(*_ranges(data, starts, ends), buffer, out.view(np.uint64))


@always_inlined
def _first_bytes(data: Any, at: Any, length: Any) -> Any:
    """Return up to eight bytes as a word; nothing is read after the data."""
    if at + 8 <= data.size:
        return low_bytes(word_at(data, at), length)
    word = np.uint64(0)
    for place in range(min(length, 8)):
        word |= np.uint64(byte_at(data, at + place)) << np.uint64(8 * place)
    return word


@always_inlined
def view_of_text(data: Any, at: Any, length: Any) -> tuple[Any, Any]:
    """Return the two words of a text's view; a long one's place is left out."""
    if length > INLINE:
        return np.uint64(length) | _first_bytes(data, at, 4) << _HALF, np.uint64(0)
    low = np.uint64(length) | _first_bytes(data, at, min(length, 4)) << _HALF
    return low, _first_bytes(data, at + 4, max(length - 4, 0))


@kernel("uint8[:], int64[:], int64[:], int64, out(uint64[:, :])", fastmath=False)
def _write_views(data: Any, starts: Any, ends: Any, buffer: int, words: Any) -> None:
    for row in range(starts.size):
        ahead = min(row + _ROWS_AHEAD, starts.size - 1)
        if starts[ahead] >= 0:
            prefetch(room_at(data, starts[ahead], 0))
        at = starts[row]
        if at >= 0:
            length = ends[row] - at
            words[row, 0], words[row, 1] = view_of_text(data, at, length)
            if length > INLINE:
                words[row, 1] = np.uint64(buffer) | np.uint64(at) << _HALF
