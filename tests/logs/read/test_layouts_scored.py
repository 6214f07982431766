"""Logs by bundled layouts, scored: as the turns that were written by hand for their documents."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.errors import InputError
from tests.conftest import often
from tests.logs.read.test_layouts import ASK, DOCUMENTS, FROM, HEAT, YEARS

CATALOGUE = [
    {"name": "Heat", "genre": "drama", "year": "1995"},
    {"name": "Clueless", "genre": "comedy", "year": "1995"},
]
SAID = {
    ASK: "A drama or a comedy, please.",
    FROM: "A drama or a comedy from 1995?",
    YEARS: "A drama from 1995, please.",
    HEAT: "Watch Heat, a drama from 1995, please.",
}
"""Texts that name the catalogue and repeat each other, in the place of those of the documents."""
LAYOUTS = list(DOCUMENTS)[:: often(4, 1)]
UNNAMED = ("openai", "context-response")
"""Layouts that name no key of ids: a suite knows its own, and else names the line."""
MODELS = {"inspect": "m", "tau2-bench": "m"}
"""The model of every dialogue, in the documents of layouts that read one."""


def log_of(name: str, path: Path) -> list[tuple[str | None, list[tuple[str, str]]]]:
    """Write the documents of a layout; return the dialogues that were written by hand for them."""
    text = json.dumps(DOCUMENTS[name])
    for before, after in SAID.items():
        text = text.replace(before, after)
    documents, dialogues = json.loads(text)
    path.write_text("".join(json.dumps(each) + "\n" for each in documents))
    return dialogues  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", LAYOUTS)
def test_conversations_are_scored_as_their_turns(name: str, tmp_path: Path) -> None:
    path, catalogue = tmp_path / "log.jsonl", tmp_path / "catalogue.json"
    dialogues = log_of(name, path)
    catalogue.write_text(json.dumps(CATALOGUE))
    logs = [
        {"session_id": id, "conversation": [{"speaker": who, "text": text} for who, text in turns]}
        for id, turns in dialogues
    ]
    suite = fastscore.PreferenceShift(catalogue=str(catalogue), segments="metadata")
    found = fastscore.score(path, suite, layout=name, embedder=None, max_rejects=1.0)
    own = fastscore.score(logs, suite, embedder=None)
    places = ("file", "line", "byte_offset", "dialogue", "session_id", "model")
    for table, frame in own.tables.items():
        other = found.tables[table]
        assert frame.drop(places, strict=False).equals(other.drop(places, strict=False)), table
    names = [id for id, _ in dialogues if id is not None]
    if names:
        assert found.tables["dialogues"]["session_id"].to_list() == names
    assert found.tables["turns"].height > 0


@pytest.mark.parametrize("name", LAYOUTS)
def test_rows_of_messages_are_scored_as_frames_of_the_same_rows(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [
        {
            "conversation_id": id,
            "model": MODELS.get(name),
            "role": {"USER": "guest", "SYSTEM": "assistant"}[who],
            "content": text,
        }
        for id, turns in log_of(name, path)
        for who, text in turns
    ]
    suite = fastscore.GuestSimulation(level=1)
    found = fastscore.score(path, suite, layout=name, embedder=None, max_rejects=1.0)
    own = fastscore.score(pl.DataFrame(rows), suite, embedder=None)
    for table in ("dialogues", "messages"):
        left, right = found.tables[table], own.tables[table]
        if name not in UNNAMED:
            # documents have one model each, which their names tell
            model = f"/model={MODELS[name]}" if name in MODELS else ""
            assert left["dialogue"].to_list() == [each + model for each in right["dialogue"]]
        places = ("file", "line", "dialogue")
        if name in ("openai", "anthropic"):  # prompts and tools' messages are rows too
            places += ("n_messages", "message_index")
        if name in UNNAMED:
            places += ("test_case", "conversation_id")
        left, right = (each.drop(places, strict=False) for each in (left, right))
        assert left.equals(right), table


MESSAGES = [{"role": "user", "content": "A burger."}, {"role": "assistant", "content": "Sure."}]
DOCUMENTS_OF = {
    "openai": {"messages": MESSAGES},
    "context-response": {"context": ["A burger."], "response": "Sure."},
}


@pytest.mark.parametrize("layout", DOCUMENTS_OF)
@pytest.mark.parametrize("key", ["id", "dialogue_id", "session_id", "conversation_id", None])
def test_every_suite_keeps_what_names_a_document_and_its_model(
    layout: str, key: str | None
) -> None:
    row = {**DOCUMENTS_OF[layout], "model": "m", "target_order": ["burger"]}
    row |= {key: "d9"} if key else {}
    options = fastscore.GuestSimulation(level=3)
    (dialogue,) = fastscore.score([row], options, layout=layout).tables["dialogues"].to_dicts()
    assert dialogue["model"] == "m"
    assert dialogue["dialogue"] == ("d9/model=m" if key else "/row=1/model=m")


@pytest.mark.parametrize("layout", DOCUMENTS_OF)
def test_one_id_under_two_models_is_two_dialogues(layout: str) -> None:
    rows = [{**DOCUMENTS_OF[layout], "id": "d9", "model": model} for model in "ab"]
    options = fastscore.GuestSimulation(level=3)
    found = fastscore.score(
        [{**row, "target_order": ["burger"]} for row in rows], options, layout=layout
    )
    assert found.tables["dialogues"]["dialogue"].to_list() == ["d9/model=a", "d9/model=b"]


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
def test_rows_of_one_id_under_two_models_are_two_dialogues(reading: dict[str, Any]) -> None:
    for given in (ROWS_OF_MODELS, [ROWS_OF_MODELS[at] for at in (0, 2, 1, 3)]):
        found = fastscore.score(given, fastscore.GuestSimulation(level=3), **reading)
        dialogues = found.tables["dialogues"].select("dialogue", "model", "n_guest_messages")
        assert dialogues.rows() == [("d9/model=a", "a", 1), ("d9/model=b", "b", 1)]


@pytest.mark.parametrize("reading", [NATIVE, TURNS])
def test_a_model_in_the_rows_of_one_side_is_that_of_the_dialogue(reading: dict[str, Any]) -> None:
    rows, options = ROWS_OF_MODELS, fastscore.GuestSimulation(level=3)
    one = [{**rows[0], "engine": None}, rows[1]]
    (dialogue,) = fastscore.score(one, options, **reading).tables["dialogues"].to_dicts()
    assert (dialogue["model"], dialogue["n_guest_messages"]) == ("a", 1)
    with pytest.raises(InputError, match="other rows of the dialogue 'd9' have several: a, b"):
        fastscore.score([*one, {**rows[2], "engine": None}, rows[3]], options, **reading)


def test_models_of_one_side_that_no_option_names_are_refused() -> None:
    rows = [{**row, "model": row["engine"]} for row in ROWS_OF_MODELS]
    options = fastscore.GuestSimulation(level=3)
    with pytest.raises(InputError, match=r"several in the conversation d9: a, b.*model=KEY"):
        fastscore.score(rows, options)
    # the guest may have a model of its own
    sides = [{**row, "model": row["role"]} for row in rows]
    assert fastscore.score(sides, options).tables["dialogues"]["model"].to_list() == ["guest"]
