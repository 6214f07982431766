"""pass^k of repeated tasks: by hand, by all draws of trials, and as tau-bench published it."""

import json
import os
import random
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.errors import UsageError
from fastscore.results.comparison import show_comparison
from fastscore.results.show import show_summary
from fastscore.suites import registry
from fastscore.suites.declarations import Design
from tests.suites.memory_finance.tracing import dialog, turn

REWARDS = Path(__file__).parent / "tau_bench" / "airline_gpt4o_rewards.jsonl"
PUBLISHED = [0.420, 0.273, 0.220, 0.200]


RATE = {"range": (0, 1), "better": "higher"}


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(registry, "_declared_here", {})

    @fastscore.suite(
        columns={"task_id": int, "trial": int, "reward": float},
        dialogue=("task_id", "trial"),
        metrics={"passed": RATE, "reward": RATE},
    )
    def tau_bench(rows: pl.LazyFrame) -> pl.LazyFrame:
        """Whether the task is solved, and its reward."""
        reward = pl.col("reward").max()
        return rows.group_by("dialogue_row").agg(passed=reward >= 1 - 1e-6, reward=reward * 0.5)

    return tau_bench


def of_passes(*dialogue: str, **more: Any) -> Any:
    """Declare a suite of a column ``passed``, whose dialogues these columns name."""

    @fastscore.suite(columns={"passed": int}, dialogue=dialogue, metrics={"passes": RATE}, **more)
    def solved(rows: pl.LazyFrame) -> pl.LazyFrame:
        """Whether a task is solved."""
        return rows.group_by("dialogue_row").agg(passes=pl.col("passed").max())

    return solved


def rows_of(*passes: str) -> list[dict[str, Any]]:
    """Return rows of tasks: ``1101`` is a task whose third of four trials fails."""
    return [
        {"task_id": task, "trial": trial, "reward": float(passed)}
        for task, trials in enumerate(passes)
        for trial, passed in enumerate(trials)
    ]


def of_all_draws(tasks: tuple[str, ...], k: int) -> float:
    """Return the mean over tasks of the share of their k trials that all pass."""
    shares = []
    for trials in tasks:
        draws = list(combinations(trials, k))
        shares.append(sum(set(draw) == {"1"} for draw in draws) / len(draws))
    return sum(shares) / len(shares)


@pytest.mark.parametrize("source", ["bundled", "FASTSCORE_DATA"])
def test_published_values_of_tau_bench_are_reproduced(suite: Any, source: str) -> None:
    path = REWARDS
    if source != "bundled":
        if source not in os.environ:
            pytest.skip("FASTSCORE_DATA names no folder of full data")
        path = Path(os.environ[source]) / "tau_bench" / REWARDS.name
    found = fastscore.pass_k(fastscore.score(path, suite), "trial", task="task_id")
    assert found["k"].to_list() == [1, 2, 3, 4]
    assert [round(value, 3) for value in found["pass_k"]] == PUBLISHED
    assert found["n_tasks"].to_list() == [50] * 4
    assert (found["low"] < found["pass_k"]).all()
    assert (found["high"] > found["pass_k"]).all()
    # pass^1 is the mean with the task as the unit
    summary = fastscore.summary(fastscore.score(path, suite), cluster="task_id")
    mean = summary.row(by_predicate=pl.col("metric") == "passed", named=True)
    first = found.row(0, named=True)
    assert (first["pass_k"], first["low"], first["high"]) == pytest.approx(
        (mean["mean"], mean["ci_low"], mean["ci_high"]), abs=1e-12
    )


def test_two_systems_are_compared_over_their_common_tasks(
    suite: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    one = ("1111", "1101", "0011", "0000", "1111")
    two = ("1111", "1000", "0011", "1111")  # without the fifth task
    runs = [fastscore.score(rows_of(*tasks), suite) for tasks in (one, two)]
    compared = fastscore.compare(*runs, pair_by="task_id", repeats="trial")
    found = compared.pass_k
    assert found["metric"].unique().to_list() == ["passed"]  # rewards of 0.5 are neither 0 nor 1
    of_sides = found.filter(pl.col("against").is_null()).partition_by("side", maintain_order=True)
    for side, tasks in zip(of_sides, (one, two), strict=True):
        assert side["pass_k"].to_list() == pytest.approx(
            [of_all_draws(tasks, k) for k in range(1, 5)]
        )
    differences = found.drop_nulls("against")
    # the difference of pass^1 is that of the metric, with one interval
    expected = [of_all_draws(two, k) - of_all_draws(one[:4], k) for k in (2, 3, 4)]
    assert differences["k"].to_list() == [2, 3, 4]
    assert differences["pass_k"].to_list() == pytest.approx(expected)
    assert differences["n_tasks"].to_list() == [4] * 3
    (metric,) = compared.differences.filter(metric="passed").to_dicts()
    assert metric["difference"] == pytest.approx(of_all_draws(two, 1) - of_all_draws(one[:4], 1))
    show_comparison(compared)
    shown = capsys.readouterr().out
    written = " ".join(shown.split())
    assert "(unit: task_id; repeats independent); pass^1 differs as the metric does" in written
    assert "pairs by task_id; intervals for new repeats too" in written


@pytest.mark.usefixtures("suite")
def test_a_summary_and_a_comparison_have_one_pass_k() -> None:
    """By task, and where the suite's unit is not its pair: two tasks of a user are one unit."""
    of_users = of_passes("task", "user", "trial")
    of_users = replace(of_users, design=Design(pair=("task",), unit=("user",)))
    registry.declare(of_users)
    draw = random.Random(1)
    rows = [
        {
            "task": str(task),
            "user": str(task // 2),
            "trial": trial,
            "passed": draw.choice([0, 1, 1, 1]),
        }
        for task in range(12)
        for trial in "abc"
    ]
    run = fastscore.score(rows, of_users)
    own = ["metric", "k", "n_tasks", "pass_k", "low", "high", "reason"]
    found = []
    for task, unit in ((None, None), ("task", "task")):
        compared = fastscore.compare(run, run, repeats="trial", cluster=unit)
        of_side = compared.pass_k.filter(pl.col("against").is_null()).head(3).select(own)
        found.append(fastscore.pass_k(run, "trial", task=task).select(own))
        assert found[-1].equals(of_side)
    assert found[0]["pass_k"].equals(found[1]["pass_k"])
    assert not found[0]["low"].equals(found[1]["low"])


def test_k_ends_at_the_fewest_repeats_and_a_note_says_so(suite: Any) -> None:
    runs = [fastscore.score(rows_of("111", "1011", "0101"), suite) for _ in range(2)]
    found = fastscore.compare(*runs, pair_by="task_id", repeats="trial")
    assert not [note for note in found.notes if "pooled" in note]
    assert found.pass_k["k"].max() == 3
    (note, *_) = [note for note in found.notes if "pass^k" in note]
    assert "pass^k ends at k = 3: 1 task (such as '0') of 3 have 3 repeats with a value" in note


def test_a_summary_shows_pass_k(suite: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run = fastscore.score(REWARDS, suite)
    show_summary(run, cluster="task_id", repeats="trial")
    shown = capsys.readouterr().out
    assert "0.273 [0.178, 0.396]" in shown
    show_summary(run, cluster="task_id,trial", repeats="trial")  # the trial names no task
    text = " ".join(capsys.readouterr().out.split())
    assert "0.273 [0.178, 0.396]" in text
    assert "(unit: task_id; repeats independent)" in text
    show_summary(run, cluster="task_id", repeats="trial", format="json")
    written = json.loads(capsys.readouterr().out)
    assert [round(row["pass_k"], 3) for row in written["pass_k"]] == PUBLISHED
    show_summary(run, cluster="task_id", repeats="trial", format="csv")
    assert pl.read_csv(capsys.readouterr().out.encode())["pass_k"].count() == 4


def test_what_has_no_pass_k_is_refused(suite: Any) -> None:
    run = fastscore.score(REWARDS, suite)
    with pytest.raises(UsageError, match=r"no dialogue has a metric of 0 or 1 .* no pass\^2"):
        fastscore.pass_k(run, "trial")  # each dialogue has one trial
    with pytest.raises(
        UsageError, match=r"declares no column of repeats. Set repeats to .* Known: "
    ):
        fastscore.pass_k(run)
    with pytest.raises(UsageError, match=r"no label column 'trail'.* Did you mean 'trial'"):
        fastscore.pass_k(run, "trail", task="task_id")
    with pytest.raises(UsageError, match="values of one label, not of trial, file"):
        show_summary(run, by=("trial", "file"), cluster="task_id", repeats="trial")


@pytest.mark.usefixtures("suite")
def test_two_models_of_a_task_are_not_two_repeats() -> None:
    rows = [
        {"task": task, "model": model, "trial": trial, "passed": int(model == "m" or trial != "0")}
        for task in "ab"
        for model in "mn"
        for trial in "0123"
    ]
    run = fastscore.score(rows, of_passes("task", "model", "trial"))
    with pytest.raises(UsageError, match="one value in each of two values of trial"):
        fastscore.pass_k(run, "trial", task="task")
    found = fastscore.pass_k(run, "trial", task="task", by="model")
    assert found.filter(group="m")["pass_k"].to_list() == [1.0] * 4
    assert found.filter(group="n")["pass_k"].to_list() == pytest.approx([0.75, 0.5, 0.25, 0])


def test_lines_of_one_id_are_one_trial() -> None:
    def line(task: str, trial: str, found: str) -> dict[str, Any]:
        labels = {"scenario_type": task, "difficulty": trial, "dialog_id": task + trial}
        return dialog(turn("依据", rubric=[found]), **labels)

    # a passes both trials, b one of them; each trial has two lines, whose elements are merged
    rows = [line("a", "x", "依据"), line("a", "y", "依据"), line("b", "x", "依据")] * 2
    run = fastscore.score([*rows, *[line("b", "y", "没有")] * 2], "memory_finance")
    found = fastscore.pass_k(run, "difficulty", task="scenario_type", metrics=["rubric_hit_rate"])
    assert found["pass_k"].to_list() == pytest.approx([3 / 4, 1 / 2])


@pytest.mark.usefixtures("suite")
def test_a_suite_declares_what_its_repeats_are() -> None:
    repeated = of_passes("task", "trial", repeat="trial")

    def run(*tasks: str) -> Any:
        return fastscore.score(
            [
                {"task": str(task), "trial": str(trial), "passed": int(passed)}
                for task, trials in enumerate(tasks)
                for trial, passed in enumerate(trials)
            ],
            repeated,
        )

    tasks = ("110", "111", "000", "101")
    base = run(*tasks)
    assert fastscore.pass_k(base)["pass_k"].to_list() == pytest.approx(
        [of_all_draws(tasks, k) for k in (1, 2, 3)]
    )
    row = fastscore.summary(base).row(by_predicate=pl.col("group") == "all", named=True)
    assert row["n_units"] == 4
    found = fastscore.compare(base, run("111", "111", "000", "100"))
    assert found.unit == "task"
    assert found.pass_k.drop_nulls("against")["n_tasks"].to_list() == [4] * 2
    with pytest.raises(UsageError, match="repeat 'round' is not one of several columns"):
        of_passes("task", "trial", repeat="round")


@pytest.mark.usefixtures("suite")
def test_columns_that_name_a_dialogue_together_keep_dialogues_apart() -> None:
    @fastscore.suite(
        columns={"text": str},
        dialogue=("user", "model"),
        metrics={"turns": {"range": (0, None), "better": "neither"}},
    )
    def counted(rows: pl.LazyFrame) -> pl.LazyFrame:
        """Turns."""
        return rows.group_by("dialogue_row").agg(turns=pl.len())

    rows = [("a/b", "c"), ("a", "b/c"), ("a/b", "c"), ("a", "b")]
    found = fastscore.score([{"user": u, "model": m, "text": "x"} for u, m in rows], counted)
    table = found.tables["dialogues"].select("user", "model", "turns")
    assert table.rows() == [("a/b", "c", 2.0), ("a", "b/c", 1.0), ("a", "b", 1.0)]
    with pytest.raises(UsageError, match="'score' is of kind number, expected str or int"):

        @fastscore.suite(columns={"score": float}, dialogue=("user", "score"), metrics={})
        def wrong(rows: pl.LazyFrame) -> pl.LazyFrame:
            """Name dialogues by a score."""
            return rows


def test_what_tells_repeats_apart_is_no_part_of_a_pair() -> None:
    """Three seeds of a dialogue are one unit, also where the suite's pair names their column."""
    draw = random.Random(5)
    rows = [
        {"dialogue_uid": f"d{d}", "challenge_uid": f"seed{seed}", "miner_uid": miner, **event}
        for miner in (0, 1)
        for d in range(12)
        for seed in range(3)
        for event in (
            {
                "event": "predicted",
                "utterance_index": 0,
                "step": 0,
                "prediction": "a" * draw.randint(1, 9),
            },
            {"event": "utterance_complete", "utterance_index": 0, "ground_truth": "a" * 9},
        )
    ]
    run = fastscore.score(rows, fastscore.ScoreDialogue(lex_weight=1.0))
    how = {"by": "miner_uid", "repeats": "challenge_uid"}
    found = fastscore.compare(run, **how).differences
    named = fastscore.compare(run, **how, pair_by="dialogue_uid").differences
    assert found.equals(named)
    assert set(found["pair"].drop_nulls()) == {"dialogue_uid"}
    units = found.filter(pl.col("metric") == "average_U_best_early")["n_units"]
    assert units.to_list() == [12]
    with pytest.raises(
        UsageError, match="pair_by names 'challenge_uid', which tells repeats apart"
    ):
        fastscore.compare(run, by="miner_uid", repeats="challenge_uid", pair_by="challenge_uid")
    with pytest.raises(UsageError, match="Tasks are named by 'challenge_uid' alone"):
        fastscore.pass_k(run, repeats="challenge_uid", task="challenge_uid")


def test_a_suite_whose_pairs_are_the_repeats_is_told_what_to_name(tmp_path: Path) -> None:
    example = fastscore.example("guest_simulation", tmp_path)
    run = fastscore.score(example.logs, fastscore.GuestSimulation())
    with pytest.raises(UsageError, match=r"pairs are by it alone. Name with pair_by"):
        fastscore.compare(run, by="experiment_level", repeats="test_case")
