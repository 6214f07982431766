"""One question has one answer: compare, report, check, summary and analyse show equal numbers."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.results.differences import Inference
from fastscore.results.findings import compare_groups, read_headlines
from fastscore.results.report.write import _comparisons
from fastscore.suites import registry
from tests.conftest import often
from tests.results.comparing import row_of
from tests.results.conftest import SUITES, SuiteRuns
from tests.suites.memory_finance.tracing import dialog, turn

SHOWN = ("difference", "low", "high", "p", "p_holm", "verdict", "n_units", "pair", "unit", "method")


@pytest.mark.parametrize("suite", SUITES)
def test_groups_of_a_report_are_those_of_compare(suite: str, suite_runs: SuiteRuns) -> None:
    """Every clearest pair of the findings is a row of compare, with its numbers and verdict."""
    run = suite_runs[suite]
    tests, _ = compare_groups(read_headlines(run), Inference.of(run.suite.design))
    differing = [test for test in tests if test["p_holm"] is not None and test["p_holm"] < 0.05]
    labels = {test["label"] for test in tests}
    rows = {label: fastscore.compare(run, by=label).differences for label in labels}
    for test in differing:
        if clearest := test["clearest"]:
            place = {name: clearest[name] for name in ("a", "b", "metric")}
            row = row_of(rows[test["label"]], **place)
            assert {name: row[name] for name in SHOWN} == {name: clearest[name] for name in SHOWN}
    # what compare says of the groups with one test is in the report, if its page has one test
    for label, found in rows.items():
        clear = found.filter(pl.col("family") == "headline", pl.col("verdict") != "")
        if sum(test["p"] is not None for test in tests) == 1 and clear.height:
            assert label in {test["label"] for test in differing}


@pytest.mark.parametrize("unpaired", [False, True])
def test_rows_that_a_definition_fixes_are_not_told_as_nulls(
    unpaired: bool, suite_runs: SuiteRuns
) -> None:
    """M1 to M5 are fixed for one user, whether they have a value then or not."""
    run = suite_runs["group_travel"]
    found = fastscore.compare(run, by="condition", levels=["C1", "C5"], unpaired=unpaired)
    lacking = {id: row_of(found.differences, metric=id)["lacking"] for id in ("M1", "M2", "M5")}
    assert lacking == {"M1": "", "M2": "", "M5": ""}


@pytest.mark.parametrize(
    ("suite", "design"),
    [(suite, {}) for suite in SUITES]
    + [(suite, {"unpaired": True}) for suite in SUITES[:: often(4, 1)]],
)
def test_two_runs_have_one_difference_in_compare_report_and_check(
    suite: str, design: dict[str, Any], suite_runs: SuiteRuns
) -> None:
    base, new = suite_runs[suite], suite_runs.second(suite)
    compared = fastscore.compare(base, new, **design)
    found = compared.differences
    for side in compared.sides.iter_rows(named=True):
        of_run = base if side["side"] == str(base.path) else new
        own = row_of(of_run.summary.filter(group="all"), metric=side["metric"])
        if own["interval_reason"] != "several_scales":
            ends = ("mean", "ci_low", "ci_high", "n_units")
            assert [side[name.removeprefix("ci_")] for name in ends] == [own[name] for name in ends]
    shown = [replace(read_headlines(one), name=name) for name, one in (("a", base), ("b", new))]
    (of_page,) = _comparisons(shown, Inference.of(base.suite.design, **design))[0].values()
    for row in found.iter_rows(named=True):
        other = row_of(of_page.differences, metric=row["metric"])
        assert {name: row[name] for name in SHOWN} == {name: other[name] for name in SHOWN}
    directed = {
        metric.id: 0.01 for metric in base.suite.metrics if metric.scale.better != "neither"
    }
    limits = {id: limit for id, limit in directed.items() if id in set(found["metric"])}
    checked = fastscore.check(new, against=base, max_drop=limits, **design)
    sign = {m.id: 1.0 if m.scale.better == "lower" else -1.0 for m in base.suite.metrics}
    for id, one in zip(limits, [c for c in checked if " drop at most" in c.name], strict=True):
        row = row_of(found, metric=id)
        numbers = one.numbers
        assert numbers["n_units"] == row["n_units"]
        for end, own in (("drop", "difference"), ("low", "low"), ("high", "high")):
            if sign[id] < 0 and end != "drop":
                own = {"low": "high", "high": "low"}[own]
            if row[own] is None:
                assert numbers[end] is None
            else:
                assert numbers[end] == sign[id] * row[own]
        assert one.outcome != "passed" or row["verdict"] != "worse" or (row["difference"] or 0) <= 1


@pytest.mark.usefixtures("undrawn")
def test_a_mean_of_the_analysis_is_that_of_the_summary(
    suite_runs: SuiteRuns, tmp_path: Path
) -> None:
    run = suite_runs["preference_shift"]
    tables = fastscore.analyse(run, tmp_path / "analysis").tables
    overall: Mapping[str, dict[str, Any]] = {
        row["metric"]: row for row in fastscore.summary(run).filter(group="all").to_dicts()
    }
    scores = tables["ablations"].filter(group="all")
    for variant, metric in (("tas", "context_adaptation_score"), ("cas", "cas")):
        row, own = row_of(scores, variant=variant), overall[metric]
        assert row["mean"] == pytest.approx(own["mean"])
        assert (row["low"], row["high"]) == pytest.approx((own["ci_low"], own["ci_high"]))
        assert row["n_units"] == own["n_units"]


def rubrics(dialog_id: str, hits: int, misses: int, run_id: str = "r") -> dict[str, Any]:
    words = ["依据"] * hits + ["没有"] * misses
    return dialog(turn("依据", rubric=words), dialog_id=dialog_id, run_id=run_id)


def test_lines_of_one_id_are_one_dialogue_in_a_comparison_as_in_the_summary() -> None:
    base = [rubrics("a", 1, 0), rubrics("a", 0, 3), rubrics("b", 1, 0)]
    new = [rubrics("a", 0, 2), rubrics("a", 1, 1), rubrics("b", 0, 1)]
    runs = [fastscore.score(lines, "memory_finance", progress=False) for lines in (base, new)]
    found = fastscore.compare(*runs)
    sides = found.sides.filter(metric="rubric_hit_rate")
    means = [row_of(fastscore.summary(run), metric="rubric_hit_rate", group="all") for run in runs]
    # of a: 1 of 4 and 1 of 4; of b: 1 of 1 and 0 of 1
    assert sides["mean"].to_list() == [one["mean"] for one in means] == [0.625, 0.125]
    assert sides["n_units"].to_list() == [one["n_units"] for one in means] == [2, 2]
    row = row_of(found.differences, metric="rubric_hit_rate")
    assert (row["difference"], row["n_units"]) == (-0.5, 2)


def test_runs_of_one_log_are_compared_by_the_dialogues_of_each() -> None:
    lines = [rubrics(id, hits, 1, run) for run, hits in (("r", 1), ("s", 3)) for id in "ab"]
    run = fastscore.score(lines, "memory_finance", progress=False)
    summary = fastscore.summary(run, by="run_id")
    for side, mean in (("r", 0.5), ("s", 0.75)):
        own = row_of(summary, metric="rubric_hit_rate", value=side)
        other = fastscore.compare(run, by="run_id").sides
        assert row_of(other, metric="rubric_hit_rate", side=side)["mean"] == own["mean"] == mean
        assert own["n_units"] == 2


def test_a_summary_by_dialogue_has_a_merged_dialogue_by_its_first_name() -> None:
    lines = [rubrics("a", 1, 0, "s"), rubrics("a", 0, 3, "r"), rubrics("b", 1, 0)]
    run = fastscore.score(lines, "memory_finance", progress=False)
    found = fastscore.summary(run, by="dialogue").filter(metric="rubric_hit_rate")
    assert found.select("value", "mean").rows() == [("a/run=r", 0.25), ("b/run=r", 1.0)]


def test_conversations_without_ids_are_units_and_a_table_without_rows_hides_no_other(
    tmp_path: Path,
) -> None:
    """Plain chats have neither ids nor shifts."""
    fastscore.example("preference_shift", output=tmp_path / "example")
    options = fastscore.PreferenceShift(
        catalogue=str(tmp_path / "example" / "catalogue.jsonl"), segments="metadata"
    )
    runs = []
    for name, n_heat in (("a", 3), ("b", 6)):
        replies = ["Heat is a drama"] * n_heat + ["This is a comedy"] * (8 - n_heat)
        chats = [
            {
                "conversation": [
                    {"speaker": "USER", "text": "a drama, please"},
                    {"speaker": "SYSTEM", "text": reply},
                ]
            }
            for reply in replies
        ]
        log = tmp_path / name / "chats.jsonl"
        log.parent.mkdir()
        log.write_text("".join(json.dumps(each) + "\n" for each in chats))
        runs.append(fastscore.score(log, options, embedder=None))
    own = runs[0].summary.filter(group="all", metric="cross_coherence").row(0, named=True)
    assert (own["n"], own["n_units"]) == (8, 8)
    assert runs[0].tables["shifts"].height == 0
    found = fastscore.compare(*runs, metrics=["cross_coherence"]).differences.row(0, named=True)
    assert (found["n_units"], found["pair"]) == (8, "session_id")
    # three replies of eight name the user's genre, then six
    assert found["difference"] == pytest.approx(own["mean"])
    both = fastscore.compare(*runs).differences
    assert both.filter(metric="cross_coherence")["n_units"].to_list() == [8]


@pytest.fixture
def manners(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(registry, "_declared_here", {})

    @fastscore.suite(
        columns={"id": str, "model": str, "kind": float, "brief": float},
        dialogue=("id", "model"),
        metrics={name: {"range": (0, 1), "better": "higher"} for name in ("kind", "brief")},
    )
    def manners(rows: pl.LazyFrame) -> pl.LazyFrame:
        """Whether a reply is kind, and whether it is brief."""
        brief = pl.when(pl.col("brief") >= 0).then("brief")
        return rows.select("dialogue_row", "kind", brief=brief)

    return manners


def test_metrics_without_a_test_are_in_the_headline(manners: Any) -> None:
    rows = [
        {"id": f"d{at}", "model": model, "kind": kind, "brief": 0.5 + kind / 4 if at < 1 else -1.0}
        for at in range(8)
        for model, kind in (("a", 0.0), ("b", 1.0))
    ]
    found = fastscore.compare(fastscore.score(rows, manners), by="model", pair_by="id")
    told = "b against a: better in 1 metric: kind +1.0000; no test of brief (pairs by id; "
    assert str(found).startswith(told)


def test_a_column_called_id_names_pairs_and_units(manners: Any) -> None:
    rows = [
        {"id": f"d{at % 4}", "model": model, "kind": at % 2, "brief": 0.1 * at + shift}
        for at in range(4)
        for model, shift in (("a", 0.0), ("b", 0.2))
    ]
    run = fastscore.score(rows, manners)
    (row,) = fastscore.compare(run, by="model", pair_by="id", metrics=["brief"]).differences.rows(
        named=True
    )
    assert (row["design"], row["pair"], row["n_units"]) == ("paired", "id", 4)


def test_metrics_that_one_side_alone_has_are_in_the_headline(manners: Any) -> None:
    rows = [
        {"id": f"d{at}", "model": model, "kind": at % 2, "brief": brief}
        for at in range(8)
        for model, brief in (("a", 0.5), ("b", -1.0))
    ]
    found = fastscore.compare(fastscore.score(rows, manners), by="model", pair_by="id")
    assert str(found).startswith(
        "b equals a in the mean of every metric that both have. "
        "One side alone has a value of brief."
    )
    third = [{**row, "model": "c"} for row in rows[1::2]]
    three = fastscore.score([*rows, *third], manners)
    found = fastscore.compare(three, by="model", pair_by="id", metrics=["kind"])
    assert str(found).startswith("All 3 differences in metrics are 0.")
    for row in rows:
        row["kind"] = int(row["model"] == "b") if row["id"] != "d0" else 0
    found = fastscore.compare(fastscore.score(rows, manners), by="model", pair_by="id")
    assert str(found).startswith("b against a: better in 1 metric: kind +0.8750 ")
    assert str(found).endswith(" One side alone has a value of brief.")
