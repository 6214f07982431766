r"""Cells that are nearly Python, or nearly JSON: lists of named items.

Logs hold results of tools as Python's ``repr`` wrote them: calls like ``Item(name='...')``, texts
in either quote, escaped once, twice or, where a backslash was lost, wrongly. No parser takes them,
and nothing may evaluate them. What these kernels read of them is this:

- A text ends at its own quote where what follows shows it: a bracket's end, a colon, or a comma
  before a quote, a bracket, or a bare word. Where ``:`` or nothing introduced the text, a quote
  after more backslashes than the opening one is part of it.
- Brackets of any kind nest; what stands in texts does not count.

Every byte is read a bounded number of times, whatever the cell holds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.arrow import TextRows
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_ranges, as_vector, read_only

from fastscore.suites.guest_simulation.nearly_python._item_lists import (
    BARE_ITEM,
    FIELD,
    ITEM,
    MODIFIER,
    ItemKeys,
    ItemLists,
    find_lists,
    walk,
)

__all__ = [
    "BARE_ITEM",
    "FIELD",
    "ITEM",
    "MODIFIER",
    "ItemNames",
    "item_names",
    "list_places",
]

_ROWS_PER_CHUNK = 1 << 12
_NAMES_PER_LIST = 12
_NAME_KEYS = (b"name", b"item_name", b"item")


@dataclass(frozen=True, slots=True)
class ItemNames:
    """Names in lists of items.

    Attributes
    ----------
    row, kind : int64 (m,)
        The list, and what is named: `ITEM`, `BARE_ITEM` (the item is a text), `MODIFIER` (of the
        item's list) or `FIELD` (the item's own field ``modifier``).
    start, end : int64 (m,)
        The name's bytes, inside its quotes and as escaped as it was.
    ends : int64 (lists,)
        Where each list ends, its bracket included; -1 where it does not.
    """

    row: Int64Array
    kind: Int64Array
    start: Int64Array
    end: Int64Array
    ends: Int64Array


def item_names(
    data: npt.ArrayLike,
    starts: npt.ArrayLike,
    stops: npt.ArrayLike,
    *,
    option_first: bool = False,
    threads: int | None = None,
) -> ItemNames:
    """Find the names of items and of their modifiers in lists.

    An item is a dictionary, a call with keywords, or a text. Its name stands under ``name``, else
    ``item_name``, else ``item``; that of each of its ``modifiers`` under ``name``, else
    ``modifier_option_name``, else ``modifier``. Empty names are none.

    Parameters
    ----------
    data : uint8 (bytes,)
        UTF-8.
    starts, stops : int64 (n,)
        Where each list's bracket stands, and where its cell ends.
    option_first
        Whether ``modifier_option_name`` goes before ``name``.
    threads
        None for one a processor.
    """
    flat = as_vector("data", data, np.uint8)
    first, last = as_ranges("starts", starts, "stops", stops, flat.size)
    lists = ItemLists(first, last, np.empty(first.size, np.int64))
    parts: dict[int, npt.NDArray[np.int64]] = {}

    def work(start: int, stop: int) -> None:
        fill = partial(walk, flat, lists, _ITEM_KEYS[option_first], start, stop)
        parts[start] = _listed(fill, 4, _NAMES_PER_LIST * (stop - start))

    run_chunks(work, first.size, chunk=_ROWS_PER_CHUNK, threads=threads)
    listed = [np.empty((4, 0), np.int64), *(parts[start] for start in sorted(parts))]
    row, kind, start, end = np.concatenate(listed, axis=1)
    return ItemNames(row, kind, start, end, lists.ends)


def list_places(cells: TextRows) -> tuple[Int64Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Find the list that each cell is, perhaps after a quote.

    Returns
    -------
    tuple
        Where in its cell the list begins, int64 (n,), -1 without one; which cells are neither
        null, a list, nor blank, bool (n,); and which of all have anything between brackets, or are
        of the latter, bool (n,).
    """
    n_cells = len(cells.lengths)
    begins, flags = np.empty(n_cells, np.int64), np.empty((2, n_cells), np.bool_)
    find_lists(cells.views, begins, *flags)
    return begins, flags[0], flags[1]


def _key_table(keys: Sequence[bytes]) -> tuple[UInt8Array, Int64Array]:
    """Flatten keys to their bytes and offsets."""
    names = np.frombuffer(b"".join(keys), np.uint8)
    offsets = np.concatenate(([0], np.cumsum([len(key) for key in keys]))).astype(np.int64)
    return read_only(names), read_only(offsets)


def _item_keys(option_first: bool) -> ItemKeys:
    """Return the keys of items with, for each, its rank as a modifier's name."""
    keys = (*_NAME_KEYS, b"modifier_option_name", b"modifier", b"modifiers")
    order = ("modifier_option_name", "name") if option_first else ("name", "modifier_option_name")
    ranks = {name.encode(): rank for rank, name in enumerate((*order, "modifier"))}
    return ItemKeys(
        *_key_table(keys),
        read_only(np.array([ranks.get(key, len(keys)) for key in keys], np.int64)),
    )


_ITEM_KEYS = {option_first: _item_keys(option_first) for option_first in (False, True)}


def _listed(fill: Callable[[Int64Array], int], width: int, room: int) -> Int64Array:
    """Have a kernel fill columns of rows, with more room until all have some."""
    while True:
        columns = np.empty((width, room), np.int64)
        count = fill(columns)
        if count >= 0:
            # the memory of the columns, which is still in the cache, serves the next chunk
            return read_only(columns[:, :count].copy())
        room *= 4
