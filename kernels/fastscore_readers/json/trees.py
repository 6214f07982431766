"""Trees of JSON values: every value of a document, whatever its keys are called.

For documents whose keys are not known beforehand; `places` finds the values of known ones. A
value is read as ``json.loads`` reads it: NaN and Infinity are numbers, control characters in
strings are faults. All equal keys of an object are there. Nesting may be of any depth.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.compiling import kernel
from fastscore_jit.validation import read_only
from fastscore_jit.views import byte_at, item_at, put_item

from fastscore_readers.json.shapes import plan_of
from fastscore_readers.json.texts import walk_texts
from fastscore_readers.json.tokens import ABSENT, BACKSLASH, QUOTE
from fastscore_readers.json.walk import EVERYTHING, note_of

__all__ = ["Nodes", "find_nodes"]

_ALL = plan_of(None)._replace(n_slots=EVERYTHING)


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

    offsets: Int64Array
    parent: Int64Array
    tags: UInt8Array
    start: Int64Array
    end: Int64Array
    key_start: Int64Array
    key_end: Int64Array


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
    value, key, parent = (of_all[: walked.n_notes] for of_all in walked.notes)
    document, shift = walked.lines.reshape(-1, 2).T
    first = np.flatnonzero(parent < 0)
    sizes = np.diff(first, append=parent.size)
    # a document that is no JSON value has one node, too
    all_sizes = np.ones(np.size(starts), np.int64)
    all_sizes[document] = sizes
    offsets = np.append(0, np.cumsum(all_sizes))
    tags, start, end = note_of(value)
    shift, passed = np.repeat(shift, sizes), np.repeat(offsets[document] - first, sizes)
    key_start = np.where(key > 0, key + shift, -1)
    key_end = key_start.copy()
    _move_to_ends(read_only(np.asarray(data)), key_end)
    parent = np.where(parent < 0, -1, parent + passed)
    columns = (parent, tags.astype(np.uint8), start + shift, end + shift, key_start, key_end)
    missing = np.delete(np.arange(all_sizes.size), document)
    at, blank = offsets[missing] - np.arange(missing.size), (-1, ABSENT, 0, 0, -1, -1)
    return Nodes(
        offsets, *(np.insert(each, at, none) for each, none in zip(columns, blank, strict=True))
    )


@kernel("uint8[:], out(int64[:])", fastmath=False, allocates=False)
def _move_to_ends(data: Any, keys: Any) -> None:
    """Move on from where keys begin to the quotes that end them; -1 stays."""
    for row in range(keys.size):
        at = item_at(keys, row)
        while at >= 0 and byte_at(data, at) != QUOTE:
            at += 2 if byte_at(data, at) == BACKSLASH else 1
        put_item(keys, row, at)
