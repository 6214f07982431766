"""Wanted places in nested JSON values as columns, found in one walk over each value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.compiling import kernel
from fastscore_machine.views import item_at, put_item, signed

from fastscore_readers.json.shapes import Shape, ShapePlan, plan_of
from fastscore_readers.json.texts import WalkedTexts, walk_texts
from fastscore_readers.json.walk import Notes, note_of

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
    plan = plan_of(shape)
    walked = walk_texts(data, starts, ends, plan.plan, is_utf8)
    reader = _Places(plan, walked, np.size(starts))
    return reader.place(0, shape), walked.faulty


class _Places:
    """The values of a shape's places that were noted of n texts."""

    def __init__(self, shape: ShapePlan, walked: WalkedTexts, n_texts: int) -> None:
        self.shape, self.numbered = shape, walked.numbered
        noted = walked.notes.place[: walked.n_notes]
        n_noted = np.bincount(noted[noted >= 0], minlength=shape.grain.size)
        elements = np.flatnonzero(shape.is_element)
        self.counts = np.zeros(shape.n_grains, np.int64)
        self.counts[shape.grain[elements]] = n_noted[elements]
        self.counts[0] = n_texts
        of_place = self.counts[shape.grain]
        self.bases = np.cumsum(of_place) - of_place
        self.owner_bases = np.cumsum(self.counts) - self.counts
        starts, ends = np.empty((2, int(of_place.sum())), np.int64)
        self.columns = Columns(
            np.zeros(starts.size, np.uint8),
            starts,
            ends,
            np.empty(int(self.counts.sum()), np.int64),
        )
        place_notes(
            walked.notes,
            Tables(shape.grain, shape.is_element, self.bases, self.owner_bases),
            self.columns,
            np.empty(walked.n_notes, np.int64),
            walked.lines,
            np.zeros(shape.n_grains, np.int64),
            walked.n_notes,
        )

    def place(self, place: int, shape: Shape, owner: Longs | None = None) -> Place:
        """Return the values at a place and below it."""
        base, grain = int(self.bases[place]), self.shape.grain[place]
        own = slice(base, base + int(self.counts[grain]))
        columns = self.columns
        tags, start, end = columns.tags[own], columns.start[own], columns.end[own]
        owner = np.arange(tags.size) if owner is None else owner
        members: dict[str, Place] = {}
        elements = None
        if isinstance(shape, Mapping):
            inner = self.shape.members_of(place)
            for below, (key, wanted) in zip(inner, shape.items(), strict=True):
                members[key] = self.place(below, wanted, owner)
        elif shape is not None:
            below = int(self.shape.plan.elements[place])
            inside = self.shape.grain[below]
            first = int(self.owner_bases[inside])
            owners = columns.owner[first : first + int(self.counts[inside])]
            elements = self.place(below, shape[0], owners)
        return Place(tags, start, end, owner, members, elements, self.numbered)


class Tables(NamedTuple):
    """Where the values of each place go.

    Parameters
    ----------
    grain : int32 (places,)
        The grain of a place: the root and its members are of grain 0, elements of arrays and their
        members of one for each place of elements.
    is_element : int8 (places,)
        Whether its values are numbered, lines or elements; members are numbered as their object.
    base : int64 (places,)
        Where its value of number 0 goes.
    owner_base : int64 (grains,)
        Where the owner of a grain's value of number 0 goes.
    """

    grain: npt.NDArray[np.int32]
    is_element: npt.NDArray[np.int8]
    base: Longs
    owner_base: Longs


class Columns(NamedTuple):
    """Room for values: kinds, uint8, and bytes in the data; the rows of owners; int64."""

    tags: npt.NDArray[np.uint8]
    start: Longs
    end: Longs
    owner: Longs


_NOTED = "Notes(uint64[:], int32[:], int32[:])"
_TABLES = "Tables(int32[:], int8[:], int64[:], int64[:])"
_COLUMNS = "Columns(out(uint8[:]), out(int64[:]), out(int64[:]), out(int64[:]))"


@kernel(
    f"{_NOTED}, {_TABLES}, {_COLUMNS}, out(int64[:]), int64[:], out(int64[:]), int64",
    fastmath=False,
    allocates=False,
)
def place_notes(
    notes: Notes, tables: Tables, columns: Columns, slots: Any, lines: Any, counts: Any, count: Any
) -> None:
    """Put noted values into columns.

    ``lines`` (2 * rows,) are the number of each row and what is added to its bytes; ``counts``
    (grains,) how many elements of each grain there are already; ``slots`` room for a number a note.
    """
    line, shift = signed(0), signed(0)
    for note in range(count):
        place = signed(item_at(notes.place, note))
        if place < 0:
            continue
        grain = signed(item_at(tables.grain, place))
        parent = signed(item_at(notes.parent, note))
        if parent < 0:
            slot = signed(item_at(lines, 2 * line))
            shift = signed(item_at(lines, 2 * line + 1))
            line += 1
        elif item_at(tables.is_element, place) != 0:
            slot = signed(item_at(counts, grain))
            put_item(counts, grain, slot + 1)
            owner = item_at(tables.owner_base, grain) + slot
            put_item(columns.owner, owner, item_at(slots, parent))
        else:
            slot = signed(item_at(slots, parent))
        put_item(slots, note, slot)
        kind, start, end = note_of(item_at(notes.value, note))
        at = item_at(tables.base, place) + slot
        put_item(columns.tags, at, kind)
        put_item(columns.start, at, start + shift)
        put_item(columns.end, at, end + shift)
