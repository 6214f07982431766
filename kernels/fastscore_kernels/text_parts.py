"""Parts of texts, copied side by side."""

from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrow import StringColumn
from fastscore_machine.compiling import first_use, kernel
from fastscore_machine.memory import address_of, load_byte, load_word, store_byte, store_word
from fastscore_machine.validation import read_only

_WORD_BYTES = 8

Longs = npt.NDArray[np.int64]


def copied(addresses: Longs, lengths: Longs) -> StringColumn:
    """Copy texts that stand anywhere in memory.

    Parameters
    ----------
    addresses, lengths : int64 (n,)
        Where each one's UTF-8 begins, and its bytes; the caller keeps the memory alive.
    """
    if addresses.shape != lengths.shape or addresses.ndim != 1:
        raise ValueError(
            f"`addresses` have shape {addresses.shape}, `lengths` {lengths.shape}; expected one "
            "(n,)"
        )
    compile_kernels()
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    _copy(read_only(addresses), read_only(offsets), data)
    return StringColumn(read_only(data), read_only(offsets))


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    _copy(read_only(np.zeros(0, np.int64)), read_only(np.zeros(1, np.int64)), np.empty(0, np.uint8))


@kernel(fastmath=False)
def _copy(addresses: Any, offsets: Any, data: Any) -> None:
    """Copy each text to where its offset says."""
    out = address_of(data)
    for row in range(addresses.size):
        source, target = addresses[row], out + offsets[row]
        length = offsets[row + 1] - offsets[row]
        at = 0
        while at + _WORD_BYTES <= length:
            store_word(target, at, load_word(source, at))
            at += _WORD_BYTES
        while at < length:
            store_byte(target, at, load_byte(source, at))
            at += 1
