"""Arrow string views of strings where they lie in a buffer."""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
from fastscore_machine.compiling import always_inlined, inlined, kernel
from fastscore_machine.memory import (
    address_of,
    load_byte,
    load_word,
    prefetch,
    store_byte,
    store_word,
)

from fastscore_readers.json.tokens import ESCAPED, NULL, STRING
from fastscore_readers.text_bytes import first_word

_INLINE = 12
_ROWS_AHEAD = 8
_HALF = np.uint64(32)


@always_inlined
def _first_bytes(word: Any, length: Any) -> Any:
    """Keep as many low bytes of a word, at most eight."""
    if length >= 8:
        return word
    return word & ((np.uint64(1) << np.uint64(8 * length)) - np.uint64(1))


@always_inlined
def _write_view(
    base: Any, size: Any, start: Any, length: Any, buffer: Any, at: Any, view: Any
) -> None:
    """Write the Arrow string view of some bytes, which lie at ``at`` in buffer ``buffer``."""
    if start + 16 <= size:
        first = _first_bytes(load_word(base, start), length)
        rest = _first_bytes(load_word(base, start + 8), max(length - 8, 0))
    else:
        first = first_word(base, start, min(length, 8), size)
        rest = first_word(base, start + 8, max(min(length - 8, 8), 0), size)
    store_word(view, 0, np.uint64(length) | (first << _HALF))
    if length > _INLINE:
        store_word(view, 8, np.uint64(buffer) | (np.uint64(at) << _HALF))
    else:
        store_word(view, 8, (first >> _HALF) | (rest << _HALF))


@kernel("uint8[:], int64[:], int64[:], int64, out(int32[:, :])", fastmath=False)
def string_views(data: Any, starts: Any, ends: Any, buffer: int, views: Any) -> None:
    """Write Arrow string views (n, 4) of byte ranges of ``data``, which is buffer ``buffer``.

    A negative start leaves the row's view as it is.
    """
    base, view = address_of(data), address_of(views)
    for row in range(starts.size):
        if row + _ROWS_AHEAD < starts.size:
            prefetch(base + starts[row + _ROWS_AHEAD])
        start = starts[row]
        if start >= 0:
            length = ends[row] - start
            _write_view(base, data.size, start, length, buffer, start, view + 16 * row)


@inlined
def _copy(base: Any, size: Any, start: Any, length: Any, target: Any, at: Any) -> None:
    """Copy bytes by words; up to seven more are written behind them."""
    copied = 0
    while copied < length and start + copied + 8 <= size:
        store_word(target, at + copied, load_word(base, start + copied))
        copied += 8
    while copied < length:
        store_byte(target, at + copied, load_byte(base, start + copied))
        copied += 1


@kernel("uint8[:], int64[:], int64[:]", returns="int64", fastmath=False)
def plain_bytes(tags: Any, starts: Any, ends: Any) -> Any:
    """Count the bytes of strings without escapes that do not fit into their views."""
    total = 0
    for row in range(tags.size):
        length = ends[row] - starts[row]
        total += length if tags[row] == STRING and length > _INLINE else 0
    return total


@kernel("uint8[:], int64, int64[:, :], out(int64[:, :])", fastmath=False)
def plain_string_views(data: Any, n_rows: int, columns: Any, counts: Any) -> None:
    """Write the views of strings without escapes, and mark all strings, row by row.

    A column (k, 6) is the addresses of its tags, starts, ends, copies, views and marks; strings
    are copied if there is an address to copy them to, and buffer 0 is the data otherwise. Counts
    (k, 3) are of the strings with escapes, of values that are neither string nor null, and of the
    bytes that were copied.
    """
    base = address_of(data)
    for row in range(n_rows):
        ahead = min(row + _ROWS_AHEAD, n_rows - 1)
        # by rows: what stands in one line is still in the cache for the next column
        for column in range(columns.shape[0]):
            if load_byte(columns[column, 0], ahead) == STRING:
                prefetch(base + np.int64(load_word(columns[column, 1], 8 * ahead)))
            tag = load_byte(columns[column, 0], row)
            is_string = tag == STRING or tag == ESCAPED
            store_byte(columns[column, 5], row, np.uint8(is_string))
            if tag == STRING:
                start = np.int64(load_word(columns[column, 1], 8 * row))
                length = np.int64(load_word(columns[column, 2], 8 * row)) - start
                target, at = columns[column, 3], counts[column, 2]
                copied = target != 0
                view = columns[column, 4] + 16 * row
                _write_view(base, data.size, start, length, 0, at if copied else start, view)
                if copied and length > _INLINE:
                    _copy(base, data.size, start, length, target, at)
                    counts[column, 2] = at + length
            elif tag == ESCAPED:
                counts[column, 0] += 1
            elif tag > NULL:
                counts[column, 1] += 1
