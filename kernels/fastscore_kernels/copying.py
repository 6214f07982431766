"""Copies texts from arbitrary addresses to one buffer."""

from typing import Any

import numpy as np
from fastscore_jit.arrays import Int64Array
from fastscore_jit.arrow import StringColumn
from fastscore_jit.compiling import kernel
from fastscore_jit.memory import View, load_byte, load_word, store_byte, store_word
from fastscore_jit.validation import read_only

_WORD_BYTES = 8


def copy_texts(addresses: Int64Array, lengths: Int64Array) -> StringColumn:
    """Copy texts from arbitrary addresses to one buffer.

    Parameters
    ----------
    addresses, lengths : int64 (n,)
        Where each text's UTF-8 begins, and its size in bytes. The caller keeps the memory alive.
    """
    if addresses.shape != lengths.shape or addresses.ndim != 1:
        raise ValueError(
            f"`addresses` have shape {addresses.shape}, `lengths` {lengths.shape}; expected one "
            "(n,)"
        )
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    _copy_texts(read_only(addresses), read_only(offsets), data)
    return StringColumn(read_only(data), read_only(offsets))


@kernel("int64[:], int64[:], out(uint8[:])", fastmath=False)
def _copy_texts(addresses: Any, offsets: Any, data: Any) -> None:
    """Copy each text to its offset."""
    for row in range(addresses.size):
        begin, length = offsets[row], offsets[row + 1] - offsets[row]
        text, at = View(addresses[row], length), 0
        while at + _WORD_BYTES <= length:
            store_word(data, begin + at, load_word(text, at))
            at += _WORD_BYTES
        while at < length:
            store_byte(data, begin + at, load_byte(text, at))
            at += 1
