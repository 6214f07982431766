"""Replacement of characters in texts: the shared step of every normalisation.

A Python function gives the replacement, once for each distinct character. Compiled code walks the
texts. Runs of spaces become one space, and texts neither begin nor end with one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrow import StringColumn, text_rows
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined
from fastscore_jit.memory import View, Views, load_byte
from fastscore_jit.validation import read_only

_CODE_POINTS = 0x110000
_SPACE = 32


def replace_characters(strings: Any, replacement: Callable[[str], str]) -> StringColumn:
    """Replace each character, then collapse spaces.

    Parameters
    ----------
    strings
        Arrow strings or a polars Series, without nulls.
    replacement
        Returns the replacement of a character, which may be empty. Called once per distinct
        character.

    Returns
    -------
    StringColumn
        As many texts: ``" ".join(text.split(" "))`` without empty parts, of the replaced texts.
    """
    rows = text_rows("strings", strings)
    views, lengths = rows.views, rows.lengths
    seen = np.zeros(_CODE_POINTS, np.bool_)
    largest = _mark_seen(views, seen)
    starts, pieces, widest = _replacements(np.flatnonzero(seen[: largest + 1]), replacement)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    room = int(lengths.sum()) + widest * int(lengths.max(initial=0))
    out, row = np.empty(room, np.uint8), 0
    while True:
        row = _write(views, starts, pieces, widest, row, offsets, out)
        if row == len(lengths):
            break
        wider = np.empty(2 * out.size, np.uint8)
        wider[: offsets[row]] = out[: offsets[row]]
        out = wider
    return StringColumn(read_only(out[: offsets[-1]]), read_only(offsets))


def _replacements(
    code_points: npt.NDArray[np.int64], replacement: Callable[[str], str]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], int]:
    """Return where each code point's replacement begins, and the maximum growth of a text."""
    starts = np.zeros((int(code_points.max(initial=0)) + 1, 2), np.int32)
    written, widest = bytearray(), 1
    for code_point in code_points.tolist():
        piece = replacement(chr(code_point)).encode()
        starts[code_point] = len(written), len(written) + len(piece)
        written += piece
        widest = max(widest, len(piece))
    return read_only(starts), read_only(np.frombuffer(bytes(written), np.uint8)), widest


@always_inlined
def _size_of(lead):  # type: ignore[no-untyped-def]
    if lead < 0x80:
        return 1
    if lead < 0xE0:
        return 2
    return 3 if lead < 0xF0 else 4


@always_inlined
def _code_point(text, at, size):  # type: ignore[no-untyped-def]
    lead = load_byte(text, at)
    if size == 1:
        return lead
    code = lead & (0x7F >> size)
    for step in range(1, size):
        code = (code << 6) | (load_byte(text, at + step) & 0x3F)
    return code


@kernel("Views(int64[:], int64[:]), out(bool[:])", returns="int64", fastmath=False)
def _mark_seen(rows: Views, seen):  # type: ignore[no-untyped-def]
    """Mark the code points that occur in rows; return the largest."""
    addresses, lengths = rows
    largest = np.int64(-1)
    for row in range(lengths.size):
        text, at = View(addresses[row], lengths[row]), np.int64(0)
        while at < lengths[row]:
            size = _size_of(load_byte(text, at))
            code = _code_point(text, at, size)
            seen[code] = True
            largest = max(largest, code)
            at += size
    return largest


@kernel(
    "Views(int64[:], int64[:]), int32[:, :], uint8[:], int64, int64, out(int64[:]), out(uint8[:])",
    returns="int64",
    fastmath=False,
)
def _write(  # type: ignore[no-untyped-def]
    rows: Views, starts, pieces, widest, row, offsets, out
):
    """Write replaced rows from ``row`` on; return the first row that may not fit."""
    addresses, lengths = rows
    while row < lengths.size:
        text, length = View(addresses[row], lengths[row]), lengths[row]
        begin = end = offsets[row]
        if begin + widest * length > out.size:
            break
        at, last = np.int64(0), np.uint8(_SPACE)
        while at < length:
            size = _size_of(load_byte(text, at))
            code = _code_point(text, at, size)
            at += size
            for place in range(starts[code, 0], starts[code, 1]):
                byte = pieces[place]
                out[end] = byte
                # a space after another, or at the beginning, is overwritten
                end += np.int64(byte != _SPACE or last != _SPACE)
                last = byte
        row += 1
        offsets[row] = end - np.int64(end > begin and last == _SPACE)
    return row
