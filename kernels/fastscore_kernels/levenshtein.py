"""Levenshtein distance of two columns of strings, over Unicode code points."""

from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.addressed_texts import locate_rows
from fastscore_jit.arrow import AddressedStrings, addressed_strings
from fastscore_jit.compiling import JIT_DISABLED
from fastscore_jit.stopping import StoppedError, interruptible, stop_flag
from fastscore_jit.threads import run_chunks, thread_count
from fastscore_jit.validation import same_length

from fastscore_kernels._lanes import lane_distances, similarities
from fastscore_kernels._long_texts import long_distances
from fastscore_kernels._myers import symbol_distance

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
    _write_distances(column_a, column_b, out, None, threads)
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
    _write_distances(column_a, column_b, np.empty(len(column_a), np.int32), out, threads)
    return out


def _columns(a: Any, b: Any) -> tuple[AddressedStrings, AddressedStrings]:
    column_a, column_b = addressed_strings("a", a), addressed_strings("b", b)
    same_length("a", len(column_a), "b", len(column_b))
    return column_a, column_b


def _write_distances(
    a: AddressedStrings,
    b: AddressedStrings,
    distance: npt.NDArray[np.int32],
    similarity: npt.NDArray[np.float64] | None,
    threads: int | None,
) -> None:
    def work(start: int, stop: int) -> None:
        rows = locate_rows(a, start, stop), locate_rows(b, start, stop)
        lane_distances(*rows, distance[start:stop])
        if distance[start:stop].min(initial=0) < 0:
            flag = stop_flag()
            interruptible(lambda: long_distances(*rows, flag, distance[start:stop]))
            # not by the flag: whoever set it may have taken it back
            if distance[start:stop].min() < 0:
                raise StoppedError
        if similarity is not None:
            similarities(*rows, distance[start:stop], similarity[start:stop])

    if JIT_DISABLED:
        thread_count(threads)
        _write_distances_plain(a, b, distance, similarity)
    else:
        run_chunks(work, len(a), chunk=_ROWS_PER_CHUNK, threads=threads)


def _write_distances_plain(
    a: AddressedStrings,
    b: AddressedStrings,
    distance: npt.NDArray[np.int32],
    similarity: npt.NDArray[np.float64] | None,
) -> None:
    """Compute in Python: nothing can be read by address where nothing is compiled."""
    for row, (left, right) in enumerate(zip(a.array.to_pylist(), b.array.to_pylist(), strict=True)):
        x, y = (np.array([ord(c) for c in text], np.int32) for text in (left, right))
        # all of two texts of a million characters would take days
        for _ in range(2):
            begin = _common_prefix(x, y)
            x, y = x[begin:][::-1], y[begin:][::-1]
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        distance[row] = symbol_distance(x, x.size, y, y.size)
        longest = max(len(left), len(right))
        if similarity is not None:
            similarity[row] = max(0.0, 1.0 - int(distance[row]) / longest) if longest else 0.0


def _common_prefix(a: npt.NDArray[np.int32], b: npt.NDArray[np.int32]) -> int:
    """Return how many symbols two sequences begin with alike."""
    shared = min(a.size, b.size)
    differing = np.flatnonzero(a[:shared] != b[:shared])
    return int(differing[0]) if differing.size else shared
