"""How the plain group_travel scorer reads words, cells, names and times, worked by hand."""

import pytest

from tests.oracles.group_travel_logs import parse_cell
from tests.oracles.group_travel_metrics import in_order
from tests.oracles.group_travel_plans import candidate_keys, minutes, names_of, read_plan, visits
from tests.oracles.group_travel_words import (
    THEORY,
    Informative,
    fold,
    norm,
    speaks_of_conflict,
    wanted_rooms,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Alexander’s Tavern", "alexanders tavern"),
        ("Café d'Orsay & Bar, Paris", "cafe dorsay and bar paris"),
        ("  ÉTÉ--2024!! ", "ete 2024"),
        ("Straße", "strasse"),
        ("-", ""),
        ("हिन्दी", "हनद"),
    ],
)
def test_texts_are_normalised(text: str, words: str) -> None:
    assert norm(text) == words


def test_plurals_are_folded() -> None:
    words = ["bakeries", "ties", "museums", "gas", "bus", "glass", "tennis", "movies", "classes"]
    folded = ["bakery", "tie", "museum", "gas", "bus", "glass", "tennis", "movy", "classe"]
    assert [fold(word) for word in words] == folded


@pytest.mark.parametrize(
    ("slot", "text", "top"),
    [
        ("cuisine", "I prefer diners with classic American food", "american classic diner"),
        (
            "lodging",
            "I'd like a private room, somewhere quiet and close to downtown",
            "downtown private quiet close",
        ),
        (
            "attraction",
            "Museums and historical sites for the kids, museums with hands-on exhibits",
            "museum historical exhibit site hand kid",
        ),
    ],
)
def test_informative_words_by_rank(slot: str, text: str, top: str) -> None:
    assert Informative(text, slot).top == top.split()


def test_what_addresses_a_preference() -> None:
    one = Informative("Sushi, please", "cuisine")
    assert one.addressed(["fresh", "sushi"])
    assert not one.addressed(["sushiya"])
    two = Informative("spicy noodle soup", "cuisine")  # a phrase of three, so two hits count
    assert two.addressed(["soup", "that", "is", "spicy"])
    assert not two.addressed(["soup"])
    assert not Informative("I would like some food", "cuisine").addressed(["food"])
    # more than six words: the seventh is in no hit but in the phrase
    many = Informative("alpha bravo charlie deltas echoes foxtrot golf", "event")
    assert many.phrases == [["alpha", "bravo", "charlie", "delta", "echoe", "foxtrot", "golf"]]
    assert "golf" not in many.top


@pytest.mark.parametrize(
    ("text", "rooms"),
    [
        ("private room rather than a shared room", "private"),
        ("not a shared room", "entire private"),
        ("We don't want to share a room; an entire home is best", "entire"),
        ("Anything but a hostel", "entire private"),
        ("Private rooms or entire apartments", "entire private"),
        ("No hostel, but a shared room is fine", "entire private"),  # refused once is refused
        ("a quiet street", ""),
        ("never ever want any dorms", "shared"),  # the negator is four words before
        ("share room", ""),
        ("a whole villa, or a place to ourselves", "entire"),
    ],
)
def test_wanted_rooms(text: str, rooms: str) -> None:
    assert wanted_rooms(text) == set(rooms.split())


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("There is no conflict here.", False),
        ("Conflict: no conflict", False),
        ("Conflict: tastes differ", True),
        ("We found a middle ground", True),
        ("No. A compromise it is", True),
        ("without any real compromise", False),
        ("the trade-off is clear", True),
        ("indifferent", False),
    ],
)
def test_conflicts_that_are_named(text: str, named: bool) -> None:
    assert speaks_of_conflict(text) is named


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        ("We can include both cuisines", False),
        ("The include-both rule", True),
        ("log-rolling across days", True),
        ("Strategy: least_misery.", True),
        ("my parents decide", True),
        ("my parents agree", False),
        ("elder stamina", True),
        ("senior accessibility", False),
        ("sub-grouping", True),
        ("majority votes", True),
        ("the hard constraint", True),
        ("Nashville", False),
    ],
)
def test_theory_that_leaks(text: str, leaks: bool) -> None:
    assert bool(THEORY.search(text)) is leaks


# --- cells, plans and times


def test_cells_are_json_or_python_literals_or_text() -> None:
    cells = ["", " NaN ", "{}", '{"a": true}', "{'a': True}", "no plan", "-"]
    values = [None, None, None, {"a": True}, {"a": True}, "no plan", None]
    assert [parse_cell(cell) for cell in cells] == values


def test_names_in_a_plan() -> None:
    assert names_of("Catfish Charlie's, Myrtle Beach; Cost: 14") == [
        "Catfish Charlie's, Myrtle Beach"
    ]
    assert names_of("Fort Park, San Angelo;Zoo;-;") == ["Fort Park, San Angelo", "Zoo"]
    assert names_of([{"name": "A"}, "B;C", "none"]) == ["A", "B", "C"]
    assert candidate_keys("Inn, the Old (West), Salem") == [
        "inn the old west salem",
        "inn the old west",
    ]
    assert candidate_keys("Museum (closed)") == ["museum closed", "museum"]


def test_a_day_has_an_integer_called_days() -> None:
    plan = read_plan({"raw_output": "x", "days": [{"days": 1, "Dinner": "A"}, {}]})
    assert [day["dinner"] for day in plan.days] == ["A"]
    assert read_plan("lost").raw_output == "lost"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("00:00", 0),
        ("24:00", 1440),
        ("25:00", None),
        ("9:60", None),
        ("12:05 AM", 5),
        ("12:05 p.m.", 725),
        ("0:30 am", None),
        ("13:00 pm", None),
    ],
)
def test_times(text: str, found: int | None) -> None:
    assert minutes(text) == found


def test_visits_are_read_in_every_form() -> None:
    text = "City Museum, visit from 09:00 to 10:15, nearest transit: Elm St, 50m away;Old Inn"
    assert visits(text) == [("City Museum", (540, 615)), ("Old Inn", None)]
    assert visits("9:00 AM - 10:15 AM: City Museum") == [("City Museum", (540, 615))]
    assert visits([{"place": "Zoo", "time": "10:00-11:00"}]) == [("Zoo", (600, 660))]
    assert visits([{"poi": "Zoo", "start_time": "10:00", "end_time": "26:00"}]) == [("Zoo", None)]
    assert visits("Bar, stay from 25:00 to 26:00") == [("Bar", None)]


def test_the_order_of_visits() -> None:
    night = [(540, 600), (1395, 510)]
    assert in_order(night, strict_overnight=False)
    assert not in_order(night, strict_overnight=True)
    assert not in_order([(540, 540)], strict_overnight=False)
    assert not in_order([(1395, 510), (540, 600)], strict_overnight=False)
    assert in_order([(540, 700), (600, 650)], strict_overnight=False)  # overlap is allowed
