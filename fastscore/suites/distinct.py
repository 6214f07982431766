"""Numbers for the distinct texts of a column, or rows, so that each is worked on once."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import number_hashes, number_texts

_MOST = 1 << 63

Indices = npt.NDArray[np.int64]


def distinct(values: pl.Series) -> tuple[Indices, pl.Series]:
    """Give the distinct texts of a column numbers, by first appearance.

    Returns
    -------
    tuple
        Each row's number, int64 (n,), and the distinct texts; a null is a text of its own.
    """
    codes, firsts = number_texts(values)
    return codes, values[firsts]


def distinct_rows(columns: Sequence[Indices]) -> tuple[Indices, Indices]:
    """Give distinct rows of numbers that are not negative numbers, by first appearance.

    Parameters
    ----------
    columns
        At least one, int64 (n,) each; the most numbers of two neighbours multiply to an int64.

    Returns
    -------
    tuple
        Each row's number, int64 (n,), and the first row of each number, ascending.
    """
    numbers, most = columns[0], int(columns[0].max(initial=0)) + 1
    for column in columns[1:]:
        size = int(column.max(initial=0)) + 1
        if most * size > _MOST:
            numbers, firsts = number_hashes(numbers.astype(np.uint64))
            most = len(firsts)
        numbers, most = numbers * size + column, most * size
    codes, firsts = number_hashes(numbers.astype(np.uint64))
    return codes, firsts
