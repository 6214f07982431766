"""The plain group_travel scorer by hand-worked examples, and the generator's own account."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.group_travel_logs import write_logs
from benchmarks.group_travel_sources import read_sources
from tests.conftest import often
from tests.oracles.group_travel import main as plain
from tests.oracles.group_travel_logs import Dialogue, dialogue_of, parse_cell, read_dialogues
from tests.oracles.group_travel_metrics import gini, in_order, score_dialogue
from tests.oracles.group_travel_plans import candidate_keys, minutes, names_of, read_plan, visits
from tests.oracles.group_travel_scores import Options, Scores
from tests.oracles.group_travel_vectors import Vectors
from tests.oracles.group_travel_words import (
    THEORY,
    Informative,
    fold,
    norm,
    speaks_of_conflict,
    wanted_rooms,
)

NO_VECTORS = Vectors(None)
PLANTED = ("M1", "M2", "M3", "M4", "M4b", "M5", "M9", "M10b", "M16")


def turn(speaker: str, intent: str, utterance: str = "", **cells: Any) -> dict[str, Any]:
    return {"speaker": speaker, "intent": intent, "utterance": utterance, **cells}


def made(*turns: Mapping[str, Any], **metadata: Any) -> Dialogue:
    return dialogue_of(turns, metadata, Path("talk.csv"))


def score(*turns: Mapping[str, Any], **metadata: Any) -> Scores:
    return score_dialogue(made(*turns, **metadata), NO_VECTORS)


# --- words


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


# --- metrics


def test_dialogue_metrics_by_hand() -> None:
    members = ("Ann", "Bob", "Cy", "Di")
    said = {
        "cuisine": ("Italian", "Mexican", "Italian", "Italian"),  # divergent, flagged
        "event": ("opera", "baseball", "opera", "opera"),  # divergent, named in words
        "attraction": ("museums", "parks", "museums", "museums"),  # divergent, missed
        "lodging": ("a private room",) * 4,
    }
    turns = [
        turn(member, f"user_provide_{slot}", text)
        for slot, texts in said.items()
        for member, text in zip(members, texts, strict=True)
    ]
    turns += [
        turn(
            "System",
            "sys_synthesize_cuisine",
            "Noted.",
            metadata={"has_conflict": True}
            | {"resolution_strategy": "Family Friendly", "resolution_explanation": "n/a"},
        ),
        turn(
            "System",
            "sys_synthesize_event",
            "Your tastes differ, so parental authority decides.",
            metadata={"strategy_id": "parent_veto", "has_conflict": "no"},
        ),
        turn(
            "System",
            "sys_synthesize_attraction",
            "Fine.",
            metadata={"resolution_strategy": "Include Both", "resolution_explanation": "Both."},
        ),
        turn("System", "sys_synthesize_lodging", "Fine.", metadata={"resolution_strategy": "N/A"}),
        turn("Ann", "user_feedback_cuisine", "Good."),
        turn("System", "sys_feedback_cuisine", "Thanks."),
        turn("System", "sys_present_plan", "Here."),
        turn("Everyone", "user_accept_plan", "Yes."),
    ]
    flags = dict.fromkeys(("multi_user", "enable_synthesis", "use_social_theory"), True)
    found = score(*turns, member_count=5, enable_feedback=True, **flags).metrics
    numbers = {name: (found[name].num, found[name].den) for name in found}
    assert numbers["M1"] == (4, 5)
    assert numbers["M2"] == (2, 3)
    assert numbers["M3"] == (2, 4)
    assert numbers["M4"] == (3, 4)
    assert numbers["M4b"] == (1, 6)
    assert numbers["M5"] == (1, 1)
    assert numbers["M6"] == (4, 4)
    assert found["M7_total_turns"].value == 24
    assert found["M7_turns_per_slot"].value == 6
    assert found["M7_feedback_turn_overhead"].value == 2
    assert found["M9"].value is None
    assert found["W1"].value is None


def test_gates_of_the_conditions() -> None:
    turns = [
        turn("Ann", "user_provide_cuisine", "Thai"),
        turn("Bob", "user_provide_cuisine", "Tea"),
    ]
    by_condition = {c: score(*turns, condition=c).metrics for c in ("C1", "C2", "C3", "C4", "C5")}
    for metric in ("M2", "M3", "M14", "M8a"):
        assert by_condition["C1"][metric].value is None
        assert by_condition["C2"][metric].value is None
    assert [by_condition[c]["M4"].value for c in by_condition] == [0, 0, 0, None, None]
    assert [by_condition[c]["M5"].value for c in by_condition] == [0, 0, 0, 0, None]
    assert by_condition["C1"]["M1"].value == 0.5
    assert by_condition["C3"]["M8a"].value == 0
    assert by_condition["C2"]["M8"].value is None


def test_plan_metrics_by_hand() -> None:
    restaurants = [
        {"Name": "Roma", "Cuisines": "Italian, Tea"},
        {"Name": "Wok", "Cuisines": "Chinese"},
    ]
    rooms = [{"NAME": "Loft (west)", "room type": "Private room"}]
    days = [
        {
            "breakfast": "-",
            "lunch": "Roma, X",
            "dinner": "Wok, X",
            "accommodation": "Loft (west), X",
        },
        {"breakfast": "Roma, X", "lunch": "Nowhere, X", "dinner": "Nowhere, X; Cost: 3"},
    ]
    found = score(
        turn("Ann", "user_provide_cuisine", "Italian dinners"),
        turn("Ann", "user_provide_room_type", "not a shared room"),
        turn("Bob", "user_provide_cuisine", "Thai curry"),
        turn("Bob", "user_provide_lodging", "an entire house"),
        turn("Bob", "user_provide_traveler_type", "a loft in the west"),
        turn(
            "System",
            "sys_present_plan",
            "",
            plan={"days": days},
            ref_info_restaurants=restaurants,
            ref_info_accommodations=rooms,
        ),
        condition="C2",
    )
    metrics = found.metrics
    numbers = {name: (metrics[name].num, metrics[name].den) for name in metrics}
    assert numbers["M9"] == (3, 4)
    assert numbers["M10"] == (2, 4)
    assert numbers["M10b"] == (1, 2)  # Thai is a word of the vocabulary, though of no record
    assert numbers["M11"] == (1, 2)
    assert found.members == {"ann": 1.0, "bob": 0.0}
    assert [metrics[w].value for w in ("W1", "W2", "W3")] == [0.5, 0.0, 0.0]
    assert numbers["M16"] == (2 + 1 + 3 + 0, 8)
    assert metrics["M8"].value is None
    assert [place.explicit for place in found.places] == [False, False, False, None]


def test_gini_by_hand() -> None:
    assert gini([0.38, 0.41, 0.39, 0.40]) == pytest.approx(0.2 / 12.64)
    assert gini([1, 0, 0, 0]) == 0.75
    assert gini([0.3]) == 0
    assert gini([]) is None
    assert gini([0.0, 0.0]) == 0


def test_semantic_metrics_by_hand() -> None:
    axes = {"sea": [1, 0], "hill": [0, 1], "both": [0.6, 0.8]}
    texts = {
        "Thai": "sea",
        "Tea": "hill",
        "why": "both",
        "Wok, X\n": "both",
        "Wok. Chinese": "hill",
    }
    known = {text: np.array(axes[axis], np.float32) for text, axis in texts.items()}
    dialogue = made(
        turn("Ann", "user_provide_cuisine", "Thai"),
        turn("Bob", "user_provide_cuisine", "Tea"),
        turn("System", "sys_synthesize_cuisine", "", metadata={"resolution_explanation": "why"}),
        turn(
            "System",
            "sys_present_plan",
            "",
            plan=[{"dinner": "Wok, X"}],
            ref_info_restaurants=[{"Name": "Wok", "Cuisines": "Chinese"}],
        ),
        condition="C3",
    )
    found = score_dialogue(dialogue, Vectors(None, known)).metrics
    assert found["M8a"].value == 1  # 0.6 and 0.8 are over 0.45
    assert found["M10"].value == 0.5  # only Tea is near
    assert found["M12"].value == pytest.approx(0.7)
    assert found["M13"].value == pytest.approx(2 * 0.2 / (2 * 4 * 0.7))
    assert found["M14"].value == pytest.approx(0.7)
    assert found["M15"].value == 1
    slot_only = Options(m12_target="slot", serendipity_threshold=1.1)
    known["Wok, X"] = known["Thai"]
    again = score_dialogue(dialogue, Vectors(None, known), slot_only).metrics
    assert again["M12"].value == 0.5
    assert again["M15"].value == 0
    assert math.isclose(again["M13"].value or 0, 0.5)


def test_real_plans() -> None:
    totals = {"M9": [0.0, 0.0], "M16": [0.0, 0.0]}
    for trip in read_sources().trips:
        cells = {f"ref_info_{kind}": records for kind, records in trip.records.items()}
        found = score(turn("System", "sys_present_plan", "", plan=trip.plan, **cells)).metrics
        for metric, (num, den) in totals.items():
            totals[metric] = [num + (found[metric].num or 0), den + (found[metric].den or 0)]
    assert totals == {"M9": [943, 946], "M16": [712, 900]}


# --- the generator


def expectations(folder: Path) -> dict[str, dict[str, Any]]:
    with (folder / "expected.jsonl").open() as lines:
        return {row["dialogue"]: row for row in map(json.loads, lines)}


@pytest.mark.parametrize(("layout", "dialogues"), [("csv", 60), ("jsonl", often(200, 2000))])
def test_the_plain_scorer_finds_what_was_planted(
    tmp_path: Path, layout: Any, dialogues: int
) -> None:
    write_logs(tmp_path, dialogues=dialogues, layout=layout, defects=0.3, seed=1)
    expected = expectations(tmp_path)
    seen = 0
    for dialogue in read_dialogues([tmp_path / "logs"]):
        found, planted = score_dialogue(dialogue, NO_VECTORS), expected[dialogue.id]
        assert found.condition == planted["condition"]
        for metric in PLANTED:
            score = found.metrics[metric]
            value = [score.num, score.den] if score.den else score.value
            assert value == planted[metric], (dialogue.id, metric)
        seen += 1
    assert seen == dialogues


def test_every_defect_is_planted(tmp_path: Path) -> None:
    write_logs(tmp_path, dialogues=300, layout="parquet", seed=2)
    rows = list(expectations(tmp_path).values())
    for metric in PLANTED:
        values = [row[metric] for row in rows if isinstance(row[metric], list)]
        assert any(num < den for num, den in values), metric
        assert any(num for num, den in values), metric
    assert {row["condition"] for row in rows} == {"C1", "C2", "C3", "C4", "C5"}


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_logs(tmp_path / name, dialogues=15, layout="csv", seed=3)
    names = sorted(path.name for path in (tmp_path / "one" / "logs").iterdir())
    assert len(names) == 15
    for name in names:
        contents = {(tmp_path / side / "logs" / name).read_bytes() for side in ("one", "two")}
        assert len(contents) == 1
    with pytest.raises(click.ClickException, match="not empty"):
        write_logs(tmp_path / "one", dialogues=1)


def test_the_plain_scorer_as_a_program(tmp_path: Path) -> None:
    write_logs(tmp_path, dialogues=7, seed=4)
    output = tmp_path / "scores.jsonl"
    arguments = [str(tmp_path / "logs"), "-o", str(output), "--first", "5"]
    assert CliRunner().invoke(plain, arguments).exit_code == 0
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["condition"] for row in rows] == ["C1", "C2", "C3", "C4", "C5"]
    assert all(row["metrics"]["M12"]["value"] is None for row in rows)
