"""docs/design.md says of the code what is so."""

import inspect
import tomllib
from itertools import pairwise
from pathlib import Path

from fastscore.suites.base import ChecksOptions, ComparesLongTexts, ScoresPerplexity, Suite

ROOT = Path(__file__).parents[1]
DESIGN = (ROOT / "docs" / "design.md").read_text()


def test_adding_a_suite_names_everything_that_the_protocols_ask_for() -> None:
    section = DESIGN.split("## Adding a suite")[1]
    asked = {
        name
        for protocol in (Suite, ChecksOptions, ComparesLongTexts, ScoresPerplexity)
        for name, member in vars(protocol).items()
        if not name.startswith("_") and inspect.isfunction(member)
    }
    assert {"events", "legacy_files", "check", "perplexity_texts"} <= asked
    assert [name for name in asked | {"runs_without_embedder"} if f"`{name}`" not in section] == []


def test_the_table_of_packages_has_every_package_that_the_linter_orders() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = configuration["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each["type"] == "layers")
    table = DESIGN.split("| Package |")[1].split("\n\n")[0]
    rows = [[table.index(f"`{name}`") for name in layer.split(" | ")] for layer in layers]
    # what may import the other stands below it
    assert all(min(above) > max(below) for above, below in pairwise(rows))
