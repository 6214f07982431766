"""Which metric uses what, by declaration: in the docs, and in what the scores do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastscore.suites.group_travel.metrics import METRICS, SOURCES
from fastscore.suites.group_travel.uses import uses_table
from tests.suites.group_travel.travelling import dialogue, opening, turn

DOCS = Path(__file__).parents[3] / "docs" / "suites" / "group_travel.md"
Turns = list[dict[str, Any]]
CALLED = {metric.id: metric for metric in METRICS}


def test_the_docs_have_the_table_and_what_its_columns_mean() -> None:
    docs = DOCS.read_text(encoding="utf-8")
    assert uses_table() in docs, "write it anew: python -m fastscore.suites.group_travel.uses"
    for name, meaning in SOURCES.items():
        assert f"- *{name}*: {meaning}" in docs


def example(condition: str = "C5") -> Turns:
    """Make a dialogue that has everything, from which every source can be taken."""
    conflict = {
        "has_conflict": True,
        "resolution_strategy": "include_both",
        "resolution_explanation": "A pizzeria serves ramen too",
    }
    plan = {
        "days": [
            {
                "breakfast": "Mori Cafe",
                "lunch": "Luigi",
                "dinner": "Mori Cafe",
                "accommodation": "Old Inn",
                "attraction": "Castle",
                "pois": "Castle, visit from 9:00 to 10:00",
            }
        ],
        "raw_output": "Day 1: hand made ramen with private hot spring",
    }
    return [
        opening(condition, member_count=2),
        turn("a", "user_provide_cuisine", "pizza from a wood oven"),
        turn("b", "user_provide_cuisine", "ramen hand made"),
        turn("a", "user_provide_lodging", "a private room"),
        turn("b", "user_provide_attraction", "an old castle"),
        turn("System", "sys_synthesize_cuisine", "pizza oven against ramen hand made, a conflict",
             metadata=conflict),
        turn("a", "user_feedback_cuisine", "fine"),
        turn("System", "sys_feedback_cuisine", "least misery then"),
        turn("System", "sys_present_plan", "Luigi has pizza from a wood oven, a social choice",
             plan=plan,
             ref_info_restaurants=[
                 {"name": "Luigi", "cuisines": "Pizza"}, {"name": "Mori Cafe", "cuisines": "Cafe"}
             ],
             ref_info_accommodations=[{"name": "Old Inn", "roomType": "private_room"}],
             ref_info_attractions=[{"name": "Castle", "subcategories": "Sights & Landmarks"}]),
        turn("a", "user_accept_plan", "yes"),
    ]  # fmt: skip


def changed_turns(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Turns:
    return [change(dict(each)) for each in example()]


def without_preferences(each: dict[str, Any]) -> dict[str, Any]:
    provides = each["intent"].startswith("user_provide_")
    return each | ({"utterance": "nothing in particular"} if provides else {})


def without_feedback(each: dict[str, Any]) -> dict[str, Any]:
    leaves = "_feedback_" in each["intent"] or each["intent"] == "user_accept_plan"
    return each | ({"intent": "", "utterance": ""} if leaves else {})


def without_synthesis(each: dict[str, Any]) -> dict[str, Any]:
    synthesises = each["intent"].startswith("sys_synthesize_")
    return each | ({"utterance": "", "metadata": None} if synthesises else {})


def without_days(each: dict[str, Any]) -> dict[str, Any]:
    return each | ({"plan": {**each["plan"], "days": []}} if "plan" in each else {})


def without_plan_text(each: dict[str, Any]) -> dict[str, Any]:
    blank = {"utterance": "", "plan": {**each["plan"], "raw_output": ""}} if "plan" in each else {}
    return each | blank


def without_catalogue(each: dict[str, Any]) -> dict[str, Any]:
    return {name: cell for name, cell in each.items() if not name.startswith("ref_info_")}


TAKEN = {
    "preferences": without_preferences,
    "turns": without_feedback,
    "synthesis": without_synthesis,
    "plan": without_days,
    "plan text": without_plan_text,
    "catalogue": without_catalogue,
}


def differing(turns: Turns, *, semantic: bool = True) -> set[str]:
    """Return the metrics that differ from those of the whole example."""
    whole, other = dialogue(*example(), semantic=True), dialogue(*turns, semantic=semantic)
    return {name for name in CALLED if whole[name] != other[name]}


@pytest.mark.parametrize("source", TAKEN)
def test_only_metrics_that_use_a_source_change_without_it(source: str) -> None:
    found = differing(changed_turns(TAKEN[source]))
    assert found
    assert found <= {name for name, metric in CALLED.items() if source in metric.uses}


def test_only_metrics_that_use_vectors_change_without_them() -> None:
    found = differing(example(), semantic=False)
    assert {"M12", "M13", "M14", "M15"} <= found
    assert found <= {name for name, metric in CALLED.items() if "embedder" in metric.uses}


def test_every_metric_but_those_of_presence_depends_on_what_it_declares() -> None:
    changed = {source: differing(changed_turns(take)) for source, take in TAKEN.items()}
    used = {name: {source for source in TAKEN if name in changed[source]} for name in CALLED}
    # what is counted by speakers and turns does not change with what they say
    by_presence = {"M1", "M7_turns_per_slot"}
    assert {name for name, sources in used.items() if not sources} <= by_presence


@pytest.mark.parametrize("condition", ["C1", "C2", "C3", "C4", "C5"])
def test_outside_its_conditions_a_metric_says_nothing(condition: str) -> None:
    row = dialogue(*example(condition), semantic=True)
    for name, metric in CALLED.items():
        if metric.conditions and condition not in metric.conditions:
            assert row[name] in (None, 0.0), name
        else:
            assert row[name] is not None, name
