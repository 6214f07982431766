"""One question, one answer: what two commands show of a run is equal, number by number.

Of a run of every suite: `run.summary`, `fastscore summary` in each way, `runs`, the findings and
parts of a report, the sides of `compare`, and `check`.
"""

import json
from collections import Counter
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import fastscore
from fastscore.cli import cli
from fastscore.results.checks import CheckLimits, check
from fastscore.results.findings import read_headlines
from fastscore.results.runs import Run, defined_parts
from fastscore.results.show import list_runs
from fastscore.results.summary_table import overview
from fastscore.suites.summary import summarise
from tests.results.conftest import SUITES, SuiteRuns

Key = tuple[str, str | None, str]


@pytest.fixture(scope="module", params=SUITES)
def run(
    request: pytest.FixtureRequest, suite_runs: SuiteRuns, tmp_path_factory: pytest.TempPathFactory
) -> Run:
    if request.param != "memory_finance":  # whose published traces are of one dialogue
        return suite_runs[request.param]
    folder = tmp_path_factory.mktemp("traces")
    logs = fastscore.example(request.param, folder / "example").logs
    return fastscore.score(logs, request.param, output=folder / "run")


def label_of(run: Run) -> str:
    """Return the first label that tells dialogues apart, or their own name."""
    dialogues = run.scan("dialogues").collect()
    several = [
        name for name in run.suite.design.groups if dialogues[name].drop_nulls().n_unique() > 1
    ]
    return [*several, "dialog_id"][0]


def by_key(rows: list[dict[str, Any]]) -> dict[Key, dict[str, Any]]:
    return {(row["group"], row["value"], row["metric"]): row for row in rows}


def shown(*words: str | Path) -> str:
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


def answer(found: Any) -> tuple[Any, ...]:
    """Return the numbers of an estimate as a summary has them."""
    ends = (found.low, found.high)
    return (found.value, found.n_units, *ends, found.degrees_of_freedom, found.reason)


def row_answer(row: Mapping[str, Any]) -> tuple[Any, ...]:
    ends = (row["ci_low"], row["ci_high"])
    return (row["mean"], row["n_units"], *ends, row["degrees_of_freedom"], row["interval_reason"])


def test_a_summary_is_the_same_from_files_tables_and_the_command_line(run: Run) -> None:
    own = by_key(run.summary.to_dicts())
    assert by_key(json.loads(shown("summary", run.path, "--format", "json"))["summary"]) == own
    assert by_key(json.loads(run.summary_json)["summary"]) == own
    assert by_key(summarise(run.suite, run.lazy_tables, run.options).to_dicts()) == own
    unit = run.suite.design.unit
    if len(unit) == 1:  # the design's unit by its name
        named = fastscore.summary(run, cluster=unit[0])
        assert named.equals(run.summary, null_equal=True)


def test_groups_that_are_asked_for_are_those_of_the_summary(run: Run) -> None:
    label = label_of(run)
    asked = [label, "file"]  # not a group of the summary by itself: it is made anew
    crossed = fastscore.summary(run, by=asked)
    files = run.scan("dialogues").select(label, "file").drop_nulls().unique().collect()
    own = by_key(fastscore.summary(run, by=[label]).to_dicts())
    for row in crossed.to_dicts():
        value = row["value"].split(" / ")[0]
        if files.filter(pl.col(label).cast(pl.String) == value).height == 1:
            assert row_answer(row) == row_answer(own[label, value, row["metric"]])


def test_runs_show_the_means_of_the_summary(run: Run) -> None:
    (listed,) = list_runs(run.folder)["headline"].to_list()
    means = {row["metric"]: row["mean"] for row in run.summary.filter(group="all").to_dicts()}
    assert listed
    assert all(one["mean"] == means[one["metric"]] for one in listed)
    (*_, typed), more = shown("runs", run.folder).split(), max(0, len(listed) - 3)
    assert (typed == "more") == (more > 0)


def test_a_report_and_an_overview_show_the_estimates_of_the_summary(run: Run) -> None:
    own = run.summary.filter(group="all").to_dicts()
    headlines = read_headlines(run)
    ids = {row["metric"] for row in own}
    metrics = [metric for metric in run.suite.metrics if metric.id in ids]
    parts = [*headlines.parts, *defined_parts(run, metrics)]
    for row in own:
        of_metric = [part for part in parts if part.metric.id == row["metric"]]
        scales = {part.scale for part in of_metric}
        assert (row["interval_reason"] == "several_scales") == (len(scales) > 1)
        for part in of_metric:
            if len(scales) == 1:
                assert answer(part.estimate) == row_answer(row), row["metric"]
                assert part.n == row["n"]
    text = overview(run)
    value = headlines.parts[0].estimate.value
    assert any(f"{value:.{decimals}f}" in text for decimals in (3, 4))
    # long names give way to numbers
    *rows, _ = text.splitlines()
    assert not [row for row in rows if row.endswith("…")]


def test_every_part_of_a_report_has_the_units_that_are_asked_for(run: Run) -> None:
    units = ",".join(("file", *run.suite.design.unit))
    rows = fastscore.summary(run, cluster=units).filter(group="all").to_dicts()
    own = {row["metric"]: row for row in rows}
    parts = read_headlines(run, cluster=units).parts
    of_metric = Counter(part.metric.id for part in parts)
    for part in parts:
        if of_metric[part.metric.id] == 1:
            assert answer(part.estimate) == row_answer(own[part.metric.id]), part.metric.id


def test_the_sides_of_a_comparison_are_the_groups_of_the_summary(run: Run) -> None:
    label = label_of(run)
    found = fastscore.compare(run, by=label)
    own = by_key(fastscore.summary(run, by=[label]).to_dicts())
    compared = 0
    for side in found.sides.to_dicts():
        row = own.get((label, side["side"], side["metric"]))
        if row is None:
            continue
        compared += side["mean"] is not None
        ends = (side["low"], side["high"], side["degrees_of_freedom"], side["reason"])
        assert (side["mean"], side["n_units"], *ends) == row_answer(row), (side, row)
        assert (side["n"], side["n_null"]) == (row["n"], row["n_null"])
    assert compared


def test_a_check_is_of_the_mean_of_the_summary(run: Run) -> None:
    means = {
        row["metric"]: row["mean"]
        for row in run.summary.filter(group="all").drop_nulls("mean").to_dicts()
        if row["metric"] in run.suite.metric_by_id
    }
    at = check(run, CheckLimits(minimum=means, maximum=means))
    assert {one.outcome for one in at} == {"passed"}
    for one, (_, (_, mean)) in zip(at, product(range(2), means.items()), strict=True):
        assert one.found == f"{mean:.6g}"
