"""Texts in lower case, joined to one, with the places at which each begins.

Python's own lower case is asked for, once for thousands of texts: what stands between two texts
is no letter, so that none changes for its neighbour.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices

CodePoints = npt.NDArray[np.uint32]

_CHARACTERS_PER_PART = 1 << 18
_GROWS = "\u0130"
"""The one character whose lower case is two code points."""


def cut_in_parts(texts: pl.Series) -> list[pl.Series]:
    """Cut texts into parts of about as many characters as should be joined at once."""
    ends = texts.str.len_chars().cast(pl.Int64).cum_sum().to_numpy()
    marks = np.arange(_CHARACTERS_PER_PART, ends[-1] if len(ends) else 0, _CHARACTERS_PER_PART)
    edges = [0, *np.searchsorted(ends, marks).tolist(), len(texts)]
    return [texts[low:high] for low, high in pairwise(edges) if low < high]


def join_lower(texts: pl.Series, mark: str) -> tuple[str, Indices]:
    """Join texts in lower case.

    Parameters
    ----------
    texts
        At least one string, without nulls.
    mark
        A character that is no letter; it is put before each text and after the last.

    Returns
    -------
    tuple
        The joined text, and the place in it of each mark that was put there, int64 (texts + 1,).
    """
    sizes = texts.str.len_chars() + texts.str.count_matches(_GROWS, literal=True)
    marks = np.concatenate(([0], np.cumsum(sizes.cast(pl.Int64).to_numpy() + 1)))
    return f"{mark}{texts.str.join(mark).item()}{mark}".lower(), marks


def code_points(text: str) -> CodePoints:
    """Return the code points of a text, read-only."""
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)
