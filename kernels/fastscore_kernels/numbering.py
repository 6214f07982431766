"""Numbers for distinct values, by first appearance."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_kernels._jit import first_use, inlined, kernel
from fastscore_kernels._validate import read_only

Longs = npt.NDArray[np.int64]


def number_hashes(hashes: npt.NDArray[np.uint64]) -> tuple[Longs, Longs]:
    """Give distinct hashes numbers by first appearance.

    Parameters
    ----------
    hashes
        uint64 (n,).

    Returns
    -------
    tuple of arrays
        Each row's number, int64 (n,); and the first row of each number, ascending.
    """
    if hashes.dtype != np.uint64 or hashes.ndim != 1:
        raise ValueError(
            f"hashes must be a vector of uint64, found {hashes.dtype} of shape {hashes.shape}"
        )
    compile_kernels()
    codes, firsts = _number(read_only(np.ascontiguousarray(hashes)))
    return codes, firsts


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    _number(read_only(np.zeros(1, np.uint64)))


@inlined
def _slot(value: Any, mask: Any) -> Any:
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(20)) & np.uint64(mask))


@kernel(fastmath=False)
def _number(hashes: Any) -> Any:
    """Give distinct hashes numbers by first appearance; find the first row of each."""
    size = 16
    while size < 2 * hashes.size:
        size *= 2
    table = np.full(size, -1, np.int64)
    codes, firsts = np.empty(hashes.size, np.int64), np.empty(hashes.size, np.int64)
    count = 0
    for row in range(hashes.size):
        slot = _slot(hashes[row], size - 1)
        while table[slot] >= 0 and hashes[firsts[table[slot]]] != hashes[row]:
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = count
            firsts[count] = row
            count += 1
        codes[row] = table[slot]
    return codes, firsts[:count].copy()
