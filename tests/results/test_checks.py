"""Checks for continuous integration: limits, drops, formats, exit codes."""

import dataclasses
import json
import math
import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fastscore
from fastscore.errors import UsageError
from fastscore.results.checks import CheckLimits, check, checks_grid, github_lines, junit
from fastscore.results.differences import Inference
from fastscore.results.differences import _drops as drops_between
from fastscore.results.runs import Run
from fastscore.statistics.clustered import Clusters
from fastscore.statistics.curves import Curve, difference_curve
from fastscore.suites.declarations import Design
from fastscore.suites.registry import load_suite
from tests.conftest import fastscore_command, often
from tests.results.comparing import miner_rows, row_of, scored
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
        minimum={"PAS": mean, "ORA": 1.0},
        maximum={"PAS": mean, "ORA": 0.0},
        max_null={"PAS": 0.0},
        max_rejects=0.0,
    )
    found = check(run, limits)
    assert [one.outcome for one in found] == [
        *("passed", "failed"),
        *("passed", "failed"),
        *("passed", "passed"),
    ]


def curve_of(value: float | None, error: float | None, n: int = 9) -> Curve:
    """Make the curve of a drop of so many units, in a metric that is better lower."""
    if value is None or error is None:
        return Curve("none", value, n, reason="too_few_units")
    if not error:
        return Curve("sign", value, n, error=0.0, least_p=2.0**-n, reason="zero_variance")
    return Curve("t", value, n, error, n - 1.0)


def outcomes_of(curves: Mapping[str, Curve], allowed: float) -> list[str]:
    """Check drops, as they are found between two runs."""
    metric = next(
        each for each in load_suite("group_travel").metrics if each.scale.better == "lower"
    )
    names = ("a", "b", "n_a", "n_units", "mean_a", "mean_b", "null_b")
    found = [dict.fromkeys(names) | {"metric": id, "curve": curve} for id, curve in curves.items()]
    how = Inference(design=Design(), limits=dict.fromkeys(curves, allowed))
    metrics = [dataclasses.replace(metric, id=id) for id in curves]
    return [row["outcome"] for row in drops_between(found, metrics, how)]


@pytest.mark.parametrize(
    ("value", "error", "n", "allowed", "outcome"),
    [
        # t = (0.05 - 0.01) / 0.015 = 2.67 with 8 degrees of freedom: p = 0.014
        (0.05, 0.015, 9, 0.01, "failed"),
        # t = 1.33: p = 0.11, and the interval ends at 0.064
        (0.03, 0.015, 9, 0.01, "undecided"),
        # the interval ends at -0.02 + 2.306 * 0.01 = 0.003
        (-0.02, 0.01, 9, 0.01, "passed"),
        # t = 2 with 8 degrees of freedom: p = 0.040 one-sided, though the interval has 0.01
        (0.03, 0.01, 9, 0.01, "failed"),
        # without any variation a sign test is left: p = 0.5 ** n
        (0.1, 0.0, 5, 0.01, "failed"),
        (0.1, 0.0, 4, 0.01, "undecided"),
        (0.0, 0.0, 4, 0.0, "passed"),
        # two units have no interval; without any there is nothing to compare
        (0.0, None, 2, 0.0, "undecided"),
        (None, None, 0, 0.0, "failed"),
    ],
)
def test_drops_go_by_a_test_and_the_interval(
    value: float | None, error: float | None, n: int, allowed: float, outcome: str
) -> None:
    drop = curve_of(value, error, n)
    assert outcomes_of({"m": drop}, allowed) == [outcome]
    if value is not None and error:
        expected = float(stats.t.sf((value - allowed) / error, n - 1))
        assert drop.p_above(allowed) == pytest.approx(expected, rel=1e-12)


def test_drops_are_corrected_over_the_limits_that_are_given() -> None:
    drop = curve_of(0.05, 0.015)  # p = 0.014, times 3 is 0.043, times 4 is 0.057
    for n, outcome in ((1, "failed"), (3, "failed"), (4, "undecided")):
        assert outcomes_of({f"m{i}": drop for i in range(n)}, 0.01) == [outcome] * n
    # what is untested does not count
    untested = {f"n{i}": curve_of(0.0, None, 2) for i in range(9)}
    assert outcomes_of({"m": drop, **untested}, 0.01)[0] == "failed"


@pytest.mark.parametrize("n", [8, 20])
def test_twelve_limits_fail_in_at_most_five_of_a_hundred_runs_without_a_drop(n: int) -> None:
    """Metrics of four kinds, three of each alike, as metrics of one suite are."""
    generator = np.random.default_rng(20261125)
    trials, failed = often(80, 4_000), 0
    for _ in range(trials):
        drops = {}
        for kind in range(4):
            shared = generator.normal(size=(2, n))
            for i in range(3):
                own = shared + generator.normal(size=(2, n))
                values = [
                    np.clip(0.5 + own / 5, 0.0, 1.0),
                    (own > -1.5) * 1.0,
                    np.exp(own) / 10,
                    np.where(own > 0.7, own / 5, 0.0),
                ][kind]
                a, b = (Clusters(side, np.ones(n)) for side in values)
                drops[f"{kind}{i}"] = difference_curve(a, b, shared=True, test="t")
        outcomes = outcomes_of(drops, 0.0)
        failed += "failed" in outcomes
    # three standard errors above 5 %
    assert failed / trials <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)


@pytest.fixture(scope="module")
def twelve(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Return a run of twelve dialogues, one that lost four of them, and one with a new one."""
    folder = tmp_path_factory.mktemp("twelve")
    return {
        "base": scored(folder, "base", ("m", 0.5, range(12))),
        "lost": scored(folder, "lost", ("m", 0.6, range(8))),
        "new": scored(folder, "new", ("m", 0.6, range(13))),
    }


@pytest.mark.parametrize(
    ("missing", "outcome"),
    [
        (None, "undecided"),
        (4, "passed"),
        (3, "failed"),
        (0, "failed"),
        (1.0, "passed"),
        (0.34, "passed"),
        (0.33, "failed"),
    ],
)
def test_dialogues_that_were_lost_are_counted(
    twelve: dict[str, Run], missing: float | None, outcome: str
) -> None:
    limits = CheckLimits(max_drop={"average_U_best_early": 0.5}, max_missing=missing)
    drop, lost = check(twelve["lost"], limits, twelve["base"])
    assert (lost.outcome, lost.found) == (outcome, "4 of 12 (33.33%)")
    assert lost.detail.startswith("such as 'd08 / null'")
    assert lost.numbers == {"n_missing": 4, "n_against": 12, "n_run": 8}
    # the third dialogue has no value in either run
    assert drop.outcome == "passed"
    assert "7 of 11 pairs compared" in drop.detail
    strict = check(twelve["lost"], dataclasses.replace(limits, fail_undecided=True), twelve["base"])
    assert strict[-1].outcome == ("failed" if outcome == "undecided" else outcome)


def test_dialogues_that_one_pair_lost_are_counted(tmp_path: Path) -> None:
    """Two miners answer four dialogues: each is one pair, and one miner is gone from three."""
    both = scored(tmp_path, "both", ("m", 0.5, range(4)), ("n", 0.6, range(4)))
    one = scored(tmp_path, "one", ("m", 0.5, range(4)), ("n", 0.6, range(1)))
    limits = CheckLimits(max_drop={"average_U_best_early": 0.5}, max_missing=0)
    lost = check(one, limits, both)[-1]
    assert (lost.outcome, lost.found) == ("failed", "3 of 8 (37.5%)")
    assert lost.numbers == {"n_missing": 3, "n_against": 8, "n_run": 5}
    # three dialogues each have miner n in one run only
    row = row_of(fastscore.compare(both, one).differences, metric="average_U_best_early")
    assert (row["missing_a"], row["missing_b"]) == (0, 3)
    assert check(both, limits, one)[-1].outcome == "passed"


def test_missing_dialogues_are_counted_in_the_pairs_of_compare(
    twelve: dict[str, Run], tmp_path: Path
) -> None:
    """A pattern that matches nothing, or runs without a common pair, have no missing dialogues."""
    limits = CheckLimits(max_missing=0)
    with pytest.raises(UsageError, match=r"pattern 'z\(d\)' matches no dialogue id, such as 'd00"):
        check(twelve["lost"], limits, twelve["base"], pair_by="z(d)")
    others = scored(tmp_path, "others", ("m", 0.5, range(20, 24)))
    with pytest.raises(UsageError, match=r"No dialogue_uid / challenge_uid of .* is in .*others"):
        check(others, limits, twelve["base"])
    # ids that the pattern does not match have no pair: d00 to d07 of d00 to d11
    (lost,) = check(twelve["lost"], limits, twelve["base"], pair_by="(d0[0-5])")
    assert (lost.outcome, lost.found) == ("passed", "0 of 6 (0%)")
    assert "6 dialogues left out, whose id does not match" in lost.detail


def test_a_candidate_that_lost_dialogues_does_not_pass_without_a_word(
    twelve: dict[str, Run], tmp_path: Path
) -> None:
    words = ["check", twelve["lost"].path, "--against", twelve["base"].path]
    words += ["--max-drop", "average_U_best_early=0.5"]
    shown = fastscore_command(words)
    assert shown.returncode == 0
    assert re.search(r"missing dialogues +4 of 12 \(33.33%\)  undecided", shown.stdout)
    assert re.search(r"\] +passed +7 of 11", shown.stdout)
    github = fastscore_command([*words, "--format", "github"]).stdout
    assert github.startswith(
        "::warning title=fastscore check::missing dialogues: found 4 of 12 (33.33%25)"
    )
    assert fastscore_command([*words, "--fail-undecided"]).returncode == 1
    for limit, code in (("4", 0), ("3", 1), ("34%", 0), ("0.33", 1)):
        assert fastscore_command([*words, "--max-missing", limit]).returncode == code, limit
        config = tmp_path / "fastscore.toml"
        value = json.dumps(limit) if "%" in limit else limit
        config.write_text(f"[check]\nmax_missing = {value}\n")
        assert fastscore_command([*words, "--config", config]).returncode == code, limit
    alone = fastscore_command([*words[:4], "--max-missing", "0", "--json"])
    assert [one["outcome"] for one in json.loads(alone.stdout)] == ["failed"]


def test_units_of_a_drop_are_those_of_a_column(twelve: dict[str, Run]) -> None:
    limits = CheckLimits(max_drop={"U_step": 0.5})
    drop, _ = check(twelve["new"], limits, twelve["base"], cluster="challenge_type")
    assert drop.outcome == "undecided"
    assert drop.detail.startswith("undecided, an interval needs 3 units")
    assert "; 2 units;" in drop.detail
    assert drop.detail.endswith("pairs by dialogue_uid / challenge_uid, unit challenge_type")


def test_what_cannot_be_checked_is_said(run: Run) -> None:
    with pytest.raises(UsageError, match="nothing to check"):
        check(run, CheckLimits())
    with pytest.raises(UsageError, match="no metric 'PAZ'"):
        check(run, CheckLimits(minimum={"PAZ": 0.5}))
    with pytest.raises(UsageError, match="need another run"):
        check(run, CheckLimits(max_drop={"PAS": 0.1}))


def test_rejects_are_counted_as_in_scoring(run: Run) -> None:
    counts = {"lines": 12, "blank": 2, "rejects": 3, "partial_rejects": 2}
    run = dataclasses.replace(run, manifest=dataclasses.replace(run.manifest, counts=counts))
    (found,) = check(run, CheckLimits(max_rejects=0.1))
    assert (found.outcome, found.detail) == ("passed", "1 of 10 lines")


def test_reports_for_build_servers(run: Run) -> None:
    found = check(run, CheckLimits(minimum={"PAS": 2.0}, max_rejects=1.0))
    root = ElementTree.fromstring(junit(found, run))
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    (line,) = github_lines(found)
    assert line.startswith("::error title=fastscore check::PAS at least 2: found 0.")


def test_a_junit_file_escapes_the_path_of_a_run(
    suite_runs: Mapping[str, Run], tmp_path: Path
) -> None:
    place = tmp_path / "ru\x1b[31mn<&>"
    shutil.copytree(suite_runs["score_dialogue"].path, place)
    words = ["check", place, "--min", "average_U_best_early=0", "--junit", tmp_path / "junit.xml"]
    assert fastscore_command(words).returncode == 0
    content = (tmp_path / "junit.xml").read_bytes()
    assert b"\x1b" not in content
    assert "ru\\x1b[31mn<&>" in ElementTree.fromstring(content).attrib["name"]


def test_the_command_reads_flags_and_configuration(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "fastscore.toml"
    config.write_text('[check]\nmin = {PAS = 0.0}\nmax_null = {PAS = "5%"}\nmax_rejects = "1%"\n')
    passed = fastscore_command(["check", run.path, "--config", config, "--format", "json"])
    assert passed.returncode == 0, passed.stderr
    found = json.loads(passed.stdout)
    assert [one["outcome"] for one in found] == ["passed"] * 3
    n = run.tables["dialogues"].height
    assert [one["numbers"] for one in found] == [
        {"mean": mean_of(run, "PAS")},
        {"n_null": 0, "n_rows": n},
        {"n_rejects": 0, "n_lines": run.manifest.lost_lines[1]},
    ]
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
    config.write_text("workers = 1\n[chek]\nmin = {PAS = 0.0}\n")
    wrong = fastscore_command(["check", run.path, "--config", config, "--max-null", "PAS=1"])
    assert wrong.returncode == 2
    assert "unknown table [chek]. Did you mean 'check'?" in wrong.stderr


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ("against = 3", "check.against is 3, expected a text"),
        ("min = 3", "check.min is 3, expected a table of metrics"),
        ('fail_undecided = "no"', "check.fail_undecided is 'no', expected true or false"),
        ("max_null = {PAS = 5}", "'5' is not a share. Write 5 percent as 0.05 or 5%"),
        ('max_rejects = "lots"', "'lots' is not a number"),
        ("max_missing = -1", "max_missing: '-1' is below 0"),
        ("max_missing = 1.5", "max_missing: '1.5' is not a share"),
        ("max_missing = true", "max_missing: 'True' is not a number"),
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
    named = 'pair_by = "dialogue"\nfail_undecided = true\n'
    config.write_text(f"[check]\nagainst = {json.dumps(str(run.path))}\n{named}{limits}")
    passed = fastscore_command(command)
    assert passed.returncode == 0, passed.stderr
    least, drop, _ = json.loads(passed.stdout)
    assert (least["name"], drop["name"]) == ("PAS at least", "PAS drop at most")
    names = run.scan("dialogues").select("dialogue").collect()["dialogue"].n_unique()
    assert f"{names} of {names} pairs compared" in drop["detail"]


def test_runs_of_two_suites_are_refused_before_their_metrics(suite_runs: SuiteRuns) -> None:
    with pytest.raises(UsageError, match="Numbers of different suites cannot be compared"):
        check(
            suite_runs["group_travel"],
            CheckLimits(max_drop={"M9": 0.1}),
            suite_runs["memory_finance"],
        )


def test_a_bound_leaves_out_rows_in_which_the_definition_gives_the_value(
    suite_runs: Mapping[str, Run],
) -> None:
    """M5 is 0 by definition in conditions without feedback."""
    run = suite_runs["group_travel"]
    rows = run.scan("dialogues").filter("enable_feedback").select("M5").collect()["M5"].drop_nulls()
    assert 0 < rows.len() < run.scan("dialogues").select("M5").collect()["M5"].drop_nulls().len()
    (found,) = check(run, CheckLimits(minimum={"M5": 0.0}))
    assert float(found.found) == pytest.approx(rows.mean(), rel=1e-5)


def test_a_metric_on_several_scales_is_checked_scale_by_scale(
    suite_runs: Mapping[str, Run],
) -> None:
    """W2 is of one user in condition C1, and of all members in the others."""
    run = suite_runs["group_travel"]
    rows = run.scan("dialogues").select("multi_user", "W2").drop_nulls("W2").collect()
    means = dict(rows.group_by("multi_user").agg(pl.col("W2").mean()).iter_rows())
    low, high = sorted(means.values())
    found = check(run, CheckLimits(minimum={"W2": (low + high) / 2}))
    assert [one.name for one in found] == [
        "W2 (condition C1) at least",
        "W2 (condition C2, C3, C4, C5) at least",
    ]
    assert [float(one.found) for one in found] == pytest.approx([means[False], means[True]], 1e-5)
    assert {one.outcome for one in found} == {"passed", "failed"}


def test_nothing_is_null_here_only_if_the_other_run_has_no_value(tmp_path: Path) -> None:
    runs = [scored(tmp_path, name, ("1", skill, range(6))) for name, skill in (("a", 1), ("b", 0))]
    limits = CheckLimits(max_drop={"semantic_similarity": 0.1}, max_missing=0)
    (found,) = check(runs[1], limits, runs[0], unpaired=True)
    assert (found.outcome, found.found) == ("failed", "no value")


@pytest.mark.parametrize(("missing", "outcome"), [(1, "failed"), (2, "passed"), (0.1, "failed")])
def test_dialogues_that_are_null_here_only_count_as_missing(
    twelve: dict[str, Run], tmp_path: Path, missing: float, outcome: str
) -> None:
    """Two of eleven dialogues have lost their steps, and so the metric."""
    lost = ("d05", "d06")
    rows = [
        row
        for row in miner_rows("m", 0.6, range(12))
        if row["event"] != "predicted" or row["dialogue_uid"] not in lost
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    new = fastscore.score(log, fastscore.ScoreDialogue(lex_weight=1.0), embedder="none")
    drop, null, absent = fastscore.check(
        new,
        against=twelve["base"],
        max_drop={"average_U_best_early": 0.5},
        max_missing=missing,
        allow_different_signatures=True,
    )
    assert (null.name, null.found) == (
        "average_U_best_early null or incomplete here only at most",
        "2 of 11 (18.18%)",
    )
    assert (drop.outcome, null.outcome, absent.outcome) == ("passed", outcome, "passed")


def test_margins_are_shown_or_fail(twelve: dict[str, Run]) -> None:
    base, new = twelve["base"], twelve["new"]
    metric = "average_U_best_early"
    shown, equal, _ = fastscore.check(
        new, against=base, no_worse={metric: 0.5}, equal_within={metric: 0.001}
    )
    row = row_of(fastscore.compare(base, new, metrics=[metric], margin=0.5).differences)
    assert row["p_no_worse"] < 0.05
    assert (shown.name, shown.outcome) == (f"{metric} no worse within", "passed")
    assert checks_grid([shown]).columns[-1].cells == ("11 of 11",)
    assert (equal.name, equal.outcome) == (f"{metric} equal within", "failed")
    # each kind has its own margin, whatever the other is
    wide = fastscore.check(new, against=base, no_worse={metric: 0.5}, equal_within={metric: 9.0})
    narrow = fastscore.check(
        base, against=new, no_worse={metric: 0.001}, equal_within={metric: 9.0}
    )
    assert [one.outcome for one in wide[:2]] == ["passed", "passed"]
    assert wide[0].numbers == shown.numbers
    assert [one.outcome for one in narrow[:2]] == ["failed", "passed"]


def test_a_damaged_run_is_no_result(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    part = next((copy / "dialogues").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    done = fastscore_command(["check", copy, "--min", "PAS=0"])
    assert (done.returncode, "not what was committed" in done.stderr) == (4, True)
