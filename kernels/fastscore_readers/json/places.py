"""Wanted places in nested JSON values as columns, found in one walk over each value."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, UInt8Array

from fastscore_readers.json.shapes import Shape, plan_of
from fastscore_readers.json.texts import WalkedTexts, walk_texts
from fastscore_readers.json.walk import parted

__all__ = ["Place", "Shape", "find_places"]


@dataclass(frozen=True, slots=True)
class Place:
    r"""The values that stand at one place of a shape.

    Parameters
    ----------
    tags
        Type of each value, as in `lines`, uint8 (n,); ``ABSENT`` where the object has no such
        member, or there is no object.
    start, end
        Its bytes, a string's inside its quotes, int64 (n,); meaningless where it is absent.
    owner
        The row of the array in which it or its object is an element, among that array's values,
        ascending; of the root and its members the row itself; int64 (n,).
    members
        The places of its members, each of n values.
    elements
        The place of its elements, if its shape is a list.
    numbered_escapes
        Whether any string of the root's values, or any key, is written with ``\u``.
    """

    tags: UInt8Array
    start: Int64Array
    end: Int64Array
    owner: Int64Array
    members: dict[str, "Place"]
    elements: "Place | None"
    numbered_escapes: bool


def find_places(
    data: npt.ArrayLike,
    starts: npt.ArrayLike,
    ends: npt.ArrayLike,
    shape: Shape,
    *,
    is_utf8: bool = False,
) -> tuple[Place, Int64Array]:
    """Find the values of a shape in byte ranges that hold one JSON value each.

    Parameters
    ----------
    data
        The bytes, uint8.
    starts, ends
        The ranges, int64 (n,); in a blank one the root is absent.
    shape
        What is wanted; keys of one object are distinct.
    is_utf8
        Whether the bytes are known to be UTF-8; then that is not checked.

    Returns
    -------
    tuple
        The root's place, of n values; and the ranges that are not one JSON value, with which the
        root is absent. Validity is that of Python's ``json``, but for the two limits that
        `scan_jsonl` has; of equal keys the last counts.
    """
    plan = plan_of(shape)
    walked = walk_texts(data, starts, ends, plan, is_utf8)
    noted = _Noted(walked, plan.elements.size)
    return noted.place(shape, np.arange(np.size(starts))), walked.faulty


class _Noted:
    """What was noted of texts, from which places are made in the order of the plan."""

    def __init__(self, walked: WalkedTexts, n_places: int) -> None:
        n, self.numbered = walked.n_notes, walked.numbered
        place, self.parent = walked.notes.place[:n], walked.notes.parent[:n]
        # few bits sort faster
        by_place = np.argsort(place.astype(np.min_scalar_type(-n_places)), kind="stable")
        begins = np.searchsorted(place[by_place], np.arange(n_places))
        notes = np.split(by_place, begins)[1:]
        self.rows = np.empty(n, np.int64)
        self.rows[notes[0]], shifts = walked.lines.reshape(-1, 2).T
        self.tags, self.start, self.end = parted(walked.notes.value[:n])
        shift = np.repeat(shifts, np.diff(notes[0], append=n))
        self.start += shift
        self.end += shift
        self.notes = iter(notes)
        self.inside = next(self.notes)

    def place(self, shape: Shape, owner: Int64Array) -> Place:
        """Return the values at the next place, one an owner or none, and below it."""
        notes = self.inside
        rows = self.rows[notes]
        tags, (start, end) = np.zeros(owner.size, np.uint8), np.zeros((2, owner.size), np.int64)
        tags[rows], start[rows], end[rows] = self.tags[notes], self.start[notes], self.end[notes]
        members: dict[str, Place] = {}
        elements = None
        if isinstance(shape, Mapping):
            for key, wanted in shape.items():
                above = self._next()
                self.rows[self.inside] = above
                members[key] = self.place(wanted, owner)
        elif shape is not None:
            above = self._next()
            self.rows[self.inside] = np.arange(above.size)
            elements = self.place(shape[0], above)
        return Place(tags, start, end, owner, members, elements, self.numbered)

    def _next(self) -> Int64Array:
        """Go on to the notes of the next place; return the rows that they stand in."""
        self.inside = next(self.notes)
        rows: Int64Array = self.rows[self.parent[self.inside]]
        return rows
