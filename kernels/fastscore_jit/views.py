"""Memory by view and index: the only access for readers of untrusted bytes.

With ``FASTSCORE_CHECKED=1`` in the environment every access is compiled with bounds checks. The
IndexError states the access, and `compiling.kernel` adds the kernel. Otherwise the checks are not
compiled.
"""

from typing import Any

import numpy as np

from fastscore_jit.declaring import always_inlined
from fastscore_jit.memory import (
    address_of,
    block_at,
    copy_block,
    load_byte,
    load_word,
    store_byte,
)

__all__ = [
    "BLOCK",
    "address_of",
    "block_at",
    "byte_at",
    "item_at",
    "low_bytes",
    "put_block",
    "put_byte",
    "put_item",
    "same_bytes",
    "signed",
    "word_at",
]

BLOCK = 64

signed: Any = np.int64
"""Items of unsigned vectors are converted to signed integers for arithmetic."""

byte_at, word_at, put_byte = load_byte, load_word, store_byte


@always_inlined
def put_block(view: Any, at: Any, source: Any, source_at: Any) -> None:
    """Copy 64 bytes of another view."""
    copy_block(source, source_at, view, at)


@always_inlined
def item_at(view: Any, index: Any) -> Any:
    """Read an item of a vector of any type."""
    # an unsigned index is not checked for negative values
    return view[np.uint64(index)]


@always_inlined
def put_item(view: Any, index: Any, value: Any) -> None:
    """Write an item of a vector of any type."""
    view[np.uint64(index)] = value


@always_inlined
def low_bytes(word: Any, length: Any) -> Any:
    """Keep a number of low bytes of a word, at most eight."""
    if length >= 8:
        return word
    return word & ((np.uint64(1) << np.uint64(8 * length)) - np.uint64(1))


@always_inlined
def same_bytes(one: Any, at: Any, other: Any, other_at: Any, length: Any) -> Any:
    """Return whether a number of bytes of two views are equal."""
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
