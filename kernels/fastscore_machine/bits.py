"""Bits of a word, counted."""

from typing import Any

from fastscore_machine import llvm, plain
from fastscore_machine.compiling import instruction


@instruction("uint64 -> int64", plain=plain.count_ones)
def count_ones(builder: Any, word: Any) -> Any:
    """Count the bits that are set."""
    return builder.ctpop(word)


@instruction("uint64 -> int64", plain=plain.trailing_zeros)
def trailing_zeros(builder: Any, word: Any) -> Any:
    """Count the zero bits below the lowest set bit of a word that is not zero."""
    return builder.cttz(word, llvm.constant(llvm.number(1), 1))


@instruction("uint64 -> int64", plain=plain.leading_zeros)
def leading_zeros(builder: Any, word: Any) -> Any:
    """Count the zero bits above the highest set bit of a word that is not zero."""
    return builder.ctlz(word, llvm.constant(llvm.number(1), 1))
