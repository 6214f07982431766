"""Kinds of logs that other tools write: read by what they say of themselves, or asked for."""

import json
import re
import shlex
from itertools import pairwise
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.errors import FastscoreError, UsageError
from fastscore.logs.inputs.column_map import column_map, map_source, role_words
from fastscore.suites.registry import load_suite
from tests.logs.chats import (
    ASKED,
    PAIRS,
    REPLIES,
    SUITES,
    chat,
    n_dialogues,
    options_of,
    pairs,
    pairs_of,
    proposed,
    reading,
    refusal,
    scored,
    sides,
    typed_in,
    write,
)

TEXTS = [turn["content"] for turn in chat()]
READ: dict[str, tuple[Any, str]] = {
    "preferences.jsonl": (
        {"prompt": chat()[:-1], "chosen": chat()[-1:],
         "rejected": [{"role": "assistant", "content": "Watch Her."}]},
        "--layout hf-messages"),
    "lists.jsonl": (
        {"messages": {"role": [t["role"] for t in chat()], "content": TEXTS}}, "--layout openai"),
    "choices.jsonl": (
        {"messages": chat()[:-1], "choices": [{"message": chat()[-1]}]}, "--layout openai-batch"),
    "message.jsonl": (
        {"messages": chat()[:-1], "message": chat()[-1]},
        "--layout openai --column reply=message"),
    "output.jsonl": (
        {"messages": chat()[:-1], "model_output": REPLIES[-1]},
        "--layout openai --column reply=model_output"),
    "context.jsonl": (
        {"context": TEXTS[:-1], "resp": REPLIES[-1]},
        "--layout context-response --column reply=resp"),
    # a key called user is no side beside messages
    "user.jsonl": ({"id": "d1", "user": "u17", "messages": chat()}, "--layout openai"),
    "cell.csv": ({"id": "d", "messages": json.dumps(chat())}, "--layout openai"),
    # system is a reply where no assistant speaks
    "system.jsonl": ({"messages": chat(assistant="system")},
                     "--layout openai --value speaker:system=assistant"),
    # an agent is a guest of guest_simulation, but not beside a user
    "agent.jsonl": ({"messages": chat(assistant="agent")},
                    "--layout openai --value speaker:agent=assistant"),
    "shared.jsonl": (
        {"id": "d1", "log": chat(6, "who", "said", user="customer", assistant="bot")},
        "--column turns=log --column speaker=who --column text=said "
        "--value speaker:bot=assistant --value speaker:customer=user"),
}  # fmt: skip
"""Logs of one row, and what inspect proposes."""


@pytest.mark.parametrize("name", READ)
def test_a_log_is_read_by_its_own_keys(name, options, tmp_path):
    document, flags = READ[name]
    path = write(tmp_path / name, [document])
    assert proposed(path) == shlex.split(flags)
    assert pairs(path, options, **reading(shlex.split(flags))) == PAIRS
    if name in ("agent.jsonl", "shared.jsonl"):
        assert proposed(path, "guest_simulation") == shlex.split(flags)


def test_an_agent_beside_a_user_is_no_guest(tmp_path):
    path = write(tmp_path / "log.jsonl", [{"messages": chat(assistant="agent")}])
    assert "does not name 'agent'" in refusal(path, "guest_simulation", layout="openai")


def test_a_colleague_of_the_bot_is_no_guest(options, tmp_path):
    """`agent` beside a user replies, whoever else does."""
    turns = chat(3, "sender", "message", user="customer", assistant="bot")
    turns[-1]["sender"] = "agent"
    path = write(tmp_path / "log.jsonl", [{"transcript": turns}])
    for suite in SUITES:
        assert [word for word in proposed(path, suite) if word.startswith("speaker:")] == [
            f"speaker:{word}" for word in ("agent=assistant", "bot=assistant", "customer=user")
        ]
    assert pairs(path, options, **reading(proposed(path))) == PAIRS


def test_lists_of_texts_are_asked_for(options, tmp_path):
    """A list of two texts is no pair where others have more."""
    path = write(tmp_path / "log.jsonl", [{"dialog": TEXTS}, {"dialog": TEXTS[:2]}])
    assert proposed(path) == []
    flags = typed_in(refusal(path, options))
    assert flags == ["--column", "turns=dialog", "--alternate", "user"]
    assert pairs(path, options, **reading(flags)) == PAIRS + PAIRS[:1]


def test_a_title_above_a_table_is_named(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(",said\n0,A drama?\n")
    (file,) = fastscore.inspect(path).files
    assert "title" not in file.unfit["preference_shift"]
    path.write_text("Chats of May,,\nconversation_id,speaker,text\nc,USER,A drama?\n")
    said = r"line 1 names one column, 'chats of may'.* tail -n \+2"
    (file,) = fastscore.inspect(path).files
    assert re.search(said, file.unfit["preference_shift"])


@pytest.mark.parametrize(
    ("text", "is_transcript"),
    [
        ("User: A drama?\nBot: Try Heat.", True),
        ("The user: A drama?\n\nA bot: Try Heat.\nas I said", True),
        ("User: A drama?", False),
        ("A drama?\nTry Heat.", False),
    ],
)
def test_a_whole_transcript_in_a_text_is_named(text, is_transcript, options, tmp_path):
    path = write(tmp_path / "log.jsonl", [{"key": name, "chat_log": text} for name in "ab"])
    (file,) = fastscore.inspect(path).files
    for told in (refusal(path, options), file.unfit["preference_shift"] + file.asked["chats"]):
        assert ("'chat_log' has whole transcripts. Type jq -c " in told) is is_transcript


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_mails_are_sorted_by_their_times(suffix, options, tmp_path):
    """The order of the instants is none of the texts: 00:30 +0300 is before 22:00 +0000."""
    times = ["Wed, 01 May 2024 23:30:00 +0200", "Thu, 02 May 2024 00:31:00 +0300",
             "Wed, 01 May 2024 21:32:00 +0000", "Wed, 01 May 2024 16:33:00 -0500"]  # fmt: skip
    rows = [
        {"thread_id": "t", "from": turn["role"], "date": at, "subject": "Film",
         "body": turn["content"]}
        for turn, at in zip(chat(2), times, strict=True)
    ]  # fmt: skip
    path = write(tmp_path / f"log{suffix}", rows[::-1])
    flags = proposed(path)
    assert flags[:4] == ["--layout", "turns", "--column", "text=body"]
    assert reading(flags)["sort_by"] == "date"
    if suffix == ".jsonl":
        assert refusal(path, options).endswith(f"Type {shlex.join(flags)}.")
    assert pairs(path, options, **reading(flags)) == PAIRS[:2]


WORDS = {"speaker": {"user": "USER", "assistant": "SYSTEM"}}
STORED: Any = {"speaker": "speaker", "text": "text", "user": "USER", "assistant": "SYSTEM"}
"""Turns under the names of preference_shift."""
GUEST = {
    "columns": {"role": "speaker", "content": "text"},
    "values": {"role": {"USER": "guest", "SYSTEM": "assistant"}},
}


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_rows_that_run_backwards_are_sorted_or_refused(suffix, options, tmp_path):
    rows = [
        {"conversation_id": "c", **turn, "created_at": f"2025-01-01T00:0{minute}:00Z"}
        for minute, turn in enumerate(chat())
    ]
    path = write(tmp_path / f"log{suffix}", rows[::-1])
    how: Any = {"layout": "turns", "values": WORDS}
    said = refusal(path, options, **how)
    assert "created_at is '2025-01-01T00:04:00Z' after" in said
    assert "--sort-by created_at" in said
    assert pairs(path, options, **how, sort_by="created_at") == PAIRS
    assert pairs(write(path, rows), options, **how) == PAIRS


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("created_at", range(6)),
        ("turn", range(1, 7)),
        ("timestamp_ms", range(1_700_000_000_000, 1_700_000_000_006)),
        # by other names, times and the numbers of turns tell what they are
        ("sentOn", [f"2025-01-01T00:0{place}:00Z" for place in range(6)]),
        ("when", range(1_700_000_000, 1_700_000_006)),
        ("nr", range(6)),
        ("meta.at", [f"2025-01-0{place}" for place in range(1, 7)]),
        ("time.$date", [f"2025-01-0{place}" for place in range(1, 7)]),
    ],
)
def test_messages_that_run_backwards_are_sorted(key, values, options, tmp_path):
    outer, dot, inner = key.partition(".")
    turns = [
        {**turn, outer: {inner: value} if dot else value}
        for turn, value in zip(chat(), values, strict=True)
    ]
    path = write(tmp_path / "log.jsonl", [{"messages": turns[::-1]}])
    assert f"not in order: {key} is" in refusal(path, options, layout="openai")
    assert pairs(path, options, layout="openai", sort_by=key) == PAIRS


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_joined_pairs_that_run_backwards_are_sorted(suffix, options, tmp_path):
    rows = [
        {"session": name, "prompt": said, "response": reply, "sent": f"2025-06-01T09:0{n}:00Z"}
        for name in ("b", "a")
        for n, (said, reply) in enumerate(PAIRS)
    ]
    path = write(tmp_path / f"log{suffix}", rows[::-1])
    how: Any = {"layout": "context-response", "dialogue": "session"}
    found = "dialogue a are not in order: sent is '2025-06-01T09:01"
    assert found in refusal(path, options, **how)
    flags = proposed(path)
    assert flags[-4:] == ["--dialogue", "session", "--sort-by", "sent"]
    assert pairs(path, options, **reading(flags)) == PAIRS * 2
    run = scored(path, "guest_simulation", **how, sort_by="sent")
    assert run.tables["messages"].height == 2 * len(PAIRS)
    assert pairs(path, options, **how, sort_by="line") == PAIRS[::-1] * 2
    assert pairs(write(path, rows), options, **how) == PAIRS * 2


def test_histories_that_run_backwards_need_no_order(options, tmp_path):
    rows = [
        {"session": "s", "sent": f"2025-06-01T09:0{n}:00Z", "messages": chat(n)} for n in (3, 2, 1)
    ]
    path = write(tmp_path / "log.jsonl", rows)
    assert pairs(path, options, layout="openai", dialogue="session") == PAIRS


def test_rows_with_times_in_an_object_are_sorted(options, tmp_path):
    """In a cell of CSV the object is JSON text."""
    rows = [
        {"conversation_id": "c", **turn, "meta": json.dumps({"At": f"2025-01-01T00:0{place}"})}
        for place, turn in enumerate(chat(**STORED))
    ]
    path = write(tmp_path / "log.csv", rows[::-1])
    for suite, how in ((options, {"layout": "turns"}), ("guest_simulation", GUEST)):
        assert "not in order: meta.At is" in refusal(path, suite, **how)
    assert pairs(path, options, layout="turns", sort_by="meta.At") == PAIRS


@pytest.mark.parametrize(
    "beside",
    [
        {"likes": [3, 1, 2, 9, 4, 7]},  # numbers that are no count
        {"user_id": [1_700_000_001, 1_700_000_000] * 3},  # two in turn
        {"born": ["2001-02-03", "1990-01-01"] * 3},
        {"edited": [f"2025-01-0{place}" for place in range(9, 3, -1)], "sent_at": range(6)},
    ],
)
def test_what_falls_by_chance_is_no_order(beside, options, tmp_path):
    turns = [
        turn | {key: values[place] for key, values in beside.items()}
        for place, turn in enumerate(chat())
    ]
    path = write(tmp_path / "log.jsonl", [{"messages": turns}])
    assert pairs(path, options, layout="openai") == PAIRS
    # two values say nothing
    path = write(path, [{"messages": turns[:2]}])
    assert pairs(path, options, layout="openai") == PAIRS[:1]


@pytest.mark.parametrize(
    ("times", "fall"),
    [
        (["30/07/2025 21:58", "31/07/2025 09:10", "01/08/2025 08:00"], True),  # only day first
        (["7/30/2025, 9:58 PM", "7/31/2025, 12:10 AM", "8/1/2025, 12:05 PM"], True),  # only month
        (["06/01/2025 09:00", "06/01/2025 09:01", "06/01/2025 09:02"], True),  # either
        (["01.02.2025 09:00", "01.02.2025 09:01:30", "02.02.2025 09:00"], True),
        (["30/07/25 21:58", "31/07/25 09:10", "31/07/25 09:11"], True),
        # read as day/month they fall, as month/day they rise
        (["02/01/2025 09:00", "01/02/2025 09:00", "01/02/2025 09:00"], False),
        (["31/07/2025 09:00", "07/31/2025 08:00", "06/30/2025 08:00"], False),  # neither
        (["31/07/2025", "30/07/2025", "29/07/2025"], False),  # no hours
    ],
)
def test_times_by_days_and_months_are_refused_if_they_fall(times, fall, tmp_path):
    turns = [turn | {"sent": at} for turn, at in zip(chat()[:3], times, strict=True)]
    path = write(tmp_path / "log.jsonl", [{"messages": turns[::-1]}])
    if fall:
        said = refusal(path, "guest_simulation", layout="openai")
        assert "not in order: sent is " in said
        assert said.endswith(
            "Write these times as 2025-07-31T09:10:00 and type --sort-by sent. "
            "To keep the order of the file, type --sort-by line."
        )
        assert not proposed(path)
        path = write(path, [{"messages": turns}])
    run = scored(path, "guest_simulation", layout="openai")
    assert run.tables["messages"].height == 2


def test_times_of_two_units_are_not_sorted(options, tmp_path):
    times = [1_714_557_600, 1_714_557_660_000, 1_714_557_720, 1_714_557_780_000]
    rows = [{"id": "c", **turn, "time": at} for turn, at in zip(chat(2), times, strict=True)]
    path = write(tmp_path / "log.csv", rows)
    assert "Write these times as " in refusal(path, options, layout="turns", columns={"id": "id"})


def test_turns_that_are_a_tree_are_refused(options, tmp_path):
    """LibreChat lists the messages of all branches, each with the one before it."""
    turns = [
        {**turn, "messageId": str(place), "parentMessageId": str(place - 1)}
        for place, turn in enumerate(chat(2))
    ]
    path = write(tmp_path / "log.jsonl", [{"messages": turns}])
    assert pairs(path, options, layout="openai") == PAIRS[:2]
    again = {**turns[1], "messageId": "9", "content": "Watch Her."}
    path = write(path, [{"messages": [*turns[:2], again, *turns[2:]]}])
    for suite in (options, "guest_simulation"):
        said = refusal(path, suite, layout="openai")
        assert "a tree: parentMessageId is '0' in 2 of them" in said


def test_pairs_of_a_speaker_and_a_text_are_no_pairs_of_texts(options, tmp_path):
    turns = [[turn["role"], turn["content"]] for turn in chat(assistant="bot")]
    path = write(tmp_path / "log.jsonl", [{"id": "d", "conversation": turns}])
    said = refusal(path, options, layout="pairs")
    assert "the first texts of pairs are 'bot, user'" in said
    assert "--column speaker=0 --column text=1" in said
    assert pairs(path, options, **reading(proposed(path))) == PAIRS


@pytest.mark.parametrize("key", ["policy", "agent_name"])
def test_rows_that_begin_again_are_several_dialogues(key, options, tmp_path):
    rows = [{"conversation_id": "c", **turn, key: name} for name in "ab" for turn in chat(**STORED)]
    path = write(tmp_path / "log.jsonl", rows)
    said = refusal(path, "guest_simulation", **GUEST)
    assert f"begins again where {key} is 'b' after 'a'" in said
    run = scored(path, options, **reading(proposed(path)))
    assert (n_dialogues(run), len(pairs_of(run))) == (2, 2 * len(PAIRS))


@pytest.mark.parametrize("key", ["chat_ref", "call", "会话"])
def test_rows_that_are_counted_again_are_several_dialogues(key, options, tmp_path):
    rows = [
        {key: f"c{number}", "seq": at, "day": "Monday", **turn}
        for number in range(3)
        for at, turn in enumerate(chat(**STORED), 1)
    ]
    path = write(tmp_path / "log.jsonl", rows)
    for how in ({}, {"sort_by": "seq"}):
        said = refusal(path, options, layout="turns", **how)
        assert f"count seq from 1 again where {key} is 'c1'" in said
    run = scored(path, options, **reading(proposed(path)))
    assert (n_dialogues(run), len(pairs_of(run))) == (3, 3 * len(PAIRS))


@pytest.mark.parametrize(
    ("key", "suffix"),
    [("conversation", ".jsonl"), ("dialogue", ".csv"), ("chat", ".parquet"), ("dialogue", None)],
)
def test_a_cell_that_names_a_dialogue_is_asked_for(key, suffix, options, tmp_path):
    """Arrays of turns may be called so, too."""
    rows = [{key: name, **turn} for name in ("a", "b") for turn in chat(**STORED)]
    log = write(tmp_path / f"log{suffix}", rows) if suffix else pl.DataFrame(rows)
    assert f"Type --column session_id={key}" in refusal(log, options, layout="turns")
    run = scored(log, options, layout="turns", columns={"session_id": key})
    assert run.tables["dialogues"]["session_id"].to_list() == ["a", "b"]


def test_a_step_of_both_sides_is_no_second_dialogue(options, tmp_path):
    rows = [
        {"session_id": "c", "turn": at // 2, "model": None if at % 2 == 0 else "m", **turn}
        for at, turn in enumerate(chat(**STORED))
    ]
    assert pairs(write(tmp_path / "log.jsonl", rows), options, layout="turns") == PAIRS


@pytest.mark.parametrize(
    ("suite", "form", "key", "names"),
    [
        ("preference_shift", "documents", "llm", "ab"),
        ("preference_shift", "rows", "system_version", (1, 2)),
        ("guest_simulation", "documents", "model_name", "ab"),
        ("guest_simulation", "rows", "llm", "ab"),
    ],
)
def test_models_under_one_name_are_several_dialogues(suite, form, key, names, tmp_path):
    """They begin differently, and their rows take turns."""
    rows: list[Any] = [
        {"id": "c", key: names[0], "messages": chat(2)},
        {"id": "c", key: names[1], "messages": chat()[2:]},
    ]
    if form == "rows":
        rows = [
            {"conversation_id": "c", key: name, **turn, "text": f"{name}: {turn['text']}"}
            for turn in chat(**STORED)[:4]
            for name in names
        ]
    path = write(tmp_path / "log.jsonl", rows)
    given, flags = options_of(suite, tmp_path), proposed(path, suite)
    assert n_dialogues(scored(path, given, **reading(flags))) == 2
    if flags != ["--layout", "turns"]:  # which is read without it, too
        told = typed_in(refusal(path, given))
        assert n_dialogues(scored(path, given, **reading(told))) == 2


def test_traces_that_repeat_the_turns_before_are_joined(options, tmp_path):
    rows = [
        {"id": str(n), "sessionId": "s", "input": {"messages": chat()[: 2 * n + 1]},
         "output": chat()[2 * n + 1]}
        for n in range(3)
    ]  # fmt: skip
    path = write(tmp_path / "log.jsonl", rows)
    said = refusal(path, options, layout="langfuse")
    assert "2 of the first 3 dialogues are beginnings" in said
    assert "--dialogue sessionId" in said
    assert pairs(path, options, layout="langfuse", dialogue="sessionId") == PAIRS
    run = scored(path, "guest_simulation", layout="langfuse", dialogue="sessionId")
    assert run.tables["messages"].height == 3
    # traces without their history follow each other
    alone = [row | {"input": {"messages": chat()[2 * n : 2 * n + 1]}} for n, row in enumerate(rows)]
    assert pairs(write(path, alone), options, layout="langfuse", dialogue="sessionId") == PAIRS


def test_candidates_are_dialogues_by_their_index(options, tmp_path):
    choices = [{"index": n, "message": chat(1)[1] | {"content": f"No. {n}"}} for n in (1, 0)]
    row = {"custom_id": "r", "body": {"messages": chat(1)[:1]}}
    row |= {"response": {"body": {"choices": choices}}}
    run = scored(write(tmp_path / "log.jsonl", [row]), options, layout="openai-batch")
    assert [reply for _, reply in pairs_of(run)] == ["No. 0", "No. 1"]
    assert n_dialogues(run) == 2


def test_candidates_in_a_list_of_texts_are_dialogues(options, tmp_path):
    row = {"id": "d", "messages": chat()[:-1], "completions": ["No. 0", "No. 1"]}
    path = write(tmp_path / "log.jsonl", [row])
    run = scored(path, options, **reading(proposed(path)))
    replies = [text for number in ("No. 0", "No. 1") for text in (*REPLIES[:-1], number)]
    assert [reply for _, reply in pairs_of(run)] == replies
    assert run.tables["dialogues"]["session_id"].to_list() == ["d:1", "d:2"]
    assert not any("repeat" in note for note in run.notes)


def test_of_two_sides_no_one_is_taken(options, tmp_path):
    row = {"id": "d", "messages": chat()[:-1], "response_a": "Heat.", "response_b": "Her."}
    path = write(tmp_path / "log.jsonl", [row])
    assert not proposed(path)
    said = refusal(path, options, layout="openai")
    assert "each of response_a, response_b may be the last" in said
    found = pairs(path, options, layout="openai", columns={"reply": "response_b"})
    assert found[-1] == (ASKED[-1], "Her.")


@pytest.mark.parametrize("key", ["conversation_id", "session_uuid", "thread_ref", "threadUuid"])
def test_rows_of_one_conversation_are_asked_to_be_joined(key, options, tmp_path):
    rows = [{key: "c", **pair} for pair in sides("prompt", "response")]
    path = write(tmp_path / "log.jsonl", rows)
    assert f"have the {key} 'c', and go on" in refusal(path, options, layout="context-response")
    flags = proposed(path)
    assert flags == ["--layout", "context-response", "--dialogue", key]
    run = scored(path, options, **reading(flags))
    assert (n_dialogues(run), pairs_of(run)) == (1, PAIRS)
    # the same question to two models is two dialogues
    twice = [rows[0] | {"model": model} for model in ("a", "b")]
    assert pairs(write(path, twice), options, layout="context-response") == PAIRS[:1] * 2


def test_thoughts_and_other_letters_are_counted(options, tmp_path):
    turns = chat(1)
    turns[0]["content"] = "Schindler\u2019s List"
    turns[1]["content"] = f"<think>\nClueless?\n</think>\n\n{REPLIES[0]}"
    marked = [turns[0], {"role": "assistant", "content": "<p>Heat, <b>1995</b></p>"}]
    rows = [{"messages": each} for each in (turns, chat(1), marked)]
    path = write(tmp_path / "log.jsonl", rows)
    run = scored(path, options, layout="openai")
    assert any("1 row has tags of HTML such as <p>" in note for note in run.notes)
    assert any("1 row has thoughts in tags such as <think>" in note for note in run.notes)
    assert any(note.startswith("2 rows have curly apostrophes") for note in run.notes)
    found = pairs(path, options, layout="openai", without="think")
    assert found[:2] == [("Schindler\u2019s List", REPLIES[0]), PAIRS[0]]


def test_cells_of_lists_are_named_as_python(options, tmp_path):
    path = write(tmp_path / "repr.csv", [{"id": "d", "messages": repr(chat())}])
    said = refusal(path, options, layout="openai")
    assert "as Python prints it, with single quotes" in said


def test_an_upload_in_a_pair_has_no_text(options, tmp_path):
    document = [list(PAIRS[0]), [["/uploads/f.png", None], None], list(PAIRS[1])]
    path = write(tmp_path / "log.jsonl", [document])
    assert pairs(path, options, layout="pairs") == PAIRS[:2]


def test_parts_of_one_text_are_not_lines(options, tmp_path):
    """Telegram writes a text with a link as texts and objects."""
    turns = chat(1)
    turns[0]["content"] = ["A ", {"type": "bold", "text": "drama"}, ", please."]
    path = write(tmp_path / "log.jsonl", [{"messages": turns}])
    assert pairs(path, options, layout="openai") == PAIRS[:1]


def test_rejects_in_memory_are_refused_or_warned_of(options, tmp_path):
    path = write(tmp_path / "log.jsonl", [{"id": str(n), "messages": chat()} for n in range(3)])
    path.write_text(path.read_text() + '{"id": "cut", "mess')
    assert "1 of 4 lines is a reject" in refusal(path, options, layout="openai")
    with pytest.warns(fastscore.RejectsWarning, match="Not scored: 1 of 4 lines"):
        scored(path, options, layout="openai", max_rejects=0.5)


def test_objects_in_memory_are_read_or_refused_in_one_sentence(options, tmp_path):
    rows = [{"id": "d", "messages": chat()}]
    structs = pl.DataFrame(rows).to_struct("rows")
    for source in (rows, iter(rows), structs, structs.to_arrow(), {"a": rows[0]}.values()):
        assert pairs(source, options, layout="openai") == PAIRS
    path = write(tmp_path / "log.jsonl", rows)
    for mode in ("r", "rb"):
        with path.open(mode) as file, pytest.raises(UsageError, match="is an open file"):
            scored(file, options, layout="openai")
    for wrong in ([b"x"], [json.dumps(rows[0])], 3, b"log.jsonl"):
        with pytest.raises(FastscoreError):
            scored(wrong, options, layout="openai")


@pytest.mark.filterwarnings("ignore")
def test_flags_as_text_are_counted(tmp_path):
    turn = {"turn_pair_id": 1, "turn_status": "ok", "pred_assistant_text": "Yes."}
    rows = [
        {"dialog_id": str(flag), "valid_dialog": flag, "turns": [turn]} for flag in (True, "False")
    ]
    path = write(tmp_path / "log.jsonl", rows)
    run = scored(path, "memory_finance", max_rejects=1.0)
    assert any("1 dialogue has a valid_dialog that is a text" in note for note in run.notes)


def test_predictions_for_steps_that_there_are_not_are_counted():
    of = {"dialogue_uid": "d", "utterance_index": 0}
    rows: list[dict[str, Any]] = [
        {**of, "event": "predicted", "step": step, "prediction": "a film"} for step in (1, 2)
    ]
    rows.append({**of, "event": "utterance_complete", "ground_truth": "a film"})
    run = scored(rows, fastscore.ScoreDialogue(lex_weight=1.0))
    assert any(note.startswith("1 prediction is unscored") for note in run.notes)


def test_system_is_a_prompt_where_an_assistant_speaks(options, tmp_path):
    prompt = {"role": "system", "content": "Recommend films."}
    rows = [{"messages": [prompt, *chat()]}, {"messages": chat(assistant="system")}]
    path = write(tmp_path / "log.jsonl", rows)
    assert "It is a prompt in others" in refusal(path, options, layout="openai")


def test_times_of_posts_are_no_texts(options, tmp_path):
    rows = [
        {"created_at": f"Tue Oct 31 22:1{place}:47 +0000 2017", "text": turn["content"]}
        for place, turn in enumerate(chat())
    ]
    assert "created_at=" not in refusal(write(tmp_path / "log.csv", rows), options)


def test_models_of_joined_pairs_stay_apart(tmp_path):
    rows = [
        {"conversation_id": "c", "llm": name, "prompt": asked, "response": f"{name}: {reply}"}
        for name in "ab"
        for asked, reply in PAIRS
    ]
    path = write(tmp_path / "log.jsonl", rows)
    for suite in SUITES:
        run = scored(path, options_of(suite, tmp_path), **reading(proposed(path, suite)))
        assert n_dialogues(run) == 2


def test_what_changes_once_may_be_a_topic(options, tmp_path):
    rows = [
        {"topic": "films" if at < 2 else "music", **turn} for at, turn in enumerate(chat(**STORED))
    ]
    path = write(tmp_path / "log.jsonl", rows)
    assert not proposed(path)
    assert "probably several dialogues" in refusal(path, options)
    assert pairs(path, options, columns={"session_id": ""}) == PAIRS


def by_id() -> dict[str, Any]:
    """Return dialogues by their ids, in other words."""
    said = chat(2, speaker="who", text="said", user="caller", assistant="operator")
    return {f"call-{number}": {"started": "2025", "transcript": said} for number in range(4)}


@pytest.mark.parametrize("begin", ["", "chats."])
def test_one_of_several_dialogues_by_their_ids_is_refused(begin, options, tmp_path):
    path = write(tmp_path / "log.json", {"version": 2, "chats": by_id()} if begin else by_id())
    columns = {"turns": f"{begin}call-1.transcript", "speaker": "who", "text": "said"}
    values = {"speaker": {"caller": "user", "operator": "assistant"}}
    found = f"{begin}call-1.transcript is one dialogue of .* those of 'call-0', 'call-2', 'call-3'"
    for suite in (options, fastscore.GuestSimulation()):
        assert re.search(found, refusal(path, suite, columns=columns, values=values))


def test_a_request_beside_its_response_is_no_dialogue_by_its_id(options, tmp_path):
    both = {"request": {"transcript": chat(2)[:3]}, "response": {"transcript": chat(2)[3:]}}
    columns = {"turns": "request.transcript", "reply": "response.transcript"}
    columns |= {"speaker": "role", "text": "content"}
    assert pairs(write(tmp_path / "log.json", both), options, columns=columns) == PAIRS[:2]


def test_two_layouts_that_read_a_log_in_different_ways_are_named(tmp_path):
    other = chat(2, "from", "value", user="human", assistant="gpt")
    path = write(tmp_path / "log.jsonl", [{"messages": chat(), "conversations": other}])
    (file,) = fastscore.inspect(path).files
    said = "different ways: openai, sharegpt. With --layout openai: "
    assert said in file.unfit["preference_shift"]
    assert "conversations holds a chat, and is not read." in file.unfit["preference_shift"]


def test_a_reply_in_an_array_of_its_own_is_no_dialogue(options, tmp_path):
    row = {"llm.input_messages": chat()[:-1], "llm.output_messages": chat()[-1:]}
    path = write(tmp_path / "log.jsonl", [row])
    flags = proposed(path)
    assert flags[-2:] == ["--column", "reply=llm.output_messages"]
    assert pairs(path, options, **reading(flags)) == PAIRS
    both = {"model_a": "m", "conversation_a": chat(), "conversation_b": chat(2)}
    assert not proposed(write(path, [both]))


OF_LAYOUTS: dict[str, Any] = {
    "openai": {"id": "d1", "messages": chat()},
    "nested": {"dialogues": [{"id": name, "messages": chat()} for name in ("d1", "d2")]},
    "langfuse": {"id": "d1", "input": {"messages": chat()[:-1]}, "output": chat()[-1]},
    "turns": {"conversation_id": "d1", "speaker": "USER", "text": "A drama, please."},
}


@pytest.mark.parametrize(
    ("layout", "name", "beside"),
    [
        ("openai", "session_id", "messages"),
        ("openai", "speaker", "content"),
        ("openai", "dialogue", "messages"),
        ("nested", "session_id", "id"),
        ("nested", "model_name", "dialogues"),
        ("nested", "sort_by", "content"),
        ("langfuse", "judge", "input"),
        ("langfuse", "text", "content"),
        ("langfuse", "dialogue", "input"),
        ("turns", "session_id", "speaker"),
        ("turns", "text", "text"),
        ("turns", "sort_by", "text"),
    ],
)
def test_a_key_that_no_line_has_is_refused_under_every_layout(
    layout, name, beside, options, tmp_path
):
    """A key that is there is named, where a part of a chat is looked for."""
    rows = [OF_LAYOUTS[layout]] * 500  # more than are sampled
    for key in ("nokey", "meta.nokey") if name == "session_id" else ("nokey",):
        how = {name: key} if name in ("dialogue", "sort_by") else {"columns": {name: key}}
        for source in (write(tmp_path / "log.jsonl", rows), rows):
            said = refusal(source, options, layout=layout, **how)
            assert all(each in said for each in (name, key, beside))


def test_an_id_that_only_later_lines_have_is_read(options, tmp_path):
    rows = [{"messages": chat()}] * 500 + [{"meta": {"key": "d1"}, "messages": chat()}]
    for source in (write(tmp_path / "log.jsonl", rows), rows):
        run = scored(source, options, layout="openai", columns={"session_id": "meta.key"})
        names = run.tables["dialogues"]["dialogue"].to_list()
        assert [name for name in names if name.startswith("d1")] == ["d1"]


def test_rows_that_are_turns_hold_no_turns(options, tmp_path):
    path = write(tmp_path / "log.jsonl", [OF_LAYOUTS["turns"]])
    for columns in ({"conversation": "messages"}, {"reply": "output"}):
        with pytest.raises(UsageError, match="Each row is a turn by the layout"):
            scored(path, options, layout="turns", columns=columns)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("turns", ("user", "assistant")),
        ("history", ("customer", "bot")),
        ("messages", ("human", "ai")),
        ("conversation", ("user", "assistant")),
    ],
)
def test_objects_of_two_sides_are_pairs(key, names, options, tmp_path):
    rows = [{"id": name, key: sides(*names)} for name in ("d1", "d2")]
    path = write(tmp_path / "log.jsonl", rows)
    assert typed_in(refusal(path, options)) == ["--layout", "pairs"]
    assert proposed(path) == proposed(path, "guest_simulation") == ["--layout", "pairs"]
    for source in (path, rows):
        assert pairs(source, options, layout="pairs") == PAIRS * 2


@pytest.mark.parametrize(
    ("key", "suffix"),
    [
        ("conversation_id", ".jsonl"),
        ("chat_id", ".csv"),
        ("ticketId", ".csv"),
        ("conv", ".jsonl"),
        ("session", ".parquet"),
        ("case_no", ".csv"),
        ("Vorgang", ".jsonl"),
    ],
)
def test_rows_of_two_sides_are_pairs(key, suffix, options, tmp_path):
    rows = [{key: "d1", **pair} for pair in sides("customer", "bot")]
    rows += [{key: "d2", **pair} for pair in sides("customer", "bot", PAIRS[1:])]
    path = write(tmp_path / f"log{suffix}", rows)
    flags = ["--layout", "pairs", "--dialogue", key.lower() if suffix == ".csv" else key]
    assert proposed(path) == proposed(path, "guest_simulation") == flags
    run = scored(path, options, **reading(flags))
    assert pairs_of(run) == PAIRS + PAIRS[1:]
    assert run.tables["dialogues"]["dialogue"].to_list() == ["d1", "d2"]


@pytest.mark.parametrize(
    ("key", "value", "suffix"),
    [
        ("conversation", "d{}", ".jsonl"),
        ("chat", "{}", ".csv"),
        ("dialogue", "{}", ".jsonl"),
        ("messages", "d{}", ".csv"),
        ("messages", "{}", ".jsonl"),
    ],
)
def test_a_cell_that_names_a_dialogue_is_no_array_of_its_turns(
    key, value, suffix, options, tmp_path
):
    names = ("User", "Assistant") if suffix == ".csv" else ("user", "assistant")
    rows = [{key: value.format(n), **pair} for n in (1, 2) for pair in sides(*names)]
    path = write(tmp_path / f"log{suffix}", rows)
    if key != "messages":  # that is called as no dialogue is
        said = refusal(path, options, layout="pairs")
        assert re.search(f"have the {key} .* Type --dialogue {key}", said)
    run = scored(path, options, layout="pairs", dialogue=key)
    assert pairs_of(run) == PAIRS * 2
    assert run.tables["dialogues"]["dialogue"].to_list() == [value.format(n) for n in (1, 2)]


def test_an_array_of_pairs_is_a_dialogue_unless_each_is_named(options, tmp_path):
    """As `[[user, assistant], ...]` is; pairs with ids are rows."""
    said = sides("user", "assistant")
    for name, rows in (("array.json", said), ("line.jsonl", [said])):
        run = scored(write(tmp_path / name, rows), options, layout="pairs")
        assert (n_dialogues(run), pairs_of(run)) == (1, PAIRS)
    named = [{"id": f"d{n}", **pair} for n, pair in enumerate(said)]
    run = scored(write(tmp_path / "named.json", named), options, layout="pairs")
    assert run.tables["dialogues"]["dialogue"].to_list() == ["d0", "d1", "d2"]


def test_sides_that_are_not_known_are_asked_for(options, tmp_path):
    """Neither their order nor their places say who is who."""
    said = sides("helper", "asker")
    for name, rows in {
        "array": [{"id": "d1", "turns": said}],
        "rows": [{"id": f"d{n}", **pair} for n, pair in enumerate(said)],
    }.items():
        path = write(tmp_path / f"{name}.jsonl", rows)
        assert proposed(path) == []
        told = refusal(path, options)
        assert "say who is who, in this way or the other" in told
        assert pairs(path, options, **reading(typed_in(told))) == PAIRS
        other = {"speaker": {"asker": "USER", "helper": "SYSTEM"}}
        swapped = pairs(path, options, layout="pairs", values=other, alternate="user")
        assert swapped == [(reply, asked) for asked, reply in PAIRS]


@pytest.mark.parametrize("reply", ["agent", "system"])
def test_a_side_that_is_not_read_is_named(reply, options, tmp_path):
    path = write(tmp_path / "log.jsonl", [{"id": "d1", "turns": sides("user", reply)}])
    said = refusal(path, options, layout="pairs")
    assert re.search(f"only 'user' speaks .* {reply!r} is not read", said)
    for suite in SUITES:
        assert proposed(path, suite)[-1] == f"speaker:{reply}=assistant"
    assert pairs(path, options, **reading(proposed(path))) == PAIRS


def test_who_begins_is_asked_for_where_the_reply_is_first(options, tmp_path):
    rows = [{"id": "d1", "turns": [{"bot": r, "user": a} for a, r in PAIRS]}]
    path = write(tmp_path / "log.jsonl", rows)
    said = refusal(path, options, layout="pairs")
    assert re.search(r"bot is before user .* Type --alternate user", said)
    assert pairs(path, options, layout="pairs", alternate="user") == PAIRS
    # what the assistant says before the user is left out
    begun = pairs(path, options, layout="pairs", alternate="assistant")
    assert begun == [(asked, reply) for (asked, _), (_, reply) in pairwise(PAIRS)]


OWN = {
    "preference_shift": (
        ("session_id", "conversation", "speaker", "text", "model_name"), ("USER", "SYSTEM", "")),
    "guest_simulation": (
        ("conversation_id", "", "role", "content", "model"), ("guest", "assistant", "system")),
    "group_travel": (
        ("dialogue_id", "turns", "speaker", "utterance", ""), ("user", "System", "")),
}  # fmt: skip
"""Of a suite its names of a chat's parts, and its words for user, assistant and prompt."""


@pytest.mark.parametrize("suite", OWN)
def test_one_mapping_is_that_of_all_suites(suite):
    (name, array, speaker, text, model), words = OWN[suite]
    asked = ("asker", "helper", "shop")
    shared = {"turns": "log", "speaker": "who", "text": "said", "id": "number"}
    columns = {name: "number", speaker: "who", text: "said"} | ({array: "log"} if array else {})
    if model:
        columns, shared = columns | {model: "by"}, shared | {"model": "by"}
    if not array:
        columns |= {speaker: "log[].who", text: "log[].said"}
    source, roles = load_suite(suite).source, ("user", "assistant", "system")
    by_own, by_shared = (
        map_source(source, column_map(parts, {by: dict(zip(asked, meant, strict=True))})).chat
        for parts, by, meant in ((columns, speaker, words), (shared, "speaker", roles))
    )
    for part in ("turns", "speaker", "text", "id", "model"):
        assert getattr(by_shared.layout, part) == getattr(by_own.layout, part)
    assert role_words(by_shared.layout, by_shared.rows) == role_words(by_own.layout, by_own.rows)


def test_a_layout_maps_columns_of_any_suite_by_the_shared_names(options, tmp_path):
    layout = tmp_path / "mine.toml"
    layout.write_text('title = "mine"\n[columns]\nturns = "log"\nspeaker = "who"\ntext = "said"\n')
    path = write(tmp_path / "log.jsonl", [{"id": "d1", "log": chat(3, "who", "said")}])
    assert pairs(path, options, layout=str(layout)) == PAIRS
    guests = scored(path, "guest_simulation", layout=str(layout))
    assert guests.tables["messages"]["dialogue"].to_list() == ["d1"] * 3


@pytest.mark.parametrize(("layout", "odd"), [("openai", 5), ("openai", [1]), ("langfuse", 1.5)])
def test_an_element_that_is_no_turn_is_not_read_as_a_text(layout, odd, tmp_path):
    """By columns at paths (openai) as document by document (langfuse)."""
    messages = [*chat(1), odd, *chat(1)]
    row: Any = {"id": "d1", "messages": messages}
    if layout == "langfuse":
        row = {"id": "d1", "input": {"messages": messages}, "output": "Watch Heat."}
    path = write(tmp_path / "log.jsonl", [row])
    with pytest.warns(fastscore.RejectsWarning, match="expected a JSON object"):
        run = scored(path, "guest_simulation", layout=layout, max_rejects=1.0)
    assert run.rejects.select("line", "reason").rows() == [(1, "not_an_object")]
    assert run.tables["messages"].height == 2  # of guests


@pytest.mark.parametrize(
    ("key", "values", "suite"),
    [
        ("minute", ("10:00", "10:01"), "preference_shift"),
        ("timestamp", ("2025-01-01 10:00:00", "2025-01-01 10:00:05"), "guest_simulation"),
        ("step", (0, 1), "preference_shift"),
        ("turn_idx", ("first", "second"), "guest_simulation"),
    ],
)
def test_times_and_step_numbers_are_no_speakers(key, values, suite, tmp_path):
    turns = [
        {"dialogue": name, key: values[place % 2], "text": turn["content"]}
        for name in "ab"
        for place, turn in enumerate(chat())
    ]
    log = write(tmp_path / "log.jsonl", turns)
    assert f"={key}" not in refusal(log, options_of(suite, tmp_path))


def test_a_text_is_no_column_of_numbers(options, tmp_path):
    # `ref` is also what a reference text is called
    turns = [
        {"ref": k, "wer": turn["role"], "was": turn["content"]}
        for k in range(2)
        for turn in chat(user="Kunde", assistant="Berater")
    ]
    said = refusal(write(tmp_path / "log.csv", turns), options)
    roles = "--value speaker:Berater=assistant --value speaker:Kunde=user"
    assert f"--column speaker=wer --column text=was {roles} --column id=ref" in said
