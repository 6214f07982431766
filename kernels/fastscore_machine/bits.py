"""Bits of a word, counted."""

from typing import Any

from llvmlite import ir
from numba import types

from fastscore_machine import plain
from fastscore_machine.compiling import instruction_or


@instruction_or(plain.count_ones)
def count_ones(typing_context: Any, word: Any) -> Any:
    """Count the bits that are set."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), codegen


@instruction_or(plain.trailing_zeros)
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Count the zero bits below the lowest set bit of a word that is not zero."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@instruction_or(plain.leading_zeros)
def leading_zeros(typing_context: Any, word: Any) -> Any:
    """Count the zero bits above the highest set bit of a word that is not zero."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen
