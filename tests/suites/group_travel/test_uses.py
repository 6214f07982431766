"""Inputs of each metric, as declared: in the docs, and in the scores."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastscore.suites.group_travel.metrics import METRICS
from fastscore.suites.group_travel.metrics.sources import SOURCES
from tests.suites.group_travel.travelling import dialogue, embed, opening, turn

DOCS = Path(__file__).parents[3] / "docs" / "suites" / "group_travel.md"
Turns = list[dict[str, Any]]
CALLED = {metric.id: metric for metric in METRICS}


def test_the_docs_have_what_sources_mean() -> None:
    docs = DOCS.read_text(encoding="utf-8")
    for name, meaning in SOURCES.items():
        assert f"| {name} | {meaning} |" in docs


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
        opening(condition, member_count=3),
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


def other_example() -> Turns:
    """Make a dialogue in which single sources decide what several do in the other.

    Both want ramen, by the catalogue alone; the synthesis alone addresses them and quotes theory;
    the third member's castle stands in the plan's text alone.
    """
    conflict = {"has_conflict": True, "resolution_explanation": "One house has both"}
    return [
        opening("C5", member_count=4),
        turn("a", "user_provide_cuisine", "ramen in thick broth"),
        turn("b", "user_provide_cuisine", "ramen, hand pulled noodles"),
        turn("c", "user_provide_attraction", "an old castle garden"),
        turn("System", "sys_synthesize_cuisine",
             "By least misery: ramen, thick broth, hand pulled noodles", metadata=conflict),
        turn("System", "sys_synthesize_attraction", "Up there, then"),
        turn("System", "sys_present_plan", "Here it is",
             plan={
                 "days": [{"lunch": "Mori Cafe", "attraction": "Hill"}],
                 "raw_output": "an old castle garden on the hill",
             },
             ref_info_restaurants=[{"name": "Mori Cafe", "cuisines": "Ramen"}],
             ref_info_attractions=[{"name": "Hill", "subcategories": "Sights & Landmarks"}]),
    ]  # fmt: skip


EXAMPLES = (example, other_example)
Change = Callable[[dict[str, Any]], dict[str, Any]]


def changed_turns(turns: Turns, change: Change) -> Turns:
    return [change(dict(each)) for each in turns]


def provides(each: dict[str, Any]) -> bool:
    return str(each["intent"]).startswith("user_provide_")


def without_preferences(each: dict[str, Any]) -> dict[str, Any]:
    return each | ({"utterance": "nothing in particular"} if provides(each) else {})


def by_one_member(each: dict[str, Any]) -> dict[str, Any]:
    return each | ({"speaker": "a"} if provides(each) else {})


def for_one_slot(each: dict[str, Any]) -> dict[str, Any]:
    return each | ({"intent": "user_provide_cuisine"} if provides(each) else {})


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


def without_members(each: dict[str, Any]) -> dict[str, Any]:
    metadata = {k: v for k, v in each.get("metadata", {}).items() if k != "member_count"}
    return each | ({"metadata": metadata} if each["intent"] == "sys_welcome" else {})


TAKEN: dict[str, tuple[Change, ...]] = {
    "preferences": (without_preferences, by_one_member, for_one_slot),
    "turns": (without_feedback,),
    "metadata": (without_members,),
    "synthesis": (without_synthesis,),
    "plan": (without_days,),
    "plan text": (without_plan_text,),
    "catalogue": (without_catalogue,),
}


def alike(text: str) -> Any:
    """Give every text the same vector."""
    return embed("the same")


def metrics_of(turns: Turns, vectors: Any) -> dict[str, Any]:
    row = dialogue(*turns, semantic=vectors)
    return {name: row[name] for name in CALLED}


def changed_by_source() -> dict[str, set[str]]:
    """Return by source the metrics that change, in an example, when it is taken away."""
    changed: dict[str, set[str]] = {source: set() for source in SOURCES}
    for make in EXAMPLES:
        whole = metrics_of(make(), embed)
        for source, takes in TAKEN.items():
            for take in takes:
                other = metrics_of(changed_turns(make(), take), embed)
                changed[source] |= {name for name in CALLED if whole[name] != other[name]}
        without = metrics_of(make(), False)
        for vectors in (embed, alike):
            other = metrics_of(make(), vectors)
            changed["embedder"] |= {name for name in CALLED if without[name] != other[name]}
    return changed


def test_metrics_change_with_the_sources_that_they_declare_and_with_no_other() -> None:
    changed = changed_by_source().items()
    used = {name: {source for source, names in changed if name in names} for name in CALLED}
    assert used == {name: set(metric.uses) for name, metric in CALLED.items()}


@pytest.mark.parametrize("condition", ["C1", "C2", "C3", "C4", "C5"])
def test_outside_its_conditions_a_metric_says_nothing(condition: str) -> None:
    row = dialogue(*example(condition), semantic=True)
    for name, metric in CALLED.items():
        if metric.conditions and condition not in metric.conditions:
            assert row[name] in (None, 0.0), name
        else:
            assert row[name] is not None, name
