"""Cells as trees of JSON values, all distinct cells of a column in one walk.

A cell that is not JSON is written as JSON first, by Python's own parsers.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices, Mask, UInt8Array
from fastscore_jit.arrow import StringColumn, string_column
from fastscore_kernels import number_ranges
from fastscore_readers.json.tokens import (
    ABSENT,
    ESCAPED,
    FALSE,
    FLOAT,
    INTEGER,
    NULL,
    OBJECT,
    STRING,
    TRUE,
)
from fastscore_readers.json.trees import Nodes, find_nodes

from fastscore.suites.columns import replace_lone_surrogates
from fastscore.suites.group_travel.cells import parse_cell
from fastscore.suites.grouping import (
    factorize,
    take,
)
from fastscore.suites.json_values import JsonValues, Problems, raw_texts, texts

NO_NODE = -1
"""The node of what does not stand there."""


@dataclass(frozen=True)
class CellTrees:
    """The values of distinct cells: a node each, in the order of the text.

    Attributes
    ----------
    data
        The bytes of all cells.
    nodes
        Their nodes; the root of cell ``i`` is ``nodes.offsets[i]``.
    key : int64 (nodes,)
        Which of `keys` a node stands under, -1 for elements and roots.
    keys
        The distinct keys, as they are meant.
    """

    data: UInt8Array
    nodes: Nodes
    key: Indices
    keys: pl.Series

    @cached_property
    def tags(self) -> UInt8Array:
        """The kind of each node; one more, the last, which is that of `NO_NODE`."""
        return np.append(self.nodes.tags, np.uint8(ABSENT))

    @property
    def roots(self) -> Indices:
        """The root of each cell."""
        return self.nodes.offsets[:-1]

    @property
    def holds_object(self) -> Mask:
        """Which cells are an object, or absent."""
        kind = self.tags[self.roots]
        found: Mask = (kind == OBJECT) | (kind == NULL)
        return found

    @cached_property
    def _below(self) -> tuple[Indices, Indices]:
        """The nodes that are no roots, and their parents."""
        rows = np.flatnonzero(self.nodes.parent >= 0)
        return rows, self.nodes.parent[rows]

    @cached_property
    def _keyed(self) -> Indices:
        return np.flatnonzero(self.key >= 0)

    def below(self, containers: Indices) -> tuple[Indices, Indices]:
        """Return the members and elements of nodes, in order, and the place of each one's node."""
        rows, parents = self._below
        place = self._places(containers)[parents]
        found = np.flatnonzero(place >= 0)
        return rows[found], place[found]

    @cached_property
    def _sizes(self) -> Indices:
        return np.bincount(self._below[1], minlength=len(self.tags))

    def sizes(self, rows: Indices) -> Indices:
        """Return how many members or elements nodes have."""
        return self._sizes[rows]

    def is_text(self, rows: Indices) -> Mask:
        """Tell which nodes are strings."""
        tags = self.tags[rows]
        found: Mask = (tags == STRING) | (tags == ESCAPED)
        return found

    def members(
        self, objects: Indices, names: Sequence[str], meaning: Callable[[str], str] = str
    ) -> dict[str, Indices]:
        """Find members by name: for each name a node per object, `NO_NODE` where there is none.

        Parameters
        ----------
        objects
            Nodes; those that are no objects have no members.
        names
            What is wanted.
        meaning
            What a key is called; of several keys that are called the same the first counts.
        """
        code = self.key_codes(names, meaning)
        rows = self._keyed[code[self.key[self._keyed]] >= 0]
        place = self._places(objects)[self.nodes.parent[rows]]
        found = place >= 0
        # numpy assigns in order: of several the first stays
        rows, place = rows[found][::-1], place[found][::-1]
        table = np.full((len(names), len(objects)), NO_NODE)
        table[code[self.key[rows]], place] = rows
        return dict(zip(names, table, strict=True))

    def key_codes(self, names: Sequence[str], meaning: Callable[[str], str] = str) -> Indices:
        """Return for each of `keys` its place among names, -1 for others."""
        place = {name: number for number, name in enumerate(names)}
        return np.array([place.get(meaning(key), -1) for key in self.keys], np.int64)

    def _places(self, rows: Indices) -> Indices:
        places = np.full(len(self.tags), -1)
        places[rows] = np.arange(len(rows))
        places[NO_NODE] = -1
        return places

    def _values(self, rows: Indices) -> JsonValues:
        tags = self.tags[rows]
        if not len(self.nodes.start):
            rows = np.zeros(0, np.int64)
        start, end = self.nodes.start[rows], self.nodes.end[rows]
        return JsonValues(self.data, tags, start, end, np.arange(len(tags)), str)

    def texts(self, rows: Indices) -> pl.Series:
        """Return strings, null where a node is none; a lone surrogate is U+FFFD."""
        values, problems = self._values(rows), Problems()
        found = texts(values, problems)
        for row in problems.by_dialogue:
            found = found.scatter([row], [replace_lone_surrogates(values.python(row))])
        return found

    def scalars(self, rows: Indices) -> pl.Series:
        """Return scalars as Python writes them, null for nothing, null, arrays and objects."""
        found = self.texts(rows)
        tags = self.tags[rows]
        other = np.flatnonzero(
            (tags == TRUE) | (tags == FALSE) | (tags == INTEGER) | (tags == FLOAT)
        )
        if not len(other):
            return found
        codes, values = self.distinct_values(rows[other])
        written = pl.Series([str(value) for value in values], dtype=pl.String)
        return found.scatter(other, written.gather(codes))

    def distinct_values(self, rows: Indices) -> tuple[Indices, list[Any]]:
        """Return the number of each node's value, and the values; None for nothing."""
        is_text, codes = self.is_text(rows), np.zeros(len(rows), np.int64)
        values: list[Any] = []
        raw = raw_texts(self._values(rows))
        for chosen, column, read in (
            (is_text, self.texts(rows), str),
            (~is_text, raw, _read_json),
        ):
            numbers, found = factorize(column.filter(pl.Series(chosen)))
            codes[chosen] = numbers + len(values)
            values += map(read, found)
        return codes, values

    def booleans(self, rows: Indices) -> pl.Series:
        """Return flags: true, 1, "true", "yes" and "1" are true, null unknown, all else false."""
        tags = self.tags[rows]
        true = tags == TRUE
        said = np.flatnonzero(self.is_text(rows))
        if len(said):
            words = self.texts(rows[said]).str.strip_chars().str.to_lowercase()
            true[said] = words.is_in(("true", "yes", "1")).to_numpy()
        numbers = np.flatnonzero((tags == INTEGER) | (tags == FLOAT))
        if len(numbers):
            codes, values = self.distinct_values(rows[numbers])
            true[numbers] = np.array([value == 1 for value in values])[codes]
        return pl.Series(true).set(pl.Series(tags <= NULL), None)


def _read_json(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text  # an integer of more digits than Python converts


def read_trees(cells: pl.Series) -> tuple[Indices, CellTrees]:
    """Read the distinct ones of cells; return the number of each cell's tree too, int64 (n,)."""
    numbers, found = factorize(cells)
    return numbers, trees_of(found)


def trees_of(cells: pl.Series) -> CellTrees:
    """Read each cell as a tree.

    A root is an object or array that is not empty; the text of a cell without a value; or a scalar
    or an empty value, JSON's null where the cell is absent (`cells.parse_cell`). No object has a
    key twice.
    """
    column = string_column("cells", cells)
    nodes = _nodes_of(column)
    # a container of something has more nodes than its root
    alone = np.flatnonzero(np.diff(nodes.offsets) == 1)
    trees = _read_again(column.data, nodes, cells, alone)
    twice = _cells_with_a_key_twice(trees)
    return _read_again(trees.data, trees.nodes, cells, twice) if len(twice) else trees


def _read_again(data: UInt8Array, nodes: Nodes, cells: pl.Series, rows: Indices) -> CellTrees:
    """Read some cells as Python does."""
    read = pl.Series([_as_json(cell) for cell in cells.gather(rows)], dtype=pl.String)
    # most of them hold nothing: these keep their only node
    nothing = (read == "null").to_numpy()
    nodes.tags[nodes.offsets[rows[nothing]]] = NULL
    if nothing.all():
        return _trees(data, nodes)
    column = string_column("cells", read.filter(pl.Series(~nothing)))
    found = _nodes_of(column)
    return _trees(*_replaced(data, nodes, rows[~nothing], column.data, found))


def _nodes_of(column: StringColumn) -> Nodes:
    return find_nodes(column.data, column.offsets[:-1], column.offsets[1:], is_utf8=True)


def _trees(data: UInt8Array, nodes: Nodes) -> CellTrees:
    keyed = np.flatnonzero(nodes.key_start >= 0)
    start, end = nodes.key_start[keyed], nodes.key_end[keyed]
    written, firsts = number_ranges(data, start, end)
    rows = np.arange(len(firsts))
    values = JsonValues(
        data, np.full(len(rows), ESCAPED, np.uint8), start[firsts], end[firsts], rows, str
    )
    # one key may be written in several ways
    codes, keys = factorize(texts(values, Problems()).fill_null("\N{REPLACEMENT CHARACTER}"))
    key = np.full(len(nodes.parent), -1)
    key[keyed] = codes[written]
    return CellTrees(data, nodes, key, keys)


def _cells_with_a_key_twice(trees: CellTrees) -> Indices:
    nodes, rows = trees.nodes, trees._keyed
    member = pl.Series(nodes.parent[rows] * (len(trees.keys) + 1) + trees.key[rows])
    if member.n_unique() == len(member):
        return np.zeros(0, np.int64)
    twice = rows[member.is_duplicated().to_numpy()]
    return np.unique(np.searchsorted(nodes.offsets, twice, side="right") - 1)


def _as_json(cell: str) -> str:
    """Return a cell's value as JSON; what JSON has no word for, such as a set, says nothing."""
    try:
        return json.dumps(parse_cell(cell), skipkeys=True, default=lambda _: {})
    except RecursionError:
        return json.dumps(cell)


def _replaced(
    data: UInt8Array, nodes: Nodes, cells: Indices, other_data: UInt8Array, others: Nodes
) -> tuple[UInt8Array, Nodes]:
    """Put others in the place of the nodes of some cells."""
    n, shift = len(nodes.parent), len(data)
    chosen = np.arange(len(nodes.offsets) - 1)
    chosen[cells] = len(chosen) + np.arange(len(cells))
    both = np.concatenate([nodes.offsets, n + others.offsets[1:]])
    order, offsets = take((np.arange(both[-1]), both), chosen)
    moved = np.full(both[-1] + 1, NO_NODE)  # its last entry is for roots, whose parent is -1
    moved[order] = np.arange(len(order))

    def ordered(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.concatenate([first, second])[order]

    def raised(values: Indices, by: int) -> Indices:
        return np.where(values >= 0, values + by, -1)

    return np.concatenate([data, other_data]), Nodes(
        offsets=offsets,
        parent=moved[ordered(nodes.parent, raised(others.parent, n))],
        tags=ordered(nodes.tags, others.tags),
        start=ordered(nodes.start, others.start + shift),
        end=ordered(nodes.end, others.end + shift),
        key_start=ordered(nodes.key_start, raised(others.key_start, shift)),
        key_end=ordered(nodes.key_end, raised(others.key_end, shift)),
    )
