"""Wishes and what satisfies them: M8, M10, M10b, M11 and W1 to W3, by hand."""

import math
from typing import Any

from fastscore.suites.group_travel import GroupTravel
from tests.suites.group_travel.travelling import (
    CATALOGUE,
    DAY,
    dialogue,
    pairs_of,
    presented,
    ratio,
    wish,
)


def test_m10_by_room_type() -> None:
    turns = presented([DAY], **CATALOGUE)
    wishes = {
        "a": ("an entire home please", True),
        "b": ("not a shared room", True),
        "c": ("a private room", False),
        "d": ("quiet", None),
    }
    pairs = pairs_of(*turns, *(wish(who, "room_type", text) for who, (text, _) in wishes.items()))
    found = {who: pairs[who, "lodging"]["room_channel"] for who in wishes}
    assert found == {who: fits for who, (_, fits) in wishes.items()}
    assert [pairs[who, "lodging"]["satisfied"] for who in wishes] == [True, True, False, False]


def test_m10b_by_category() -> None:
    turns = presented([DAY], **CATALOGUE)
    wishes = {
        "a": ("Barbecue!", True),
        "b": ("thai or italian", True),
        "c": ("Mexican", False),
        "d": ("seafood but no italian", True),
        "e": ("something spicy", None),
    }
    turns += [wish(who, "food", text) for who, (text, _) in wishes.items()]
    pairs = pairs_of(*turns)
    assert {who: pairs[who, "cuisine"]["category_channel"] for who in wishes} == {
        who: fits for who, (_, fits) in wishes.items()
    }
    assert ratio(dialogue(*turns), "M10b") == (0.75, 3, 4)
    negating = pairs_of(*turns, wish("f", "food", "no italian"), options=GroupTravel(
        negation="all"
    ))  # fmt: skip
    assert negating["d", "cuisine"]["category_tokens"] == ["seafood"]
    assert negating["f", "cuisine"]["category_channel"] is None
    far = [*turns, wish("f", "food", "I do not really feel like eating Italian")]
    assert pairs_of(*far)["f", "cuisine"]["category_channel"] is True
    negating = pairs_of(*far, options=GroupTravel(negation="all"))
    assert negating["f", "cuisine"]["category_channel"] is None


def test_m10_by_words() -> None:
    plan = {"days": [DAY], "raw_output": "We dine at a rooftop with live jazz"}
    turns = presented(plan, **CATALOGUE)
    wishes = ("rooftop jazz", "jazz", "mango and cake", "smoking allowed")
    turns += [wish(text, "food", text) for text in wishes]
    rows = pairs_of(*turns)
    found = [rows[text, "cuisine"]["lexical_hits"] for text in wishes]
    assert found == [2, 1, 2, 0]
    assert [rows[text, "cuisine"]["satisfied"] for text in wishes] == [True, False, True, False]


def satisfied(shares: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Make members who have some of their actionable wishes met by category."""
    plan = [{**DAY, "attraction": "Art", "event": "Gig"}]
    records = {"ref_info_attractions": [{"name": "Art", "type": "Museums"}],
               "ref_info_events": [{"name": "Gig", "segment": "Music"}]}  # fmt: skip
    turns = presented(plan, **CATALOGUE, **records)
    met = {"cuisine": "italian", "attraction": "museum", "event": "music", "lodging": "entire home"}
    unmet = {"cuisine": "thai", "attraction": "zoos", "event": "sports", "lodging": "dorm"}
    for number, (hits, wishes) in enumerate(shares):
        slots = list(met)[:wishes]
        turns += [
            wish(f"m{number}", slot, (met if place < hits else unmet)[slot])
            for place, slot in enumerate(slots)
        ]
    return turns


def test_m10_m11_and_welfare_of_four_members() -> None:
    row = dialogue(*satisfied([(4, 4), (3, 4), (2, 4), (4, 4)]))
    assert ratio(row, "M10") == (13 / 16, 13, 16)
    assert ratio(row, "M11") == (0.5, 2, 4)
    assert row["W1"] == 0.8125
    assert row["W2"] == 0.5
    assert math.isclose(row["W3"], 0.782542, abs_tol=5e-7)
    assert (row["n_category_channel"], row["n_room_channel"]) == (11, 2)
    assert [member["satisfaction"] for member in row["members"]] == [1.0, 0.75, 0.5, 1.0]


def test_welfare_is_not_m10_where_members_have_unequal_numbers_of_wishes() -> None:
    row = dialogue(*satisfied([(1, 1), (0, 3)]))
    assert (row["M10"], row["W1"], row["W2"], row["W3"]) == (0.25, 0.5, 0.0, 0.0)
