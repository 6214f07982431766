"""Texts reduced to their plain words: runs of a-z and 0-9, in lower case."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_kernels._jit import always_inlined, first_use, kernel
from fastscore_kernels._validate import read_only
from fastscore_kernels.arrow import string_column

_SPACE = 32
_DOTTED_I, _KELVIN = np.uint8(ord("i")), np.uint8(ord("k"))


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


@always_inlined
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
        begins = size
        before = word = -1
        at, stop = offsets[row], offsets[row + 1]
        while at < stop:
            byte = data[np.uint64(at)]
            letter, taken = lower[byte], 1
            if byte == 0xC4 and at + 1 < stop and data[at + 1] == 0xB0:
                letter, taken = _DOTTED_I, 2
            elif byte == 0xE2 and at + 2 < stop and data[at + 1] == 0x84 and data[at + 2] == 0xAA:
                letter, taken = _KELVIN, 3
            if letter != _SPACE:
                if word < 0:
                    before = size
                    if size > begins:
                        out[np.uint64(size)] = _SPACE
                        size += 1
                    word = size
                out[np.uint64(size)] = letter
                size += 1
            at += taken
            # what stands above the dotted I parts words
            if word >= 0 and (letter == _SPACE or taken == 2 or at == stop):
                if _is_one_of(out, word, size, words, word_offsets):
                    size = before
                word = -1
        out_offsets[row + 1] = size
