"""Trees of JSON values: every value of a document, whatever its keys are called.

For documents whose keys are not known beforehand; `places` finds the values of known ones. A
value is read as ``json.loads`` reads it: NaN and Infinity are numbers, control characters in
strings are faults. All equal keys of an object are there. Nesting may be of any depth.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrays import Bytes, Longs

from fastscore_readers.json.shapes import plan_of
from fastscore_readers.json.texts import walk_texts
from fastscore_readers.json.tokens import ABSENT
from fastscore_readers.json.walk import EVERYTHING, KEY, kinds_of, places_of

__all__ = ["Nodes", "find_nodes"]


_ALL = plan_of(None).plan._replace(n_cells=EVERYTHING)


class Nodes(NamedTuple):
    """The values of n documents in the order of their text: m nodes, the root of each first.

    Attributes
    ----------
    offsets : int64 (n + 1,)
        Where the nodes of each document begin.
    parent : int64 (m,)
        The array or object that a node stands in, -1 for a root.
    tags : uint8 (m,)
        The kind of each value, as in `lines`; a document that is no JSON value has one node, which
        is ``ABSENT``.
    start, end : int64 (m,)
        Its bytes, a string's inside its quotes.
    key_start, key_end : int64 (m,)
        The bytes of a member's key, inside the quotes; -1 for elements and roots.
    """

    offsets: Longs
    parent: Longs
    tags: Bytes
    start: Longs
    end: Longs
    key_start: Longs
    key_end: Longs


def find_nodes(
    data: npt.ArrayLike, starts: npt.ArrayLike, ends: npt.ArrayLike, *, is_utf8: bool = False
) -> Nodes:
    """Find all values in byte ranges that hold one JSON value each.

    Parameters
    ----------
    data : uint8 (bytes,)
        The bytes.
    starts, ends : int64 (n,)
        The ranges; white space around a value does not count.
    is_utf8
        Whether the bytes are known to be UTF-8; then that is not checked.
    """
    walked = walk_texts(data, starts, ends, _ALL, is_utf8)
    document, shift = walked.lines.reshape(-1, 2).T
    value, parent = walked.notes.value[: walked.n_notes], walked.notes.parent[: walked.n_notes]
    is_root, is_key = parent < 0, walked.notes.place[: walked.n_notes] == KEY
    line = np.cumsum(is_root) - 1
    start, end = np.empty((2, value.size), np.int64)
    places_of(value, 0, start, end)
    start, end = start + shift[line], end + shift[line]
    # a document that is no JSON value has one node, too
    sizes = np.ones(np.size(starts), np.int64)
    sizes[document] = np.bincount(line[~is_key], minlength=document.size)
    offsets = np.append(0, np.cumsum(sizes))
    node = np.cumsum(~is_key) - 1
    node += (offsets[document] - node[is_root])[line]
    nodes = Nodes(
        offsets,
        np.full(offsets[-1], -1),
        np.full(offsets[-1], ABSENT, np.uint8),
        *np.zeros((2, offsets[-1]), np.int64),
        *np.full((2, offsets[-1]), -1),
    )
    at, below = node[~is_key], ~is_key & ~is_root
    nodes.tags[at] = kinds_of(value)[~is_key]
    nodes.start[at], nodes.end[at] = start[~is_key], end[~is_key]
    nodes.parent[node[below]] = node[parent[below]]
    # a key is noted before its value
    member = node[is_key] + 1
    nodes.key_start[member], nodes.key_end[member] = start[is_key], end[is_key]
    return nodes
