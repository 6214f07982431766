r"""Cells that are nearly Python, or nearly JSON: members by key, and lists of named items.

Logs hold results of tools as Python's ``repr`` wrote them: calls like ``Item(name='...')``, texts
in either quote, escaped once, twice or, where a backslash was lost, wrongly. No parser takes them,
and nothing may evaluate them. What these kernels read of them is this:

- A *member* is an identifier, quoted or not, and ``=`` or ``:``; what follows is its value.
- A text ends at its own quote where what follows shows it: a bracket's end, a colon, or a comma
  before a quote, a bracket, or a bare word. Where ``:`` or nothing introduced the text, a quote
  behind more backslashes than the opening one is part of it.
- Brackets of any kind nest; what stands in texts does not count.

Every byte is read a bounded number of times, whatever the cell holds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from fastscore_kernels._jit import first_use
from fastscore_kernels._literals import (
    BARE_ITEM,
    FIELD,
    ITEM,
    MODIFIER,
    collect,
    find_before,
    key_endings,
    walk,
)
from fastscore_kernels._threads import run_chunks
from fastscore_kernels._validate import as_offsets, as_ranges, as_vector, read_only
from fastscore_kernels.ranges import number_ranges

__all__ = [
    "BARE_ITEM",
    "FIELD",
    "ITEM",
    "MODIFIER",
    "ItemNames",
    "Members",
    "compile_kernels",
    "find_members",
    "item_names",
    "preceded_by",
]

_ROWS_PER_CHUNK = 1 << 12
_MEMBERS_PER_CELL, _NAMES_PER_LIST = 8, 12
_VALUE_PLACES = 1 << 12
_NAME_KEYS = (b"name", b"item_name", b"item")

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
_Part = tuple[Longs, Longs]


@dataclass(frozen=True, slots=True)
class Members:
    """Members in order of their rows and positions.

    Attributes
    ----------
    row, key : int64 (m,)
        The row, and the key's place among those that were wanted.
    at, value : int64 (m,)
        Where in the bytes the key begins, and where its value does.
    simple : int64 (m,)
        The simple value, its place among the distinct ones.
    start, end : int64 (distinct,)
        The bytes of each simple value, by first appearance: a text up to the next quote or
        backslash, the member's name of an enumeration that is written ``<Class.MEMBER: ...>``, or
        a bare word; empty where a member has none of them.
    """

    row: Longs
    key: Longs
    at: Longs
    value: Longs
    simple: Longs
    start: Longs
    end: Longs


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

    row: Longs
    kind: Longs
    start: Longs
    end: Longs
    ends: Longs


def find_members(
    data: npt.ArrayLike,
    offsets: npt.ArrayLike,
    keys: Sequence[bytes],
    *,
    threads: int | None = None,
) -> Members:
    """Find the members of some keys in every row, at any depth and also inside texts.

    Parameters
    ----------
    data : uint8 (bytes,)
        The rows' UTF-8.
    offsets : int64 (rows + 1,)
        Row ``i`` is ``data[offsets[i]:offsets[i + 1]]``.
    keys
        The wanted keys: distinct ASCII identifiers.
    threads
        None for one a processor.
    """
    flat, bounds = as_vector("data", data, np.uint8), _offsets(offsets, data)
    wanted = (*_key_table(keys), *_key_endings(keys))
    compile_kernels()
    parts: dict[int, _Part] = {}

    def work(start: int, stop: int) -> None:
        place = (flat, bounds, *wanted, start, stop)
        room, n_places = _MEMBERS_PER_CELL * (stop - start), _VALUE_PLACES
        count = -1
        while count < 0:
            columns, values = np.empty((5, room), np.int64), np.empty((3, n_places // 2), np.int64)
            table = np.full(n_places, -1, np.int64)
            count, n_values = collect(*place, columns, values, table)
            room, n_places = 4 * room, 4 * n_places
        parts[start] = columns[:, :count], values[:2, :n_values]

    run_chunks(work, bounds.size - 1, chunk=_ROWS_PER_CHUNK, threads=threads)
    return _members(flat, [parts[start] for start in sorted(parts)])


def _members(data: Bytes, parts: Sequence[_Part]) -> Members:
    """Join the members of chunks, and number their simple values together."""
    none = np.empty((5, 0), np.int64)
    row, key, at, value, simple = np.concatenate([none, *(columns for columns, _ in parts)], axis=1)
    begins, ends = np.concatenate([none[:2], *(values for _, values in parts)], axis=1)
    numbers, firsts = number_ranges(data, begins, ends)
    done = n_values = 0
    for columns, values in parts:
        of_chunk = slice(done, done + columns.shape[1])
        simple[of_chunk] = numbers[n_values + simple[of_chunk]]
        done, n_values = of_chunk.stop, n_values + values.shape[1]
    return Members(row, key, at, value, simple, begins[firsts], ends[firsts])


def preceded_by(
    data: npt.ArrayLike,
    places: npt.ArrayLike,
    lows: npt.ArrayLike,
    marker: bytes,
    *,
    reach: int,
) -> npt.NDArray[np.bool_]:
    """Tell whether a marker stands shortly before places.

    Parameters
    ----------
    data : uint8 (bytes,)
        UTF-8.
    places, lows : int64 (n,)
        The places, and where the row of each begins.
    marker
        What is looked for.
    reach
        How many bytes before a place it stands in, at most.

    Returns
    -------
    bool (n,)
    """
    flat = as_vector("data", data, np.uint8)
    low, place = as_ranges("lows", lows, "places", places, flat.size)
    compile_kernels()
    found = np.empty(place.size, np.bool_)
    find_before(flat, place, low, read_only(np.frombuffer(marker, np.uint8)), reach, found)
    return found


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
    compile_kernels()
    ends = np.empty(first.size, np.int64)
    parts: dict[int, npt.NDArray[np.int64]] = {}

    def work(start: int, stop: int) -> None:
        place = (flat, first, last, *_ITEM_KEYS[option_first], ends, start, stop)
        parts[start] = _listed(partial(walk, *place), 4, _NAMES_PER_LIST * (stop - start))

    run_chunks(work, first.size, chunk=_ROWS_PER_CHUNK, threads=threads)
    listed = [np.empty((4, 0), np.int64), *(parts[start] for start in sorted(parts))]
    row, kind, start, end = np.concatenate(listed, axis=1)
    return ItemNames(row, kind, start, end, ends)


def _offsets(offsets: npt.ArrayLike, data: npt.ArrayLike) -> Longs:
    return as_offsets("offsets", offsets, np.asarray(data).size)


def _key_table(keys: Sequence[bytes]) -> tuple[Bytes, Longs]:
    """Flatten keys to their bytes and offsets."""
    for key in keys:
        if not key.decode("ascii", "replace").isidentifier():
            raise ValueError(f"`keys` holds {key!r}; expected ASCII identifiers")
    if len(set(keys)) != len(keys):
        raise ValueError(f"`keys` holds {list(keys)!r}; expected distinct ones")
    names = np.frombuffer(b"".join(keys), np.uint8)
    offsets = np.concatenate(([0], np.cumsum([len(key) for key in keys]))).astype(np.int64)
    return read_only(names), read_only(offsets)


def _key_endings(keys: Sequence[bytes]) -> tuple[Bytes, int]:
    marks, size = key_endings(keys)
    return read_only(marks), size


def _item_keys(option_first: bool) -> tuple[Bytes, Longs, Longs]:
    """Return the keys of items with, for each, its rank as a modifier's name."""
    keys = (*_NAME_KEYS, b"modifier_option_name", b"modifier", b"modifiers")
    order = ("modifier_option_name", "name") if option_first else ("name", "modifier_option_name")
    ranks = {name.encode(): rank for rank, name in enumerate((*order, "modifier"))}
    return (
        *_key_table(keys),
        read_only(np.array([ranks.get(key, len(keys)) for key in keys], np.int64)),
    )


_ITEM_KEYS = {option_first: _item_keys(option_first) for option_first in (False, True)}


def _listed(fill: Callable[[Longs], int], width: int, room: int) -> Longs:
    """Have a kernel fill columns of rows, with more room until all have some."""
    while True:
        columns = np.empty((width, room), np.int64)
        count = fill(columns)
        if count >= 0:
            # the memory of the columns, which is still in the cache, serves the next chunk
            return read_only(columns[:, :count].copy())
        room *= 4


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    data = read_only(np.zeros(0, np.uint8))
    place, none = read_only(np.zeros(1, np.int64)), read_only(np.zeros(0, np.int64))
    out = np.empty(0, np.int64)
    members, values = np.empty((5, 0), np.int64), np.empty((3, 0), np.int64)
    collect(data, place, data, place, *_key_endings([b"a"]), 0, 0, members, values, out)
    find_before(data, none, none, data, 0, np.empty(0, np.bool_))
    walk(data, none, none, *_ITEM_KEYS[False], out, 0, 0, np.empty((4, 0), np.int64))
