"""Cosines of rows of a vector view, and their mean over sampled pairs of each group.

Rows are L2-normalised by the caller, so that a dot product is the cosine. Terms are multiplied
and added in float32, in an order that depends on the number of columns alone: never on the
chunk, the thread or the other rows of a call.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.compiling import kernel
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_matrix, as_offsets, as_rows, read_only, same_length

from fastscore_kernels._dot import dot_rows
from fastscore_kernels.ragged import group_rows
from fastscore_kernels.sampling import mt19937_pairs

_PAIRS_PER_CHUNK = 1 << 14
_QUERIES_PER_CHUNK = 1 << 15
_DOTS_PER_CHUNK = 1 << 16


class _Pairs(NamedTuple):
    """Distinct unordered pairs of a sample, ascending, and how often each was drawn, (pairs,)."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]


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
        None for one a processor.

    Returns
    -------
    float64 (n,)
        Within 1e-6 of the dot product in double precision for normalised rows.

    Raises
    ------
    IndexError
        A row number is negative or too large.
    """
    vectors = as_matrix("matrix", matrix)
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

    The pairs are `mt19937_pairs(size, pairs, seed)` for a group of that size; each group draws
    anew from the seed. Equal pairs are multiplied once and weighted.

    Parameters
    ----------
    matrix : float32 (texts, dim)
        C-contiguous; rows L2-normalised.
    rows : int (members,)
        Row numbers of all groups' members, duplicates kept.
    offsets : int (groups + 1,)
        Group ``g`` has the members ``rows[offsets[g]:offsets[g + 1]]``.
    pairs
        Pairs to draw a group, at least 1.
    seed
        Seed of the generator.
    threads
        None for one a processor.

    Returns
    -------
    float64 (groups,)
        0.0 for a group of fewer than two members.
    """
    vectors = as_matrix("matrix", matrix)
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

    Equal pairs of row and candidate are multiplied once, in whichever groups they meet.

    Parameters
    ----------
    matrix : float32 (texts, dim)
        C-contiguous; rows L2-normalised.
    rows : int (n,)
        Row number that asks.
    groups : int (n,)
        The group that each asks; -1 for none.
    candidates : int (m,)
        Row numbers of all candidates.
    offsets : int (groups + 1,)
        Group ``g`` has the candidates ``candidates[offsets[g]:offsets[g + 1]]``.
    threads
        None for one a processor.

    Returns
    -------
    cosine : float64 (n,)
        The greatest cosine; NaN where there is no candidate.
    position : int64 (n,)
        Place of the first such candidate within its group; -1 where there is none.
    """
    vectors = as_matrix("matrix", matrix)
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
    """Write the mean cosine of so many pairs of each group, whose members begin at its start."""
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
    """Answer the rows from place ``start`` of the order on, equal ones one after the other."""
    rows, group_of, order = asked
    candidates, offsets = groups
    # the cosine of each candidate that the present row has been multiplied with
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
