"""Texts with each character replaced by others: the shared step of every normalisation.

The replacement is Python's to say, once for each distinct character; the texts themselves are
walked by compiled code. Runs of spaces become one, and none stands at an end.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_kernels._jit import first_use, inlined, kernel
from fastscore_kernels._threads import run_chunks
from fastscore_kernels._validate import read_only
from fastscore_kernels.arrow import string_column

_ROWS_PER_CHUNK = 1 << 12
_CODE_POINTS = 0x110000
_SPACE = 32


def replace_characters(
    strings: Any, replacement: Callable[[str], str], *, threads: int | None = None
) -> Any:
    """Replace each character, then squeeze spaces.

    Parameters
    ----------
    strings
        Arrow strings or a polars Series, without nulls.
    replacement
        What stands for a character: any text, also none. Called once for each distinct one.
    threads
        None for one a processor.

    Returns
    -------
    pyarrow.LargeStringArray
        As many texts: ``" ".join(text.split(" "))`` without empty parts, of the replaced texts.
    """
    import pyarrow as pa

    column = string_column("strings", strings)
    compile_kernels()
    seen = np.zeros(_CODE_POINTS, np.bool_)
    rows = len(column)
    run_chunks(
        partial(_mark_seen, column.data, column.offsets, seen),
        rows,
        chunk=_ROWS_PER_CHUNK,
        threads=threads,
    )
    starts, pieces = _replacements(np.flatnonzero(seen), replacement)
    table = (column.data, column.offsets, starts, pieces)
    sizes = np.zeros(rows + 1, np.int64)
    run_chunks(partial(_measure, *table, sizes), rows, chunk=_ROWS_PER_CHUNK, threads=threads)
    offsets = np.cumsum(sizes)
    out = np.empty(offsets[-1], np.uint8)
    run_chunks(
        partial(_write, *table, read_only(offsets), out),
        rows,
        chunk=_ROWS_PER_CHUNK,
        threads=threads,
    )
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.large_string(), rows, buffers)


def _replacements(
    code_points: npt.NDArray[np.int64], replacement: Callable[[str], str]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Return where each code point's replacement lies: places ``2 c`` and ``2 c + 1``."""
    starts = np.zeros((_CODE_POINTS, 2), np.int32)
    written = bytearray()
    for code_point in code_points.tolist():
        piece = replacement(chr(code_point)).encode()
        starts[code_point] = len(written), len(written) + len(piece)
        written += piece
    return read_only(starts), read_only(np.frombuffer(bytes(written), np.uint8))


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    data, offsets = read_only(np.zeros(0, np.uint8)), read_only(np.zeros(1, np.int64))
    starts = read_only(np.zeros((1, 2), np.int32))
    _mark_seen(data, offsets, np.zeros(1, np.bool_), 0, 0)
    _measure(data, offsets, starts, data, np.zeros(1, np.int64), 0, 0)
    _write(data, offsets, starts, data, offsets, np.empty(0, np.uint8), 0, 0)


@inlined
def _size_of(lead):  # type: ignore[no-untyped-def]
    if lead < 0x80:
        return 1
    if lead < 0xE0:
        return 2
    return 3 if lead < 0xF0 else 4


@inlined
def _code_point(data, at, size):  # type: ignore[no-untyped-def]
    lead = np.int64(data[at])
    if size == 1:
        return lead
    code = lead & (0x7F >> size)
    for step in range(1, size):
        code = (code << 6) | (np.int64(data[at + step]) & 0x3F)
    return code


@kernel(fastmath=False)
def _mark_seen(data, offsets, seen, start, stop):  # type: ignore[no-untyped-def]
    at = offsets[start]
    while at < offsets[stop]:
        size = _size_of(data[at])
        seen[_code_point(data, at, size)] = True
        at += size


@inlined
def _squeeze(data, begin, end, starts, pieces, out, place):  # type: ignore[no-untyped-def]
    """Write a replaced row at ``place`` unless ``out`` is empty; return its length."""
    writes = out.size > 0
    length = np.int64(0)
    pending = np.int64(0)
    at = begin
    while at < end:
        size = _size_of(data[at])
        code = _code_point(data, at, size)
        at += size
        for piece in range(starts[code, 0], starts[code, 1]):
            byte = pieces[piece]
            if byte == _SPACE:
                pending = np.int64(length > 0)
                continue
            if pending > 0:
                if writes:
                    out[place + length] = _SPACE
                length += 1
                pending = np.int64(0)
            if writes:
                out[place + length] = byte
            length += 1
    return length


@kernel(fastmath=False)
def _measure(data, offsets, starts, pieces, sizes, start, stop):  # type: ignore[no-untyped-def]
    nothing = np.empty(0, np.uint8)
    for row in range(start, stop):
        sizes[row + 1] = _squeeze(
            data, offsets[row], offsets[row + 1], starts, pieces, nothing, np.int64(0)
        )


@kernel(fastmath=False)
def _write(data, offsets, starts, pieces, places, out, start, stop):  # type: ignore[no-untyped-def]
    for row in range(start, stop):
        _squeeze(data, offsets[row], offsets[row + 1], starts, pieces, out, places[row])
