"""128-bit text hash: MurmurHash3_x64_128 (Austin Appleby, public domain), seed 0."""

from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrow import text_rows
from fastscore_jit.compiling import inlined, kernel
from fastscore_jit.memory import View, Views, load_short, load_word
from fastscore_jit.threads import run_chunks

_ROWS_PER_CHUNK = 1 << 16
_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)


def text_hash128(strings: Any, *, threads: int | None = None) -> npt.NDArray[np.uint64]:
    """Hash the UTF-8 bytes of each string.

    Parameters
    ----------
    strings
        Arrow strings or a polars Series, without nulls.
    threads
        None for one a processor.

    Returns
    -------
    uint64 (n, 2)
        The two words of MurmurHash3_x64_128 with seed 0, the same on every platform. The empty
        string is (0, 0).
    """
    rows = text_rows("strings", strings)
    views, out = rows.views, np.empty((len(rows), 2), np.uint64)
    run_chunks(
        lambda start, stop: _hash_rows(views, start, stop, out),
        len(out),
        chunk=_ROWS_PER_CHUNK,
        threads=threads,
    )
    return out


@inlined
def _rotate_left(word, count):  # type: ignore[no-untyped-def]
    return (word << np.uint64(count)) | (word >> np.uint64(64 - count))


@inlined
def _little_endian(text, start, stop):  # type: ignore[no-untyped-def]
    """Read up to eight bytes as one word."""
    if stop - start == 8:
        return load_word(text, start)
    return load_short(text, start, stop - start)


@inlined
def _finish(word):  # type: ignore[no-untyped-def]
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xFF51AFD7ED558CCD)
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


@kernel("Views(int64[:], int64[:]), int64, int64, out(uint64[:, :])", fastmath=False)
def _hash_rows(rows: Views, start, stop, out):  # type: ignore[no-untyped-def]
    """Write the two words of each row's hash (rows, 2), from ``start`` to ``stop``."""
    addresses, lengths = rows
    for row in range(start, stop):
        text, end = View(addresses[row], lengths[row]), lengths[row]
        at = np.int64(0)
        length = np.uint64(end)
        h1 = np.uint64(0)
        h2 = np.uint64(0)
        while at + 16 <= end:
            k1 = _rotate_left(load_word(text, at) * _C1, 31) * _C2
            h1 = (_rotate_left(h1 ^ k1, 27) + h2) * np.uint64(5) + np.uint64(0x52DCE729)
            k2 = _rotate_left(load_word(text, at + 8) * _C2, 33) * _C1
            h2 = (_rotate_left(h2 ^ k2, 31) + h1) * np.uint64(5) + np.uint64(0x38495AB5)
            at += 16
        if at + 8 < end:
            h2 ^= _rotate_left(_little_endian(text, at + 8, end) * _C2, 33) * _C1
        if at < end:
            h1 ^= _rotate_left(_little_endian(text, at, min(end, at + 8)) * _C1, 31) * _C2
        h1 ^= length
        h2 ^= length
        h1 += h2
        h2 += h1
        h1 = _finish(h1)
        h2 = _finish(h2)
        h1 += h2
        h2 += h1
        out[row, 0] = h1
        out[row, 1] = h2
