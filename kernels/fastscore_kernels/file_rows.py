"""Reads many rows of equal size from a file and verifies their checksums.

Rows are read at their offsets (``pread``), not from a memory map. Random access to a map costs more
in page faults, counts as resident memory, and kills the process if the file is truncated.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit import llvm
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import inlined, instruction
from fastscore_jit.memory import View, address_of, load_short, load_word, subview
from fastscore_jit.validation import as_rows, as_vector, read_only, same_length

from fastscore_kernels.ids import text_hash128

_WORD_BYTES = 8
_UPPER = np.uint64(32)


def checksum_rows(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Checksum each row of bytes.

    The checksum is a sum modulo 2^64. It adds the row's 64-bit words, each multiplied by an odd
    factor of its position, and their upper halves multiplied by another. It detects any change
    within one word. Other changes are missed with a probability of about 2^-64.

    Parameters
    ----------
    rows : uint8 (n, bytes)
        C-contiguous. An incomplete last word is padded with zeros.

    Returns
    -------
    uint64 (n,)
    """
    if rows.dtype != np.uint8 or rows.ndim != 2 or not rows.flags.c_contiguous:
        raise ValueError(
            f"`rows` has dtype {rows.dtype}, shape {rows.shape}; expected C-contiguous uint8 (n, m)"
        )
    checksums = np.empty(len(rows), np.uint64)
    _checksum_rows(read_only(rows), *_factors(rows.shape[1]), checksums)
    return checksums


def read_rows(
    descriptor: int,
    offset: int,
    rows: npt.NDArray[np.int64],
    checksums: npt.NDArray[np.uint64],
    out: npt.NDArray[np.uint8],
    places: npt.NDArray[np.int64],
) -> int:
    """Read rows of a file and compare each with its checksum.

    Parameters
    ----------
    descriptor
        File descriptor, open for reading.
    offset
        Where its first row begins, in bytes.
    rows : int64 (n,)
        Rows to read. Consecutive rows with consecutive places are read at once.
    checksums : uint64 (rows of the file,)
        `checksum_rows` of all rows.
    out : uint8 (m, bytes a row)
        C-contiguous.
    places : int64 (n,)
        The row of `out` for each row.

    Returns
    -------
    int
        n if all rows match; otherwise the number of rows before the first mismatch found.
    """
    wanted = as_rows("rows", rows, len(checksums))
    if out.dtype != np.uint8 or out.ndim != 2 or not out.flags.c_contiguous:
        raise ValueError(
            f"`out` has dtype {out.dtype}, shape {out.shape}; expected C-contiguous uint8 (n, m)"
        )
    targets = as_rows("places", places, len(out))
    same_length("rows", len(wanted), "places", len(targets))
    sums = as_vector("checksums", checksums, np.uint64)
    factors = _factors(out.shape[1])
    return int(_read_rows(descriptor, offset, wanted, sums, *factors, out, targets))


@lru_cache(maxsize=8)
def _factors(size: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return odd pseudo-random factors for the words of a row, equal on every platform."""
    words = -(-size // _WORD_BYTES)
    drawn = text_hash128([str(word) for word in range(words)]) | np.uint64(1)
    whole, upper = np.ascontiguousarray(drawn.T)
    return read_only(whole), read_only(upper)


@instruction("int64, int64, int64, int64 -> int64")
def _read_at(builder: Any, descriptor: Any, address: Any, size: Any, place: Any) -> Any:
    """Read up to ``size`` bytes at an offset of a file to an address; return the count, or -1."""
    target = llvm.pointer(builder, address, llvm.number(8))
    given = [builder.trunc(descriptor, llvm.number(32)), target, size, place]
    return llvm.call(builder, "pread", llvm.number(64), given)


@inlined
def _checksum(row: View, whole, upper):  # type: ignore[no-untyped-def]
    """Checksum the bytes of a row."""
    total = np.uint64(0)
    words = row.length // _WORD_BYTES
    for at in range(words):
        word = load_word(row, _WORD_BYTES * at)
        total += word * whole[at] + (word >> _UPPER) * upper[at]
    if words < whole.size:
        begun = _WORD_BYTES * words
        word = load_short(row, begun, row.length - begun)
        total += word * whole[words] + (word >> _UPPER) * upper[words]
    return total


@kernel("uint8[:, :], uint64[:], uint64[:], out(uint64[:])", fastmath=False)
def _checksum_rows(rows, whole, upper, checksums):  # type: ignore[no-untyped-def]
    """Checksum each row, by the factors of its words and of their upper halves."""
    size = rows.shape[1]
    for row in range(rows.shape[0]):
        checksums[row] = _checksum(subview(rows, row * size, size), whole, upper)


@kernel(
    "int64, int64, int64[:], uint64[:], uint64[:], uint64[:], out(uint8[:, :]), int64[:]",
    returns="int64",
    fastmath=False,
)
def _read_rows(  # type: ignore[no-untyped-def]
    descriptor, offset, rows, checksums, whole, upper, out, places
):
    """Read rows into their places of ``out``; return the number of verified rows."""
    size = out.shape[1]
    at = 0
    while at < rows.size:
        stop = at + 1
        while (
            stop < rows.size
            and rows[stop] - rows[at] == stop - at
            and places[stop] - places[at] == stop - at
        ):
            stop += 1
        target, place = places[at] * size, offset + rows[at] * size
        left = (stop - at) * size
        while left > 0:
            done = _read_at(descriptor, address_of(out, target, left), left, place)
            if done <= 0:
                return at
            target, place, left = target + done, place + done, left - done
        for row in range(at, stop):
            found = _checksum(subview(out, places[row] * size, size), whole, upper)
            if found != checksums[rows[row]]:
                return row
        at = stop
    return at
