"""Overlap of two sets per row, or of all sets of a group: Jaccard, cosine, differences.

A column of sets is a pair ``(values, offsets)``. Row ``i`` has the members
``values[offsets[i]:offsets[i + 1]]``, integers that strictly ascend within the row.

To intersect a short sequence with a long one, each member of one is compared with sixteen members
of the other at once, without branches on values. Long sequences are merged.
"""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit import llvm
from fastscore_jit.bits import count_ones, trailing_zeros
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined, inlined, instruction
from fastscore_jit.memory import address_of
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_offsets, as_vector, read_only, same_length

_LANES = 16
_ITEM_BYTES = 4
_SHORT = 64


def _first_lanes(builder: Any, count: Any) -> Any:
    """Return the mask of the first ``count`` lanes; of all lanes if ``count`` is larger."""
    lanes = llvm.constant(llvm.vector(32, _LANES), list(range(_LANES)))
    limit = llvm.broadcast(builder, builder.trunc(count, llvm.number(32)), _LANES)
    return builder.icmp_signed("<", lanes, limit)


def _masked_load(builder: Any, address: Any, mask: Any, fill: Any) -> Any:
    """Load the masked lanes from an address; other lanes get the fill value without an access."""
    members = llvm.vector(32, _LANES)
    place, alignment = (
        llvm.pointer(builder, address, members),
        llvm.constant(llvm.number(32), _ITEM_BYTES),
    )
    given = [place, alignment, mask, fill]
    return llvm.call(builder, "llvm.masked.load.v16i32.p0", members, given)


@instruction("int64, int64, int64, int64 -> uint64")
def _membership_mask(builder: Any, members: Any, count: Any, others: Any, other_count: Any) -> Any:
    """Mark which of up to sixteen members are among the others, both given by address."""
    bits = llvm.vector(1, _LANES)
    present = _first_lanes(builder, count)
    block = _masked_load(builder, members, present, llvm.constant(llvm.vector(32, _LANES), 0))
    found = llvm.variable(builder, bits)
    builder.store(llvm.constant(bits, 0), found)
    blocks = builder.udiv(builder.add(other_count, llvm.integer(_LANES - 1)), llvm.integer(_LANES))
    with llvm.loop(builder, blocks) as index:
        done = builder.mul(index, llvm.integer(_LANES))
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
    """Mark which members from ``a[i]`` on, at most sixteen, are among those of ``b``."""
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
def intersection_size(a, i, i_stop, b, j, j_stop):  # type: ignore[no-untyped-def]
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
def intersection_sum(a, i, i_stop, b, j, j_stop, weights):  # type: ignore[no-untyped-def]
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


_ROWS_PER_CHUNK = 1 << 15

Sets = tuple[npt.ArrayLike, npt.ArrayLike]
_Csr = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]


def intersection_size_csr(a: Sets, b: Sets, *, threads: int | None = None) -> npt.NDArray[np.int64]:
    """Count the common members of each pair of rows.

    Parameters
    ----------
    a, b : (int32 values, int64 offsets)
        Two columns with equal numbers of sets; see the module.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    int64 (n,)
    """
    left, right = _validate_pair(a, b)
    out = np.empty(left[1].size - 1, np.int64)
    _map_rows(partial(_intersections, *left, *right, out), out.size, threads)
    return out


def jaccard_csr(
    a: Sets, b: Sets, *, both_empty: float = 1.0, threads: int | None = None
) -> npt.NDArray[np.float64]:
    """Compute ``|A & B| / |A | B|`` of each pair of rows.

    Parameters
    ----------
    a, b : (int32 values, int64 offsets)
        Two columns of as many sets; see the module.
    both_empty
        The value if both sets are empty.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    float64 (n,)
        From 0 to 1; 0.0 if exactly one set is empty.
    """
    left, right = _validate_pair(a, b)
    out = np.empty(left[1].size - 1, np.float64)
    _map_rows(partial(_jaccard, *left, *right, float(both_empty), out), out.size, threads)
    return out


def idf_cosine_csr(
    a: Sets, b: Sets, idf: npt.ArrayLike, *, threads: int | None = None
) -> npt.NDArray[np.float64]:
    """Compute the cosine of two sets whose members are weighted by inverse document frequency.

    A row's vector has ``idf[v]`` for each of its members ``v``. The cosine is the sum of ``idf**2``
    over common members, divided by the square root of the product of both sets' sums.

    Parameters
    ----------
    a, b : (int32 values, int64 offsets)
        Two columns with equal numbers of sets; see the module. Values are indices of ``idf``.
    idf : float64 (terms,)
        Weight of each term.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    float64 (n,)
        From 0 to 1; 0.0 if a vector has length zero. NaN and infinity in ``idf`` propagate.
    """
    left, right = _validate_pair(a, b)
    weights: npt.NDArray[np.float64] = as_vector("idf", idf, np.float64)
    for name, (values, _) in (("a", left), ("b", right)):
        if values.size and (values.min() < 0 or values.max() >= weights.size):
            at = int(np.flatnonzero((values < 0) | (values >= weights.size))[0])
            raise IndexError(
                f"`{name}` holds the value {values[at]} at position {at}; expected places in "
                f"`idf`, 0 to {weights.size - 1}"
            )
    squares = read_only(weights * weights)
    out = np.empty(left[1].size - 1, np.float64)
    _map_rows(partial(_idf_cosine, *left, *right, squares, out), out.size, threads)
    return out


def set_difference_csr(
    a: Sets, b: Sets, *, threads: int | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Collect the members of each set of ``a`` that are not in the same row of ``b``.

    Parameters
    ----------
    a, b : (int32 values, int64 offsets)
        Two columns of as many sets; see the module.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    values : int32 (m,)
        Ascending within each row.
    offsets : int64 (n + 1,)
        Row ``i`` is ``values[offsets[i]:offsets[i + 1]]``.
    """
    left, right = _validate_pair(a, b)
    common = np.empty(left[1].size - 1, np.int64)
    _map_rows(partial(_intersections, *left, *right, common), common.size, threads)
    offsets = np.zeros(left[1].size, np.int64)
    np.cumsum(np.diff(left[1]) - common, out=offsets[1:])
    values = np.empty(int(offsets[-1]), np.int32)
    places = read_only(offsets)
    _map_rows(partial(_differences, *left, *right, places, values), common.size, threads)
    return values, offsets


def _validate_pair(a: Sets, b: Sets) -> tuple[_Csr, _Csr]:
    left, right = _validate_sets("a", a), _validate_sets("b", b)
    same_length("a", left[1].size - 1, "b", right[1].size - 1)
    return left, right


def _validate_sets(name: str, column: Sets) -> _Csr:
    if not isinstance(column, tuple) or len(column) != 2:
        raise TypeError(f"`{name}` is {type(column).__name__}; expected (values, offsets)")
    values = as_vector(f"{name}[0]", column[0], np.int32)
    offsets = as_offsets(f"{name}[1]", column[1], values.size)
    at = _first_disorder(values, offsets)
    if at >= 0:
        row = int(np.searchsorted(offsets, at, side="right")) - 1
        raise ValueError(
            f"`{name}` holds {values[at - 1]} then {values[at]} in row {row}, value {at}; "
            "expected values that strictly ascend within a row: sort them and drop duplicates"
        )
    return values, offsets


def _map_rows(work: Any, rows: int, threads: int | None) -> None:
    run_chunks(work, rows, chunk=_ROWS_PER_CHUNK, threads=threads)


@kernel("int32[:], int64[:]", returns="int64", fastmath=False)
def _first_disorder(values, offsets):  # type: ignore[no-untyped-def]
    """Return the first position whose value does not exceed the one before it in its row, or -1."""
    first = offsets[0]
    last = offsets[-1]
    falls = np.int64(0)
    # From zero on: the compiler does not vectorise an index that may be negative.
    later = values[min(first + 1, last) : last]
    earlier = values[first:last]
    for at in range(later.size):
        falls += np.int64(later[at] <= earlier[at])
    for row in range(1, offsets.size - 1):
        at = offsets[row]
        if offsets[row - 1] < at < last:
            falls -= np.int64(values[at] <= values[at - 1])
    if falls == 0:
        return np.int64(-1)
    for row in range(offsets.size - 1):
        for at in range(offsets[row] + 1, offsets[row + 1]):
            if values[at] <= values[at - 1]:
                return at
    return np.int64(-1)


@kernel("int32[:], int64[:], int32[:], int64[:], out(int64[:]), int64, int64", fastmath=False)
def _intersections(a, a_offsets, b, b_offsets, out, start, stop):  # type: ignore[no-untyped-def]
    """Write the number of common members of rows ``start`` to ``stop``, (n,)."""
    for row in range(start, stop):
        out[row] = intersection_size(
            a, a_offsets[row], a_offsets[row + 1], b, b_offsets[row], b_offsets[row + 1]
        )


@kernel(
    "int32[:], int64[:], int32[:], int64[:], float64, out(float64[:]), int64, int64", fastmath=False
)
def _jaccard(  # type: ignore[no-untyped-def]
    a, a_offsets, b, b_offsets, both_empty, out, start, stop
):
    """Write the Jaccard index of rows ``start`` to ``stop``, (n,)."""
    for row in range(start, stop):
        size_a = a_offsets[row + 1] - a_offsets[row]
        size_b = b_offsets[row + 1] - b_offsets[row]
        common = intersection_size(
            a, a_offsets[row], a_offsets[row + 1], b, b_offsets[row], b_offsets[row + 1]
        )
        union = size_a + size_b - common
        out[row] = both_empty if union == 0 else np.float64(common) / np.float64(union)


@kernel(
    "int32[:], int64[:], int32[:], int64[:], float64[:], out(float64[:]), int64, int64",
    fastmath=False,
)
def _idf_cosine(  # type: ignore[no-untyped-def]
    a, a_offsets, b, b_offsets, squares, out, start, stop
):
    """Write the cosine of rows ``start`` to ``stop``, (n,); ``squares`` are the squared weights."""
    for row in range(start, stop):
        i = a_offsets[row]
        j = b_offsets[row]
        i_stop = a_offsets[row + 1]
        j_stop = b_offsets[row + 1]
        norm_a = 0.0
        norm_b = 0.0
        for at in range(i, i_stop):
            norm_a += squares[a[at]]
        for at in range(j, j_stop):
            norm_b += squares[b[at]]
        dot = intersection_sum(a, i, i_stop, b, j, j_stop, squares)
        if norm_a == 0.0 or norm_b == 0.0:
            out[row] = 0.0
        else:
            out[row] = dot / np.sqrt(norm_a * norm_b)


@kernel(
    "int32[:], int64[:], int32[:], int64[:], int64[:], out(int32[:]), int64, int64", fastmath=False
)
def _differences(  # type: ignore[no-untyped-def]
    a, a_offsets, b, b_offsets, places, out, start, stop
):
    """Write the members of rows of ``a`` that are not in ``b``, from each row's offset on."""
    for row in range(start, stop):
        j = b_offsets[row]
        place = places[row]
        for i in range(a_offsets[row], a_offsets[row + 1]):
            while j < b_offsets[row + 1] and b[j] < a[i]:
                j += 1
            if j == b_offsets[row + 1] or b[j] != a[i]:
                out[place] = a[i]
                place += 1
