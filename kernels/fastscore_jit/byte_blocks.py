"""Classification of 64 bytes at a time: which equal a byte or belong to a set, as bits of a word.

LLVM compiles a comparison of a block to a few vector instructions on any processor.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_jit import llvm
from fastscore_jit.declaring import inlined, instruction
from fastscore_jit.memory import BLOCK, View, prefetch
from fastscore_jit.objects import has_feature

_CASE = 0x20

# LLVM splits vectors wider than the processor's registers badly
_WIDTH = BLOCK if has_feature("avx512bw") else 16


def _split_members(members: frozenset[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """Split a set into bytes whose other letter case belongs to it or not, and ranges."""
    paired = [
        byte
        for byte in members
        if byte & _CASE
        and byte ^ _CASE in members
        and not {byte - 1, byte + 1, byte - 33, byte - 31} & members
    ]
    alone = sorted(members - set(paired) - {byte ^ _CASE for byte in paired})
    ranges: list[tuple[int, int]] = []
    for byte in alone:
        if ranges and ranges[-1][1] == byte:
            ranges[-1] = (ranges[-1][0], byte + 1)
        else:
            ranges.append((byte, byte + 1))
    return paired, ranges


def _compare_members(builder: Any, block: Any, sets: Sequence[frozenset[int]]) -> list[Any]:
    """Compare the bytes of a vector with sets; return a vector of booleans for each."""
    kind = block.type

    def of(value: int) -> Any:
        return llvm.constant(kind, value - 256 if value > 127 else value)

    folded = builder.or_(block, of(_CASE))
    found = []
    for members in sets:
        paired, ranges = _split_members(members)
        parts = [builder.icmp_unsigned("==", folded, of(byte)) for byte in paired]
        for begin, end in ranges:
            if end == 256:
                parts.append(builder.icmp_unsigned(">=", block, of(begin)))
            elif begin == 0:
                parts.append(builder.icmp_unsigned("<", block, of(end)))
            elif end == begin + 1:
                parts.append(builder.icmp_unsigned("==", block, of(begin)))
            else:
                offset = builder.sub(block, of(begin))
                parts.append(builder.icmp_unsigned("<", offset, of(end - begin)))
        joined = parts[0]
        for part in parts[1:]:
            joined = builder.or_(joined, part)
        found.append(joined)
    return found


def byte_marks(*sets: Iterable[int]) -> Callable[[int], Any]:
    """Declare an instruction that marks which of the 64 bytes at an address belong to some sets.

    It returns a word, or a tuple of words for several sets, none of them empty. The first byte is
    the lowest bit.
    """
    wanted = [frozenset(members) for members in sets]

    @instruction(f"int64 -> {', '.join(['uint64'] * len(wanted))}")
    def marks(builder: Any, address: Any) -> Any:
        kind = llvm.vector(8, _WIDTH)
        words: list[Any] = [llvm.integer(0)] * len(wanted)
        for begin in range(0, BLOCK, _WIDTH):
            block = llvm.load(builder, builder.add(address, llvm.integer(begin)), kind)
            for place, is_member in enumerate(_compare_members(builder, block, wanted)):
                bits = builder.bitcast(is_member, llvm.number(_WIDTH))
                if _WIDTH < BLOCK:
                    wide = builder.zext(bits, llvm.number(64))
                    bits = builder.shl(wide, llvm.integer(begin))
                words[place] = builder.or_(words[place], bits)
        return words if len(words) > 1 else words[0]

    return marks


_MOST_PREFETCHED = 1024


def aligned(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Copy bytes to an aligned address: reads across two cache lines take twice as long."""
    padded = np.empty(data.size + BLOCK, np.uint8)
    shift = -padded.ctypes.data % BLOCK
    padded[shift : shift + data.size] = data
    return padded[shift : shift + data.size]


def _marks(builder: Any, flags: Any) -> Any:
    """Return the flags of a block as the bits of a word."""
    return builder.bitcast(flags, llvm.number(64))


def _compared(builder: Any, address: Any, operator: str, byte: Any) -> Any:
    """Compare the block at an address with a byte, unsigned; return one bit per byte."""
    block = llvm.load(builder, address, llvm.vector(8, BLOCK))
    wanted = llvm.broadcast(builder, builder.trunc(byte, llvm.number(8)), BLOCK)
    return _marks(builder, builder.icmp_unsigned(operator, block, wanted))


@instruction("bytes(64), int64 -> uint64")
def equal_bytes(builder: Any, address: Any, byte: Any) -> Any:
    """Mark which of the 64 bytes at ``index`` after a base are ``byte``, the first lowest."""
    return _compared(builder, address, "==", byte)


@instruction("bytes(64), int64 -> uint64")
def lower_bytes(builder: Any, address: Any, byte: Any) -> Any:
    """Mark which of the 64 bytes at ``index`` after a base are lower than ``byte``."""
    return _compared(builder, address, "<", byte)


@instruction("bytes(64) -> uint64")
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


@instruction("bytes(66), bytes(768) -> uint64")
def mark_trigrams(builder: Any, address: Any, trigrams: Any) -> Any:
    """Mark the positions of 64, from ``index`` on, at which any of four trigrams of bytes begins.

    ``trigrams`` are followed by each of their bytes repeated to a block: uint8 (4, 3, 64).
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
    """Prefetch a text: processors do not predict reads of scattered texts."""
    for at in range(0, min(text.length, _MOST_PREFETCHED), BLOCK):
        prefetch(text.address + at)
