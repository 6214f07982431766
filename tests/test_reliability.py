"""The page on reliability names tests that exist."""

import ast
import re

import pytest

from tests.documented import ROOT

PAGE = (ROOT / "docs" / "reliability_tests.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (A?\d+) \|(.*)\|$", PAGE, re.MULTILINE)


def names_in(path):
    """Return the names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_rows_are_numbered():
    attacks = [f"A{number}" for number in range(1, 27)]
    assert [number for number, _ in ROWS] == [*attacks, *map(str, range(1, 31))]


@pytest.mark.parametrize(("number", "row"), ROWS)
def test_every_named_test_exists(number, row):
    named = re.findall(r"`(tests/[^`]*)`", row.rpartition("|")[2])
    assert named, f"{number} names no test"
    for name in named:
        path, _, test = name.partition("::")
        assert (ROOT / path).exists(), name
        assert not test or test in names_in(path), name
