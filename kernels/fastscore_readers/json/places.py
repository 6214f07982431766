"""Wanted places in nested JSON values as columns, found in one walk over each value.

Each text is a line of the walk. Line ends within a text become tabs, which JSON treats alike: white
space between values, invalid in strings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.byte_blocks import byte_marks
from fastscore_jit.compiling import kernel
from fastscore_jit.memory import BLOCK, block_at, byte_at, item_at, put_block, put_byte
from fastscore_jit.validation import as_vector, same_length

from fastscore_readers.json.lines import FOREVER, Walker
from fastscore_readers.json.tokens import ends_line
from fastscore_readers.json.walk import LINE, NUMBER, VALUES, Plan, Shape, plan_of, unpacked

__all__ = ["Place", "Shape", "find_places"]


BLOCK_BYTES = 512 << 10
_NEWLINE, _TAB = 10, 9
_line_ends = byte_marks(b"\n\r")


def _walk_texts(
    data: npt.ArrayLike, starts: npt.ArrayLike, ends: npt.ArrayLike, plan: Plan, is_utf8: bool
) -> tuple[Walker, Int64Array]:
    """Walk some texts; return the walker and the good texts.

    Of a good text there are its number, and the offset from its noted bytes to its bytes in the
    data, int64 (n, 2). Notes are valid until the thread's next walk.
    """
    data = as_vector("data", data, np.uint8)
    starts, ends = as_vector("starts", starts, np.int64), as_vector("ends", ends, np.int64)
    same_length("starts", starts.size, "ends", ends.size)
    wrong = (starts < 0) | (ends < starts) | (ends > data.size)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"`starts` and `ends` hold {starts[at]} and {ends[at]} at position {at}; "
            f"expected ranges within 0 and {data.size}"
        )
    walker, n = Walker(plan, VALUES, np.array(FOREVER), is_utf8), starts.size
    # a byte after each
    after = np.cumsum(ends - starts + 1)
    lines = np.empty((n, 2), np.int64)
    first = n_good = 0
    while first < n:
        before = int(after[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(after, before + BLOCK_BYTES, side="right")))
        size = int(after[last - 1]) - before
        memory = walker.reserve(size)
        _gather(data, starts[first:last], ends[first:last], memory.data)
        walker.state[NUMBER] = first
        walker.walk_reserved(size)
        number = memory.rows[: 3 * walker.n_rows].reshape(-1, 3)[:, LINE]
        good = lines[n_good : n_good + number.size]
        good[:, 0] = number
        # where a text begins in the block
        good[:, 1] = ends[number] - (after[number] - 1 - before)
        first, n_good = last, n_good + number.size
    return walker, lines[:n_good]


@kernel("uint8[:], int64[:], int64[:], out(uint8[:])", fastmath=False, allocates=False)
def _gather(data: Any, starts: Any, ends: Any, out: Any) -> None:
    """Concatenate texts, each followed by a line end.

    Line ends within a text become tabs.
    """
    to = 0
    for text in range(starts.size):
        at = item_at(starts, text)
        length = item_at(ends, text) - at
        done = 0
        while length >= BLOCK and done < length:
            # the last block overlaps the one before
            done = min(done, length - BLOCK)
            put_block(out, to + done, data, at + done)
            line_ends = _line_ends(block_at(data, at + done))
            while line_ends != 0:
                put_byte(out, to + done + trailing_zeros(line_ends), _TAB)
                line_ends &= line_ends - np.uint64(1)
            done += BLOCK
        for place in range(done, length):
            byte = byte_at(data, at + place)
            put_byte(out, to + place, _TAB if ends_line(byte) else byte)
        put_byte(out, to + length, _NEWLINE)
        to += length + 1


@dataclass(frozen=True, slots=True)
class Place:
    """The values at one place of a shape."""

    # type of each value, as in `lines`, uint8 (n,); `ABSENT` if the object or its member is missing
    tags: UInt8Array
    # byte range of each value, without the quotes of strings, int64 (n,); undefined if absent
    start: Int64Array
    end: Int64Array
    # For each value, the row of the array that contains it (or its object), ascending, int64 (n,).
    # For the root and its members, the row itself.
    owner: Int64Array
    members: dict[str, "Place"]  # the places of its members, each of n values
    elements: "Place | None"  # the place of its elements if its shape is a list


def find_places(
    data: npt.ArrayLike,
    starts: npt.ArrayLike,
    ends: npt.ArrayLike,
    shape: Shape,
    *,
    is_utf8: bool = False,
) -> tuple[Place, Int64Array]:
    """Find the values of a shape in byte ranges that hold one JSON value each, or are blank.

    Return the root's place, and the indices of ranges that are not one value, whose root is absent.
    Validity is as in `scan_jsonl`; bytes that are known to be UTF-8 are not checked. The last of
    equal keys counts.
    """
    plan = plan_of(shape)
    walker, lines = _walk_texts(data, starts, ends, plan, is_utf8)
    faulty = np.array(walker.faults[::5], np.int64)
    return _PlacedNotes(walker, lines).place(shape, np.arange(np.size(starts))), faulty


class _PlacedNotes:
    """Notes of texts, from which places are made in the order of the plan."""

    def __init__(self, walker: Walker, lines: Int64Array) -> None:
        n, n_places = walker.n_notes, walker.plan.elements.size
        place, self.parent = walker.notes.place[:n], walker.notes.parent[:n]
        # small integers sort faster
        by_place = np.argsort(place.astype(np.min_scalar_type(-n_places)), kind="stable")
        begins = np.searchsorted(place[by_place], np.arange(n_places))
        notes = np.split(by_place, begins)[1:]
        self.rows = np.empty(n, np.int64)
        self.rows[notes[0]], shifts = lines.T
        self.tags, self.start, self.end = unpacked(walker.notes.value[:n])
        shift = np.repeat(shifts, np.diff(notes[0], append=n))
        self.start += shift
        self.end += shift
        self.notes = iter(notes)
        self.inside = next(self.notes)

    def place(self, shape: Shape, owner: Int64Array) -> Place:
        """Return the values at the next place, at most one per owner, and the places below it."""
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
        return Place(tags, start, end, owner, members, elements)

    def _next(self) -> Int64Array:
        """Advance to the notes of the next place; return the rows of their parents."""
        self.inside = next(self.notes)
        rows: Int64Array = self.rows[self.parent[self.inside]]
        return rows
