"""Turns that name their speaker by an unknown key, by numbers, or not at all."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import fastscore
from tests.cli.scoring import score
from tests.conftest import fastscore_command

ASK, MORE, REPLY = "A comedy, please.", "An old one.", "Watch Her."
SAID = [("user", ASK), ("user", MORE), ("assistant", REPLY)] * 2
"""Two messages of one speaker follow each other: taking turns would be wrong."""
GUEST = [ASK, MORE]
N_GUEST = 4
"""So many of the six messages are the user's; three are if turns alternate."""


def written(path: Path, documents: list[Any]) -> Path:
    if path.suffix == ".json":
        path.write_text(json.dumps(documents))
    else:
        path.write_text("".join(json.dumps(each) + "\n" for each in documents))
    return path


def chats(key: str, array: str = "messages", text: str = "content") -> list[Any]:
    turns = [{key: who, text: said} for who, said in SAID]
    return [{"chat": name, array: turns} for name in ("a", "b")]


def inspected(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(fastscore_command(["inspect", path, "--json"]).stdout)
    return found


def flags_of(command: str, path: Path) -> list[str]:
    """Return the flags of a command that `inspect` proposes."""
    words = shlex.split(command)
    assert words[3] == str(path)
    assert words[4] == "-o"
    return [word for word in words[6:] if word not in ("--catalogue", "FILE")]


@pytest.mark.parametrize(
    ("key", "array", "text"),
    [
        ("who", "messages", "content"),
        ("participant", "conversation", "text"),
        ("src", "messages", "content"),
    ],
)
def test_an_unknown_key_of_speakers_is_proposed(key, array, text, tmp_path):
    path = written(tmp_path / "log.jsonl", chats(key, array, text))
    commands = inspected(path)["commands"]
    flags = flags_of(commands["guest_simulation"], path)
    code, _, said = score("guest_simulation", tmp_path, path, *flags, "--level", 1)
    assert code == 0, said
    run = fastscore.open_run(tmp_path / "run")
    assert run.scan("messages").collect().height == 2 * N_GUEST
    (tmp_path / "second").mkdir()
    flags = flags_of(commands["preference_shift"], path)
    code, _, said = score("preference_shift", tmp_path / "second", path, *flags, "--merge-speakers")
    assert code == 0, said
    turns = fastscore.open_run(tmp_path / "second" / "run").scan("turns").collect()
    assert turns.select("user_text", "system_text").rows() == [(f"{ASK}\n{MORE}", REPLY)] * 4


@pytest.mark.parametrize(
    ("suite", "named"),
    [("preference_shift", "speaker=who"), ("guest_simulation", "role=messages[].who")],
)
def test_a_layout_does_not_let_named_speakers_take_turns(suite, named, tmp_path):
    path = written(tmp_path / "log.jsonl", chats("who"))
    code, _, said = score(suite, tmp_path, path, "--layout", "openai")
    assert code == 3
    line = f"--column {shlex.quote(named)}"
    assert f"Type {line}." in said
    assert not (tmp_path / "run").exists()
    merged = ["--merge-speakers"] if suite == "preference_shift" else ["--level", 1]
    words = ["--layout", "openai", *shlex.split(line), *merged]
    code, _, said = score(suite, tmp_path, path, *words)
    assert code == 0, said


def test_speakers_of_one_file_do_not_hide_those_of_another(tmp_path):
    """Files are alike by the keys of their rows, not of their turns."""
    (tmp_path / "logs").mkdir()
    for name, key in (("a", "role"), ("b", "src")):
        written(tmp_path / "logs" / f"{name}.jsonl", chats(key))
    words = ["--layout", "openai", "--level", 1]
    code, said, error = score("guest_simulation", tmp_path, tmp_path / "logs", *words)
    assert code == 0, error
    assert "role: null in 12 of 24 rows" in said + error
    run = fastscore.open_run(tmp_path / "run")
    assert run.scan("messages").collect().height == 2 * N_GUEST


def test_turns_alternate_only_if_asked(tmp_path):
    unnamed = [{"messages": [{"content": text} for _, text in SAID]}]
    for number, chat in enumerate((chats("src"), unnamed)):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = written(folder / "log.jsonl", chat)
        words = ["--layout", "openai", "--level", 1]
        code, _, said = score("guest_simulation", folder, path, *words)
        assert code == 3
        code, _, said = score("guest_simulation", folder, path, *words, "--alternate", "user")
        assert code == 0, said
        run = fastscore.open_run(folder / "run")
        assert run.scan("messages").collect().height == 3 * len(chat)  # three a dialogue
    code, _, said = score("guest_simulation", tmp_path, path, *words)
    assert "--column role=KEY" in said
    assert "type --alternate user." in said


@pytest.mark.parametrize(
    ("array", "keys"), [("messages", ("role", "content")), ("conversation", ("speaker", "text"))]
)
def test_inspect_asks_for_the_meaning_of_numbers_as_score_does(array, keys, tmp_path):
    chat = [dict(zip(keys, turn, strict=True)) for turn in ((0, ASK), (0, MORE), (1, REPLY))]
    path = written(tmp_path / "log.jsonl", [{array: chat}] * 2)
    unfit = inspected(path)["files"][0]["unfit"]["preference_shift"]
    line = "--value speaker:0=USER --value speaker:1=SYSTEM."
    assert unfit.endswith(line)
    typed = ["--column", f"conversation={array}", "--column", f"speaker={keys[0]}"]
    typed += ["--column", f"text={keys[1]}"]
    code, _, said = score("preference_shift", tmp_path, path, *typed)
    assert code == 3
    assert said.rstrip().endswith(line)
    words = [*typed, *shlex.split(line.removesuffix(".")), "--merge-speakers"]
    code, _, said = score("preference_shift", tmp_path, path, *words)
    assert code == 0, said
    turns = fastscore.open_run(tmp_path / "run").scan("turns").collect()
    assert turns.select("user_text", "system_text").rows() == [(f"{ASK}\n{MORE}", REPLY)] * 2


PAIRS = [[ASK, REPLY], [MORE, REPLY]]
LISTS = [{"role": "user", "content": ASK}, {"role": "assistant", "content": REPLY}]


@pytest.mark.parametrize(
    ("document", "n_turns", "suffix"),
    [(PAIRS, 2, ".json"), ([ASK, REPLY], 1, ".jsonl"), (LISTS, 1, ".json"), (LISTS, 1, ".jsonl")],
    ids=str,
)
def test_arrays_without_a_key_are_proposed_a_layout(document, n_turns, suffix, tmp_path):
    path = written(tmp_path / f"log{suffix}", [document] * 3)
    command = inspected(path)["commands"]["preference_shift"]
    code, _, said = score("preference_shift", tmp_path, path, *flags_of(command, path))
    assert code == 0, said
    run = fastscore.open_run(tmp_path / "run")
    assert run.scan("turns").collect()["user_text"].to_list()[:n_turns] == GUEST[:n_turns]
    assert run.scan("turns").collect().height == 3 * n_turns
    assert run.scan("dialogues").collect().height == 3


@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
def test_pairs_are_refused_with_the_layout_to_type(suite, tmp_path):
    path = written(tmp_path / "log.jsonl", [PAIRS] * 3)
    code, _, said = score(suite, tmp_path, path)
    assert code == 3
    assert "Type --layout pairs." in said
    level = ["--level", 1] if suite == "guest_simulation" else []
    code, _, said = score(suite, tmp_path, path, "--layout", "pairs", *level)
    assert code == 0, said
    assert fastscore.open_run(tmp_path / "run").scan("dialogues").collect().height == 3


def test_dialogues_without_a_name_on_one_line_are_not_one(tmp_path):
    path = written(tmp_path / "log.json", [{"messages": LISTS}] * 3)
    size = len(json.dumps({"messages": LISTS}))
    for number, suite in enumerate(("preference_shift", "guest_simulation")):
        folder = tmp_path / str(number)
        folder.mkdir()
        level = ["--level", 1] if suite == "guest_simulation" else []
        code, _, said = score(suite, folder, path, "--layout", "openai", *level)
        assert code == 0, said
        names = fastscore.open_run(folder / "run").scan("dialogues").collect()["dialogue"]
        # an array begins with a bracket, and elements are two bytes apart
        assert names.to_list() == [f"{path.name}:1:{1 + place * (size + 2)}" for place in range(3)]


def test_one_of_several_dialogues_is_not_proposed_as_all(tmp_path):
    """Dialogues by their ids, and turns by their numbers: a path into one loses the others."""
    words = {"user": "visitor", "assistant": "host"}
    chat = [{"who": words[m["role"]], "said": m["content"]} for m in LISTS]
    path = written(tmp_path / "log.json", [])
    path.write_text(json.dumps({"chats": {f"c{n}": chat for n in range(3)}}))
    assert not inspected(path)["commands"]
    numbered = {str(place): turn for place, turn in enumerate(chat)}
    path = written(tmp_path / "log.jsonl", [{"id": n, "turns": numbered} for n in range(3)])
    assert not inspected(path)["commands"]


def test_ids_that_are_whole_numbers_have_no_fraction(tmp_path):
    rows = [{"conversation_id": float(n), **turn} for n in range(2) for turn in LISTS]
    path = written(tmp_path / "log.jsonl", rows)
    code, _, said = score("preference_shift", tmp_path, path, "--layout", "turns")
    assert code == 0, said
    names = fastscore.open_run(tmp_path / "run").scan("dialogues").collect()["dialogue"]
    assert names.to_list() == ["0", "1"]
