"""Memory by view and index: all that a reader of untrusted bytes may touch.

With ``FASTSCORE_CHECKED=1`` in the environment every access is compiled with its bounds checked: an
IndexError says what would have been touched, and `compiling.kernel` adds by which kernel. Without
it nothing is left of the checks.
"""

from typing import Any

import numpy as np

from fastscore_machine.compiling import CHECKED, always_inlined
from fastscore_machine.memory import (
    address_of,
    copy_block,
    load_byte,
    load_word,
    store_byte,
    store_word,
)

BLOCK = 64

signed: Any = np.int64
"""Items of unsigned vectors are made signed to be counted with."""

if CHECKED:

    @always_inlined
    def _check(view: Any, at: Any, width: Any) -> None:
        if at < 0 or at + width > view.nbytes:
            raise IndexError("bytes", at, "to", at + width, "of a view of", view.nbytes)
else:

    @always_inlined
    def _check(view: Any, at: Any, width: Any) -> None:
        pass


@always_inlined
def byte_at(view: Any, at: Any) -> Any:
    """Read the byte at an index."""
    _check(view, at, 1)
    return load_byte(address_of(view), at)


@always_inlined
def word_at(view: Any, at: Any) -> Any:
    """Read eight bytes from an index on, little-endian."""
    _check(view, at, 8)
    return load_word(address_of(view), at)


@always_inlined
def block_at(view: Any, at: Any) -> Any:
    """Return the address of 64 bytes, for an instruction that reads them at once."""
    _check(view, at, BLOCK)
    return address_of(view) + at


@always_inlined
def room_at(view: Any, at: Any, width: Any) -> Any:
    """Return the address of ``width`` bytes, for an instruction that writes up to as many."""
    _check(view, at, width)
    return address_of(view) + at


@always_inlined
def put_byte(view: Any, at: Any, value: Any) -> None:
    """Write the low byte of ``value``."""
    _check(view, at, 1)
    store_byte(address_of(view), at, value)


@always_inlined
def put_word(view: Any, at: Any, word: Any) -> None:
    """Write eight bytes from an index on, little-endian."""
    _check(view, at, 8)
    store_word(address_of(view), at, word)


@always_inlined
def put_block(view: Any, at: Any, source: Any, source_at: Any) -> None:
    """Copy 64 bytes of another view."""
    copy_block(block_at(source, source_at), block_at(view, at))


@always_inlined
def item_at(view: Any, index: Any) -> Any:
    """Read an item of a vector of any type."""
    _check(view, index * view.itemsize, view.itemsize)
    # an unsigned index is not looked at for counting from the end
    return view[np.uint64(index)]


@always_inlined
def put_item(view: Any, index: Any, value: Any) -> None:
    """Write an item of a vector of any type."""
    _check(view, index * view.itemsize, view.itemsize)
    view[np.uint64(index)] = value


@always_inlined
def low_bytes(word: Any, length: Any) -> Any:
    """Keep as many low bytes of a word, at most eight."""
    if length >= 8:
        return word
    return word & ((np.uint64(1) << np.uint64(8 * length)) - np.uint64(1))


@always_inlined
def same_bytes(one: Any, at: Any, other: Any, other_at: Any, length: Any) -> Any:
    """Whether as many bytes of two views are equal."""
    done = 0
    while done + 8 <= length:
        if word_at(one, at + done) != word_at(other, other_at + done):
            return False
        done += 8
    while done < length:
        if byte_at(one, at + done) != byte_at(other, other_at + done):
            return False
        done += 1
    return True
