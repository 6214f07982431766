"""Segments: runs of turns between shifts, or between boundaries that the user's texts show.

Boundaries that are detected are never shifts: they cut segments, and recovery is not asked there.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels import distinct_counts_ragged, idf_cosine_counted_csr, jaccard_csr

from fastscore.suites.preference_shift.concepts import Concepts, Sets, gather_sets
from fastscore.suites.preference_shift.nearness import consecutive_cosines
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.preference_shift.topics import topic_sets

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

Counted = tuple[npt.NDArray[np.int32], Indices, Indices]

SIMILARITY_SHIFT = 0.55
"""A user's text less similar to the one before it begins a segment."""

TOPIC_JACCARD_SHIFT = 0.35
"""So does one whose topics overlap less; two texts without topics do not overlap at all."""


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments of all conversations, in order.

    Parameters
    ----------
    of_turn
        The segment of each turn, int64 (turns,), ascending.
    start
        The first turn's row of each segment, int64 (segments,).
    """

    of_turn: Indices
    start: Indices

    def __len__(self) -> int:
        return len(self.start)


def find_segments(
    turns: pl.DataFrame,
    dialogues: pl.DataFrame,
    shifts: pl.DataFrame,
    user: Sets,
    vectors: "VectorView",
    options: PreferenceShift,
) -> Segments:
    """Cut conversations at their shifts or, without shift metadata, at detected boundaries.

    Parameters
    ----------
    turns, dialogues, shifts
        The frames of `read_logs`.
    user
        The user's concepts, a set a turn.
    vectors
        Vectors of the user's texts where there is no metadata.
    options
        How boundaries are detected.
    """
    owner = turns["dialogue_row"].to_numpy()
    begins = np.ones(len(owner), np.bool_)
    begins[1:] = owner[1:] != owner[:-1]
    detects = ~dialogues["has_shift_metadata"].to_numpy()[owner]
    if options.segments != "metadata":
        inner = np.flatnonzero(detects & ~begins)
        begins[inner[_departs(turns["user_text"], inner, user, vectors, options)]] = True
    begins[shift_rows(owner, shifts)] = True
    return Segments(np.cumsum(begins) - 1, np.flatnonzero(begins))


def shift_rows(owner: Indices, shifts: pl.DataFrame) -> Indices:
    """Return the rows of turns that are shift points; points beyond the last turn have none.

    Parameters
    ----------
    owner
        The conversation of each turn, int64 (turns,), ascending.
    shifts
        ``dialogue_row`` and ``turn`` of each shift point.
    """
    of_shift, turn = shifts["dialogue_row"].to_numpy(), shifts["turn"].to_numpy()
    first = np.searchsorted(owner, of_shift)
    inside = turn <= np.searchsorted(owner, of_shift, side="right") - first
    rows: Indices = first[inside] + turn[inside] - 1
    return rows


def _departs(
    texts: pl.Series,
    rows: Indices,
    user: Sets,
    vectors: "VectorView",
    options: PreferenceShift,
) -> Mask:
    """Whether the user's text in these rows has little to do with the one before it."""
    if not len(rows):
        return np.zeros(0, np.bool_)
    sets = topic_sets(texts) if options.segments == "heuristic" else user
    overlap = jaccard_csr(gather_sets(sets, rows - 1), gather_sets(sets, rows), both_empty=0.0)
    similarity = consecutive_cosines(texts, rows, vectors)
    away: Mask = (similarity < SIMILARITY_SHIFT) | (overlap < TOPIC_JACCARD_SHIFT)
    return away


def segment_scores(
    segments: Segments, user: Sets, system: Sets, concepts: Concepts
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], Sets, Sets]:
    """Score segments as if each were one turn.

    Returns
    -------
    tuple
        CC of the unions of sets and CR of the sums of vectors, float64 (segments,) each; the
        union of the user's sets and that of the system's.
    """
    of_user, of_system = _merge_sets(segments, user), _merge_sets(segments, system)
    cosine = idf_cosine_counted_csr(of_user, of_system, concepts.idf)
    user_sets, system_sets = (of_user[0], of_user[2]), (of_system[0], of_system[2])
    return jaccard_csr(user_sets, system_sets), cosine, user_sets, system_sets


def _merge_sets(segments: Segments, sets: Sets) -> Counted:
    """Return the distinct members of each segment's sets, and how many turns have each."""
    values, offsets = sets
    bounds = offsets[np.append(segments.start, len(offsets) - 1)]
    united: Counted = distinct_counts_ragged(values, bounds)
    return united
