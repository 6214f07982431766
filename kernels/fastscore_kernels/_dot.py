"""Dot product of two float32 rows in an order that no compiler and no processor changes."""

from typing import Any

import numpy as np
from fastscore_machine.compiling import JIT_DISABLED, instruction
from llvmlite import ir
from numba.core import cgutils, types

_LANES = 16
_ACCUMULATORS = 4
_F32 = ir.FloatType()
_VECTOR = ir.VectorType(_F32, _LANES)


def _add_lanes(builder: Any, vector: Any) -> Any:
    """Add a vector's lanes: halves onto halves, down to one."""
    width = _LANES
    while width > 1:
        width //= 2
        undefined = ir.Constant(vector.type, ir.Undefined)
        low, high = (
            builder.shuffle_vector(
                vector,
                undefined,
                ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(at, at + width))),
            )
            for at in (0, width)
        )
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


@instruction
def _dot_rows(context, matrix, a, b):  # type: ignore[no-untyped-def]
    signature = types.float32(matrix, types.int64, types.int64)

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = target.make_array(signature.args[0])(target, builder, arguments[0])
        columns = builder.extract_value(array.shape, 1)
        word = columns.type
        rows = [builder.gep(array.data, [builder.mul(row, columns)]) for row in arguments[1:]]
        sums = [cgutils.alloca_once(builder, _VECTOR) for _ in range(_ACCUMULATORS)]
        for place in sums:
            builder.store(ir.Constant(_VECTOR, [0.0] * _LANES), place)

        def accumulate(start, place):  # type: ignore[no-untyped-def]
            products = []
            for row in rows:
                pointer = builder.bitcast(builder.gep(row, [start]), _VECTOR.as_pointer())
                loaded = builder.load(pointer)
                loaded.align = 4
                products.append(loaded)
            builder.store(builder.fadd(builder.load(place), builder.fmul(*products)), place)

        stride = _LANES * _ACCUMULATORS
        strides = builder.udiv(columns, ir.Constant(word, stride))
        with cgutils.for_range(builder, strides) as loop:
            for number, place in enumerate(sums):
                start = builder.mul(loop.index, ir.Constant(word, stride))
                accumulate(builder.add(start, ir.Constant(word, number * _LANES)), place)
        done = builder.mul(strides, ir.Constant(word, stride))
        vectors = builder.udiv(builder.sub(columns, done), ir.Constant(word, _LANES))
        with cgutils.for_range(builder, vectors) as loop:
            offset = builder.mul(loop.index, ir.Constant(word, _LANES))
            accumulate(builder.add(done, offset), sums[0])
        done = builder.add(done, builder.mul(vectors, ir.Constant(word, _LANES)))
        first, second, third, fourth = (builder.load(place) for place in sums)
        total = cgutils.alloca_once(builder, _F32)
        both = builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))
        builder.store(_add_lanes(builder, both), total)
        with cgutils.for_range(builder, builder.sub(columns, done)) as loop:
            at = builder.add(done, loop.index)
            left, right = (builder.load(builder.gep(row, [at])) for row in rows)
            builder.store(builder.fadd(builder.load(total), builder.fmul(left, right)), total)
        return builder.load(total)

    return signature, generate


def _plain_dot_rows(matrix: Any, a: int, b: int) -> Any:
    return np.float32(np.dot(matrix[a], matrix[b]))


dot_rows = _plain_dot_rows if JIT_DISABLED else _dot_rows
