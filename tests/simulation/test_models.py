import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

import pytest

from fastscore.errors import UsageError
from fastscore.llm import client as client_module
from fastscore.llm.client import BudgetError
from fastscore.llm.options import ModelOptions
from fastscore.run.progress import SilentReporter
from fastscore.simulation.models import unknown_titles
from fastscore.simulation.simulate import simulate
from fastscore.simulation.world import Simulation
from tests.llm.stub_server import HASTE, PATIENCE, Stub, serving
from tests.simulation.worlds import SAMPLE, sample


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr(client_module, "_FIRST_PAUSE", 0.01)
    with serving(Stub()) as served:
        yield served


def run(stub, tmp_path, folder="logs", agent="openai:tiny", models=(), **options):
    asked = {"base_url": stub.url, "answers": tmp_path / "answers.sqlite", "timeout": PATIENCE}
    simulation = Simulation(
        catalogue=str(SAMPLE),
        agent=agent,
        output=tmp_path / folder,
        models=ModelOptions(**{**asked, **dict(models)}),
        **{"sessions": 3, "turns": 5, "seed": 1, **options},
    )
    return simulate(simulation, SilentReporter())


def shards(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.jsonl"))}


def logs(folder):
    return [json.loads(line) for line in b"".join(shards(folder).values()).splitlines()]


FAULTS = (None, "busy", "broken", "late", "truncated", None, "hung_up", "empty", None, "refusal")


def test_nothing_is_lost_and_nothing_asked_twice(stub, tmp_path):
    faults = itertools.cycle(FAULTS)
    stub.fault = lambda number: next(faults)
    made = run(stub, tmp_path, models={"retries": 40, "timeout": HASTE})
    assert max(stub.answered.values()) == 1  # no request that was answered was sent again
    assert sum(stub.answered.values()) == 15 == made.turns
    assert made.spent.requests == len(stub.asked) == 15 + made.spent.retries
    found = logs(tmp_path / "logs")
    assert [len(log["conversation"]) for log in found] == [10, 10, 10]
    replies = [turn for log in found for turn in log["conversation"][1::2]]
    refused = [turn for turn in replies if turn.get("refused")]
    assert {turn["text"] for turn in refused} == {"I cannot help with that."}
    assert {turn["text"] for turn in replies if turn not in refused} == {'I recommend "Heat".'}

    again = run(stub, tmp_path, "again")
    assert (again.spent.requests, again.spent.hits) == (0, 15)
    assert shards(tmp_path / "again") == shards(tmp_path / "logs")


def test_a_model_is_shown_wishes_candidates_and_history(stub, tmp_path):
    run(stub, tmp_path, sessions=1, turns=6, models={"concurrency": 1})
    log = logs(tmp_path / "logs")[0]
    for turn, body in enumerate(stub.asked):
        system, *said = body["messages"]
        user, reply = log["conversation"][2 * turn : 2 * turn + 2]
        assert said[-1] == {"role": "user", "content": user["text"]}
        assert said[0]["role"] == "user"
        assert len(said) == min(2 * turn + 1, 7)
        assert all(f'"{title}"' in system["content"] for title in reply["rec_titles"])
        assert reply["constraints"]["genre"][0] in system["content"]
        assert body["max_tokens"] == 512
    assert len({body["seed"] for body in stub.asked}) == 6


def test_replay_gives_the_same_bytes_without_a_connection(stub, tmp_path, monkeypatch):
    stub.answer = lambda body: f"I recommend {len(body['messages'])} and {body['seed']}."
    run(stub, tmp_path, user="openai:talker")
    monkeypatch.setattr(socket, "socket", None)
    run(stub, tmp_path, "replayed", user="openai:talker", models={"replay": True})
    assert shards(tmp_path / "replayed") == shards(tmp_path / "logs")


def test_a_budget_stops_and_the_same_command_goes_on(stub, tmp_path):
    for _ in range(3):
        with pytest.raises(BudgetError, match="--max-requests 4 is spent"):
            run(stub, tmp_path, models={"max_requests": 4})
    run(stub, tmp_path, models={"max_requests": 4})
    assert len(stub.asked) == 15
    assert max(stub.answered.values()) == 1


def test_a_user_that_is_reworded_stays_as_planned(stub, tmp_path):
    stub.answer = lambda body: "Well..." if body["model"] == "talker" else "Fine."
    run(stub, tmp_path, user="openai:talker")
    run(stub, tmp_path, "plain", agent="offline")
    for reworded, plain in zip(logs(tmp_path / "logs"), logs(tmp_path / "plain"), strict=True):
        assert reworded["shift_events"] == plain["shift_events"]
        users = zip(reworded["conversation"][::2], plain["conversation"][::2], strict=True)
        for one, two in users:
            assert one["text"] == "Well..."
            template = one["user_meta"].pop("template")
            assert one["user_meta"] == two["user_meta"]
            if two["user_meta"]["shift_event"]:
                assert template == two["text"]


def test_words_that_a_model_does_not_find_are_the_templates(stub, tmp_path):
    stub.fault = lambda number: "refusal"
    run(stub, tmp_path, agent="offline", user="openai:talker", sessions=1)
    for turn in logs(tmp_path / "logs")[0]["conversation"][::2]:
        assert turn["text"] == turn["user_meta"]["template"]
        assert turn["user_meta"]["not_reworded"] == "refused"


def test_titles_that_the_catalogue_lacks_are_marked_or_asked_about(stub, tmp_path):
    def answer(body):
        if "does not have" in body["messages"][-1]["content"]:
            return f'Then "{sample().items[0].title}".'
        return 'See "The Movie That Never Was".'

    stub.answer = answer
    run(stub, tmp_path)
    for turn in logs(tmp_path / "logs")[0]["conversation"][1::2]:
        assert turn["unknown_titles"] == ["The Movie That Never Was"]
    run(stub, tmp_path, "asked", off_catalogue="ask-again")
    for turn in logs(tmp_path / "asked")[0]["conversation"][1::2]:
        assert turn["text"] == f'Then "{sample().items[0].title}".'
        assert "unknown_titles" not in turn
    run(stub, tmp_path, "ignored", off_catalogue="ignore")
    assert "unknown_titles" not in logs(tmp_path / "ignored")[0]["conversation"][1]


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ('Try "The Godfather Part IX" tonight.', ["The Godfather Part IX"]),
        ("Try **Nowhere at All** or *The Cotton Club*.", ["Nowhere at All"]),
        (
            "The Cotton Club (1984) is good, Neverland Rising (2031) is better.",
            ["Neverland Rising (2031)"],
        ),
        ("You would like The Cotton Club (1984).", []),
        ("“the cotton club” and 'quotes' are fine", []),
        ("no titles here", []),
        ('I suggest "Saving Nobody" (1998) or "The Cotton Club" (1984).', ["Saving Nobody"]),
    ],
)
def test_unknown_titles(text, unknown):
    assert unknown_titles(text, sample()) == unknown


def test_a_killed_simulation_asks_for_what_is_missing(stub, tmp_path):
    stub.answer = lambda body: time.sleep(0.02) or f"Answer {body['seed']}."
    command = [sys.executable, "-m", "fastscore", "simulate", "preference_shift", "-q"]
    command += ["--catalogue", str(SAMPLE), "--agent", "openai:tiny", "--base-url", stub.url]
    command += ["--answers", str(tmp_path / "answers.sqlite"), "--sessions", "6", "--turns", "20"]
    command += ["--concurrency", "2", "-o", str(tmp_path / "logs")]
    chosen = random.Random(3)
    for _ in range(4):
        process = subprocess.Popen(command)
        time.sleep(chosen.uniform(1.0, 3.0))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert subprocess.run(command, check=False).returncode == 0
    # at a kill two requests may be under way whose answers nobody hears
    assert len(stub.answered) == 120
    assert sum(stub.answered.values()) <= 120 + 4 * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agent": "openai:"}, "names no model"),
        ({"user": "someone"}, "expected template or openai:MODEL"),
    ],
)
def test_models_that_are_not_named_are_refused(stub, tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        run(stub, tmp_path, **options)
