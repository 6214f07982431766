"""Cells as trees of JSON values, all distinct cells of a column in one walk.

A cell that is no JSON is written as JSON first: simple literals of Python by a kernel, all others
by Python itself.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels.arrow import StringColumn, string_column
from fastscore_kernels.json_trees import Nodes, find_nodes
from fastscore_kernels.jsonl import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    FLOAT,
    INTEGER,
    OBJECT,
    STRING,
    TRUE,
)
from fastscore_kernels.python_literals import literals_to_json

from fastscore.suites.distinct import distinct
from fastscore.suites.group_travel.cells import LARGEST_LITERAL, parse_cell
from fastscore.suites.json_values import JsonValues, Problems, raw_texts, texts
from fastscore.suites.ragged import Indices, take

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

NOTHING = -1
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

    data: Bytes
    nodes: Nodes
    key: Indices
    keys: pl.Series

    @cached_property
    def tags(self) -> Bytes:
        """The kind of each node; one more, the last, which is that of `NOTHING`."""
        return np.append(self.nodes.tags, np.uint8(ABSENT))

    @property
    def roots(self) -> Indices:
        """The root of each cell."""
        return self.nodes.offsets[:-1]

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
        return np.isin(self.tags[rows], (STRING, ESCAPED))

    def members(
        self, objects: Indices, names: Sequence[str], meaning: Callable[[str], str] = str
    ) -> dict[str, Indices]:
        """Find members by name: for each name a node per object, `NOTHING` where there is none.

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
        table = np.full((len(names), len(objects)), NOTHING)
        table[code[self.key[rows]], place] = rows
        return dict(zip(names, table, strict=True))

    def key_codes(self, names: Sequence[str], meaning: Callable[[str], str] = str) -> Indices:
        """Return for each of `keys` its place among names, -1 for others."""
        place = {name: number for number, name in enumerate(names)}
        return np.array([place.get(meaning(key), -1) for key in self.keys], np.int64)

    def _places(self, rows: Indices) -> Indices:
        places = np.full(len(self.tags), -1)
        places[rows] = np.arange(len(rows))
        places[NOTHING] = -1
        return places

    def _values(self, rows: Indices) -> JsonValues:
        tags = self.tags[rows]
        if not len(self.nodes.start):
            rows = np.zeros(0, np.int64)
        start, end = self.nodes.start[rows], self.nodes.end[rows]
        return JsonValues(self.data, tags, start, end, np.arange(len(tags)), str)

    def texts(self, rows: Indices) -> pl.Series:
        """Return strings, null where a node is none; half a surrogate pair is U+FFFD."""
        values, problems = self._values(rows), Problems()
        found = texts(values, problems)
        for row in problems.by_dialogue:
            halved = values.python(row).encode("utf-16", "surrogatepass")
            found = found.scatter([row], [halved.decode("utf-16", "replace")])
        return found

    def scalars(self, rows: Indices) -> pl.Series:
        """Return scalars as Python writes them, null for nothing, null, arrays and objects."""
        found = self.texts(rows)
        other = np.flatnonzero(np.isin(self.tags[rows], (TRUE, FALSE, INTEGER, FLOAT)))
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
            numbers, found = distinct(column.filter(pl.Series(chosen)))
            codes[chosen] = numbers + len(values)
            values += map(read, found)
        return codes, values

    def truths(self, rows: Indices) -> pl.Series:
        """Return flags: true, 1, "true", "yes" and "1" are true, null unknown, all else false."""
        tags = self.tags[rows]
        said = self.scalars(rows).str.strip_chars().str.to_lowercase()
        true = said.is_in(("true", "yes", "1"))
        numbers = np.flatnonzero((tags == INTEGER) | (tags == FLOAT))
        if len(numbers):
            codes, values = self.distinct_values(rows[numbers])
            true = true.scatter(numbers, np.array([value == 1 for value in values])[codes])
        containers = np.flatnonzero((tags == ARRAY) | (tags == OBJECT))
        return true.scatter(containers, False) if len(containers) else true


def _read_json(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text  # an integer of more digits than Python converts


def read_trees(cells: pl.Series) -> tuple[Indices, CellTrees]:
    """Read cells as trees.

    Returns
    -------
    tuple
        The number of each cell's tree, int64 (n,), and the trees. A root is an object or array
        that is not empty; the text of a cell without a value; or a scalar or an empty value, JSON's
        null where the cell is absent (`cells.parse_cell`). No object has a key twice.
    """
    numbers, found = distinct(cells)
    trees = _walk(string_column("cells", found))
    trees = _with_literals(trees, found)
    odd = np.flatnonzero(_is_odd(trees))
    if len(odd):
        read = [_as_json(cell) for cell in found.gather(odd)]
        trees = _replace(trees, odd, _walk(string_column("cells", read)))
    return numbers, trees


def _walk(cells: StringColumn) -> CellTrees:
    return _trees(cells.data, find_nodes(cells.data, cells.offsets[:-1], cells.offsets[1:]))


def _with_literals(trees: CellTrees, cells: pl.Series) -> CellTrees:
    """Read the cells that are no JSON and simple literals of Python."""
    is_json = pl.Series(trees.tags[trees.roots] != ABSENT)
    rows = np.flatnonzero((~is_json & (cells.str.len_bytes() <= LARGEST_LITERAL)).to_numpy())
    if not len(rows):
        return trees
    literals = string_column("cells", cells.gather(rows))
    found = literals_to_json(literals.data, literals.offsets)
    starts, ends = found.offsets[:-1][found.written], found.offsets[1:][found.written]
    others = _trees(found.data, find_nodes(found.data, starts, ends))
    return _replace(trees, rows[found.written], others)


def _trees(data: Bytes, nodes: Nodes) -> CellTrees:
    rows = np.flatnonzero(nodes.key_tags != ABSENT)
    values = JsonValues(
        data, nodes.key_tags[rows], nodes.key_start[rows], nodes.key_end[rows], rows, str
    )
    codes, keys = distinct(texts(values, Problems()).fill_null("\N{REPLACEMENT CHARACTER}"))
    key = np.full(len(nodes.parent), -1)
    key[rows] = codes
    return CellTrees(data, nodes, key, keys)


def _is_odd(trees: CellTrees) -> Mask:
    """Tell which cells are no JSON object or array that is not empty, or have a key twice."""
    nodes = trees.nodes
    container = (trees.tags[trees.roots] == OBJECT) | (trees.tags[trees.roots] == ARRAY)
    odd: Mask = ~container | (np.diff(nodes.offsets) == 1)
    rows = trees._keyed
    member = pl.Series(nodes.parent[rows] * (len(trees.keys) + 1) + trees.key[rows])
    if member.n_unique() < len(member):
        twice = rows[member.is_duplicated().to_numpy()]
        odd[np.searchsorted(nodes.offsets, twice, side="right") - 1] = True
    return odd


def _as_json(cell: str) -> str:
    """Return a cell's value as JSON; what JSON has no word for, such as a set, says nothing."""
    try:
        return json.dumps(parse_cell(cell), skipkeys=True, default=lambda _: {})
    except RecursionError:
        return json.dumps(cell)


def _replace(trees: CellTrees, cells: Indices, others: CellTrees) -> CellTrees:
    """Put other trees in the place of those of some cells."""
    first, nodes, shift = trees.nodes, others.nodes, len(trees.data)
    n = len(first.parent)
    both = {
        name: np.concatenate([getattr(first, name), getattr(nodes, name)])
        for name in ("parent", "tags", "start", "end", "key_tags", "key_start", "key_end")
    }
    both["parent"][n:] += n * (nodes.parent >= 0)
    for name in ("start", "end", "key_start", "key_end"):
        both[name][n:] += shift
    chosen = np.arange(len(trees.roots))
    chosen[cells] = len(chosen) + np.arange(len(cells))
    all_offsets = np.concatenate([first.offsets, n + nodes.offsets[1:]])
    order, offsets = take((np.arange(len(both["parent"])), all_offsets), chosen)
    moved = np.full(n + len(nodes.parent), -1)
    moved[order] = np.arange(len(order))
    taken = {name: values[order] for name, values in both.items()}
    taken["parent"] = np.where(taken["parent"] >= 0, moved[taken["parent"]], -1)
    return _trees(np.concatenate([trees.data, others.data]), Nodes(offsets=offsets, **taken))
