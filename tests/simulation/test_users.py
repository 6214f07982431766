import statistics
from pathlib import Path

import pytest

from fastscore.errors import UsageError
from fastscore.simulation.simulate import CallableAgent, OfflineAgent, Simulation, World
from fastscore.simulation.users import (
    DETAILS,
    INITIAL,
    WAITING,
    load_policy,
    load_retrieval,
    plan_user,
)
from tests.simulation.worlds import plotted, sample

POLICY = load_policy()


def logs(agent, sessions, turns=50, policy=POLICY, retrieval=None):
    asked = Simulation(catalogue="", sessions=sessions, turns=turns, output=Path())
    world = World(asked, retrieval or sample(), policy, agent)
    return [world.log(session) for session in range(sessions)]


def spoken(log, speaker="USER"):
    return [turn for turn in log["conversation"] if turn["speaker"] == speaker]


def test_600_sessions_are_distributed_as_the_published_ones():
    # published, 600 logs of 50 turns: 8 to 14 shifts, mean 10.6; first shift at turn 2 to 9; user
    # texts of 77 characters on average. Extremes of another 600 sessions may lie one or two beyond.
    made = logs(OfflineAgent(sample()), 600)
    shifts = [len(log["shift_events"]) for log in made]
    first = [log["shift_events"][0]["turn"] for log in made]
    lengths = [len(turn["text"]) for log in made for turn in spoken(log)]
    assert statistics.mean(shifts) == pytest.approx(10.6, abs=0.15)
    assert min(shifts) in (6, 7, 8)
    assert max(shifts) in (14, 15, 16)
    assert min(first) == 2
    assert 8 <= max(first) <= POLICY.forced_shift
    assert statistics.quantiles(first, n=100)[97] <= 9
    assert statistics.mean(lengths) == pytest.approx(77, abs=4)
    other = [log["true_genre"] != spoken(log)[0]["user_meta"]["focus_value"] for log in made]
    assert statistics.mean(other) == pytest.approx(0.30, abs=0.06)


def test_every_system_meets_equal_users():
    chatty = CallableAgent("chatty", lambda turns: f"See {sample().items[len(turns)].title}!")
    silent = CallableAgent("silent", lambda turns: "")
    by_agent = [logs(agent, 20) for agent in (OfflineAgent(sample()), chatty, silent)]
    for one, two, three in zip(*by_agent, strict=True):
        assert one["shift_events"] == two["shift_events"] == three["shift_events"]
        metas = [[turn["user_meta"] for turn in spoken(log)] for log in (one, two, three)]
        assert metas[0] == metas[1] == metas[2]
        assert one["true_genre"] == two["true_genre"]
    assert spoken(by_agent[0][0]) != spoken(by_agent[1][0])  # details name what was answered


def test_a_user_that_does_not_follow_the_system_says_the_same_words(tmp_path):
    file = tmp_path / "user.toml"
    file.write_text(
        (load_text()).replace("follows_system = true", "follows_system = false"), encoding="utf-8"
    )
    policy = load_policy(file)
    chatty = CallableAgent("chatty", lambda turns: f"See {sample().items[len(turns)].title}!")
    one, two = (logs(agent, 10, policy=policy) for agent in (OfflineAgent(sample()), chatty))
    assert [spoken(log) for log in one] == [spoken(log) for log in two]


def load_text():
    from importlib.resources import files

    return files("fastscore.simulation").joinpath("user.toml").read_text(encoding="utf-8")


def test_plans_follow_the_state_machine(tmp_path):
    retrieval = load_retrieval(plotted(tmp_path))
    fields = set()
    for session in range(60):
        plan = plan_user(retrieval, POLICY, seed=1, session=session, turns=50)
        stages = [INITIAL, *(turn.meta["stage"] for turn in plan.turns)]
        before = None
        for number, (stage, turn) in enumerate(zip(stages, plan.turns, strict=False), 1):
            meta, event = turn.meta, turn.meta["shift_event_obj"]
            assert meta["turn"] == number
            assert meta["shift_event"] == (event is not None) == (meta["stage"] == WAITING)
            if stage in (INITIAL, WAITING):
                assert meta["stage"] == DETAILS
            assert meta["constraints"][meta["focus_field"]] == [meta["focus_value"]]
            assert "genre" in meta["constraints"]
            if event:
                fields.add(event["to_focus"])
                assert event["turn"] == number
                assert event["from_focus"] == before["focus_field"] != event["to_focus"]
                assert event["to_focus"] == meta["focus_field"]
                assert event["from_anchor"] == before["anchor_title"]
                assert event["to_anchor"] == meta["anchor_title"]
                kept = event["bridge_field"] == "plot" and event["to_focus"] in ("genre", "plot")
                if event["bridge_field"] != event["to_focus"] and not kept:
                    assert meta["constraints"][event["bridge_field"]] == [event["bridge_value"]]
            elif before:
                assert meta["constraints"] == before["constraints"]
            before = meta
    assert fields == set(POLICY.fields)


def test_a_shift_that_waits_too_long_is_forced(tmp_path):
    file = tmp_path / "user.toml"
    text = load_text().replace("shift = 0.18 ", "shift = 0.0 ")
    text = text.replace("contradiction = 0.15", "contradiction = 0.9")
    file.write_text(text, encoding="utf-8")
    policy = load_policy(file)
    firsts = [
        plan_user(sample(), policy, seed=0, session=session, turns=200).shift_events[0]["turn"]
        for session in range(100)
    ]
    # from turn 12 on, the first turn that is no contradiction shifts
    assert min(firsts) >= 5
    assert statistics.mean(first > 12 for first in firsts) > 0.5


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("shift = 0.18 ", "shift = 1.8 ", "rates.shift is 1.8, expected a probability from 0 to 1"),
        ("forced_shift = 12", "forced_shift = 0", "turns.forced_shift is 0, expected a whole"),
        ("take_focus", "take_focos", "unknown key rates.take_focos. Did you mean 'take_focus'?"),
        ("follows_system = true", 'follows_system = "yes"', "expected true or false"),
        ('order = ["actor"', 'order = ["acter"', "focus.order is"),
        ("[rates]", "[rates", "not TOML"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused(tmp_path, old, new, message):
    file = tmp_path / "user.toml"
    file.write_text(load_text().replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError, match=r"user\.toml") as refused:
        load_policy(file)
    assert message in f"{refused.value.message} {refused.value.hint}"
