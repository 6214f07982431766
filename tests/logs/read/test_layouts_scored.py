"""Logs by bundled layouts, scored: as the turns that were written by hand for their documents."""

import pytest

import fastscore
from fastscore.errors import InputError

MESSAGES = [{"role": "user", "content": "A burger."}, {"role": "assistant", "content": "Sure."}]
DOCUMENTS_OF = {
    "openai": {"messages": MESSAGES},
    "context-response": {"context": ["A burger."], "response": "Sure."},
}


@pytest.mark.parametrize("layout", DOCUMENTS_OF)
@pytest.mark.parametrize("key", ["id", "dialogue_id", "session_id", "conversation_id", None])
def test_every_suite_keeps_what_names_a_document_and_its_model(layout, key):
    row = {**DOCUMENTS_OF[layout], "model": "m", "target_order": ["burger"]}
    row |= {key: "d9"} if key else {}
    options = fastscore.GuestSimulation(level=3)
    (dialogue,) = fastscore.score([row], options, layout=layout).tables["dialogues"].to_dicts()
    assert dialogue["model"] == "m"
    assert dialogue["dialogue"] == ("d9/model=m" if key else "/row=1/model=m")


ROWS_OF_MODELS = [
    {"conversation_id": "d9", "engine": model, "role": role, "content": f"{said} {model}"}
    | {"target_order": ["burger"]}
    for model in "ab"
    for role, said in (("guest", "A burger."), ("assistant", "Sure."))
]
"""Rows of one id under two models, the second after the first."""
NATIVE = {"columns": {"model": "engine"}}
TURNS = NATIVE | {"layout": "turns", "values": {"role": {"guest": "guest"}}}


@pytest.mark.parametrize("reading", [NATIVE, TURNS])
def test_rows_of_one_id_under_two_models_are_two_dialogues(reading):
    for given in (ROWS_OF_MODELS, [ROWS_OF_MODELS[at] for at in (0, 2, 1, 3)]):
        found = fastscore.score(given, fastscore.GuestSimulation(level=3), **reading)
        dialogues = found.tables["dialogues"].select("dialogue", "model", "n_guest_messages")
        assert dialogues.rows() == [("d9/model=a", "a", 1), ("d9/model=b", "b", 1)]


@pytest.mark.parametrize("reading", [NATIVE, TURNS])
def test_a_model_in_the_rows_of_one_side_is_that_of_the_dialogue(reading):
    rows, options = ROWS_OF_MODELS, fastscore.GuestSimulation(level=3)
    one = [{**rows[0], "engine": None}, rows[1]]
    (dialogue,) = fastscore.score(one, options, **reading).tables["dialogues"].to_dicts()
    assert (dialogue["model"], dialogue["n_guest_messages"]) == ("a", 1)
    with pytest.raises(InputError, match="'a', 'b' in dialogue d9, and none in some"):
        fastscore.score([*one, {**rows[2], "engine": None}, rows[3]], options, **reading)


def test_models_of_rows_that_name_no_dialogue_are_of_the_only_one():
    models = (None, "a", None, "b")
    rows = [
        {"id": f"m{number}", "role": role, "content": f"Text {number}.", "model": model}
        for number, (role, model) in enumerate(zip(["user", "assistant"] * 2, models, strict=True))
    ]
    with pytest.raises(InputError, match="'a', 'b' in the only dialogue, and none in some"):
        fastscore.score(rows, fastscore.GuestSimulation(level=3), layout="turns")


def test_models_of_one_side_that_no_option_names_are_refused():
    rows = [{**row, "model": row["engine"]} for row in ROWS_OF_MODELS]
    options = fastscore.GuestSimulation(level=3)
    with pytest.raises(InputError, match=r"engine is 'b' after 'a'.*model=engine"):
        fastscore.score(rows, options)
    # the guest may have a model of its own
    sides = [{**row, "model": row["role"], "engine": "a"} for row in rows]
    assert fastscore.score(sides, options).tables["dialogues"]["model"].to_list() == ["guest"]
