"""Trivial agents: those of group_travel have the scores that the suite gives their replies.

Tests of the other suites have theirs by hand.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.results.explaining import Dialogues
from fastscore.results.findings import read_headlines
from fastscore.results.runs import Run
from fastscore.suites.registry import load_suite, suite_names
from fastscore.suites.sums import defined_value

Record = dict[str, Any]


def scored(run: Run, agent: str) -> pl.DataFrame:
    """Return the suite's scores of an agent, in the order of the run's dialogues."""
    dialogues = Dialogues(run)
    found = dialogues.suite.trivial_agents(run.lazy_tables, dialogues.options)
    rows = run.scan("dialogues").select("dialogue").with_row_index().collect()
    of_agent = found.filter(pl.col("agent") == agent)
    return rows.join(of_agent, on="dialogue", how="left").sort("index")


def rescored(run: Run, folder: Path, change: Callable[[Record], None]) -> pl.DataFrame:
    """Score the run's JSON Lines logs again, each dialogue changed."""
    logs: list[Path] = []
    for about in run.manifest.inputs:
        lines = [json.loads(line) for line in Path(about["name"]).read_text("utf-8").splitlines()]
        for line in lines:
            change(line)
        logs.append(folder / f"{len(logs)}.jsonl")
        logs[-1].write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return fastscore.score(logs, run.manifest.suite, embedder=None).tables["dialogues"]


def assert_equal(found: pl.DataFrame, expected: pl.DataFrame, run: Run, agent: str) -> None:
    """Compare the metrics that name the agent, dialogues in one order."""
    metrics = [one for one in load_suite(run.manifest.suite).metrics if agent in one.baselines]
    own = run.scan("dialogues").with_columns(defined_value(one) for one in metrics).collect()
    assert found.height == expected.height == own.height
    for metric in metrics:
        has_value = own[metric.id].is_not_null() & found[metric.id].is_not_null()
        assert (found[metric.id].is_not_null() | own[metric.id].is_null()).all(), metric.id
        assert found[metric.id].filter(has_value).to_list() == pytest.approx(
            expected[metric.id].filter(has_value).to_list(), abs=1e-12
        ), metric.id


def test_metrics_with_baselines_are_computed_by_their_suites() -> None:
    for name in suite_names():
        suite = load_suite(name)
        agents = {agent for metric in suite.metrics for agent in metric.baselines}
        assert bool(agents) == (suite.trivial_agents is not None), name
        assert all(metric.role == "headline" for metric in suite.metrics if metric.baselines)


def test_planners(suite_runs: Mapping[str, Run], tmp_path: Path) -> None:
    base = suite_runs["group_travel"]
    logs = [about["name"] for about in base.manifest.inputs]
    run = fastscore.score(logs, "group_travel", output=tmp_path / "run", embedder=None)

    def quote(dialogue: Record) -> None:
        wishes = [
            turn["utterance"]
            for turn in dialogue["turns"]
            if turn["intent"].startswith("user_provide_")
        ]
        for turn in dialogue["turns"]:
            if turn["intent"] == "sys_present_plan":
                turn["utterance"] = "\n".join((turn["utterance"], *wishes))
            plan = turn.get("plan")
            if isinstance(plan, str) and plan:
                turn["plan"] = "\n".join((plan, *wishes))
            elif plan:
                plan = plan if isinstance(plan, dict) else {"days": plan}
                raw = plan.get("raw_output") or ""
                turn["plan"] = {**plan, "raw_output": "\n".join((raw, *wishes))}

    def phrase(dialogue: Record) -> None:
        begins = "user_provide_"
        intents = [turn["intent"] for turn in dialogue["turns"]]
        slots = {intent.removeprefix(begins) for intent in intents if intent.startswith(begins)}
        synthesised = {intent for intent in intents if intent.startswith("sys_synthesize_")}
        if not synthesised:
            return
        dialogue["turns"] += [
            {"speaker": "System", "intent": intent}
            for intent in sorted({f"sys_synthesize_{slot}" for slot in slots} - synthesised)
        ]
        for turn in dialogue["turns"]:
            if turn["intent"].startswith("sys_synthesize_"):
                turn["utterance"] = "Your wishes are in conflict so this is a compromise."
                turn["metadata"] = {"has_conflict": True, "resolution_strategy": "alternate"}

    expected = rescored(run, tmp_path, quote)
    assert_equal(scored(run, "quoting every wish"), expected, run, "quoting every wish")
    expected = rescored(run, tmp_path, phrase)
    assert_equal(scored(run, "using fixed phrases"), expected, run, "using fixed phrases")


def test_an_agent_is_compared_where_the_run_has_a_value(suite_runs: Mapping[str, Run]) -> None:
    run = suite_runs["preference_shift"]
    headlines = read_headlines(run)
    (part,) = headlines.of("topic_recovery_rate")
    rate = next(one for one in headlines.baselines_of(part) if one.agent == "always refusing")
    own = run.scan("dialogues").select("topic_recovery_rate").collect().to_series()
    of_agent = scored(run, "always refusing")["topic_recovery_rate"].filter(own.is_not_null())
    values = of_agent.to_list()
    assert rate.value == pytest.approx(math.fsum(values) / len(values))
    assert rate.difference.value == pytest.approx(rate.own - rate.value)


@pytest.mark.parametrize(
    ("metric", "agents"),
    [
        ("risk_coverage", {"always refusing": 0.0, "reciting all keywords": 1.0}),
        ("judge_score_mean", {"always refusing": 1.0, "reciting all keywords": 5.0}),
    ],
)
def test_an_agent_of_merged_dialogues_has_its_own_score(
    suite_runs: Mapping[str, Run], metric: str, agents: dict[str, float]
) -> None:
    (part,) = (headlines := read_headlines(suite_runs["memory_finance"])).of(metric)
    found = {one.agent: one.value for one in headlines.baselines_of(part)}
    assert found == pytest.approx(agents)
