"""Numbers for the distinct texts of a column, so that each of them is worked on once."""

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import number_texts

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
