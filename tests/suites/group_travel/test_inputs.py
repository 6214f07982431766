"""Inputs of each metric: as declared, and null where they are missing."""

import json
from pathlib import Path

import pytest

from fastscore.suites.group_travel import SUITE
from fastscore.suites.group_travel.metrics import METRICS
from fastscore.suites.group_travel.metrics.sources import SOURCES
from fastscore.vectors.view import VectorView
from tests.conftest import often
from tests.suites.group_travel.travelling import DEFAULTS, dialogue, embed, opening, raw_rows, turn

DOCS = Path(__file__).parents[3] / "docs" / "suites" / "group_travel.md"
CALLED = {metric.id: metric for metric in METRICS}


def test_the_docs_have_what_sources_mean():
    docs = DOCS.read_text(encoding="utf-8")
    for name, meaning in SOURCES.items():
        assert f"| {name} | {meaning} |" in docs


def example(condition="C5"):
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


def other_example():
    """Make a dialogue in which single sources decide what several do in the other.

    Both want ramen, by the catalogue alone. The synthesis alone addresses them and quotes theory.
    The third member's castle is only in the plan's text.
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
WISH, PLAN = "user_provide_", "sys_present_plan"
TAKEN = {
    "preferences": [
        (WISH, {"utterance": "nothing in particular"}),
        (WISH, {"speaker": "a"}),
        (WISH, {"intent": "user_provide_cuisine"}),
    ],
    "turns": [
        (("user_feedback_", "sys_feedback_", "user_accept_plan"), {"intent": "", "utterance": ""})
    ],
    "metadata": [("sys_welcome", {"metadata": {"member_count": None}})],
    "synthesis": [("sys_synthesize_", {"utterance": "", "metadata": None})],
    "plan": [(PLAN, {"plan": {"days": []}})],
    "plan text": [(PLAN, {"utterance": "", "plan": {"raw_output": ""}})],
    "catalogue": [
        (
            PLAN,
            {f"ref_info_{kind}": None for kind in ("restaurants", "accommodations", "attractions")},
        )
    ],
}
"""What takes each source away: cells of turns whose intent begins so; objects change in part."""


def taken_away(turns, intents, cells):
    def changed(each):
        return each | {
            name: each[name] | cell if isinstance(cell, dict) else cell
            for name, cell in cells.items()
        }

    return [changed(each) if each["intent"].startswith(intents) else each for each in turns]


def alike(text):
    """Give every text the same vector."""
    return embed("the same")


def metrics_of(turns, vectors):
    row = dialogue(*turns, semantic=vectors)
    return {name: row[name] for name in CALLED}


def changed_by_source():
    """Return by source the metrics that change, in an example, when it is taken away."""
    changed = {source: set() for source in SOURCES}
    for make in EXAMPLES:
        whole = metrics_of(make(), embed)
        for source, takes in TAKEN.items():
            for intents, cells in takes:
                other = metrics_of(taken_away(make(), intents, cells), embed)
                changed[source] |= {name for name in CALLED if whole[name] != other[name]}
        without = metrics_of(make(), False)
        for vectors in (embed, alike):
            other = metrics_of(make(), vectors)
            changed["embedder"] |= {name for name in CALLED if without[name] != other[name]}
    return changed


def test_metrics_change_with_the_sources_that_they_declare_and_with_no_other():
    changed = changed_by_source().items()
    used = {name: {source for source, names in changed if name in names} for name in CALLED}
    assert used == {name: set(metric.uses) for name, metric in CALLED.items()}


@pytest.mark.parametrize("condition", ["C1", "C2", "C3", "C4", "C5"])
def test_outside_its_conditions_a_metric_says_nothing(condition):
    row = dialogue(*example(condition), semantic=True)
    for name, metric in CALLED.items():
        if metric.conditions and condition not in metric.conditions:
            assert row[name] in (None, 0.0), name
        else:
            assert row[name] is not None, name


# --- missing inputs


OF_PLANS = {"W1", "W2", "W3", "M10", "M11", "M12", "M13"}
OF_ALL_SLOTS = {"M2", "M8", "M8a", "M8b", "M15"}
OF_LODGING = OF_PLANS | OF_ALL_SLOTS
OF_ATTRACTION = OF_LODGING | {"M10b"}
# the example explains how this slot was resolved, and no other
OF_CUISINE = OF_ATTRACTION | {"M14"}
(_, A_CUISINE, _, A_LODGING, B_ATTRACTION, SYNTHESIS, FEEDBACK, SYS_FEEDBACK, PRESENTATION,
 ACCEPTANCE) = range(10)  # fmt: skip
UNSAID = {
    A_CUISINE: OF_CUISINE,
    A_LODGING: OF_LODGING,
    B_ATTRACTION: OF_ATTRACTION,
    # its metadata flags the conflict and has an explanation, so M2 and M3 are known
    SYNTHESIS: {"M4b", "M8", "M8a"},
    FEEDBACK: set(),
    SYS_FEEDBACK: {"M4b"},
    PRESENTATION: {"M4b", "M8", "M8b"},
    ACCEPTANCE: set(),
}
BY_NOBODY = {
    A_CUISINE: OF_CUISINE | {"M1", "M6"},
    A_LODGING: OF_LODGING | {"M1", "M6"},
    SYNTHESIS: set(),
    FEEDBACK: set(),
    PRESENTATION: set(),
    ACCEPTANCE: {"M6"},
}
CASES = [
    *(("utterance", place, null) for place, null in UNSAID.items()),
    *(("speaker", place, null) for place, null in BY_NOBODY.items()),
]


def scored(turns, layout="rows"):
    """Score a dialogue without vectors, in rows or as an array in which nulls do not stand."""
    rows = raw_rows(turns)
    if layout == "array":
        given = [{k: v for k, v in each.items() if v is not None} for each in turns]
        rows = raw_rows([{"turns": json.dumps(given)}], name="trip{}.jsonl")
    events = SUITE.read(rows, DEFAULTS)
    tables = SUITE.score(events, VectorView.empty(), DEFAULTS)
    return tables["dialogues"].row(0, named=True), events.rejects


def missing(row):
    found = {each["metric"] for each in row["null_reasons"] if each["reason"] == "missing_input"}
    assert all(row[name] is None for name in found)
    return found


def but_for(turns, place, **cells):
    return [each | cells if number == place else each for number, each in enumerate(turns)]


@pytest.mark.parametrize(
    ("layout", "cell", "place", "null"),
    [("rows", *case) for case in CASES] + [("array", *case) for case in CASES[:: often(4, 1)]],
)
def test_a_metric_is_null_where_a_turn_that_it_reads_was_not_given(layout, cell, place, null):
    row, _ = scored(but_for(example(), place, **{cell: None}), layout)
    empty, _ = scored(but_for(example(), place, **{cell: ""}), layout)
    assert missing(row) == null
    assert missing(empty) == set()
    for metric in METRICS:
        if metric.id not in null:
            assert row[metric.id] == empty[metric.id], metric.id
        elif metric.micro is not None:
            assert [row[column] for column in metric.micro] == [0, 0], metric.id


@pytest.mark.parametrize("layout", ["rows", "array"])
def test_who_states_or_accepts_something_is_asked_for_by_line(layout):
    for place, n_rejects in ((A_CUISINE, 1), (ACCEPTANCE, 1), (SYNTHESIS, 0), (PRESENTATION, 0)):
        _, rejects = scored(but_for(example(), place, speaker=None), layout)
        assert rejects["reason"].to_list() == ["missing_field"] * n_rejects


def test_a_synthesis_without_a_flag_or_an_explanation_rests_on_its_utterance():
    row, _ = scored(but_for(example(), SYNTHESIS, utterance=None, metadata=None))
    # and M14, of which nothing is explained, is not applicable
    assert missing(row) == {"M2", "M3", "M4b", "M8", "M8a"}
    # six words of another turn explain the slot, and name the conflict
    turns = but_for(example(), SYNTHESIS, utterance=None, metadata=None)
    said = "We find a compromise for you all"
    row, _ = scored([*turns, turn("System", "sys_synthesize_cuisine", said)])
    assert missing(row) == {"M4b", "M8", "M8a"}
    assert (row["M2"], row["M3"]) == (1.0, 1.0)


def test_channels_do_not_fire_for_a_share_that_is_unknown():
    whole, _ = scored(example())
    row, _ = scored(but_for(example(), A_CUISINE, utterance=None))
    assert (whole["n_room_channel"], row["n_room_channel"]) == (1, 0)


def test_a_single_user_is_one_voice_whoever_speaks():
    states = turn("", "user_provide_cuisine", "pizza") | {"speaker": None}
    row, _ = scored([opening("C1", member_count=3), states])
    assert (row["M1"], row["M1_num"], row["M1_den"]) == (1 / 3, 1, 3)
    # where only the voices could tell that it is single
    row, _ = scored([turn("System", "sys_welcome", metadata={"member_count": 3}), states])
    assert row["M1"] is None


def test_members_that_are_counted_by_who_speaks_need_speakers():
    turns = [opening("C2"), turn("Ann", "user_provide_cuisine", "pizza")]
    nobody = turn("", "user_respond_cuisine", "fine") | {"speaker": None}
    assert scored([*turns, nobody])[0]["M1"] is None
    assert scored([*turns, nobody | {"intent": "sys_request_vote_cuisine"}])[0]["M1"] == 1.0
    listed = [opening("C2", member_count=2), *turns[1:]]
    assert scored([*listed, nobody])[0]["M1"] == 0.5


def test_everybody_accepts_whoever_else_does():
    nobody = turn("", "user_accept_plan", "yes") | {"speaker": None}
    assert scored([*example(), nobody])[0]["M6"] is None
    row, _ = scored([*example(), turn("Everyone", "user_accept_plan", "yes"), nobody])
    assert row["M6"] == 1.0
