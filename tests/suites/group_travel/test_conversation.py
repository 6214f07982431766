"""M1 to M7 and the conditions: the worked examples of the definitions, and their edges."""

from typing import Any

import pytest

from tests.suites.group_travel.travelling import dialogue, flags, opening, ratio, turn

NAMES = ("Grandparent 1", "Grandparent 2", "Parent", "Child")


def provide(speaker: str, slot: str, utterance: str = "anything") -> dict[str, Any]:
    return turn(speaker, f"user_provide_{slot}", utterance)


def synthesize(slot: str, utterance: str = "", **fields: Any) -> dict[str, Any]:
    return turn("System", f"sys_synthesize_{slot}", utterance, metadata=fields or None)


def test_m1_every_member_of_four_speaks() -> None:
    turns = [opening("C4", member_count=4), *(provide(name, "cuisine") for name in NAMES)]
    assert ratio(dialogue(*turns), "M1") == (1.0, 4, 4)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"members": [{"name": "a"}, {"name": "b"}]}, (1.0, 2, 2)),
        ({"member_count": "3", "members": [1]}, (2 / 3, 2, 3)),
        ({"member_count": 1}, (1.0, 1, 1)),
        ({"member_count": 0}, (None, 0, 0)),
        ({}, (2 / 3, 2, 3)),
    ],
)
def test_m1_counts_members(metadata: dict[str, Any], expected: Any) -> None:
    turns = [
        opening("C2", **metadata),
        provide("Ann", "cuisine", ""),
        provide(" ann ", "event"),
        provide("Bob  B", "event"),
        turn("Cy", "user_respond_event", "fine"),
        turn("Everyone", "user_accept_plan", "yes"),
        turn("Planner", "sys_present_plan", "so"),
    ]
    assert ratio(dialogue(*turns), "M1") == expected


def diverging(slot: str) -> list[dict[str, Any]]:
    wishes = {"cuisine": ("Italian", "Thai"), "event": ("music", "sports")}
    first, second = wishes.get(slot, ("museums", "shopping"))
    return [provide("A", slot, first), provide("B", slot, second)]


def test_m2_two_of_three_divergent_slots() -> None:
    turns = [
        opening("C3"),
        *(wish for slot in ("cuisine", "event", "attraction") for wish in diverging(slot)),
        provide("A", "lodging", "a private room"),
        provide("B", "lodging", "own room please"),
        synthesize("cuisine", has_conflict=True),
        synthesize("event", "You have different wishes"),
        synthesize("attraction", "There is no conflict.", has_conflict=False),
    ]
    assert ratio(dialogue(*turns), "M2") == (2 / 3, 2, 3)


def test_m3_explained_by_metadata_or_words() -> None:
    turns = [
        opening("C3"),
        synthesize("cuisine", resolution_explanation="Both are near"),
        synthesize("event", "one two three four five six", resolution_explanation="N/A"),
        synthesize("attraction", "one two three four five"),
        synthesize("house_rule", resolution_explanation=None),
    ]
    assert ratio(dialogue(*turns), "M3") == (0.5, 2, 4)


def test_m4_three_named_strategies_of_four() -> None:
    strategies = {
        "cuisine": "Family Friendly",
        "event": "parent_veto",
        "attraction": "Include Both",
        "lodging": "N/A",
        "travel_purpose": "ignored",
    }
    turns = [synthesize(slot, resolution_strategy=name) for slot, name in strategies.items()]
    assert ratio(dialogue(opening("C4"), *turns), "M4") == (0.75, 3, 4)
    assert ratio(dialogue(opening("C3"), *turns), "M4") == (0.0, 0, 0)
    assert dialogue(opening("C4"))["M4"] is None


def test_m4b_one_of_eight_turns() -> None:
    turns = [
        *(synthesize(slot, "We found a way") for slot in ("cuisine", "event", "attraction")),
        *(turn("System", "sys_feedback_cuisine", "Changed") for _ in range(3)),
        turn("System", "sys_present_plan", ""),
        turn("System", "sys_feedback_event", "By parental authority, no"),
        turn("Parent", "user_feedback_event", "parental authority"),
    ]
    assert ratio(dialogue(opening("C5"), *turns), "M4b") == (0.125, 1, 8)


def test_m5_all_three_conflicts_get_feedback() -> None:
    turns = [
        synthesize("cuisine", has_conflict=True),
        synthesize("event", has_conflict="yes"),
        synthesize("house_rule", has_conflict=1),
        synthesize("attraction", "a conflict", has_conflict=False),
        turn("A", "user_feedback_cuisine", "x"),
        turn("System", "sys_feedback_events", "x"),
        turn("A", "user_feedback_house_rule", "x"),
    ]
    assert ratio(dialogue(opening("C5"), *turns), "M5") == (1.0, 3, 3)
    assert ratio(dialogue(opening("C4"), *turns), "M5") == (0.0, 0, 0)
    assert dialogue(opening("C5"), turns[3])["M5"] is None


@pytest.mark.parametrize(
    ("accepting", "expected"),
    [
        (("A", "B"), (1.0, 2, 2)),
        (("A", " a"), (0.5, 1, 2)),
        (("Group",), (1.0, 2, 2)),
        (("A", "B", "C"), (1.0, 2, 2)),
        (("System",), (None, 0, 0)),
        ((), (None, 0, 0)),
    ],
)
def test_m6_counts_who_accepts(accepting: tuple[str, ...], expected: Any) -> None:
    turns = [opening("C2"), provide("A", "event"), provide("B", "event")]
    turns += [turn(name, "user_accept_plan") for name in accepting]
    assert ratio(dialogue(*turns), "M6") == expected


def test_m7_counts_turns() -> None:
    turns = [
        opening("C5"),
        turn("A", "", "hello"),
        turn("A", "", " "),
        provide("A", "food"),
        provide("B", "cuisine"),
        provide("A", "event"),
        turn("A", "user_feedback_event"),
        turn("System", "SYS_FEEDBACK_event", "ok"),
    ]
    row = dialogue(*turns)
    assert row["M7_total_turns"] == 7
    assert ratio(row, "M7_turns_per_slot") == (3.5, 7, 2)
    assert row["M7_feedback_turn_overhead"] == 2
    assert dialogue(opening("C5"))["M7_turns_per_slot"] is None


@pytest.mark.parametrize(
    ("metadata", "name", "condition", "source"),
    [
        (flags("C3"), "x_C5{}.csv", "C3", "metadata"),
        ({"flags": flags("C4")}, "x{}.csv", "C4", "metadata"),
        ({"condition_flags": flags("C1")}, "x{}.csv", "C1", "metadata"),
        ({"condition": "c2"}, "C5{}_.csv", "C2", "condition"),
        (None, "trip{}_condition-3.csv", "C3", "file_name"),
        (None, "trip{}-c4.csv.gz", "C4", "file_name"),
        (None, "doc4{}.csv", "C2", "content"),
        ({"enable_synthesis": "yes"}, "a{}.csv", "C3", "content,metadata,content,content"),
        ({"multi_user": 0, "enable_feedback": True}, "a{}.csv", "custom", None),
    ],
)
def test_where_the_flags_come_from(
    metadata: Any, name: str, condition: str, source: str | None
) -> None:
    turns = [turn("System", "x", metadata=metadata), provide("A", "event"), provide("B", "event")]
    row = dialogue(*turns, name=name)
    assert row["condition"] == condition
    assert source in (None, row["flag_source"])
