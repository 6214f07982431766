"""Every bundled layout against a reader of its own in plain Python: the turns, then the scores.

The readers know nothing of layouts. Each follows the public description of its tool's files.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.logs.inputs.layout import layout_names, load_layout
from tests.logs.read.test_layouts import ASK, DOCUMENTS, FROM, HEAT, YEARS
from tests.oracles import preference_shift as plain
from tests.oracles.preference_shift_concepts import PROFILES, make_catalogue

U, S = "USER", "SYSTEM"
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

Dialogue = tuple[str | None, list[tuple[str, Any]]]


def joined(content: Any) -> str | None:
    """Return the text of a content that is a text or parts."""
    if content is None or isinstance(content, str):
        return content
    texts = [
        part.get("text", part.get("content"))
        for part in content
        if part.get("type") in (None, "text") and not part.get("thought")
    ]
    return "\n".join(texts) or None


def of_roles(messages: Any, speaker: str, text: str, words: dict[str, str]) -> list[Any]:
    found = [(words.get(each.get(speaker)), joined(each.get(text))) for each in messages]
    return [(who, said) for who, said in found if who and said]


def chat(messages: Any) -> list[Any]:
    return of_roles(messages, "role", "content", {"user": U, "assistant": S})


def openai(each: Any) -> Iterator[Dialogue]:
    yield each.get("id"), chat(each["messages"])


def sharegpt(each: Any) -> Iterator[Dialogue]:
    yield each["id"], of_roles(each["conversations"], "from", "value", {"human": U, "gpt": S})


def anthropic(each: Any) -> Iterator[Dialogue]:
    reply = each.get("response") or each["result"]["message"]
    yield each["custom_id"], chat([*each["params"]["messages"], reply])


def gemini(each: Any) -> Iterator[Dialogue]:
    contents = each["request"]["contents"] + [each["response"]["candidates"][0]["content"]]
    yield each["key"], of_roles(contents, "role", "parts", {"user": U, "model": S})


def langfuse(each: Any) -> Iterator[Dialogue]:
    history, reply = each["input"], each["output"]
    if isinstance(history, str):
        history = (
            json.loads(history) if history.startswith("[") else [{"role": U, "content": history}]
        )
    elif isinstance(history, dict):
        history = history["messages"]
    if isinstance(reply, str):
        reply = {"role": "assistant", "content": reply}
    if "messages" in reply:  # all of it once more
        history, reply = reply["messages"][:-1], reply["messages"][-1]
    words = {"user": U, U: U, "assistant": S}
    yield each["id"], of_roles([*history, reply], "role", "content", words)


def langsmith(each: Any) -> Iterator[Dialogue]:
    (messages,) = each["inputs"]["messages"]
    reply = each["outputs"]["generations"][0][0]["message"]
    held = [message["kwargs"] for message in [*messages, reply]]
    yield each["id"], of_roles(held, "type", "content", {"human": U, "ai": S})


def otel_genai(each: Any) -> Iterator[Dialogue]:
    held = each["attributes"]
    messages = []
    for key in ("gen_ai.input.messages", "gen_ai.output.messages"):
        value = held[key]
        messages += json.loads(value) if isinstance(value, str) else value
    words = {"user": U, "assistant": S}
    yield held["gen_ai.conversation.id"], of_roles(messages, "role", "parts", words)


def inspect(each: Any) -> Iterator[Dialogue]:
    for sample in each["samples"]:
        yield f"{sample['id']}:{sample['epoch']}", chat(sample["messages"])


def nested(each: Any) -> Iterator[Dialogue]:
    if "data" in each:
        each = each["data"]
    for name, value in each.items():
        if isinstance(value, list):
            for inner in value:
                yield inner["id"], chat(inner.get("messages") or inner["turns"])
        elif isinstance(value, dict):
            yield name, chat(value["messages"])


def openai_batch(each: Any) -> Iterator[Dialogue]:
    reply = each["response"]["body"]["choices"][0]["message"]
    yield each["custom_id"], chat([*each["body"]["messages"], reply])


def lm_eval(each: Any) -> Iterator[Dialogue]:
    held = each["arguments"]
    prompt = held[0][0] if isinstance(held, list) else held["gen_args_0"]["arg_0"]
    prompt = prompt[0] if isinstance(prompt, list) else prompt
    history = (
        json.loads(prompt) if prompt.startswith("[") else [{"role": "user", "content": prompt}]
    )
    reply = {"role": "assistant", "content": each["resps"][0][0]}
    yield str(each["doc_id"]), chat([*history, reply])


def turns(each: Any) -> Iterator[Dialogue]:
    name = each.get("conversation_id") or each["dialogue_id"]
    who = each.get("speaker") or each["role"]
    said = each.get("text") or each["utterance"]
    yield name, [({"user": U, "USER": U}.get(who, S), said)]


def dialoguekit(each: Any) -> Iterator[Dialogue]:
    words = {"USER": U, "AGENT": S}
    yield each["conversation ID"], of_roles(each["conversation"], "participant", "utterance", words)


def rasa(each: Any) -> Iterator[Dialogue]:
    yield each["sender_id"], of_roles(each["events"], "event", "text", {"user": U, "bot": S})


def redial(each: Any) -> Iterator[Dialogue]:
    words = {each["initiatorWorkerId"]: U, each["respondentWorkerId"]: S}
    yield each["conversationId"], of_roles(each["messages"], "senderWorkerId", "text", words)


def sgd(each: Any) -> Iterator[Dialogue]:
    yield each["dialogue_id"], of_roles(each["turns"], "speaker", "utterance", {U: U, S: S})


def multiwoz(each: Any) -> Iterator[Dialogue]:
    if "turns" in each:
        yield from sgd(each)
        return
    for name, dialogue in each.items():
        yield name, [((U, S)[place % 2], e["text"]) for place, e in enumerate(dialogue["log"])]


def taskmaster(each: Any) -> Iterator[Dialogue]:
    words = {"USER": U, "ASSISTANT": S}
    yield each["conversation_id"], of_roles(each["utterances"], "speaker", "text", words)


def openassistant(each: Any) -> Iterator[Dialogue]:
    def paths(message: Any, before: list[Any]) -> Iterator[list[Any]]:
        path = [*before, message]
        for reply in message["replies"]:
            yield from paths(reply, path)
        if not message["replies"]:
            yield path

    for number, path in enumerate(paths(each["prompt"], []), start=1):
        words = {"prompter": U, "assistant": S}
        yield f"{each['message_tree_id']}:{number}", of_roles(path, "role", "text", words)


def hf_messages(each: Any) -> Iterator[Dialogue]:
    if "messages" in each:
        yield each["id"], chat(each["messages"])
    elif isinstance(each["prompt"], str):
        yield each["id"], [(U, each["prompt"]), (S, each["completion"])]
    else:
        yield each.get("id"), chat([*each["prompt"], *each["completion"]])


def pairs(each: Any) -> Iterator[Dialogue]:
    if isinstance(each, dict):
        name, held = each["id"], each["history"]
    else:
        name, held = None, each
    yield name, [turn for user, reply in held for turn in ((U, user), (S, reply))]


def context_response(each: Any) -> Iterator[Dialogue]:
    if "history" in each:
        (name, found), *_ = pairs(each)
        yield name, [*found, (U, each["question"]), (S, each["response"])]
        return
    context = each["context"] if isinstance(each["context"], list) else [each["context"]]
    texts = [*context, each["response"]]
    yield each.get("id"), [((U, S)[place % 2], text) for place, text in enumerate(texts)]


def of_rows(key: str, message: str, words: dict[str, str]) -> Callable[[Any], Iterator[Dialogue]]:
    """Return a reader of rows that are messages of sessions."""

    def read(each: Any) -> Iterator[Dialogue]:
        held = each.get(message) or {}
        who = words.get(held.get("role") or each.get("event_name", ""))
        said = joined(held.get("content") or held.get("message", {}).get("content"))
        if said:
            yield each[key], [(who, said)]

    return read


def chatgpt(each: Any) -> Iterator[Dialogue]:
    path, at = [], each["current_node"]
    while at is not None:
        node = each["mapping"][at]
        path.append(node["message"] or {"author": {"role": ""}, "content": {"parts": []}})
        at = node["parent"]
    words = {"user": U, "assistant": S}
    said = [(words.get(m["author"]["role"]), "".join(m["content"]["parts"])) for m in path[::-1]]
    yield each["conversation_id"], [(who, text) for who, text in said if who and text]


def claude(each: Any) -> Iterator[Dialogue]:
    yield (
        each["uuid"],
        of_roles(each["chat_messages"], "sender", "text", {"human": U, "assistant": S}),
    )


def label_studio(each: Any) -> Iterator[Dialogue]:
    yield (
        str(each["id"]),
        of_roles(each["data"]["dialogue"], "author", "text", {"user": U, "bot": S}),
    )


def botium(each: Any) -> Iterator[Dialogue]:
    words = {"me": U, "bot": S}
    said = of_roles(each["conversation"], "sender", "messageText", words)
    yield each["header"]["name"], said


def tau_bench(each: Any) -> Iterator[Dialogue]:
    yield f"{each['task_id']}:{each['trial']}", chat(each["traj"])


def tau2_bench(each: Any) -> Iterator[Dialogue]:
    for run in each["simulations"]:
        yield f"{run['task_id']}:{run['trial']}", chat(run["messages"])


def otel_events(each: Any) -> Iterator[Dialogue]:
    said = []
    for event in each["events"]:
        held = event["attributes"]
        text = held.get("content") or json.loads(held.get("message", "{}")).get("content")
        said.append(({"gen_ai.user.message": U, "gen_ai.choice": S}.get(event["name"]), text))
    yield each["traceId"], [(who, text) for who, text in said if who]


READERS: dict[str, Callable[[Any], Iterator[Dialogue]]] = {
    "anthropic": anthropic,
    "botium": botium,
    "chatgpt": chatgpt,
    "claude": claude,
    "claude-code": of_rows("sessionId", "message", {"user": U, "assistant": S}),
    "context-response": context_response,
    "convokit": turns,
    "dialoguekit": dialoguekit,
    "gemini": gemini,
    "hf-messages": hf_messages,
    "inspect": inspect,
    "label-studio": label_studio,
    "langfuse": langfuse,
    "langsmith": langsmith,
    "lm-eval": lm_eval,
    "multiwoz": multiwoz,
    "nested": nested,
    "openai": openai,
    "openai-batch": openai_batch,
    "openassistant": openassistant,
    "otel-events": otel_events,
    "otel-genai": otel_genai,
    "otel-log-events": of_rows(
        "trace_id", "body", {"gen_ai.user.message": U, "gen_ai.choice": S, "assistant": S}
    ),
    "pairs": pairs,
    "rasa": rasa,
    "redial": redial,
    "sgd": sgd,
    "sharegpt": sharegpt,
    "taskmaster": taskmaster,
    "tau-bench": tau_bench,
    "tau2-bench": tau2_bench,
    "turns": turns,
}


def documents_of(name: str, kind: str) -> list[Any]:
    """Return the documents of a test, or the example that `fastscore layouts` shows."""
    found = DOCUMENTS[name][0]
    if kind == "example":
        example = load_layout(name).example
        found = example if isinstance(example, list) and name != "pairs" else [example]
    text = json.dumps(found)
    for before, after in SAID.items():
        text = text.replace(before, after)
    documents: list[Any] = json.loads(text)
    return documents


def read_plainly(name: str, documents: list[Any]) -> list[Dialogue]:
    """Read documents by the reader of their layout; rows of one dialogue belong together."""
    found: dict[str | None, list[tuple[str, Any]]] = {}
    for each in documents:
        for dialogue, said in READERS[name](each):
            found.setdefault(dialogue, []).extend(said)
    return list(found.items())


def conversations(dialogues: list[Dialogue]) -> list[dict[str, Any]]:
    return [
        {
            "session_id": name,
            "conversation": [{"speaker": who, "text": text} for who, text in said],
        }
        for name, said in dialogues
    ]


UNNAMED = ("openai", "context-response")
"""Layouts that name no key of ids: a suite knows its own, and else names the line."""
MODELS = {"inspect": "m", "tau2-bench": "m"}
"""The model of every dialogue, in the documents of layouts that read one."""


def test_every_bundled_layout_has_a_reader() -> None:
    assert set(READERS) == set(layout_names())


@pytest.mark.parametrize("kind", ["documents", "example"])
@pytest.mark.parametrize("name", READERS)
def test_scores_are_those_of_the_turns_that_plain_python_reads(
    name: str, kind: str, tmp_path: Path
) -> None:
    documents = documents_of(name, kind)
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in documents))
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(json.dumps(CATALOGUE))
    suite = fastscore.PreferenceShift(catalogue=str(catalogue), segments="metadata")
    logs = conversations(read_plainly(name, documents))
    found = fastscore.score(path, suite, layout=name, embedder=None, max_rejects=1.0)
    own = fastscore.score(logs, suite, embedder=None)
    places = ("file", "line", "byte_offset", "dialogue", "session_id", "model")
    for table, frame in own.tables.items():
        other = found.tables[table]
        assert frame.drop(places, strict=False).equals(other.drop(places, strict=False)), table
    compare_with_the_oracle(found.tables["turns"], logs)
    names = [log["session_id"] for log in logs if log["session_id"] is not None]
    if names:
        assert found.tables["dialogues"]["session_id"].to_list() == names
    assert found.tables["turns"].height > 0


def compare_with_the_oracle(turns: pl.DataFrame, logs: list[dict[str, Any]]) -> None:
    expected = [
        (turn["cc"], turn["i"])
        for log in plain.score_logs(logs, make_catalogue(CATALOGUE), PROFILES["default"])
        for turn in log["turns"]
    ]
    assert turns.select("cc", "i").rows() == expected


@pytest.mark.parametrize("name", READERS)
def test_rows_of_messages_are_scored_as_frames_of_the_same_rows(name: str, tmp_path: Path) -> None:
    documents = documents_of(name, "documents")
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in documents))
    rows = [
        {
            "conversation_id": dialogue,
            "model": MODELS.get(name),
            "role": {U: "guest", S: "assistant"}[who],
            "content": text,
        }
        for dialogue, said in read_plainly(name, documents)
        for who, text in said
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
