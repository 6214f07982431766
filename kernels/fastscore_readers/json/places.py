"""Wanted places in nested JSON values as columns, found in one walk over each value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_readers.json.shapes import Shape, ShapePlan, plan_of
from fastscore_readers.json.texts import TextBlock, TextWalker
from fastscore_readers.json.walk import Columns, Tables, place_notes

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

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

    tags: Bytes
    start: Longs
    end: Longs
    owner: Longs
    members: dict[str, "Place"]
    elements: "Place | None"
    numbered_escapes: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """The values of a block of n texts: those of a place from its base on, numbered by grain."""

    columns: Columns
    bases: Longs
    owner_bases: Longs
    counts: Longs


def find_places(
    data: npt.ArrayLike,
    starts: npt.ArrayLike,
    ends: npt.ArrayLike,
    shape: Shape,
    *,
    is_utf8: bool = False,
) -> tuple[Place, Longs]:
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
    tables = plan_of(shape)
    walker = TextWalker(data, starts, ends, tables.plan, is_utf8)
    parts = [_part_of(block, tables) for block in walker.blocks()]
    # what is never walked has no values
    parts = parts or [_empty_part(tables)]
    reader = _Places(tables, parts, walker.numbered)
    return reader.place(0, shape), walker.faulty


def _part_of(block: TextBlock, shape: ShapePlan) -> _Part:
    """Put what was noted of a block into columns."""
    noted = block.room.notes.place[: block.n_notes]
    n_noted = np.bincount(noted[noted >= 0], minlength=shape.grain.size)
    elements = np.flatnonzero(shape.is_element)
    sizes = np.zeros(shape.n_grains, np.int64)
    sizes[shape.grain[elements]] = n_noted[elements]
    sizes[0] = block.n_texts
    part = _room(shape, sizes)
    tables = Tables(shape.grain, shape.is_element, part.bases, part.bases, part.owner_bases)
    counts = part.counts.copy()
    counts[1:] = 0
    place_notes(
        block.room.notes,
        tables,
        part.columns,
        block.room.slots,
        block.lines,
        counts,
        block.n_notes,
    )
    return replace(part, counts=counts)


def _room(shape: ShapePlan, sizes: Longs) -> _Part:
    of_place = sizes[shape.grain]
    bases, owner_bases = np.cumsum(of_place) - of_place, np.cumsum(sizes) - sizes
    starts, ends = np.empty((2, int(of_place.sum())), np.int64)
    columns = Columns(
        np.zeros(starts.size, np.uint8), starts, ends, np.empty(int(sizes.sum()), np.int64)
    )
    return _Part(columns, bases, owner_bases, sizes)


def _empty_part(shape: ShapePlan) -> _Part:
    return _room(shape, np.zeros(shape.n_grains, np.int64))


class _Places:
    """The places of a shape, whose values stand in parts."""

    def __init__(self, shape: ShapePlan, parts: Sequence[_Part], numbered: bool) -> None:
        self.shape, self.parts, self.numbered = shape, parts, numbered
        counts = np.stack([part.counts for part in parts])
        self.before = np.cumsum(counts, axis=0) - counts

    def place(self, place: int, shape: Shape, owner: Longs | None = None) -> Place:
        """Return the values at a place and below it."""
        grain = int(self.shape.grain[place])
        tags, start, end = (self._joined(of, place) for of in ("tags", "start", "end"))
        owner = np.arange(tags.size) if owner is None else owner
        members: dict[str, Place] = {}
        elements = None
        if isinstance(shape, Mapping):
            inner = self.shape.members_of(place)
            for below, (key, wanted) in zip(inner, shape.items(), strict=True):
                members[key] = self.place(below, wanted, owner)
        elif shape is not None:
            below = int(self.shape.plan.elements[place])
            elements = self.place(below, shape[0], self._owners(below, grain))
        return Place(tags, start, end, owner, members, elements, self.numbered)

    def _joined(self, of: str, place: int) -> npt.NDArray[Any]:
        grain = self.shape.grain[place]
        found = []
        for part in self.parts:
            base = part.bases[place]
            found.append(getattr(part.columns, of)[base : base + part.counts[grain]])
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _owners(self, place: int, of_arrays: int) -> Longs:
        """Return the rows of the arrays in which elements stand."""
        grain = self.shape.grain[place]
        found = []
        for part, before in zip(self.parts, self.before, strict=True):
            base = part.owner_bases[grain]
            owners = part.columns.owner[base : base + part.counts[grain]]
            found.append(owners + before[of_arrays])
        return np.concatenate(found)
