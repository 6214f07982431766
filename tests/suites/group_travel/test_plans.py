"""Plans, stops, catalogues and M9, M12, M13 and M16: by hand."""

from typing import Any

import pytest

from fastscore.suites.group_travel import SUITE, GroupTravel
from tests.suites.group_travel.travelling import (
    CATALOGUE,
    DAY,
    DEFAULTS,
    dialogue,
    opening,
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
