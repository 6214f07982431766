"""A suite of another package plugs in by its entry point: installed, scored, summarised."""

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import write_lines
from tests.run.running import contents

PACKAGE = Path(__file__).parents[2] / "examples" / "toy_suite"
LOG = [
    {"dialogue": "a", "text": "one two three"},
    {"dialogue": "a", "text": "four"},
    {"dialogue": "b", "text": ""},
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command = [*words, "--no-build-isolation", "--target", str(folder), str(PACKAGE)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def fastscore(site, *words):
    environment = {**os.environ, "PYTHONPATH": f"{site}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "fastscore", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_it_is_scored_like_any_other(site, tmp_path):
    log = write_lines(tmp_path / "log.jsonl", LOG)
    done = fastscore(site, "score", "turn_length", str(log), "-o", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    scored = pl.read_parquet(tmp_path / "run" / "dialogues" / "part-00000.parquet")
    # a: (3 + 1) / 2; b: no word
    assert scored.select("dialogue", "words").rows() == [("a", 2.0), ("b", 0.0)]
    summary = json.loads(fastscore(site, "summary", str(tmp_path / "run"), "--json").stdout)
    assert summary["summary"][0]["mean"] == 1.0
    explained = fastscore(site, "explain", str(tmp_path / "run"), "a", "words", "--json")
    assert json.loads(explained.stdout)["explanations"][0]["value"] == 2.0, explained.stderr


def test_it_has_at_most_25_lines():
    assert len((PACKAGE / "turn_length" / "__init__.py").read_text().splitlines()) <= 25


def test_an_engine_leaves_the_same_bytes(site, tmp_path):
    pytest.importorskip("distributed")
    words = ("score", "turn_length", str(write_lines(tmp_path / "log.jsonl", LOG)))
    engine = ("--engine", "dask", "--workers", "1")
    for run, more in (("here", ()), ("there", engine)):
        done = fastscore(site, *words, "--shortest", "4", "-o", str(tmp_path / run), *more)
        assert done.returncode == 0, done.stderr
    # a: of four letters or more: "three" and "four", (1 + 1) / 2
    table = pl.read_parquet(tmp_path / "here" / "dialogues" / "*.parquet")
    assert table.select("dialogue", "words").rows() == [("a", 1.0), ("b", 0.0)]
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_its_option_metric_and_missing_column_are_told(site, tmp_path):
    assert "The fewest letters of a word" in fastscore(site, "score", "turn_length", "-h").stdout
    assert "mean of words over turns" in fastscore(site, "metrics", "turn_length").stdout
    renamed = tmp_path / "renamed.jsonl"
    renamed.write_text('{"dialogue": "a", "texts": "one"}\n')
    done = fastscore(site, "score", "turn_length", str(renamed), "-o", str(tmp_path / "run"))
    assert done.returncode == 3
