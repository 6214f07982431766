"""Plans, stops, catalogues and M9, M12, M13 and M16: by hand."""

import math
from typing import Any

import numpy as np
import pytest

from fastscore.suites.group_travel import SUITE, GroupTravel
from fastscore.suites.group_travel.similarity import _join_windows
from tests.suites.group_travel.travelling import (
    CATALOGUE,
    DAY,
    DEFAULTS,
    dialogue,
    opening,
    pairs_of,
    presented,
    ratio,
    read,
    score,
    turn,
    wish,
)

SAMPLE = [
    {**DAY, "days": 1, "breakfast": "-", "point_of_interest_list": (
        "Inn, stay from 20:00 to 21:00, nearest transit: A, 5m away; Cafe, visit from 21:30 to "
        "22:45, nearest transit: B, 10m away; Inn, stay from 23:15 to 08:30, nearest transit: A, 1m"
    )},
    {**DAY, "days": 2, "point_of_interest_list": "Zoo, visit from 09:00 to 10:15"},
    {**DAY, "days": 3, "dinner": "-", "point_of_interest_list": "9:00 AM - 10:15 AM: Museum"},
    {},
]  # fmt: skip


def m16(plan: Any, **options: Any) -> Any:
    return ratio(dialogue(*presented(plan), options=GroupTravel(**options)), "M16")


def test_m16_of_a_published_three_day_sample() -> None:
    assert m16(SAMPLE) == (13 / 15, 13, 15)
    assert m16({"days": SAMPLE}) == (13 / 15, 13, 15)
    # without a wrap past midnight the first day's stops are out of order
    assert m16(SAMPLE, strict_overnight=True) == (12 / 15, 12, 15)


def test_m16_twenty_one_of_twenty_three() -> None:
    timed = {**DAY, "pois": [{"name": "Zoo", "start": "9:00", "end": "10:00"}]}
    plan = [timed, {**timed, "lunch": "nan", "dinner": "tbd"}, timed, DAY, DAY]
    # lunch and dinner are not filled, and then they do not differ: three of 23 fail
    assert m16(plan) == (20 / 23, 20, 23)
    plan[1] = {**timed, "lunch": "Cafe Southall (again)", "breakfast": "None"}
    assert m16(plan) == (22 / 23, 22, 23)
    plan[1] = {**timed, "lunch": "CAFE SOUTHALL, Rockford; Cost: 14", "breakfast": ["-"]}
    assert m16(plan) == (21 / 23, 21, 23)


@pytest.mark.parametrize(
    ("stops", "timely"),
    [
        ("A, visit from 09:00 to 10:00; B, visit from 09:30 to 11:00", True),
        ("A, visit from 09:00 to 10:00; B, visit from 09:00 to 11:00", False),
        ("A, visit from 09:00 to 09:00", False),
        ("A from 11 PM till 1 AM; B 9:00–10:00", True),
        ("A, check-in from 11:30 p.m. until 12:30 a.m.", True),
        ("A 13:00 pm - 14:00 pm", None),
        ("A 0:30 am - 1:00 am", None),
        ("A 10:75 - 11:00; B", None),
        ("A 23:00 - 25:00", None),
        ("A 22:00 - 24:00", True),
        (["A (9:00-10:00)", "B 8:00-9:00"], False),
        ([{"name": "A", "start": None, "start_time": "9:00", "end_time": "10:00"}], True),
        ([{"poi": "A", "time": "9:00 - 10:00"}, {"place": "B", "start_time": "8:00"}], True),
        ("-", None),
    ],
)
def test_stops_of_a_day(stops: Any, timely: bool | None) -> None:
    passed = 4 + (timely is True)
    assert m16([{**DAY, "poi_list": stops}])[1:] == (passed, 4 + (timely is not None))


def places_of(plan: Any, **cells: Any) -> dict[str, bool]:
    rows = score(presented(plan, **cells))["places"]
    return dict(rows.select("key", "grounded").rows())


def test_m9_fifteen_of_fifteen() -> None:
    names = [f"Sight {number}" for number in range(11)]
    plan = [{**DAY, "attraction": ";".join(f"{name}, Rockford" for name in names) + ";"}]
    records = [{"name": name} for name in names]
    row = dialogue(*presented(plan, ref_info_attractions=records, **CATALOGUE))
    assert ratio(row, "M9") == (1.0, 15, 15)


def test_how_a_place_is_looked_up() -> None:
    plan = {"itinerary": [{
        "Breakfast": "Dial A Cake (Rockford)",
        "meals": {"LUNCH": {"name": "Flying Mango, the, Rockford"}, "supper": "x"},
        "dinner": ["Cafe Southall; Cost: 14", "Rating: 5", "n/a"],
        "attractions": "Pure luxury one bdrm + sofa bed on Central Park.,",
        "hotels": "unknown key",
        "POI list": "cafe SOUTHALL, visit from 9:00 to 10:00, nearest transit: C, 3m away",
    }]}  # fmt: skip
    assert places_of(plan, **CATALOGUE) == {
        "dial a cake": True,
        "flying mango the": False,
        "cafe southall": True,
        "pure luxury one bdrm sofa bed on central park": True,
    }


def test_no_place_is_found_without_a_plan_or_catalogue() -> None:
    for cells in ({}, {"ref_info_restaurants": "[]"}, {"ref_info_restaurants": [{"city": "x"}]}):
        assert dialogue(*presented([DAY], **cells))["M9"] is None
    row = dialogue(*presented("No plan was found.", **CATALOGUE))
    assert row["warnings"] == ["line 3, plan: neither JSON nor a literal; read as raw output"]
    missing = ("M9", "M10", "M10b", "M11", "M12", "M13", "M15", "M16", "W1", "W2", "W3")
    reasons = {entry["metric"]: entry["reason"] for entry in row["null_reasons"]}
    assert {reasons[metric] for metric in missing} == {"missing_input"}


def test_the_last_plan_counts_and_empty_cells_do_not() -> None:
    turns = [
        opening("C4"),
        turn("System", "sys_present_plan", plan=[{"lunch": "A"}]),
        turn("System", "sys_present_plan", plan=str([DAY])),
        turn("System", "x", plan=" [] "),
        turn("System", "x", plan='"-"'),
    ]
    assert ratio(dialogue(*turns), "M16") == (1.0, 4, 4)


def test_windows_that_cancel_out_are_like_nothing() -> None:
    sums = np.array([[3.0, 4.0], [-3.0, -4.0], [0.0, 2.0]], np.float32)
    row_of, vectors = _join_windows(sums, np.array([1, 1, 0]), np.array([0, 1, 2]))
    assert vectors[row_of[[0, 1]]].tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_windows_that_nearly_cancel_out_have_length_1_as_all() -> None:
    _, vectors = _join_windows(
        np.array([[1.0, 0.0], [-0.7, 0.4]], np.float32), np.array([0, 0]), np.array([0, 1])
    )
    assert vectors[0].tolist() == pytest.approx([0.6, 0.8], abs=1e-6)


def test_a_name_of_one_word_is_looked_for_from_three_letters_on() -> None:
    plan = {"days": [{"lunch": "Zoo, Rome", "dinner": "Ox, Rome", "breakfast": "Ox Bar, Rome"}]}
    turns = [
        opening("C3"),
        wish("a", "cuisine", "the zoo and the ox or the ox bar"),
        turn("System", "x", plan=plan,
             ref_info_restaurants=[{"name": name} for name in ("Zoo", "Ox", "Ox Bar")]),
    ]  # fmt: skip
    places = score(turns)["places"]
    explicit = dict(places.select("place", "explicit").rows())
    assert {name.partition(",")[0]: found for name, found in explicit.items()} == {
        "Zoo": True,
        "Ox": False,
        "Ox Bar": True,
    }


def test_a_preference_that_stands_for_nothing_is_compared_with_nothing() -> None:
    turns = [
        opening("C3"),
        wish("a", "cuisine", "pizza"),
        wish("b", "cuisine", " N/A "),
        wish("b", "event", "pizza"),
        wish("c", "cuisine", "Unknown"),
        turn("System", "sys_synthesize_cuisine", "n/a", metadata={
            "resolution_explanation": "pizza"}),
        turn("System", "x", plan=[{"lunch": "pizza"}], ref_info_restaurants=[{"name": "pizza"}]),
    ]  # fmt: skip
    tables = score(turns, semantic=True)
    row = tables["dialogues"].row(0, named=True)
    # a 1, b 0 for an event that the plan lacks: c has no mean, and counts nowhere
    assert ratio(row, "M12") == (0.5, pytest.approx(1.0), 2)
    assert row["M13"] == pytest.approx(0.5)
    assert [member["semantic_mean"] for member in row["members"]] == [pytest.approx(1.0), 0.0, None]
    assert ratio(row, "M14") == (pytest.approx(1.0), pytest.approx(1.0), 1)
    # but they are preferences, which nothing addresses or satisfies
    assert (row["M8_den"], row["M10_den"]) == (4, 4)
    of_b = tables["pairs"].filter(member="b", slot="cuisine").row(0, named=True)
    silent = ("synthesis_similarity", "place_similarity", "slot_similarity")
    assert [of_b[name] for name in silent] == [None, None, None]
    assert (of_b["semantic_channel"], of_b["addressed"]) == (False, False)
    # a text of the synthesis that says nothing is near nothing
    of_a = tables["pairs"].filter(member="a").row(0, named=True)
    assert of_a["synthesis_similarity"] == pytest.approx(1.0)


@pytest.mark.parametrize("semantic", [True, False])
def test_only_preferences_that_stand_for_nothing(semantic: bool) -> None:
    turns = [*presented([DAY], **CATALOGUE), wish("a", "cuisine", "none")]
    turns.append(turn("System", "sys_synthesize_cuisine", "", metadata={
        "resolution_explanation": "so be it"}))  # fmt: skip
    row = dialogue(*turns, semantic=semantic)
    reasons = {entry["metric"]: entry["reason"] for entry in row["null_reasons"]}
    assert [reasons[name] for name in ("M12", "M13", "M14")] == ["not_applicable"] * 3
    assert row["M10"] == 0.0


def test_one_letter_names_and_names_across_two_wishes_are_never_explicit() -> None:
    plan = [{"lunch": "Oz", "dinner": "Blue Door", "attraction": "Art Hall"}]
    records = [{"name": name} for name in ("Oz", "Blue Door", "Art Hall")]
    turns = [
        *presented(plan, ref_info_restaurants=records),
        wish("a", "cuisine", "Oz, the blue"),
        wish("a", "event", "door to art-halls"),
        wish("b", "event", "the ART hall!"),
    ]
    places = score(turns)["places"]
    assert dict(places.select("key", "explicit").rows()) == {
        "oz": False,
        "blue door": False,
        "art hall": True,
    }


def test_m12_averages_windows_by_tokens() -> None:
    vectors = {
        "pizza": [1.0, 0.0, 0.0],
        "far": [0.0, 0.0, 1.0],
        "Luigi, Rome": [1.0, 0.0, 0.0],
        "a long way to go": [0.0, 1.0, 0.0],
    }

    def vector(text: str) -> Any:
        return np.array(vectors.get(text, [0.0, 0.0, 1.0]), np.float32)

    plan = {"days": [{"lunch": "Luigi, Rome"}], "raw_output": "a long way to go"}
    turns = [
        opening("C2"),
        wish("a", "cuisine", "pizza"),
        wish("b", "cuisine", "far"),
        wish("a", "event", "pizza"),
        turn("System", "x", plan=plan),
    ]
    # the entries are two tokens, the raw output five: (2, 5, 0) / 7, scaled to length 1; of the
    # event nothing is entered, so the raw output alone is compared
    rows = pairs_of(*turns, semantic=vector)
    assert rows["a", "cuisine"]["slot_similarity"] == pytest.approx(2 / math.sqrt(29), rel=1e-6)
    assert rows["b", "cuisine"]["slot_similarity"] == 0.0
    assert rows["a", "event"]["slot_similarity"] == 0.0
    slot = GroupTravel(m12_target="slot")
    rows = pairs_of(*turns, semantic=vector, options=slot)
    assert rows["a", "cuisine"]["slot_similarity"] == pytest.approx(1.0)
    assert rows["a", "event"]["slot_similarity"] == 0.0


def test_only_m12_reads_in_windows() -> None:
    plan = {"days": [{"lunch": "Luigi"}], "raw_output": "one\ntwo"}
    turns = [opening("C2"), wish("a", "cuisine", "pizza"), turn("System", "x", plan=plan)]
    events = read(turns)
    assert SUITE.long_texts(events, DEFAULTS).to_list() == ["Luigi", "one\ntwo"]
    assert "Luigi\none\ntwo" not in SUITE.texts(events, DEFAULTS).to_list()
    cut = GroupTravel(m12_long="cut")
    events = read(turns, options=cut)
    assert SUITE.long_texts(events, cut).is_empty()
    assert "Luigi\none\ntwo" in SUITE.texts(events, cut).to_list()
