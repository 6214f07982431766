"""Memory read and written by address: the one home of raw access.

An address is an int64; whoever passes one keeps what it belongs to alive.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from fastscore_machine import plain
from fastscore_machine.bits import count_ones, trailing_zeros
from fastscore_machine.compiling import (
    JIT_DISABLED,
    always_inlined,
    has_feature,
    inlined,
    instruction_or,
)
from fastscore_machine.llvm import broadcast, integer, load

_BLOCK = ir.VectorType(ir.IntType(8), 64)
_TOP = np.uint64(1 << 63)


@instruction_or(plain.address_of)
def address_of(typing_context: Any, array: Any) -> Any:
    """Address of an array's first item; the caller keeps the array alive."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(struct.data, ir.IntType(64))

    return types.int64(array), codegen


def _place(builder: Any, arguments: Any, width: int) -> Any:
    """Pointer to the item of ``width`` bits at byte ``arguments[1]`` behind an address."""
    address = builder.add(arguments[0], arguments[1])
    return builder.inttoptr(address, ir.IntType(width).as_pointer())


@instruction_or(plain.load_word)
def load_word(typing_context: Any, base: Any, index: Any) -> Any:
    """Read the eight bytes at ``base + index``, little-endian, without a bounds check."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(_place(builder, arguments, 64))
        word.align = 1
        return word

    return types.uint64(types.int64, types.int64), codegen


@instruction_or(plain.load_byte)
def load_byte(typing_context: Any, base: Any, index: Any) -> Any:
    """Read the byte at ``base + index`` without a bounds check."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = builder.load(_place(builder, arguments, 8))
        return builder.zext(byte, ir.IntType(64))

    return types.int64(types.int64, types.int64), codegen


@instruction_or(plain.load_int32)
def load_int32(typing_context: Any, base: Any, index: Any) -> Any:
    """Read the 32-bit integer at ``base + index``, sign-extended, without a bounds check."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = builder.load(_place(builder, arguments, 32))
        number.align = 1
        return builder.sext(number, ir.IntType(64))

    return types.int64(types.int64, types.int64), codegen


@instruction_or(plain.store_byte)
def store_byte(typing_context: Any, base: Any, index: Any, value: Any) -> Any:
    """Write the low byte of ``value`` to ``base + index`` without a bounds check."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = builder.trunc(arguments[2], ir.IntType(8))
        builder.store(byte, _place(builder, arguments, 8))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@instruction_or(plain.store_word)
def store_word(typing_context: Any, base: Any, index: Any, word: Any) -> Any:
    """Write eight bytes to ``base + index``, little-endian, without a bounds check."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _place(builder, arguments, 64)).align = 1
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.uint64), codegen


@instruction_or(plain.copy_block)
def copy_block(typing_context: Any, source: Any, target: Any) -> Any:
    """Copy 64 bytes from one address to another."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = load(builder, arguments[0], _BLOCK)
        builder.store(block, builder.inttoptr(arguments[1], _BLOCK.as_pointer())).align = 1
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@instruction_or(plain.prefetch)
def prefetch(typing_context: Any, address: Any) -> Any:
    """Ask for the cache line at an address, which need not be there."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        wanted = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer] + [number] * 3)
        )
        to_read, to_keep, data = 0, 3, 1
        how = (ir.Constant(number, value) for value in (to_read, to_keep, data))
        builder.call(wanted, [builder.inttoptr(arguments[0], pointer), *how])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@inlined
def same_bytes(one: int, other: int, length: int) -> bool:
    """Whether as many bytes at two addresses are equal."""
    at = 0
    while at + 8 <= length:
        if load_word(one, at) != load_word(other, at):
            return False
        at += 8
    while at < length:
        if load_byte(one, at) != load_byte(other, at):
            return False
        at += 1
    return True


def _compressed(builder: Any, bits: Any) -> Any:
    """Bring the numbers of set bits to the front of a vector of 64 bytes."""
    lanes = ir.VectorType(ir.IntType(1), 64)
    numbers = ir.Constant(_BLOCK, list(range(64)))
    compress = builder.module.declare_intrinsic(
        "llvm.x86.avx512.mask.compress.v64i8", (), ir.FunctionType(_BLOCK, [_BLOCK, _BLOCK, lanes])
    )
    nothing = ir.Constant(_BLOCK, [0] * 64)
    return builder.call(compress, [numbers, nothing, builder.bitcast(bits, lanes)])


@instruction_or(plain.store_positions)
def _store_compressed(typing_context: Any, address: Any, at: Any, bits: Any) -> Any:
    """Write as `store_positions` does; sixteen positions at a time, whatever stands behind."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, at, bits = arguments
        packed, count = _compressed(builder, bits), builder.ctpop(bits)
        sixteen = ir.VectorType(ir.IntType(32), 16)
        base = broadcast(builder, builder.trunc(at, ir.IntType(32)), 16)

        def write(part: int) -> None:
            lanes = ir.Constant(sixteen, list(range(16 * part, 16 * part + 16)))
            numbers = builder.zext(builder.shuffle_vector(packed, packed, lanes), sixteen)
            place = builder.add(address, integer(64 * part))
            pointer = builder.inttoptr(place, sixteen.as_pointer())
            builder.store(builder.add(numbers, base), pointer).align = 1

        write(0)
        with builder.if_then(builder.icmp_unsigned(">", count, integer(16))):
            write(1)
            with builder.if_then(builder.icmp_unsigned(">", count, integer(32))):
                write(2)
                write(3)
        return count

    return types.int64(types.int64, types.int64, types.uint64), codegen


@instruction_or(plain.store_int32)
def store_int32(typing_context: Any, base: Any, index: Any, value: Any) -> Any:
    """Write the low 32 bits of ``value`` to ``base + index`` without a bounds check."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = builder.trunc(arguments[2], ir.IntType(32))
        builder.store(number, _place(builder, arguments, 32)).align = 1
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@always_inlined
def _store_one_by_one(address: int, at: int, bits: Any) -> int:
    """Write as `store_positions` does, eight positions at a time, whether they are there or not."""
    count, done = count_ones(bits), 0
    while done < count:
        for place in range(8):
            # behind the last one anything may stand
            store_int32(address, 4 * (done + place), at + trailing_zeros(bits | _TOP))
            bits &= bits - np.uint64(1)
        done += 8
    return count  # type: ignore[no-any-return]


_BY_COMPRESSING = JIT_DISABLED or (has_feature("avx512bw") and has_feature("avx512vbmi2"))

store_positions = _store_compressed if _BY_COMPRESSING else _store_one_by_one
"""Write the positions of set bits, plus a number, as 32-bit integers to an address: how many.

Room for 64 of them is needed, whatever their number.
"""
