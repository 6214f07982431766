"""Levenshtein distance of two columns of strings, over Unicode code points."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_kernels._jit import first_use, kernel
from fastscore_kernels._myers import single_distance
from fastscore_kernels._threads import run_chunks
from fastscore_kernels._utf8 import code_points, strip_common
from fastscore_kernels._validate import read_only, same_length
from fastscore_kernels.arrow import StringColumn, string_column

_ROWS_PER_CHUNK = 1 << 13


def levenshtein_pairs(a: Any, b: Any, *, threads: int | None = None) -> npt.NDArray[np.int32]:
    """Compute the edit distance of each pair of rows: insertions, deletions, substitutions.

    Parameters
    ----------
    a, b
        Columns of as many strings each, without nulls: Arrow arrays (string, large_string,
        string_view, dictionaries of them), polars Series, or sequences of ``str``.
    threads
        None for one a processor.

    Returns
    -------
    int32 (n,)
        Unit-cost distance in code points; no normalisation, case and white space count.
    """
    column_a, column_b = _columns(a, b)
    out = np.empty(len(column_a), np.int32)
    _run(column_a, column_b, out, np.empty(0), threads)
    return out


def levenshtein_similarity_pairs(
    a: Any, b: Any, *, threads: int | None = None
) -> npt.NDArray[np.float64]:
    """Compute ``1 - distance / length of the longer``, in code points.

    Parameters
    ----------
    a, b
        As `levenshtein_pairs`.
    threads
        None for one a processor.

    Returns
    -------
    float64 (n,)
        From 0 to 1, the double that Python's ``max(0.0, 1.0 - distance / longest)`` gives; 0.0
        where both are empty.
    """
    column_a, column_b = _columns(a, b)
    out = np.empty(len(column_a), np.float64)
    _run(column_a, column_b, np.empty(len(column_a), np.int32), out, threads)
    return out


def _columns(a: Any, b: Any) -> tuple[StringColumn, StringColumn]:
    column_a, column_b = string_column("a", a), string_column("b", b)
    same_length("a", len(column_a), "b", len(column_b))
    first_use(__name__, _compile)
    return column_a, column_b


def _run(
    a: StringColumn,
    b: StringColumn,
    distance: npt.NDArray[np.int32],
    similarity: npt.NDArray[np.float64],
    threads: int | None,
) -> None:
    def work(start: int, stop: int) -> None:
        _distances(a.data, a.offsets, b.data, b.offsets, start, stop, distance)
        if similarity.size:
            _similarities(a.data, a.offsets, b.data, b.offsets, start, stop, distance, similarity)

    run_chunks(work, len(a), chunk=_ROWS_PER_CHUNK, threads=threads)


def _compile() -> None:
    data, offsets = read_only(np.zeros(0, np.uint8)), read_only(np.zeros(1, np.int64))
    distance, similarity = np.empty(0, np.int32), np.empty(0)
    _distances(data, offsets, data, offsets, 0, 0, distance)
    _similarities(data, offsets, data, offsets, 0, 0, distance, similarity)


@kernel(fastmath=False)
def _distances(a, a_offsets, b, b_offsets, start, stop, out):  # type: ignore[no-untyped-def]
    for row in range(start, stop):
        a_start, a_stop, b_start, b_stop = strip_common(
            a, a_offsets[row], a_offsets[row + 1], b, b_offsets[row], b_offsets[row + 1]
        )
        if a_start == a_stop:
            out[row] = code_points(b, b_start, b_stop)
        elif b_start == b_stop:
            out[row] = code_points(a, a_start, a_stop)
        else:
            out[row] = single_distance(a, a_start, a_stop, b, b_start, b_stop)


@kernel(fastmath=False)
def _similarities(  # type: ignore[no-untyped-def]
    a, a_offsets, b, b_offsets, start, stop, distance, out
):
    for row in range(start, stop):
        longest = max(
            code_points(a, a_offsets[row], a_offsets[row + 1]),
            code_points(b, b_offsets[row], b_offsets[row + 1]),
        )
        if longest == 0:
            out[row] = 0.0
        else:
            out[row] = max(0.0, 1.0 - np.float64(distance[row]) / np.float64(longest))
