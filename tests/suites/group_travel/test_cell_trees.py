"""Cells as trees against Python's own reading of each cell."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from fastscore_readers.json.tokens import ARRAY, OBJECT
from hypothesis import given
from hypothesis import strategies as st

from fastscore.suites.group_travel.cell_trees import CellTrees, read_trees
from fastscore.suites.group_travel.cells import as_text, is_present, parse_cell

TEXTS = st.text(max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("ab") | TEXTS | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)
STRANGE = [
    *("", " ", "nan", '"nan"', "None", "{}", "[]", "-", "()", "{1, 2}", "text", "'text'", "1"),
    *('"[1]"', '{"a": 1, "a": [2]}', "{'a': 1, 'a': {}}", "[1, {2}]", "[1", "{'a': b'x'}", "NaN"),
    *('{"a": ' + " " * 80 + "}", " " * 80 + "[]", " " * 80 + '"', '["\\u00e9"]', "['\\u00e9']"),
    "\ufeff[1]",
]
CELLS = st.sampled_from(STRANGE) | VALUES.flatmap(
    lambda value: st.sampled_from(
        [repr(value), json.dumps(value), json.dumps(json.dumps(value)), json.dumps(value, indent=1)]
    )
)


def plain(value: Any) -> Any:
    """Return a value as its JSON has it; a set says nothing."""
    return json.loads(json.dumps(value, skipkeys=True, default=lambda _: {}))


def read_again(trees: CellTrees, node: int) -> Any:
    """Build a node's value from the nodes below it."""
    below = [int(row) for row in (trees.nodes.parent == node).nonzero()[0]]
    kind = int(trees.tags[node])
    if kind == OBJECT:
        return {trees.keys[int(trees.key[row])]: read_again(trees, row) for row in below}
    if kind == ARRAY:
        return [read_again(trees, row) for row in below]
    _, values = trees.distinct_values(np.array([node]))
    return values[0]


@given(st.lists(CELLS, max_size=6))
def test_a_tree_is_what_python_reads(cells: list[str]) -> None:
    numbers, trees = read_trees(pl.Series(cells, dtype=pl.String))
    for cell, number in zip(cells, numbers, strict=True):
        expected = plain(parse_cell(cell))
        assert repr(read_again(trees, int(trees.roots[number]))) == repr(expected)


@given(st.lists(CELLS, max_size=6), st.sampled_from(["a", "b"]))
def test_members_texts_and_flags(cells: list[str], name: str) -> None:
    numbers, trees = read_trees(pl.Series(cells, dtype=pl.String))
    found = trees.members(trees.roots, (name, "other"))[name]
    texts, flags = trees.scalars(found), trees.booleans(found)
    for cell, number in zip(cells, numbers, strict=True):
        value = plain(parse_cell(cell))
        member = value.get(name) if isinstance(value, dict) else None
        assert texts[int(number)] == as_text(member)
        assert flags[int(number)] == _boolean_text(member)


def _boolean_text(value: Any) -> bool | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.strip().lower() in ("true", "yes", "1")
    return isinstance(value, int | float) and value == 1


def test_a_lone_surrogate_and_numbers_without_end() -> None:
    many = "1" * 5000
    _, trees = read_trees(pl.Series(['{"a": "x\\ud800"}', f'{{"a": {many}}}']))
    assert trees.scalars(trees.members(trees.roots, ("a",))["a"]).to_list() == ["x\ufffd", many]


@pytest.mark.parametrize("padding", [0, 70])
def test_presence(padding: int) -> None:
    absent = ["", "nan", "NaN", "None", "null", "{}", "[]", "-", ' "nan" ', '""']
    present = ["x", "[1]", '"x"', "nano", "{} {}", "0"]
    cells = [" " * padding + cell + " " * padding for cell in (*absent, *present)]
    expected = [False] * len(absent) + [True] * len(present)
    assert is_present(pl.Series([*cells, None])).to_list() == [*expected, False]
