"""A suite of a user is one function: scored, summarised, explained, on an engine."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.errors import InputError, UsageError
from fastscore.results.explaining import Dialogues
from fastscore.suites import registry
from tests.run.running import contents

TOY = Path(__file__).parents[2] / "examples" / "toy_suite"
ROWS = [
    {"dialogue": "a", "text": "one two three", "score": 1.0},
    {"dialogue": "a", "text": "four", "score": 0.0},
    {"dialogue": "b", "text": "", "score": 0.5},
]
FACTS: dict[str, Any] = {"range": (0, None), "better": "neither"}


@pytest.fixture(autouse=True)
def _declared_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_declared_here", {})


def made(**more: Any) -> Any:
    @fastscore.suite(
        **{"columns": {"text": str, "score": float}, "metrics": {"words": FACTS, "low": FACTS}}
        | more
    )
    def two_numbers(rows: pl.LazyFrame) -> pl.LazyFrame:
        """Words and lowest scores.

        The mean of words over turns, and the minimum of scores.
        """
        words = pl.col("text").str.count_matches(r"\S+").mean()
        return rows.group_by("dialogue_row").agg(words=words, low=pl.col("score").min())

    return two_numbers


def test_rows_of_python_are_scored_by_it() -> None:
    suite = made()
    scores = fastscore.score(ROWS, suite)
    # a: (3 + 1) / 2 words, the lower of 1 and 0; b: no word, 0.5
    found = scores.tables["dialogues"].select("dialogue", "words", "low").rows()
    assert found == [("a", 2.0, 0.0), ("b", 0.0, 0.5)]
    means = dict(scores.summary.select("metric", "mean").rows())
    assert means == {"words": 1.0, "low": 0.25}
    assert suite.title == "Words and lowest scores"
    assert f"suite=two_numbers.1|embedder=none|code={suite.code[0]}" in scores.signature
    assert (
        fastscore.score(ROWS, "two_numbers").tables["dialogues"].equals(scores.tables["dialogues"])
    )


def test_refused_files_leave_nothing_in_a_new_run_directory(tmp_path: Path) -> None:
    for name in ("first", "second"):
        pl.DataFrame(ROWS).write_ndjson(tmp_path / f"{name}.jsonl")
    with pytest.raises(InputError, match=r"One dialogue is in two files"):
        fastscore.score(tmp_path / "*.jsonl", made(), output=tmp_path / "run")
    assert list((tmp_path / "run").glob("[!.]*")) == []
    # a run that was planned before stays as it is
    fastscore.score(tmp_path / "first.jsonl", made(), output=tmp_path / "run")
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    with pytest.raises(InputError, match=r"One dialogue is in two files"):
        fastscore.score(tmp_path / "*.jsonl", made(), output=tmp_path / "run")
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


def test_another_column_names_the_dialogues_and_metrics_can_be_added() -> None:
    suite = made(dialogue="talk", version=2)
    rows = [{**row, "talk": row["dialogue"]} for row in ROWS]

    @fastscore.metric(suite="two_numbers", range=(0, None), better="higher")
    def turns(rows: pl.LazyFrame) -> pl.LazyFrame:
        """Turns of a dialogue."""
        return rows.group_by("dialogue_row").agg(pl.len())

    scores = fastscore.score(rows, suite, metrics=[turns])
    assert scores.tables["dialogues"]["turns"].to_list() == [2.0, 1.0]
    assert scores.tables["dialogues"]["dialogue"].to_list() == ["a", "b"]
    assert "suite=two_numbers.2" in scores.signature


def test_bad_declarations_and_returns_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="column 'text' is <class 'set'>, expected one of str, in"):
        made(columns={"text": set})
    with pytest.raises(
        UsageError, match="'words, lows' returned columns dialogue_row, words, low; exp"
    ):
        fastscore.score(ROWS, made(metrics={"words": FACTS, "lows": FACTS}))
    narrow = {"words": FACTS, "low": {"range": (0.25, 1), "better": "higher"}}
    with pytest.raises(UsageError, match=r"'low' returned 0 for dialogue 'a' .*from 0\.25 to 1"):
        fastscore.score(ROWS, made(metrics=narrow))
    for name in ("file", "line"):
        with pytest.raises(UsageError, match=f"Column '{name}': every suite has a column of this"):
            made(columns={name: str})
    for name in ("", "x:open", "^x$", "x\ny", "*"):
        with pytest.raises(UsageError, match="expected a name such as of a function"):
            made(metrics={name: FACTS})
    with pytest.raises(UsageError, match="would have two columns 'dialogue'"):
        made(dialogue=("dialogue", "model"))
    with pytest.raises(UsageError, match="is declared in this process alone, and workers do not"):
        fastscore.score(ROWS, made(), engine="dask", output="run")

    def other(turns: pl.LazyFrame) -> pl.LazyFrame:
        """Take something else."""
        return turns

    with pytest.raises(UsageError, match="'other' takes turns; expected rows or rows, options"):
        fastscore.suite(columns={}, metrics={"x": FACTS})(other)


def test_its_run_asks_a_process_that_has_not_imported_it_to_do_so(tmp_path: Path) -> None:
    run = fastscore.score(ROWS, made(), output=tmp_path / "run")
    registry._declared_here.clear()
    with pytest.raises(UsageError, match="a suite of your own, import its file first, or install"):
        fastscore.compare(run, run.path)


def test_the_toy_suite_has_at_most_25_lines() -> None:
    assert len((TOY / "turn_length" / "__init__.py").read_text().splitlines()) <= 25


def command(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{site}:{os.environ.get('PYTHONPATH', '')}"}
    line = [sys.executable, "-m", "fastscore", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False, env=environment)


def test_the_toy_suite_is_installed_and_runs_on_an_engine(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install = [*words, "--no-build-isolation", "--target", str(tmp_path / "site"), str(TOY)]
    subprocess.run(install, check=True, capture_output=True)
    log, run = tmp_path / "log.jsonl", tmp_path / "run"
    log.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    score = ("score", "turn_length", str(log), "--shortest", "4")
    assert command(tmp_path / "site", *score, "-o", str(run)).returncode == 0
    whole = contents(run)
    # a: of four letters or more: "three" and "four", (1 + 1) / 2
    table = pl.read_parquet(run / "dialogues" / "*.parquet")
    assert table.select("dialogue", "words").rows() == [("a", 1.0), ("b", 0.0)]
    engine = ("--engine", "dask", "--workers", "1", "-o", str(tmp_path / "dask"))
    done = command(tmp_path / "site", *score, *engine)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "dask") == whole


@pytest.mark.parametrize("id", ["a / b", "d1.json", "50%", "frame"])
def test_its_dialogues_are_explained_by_the_ids_of_the_log(tmp_path: Path, id: str) -> None:
    rows = [row | {"dialogue": id if row["dialogue"] == "a" else "other"} for row in ROWS]
    run = fastscore.score(rows, made(), output=tmp_path / "run")
    assert Dialogues(run).find(id) == 0
