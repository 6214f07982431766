"""Bits of a word: counting and position."""

from typing import Any

import numpy as np

from fastscore_jit import llvm
from fastscore_jit.declaring import always_inlined, instruction


@instruction("uint64 -> int64")
def count_ones(builder: Any, word: Any) -> Any:
    """Count the bits that are set."""
    return builder.ctpop(word)


@instruction("uint64 -> int64")
def trailing_zeros(builder: Any, word: Any) -> Any:
    """Count the zero bits below the lowest set bit of a word that is not zero."""
    return builder.cttz(word, llvm.constant(llvm.number(1), 1))


@instruction("uint64 -> int64")
def leading_zeros(builder: Any, word: Any) -> Any:
    """Count the zero bits above the highest set bit of a word that is not zero."""
    return builder.ctlz(word, llvm.constant(llvm.number(1), 1))


@always_inlined
def after_odd(bits: Any) -> Any:
    """Mark where an odd number of bits is set, from the lowest on, the bit itself included."""
    bits ^= bits << np.uint64(1)
    bits ^= bits << np.uint64(2)
    bits ^= bits << np.uint64(4)
    bits ^= bits << np.uint64(8)
    bits ^= bits << np.uint64(16)
    return bits ^ (bits << np.uint64(32))
