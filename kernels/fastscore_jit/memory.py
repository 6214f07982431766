"""Raw memory reads and writes: the only module with raw access.

Memory is addressed by a base and an index in bytes. The base is an array or a `View`, whose maker
keeps its memory alive. A bare address is refused, as it cannot be checked.

With ``FASTSCORE_CHECKED=1``, kernels are compiled with every access checked. An access outside an
array or a view ends the kernel with an ``IndexError`` that names kernel, index and length.
Otherwise nothing is checked. Kernels pass views, which are two numbers, to the functions they call.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fastscore_jit import llvm
from fastscore_jit.bits import count_ones, trailing_zeros
from fastscore_jit.declaring import always_inlined, instruction
from fastscore_jit.objects import has_feature

_TOP_BIT = np.uint64(1 << 63)
_PAGE = 4096
BLOCK = 64


class View(NamedTuple):
    """Bytes in memory: the address of the first byte, and their number."""

    address: Any
    length: Any


class Views(NamedTuple):
    """Bytes of many rows, int64 (n,) each: where each row begins, and its size; -1 for a null."""

    addresses: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


Base: TypeAlias = "View | npt.NDArray[Any]"


@instruction("bytes(8) -> uint64")
def load_word(builder: Any, address: Any) -> Any:
    """Read the eight bytes at ``index`` after a base, little-endian."""
    return llvm.load(builder, address, llvm.number(64))


@instruction("bytes(1) -> int64")
def load_byte(builder: Any, address: Any) -> Any:
    """Read the byte at ``index`` after a base."""
    return builder.zext(llvm.load(builder, address, llvm.number(8)), llvm.number(64))


@instruction("bytes(4) -> int64")
def load_int32(builder: Any, address: Any) -> Any:
    """Read the 32-bit integer at ``index`` after a base, sign-extended."""
    return builder.sext(llvm.load(builder, address, llvm.number(32)), llvm.number(64))


@instruction("bytes(1), int64")
def store_byte(builder: Any, address: Any, value: Any) -> None:
    """Write the low byte of ``value`` at ``index`` after a base."""
    llvm.store(builder, builder.trunc(value, llvm.number(8)), address)


@instruction("bytes(8), uint64")
def store_word(builder: Any, address: Any, word: Any) -> None:
    """Write eight bytes at ``index`` after a base, little-endian."""
    llvm.store(builder, word, address)


@instruction("bytes(4), int64")
def store_int32(builder: Any, address: Any, value: Any) -> None:
    """Write the low 32 bits of ``value`` at ``index`` after a base."""
    llvm.store(builder, builder.trunc(value, llvm.number(32)), address)


@instruction("bytes(64) -> int64")
def block_at(builder: Any, address: Any) -> Any:
    """Return the address of 64 bytes, for an instruction that reads them at once."""
    return address


@instruction("bytes(any) -> int64")
def address_of(builder: Any, address: Any) -> Any:
    """Return the address of up to ``width`` bytes, for an instruction that accesses them."""
    return address


@instruction("bytes(64), bytes(64)")
def copy_block(builder: Any, source: Any, target: Any) -> None:
    """Copy the 64 bytes at an index after one base to an index after another."""
    llvm.store(builder, llvm.load(builder, source, llvm.vector(8, 64)), target)


@instruction("int64")
def prefetch(builder: Any, address: Any) -> None:
    """Prefetch the cache line at an address, which may be invalid."""
    to_read, to_keep, data = 0, 3, 1
    how = [llvm.constant(llvm.number(32), value) for value in (to_read, to_keep, data)]
    place = llvm.pointer(builder, address, llvm.number(8))
    llvm.call(builder, "llvm.prefetch.p0", llvm.void(), [place, *how])


@always_inlined
def subview(base: Base, index: int, length: int) -> View:
    """Return ``length`` bytes at ``index`` after a base as a view."""
    return View(address_of(base, index, length), length)


@always_inlined
def load_short(base: Base, index: int, length: int) -> Any:
    """Read fewer than eight bytes at ``index`` after a base as the low bytes of a word.

    Bytes after them are read, too, but never from another page.
    """
    word = np.uint64(0)
    if length <= 0:
        return word
    here = address_of(base, index, length)
    if (here & (_PAGE - 1)) <= _PAGE - 8:
        word = load_word(View(here, 8), 0)
        return word & ((np.uint64(1) << np.uint64(8 * length)) - np.uint64(1))
    for at in range(length):
        word |= np.uint64(load_byte(base, index + at)) << np.uint64(8 * at)
    return word


@always_inlined
def readable(base: Base, index: int, length: int, width: int, spare: Any) -> Any:
    """Return an address where ``width`` bytes can be read, beginning with those at ``index``.

    Bytes after the first ``length`` are arbitrary. If reading them could cross into another page,
    the bytes are copied to ``spare``, an array.
    """
    here = address_of(base, index, length)
    if length < width and (here & (_PAGE - 1)) + width > _PAGE:
        for at in range(length):
            store_byte(spare, at, load_byte(base, index + at))
        return address_of(spare, 0, width)
    return here


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
        if load_word(one, at + done) != load_word(other, other_at + done):
            return False
        done += 8
    while done < length:
        if load_byte(one, at + done) != load_byte(other, other_at + done):
            return False
        done += 1
    return True


def _compressed(builder: Any, values: Any, bits: Any) -> Any:
    """Move those of 64 bytes that have a set bit to the front."""
    block, lanes = llvm.vector(8, 64), llvm.vector(1, 64)
    given = [values, llvm.constant(block, 0), builder.bitcast(bits, lanes)]
    return llvm.call(builder, "llvm.x86.avx512.mask.compress.v64i8", block, given)


@instruction("int64, int64, uint64 -> int64")
def _store_compressed(builder: Any, address: Any, at: Any, bits: Any) -> Any:
    """Write as `store_positions` does, sixteen at a time, with arbitrary words after the last."""
    numbers = llvm.constant(llvm.vector(8, 64), list(range(64)))
    packed, count = _compressed(builder, numbers, bits), builder.ctpop(bits)
    base = llvm.broadcast(builder, builder.trunc(at, llvm.number(32)), 16)

    def write(part: int) -> None:
        lanes = llvm.constant(llvm.vector(32, 16), list(range(16 * part, 16 * part + 16)))
        numbers = builder.zext(builder.shuffle_vector(packed, packed, lanes), llvm.vector(32, 16))
        place = builder.add(address, llvm.integer(64 * part))
        llvm.store(builder, builder.add(numbers, base), place)

    write(0)
    with builder.if_then(builder.icmp_unsigned(">", count, llvm.integer(16))):
        write(1)
        with builder.if_then(builder.icmp_unsigned(">", count, llvm.integer(32))):
            write(2)
            write(3)
    return count


@always_inlined
def _store_one_by_one(address: int, at: int, bits: Any) -> int:
    """Write as `store_positions` does, eight positions at a time, arbitrary after the last."""
    count, done = count_ones(bits), 0
    target = View(address, 4 * 64)
    while done < count:
        for place in range(8):
            # positions after the last are arbitrary
            store_int32(target, 4 * (done + place), at + trailing_zeros(bits | _TOP_BIT))
            bits &= bits - np.uint64(1)
        done += 8
    return count  # type: ignore[no-any-return]


@instruction("bytes(64), bytes(64), uint64 -> int64")
def _copy_compressed(builder: Any, target: Any, source: Any, bits: Any) -> Any:
    """Copy as `copy_chosen` does."""
    block = llvm.load(builder, source, llvm.vector(8, 64))
    llvm.store(builder, _compressed(builder, block, bits), target)
    return builder.ctpop(bits)


@always_inlined
def _copy_runs(target: Base, to: int, source: Base, at: int, bits: Any) -> int:
    """Copy as `copy_chosen` does, by runs of set bits; up to 63 bytes more are read."""
    count = 0
    while bits != np.uint64(0):
        first = trailing_zeros(bits)
        copy_block(source, at + first, target, to + count)
        # the carry skips the run
        after = bits + (np.uint64(1) << np.uint64(first))
        count += count_ones(bits & ~after)
        bits &= after
    return count


_BY_COMPRESSING = has_feature("avx512_vbmi2")

store_positions = _store_compressed if _BY_COMPRESSING else _store_one_by_one
"""Write the positions of set bits, plus a number, as 32-bit integers; return their count.

Memory for 64 positions is needed, for any count.
"""

copy_chosen = _copy_compressed if _BY_COMPRESSING else _copy_runs
"""Copy those of 64 bytes that have a set bit to an index after a base; return their count.

Up to 64 bytes after the last one are read and written.
"""
