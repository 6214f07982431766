"""Words of a row: ``[A-Za-z0-9]+(?:'[A-Za-z0-9]+)?`` with ASCII letters folded to lower case.

Sixty-four bytes are classified at once into bits; words are then runs of bits. A word is known by
its key: its bytes themselves up to eight, a hash of them beyond.
"""

import re
import zlib
from typing import Any

import numpy as np
from fastscore_machine import llvm
from fastscore_machine.bits import trailing_zeros
from fastscore_machine.compiling import JIT_DISABLED, always_inlined, instruction
from fastscore_machine.memory import address_of, load_word

BLOCK = 64
KEY_BYTES = 8

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_APOSTROPHE = 39
_PAGE = 4096


@instruction("int64, int64 -> uint64")
def _fold_block(builder: Any, address: Any, out: Any) -> Any:
    """Write 64 bytes with letters folded; return by bits which are letters or digits."""
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
def _classify(data, start, length, folded, inside, spare):  # type: ignore[no-untyped-def]
    """Fold a row and mark its letters and digits by bits; return the number of blocks."""
    blocks = (length + BLOCK - 1) // BLOCK
    for block in range(blocks):
        here = address_of(data) + start + BLOCK * block
        rest = length - BLOCK * block
        if rest < BLOCK and (here & (_PAGE - 1)) + BLOCK > _PAGE:
            # A whole block reads on: never into a page that may not be there.
            for at in range(rest):
                spare[at] = data[start + BLOCK * block + at]
            here = address_of(spare)
        letters = _fold_block(here, address_of(folded) + BLOCK * block)
        if rest < BLOCK:
            letters &= (np.uint64(1) << np.uint64(rest)) - np.uint64(1)
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
def _key(address, size):  # type: ignore[no-untyped-def]
    """Return a word's bytes, or a hash of them where they are more than a key holds."""
    if size <= KEY_BYTES:
        return load_word(address, 0) << np.uint64(64 - 8 * size)
    key = np.uint64(size)
    at = np.int64(0)
    while at < size:
        chunk = load_word(address, min(at, size - KEY_BYTES))
        key = (key ^ chunk) * _MULTIPLIER
        key ^= key >> np.uint64(32)
        at += KEY_BYTES
    return key


@always_inlined
def _vector_words(  # type: ignore[no-untyped-def]
    data, start, length, folded, inside, spare, begins, sizes, keys
):
    """Note begin, size and key of each word of a row; return how many there are."""
    blocks = _classify(data, start, length, folded, inside, spare)
    count = np.int64(0)
    at = _next_inside(inside, 0, blocks) if blocks else np.int64(0)
    while at < length:
        end = _next_outside(inside, at)
        joins = end + 1 < length and data[start + end] == _APOSTROPHE
        if joins and (inside[(end + 1) >> 6] >> np.uint64((end + 1) & 63)) & np.uint64(1):
            end = _next_outside(inside, end + 1)
        begins[count] = at
        sizes[count] = end - at
        keys[count] = _key(address_of(folded) + at, end - at)
        count += 1
        at = _next_inside(inside, end, blocks)
    return count


def _plain_words(  # type: ignore[no-untyped-def]
    data, start, length, folded, inside, spare, begins, sizes, keys
):
    """Do what `_vector_words` does where nothing is compiled."""
    row = bytes(data[start : start + length])
    count = 0
    for word in re.finditer(rb"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)?", row):
        text = word.group().lower()
        begins[count], sizes[count] = word.start(), len(text)
        folded[word.start() : word.end()] = np.frombuffer(text, np.uint8)
        keys[count] = zlib.crc32(text)
        count += 1
    return count


words = _plain_words if JIT_DISABLED else _vector_words
