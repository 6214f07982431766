"""Checks for continuous integration: limits, drops, formats, exit codes."""

import json
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from fastscore.errors import RunError, UsageError
from fastscore.results.checks import CheckLimits, _drop, check, github_lines, junit
from fastscore.results.runs import Run, open_run
from fastscore.suites.registry import load_suite
from tests.conftest import fastscore_command
from tests.results.conftest import SuiteRuns


@pytest.fixture
def run(suite_runs: Mapping[str, Run]) -> Run:
    return suite_runs["guest_simulation"]


def mean_of(run: Run, metric: str) -> float:
    rows = run.summary.filter(pl.col("group") == "all", pl.col("metric") == metric)
    return float(rows["mean"][0])


def test_bounds_nulls_and_rejects(run: Run) -> None:
    mean = mean_of(run, "PAS")
    limits = CheckLimits(
        minimum={"PAS": mean, "CRRS": 1.0},
        maximum={"PAS": mean, "CRRS": 0.0},
        nulls={"PAS": 0.0},
        rejects=0.0,
    )
    found = check(run, limits)
    assert [one.outcome for one in found] == [
        *("passed", "failed"),
        *("passed", "failed"),
        *("passed", "passed"),
    ]


@pytest.mark.parametrize(
    ("low", "high", "allowed", "outcome"),
    [
        (-0.05, -0.02, 0.01, "failed"),  # between 0.02 and 0.05 worse
        (-0.005, 0.02, 0.01, "passed"),  # at most 0.005 worse
        (-0.05, 0.02, 0.01, "undecided"),
        (0.01, 0.05, 0.0, "passed"),  # better
    ],
)
def test_drops_go_by_the_interval(low: float, high: float, allowed: float, outcome: str) -> None:
    metrics = {metric.id: metric for metric in load_suite("group_travel").metrics}
    row = {"difference": (low + high) / 2, "low": low, "high": high, "n_a": 9}
    row |= {"mean_a": 0.5, "mean_b": 0.5 + (low + high) / 2}
    assert _drop(metrics["M9"], row, allowed, fail_undecided=False).outcome == outcome
    strict = _drop(metrics["M9"], row, allowed, fail_undecided=True)
    assert strict.outcome == ("failed" if outcome == "undecided" else outcome)
    # of a metric that is better lower, the same with the signs exchanged
    mirrored = {**row, "difference": -row["difference"], "low": -high, "high": -low}
    assert _drop(metrics["M13"], mirrored, allowed, fail_undecided=False).outcome == outcome


def test_a_run_has_not_dropped_against_itself(suite_runs: Mapping[str, Run]) -> None:
    run = suite_runs["group_travel"]
    (found,) = check(run, CheckLimits(drops={"M9": 0.0}), run)
    assert found.outcome == "passed"
    assert found.detail.startswith("not worse")


def test_what_cannot_be_checked_is_said(run: Run) -> None:
    with pytest.raises(UsageError, match="nothing to check"):
        check(run, CheckLimits())
    with pytest.raises(UsageError, match="no metric 'PAZ'"):
        check(run, CheckLimits(minimum={"PAZ": 0.5}))
    with pytest.raises(UsageError, match="from another run"):
        check(run, CheckLimits(drops={"PAS": 0.1}))


def test_a_damaged_run_is_no_result(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    part = next((copy / "dialogues").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(RunError):
        check(open_run(copy), CheckLimits(minimum={"PAS": 0.0}))
    assert fastscore_command(["check", copy, "--min", "PAS=0"]).returncode == 4


def test_reports_for_build_servers(run: Run) -> None:
    found = check(run, CheckLimits(minimum={"PAS": 2.0}, rejects=1.0))
    root = ElementTree.fromstring(junit(found, run))
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    (line,) = github_lines(found)
    assert line.startswith("::error title=fastscore check::PAS at least 2: found 0.")


def test_the_command_reads_flags_and_configuration(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "fastscore.toml"
    config.write_text('[check]\nmin = {PAS = 0.0}\nmax_null = {PAS = "5%"}\nmax_rejects = "1%"\n')
    passed = fastscore_command(["check", run.path, "--config", config, "--format", "json"])
    assert passed.returncode == 0, passed.stderr
    assert [one["outcome"] for one in json.loads(passed.stdout)] == ["passed"] * 3
    failed = fastscore_command(
        ["check", run.path, "--min", "guest_simulation.PAS=1.1", "--junit", tmp_path / "junit.xml"]
    )
    assert failed.returncode == 1
    assert "failed" in failed.stdout
    assert (tmp_path / "junit.xml").exists()
    config.write_text("[check]\nmix = 1\n")
    wrong = fastscore_command(["check", run.path, "--config", config])
    assert wrong.returncode == 2
    assert "no key 'mix'" in wrong.stderr


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ("against = 3", "check.against is 3, expected a text"),
        ("min = 3", "check.min is 3, expected a table of metrics"),
        ('fail_undecided = "no"', "check.fail_undecided is 'no', expected true or false"),
        ("max_null = {PAS = 5}", "'5' is no share. Write 5 percent as 0.05 or 5%"),
        ('max_rejects = "lots"', "'lots' is no number"),
        (f"min = {'[' * 100_000}", "fastscore.toml: nested too deeply"),
        ("min = {memory_finance.PAS = 1}", "no metric 'memory_finance.PAS'"),
    ],
)
def test_a_wrong_limit_is_refused(run: Run, tmp_path: Path, limits: str, message: str) -> None:
    config = tmp_path / "fastscore.toml"
    config.write_text(f"[check]\n{limits}\n")
    wrong = fastscore_command(["check", run.path, "--config", config])
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert message in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_a_configuration_may_name_the_suite_and_everything_else(
    suite_runs: SuiteRuns, tmp_path: Path
) -> None:
    run, other = suite_runs["guest_simulation"], suite_runs.second("guest_simulation")
    config = tmp_path / "fastscore.toml"
    limits = "[check.min]\nguest_simulation.PAS = 0.0\n[check.max_drop]\nPAS = 1.0\n"
    command = ["check", other.path, "--config", config, "--format", "json"]
    config.write_text(f"[check]\nagainst = {json.dumps(str(run.path))}\n{limits}")
    refused = fastscore_command(command)
    assert refused.returncode == 2
    assert "--pair-by dialogue" in refused.stderr
    named = 'pair_by = "dialogue"\nfail_undecided = true\n'
    config.write_text(f"[check]\nagainst = {json.dumps(str(run.path))}\n{named}{limits}")
    passed = fastscore_command(command)
    assert passed.returncode == 0, passed.stderr
    least, drop = json.loads(passed.stdout)
    assert (least["name"], drop["name"]) == ("PAS at least", "PAS drop at most")
    names = run.table("dialogues").select("dialogue").collect()["dialogue"].n_unique()
    assert f"{names} pairs" in drop["detail"]


def test_runs_of_two_suites_are_refused_before_their_metrics(suite_runs: SuiteRuns) -> None:
    with pytest.raises(UsageError, match="numbers of different suites do not compare"):
        check(
            suite_runs["group_travel"], CheckLimits(drops={"M9": 0.1}), suite_runs["memory_finance"]
        )
