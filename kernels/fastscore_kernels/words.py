"""Texts reduced to their plain words: runs of a-z and 0-9, in lower case."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_kernels._jit import first_use, inlined, kernel
from fastscore_kernels._validate import read_only
from fastscore_kernels.arrow import string_column

_SPACE = 32


def plain_words(strings: Any, *, without: Sequence[str] = ()) -> Any:
    """Reduce texts to lower-case words of a-z and 0-9 between single spaces.

    Whatever else there is parts words, other letters too; but the two characters beyond ASCII
    whose lower case has a letter of a to z, the Kelvin sign and the dotted capital I, count as it.

    Parameters
    ----------
    strings
        Arrow strings or a polars Series, without nulls.
    without
        Words to leave out.

    Returns
    -------
    pyarrow.LargeStringArray
        As many texts.
    """
    import pyarrow as pa

    left_out, texts = string_column("without", list(without)), string_column("strings", strings)
    compile_kernels()
    offsets = np.zeros(len(texts) + 1, np.int64)
    out = np.empty(int(texts.offsets[-1] - texts.offsets[0]), np.uint8)
    _reduce(texts.data, texts.offsets, left_out.data, left_out.offsets, _LOWER, offsets, out)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers)


def _lower() -> npt.NDArray[np.uint8]:
    """Map the bytes of words to lower case, all others to a space."""
    table = np.full(256, _SPACE, np.uint8)
    for character in "abcdefghijklmnopqrstuvwxyz0123456789":
        table[[ord(character), ord(character.upper())]] = ord(character)
    return read_only(table)


_LOWER = _lower()


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    data, offsets = read_only(np.zeros(0, np.uint8)), read_only(np.zeros(1, np.int64))
    _reduce(data, offsets, data, offsets, _LOWER, np.zeros(1, np.int64), np.empty(0, np.uint8))


@inlined
def _lowered(data: Any, at: int, stop: int, lower: Any) -> Any:
    """Return the letter or digit that a byte begins, else a space; and the bytes it takes."""
    byte = data[at]
    if byte == 0xC4 and at + 1 < stop and data[at + 1] == 0xB0:
        return np.uint8(0x69), 2  # dotted capital I
    if byte == 0xE2 and at + 2 < stop and data[at + 1] == 0x84 and data[at + 2] == 0xAA:
        return np.uint8(0x6B), 3  # Kelvin sign
    return lower[byte], 1


@inlined
def _is_one_of(data: Any, start: int, end: int, words: Any, offsets: Any) -> bool:
    for word in range(offsets.size - 1):
        first = offsets[word]
        if offsets[word + 1] - first != end - start:
            continue
        place = 0
        while place < end - start and data[start + place] == words[first + place]:
            place += 1
        if place == end - start:
            return True
    return False


@kernel(fastmath=False)
def _reduce(
    data: Any,
    offsets: Any,
    words: Any,
    word_offsets: Any,
    lower: Any,
    out_offsets: Any,
    out: Any,
) -> None:
    """Write the words of each text, one text behind another."""
    size = 0
    for row in range(offsets.size - 1):
        at, stop = offsets[row], offsets[row + 1]
        begins = size
        while at < stop:
            letter, taken = _lowered(data, at, stop, lower)
            if letter == _SPACE:
                at += 1
                continue
            before = size
            if size > begins:
                out[size] = _SPACE
                size += 1
            start = size
            while letter != _SPACE:
                out[size] = letter
                size += 1
                at += taken
                # what stands above the dotted I parts words
                if taken == 2 or at >= stop:
                    break
                letter, taken = _lowered(data, at, stop, lower)
            if _is_one_of(out, start, size, words, word_offsets):
                size = before
        out_offsets[row + 1] = size
