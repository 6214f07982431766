"""Kinds of logs that other tools write: read by what they say of themselves, or asked for."""

import csv
import io
import json
import re
import shlex
import shutil
import subprocess
import warnings
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.errors import FastscoreError, InputError, UsageError
from fastscore.logs.inputs.column_map import column_map, map_source, role_words
from fastscore.suites.registry import load_suite

ASKED = ["A drama, please.", "Rather a comedy.", "With Al Pacino."]
REPLIES = ["Watch Heat.", "Watch Clueless.", "Heat has Al Pacino."]
PAIRS = list(zip(ASKED, REPLIES, strict=True))


def chat(n_pairs: int = 3, speaker: str = "role", text: str = "content", **words: str) -> list[Any]:
    """Return turns, with other words for user and assistant."""
    user, assistant = words.get("user", "user"), words.get("assistant", "assistant")
    return [
        {speaker: who, text: said}
        for pair in PAIRS[:n_pairs]
        for who, said in zip((user, assistant), pair, strict=True)
    ]


@pytest.fixture
def options(tmp_path: Path) -> fastscore.PreferenceShift:
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(json.dumps([{"name": "Heat", "genre": ["drama"]}]))
    return fastscore.PreferenceShift(catalogue=str(catalogue), segments="metadata")


def write(path: Path, rows: list[Any]) -> Path:
    if path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".csv":
        text = io.StringIO()
        table = csv.DictWriter(text, rows[0])
        table.writeheader()
        table.writerows(rows)
        path.write_text(text.getvalue())
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def pairs(path: Path, options: Any, **reading: Any) -> list[tuple[str, str]]:
    run = fastscore.score(path, options, embedder=None, max_rejects=1.0, **reading)
    return run.tables["turns"].select("user_text", "system_text").rows()


def proposed(path: Path, suite: str = "preference_shift") -> list[str]:
    """Return the flags that inspect proposes."""
    (file,) = fastscore.inspect(path).files
    return [word for fit in file.fits if fit.suite == suite for word in fit.flags]


def reading(flags: list[str]) -> dict[str, Any]:
    """Return the arguments that flags are in Python."""
    found: dict[str, Any] = {}
    for flag, word in zip(flags[::2], flags[1::2], strict=True):
        if flag == "--column":
            found.setdefault("columns", {}).update([word.split("=", 1)])
        elif flag == "--value":
            name, words = word.split(":", 1)
            table = found.setdefault("values", {}).setdefault(name, {})
            table.update([words.split("=", 1)])
        else:
            found[flag.removeprefix("--").replace("-", "_")] = word
    return found


def typed_in(error: Exception) -> list[str]:
    """Return the flags that a refusal says to type."""
    found = re.search(r"(?:Type|example|round:|begins:|mean:) (--.*?)\.?(?: [A-Z]|$)", str(error))
    return shlex.split(found[1]) if found else []


TIMED = [
    {**turn, "created_at": f"2025-01-01T00:{minute:02}:00Z"} for minute, turn in enumerate(chat())
]
EVENTS = [
    {"name": "gen_ai.user.message", "attributes": {"content": ASKED[0]}},
    {"name": "gen_ai.choice", "attributes": {"message": json.dumps(chat(1)[1])}},
]
NODES = {
    "root": {"id": "root", "parent": None, "message": None},
    **{
        str(place): {
            "id": str(place),
            "parent": str(place - 1) if place else "root",
            "message": {
                "author": {"role": turn["role"]},
                "content": {"content_type": "text", "parts": [turn["content"]]},
            },
        }
        for place, turn in enumerate(chat())
    },
    "other": {
        "id": "other",
        "parent": "0",
        "message": {"author": {"role": "assistant"}, "content": {"parts": ["Watch Her."]}},
    },
}


@pytest.mark.parametrize(
    ("name", "document", "flags"),
    [
        ("tau.json", {"task_id": 1, "trial": 0, "traj": chat()}, ["--layout", "tau-bench"]),
        (
            "tau2.jsonl",
            {"info": {}, "simulations": [{"task_id": "1", "trial": 0, "messages": chat()}]},
            ["--layout", "tau2-bench"],
        ),
        (
            "chatgpt.json",
            {"conversation_id": "c", "current_node": "5", "mapping": NODES},
            ["--layout", "chatgpt"],
        ),
        (
            "claude.json",
            {"uuid": "c", "chat_messages": chat(speaker="sender", text="text", user="human")},
            ["--layout", "claude"],
        ),
        (
            "label.json",
            {"id": 1, "data": {"dialogue": chat(speaker="author", text="text", assistant="bot")}},
            ["--layout", "label-studio"],
        ),
        (
            "botium.jsonl",
            {
                "header": {"name": "c"},
                "conversation": chat(
                    speaker="sender", text="messageText", user="me", assistant="bot"
                ),
            },
            ["--layout", "botium"],
        ),
        (
            "preferences.jsonl",
            {
                "prompt": chat()[:-1],
                "chosen": chat()[-1:],
                "rejected": [{"role": "assistant", "content": "Watch Her."}],
            },
            ["--layout", "hf-messages"],
        ),
        ("lists.jsonl", {"messages": {"role": [t["role"] for t in chat()],
                                      "content": [t["content"] for t in chat()]}},
         ["--layout", "openai"]),
        ("choices.jsonl", {"messages": chat()[:-1], "choices": [{"message": chat()[-1]}]},
         ["--layout", "openai-batch"]),
        ("message.jsonl", {"messages": chat()[:-1], "message": chat()[-1]},
         ["--layout", "openai", "--column", "reply=message"]),
        ("output.jsonl", {"messages": chat()[:-1], "model_output": REPLIES[-1]},
         ["--layout", "openai", "--column", "reply=model_output"]),
        ("context.jsonl", {"context": [t["content"] for t in chat()[:-1]], "resp": REPLIES[-1]},
         ["--layout", "context-response", "--column", "reply=resp"]),
    ],
)  # fmt: skip
def test_a_log_is_read_by_its_own_keys(
    name: str, document: Any, flags: list[str], options: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / name, [document])
    assert proposed(path) == flags
    assert pairs(path, options, **reading(flags)) == PAIRS


def test_rows_of_sessions_are_joined(options: Any, tmp_path: Path) -> None:
    rows = [{"type": "summary", "summary": "Films"}] + [
        {"type": turn["role"], "sessionId": "s", "message": turn, "timestamp": place}
        for place, turn in enumerate(chat())
    ]
    path = write(tmp_path / "log.jsonl", rows)
    assert proposed(path) == ["--layout", "claude-code"]
    assert pairs(path, options, layout="claude-code") == PAIRS


def test_events_of_spans_are_turns(options: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", [{"traceId": "t", "events": EVENTS}])
    assert proposed(path) == ["--layout", "otel-events"]
    assert pairs(path, options, layout="otel-events") == PAIRS[:1]


def test_words_of_a_dialogue_decide_its_roles(options: Any, tmp_path: Path) -> None:
    """`agent` is a guest of guest_simulation, but not beside a user."""
    path = write(tmp_path / "log.jsonl", [{"messages": chat(assistant="agent")}])
    for suite in ("guest_simulation", "preference_shift"):
        flags = ["--layout", "openai", "--value", "speaker:agent=assistant"]
        assert proposed(path, suite) == flags
    with pytest.raises(InputError, match="does not name 'agent'"):
        fastscore.score(path, "guest_simulation", layout="openai")


def test_a_colleague_of_the_bot_is_no_guest(options: Any, tmp_path: Path) -> None:
    """`agent` beside a user replies, whoever else does."""
    turns = chat(speaker="sender", text="message", user="customer", assistant="bot")
    turns[-1]["sender"] = "agent"
    path = write(tmp_path / "log.jsonl", [{"transcript": turns}])
    words = ("agent=assistant", "bot=assistant", "customer=user")
    for suite in ("guest_simulation", "preference_shift"):
        assert [w for w in proposed(path, suite) if w.startswith("speaker:")] == [
            f"speaker:{word}" for word in words
        ]
    assert pairs(path, options, **reading(proposed(path))) == PAIRS[:3]


def test_lists_of_texts_are_asked_for(options: Any, tmp_path: Path) -> None:
    """A list of two texts is no pair where others have more."""
    texts = [turn["content"] for turn in chat()]
    path = write(tmp_path / "log.jsonl", [{"dialog": texts}, {"dialog": texts[:2]}])
    assert proposed(path) == []
    with pytest.raises(InputError) as refused:
        fastscore.score(path, options, embedder=None)
    flags = str(refused.value).rpartition("begins: ")[2].removesuffix(".").split()
    assert flags == ["--column", "turns=dialog", "--alternate", "user"]
    assert pairs(path, options, **reading(flags)) == PAIRS + PAIRS[:1]


def test_a_title_above_a_table_is_named(tmp_path: Path) -> None:
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
def test_a_whole_transcript_in_a_text_is_named(
    text: str, is_transcript: bool, options: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "log.jsonl", [{"key": name, "chat_log": text} for name in "ab"])
    with pytest.raises(InputError) as refused:
        fastscore.score(path, options, embedder=None)
    (file,) = fastscore.inspect(path).files
    for told in (str(refused.value), file.unfit["preference_shift"] + file.asked["chats"]):
        assert ("'chat_log' has whole transcripts. Write a row for each" in told) is is_transcript


def test_turns_take_turns_only_if_asked(options: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", [{"messages": [turn["content"] for turn in chat()]}])
    with pytest.raises(InputError, match="alternate"):
        fastscore.score(path, options, embedder=None, layout="openai")
    assert pairs(path, options, layout="openai", alternate="user") == PAIRS
    with pytest.raises(UsageError, match="alternate is 'bot'"):
        pairs(path, options, layout="openai", alternate="bot")


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_mails_are_sorted_by_their_times(suffix: str, options: Any, tmp_path: Path) -> None:
    """The order of the instants is none of the texts: 00:30 +0300 is before 22:00 +0000."""
    times = ["Wed, 01 May 2024 23:30:00 +0200", "Thu, 02 May 2024 00:31:00 +0300",
             "Wed, 01 May 2024 21:32:00 +0000", "Wed, 01 May 2024 16:33:00 -0500"]  # fmt: skip
    rows = [
        {
            "thread_id": "t",
            "from": turn["role"],
            "date": at,
            "subject": "Film",
            "body": turn["content"],
        }
        for turn, at in zip(chat(2), times, strict=True)
    ]
    path = write(tmp_path / f"log{suffix}", rows[::-1])
    flags = proposed(path)
    assert flags[:4] == ["--layout", "turns", "--column", "text=body"]
    assert ["--sort-by", "date"] in [flags[k : k + 2] for k in range(0, len(flags), 2)]
    if suffix == ".jsonl":
        with pytest.raises(InputError) as refused:
            fastscore.score(path, options, embedder=None)
        assert str(refused.value).endswith(f"Type {shlex.join(flags)}.")
    assert pairs(path, options, **reading(flags)) == PAIRS[:2]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_rows_that_run_backwards_are_sorted_or_refused(
    suffix: str, options: Any, tmp_path: Path
) -> None:
    rows = [{"conversation_id": "c", **turn} for turn in TIMED]
    path = write(tmp_path / f"log{suffix}", rows[::-1])
    with pytest.raises(InputError, match="created_at is '2025-01-01T00:04:00Z' after") as error:
        pairs(path, options, layout="turns", values=reading(WORDS)["values"])
    assert "--sort-by created_at" in str(error.value)
    said = {"layout": "turns", "values": reading(WORDS)["values"], "sort_by": "created_at"}
    assert pairs(path, options, **said) == PAIRS
    assert pairs(write(path, rows), options, **(said | {"sort_by": None})) == PAIRS


WORDS = ["--value", "speaker:user=USER", "--value", "speaker:assistant=SYSTEM"]


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
def test_messages_that_run_backwards_are_sorted(
    key: str, values: Any, options: Any, tmp_path: Path
) -> None:
    outer, dot, inner = key.partition(".")
    turns = [
        {**turn, outer: {inner: value} if dot else value}
        for turn, value in zip(chat(), values, strict=True)
    ]
    path = write(tmp_path / "log.jsonl", [{"messages": turns[::-1]}])
    with pytest.raises(InputError, match=rf"not in order: {re.escape(key)} is"):
        pairs(path, options, layout="openai")
    assert pairs(path, options, layout="openai", sort_by=key) == PAIRS


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_joined_pairs_that_run_backwards_are_sorted(
    suffix: str, options: Any, tmp_path: Path
) -> None:
    rows = [
        {"session": name, "prompt": said, "response": reply, "sent": f"2025-06-01T09:0{n}:00Z"}
        for name in ("b", "a")
        for n, (said, reply) in enumerate(PAIRS)
    ]
    path = write(tmp_path / f"log{suffix}", rows[::-1])
    said = {"layout": "context-response", "dialogue": "session"}
    with pytest.raises(InputError, match="dialogue a are not in order: sent is '2025-06-01T09:01"):
        pairs(path, options, **said)
    flags = proposed(path)
    assert flags[-4:] == ["--dialogue", "session", "--sort-by", "sent"]
    assert pairs(path, options, **reading(flags)) == PAIRS * 2
    run = fastscore.score(path, "guest_simulation", **said, sort_by="sent")
    assert run.tables["messages"].height == 2 * len(PAIRS)
    assert pairs(path, options, **said, sort_by="line") == PAIRS[::-1] * 2
    assert pairs(write(path, rows), options, **said) == PAIRS * 2


def test_histories_that_run_backwards_need_no_order(options: Any, tmp_path: Path) -> None:
    rows = [
        {"session": "s", "sent": f"2025-06-01T09:0{n}:00Z", "messages": chat(n)}
        for n in range(1, 4)
    ]
    path = write(tmp_path / "log.jsonl", rows[::-1])
    assert pairs(path, options, layout="openai", dialogue="session") == PAIRS


def test_rows_with_times_in_an_object_are_sorted(options: Any, tmp_path: Path) -> None:
    """In a cell of CSV the object is JSON text."""
    rows = [
        {"conversation_id": "c", **turn, "meta": json.dumps({"At": f"2025-01-01T00:0{place}"})}
        for place, turn in enumerate(chat(speaker="speaker", user="USER", assistant="SYSTEM"))
    ]
    path = write(tmp_path / "log.csv", rows[::-1])
    guest = reading([*GUEST[:2], "--value", "role:USER=guest", "--value", "role:SYSTEM=assistant"])
    for suite, given in ((options, {"layout": "turns"}), ("guest_simulation", guest)):
        with pytest.raises(InputError, match=r"not in order: meta\.At is"):
            fastscore.score(path, suite, embedder=None, **given)
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
def test_what_falls_by_chance_is_no_order(beside: Any, options: Any, tmp_path: Path) -> None:
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
def test_times_by_days_and_months_are_refused_if_they_fall(
    times: list[str], fall: bool, tmp_path: Path
) -> None:
    turns = [turn | {"sent": at} for turn, at in zip(chat()[:3], times, strict=True)]
    path = write(tmp_path / "log.jsonl", [{"messages": turns[::-1]}])
    if fall:
        with pytest.raises(InputError, match="not in order: sent is ") as error:
            fastscore.score(path, "guest_simulation", layout="openai")
        assert str(error.value).endswith(
            "Write these times as 2025-07-31T09:10:00 and type --sort-by sent. "
            "To keep the order of the file, type --sort-by line."
        )
        assert not proposed(path)
        path = write(path, [{"messages": turns}])
    run = fastscore.score(path, "guest_simulation", layout="openai")
    assert run.tables["messages"].height == 2


def test_turns_that_are_a_tree_are_refused(options: Any, tmp_path: Path) -> None:
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
        with pytest.raises(InputError, match="a tree: parentMessageId is '0' in 2 of them"):
            fastscore.score(path, suite, embedder=None, layout="openai")


def test_pairs_of_a_speaker_and_a_text_are_no_pairs_of_texts(options: Any, tmp_path: Path) -> None:
    turns = [[turn["role"], turn["content"]] for turn in chat(assistant="bot")]
    path = write(tmp_path / "log.jsonl", [{"id": "d", "conversation": turns}])
    with pytest.raises(InputError, match="the first texts of pairs are 'bot, user'") as error:
        pairs(path, options, layout="pairs")
    assert "--column speaker=0 --column text=1" in str(error.value)
    assert pairs(path, options, **reading(proposed(path))) == PAIRS


@pytest.mark.parametrize("key", ["policy", "agent_name"])
def test_rows_that_begin_again_are_several_dialogues(
    key: str, options: Any, tmp_path: Path
) -> None:
    rows = [
        {"conversation_id": "c", **turn, key: name}
        for name in ("a", "b")
        for turn in chat(speaker="speaker", text="text", user="USER", assistant="SYSTEM")
    ]
    path = write(tmp_path / "log.jsonl", rows)
    with pytest.raises(InputError, match=f"begins again where {key} is 'b' after 'a'"):
        fastscore.score(path, "guest_simulation", **reading(GUEST))
    run = fastscore.score(path, options, embedder=None, **reading(proposed(path)))
    assert run.tables["dialogues"].height == 2
    assert run.tables["turns"].height == 2 * len(PAIRS)


@pytest.mark.parametrize("key", ["chat_ref", "call", "会话"])
def test_rows_that_are_counted_again_are_several_dialogues(
    key: str, options: Any, tmp_path: Path
) -> None:
    said = chat(speaker="speaker", text="text", user="USER", assistant="SYSTEM")
    rows = [
        {key: f"c{number}", "seq": at, "day": "Monday", **turn}
        for number in range(3)
        for at, turn in enumerate(said, 1)
    ]
    path = write(tmp_path / "log.jsonl", rows)
    for flags in ([], ["--sort-by", "seq"]):
        with pytest.raises(InputError, match=f"count seq from 1 again where {key} is 'c1'"):
            pairs(path, options, **reading(["--layout", "turns", *flags]))
    run = fastscore.score(path, options, embedder=None, **reading(proposed(path)))
    assert run.tables["dialogues"].height == 3
    assert run.tables["turns"].height == 3 * len(PAIRS)


def test_rows_without_a_name_that_begin_again_are_asked_for_it(
    options: Any, tmp_path: Path
) -> None:
    said = chat(speaker="speaker", text="text", user="USER", assistant="SYSTEM")
    rows = [{"caller": name, **turn} for name in ("a", "b") for turn in said]
    path = write(tmp_path / "log.jsonl", rows)
    with pytest.raises(InputError, match="the only dialogue begins again where caller is 'b'"):
        pairs(path, options, layout="turns")
    run = fastscore.score(path, options, embedder=None, **reading(proposed(path)))
    assert run.tables["dialogues"]["session_id"].to_list() == ["a", "b"]


@pytest.mark.parametrize("key", ["conversation", "dialogue", "chat"])
@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet", None])
def test_a_cell_that_names_a_dialogue_is_asked_for(
    key: str, suffix: str | None, options: Any, tmp_path: Path
) -> None:
    """Arrays of turns may be called so, too."""
    said = chat(speaker="speaker", text="text", user="USER", assistant="SYSTEM")
    rows = [{key: name, **turn} for name in ("a", "b") for turn in said]
    path = tmp_path / f"log{suffix}"
    log = path if suffix else pl.DataFrame(rows)
    if suffix == ".parquet":
        pl.DataFrame(rows).write_parquet(path)
    elif suffix:
        write(path, rows)
    with pytest.raises(InputError, match=f"Type --column session_id={key}"):
        fastscore.score(log, options, embedder=None, layout="turns")
    columns = {"session_id": key}
    run = fastscore.score(log, options, embedder=None, layout="turns", columns=columns)
    assert run.tables["dialogues"]["session_id"].to_list() == ["a", "b"]


def test_a_step_of_both_sides_is_no_second_dialogue(options: Any, tmp_path: Path) -> None:
    said = chat(speaker="speaker", text="text", user="USER", assistant="SYSTEM")
    rows = [
        {"session_id": "c", "turn": at // 2, "model": None if at % 2 == 0 else "m", **turn}
        for at, turn in enumerate(said)
    ]
    path = write(tmp_path / "log.jsonl", rows)
    assert pairs(path, options, layout="turns") == PAIRS


@pytest.mark.parametrize(
    ("key", "names"), [("llm", "ab"), ("system_version", (1, 2)), ("model_name", "ab")]
)
@pytest.mark.parametrize("form", ["documents", "rows"])
@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
def test_models_under_one_name_are_several_dialogues(
    suite: str, form: str, key: str, names: Any, options: Any, tmp_path: Path
) -> None:
    """They begin differently, and their rows take turns."""
    rows: list[Any] = [
        {"id": "c", key: names[0], "messages": chat(2)},
        {"id": "c", key: names[1], "messages": chat()[2:]},
    ]
    if form == "rows":
        said = chat(2, "speaker", "text", user="USER", assistant="SYSTEM")
        rows = [
            {"conversation_id": "c", key: name, **turn, "text": f"{name}: {turn['text']}"}
            for turn in said
            for name in names
        ]
    path = write(tmp_path / "log.jsonl", rows)
    given = options if suite == "preference_shift" else suite
    flags = proposed(path, suite)
    run = fastscore.score(path, given, embedder=None, **reading(flags))
    assert run.tables["dialogues"].height == 2
    if flags != ["--layout", "turns"]:  # which is read without it, too
        with pytest.raises(InputError) as refused:
            fastscore.score(path, given, embedder=None)
        told = reading(typed_in(refused.value))
        assert fastscore.score(path, given, embedder=None, **told).tables["dialogues"].height == 2


ODD_WORDS = {"user": "asker", "assistant": "helper"}
OF_TWO = [("a", 0), ("b", 2)]
"""Dialogues, and where they begin among the turns."""
OTHER_KEYS: dict[str, tuple[str, Any]] = {
    "rows under other keys": (
        ".csv",
        [
            {"conv": name, **turn}
            for name, begin in OF_TWO
            for turn in chat(3, "who", "msg")[begin:]
        ],
    ),
    "rows under odd keys": (
        ".csv",
        [
            {"k": name, **turn}
            for name, begin in OF_TWO
            for turn in chat(3, "p", "q", **ODD_WORDS)[begin:]
        ],
    ),
    "rows under keys in Chinese": (
        ".jsonl",
        [
            {"会话": name, **turn}
            for name, begin in OF_TWO
            for turn in chat(3, "角色", "内容", user="用户", assistant="助手")[begin:]
        ],
    ),
    "arrays under keys in Chinese": (
        ".jsonl",
        [
            {"编号": name, "对话": chat(3, "角色", "内容", user="用户", assistant="助手")[begin:]}
            for name, begin in OF_TWO
        ],
    ),
    "arrays by their ids": (
        ".json",
        {
            name: chat(3, "who", "said", user="caller", assistant="operator")[begin:]
            for name, begin in OF_TWO
        },
    ),
    "arrays by their ids in odd words": (
        ".json",
        {name: chat(3, "p", "q", **ODD_WORDS)[begin:] for name, begin in OF_TWO},
    ),
    "messages further inside": (
        ".jsonl",
        [
            {"conversation": name, "request": {"prompt": asked}, "response": {"text": reply}}
            for name, begin in OF_TWO
            for asked, reply in PAIRS[begin // 2 :]
        ],
    ),
    "pairs with a text written anew": (
        ".json",
        [
            {
                "number": name,
                "turns": [
                    {"turn_id": n, "utterance": asked, "resolved": asked, "response": reply}
                    for n, (asked, reply) in enumerate(PAIRS[begin // 2 :], 1)
                ],
            }
            for name, begin in OF_TWO
        ],
    ),
    "a speaker called by a name": (
        ".jsonl",
        [{"id": name, "messages": chat(3, assistant="Nova-3")[begin:]} for name, begin in OF_TWO],
    ),
    "speakers that are booleans": (
        ".jsonl",
        [
            {
                "id": name,
                "messages": [
                    {"from_user": turn["role"] == "user", "text": turn["content"]}
                    for turn in chat()[begin:]
                ],
            }
            for name, begin in OF_TWO
        ],
    ),
    "a reply further inside": (
        ".jsonl",
        [
            {
                "id": name,
                "input": {"messages": chat()[begin:-1]},
                "output": {"output": REPLIES[-1]},
            }
            for name, begin in OF_TWO
        ],
    ),
    "ids that are objects": (
        ".jsonl",
        [
            {"chat_id": {"$oid": name}, **turn}
            for name, begin in OF_TWO
            for turn in chat(3, "sender", "message", user="customer", assistant="bot")[begin:]
        ],
    ),
    "speakers told apart by a number": (
        ".json",
        {
            name: {
                "content": chat(3, "agent", "message", user="agent_1", assistant="agent_2")[begin:]
            }
            for name, begin in OF_TWO
        },
    ),
    "speakers one of whom has a role": (
        ".jsonl",
        [
            {"conversation_sid": name, "author": turn["role"], "body": turn["content"]}
            for name, begin in OF_TWO
            for turn in chat(3, user="+1555", assistant="system")[begin:]
        ],
    ),
    "turns beside what else are objects": (
        ".jsonl",
        [
            {
                "Participants": [{"ParticipantId": "p1"}],
                "Transcript": [
                    {"ParticipantRole": turn["role"], "Content": turn["content"]}
                    for turn in chat(3, user="CUSTOMER", assistant="AGENT")[begin:]
                ],
            }
            for _, begin in OF_TWO
        ],
    ),
    "a name beside what is true of the user": (
        ".jsonl",
        [
            {
                "msgs": [
                    {
                        "text": turn["content"],
                        "author": {"name": "Ann", "is_human": turn["role"] == "user"},
                    }
                    for turn in chat()[begin:]
                ],
            }
            for _, begin in OF_TWO
        ],
    ),
    "a bot that speaks first": (
        ".jsonl",
        [
            {"conversation_id": name, **turn}
            for name, begin in OF_TWO
            for turn in [
                {"speaker": "SYSTEM", "text": "Hello!"},
                *chat(3, "speaker", "text", user="USER", assistant="SYSTEM")[begin:],
            ]
        ],
    ),
}


@pytest.mark.parametrize("kind", OTHER_KEYS)
@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
def test_what_a_refusal_says_to_type_reads_the_log(
    suite: str, kind: str, options: Any, tmp_path: Path
) -> None:
    """If it must ask twice, the second question is after the first one's options."""
    suffix, rows = OTHER_KEYS[kind]
    path = write(tmp_path / f"log{suffix}", rows)
    given = options if suite == "preference_shift" else suite
    flags: list[str] = []
    for _ in range(3):
        with suppress(InputError):
            run = fastscore.score(path, given, embedder=None, **reading(flags))
            break
        with pytest.raises(InputError) as refused:
            fastscore.score(path, given, embedder=None, **reading(flags))
        kept = flags if "Keep the options" in str(refused.value) else []
        flags = [*kept, *typed_in(refused.value)]
    assert run.tables["dialogues"].height == 2
    if suite == "preference_shift":
        assert run.tables["turns"].select("user_text", "system_text").rows() == [*PAIRS, *PAIRS[1:]]
    else:
        assert run.tables["messages"].height == len(PAIRS) + 2


GUEST = ["--column", "role=speaker", "--column", "content=text", "--value", "role:USER=guest"]


def test_traces_that_repeat_the_turns_before_are_joined(options: Any, tmp_path: Path) -> None:
    rows = [
        {
            "id": str(n),
            "sessionId": "s",
            "input": {"messages": chat()[: 2 * n + 1]},
            "output": chat()[2 * n + 1],
        }
        for n in range(3)
    ]
    path = write(tmp_path / "log.jsonl", rows)
    with pytest.raises(InputError, match="2 of the first 3 dialogues are beginnings") as error:
        pairs(path, options, layout="langfuse")
    assert "--dialogue sessionId" in str(error.value)
    assert pairs(path, options, layout="langfuse", dialogue="sessionId") == PAIRS
    run = fastscore.score(path, "guest_simulation", layout="langfuse", dialogue="sessionId")
    assert run.tables["messages"].height == 3
    # traces without their history follow each other
    alone = [row | {"input": {"messages": chat()[2 * n : 2 * n + 1]}} for n, row in enumerate(rows)]
    assert pairs(write(path, alone), options, layout="langfuse", dialogue="sessionId") == PAIRS


def test_candidates_are_dialogues_by_their_index(options: Any, tmp_path: Path) -> None:
    choices = [{"index": n, "message": chat(1)[1] | {"content": f"No. {n}"}} for n in (1, 0)]
    row = {"custom_id": "r", "body": {"messages": chat(1)[:1]}, "response": {"body": {}}}
    row["response"]["body"]["choices"] = choices
    path = write(tmp_path / "log.jsonl", [row])
    run = fastscore.score(path, options, embedder=None, layout="openai-batch")
    assert run.tables["turns"]["system_text"].to_list() == ["No. 0", "No. 1"]
    assert run.tables["dialogues"].height == 2


def test_candidates_in_a_list_of_texts_are_dialogues(options: Any, tmp_path: Path) -> None:
    row = {"id": "d", "messages": chat()[:-1], "completions": ["No. 0", "No. 1"]}
    path = write(tmp_path / "log.jsonl", [row])
    run = fastscore.score(path, options, embedder=None, **reading(proposed(path)))
    assert run.tables["turns"]["system_text"].to_list() == [
        text for number in ("No. 0", "No. 1") for text in (*REPLIES[:-1], number)
    ]
    assert run.tables["dialogues"]["session_id"].to_list() == ["d:1", "d:2"]
    assert not any("repeat" in note for note in run.notes)


def test_of_two_sides_no_one_is_taken(options: Any, tmp_path: Path) -> None:
    row = {"id": "d", "messages": chat()[:-1], "response_a": "Heat.", "response_b": "Her."}
    path = write(tmp_path / "log.jsonl", [row])
    assert not proposed(path)
    with pytest.raises(InputError, match="each of response_a, response_b may be the last"):
        pairs(path, options, layout="openai")
    said = pairs(path, options, layout="openai", columns={"reply": "response_b"})
    assert said[-1] == (ASKED[-1], "Her.")


@pytest.mark.parametrize("key", ["conversation_id", "session_uuid", "thread_ref", "threadUuid"])
def test_rows_of_one_conversation_are_asked_to_be_joined(
    key: str, options: Any, tmp_path: Path
) -> None:
    rows = [{key: "c", "prompt": said, "response": reply} for said, reply in PAIRS]
    path = write(tmp_path / "log.jsonl", rows)
    with pytest.raises(InputError, match=f"have the {key} 'c', and go on"):
        pairs(path, options, layout="context-response")
    flags = proposed(path)
    assert flags == ["--layout", "context-response", "--dialogue", key]
    run = fastscore.score(path, options, embedder=None, **reading(flags))
    assert run.tables["dialogues"].height == 1
    assert run.tables["turns"].select("user_text", "system_text").rows() == PAIRS
    # the same question to two models is two dialogues
    twice = [rows[0] | {"model": model} for model in ("a", "b")]
    assert pairs(write(path, twice), options, layout="context-response") == PAIRS[:1] * 2


def test_histories_without_a_session_are_asked_for(options: Any, tmp_path: Path) -> None:
    """No command has a placeholder that scores each beginning."""
    path = write(tmp_path / "log.jsonl", [{"messages": chat(n)} for n in (2, 3)])
    with pytest.raises(InputError, match="1 of the first 2 dialogues are beginnings") as error:
        pairs(path, options, layout="openai")
    assert "Keep the longest of each" in str(error.value)
    assert not proposed(path)


@pytest.mark.parametrize(
    "words",
    [
        {"user": "Customer", "assistant": "Agent"},
        {"user": "visitor", "assistant": "representative"},
    ],
)
def test_rows_in_other_words_are_rows_of_turns(
    words: dict[str, str], options: Any, tmp_path: Path
) -> None:
    rows = [{"session_id": "s", **turn} for turn in chat(3, "sender", "message", **words)]
    path = write(tmp_path / "log.jsonl", rows)
    flags = proposed(path)
    assert flags[:2] == ["--layout", "turns"]
    assert pairs(path, options, **reading(flags)) == PAIRS


def test_thoughts_are_counted_or_left_out(options: Any, tmp_path: Path) -> None:
    turns = chat(1)
    turns[1]["content"] = f"<think>\nClueless?\n</think>\n\n{REPLIES[0]}"
    path = write(tmp_path / "log.jsonl", [{"messages": turns}])
    run = fastscore.score(path, options, embedder=None, layout="openai")
    assert any("1 row has thoughts in tags such as <think>" in note for note in run.notes)
    assert pairs(path, options, layout="openai", without="think") == PAIRS[:1]


def test_letters_that_are_written_in_another_way_are_counted(options: Any, tmp_path: Path) -> None:
    turns = chat(1)
    turns[0]["content"] = "Schindler\u2019s List"
    path = write(tmp_path / "log.jsonl", [{"messages": turns}, {"messages": chat(1)}])
    run = fastscore.score(path, options, embedder=None, layout="openai")
    assert any(note.startswith("1 row has curly apostrophes") for note in run.notes)


def test_cells_of_lists_are_read_as_json_and_named_as_python(options: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", [{"id": "d", "messages": json.dumps(chat())}])
    assert proposed(path) == ["--layout", "openai"]
    assert pairs(path, options, layout="openai") == PAIRS
    path = write(tmp_path / "repr.csv", [{"id": "d", "messages": repr(chat())}])
    with pytest.raises(InputError, match="as Python prints it, with single quotes"):
        pairs(path, options, layout="openai")


def test_an_upload_in_a_pair_has_no_text(options: Any, tmp_path: Path) -> None:
    document = [list(PAIRS[0]), [["/uploads/f.png", None], None], list(PAIRS[1])]
    path = write(tmp_path / "log.jsonl", [document])
    assert pairs(path, options, layout="pairs") == PAIRS[:2]


def test_parts_of_one_text_are_not_lines(options: Any, tmp_path: Path) -> None:
    """Telegram writes a text with a link as texts and objects."""
    turns = chat(1)
    turns[0]["content"] = ["A ", {"type": "bold", "text": "drama"}, ", please."]
    path = write(tmp_path / "log.jsonl", [{"messages": turns}])
    assert pairs(path, options, layout="openai") == PAIRS[:1]


def test_rejects_in_memory_are_refused_or_warned_of(options: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", [{"id": str(n), "messages": chat()} for n in range(3)])
    path.write_text(path.read_text() + '{"id": "cut", "mess')
    with pytest.raises(InputError, match="1 of 4 lines is a reject"):
        fastscore.score(path, options, embedder=None, layout="openai")
    with pytest.warns(fastscore.RejectsWarning, match="Not scored: 1 of 4 lines"):
        fastscore.score(path, options, embedder=None, layout="openai", max_rejects=0.5)


def test_objects_in_memory_are_read_or_refused_in_one_sentence(
    options: Any, tmp_path: Path
) -> None:
    rows = [{"id": "d", "messages": chat()}]
    structs = pl.DataFrame(rows).to_struct("rows")
    for source in (rows, iter(rows), structs, structs.to_arrow(), {"a": rows[0]}.values()):
        run = fastscore.score(source, options, embedder=None, layout="openai")
        assert run.tables["turns"].height == 3
    path = write(tmp_path / "log.jsonl", rows)
    for mode in ("r", "rb"):
        with path.open(mode) as file, pytest.raises(UsageError, match="is an open file"):
            fastscore.score(file, options, embedder=None, layout="openai")
    for wrong in ([b"x"], [json.dumps(rows[0])], 3, b"log.jsonl"):
        with pytest.raises(FastscoreError):
            fastscore.score(wrong, options, embedder=None, layout="openai")


def test_flags_as_text_are_counted(tmp_path: Path) -> None:
    turn = {"turn_pair_id": 1, "turn_status": "ok", "pred_assistant_text": "Yes."}
    rows = [
        {"dialog_id": str(flag), "valid_dialog": flag, "turns": [turn]} for flag in (True, "False")
    ]
    path = write(tmp_path / "log.jsonl", rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = fastscore.score(path, "memory_finance", max_rejects=1.0)
    assert any("1 dialogue has a valid_dialog that is a text" in note for note in run.notes)


def test_predictions_for_steps_that_there_are_not_are_counted() -> None:
    rows: list[dict[str, Any]] = [
        {"event": "predicted", "utterance_index": 0, "step": step, "prediction": "a film"}
        for step in (1, 2)
    ]
    rows.append({"event": "utterance_complete", "utterance_index": 0, "ground_truth": "a film"})
    for row in rows:
        row["dialogue_uid"] = "d"
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    run = fastscore.score(rows, options, embedder=None)
    assert any(note.startswith("1 prediction is unscored") for note in run.notes)


def test_a_command_of_which_every_metric_is_null_is_not_proposed(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", [{"messages": chat(1)}])
    (file,) = fastscore.inspect(path).files
    assert "every metric of the first rows would be null" in file.unfit["guest_simulation"]
    path = write(path, [{"messages": chat()}])
    assert proposed(path, "guest_simulation") == ["--layout", "openai"]


def test_system_is_a_reply_where_no_assistant_speaks(options: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", [{"messages": chat(assistant="system")}])
    flags = ["--layout", "openai", "--value", "speaker:system=assistant"]
    assert proposed(path) == flags
    assert pairs(path, options, **reading(flags)) == PAIRS
    prompt = {"role": "system", "content": "Recommend films."}
    path = write(path, [{"messages": [prompt, *chat()]}, {"messages": chat(assistant="system")}])
    with pytest.raises(InputError, match="It is a prompt in others"):
        pairs(path, options, layout="openai")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("log.jsonl", '2025-01-01 INFO {"messages": []}', "A log prefix stands before the JSON"),
        ("log.jsonl", "{'messages': []}", "Python's repr"),
        ("log.csv", "a|b|c\n1|2|3", "log.csv > table.tsv"),
        ("log.txt", "[12/31/20, 10:00:00 AM] Ann: hi", "a chat as WhatsApp exports it"),
        ("log.txt", "31.12.20, 10:00 - Ann: hi", "a chat as WhatsApp exports it"),
        (
            "log.json",
            json.dumps([{"type": "message", "user": "U", "text": "hi", "ts": "1"}]),
            "a channel as Slack exports it",
        ),
    ],
)
def test_what_must_be_converted_is_named(
    name: str, text: str, said: str, options: Any, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text + "\n")
    with pytest.raises(InputError) as error:
        fastscore.score(path, options, embedder=None)
    assert said in str(error.value)


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq writes it anew")
def test_slack_has_its_bots_and_no_notices(options: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    said = [{"type": "message", "text": "hi", "ts": f"{n}", "thread_ts": "1"} for n in (1, 2, 3)]
    bot = {**said[1], "bot_id": "B1", "subtype": "bot_message"}
    notice = {**said[2], "user": "U2", "subtype": "channel_join"}
    path.write_text(json.dumps([{**said[0], "user": "U1"}, bot, notice]))
    with pytest.raises(InputError) as error:
        fastscore.score(path, options, embedder=None)
    command = str(error.value).partition("Type ")[2].partition(", and read it")[0]
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    turns = lines_of((tmp_path / "chats.jsonl").read_text())
    assert [turn["speaker"] for turn in turns] == ["U1", "B1"]


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq writes it anew")
@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
def test_chats_that_are_elements_of_an_object_are_written_one_a_line(
    suite: str, options: Any, tmp_path: Path
) -> None:
    said = chat(3, "spk", "utt", user="U", assistant="S")
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"meta": 1, "dialogs": [{"did": "a", "turns": said}] * 2}))
    given = options if suite == "preference_shift" else suite
    with pytest.raises(InputError, match="the elements of dialogs have arrays") as refused:
        fastscore.score(path, given, embedder=None)
    command = str(refused.value).rpartition("Type ")[2].removesuffix(".")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    chats = tmp_path / "chats.jsonl"
    assert pairs(chats, options, **reading(proposed(chats))) == PAIRS * 2


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq writes it anew")
@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
def test_chats_further_inside_are_written_one_a_line(
    suite: str, options: Any, tmp_path: Path
) -> None:
    path = tmp_path / "log.json"
    path.write_text(
        json.dumps({"run": {"chats": [{"id": name, "messages": chat()} for name in "ab"]}})
    )
    given = options if suite == "preference_shift" else suite
    with pytest.raises(InputError, match=r"its dialogues are \.run\.chats\[\]") as refused:
        fastscore.score(path, given, embedder=None)
    command = str(refused.value).rpartition("Type ")[2].removesuffix(".")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    assert pairs(tmp_path / "chats.jsonl", options, layout="openai") == PAIRS * 2


def test_times_of_posts_are_no_texts(options: Any, tmp_path: Path) -> None:
    rows = [
        {"created_at": f"Tue Oct 31 22:1{place}:47 +0000 2017", "text": turn["content"]}
        for place, turn in enumerate(chat())
    ]
    with pytest.raises(InputError) as refused:
        fastscore.score(write(tmp_path / "log.csv", rows), options, embedder=None)
    assert "created_at=" not in str(refused.value)


def test_models_of_joined_pairs_stay_apart(options: Any, tmp_path: Path) -> None:
    rows = [
        {"conversation_id": "c", "llm": name, "prompt": asked, "response": f"{name}: {reply}"}
        for name in "ab"
        for asked, reply in PAIRS
    ]
    path = write(tmp_path / "log.jsonl", rows)
    for suite, given in (("preference_shift", options), ("guest_simulation", "guest_simulation")):
        flags = proposed(path, suite)
        run = fastscore.score(path, given, embedder=None, **reading(flags))
        assert run.tables["dialogues"].height == 2


def test_what_changes_once_may_be_a_topic(options: Any, tmp_path: Path) -> None:
    said = chat(3, "speaker", "text", user="USER", assistant="SYSTEM")
    rows = [{"topic": "films" if at < 2 else "music", **turn} for at, turn in enumerate(said)]
    path = write(tmp_path / "log.jsonl", rows)
    assert not proposed(path)
    with pytest.raises(InputError, match="probably several dialogues"):
        fastscore.score(path, options, embedder=None)
    assert pairs(path, options, columns={"session_id": ""}) == PAIRS


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq writes it anew")
def test_dialogues_in_arrays_of_arrays_are_written_one_a_line(options: Any, tmp_path: Path) -> None:
    sessions = [{"session_id": name, "messages": chat()} for name in ("a1", "a2", "b1")]
    users = [{"user": "anna", "sessions": sessions[:2]}, {"user": "ben", "sessions": sessions[2:]}]
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"export_date": "2026-01-01", "users": users}))
    with pytest.raises(InputError, match=r"its dialogues are \.users\[\]\.sessions") as error:
        fastscore.score(path, options, embedder=None)
    assert proposed(path) == []
    command = str(error.value).rpartition("Type ")[2].removesuffix(".")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    assert len(lines_of((tmp_path / "chats.jsonl").read_text())) == 3
    assert pairs(tmp_path / "chats.jsonl", options, layout="openai") == PAIRS * 3


def by_id() -> dict[str, Any]:
    """Return dialogues by their ids, in other words."""
    said = chat(2, speaker="who", text="said", user="caller", assistant="operator")
    return {f"call-{number}": {"started": "2025", "transcript": said} for number in range(4)}


def test_dialogues_by_their_ids_are_all_read(options: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(by_id()))
    flags = proposed(path)
    assert flags[:4] == ["--layout", "nested", "--column", "turns=transcript"]
    assert pairs(path, options, **reading(flags)) == PAIRS[:2] * 4
    assert flags == proposed(path, "guest_simulation")
    with pytest.raises(InputError) as error:
        fastscore.score(path, options, embedder=None)
    assert f"Type {shlex.join(flags)}." in str(error.value)


@pytest.mark.parametrize("begin", ["", "chats."])
def test_one_of_several_dialogues_by_their_ids_is_refused(
    begin: str, options: Any, tmp_path: Path
) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 2, "chats": by_id()} if begin else by_id()))
    typed = reading(
        shlex.split(
            f"--column turns={begin}call-1.transcript --column speaker=who --column text=said "
            "--value speaker:caller=user --value speaker:operator=assistant"
        )
    )
    found = f"{begin}call-1.transcript is one dialogue of .* those of 'call-0', 'call-2', 'call-3'"
    for suite in (options, fastscore.GuestSimulation()):
        with pytest.raises(InputError, match=found):
            fastscore.score(path, suite, **typed)


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq writes it anew")
def test_dialogues_by_their_ids_further_inside_are_written_one_a_line(
    options: Any, tmp_path: Path
) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 2, "chats": {**by_id(), "count": 4}}))
    with pytest.raises(InputError, match="its dialogues are in chats, by their ids") as error:
        fastscore.score(path, options, embedder=None)
    assert proposed(path) == []
    command = str(error.value).rpartition("Type ")[2].removesuffix(".")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    written = tmp_path / "chats.jsonl"
    assert [row["id"] for row in lines_of(written.read_text())] == [*by_id()]
    assert pairs(written, options, **reading(proposed(written))) == PAIRS[:2] * 4


def test_a_request_beside_its_response_is_no_dialogue_by_its_id(
    options: Any, tmp_path: Path
) -> None:
    sides = {"request": {"transcript": chat(2)[:3]}, "response": {"transcript": chat(2)[3:]}}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(sides))
    columns = {
        "turns": "request.transcript",
        "reply": "response.transcript",
        "speaker": "role",
        "text": "content",
    }
    assert pairs(path, options, columns=columns) == PAIRS[:2]


def lines_of(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


CALL = {"id": "c1"}
BLOCKS = [{"text": turn["content"]} for turn in chat()]
EXPORTS: dict[str, Any] = {
    "battles of Chatbot Arena": {
        "question_id": "q", "conversation_a": chat(), "conversation_b": chat(),
    },
    "requests of Dialogflow CX": [
        {
            "session_name": "s",
            "turn_position": place,
            "request": {"queryInput": {"text": {"text": asked}}},
            "response": {"queryResult": {"responseMessages": [{"text": {"text": [reply]}}]}},
        }
        for place, (asked, reply) in enumerate(PAIRS)
    ],
    "messages of Botpress": [
        {"conversationId": "c", "direction": turn["role"], "payload": {"text": turn["content"]}}
        for turn in chat(user="incoming", assistant="outgoing")
    ],
    "tickets of Zendesk": {
        "id": 7,
        "requester_id": 5,
        "comments": [{"author_id": 5 + place % 2 * 4, "body": turn["content"]}
                     for place, turn in enumerate(chat())],
    },
    "a conversation of Intercom": {
        "id": "c",
        "source": {"author": {"type": "user"}, "body": f"<p>{ASKED[0]}</p>"},
        "conversation_parts": {"conversation_parts": [
            {"author": {"type": turn["role"]}, "body": f"<p>{turn['content']}</p>"}
            for turn in chat(assistant="bot")[1:]
        ]},
    },
    "a server or a channel as DiscordChatExporter": {
        "guild": {"id": "1"},
        "messages": [{"author": {"isBot": turn["role"] != "user"}, "content": turn["content"]}
                     for turn in chat()],
    },
    "a chat of Teams": {"value": [
        {"chatId": "c", "from": {"user": None if place % 2 else {}},
         "body": {"content": f"<p>{turn['content']}</p>"}}
        for place, turn in enumerate(chat())
    ]},
    "sentences of Twilio": {"call_sid": "c", "sentences": [
        {"media_channel": 1 + place % 2, "transcript": turn["content"]}
        for place, turn in enumerate(chat())
    ]},
    "a call of Vapi": {"message": {"call": CALL, "artifact": {
        "transcript": "User: hi", "messages": chat(text="message", assistant="bot")}}},
    "transcripts of Copilot Studio": {"conversationtranscriptid": "c", "content": json.dumps({
        "activities": [{"type": "message", "from": {"role": 1 - place % 2}, "text": turn["content"]}
                       for place, turn in enumerate(chat())]})},
    "logs of Amazon Lex": [
        {"sessionId": "c", "inputTranscript": asked, "messages": [{"content": reply}]}
        for asked, reply in PAIRS
    ],
    "model invocations of Amazon Bedrock": {
        "requestId": "c", "modelId": "m",
        "input": {"inputBodyJson": {"messages": chat()[:-1]}},
        "output": {"outputBodyJson": {"output": {"message": chat()[-1]}}},
    },
    "spans of Phoenix": {"context": {"trace_id": "c"}, "attributes": {"llm": {
        "model_name": "m", "input_messages": [{"message": turn} for turn in chat()[:-1]],
        "output_messages": [{"message": chat()[-1]}]}}},
    "tasks of CrewAI": {"task": ASKED[0], "agent": "a", "status": "done", "output": REPLIES[0]},
    "replies of Ollama's generate": {
        "prompt": ASKED[0], "response": REPLIES[0], "context": [1, 2], "done": True,
    },
    "results of promptfoo": {"results": {"results": [{
        "provider": {"id": "m"}, "prompt": {"raw": json.dumps(chat()[:-1])},
        "response": {"output": REPLIES[-1]}}]}},
    "a test run of DeepEval": {"conversationalTestCases": [{"name": "c", "turns": chat()}]},
    "a log of OpenAI's evals": [
        {"spec": {}},
        {"sample_id": "s", "type": "sampling",
         "data": {"prompt": chat()[:-1], "sampled": [REPLIES[-1]]}},
    ],
    "dialogues of PersonaChat": {"train": [{"utterances": [
        {"history": [turn["content"] for turn in chat()[:-1]],
         "candidates": ["No.", REPLIES[-1]]}]}]},
    "rows of PersonaChat": [
        {
            "conv_id": 0, "utterance_idx": place, "personality": ["I like films."],
            "history": [turn["content"] for turn in chat()[: 2 * place + 1]],
            "candidates": ["No.", reply],
        }
        for place, reply in enumerate(REPLIES)
    ],
    "activities of Gemini Apps": [
        {
            "header": "Gemini Apps", "title": f"Prompted {asked}", "time": f"2025-01-0{place}",
            "safeHtmlItem": [{"html": f"<p>{reply}</p>"}],
        }
        for place, (asked, reply) in enumerate(PAIRS, 1)
    ],
    "dialogues of ABCD": {"train": [{
        "convo_id": 1,
        "original": [[turn["role"], turn["content"]]
                     for turn in chat(user="customer", assistant="agent")],
        "delexed": []}]},
    "pairs of chosen and rejected texts": {
        "chosen": "".join(f"\n\nHuman: {asked}\n\nAssistant: {reply}" for asked, reply in PAIRS)
    },
    "chats of Haystack": {"id": "c", "messages": chat(speaker="_role", text="_content")},
    "a chat store of LlamaIndex": {"store": {"c": [
        {"role": turn["role"], "blocks": [{"text": turn["content"]}]} for turn in chat()]}},
    "chat memories of LangChain4j": {"memoryId": "c", "messages": [
        {"type": turn["role"], "contents": [{"text": turn["content"]}]}
        if turn["role"] == "USER" else {"type": turn["role"], "text": turn["content"]}
        for turn in chat(user="USER", assistant="AI")]},
    "a conversation of LM Studio": {"messages": [
        {"versions": [{"role": turn["role"], "content": [{"text": turn["content"]}]}],
         "currentlySelected": 0} for turn in chat()]},
    "a chat of SillyTavern": [{"user_name": "Ann"}, *(
        {"is_user": turn["role"] == "user", "mes": turn["content"]} for turn in chat())],
    "a chat of Cohere": {
        "chat_history": chat(2, text="message", user="USER", assistant="CHATBOT"),
        "message": ASKED[-1], "text": REPLIES[-1],
    },
    "runs of Prompt flow": {
        "chat_history": [{"inputs": {"question": asked}, "outputs": {"answer": reply}}
                         for asked, reply in PAIRS[:2]],
        "question": ASKED[-1], "answer": REPLIES[-1],
    },
    "a chat of text-generation-webui": {"internal": PAIRS, "visible": PAIRS},
    "spans of OpenTelemetry as OTLP writes them": {"resourceSpans": [{"scopeSpans": [{"spans": [{
        "traceId": "1",
        "attributes": [
            {"key": f"gen_ai.{side}.messages", "value": {"stringValue": json.dumps([
                {"role": turn["role"], "parts": [{"type": "text", "content": turn["content"]}]}
                for turn in turns
            ])}}
            for side, turns in (("input", chat()[:-1]), ("output", chat()[-1:]))
        ],
    }]}]}]},
    "a request of PaLM": {
        "context": "Recommend films.",
        "messages": chat(speaker="author", assistant="bot")[:-1], "response": REPLIES[-1],
    },
    "tasks of Alpaca": {
        "instruction": ASKED[-1], "input": "", "output": REPLIES[-1],
        "history": [list(pair) for pair in PAIRS[:2]],
    },
}  # fmt: skip
OF_ONE_PAIR = ("tasks of CrewAI", "replies of Ollama's generate")


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq writes most of them anew")
@pytest.mark.parametrize("title", EXPORTS)
def test_what_is_typed_for_an_export_reads_all_of_it(
    title: str, options: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = EXPORTS[title] if isinstance(EXPORTS[title], list) else [EXPORTS[title]]
    path = write(Path("log.jsonl"), rows)
    with pytest.raises(InputError, match=f"log.jsonl: {title}") as refused:
        fastscore.score(path, options, embedder=None)
    command, _, flags = str(refused.value).partition("Type ")[2].rstrip(".").rpartition("with ")
    if command:
        program, _ = command.split(" > ")
        written = subprocess.run(shlex.split(program), capture_output=True, text=True, check=True)
        path = write(Path("chats.jsonl"), lines_of(written.stdout))
    else:
        assert proposed(path) == shlex.split(flags)
    told = PAIRS[:1] if title in OF_ONE_PAIR else PAIRS
    told = told * 2 if title == "battles of Chatbot Arena" else told
    assert pairs(path, options, **reading(shlex.split(flags))) == told


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"custom_id": "c", "response": {"body": {"choices": []}}}, "requests.jsonl log.jsonl"),
        ({"message": chat(1)[1], "done": False}, "Log the messages that were sent beside"),
        ({"text": {"0": "Hi", "1": "Ho"}, "by": {"0": "a", "1": "b"}}, "read_json('log.jsonl')."),
        ({"columns": ["text"], "index": [0], "data": [["Hi"]]}, "orient='split'"),
    ],
)
def test_an_export_without_what_is_needed_says_so(
    row: Any, said: str, options: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refused:
        fastscore.score(write(Path("log.jsonl"), [row]), options, embedder=None)
    assert said in str(refused.value)


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq writes the events")
def test_predictions_beside_their_truth_become_events(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    truth = {"dialogue_uid": "d", "utterance_index": 0, "ground_truth": "A drama with Al Pacino."}
    rows = [{**truth, "step": k, "prediction": said} for k, said in enumerate(["A", "A drama"])]
    path = write(Path("log.jsonl"), rows)
    with pytest.raises(InputError, match="the truth beside each, without events") as refused:
        fastscore.score(path, options, embedder=None)
    program = str(refused.value).partition("Type ")[2].partition(" > ")[0]
    done = subprocess.run(shlex.split(program), capture_output=True, text=True, check=True)
    by_hand = [{**row, "event": "predicted"} for row in rows]
    by_hand.append({**truth, "event": "utterance_complete"})
    read, expected = (
        fastscore.score(write(Path(name), events), options, embedder=None).tables["steps"]
        for name, events in (("read.jsonl", lines_of(done.stdout)), ("hand.jsonl", by_hand))
    )
    score = [name for name, kind in read.schema.items() if kind.is_float()]
    assert read.select("step", *score).equals(expected.select("step", *score))
    assert read.height == 2


def test_two_layouts_that_read_a_log_in_different_ways_are_named(tmp_path: Path) -> None:
    other = chat(2, "from", "value", user="human", assistant="gpt")
    path = write(tmp_path / "log.jsonl", [{"messages": chat(), "conversations": other}])
    (file,) = fastscore.inspect(path).files
    said = "different ways: openai, sharegpt. Type one of them, for example --layout openai."
    assert file.unfit["preference_shift"].endswith(said)


def test_a_reply_in_an_array_of_its_own_is_no_dialogue(options: Any, tmp_path: Path) -> None:
    row = {"llm.input_messages": chat()[:-1], "llm.output_messages": chat()[-1:]}
    path = write(tmp_path / "log.jsonl", [row])
    flags = proposed(path)
    assert flags[-2:] == ["--column", "reply=llm.output_messages"]
    assert pairs(path, options, **reading(flags)) == PAIRS
    sides = {"model_a": "m", "conversation_a": chat(), "conversation_b": chat(2)}
    assert not proposed(write(path, [sides]))


OF_LAYOUTS: dict[str, Any] = {
    "openai": {"id": "d1", "messages": chat()},
    "nested": {"dialogues": [{"id": name, "messages": chat()} for name in ("d1", "d2")]},
    "langfuse": {"id": "d1", "input": {"messages": chat()[:-1]}, "output": chat()[-1]},
    "turns": {"conversation_id": "d1", "speaker": "USER", "text": "A drama, please."},
}


@pytest.mark.parametrize("layout", OF_LAYOUTS)
@pytest.mark.parametrize(
    ("name", "key", "reading"),
    [
        ("session_id", "nokey", {"columns": {"session_id": "nokey"}}),
        ("session_id", "meta.nokey", {"columns": {"session_id": "meta.nokey"}}),
        ("speaker", "nokey", {"columns": {"speaker": "nokey"}}),
        ("text", "nokey", {"columns": {"text": "nokey"}}),
        ("model_name", "nokey", {"columns": {"model_name": "nokey"}}),
        ("judge", "nokey", {"columns": {"judge": "nokey"}}),
        ("dialogue", "nokey", {"dialogue": "nokey"}),
        ("sort_by", "nokey", {"sort_by": "nokey"}),
    ],
)
def test_a_key_that_no_line_has_is_refused_under_every_layout(
    layout: str, name: str, key: str, reading: Any, options: Any, tmp_path: Path
) -> None:
    rows = [OF_LAYOUTS[layout]] * 500  # more than are sampled
    path = write(tmp_path / "log.jsonl", rows)
    for source in (path, rows):
        with pytest.raises(InputError) as error:
            fastscore.score(source, options, embedder=None, layout=layout, **reading)
        said = str(error.value)
        assert name in said
        assert key in said
        assert key_beside(name, layout) in said


def key_beside(name: str, layout: str) -> str:
    """Return a key that is there, where a part of a chat is looked for."""
    if name in ("speaker", "text", "sort_by"):
        return "content" if layout != "turns" else "text"
    if layout == "nested":
        return "id" if name in ("session_id", "dialogue") else "dialogues"
    return {"openai": "messages", "langfuse": "input", "turns": "speaker"}[layout]


def test_an_id_that_only_later_lines_have_is_read(options: Any, tmp_path: Path) -> None:
    rows = [{"messages": chat()} for _ in range(500)] + [
        {"meta": {"key": "d1"}, "messages": chat()}
    ]
    for source in (write(tmp_path / "log.jsonl", rows), rows):
        run = fastscore.score(
            source, options, embedder=None, layout="openai", columns={"session_id": "meta.key"}
        )
        names = run.tables["dialogues"]["dialogue"].to_list()
        assert [name for name in names if name.startswith("d1")] == ["d1"]


def test_rows_that_are_turns_hold_no_turns(options: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", [OF_LAYOUTS["turns"]])
    for columns in ({"conversation": "messages"}, {"reply": "output"}):
        with pytest.raises(UsageError, match="Each row is a turn by the layout"):
            fastscore.score(path, options, embedder=None, layout="turns", columns=columns)


def sides(user: str, assistant: str, pairs: Any = PAIRS) -> list[dict[str, str]]:
    return [{user: asked, assistant: reply} for asked, reply in pairs]


@pytest.mark.parametrize("key", ["turns", "history", "messages", "conversation"])
@pytest.mark.parametrize("names", [("user", "assistant"), ("customer", "bot"), ("human", "ai")])
def test_objects_of_two_sides_are_pairs(
    key: str, names: tuple[str, str], options: Any, tmp_path: Path
) -> None:
    rows = [{"id": name, key: sides(*names)} for name in ("d1", "d2")]
    path = write(tmp_path / "log.jsonl", rows)
    with pytest.raises(InputError, match="Type --layout pairs"):
        fastscore.score(path, options, embedder=None)
    assert proposed(path) == proposed(path, "guest_simulation") == ["--layout", "pairs"]
    for source in (path, rows):
        assert pairs(source, options, layout="pairs") == PAIRS * 2


@pytest.mark.parametrize(
    "key", ["conversation_id", "chat_id", "ticketId", "conv", "session", "case_no", "Vorgang"]
)
@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_rows_of_two_sides_are_pairs(suffix: str, key: str, options: Any, tmp_path: Path) -> None:
    rows = [{key: "d1", **pair} for pair in sides("customer", "bot")]
    rows += [{key: "d2", **pair} for pair in sides("customer", "bot", PAIRS[1:])]
    path = tmp_path / f"log{suffix}"
    pl.DataFrame(rows).write_parquet(path) if suffix == ".parquet" else write(path, rows)
    flags = ["--layout", "pairs", "--dialogue", key.lower() if suffix == ".csv" else key]
    assert proposed(path) == proposed(path, "guest_simulation") == flags
    assert pairs(path, options, **reading(flags)) == PAIRS + PAIRS[1:]
    run = fastscore.score(path, options, embedder=None, **reading(flags))
    assert run.tables["dialogues"]["dialogue"].to_list() == ["d1", "d2"]


@pytest.mark.parametrize("key", ["conversation", "chat", "dialogue", "messages"])
@pytest.mark.parametrize("value", ["d{}", "{}"])
@pytest.mark.parametrize(
    ("suffix", "names"), [(".jsonl", ("user", "assistant")), (".csv", ("User", "Assistant"))]
)
def test_a_cell_that_names_a_dialogue_is_no_array_of_its_turns(
    suffix: str, value: str, names: tuple[str, str], key: str, options: Any, tmp_path: Path
) -> None:
    rows = [{key: value.format(n), **pair} for n in (1, 2) for pair in sides(*names)]
    path = write(tmp_path / f"log{suffix}", rows)
    if key != "messages":  # that is called as no dialogue is
        with pytest.raises(InputError, match=f"have the {key} .* Type --dialogue {key}"):
            pairs(path, options, layout="pairs")
    assert pairs(path, options, layout="pairs", dialogue=key) == PAIRS * 2
    run = fastscore.score(path, options, embedder=None, layout="pairs", dialogue=key)
    assert run.tables["dialogues"]["dialogue"].to_list() == [value.format(n) for n in (1, 2)]


def test_an_array_of_pairs_is_a_dialogue_unless_each_is_named(options: Any, tmp_path: Path) -> None:
    """As `[[user, assistant], ...]` is; pairs with ids are rows."""
    array = write(tmp_path / "array.json", sides("user", "assistant"))
    line = write(tmp_path / "line.jsonl", [sides("user", "assistant")])
    for path in (array, line):
        run = fastscore.score(path, options, embedder=None, layout="pairs")
        assert run.tables["dialogues"].height == 1
        assert pairs(path, options, layout="pairs") == PAIRS
    named = [{"id": f"d{n}", **pair} for n, pair in enumerate(sides("user", "assistant"))]
    run = fastscore.score(
        write(tmp_path / "named.json", named), options, embedder=None, layout="pairs"
    )
    assert run.tables["dialogues"]["dialogue"].to_list() == ["d0", "d1", "d2"]


def test_turns_with_a_reply_each_do_not_alternate(options: Any, tmp_path: Path) -> None:
    turns = [{"utterance": asked, "response": reply} for asked, reply in PAIRS]
    path = write(tmp_path / "log.jsonl", [{"id": "d", "turns": turns}])
    with pytest.raises(InputError, match="has response beside utterance") as refused:
        fastscore.score(
            path,
            options,
            embedder=None,
            columns={"turns": "turns", "text": "utterance"},
            alternate="user",
        )
    flags = shlex.split(str(refused.value).rpartition("type ")[2].removesuffix("."))
    assert pairs(path, options, **reading(flags)) == PAIRS


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq writes the pairs")
def test_lists_of_each_side_become_pairs(options: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", [{"id": "d", "asked": ASKED, "replies": REPLIES}])
    with pytest.raises(InputError, match="If asked is what the user says") as refused:
        fastscore.score(path, options, embedder=None)
    program = str(refused.value).rpartition("Type ")[2].partition(", and read")[0]
    subprocess.run(program, shell=True, check=True, cwd=tmp_path)
    path = tmp_path / "chats.jsonl"
    assert pairs(path, options, layout="pairs", columns={"turns": "turns"}) == PAIRS


def test_sides_that_are_not_known_are_asked_for(options: Any, tmp_path: Path) -> None:
    """Neither their order nor their places say who is who."""
    for name, rows in {
        "array": [{"id": "d1", "turns": sides("helper", "asker")}],
        "rows": [{"id": f"d{n}", **pair} for n, pair in enumerate(sides("helper", "asker"))],
    }.items():
        path = write(tmp_path / f"{name}.jsonl", rows)
        assert proposed(path) == []
        with pytest.raises(InputError, match="say who is who, in this way or the other") as error:
            fastscore.score(path, options, embedder=None)
        example = str(error.value).rpartition("round: ")[2].removesuffix(".").split()
        assert pairs(path, options, **reading(example)) == PAIRS
        other = {"speaker": {"asker": "USER", "helper": "SYSTEM"}}
        swapped = pairs(path, options, layout="pairs", values=other, alternate="user")
        assert swapped == [(reply, asked) for asked, reply in PAIRS]


@pytest.mark.parametrize("reply", ["agent", "system"])
def test_a_side_that_is_not_read_is_named(reply: str, options: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", [{"id": "d1", "turns": sides("user", reply)}])
    with pytest.raises(InputError, match=f"only 'user' speaks .* {reply!r} is not read"):
        fastscore.score(path, options, embedder=None, layout="pairs")
    for suite in ("preference_shift", "guest_simulation"):
        assert proposed(path, suite)[-1] == f"speaker:{reply}=assistant"
    assert pairs(path, options, **reading(proposed(path))) == PAIRS


def test_who_begins_is_asked_for_where_the_reply_is_first(options: Any, tmp_path: Path) -> None:
    rows = [{"id": "d1", "turns": [{"bot": r, "user": a} for a, r in PAIRS]}]
    path = write(tmp_path / "log.jsonl", rows)
    with pytest.raises(InputError, match=r"bot is before user .* Type --alternate user"):
        fastscore.score(path, options, embedder=None, layout="pairs")
    assert pairs(path, options, layout="pairs", alternate="user") == PAIRS
    # what the assistant says before the user is left out
    begun = pairs(path, options, layout="pairs", alternate="assistant")
    assert begun == [(asked, reply) for (asked, _), (_, reply) in pairwise(PAIRS)]


def test_a_key_called_user_is_no_side_beside_messages(options: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", [{"id": "d1", "user": "u17", "messages": chat()}])
    assert proposed(path) == ["--layout", "openai"]


LOG = chat(speaker="who", text="said")
SHARED = {
    "columns": {"turns": "log", "speaker": "who", "text": "said", "id": "number", "model": "by"},
    "values": {"speaker": {"asker": "user", "helper": "assistant", "shop": "system"}},
}


@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation", "group_travel"])
def test_one_mapping_is_that_of_all_suites(suite: str) -> None:
    own = {
        "preference_shift": ("session_id", "conversation", "speaker", "text", "model_name"),
        "guest_simulation": ("conversation_id", "", "role", "content", "model"),
        "group_travel": ("dialogue_id", "turns", "speaker", "utterance", ""),
    }[suite]
    words = {
        "preference_shift": ("USER", "SYSTEM", ""),
        "guest_simulation": ("guest", "assistant", "system"),
        "group_travel": ("user", "System", ""),
    }[suite]
    name, array, speaker, text, model = own
    columns = {name: "number", speaker: "who", text: "said"} | ({array: "log"} if array else {})
    columns |= {model: "by"} if model else {}
    if not array:
        columns |= {speaker: "log[].who", text: "log[].said"}
    values = {speaker: dict(zip(("asker", "helper", "shop"), words, strict=True))}
    shared = {key: path for key, path in SHARED["columns"].items() if model or key != "model"}
    source = load_suite(suite).source
    by_own = map_source(source, column_map(columns, values))
    by_shared = map_source(source, column_map(shared, SHARED["values"]))
    assert by_shared.chat is not None
    assert by_own.chat is not None
    for part in ("turns", "speaker", "text", "id", "model"):
        assert getattr(by_shared.chat.layout, part) == getattr(by_own.chat.layout, part)
    assert role_words(by_shared.chat.layout, by_shared.chat.rows) == role_words(
        by_own.chat.layout, by_own.chat.rows
    )


def test_inspect_prints_one_mapping_for_every_suite(options: Any, tmp_path: Path) -> None:
    turns = [{**turn, "who": {"user": "customer"}.get(turn["who"], "bot")} for turn in LOG]
    path = write(tmp_path / "log.jsonl", [{"id": "d1", "log": turns * 2}])
    flags = proposed(path)
    assert (
        flags
        == proposed(path, "guest_simulation")
        == [
            word
            for each in ("turns=log", "speaker=who", "text=said")
            for word in ("--column", each)
        ]
        + ["--value", "speaker:bot=assistant", "--value", "speaker:customer=user"]
    )
    assert pairs(path, options, **reading(flags)) == PAIRS * 2


def test_a_layout_maps_columns_of_any_suite_by_the_shared_names(
    options: Any, tmp_path: Path
) -> None:
    layout = tmp_path / "mine.toml"
    layout.write_text('title = "mine"\n[columns]\nturns = "log"\nspeaker = "who"\ntext = "said"\n')
    path = write(tmp_path / "log.jsonl", [{"id": "d1", "log": LOG}])
    assert pairs(path, options, layout=str(layout)) == PAIRS
    guests = fastscore.score(path, fastscore.GuestSimulation(), embedder=None, layout=str(layout))
    assert guests.tables["messages"]["dialogue"].to_list() == ["d1"] * 3


@pytest.mark.parametrize("layout", ["openai", "langfuse"])
@pytest.mark.parametrize("odd", [5, 1.5, [1]])
def test_an_element_that_is_no_turn_is_not_read_as_a_text(
    layout: str, odd: Any, tmp_path: Path
) -> None:
    """By columns at paths (openai) as document by document (langfuse)."""
    messages = [*chat(1), odd, *chat(1)]
    row = {"id": "d1", "messages": messages}
    if layout == "langfuse":
        row = {"id": "d1", "input": {"messages": messages}, "output": "Watch Heat."}
    path = write(tmp_path / "log.jsonl", [row])
    with pytest.warns(fastscore.RejectsWarning, match="expected a JSON object"):
        run = fastscore.score(
            path, "guest_simulation", embedder=None, layout=layout, max_rejects=1.0
        )
    assert run.rejects.select("line", "reason").rows() == [(1, "not_an_object")]
    assert run.tables["messages"].height == 2  # of guests


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("minute", ("10:00", "10:01")),
        ("timestamp", ("2025-01-01 10:00:00", "2025-01-01 10:00:05")),
        ("step", (0, 1)),
        ("turn_idx", ("first", "second")),
    ],
)
@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
def test_times_and_step_numbers_are_no_speakers(
    suite: str, key: str, values: tuple[Any, Any], options: Any, tmp_path: Path
) -> None:
    turns = [
        {"dialogue": name, key: values[place % 2], "text": turn["content"]}
        for name in "ab"
        for place, turn in enumerate(chat())
    ]
    log = write(tmp_path / "log.jsonl", turns)
    with pytest.raises(InputError) as refused:
        fastscore.score(log, options if suite == "preference_shift" else suite, embedder=None)
    assert f"={key}" not in str(refused.value)


def test_a_text_is_no_column_of_numbers(options: Any, tmp_path: Path) -> None:
    # `ref` is also what a reference text is called
    turns = [
        {"ref": k, "wer": turn["role"], "was": turn["content"]}
        for k in range(2)
        for turn in chat(user="Kunde", assistant="Berater")
    ]
    log = write(tmp_path / "log.csv", turns)
    with pytest.raises(InputError, match="--column text=was --column session_id=ref"):
        fastscore.score(log, options, embedder=None)
