"""Each formula and edge of the definitions, worked by hand, and sources of states and orders."""

import json

import polars as pl
import pytest

import fastscore
from fastscore.suites.guest_simulation import SUITE, GuestSimulation
from fastscore.suites.guest_simulation.metrics import CALLING, FORMULAS, UNCHANGING, _variance
from tests.suites.guest_simulation.guests import (
    ADA,
    BASIC,
    BEHAVIOUR,
    ORDER,
    call,
    calls,
    case,
    dialogue,
    guest,
    items,
    restaurant,
    score,
    state,
)

# --- PAS ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "value"),
    [
        (state(), 1.0),
        (state(mood="confused"), 1.0),
        (state(mood="frustrated"), 0.75),
        (state(explores="does_not_explore_menu", mood="frustrated"), 0.5),
        (state(complete="yes", mood="frustrated", ordering="all_at_once"), 0.25),
        (state("yes", "does_not_explore_menu", "frustrated", "all_at_once"), 0.0),
        # missing parts are those of the default state: no, does not explore, casual, all at once
        (state(None, None, "confused", None), 0.5),
    ],
)
def test_pas_is_the_share_of_matching_components(message, value):
    assert dialogue(message, case(ADA))["PAS"] == value


# --- BVS ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "transitions", "value"),
    [
        (2, 0, 0.0),  # a = 0
        (6, 3, 1.0),  # a = 3/15, 0.2 exactly
        (11, 6, 1.0),  # a = 6/30, 0.2 exactly
        (2, 3, 0.0),  # a = 1
        (2, 1, 1 - (1 / 3 - 0.2) / 0.8),  # 0.8333
        (2, 2, 1 - (2 / 3 - 0.2) / 0.8),  # 0.4167
        (11, 3, 0.5),  # a = 0.1, on the rising side
        (11, 18, 0.5),  # a = 0.6, on the falling side
        (16, 9, 1.0),  # a = 9/45, 0.2 exactly
    ],
)
def test_bvs_of_states_and_transitions(states, transitions, value):
    counts = pl.DataFrame({"n_states": [states], "n_transitions": [transitions]})
    found = counts.select(FORMULAS["BVS"]).to_series()
    assert found[0] == pytest.approx(value, abs=1e-15)
    if value in (0.0, 0.5, 1.0):
        assert found[0] == value


# --- DEI ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "cells", "value"),
    [
        (1, [ORDER, BASIC], 0.0),
        (2, [BASIC, BASIC], 0.2),
        (2, [BASIC, None, ORDER, BEHAVIOUR], 0.05),
        (2, [call("get_target_order"), call("get_persona_of_self"),
             call("get_past_messages_history"), ""], 0.15),
        (3, [ORDER, ORDER], 0.5),
        (3, [ORDER, BASIC, None, BEHAVIOUR], 0.125),
        (4, [BEHAVIOUR, call("message_attributes")], 0.5),
        (4, [BEHAVIOUR, ORDER], 0.25),
        (5, [ORDER + BEHAVIOUR], 1.0),
        (5, [ORDER, BEHAVIOUR, None, BASIC], 0.25),
        (5, [ORDER + BEHAVIOUR, ORDER + ORDER], 0.75),
    ],
)  # fmt: skip
def test_dei_of_every_level(level, cells, value):
    assert dialogue(*calls(*cells), level=level)["DEI"] == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize(
    ("level", "reason"), [(None, "missing_input"), (0, "bad_input"), (6, "bad_input")]
)
@pytest.mark.parametrize("profile", ["default", "published"])
def test_dei_of_no_level_or_another(level, reason, profile):
    rows = (state(current_items_in_order=items("Cola")), state(), case(ADA, "Cola"))
    found = dialogue(*rows, level=level, profile=profile)
    assert found["null_reasons"] == {"DEI": reason, "CRRS": reason}
    assert (found["PAS"], found["BVS"], found["ORA"]) == (1.0, 0.0, 1.0)


# --- CRRS -----------------------------------------------------------------------------------------


def test_crrs_weighs_its_parts():
    # PAS (1 + 3/4)/2 = 7/8; a = 1/3, BVS = 5/6; C = {cola}, T = {cola, soup}, ORA = 2/3;
    # both messages track the order at level 5: DEI = 2/4
    rows = [state(tool_calls=ORDER, current_items_in_order=items("Cola")),
            state(mood="frustrated", tool_calls=ORDER)]  # fmt: skip
    found = dialogue(*rows, case(ADA, "Cola", "Soup"), level=5)
    parts = [found[metric] for metric in ("PAS", "BVS", "ORA", "DEI")]
    assert parts == pytest.approx([7 / 8, 5 / 6, 2 / 3, 1 / 2], abs=1e-15)
    by_hand = 7 / 32 + 1 / 6 + 7 / 30 + 1 / 10
    assert found["CRRS"] == pytest.approx(by_hand, abs=1e-15)


def test_crrs_is_null_for_the_gravest_reason():
    found = dialogue(guest("exit"), case(None, "Cola"), level=7)
    assert found["null_reasons"] == {
        "PAS": "missing_input",
        "BVS": "not_applicable",
        "DEI": "bad_input",
        "CRRS": "bad_input",
    }


NO_STYLES = (("Cy", 2), ("Di", 4), ("Ed", 1))
"""Names of personas without attributes, and their levels."""


def test_trivial_guests_by_hand():
    any_style = {
        "full_name": "Bo",
        "message_generation_attributes": {"next_message_mood_tones": ["casual"]},
    }
    described = [({"full_name": name, "bio": "curious"}, level) for name, level in NO_STYLES]
    told = (
        # the other word tells of completion and ordering, the default of exploration and mood
        state("yes", "does_not_explore_menu", "frustrated", "one_by_one"),
        state("yes", "explores_menu", "casual", "all_at_once"),
    )
    rows = [
        {"conversation_id": persona["full_name"], "experiment_level": level} | row
        for persona, level in ((ADA, 5), (any_style, 3), *described)
        for row in (*told, case(persona))
    ]
    tables = {name: table.lazy() for name, table in score(*rows).items()}
    found = SUITE.trivial_agents(tables, GuestSimulation()).rows(named=True)
    unchanging = [row for row in found if row["agent"] == UNCHANGING]
    # of Ada's four parts completion and mood fit; Bo's persona says nothing of the other two
    assert [(row["PAS"], row["BVS"], row["DEI"]) for row in unchanging] == [
        (0.5, 0.0, None), (1.0, 0.0, None), *[(None, 0.0, None)] * 3]  # fmt: skip
    assert [row["DEI"] for row in found if row["agent"] == CALLING] == [1.0, 0.5, 0.2, 0.5, 0.0]
    # who says nothing calls nothing
    silent = tables | {"dialogues": tables["dialogues"].with_columns(n_guest_messages=pl.lit(0))}
    found = SUITE.trivial_agents(silent, GuestSimulation()).rows(named=True)
    assert [row["DEI"] for row in found if row["agent"] == CALLING] == [None] * 5


@pytest.mark.parametrize(
    ("transitions", "working"),
    [
        (3, "a = {n_transitions} / (3 ({n_states} - 1)) = 0.2000; a / 0.2"),
        (4, "a = {n_transitions} / (3 ({n_states} - 1)) = 0.2667; 1 - (a - 0.2) / 0.8"),
    ],
)
def test_the_working_of_bvs_is_on_its_side_of_the_maximum(transitions, working):
    assert _variance({"n_states": 6, "n_transitions": transitions}, None) == working


# --- ORA


def ora(current, target, **options):
    rows = (state(current_items_in_order=current), case(ADA, order={"order_items": target}))
    return dialogue(*rows, **options)["ORA"]


def test_apostrophes_break_published_cells():
    cell = repr(items("Nonna's Pasta"))
    assert ora(cell, items("Nonna's Pasta")) == 1.0
    # the cell is no JSON once every ' is ": the order is empty, and so is the text's target
    found = dialogue(state(current_items_in_order=cell), case(ADA, "Nonna's Pasta"),
                     profile="published")  # fmt: skip
    assert (found["ORA"], found["ORA_source"]) == (0.0, "text")
    broken = "[{'name': 'Cola', 'is_required': True}]"
    assert ora(broken, items("Cola"), profile="published") == 0.0
    assert ora(broken, items("Cola")) == 1.0
    assert ora("[{'name': 'Cola'}]", items("Cola"), profile="published") == 1.0


@pytest.mark.parametrize("name", ["Caf\\u00e9", "Caf\\xe9", "Caf\\\\u00e9", "Caf\\\\xE9"])
def test_escapes_in_names_are_undone_however_often_they_were_made(name):
    assert ora(f"[{{'name': '{name}', 'is_required': True}}]", items("Café")) == 1.0
    latin = name.replace("Caf", "C").replace("e9", "6f") + "la"  # 6f is o
    latin = latin.replace("E9", "6F")
    assert ora(f"[{{'name': '{latin}', 'is_required': True}}]", items("Cola")) == 1.0


@pytest.mark.parametrize(
    ("key", "profile", "value"),
    [
        # said: chicken, salad; the target's words: caesar, salad, bowl: 1/4
        ("items", "default", 0.25),
        ("items", "published", 0.25),
        ("order_items", "default", 0.25),
        # the published fallback does not read order_items
        ("order_items", "published", 0.0),
    ],
)
def test_ora_falls_back_to_food_words(key, profile, value):
    rows = (guest("A CHICKEN and"), restaurant("Pizza?"), guest("salads"),
            case(ADA, order={key: items("Caesar Salad bowl")}))  # fmt: skip
    found = dialogue(*rows, profile=profile)
    assert (found["ORA"], found["ORA_source"]) == (value, "text")


# --- sources of states, orders and test cases


def test_test_cases_are_known_by_the_file_name():
    name = "chat_with_guest_simulation_llm_messages_log_Ada-Okoro_test_case_number_7"
    found = dialogue(state() | {"conversation_id": name})
    assert found["test_case"] == "Ada-Okoro_test_case_number_7"
    assert dialogue(state())["test_case"] == "c"
    assert dialogue(state(test_case="t"))["test_case"] == "t"


def test_test_cases_come_from_columns_and_files_too(tmp_path):
    order = {"items": items("Cola")}
    rows = (state(current_items_in_order=items("Cola")),)
    inline = dialogue(rows[0] | {"guest_persona": ADA, "target_order": order})
    assert (inline["PAS"], inline["ORA"]) == (1.0, 1.0)
    path = tmp_path / "cases.json"
    case_ = {"test_case": "c", "guest_persona": ADA, "target_order": order}
    path.write_text(json.dumps({"test_cases": [case_]}))
    filed = dialogue(*rows, personas=str(path))
    assert (filed["PAS"], filed["ORA"]) == (1.0, 1.0)
    assert dialogue(rows[0] | {"guest_persona": "Ada"}, personas=str(path))["persona"] == "Ada"


def notes_of(*spoken):
    """Return the notes of a run, and ORA of its conversations, in each of which a guest speaks."""
    rows = [guest() | {"conversation_id": f"c{n}", **each} for n, each in enumerate(spoken)]
    run = fastscore.score(rows, "guest_simulation")
    return list(run.notes), run.tables["dialogues"].sort("dialogue")["ORA"].to_list()


def test_a_pas_without_attributes_of_the_persona_is_said():
    ada, *others = ({"guest_persona": who} for who in (ADA, "A curious guest.", "A hungry guest."))
    assert [n for n in notes_of(ada, *others)[0] if n.startswith("PAS: 2 of 3 conversations have")]
    assert not [note for note in notes_of(ada)[0] if "persona without attributes" in note]


def test_an_ora_of_a_target_without_names_is_said():
    latte = {"guest_persona": ADA, "current_items_in_order": ["Latte"]}
    targets = (["Latte"], [{"name": "Latte"}])
    notes, values = notes_of(*(latte | {"target_order": target} for target in targets))
    assert values == [0.0, 1.0]
    assert [note for note in notes if note.startswith("ORA: 1 of 2 conversations have")]


def test_conversations_that_the_file_of_personas_lacks_are_counted(tmp_path):
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"test_cases": [{"test_case": "c0", "guest_persona": ADA}]}))
    rows = [guest() | {"conversation_id": f"c{number}"} for number in range(3)]
    options = GuestSimulation(personas=path)
    notes = fastscore.score(rows, options).notes
    assert [note for note in notes if note.startswith("PAS: 2 of 3 conv") and "is 'c1'" in note]
    assert not [note for note in fastscore.score(rows[:1], options).notes if "PAS: 1 of" in note]


def test_a_persona_that_begins_with_a_word_for_nothing_is_a_persona():
    assert dialogue(state(guest_persona=" None "))["persona"] is None
    for words in ("none too busy", "null and void"):
        assert dialogue(state(guest_persona=words))["persona"] == words
        assert dialogue(case(words), state())["persona"] == words
