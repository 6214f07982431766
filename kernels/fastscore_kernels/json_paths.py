"""Wanted places in nested JSON values as columns, found in one walk over each value.

A `Shape` says what is wanted: ``None`` the value itself, a mapping its members by key, a list of
one shape its elements. Every object or array that has a shape is wanted itself, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from fastscore_kernels._jit import first_use
from fastscore_kernels._json_paths import (
    BELOW,
    ELEMENT,
    FIRST_KEY,
    GRAIN,
    N_KEYS,
    walk_values,
)
from fastscore_kernels._validate import read_only

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Shape: TypeAlias = "Mapping[str, Shape] | Sequence[Shape] | None"
Scalar = TypeVar("Scalar", bound=np.generic)

__all__ = ["Place", "Shape", "compile_kernels", "find_places"]

_BYTES_PER_VALUE = 512
_LEAST_CAPACITY = 64


@dataclass(frozen=True, slots=True)
class Place:
    """The values that stand at one place of a shape.

    Parameters
    ----------
    tags
        Type of each value, as in `fastscore_kernels.jsonl`, uint8 (n,); ``ABSENT`` where the
        object has no such member, or there is no object.
    start, end
        Its bytes, a string's inside its quotes, int64 (n,); meaningless where it is absent.
    owner
        The row of the array in which it or its object is an element, among that array's values,
        ascending; of the root and its members the row itself; int64 (n,).
    members
        The places of its members, each of n values.
    elements
        The place of its elements, if its shape is a list.
    """

    tags: Bytes
    start: Longs
    end: Longs
    owner: Longs
    members: dict[str, "Place"]
    elements: "Place | None"


class _Plan:
    """A shape as flat tables: nodes in preorder, keys of one object side by side."""

    def __init__(self, shape: Shape) -> None:
        self.nodes: list[list[int]] = []
        self.names: list[bytes] = []
        self.nodes_of_keys: list[int] = []
        self.grains = 1
        self._add(shape, 0, 0)

    def _add(self, shape: Shape, grain: int, level: int) -> int:
        node, first = len(self.nodes), len(self.names)
        self.nodes.append([grain, first, 0, -1, 0, level])
        if isinstance(shape, Mapping):
            self.nodes[node][N_KEYS] = len(shape)
            self.names += [key.encode() for key in shape]
            self.nodes_of_keys += [-1] * len(shape)
            for position, below in enumerate(shape.values()):
                self.nodes_of_keys[first + position] = self._add(below, grain, level + 1)
        elif shape is not None:
            (below,) = shape
            self.grains += 1
            self.nodes[node][ELEMENT] = self._add(below, self.grains - 1, level + 1)
        self.nodes[node][BELOW] = len(self.nodes)
        return node

    def tables(self) -> tuple[Longs, Bytes, Longs, npt.NDArray[np.uint64], Longs]:
        """Return nodes, key bytes, their offsets, their first eight bytes and their nodes."""
        offsets = np.concatenate(([0], np.cumsum([len(name) for name in self.names])))
        words = np.array([int.from_bytes(name[:8], "little") for name in self.names], np.uint64)
        return (
            read_only(np.array(self.nodes, np.int64)),
            np.frombuffer(b"".join(self.names), np.uint8),
            read_only(offsets.astype(np.int64)),
            read_only(words),
            read_only(np.array(self.nodes_of_keys, np.int64)),
        )


def find_places(data: Bytes, starts: Longs, ends: Longs, shape: Shape) -> tuple[Place, Longs]:
    """Find the values of a shape in byte ranges that hold one JSON value each.

    Parameters
    ----------
    data
        The bytes, uint8.
    starts, ends
        The ranges, int64 (n,); in a blank one the root is absent.
    shape
        What is wanted; keys of one object are distinct.

    Returns
    -------
    tuple
        The root's place, of n values; and the ranges that are not one JSON value on one line,
        with which the root is absent. Validity is that of `scan_jsonl`; of equal keys the last
        counts.
    """
    compile_kernels()
    plan = _Plan(shape)
    tables = plan.tables()
    rows, nodes = starts.size, len(plan.nodes)
    starts, ends = (read_only(edge.astype(np.int64, copy=False)) for edge in (starts, ends))
    span = int((ends - starts).sum())
    capacity = max(rows, span // _BYTES_PER_VALUE) + _LEAST_CAPACITY
    tags = np.zeros((nodes, capacity), np.uint8)
    begins, finishes = (np.empty((nodes, capacity), np.int64) for _ in range(2))
    owners = np.empty((plan.grains, capacity), np.int64)
    counts, faulty = np.zeros(plan.grains, np.int64), np.zeros(rows, np.bool_)
    row = 0
    while True:
        places = (tags, begins, finishes, owners)
        row = walk_values(read_only(data), starts, ends, row, *tables, *places, counts, faulty)
        if row == rows:
            break
        used = int(counts.max())
        capacity *= 2
        tags = _wider(tags, used, capacity)
        begins, finishes, owners = (_wider(part, used, capacity) for part in places[1:])

    def place(node: int, below: Shape) -> Place:
        about = plan.nodes[node]
        grain = about[GRAIN]
        n = counts[grain]
        members: dict[str, Place] = {}
        elements = None
        if isinstance(below, Mapping):
            for position, (key, inner) in enumerate(below.items()):
                members[key] = place(plan.nodes_of_keys[about[FIRST_KEY] + position], inner)
        elif below is not None:
            elements = place(about[ELEMENT], below[0])
        return Place(
            tags[node, :n],
            begins[node, :n],
            finishes[node, :n],
            owners[grain, :n],
            members,
            elements,
        )

    return place(0, shape), np.flatnonzero(faulty)


def _wider(part: npt.NDArray[Scalar], used: int, capacity: int) -> npt.NDArray[Scalar]:
    wider = np.zeros((part.shape[0], capacity), part.dtype)
    wider[:, :used] = part[:, :used]
    return wider


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    data, none = read_only(np.zeros(0, np.uint8)), read_only(np.zeros(0, np.int64))
    tables = _Plan(None).tables()
    found = np.empty((1, 1), np.int64)
    walk_values(
        data,
        none,
        none,
        0,
        *tables,
        np.zeros((1, 1), np.uint8),
        found,
        found,
        found,
        np.zeros(1, np.int64),
        np.zeros(0, np.bool_),
    )
