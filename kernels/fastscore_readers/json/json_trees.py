"""Trees of JSON values: every value of a document, whatever its keys are called.

For documents whose keys are not known beforehand; `places` finds the values of known ones. A
value is read as ``json.loads`` reads it: NaN and Infinity are numbers, control characters in
strings are faults. All equal keys of an object are there. Nesting may be of any depth.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from fastscore_machine.validation import as_vector, same_length

from fastscore_readers.json._json_trees import (
    END,
    KEY,
    KEY_END,
    KEY_START,
    PARENT,
    START,
    place_keys,
    walk_trees,
)

__all__ = ["Nodes", "find_nodes"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

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
        The kind of each value, as in `jsonl`; a document that is no JSON value has one node, which
        is ``ABSENT``.
    start, end : int64 (m,)
        Its bytes, a string's inside its quotes.
    key : int64 (m,)
        The number of a member's key, -1 for elements and roots.
    key_start, key_end : int64 (keys,)
        The bytes of each key, inside the quotes; keys that are written differently are different.
    """

    offsets: Longs
    parent: Longs
    tags: Bytes
    start: Longs
    end: Longs
    key: Longs
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
    capacity = int((last - first).sum()) // _BYTES_PER_NODE + first.size + _LEAST_CAPACITY
    offsets, n_keys = np.zeros(first.size + 1, np.int64), np.zeros(1, np.int64)
    room, names, row = _room(capacity), _key_room(_LEAST_CAPACITY), 0
    while True:
        row = walk_trees(flat, first, last, row, *room, offsets, *names, n_keys)
        if row == first.size:
            break
        if 2 * n_keys[0] >= names[1].size:
            names = _more_keys(flat, names, int(n_keys[0]))
        else:
            capacity *= 2
            room = _wider(room, int(offsets[row]), capacity)
    (nodes, tags), (keys, _), n = room, names, int(offsets[-1])
    return Nodes(
        offsets,
        nodes[PARENT, :n],
        tags[:n],
        nodes[START, :n],
        nodes[END, :n],
        nodes[KEY, :n],
        keys[KEY_START, : n_keys[0]],
        keys[KEY_END, : n_keys[0]],
    )


def _room(capacity: int) -> tuple[Longs, Bytes]:
    return np.empty((4, capacity), np.int64), np.empty(capacity, np.uint8)


def _wider(room: tuple[Longs, Bytes], used: int, capacity: int) -> tuple[Longs, Bytes]:
    nodes, tags = _room(capacity)
    nodes[:, :used], tags[:used] = room[0][:, :used], room[1][:used]
    return nodes, tags


def _key_room(size: int) -> tuple[Longs, Longs]:
    return np.empty((2, size), np.int64), np.full(size, -1)


def _more_keys(data: Bytes, names: tuple[Longs, Longs], n_keys: int) -> tuple[Longs, Longs]:
    keys, table = _key_room(2 * names[1].size)
    keys[:, :n_keys] = names[0][:, :n_keys]
    place_keys(data, keys, n_keys, table)
    return keys, table
