"""Vector instructions for edit distance, written as LLVM IR so that each processor gets its own.

Texts are named by address. Myers' algorithm asks, for each symbol of the text, which symbols of
the pattern are equal; `equality_words` answers by comparing 64 of them at once, so no table of
the alphabet is filled or cleared. `advance_lanes` then runs the recurrence for `LANES` pairs.
Of longer patterns the words stand side by side in the lanes: `advance_diagonal` runs each word a
column after the one before it, whose horizontal step it takes over.
"""

from typing import Any

from fastscore_jit import llvm
from fastscore_jit.compiling import instruction

LANES = 16
STATE_ROWS = 7
"""Vectors of `advance_diagonal`'s state: the vertical deltas, plus and minus; the last horizontal
steps, plus and minus; the first and, less one, the last step of each lane; which lanes begin a
pattern."""

_WORD = 8


def _splat(value: int) -> Any:
    return llvm.constant(llvm.vector(64, LANES), value)


def _equality_words(bits: int, words: int) -> Any:
    """Make the comparison for symbols of so many bits and patterns of so many 64-symbol words."""

    @instruction("int64, int64, int64, int64")
    def compare(builder: Any, pattern: Any, text: Any, symbols: Any, out: Any) -> None:
        size = bits // 8
        kind = llvm.vector(bits, 64)
        blocks = [
            llvm.load(builder, builder.add(pattern, llvm.integer(64 * size * word)), kind)
            for word in range(words)
        ]
        with llvm.loop(builder, symbols) as loop:
            at = builder.add(text, builder.mul(loop.index, llvm.integer(size)))
            wanted = llvm.broadcast(builder, llvm.load(builder, at, llvm.number(bits)), 64)
            stride = llvm.integer(_WORD * LANES * words)
            row = builder.add(out, builder.mul(loop.index, stride))
            for word, block in enumerate(blocks):
                equal = builder.bitcast(builder.icmp_signed("==", block, wanted), llvm.number(64))
                place = builder.add(row, llvm.integer(_WORD * LANES * word))
                llvm.store(builder, equal, place, _WORD)

    return compare


def _advance_lanes(words: int) -> Any:
    """Make the recurrence for patterns of so many words."""

    @instruction("int64, int64, int64, int64, int64")
    def advance(builder: Any, equal: Any, columns: Any, first: Any, plus: Any, minus: Any) -> None:
        kind = llvm.vector(64, LANES)
        first = llvm.load(builder, first, kind, _WORD)
        vertical = [
            (llvm.variable(builder, kind), llvm.variable(builder, kind)) for _ in range(words)
        ]
        for place_plus, place_minus in vertical:
            builder.store(_splat(-1), place_plus)
            builder.store(_splat(0), place_minus)
        with llvm.loop(builder, columns) as loop:
            row = builder.add(equal, builder.mul(loop.index, llvm.integer(_WORD * LANES * words)))
            column = llvm.broadcast(builder, loop.index, LANES)
            live = builder.icmp_signed(">=", column, first)
            # A lane whose text has not begun gets no horizontal step and stays as it is.
            carry_plus, carry_minus = builder.zext(live, kind), None
            for word, places in enumerate(vertical):
                at = builder.add(row, llvm.integer(_WORD * LANES * word))
                x = llvm.load(builder, at, kind, _WORD)
                carry_plus, carry_minus = _step(builder, x, *places, carry_plus, carry_minus)
        for word, places in enumerate(vertical):
            for place, out in zip(places, (plus, minus), strict=True):
                address = builder.add(out, llvm.integer(_WORD * LANES * word))
                llvm.store(builder, builder.load(place), address, _WORD)

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
equal_halfwords_1, equal_halfwords_2, equal_halfwords_3, equal_halfwords_4 = (
    _equality_words(16, words) for words in (1, 2, 3, 4)
)
advance_1, advance_2, advance_3, advance_4 = (_advance_lanes(words) for words in (1, 2, 3, 4))


@instruction("int64, int64, int64, int64, int64, int64")
def advance_diagonal(
    builder: Any, equal: Any, steps: Any, done: Any, state: Any, given: Any, left: Any
) -> None:
    """Advance each lane by a column a step, on from step ``done``.

    ``equal`` holds a vector a step, ``given`` and ``left`` a byte a step: the horizontal step that
    enters the first lane and that which leaves the last (1 for plus, 2 for minus).
    """
    kind, row_bytes = llvm.vector(64, LANES), _WORD * LANES
    places = [builder.add(state, llvm.integer(row_bytes * row)) for row in range(STATE_ROWS)]
    rows = [llvm.load(builder, place, kind, _WORD) for place in places]
    first, last, begins = rows[4:]
    joined = builder.sub(begins, _splat(1))
    variables = [llvm.variable(builder, kind) for _ in range(4)]
    for row, place in zip(rows, variables, strict=False):
        builder.store(row, place)
    byte, wide = llvm.number(8), llvm.number(64)
    shifted_lanes = llvm.constant(llvm.vector(32, LANES), [LANES, *range(LANES - 1)])
    last_lane = llvm.constant(llvm.number(32), LANES - 1)

    def entering(steps_before: Any, entered: Any) -> Any:
        """Hand each lane the step of the one before it."""
        from_outside = llvm.broadcast(builder, entered, LANES)
        moved = builder.shuffle_vector(steps_before, from_outside, shifted_lanes)
        return builder.and_(moved, joined)

    with llvm.loop(builder, steps) as loop:
        step = llvm.broadcast(builder, builder.add(done, loop.index), LANES)
        live = builder.and_(
            builder.icmp_signed(">=", step, first), builder.icmp_signed("<=", step, last)
        )
        came = builder.zext(llvm.load(builder, builder.add(given, loop.index), byte), wide)
        plus, minus, steps_plus, steps_minus = variables
        carry_plus = entering(builder.load(steps_plus), builder.and_(came, llvm.integer(1)))
        carry_plus = builder.or_(carry_plus, begins)
        carry_minus = entering(builder.load(steps_minus), builder.lshr(came, llvm.integer(1)))
        before = builder.load(plus), builder.load(minus)
        at = builder.add(equal, builder.mul(loop.index, llvm.integer(row_bytes)))
        x = llvm.load(builder, at, kind, _WORD)
        next_plus, next_minus = _step(builder, x, plus, minus, carry_plus, carry_minus)
        for place, unchanged in zip((plus, minus), before, strict=True):
            builder.store(builder.select(live, builder.load(place), unchanged), place)
        builder.store(next_plus, steps_plus)
        builder.store(next_minus, steps_minus)
        out_minus = builder.shl(builder.extract_element(next_minus, last_lane), llvm.integer(1))
        out = builder.or_(builder.extract_element(next_plus, last_lane), out_minus)
        llvm.store(builder, builder.trunc(out, byte), builder.add(left, loop.index))
    for variable, place in zip(variables, places, strict=False):
        llvm.store(builder, builder.load(variable), place, _WORD)
