"""A suite of another package plugs in by its entry point: installed, scored, summarised."""

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

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
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "fastscore", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_it_is_scored_like_any_other(site, tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in LOG))
    done = fastscore(site, "score", "turn_length", str(log), "-o", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    scored = pl.read_parquet(tmp_path / "run" / "dialogues" / "part-00000.parquet")
    # a: (3 + 1) / 2; b: no word
    assert scored.select("dialogue", "words").rows() == [("a", 2.0), ("b", 0.0)]
    summary = json.loads(fastscore(site, "summary", str(tmp_path / "run"), "--json").stdout)
    assert summary["summary"][0]["mean"] == 1.0
    explained = fastscore(site, "explain", str(tmp_path / "run"), "a", "words", "--json")
    assert json.loads(explained.stdout)["explanations"][0]["value"] == 2.0, explained.stderr


def test_its_option_metric_and_missing_column_are_told(site, tmp_path):
    assert "The fewest letters of a word" in fastscore(site, "score", "turn_length", "-h").stdout
    assert "mean of words over turns" in fastscore(site, "metrics", "turn_length").stdout
    renamed = tmp_path / "renamed.jsonl"
    renamed.write_text('{"dialogue": "a", "texts": "one"}\n')
    done = fastscore(site, "score", "turn_length", str(renamed), "-o", str(tmp_path / "run"))
    assert done.returncode == 3
