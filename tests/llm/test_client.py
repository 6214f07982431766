import json
import socket
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from fastscore.errors import RunError, UsageError
from fastscore.llm import client as module
from fastscore.llm.client import (
    BudgetError,
    ChatClient,
    ClosedError,
    ModelServerError,
    NotKeptError,
)
from fastscore.llm.options import ModelOptions
from fastscore.llm.requests import ChatRequest
from tests.llm.stub_server import HASTE, PATIENCE, Stub, serving

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("FASTSCORE_API_KEY", raising=False)
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.02)
    with serving(Stub()) as served:
        yield served


def client(stub, tmp_path, **options):
    usual = {"base_url": stub.url, "answers": tmp_path / "answers.sqlite", "timeout": PATIENCE}
    return ChatClient(ModelOptions(**{**usual, **options}))


def request(text="hello", **fields):
    return ChatRequest(model="tiny", messages=(("user", text),), **fields)


def test_a_request_is_passed_on_whole(stub, tmp_path):
    schema = {"type": "object", "properties": {"score": {"type": "integer"}}}
    asked = request(temperature=0.25, seed=7, max_tokens=99, schema=schema)
    answer = client(stub, tmp_path).ask(asked)
    assert answer.text == 'I recommend "Heat".'
    assert (answer.prompt_tokens, answer.completion_tokens) == (10, 5)
    body = stub.asked[0]
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.25, 7, 99)
    assert body["response_format"]["json_schema"]["schema"] == schema
    assert stub.headers[0]["authorization"] == f"Bearer {KEY}"


def test_servers_take_schemas_in_their_own_ways(stub, tmp_path):
    asking, schema = client(stub, tmp_path), {"type": "object"}
    asking.ask(request(schema=schema, structured="json-object"))
    asking.ask(request(schema=schema, structured="none"))
    assert stub.asked[0]["response_format"] == {"type": "json_object", "schema": schema}
    assert "response_format" not in stub.asked[1]
    with pytest.raises(UsageError, match="Did you mean 'json-schema'"):
        ModelOptions(structured="json_schema").resolved()


def test_what_is_kept_is_not_asked_again(stub, tmp_path):
    first = client(stub, tmp_path)
    answer = first.ask(request())
    assert first.ask(request()) == answer
    later = client(stub, tmp_path)
    assert later.ask(request()) == answer
    assert (later.spent.requests, later.spent.hits) == (0, 1)
    assert len(stub.asked) == 1
    later.ask(request().again())
    later.ask(request(seed=1))
    assert len(stub.asked) == 3


def test_equal_requests_that_meet_are_sent_once(stub, tmp_path):
    stub.answer = lambda body: time.sleep(0.2) or "slow"
    asking = client(stub, tmp_path)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: asking.ask(request()).text, range(8)))
    assert answers == ["slow"] * 8
    assert len(stub.asked) == 1


@pytest.mark.parametrize("fault", ["busy", "broken", "late", "truncated", "hung_up", "empty"])
def test_a_failure_that_passes_is_tried_again(stub, tmp_path, fault):
    times = 1 if fault == "late" else 2
    stub.fault = lambda number: fault if number < times else None
    asking = client(stub, tmp_path, timeout=HASTE if fault == "late" else PATIENCE)
    assert asking.ask(request()).text == 'I recommend "Heat".'
    assert (asking.spent.requests, asking.spent.retries) == (times + 1, times)
    if fault == "busy":
        assert stub.times[1] - stub.times[0] >= 0.29
        assert stub.times[2] - stub.times[1] >= 0.29


def test_a_wait_that_a_server_asks_for_holds_back_all_threads(stub, tmp_path):
    stub.fault = lambda number: "busy" if number == 0 else None
    asking = client(stub, tmp_path)
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(asking.ask, request("0"))
        while not asking._not_before:  # the server's answer has not been read yet
            time.sleep(0.005)
        rest = [threads.submit(asking.ask, request(str(number))) for number in (1, 2, 3)]
        assert {future.result().text for future in (first, *rest)} == {'I recommend "Heat".'}
    assert all(moment - stub.times[0] >= 0.28 for moment in stub.times[1:])


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, 0.0),
        ({"retry-after": "86400"}, 600.0),
        ({}, 0.0),
    ],
)
def test_waits_are_read_as_servers_write_them(header, seconds):
    assert module._retry_after(header) == seconds


def test_what_fails_for_good_ends_with_the_last_failure(stub, tmp_path):
    stub.fault = lambda number: "broken"
    with pytest.raises(ModelServerError, match="after 3 tries, the last one brought 500: oh no"):
        client(stub, tmp_path, retries=2).ask(request())
    assert len(stub.asked) == 3


def test_keys_appear_nowhere(stub, tmp_path):
    stub.fault = lambda number: "unauthorised" if number == 0 else None
    stub.answer = lambda body: f"Your key is {KEY}"
    asking = client(stub, tmp_path)
    with pytest.raises(ModelServerError) as refused:
        asking.ask(request())
    assert KEY not in str(refused.value)
    assert "401" in str(refused.value)
    assert "OPENAI_API_KEY" in str(refused.value)
    assert refused.value.__suppress_context__
    assert asking.ask(request("again")).text == "Your key is ***"
    asking.store.close()
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert not any(KEY.encode() in content for content in files)
    assert stub.asked[0] == {**stub.asked[1], "messages": stub.asked[0]["messages"]}


def test_a_word_that_stands_for_a_key_stays_in_answers(stub, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    stub.answer = lambda body: "none of these, nonetheless"
    assert client(stub, tmp_path).ask(request()).text == "none of these, nonetheless"


def test_who_asks_stands_in_no_endpoint():
    options = ModelOptions(base_url="https://me:secret@host:8443/v1?api-key=secret").resolved()
    assert options.endpoint == "https://host:8443/v1"


@pytest.mark.parametrize("limit", ["max_requests", "max_tokens"])
def test_a_budget_stops_and_the_next_one_goes_on(stub, tmp_path, limit):
    # an answer of the stub is 15 tokens: 30 allow two of them
    asking = client(stub, tmp_path, **{limit: {"max_requests": 2, "max_tokens": 30}[limit]})
    asking.ask(request("1"))
    asking.ask(request("2"))
    with pytest.raises(BudgetError, match=f"--{limit.replace('_', '-')}"):
        asking.ask(request("3"))
    assert asking.ask(request("1")).text == 'I recommend "Heat".'
    later = client(stub, tmp_path, max_requests=1)
    assert [later.ask(request(text)).text for text in "123"] == ['I recommend "Heat".'] * 3
    assert len(stub.asked) == 3


def test_replay_opens_no_connection(stub, tmp_path, monkeypatch):
    client(stub, tmp_path).ask(request())
    monkeypatch.setattr(socket, "socket", None)
    replaying = client(stub, tmp_path, replay=True)
    assert replaying.ask(request()).text == 'I recommend "Heat".'
    with pytest.raises(NotKeptError, match="without --replay"):
        replaying.ask(request("other"))


def test_a_refusal_is_an_answer(stub, tmp_path):
    stub.fault = lambda number: "refusal"
    answer = client(stub, tmp_path).ask(request())
    assert (answer.text, answer.refused) == ("I cannot help with that.", True)


def test_closing_ends_what_waits(stub, tmp_path):
    stub.fault = lambda number: "broken"
    asking = client(stub, tmp_path, retries=1000)
    ended = []

    def ask():
        try:
            asking.ask(request())
        except ClosedError:
            ended.append(True)

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.1)
    asking.close()
    thread.join(60)
    assert ended == [True]


def test_answers_say_what_was_asked(stub, tmp_path):
    client(stub, tmp_path).ask(request(seed=3))
    with sqlite3.connect(tmp_path / "answers.sqlite") as connection:
        endpoint, model, asked = connection.execute(
            "SELECT endpoint, model, request FROM answers"
        ).fetchone()
    assert (endpoint, model, json.loads(asked)["seed"]) == (stub.url, "tiny", 3)


def test_a_file_that_is_no_store_is_named(stub, tmp_path):
    (tmp_path / "answers.sqlite").write_text("not a database, but long enough to look at\n" * 30)
    with pytest.raises(RunError, match=r"answers\.sqlite: cannot keep answers there"):
        client(stub, tmp_path)
