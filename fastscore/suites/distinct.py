"""Numbers for the distinct texts of a column, so that each of them is worked on once."""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels._jit import first_use, inlined, kernel

Indices = npt.NDArray[np.int64]


def distinct(values: pl.Series) -> tuple[Indices, pl.Series]:
    """Give the distinct texts of a column numbers, by first appearance.

    Returns
    -------
    tuple
        Each row's number, int64 (n,), and the distinct texts. Two of them are equal only in the
        event of a collision of 64-bit hashes, which makes every row a text of its own.
    """
    first_use(__name__, _compile)
    codes, firsts = _number(values.hash().to_numpy())
    found = values.gather(firsts)
    if not found.gather(codes).equals(values, null_equal=True):
        return np.arange(len(values)), values
    return codes, found


def _compile() -> None:
    _number(np.zeros(1, np.uint64))


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
