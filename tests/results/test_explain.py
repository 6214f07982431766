"""Explanations: their numbers are the run's, and their evidence adds up to them."""

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console

from fastscore.errors import InputError, UsageError
from fastscore.results.dialogues import Dialogues, columns_of
from fastscore.results.explaining import (
    choose_dialogue,
    explain,
    explanations_json,
    print_explanations,
)
from fastscore.results.runs import Run
from fastscore.suites.alignment import edit_distance, matched_characters, occurrences
from fastscore.suites.base import ExplainsMetrics
from tests.conftest import fastscore_command
from tests.results.conftest import SUITES

PAIRS = 200


@pytest.mark.parametrize("suite", SUITES)
def test_numbers_are_the_runs_and_follow_from_their_evidence(
    suite: str, suite_runs: Mapping[str, Run]
) -> None:
    """200 random pairs of dialogue and metric: `explain` itself refuses what is not the run's."""
    dialogues = Dialogues(suite_runs[suite])
    declared = {metric.id: metric for metric in dialogues.suite.metrics}
    assert isinstance(dialogues.suite, ExplainsMetrics)
    choices = random.Random(suite)
    rows = range(dialogues.names.height)
    chosen: dict[int, set[str]] = {}
    for _ in range(PAIRS):
        chosen.setdefault(choices.choice(rows), set()).add(choices.choice(list(declared)))
    followed = 0
    for row, metrics in chosen.items():
        committed = dialogues.tables([row])[0]
        explained = explain(dialogues, row, sorted(metrics))
        assert {one.metric for one in explained} <= metrics
        for metric in metrics:
            found = [one for one in explained if one.metric == metric]
            values = committed[declared[metric].table][metric].to_list()
            assert [one.value for one in found] == values
            for one in found:
                assert (one.value is None) == bool(one.reason)
                if one.value is None:
                    continue
                assert one.working
                if one.denominator and metric not in ("M4", "M5"):
                    assert one.value == pytest.approx(one.numerator / one.denominator, abs=1e-6)
                if one.result is not None:
                    followed += 1
                    assert one.result == pytest.approx(one.value, abs=1e-6), (metric, one)
    assert followed > 0


@pytest.mark.parametrize("suite", SUITES)
def test_every_metric_is_printed_and_written(suite: str, suite_runs: Mapping[str, Run]) -> None:
    dialogues = Dialogues(suite_runs[suite])
    ids = [metric.id for metric in dialogues.suite.metrics]
    found = explain(dialogues, 0, ids)
    assert {one.metric for one in found} <= set(ids)
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_explanations(console, dialogues, 0, found)
    text = console.export_text()
    for id in {one.metric for one in found}:
        assert f"({id})" in text.replace("\n", "")
    content = json.loads(explanations_json("name", "file", found))
    assert len(content["explanations"]) == len(found)


def test_a_dialogue_is_chosen_by_name_by_score_or_at_random(
    suite_runs: Mapping[str, Run],
) -> None:
    dialogues = Dialogues(suite_runs["group_travel"])
    name = dialogues.names["name"][3]
    assert choose_dialogue(dialogues, name) == 3
    values = dialogues.run.table("dialogues").select("M9").collect()["M9"]
    worst = choose_dialogue(dialogues, worst="M9")
    assert values[worst] == values.min()
    assert values[choose_dialogue(dialogues, best="M9")] == values.max()
    least = dialogues.run.table("dialogues").select("M13").collect()["M13"]
    assert least[choose_dialogue(dialogues, best="M13")] == least.min()  # lower is better
    assert choose_dialogue(dialogues, seed=1) == choose_dialogue(dialogues, seed=1)
    with pytest.raises(UsageError, match=r"names of \d+ dialogues begin with 's0'"):
        choose_dialogue(dialogues, "s0")
    with pytest.raises(UsageError, match="no dialogue's name begins with 'zz'"):
        choose_dialogue(dialogues, "zz")
    with pytest.raises(UsageError, match="in one way, 2 are named"):
        choose_dialogue(dialogues, name, worst="M9")


def test_a_changed_log_is_refused(suite_runs: Mapping[str, Run]) -> None:
    run = suite_runs["guest_simulation"]
    log = Path(run.manifest.inputs[0]["name"])
    content = log.read_bytes()
    log.write_bytes(content + b"\n")
    try:
        with pytest.raises(InputError, match="no longer what was scored"):
            explain(Dialogues(run), 0, ["PAS"])
    finally:
        log.write_bytes(content)


def test_the_command_explains(suite_runs: Mapping[str, Run]) -> None:
    run = suite_runs["guest_simulation"]
    done = fastscore_command(["explain", run.path, "--worst", "CRRS"])
    assert done.returncode == 0, done.stderr
    assert "0.25 * " in done.stdout
    wrong = fastscore_command(["explain", run.path, "--worst", "CRSS"])
    assert wrong.returncode == 2
    assert "Did you mean 'CRRS'" in wrong.stderr


@pytest.mark.parametrize(
    ("text", "other", "distance"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "abc", 0), ("flaw", "lawn", 2)],
)
def test_alignment_keeps_what_a_shortest_edit_keeps(text: str, other: str, distance: int) -> None:
    assert edit_distance(text, other) == distance
    kept = sum(mark.stop - mark.start for mark in matched_characters(text, other))
    assert kept >= max(len(text), len(other)) - distance
    assert [(m.start, m.stop) for m in occurrences("Abc abc", "ABC")] == [(0, 3), (4, 7)]


def test_the_columns_of_a_signature_are_read_back() -> None:
    read = columns_of("suite=x.1|columns=text=meta.text,role=who|values=speaker:a:b")
    assert read.columns == (("text", "meta.text"), ("role", "who"))
    assert read.values == (("speaker", "a", "b"),)
    assert not columns_of("suite=x.1")
