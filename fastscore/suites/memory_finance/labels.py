"""What labels mean, found once for each distinct one."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices

Meaning = TypeVar("Meaning")


def of_labels(
    numbers: Indices,
    labels: pl.Series,
    meaning: Callable[[Any], Meaning],
    otherwise: Meaning,
) -> npt.NDArray[Any]:
    """Return what the labels of a column mean.

    Parameters
    ----------
    numbers
        Row numbers of ``labels``, int64 (n,).
    labels
        The distinct texts; null for no text.
    meaning
        Makes a number, a boolean or a tuple of numbers of a text; called once for each label of the
        column.
    otherwise
        A value of the same type, which no row gets.

    Returns
    -------
    array (n,) or (n, m)
        The meaning of each row's label.
    """
    used = np.flatnonzero(np.bincount(numbers, minlength=len(labels)))
    table = np.array([otherwise] * len(labels) or [otherwise])
    for number in used.tolist():
        table[number] = meaning(labels[number])
    return table[numbers]
