"""Similarity by meaning: the cosine of two texts' vectors, never below 0.

Every distinct text has one vector, whichever metrics compare it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import fastscore_kernels as kernels
import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices, Mask

from fastscore.suites.base import Events
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.terms import NULLS
from fastscore.suites.grouping import Ragged, factorize, group_rows

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

Rows = dict[str, Indices]

_LONGEST_NULL = max(map(len, NULLS))
_TARGETS = "choice_targets"
_COMPARED = {
    "pairs": "preference",
    "synthesis_texts": "text",
    "resolutions": "text",
    "plan_lines": "text",
    "choice_places": "text",
    _TARGETS: "text",
    "place_texts": "text",
}
"""By frame of the events the column whose texts are compared."""


def number_compared(
    frames: Mapping[str, pl.DataFrame], options: GroupTravel
) -> dict[str, pl.DataFrame]:
    """Give the texts that are compared by meaning numbers.

    Returns
    -------
    dict of pl.DataFrame
        ``compared``, their distinct ``text``, and ``windowed``, that of those that are read in
        windows; and their frames, with the row of each in the one or the other as
        ``compared``, -1 for a placeholder: it has no similarity.
    """
    in_windows = (_TARGETS,) if options.m12_long == "windows" else ()
    return {
        **_numbered(frames, [name for name in _COMPARED if name not in in_windows], "compared"),
        **_numbered(frames, in_windows, "windowed"),
    }


def _numbered(
    frames: Mapping[str, pl.DataFrame], names: Sequence[str], into: str
) -> dict[str, pl.DataFrame]:
    if not names:
        return {into: pl.DataFrame(schema={"text": pl.String})}
    columns = [frames[name][_COMPARED[name]].rename("text") for name in names]
    codes, texts = factorize(pl.concat(columns))
    has_text = _are_meaningful(texts)
    rows = np.where(has_text, np.cumsum(has_text) - 1, -1)[codes]
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    return {
        **{
            name: frames[name].with_columns(pl.Series("compared", part))
            for name, part in zip(names, np.split(rows, cuts), strict=True)
        },
        into: texts.filter(pl.Series(has_text)).to_frame("text"),
    }


def _are_meaningful(texts: pl.Series) -> Mask:
    """Tell which texts are more than a placeholder such as N/A."""
    start = texts.str.strip_chars().str.head(_LONGEST_NULL + 1).str.to_lowercase()
    has_text: Mask = (~start.is_in(NULLS)).to_numpy()
    return has_text


@dataclass(frozen=True, slots=True)
class Similarity:
    """Similarities of the texts of events; all of them are NaN without vectors.

    Attributes
    ----------
    matrix : float32 (texts, dim)
        The vectors.
    rows
        By frame the row of each text in `matrix`, int64 (n,), -1 for a placeholder;
        empty without vectors.
    is_on
        Whether there are vectors.
    target_of : int64 (choices + 1,)
        The row in `targets` of what M12 compares of each choice, -1 for nothing; the last entry is
        that of no choice.
    targets : float32 (targets, dim)
        Its vectors.
    """

    matrix: npt.NDArray[np.float32]
    rows: Mapping[str, Indices]
    is_on: bool
    target_of: Indices
    targets: npt.NDArray[np.float32]

    @classmethod
    def of(cls, events: Events, vectors: "VectorView") -> "Similarity":
        """Find the vectors of the events' texts."""
        if len(vectors) == 0:
            return cls(vectors.matrix, {}, False, np.full(1, -1), vectors.matrix)
        frames = events.frames
        windowed = vectors.windowed

        def rows_in(view: "VectorView", texts: pl.Series, names: Iterable[str]) -> Rows:
            row_of = np.append(view.codes(texts), -1).astype(np.int64)
            return {name: row_of[frames[name]["compared"].to_numpy()] for name in names}

        if frames["windowed"].is_empty():
            rows = rows_in(vectors, frames["compared"]["text"], _COMPARED)
            target_of = _last_of(frames[_TARGETS]["choice"].to_numpy(), rows[_TARGETS])
            return cls(vectors.matrix, rows, True, target_of, vectors.matrix)
        if windowed is None:
            raise TypeError("the view has no vectors of texts that are read in windows")
        names = [name for name in _COMPARED if name != _TARGETS]
        rows = rows_in(vectors, frames["compared"]["text"], names)
        parts = rows_in(windowed, frames["windowed"]["text"], [_TARGETS])[_TARGETS]
        target_of, targets = _join_windows(
            windowed.matrix, frames[_TARGETS]["choice"].to_numpy(), parts
        )
        return cls(vectors.matrix, rows, True, target_of, targets)

    def to_targets(self, rows: Indices, choices: Indices) -> Float64Array:
        """Return the similarity of texts to what M12 compares of choices, float64 (n,).

        NaN where either is negative or there is nothing.
        """
        found = np.full(len(choices), np.nan)
        if not self.is_on:
            return found
        targets = self.target_of[np.minimum(choices, len(self.target_of) - 1)]
        present = np.flatnonzero((rows >= 0) & (targets >= 0))
        asked, texts = np.unique(rows[present], return_inverse=True)
        chosen, others = np.unique(targets[present], return_inverse=True)
        both = np.concatenate((self.matrix[asked], self.targets[chosen]))
        cosines = kernels.cosine_pairs(both, texts, len(asked) + others, threads=1)
        found[present] = np.maximum(cosines, 0.0)
        return found

    def grouped(self, name: str, owners: pl.Series, n_owners: int) -> Ragged:
        """Return for each owner the rows of its texts in a frame that say something."""
        if not self.is_on:
            return np.zeros(0, np.int64), np.zeros(n_owners + 1, np.int64)
        rows = self.rows[name]
        has_text = rows >= 0
        order, offsets = group_rows(owners.to_numpy()[has_text], n_owners)
        return rows[has_text][order], offsets

    def nearest(self, rows: Indices, candidates: Ragged, owners: Indices) -> Float64Array:
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
        greatest, _ = kernels.max_cosine_ragged(
            self.matrix, np.maximum(rows, 0), asked, *candidates, threads=1
        )
        return np.where(np.isnan(greatest), np.nan, np.maximum(greatest, 0.0))

    def pairwise(self, rows: Indices, others: Indices) -> Float64Array:
        """Return the similarity of pairs of texts; NaN where either is negative."""
        found = np.full(len(others), np.nan)
        if not self.is_on:
            return found
        present = (rows >= 0) & (others >= 0)
        if present.any():
            cosines = kernels.cosine_pairs(self.matrix, rows[present], others[present], threads=1)
            found[present] = np.maximum(cosines, 0.0)
        return found


def _last_of(owners: Indices, rows: Indices) -> Indices:
    """Return each owner's row, and -1 for those without one and, at the end, for nobody."""
    found = np.full(int(owners.max(initial=-1)) + 2, -1, np.int64)
    found[owners] = rows
    return found


def _join_windows(
    sums: npt.NDArray[np.float32], owners: Indices, rows: Indices
) -> tuple[Indices, npt.NDArray[np.float32]]:
    """Add up the parts of each owner's text, and scale the sum to length 1."""
    has_text = rows >= 0
    joined, place = np.unique(owners[has_text], return_inverse=True)
    total = np.zeros((len(joined), sums.shape[1]))
    np.add.at(total, place, sums[rows[has_text]])
    lengths = np.sqrt(np.einsum("ij,ij->i", total, total))
    total /= np.where(lengths > 0, lengths, 1.0)[:, None]
    return _last_of(joined, np.arange(len(joined))), total.astype(np.float32)


def reaches(similarity: Float64Array, threshold: float) -> Mask:
    """Tell which similarities reach a threshold, as float32; NaN reaches none."""
    reached: Mask = similarity.astype(np.float32) >= np.float32(threshold)
    return reached
