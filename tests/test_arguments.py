"""Each verb refuses an argument that it cannot use in one sentence with the argument's name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.errors import UsageError
from tests.conftest import fastscore_command

METRIC = "average_U_best_early"
NAN = float("nan")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> fastscore.Run:
    folder = tmp_path_factory.mktemp("run")
    logs = fastscore.example("score_dialogue", folder / "example").logs
    return fastscore.score(logs, fastscore.ScoreDialogue(lex_weight=1.0), output=folder / "run")


OF_COMPARE: list[tuple[dict[str, Any], str]] = [
    ({"alpha": "0.05"}, "alpha is '0.05', expected float."),
    ({"alpha": 1}, "alpha is 1.0, expected a number above 0 and below 1."),
    ({"margin": 0}, "margin is 0.0, expected a number above 0."),
    ({"margin": -1.0}, "margin is -1.0, expected a number above 0."),
    ({"margin": NAN}, "margin is nan, expected a number above 0."),
    ({"margin": "0.02"}, "margin is '0.02', expected float."),
    ({"plan": "many"}, "plan is 'many', expected float."),
    ({"plan": NAN}, "plan is nan, expected a number above 0."),
    ({"seed": "x"}, "seed is 'x', expected an integer of at least 0."),
    ({"seed": -1}, "seed is -1, expected an integer of at least 0."),
    ({"unpaired": "yes"}, "unpaired is 'yes', expected bool."),
    ({"cluster": ["dialogue_uid"]}, "cluster is ['dialogue_uid'], expected str."),
    ({"pair_by": 5}, "pair_by is 5, expected str."),
    ({"repeats": 5}, "repeats is 5, expected str."),
    ({"metrics": METRIC}, "metrics is of type str, expected a list."),
    ({"metrics": [5]}, "metrics[0] is of type int, expected a text."),
    ({"tables": "dialogues"}, "tables is of type str, expected a list."),
    ({"levels": "1"}, "levels is of type str, expected a list."),
    ({"test": "z"}, "test is 'z'. Known: 'auto', 'permutation', 't'."),
    ({"judge": 5}, "judge is of type int, expected a path or a list."),
    ({"judge_scale": 5}, "judge_scale is 5, expected 2 numbers."),
]


@pytest.mark.parametrize(("given", "message"), OF_COMPARE, ids=lambda each: str(each)[:40])
def test_compare_names_what_it_cannot_use(
    run: fastscore.Run, given: dict[str, Any], message: str
) -> None:
    for compare in (fastscore.compare, fastscore.Run.compare):
        with pytest.raises(UsageError) as raised:
            compare(run, run, **given)
        assert str(raised.value) == message


def test_pairs_of_independent_samples_are_told_to_be_units(run: fastscore.Run) -> None:
    asked: dict[str, Any] = {"metrics": [METRIC], "unpaired": True}
    found = fastscore.compare(run, run, pair_by="dialogue_uid", **asked)
    assert "unpaired: values of dialogue_uid are units of each side, and no pairs" in found.notes
    assert not any("unpaired" in note for note in fastscore.compare(run, run, **asked).notes)


def test_levels_may_be_numbers(run: fastscore.Run) -> None:
    values = [int(one) for one in run.tables["dialogues"]["miner_uid"].unique().sort()[:2]]
    found = fastscore.compare(run, by="miner_uid", levels=values)
    same = fastscore.compare(run, by="miner_uid", levels=[str(one) for one in values])
    assert found.differences.equals(same.differences)
    assert found.sides["side"].unique().sort().to_list() == sorted(map(str, values))
    with pytest.raises(UsageError, match="no miner_uid is '-7'"):
        fastscore.compare(run, by="miner_uid", levels=[-7, *values])


SCORES = [{"dialogue": "a", "overall": 4}]
MANY: dict[str, tuple[Callable[[fastscore.Run, Path], Any], str]] = {
    "summary": (
        lambda run, _: fastscore.summary(run, cluster=5),  # type: ignore[arg-type]
        "cluster is 5, expected str.",
    ),
    "summary of a list": (
        lambda run, _: fastscore.summary(run, cluster=["miner_uid"]),  # type: ignore[arg-type]
        "cluster is ['miner_uid'], expected str.",
    ),
    "summary by": (
        lambda run, _: fastscore.summary(run, by=[5]),  # type: ignore[list-item]
        "by[0] is of type int, expected a text.",
    ),
    "summarise": (
        lambda run, _: run.summarise(by=5),  # type: ignore[arg-type]
        "by is of type int, expected a text or a list.",
    ),
    "pass_k": (
        lambda run, _: fastscore.pass_k(run, "miner_uid", metrics="x"),
        "metrics is of type str, expected a list.",
    ),
    "check": (
        lambda run, _: fastscore.check(run, minimum=[METRIC]),  # type: ignore[arg-type]
        "minimum is of type list, expected a dict: {'METRIC': 0.4}.",
    ),
    "check unpaired": (
        lambda run, _: fastscore.check(run, minimum={METRIC: 0}, unpaired="yes"),  # type: ignore[arg-type]
        "unpaired is 'yes', expected bool.",
    ),
    "report": (
        lambda run, to: fastscore.report(run, output=to, cluster=["miner_uid"]),  # type: ignore[arg-type]
        "cluster is ['miner_uid'], expected str.",
    ),
    "agreement of frames": (
        lambda *_: fastscore.agreement(pl.DataFrame(SCORES), pl.DataFrame(SCORES)),  # type: ignore[arg-type]
        "files[0] is of type DataFrame, expected a path.",
    ),
    "agreement of rows": (
        lambda *_: fastscore.agreement("a.csv", SCORES),  # type: ignore[arg-type]
        "files[1] is of type list, expected a path.",
    ),
    "agreement columns": (
        lambda *_: fastscore.agreement("a.csv", "b.csv", columns="coherence"),
        "columns is of type str, expected a list.",
    ),
    "agreement scale": (
        lambda *_: fastscore.agreement("a.csv", "b.csv", scale=5),  # type: ignore[arg-type]
        "scale is 5, expected 2 numbers.",
    ),
    "agreement scale of texts": (
        lambda *_: fastscore.agreement("a.csv", "b.csv", scale=("1", "5")),  # type: ignore[arg-type]
        "scale is ('1', '5'), expected 2 numbers.",
    ),
    "rank": (
        lambda *_: fastscore.rank(5),  # type: ignore[arg-type]
        "files[0] is of type int, expected a path.",
    ),
    "judge of rows": (
        lambda _, to: fastscore.judge(SCORES, "m", output=to),  # type: ignore[arg-type,list-item]
        "logs[0] is of type dict, expected a path.",
    ),
    "judge of a frame": (
        lambda _, to: fastscore.judge(pl.DataFrame(SCORES), "m", output=to),  # type: ignore[arg-type]
        "logs is of type DataFrame, expected a path or a list.",
    ),
    "judge without a model": (
        lambda _, to: fastscore.judge("a.jsonl", None, output=to),  # type: ignore[arg-type]
        "model is None, expected str.",
    ),
    "judge repeats": (
        lambda _, to: fastscore.judge("a.jsonl", "m", output=to, repeats="3"),  # type: ignore[arg-type]
        "repeats is '3', expected an integer of at least 1.",
    ),
    "judge temperature": (
        lambda _, to: fastscore.judge("a.jsonl", "m", output=to, temperature="hot"),
        "temperature is 'hot', expected float.",
    ),
    "judge prices": (
        lambda _, to: fastscore.judge("a.jsonl", "m", output=to, prices="x"),
        "prices is 'x', expected two numbers. They are of a million tokens sent, and received: "
        "(0.15, 0.60).",
    ),
    "annotate": (
        lambda _, to: fastscore.annotate("a.jsonl", "states", "m", output=to, level=-1),
        "level is -1, expected an integer of at least 0.",
    ),
}


@pytest.mark.parametrize("case", MANY)
def test_every_verb_names_what_it_cannot_use(run: fastscore.Run, tmp_path: Path, case: str) -> None:
    call, message = MANY[case]
    with pytest.raises(UsageError) as raised:
        call(run, tmp_path / "output")
    assert str(raised.value) == message
    assert not list(tmp_path.iterdir())


def test_several_values_may_be_any_sequence(run: fastscore.Run) -> None:
    for metrics in ([METRIC], (METRIC,)):
        assert fastscore.compare(run, run, metrics=metrics).differences.height == 1
    by = fastscore.summary(run, by=["miner_uid"])
    assert fastscore.summary(run, by="miner_uid").equals(by)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("plan", "nan", "plan is nan, expected a number above 0."),
        ("margin", "nan", "margin is nan, expected a number above 0."),
        ("margin", "0", "x>0"),
        ("alpha", "1", "0<x<1"),
        ("seed", "-1", "x>=0"),
    ],
)
def test_a_command_refuses_what_python_does(
    run: fastscore.Run, option: str, value: str, expected: str
) -> None:
    done = fastscore_command(["compare", run.path, run.path, f"--{option}", value])
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
