"""Names of dialogues under other keys, and words of speakers as a set."""

import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.errors import InputError
from fastscore.logs.inputs.column_map import parse_map
from fastscore.logs.inputs.near_names import role_meanings
from fastscore.suites.registry import load_suite
from tests.conftest import fastscore_command
from tests.logs.samples.screened import refusal, screened
from tests.logs.samples.wrong_logs import write

GUEST = load_suite("guest_simulation").source.chat_rows
SHIFT = load_suite("preference_shift").source.chat_rows


def rows(key: str, names: list[Any]) -> list[dict[str, Any]]:
    return [
        {"event": event, "utterance_index": 0, "step": 0, "prediction": "a", "ground_truth": "a"}
        | {key: name}
        for name in names
        for event in ("predicted", "utterance_complete")
    ]


@pytest.mark.parametrize(
    "key", ["conversation_id", "callId", "chat id", "ticket", "TicketNr", "case_no"]
)
def test_another_key_that_names_dialogues_is_refused(key, tmp_path):
    log = write(tmp_path / "log.jsonl", rows(key, ["a", "b"]))
    said = refusal("score_dialogue", log)
    assert f"{key!r} varies within the file as names of dialogues do." in said
    flags = [f"dialogue_uid={key}"]
    assert screened("score_dialogue", log, columns=parse_map(flags, [])).files
    # the user knows better
    assert screened("score_dialogue", log, columns=parse_map(["dialogue_uid="], [])).files


TICKETS = [
    {"ticket": ticket, "speaker": speaker, "text": f"{ticket} {speaker}"}
    for ticket in ("T-1", "T-2", "T-3")
    for speaker in ("USER", "SYSTEM")
]


@pytest.mark.parametrize("form", ["log.csv", "log.jsonl", "frame"])
@pytest.mark.parametrize("layout", ["turns", None])
def test_turns_of_several_dialogues_under_another_key_are_never_one(form, layout, tmp_path):
    if layout is None and form != "log.jsonl":
        pytest.skip("rows of tables are turns by a layout alone")
    (tmp_path / "items.json").write_text('[{"name": "Heat", "genre": "drama"}]')
    options = fastscore.PreferenceShift(catalogue=str(tmp_path / "items.json"), segments="metadata")
    log: Any = TICKETS if form == "frame" else tmp_path / form
    if form == "log.csv":
        pl.DataFrame(TICKETS).write_csv(log)
    elif form == "log.jsonl":
        pl.DataFrame(TICKETS).write_ndjson(log)

    def scored(**columns: str) -> pl.Series:
        how: dict[str, Any] = {"layout": layout, "columns": columns, "embedder": None}
        return fastscore.score(log, options, **how).tables["dialogues"]["session_id"]

    with pytest.raises(InputError, match="'ticket' varies within the file") as refused:
        scored()
    assert "Type --column session_id=ticket." in str(refused.value)
    assert "type --column session_id= (nothing after the =)." in str(refused.value)
    assert scored(session_id="ticket").to_list() == ["T-1", "T-2", "T-3"]
    assert len(scored(session_id="")) == 1


def test_a_judge_reads_no_several_dialogues_as_one(tmp_path):
    pl.DataFrame(TICKETS).write_csv(tmp_path / "log.csv")

    def asked(*columns: str | Path) -> subprocess.CompletedProcess[str]:
        server = ["--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--dry-run"]
        chats = ["judge", tmp_path / "log.csv", "--layout", "turns", "-o", tmp_path / "judged"]
        return fastscore_command([*chats, *server, *columns])

    assert "Type --column id=ticket." in asked().stderr
    assert "requests   3," in asked("--column", "id=ticket").stdout
    assert "requests   1," in asked("--column", "id=").stdout
    pl.DataFrame(TICKETS[:1]).write_csv(tmp_path / "more.csv")
    more = asked(tmp_path / "more.csv", "--column", "id=ticket")
    assert "One dialogue is in two files: 'T-1'" in more.stderr


def test_a_second_name_far_down_the_file_is_found(tmp_path):
    log = write(tmp_path / "log.jsonl", rows("dialogue_id", ["a"] * 300 + ["b"]))
    assert "dialogue_uid=dialogue_id" in refusal("score_dialogue", log)
    second = tmp_path / "logs"
    second.mkdir()
    write(second / "0.jsonl", rows("dialogue_id", ["a"]))
    write(second / "1.jsonl", rows("dialogue_id", ["a", "b"]))
    assert "dialogue_uid=dialogue_id" in refusal("score_dialogue", second)


@pytest.mark.parametrize(
    "names",
    [
        ("dialogue_id", ["a", "a"]),  # the file is one dialogue
        ("event_id", ["a", "b", "a"]),  # not of neighbouring rows
        ("model", ["a", "b"]),  # no name of anything
        ("miner_uid", ["a", "b"]),  # another column of the suite
    ],
)
def test_keys_that_name_no_dialogues_are_passed_over(names, tmp_path):
    assert screened("score_dialogue", write(tmp_path / "log.jsonl", rows(*names))).files


def test_ids_are_compared_in_files_that_begin_with_a_long_line(tmp_path):
    for name, ids in (("a", ["x"]), ("b", ["y", "z"])):
        long = [row | {"prediction": "word " * 1_000} for row in rows("dialogue_id", ids)]
        write(tmp_path / "logs" / f"{name}.jsonl", long)
    assert "dialogue_uid=dialogue_id" in refusal("score_dialogue", tmp_path / "logs")


def test_a_suites_own_key_is_enough(tmp_path):
    named = [row | {"dialogue_uid": "x"} for row in rows("session_id", ["a", "b"])]
    assert screened("score_dialogue", write(tmp_path / "log.jsonl", named)).files


@pytest.mark.parametrize(
    ("words", "meanings"),
    [
        ("USER AGENT", "user assistant"),
        ("user assistant system tool", "user assistant system tool"),
        ("user system", "user assistant"),
        ("human gpt", "user assistant"),
        ("prompter assistant", "user assistant"),
        ("U S", "user assistant"),
        ("user bot action slot", "user assistant tool tool"),
        ("Kunde Assistent System", "user assistant system"),
    ],
)
def test_roles_are_decided_for_all_words_together(words, meanings):
    expected = dict(zip(words.split(), meanings.split(), strict=True))
    assert role_meanings(words.split()) == expected


def test_words_of_which_nothing_is_known_have_no_role():
    assert role_meanings(["Anna", "Ben", "u"]) == {}
    assert role_meanings(["Anna", "Ben", "System"]) == {"System": "system"}
    assert role_meanings(["agent", "assistant", "user"])["agent"] == "assistant"


@pytest.mark.parametrize("user", ["user", "end-user", "Klientin"])
def test_an_agent_beside_a_user_is_no_guest(user, tmp_path):
    native = [
        {"conversation_id": "a", "role": role, "content": "x"} for role in ("agent", "assistant")
    ]
    # each dialogue by its own words
    chat = [{"conversation_id": "c", "role": role, "content": "x"} for role in (user, "agent") * 2]
    log = write(tmp_path / "log.jsonl", [*native, *chat])
    said = refusal("guest_simulation", log)
    assert f"beside {user!r}, 'agent' is probably not the guest" in said
    assert f"--value role:agent=assistant --value role:{user}=guest." in said
    for words in (["role:agent=assistant", f"role:{user}=guest"], ["role:agent=agent"]):
        assert screened("guest_simulation", log, columns=parse_map([], words)).files
