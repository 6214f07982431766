"""Cosines of rows of a matrix of vectors, and their mean over sampled pairs of each group.

The caller L2-normalises rows, so a dot product is the cosine. Terms are multiplied and added in
float32, in an order that depends only on the number of columns: never on the chunk, the thread or
the other rows of a call. Pairs are sampled as by Python's Mersenne Twister.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit import llvm
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined, inlined, instruction
from fastscore_jit.memory import address_of
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_offsets, as_rows, read_only, same_length

from fastscore_kernels.ragged import group_rows

_LANES = 16
_ACCUMULATORS = 4
_ITEM_BYTES = 4
_STRIDE = _LANES * _ACCUMULATORS


def _add_lanes(builder: Any, vector: Any) -> Any:
    """Add a vector's lanes pairwise: halves onto halves, down to one."""
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
    """Return the dot product of two rows, given by address and number of columns."""

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
    with llvm.loop(builder, strides) as index:
        start = builder.mul(index, llvm.integer(_STRIDE))
        for number, place in enumerate(sums):
            accumulate(builder.add(start, llvm.integer(number * _LANES)), place)
    done = builder.mul(strides, llvm.integer(_STRIDE))
    vectors = builder.udiv(builder.sub(columns, done), llvm.integer(_LANES))
    with llvm.loop(builder, vectors) as index:
        accumulate(builder.add(done, builder.mul(index, llvm.integer(_LANES))), sums[0])
    done = builder.add(done, builder.mul(vectors, llvm.integer(_LANES)))
    first, second, third, fourth = (builder.load(place) for place in sums)
    total = llvm.variable(builder, item)
    both = builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))
    builder.store(_add_lanes(builder, both), total)
    with llvm.loop(builder, builder.sub(columns, done)) as index:
        product = products(builder.add(done, index), item)
        builder.store(builder.fadd(builder.load(total), product), total)
    return builder.load(total)


@always_inlined
def dot_rows(matrix, a, b):  # type: ignore[no-untyped-def]
    """Return the dot product of two rows."""
    columns = matrix.shape[1]
    width = _ITEM_BYTES * columns
    return _dot(address_of(matrix, width * a, width), address_of(matrix, width * b, width), columns)


_STATE_WORDS = 624
_MIDDLE = 397


def mt19937_pairs(n: int, pairs: int, seed: int) -> npt.NDArray[np.int64]:
    """Draw index pairs exactly as ``random.Random(seed)`` does with ``randrange``.

    Each pair is ``i = randrange(n)``, ``j = randrange(n)``, and ``j = (j + 1) % n`` if both are
    equal: the sampler of babelbit's similarity baseline.

    Parameters
    ----------
    n
        Number of items, from 2 to 2**32.
    pairs
        Number of pairs, 0 or more.
    seed
        Any Python integer; its sign does not matter.

    Returns
    -------
    int64 (pairs, 2)
        Indices from 0 to ``n - 1``. The two of a pair always differ.
    """
    for name, value in (("n", n), ("pairs", pairs), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"`{name}` is {type(value).__name__}; expected an integer")
    if not 2 <= n <= 2**32:
        raise ValueError(f"`n` is {n}; expected 2 to 2**32 items")
    if pairs < 0:
        raise ValueError(f"`pairs` is {pairs}; expected 0 or more")
    out = np.empty((int(pairs), 2), np.int64)
    _draw_pairs(np.int64(n), np.int64(int(n).bit_length()), _seed_words(int(seed)), out)
    return out


def _seed_words(seed: int) -> npt.NDArray[np.uint32]:
    magnitude = abs(seed)
    words = max(1, -(-magnitude.bit_length() // 32))
    return read_only(np.frombuffer(magnitude.to_bytes(4 * words, "little"), np.dtype("<u4")))


@inlined
def _seed_state(key, state):  # type: ignore[no-untyped-def]
    """Fill the state from the seed's 32-bit words (Matsumoto and Nishimura's init_by_array)."""
    mask = np.uint64(0xFFFFFFFF)
    size = np.int64(_STATE_WORDS)
    state[0] = np.uint64(19650218)
    for i in range(1, size):
        previous = state[i - 1] ^ (state[i - 1] >> np.uint64(30))
        state[i] = (np.uint64(1812433253) * previous + np.uint64(i)) & mask
    i = 1
    j = 0
    for _ in range(max(size, key.size)):
        mixed = (state[i - 1] ^ (state[i - 1] >> np.uint64(30))) * np.uint64(1664525) & mask
        state[i] = ((state[i] ^ mixed) + np.uint64(key[j]) + np.uint64(j)) & mask
        i += 1
        j += 1
        if i >= size:
            state[0] = state[size - 1]
            i = 1
        if j >= key.size:
            j = 0
    for _ in range(size - 1):
        mixed = (state[i - 1] ^ (state[i - 1] >> np.uint64(30))) * np.uint64(1566083941) & mask
        state[i] = (((state[i] ^ mixed) | (mask + np.uint64(1))) - np.uint64(i)) & mask
        i += 1
        if i >= size:
            state[0] = state[size - 1]
            i = 1
    state[0] = np.uint64(0x80000000)


@inlined
def _refill(state):  # type: ignore[no-untyped-def]
    """Advance the whole state by one generation."""
    size = np.int64(_STATE_WORDS)
    for i in range(size):
        mixed = (state[i] & np.uint64(0x80000000)) | (state[(i + 1) % size] & np.uint64(0x7FFFFFFF))
        twisted = state[(i + _MIDDLE) % size] ^ (mixed >> np.uint64(1))
        if mixed & np.uint64(1):
            twisted ^= np.uint64(0x9908B0DF)
        state[i] = twisted


@inlined
def _temper(word):  # type: ignore[no-untyped-def]
    word ^= word >> np.uint64(11)
    word ^= (word << np.uint64(7)) & np.uint64(0x9D2C5680)
    word ^= (word << np.uint64(15)) & np.uint64(0xEFC60000)
    return (word ^ (word >> np.uint64(18))) & np.uint64(0xFFFFFFFF)


@kernel("int64, int64, uint32[:], out(int64[:, :])", fastmath=False)
def _draw_pairs(n, bits, key, out):  # type: ignore[no-untyped-def]
    """Write pairs (pairs, 2) of numbers below ``n``, which has ``bits`` bits, seeded by ``key``."""
    state = np.empty(_STATE_WORDS, np.uint64)
    _seed_state(key, state)
    position = np.int64(_STATE_WORDS)
    for row in range(out.shape[0]):
        for side in range(2):
            value = n
            while value >= n:
                # A draw of 33 bits (n = 2**32) takes a whole word, then the top bit of the next.
                low = np.int64(0)
                for part in range(1 if bits <= 32 else 2):
                    if position == _STATE_WORDS:
                        _refill(state)
                        position = np.int64(0)
                    word = np.int64(_temper(state[position]))
                    position += 1
                    if bits <= 32:
                        value = word >> (np.int64(32) - bits)
                    elif part == 0:
                        low = word
                    else:
                        value = ((word >> np.int64(31)) << np.int64(32)) | low
            out[row, side] = value
        if out[row, 0] == out[row, 1]:
            out[row, 1] = (out[row, 1] + 1) % n


_PAIRS_PER_CHUNK = 1 << 14
_QUERIES_PER_CHUNK = 1 << 15
_DOTS_PER_CHUNK = 1 << 16


class _Pairs(NamedTuple):
    """Distinct unordered pairs of a sample, ascending, and the count of each, (pairs,)."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]


def _as_matrix(name: str, matrix: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return a read-only view of a C-contiguous float32 matrix, without copying."""
    array = np.asarray(matrix)
    if array.ndim != 2 or array.dtype != np.float32 or not array.flags.c_contiguous:
        order = "C-contiguous" if array.flags.c_contiguous else "not C-contiguous"
        raise ValueError(
            f"`{name}` is {order}, dtype {array.dtype}, shape {array.shape}; expected a "
            "C-contiguous float32 matrix: use numpy.ascontiguousarray(matrix, numpy.float32)"
        )
    return read_only(array)


def cosine_pairs(
    matrix: npt.ArrayLike,
    rows_a: npt.ArrayLike,
    rows_b: npt.ArrayLike,
    *,
    threads: int | None = None,
) -> npt.NDArray[np.float64]:
    """Compute the dot product of pairs of rows, without gathering them.

    Parameters
    ----------
    matrix : float32 (texts, dim)
        C-contiguous; rows L2-normalised.
    rows_a, rows_b : int (n,)
        Row numbers of each pair.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    float64 (n,)
        Within 1e-6 of the dot product in double precision for normalised rows.

    Raises
    ------
    IndexError
        A row number is negative or too large.
    """
    vectors = _as_matrix("matrix", matrix)
    a = as_rows("rows_a", rows_a, len(vectors))
    b = as_rows("rows_b", rows_b, len(vectors))
    same_length("rows_a", a.size, "rows_b", b.size)
    out = np.empty(a.size, np.float64)
    run_chunks(
        lambda start, stop: _dots(vectors, a, b, start, stop, out),
        a.size,
        chunk=_PAIRS_PER_CHUNK,
        threads=threads,
    )
    return out


def mean_pair_cosine_groups(
    matrix: npt.ArrayLike,
    rows: npt.ArrayLike,
    offsets: npt.ArrayLike,
    pairs: int,
    seed: int,
    *,
    threads: int | None = None,
) -> npt.NDArray[np.float64]:
    """Compute the mean cosine over sampled pairs of members, for each group of texts.

    The pairs of a group are `mt19937_pairs(size, pairs, seed)`: each group restarts from the seed.
    Equal pairs are multiplied once and weighted.

    Parameters
    ----------
    matrix : float32 (texts, dim)
        C-contiguous; rows L2-normalised.
    rows : int (members,)
        Row numbers of all groups' members, duplicates kept.
    offsets : int (groups + 1,)
        Group ``g`` has the members ``rows[offsets[g]:offsets[g + 1]]``.
    pairs
        Pairs to draw per group, at least 1.
    seed
        Seed of the generator.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    float64 (groups,)
        0.0 for a group of fewer than two members.
    """
    vectors = _as_matrix("matrix", matrix)
    members = as_rows("rows", rows, len(vectors))
    bounds = as_offsets("offsets", offsets, members.size)
    if pairs < 1:
        raise ValueError(f"`pairs` is {pairs}; expected at least 1")
    out = np.zeros(bounds.size - 1, np.float64)
    sizes = np.diff(bounds)
    by_size = np.argsort(sizes, kind="stable")
    cuts = np.flatnonzero(np.diff(sizes[by_size])) + 1
    for groups in np.split(by_size, cuts):
        if groups.size and sizes[groups[0]] >= 2:
            drawn = _distinct_pairs(int(sizes[groups[0]]), pairs, seed)
            starts = read_only(bounds[groups])
            means = np.empty(groups.size)
            run_chunks(
                partial(_weighted_means, vectors, members, starts, drawn, pairs, means),
                groups.size,
                chunk=max(1, _DOTS_PER_CHUNK // drawn.first.size),
                threads=threads,
            )
            out[groups] = means
    return out


def max_cosine_ragged(
    matrix: npt.ArrayLike,
    rows: npt.ArrayLike,
    groups: npt.ArrayLike,
    candidates: npt.ArrayLike,
    offsets: npt.ArrayLike,
    *,
    threads: int | None = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Find, for each row, the nearest of the candidates in its group.

    Equal pairs of row and candidate are multiplied once, also across groups.

    Parameters
    ----------
    matrix : float32 (texts, dim)
        C-contiguous; rows L2-normalised.
    rows : int (n,)
        Row number of each query.
    groups : int (n,)
        The group that each query searches; -1 for none.
    candidates : int (m,)
        Row numbers of all candidates.
    offsets : int (groups + 1,)
        Group ``g`` has the candidates ``candidates[offsets[g]:offsets[g + 1]]``.
    threads
        Number of threads; None for one per processor.

    Returns
    -------
    cosine : float64 (n,)
        The highest cosine; NaN without candidates.
    position : int64 (n,)
        Position of the first such candidate within its group; -1 without candidates.
    """
    vectors = _as_matrix("matrix", matrix)
    queries = as_rows("rows", rows, len(vectors))
    choices = as_rows("candidates", candidates, len(vectors))
    bounds = as_offsets("offsets", offsets, choices.size)
    asked = as_rows("groups", groups, bounds.size - 1, least=-1)
    same_length("rows", queries.size, "groups", asked.size)
    best, position = np.empty(queries.size, np.float64), np.empty(queries.size, np.int64)
    order = read_only(group_rows(queries, len(vectors))[0])
    run_chunks(
        partial(_nearest, vectors, (queries, asked, order), (choices, bounds), best, position),
        queries.size,
        chunk=_QUERIES_PER_CHUNK,
        threads=threads,
    )
    return best, position


def _distinct_pairs(size: int, pairs: int, seed: int) -> _Pairs:
    drawn = mt19937_pairs(size, pairs, seed)
    low, high = drawn.min(axis=1), drawn.max(axis=1)
    keys, counts = np.unique(low * size + high, return_counts=True)
    first, second = np.divmod(keys, size)
    return _Pairs(read_only(first), read_only(second), read_only(counts.astype(np.float64)))


@kernel("float32[:, :], int64[:], int64[:], int64, int64, out(float64[:])", fastmath=False)
def _dots(matrix, rows_a, rows_b, start, stop, out):  # type: ignore[no-untyped-def]
    """Write the dot products of pairs ``start`` to ``stop``."""
    for pair in range(start, stop):
        out[pair] = dot_rows(matrix, rows_a[pair], rows_b[pair])


@kernel(
    "float32[:, :], int64[:], int64[:], _Pairs(int64[:], int64[:], float64[:]), int64, "
    "out(float64[:]), int64, int64",
    fastmath=False,
)
def _weighted_means(  # type: ignore[no-untyped-def]
    matrix, members, starts, drawn: _Pairs, pairs, means, start, stop
):
    """Write the weighted mean cosine of each group's pairs. Members begin at the group's offset."""
    first, second, weight = drawn
    for group in range(start, stop):
        origin = starts[group]
        total = 0.0
        for pair in range(first.size):
            cosine = dot_rows(matrix, members[origin + first[pair]], members[origin + second[pair]])
            total += weight[pair] * np.float64(cosine)
        means[group] = total / pairs


@kernel(
    "float32[:, :], (int64[:], int64[:], int64[:]), (int64[:], int64[:]), "
    "out(float64[:]), out(int64[:]), int64, int64",
    fastmath=False,
)
def _nearest(matrix, asked, groups, best, position, start, stop):  # type: ignore[no-untyped-def]
    """Search for the rows from ``start`` of the order on, in which equal rows are adjacent."""
    rows, group_of, order = asked
    candidates, offsets = groups
    # cached cosines of candidates with the current row
    cosines, known_to = np.empty(matrix.shape[0], np.float32), np.full(matrix.shape[0], -1)
    for place in range(start, stop):
        query = order[place]
        row, group = rows[query], group_of[query]
        greatest, nearest = np.nan, np.int64(-1)
        if group >= 0:
            for at in range(offsets[group], offsets[group + 1]):
                candidate = candidates[at]
                if known_to[candidate] != row:
                    known_to[candidate] = row
                    cosines[candidate] = dot_rows(matrix, row, candidate)
                cosine = np.float64(cosines[candidate])
                if cosine > greatest or (nearest < 0 and not np.isnan(cosine)):
                    greatest, nearest = cosine, at - offsets[group]
        best[query], position[query] = greatest, nearest
