"""Trees of JSON values: every value of a document, whatever its keys are called.

For documents whose keys are not known beforehand; `json_paths` finds the values of known ones. A
value is read as ``json.loads`` reads it: NaN and Infinity are numbers, control characters in
strings are faults. All equal keys of an object are there. Nesting may be of any depth.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastscore_kernels._jit import first_use
from fastscore_kernels._json_trees import END, KEY_END, KEY_START, PARENT, START, walk_trees
from fastscore_kernels._validate import as_vector, read_only, same_length

__all__ = ["Nodes", "compile_kernels", "find_nodes"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
_Room = tuple[Longs, Bytes, Bytes]

_BYTES_PER_NODE = 24
_LEAST_CAPACITY = 256


@dataclass(frozen=True, slots=True)
class Nodes:
    """The values of n documents in the order of their text: m nodes, the root of each first.

    Attributes
    ----------
    offsets : int64 (n + 1,)
        Where the nodes of each document begin.
    parent : int64 (m,)
        The array or object that a node stands in, -1 for a root.
    tags : uint8 (m,)
        The kind of each value, as in `fastscore_kernels.jsonl`; a document that is no JSON value
        has one node, which is ``ABSENT``.
    start, end : int64 (m,)
        Its bytes, a string's inside its quotes.
    key_tags : uint8 (m,)
        ``STRING`` or ``ESCAPED`` for members of objects, ``ABSENT`` for all other nodes.
    key_start, key_end : int64 (m,)
        The bytes of its key, inside the quotes; -1 where there is none.
    """

    offsets: Longs
    parent: Longs
    tags: Bytes
    start: Longs
    end: Longs
    key_tags: Bytes
    key_start: Longs
    key_end: Longs


def find_nodes(data: npt.ArrayLike, starts: npt.ArrayLike, ends: npt.ArrayLike) -> Nodes:
    """Find all values in byte ranges that hold one JSON value each.

    Parameters
    ----------
    data : uint8 (bytes,)
        UTF-8.
    starts, ends : int64 (n,)
        The ranges; white space around a value does not count.
    """
    flat = as_vector("data", data, np.uint8)
    first, last = as_vector("starts", starts, np.int64), as_vector("ends", ends, np.int64)
    same_length("starts", first.size, "ends", last.size)
    bad = np.flatnonzero((first < 0) | (last < first) | (last > flat.size))
    if bad.size:
        raise ValueError(
            f"`starts` and `ends` hold {first[bad[0]]} and {last[bad[0]]} at position {bad[0]}; "
            f"expected ranges within 0 and {flat.size}"
        )
    compile_kernels()
    capacity = int((last - first).sum()) // _BYTES_PER_NODE + first.size + _LEAST_CAPACITY
    offsets = np.zeros(first.size + 1, np.int64)
    room, row = _room(capacity), 0
    while (row := walk_trees(flat, first, last, row, *room, offsets)) < first.size:
        capacity *= 2
        room = _wider(room, int(offsets[row]), capacity)
    nodes, tags, key_tags = room
    n = int(offsets[-1])
    return Nodes(
        offsets,
        nodes[PARENT, :n],
        tags[:n],
        nodes[START, :n],
        nodes[END, :n],
        key_tags[:n],
        nodes[KEY_START, :n],
        nodes[KEY_END, :n],
    )


def _room(capacity: int) -> _Room:
    return (
        np.empty((5, capacity), np.int64),
        np.empty(capacity, np.uint8),
        np.empty(capacity, np.uint8),
    )


def _wider(room: _Room, used: int, capacity: int) -> _Room:
    wider = _room(capacity)
    wider[0][:, :used] = room[0][:, :used]
    wider[1][:used], wider[2][:used] = room[1][:used], room[2][:used]
    return wider


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    data, none = read_only(np.zeros(0, np.uint8)), read_only(np.zeros(0, np.int64))
    walk_trees(data, none, none, 0, *_room(1), np.zeros(1, np.int64))
