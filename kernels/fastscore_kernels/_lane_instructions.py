"""Vector instructions for edit distance, written as LLVM IR so that each processor gets its own.

Texts are named by address. Myers' algorithm asks, for each symbol of the text, which symbols of
the pattern are equal; `equality_words` answers by comparing 64 of them at once, so no table of
the alphabet is filled or cleared. `advance_lanes` then runs the recurrence for `LANES` pairs.
"""

from typing import Any

from fastscore_machine.compiling import instruction
from fastscore_machine.llvm import I64, broadcast, integer, load
from llvmlite import ir
from numba.core import cgutils, types

LANES = 16

_WORDS = ir.VectorType(I64, LANES)


def _splat(value: int) -> Any:
    return ir.Constant(_WORDS, [value] * LANES)


def _equality_words(bits: int, words: int) -> Any:
    """Make the comparison for symbols of so many bits and patterns of so many 64-symbol words."""
    symbol = ir.IntType(bits)
    block = ir.VectorType(symbol, 64)

    @instruction
    def compare(context, pattern, text, symbols, out):  # type: ignore[no-untyped-def]
        signature = types.void(types.int64, types.int64, types.int64, types.int64)

        def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
            pattern, text, symbols, out = arguments
            size = bits // 8
            blocks = [
                load(builder, builder.add(pattern, integer(64 * size * word)), block)
                for word in range(words)
            ]
            with cgutils.for_range(builder, symbols) as loop:
                at = builder.add(text, builder.mul(loop.index, integer(size)))
                wanted = broadcast(builder, load(builder, at, symbol), 64)
                row = builder.add(out, builder.mul(loop.index, integer(8 * LANES * words)))
                for word, pattern_block in enumerate(blocks):
                    equal = builder.icmp_signed("==", pattern_block, wanted)
                    place = builder.add(row, integer(8 * LANES * word))
                    builder.store(
                        builder.bitcast(equal, I64), builder.inttoptr(place, I64.as_pointer())
                    )
            return target.get_dummy_value()

        return signature, generate

    return compare


def _advance_lanes(words: int) -> Any:
    """Make the recurrence for patterns of so many words."""

    @instruction
    def advance(context, equal, columns, first, plus, minus):  # type: ignore[no-untyped-def]
        signature = types.void(*[types.int64] * 5)

        def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
            equal, columns, first, plus, minus = arguments
            first = load(builder, first, _WORDS, 8)
            vertical = [
                (cgutils.alloca_once(builder, _WORDS), cgutils.alloca_once(builder, _WORDS))
                for _ in range(words)
            ]
            for place_plus, place_minus in vertical:
                builder.store(_splat(-1), place_plus)
                builder.store(_splat(0), place_minus)
            with cgutils.for_range(builder, columns) as loop:
                row = builder.add(equal, builder.mul(loop.index, integer(8 * LANES * words)))
                column = broadcast(builder, loop.index, LANES)
                live = builder.icmp_signed(">=", column, first)
                # A lane whose text has not begun gets no horizontal step and stays as it is.
                carry_plus = builder.zext(live, _WORDS)
                carry_minus = None
                for word, (place_plus, place_minus) in enumerate(vertical):
                    x = load(builder, builder.add(row, integer(8 * LANES * word)), _WORDS, 8)
                    carry_plus, carry_minus = _step(
                        builder, x, place_plus, place_minus, carry_plus, carry_minus
                    )
            for word, places in enumerate(vertical):
                for place, out in zip(places, (plus, minus), strict=True):
                    address = builder.add(out, integer(8 * LANES * word))
                    pointer = builder.inttoptr(address, _WORDS.as_pointer())
                    builder.store(builder.load(place), pointer).align = 8
            return target.get_dummy_value()

        return signature, generate

    return advance


def _step(  # type: ignore[no-untyped-def]
    builder, x, place_plus, place_minus, carry_plus, carry_minus
):
    """Advance one word of the vertical deltas by one column (Hyyro 2003); return the carries."""
    ones, one, top = _splat(-1), _splat(1), _splat(63)
    plus, minus = builder.load(place_plus), builder.load(place_minus)
    if carry_minus is not None:
        x = builder.or_(x, carry_minus)
    sums = builder.add(builder.and_(x, plus), plus)
    diagonal = builder.or_(builder.or_(builder.xor(sums, plus), x), minus)
    horizontal_plus = builder.or_(minus, builder.xor(builder.or_(diagonal, plus), ones))
    horizontal_minus = builder.and_(diagonal, plus)
    next_plus = builder.lshr(horizontal_plus, top)
    next_minus = builder.lshr(horizontal_minus, top)
    shifted_plus = builder.or_(builder.shl(horizontal_plus, one), carry_plus)
    shifted_minus = builder.shl(horizontal_minus, one)
    if carry_minus is not None:
        shifted_minus = builder.or_(shifted_minus, carry_minus)
    neither = builder.xor(builder.or_(diagonal, shifted_plus), ones)
    builder.store(builder.or_(shifted_minus, neither), place_plus)
    builder.store(builder.and_(shifted_plus, diagonal), place_minus)
    return next_plus, next_minus


equal_bytes_1, equal_bytes_2, equal_bytes_3, equal_bytes_4 = (
    _equality_words(8, words) for words in (1, 2, 3, 4)
)
equal_halves_1, equal_halves_2, equal_halves_3, equal_halves_4 = (
    _equality_words(16, words) for words in (1, 2, 3, 4)
)
advance_1, advance_2, advance_3, advance_4 = (_advance_lanes(words) for words in (1, 2, 3, 4))
