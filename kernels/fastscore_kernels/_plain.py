"""What instructions do where nothing is compiled: memory read and written by address, slowly."""

import ctypes
from typing import Any

import numpy as np

_WORD_BYTES = 8


def address_of(array: Any) -> int:
    """Address of an array's first item; the caller keeps the array alive."""
    return int(array.ctypes.data)


def load_word(base: int, index: int) -> Any:
    """Read the eight bytes at ``base + index``, little-endian."""
    return np.uint64(
        int.from_bytes(ctypes.string_at(int(base) + int(index), _WORD_BYTES), "little")
    )


def load_byte(base: int, index: int) -> int:
    """Read the byte at ``base + index``."""
    return ctypes.c_uint8.from_address(int(base) + int(index)).value


def store_byte(base: int, index: int, value: int) -> None:
    """Write the low byte of ``value`` to ``base + index``."""
    ctypes.c_uint8.from_address(int(base) + int(index)).value = int(value) & 0xFF


def trailing_zeros(word: Any) -> int:
    """Count the zero bits below the lowest set bit of a word that is not zero."""
    value = int(word)
    return (value & -value).bit_length() - 1
