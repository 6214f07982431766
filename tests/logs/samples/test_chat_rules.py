"""What dialogues say of themselves beside what is read of them: nothing is left out in silence."""

import json
from pathlib import Path
from typing import Any

import pytest

import fastscore
from fastscore.errors import InputError
from tests.logs import chats

SAID = ["A drama, please.", "Watch Heat.", "A comedy now.", "Clueless is one."]


def messages(role: str = "role", text: str = "content", *, n: int = 4) -> list[dict[str, str]]:
    return chats.chat([SAID[:2], SAID[2:]], role, text)[:n]


def scored(log: Path, rows: list[Any], suite: str = "preference_shift", **how: Any) -> Any:
    options = chats.options_of(suite, log.parent)
    return chats.scored(chats.write(log, rows), options, **how)


OF_TURNS = {"conversation": "log", "speaker": "role", "text": "message"}
ROLES = {"role": {"user": "guest"}}
CHATML = "<|im_start|>user\nA drama?<|im_end|>\n<|im_start|>assistant\nHeat.<|im_end|>\n"


@pytest.mark.parametrize(
    ("row", "how", "found"),
    [
        (  # the messages of PaLM, whose context is a prompt
            {"context": SAID[0], "messages": messages("author", n=3), "response": SAID[3]},
            {"layout": "context-response"},
            "messages holds a chat, and is not read",
        ),
        (
            {"chat_history": [{"inputs": {"q": "Hi"}}], "question": SAID[2], "answer": SAID[3]},
            {"layout": "context-response"},
            "chat_history holds a chat, and is not read",
        ),
        (  # the last turn of Cohere's chats
            {"log": messages("role", "message", n=2), "message": SAID[2], "text": SAID[3]},
            {"columns": OF_TURNS, "values": {"speaker": {"user": "USER", "assistant": "SYSTEM"}}},
            "message stands beside the turns as it does in them",
        ),
        (
            {"prompt": CHATML, "output": SAID[3]},
            {"layout": "context-response"},
            "prompt is a whole transcript",
        ),
        (
            {"internal": [SAID[:2], SAID[2:]], "visible": [SAID[:2], SAID[2:]]},
            {"layout": "nested"},
            "two arrays of a document have the same turns",
        ),
        (
            {"messages": [{**each, "isThought": each["role"] != "user"} for each in messages()]},
            {"layout": "openai"},
            "isThought is true in 4 messages of the first 8",
        ),
        (
            {"messages": [*messages(n=1), {"role": "assistant", "content": ""}, *messages()]},
            {"layout": "openai"},
            "the reply to 'A drama, please.' is empty, and would be left out",
        ),
        (
            {"asked": [{"said": each} for each in SAID[::2]], "answers": [{"said": SAID[1]}] * 2},
            {"columns": {"turns": "asked", "text": "said"}, "alternate": "user"},
            r"answers\[\].said has a text for each turn of asked: these are pairs",
        ),
        (
            {"session_id": "a", "context": SAID[:1], "candidates": SAID[1:3]},
            {
                "layout": "context-response",
                "columns": {"reply": "candidates[]"},
                "dialogue": "session_id",
            },
            r"candidates\[\] has several candidates for a reply",
        ),
    ],
)
def test_what_is_beside_the_turns_is_asked_for(row, how, found, tmp_path):
    with pytest.raises(InputError, match=found):
        scored(tmp_path / "log.jsonl", [row, row], **how)


@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
def test_a_dialogue_under_other_keys_is_not_left_out(suite, tmp_path):
    rows = [{"messages": messages()}, {"messages": messages("from", "value")}]
    with pytest.raises(InputError, match="a dialogue has turns of 'from', 'value', another of"):
        scored(tmp_path / "log.jsonl", rows, suite, layout="openai")


def test_documents_that_go_on_with_another_are_no_dialogues(tmp_path):
    rows = [
        {
            "id": f"r{n}",
            "previous_response_id": f"r{n - 1}" if n else None,
            "messages": messages(n=2),
        }
        for n in range(3)
    ]
    with pytest.raises(InputError, match="previous_response_id is 'r0', another document") as said:
        scored(tmp_path / "log.jsonl", rows, layout="openai")
    assert str(said.value).endswith("log.jsonl > chats.jsonl, and read it with --dialogue session.")
    # as what is typed writes them: with the id of the first
    joined = [{**row, "session": "r0"} for row in rows]
    for turn, row in zip(messages(), joined, strict=False):
        row["messages"] = [{**each, "content": f"{turn['content']} {each['content']}"}
                           for each in row["messages"]]  # fmt: skip
    run = scored(tmp_path / "log.jsonl", joined, layout="openai", dialogue="session")
    assert (run.tables["dialogues"].height, run.tables["turns"].height) == (1, 3)


def test_turns_of_one_role_with_several_names_are_asked_for(tmp_path):
    turns = [{**each, "role": "user", "name": each["role"]} for each in messages()]
    with pytest.raises(
        InputError, match="only 'user' speaks in a dialogue, and name is 'user', 'as"
    ):
        scored(tmp_path / "log.jsonl", turns, "guest_simulation", values=ROLES)


def test_rows_that_are_a_tree_are_refused(tmp_path):
    turns = [{**each, "id": f"m{k}"} for k, each in enumerate(messages())]
    for turn, parent in zip(turns, (None, "m0", "m0", "m2"), strict=True):
        turn["parent_id"] = parent  # type: ignore[assignment]
    with pytest.raises(InputError, match="no line but a tree: parent_id is 'm0' in 2 of them"):
        scored(tmp_path / "log.jsonl", turns, "guest_simulation", values=ROLES)


def test_what_has_no_order_is_not_sorted_by(tmp_path):
    turns = [
        {"conversation_id": "c", "sent": f"Wed, 0{9 - k} May", **each}
        for k, each in enumerate(messages())
    ]
    with pytest.raises(
        InputError, match="sort_by is sent, and its value 'Wed, 09 May' has no order"
    ):
        scored(tmp_path / "log.jsonl", turns, layout="turns", sort_by="sent")


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_states_of_one_dialogue_are_the_longest_in_any_order(order, tmp_path):
    rows = [{"thread": {"id": "t"}, "messages": messages(n=n + 1)} for n in order]
    run = scored(tmp_path / "log.jsonl", rows, layout="openai", dialogue="thread.id")
    # A drama, please / Watch Heat, and A comedy now / Clueless is one
    assert run.tables["turns"].height == 2
    guests = scored(
        tmp_path / "guests.jsonl",
        rows,
        "guest_simulation",
        layout="openai",
        dialogue="thread.id",
        values=ROLES,
    )
    assert guests.tables["dialogues"]["n_guest_messages"].to_list() == [2]


def test_a_message_counts_before_other_texts_under_a_reply(tmp_path):
    output = {"id": "x", "choices": [{"message": messages()[3], "finish_reason": "stop"}]}
    row = {"messages": messages(n=3), "output": output}
    with pytest.raises(InputError, match=r"reply=output\.choices\[\]\.message") as refused:
        scored(tmp_path / "log.jsonl", [row], layout="openai")
    assert "output.id" not in str(refused.value)
    run = scored(
        tmp_path / "log.jsonl",
        [row],
        layout="openai",
        columns={"reply": "output.choices[].message"},
    )
    assert run.tables["turns"].height == 2


def test_an_empty_text_beside_a_call_is_no_empty_reply(tmp_path):
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "t"}]}
    turns = [*messages(n=1), call, *messages()[1:]]
    run = scored(tmp_path / "log.jsonl", [{"messages": turns}], layout="openai")
    assert run.tables["turns"].height == 2


def test_trials_of_a_task_are_no_states_of_one_dialogue(tmp_path):
    rows = [{"task": 1, "trial": k, "messages": messages(n=4) * (1 + k)} for k in range(2)]
    run = scored(tmp_path / "log.jsonl", rows, layout="openai")
    assert run.tables["dialogues"].height == 2
    for row in rows:
        del row["trial"]
    with pytest.raises(InputError, match="1 of the first 2 dialogues are beginnings"):
        scored(tmp_path / "log.jsonl", rows, layout="openai")


@pytest.mark.parametrize("name", ["TripBot", "Bot", "AI"])
def test_a_member_with_the_intents_of_a_system_is_asked_for(tmp_path, name):
    turns = [
        {"speaker": "Ann", "intent": "user_provide_budget", "utterance": "Below 100."},
        {"speaker": name, "intent": "sys_present_plan", "utterance": "Day 1: Rome."},
    ]
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"metadata": {"dialogue_id": "d"}, "turns": turns}) + "\n")
    with pytest.raises(InputError, match=rf"Type --value speaker:{name}=System\.$"):
        fastscore.score(log, "group_travel", embedder=None)
    values = {"speaker": {name: "System"}}
    run = fastscore.score(log, "group_travel", embedder=None, values=values)
    assert run.tables["dialogues"]["M1_den"].item() == 1
    named = log.read_text()
    for system in ('"Mediator"', '""', "null"):
        log.write_text(named.replace(f'"{name}"', system))
        run = fastscore.score(log, "group_travel", embedder=None)
        assert run.tables["dialogues"]["M1_den"].item() == 1


def test_an_encoding_is_named_before_what_the_rows_lack(tmp_path):
    log = tmp_path / "log.jsonl"
    said = "Ich h\u00e4tte gern sch\u00f6ne Gr\u00fc\u00dfe f\u00fcr Frau M\u00fcller. " * 9
    row = {"who": "kl\u00e4ger", "said": said}
    text = json.dumps({"first": "row"}) + "\n" + json.dumps(row, ensure_ascii=False) + "\n"
    log.write_bytes(text.encode("cp1252"))
    with pytest.raises(InputError, match=r"log\.jsonl:2: the text is not UTF-8\. .* iconv -f WIN"):
        fastscore.score(log, "guest_simulation", embedder=None)
