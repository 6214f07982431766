"""Row-to-row changes of a column of strings, and rows with surrounding white space."""

from typing import Any

import numpy as np
from fastscore_jit.arrays import Mask
from fastscore_jit.arrow import addressed_strings
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined, inlined
from fastscore_jit.memory import View, Views, load_byte

from fastscore_kernels._texts import common_prefix

_ROWS_PER_CHUNK = 1 << 13


def string_changes(strings: Any) -> Mask:
    """Mark the rows whose string differs from that of the row before.

    Parameters
    ----------
    strings
        A column of strings without nulls: an Arrow array (string, large_string, string_view, a
        dictionary of them), a polars Series, or a sequence of ``str``.

    Returns
    -------
    bool (n,)
        False for the first row.

    Raises
    ------
    TypeError, ValueError
        Other types; nulls.
    """
    column = addressed_strings("strings", strings)
    changed = np.zeros(len(column), np.bool_)
    # a chunk begins with the last row of the one before
    for start in range(0, max(len(column) - 1, 0), _ROWS_PER_CHUNK):
        stop = min(start + _ROWS_PER_CHUNK + 1, len(column))
        _mark_changes(column.rows(start, stop), changed[start:stop])
    return changed


def outer_whitespace(strings: Any) -> Mask:
    """Mark the rows whose first or last code point is white space, as ``str.strip`` defines it.

    Parameters
    ----------
    strings
        As `string_changes`.

    Returns
    -------
    bool (n,)
        Whether Python's ``str.strip`` would shorten the string.

    Raises
    ------
    TypeError, ValueError
        Other types; nulls.
    """
    column = addressed_strings("strings", strings)
    surrounded = np.zeros(len(column), np.bool_)
    for start in range(0, len(column), _ROWS_PER_CHUNK):
        stop = min(start + _ROWS_PER_CHUNK, len(column))
        _mark_surrounded(column.rows(start, stop), surrounded[start:stop])
    return surrounded


@kernel("Views(int64[:], int64[:]), out(bool[:])", fastmath=False)
def _mark_changes(rows: Views, changed: Any) -> None:
    """Compare each row with the one before; the first is not written."""
    addresses, lengths = rows
    for row in range(1, addresses.size):
        length = lengths[row]
        if length != lengths[row - 1]:
            changed[row] = True
        elif addresses[row] != addresses[row - 1]:
            before, text = View(addresses[row - 1], length), View(addresses[row], length)
            changed[row] = common_prefix(before, text, length) < length


@always_inlined
def _is_ascii_whitespace(byte: Any) -> Any:
    return byte == 0x20 or (0x09 <= byte <= 0x0D) or (0x1C <= byte <= 0x1F)


@inlined
def _is_wide_whitespace(first: Any, second: Any, third: Any) -> Any:
    """Return whether three bytes are a code point of white space: U+1680 to U+3000."""
    if first == 0xE1:
        return second == 0x9A and third == 0x80
    if first == 0xE2 and second == 0x80:
        return (0x80 <= third <= 0x8A) or third == 0xA8 or third == 0xA9 or third == 0xAF
    if first == 0xE2:
        return second == 0x81 and third == 0x9F
    return first == 0xE3 and second == 0x80 and third == 0x80


@inlined
def _is_latin_whitespace(first: Any, second: Any) -> Any:
    """Return whether two bytes are U+0085 or U+00A0."""
    return first == 0xC2 and (second == 0x85 or second == 0xA0)


@inlined
def _is_surrounded(text: View) -> Any:
    """Return whether a row's first or last code point is white space."""
    length = text.length
    if length == 0:
        return False
    first, last = load_byte(text, 0), load_byte(text, length - 1)
    if _is_ascii_whitespace(first) or _is_ascii_whitespace(last):
        return True
    if (first < 0x80 and last < 0x80) or length < 2:
        return False
    second, before = load_byte(text, 1), load_byte(text, length - 2)
    if _is_latin_whitespace(first, second) or _is_latin_whitespace(before, last):
        return True
    if length < 3:
        return False
    third, far = load_byte(text, 2), load_byte(text, length - 3)
    return _is_wide_whitespace(first, second, third) or _is_wide_whitespace(far, before, last)


@kernel("Views(int64[:], int64[:]), out(bool[:])", fastmath=False)
def _mark_surrounded(rows: Views, surrounded: Any) -> None:
    """Mark the rows that begin or end with white space."""
    addresses, lengths = rows
    for row in range(addresses.size):
        surrounded[row] = _is_surrounded(View(addresses[row], lengths[row]))
