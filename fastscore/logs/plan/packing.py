"""Packing: which neighbouring stretches of files are one shard.

The stretches stand on disk; a shard takes a look-up or two, so what is held grows with files and
shards, not with dialogues.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fastscore.logs.plan.file_groups import GroupArrays, IndexedFile, IndexedGroup

PARTS_OF_REMAINDER = 2
"""A shard is at most this part of what is left, as long as it is not much smaller than"""
SHARD_PARTS = 2
"""this part of a whole one: each shard costs something by itself."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stretch begins: its file, its number there, byte (or row), line, bytes before."""

    file: int
    stretch: int
    start: int
    line: int
    before: int


@dataclass(frozen=True, slots=True)
class Extent:
    """Neighbouring stretches of one file: from which byte (or row) to which, their size."""

    file: int
    start: int
    stop: int
    line: int
    n_bytes: int


class FileStretches:
    """The files of all groups in order, with the stretches between which they may be cut.

    Attributes
    ----------
    files
        The files.
    """

    def __init__(self, groups: Sequence[IndexedGroup], folder: Path) -> None:
        self.files: list[IndexedFile] = [file for group in groups for file in group.files]
        self._ends = np.cumsum([0, *(file.n_bytes for file in self.files)], dtype=np.int64)
        sizes = np.array([len(group.files) for group in groups], np.int64)
        self._group = np.repeat([group.index for group in groups], sizes)
        first = np.repeat(np.cumsum(sizes) - sizes, sizes)
        self._stretches_before = _counts_before([file.n_stretches for file in self.files], first)
        self._blocks_before = _counts_before([file.n_blocks for file in self.files], first)
        self._folder = folder
        self._opened: tuple[int, npt.NDArray[np.int64]] = (-1, np.empty((3, 0), np.int64))

    def beginning(self, file: int) -> Place:
        """Return where a file begins, or after the last one, where all end."""
        return Place(file, 0, 0, 1, int(self._ends[file]))

    def after(self, place: Place) -> Place:
        """Return the place one stretch further."""
        return self._place(place.file, place.stretch + 1)

    def last_before(self, n_bytes: int) -> Place:
        """Return the last place before which at most so many bytes stand."""
        file = int(np.searchsorted(self._ends, n_bytes, side="right")) - 1
        if file == len(self.files) or self.files[file].n_stretches == 1:
            return self.beginning(file)
        ends = self._stretches(file)[2]
        return self._place(file, int(np.searchsorted(ends, n_bytes - self._ends[file], "right")))

    def parts(self, first: Place, last: Place) -> Iterator[Extent]:
        """Yield what lies between two places, file by file."""
        for file in range(first.file, last.file + (last.stretch > 0)):
            begin = first if file == first.file else self.beginning(file)
            is_cut = file == last.file
            stop, before = last.start, last.before
            if not is_cut:
                stop, before = self.files[file].size, int(self._ends[file + 1])
            yield Extent(file, begin.start, stop, begin.line, before - begin.before)

    def block_hashes(self, file: int) -> tuple[GroupArrays, int]:
        """Return the arrays of a file's group, and how many blocks other files have there."""
        return self._arrays(file), int(self._blocks_before[file])

    def _place(self, file: int, stretch: int) -> Place:
        if stretch == self.files[file].n_stretches:
            return self.beginning(file + 1)
        if stretch == 0:
            return self.beginning(file)
        starts, lines, ends = self._stretches(file)
        before = int(self._ends[file] + ends[stretch - 1])
        return Place(file, stretch, int(starts[stretch]), int(lines[stretch]), before)

    def _stretches(self, file: int) -> npt.NDArray[np.int64]:
        """Return start, first line and end, in bytes of the file, of each stretch."""
        if self._opened[0] != file:
            first = int(self._stretches_before[file])
            found = self._arrays(file).load("stretches")
            self._opened = file, found[:, first : first + self.files[file].n_stretches]
        return self._opened[1]

    def _arrays(self, file: int) -> GroupArrays:
        return GroupArrays(self._folder, int(self._group[file]))


def _counts_before(counts: Sequence[int], first: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Add up the counts of the files that stand before each in its group, which begins at first."""
    ends = np.cumsum([0, *counts], dtype=np.int64)
    return ends[:-1] - ends[first]


def pack(stretched: FileStretches, shard_bytes: int) -> Iterator[tuple[Extent, ...]]:
    """Pack stretches in order, as many as fit; neighbours in one file become one.

    The last shards are smaller, so that no worker is left alone with a large one.
    """
    end = stretched.beginning(len(stretched.files))
    place = stretched.beginning(0)
    smallest = max(1, shard_bytes // SHARD_PARTS)
    while place.file < end.file:
        left = end.before - place.before
        even = -(-left // max(1, round(left / smallest)))
        size = min(shard_bytes, max(left // PARTS_OF_REMAINDER, even))
        last = stretched.last_before(place.before + size)
        if (last.file, last.stretch) <= (place.file, place.stretch):
            last = stretched.after(place)
        yield tuple(stretched.parts(place, last))
        place = last
