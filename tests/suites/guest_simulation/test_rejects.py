"""Rejects: place, found and expected value, and the resulting nulls."""

import json

import pytest

from fastscore.errors import UsageError
from fastscore.suites.declarations import REJECT_SCHEMA
from fastscore.suites.guest_simulation import SUITE, GuestSimulation
from fastscore.vectors.view import VectorView
from tests.suites.guest_simulation.guests import (
    ADA,
    call,
    case,
    guest,
    items,
    only,
    order_cell,
    read,
    score,
    state,
)
from tests.suites.reading import read_lines

CASE = {"role": "system", "name": "test_case_info"}


def rejected(*rows, **options):
    """Return the only reject of some rows, and the only dialogue."""
    events, found, _ = read(*rows, options=options)
    assert dict(events.rejects.schema) == REJECT_SCHEMA
    (reject,) = events.rejects.to_dicts()
    assert reject["file"].endswith("messages.jsonl")
    return reject, only(SUITE.score(events, VectorView.empty(), found)["dialogues"])


@pytest.mark.parametrize(
    ("content", "field", "metrics"),
    [
        ("hello", "content", {"PAS", "ORA"}),
        ("", "content", {"PAS", "ORA"}),
        ("[1]", "content", {"PAS", "ORA"}),
        ('{"guest_persona": {', "content", {"PAS", "ORA"}),
        ('{"guest_persona": 5, "target_order": {"items": []}}', "content.guest_persona", {"PAS"}),
        ('{"guest_persona": {"full_name": 5}, "target_order": {"items": []}}',
         "guest_persona.full_name", {"PAS"}),
        ('{"guest_persona": {"full_name": "A\\ud83d"}, "target_order": {"items": []}}',
         "guest_persona.full_name", {"PAS"}),
        ('{"guest_persona": {"message_generation_attributes": {"next_message_mood_tones": '
         '["friendly"]}}, "target_order": {"items": []}}',
         "guest_persona.message_generation_attributes.next_message_mood_tones", {"PAS"}),
        ('{"guest_persona": {}, "target_order": 5}', "content.target_order", {"ORA"}),
        ('{"guest_persona": {}, "target_order": {"items": 5}}', "target_order.items", {"ORA"}),
    ],
)  # fmt: skip
def test_a_test_case_that_cannot_be_read(content, field, metrics):
    row = state(current_items_in_order=items("Cola"))
    reject, dialogue = rejected(row, row, CASE | {"content": content})
    assert (reject["line"], reject["field"]) == (3, field)
    assert reject["found"] is not None
    assert reject["expected"]
    bad = {metric for metric, why in dialogue["null_reasons"].items() if why == "bad_input"}
    assert bad == metrics | {"CRRS"}
    assert dialogue["BVS"] == 0.0


@pytest.mark.parametrize("profile", ["default", "published"])
def test_a_lone_surrogate_is_no_letter_of_an_item(profile):
    order = json.dumps([{"name": "Iced Latte"}])
    row = state(current_items_in_order="[{'name': 'Iced\ud800Latte'}]", target_order=order)
    raw = read_lines(SUITE.source, [json.dumps(row)]).frame
    options = GuestSimulation(profile=profile)
    tables = SUITE.score(SUITE.read(raw, options), VectorView.empty(), options)
    assert only(tables["dialogues"])["ORA"] == 1.0


@pytest.mark.parametrize("nothing", ["", " ", "null", "None", "nan", None])
def test_a_persona_or_target_that_is_not_there(nothing):
    content = json.dumps({"guest_persona": nothing, "target_order": nothing})
    for rows in (
        (state(guest_persona=nothing, target_order=nothing), state()),
        (state(), state(), CASE | {"content": content}),
    ):
        found = only(score(*rows)["dialogues"])
        assert found["persona"] is None
        assert found["null_reasons"] == {
            "PAS": "missing_input",
            "ORA": "missing_input",
            "CRRS": "missing_input",
        }


@pytest.mark.parametrize(
    ("last", "field"),
    [
        (guest(tool_calls=order_cell("Cola")[:140]), "tool_calls"),
        (guest(tool_calls=call("update_order_tracking",
               "Latest Order tracking : current_items_in_order=[]")), "tool_calls"),
        (guest(current_items_in_order="[{'name': 'Cola'"), "current_items_in_order"),
        (guest(current_items_in_order="Cola"), "current_items_in_order"),
    ],
)  # fmt: skip
def test_an_order_that_breaks_off(last, field):
    first = guest(tool_calls=order_cell("Soup"))
    if field != "tool_calls":
        first = guest(current_items_in_order=items("Soup"))
    reject, dialogue = rejected(first, last, case(ADA, "Soup"))
    assert (reject["line"], reject["field"]) == (2, field)
    assert dialogue["null_reasons"]["ORA"] == "bad_input"
    assert dialogue["n_guest_messages"] == 2


def test_a_broken_order_before_a_whole_one_is_listed_and_costs_nothing():
    rows = (guest(tool_calls=order_cell("Soup")[:140]), guest(tool_calls=order_cell("Cola")))
    reject, dialogue = rejected(*rows, case(ADA, "Cola"))
    assert reject["line"] == 1
    assert dialogue["ORA"] == 1.0


def test_rows_that_the_reader_cannot_use():
    events, _, rejects = read(guest(content=5.5), guest("hi"), {"experiment_level": "five"})
    assert rejects["line"].to_list() == [1, 3]
    assert rejects["field"].to_list() == ["content", "experiment_level"]
    assert events.counts == {"conversations": 1, "messages": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object with persona_attributes"),
        ('{"persona_attributes": 5}', "persona_attributes is 5, expected a list"),
        ('{"persona_attributes": [5]}', r"persona_attributes\[0\] is 5, expected an object"),
        ('{"persona_attributes": [{"full_name": ""}]}', r"persona_attributes\[0\].full_name is ''"),
        ('{"persona_attributes": [{"full_name": "A"}]}',
         r"\[0\].message_generation_attributes is None, expected an object"),
        ('{"persona_attributes": [{"full_name": "A", "message_generation_attributes": '
         '{"next_message_ordering_style": "slow"}}]}',
         "next_message_ordering_style is 'slow', expected one_by_one or all_at_once"),
        (json.dumps({"persona_attributes": [ADA, ADA]}), "expected a name of its own"),
        ('{"persona_attributes": [{"full_name": "A\\ud83d"}]}', "half a surrogate pair"),
        ('{"test_cases": [{"test_case": "t", "guest_persona": {"full_name": "A\\ud83d"}}]}',
         r"test_cases\[0\].guest_persona is .*half a surrogate pair"),
        ('{"test_cases": [{"test_case": "t", "target_order": {"items": 5}}]}',
         r"test_cases\[0\].target_order.items is 5, expected a list"),
    ],
)  # fmt: skip
def test_a_file_of_personas_that_cannot_be_used(tmp_path, text, message):
    path = tmp_path / "personas.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as raised:
        read(guest("hi"), options={"personas": str(path)})
    assert str(path) in str(raised.value)


def test_a_file_of_personas_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read(guest("hi"), options={"personas": str(tmp_path / "none.json")})
