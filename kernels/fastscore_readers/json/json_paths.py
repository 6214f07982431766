"""Wanted places in nested JSON values as columns, found in one walk over each value.

A `Shape` says what is wanted: ``None`` the value itself, a mapping its members by key, a list of
one shape its elements. Every object or array that has a shape is wanted itself, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from fastscore_machine.validation import read_only

from fastscore_readers.json._json_paths import (
    BASE,
    BELOW,
    CAPACITY,
    ELEMENT,
    GRAIN,
    N_KEYS,
    OWNERS,
    walk_values,
)

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Shape: TypeAlias = "Mapping[str, Shape] | Sequence[Shape] | None"

__all__ = ["Place", "Shape", "find_places"]

_BYTES_PER_VALUE = 2048
_BYTES_PER_SMALL_VALUE, _LEAST_CAPACITY, _SMALL_CAPACITY = 16, 64, 1 << 12
_LARGEST_LEAP = 8
_MARGIN = 1.05


@dataclass(frozen=True, slots=True)
class Place:
    r"""The values that stand at one place of a shape.

    Parameters
    ----------
    tags
        Type of each value, as in `fastscore_readers.json.lines`, uint8 (n,); ``ABSENT`` where the
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
    numbered_escapes
        False where no string of the root's values is known to be written with ``\u``.
    """

    tags: Bytes
    start: Longs
    end: Longs
    owner: Longs
    members: dict[str, "Place"]
    elements: "Place | None"
    numbered_escapes: bool


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
        self.nodes.append([grain, first, 0, -1, 0, level, 0])
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

    def keys(self) -> tuple[Bytes, Longs, npt.NDArray[np.uint64], Longs]:
        """Return key bytes, their offsets, their first eight bytes and their nodes."""
        offsets = np.concatenate(([0], np.cumsum([len(name) for name in self.names])))
        words = np.array([int.from_bytes(name[:8], "little") for name in self.names], np.uint64)
        return (
            np.frombuffer(b"".join(self.names), np.uint8),
            read_only(offsets.astype(np.int64)),
            read_only(words),
            read_only(np.array(self.nodes_of_keys, np.int64)),
        )


class _Found:
    """Room for the values of a plan's nodes: flat arrays, grain by grain as much as each needs."""

    def __init__(self, plan: _Plan, capacities: Longs) -> None:
        self.plan = plan
        self.nodes = np.array(plan.nodes, np.int64)
        room = capacities[self.nodes[:, GRAIN]]
        self.nodes[:, BASE] = np.cumsum(room) - room
        self.grains = np.column_stack([capacities, np.cumsum(capacities) - capacities])
        n_values = int(room.sum())
        self.tags = np.zeros(n_values, np.uint8)
        self.starts, self.ends = np.empty(n_values, np.int64), np.empty(n_values, np.int64)
        self.owners = np.empty(int(capacities.sum()), np.int64)

    @property
    def tables(self) -> tuple[Longs, Longs]:
        """Nodes and grains, as the kernel takes them."""
        return read_only(self.nodes), read_only(self.grains)

    @property
    def arrays(self) -> tuple[Bytes, Longs, Longs, Longs]:
        """What the kernel fills."""
        return self.tags, self.starts, self.ends, self.owners

    def wider(self, counts: Longs, growth: float) -> "_Found":
        """Make room for what is expected, ``growth`` times what there is, but no leap."""
        before = self.grains[:, CAPACITY]
        expected = (counts[: self.plan.grains] * (_MARGIN * growth)).astype(np.int64)
        capacities = np.maximum(before, np.minimum(expected, _LARGEST_LEAP * before))
        full = counts[self.plan.grains]
        capacities[full] = max(capacities[full], 2 * before[full])
        capacities[0] = before[0]
        wider = _Found(self.plan, capacities)
        for node, (grain, base) in enumerate(self.nodes[:, [GRAIN, BASE]].tolist()):
            at = int(wider.nodes[node, BASE])
            own, there = slice(base, base + counts[grain]), slice(at, at + counts[grain])
            wider.tags[there] = self.tags[own]
            wider.starts[there], wider.ends[there] = self.starts[own], self.ends[own]
        for grain, (_, base) in enumerate(self.grains.tolist()):
            at = int(wider.grains[grain, OWNERS])
            wider.owners[at : at + counts[grain]] = self.owners[base : base + counts[grain]]
        return wider

    def place(self, node: int, shape: Shape, counts: Longs) -> Place:
        """Return the values at a node and below it."""
        grain, first_key, _, element, _, _, base = self.nodes[node].tolist()
        n = int(counts[grain])
        members: dict[str, Place] = {}
        elements = None
        if isinstance(shape, Mapping):
            for position, (key, below) in enumerate(shape.items()):
                inner = self.plan.nodes_of_keys[first_key + position]
                members[key] = self.place(inner, below, counts)
        elif shape is not None:
            elements = self.place(element, shape[0], counts)
        own, first_owner = slice(base, base + n), int(self.grains[grain, OWNERS])
        return Place(
            self.tags[own],
            self.starts[own],
            self.ends[own],
            self.owners[first_owner : first_owner + n],
            members,
            elements,
            bool(counts[-1]),
        )


def _longs(edges: Longs) -> Longs:
    return read_only(edges.astype(np.int64, copy=False))


def find_places(
    data: Bytes, starts: Longs, ends: Longs, shape: Shape, *, validated: bool = False
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
    validated
        Whether each range is known to be one JSON value on one line: then it is read faster.

    Returns
    -------
    tuple
        The root's place, of n values; and the ranges that are not one JSON value on one line,
        with which the root is absent. Validity is that of `scan_jsonl`; of equal keys the last
        counts.
    """
    plan = _Plan(shape)
    rows = starts.size
    data, starts, ends = read_only(data), _longs(starts), _longs(ends)
    keys = plan.keys()
    n_bytes = int((ends - starts).sum())
    small = min(_LEAST_CAPACITY + n_bytes // _BYTES_PER_SMALL_VALUE, _SMALL_CAPACITY)
    least = small + n_bytes // _BYTES_PER_VALUE
    found = _Found(plan, np.array([rows, *([least] * (plan.grains - 1))], np.int64))
    counts, faulty = np.zeros(plan.grains + 2, np.int64), np.zeros(rows, np.bool_)
    counts[-1] = not validated
    row = 0
    while True:
        row = walk_values(
            data,
            starts,
            ends,
            validated,
            row,
            *found.tables,
            *keys,
            *found.arrays,
            counts,
            faulty,
        )
        if row == rows:
            break
        walked = int((ends[:row] - starts[:row]).sum())
        found = found.wider(counts, n_bytes / max(walked, 1))
    return found.place(0, shape, counts), np.flatnonzero(faulty)
