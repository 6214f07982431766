"""What of a cell could not be read, in a few words: it becomes a warning of the dialogue."""

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Mask

Counts = npt.NDArray[np.int64]


def faults(n_cells: int, *kinds: tuple[Mask, str]) -> pl.Series:
    """Return the fault of each cell, the first that applies; null for none."""
    found = pl.Series("fault", [None], dtype=pl.String).new_from_index(0, n_cells)
    for applies, words in reversed(kinds):
        if applies.any():
            found = found.set(pl.Series(applies), words)
    return found


def shortfalls(missed: Counts, of: Counts, words: str) -> pl.Series:
    """Say of how many parts of each cell something is true; null where of none."""
    found = pl.Series("fault", [None], dtype=pl.String).new_from_index(0, len(missed))
    rows = np.flatnonzero(missed)
    said = [f"{missed[row]} of {of[row]} {words}; left out" for row in rows.tolist()]
    return found.scatter(rows, said) if said else found


def warnings_of(cells: pl.DataFrame, column: pl.Expr) -> pl.DataFrame:
    """Return warnings: ``dialogue_row``, ``warning``.

    Parameters
    ----------
    cells
        ``dialogue_row``, ``line`` and ``fault``.
    column
        Names the column in which a cell stands.
    """
    return cells.drop_nulls("fault").select(
        "dialogue_row", pl.format("line {}, {}: {}", "line", column, "fault").alias("warning")
    )
