"""The metrics of the plain group_travel scorer by hand-worked examples."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.group_travel_itineraries import read_sources
from tests.oracles.group_travel_logs import Dialogue, dialogue_of
from tests.oracles.group_travel_metrics import gini, score_dialogue
from tests.oracles.group_travel_scores import Options, Scores
from tests.oracles.group_travel_vectors import Vectors

NO_VECTORS = Vectors(None)


def turn(speaker: str, intent: str, utterance: str = "", **cells: Any) -> dict[str, Any]:
    return {"speaker": speaker, "intent": intent, "utterance": utterance, **cells}


def made(*turns: Mapping[str, Any], **metadata: Any) -> Dialogue:
    return dialogue_of(turns, metadata, Path("talk.csv"))


def score(*turns: Mapping[str, Any], **metadata: Any) -> Scores:
    return score_dialogue(made(*turns, **metadata), NO_VECTORS)


def turns_of_the_system_and_to_it() -> list[dict[str, Any]]:
    return [
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
    turns += turns_of_the_system_and_to_it()
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
