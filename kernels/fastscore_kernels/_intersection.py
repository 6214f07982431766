"""Intersection of two ascending sequences of int32: its size, and the sum of its weights.

Where one of them is short, sixteen of its members are compared with each of the other's at once, so
that nothing branches on the values; long ones are merged. Without compilation all are merged.
"""

from typing import Any

import numpy as np
from fastscore_jit import llvm
from fastscore_jit.bits import count_ones, trailing_zeros
from fastscore_jit.compiling import JIT_DISABLED, always_inlined, inlined, instruction
from fastscore_jit.memory import address_of

_LANES = 16
_ITEM_BYTES = 4
_SHORT = 64


def _first_lanes(builder: Any, count: Any) -> Any:
    """Return the mask of the first ``count`` lanes, all of them where it is more."""
    lanes = llvm.constant(llvm.vector(32, _LANES), list(range(_LANES)))
    limit = llvm.broadcast(builder, builder.trunc(count, llvm.number(32)), _LANES)
    return builder.icmp_signed("<", lanes, limit)


def _masked_load(builder: Any, address: Any, mask: Any, fill: Any) -> Any:
    """Load the masked lanes from an address; the others are not touched and get the fill."""
    members = llvm.vector(32, _LANES)
    place, alignment = (
        llvm.pointer(builder, address, members),
        llvm.constant(llvm.number(32), _ITEM_BYTES),
    )
    given = [place, alignment, mask, fill]
    return llvm.call(builder, "llvm.masked.load.v16i32.p0", members, given)


@instruction("int64, int64, int64, int64 -> uint64")
def _membership_mask(builder: Any, members: Any, count: Any, others: Any, other_count: Any) -> Any:
    """Tell by bits which of up to sixteen members are among the others, all given by address."""
    bits = llvm.vector(1, _LANES)
    present = _first_lanes(builder, count)
    block = _masked_load(builder, members, present, llvm.constant(llvm.vector(32, _LANES), 0))
    found = llvm.variable(builder, bits)
    builder.store(llvm.constant(bits, 0), found)
    blocks = builder.udiv(builder.add(other_count, llvm.integer(_LANES - 1)), llvm.integer(_LANES))
    with llvm.loop(builder, blocks) as loop:
        done = builder.mul(loop.index, llvm.integer(_LANES))
        address = builder.add(others, builder.mul(done, llvm.integer(_ITEM_BYTES)))
        # Lanes past the end repeat the first member, which changes nothing.
        first = llvm.load(builder, address, llvm.number(32), _ITEM_BYTES)
        taken = _first_lanes(builder, builder.sub(other_count, done))
        other_block = _masked_load(builder, address, taken, llvm.broadcast(builder, first, _LANES))
        equal = []
        for lane in range(_LANES):
            other = builder.extract_element(other_block, llvm.constant(llvm.number(32), lane))
            equal.append(builder.icmp_signed("==", block, llvm.broadcast(builder, other, _LANES)))
        while len(equal) > 1:
            equal = [builder.or_(*pair) for pair in zip(equal[::2], equal[1::2], strict=True)]
        builder.store(builder.or_(builder.load(found), equal[0]), found)
    common = builder.and_(builder.load(found), present)
    return builder.zext(builder.bitcast(common, llvm.number(_LANES)), llvm.number(64))


@always_inlined
def _membership_bits(a, i, members, b, j, others):  # type: ignore[no-untyped-def]
    """Tell by bits which members from ``a[i]`` on, sixteen at most, are among those of ``b``."""
    ours, theirs = (
        address_of(a, _ITEM_BYTES * i, _ITEM_BYTES * members),
        address_of(b, _ITEM_BYTES * j, _ITEM_BYTES * others),
    )
    return _membership_mask(ours, members, theirs, others)


@inlined
def _merged_size(a, i, i_stop, b, j, j_stop):  # type: ignore[no-untyped-def]
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
def _vector_size(a, i, i_stop, b, j, j_stop):  # type: ignore[no-untyped-def]
    """Count the common members of ``a[i:i_stop]`` and ``b[j:j_stop]``."""
    if min(i_stop - i, j_stop - j) > _SHORT:
        return _merged_size(a, i, i_stop, b, j, j_stop)
    count = np.int64(0)
    while i < i_stop:
        members = min(i_stop - i, _LANES)
        bits = _membership_bits(a, i, members, b, j, j_stop - j)
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
        bits = _membership_bits(a, i, members, b, j, j_stop - j)
        while bits != 0:
            total += weights[a[i + trailing_zeros(bits)]]
            bits &= bits - np.uint64(1)
        i += members
    return total


intersection_size = _merged_size if JIT_DISABLED else _vector_size
intersection_sum = _merged_sum if JIT_DISABLED else _vector_sum
