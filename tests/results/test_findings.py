"""What is found in a run, told with the numbers of its summary."""

from collections.abc import Mapping

import polars as pl

from fastscore.results.findings import GROUP_DIFFERENCES, find
from fastscore.results.runs import Run


def test_findings_name_values_of_the_summary(suite_runs: Mapping[str, Run]) -> None:
    for run in suite_runs.values():
        whole = run.summary.filter(pl.col("group") == "all")
        for finding in find(run):
            if finding.kind in ("high", "low"):
                mean = whole.filter(pl.col("metric") == finding.metric)["mean"][0]
                assert f"{mean:.3f}" in finding.text


def test_findings_count_every_group_difference_that_they_do_not_tell(
    suite_runs: Mapping[str, Run],
) -> None:
    found = [one for one in find(suite_runs["preference_shift"]) if one.kind == "groups"]
    told = [one for one in found if one.metric]
    others = [one.text for one in found if not one.metric]
    assert len(others) == (1 if len(told) == GROUP_DIFFERENCES else 0)
    for text in others:
        for part in text.removeprefix("Others that differ ").removesuffix(".").split("; "):
            about, _, ids = part.partition("): ")
            assert int(about.rpartition("(")[2]) == len(ids.split(", "))
    assert others
