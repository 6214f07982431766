"""docs/design.md describes the code as it is."""

import dataclasses
import re
import sys
import tomllib
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path

import grimp
import pytest

import fastscore
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.integrity.file_state import FileRange, Shard
from fastscore.logs.plan.shards import Plan
from fastscore.logs.samples.screening import Screened
from fastscore.run.inputs import NamedInputs, PlannedInputs
from fastscore.suites.base import FunctionAt, Suite
from fastscore.suites.declarations import Column, Metric

ROOT = Path(__file__).parents[1]
DESIGN = (ROOT / "docs" / "design.md").read_text()

FILES = (InputFile, Screened, NamedInputs, PlannedInputs, Plan, Shard, FileRange)


@pytest.mark.parametrize("on_disk", [True, False])
def test_the_files_of_a_run_return_to_its_driver_twice(tmp_path, on_disk):
    """What is made of them goes down again each time: first to be planned, then to be scored."""
    log = ROOT / "tests" / "suites" / "score_dialogue" / "golden" / "b.jsonl"
    output = tmp_path / "run" if on_disk else None
    driver = "fastscore.run.drive" if on_disk else "fastscore.api.scoring"
    returned = []

    def watch(frame, event, result):
        below = frame.f_globals.get("__name__", "")
        caller = frame.f_back.f_globals.get("__name__") if frame.f_back else None
        if event != "return" or caller != driver or below in (driver, "dataclasses"):
            return
        first = next(iter(result), None) if isinstance(result, list | tuple) else result
        if below.startswith("fastscore.") and isinstance(first, FILES):
            returned.append(f"{below}.{frame.f_code.co_name}")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        fastscore.score(
            log, fastscore.ScoreDialogue(lex_weight=1.0), output=output, workers=1, max_rejects=1.0
        )
    finally:
        sys.setprofile(before)
    assert returned == ["fastscore.run.inputs.named_inputs", "fastscore.run.inputs.plan_inputs"]


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
    """Tarjan's strongly connected components, over late imports too."""
    graph = graph_of_imports()
    modules = {name for name in graph.modules if name.startswith(f"fastscore.{package}.")}
    order = {}
    low = {}
    stack = []
    circles = []

    def visit(module):
        order[module] = low[module] = len(order)
        stack.append(module)
        for imported in graph.find_modules_directly_imported_by(module) & modules:
            if imported not in order:
                visit(imported)
                low[module] = min(low[module], low[imported])
            elif imported in stack:
                low[module] = min(low[module], order[imported])
        if low[module] == order[module]:
            start = stack.index(module)
            circles.append(stack[start:])
            del stack[start:]

    for module in sorted(modules):
        if module not in order:
            visit(module)
    assert [circle for circle in circles if len(circle) > 1] == []
