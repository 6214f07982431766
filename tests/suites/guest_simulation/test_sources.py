"""Where states, orders and test cases come from: columns, tools, words, files."""

import json
from pathlib import Path

import pytest

import fastscore
from tests.suites.guest_simulation.guests import (
    ADA,
    ATTRIBUTES,
    BASIC,
    call,
    calls,
    case,
    dialogue,
    guest,
    items,
    order_cell,
    restaurant,
    score,
    state,
)


def test_states_come_from_columns_then_tools_then_words() -> None:
    cell = call(ATTRIBUTES, "is_ordering_complete=<IsOrderingComplete.YES: 'yes'> "
                "next_message_menu_exploration_style=<MenuExplorationStyle.DOES_NOT_EXPLORE_MENU: "
                "'does_not_explore_menu'> next_message_mood_tone=<MessageMoodTone.FRUSTRATED: "
                "'frustrated'> next_message_ordering_style=<OrderingStyle.ONE_BY_ONE: "
                "'one_by_one'>")  # fmt: skip
    rows = (guest("What do you have?", tool_calls=cell), guest("fine"))
    by_tools = score(*rows)["messages"]
    assert by_tools["state_source"].to_list() == ["tools", None]
    assert by_tools.row(0, named=True)["mood_tone"] == "frustrated"
    assert by_tools.row(0, named=True)["menu_exploration_style"] == "does_not_explore_menu"
    assert by_tools.row(0, named=True)["is_ordering_complete"] == "yes"
    by_columns = score(*rows, state())["messages"]
    assert by_columns["state_source"].to_list() == [None, None, "columns"]
    by_words = score(*rows, states="heuristic")["messages"]
    assert by_words["state_source"].to_list() == ["heuristic"] * 2
    assert by_words["menu_exploration_style"].to_list() == [
        "explores_menu", "does_not_explore_menu"]  # fmt: skip
    assert score(*rows, states="columns")["messages"]["state_source"].to_list() == [None, None]


def test_order_and_behaviour_have_sources_of_their_own() -> None:
    rows = (state(tool_calls=order_cell("Cola")), state(), case(ADA, "Cola"))
    found = dialogue(*rows, level=3)
    assert (found["state_source"], found["order_source"], found["ORA"]) == ("columns", "tools", 1.0)


def test_the_heuristic() -> None:
    rows = [
        guest("Hi, what's on the menu?"),
        guest("I'll take the soup. Is it spicy?"),
        guest("ugh, hurry up"),
        guest("I'm not sure... a cola and the Caesar salad"),
        restaurant("Great! Your order has been placed."),
        guest("Awesome"),
        restaurant("Bye"),
        guest("see you"),
        guest("exit"),
        case(ADA, "Soup", "Cola", "Caesar Salad", "Fries"),
    ]
    found = score(*rows)["messages"]
    assert found["menu_exploration_style"].to_list() == [
        "explores_menu", "explores_menu", "does_not_explore_menu", "does_not_explore_menu",
        "does_not_explore_menu", "does_not_explore_menu", None]  # fmt: skip
    assert found["mood_tone"].to_list() == [
        "casual", "casual", "frustrated", "confused", "enthusiastic", "casual", None]  # fmt: skip
    assert found["ordering_style"].to_list() == [
        "all_at_once", "one_by_one", "one_by_one", "all_at_once", "all_at_once", "all_at_once",
        None]  # fmt: skip
    assert found["is_ordering_complete"].to_list() == ["no"] * 4 + ["yes", "no", None]


def test_ids_repeat_across_levels() -> None:
    rows = [row | {"experiment_level": level} for level in (1, 2) for row in calls(BASIC)]
    found = score(*rows)["dialogues"]
    assert found["dialogue"].to_list() == ["c/level=1", "c/level=2"]
    assert found["conversation_id"].to_list() == ["c", "c"]
    assert found["experiment_level"].to_list() == [1, 2]
    assert found["DEI"].to_list() == [0.0, 0.2]


def test_test_cases_are_known_by_the_file_name() -> None:
    name = "chat_with_guest_simulation_llm_messages_log_Ada-Okoro_test_case_number_7"
    found = dialogue(state() | {"conversation_id": name})
    assert found["test_case"] == "Ada-Okoro_test_case_number_7"
    assert dialogue(state())["test_case"] == "c"
    assert dialogue(state(test_case="t"))["test_case"] == "t"


def test_test_cases_come_from_columns_and_files_too(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("profile", ["default", "published"])
@pytest.mark.parametrize("states", ["auto", "columns", "tools", "heuristic"])
def test_what_is_nearly_nothing_is_scored(profile: str, states: str) -> None:
    for row in (restaurant(), case(), guest(), guest(current_items_in_order="  ")):
        tables = score(row, profile=profile, states=states)
        assert tables["dialogues"].height == 1
        assert tables["messages"].height == (row["role"] == "agent")


def test_a_pas_without_attributes_of_the_persona_is_said() -> None:
    def row(number: int, persona: object) -> dict[str, object]:
        return {
            "conversation_id": f"c{number}",
            "role": "agent",
            "name": "guest_simulation_agent",
            "content": "What is on the menu?",
            "guest_persona": persona,
        }

    rows = [row(1, ADA), row(2, "A curious guest."), row(3, "A hungry guest.")]
    described = fastscore.score(rows, "guest_simulation")
    assert [note for note in described.notes if note.startswith("PAS: 2 of 3 conversations have")]
    named = fastscore.score([row(1, ADA)], "guest_simulation")
    assert not [note for note in named.notes if "persona without attributes" in note]


def test_an_ora_of_a_target_without_names_is_said() -> None:
    def row(number: int, target: object) -> dict[str, object]:
        return {
            "conversation_id": f"c{number}",
            "role": "agent",
            "name": "guest_simulation_agent",
            "content": "A latte, please.",
            "guest_persona": ADA,
            "target_order": target,
            "current_items_in_order": ["Latte"],
        }

    run = fastscore.score([row(1, ["Latte"]), row(2, [{"name": "Latte"}])], "guest_simulation")
    assert run.tables["dialogues"].sort("dialogue")["ORA"].to_list() == [0.0, 1.0]
    assert [note for note in run.notes if note.startswith("ORA: 1 of 2 conversations have")]
