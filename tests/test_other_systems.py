"""fastscore as on macOS and Windows, without the features of Linux."""

import os
from pathlib import Path

import polars as pl
import pytest

import fastscore
from tests.conftest import python_process
from tests.other_systems import lend_kernels

ROOT = Path(__file__).parents[1]
SCORE = """
import sys
from tests.other_systems import pretend
pretend(sys.argv[1])
import fastscore
scored = fastscore.score(sys.argv[2], fastscore.ScoreDialogue(lex_weight=1.0), output=sys.argv[3])
again = fastscore.score(sys.argv[2], fastscore.ScoreDialogue(lex_weight=1.0), output=sys.argv[3])
print("numba" in sys.modules, scored.tables["dialogues"].equals(again.tables["dialogues"]))
"""


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_an_example_is_scored_without_what_linux_alone_has(tmp_path, platform):
    fastscore.example("score_dialogue", tmp_path / "example")
    logs = tmp_path / "example" / "logs"
    here = fastscore.score(logs, fastscore.ScoreDialogue(lex_weight=1.0))
    lend_kernels(tmp_path / "cache", platform)
    run = python_process(
        SCORE,
        platform,
        logs,
        tmp_path / "run",
        env={**os.environ, "FASTSCORE_CACHE": str(tmp_path / "cache")},
        cwd=ROOT,
    )
    assert (run.stdout, run.returncode) == ("False True\n", 0), run.stderr[-3000:]
    for name, table in here.tables.items():
        there = pl.read_parquet(tmp_path / "run" / name / "*.parquet")
        assert there.equals(table.collect() if isinstance(table, pl.LazyFrame) else table)


def test_free_threaded_builds_are_refused_in_one_sentence():
    program = "import sys; sys.version = '3.14.0 free-threading build'; import fastscore"
    run = python_process(program, cwd=ROOT)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith(
        "ImportError: fastscore does not run on free-threaded builds of CPython: use the standard"
    )
