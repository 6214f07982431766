"""Similarity by meaning: the cosine of two texts' vectors, never below 0.

Every distinct text has one vector, whichever metrics compare it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import cosine_pairs, max_cosine_ragged

from fastscore.suites.base import Events
from fastscore.suites.distinct import distinct
from fastscore.suites.group_travel.terms import NULLS
from fastscore.suites.ragged import Ragged, group_rows

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

Indices = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_LONGEST_NULL = max(map(len, NULLS))
_COMPARED = {
    "pairs": "preference",
    "synthesis_texts": "text",
    "resolutions": "text",
    "plan_lines": "text",
    "choice_places": "text",
    "choice_targets": "text",
    "place_texts": "text",
}
"""By frame of the events the column whose texts are compared."""


def number_compared(frames: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Give the texts that are compared by meaning numbers.

    Returns
    -------
    dict of pl.DataFrame
        ``compared``, their distinct ``text``; and the frames that they stand in, with the row of
        each in ``compared``, -1 for one that stands for nothing: it has no similarity.
    """
    columns = [frames[name][column].rename("text") for name, column in _COMPARED.items()]
    codes, texts = distinct(pl.concat(columns))
    said = _say_something(texts)
    rows = np.where(said, np.cumsum(said) - 1, -1)[codes]
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    return {
        **{
            name: frames[name].with_columns(pl.Series("compared", part))
            for name, part in zip(_COMPARED, np.split(rows, cuts), strict=True)
        },
        "compared": texts.filter(pl.Series(said)).to_frame("text"),
    }


def _say_something(texts: pl.Series) -> Mask:
    """Tell which texts are more than a stand-in for nothing, such as N/A."""
    start = texts.str.strip_chars().str.head(_LONGEST_NULL + 1).str.to_lowercase()
    said: Mask = (~start.is_in(NULLS)).to_numpy()
    return said


@dataclass(frozen=True, slots=True)
class Similarity:
    """Similarities of the texts of events; all of them are NaN without vectors.

    Attributes
    ----------
    matrix : float32 (texts, dim)
        The vectors.
    rows
        By frame the row of each text in `matrix`, int64 (n,), -1 for one that stands for nothing;
        empty without vectors.
    is_on
        Whether there are vectors.
    """

    matrix: npt.NDArray[np.float32]
    rows: Mapping[str, Indices]
    is_on: bool

    @classmethod
    def of(cls, events: Events, vectors: "VectorView") -> "Similarity":
        """Find the vectors of the events' texts."""
        is_on = len(vectors) > 0
        rows: dict[str, Indices] = {}
        if is_on:
            row_of = np.append(vectors.codes(events.frames["compared"]["text"]), -1).astype(
                np.int64
            )
            rows = {name: row_of[events.frames[name]["compared"].to_numpy()] for name in _COMPARED}
        return cls(vectors.matrix, rows, is_on)

    def grouped(self, name: str, owners: pl.Series, n_owners: int) -> Ragged:
        """Return for each owner the rows of its texts in a frame that say something."""
        if not self.is_on:
            return np.zeros(0, np.int64), np.zeros(n_owners + 1, np.int64)
        rows = self.rows[name]
        said = rows >= 0
        order, offsets = group_rows(owners.to_numpy()[said], n_owners)
        return rows[said][order], offsets

    def nearest(self, rows: Indices, candidates: Ragged, owners: Indices) -> Reals:
        """Return the greatest similarity of each text to the candidates of its owner.

        Parameters
        ----------
        rows : int64 (n,)
            Rows of `matrix`, negative for no text; ignored without vectors.
        candidates
            Rows of `matrix` by owner.
        owners : int64 (n,)
            Negative for no candidates.

        Returns
        -------
        float64 (n,)
            From 0 to 1; NaN where there is no text or no candidate.
        """
        if not self.is_on:
            return np.full(len(owners), np.nan)
        asked = np.where(rows >= 0, owners, -1)
        greatest, _ = max_cosine_ragged(
            self.matrix, np.maximum(rows, 0), asked, *candidates, threads=1
        )
        return np.where(np.isnan(greatest), np.nan, np.maximum(greatest, 0.0))

    def pairwise(self, rows: Indices, others: Indices) -> Reals:
        """Return the similarity of pairs of texts; NaN where either is negative."""
        found = np.full(len(others), np.nan)
        if not self.is_on:
            return found
        present = (rows >= 0) & (others >= 0)
        if present.any():
            cosines = cosine_pairs(self.matrix, rows[present], others[present], threads=1)
            found[present] = np.maximum(cosines, 0.0)
        return found


def reaches(similarity: Reals, threshold: float) -> Mask:
    """Tell which similarities reach a threshold, as float32; NaN reaches none."""
    reached: Mask = similarity.astype(np.float32) >= np.float32(threshold)
    return reached
