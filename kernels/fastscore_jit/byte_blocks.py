"""Sixty-four bytes at a time: which of them are what, as the bits of one word.

LLVM makes a comparison of a block one or a few vector instructions, whatever the processor has.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_jit import llvm, plain
from fastscore_jit.compiling import inlined, instruction
from fastscore_jit.memory import View, prefetch

BLOCK = 64

_MOST_PREFETCHED = 1024


def aligned(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Copy bytes to an address at which blocks begin: blocks across two cache lines cost double."""
    padded = np.empty(data.size + BLOCK, np.uint8)
    shift = -padded.ctypes.data % BLOCK
    padded[shift : shift + data.size] = data
    return padded[shift : shift + data.size]


def _marks(builder: Any, flags: Any) -> Any:
    """Return the flags of a block as the bits of a word."""
    return builder.bitcast(flags, llvm.number(64))


def _compared(builder: Any, address: Any, operator: str, byte: Any) -> Any:
    """Compare the block at an address with one byte, unsigned: one bit a byte."""
    block = llvm.load(builder, address, llvm.vector(8, BLOCK))
    wanted = llvm.broadcast(builder, builder.trunc(byte, llvm.number(8)), BLOCK)
    return _marks(builder, builder.icmp_unsigned(operator, block, wanted))


@instruction("bytes(64), int64 -> uint64", plain=plain.equal_bytes)
def equal_bytes(builder: Any, address: Any, byte: Any) -> Any:
    """Mark which of the 64 bytes at ``index`` after a base are ``byte``, the first lowest."""
    return _compared(builder, address, "==", byte)


@instruction("bytes(64), int64 -> uint64", plain=plain.lower_bytes)
def lower_bytes(builder: Any, address: Any, byte: Any) -> Any:
    """Mark which of the 64 bytes at ``index`` after a base are lower than ``byte``."""
    return _compared(builder, address, "<", byte)


@instruction("bytes(64) -> uint64", plain=plain.word_bytes)
def word_bytes(builder: Any, address: Any) -> Any:
    """Mark which of the 64 bytes at ``index`` are ASCII letters, digits or underscores."""
    kind = llvm.vector(8, BLOCK)
    block = llvm.load(builder, address, kind)

    def within(bytes_: Any, first: str, count: int) -> Any:
        start = llvm.constant(kind, ord(first))
        return builder.icmp_unsigned("<", builder.sub(bytes_, start), llvm.constant(kind, count))

    folded = builder.or_(block, llvm.constant(kind, 0x20))
    words = builder.or_(within(folded, "a", 26), within(block, "0", 10))
    return _marks(builder, builder.or_(words, within(block, "_", 1)))


TRIGRAMS, TRIGRAM_BYTES = 4, 3


@instruction("bytes(66), bytes(768) -> uint64", plain=plain.mark_trigrams)
def mark_trigrams(builder: Any, address: Any, trigrams: Any) -> Any:
    """Mark at which of 64 places from ``index`` on any of four trigrams of bytes begins.

    After the trigrams' own index stands each of their bytes, repeated to a block: uint8 (4, 3, 64).
    """
    kind = llvm.vector(8, BLOCK)

    def block_at(base: Any, offset: int) -> Any:
        return llvm.load(builder, builder.add(base, llvm.integer(offset)), kind)

    blocks = [block_at(address, byte) for byte in range(TRIGRAM_BYTES)]
    found = llvm.constant(llvm.vector(1, BLOCK), 0)
    for trigram in range(TRIGRAMS):
        difference = llvm.constant(kind, 0)
        for byte, block in enumerate(blocks):
            other = builder.xor(block, block_at(trigrams, BLOCK * (TRIGRAM_BYTES * trigram + byte)))
            difference = builder.or_(difference, other)
        alike = builder.icmp_unsigned("==", difference, llvm.constant(kind, 0))
        found = builder.or_(found, alike)
    return _marks(builder, found)


@inlined
def prefetch_text(text: View) -> None:
    """Ask for a text that is read soon: texts that lie far apart are not guessed by processors."""
    for at in range(0, min(text.length, _MOST_PREFETCHED), BLOCK):
        prefetch(text.address + at)
