"""Summaries with other groups, and with other units of their intervals."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

import fastscore
from fastscore import open_run
from fastscore.cli import cli
from fastscore.results.plots import plot_metric
from fastscore.results.runs import Run
from fastscore.statistics.clustered import clustered_mean
from fastscore.suites.registry import load_suite
from fastscore.suites.sums import defined_value
from tests.results.comparing import scored
from tests.results.conftest import SUITES

CLUSTERS = {
    "score_dialogue": "miner_uid",
    "group_travel": "condition",
    "guest_simulation": "persona",
    "preference_shift": "dialogue",
    "memory_finance": "scenario_type",
}
INTERVAL = ("units", "n_units", "ci_low", "ci_high", "degrees_of_freedom", "interval_reason")


def log(folder: Path, name: str, predictions: list[str], **labels: str) -> None:
    """Write the log of one dialogue with one utterance."""
    rows = [
        {"event": "predicted", "utterance_index": 0, "step": step, "prediction": text}
        for step, text in enumerate(predictions)
    ]
    rows.append({"event": "utterance_complete", "utterance_index": 0, "ground_truth": "abcd"})
    lines = (json.dumps({**row, **labels, "dialogue_uid": name}) for row in rows)
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run over dialogues of the miners "a" and "b", and of two unknown miners."""
    logs = tmp_path / "logs"
    logs.mkdir()
    log(logs, "d0", ["abcd", "abcx"], miner_uid="a")
    log(logs, "d1", ["abxx"], miner_uid="a")
    log(logs, "d2", ["abcx", "axxx", "abcd"], miner_uid="b")
    log(logs, "d3", ["abcd"])
    log(logs, "d4", ["xxxx"])
    words = ["score", "score_dialogue", str(logs), "-o", str(tmp_path / "run"), "-q"]
    done = CliRunner().invoke(cli, [*words, "--embedder", "none", "--lex-weight", "1"])
    assert done.exit_code == 0, done.output
    return open_run(tmp_path / "run")


@pytest.mark.parametrize("suite", SUITES)
def test_other_units_change_intervals_alone(suite: str, suite_runs: Mapping[str, Run]) -> None:
    run, column = suite_runs[suite], CLUSTERS[suite]
    clustered = fastscore.summary(run, cluster=column)
    assert_frame_equal(clustered.drop(INTERVAL), run.summary.drop(INTERVAL))
    dialogues = run.scan("dialogues").collect()
    for metric in load_suite(suite).metrics:
        if metric.table == "dialogues" and suite != "memory_finance":
            found = clustered.row(
                by_predicate=(pl.col("group") == "all") & (pl.col("metric") == metric.id),
                named=True,
            )
            valued = dialogues.filter(defined_value(metric).is_not_null())
            assert found["n_units"] == valued[column].n_unique()


def test_units_of_rows_are_found_through_their_dialogue(run: Run) -> None:
    row = fastscore.summary(run, cluster="miner_uid").row(
        by_predicate=(pl.col("group") == "all") & (pl.col("metric") == "lexical_similarity"),
        named=True,
    )
    # shares of "abcd" by edit distance: a has 1, 3/4 and 2/4, b 3/4, 1/4 and 1, others 1 and 0
    expected = clustered_mean([2.25, 2.0, 1.0, 0.0], [3, 3, 1, 1], (0.0, 1.0))
    assert (row["n"], row["n_units"], row["mean"]) == (8, 4, 5.25 / 8)
    assert (row["ci_low"], row["ci_high"]) == (
        pytest.approx(expected.low, rel=1e-12),
        pytest.approx(expected.high, rel=1e-12),
    )


def test_groups_and_units_go_together(run: Run) -> None:
    found = fastscore.summary(run, by=["miner_uid"], cluster="dialogue_uid")
    plain = fastscore.summary(run, by=["miner_uid"])
    assert_frame_equal(found.drop("units"), plain.drop("units"))
    crossed = fastscore.summary(run, by=["miner_uid", "file"], cluster="miner_uid")
    assert set(crossed["n_units"]) <= {0, 1}
    assert crossed["value"].n_unique() == 3


def test_too_few_units_have_no_interval_and_the_table_says_why(run: Run) -> None:
    done = CliRunner(env={"COLUMNS": "80"}).invoke(
        cli, ["summary", str(run.path), "--cluster", "miner_hotkey"]
    )
    # nobody has a hotkey: each dialogue is a unit of its own
    assert done.exit_code == 0
    assert "miner_hotkey" in done.output
    assert "[< 3" not in done.output
    done = CliRunner(env={"COLUMNS": "80"}).invoke(
        cli, ["summary", str(run.path), "--by", "miner_uid", "--cluster", "miner_uid"]
    )
    assert "by miner_uid: mean [95 % CI] with 3 or more units (miner_uid)" in done.output
    assert "n 3 in 1" in done.output
    summary = fastscore.summary(run, by=["miner_uid"], cluster="miner_uid")
    assert set(summary["interval_reason"]) == {"too_few_units"}


@pytest.mark.parametrize(("n", "more"), [(9, []), (4, ["--metric", "average_U_best_early"])])
def test_more_groups_than_fit_are_rows(tmp_path: Path, n: int, more: list[str]) -> None:
    logs = [(f"m{miner}", 0.2 + miner / 20, range(8)) for miner in range(n)]
    run = scored(tmp_path, "many", *logs)
    words = ["summary", str(run.path), "--by", "miner_uid", *more]
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(cli, words).output
    lines = {line.split()[0]: line for line in shown.splitlines() if line.startswith("m")}
    assert list(lines) == ["miner_uid", *(f"m{miner}" for miner in range(n))]
    assert "average_U_best_early ↑" in lines["miner_uid"]
    means = fastscore.summary(run, by=["miner_uid"]).filter(metric="average_U_best_early")
    for row in means.iter_rows(named=True):
        ends = f"[{row['ci_low']:.3f}, {row['ci_high']:.3f}]"
        assert f"{row['mean']:.3f} {ends}" in lines[row["value"]]


def test_a_note_says_what_shows_the_groups_that_do_not_fit(tmp_path: Path) -> None:
    run = scored(tmp_path, "many", *((f"m{miner}", 0.5, range(3)) for miner in range(10)))
    shown = CliRunner().invoke(cli, ["summary", str(run.path)]).output
    assert "2 more values of miner_uid: summary by miner_uid shows them" in shown
    everyone = CliRunner().invoke(cli, ["summary", str(run.path), "--by", "miner_uid"]).output
    assert all(f"m{miner}" in everyone for miner in range(10))


@pytest.mark.parametrize(
    "words", [[], ["--cluster", "dialogue"], ["--by", "miner_uid"], ["--metric", "U_best"]]
)
def test_json_has_the_columns_of_the_summary_whatever_is_asked(run: Run, words: list[str]) -> None:
    done = CliRunner().invoke(cli, ["summary", str(run.path), "--format", "json", *words])
    records = json.loads(done.output)["summary"]
    assert {tuple(record) for record in records} == {tuple(run.summary.columns)}
    if "--metric" not in words:
        assert {record["metric"] for record in records} == set(run.summary["metric"])


def test_every_format_has_both_ends_and_the_units(run: Run) -> None:
    def shown(format: str) -> str:
        words = ["summary", str(run.path), "--cluster", "miner_uid", "--format", format]
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0
        return done.output

    records = json.loads(shown("json"))["summary"]
    wanted = {name: value for name, value in records[0].items() if name in INTERVAL}
    summary = fastscore.summary(run, cluster="miner_uid")
    own = summary.filter(group="all", metric=records[0]["metric"]).row(0, named=True)
    assert wanted == {name: own[name] for name in INTERVAL}
    assert "n_units,mean,sd,ci_low,ci_high,degrees_of_freedom,interval_reason" in shown("csv")
    for format in ("markdown", "latex"):
        text = shown(format).replace("\\", "")
        assert "mean [95 % CI]" in text
        assert f"[{own['ci_low']:.4f}, {own['ci_high']:.4f}]" in text


def test_a_summary_of_an_older_release_is_made_again(run):
    path = run.path / "summary.parquet"
    older = pl.read_parquet(path).drop("n_units", "degrees_of_freedom", "interval_reason")
    expected = run.summary
    older.with_columns(ci_low=0.0).write_parquet(path)
    assert_frame_equal(open_run(run.path, verify=False).summary, expected)


def test_a_plot_draws_both_ends_of_an_interval(suite_runs: Mapping[str, Run]) -> None:
    run = suite_runs["preference_shift"]
    figure = plot_metric(run, "cas", by="model")
    rows = run.summary.filter(group="model", metric="cas").drop_nulls("mean")
    lines = [line.get_xdata() for line in figure.axes[0].lines]
    assert [line[0] for line in lines if len(line) == 1] == pytest.approx(rows["mean"].to_list())
    drawn = np.array([line for line in lines if len(line) == 2])
    assert drawn == pytest.approx(rows.select("ci_low", "ci_high").drop_nulls().to_numpy())
    reach = rows.select(pl.col("mean") - pl.col("ci_low"), pl.col("ci_high") - pl.col("mean"))
    assert not np.allclose(*reach.drop_nulls().to_numpy().T)
