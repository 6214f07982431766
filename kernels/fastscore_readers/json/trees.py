"""Trees of JSON values: every value of a document, whatever its keys are called.

For documents whose keys are not known beforehand; `places` finds the values of known ones. A
value is read as ``json.loads`` reads it: NaN and Infinity are numbers, control characters in
strings are faults. All equal keys of an object are there. Nesting may be of any depth.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.validation import read_only
from fastscore_machine.views import byte_at, item_at, put_item, signed

from fastscore_readers.json.shapes import plan_of
from fastscore_readers.json.texts import walk_texts
from fastscore_readers.json.tokens import ABSENT, BACKSLASH, QUOTE
from fastscore_readers.json.walk import EVERYTHING, Notes, note_of

__all__ = ["Nodes", "find_nodes"]


_ALL = plan_of(None)._replace(n_cells=EVERYTHING)


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
    n_documents = np.size(starts)
    n_nodes = walked.n_notes + n_documents - walked.lines.size // 2
    nodes = Nodes(
        np.empty(n_documents + 1, np.int64),
        np.full(n_nodes, -1),
        np.full(n_nodes, ABSENT, np.uint8),
        *np.zeros((2, n_nodes), np.int64),
        *np.full((2, n_nodes), -1),
    )
    _place_nodes(read_only(np.asarray(data)), walked.notes, walked.lines, nodes, walked.n_notes)
    return nodes


@inlined
def _key_end(data: Any, at: Any) -> Any:
    """Position of the quote that ends a key."""
    while byte_at(data, at) != QUOTE:
        at += 2 if byte_at(data, at) == BACKSLASH else 1
    return at


@kernel(
    "uint8[:], Notes(uint64[:], int32[:], int32[:]), int64[:], Nodes(out(int64[:]), "
    "out(int64[:]), out(uint8[:]), out(int64[:]), out(int64[:]), out(int64[:]), out(int64[:])), "
    "int64",
    fastmath=False,
    allocates=False,
)
def _place_nodes(data: Any, notes: Notes, lines: Any, nodes: Nodes, n_notes: int) -> None:
    """Make nodes of notes, and one of each document that has none; see `places.place_notes`."""
    document, line, node, shift = 0, 0, 0, signed(0)
    for note in range(n_notes):
        if item_at(notes.parent, note) < 0:
            while document <= item_at(lines, 2 * line):
                put_item(nodes.offsets, document, node)
                document += 1
                node += 1
            node -= 1
            shift = item_at(lines, 2 * line + 1)
            line += 1
        else:
            put_item(nodes.parent, node, node - note + item_at(notes.parent, note))
        kind, start, end = note_of(item_at(notes.value, note))
        put_item(nodes.tags, node, kind)
        put_item(nodes.start, node, start + shift)
        put_item(nodes.end, node, end + shift)
        if item_at(notes.place, note) > 0:
            key = item_at(notes.place, note) + shift
            put_item(nodes.key_start, node, key)
            put_item(nodes.key_end, node, _key_end(data, key))
        node += 1
    while document < nodes.offsets.size:
        put_item(nodes.offsets, document, node)
        document += 1
        node += 1
