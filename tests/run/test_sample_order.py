"""A sample does not depend on the order of a log: every suite, every format."""

import json
import re

import pytest

from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.read.chosen import Choice, choose_sample
from fastscore.logs.read.rows import join_parts, read_parts
from fastscore.suites.identity import IDENTITY, RunNames
from fastscore.suites.registry import load_suite
from tests.by_keywords import score_by_keywords
from tests.run.logs import utterance
from tests.suites.group_travel.travelling import turn as travel_turn
from tests.suites.memory_finance.tracing import dialog, turn
from tests.suites.preference_shift.conversing import system, user

N, SIZE = 20, 5
IDS = [f"d{number}" for number in range(N)]

TALK = [
    travel_turn("Ann", "user_provide_cuisine", "thai food"),
    travel_turn("System", "sys_present_plan", "Here it is."),
]


def conversation(id):
    return {
        "session_id": id,
        "model_name": "m",
        "conversation": [user("A film?"), system("Alien.")],
    }


MAKERS = {
    "memory_finance": ("memory_finance", lambda id: dialog(turn("hello"), dialog_id=id)),
    "preference_shift": ("preference_shift", conversation),
    "travel metadata": (
        "group_travel",
        lambda id: {"metadata": {"dialogue_id": id}, "turns": TALK},
    ),
}
"""Of each kind of log the suite, and the row of a dialogue of an id."""


def write(path, rows):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(lines if path.suffix == ".jsonl" else json.dumps(rows))
    return path


def kept_ids(path, suite, choice):
    """Read the rows of the sampled dialogues, and return the ids in them."""
    source = load_suite(suite).source
    plan = plan_shards(resolve_inputs([str(path)], source.formats), source, scratch=path.parent)
    chosen = choose_sample(plan.shards, source, plan.shared_names, choice, threads=1)
    names = RunNames(plan.shared_names)
    kept = [
        join_parts(read_parts(shard.file_ranges, source), source, names, chosen.sampled).frame
        for shard in plan.shards
    ]
    rows = [str(row) for part in kept for row in part.drop("file", IDENTITY, strict=False).rows()]
    return sorted({re.findall(r"\bd\d+\b", row)[-1] for row in rows})


@pytest.mark.parametrize("kind", MAKERS)
def test_dialogues_without_an_id_are_chosen_by_place(tmp_path, kind):
    suite, maker = MAKERS[kind]
    rows = [maker(id) for id in IDS]
    for row, id in zip(rows, IDS, strict=True):
        for name in ("dialog_id", "session_id", "metadata"):
            row.pop(name, None)
        # what is said tells them apart here
        name = "turns" if "turns" in row else "conversation"
        first, *rest = row[name]
        row[name] = [{**first, "text": id, "utterance": id, "user_text": id}, *rest]
    samples = {
        tuple(kept_ids(write(tmp_path / "log.jsonl", rows), suite, Choice(sample=SIZE, seed=seed)))
        for seed in range(3)
    }
    assert len(samples) == 3
    assert {len(sample) for sample in samples} == {SIZE}
    first = kept_ids(tmp_path / "log.jsonl", suite, Choice(sample=SIZE))
    write(tmp_path / "log.jsonl", rows[::-1])
    # the same lines, with other dialogues
    mirrored = sorted(f"d{N - 1 - int(id[1:])}" for id in first)
    assert kept_ids(tmp_path / "log.jsonl", suite, Choice(sample=SIZE)) == mirrored


@pytest.mark.parametrize(
    ("kind", "variant"), [("memory_finance", "run_id"), ("preference_shift", "model_name")]
)
def test_variants_of_a_dialogue_are_neighbours_in_a_sample(tmp_path, kind, variant):
    suite, maker = MAKERS[kind]
    rows = [{**maker(id), variant: name} for name in ("x", "y") for id in IDS]
    path = write(tmp_path / "log.jsonl", rows)
    one = write(tmp_path / "one.jsonl", rows[:N])
    both = kept_ids(path, suite, Choice(sample=2 * SIZE))
    assert both == kept_ids(one, suite, Choice(sample=SIZE))
    assert len(kept_ids(path, suite, Choice(sample=5))) == 3


@pytest.mark.parametrize("more", [{"limit": 7}, {"sample": 7}])
def test_elements_of_arrays_are_chosen_by_the_row_of_the_array(tmp_path, more):
    names = ("event", "step", "utterance_index", "prediction", "ground_truth")
    columns = {name: f"steps[].{name}" for name in names}
    path = write(
        tmp_path / "log.jsonl", [{"steps": utterance("yes", "yes", dialogue_uid=id)} for id in IDS]
    )
    scores = score_by_keywords(path, "score_dialogue", lex_weight=1.0, columns=columns, **more)
    assert scores.tables["dialogues"].height == 7
