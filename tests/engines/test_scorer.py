"""The recipes of docs/scorer.md, each run as the page shows it, give the numbers of a run."""

import os
import subprocess
import sys

import polars as pl
import pytest

import fastscore
from tests.conftest import NIGHTLY
from tests.documented import ROOT, steps_of_page
from tests.run.logs import write_varied_logs

PAGE = "docs/scorer.md"
KEEP = """
import pyarrow, polars
kept = "scores" if os.path.isdir("scores") else "scores.parquet"
if kept != "scores":
    polars.DataFrame(polars.from_arrow(scores)).write_parquet(kept)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with logs, and a table of them in files that cut dialogues."""
    place = tmp_path_factory.mktemp("scorer")
    write_varied_logs(place / "logs", files=3, dialogues=15)
    return place


RECIPES = {
    "duckdb": "import duckdb",
    "dask.dataframe": "import dask.dataframe",
    "ray": "@ray.remote",
    "ray.data": "ray.data.read_parquet",
    "pyspark": "from pyspark",
    "daft": "import daft",
}
"""By the module that it needs, what stands in the block of a recipe alone."""


def recipe(module):
    """Return what the page begins with, but for its table, and the recipe for an engine."""
    first, *blocks = [step.code for step in steps_of_page(PAGE) if step.is_python]
    (found,) = [block for block in blocks if RECIPES[module] in block]
    return first.replace("rows", "# rows"), found


def write_turns(place, folder, *, whole):
    """Write the logs as a table: a file each, or files that cut dialogues."""
    turns = fastscore.scan(str(place / "logs"), "score_dialogue").with_row_index("row").collect()
    files = turns.partition_by("file") if whole else turns.iter_slices(100)
    folder.mkdir(parents=True)
    for number, rows in enumerate(files):
        rows.write_parquet(folder / f"{number}.parquet")


def run_recipe(folder, module):
    """Run a recipe in a process of its own; return its scores."""
    first, block = recipe(module)
    code = "\n".join(["import os", first, block, KEEP])
    (folder / "recipe.py").write_text(f"if __name__ == '__main__':\n{_indented(code)}")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(
        [sys.executable, "recipe.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if (folder / "scores").is_dir():
        return pl.read_parquet(folder / "scores" / "*.parquet")
    return pl.read_parquet(folder / "scores.parquet")


def _indented(code):
    return "".join(f"    {line}\n" for line in code.splitlines())


def sorted_plainly(steps):
    """Sort steps, and make reasons texts, as engines have them."""
    reason = pl.struct(
        pl.element().struct.field("metric"), pl.element().struct.field("reason").cast(pl.String)
    )
    named = steps.with_columns(pl.col("null_reasons").list.eval(reason))
    return named.sort("dialogue", "utterance_index", "step")


BY_NIGHT = ("ray", "ray.data", "pyspark", "daft")
"""Engines that take a minute to start."""


@pytest.mark.parametrize("module", [name for name in RECIPES if NIGHTLY or name not in BY_NIGHT])
def test_a_recipe_gives_the_numbers_of_a_run(place, tmp_path, module):
    pytest.importorskip(module)
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    run = fastscore.score(str(place / "logs"), options, output=tmp_path / "run")
    write_turns(place, tmp_path / "recipe" / "turns", whole=module == "ray")
    found = run_recipe(tmp_path / "recipe", module)
    expected = sorted_plainly(run.tables["steps"])
    assert sorted_plainly(found.select(expected.columns)).equals(expected)
