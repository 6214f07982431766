"""Bundled layouts, each on a document as its tool writes it, against turns written by hand."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastscore.logs.inputs.column_map import ColumnMap, map_from, map_source, stored_map
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.inputs.layout import as_toml, layout_map, layout_names, load_layout
from fastscore.logs.samples.screening import screen
from fastscore.suites.chats import ChatLayout
from fastscore.suites.registry import load_suite
from tests.conftest import often
from tests.logs.chats import proposed
from tests.logs.planned import plan as plan_of
from tests.logs.planned import read as read_of

U, S = "USER", "SYSTEM"
ASK, FROM, YEARS, HEAT = "A drama, please.", "From which years?", "The nineties.", "Watch Heat."
FOUR = [(U, ASK), (S, FROM), (U, YEARS), (S, HEAT)]
TWO = [(U, ASK), (S, HEAT)]
TOOL_CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}


def _messages(*turns: tuple[Any, Any], keys: tuple[str, str] = ("role", "content")) -> list[Any]:
    return [dict(zip(keys, turn, strict=True)) for turn in turns]


def _said(user: Any, assistant: Any) -> list[tuple[Any, str]]:
    return [(user, ASK), (assistant, FROM), (user, YEARS), (assistant, HEAT)]


def _chat(user: Any, assistant: Any, speaker: str = "role", text: str = "content") -> list[Any]:
    return _messages(*_said(user, assistant), keys=(speaker, text))


def _parts(text: str, key: str = "text") -> list[dict[str, str]]:
    return [{"type": "text", key: text}]


OPENAI = _chat("user", "assistant")


def _message(id: str, parent: str, role: str, text: str) -> dict[str, Any]:
    said = {"author": {"role": role}, "content": {"parts": [text]}}
    return {"id": id, "parent": parent, "message": said}


MAPPING: dict[str, Any] = {
    "0": {"id": "0", "parent": None, "message": None},
    "old": _message("old", "1", "assistant", "Watch Her."),
    **{
        str(place): _message(str(place), str(place - 1), who, text)
        for place, (who, text) in enumerate(_said("user", "assistant"), 1)
    },
}
SPAN = {
    "gen_ai.conversation.id": "d",
    "gen_ai.input.messages": json.dumps(
        [
            {"role": role, "parts": _parts(text, "content")}
            for role, text in (("user", ASK), ("assistant", FROM), ("user", YEARS))
        ]
    ),
    "gen_ai.output.messages": [{"role": "assistant", "parts": _parts(HEAT, "content")}],
}


def _node(role: str, text: str, *replies: Any) -> dict[str, Any]:
    return {"role": role, "text": text, "replies": [*replies]}


ANSWER = _node("assistant", HEAT)
TREE = _node("prompter", ASK, ANSWER, _node("assistant", FROM, _node("prompter", YEARS, ANSWER)))


DOCUMENTS: dict[str, tuple[list[Any], list[tuple[str | None, list[tuple[str, str]]]]]] = {
    "openai": (
        [{"id": "d", "messages": [
            {"role": "system", "content": "Recommend."}, *OPENAI[:2], TOOL_CALL,
            {"role": "tool", "content": "[]"}, {"role": "user", "content": _parts(YEARS)},
            {"role": "assistant", "content": ""}, OPENAI[3],
        ]}],
        [("d", FOUR)],
    ),
    "anthropic": (
        [{
            "custom_id": "d",
            "params": {"system": "Recommend.", "messages": _messages(
                ("user", ASK), ("assistant", _parts(FROM)), ("user", _parts(YEARS)),
                ("assistant", [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]),
                ("user", [{"type": "tool_result", "tool_use_id": "t", "content": "Heat"}]),
            )},
            "result": {"message": {"role": "assistant", "content": _parts(HEAT)}},
        }],
        [("d", FOUR)],
    ),
    "gemini": (
        [{
            "key": "d",
            "request": {"contents": [
                {"role": "user", "parts": [{"text": ASK}]},
                {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": FROM}]},
                {"role": "user", "parts": [{"text": YEARS}]},
            ]},
            "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": HEAT}]}}]},
        }],
        [("d", FOUR)],
    ),
    "langfuse": (
        [
            {"id": "a", "input": OPENAI[:3], "output": OPENAI[3]},
            {"id": "b", "input": {"messages": OPENAI[:3]}, "output": HEAT},
            {"id": "c", "input": json.dumps(OPENAI[:3]), "output": {"messages": OPENAI}},
            {"id": "d", "input": ASK, "output": HEAT},
        ],
        [("a", FOUR), ("b", FOUR), ("c", FOUR), ("d", TWO)],
    ),
    "otel-genai": ([{"traceId": "1", "attributes": SPAN}], [("d", FOUR)]),
    "inspect": (
        [{
            "eval": {"model": "m"},
            "samples": [{"id": "d", "epoch": epoch, "messages": OPENAI} for epoch in (1, 2)],
        }],
        [("d:1", FOUR), ("d:2", FOUR)],
    ),
    "nested": (
        [
            {"dialogues": [{"id": "a", "messages": OPENAI}, {"id": "b", "messages": OPENAI}]},
            {"c": {"messages": OPENAI}, "version": 1, "d": {"messages": OPENAI}},
            {"data": {"conversations": [{"id": "e", "turns": OPENAI}]}},
        ],
        [(name, FOUR) for name in "abcde"],
    ),
    "botium": (
        [{
            "header": {"name": "d"},
            "conversation": [
                {"sender": "begin", "messageText": ""},
                *_chat("me", "bot", "sender", "messageText"),
            ],
        }],
        [("d", FOUR)],
    ),
    "chatgpt": ([{"conversation_id": "d", "current_node": "4", "mapping": MAPPING}], [("d", FOUR)]),
    "claude-code": (
        [
            {"type": "summary", "summary": "Films", "sessionId": "d"},
            *({"sessionId": "d", "message": each} for each in OPENAI),
        ],
        [("d", FOUR)],
    ),
    "lm-eval": (
        [
            {"doc_id": 0, "arguments": [[ASK, {"until": []}]], "resps": [[HEAT]]},
            {
                "doc_id": 1,
                "arguments": {"gen_args_0": {"arg_0": [json.dumps(OPENAI[:3])]}},
                "resps": [[HEAT]],
            },
        ],
        [("0", TWO), ("1", FOUR)],
    ),
    "turns": (
        [
            {"dialogue_id": name, "role": who, "utterance": text}
            for who, text in _said("user", "bot")
            for name in ("d", "e")
        ],
        [("d", FOUR), ("e", FOUR)],
    ),
    "multiwoz": (
        [
            {
                name: {"goal": {}, "log": [{"text": text, "metadata": {}} for _, text in FOUR]}
                for name in ("d.json", "e.json")
            },
            {"dialogue_id": "f", "turns": _chat(U, S, "speaker", "utterance")},
        ],
        [("d.json", FOUR), ("e.json", FOUR), ("f", FOUR)],
    ),
    "openassistant": (
        [{"message_tree_id": "d", "prompt": TREE}], [("d:1", TWO), ("d:2", FOUR)]
    ),
    "hf-messages": (
        [
            {"id": "a", "messages": OPENAI},
            {"id": "b", "prompt": OPENAI[:3], "completion": OPENAI[3:]},
            {"id": "c", "prompt": ASK, "completion": HEAT},
        ],
        [("a", FOUR), ("b", FOUR), ("c", TWO)],
    ),
    "pairs": (
        [
            {"id": "d", "history": [[ASK, FROM], [YEARS, HEAT]]},
            {"id": "e", "turns": [{"user": ASK, "assistant": FROM}, {"user": YEARS, "bot": HEAT}]},
            {"id": "f", "customer": ASK, "bot": HEAT},
        ],
        [("d", FOUR), ("e", FOUR), ("f", TWO)],
    ),
    "context-response": (
        [
            {"id": "a", "context": [ASK, FROM, YEARS], "response": HEAT},
            {"id": "b", "context": ASK, "response": HEAT},
            {"id": "c", "history": [[ASK, FROM]], "question": YEARS, "response": HEAT},
        ],
        [("a", FOUR), ("b", TWO), ("c", FOUR)],
    ),
}  # fmt: skip
"""Documents of layouts that read several forms, or more than the example of a layout shows."""
OF_EXAMPLES = {
    "d1": "claude convokit dialoguekit openai-batch rasa redial sgd sharegpt taskmaster",
    "1": "label-studio otel-events otel-log-events",
    "r1": "langsmith",
    "0:0": "tau-bench tau2-bench",
}
"""By the dialogue in them, layouts whose example is all that is tried."""


def examples(name: str) -> list[Any]:
    example = load_layout(name).example
    return example if isinstance(example, list) else [example]


CASES = DOCUMENTS | {
    name: (examples(name), [(id, TWO)])
    for id, names in OF_EXAMPLES.items()
    for name in names.split()
}


def read(path: Path, suite: str, columns: ColumnMap, shard_bytes: int = 1) -> pl.DataFrame:
    source = map_source(load_suite(suite).source, columns)
    planned = plan_of(path.parent, path, source=source, shard_bytes=shard_bytes)
    frame, rejects, _ = read_of(planned, source)
    assert rejects.is_empty()
    return frame


def dialogues(frame: pl.DataFrame) -> list[tuple[str | None, list[tuple[str, str]]]]:
    return [
        (name, [(turn["speaker"], turn["text"]) for turn in json.loads(turns)])
        for name, turns in frame.select("session_id", "conversation").rows()
    ]


def written(path: Path, documents: list[Any]) -> Path:
    if path.suffix == ".json":
        path.write_text(json.dumps(documents, indent=1))
    else:
        path.write_text("".join(json.dumps(each) + "\n" for each in documents))
    return path


def test_every_bundled_layout_is_tested():
    assert set(layout_names()) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_documents_become_the_turns_that_they_contain(name, tmp_path):
    documents, expected = CASES[name]
    columns = layout_map(name, "preference_shift")
    for path in (tmp_path / "log.jsonl", tmp_path / "log.json"):
        written(path, documents)
        for shard_bytes in (1, 1 << 20):
            assert dialogues(read(path, "preference_shift", columns, shard_bytes)) == expected
    # in the suite whose rows are messages, prompts and tools' messages are rows as well
    frame = read(tmp_path / "log.jsonl", "guest_simulation", layout_map(name, "guest_simulation"))
    said = frame.filter(pl.col("role").is_in(["guest", "assistant"]), pl.col("content") != "")
    by_name: dict[str, list[tuple[str, str]]] = {}
    for dialogue, role, content in said.select("conversation_id", "role", "content").rows():
        by_name.setdefault(dialogue, []).append(({"guest": U}.get(role, S), content))
    assert list(by_name.values()) == [turns for _, turns in expected]
    if name not in ("context-response", "hf-messages", "multiwoz", "pairs"):  # several forms
        assert proposed(tmp_path / "log.jsonl") == ["--layout", name]


def test_nan_is_a_missing_text(tmp_path):
    columns, found = layout_map("openai", "guest_simulation"), []
    for text in (math.nan, None):
        turns = [*OPENAI[:2], {"role": "user", "content": text}, OPENAI[3]]
        path = written(tmp_path / "log.jsonl", [{"id": "d", "messages": turns}])
        found.append(read(path, "guest_simulation", columns)["content"].to_list())
    assert found[0] == found[1] == [ASK, FROM, HEAT]


@pytest.mark.parametrize("kind", ["code", "text"])
def test_calls_of_tools_in_chatgpt_are_told_by_the_recipient(kind, tmp_path):
    call = _message("c", "1", "assistant", "")
    call["message"] |= {"recipient": "web", "content": {"content_type": kind, "text": "search()"}}
    reply = _message("2", "c", "assistant", HEAT)
    reply["message"] |= {"recipient": "all", "content": {"content_type": kind, "text": HEAT}}
    mapping = {"1": _message("1", "", "user", ASK), "c": call, "2": reply}
    document = {"conversation_id": "d", "current_node": "2", "mapping": mapping}
    path = written(tmp_path / "log.jsonl", [document])
    columns = layout_map("chatgpt", "preference_shift")
    assert dialogues(read(path, "preference_shift", columns)) == [("d", TWO)]


def test_an_attachment_of_claude_is_the_text_of_an_empty_message(tmp_path):
    pasted = [{"file_name": "paste.txt", "extracted_content": ASK}]
    empty = [{"type": "text", "text": ""}]
    asked = {"sender": "human", "text": "", "content": empty, "attachments": pasted}
    image = {"sender": "human", "text": "", "content": [], "files": [{"file_name": "a.png"}]}
    # the place of a call has a text that nobody said
    call = {"sender": "assistant", "text": "not supported", "content": [{"type": "tool_use"}]}
    reply = {"sender": "assistant", "text": HEAT, "content": [], "attachments": []}
    document = {"uuid": "d", "chat_messages": [image, asked, call, reply]}
    path = written(tmp_path / "log.jsonl", [document])
    columns = layout_map("claude", "preference_shift")
    assert dialogues(read(path, "preference_shift", columns)) == [("d", TWO)]
    source = map_source(load_suite("preference_shift").source, columns)
    notes = screen(resolve_inputs([path], source.formats), source, "preference_shift").notes
    assert "1 message of users in the first rows has no text" in notes[0]


@pytest.mark.parametrize("name", CASES)
def test_a_layout_reads_its_example_and_is_written_as_it_is_read(name, tmp_path):
    columns = layout_map(name, "preference_shift")
    path = written(tmp_path / "log.json", examples(name))
    found = dialogues(read(path, "preference_shift", columns))
    assert all(turns[0][0] == U for _, turns in found)
    path = tmp_path / "mine.toml"
    path.write_text(as_toml("Mine", columns, "preference_shift"))
    assert load_layout(str(path)).of("preference_shift") == columns
    assert map_from(json.loads(json.dumps(stored_map(columns)))) == columns
    if name == "pairs":  # lists, which have no labels
        return
    labelled = [{"model": "m", "guest_persona": "p", **each} for each in examples(name)]
    path = written(tmp_path / "labelled.json", labelled)
    for suite, labels in LABELS.items():
        kept = read(path, suite, layout_map(name, suite)).select(labels)
        assert kept.null_count().row(0) == (0,) * len(labels), suite


LABELS = {"preference_shift": ["model_name"], "guest_simulation": ["model", "guest_persona"]}
contents = st.one_of(
    st.none(),
    st.text(max_size=4),
    st.lists(
        st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=4)), max_size=2
    ),
)
messages = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "assistant", "system", "tool", "other"]),
    contents,
)


@settings(
    max_examples=often(15, 400),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(chats=st.lists(st.lists(messages, max_size=5), min_size=1, max_size=4))
def test_paths_and_documents_give_the_same_turns(tmp_path, chats):
    """A layout that is compiled to paths, and one that reads each document."""
    path = written(tmp_path / "log.jsonl", [{"messages": chat} for chat in chats])
    layout = layout_map("openai", "preference_shift").chat
    assert layout is not None
    by_document = ChatLayout(
        **{name: getattr(layout, name) for name in ("turns", "speaker", "text", "roles")},
        said_by=(("elsewhere", "user"),),
    )
    known = {"user": U, "assistant": S, "other": "other"}
    expected = []
    for chat in chats:
        turns = [
            (known[each["role"]], "\n".join(part["text"] for part in content))
            if isinstance(content := each["content"], list)
            else (known[each["role"]], content)
            for each in chat
            if each["role"] in known
        ]
        turns = [turn for turn in turns if turn[1]]
        while turns and turns[0][0] == S and any(who != S for who, _ in turns):
            turns = turns[1:]
        expected.append((None, turns))
    for chat_layout in (layout, by_document):
        frame = read(path, "preference_shift", ColumnMap(chat=chat_layout))
        assert dialogues(frame) == expected
    frames = [
        read(path, "guest_simulation", ColumnMap(chat=each)).select("role", "content", "line")
        for each in (layout, by_document)
    ]
    assert frames[0].equals(frames[1])


def test_an_array_beside_others_is_no_dialogue_by_its_key(tmp_path):
    """A document is a map of dialogues if its values are objects with turns, or turns alone."""
    turns = [{"speaker": who, "text": text} for who, text in FOUR]
    path = written(tmp_path / "log.jsonl", [{"dialogue_id": "a", "log": turns}])
    for name in ("multiwoz", "nested"):
        frame = read(path, "preference_shift", layout_map(name, "preference_shift"))
        assert dialogues(frame) == [("a", FOUR)]
    path = written(tmp_path / "map.jsonl", [{"a": turns, "b": turns}])
    frame = read(path, "preference_shift", layout_map("nested", "preference_shift"))
    assert dialogues(frame) == [("a", FOUR), ("b", FOUR)]


def test_rows_that_are_turns_are_read_from_tables(tmp_path):
    rows = [
        {"conversation_id": name, "speaker": who, "text": f'{text} "x"'}
        for name in ("a", "b")
        for who, text in FOUR
    ]
    expected = [(name, [(who, f'{text} "x"') for who, text in FOUR]) for name in ("a", "b")]
    with (tmp_path / "log.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    pl.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    for name in ("log.csv", "log.parquet"):
        frame = read(tmp_path / name, "preference_shift", layout_map("turns", "preference_shift"))
        assert dialogues(frame) == expected
        assert frame["line"].to_list() == ([2, 6] if name == "log.csv" else [1, 5])


def test_nested_documents_are_read_from_tables(tmp_path):
    """Traces as Parquet keeps them: lists of structs, or JSON text."""
    rows = [{"id": "a", "input": OPENAI[:3], "output": OPENAI[3]}]
    pl.DataFrame(rows).write_parquet(tmp_path / "nested.parquet")
    texts = [{"id": "a", "input": json.dumps(OPENAI[:3]), "output": json.dumps(OPENAI[3])}]
    pl.DataFrame(texts).write_parquet(tmp_path / "texts.parquet")
    for name in ("nested.parquet", "texts.parquet"):
        columns = layout_map("langfuse", "preference_shift")
        assert dialogues(read(tmp_path / name, "preference_shift", columns)) == [("a", FOUR)]


def test_lines_and_bytes_are_those_of_documents(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = [
        json.dumps({"samples": [{"id": f"{n}{m}", "messages": OPENAI} for m in range(2)]})
        for n in range(3)
    ]
    path.write_text("\n\n".join(lines) + "\n")
    for suite, key in (("preference_shift", "session_id"), ("guest_simulation", "conversation_id")):
        frame = read(path, suite, layout_map("inspect", suite)).unique(key, maintain_order=True)
        assert frame[key].to_list() == ["00", "01", "10", "11", "20", "21"]
        assert frame["line"].to_list() == [1, 1, 3, 3, 5, 5]
        size = len(lines[0]) + 2
        assert frame["byte_offset"].to_list() == [0, 0, size, size, 2 * size, 2 * size]
