r"""Cells of tool calls that are nearly Python, or nearly JSON: which tools, and what they gave.

Logs hold calls and results as Python's ``repr`` wrote them, escaped once, twice or, where a
backslash was lost, wrongly. No parser takes them, and nothing may evaluate them. Cells are searched
for members, at any depth and also inside texts:

- A *member* is a key, a whole identifier, quoted or not, and ``=`` or ``:``; what follows is its
  value.
- A *simple value* is a text up to the next quote or backslash, the member's name of an enumeration
  that is written ``<Class.MEMBER: ...>``, or a bare word; empty where there is none of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, Mask
from fastscore_jit.arrow import StringColumn, TextRows
from fastscore_jit.validation import read_only
from fastscore_kernels.copying import copy_texts

from fastscore.suites.guest_simulation.nearly_python._tool_calls import (
    TRACKS,
    ParsedCells,
    choose_trigrams,
    walk_cells,
)
from fastscore.suites.guest_simulation.nearly_python.distinct_texts import (
    allocate_texts,
    double_capacity,
)

_VALUES = 1 << 10


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """What is looked for in cells. Keys are distinct ASCII identifiers.

    Parameters
    ----------
    tool_key
        The key of a tool's name.
    tool_words
        What the names of tools contain, by kind of tool; at most 62 kinds.
    attribute_keys
        The keys of attributes.
    attributes_tool
        The tool that gives them.
    list_key, end_key
        The key of the list that is tracked, and that of what stands after it in a result.
    tracking_kind
        The kind of tools that track it.
    marker, marker_reach
        What stands before a list in a tracking result, at most so many bytes before its key.
    """

    tool_key: bytes
    tool_words: tuple[tuple[bytes, ...], ...]
    attribute_keys: tuple[bytes, ...]
    attributes_tool: bytes
    list_key: bytes
    end_key: bytes
    tracking_kind: int
    marker: bytes
    marker_reach: int


@dataclass(frozen=True, slots=True)
class ToolCells:
    """What cells say.

    Attributes
    ----------
    uses : bool (cells, kinds)
        Which kinds of tools a cell names as called.
    attributes : int64 (cells, attributes)
        The value of each attribute, its place among ``values``: the first one after the first
        call of the tool that gives them, or of the cell where none is called; -1 where that is
        empty, or there is none.
    values : StringColumn
        Distinct simple values.
    lists : int64 (cells,)
        Where in its cell the tracked list begins: the last one of a tracking result, or without
        any the first after the call of a tool that tracks; -1 without one.
    broken : bool (cells,)
        Where the last tracking result has nothing after its list, so that it is cut off.
    has_items : bool (cells,)
        Where a list has anything between its brackets, or is broken.
    """

    uses: Mask
    attributes: Int64Array
    values: StringColumn
    lists: Int64Array
    broken: Mask
    has_items: Mask


def read_tool_cells(cells: TextRows, wanted: ToolFormat) -> ToolCells:
    """Read cells of tool calls.

    Parameters
    ----------
    cells
        The cells; a null says nothing.
    wanted
        What is looked for.
    """
    place = cells.views, _tables(wanted)
    n_cells, n_attributes = len(cells.lengths), len(wanted.attribute_keys)
    uses = np.empty((n_cells, len(wanted.tool_words)), np.bool_)
    attributes = np.empty((n_cells, n_attributes), np.int64)
    lists = np.empty(n_cells, np.int64)
    broken, has_items = np.empty(n_cells, np.bool_), np.empty(n_cells, np.bool_)
    parsed = ParsedCells(uses, attributes, lists, broken, has_items)
    values, bits = allocate_texts(_VALUES), np.empty(_VALUES, np.uint64)
    row, count = walk_cells(*place, 0, values, bits, 0, parsed)
    while row < n_cells:
        values, bits = double_capacity(values), np.concatenate([bits, np.empty_like(bits)])
        row, count = walk_cells(*place, row, values, bits, count, parsed)
    texts = copy_texts(*values.places[:2, :count])
    return ToolCells(uses, attributes, texts, lists, broken, has_items)


def _tables(wanted: ToolFormat) -> tuple[Any, ...]:
    """Return what the kernel takes of a format."""
    keys = (wanted.tool_key, wanted.list_key, wanted.end_key, *wanted.attribute_keys)
    for key in keys:
        if not key.decode("ascii", "replace").isidentifier():
            raise ValueError(f"keys hold {key!r}; expected ASCII identifiers")
    if len(set(keys)) != len(keys):
        raise ValueError(f"keys are {list(keys)!r}; expected distinct ones")
    kinds = enumerate(wanted.tool_words)
    words = [(word, kind) for kind, of_kind in kinds for word in of_kind]
    bits = [1 << kind | (int(TRACKS) if kind == wanted.tracking_kind else 0) for _, kind in words]
    return (
        *_flat(keys),
        *(read_only(array) for array in choose_trigrams(keys)),
        (
            *_flat([word for word, _ in words]),
            read_only(np.array(bits, np.uint64)),
            read_only(np.frombuffer(wanted.attributes_tool, np.uint8)),
        ),
        read_only(np.frombuffer(wanted.marker, np.uint8)),
        wanted.marker_reach,
    )


def _flat(texts: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], Int64Array]:
    """Return the bytes of texts and their offsets."""
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return read_only(np.frombuffer(b"".join(texts), np.uint8)), read_only(offsets)
