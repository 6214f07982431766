"""Dot product of two float32 rows in an order that no compiler and no processor changes."""

from typing import Any

import numpy as np
from fastscore_jit import llvm
from fastscore_jit.compiling import JIT_DISABLED, always_inlined, instruction
from fastscore_jit.memory import address_of

_LANES = 16
_ACCUMULATORS = 4
_ITEM_BYTES = 4
_STRIDE = _LANES * _ACCUMULATORS


def _add_lanes(builder: Any, vector: Any) -> Any:
    """Add a vector's lanes: halves onto halves, down to one."""
    width = _LANES
    while width > 1:
        width //= 2
        low, high = (
            builder.shuffle_vector(
                vector,
                llvm.undefined(vector.type),
                llvm.constant(llvm.vector(32, width), list(range(at, at + width))),
            )
            for at in (0, width)
        )
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, llvm.constant(llvm.number(32), 0))


@instruction("int64, int64, int64 -> float32")
def _dot(builder: Any, left: Any, right: Any, columns: Any) -> Any:
    """Multiply and add the items of two rows, named by address, of so many columns."""

    def products(start: Any, kind: Any) -> Any:
        offset = builder.mul(start, llvm.integer(_ITEM_BYTES))
        loaded = (
            llvm.load(builder, builder.add(row, offset), kind, _ITEM_BYTES) for row in (left, right)
        )
        return builder.fmul(*loaded)

    lanes, item = llvm.float32(_LANES), llvm.float32()
    sums = [llvm.variable(builder, lanes) for _ in range(_ACCUMULATORS)]
    for place in sums:
        builder.store(llvm.constant(lanes, 0.0), place)

    def accumulate(start: Any, place: Any) -> None:
        builder.store(builder.fadd(builder.load(place), products(start, lanes)), place)

    strides = builder.udiv(columns, llvm.integer(_STRIDE))
    with llvm.loop(builder, strides) as loop:
        start = builder.mul(loop.index, llvm.integer(_STRIDE))
        for number, place in enumerate(sums):
            accumulate(builder.add(start, llvm.integer(number * _LANES)), place)
    done = builder.mul(strides, llvm.integer(_STRIDE))
    vectors = builder.udiv(builder.sub(columns, done), llvm.integer(_LANES))
    with llvm.loop(builder, vectors) as loop:
        accumulate(builder.add(done, builder.mul(loop.index, llvm.integer(_LANES))), sums[0])
    done = builder.add(done, builder.mul(vectors, llvm.integer(_LANES)))
    first, second, third, fourth = (builder.load(place) for place in sums)
    total = llvm.variable(builder, item)
    both = builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))
    builder.store(_add_lanes(builder, both), total)
    with llvm.loop(builder, builder.sub(columns, done)) as loop:
        product = products(builder.add(done, loop.index), item)
        builder.store(builder.fadd(builder.load(total), product), total)
    return builder.load(total)


@always_inlined
def _dot_rows(matrix, a, b):  # type: ignore[no-untyped-def]
    columns = matrix.shape[1]
    width = _ITEM_BYTES * columns
    return _dot(address_of(matrix, width * a, width), address_of(matrix, width * b, width), columns)


def _plain_dot_rows(matrix: Any, a: int, b: int) -> Any:
    return np.float32(np.dot(matrix[a], matrix[b]))


dot_rows = _plain_dot_rows if JIT_DISABLED else _dot_rows
