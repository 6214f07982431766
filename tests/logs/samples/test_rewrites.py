"""Refusals say what to type: options that read a log, or a command that writes it anew."""

import json
import re
import shutil
import subprocess
from typing import Any

import pytest

import fastscore
from tests.conftest import NIGHTLY
from tests.logs.chats import (
    ASKED,
    PAIRS,
    REPLIES,
    SUITES,
    chat,
    follow,
    lines_of,
    n_dialogues,
    of_two,
    options_of,
    pairs_of,
    proposed,
    reading,
    refusal,
    scored,
    typed_in,
    write,
    written_anew,
)
from tests.logs.samples.screened import screened

pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="jq writes logs anew")

ODD_WORDS = {"user": "asker", "assistant": "helper"}
OPERATOR = {"user": "caller", "assistant": "operator"}
CHINESE: Any = {"speaker": "角色", "text": "内容", "user": "用户", "assistant": "助手"}


def chats_under(key: str, **words: str) -> Any:
    return of_two(lambda name, pairs: [{"id": name, key: chat(pairs, **words)}])


OF_TWO: dict[str, tuple[str, Any]] = {
    "rows under other keys": (".csv", of_two(lambda name, pairs: [
        {"conv": name, **turn} for turn in chat(pairs, "who", "msg")])),
    "rows under odd keys": (".csv", of_two(lambda name, pairs: [
        {"k": name, **turn} for turn in chat(pairs, "p", "q", **ODD_WORDS)])),
    "rows under keys in Chinese": (".jsonl", of_two(lambda name, pairs: [
        {"会话": name, **turn} for turn in chat(pairs, **CHINESE)])),
    "rows under keys in Russian": (".csv", of_two(lambda name, pairs: [
        {"id_диалога": name, "роль": turn["role"], "текст": turn["content"]}
        for turn in chat(pairs, user="пользователь", assistant="оператор")])),
    "rows in one array": (".json", of_two(lambda name, pairs: [
        {"conv_id": float(ord(name)), **turn} for turn in chat(pairs)])),
    "rows in an array of an object": (".json", {"results": of_two(
        lambda name, pairs: [{"thread_id": name, **turn} for turn in chat(pairs)])}),
    "rows in one array under odd keys": (".json", of_two(lambda name, pairs: [
        {"Ticket": name, **turn} for turn in chat(pairs, "wer")])),
    "numbers of sessions of several users": (".csv", of_two(lambda name, pairs: [
        {"user_id": name, "session": 1, **turn} for turn in chat(pairs)])),
    "messages that are objects": (".csv", of_two(lambda name, pairs: [
        {"session_id": name, "message": json.dumps({"type": turn["type"], "data": turn})}
        for turn in chat(pairs, "type", user="human", assistant="ai")])),
    "arrays under keys in Chinese": (".jsonl", of_two(lambda name, pairs: [
        {"编号": name, "对话": chat(pairs, **CHINESE)}])),
    "arrays by their ids": (".json", of_two(lambda name, pairs: {
        name: chat(pairs, "who", "said", **OPERATOR)})),
    "arrays by their ids in odd words": (".json", of_two(lambda name, pairs: {
        name: chat(pairs, "p", "q", **ODD_WORDS)})),
    "messages further inside": (".jsonl", of_two(lambda name, pairs: [
        {"conversation": name, "request": {"prompt": asked}, "response": {"text": reply}}
        for asked, reply in pairs])),
    "pairs with a text written anew": (".json", of_two(lambda name, pairs: [
        {"number": name, "turns": [
            {"turn_id": n, "utterance": asked, "resolved": asked, "response": reply}
            for n, (asked, reply) in enumerate(pairs, 1)]}])),
    "a speaker called by a name": (".jsonl", chats_under("messages", assistant="Nova-3")),
    "speakers that are booleans": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "messages": [
            {"from_user": turn["role"] == "user", "text": turn["content"]}
            for turn in chat(pairs)]}])),
    "rows true of the bot": (".jsonl", of_two(lambda name, pairs: [
        {"dialogue_id": name, "is_bot": turn["role"] != "user", "text": turn["content"]}
        for turn in chat(pairs)])),
    "rows true of the user": (".jsonl", of_two(lambda name, pairs: [
        {"dialogue_id": name, "fromUser": turn["role"] == "user", "text": turn["content"]}
        for turn in chat(pairs)])),
    "a reply further inside": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "input": {"messages": chat(pairs)[:-1]}, "output": {"output": REPLIES[-1]}}])),
    "ids that are objects": (".jsonl", of_two(lambda name, pairs: [
        {"chat_id": {"$oid": name}, **turn}
        for turn in chat(pairs, "sender", "message", user="customer", assistant="bot")])),
    "speakers told apart by a number": (".json", of_two(lambda name, pairs: {name: {
        "content": chat(pairs, "agent", "message", user="agent_1", assistant="agent_2")}})),
    "speakers one of whom has a role": (".jsonl", of_two(lambda name, pairs: [
        {"conversation_sid": name, "author": turn["role"], "body": turn["content"]}
        for turn in chat(pairs, user="+1555", assistant="system")])),
    "turns beside what else are objects": (".jsonl", of_two(lambda _, pairs: [{
        "Participants": [{"ParticipantId": "p1"}],
        "Transcript": chat(pairs, "ParticipantRole", "Content", user="CUSTOMER",
                           assistant="AGENT")}])),
    "a name beside what is true of the user": (".jsonl", of_two(lambda _, pairs: [{"msgs": [
        {"text": turn["content"], "author": {"name": "Ann", "is_human": turn["role"] == "user"}}
        for turn in chat(pairs)]}])),
    "a bot that speaks first": (".jsonl", of_two(lambda name, pairs: [
        {"conversation_id": name, **turn} for turn in [
            {"speaker": "SYSTEM", "text": "Hello!"},
            *chat(pairs, "speaker", "text", user="USER", assistant="SYSTEM")]])),
    "an array under a key with a dot, or inside an object": (".jsonl", of_two(
        lambda name, pairs: [{"id": name, "input.conversation": chat(pairs)} if name == "a"
                             else {"id": name, "input": {"conversation": chat(pairs)}}])),
    "arrays": (".jsonl", of_two(lambda _, pairs: [chat(pairs)])),
    "arrays in an array": (".json", of_two(lambda _, pairs: [chat(pairs)])),
    "arrays of pairs": (".jsonl", of_two(lambda _, pairs: [[list(pair) for pair in pairs]])),
    "elements of an object": (".json", {"meta": 1, "dialogs": of_two(lambda name, pairs: [
        {"did": name, "turns": chat(pairs, "spk", "utt", user="U", assistant="S")}])}),
    "chats further inside": (".json", {"run": {"chats": chats_under("messages")}}),
    "arrays of arrays": (".json", {"export_date": "2026-01-01", "users": of_two(
        lambda name, pairs: [{"user": name, "sessions": [
            {"session_id": name, "messages": chat(pairs)}]}])}),
    "objects by their ids": (".json", of_two(lambda name, pairs: {f"call-{name}": {
        "started": "2025", "transcript": chat(pairs, "who", "said", **OPERATOR)}})),
    "objects by their ids further inside": (".json", {"version": 2, "chats": of_two(
        lambda name, pairs: {f"call-{name}": {
            "started": "2025", "transcript": chat(pairs, "who", "said", **OPERATOR)}}
        ) | {"count": 2}}),
    "lists of each side": (".jsonl", of_two(lambda name, pairs: [{
        "id": name, "asked": [asked for asked, _ in pairs], "replies": [r for _, r in pairs]}])),
    "pairs under keys of two words": (".csv", of_two(lambda name, pairs: [
        {"conversation_id": name, "user_message": asked, "bot_response": reply}
        for asked, reply in pairs])),
    "pairs with what is true of some": (".csv", of_two(lambda name, pairs: [
        {"conversation_id": name, "question": asked, "answer": reply, "correct": n % 2 == 0}
        for n, (asked, reply) in enumerate(pairs)])),
    "texts that spell JSON": (".jsonl", of_two(lambda name, pairs: [
        json.dumps({"id": name, "messages": chat(pairs)})])),
    "transcripts": (".csv", of_two(lambda name, pairs: [
        {"id": name, "log": "\n".join(f"Customer: {a}\nRep: {b}" for a, b in pairs)}])),
    "rows parted by empty ones": (".csv", of_two(lambda name, pairs: [
        *chat(pairs), {"role": "", "content": ""}])),
    "rows counted anew": (".csv", of_two(lambda name, pairs: [
        {"message_index": n, **turn} for n, turn in enumerate(chat(pairs))])),
    "sessions counted for each user": (".csv", of_two(lambda name, pairs: [
        {"user_id": name, "session_id": 1, **turn} for turn in chat(pairs)])),
    "users called by names beside an agent": (".jsonl", of_two(lambda name, pairs: [
        {"conversation_id": name, **turn}
        for turn in chat(pairs, "speaker", "text", user=f"Ann {name}", assistant="agent")])),
    "roles of the other side": (".jsonl", of_two(lambda name, pairs: [{"id": name, "messages": [
        {**turn, "name": "recommender" if turn["role"] == "user" else "user_proxy"}
        for turn in chat(pairs, user="assistant", assistant="user")]}])),
    "a deleted message": (".jsonl", of_two(lambda name, pairs: [{"id": name, "messages": [
        {"role": "user", "content": "A dramma.", "deleted": True}, *chat(pairs)]}])),
    "rows with deleted ones": (".csv", of_two(lambda name, pairs: [
        {"dialogue_id": name, "is_deleted": turn["content"] == "No.", **turn}
        for turn in chat([("No.", "No."), *pairs])])),
    "what is true of one side, and ids of both": (".json", of_two(lambda name, pairs: [
        {"ticket_id": name, "incoming": turn["role"] == "user", "by": 1 + (turn["role"] == "user"),
         "body": f"<p>{turn['content']}</p>", "text": turn["content"]} for turn in chat(pairs)])),
    "activities with an object of the dialogue": (".json", of_two(lambda name, pairs: [
        {"type": "message", "from": {"id": turn["role"]}, "conversation": {"id": name},
         "text": turn["content"]} for turn in chat(pairs, assistant="bot")])),
    "an edited message": (".jsonl", of_two(
            lambda name, pairs: [
                {"chat_id": name, "message_id": max(n, 1), **turn}
                for n, turn in enumerate([{"role": "user", "content": "A dramma."}, *chat(pairs)])
            ])),
    "a question and its reply beside the turns before": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "history": chat(pairs[:-1]), "query": pairs[-1][0],
         "response": pairs[-1][1]}])),
    "a pair beside the pairs before": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "history": pairs[:-1], "query": pairs[-1][0], "response": pairs[-1][1]}])),
    "a list of each side": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "user": [a for a, _ in pairs], "bot": [b for _, b in pairs]}])),
    "texts that begin with who speaks": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "turns": [f"{t['role']}: {t['content']}" for t in chat(pairs)]}])),
    "rows with times of spreadsheets": (".csv", of_two(lambda name, pairs: [
        {"会话ID": name, "时间": f"2024/5/1 9:{n:02}", **turn}
        for n, turn in enumerate(chat(pairs, **CHINESE))])),
    "calls with the history in JSON text": (".jsonl", of_two(lambda name, pairs: [
        {"thread_id": name, "properties": {"request": {"messages": chat(pairs)[:-1]}, "response": {
            "choices": [{"index": 0, "message": chat(pairs)[-1]}]}}}])),
    "calls of Vapi": (".jsonl", of_two(lambda name, pairs: [{"message": {
        "call": {"id": name}, "artifact": {
            "transcript": "User: hi",
            "messages": chat(pairs, text="message", assistant="bot")}}}])),
    "model invocations of Amazon Bedrock": (".jsonl", of_two(lambda name, pairs: [{
        "requestId": name, "modelId": "m",
        "input": {"inputBodyJson": {"messages": chat(pairs)[:-1]}},
        "output": {"outputBodyJson": {"output": {"message": chat(pairs)[-1]}}}}])),
    "messages of Botpress": (".jsonl", of_two(lambda name, pairs: [
        {"conversationId": name, "direction": turn["role"], "payload": {"text": turn["content"]}}
        for turn in chat(pairs, user="incoming", assistant="outgoing")])),
    "channels of Discord": (".jsonl", of_two(lambda name, pairs: [
        {"guild": {"id": name}, "messages": [
            {"author": {"isBot": turn["role"] != "user"}, "content": turn["content"]}
            for turn in chat(pairs)]}])),
    "sentences of Twilio": (".jsonl", of_two(lambda name, pairs: [{"call_sid": name, "sentences": [
        {"media_channel": 1 + place % 2, "transcript": turn["content"]}
        for place, turn in enumerate(chat(pairs))]}])),
    "chats of Haystack": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "messages": chat(pairs, speaker="_role", text="_content")}])),
    "preferences of HH-RLHF": (".jsonl", of_two(lambda name, pairs: [{"chosen": "".join(
        f"\n\nHuman: {asked}\n\nAssistant: {reply}" for asked, reply in pairs)}])),
    "calls of Bland, with a text of the whole": (".jsonl", of_two(lambda name, pairs: [
        {"call_id": name, "transcripts": chat(pairs, "user", "text"), "concatenated_transcript":
         "\n".join(f"{turn['role']}: {turn['content']}" for turn in chat(pairs))}])),
    "a reply beside its message and a prompt": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "prompt": {"model": "m"}, "messages": chat(pairs)[:-1],
         "output": pairs[-1][1], "output_message": chat(pairs)[-1]}])),
    "sides further inside": (".json", of_two(lambda name, pairs: [
        {"dialogue_id": name, "dial": [{"turn": n, "usr": {"transcript": a}, "sys": {"sent": b}}
                                       for n, (a, b) in enumerate(pairs)]}])),
    "candidates of which one was chosen": (".jsonl", of_two(lambda name, pairs: [
        {"conversation_id": name, "conversation_history": [
            {**turn, "if_chosen": is_chosen} for turn in chat(pairs, assistant="model")
            for is_chosen in (True, False)[:1 + (turn["role"] == "model")]]}])),
    "texts that begin with a doctor": (".json", of_two(lambda name, pairs: [
        {"description": name, "utterances": [
            f"{turn['role']}: {turn['content']}"
            for turn in chat(pairs, user="patient", assistant="doctor")]}])),
    "messages beside a context": (".jsonl", of_two(lambda _, pairs: [
        {"conversation": {"messages": chat(pairs), "context": None}}])),
    "numbered speakers beside a context": (".csv", of_two(lambda name, pairs: [
        {"conv_id": name, "context": "sad", "prompt": "My dog.", "speaker_idx": place % 2,
         "utterance": turn["content"]} for place, turn in enumerate(chat(pairs))])),
    "pairs in one array that name their dialogues": (".json", of_two(lambda name, pairs: [
        {"Conversation_no": name, "Question": asked, "Answer": reply} for asked, reply in pairs])),
    "messages among what the assistant did": (".json", {"data": of_two(lambda name, pairs: [
        {"conversation_id": name, **turn} for asked in pairs for turn in (
            {"role": "user", "type": "question", "content": asked[0]},
            {"role": "assistant", "type": "verbose", "content": "{}"},
            {"role": "assistant", "type": "answer", "content": asked[1]})])}),
    "a table with a column of users": (".csv", of_two(lambda name, pairs: [
        {"chat_id": name, "user": turn["role"], "message": turn["content"]}
        for turn in chat(pairs, user="Ann", assistant="Bot")])),
    "posts that answer each other": (".csv", of_two(lambda name, pairs: [
        {"tweet_id": f"{name}{n}", "inbound": n % 2 == 0, "text": turn["content"],
         "in_response_to_tweet_id": f"{name}{n - 1}"} for n, turn in enumerate(chat(pairs))])),
    "steps of Chainlit": (".jsonl", of_two(lambda name, pairs: [
        {"threadId": name, "type": turn["role"], "output": turn["content"], "createdAt": f"{n}"}
        for n, turn in enumerate([
            *chat(pairs, user="user_message", assistant="assistant_message"),
            {"role": "run", "content": "picky"}])])),
    "spans of Traceloop": (".jsonl", of_two(lambda name, pairs: [
        {"traceId": name, "attributes": {
            f"gen_ai.{'prompt' if turn is not last else 'completion'}."
            f"{place if turn is not last else 0}.{key}": turn[key]
            for turns in [chat(pairs)] for last in turns[-1:]
            for place, turn in enumerate(turns) for key in turn}}])),
    "a history of Semantic Kernel": (".jsonl", of_two(lambda _, pairs: [{"Messages": [
        {"Role": {"Label": turn["role"]}, "Items": [{"Text": turn["content"]}]}
        for turn in chat(pairs)]}])),
    "texts of Guanaco": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "text": "".join(f"### Human: {a}\n### Assistant: {b}\n" for a, b in pairs)}])),
    "items of DynamoDB": (".jsonl", of_two(lambda name, pairs: [
        {"Item": {"conversation_id": {"S": name}} | {k: {"S": v} for k, v in turn.items()}}
        for turn in chat(pairs)])),
    "hits of Elasticsearch": (".json", {"hits": {"hits": of_two(lambda name, pairs: [
        {"_source": {"conversation_id": name, **turn}} for turn in chat(pairs)])}}),
    "a table of W&B": (".json", {"columns": ["conversation_id", "role", "content"], "data": of_two(
        lambda name, pairs: [[name, *turn.values()] for turn in chat(pairs)])}),
    "texts in objects beside a name": (".json", of_two(lambda name, pairs: [
        {"name": name, "messages": [{"message": turn["content"]} for turn in chat(pairs)]}])),
    "documents of Firestore": (".json", {"documents": of_two(lambda name, pairs: [
        {"name": f"projects/p/databases/d/documents/chats/{name}", "fields": {"messages": {
            "arrayValue": {"values": [{"mapValue": {"fields": {
                key: {"stringValue": value} for key, value in turn.items()}}}
                for turn in chat(pairs)]}}}}])}),
    "messages of Kore.ai": (".json", {"messages": of_two(lambda name, pairs: [
        {"type": turn["role"], "sessionId": name, "createdOn": f"2024-05-01T10:0{n}:00Z",
         "components": [{"cT": "text", "data": {"text": turn["content"]}}]}
        for n, turn in enumerate(chat(pairs, user="incoming", assistant="outgoing"))])}),
    "chats of FastGPT": (".jsonl", of_two(lambda name, pairs: [{"chatId": name, "history": [
        {"obj": turn["role"], "value": [{"type": "text", "text": {"content": turn["content"]}}]}
        for turn in chat(pairs, user="Human", assistant="AI")]}])),
    "transcripts of Gong": (".json", {"callTranscripts": of_two(lambda name, pairs: [
        {"callId": name, "transcript": [
            {"speakerId": turn["role"],
             "sentences": [{"text": word} for word in turn["content"].split()]}
            for turn in chat(pairs, user="11", assistant="22")]}])}),
    "channels of Mattermost": (".jsonl", [
        {"type": "team", "team": {"name": "t", "type": "O"}}, *of_two(lambda name, pairs: [
            {"type": "post", "post": {"channel": name, "user": turn["role"], "create_at": n,
                                      "message": turn["content"]}}
            for n, turn in enumerate(chat(pairs, user="ann", assistant="bob"))])]),
    "texts of Vicuna": (".jsonl", of_two(lambda _, pairs: [{"text": "A chat. " + " ".join(
        f"USER: {asked} ASSISTANT: {reply}</s>" for asked, reply in pairs)}])),
    "pairs of a number and a text": (".jsonl", of_two(lambda _, pairs: [{"dialog": [
        [*turn.values()] for turn in chat(pairs, user=0, assistant=1)]}])),
    "rounds of two turns": (".jsonl", of_two(lambda _, pairs: [{"context": [], "dialog": [
        chat([pair], "id", "text", user="p1", assistant="p2") for pair in pairs]}])),
    "steps of runs, with a history each": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "runs": [{"steps": [
            {"messages": chat(pairs[:n])} for n in range(1, len(pairs) + 1)]}]}])),
    "turns in JSON text": (".jsonl", of_two(lambda name, pairs: [{"log": json.dumps(
        {"id": name, "turns": chat(pairs, "speaker", "said")})}])),
    "messages that follow themselves": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "messages": [turn for turn in chat(pairs) for _ in range(2)]}])),
    "rows of a reply while it is streamed": (".csv", of_two(lambda name, pairs: [
        {"conversation_id": name, "role": turn["role"], "content": turn["content"][:n]}
        for turn in chat(pairs) for n in ((5, 8, 99) if turn["role"] != "user" else (99,))])),
    "texts with roles that begin with them": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "messages": [{**turn, "content": f"{turn['role']}: {turn['content']}"}
                                  for turn in chat(pairs)]}])),
    "the newest first, as it says": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "sort": "newest first", "messages": chat(pairs)[::-1]}])),
    "turns by their numbers": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "messages": dict(enumerate(chat(pairs)))}])),
    "notices and drafts among messages": (".jsonl", of_two(lambda name, pairs: [
        {"id": name, "messages": [
            {"type": "event", "role": "user", "content": "Ann joined"},
            *({"type": "message", **turn} for turn in chat(pairs))]}])),
    "lines of a messenger in an array": (".json", of_two(lambda name, pairs: [
        {"chat": name, "lines": [
            f"[02/11/26, 09:0{n}:00] {turn['role']}: {turn['content']}"
            for n, turn in enumerate(chat(pairs, user="Ann", assistant="Shop Bot"))]}])),
}  # fmt: skip
"""Logs of two dialogues that no option reads unasked; by day each for one suite, by turns."""


@pytest.mark.parametrize(
    ("kind", "suite"),
    [
        (kind, suite)
        for turn, kind in enumerate(OF_TWO)
        for suite in (SUITES if NIGHTLY else (SUITES[turn % len(SUITES)],))
    ],
)
def test_what_a_refusal_says_to_type_reads_the_log(kind, suite, tmp_path):
    suffix, rows = OF_TWO[kind]
    run = follow(write(tmp_path / f"log{suffix}", rows), options_of(suite, tmp_path))
    assert n_dialogues(run) == 2
    if suite == "preference_shift":
        assert pairs_of(run) == [*PAIRS, *PAIRS[1:]]
    else:
        assert run.tables["messages"].height == len(PAIRS) + 2


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
    "tickets of Zendesk": {
        "id": 7,
        "requester_id": 5,
        "comments": [
            *({"author_id": 5 + place % 2 * 4, "body": turn["content"]}
              for place, turn in enumerate(chat())),
            {"author_id": 9, "body": "picky", "public": False},
        ],
    },
    "tickets of Freshdesk": {
        "id": 7,
        "description_text": ASKED[0],
        "conversations": [
            *({"incoming": place % 2 == 1, "private": False, "body_text": turn["content"]}
              for place, turn in enumerate(chat()[1:])),
            {"incoming": False, "private": True, "body_text": "picky"},
        ],
    },
    "messages of HubSpot": {"results": [
        {"type": "MESSAGE", "conversationsThreadId": "c", "createdAt": f"2026-01-0{9 - place}",
         "direction": "OUTGOING" if turn["role"] == "assistant" else "INCOMING",
         "text": turn["content"]}
        for place, turn in enumerate(reversed(chat()))
    ]},
    "chats of tawk.to": {"id": "c", "messages": [
        {"sender": {"t": "s"}, "msg": "joined"},
        *({"sender": {"t": turn["role"]}, "msg": turn["content"]}
          for turn in chat(user="v", assistant="a")),
    ]},
    "conversations of Chatwoot": {"id": "c", "messages": [
        *({"message_type": turn["role"], "content": turn["content"]}
          for turn in chat(user=0, assistant=1)),
        {"message_type": 1, "private": True, "content": "picky"},
        {"message_type": 2, "content": "Conversation was resolved"},
    ]},
    "scenarios of HELM": {"request_states": [{
        "instance": {"id": "id1", "input": {"text": ASKED[0]}},
        "request": {"model": "m", "prompt": f"Q: {ASKED[0]}"},
        "result": {"completions": [{"text": REPLIES[0]}]}}]},
    "completions of UltraFeedback": {
        "instruction": ASKED[0], "completions": [{"model": "m", "response": REPLIES[0]}],
    },
    "answers of Nectar": {
        "prompt": "".join(f"\n\nHuman: {asked}\n\nAssistant: {reply}" for asked, reply in PAIRS)
        .removesuffix(REPLIES[-1]),
        "answers": [{"model": "m", "answer": REPLIES[-1]}],
    },
    "messages of Drift": {"data": {"messages": [
        *({"conversationId": 11, "type": "chat", "author": {"type": turn["role"], "bot": False},
           "createdAt": place, "body": f"<p>{turn['content']}</p>"}
          for place, turn in enumerate(chat(user="contact", assistant="user"))),
        {"conversationId": 11, "type": "private_note", "author": {"type": "user"}, "body": "picky"},
    ]}},
    "logs of Dialogflow ES": [
        {"labels": {"request_id": "r"}, "textPayload": f"Dialogflow {text}", "trace": "s"}
        for asked, reply in PAIRS
        for text in (
            'Request : {"session":"s","query_input":' + json.dumps(json.dumps(
                {"text": {"textInputs": [{"inputText": asked}]}})) + "}",
            f'Response : result {{\n  resolved_query: "{asked}"\n  fulfillment {{\n    '
            f'speech: {json.dumps(reply)}\n    messages {{\n    }}\n  }}\n}}\n',
        )
    ],
    "chunks of streamed replies": [
        {"messages": chat()[:-1], "chunks": [
            {"id": "c", "choices": [{"index": 0, "delta": {"content": part}}]}
            for part in (REPLIES[-1][:4], REPLIES[-1][4:])]},
    ],
    "preferences: chosen and rejected are a chat": {"chosen": chat(), "rejected": chat()},
    "preferences in texts": dict.fromkeys(("chosen", "rejected"), "".join(
        f"\n\nHuman: {asked}\n\nAssistant: {reply}" for asked, reply in PAIRS)),
    "tasks of Alpaca, with their input": {
        "instruction": ASKED[0], "input": "", "output": REPLIES[0],
    },
    "texts of Alpaca": {"text": f"### Instruction:\n{ASKED[0]}\n\n### Response:\n{REPLIES[0]}"},
    "'gpt-4o', 'claude' are probably the replies": {
        "prompt": ASKED[0], "gpt-4o": REPLIES[0], "claude": REPLIES[0],
    },
    "conversations of Intercom": {"conversations": [{
        "id": "c",
        "source": {"author": {"type": "user"}, "body": f"<p>{ASKED[0]}</p>"},
        "conversation_parts": {"conversation_parts": [
            *({"author": {"type": turn["role"]}, "body": f"<p>{turn['content']}</p>"}
              for turn in chat(assistant="bot")[1:]),
            {"author": {"type": "admin"}, "part_type": "note", "body": "<p>picky</p>"},
        ]},
        "conversation_rating": {"rating": 5},
    }]},
    "a chat of Teams": {"value": [
        {"chatId": "c", "from": {"user": None if place % 2 else {}},
         "body": {"content": f"<p>{turn['content']}</p>"}}
        for place, turn in enumerate(chat())
    ]},
    "transcripts of Copilot Studio": {"conversationtranscriptid": "c", "content": json.dumps({
        "activities": [{"type": "message", "from": {"role": 1 - place % 2}, "text": turn["content"]}
                       for place, turn in enumerate(chat())]})},
    "logs of Amazon Lex": [
        {"sessionId": "c", "inputTranscript": asked, "messages": [{"content": reply}]}
        for asked, reply in PAIRS
    ],
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
    "a chat store of LlamaIndex": {"store": {"c": [
        {"role": turn["role"], "blocks": [{"text": turn["content"]}]} for turn in chat()]}},
    "chat memories of LangChain4j": {"memoryId": "c", "messages": [
        {"type": turn["role"], "contents": [{"text": turn["content"]}]}
        if turn["role"] == "USER" else {"type": turn["role"], "text": turn["content"]}
        for turn in chat(user="USER", assistant="AI")]},
    "a conversation of LM Studio": {"messages": [
        {"versions": [{"role": turn["role"], "content": [{"text": turn["content"]}]}],
         "currentlySelected": 0} for turn in chat()]},
    "a chat of Cohere": {
        "chat_history": chat(2, text="message", user="USER", assistant="CHATBOT"),
        "message": ASKED[-1], "text": REPLIES[-1],
    },
    "calls of Prompt flow or DSPy": {
        "chat_history": [{"inputs": {"question": asked}, "outputs": {"answer": reply}}
                         for asked, reply in PAIRS[:2]],
        "question": ASKED[-1], "answer": REPLIES[-1],
    },
    "a chat of text-generation-webui": {
        "internal": [["<|BEGIN-VISIBLE-CHAT|>", ""], *PAIRS], "visible": [["", ""], *PAIRS],
    },
    "preferences: chosen and rejected are a reply": {
        "prompt": ASKED[0], "chosen": REPLIES[0], "rejected": REPLIES[0],
    },
    "battles of Chatbot Arena, two conversations": {"id": "q", "full_conversation": [
        {"user": turn, "model_side_a": reply, "model_side_b": reply}
        for turn, reply in zip(chat()[::2], chat()[1::2], strict=True)]},
    "transcripts of Salesforce": {"Id": "c", "Body": "<p align=\"center\">Agent Ann</p>" + "".join(
        f"( {place}m {place}s ) {turn['role']}: {turn['content']}<br>"
        for place, turn in enumerate(chat(assistant="Ann")))},
    "messages of Twilio": [
        {"direction": "inbound" if turn["role"] == "1" else "outbound-api", "from": turn["role"],
         "to": "12".replace(turn["role"], ""), "body": turn["content"]}
        for turn in chat(user="1", assistant="2")
    ],
    "conversations of Genesys": {"conversations": [{"conversationId": "c", "transcripts": [
        {"phrases": chat(speaker="participantPurpose", text="text", user="external",
                         assistant="internal")}]}]},
    "turns of Voiceflow": [
        {"turnID": "t", "type": turn["role"], "startTime": "t", "payload": {
            "payload": turn["content"] if turn["role"] == "request" else {
                "message": turn["content"]}}}
        for turn in [{"role": "launch", "content": None}, *chat(user="request", assistant="text")]
    ],
    "logs of watsonx Assistant": {"logs": [
        {"request": {"input": {"text": asked}}, "response": {
            "output": {"generic": [{"response_type": "text", "text": reply}]},
            "context": {"global": {"session_id": "s"}}}}
        for asked, reply in PAIRS]},
    "calls of Prompt flow or DSPy, with the turns": {
        "history": {"messages": [{"question": asked, "answer": reply}
                                 for asked, reply in PAIRS[:2]]},
        "question": ASKED[-1], "answer": REPLIES[-1],
    },
    "messages of LlamaIndex": {"messages": [
        {"role": turn["role"], "blocks": [{"block_type": "text", "text": turn["content"]}]}
        for turn in chat()]},
    "checkpoints of LangGraph": [
        {"thread_id": "t", "checkpoint": {"channel_values": {"messages": [
            {"id": ["langchain", f"{turn['role']}Message"], "kwargs": {"content": turn["content"]}}
            for turn in chat(n_pairs, user="Human", assistant="AI")]}}}
        for n_pairs in (1, 2, 3)
    ],
    "messages of Pydantic AI": [[
        {"parts": [{"part_kind": turn["role"], "content": turn["content"]}]}
        for turn in chat(user="user-prompt", assistant="text")]],
    "items of OpenAI's Realtime API": {"items": [
        {"type": "message", "role": turn["role"],
         "content": [{"type": "audio", "transcript": turn["content"]}]} for turn in chat()]},
    "traces of MLflow": {"info": {"trace_id": "t"}, "data": {"spans": [{"attributes": {
        "mlflow.spanInputs": json.dumps({"messages": chat()[:-1]}),
        "mlflow.spanOutputs": json.dumps({"choices": [{"message": chat()[-1]}]})}}]}},
    "a chat of SillyTavern": [
        {"user_name": "Ann", "chat_metadata": {}},
        *({"is_user": turn["role"] == "user", "is_system": False, "mes": turn["content"]}
          for turn in chat()),
        {"is_user": False, "is_system": True, "mes": "picky"},
    ],
    "a chat of Character.AI": {"turns": [
        {"create_time": f"2025-01-0{9 - place}", "author": {"is_human": turn["role"] == "user"},
         "primary_candidate_id": "b", "candidates": [
            {"candidate_id": "a", "raw_content": "picky"},
            {"candidate_id": "b", "raw_content": turn["content"]}]}
        for place, turn in enumerate(reversed(chat()))]},
    "conversations of Grok": {"conversations": [{"conversation": {"id": "c"}, "responses": [
        {"response": {"sender": turn["role"], "message": turn["content"]}}
        for turn in chat(user="human", assistant="ASSISTANT")]}]},
    "conversations of DeepSeek": {"id": "c", "mapping": {
        "root": {"id": "root", "parent": None, "children": ["1", "7"], "message": None},
        "7": {"id": "7", "parent": "root", "children": ["1"], "message": None},
        **{str(place): {
            "id": str(place), "parent": str(place - 1) if place > 1 else "root",
            "children": [str(place + 1)] if place < 6 else [],
            "message": {"fragments": [{"type": "THINK", "content": "picky"},
                                      {"type": turn["role"], "content": turn["content"]}]}}
           for place, turn in enumerate(chat(user="REQUEST", assistant="RESPONSE"), 1)}}},
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
    "tasks of Alpaca, with their input and the pairs": {
        "instruction": ASKED[-1], "input": "", "output": REPLIES[-1],
        "history": [list(pair) for pair in PAIRS[:2]],
    },
}  # fmt: skip
OF_ONE_PAIR = (
    "tasks of CrewAI",
    "replies of Ollama's generate",
    "scenarios of HELM",
    "completions of UltraFeedback",
    "tasks of Alpaca, with their input",
    "texts of Alpaca",
    "'gpt-4o', 'claude' are probably the replies",
    "preferences: chosen and rejected are a reply",
)
OF_TWO_SIDES = (
    "'gpt-4o', 'claude' are probably the replies",
    "battles of Chatbot Arena",
    "battles of Chatbot Arena, two conversations",
    "preferences in texts",
    "preferences: chosen and rejected are a chat",
    "preferences: chosen and rejected are a reply",
)


@pytest.mark.parametrize("title", EXPORTS)
def test_what_is_typed_for_an_export_reads_all_of_it(title, options, tmp_path):
    rows = EXPORTS[title] if isinstance(EXPORTS[title], list) else [EXPORTS[title]]
    path = write(tmp_path / "log.jsonl", rows)
    said = refusal(path, options)
    assert f"log.jsonl: {title}" in said
    assert "jq" in said or proposed(path) == typed_in(said)
    told = PAIRS[:1] if title in OF_ONE_PAIR else PAIRS
    assert pairs_of(follow(path, options)) == told * (1 + (title in OF_TWO_SIDES))


@pytest.mark.parametrize("title", ["tickets of Zendesk", "conversations of Intercom"])
def test_an_array_of_exports_is_read_by_what_is_typed(title, options, tmp_path):
    (tmp_path / "log.json").write_text(json.dumps([EXPORTS[title]]))
    assert pairs_of(follow(tmp_path / "log.json", options)) == PAIRS


FOLLOWED: dict[str, tuple[str, Any, list[tuple[str, str]]]] = {
    "an empty reply": (
        "log.jsonl", [{"messages": chat([(ASKED[0], ""), *PAIRS[1:]])}],
        [(ASKED[0], "(no reply)"), *PAIRS[1:]]),
    "histories without a session": (
        "log.jsonl", [{"messages": chat(n)} for n in (1, 2, 3)], PAIRS),
    "a system that replies amid messages": (
        "log.jsonl", [{"context": chat(2, "speaker", "text", assistant="system")[:-1],
                       "response": REPLIES[1]}], PAIRS[:2]),
    "documents that name the one before": (
        "log.jsonl", [
            {"id": f"r{n}", "previous_response_id": f"r{n - 1}" if n else None, "input": asked,
             "output": [{"type": "message", "role": "assistant",
                         "content": [{"type": "output_text", "text": reply}]}]}
            for n, (asked, reply) in enumerate(PAIRS)], PAIRS),
    "cells with quotes": (
        "log.csv", [{"SessionId": "s", "ChatTranscript": "".join(
            f'User says: "{asked}", he said; Bot says: {reply};' for asked, reply in PAIRS)}],
        [(f'"{asked}", he said', reply) for asked, reply in PAIRS]),
    "names in brackets": (
        "log.log", "".join(f"[10:00] <{turn['role']}> {turn['content']}\n"
                           for turn in chat(user="ann", assistant="bot")), PAIRS),
    "two messages of WhatsApp": (
        "log.txt", "01/05/2024, 10:00 - Ann: A drama?\n01/05/2024, 10:01 - Bot: Watch Heat.\n",
        [("A drama?", "Watch Heat.")]),
    "results beside their requests": (
        "log.jsonl", [{"custom_id": "c", "result": {"message": {**chat()[-1], "model": "m"}}}],
        PAIRS),
    "answers beside their questions": (
        "log.jsonl", [{"question_id": 81, "model_id": "m",
                       "choices": [{"index": 0, "turns": REPLIES}]}], PAIRS),
}  # fmt: skip
BESIDE = {
    "requests": {"custom_id": "c", "params": {"messages": chat()[:-1]}},
    "question": {"question_id": 81, "category": "writing", "turns": ASKED},
}
"""Files that jq reads before a log."""


@pytest.mark.parametrize("kind", FOLLOWED)
def test_pairs_are_those_that_a_refusal_leads_to(kind, options, tmp_path):
    name, content, told = FOLLOWED[kind]
    for beside, row in BESIDE.items():
        write(tmp_path / f"{beside}.jsonl", [row])
    log = tmp_path / name
    log.write_text(content) if isinstance(content, str) else write(log, content)
    assert pairs_of(follow(log, options)) == told


@pytest.mark.parametrize("head", ["WEBVTT\r\nKind: captions\r\n\r\n", "\ufeff"])
def test_subtitles_are_written_as_a_plain_chat(head, options, tmp_path):
    log, mark = tmp_path / "log.vtt", "<v {}>{}" if "VTT" in head else "{}: {}"
    cues = (
        f"{n}\r\n00:00:0{n},000 --> 00:00:0{n},900\r\n{mark.format(turn['role'], turn['content'])}"
        for n, turn in enumerate(chat())
    )
    log.write_text(head + "\r\n\r\n".join(cues) + "\r\n", "utf-8", newline="")
    command = re.search(r"Type (tr .* > chat\.txt)", refusal(log, options))
    assert command
    subprocess.run(command[1], shell=True, check=True, cwd=tmp_path)
    assert pairs_of(follow(tmp_path / "chat.txt", options)) == PAIRS


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"custom_id": "c", "response": {"body": {"choices": []}}}, "requests.jsonl log.jsonl"),
        ({"message": chat(1)[1], "done": False}, "Log the messages that were sent beside"),
        ({"text": {"0": "Hi", "1": "Ho"}, "by": {"0": "a", "1": "b"}}, "read_json('log.jsonl')."),
        (
            {"columns": ["text"], "index": [0], "data": [["Hi"]]},
            "columns and rows apart, as pandas and W&B write it. Type jq -c '.columns",
        ),
    ],
)
def test_an_export_without_what_is_needed_says_so(row, said, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "log.jsonl", [row])
    assert said in refusal("log.jsonl", options)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("log.jsonl", '2025-01-01 INFO {"messages": []}', "A log prefix stands before the JSON"),
        ("log.jsonl", "{'messages': []}", "Python's repr"),
        ("log.csv", "a|b|c\n1|2|3", "log.csv > table.tsv"),
        ("log.csv", "a,user,Hi\na,assistant,Hello", "'user' in the place of a name"),
        ("log.tsv", "2025-01-01\tAnn\n2025-01-02\tBob", "the table has no header"),
        ("log.txt", "[12/31/20, 10:00:00 AM] Ann: hi", "a chat as WhatsApp exports it"),
        ("log.txt", "31.12.20, 10:00 - Ann: hi", "a chat as WhatsApp exports it"),
        ("log.txt", 'data: {"id": "c"}\n\n', "Type sed -n 's/^data: *{/{/p' "),
        ("log.txt", "a: 1\nb: 2\nc: 3", "names no format that is read"),
        ("log.txt", "Dear Ann,\nI write to you: hi\n" * 3, "names no format that is read"),
    ],
)
def test_what_must_be_converted_is_named(name, text, said, options, tmp_path):
    (tmp_path / name).write_text(text + "\n")
    assert said in refusal(tmp_path / name, options)


def test_slack_has_its_bots_and_no_notices(options, tmp_path):
    said = [{"type": "message", "text": "hi", "ts": f"{n}", "thread_ts": "1"} for n in (1, 2, 3)]
    bot = {**said[1], "bot_id": "B1", "subtype": "bot_message"}
    notice = {**said[2], "user": "U2", "subtype": "channel_join"}
    told = refusal(write(tmp_path / "log.json", [{**said[0], "user": "U1"}, bot, notice]), options)
    assert "a channel as Slack exports it" in told
    chats = written_anew(told.replace(", and", " > "), tmp_path)
    assert [turn["speaker"] for turn in lines_of(chats)] == ["U1", "B1"]


@pytest.mark.parametrize(
    "time",
    [
        "12/05/2024, 10:0{} - ",
        "5/12/24, 10:0{}\u202fAM - ",
        "\u200e[12.05.24, 10:0{}:09] ",
        "05/01/2026 à 14:0{} - ",
        "28/3/2025, 9:0{} p. m. - ",
        "28/3/2025, 9:0{}\u202fp.\u202fm. - ",
    ],
)
def test_a_chat_of_whatsapp_has_no_notices(time, options, tmp_path):
    said = ["Calls are encrypted.", "Ann: Hi\n\nthere", "Shop: Yes: hi", "Ann left", "Ann: Bye"]
    lines = (f"{time.format(number)}{text}\n" for number, text in enumerate(said))
    (tmp_path / "log.txt").write_text("".join(lines))
    told = refusal(tmp_path / "log.txt", options)
    assert "Notices without a speaker are left out." in told
    turns = lines_of(written_anew(told.replace(", and", " > "), tmp_path))
    assert {turn["conversation_id"] for turn in turns} == {"log.txt"}  # of one export among many
    assert [(turn["speaker"], turn["text"]) for turn in turns] == [
        ("Ann", "Hi\nthere"),
        ("Shop", "Yes: hi"),
        ("Ann", "Bye"),
    ]


def test_a_table_of_one_chat_is_read_by_its_name(options, tmp_path):
    for name in "ab":
        log = write(tmp_path / f"{name}.csv", [{"conv": name, **turn} for turn in chat()])
        assert proposed(log) == ["--layout", "turns", "--column", "id=conv"]
    run = scored(tmp_path, options, layout="turns", columns={"id": "conv"})
    assert run.tables["dialogues"]["session_id"].to_list() == ["a", "b"]


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize(
    ("words", "holder"), [(("user_", "bot_"), ""), (("human", "ai"), "turns"),
                          (("User ", "Assistant "), "")]
)  # fmt: skip
def test_turns_under_numbered_keys(words, holder, suite, tmp_path):
    # in any order of the keys: eleven turns come after two
    numbered = {
        f"{word}{place}": said
        for word, side in zip(words, zip(*PAIRS * 4, strict=True), strict=True)
        for place, said in enumerate(side, 1)
    }
    rows = [{"id": name, **({holder: numbered} if holder else numbered)} for name in "ab"]
    run = follow(write(tmp_path / "log.jsonl", rows), options_of(suite, tmp_path))
    if suite == "preference_shift":
        assert pairs_of(run) == PAIRS * 8
    else:
        assert run.tables["dialogues"]["n_guest_messages"].to_list() == [12, 12]


@pytest.mark.parametrize(
    "keys", [("generated_text", "actual"), ("model_guess", "gold_reply"), ("pred", "ref")]
)
def test_a_prediction_beside_its_truth(keys, tmp_path):
    said = [*zip(REPLIES, ASKED, strict=True), (REPLIES[0], REPLIES[0])]
    rows = [{"example": n, **dict(zip(keys, each, strict=True))} for n, each in enumerate(said)]
    log = write(tmp_path / "log.jsonl", rows)
    steps = follow(log, options_of("score_dialogue", tmp_path)).tables["steps"]
    assert (steps.height, steps["lexical_similarity"].max()) == (4, 1)
    assert "--layout pairs" not in refusal(log, "guest_simulation")


def test_predictions_beside_their_truth_become_events(tmp_path):
    options = options_of("score_dialogue", tmp_path)
    truth = {"dialogue_uid": "d", "utterance_index": 0, "ground_truth": "A drama with Al Pacino."}
    rows = [{**truth, "step": k, "prediction": said} for k, said in enumerate(["A", "A drama"])]
    path = write(tmp_path / "log.jsonl", rows)
    assert "the truth beside each, without events" in refusal(path, options)
    by_hand = [{**row, "event": "predicted"} for row in rows]
    by_hand.append({**truth, "event": "utterance_complete"})
    read, expected = (
        run.tables["steps"].select("step", "lexical_similarity", "U_step")
        for run in (follow(path, options), scored(by_hand, options))
    )
    assert read.equals(expected)
    assert read.height == 2


def events(step: Any = (0, 1, 2)) -> list[dict[str, Any]]:
    """Return the rows of two utterances, each predicted in three steps."""
    return [
        {"utterance_index": number} | row
        for number, said in enumerate(REPLIES[:2])
        for row in (
            *({"event": "predicted", "step": each, "prediction": said} for each in step),
            {"event": "utterance_complete", "ground_truth": said},
        )
    ]


OTHER_NAMES = {"event": "kind", "utterance_index": "utt", "step": "position", "prediction": "hyp",
               "ground_truth": "gold"}  # fmt: skip


@pytest.mark.parametrize(
    ("names", "words", "step"),
    [
        ({}, {}, ("first", "second", "third")),
        # words are told by the columns of their rows
        ({}, {"predicted": "vorhersage", "utterance_complete": "ende"}, (0, 1, 2)),
        # all columns and words are proposed at once
        (OTHER_NAMES, {"predicted": "guess", "utterance_complete": "final"}, (0, 1, 2)),
    ],
)
def test_events_under_other_names_and_words(names, words, step, tmp_path):
    rows = [
        {names.get(key, key): words.get(value, value) for key, value in row.items()}
        for row in events(step)
    ]
    run = follow(write(tmp_path / "log.jsonl", rows), options_of("score_dialogue", tmp_path))
    assert run.tables["steps"]["step"].to_list() == [0, 1, 2] * 2


@pytest.mark.parametrize("is_told", [True, False])
@pytest.mark.parametrize(
    "label", [{"hotkey": "5F1"}, {"meta": {"hotkey": "5F1"}}, {"miner": {"uid": 1}}]
)
def test_two_miners_are_no_dialogue(label, is_told, tmp_path):
    other = json.loads(json.dumps(label).replace("1", "2"))
    told = {"dialogue_uid": "d"} if is_told else {}
    log = write(
        tmp_path / "log.jsonl", [row | told | of for of in (label, other) for row in events()]
    )
    assert n_dialogues(follow(log, options_of("score_dialogue", tmp_path))) == 2
    (file,) = fastscore.inspect(log).files
    assert all(fit.flags for fit in file.fits) or is_told


@pytest.mark.parametrize(
    "made",
    [
        lambda row: row | {"prediction": {"text": row["prediction"], "p": 0.5}},
        lambda row: row | {"prediction": [row["prediction"], "No."]},
        lambda row: row | {"prediction": json.dumps([row["prediction"], "No."])},
        lambda row: row | {"prediction": [{"text": row["prediction"]}]},
    ],
)
def test_predictions_in_objects_and_lists(made, tmp_path):
    rows = [made(row) if "prediction" in row else row for row in events()]
    run = follow(write(tmp_path / "log.jsonl", rows), options_of("score_dialogue", tmp_path))
    assert run.tables["steps"]["prediction"].to_list() == [REPLIES[0]] * 3 + [REPLIES[1]] * 3


@pytest.mark.parametrize("is_beside", [True, False])
def test_lists_of_predictions_for_each_step(is_beside, tmp_path):
    rows: list[dict[str, Any]] = [
        {"utterance_index": n, **row}
        for n, said in enumerate(REPLIES[:2])
        for guess, truth in [({"predictions": ["No.", said]}, {"ground_truth": said})]
        for row in ([guess | truth] if is_beside
                    else [guess | {"event": "predicted"}, truth | {"event": "utterance_complete"}])
    ]  # fmt: skip
    run = follow(write(tmp_path / "log.jsonl", rows), options_of("score_dialogue", tmp_path))
    steps = run.tables["steps"].select("step", "prediction").rows()
    assert steps == [(0, "No."), (1, REPLIES[0]), (0, "No."), (1, REPLIES[1])]


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("key", ["cid", "k"])
def test_woven_rows_are_told_apart(key, suite, tmp_path):
    rows = [{key: name, **turn} for pair in zip(chat(), chat(), strict=True)
            for name, turn in zip("ab", pair, strict=True)]  # fmt: skip
    run = follow(write(tmp_path / "log.csv", rows), options_of(suite, tmp_path))
    assert n_dialogues(run) == 2


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("texts", [("", ""), (" ", "Hi there.")])
def test_users_who_say_nothing_are_refused(texts, suite, tmp_path):
    log = write(tmp_path / "log.jsonl", [
        {"conversation": chat([texts], "speaker", "text", user="USER", assistant="SYSTEM")}] * 2
    )  # fmt: skip
    how: Any = {}
    if suite == "guest_simulation":
        names = {"turns": "conversation", "speaker": "speaker", "text": "text"}
        how = {"columns": names, "values": {"speaker": {"USER": "user", "SYSTEM": "assistant"}}}
    assert "is empty in all" in refusal(log, options_of(suite, tmp_path), **how)


def test_repeated_messages_of_arrays_are_counted(tmp_path):
    turns = chat(speaker="speaker", text="text", user="USER", assistant="SYSTEM")
    for again, told in ((turns, ["6 messages of the first rows repeat"]), (turns[:2], [])):
        log = write(tmp_path / "log.jsonl", [{"conversation": [*turns, *again]}])
        found = screened("preference_shift", log).notes
        assert [note.partition(": ")[2].partition(" an ")[0] for note in found] == told


@pytest.mark.parametrize("with_event", [True, False])
def test_a_log_without_truth_says_what_is_missing(with_event, tmp_path):
    rows = [row for row in events() if row["event"] == "predicted"]
    for row in rows if not with_event else ():
        del row["event"]
    log = write(tmp_path / "log.jsonl", rows)
    said = refusal(log, options_of("score_dialogue", tmp_path))
    assert ("2 utterances have no utterance_complete" if with_event else "no row has ev") in said
    assert "nothing " in said.lower()
    (file,) = fastscore.inspect(log).files
    assert not file.fits
    assert "scored without" in file.unfit["score_dialogue"] + file.asked["score_dialogue"]


def test_documents_of_one_id_are_told_apart_or_joined(tmp_path):
    other = [("Any western?", "Unforgiven is one.")]
    rows = [
        {"id": name, "messages": chat(said)} for name, said in (("a", 3), ("a", other), ("b", 3))
    ]
    log = write(tmp_path / "log.jsonl", rows)
    guests: Any = {"layout": "openai", "values": {"role": {"user": "guest"}}}
    said = refusal(log, "guest_simulation", **guests)
    assert "2 documents have the id 'a', and no key tells" in said
    joined = scored(log, "guest_simulation", dialogue="id", **guests)
    assert joined.tables["dialogues"]["n_guest_messages"].to_list() == [4, 3]
    apart = scored(written_anew(said, tmp_path), "guest_simulation", **guests)
    assert apart.tables["dialogues"]["n_guest_messages"].to_list() == [3, 1, 3]


@pytest.mark.parametrize("suite", SUITES)
def test_models_that_only_replies_name(suite, tmp_path):
    rows = [
        {"conversation_id": "c", **turn, **({"model": model} if turn["role"] != "user" else {})}
        for model in ("m1", "m2")
        for turn in chat()
    ]
    log = write(tmp_path / "log.jsonl", rows)
    guests: Any = {"values": {"role": {"user": "guest"}}}
    how = guests if suite == "guest_simulation" else {"layout": "turns"}
    turns = lines_of(written_anew(refusal(log, options_of(suite, tmp_path), **how), tmp_path))
    assert [turn["model"] for turn in turns] == ["m1"] * 6 + ["m2"] * 6
    assert [turn["content"] for turn in turns] == [turn["content"] for turn in chat() * 2]


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("kind", ["otel", "rows", "table"])
def test_calls_of_a_trace_that_repeat_its_history(kind, suite, tmp_path):
    rows: list[dict[str, Any]] = []
    for call, trace in [(0, "t"), (1, "t"), (2, "t"), (0, "u")]:
        for place, turn in enumerate(chat(call + 1)):
            name = "choice" if place == 2 * call + 1 else f"{turn['role']}.message"
            said = {"content": turn["content"]}
            body = {"message": said} if name == "choice" else said
            row = {"event_name": f"gen_ai.{name}", "body": body} if kind == "otel" else turn
            # ids are in no order, and times in that of the calls
            ids = {"trace_id" if kind == "otel" else "conversation_id": trace}
            time = f"2025-01-01T00:{len(rows):02}:00Z"
            rows.append({"timestamp": time, **ids, "span_id": f"{trace}{9 - call}", **row})
    log = tmp_path / f"log.{'csv' if kind == 'table' else 'jsonl'}"
    run = follow(write(log, rows), options_of(suite, tmp_path))
    if suite == "preference_shift":
        assert pairs_of(run) == [*PAIRS, PAIRS[0]]
    else:
        assert run.tables["dialogues"]["n_guest_messages"].to_list() == [3, 1]


@pytest.mark.parametrize("suite", SUITES)
def test_turns_that_are_counted_again_are_not_sorted(suite, tmp_path):
    rows = [{"turn": n, **turn} for said in (3, 2) for n, turn in enumerate(chat(said))]
    how: Any = {"layout": "turns", "columns": {"id": ""}}
    if suite == "guest_simulation":
        how = {"values": {"role": {"user": "guest"}}}
    said = refusal(write(tmp_path / "log.jsonl", rows), options_of(suite, tmp_path), **how)
    assert "probably several dialogues" in said
    assert "--sort-by turn" not in said


def test_chats_that_are_arrays_are_named_for_rows():
    chats = [chat(), chat()[2:]]
    said = refusal(chats, "guest_simulation", layout="openai")
    assert "Give [{'messages': chat} for chat in chats]" in said
    held = scored([{"messages": each} for each in chats], "guest_simulation", layout="openai")
    assert held.tables["dialogues"]["n_guest_messages"].to_list() == [3, 2]


def test_keys_after_the_first_documents_are_seen(options, tmp_path):
    rows = [{"id": place, "messages": chat()} for place in range(30)]
    log = write(tmp_path / "log.jsonl", [*rows, {"id": 30, "messages": chat(3, "from", "value")}])
    assert "another of 'role', 'content'" in refusal(log, options, layout="openai")
    late = {"id": 30, "messages": chat(1)[:1], "response": "Watch Ronin."}
    assert pairs_of(follow(write(log, [*rows, late]), options))[-1] == (ASKED[0], "Watch Ronin.")


@pytest.mark.parametrize(
    ("place", "suite"),
    [*zip(("properties", "request_properties", ""), SUITES * 2, strict=False)],
)
def test_sessions_of_helicone_are_dialogues(place, suite, tmp_path):
    session = {"Helicone-Session-Id": "s"}
    rows = [
        {
            "request_id": f"r{n}",
            "request_body": {"model": "m", "messages": chat(n)[:-1]},
            "response_body": {"choices": [{"index": 0, "message": chat(n)[-1]}]},
            **({place: session} if place else session),
        }
        for n in (1, 2, 3)
    ]
    run = follow(write(tmp_path / "log.jsonl", rows), options_of(suite, tmp_path))
    assert n_dialogues(run) == 1


@pytest.mark.parametrize(
    ("time", "name", "suite"),
    list(
        zip(
            ["", "[10:0{}] ", "10:0{} ", "2025-01-01T10:0{} ", "1/2/25, 10:0{} PM - "],
            ["chat.txt", "chat.log", "chat.jsonl", "it's.txt", "chat.txt"],
            SUITES * 3,
            strict=False,
        )
    ),
)
def test_a_chat_as_plain_text(time, name, suite, tmp_path):
    said = [side for asked, reply in PAIRS for side in (("User", asked), ("Bot", reply))]
    lines = [f"{time.format(n)}{who}: {text}" for n, (who, text) in enumerate(said)]
    lines[1] += "\nIt is long."
    log = tmp_path / name
    log.write_text("\n".join(lines) + "\n\n" + "\n".join(lines[2:]) + "\n", "utf-8-sig")
    run = follow(log, options_of(suite, tmp_path))
    if suite == "guest_simulation":
        assert run.tables["dialogues"]["n_guest_messages"].to_list() == [3, 2]
    else:
        replies = [reply for _, reply in pairs_of(run)]
        assert replies == [f"{REPLIES[0]}\nIt is long.", *REPLIES[1:], *REPLIES[1:]]


def test_no_layout_is_proposed_by_which_every_metric_is_null(tmp_path):
    rows = [{"id": place, "messages": chat([pair])} for place, pair in enumerate(PAIRS)]
    log = write(tmp_path / "log.jsonl", rows)
    said = "With --layout openai every metric of the first rows would be null."
    assert refusal(log, "guest_simulation").endswith(said)
    (file,) = fastscore.inspect(log).files
    assert "every metric of the first rows would be null" in file.unfit["guest_simulation"]
    assert proposed(write(log, [{"messages": chat()}]), "guest_simulation") == [
        "--layout",
        "openai",
    ]


@pytest.mark.parametrize("keys", [("assistant", "user"), ("response", "asked"), ("bot", "human")])
def test_a_reply_is_no_prediction_beside_its_truth(keys, tmp_path):
    rows = [dict(zip(keys, reversed(pair), strict=True)) for pair in PAIRS]
    log = write(tmp_path / "log.jsonl", rows)
    said = refusal(log, options_of("score_dialogue", tmp_path))
    assert "no row has what score_dialogue needs" in said


@pytest.mark.parametrize("n_runs", [1, 2])
def test_a_project_of_langsmith_is_no_dialogue(n_runs, options, tmp_path):
    def run(thread: str, n_pairs: int) -> dict[str, Any]:
        *asked, reply = chat([(f"{asked} ({thread})", reply) for asked, reply in PAIRS[:n_pairs]])
        return {
            "id": f"{thread}{n_pairs}",
            "session_id": "a project",
            "extra": {"metadata": {"thread_id": thread}},
            "inputs": {"messages": asked},
            "outputs": {"message": reply},
        }

    rows = [run(thread, n + 1) for thread in "abc" for n in range(3 - n_runs, 3)]
    log = write(tmp_path / "log.jsonl", rows)
    # whole chats that nothing joins, or states of chats
    found = scored(log, options, layout="langsmith") if n_runs == 1 else follow(log, options)
    assert n_dialogues(found) == 3


def test_replies_that_are_preferred_or_not_are_asked_for(options, tmp_path):
    turns = chat(speaker="from", text="value", user="human", assistant="gpt")
    row = {"conversations": turns[:-1], "chosen": turns[-1], "rejected": {**turns[-1], "value": ""}}
    path = write(tmp_path / "log.jsonl", [row | {"rejected": {"from": "gpt", "value": "No."}}])
    assert "each of chosen, rejected may be the last reply" in refusal(path, options)
    assert pairs_of(follow(path, options)) == PAIRS


CHANNELS = (
    "<|channel|>analysis<|message|>A horror?<|end|><|start|>assistant<|channel|>final<|message|>"
)
HARMONY: dict[str, Any] = {
    "channels of messages": {"messages": [
        each for turn in chat() for each in (
            turn,
            {"role": "assistant", "channel": "analysis", "content": "A horror?"},
            {"role": "assistant", "channel": "commentary", "content": "{}"},
        )[:: 1 if turn["role"] == "user" else 3]
    ]},
    "channels in messages": {"messages": [
        {**turn, "content": (CHANNELS if turn["role"] == "assistant" else "") + turn["content"]}
        for turn in chat()
    ]},
    "channels in a text": {"text": "".join(
        f"<|start|>user<|message|>{asked}<|end|><|start|>assistant{CHANNELS}{reply}<|return|>"
        for asked, reply in PAIRS)},
    "a text of ChatML": {"text": "".join(
        f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in chat())},
    "a text of Llama 2": {"text": "".join(
        f"<s>[INST] {asked} [/INST] {reply} </s>" for asked, reply in PAIRS)},
    "a text of Llama 3": {"text": "<|begin_of_text|>" + "".join(
        f"<|start_header_id|>{turn['role']}<|end_header_id|>\n\n{turn['content']}<|eot_id|>"
        for turn in chat())},
    "a text of Gemma": {"text": "".join(
        f"<start_of_turn>{turn['role']}\n{turn['content']}<end_of_turn>\n"
        for turn in chat(assistant="model"))},
    "a text of Phi": {"text": "".join(
        f"<|{turn['role']}|>\n{turn['content']}<|end|>\n" for turn in chat())},
    "a prompt of ChatML and its reply": {"prompt": "".join(
        f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in chat()[:-1]
    ) + "<|im_start|>assistant\n", "response": REPLIES[-1]},
}  # fmt: skip


@pytest.mark.parametrize("kind", HARMONY)
def test_texts_for_a_model_are_written_as_messages(kind, options, tmp_path):
    path = write(tmp_path / "log.jsonl", [HARMONY[kind] | {"id": name} for name in "ab"])
    assert pairs_of(follow(path, options)) == PAIRS * 2


def test_what_is_beside_marked_messages_stays(tmp_path):
    turns = [{**turn, "tags": ["a"], "private": False} for turn in chat()]
    row = {"messages": [*turns, {**turns[-1], "private": True}]}
    said = refusal(write(tmp_path / "log.jsonl", [row]), "guest_simulation", layout="openai")
    (written,) = lines_of(written_anew(said, tmp_path))
    assert written == {"messages": turns}


def test_pairs_further_inside_do_not_alternate(options, tmp_path):
    requests = [{"message": {"text": a}, "response": [{"value": b}]} for a, b in PAIRS]
    log = write(tmp_path / "log.json", {"requests": requests})
    columns = {"turns": "requests", "text": "message.text"}
    said = refusal(log, options, columns=columns, alternate="user")
    assert "each turn has response beside message.text" in said
    flags = typed_in(said.replace("of alternate type", "of alternate Type"))
    columns = {"turns": "requests"}
    assert pairs_of(scored(log, options, columns=columns, **reading(flags))) == PAIRS


def test_an_array_of_words_beside_the_turns_is_no_dialogue(tmp_path):
    turns = chat(speaker="speaker", text="transcript", user=0, assistant=1)
    channels = [{"alternatives": [{"transcript": "all of it"}]}]
    log = write(tmp_path / "log.json", {"results": {"channels": channels, "utterances": turns}})
    assert "speaker:0" in refusal(log, options_of("preference_shift", tmp_path))


def test_events_in_an_array_are_rows(tmp_path):
    options = options_of("score_dialogue", tmp_path)
    run = follow(write(tmp_path / "log.json", {"events": events()}), options)
    assert run.tables["steps"].height == 6
    named = [{"dialogue_uid": name, **each} for name in "ab" for each in events()]
    run = follow(write(tmp_path / "named.json", {"events": named}), options)
    assert run.tables["steps"].height == 2 * 6
    renamed = [{"eventType": each["event"]} | each for each in events()]
    for each in renamed:
        del each["event"]
    assert follow(write(tmp_path / "log.jsonl", renamed), options).tables["steps"].height == 6


def test_no_suite_is_proposed_that_makes_no_row(tmp_path):
    turns = [
        {"source": turn["role"], "type": "Text", "content": turn["content"]} for turn in chat()
    ]
    assert proposed(write(tmp_path / "log.json", turns), "group_travel") == []


def test_no_command_replaces_a_log(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("chats.jsonl", "log.jsonl"):
        log = write(tmp_path / name, [EXPORTS["preferences in texts"]])
        before = log.read_text()
        assert n_dialogues(follow(log, options)) == 2
        assert log.read_text() == before


def tree(parent: bool) -> list[dict[str, Any]]:
    """Return turns of which two follow the first one, with the ids of parents or of children."""
    above = {"2": "1", "3": "1", "4": "3", "5": "4"}
    said = [ASKED[0], "No.", REPLIES[0], ASKED[1], REPLIES[1]]
    return [
        {"id": id, "role": ("user", "bot")[n in (1, 2, 4)], "text": text}
        | ({"parent_id": above.get(id)} if parent
           else {"children": [each for each in above if above[each] == id]})
        for n, (id, text) in enumerate(zip("12345", said, strict=True))
    ]  # fmt: skip


@pytest.mark.parametrize("rows", [tree(True), [{"turns": tree(True)}], [{"turns": tree(False)}]])
def test_each_path_of_a_tree_is_a_dialogue(rows, options, tmp_path):
    log = write(tmp_path / "log.jsonl", rows)
    run = follow(log, options)
    assert n_dialogues(run) == 2
    assert pairs_of(run) == [(ASKED[0], "No."), *PAIRS[:2]]


def test_days_of_slack_are_one_log(options, tmp_path):
    for day, (asked, reply) in enumerate(PAIRS[:2]):
        ts = [{"type": "message", "user": who, "text": text, "ts": f"{day}.{n}", "thread_ts": "1"}
              for n, (who, text) in enumerate((("U1", asked), ("U2", reply)))]  # fmt: skip
        (tmp_path / "films").mkdir(exist_ok=True)
        write(tmp_path / "films" / f"{day}.json", [ts[0] | {"edited": {}}, *ts[1:]][: 2 + day])
    (command,) = {
        each.asked["preference_shift"] for each in fastscore.inspect(tmp_path / "films").files
    }
    chats = written_anew(command, tmp_path)
    said = refusal(chats, options)
    assert pairs_of(scored(chats, options, **reading(typed_in(said)))) == PAIRS[:2]


def test_an_empty_array_beside_chats_proves_nothing(options, tmp_path):
    write(tmp_path / "a.json", chat())
    write(tmp_path / "b.json", [])
    assert "Type --layout openai." in refusal(tmp_path, options)


def test_a_transcript_before_its_reply_is_no_text_of_a_user(options, tmp_path):
    rows = [{"instruction": f"Human: {ASKED[0]}\nAssistant: {REPLIES[0]}\nHuman: {ASKED[1]}",
             "output": REPLIES[1]}]  # fmt: skip
    log = write(tmp_path / "log.jsonl", rows)
    assert "instruction is a whole transcript" in refusal(log, options, layout="context-response")
    assert pairs_of(follow(log, options)) == PAIRS[:2]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.jsonl", "[\n{0},\n{1}\n]\n"),
        ("log.jsonl", "{0}{1}\n"),
        ("log.jsonl", "{0},\n{1},\n"),
        ("log.jsonl", "INFO said {0}\nINFO said {1}\n"),
        ("log.json", "[{0}]\n[{1}]\n"),
    ],
)
def test_json_of_two_chats_is_written_as_lines(name, text, options, tmp_path):
    log = tmp_path / name
    log.write_text(text.format(*(json.dumps({"id": n, "messages": chat(2)}) for n in (1, 2))))
    said = refusal(log, options) if name == "log.jsonl" else refusal(log, options, layout="openai")
    lines = written_anew(said.replace("other: jq", "other: Type jq"), tmp_path)
    assert pairs_of(follow(lines, options)) == PAIRS[:2] * 2


def test_sessions_of_a_user_are_not_joined(tmp_path):
    rows = [
        {"user_id": user, "session_id": session, **turn}
        for user, session, pairs in (("u1", 1, 2), ("u1", 2, 1), ("u2", 1, 3))
        for turn in chat(pairs)
    ]
    run = follow(write(tmp_path / "log.csv", rows), "guest_simulation")
    assert n_dialogues(run) == 3


def test_one_text_at_two_places_is_no_pair(options, tmp_path):
    rows = [{"logs": [
        {"request": {"input": {"text": asked}},
         "response": {"input": {"text": asked}, "output": {"text": [reply]}}}
        for asked, reply in PAIRS]}]  # fmt: skip
    assert "--layout pairs" not in refusal(write(tmp_path / "log.jsonl", rows), options)
