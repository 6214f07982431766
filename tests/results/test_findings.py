"""Findings in a run: true of its tables, with a bounded rate of chance findings."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy.stats import binom

import fastscore
from benchmarks.inference import compared, metric, sums_of
from fastscore.cli import cli
from fastscore.errors import UsageError
from fastscore.results.findings import (
    Finding,
    _difference_text,
    against_agent,
    findings_lines,
    list_findings,
    read_headlines,
)
from fastscore.results.report.write import _places
from fastscore.results.runs import Run, notes_on_rows
from fastscore.settings.options import lexicon_content
from fastscore.statistics.clustered import Estimate
from fastscore.suites.registry import load_suite
from tests.conftest import often


def find(run: Run, cluster: str | None = None) -> list[Finding]:
    return list_findings(read_headlines(run, cluster=cluster))


def test_a_mean_is_that_of_the_rows_in_which_the_metric_is_defined(
    suite_runs: Mapping[str, Run],
) -> None:
    run = suite_runs["group_travel"]
    dialogues = run.scan("dialogues").collect()
    told = {one.metric: one.text for one in find(run) if one.kind == "mean"}
    for id, flag, conditions in (
        ("M5", "enable_feedback", "C5"),
        ("M4", "use_social_theory", "C4, C5"),
        ("M13", "multi_user", "C2, C3, C4, C5"),
    ):
        rows = dialogues.filter(flag).drop_nulls(id)
        values = rows[id].to_list()
        mean = math.fsum(values) / len(values)
        assert f", in condition {conditions}: {mean:.3f}" in told[id]
        units = rows["scenario"].n_unique()
        counts = f"{len(values)} dialogues" + f" in {units} units" * (units != len(values))
        assert f", {counts}" in told[id]
        assert dialogues.filter(~pl.col(flag))[id].unique().to_list() == [0.0]
    # the plan alone addresses preferences without synthesis: two definitions, two means
    means = dialogues.group_by("enable_synthesis").agg(pl.col("M8").mean())["M8"].to_list()
    assert all(f"{mean:.3f}" in told["M8"] for mean in means)
    values = dialogues["M8"].to_list()
    assert f"{math.fsum(values) / len(values):.3f}" not in told["M8"]


def test_levels_with_maxima_of_their_own_are_neither_pooled_nor_compared(
    suite_runs: Mapping[str, Run],
) -> None:
    run = suite_runs["guest_simulation"]
    dialogues = run.scan("dialogues").collect()
    told = find(run)
    for id, levels in (("DEI", (2, 3, 4, 5)), ("CRRS", (1, 2, 3, 4, 5))):
        (text,) = (one.text for one in told if one.kind == "mean" and one.metric == id)
        for level in levels:
            values = dialogues.filter(experiment_level=level)[id].to_list()
            mean = math.fsum(values) / len(values)
            assert f"experiment_level {level}: {mean:.3f}" in text
        assert "experiment_level 1: 0.000" not in text
        assert not any(one.kind == "groups" and one.metric == id for one in told)
    found = fastscore.compare(run, by="experiment_level", levels=["4", "5"], margin=0.1).differences
    found = found.filter(pl.col("metric").is_in(["DEI", "CRRS"]))  # DEI rises by 0.5 in every pair
    assert found["reason"].to_list() == ["by_definition"] * 2
    assert found["p"].null_count() == found["p_no_worse"].null_count() == 2


def test_quality_is_named_only_where_the_source_names_it(suite_runs: Mapping[str, Run]) -> None:
    for name, run in suite_runs.items():
        readings = {band.reading for one in load_suite(name).metrics for band in one.scale.bands}
        for finding in find(run):
            for word in ("good", "poor", "excellent"):
                assert word not in finding.text.split() or word in readings, finding.text


def test_a_difference_of_groups_names_the_one_p_that_its_verdict_rests_on(tmp_path: Path) -> None:
    example = fastscore.example("preference_shift", tmp_path / "shifts")
    options = fastscore.PreferenceShift(
        catalogue=str(tmp_path / "shifts" / "catalogue.jsonl"), segments="metadata"
    )
    run = fastscore.score(example.logs, options, embedder=None, output=tmp_path / "run")
    (text,) = (
        one.text for one in find(run) if one.metric == "topic_interference" and one.kind == "groups"
    )
    rows = fastscore.compare(run, by="model").differences
    rows = rows.filter(pl.col("metric") == "topic_interference", pl.col("verdict") != "")
    row = rows.sort(pl.col("difference").abs()).row(-1, named=True)
    assert text.startswith("Mean copying (topic_interference) differs by model: recorded has ")
    p = f"p of this pair = {row['p_holm']:.0e}, Holm over {row['family_size']} tests of this label"
    assert p in text
    assert text.count("(p of") == text.count(" = ") == 1
    unclear = {"label": "model", "p_holm": 0.012, "n_groups": 3, "clearest": None}
    assert _difference_text("tas", unclear, "Holm over 6 tests").endswith(
        " differs by model (p of all 3 groups = 0.0120, Holm over 6 tests); no pair of them is "
        "clear by itself."
    )


@pytest.mark.parametrize("shared", [False, True])
def test_shuffled_labels_differ_in_five_reports_of_a_hundred(shared: bool) -> None:
    """Four groups of six metrics without a true difference, as pairs and as independent samples."""
    reports, n, said = often(6, 400), 10, 0
    most = int(binom.ppf(0.997, reports, 0.05))
    metrics = [metric(f"m{k}") for k in range(6)]
    for seed in range(reports):
        generator = np.random.default_rng(seed)
        values = generator.beta(2, 2, (6, 4, n))
        sides = {
            f"g{group}": sums_of(
                {one.id: values[k, group] for k, one in enumerate(metrics)},
                None if shared else [f"g{group}-{place}" for place in range(n)],
                metrics=metrics,
            )
            for group in range(4)
        }
        found = compared(sides, omnibus=True, paired=shared)
        said += bool(found.omnibus.filter(pl.col("p_holm") < 0.05).height)
    assert said <= most


def test_an_agent_is_beaten_told_apart_or_not_by_the_whole_interval() -> None:
    above, across = Estimate(0.1, 0.05, 0.2), Estimate(0.1, -0.1, 0.3)
    assert against_agent(metric(), above) == ""
    assert against_agent(metric(), across) == "Cannot be told from"
    assert against_agent(metric(better="lower"), above) == "Clearly worse than"
    assert against_agent(metric(better="lower"), Estimate(-0.1, -0.2, -0.05)) == ""
    assert against_agent(metric(), Estimate(0.1)) == ""


def test_an_agent_that_always_refuses_stands_beside_rates(suite_runs: Mapping[str, Run]) -> None:
    told = find(suite_runs["preference_shift"])
    (rate,) = (
        one.text for one in told if one.kind == "mean" and one.metric == "topic_recovery_rate"
    )
    assert "(baselines: always refusing 0." in rate
    assert any("an agent that is always refusing," in one.text for one in told)


def test_findings_of_a_run_whose_lexicon_is_gone_say_so(
    suite_runs: Mapping[str, Run], tmp_path: Path
) -> None:
    words = tmp_path / "words.toml"
    words.write_bytes(lexicon_content("", "fastscore.suites.memory_finance"))
    logs = [about["name"] for about in suite_runs["memory_finance"].manifest.inputs]
    run = fastscore.score(
        logs, fastscore.MemoryFinance(lexicon=str(words)), output=tmp_path / "run"
    )
    words.unlink()
    (text,) = (one.text for one in find(run) if one.kind == "baseline")
    assert text.startswith("No trivial baselines: ")
    assert "words.toml" in text


def test_ten_lines_hold_each_kind(suite_runs: Mapping[str, Run]) -> None:
    for run in suite_runs.values():
        lines = findings_lines(find(run), width=80)
        assert len(lines) <= 10
        assert max(map(len, lines)) <= 80
        assert lines[-1] == "- No line was rejected."


@pytest.mark.usefixtures("undrawn")
def test_units_of_findings_can_be_named(suite_runs: Mapping[str, Run], tmp_path: Path) -> None:
    run = suite_runs["guest_simulation"]
    asked = ["report", str(run.path), "-o", str(tmp_path / "page.html"), "--cluster", "dialogue"]
    shown = CliRunner().invoke(cli, asked)
    assert shown.exit_code == 0, shown.output
    n_users = run.scan("dialogues").collect()["dialogue"].n_unique()
    assert f"{n_users} dialogues" in " ".join(shown.output.split())
    with pytest.raises(UsageError, match="no label column 'nobody'"):
        find(run, cluster="nobody")


def test_ties_are_not_called_worst_and_best() -> None:
    share = metric()
    values = pl.Series([0.0, 0.0, 0.5, 0.7, 1.0])
    assert _places(values, share) == {"one of the 2 worst": 0, "median": 2, "best": 4}
    assert _places(pl.Series([0.4, 0.4]), share) == {"one of equal ones": 0}
    assert _places(pl.Series([0.4]), share) == {"the only one": 0}
    counts = metric(better="neither", maximum=None)
    assert _places(pl.Series([1, 2, 2]), counts) == {
        "smallest": 0,
        "median": 1,
        "one of the 2 largest": 2,
    }


def test_a_summary_pools_no_levels(suite_runs: Mapping[str, Run]) -> None:
    run = suite_runs["guest_simulation"]
    shown = [run.suite.metric(id) for id in ("PAS", "DEI", "ORA")]
    notes = notes_on_rows(run, shown)
    dei = run.summary.filter(metric="DEI", group="all").row(0, named=True)
    assert (dei["mean"], dei["interval_reason"]) == (None, "several_scales")
    values = run.scan("dialogues").collect()["DEI"]
    assert dei["mean_all_rows"] == pytest.approx(values.mean())
    assert any(note.startswith("DEI: its definition depends on experiment_level") for note in notes)
    assert not any(note.startswith("ORA") for note in notes)


def test_what_a_mean_leaves_out_is_a_sentence(suite_runs: Mapping[str, Run]) -> None:
    run = suite_runs["group_travel"]
    shown = [run.suite.metric(id) for id in ("M5", "M2", "M3", "M9")]
    assert notes_on_rows(run, shown) == [
        f"{ids}: the mean is over rows with condition {conditions}. In the other rows the "
        "definition gives the value."
        for ids, conditions in (("M5", "C5"), ("M2, M3", "C3, C4, C5"))
    ]
