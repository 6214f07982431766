"""Turns that name their speaker by an unknown key, by numbers, or not at all."""

import json
import shlex
from typing import Any

import pytest

import fastscore
from tests.logs.chats import (
    n_dialogues,
    pairs_of,
    proposed,
    reading,
    refusal,
    scored,
    typed_in,
    write,
)

ASK, MORE, REPLY = "A comedy, please.", "An old one.", "Watch Her."
SAID = [("user", ASK), ("user", MORE), ("assistant", REPLY)] * 2
"""Two messages of one speaker follow each other: taking turns would be wrong."""
MERGED = [(f"{ASK}\n{MORE}", REPLY)] * 2
N_GUEST = 4
"""So many of the six messages are the user's; three are if turns alternate."""


def chats(key: str, array: str = "messages", text: str = "content") -> list[Any]:
    turns = [{key: who, text: said} for who, said in SAID]
    return [{"chat": name, array: turns} for name in ("a", "b")]


@pytest.fixture
def merging(tmp_path):
    catalogue = write(tmp_path / "catalogue.json", [{"name": "Her", "genre": ["comedy"]}])
    return fastscore.PreferenceShift(
        catalogue=str(catalogue), segments="metadata", merge_speakers=True
    )


GUESTS = fastscore.GuestSimulation(level=1)


@pytest.mark.parametrize(
    ("key", "array", "text"),
    [
        ("who", "messages", "content"),
        ("participant", "conversation", "text"),
        ("src", "messages", "content"),
    ],
)
def test_an_unknown_key_of_speakers_is_proposed(key, array, text, merging, tmp_path):
    path = write(tmp_path / "log.jsonl", chats(key, array, text))
    run = scored(path, GUESTS, **reading(proposed(path, "guest_simulation")))
    assert run.tables["messages"].height == 2 * N_GUEST
    assert pairs_of(scored(path, merging, **reading(proposed(path)))) == MERGED * 2


@pytest.mark.parametrize(
    ("suite", "named"),
    [("preference_shift", "speaker=who"), ("guest_simulation", "role=messages[].who")],
)
def test_a_layout_does_not_let_named_speakers_take_turns(suite, named, merging, tmp_path):
    path = write(tmp_path / "log.jsonl", chats("who"))
    options = merging if suite == "preference_shift" else GUESTS
    said = refusal(path, options, layout="openai")
    assert f"Type --column {shlex.quote(named)}." in said
    run = scored(path, options, layout="openai", **reading(typed_in(said)))
    assert n_dialogues(run) == 2


def test_speakers_of_one_file_do_not_hide_those_of_another(tmp_path):
    """Files are alike by the keys of their rows, not of their turns."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, key in (("a", "role"), ("b", "src")):
        write(logs / f"{name}.jsonl", chats(key))
    run = scored(logs, GUESTS, layout="openai")
    assert any("role: null in 12 of 24 rows" in note for note in run.notes)
    assert run.tables["messages"].height == 2 * N_GUEST


def test_turns_alternate_only_if_asked(tmp_path):
    unnamed = [{"messages": [{"content": text} for _, text in SAID]}]
    for chat in (chats("src"), unnamed):
        path = write(tmp_path / "log.jsonl", chat)
        said = refusal(path, GUESTS, layout="openai")
        run = scored(path, GUESTS, layout="openai", alternate="user")
        assert run.tables["messages"].height == 3 * len(chat)  # three a dialogue
    assert "--column role=KEY" in said
    assert "type --alternate user." in said


LISTS = [{"role": "user", "content": ASK}, {"role": "assistant", "content": REPLY}]


def test_dialogues_without_a_name_on_one_line_are_not_one(options, tmp_path):
    path = write(tmp_path / "log.json", [{"messages": LISTS}] * 3)
    size = len(json.dumps({"messages": LISTS}))
    for suite in (options, GUESTS):
        names = scored(path, suite, layout="openai").tables["dialogues"]["dialogue"]
        # an array begins with a bracket, and elements are two bytes apart
        assert names.to_list() == [f"{path.name}:1:{1 + place * (size + 2)}" for place in range(3)]


def test_ids_that_are_whole_numbers_have_no_fraction(options, tmp_path):
    rows = [{"conversation_id": float(n), **turn} for n in range(2) for turn in LISTS]
    run = scored(write(tmp_path / "log.jsonl", rows), options, layout="turns")
    assert run.tables["dialogues"]["dialogue"].to_list() == ["0", "1"]
