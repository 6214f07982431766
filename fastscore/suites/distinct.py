"""Numbers for the distinct texts of a column, so that each of them is worked on once."""

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import number_hashes

Indices = npt.NDArray[np.int64]


def distinct(values: pl.Series) -> tuple[Indices, pl.Series]:
    """Give the distinct texts of a column numbers, by first appearance.

    Returns
    -------
    tuple
        Each row's number, int64 (n,), and the distinct texts. Two of them are equal only in the
        event of a collision of 64-bit hashes, which makes every row a text of its own.
    """
    codes, firsts = number_hashes(values.hash().to_numpy())
    found = values.gather(firsts)
    if not found.gather(codes).equals(values, null_equal=True):
        return np.arange(len(values)), values
    return codes, found
