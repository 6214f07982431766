"""Random conversations and real orders score as the plain scorer says."""

import itertools
import json
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.guest_simulation_logs import SAMPLE, read_orders, write_csv, write_shards
from fastscore.suites.guest_simulation import SUITE
from fastscore.vectors.view import VectorView
from tests.by_keywords import score_by_keywords
from tests.oracles import guest_simulation as plain
from tests.oracles.guest_cells import ATTRIBUTES_TOOL
from tests.suites.guest_simulation.guests import ADA, call, order_cell, read, tracking

METRICS = ("PAS", "BVS", "ORA", "DEI", "CRRS")
SOME = {"next_message_menu_exploration_style": "explores_menu", "next_message_mood_tones": []}
PERSONAS = (
    None, ADA, {"full_name": "Bo", "bio": "A busy professional with a family"}, {"bio": "curious"},
    {"guest_persona": {"full_name": "Ada"}, "bio": "indecisive"}, {"bio": "family"}, {},
    {"bio": "An INEFFICIENT cook"}, {"bio": "An adventurous one"}, {"bio": "uncertain, of a group"},
    {"full_name": "Cy", "message_generation_attributes": SOME},
)  # fmt: skip
NAMES = ("Cola", "Soup", "Caesar Salad", "Nonna's Pasta", "the", "Chicken Burger", "Café")
names = st.lists(st.sampled_from(NAMES), max_size=4)
modifiers = st.lists(
    st.sampled_from(["Hot", {"name": "Cheese"}, {"modifier_option_name": "Oat"}]), max_size=2
)
item_lists = st.lists(
    st.builds(
        lambda name, more: {"name": name, "modifiers": more}, st.sampled_from(NAMES), modifiers
    ),
    max_size=3,
)
attributes = st.builds(
    lambda mood, order: call(
        ATTRIBUTES_TOOL,
        f"Message generation attributes: next_message_mood_tone=<MessageMoodTone.{mood}: '{mood}'> "
        f"next_message_ordering_style=<OrderingStyle.{order}: '{order}'>",
    ),
    st.sampled_from(["CASUAL", "CONFUSED"]),
    st.sampled_from(["ONE_BY_ONE", "ALL_AT_ONCE"]),
)
tools = st.one_of(
    st.none(),
    st.just(""),
    names.map(lambda each: order_cell(*each)),
    names.map(lambda each: order_cell(*each).replace("\\", "")),
    names.map(lambda each: {"calls": [{"tool_name": "order_tracking", "result": tracking(*each)}]}),
    item_lists.map(lambda each: {"tool_name": "order_tracking", "current_items_in_order": each}),
    attributes,
    st.tuples(names, attributes).map(lambda each: order_cell(*each[0]) + each[1]),
    st.sampled_from(["get_name_of_self", "x"]).map(call),
)
messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["agent", "assistant", "guest", "system", "user"]),
        "name": st.sampled_from([None, "guest_1", "order_taking_llm"]),
        "content": st.sampled_from(
            [None, "exit", "Exit", "What do you have?", "a cola and caesar salad", "chicken, pizza",
             "ugh, soup?", "your order has been placed", "Any sides?", "What's on the menu?",
             "I'm not sure... a cola", "Awesome"]
        ),
        "tool_calls": tools,
    },
    optional={
        "is_ordering_complete": st.sampled_from(["yes", "no", "", " \t"]),
        "next_message_menu_exploration_style": st.sampled_from(["explores_menu", "?", "  "]),
        "mood_tone": st.sampled_from(["casual", "friendly", "confused"]),
        "ordering_style": st.sampled_from(["one_by_one", "all_at_once"]),
        "current_items_in_order": st.one_of(
            st.sampled_from([None, "", "  "]), item_lists, item_lists.map(repr)
        ),
    },
)  # fmt: skip
targets = st.one_of(
    st.none(),
    st.builds(
        lambda key, each: {key: each},
        st.sampled_from(["items", "target_order", "order_items", "other"]),
        item_lists,
    ),
)
conversations = st.tuples(
    st.lists(messages, max_size=6), st.sampled_from(PERSONAS), targets, st.integers(0, 6)
)


def rows_of(number, conversation):
    rows, persona, target, level = conversation
    content = json.dumps({"guest_persona": persona, "target_order": target})
    case = {"role": "system", "name": "test_case_info", "content": content}
    labels = {"conversation_id": f"c{number}", "experiment_level": level}
    return [labels | row for row in [*rows, case]]


ORDERED = [
    *([{"name": "The Burger with  Cheese!"}], [{"name": "burger -- CHEESE"}], [{"name": "Café"}]),
    *([{"name": "Caf"}], [{"name": "Nonna's Pasta"}], [{"item_name": "Cola"}], [{"item": "Cola"}]),
    *([{"name": name} for name in ("Cola", "Cola", "Fries")], [{"name": "the"}], ["Cola"], []),
    [{"name": "Burger", "modifiers": [{"modifier_option_name": "Cheese"}]}],
    [{"name": "Burger", "modifiers": ["Cheese", {"name": "Bacon"}]}],
    [{"item": "Tea", "modifier": "Lemon"}, {"name": "Soup"}],
    [{"name": "Tea", "modifiers": [{"name": "a1", "modifier_option_name": "b1"}]}],
    [{"name": "Tea", "modifiers": [{"name": "b1", "modifier_option_name": "a1"}]}],
]
"""Orders that are nearly alike: each is compared with each, written in three ways."""


@pytest.mark.parametrize("write", [lambda order: order, repr, json.dumps])
def test_orders_are_compared_as_by_the_plain_scorer(write):
    conversations = [
        ([{"role": "agent", "current_items_in_order": write(current)}], ADA, {"items": target}, 5)
        for current in ORDERED
        for target in ORDERED
    ]
    compare(conversations, "default", "auto")


def test_every_state_of_every_persona_is_compared_as_by_the_plain_scorer():
    styles, orderings = ("explores_menu", "does_not_explore_menu"), ("one_by_one", "all_at_once")
    moods = ("casual", "confused", "frustrated", "enthusiastic")
    names = ("is_ordering_complete", "menu_exploration_style", "mood_tone", "ordering_style")
    states = [*itertools.product(("yes", "no"), styles, moods, orderings)]
    conversations = [
        ([{"role": "agent", **dict(zip(names, state, strict=True))}], persona, None, 5)
        for persona in PERSONAS
        for state in states
    ]
    compare(conversations, "default", "auto")


@example(
    [
        (
            [{"role": "agent", "name": None, "content": None, "tool_calls": None}],
            None,
            {"items": [{"name": "Cola", "modifiers": []}]},
            0,
        )
    ],
    "default",
    "auto",
)
@example(  # a blank order cell is no order: the one that a tool tracked counts
    [
        (
            [
                {"role": "agent", "content": None, "tool_calls": None,
                 "is_ordering_complete": "yes", "current_items_in_order": "  "},
                {"role": "agent", "content": None, "tool_calls": order_cell("Cola")},
            ],
            None,
            {"items": [{"name": "Cola", "modifiers": []}]},
            0,
        )
    ],
    "published",
    "auto",
)  # fmt: skip
@given(
    st.lists(conversations, min_size=1, max_size=4),
    st.sampled_from(["default", "published"]),
    st.sampled_from(["auto", "columns", "tools", "heuristic"]),
)
def test_suite_equals_the_plain_scorer(drawn, profile, states):
    compare(drawn, profile, states)


def compare(drawn, profile, states):
    rows = [row for number, each in enumerate(drawn) for row in rows_of(number, each)]
    events, options, _ = read(*rows, options={"profile": profile, "states": states})
    assert events.rejects.is_empty(), events.rejects.to_dicts()
    tables = SUITE.score(events, VectorView.empty(), options)
    lines = [json.dumps(row) for row in rows]
    expected = plain.score_lines(lines, {}, profile=profile, states=states)
    assert tables["dialogues"].height == len(expected)
    for found in tables["dialogues"].iter_rows(named=True):
        plainly = expected[found["conversation_id"], found["experiment_level"]]
        for metric in METRICS:
            assert found[metric] == pytest.approx(plainly[metric], abs=1e-12), (metric, found)
        reasons = {each["metric"] for each in found["null_reasons"]}
        assert reasons == {metric for metric in METRICS if found[metric] is None}
        assert found["state_source"] == plainly["state_source"]


# --- coffee orders of Taskmaster-4 with defects


COUNT = 200
DATA = Path(os.environ.get("FASTSCORE_TM4", SAMPLE))


def personas_of(logs):
    return logs.with_name(f"{logs.name}-personas.json")


def scored(logs, **options):
    personas = str(personas_of(logs))
    found = score_by_keywords(logs, "guest_simulation", personas=personas, **options)
    assert found.rejects.is_empty(), found.rejects.to_dicts()
    return found.tables


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guests") / "logs"
    write_shards(folder, read_orders(DATA), COUNT)
    return folder


@pytest.mark.parametrize("profile", ["default", "published"])
def test_real_orders_are_scored_as_by_the_plain_scorer(logs, profile):
    found = scored(logs, profile=profile)["dialogues"].rows(named=True)
    lines = [line for path in sorted(logs.iterdir()) for line in path.read_text().splitlines()]
    expected = plain.score_lines(lines, plain.read_personas(personas_of(logs)), profile=profile)
    assert len(found) == len(expected) == COUNT
    for row, (key, values) in zip(found, expected.items(), strict=True):
        assert (row["conversation_id"], row["experiment_level"]) == key
        assert row["state_source"] == values["state_source"]
        for metric in plain.METRICS:
            assert row[metric] == pytest.approx(values[metric], abs=1e-12), (metric, row)
    # orders with and without a defect, and states of two sources
    assert 0.1 * COUNT < sum(row["ORA"] == 1.0 for row in found) < 0.7 * COUNT
    assert {"columns", "tools"} <= {row["state_source"] for row in found}


def test_csv_files_of_levels_are_read_as_published(tmp_path, logs):
    write_csv(tmp_path / "logs", read_orders(DATA), COUNT)
    by_format = [scored(folder)["dialogues"] for folder in (tmp_path / "logs", logs)]
    # a conversation's place differs, and so does the order of files
    places = ("file", "line", "dialogue", "conversation_id")
    key = ["experiment_level", "test_case", "persona"]
    csv, jsonl = (frame.drop(places).sort(key) for frame in by_format)
    assert csv.equals(jsonl)
