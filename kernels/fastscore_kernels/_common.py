"""Common members of two ascending runs of int32.

Where one run is short, sixteen of its members are compared with each of the other's at once, so
that nothing branches on the values; long runs are merged. Without compilation all are merged.
"""

from typing import Any

import numpy as np
from fastscore_machine.bits import count_ones, trailing_zeros
from fastscore_machine.compiling import JIT_DISABLED, inlined, instruction
from fastscore_machine.llvm import I64, broadcast, integer, load
from fastscore_machine.memory import address_of
from llvmlite import ir
from numba.core import cgutils, types

_LANES = 16
_I32 = ir.IntType(32)
_MEMBERS = ir.VectorType(_I32, _LANES)
_BITS = ir.VectorType(ir.IntType(1), _LANES)
_SHORT = 64


def _first_lanes(builder: Any, count: Any) -> Any:
    """Return the mask of the first ``count`` lanes, all of them where it is more."""
    lanes = ir.Constant(_MEMBERS, list(range(_LANES)))
    limit = broadcast(builder, builder.trunc(count, _I32), _LANES)
    return builder.icmp_signed("<", lanes, limit)


def _masked_load(builder: Any, address: Any, mask: Any, fill: Any) -> Any:
    """Load the masked lanes from an address; the others are not touched and get the fill."""
    pointer = builder.inttoptr(address, _MEMBERS.as_pointer())
    kind = ir.FunctionType(_MEMBERS, [pointer.type, _I32, _BITS, _MEMBERS])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.masked.load.v16i32.p0")
    return builder.call(function, [pointer, ir.Constant(_I32, 4), mask, fill])


@instruction
def _members_in(context, members, count, others, other_count):  # type: ignore[no-untyped-def]
    """Tell by bits which of up to sixteen members are among the others, all given by address."""
    signature = types.uint64(types.int64, types.int64, types.int64, types.int64)

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        members, count, others, other_count = arguments
        present = _first_lanes(builder, count)
        block = _masked_load(builder, members, present, ir.Constant(_MEMBERS, [0] * _LANES))
        found = cgutils.alloca_once(builder, _BITS)
        builder.store(ir.Constant(_BITS, [0] * _LANES), found)
        blocks = builder.udiv(builder.add(other_count, integer(_LANES - 1)), integer(_LANES))
        with cgutils.for_range(builder, blocks) as loop:
            done = builder.mul(loop.index, integer(_LANES))
            address = builder.add(others, builder.mul(done, integer(4)))
            # Lanes past the end repeat the first member, which changes nothing.
            fill = broadcast(builder, load(builder, address, _I32, 4), _LANES)
            taken = _first_lanes(builder, builder.sub(other_count, done))
            other_block = _masked_load(builder, address, taken, fill)
            equal = []
            for lane in range(_LANES):
                other = builder.extract_element(other_block, ir.Constant(_I32, lane))
                equal.append(builder.icmp_signed("==", block, broadcast(builder, other, _LANES)))
            while len(equal) > 1:
                equal = [builder.or_(*pair) for pair in zip(equal[::2], equal[1::2], strict=True)]
            builder.store(builder.or_(builder.load(found), equal[0]), found)
        bits = builder.and_(builder.load(found), present)
        return builder.zext(builder.bitcast(bits, ir.IntType(_LANES)), I64)

    return signature, generate


@inlined
def _merged_count(a, i, i_stop, b, j, j_stop):  # type: ignore[no-untyped-def]
    count = np.int64(0)
    while i < i_stop and j < j_stop:
        left = a[i]
        right = b[j]
        count += np.int64(left == right)
        i += np.int64(left <= right)
        j += np.int64(right <= left)
    return count


@inlined
def _merged_sum(a, i, i_stop, b, j, j_stop, weights):  # type: ignore[no-untyped-def]
    total = 0.0
    while i < i_stop and j < j_stop:
        left = a[i]
        right = b[j]
        if left == right:
            total += weights[left]
        i += np.int64(left <= right)
        j += np.int64(right <= left)
    return total


@inlined
def _vector_count(a, i, i_stop, b, j, j_stop):  # type: ignore[no-untyped-def]
    """Count the common members of ``a[i:i_stop]`` and ``b[j:j_stop]``."""
    if min(i_stop - i, j_stop - j) > _SHORT:
        return _merged_count(a, i, i_stop, b, j, j_stop)
    count = np.int64(0)
    while i < i_stop:
        members = min(i_stop - i, _LANES)
        bits = _members_in(address_of(a) + 4 * i, members, address_of(b) + 4 * j, j_stop - j)
        count += count_ones(bits)
        i += members
    return count


@inlined
def _vector_sum(a, i, i_stop, b, j, j_stop, weights):  # type: ignore[no-untyped-def]
    """Add the weights of the common members, in ascending order."""
    if min(i_stop - i, j_stop - j) > _SHORT:
        return _merged_sum(a, i, i_stop, b, j, j_stop, weights)
    total = 0.0
    while i < i_stop:
        members = min(i_stop - i, _LANES)
        bits = _members_in(address_of(a) + 4 * i, members, address_of(b) + 4 * j, j_stop - j)
        while bits != 0:
            total += weights[a[i + trailing_zeros(bits)]]
            bits &= bits - np.uint64(1)
        i += members
    return total


common_count = _merged_count if JIT_DISABLED else _vector_count
common_sum = _merged_sum if JIT_DISABLED else _vector_sum
