import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

import pytest

import fastscore
from fastscore.errors import UsageError
from fastscore.llm.requests import ModelOptions
from fastscore.llm.spending import BudgetError
from fastscore.run.progress import SilentReporter
from fastscore.simulation.simulate import Simulation, simulate, unknown_titles
from tests.conftest import often
from tests.llm.stub_server import PATIENCE, stub_fixture
from tests.simulation.worlds import SAMPLE, logs, sample, shards

stub = stub_fixture()


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
        with pytest.raises(BudgetError, match="max_requests=4 does not cover"):
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


def test_replies_that_are_refused_or_cut_are_marked(stub, tmp_path):
    faults = (None, "refusal", "cut_off", "filtered", None)
    stub.fault = lambda number: faults[number]
    run(stub, tmp_path, sessions=1)
    turns = logs(tmp_path / "logs")[0]["conversation"][1::2]
    assert [turn.get("refused") for turn in turns] == [None, True, None, None, None]
    assert [turn.get("cut_off") for turn in turns] == [
        None, None, "length", "content_filter", None
    ]  # fmt: skip
    assert turns[3]["text"] == "I recommend"


def test_a_session_that_fails_costs_itself_alone_and_is_made_again(stub, tmp_path):
    stub.fault = lambda number: "rejected" if number == 7 else None
    options = {"concurrency": 1, "max_failures": 1}
    made = run(stub, tmp_path, models=options)
    assert (made.sessions, made.failed, made.refusal) == (2, 1, None)
    (kept,) = shards(tmp_path / "logs").values()
    assert len(kept.splitlines()) == 2
    state = tmp_path / "logs" / ".simulation"
    (failed,) = map(json.loads, (state / "failures.jsonl").read_text().splitlines())
    assert (failed["kind"], failed["reason"]) == ("rejected", "400: content policy")
    manifest = json.loads((state / "manifest.json").read_text())
    assert (manifest["status"], manifest["failures"]) == ("incomplete", {"rejected": 1})
    # two sessions of five turns, and the two turns before the third one failed
    assert manifest["spent"]["requests"] == 5 + 3 + 5

    again = run(stub, tmp_path, models=options)
    assert (again.sessions, again.failed, again.spent.requests) == (3, 0, 3)
    assert [len(log["conversation"]) for log in logs(tmp_path / "logs")] == [10, 10, 10]
    assert json.loads((state / "manifest.json").read_text())["status"] == "complete"
    assert (state / "failures.jsonl").read_text() == ""
    run(stub, tmp_path, "whole")
    assert shards(tmp_path / "whole") == shards(tmp_path / "logs")


def test_refusals_in_first_words_are_no_words_of_a_user(stub, tmp_path):
    refusal = "I\u2019m sorry, but I can\u2019t help with that."
    stub.answer = lambda body: refusal
    made = run(stub, tmp_path, user="openai:talker", sessions=1)
    turns = logs(tmp_path / "logs")[0]["conversation"]
    for said, replied in zip(turns[::2], turns[1::2], strict=True):
        assert said["text"] == said["user_meta"]["template"] != refusal
        assert said["user_meta"]["not_reworded"] == "refused"
        assert (replied["text"], replied["refused"]) == (refusal, True)
    assert made.refused == 2 * 5
    manifest = json.loads((tmp_path / "logs" / ".simulation" / "manifest.json").read_text())
    assert manifest["refused_turns"] == 10
    run(stub, tmp_path, "without", sessions=1, refusals="leave-out")
    replied = logs(tmp_path / "without")[0]["conversation"][1::2]
    assert {(turn["text"], turn["refusal"], turn["refused"]) for turn in replied} == {
        (None, refusal, True)
    }
    catalogue = str(SAMPLE)
    options = fastscore.PreferenceShift(catalogue=catalogue, segments="metadata")
    scored = fastscore.score(tmp_path / "without", options, embedder=None)
    assert scored.tables["turns"]["cc"].to_list() == [None] * 5
    stub.answer = lambda body: 'Sorry, I can\'t find a western, but "Heat" is near.'
    run(stub, tmp_path, "fine", sessions=1, models={"temperature": 0.5})
    assert not any("refused" in turn for turn in logs(tmp_path / "fine")[0]["conversation"])


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
    kills = often(1, 4)
    for _ in range(kills):
        process, before = subprocess.Popen(command), len(stub.asked)
        while len(stub.asked) < before + 5 and process.poll() is None:
            time.sleep(0.01)  # however long a start takes
        time.sleep(chosen.uniform(0.0, 0.2))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert subprocess.run(command, check=False).returncode == 0
    # at a kill two requests may be under way whose answers nobody hears
    assert len(stub.answered) == 120
    assert sum(stub.answered.values()) <= 120 + kills * 2
    # a request is recorded before it is sent: a kill loses none, and adds at most those on the way
    manifest = json.loads((tmp_path / "logs" / ".simulation" / "manifest.json").read_text())
    spent = manifest["spent"]
    assert len(stub.asked) <= spent["requests"] <= len(stub.asked) + kills * 2
    assert [one["ended"] is None for one in manifest["commands"]] == [True] * kills + [False]
    answered = sum(one["completion_tokens"] for one in manifest["commands"]) // 5
    assert 120 <= answered <= 120 + kills * 2  # 5 tokens an answer
    assert spent["unanswered_completion_tokens"] == 512 * (spent["requests"] - answered)


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
