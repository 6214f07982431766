"""docs/design.md describes the code as it is."""

import dataclasses
import re
import tomllib
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path

import grimp
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from fastscore.suites.base import FunctionAt, Suite
from fastscore.suites.declarations import Column, Metric

ROOT = Path(__file__).parents[1]
DESIGN = (ROOT / "docs" / "design.md").read_text()


def test_adding_a_suite_names_every_field_of_the_declaration():
    section = DESIGN.split("## Adding a suite")[1]
    found = [name for name, field in vars(Suite).items() if isinstance(field, FunctionAt)]
    fields = [*(field.name for field in dataclasses.fields(Suite)), *found]
    assert {"read", "legacy_files", "perplexity_texts", "texts_in_logs"} <= {*fields}
    assert [name for name in fields if f"`{name}`" not in section] == []


@pytest.mark.parametrize(("declaration", "most"), [(Metric, 18), (Suite, 16), (Column, 10)])
def test_a_declaration_is_no_wider_than_its_author_can_see(declaration, most):
    assert len(dataclasses.fields(declaration)) <= most


def test_the_table_of_packages_has_every_package_that_the_linter_orders():
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = configuration["tool"]["importlinter"]["contracts"]
    orders = [each for each in contracts if each["type"] == "layers"]
    (layers,) = (each["layers"] for each in orders if "containers" not in each)
    table = DESIGN.split("| Package |")[1].split("\n\n")[0]
    rows = [[table.index(f"`{name}`") for name in layer.split(" | ")] for layer in layers]
    # a package that may import another one is below it
    assert all(min(above) > max(below) for above, below in pairwise(rows))


def test_no_module_names_the_type_that_one_build_of_polars_counts_rows_in():
    """It is UInt64 with `polars[rtcompat]`: a cast of all UInt32 would cast nothing."""
    sources = sorted((ROOT / "fastscore").rglob("*.py"))
    assert [each.name for each in sources if "pl.UInt32" in each.read_text()] == []


@cache
def graph_of_imports():
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    packages = configuration["root_packages"]
    return grimp.build_graph(*packages, exclude_type_checking_imports=True, cache_dir=None)


def test_the_table_of_packages_is_the_graph_of_imports():
    graph = graph_of_imports()
    rows = DESIGN.split("| Package |")[1].split("\n\n")[0].splitlines()[2:]
    cells = [row.strip("| ").split(" | ") for row in rows]
    packages = {first.strip("`"): set(re.findall(r"`(\w+)`", last)) for first, _, last in cells}
    imported = defaultdict(set)
    for module in graph.modules:
        if ".verbs." in module:  # part of the command line
            continue
        for other in graph.find_modules_directly_imported_by(module):
            names = [_package(name, packages) for name in (module, other)]
            if names[0] and names[1] and names[0] != names[1]:
                imported[names[0]].add(re.sub(r"^fastscore[._]", "", names[1]))
    assert {name: imported[name] for name in packages} == packages


def _package(module, packages):
    """Return the package of the table that a module lies in."""
    return next((name for name in packages if f"{module}.".startswith(f"{name}.")), None)


@pytest.mark.parametrize("package", ["results", "suites", "statistics", "api"])
def test_no_files_of_a_package_import_each_other_in_a_circle(package):
    """Late imports count too."""
    graph = graph_of_imports()
    modules = sorted(name for name in graph.modules if name.startswith(f"fastscore.{package}."))
    imports = [graph.find_modules_directly_imported_by(name) for name in modules]
    edges = np.array([[other in found for other in modules] for found in imports])
    count, circles = connected_components(edges, directed=True, connection="strong")
    assert count == len(modules), sorted(zip(circles.tolist(), modules, strict=True))
