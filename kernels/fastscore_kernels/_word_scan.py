"""Words of a row: ``[A-Za-z0-9]+(?:'[A-Za-z0-9]+)?`` with ASCII letters folded to lower case.

Sixty-four bytes are classified at once into bits; words are then sequences of set bits. A word is
known by its key: its bytes themselves up to eight, a hash of them beyond.
"""

import re
import zlib
from typing import Any

import numpy as np
from fastscore_jit import llvm
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.compiling import JIT_DISABLED, always_inlined, instruction
from fastscore_jit.memory import load_byte, load_word, readable

BLOCK = 64
KEY_BYTES = 8

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_APOSTROPHE = 39


@instruction("int64, bytes(64) -> uint64")
def _fold_block(builder: Any, address: Any, out: Any) -> Any:
    """Write 64 bytes at ``index`` after ``out``, letters folded; mark letters and digits."""
    kind = llvm.vector(8, BLOCK)
    block = llvm.load(builder, address, kind)
    # The bit that makes letters lower case is set in digits and the apostrophe anyway.
    folded = builder.or_(block, llvm.constant(kind, 0x20))
    llvm.store(builder, folded, out)

    def within(symbols: Any, first: str, count: int) -> Any:
        start = llvm.constant(kind, ord(first))
        return builder.icmp_unsigned("<", builder.sub(symbols, start), llvm.constant(kind, count))

    marks = builder.or_(within(folded, "a", 26), within(block, "0", 10))
    return builder.bitcast(marks, llvm.number(64))


@always_inlined
def _classify(text, folded, inside, spare):  # type: ignore[no-untyped-def]
    """Fold a row and mark its letters and digits by bits; return the number of blocks."""
    blocks = (text.length + BLOCK - 1) // BLOCK
    for block in range(blocks):
        at = BLOCK * block
        there = min(text.length - at, BLOCK)
        letters = _fold_block(readable(text, at, there, BLOCK, spare), folded, at)
        if there < BLOCK:
            letters &= (np.uint64(1) << np.uint64(there)) - np.uint64(1)
        inside[block] = letters
    inside[blocks] = np.uint64(0)
    return blocks


@always_inlined
def _next_outside(inside, at):  # type: ignore[no-untyped-def]
    """Return the first place from ``at`` whose bit is not set; there always is one."""
    word = at >> 6
    rest = ~inside[word] >> np.uint64(at & 63)
    if rest != 0:
        return at + trailing_zeros(rest)
    word += 1
    while ~inside[word] == 0:
        word += 1
    return word * 64 + trailing_zeros(~inside[word])


@always_inlined
def _next_inside(inside, at, blocks):  # type: ignore[no-untyped-def]
    """Return the first place from ``at`` whose bit is set, or the end of all blocks."""
    word = at >> 6
    rest = inside[word] >> np.uint64(at & 63)
    if rest != 0:
        return at + trailing_zeros(rest)
    word += 1
    while word < blocks and inside[word] == 0:
        word += 1
    if word >= blocks:
        return blocks * BLOCK
    return word * 64 + trailing_zeros(inside[word])


@always_inlined
def _key(folded, begin, size):  # type: ignore[no-untyped-def]
    """Return a word's bytes, or a hash of them where they are more than a key holds."""
    if size <= KEY_BYTES:
        return load_word(folded, begin) << np.uint64(64 - 8 * size)
    key = np.uint64(size)
    at = np.int64(0)
    while at < size:
        chunk = load_word(folded, begin + min(at, size - KEY_BYTES))
        key = (key ^ chunk) * _MULTIPLIER
        key ^= key >> np.uint64(32)
        at += KEY_BYTES
    return key


@always_inlined
def _scan_by_blocks(text, folded, inside, spare, begins, sizes, keys):  # type: ignore[no-untyped-def]
    """Note begin, size and key of each word of a row; return how many there are.

    ``folded`` has room for the row and two blocks, ``inside`` a word a block of it and one more,
    ``spare`` a block.
    """
    blocks = _classify(text, folded, inside, spare)
    count = np.int64(0)
    at = _next_inside(inside, 0, blocks) if blocks else np.int64(0)
    while at < text.length:
        end = _next_outside(inside, at)
        joins = end + 1 < text.length and load_byte(text, end) == _APOSTROPHE
        if joins and (inside[(end + 1) >> 6] >> np.uint64((end + 1) & 63)) & np.uint64(1):
            end = _next_outside(inside, end + 1)
        begins[count] = at
        sizes[count] = end - at
        keys[count] = _key(folded, at, end - at)
        count += 1
        at = _next_inside(inside, end, blocks)
    return count


def _scan_by_pattern(text, folded, inside, spare, begins, sizes, keys):  # type: ignore[no-untyped-def]
    """Do what `_scan_by_blocks` does where nothing is compiled."""
    row = bytes(load_byte(text, at) for at in range(text.length))
    count = 0
    for word in re.finditer(rb"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)?", row):
        found = word.group().lower()
        begins[count], sizes[count] = word.start(), len(found)
        folded[word.start() : word.end()] = np.frombuffer(found, np.uint8)
        keys[count] = zlib.crc32(found)
        count += 1
    return count


scan_words = _scan_by_pattern if JIT_DISABLED else _scan_by_blocks
