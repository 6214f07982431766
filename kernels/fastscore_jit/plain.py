"""Instructions in plain Python: memory is read and written, slowly."""

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np

from fastscore_jit.system import read_at as read_at_place

_WORD_BYTES = 8


def address_of(base: Any, index: int, width: int) -> int:
    """Return the address ``index`` bytes after an array or a view.

    Raises
    ------
    IndexError
        The ``width`` bytes there are not all of the array or the view.
    TypeError
        The base is neither.
    """
    if isinstance(base, np.ndarray):
        address, length = base.ctypes.data, base.nbytes
    elif isinstance(base, tuple):
        address, length = base
    else:
        raise TypeError(f"memory of {type(base).__name__} is touched; expected an array or a view")
    if not 0 <= index <= length - width:
        raise IndexError(f"{width} bytes at index {index} of {length} are touched")
    return int(address) + int(index)


def load_word(base: Any, index: int) -> Any:
    """Read the eight bytes at ``index`` after a base, little-endian."""
    return np.uint64(
        int.from_bytes(
            ctypes.string_at(address_of(base, index, _WORD_BYTES), _WORD_BYTES), "little"
        )
    )


def load_int32(base: Any, index: int) -> int:
    """Read the 32-bit integer at ``index`` after a base, sign-extended."""
    return ctypes.c_int32.from_address(address_of(base, index, 4)).value


def load_byte(base: Any, index: int) -> int:
    """Read the byte at ``index`` after a base."""
    return ctypes.c_uint8.from_address(address_of(base, index, 1)).value


def store_byte(base: Any, index: int, value: int) -> None:
    """Write the low byte of ``value`` at ``index`` after a base."""
    ctypes.c_uint8.from_address(address_of(base, index, 1)).value = int(value) & 0xFF


def read_at(descriptor: int, address: int, size: int, place: int) -> int:
    """Read up to ``size`` bytes at an offset of a file to an address; return the count, or -1."""
    try:
        found = read_at_place(int(descriptor), int(size), int(place))
    except OSError:
        return -1
    ctypes.memmove(int(address), found, len(found))
    return len(found)


def store_word(base: Any, index: int, word: Any) -> None:
    """Write eight bytes at ``index`` after a base, little-endian."""
    ctypes.c_uint64.from_address(address_of(base, index, _WORD_BYTES)).value = int(word)


def store_int32(base: Any, index: int, value: int) -> None:
    """Write the low 32 bits of ``value`` at ``index`` after a base."""
    ctypes.c_uint32.from_address(address_of(base, index, 4)).value = int(value) & 0xFFFFFFFF


def block_at(base: Any, index: int) -> int:
    """Return the address of 64 bytes."""
    return address_of(base, index, 64)


def prefetch(address: int) -> None:
    """Do nothing."""


def count_ones(word: Any) -> int:
    """Count the bits that are set."""
    return int(word).bit_count()


def trailing_zeros(word: Any) -> int:
    """Count the zero bits below the lowest set bit of a word that is not zero."""
    value = int(word)
    return (value & -value).bit_length() - 1


def leading_zeros(word: Any) -> int:
    """Count the zero bits above the highest set bit of a word that is not zero."""
    return 64 - int(word).bit_length()


def equal_bytes(base: Any, index: int, byte: int) -> Any:
    """Mark which of 64 bytes are ``byte``, the first in the lowest bit."""
    return _marked(found == byte for found in _block(base, index))


def lower_bytes(base: Any, index: int, byte: int) -> Any:
    """Mark which of 64 bytes are lower than ``byte``."""
    return _marked(found < byte for found in _block(base, index))


def word_bytes(base: Any, index: int) -> Any:
    """Mark which of 64 bytes are ASCII letters, digits or underscores."""
    found = _block(base, index)
    return _marked(byte < 128 and (chr(byte).isalnum() or byte == 0x5F) for byte in found)


def _block(base: Any, index: int) -> bytes:
    return ctypes.string_at(address_of(base, index, 64), 64)


def mark_trigrams(base: Any, index: int, trigrams: Any, trigrams_index: int) -> Any:
    """Mark at which of 64 places any of four trigrams of bytes begins."""
    found = ctypes.string_at(address_of(base, index, 64 + 2), 64 + 2)
    table = ctypes.string_at(address_of(trigrams, trigrams_index, 4 * 3 * 64), 4 * 3 * 64)
    wanted = {table[3 * 64 * trigram : 3 * 64 * (trigram + 1) : 64] for trigram in range(4)}
    return _marked(found[at : at + 3] in wanted for at in range(64))


def copy_block(source: Any, at: int, target: Any, to: int) -> None:
    """Copy the 64 bytes at an index after one base to an index after another."""
    ctypes.memmove(address_of(target, to, 64), ctypes.string_at(address_of(source, at, 64), 64), 64)


def _marked(flags: Iterable[bool]) -> Any:
    return np.uint64(sum(1 << place for place, flag in enumerate(flags) if flag))


def marked_bytes(address: int, members: Iterable[int]) -> Any:
    """Mark which of the 64 bytes at an address belong to a set."""
    return _marked(byte in members for byte in ctypes.string_at(int(address), 64))


def store_positions(address: int, at: int, bits: Any) -> int:
    """Write the positions of set bits, plus ``at``, as 32-bit integers; return their count."""
    places = [at + place for place in range(64) if int(bits) >> place & 1]
    ctypes.memmove(int(address), np.array(places, np.uint32).tobytes(), 4 * len(places))
    return len(places)


def copy_chosen(target: Any, to: int, source: Any, at: int, bits: Any) -> int:
    """Copy those of 64 bytes that have a set bit; return their count."""
    block = _block(source, at)
    kept = bytes(byte for place, byte in enumerate(block) if int(bits) >> place & 1)
    ctypes.memmove(address_of(target, to, 64), kept, len(kept))
    return len(kept)
