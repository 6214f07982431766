import base64
import json
import socket
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fastscore.errors import RunError, UsageError
from fastscore.llm.client import (
    ChatClient,
    ClosedError,
    ModelServerError,
    asking_threads,
    expect_requests,
)
from fastscore.llm.requests import ChatRequest, ModelOptions
from fastscore.llm.spending import (
    BudgetError,
    Meter,
    SampleError,
    Spent,
)
from fastscore.run.progress import SilentReporter
from tests.conftest import python_process
from tests.llm.stub_server import HASTE, PATIENCE, REFUSALS, Stub, serving

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("FASTSCORE_API_KEY", raising=False)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.02)
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


def test_a_server_with_the_newer_name_of_a_limit_is_sent_it(stub, tmp_path):
    stub.fault = lambda number: "renamed" if "max_tokens" in stub.asked[number] else None
    asking = client(stub, tmp_path)
    for text in ("1", "2"):
        assert asking.ask(request(text, max_tokens=99)).text == 'I recommend "Heat".'
    limits = [(body.get("max_tokens"), body.get("max_completion_tokens")) for body in stub.asked]
    assert limits == [(99, None), (None, 99), (None, 99)]
    # a refusal of a request without the limit is one
    stub.fault = lambda number: "renamed"
    with pytest.raises(SampleError, match="Unsupported parameter"):
        asking.ask(request("3"))


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


@pytest.mark.parametrize("fault", ["busy", "late", "hung_up"])
def test_a_failure_that_passes_is_tried_again(stub, tmp_path, fault):
    times = 1 if fault == "late" else 2
    stub.fault = lambda number: fault if number < times else None
    asking = client(stub, tmp_path, timeout=HASTE if fault == "late" else PATIENCE)
    assert asking.ask(request()).text == 'I recommend "Heat".'
    assert (asking.spent.requests, asking.spent.retries) == (times + 1, times)
    assert asking.spent.timeouts == int(fault == "late")
    if fault == "busy":  # the server's Retry-After
        assert stub.times[1] - stub.times[0] >= 0.29
        assert stub.times[2] - stub.times[1] >= 0.29


@pytest.mark.parametrize(
    ("fault", "kind", "reason", "tries"),
    [
        ("broken", "server_error", "500: oh no", 3),
        ("busy", "server_error", "429: slow down", 3),
        ("truncated", "server_error", "a response that is not JSON", 3),
        ("empty", "server_error", "a response without choices", 3),
        ("hung_up", "server_error", "a response that broke off", 3),
        ("cut", "server_error", "a response that broke off", 3),
        ("endless", "server_error", "a response of more than 8 MiB", 3),
        ("packed_zeros", "server_error", "a response of more than 8 MiB", 3),
        ("long_number", "server_error", "a response that is not JSON", 3),
        ("busy_for_days", "server_error", r"429: slow down \(Retry-After: 86400\)", 1),
        ("rejected", "rejected", "400: content policy", 1),
    ],
)
def test_what_stays_is_a_failure_of_this_request_alone(stub, tmp_path, fault, kind, reason, tries):
    stub.fault = lambda number: fault if number < tries else None
    asking = client(stub, tmp_path, retries=2)
    with pytest.raises(SampleError, match=reason) as failed:
        asking.ask(request())
    assert failed.value.kind == kind
    assert len(stub.asked) == tries
    assert asking.ask(request("other")).text == 'I recommend "Heat".'
    assert asking.ask(request()).text == 'I recommend "Heat".'  # a failure is not kept


def test_a_request_without_an_answer_in_time_fails(stub, tmp_path):
    stub.fault = lambda number: "late" if number == 0 else None
    asking = client(stub, tmp_path, retries=0, timeout=0.5)
    with pytest.raises(SampleError, match=r"nothing within 0\.5 s") as failed:
        asking.ask(request())
    assert failed.value.kind == "timed_out"
    assert (asking.spent.timeouts, asking.spent.tokens) == (1, 0)
    # it may have been charged for: the bytes of its body and the most tokens of an answer
    assert asking.spent.unanswered_prompt_tokens == int(stub.headers[0]["content-length"])
    assert asking.spent.unanswered_completion_tokens == 512


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("unauthorised", "refuses: 401: .*FASTSCORE_API_KEY or OPENAI_API_KEY"),
        ("forbidden", "refuses: 403: not yours"),
        ("not_found", "refuses: 404: no model tiny.*Check base_url and the model's name"),
    ],
)
def test_what_every_request_would_meet_ends_at_once(stub, tmp_path, fault, message):
    stub.fault = lambda number: fault
    with pytest.raises(ModelServerError, match=message):
        client(stub, tmp_path).ask(request())
    assert len(stub.asked) == 1


def test_a_server_that_is_not_there_ends_at_once(stub, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    asking = client(stub, tmp_path, base_url=url)
    with pytest.raises(ModelServerError, match=r"cannot be reached: Connection refused\."):
        asking.ask(request())
    assert asking.spent.requests == 1


@pytest.mark.parametrize("fault", ["dripping", "dripping_head"])
def test_a_server_that_drips_has_no_more_time_than_others(stub, tmp_path, fault):
    stub.fault = lambda number: fault
    asking = client(stub, tmp_path, retries=0, timeout=1.0)
    started = time.monotonic()
    with pytest.raises(SampleError, match="nothing within 1 s") as failed:
        asking.ask(request())
    assert time.monotonic() - started < 10  # it drips for 20 seconds
    assert (failed.value.kind, asking.spent.timeouts) == ("timed_out", 1)
    stub.fault = lambda number: None
    assert asking.ask(request()).text == 'I recommend "Heat".'


def test_a_redirect_is_not_followed(stub, tmp_path):
    with serving(Stub()) as other:
        stub.fault, stub.elsewhere = lambda number: "redirected", f"{other.url}/chat/completions"
        with pytest.raises(ModelServerError, match="307: a redirect to http") as refused:
            client(stub, tmp_path).ask(request())
        assert "name it in base_url" in refused.value.hint
        assert (len(stub.asked), len(other.asked)) == (1, 0)


def test_packed_answers_and_odd_usage_are_read(stub, tmp_path):
    stub.fault = lambda number: ("packed", "odd_usage")[number]
    asking = client(stub, tmp_path)
    assert asking.ask(request("a")).text == "unpacked"
    assert stub.headers[0]["accept-encoding"] == "identity"
    # five characters sent and four received
    answer = asking.ask(request("hello"))
    assert (answer.prompt_tokens, answer.completion_tokens) == (2, 1)


def test_what_was_cut_may_have_been_charged_for(stub, tmp_path):
    stub.fault = lambda number: "cut" if number == 0 else None
    asking = client(stub, tmp_path)
    asking.ask(request())
    assert (asking.spent.requests, asking.spent.retries, asking.spent.timeouts) == (2, 1, 0)
    assert asking.spent.unanswered_prompt_tokens == int(stub.headers[0]["content-length"])
    assert asking.spent.unanswered_completion_tokens == 512


def test_an_address_that_is_none_is_refused():
    for url in ("http://[bad", "http://", "ftp://host/v1", "host/v1", "http://h:99999/v1"):
        with pytest.raises(UsageError, match=r"base_url is .*, expected the address of a server"):
            ModelOptions(base_url=url).resolved()


def test_a_server_must_be_named(monkeypatch):
    monkeypatch.delenv("FASTSCORE_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(
        UsageError,
        match=r"No server of chat models is named\. Set base_url, .* for example to http:",
    ):
        ModelOptions().resolved()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/")
    assert ModelOptions().resolved().base_url == "http://127.0.0.1:1/v1"


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


@pytest.mark.parametrize(
    "repeated",
    [
        KEY,
        KEY[:12],
        f"{KEY[:5]}...{KEY[-5:]}",
        KEY.upper(),
        base64.b64encode(KEY.encode()).decode(),
        base64.b64encode(f"user:{KEY}".encode()).decode(),
        KEY.encode().hex(),
    ],
)
def test_no_part_of_a_key_is_in_a_message(stub, tmp_path, monkeypatch, repeated):
    monkeypatch.setitem(REFUSALS, "rejected", (400, f"no such key: {repeated} (403)", ""))
    stub.fault = lambda number: "rejected"
    with pytest.raises(SampleError) as failed:
        client(stub, tmp_path).ask(request())
    shown = failed.value.reason
    assert shown.startswith("400: no such key: ")
    assert shown.endswith(" (403)")
    said = shown.removeprefix("400: no such key: ").removesuffix(" (403)")
    assert "***" in said
    assert len(said) < 20


def test_a_word_that_stands_for_a_key_stays_in_answers(stub, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    stub.answer = lambda body: "none of these, nonetheless"
    assert client(stub, tmp_path).ask(request()).text == "none of these, nonetheless"


def test_who_asks_stands_in_no_endpoint():
    options = ModelOptions(base_url="https://me:secret@host:8443/v1?api-key=secret").resolved()
    assert options.endpoint == "https://host:8443/v1"


def bound_of(body):
    """The bytes of a body as it is sent, without blanks, and the most tokens of an answer."""
    return len(json.dumps(body, separators=(",", ":"))) + 512


# an answer of the stub is 10 and 5 tokens, a request at most the bytes of its body and 512
@pytest.mark.parametrize("limit", ["max_requests", "max_tokens"])
def test_a_budget_stops_and_the_next_one_goes_on(stub, tmp_path, limit):
    body = request("1", max_tokens=512).body()
    most = bound_of(body)
    limits = {
        "max_requests": 2,
        "max_tokens": most + 15,  # one answer, and the bound of another request
    }
    asking = client(stub, tmp_path, **{limit: limits[limit]})
    for text in "12":
        asking.ask(request(text, max_tokens=512))
    with pytest.raises(BudgetError, match=f"{limit}=") as ended:
        asking.ask(request("3", max_tokens=512))
    assert ended.value.hint.startswith("Run the same command again to go on")
    assert len(stub.asked) == 2  # the third one was not sent
    none = client(stub, tmp_path, **{limit: 0})
    with pytest.raises(BudgetError, match=f"{limit}=") as ended:
        none.ask(request("3", max_tokens=512))
    assert ended.value.hint == "Raise the limit: it does not cover one request."
    assert asking.ask(request("1", max_tokens=512)).text == 'I recommend "Heat".'
    later = client(stub, tmp_path, max_requests=1)
    answers = [later.ask(request(text, max_tokens=512)).text for text in "123"]
    assert answers == ['I recommend "Heat".'] * 3
    assert len(stub.asked) == 3


def test_a_retry_is_held_to_the_budget_too(stub, tmp_path):
    stub.fault = lambda number: "broken"
    asking = client(stub, tmp_path, max_requests=2)
    with pytest.raises(BudgetError, match="max_requests=2 does not cover the next request"):
        asking.ask(request())
    assert len(stub.asked) == 2


def test_a_budget_holds_for_requests_at_once(stub, tmp_path):
    """A request that the budget may not cover waits until those under way have been counted."""
    stub.answer = lambda body: time.sleep(0.1) or "slow"
    body = request("0", max_tokens=512).body()
    asking = client(stub, tmp_path, max_tokens=bound_of(body) + 2 * 15, concurrency=8)

    def ask(number):
        try:
            return asking.ask(request(str(number), max_tokens=512)).text
        except BudgetError:
            return None

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(8)))
    assert answers.count("slow") == 3
    assert asking.spent.tokens == 3 * 15


def test_a_meter_adds_up_what_is_under_way():
    meter = Meter(max_tokens=100)
    bound = meter.reserve(40, 10)
    meter.settle(bound, Spent(prompt_tokens=30, completion_tokens=5))
    bound = meter.reserve(40, 10)
    meter.settle(bound, replace(bound, timeouts=1))  # it may have been charged for
    with pytest.raises(BudgetError, match=r"max_tokens=100 .* up to 105 would be spent"):
        meter.reserve(20, 0)
    meter.reserve(10, 0)
    assert (meter.spent.requests, meter.spent.tokens, meter.spent.timeouts) == (3, 35, 1)


def test_replay_opens_no_connection(stub, tmp_path, monkeypatch):
    client(stub, tmp_path).ask(request())
    monkeypatch.setattr(socket, "socket", None)
    replaying = client(stub, tmp_path, replay=True)
    assert replaying.ask(request()).text == 'I recommend "Heat".'
    with pytest.raises(SampleError, match="is not kept") as failed:
        replaying.ask(request("other"))
    assert "without replay" in failed.value.hint


def test_a_refusal_is_an_answer(stub, tmp_path):
    stub.fault = lambda number: "refusal"
    answer = client(stub, tmp_path).ask(request())
    assert (answer.text, answer.refused) == ("I cannot help with that.", True)
    assert answer.cut_off is None


@pytest.mark.parametrize(("fault", "why"), [("cut_off", "length"), ("filtered", "content_filter")])
def test_an_answer_that_is_cut_says_why(stub, tmp_path, fault, why):
    stub.fault = lambda number: fault
    answer = client(stub, tmp_path).ask(request())
    assert (answer.cut_off, answer.refused) == (why, False)


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
    asking.cancel()
    thread.join(60)
    assert ended == [True]


def test_a_storm_of_waits_is_said_once_and_ends_with_the_client(stub, tmp_path):
    stub.fault = lambda number: "busy_for_long"
    asking, said, heard = client(stub, tmp_path), [], threading.Event()

    class Heard(SilentReporter):
        def note(self, text):
            said.append(text)
            heard.set()

    def ask_many():
        with asking_threads(asking, Heard()) as threads:
            for number in range(8):
                threads.submit(asking.ask, request(str(number)))
            assert heard.wait(60)
            started.append(time.monotonic())
            raise KeyboardInterrupt

    started = []
    with pytest.raises(KeyboardInterrupt):
        ask_many()
    assert time.monotonic() - started[0] < 20  # the server asked for 100 seconds
    assert said == [
        f"{stub.url}: HTTP 429. Retry 1 of 6 follows in 100 s. "
        "Ctrl-C ends the wait, and keeps the answers so far."
    ]
    assert len(stub.asked) <= 8


def test_the_file_of_answers_is_closed_after_the_last_request(stub, tmp_path):
    asking = client(stub, tmp_path)
    with asking_threads(asking, SilentReporter()) as threads:
        threads.submit(asking.ask, request())
        threads.submit(asking.ask, request("again"))
    assert [path.name for path in tmp_path.iterdir()] == ["answers.sqlite"]
    replayed = replace(asking.options, replay=True)
    assert expect_requests([request(), request("new")], replayed, "answer").kept == 1
    assert [path.name for path in tmp_path.iterdir()] == ["answers.sqlite"]
    assert not [link for link in Path("/proc/self/fd").iterdir() if _is_below(link, tmp_path)]


def _is_below(link, folder):
    try:
        return link.readlink().is_relative_to(folder)
    except FileNotFoundError:
        return False


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


WAITING = """
import os, signal, threading, time
from concurrent.futures import ThreadPoolExecutor
from fastscore.llm import client

signal.signal(signal.SIGINT, signal.default_int_handler)
heard, answered = threading.Event(), threading.Event()

def interrupt():
    waits.wait()
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
    if not heard.wait(20):
        print("not heard")
    answered.set()

waits, wait = threading.Event(), client.wait

def tell_and_wait(*args, **options):
    waits.set()
    return wait(*args, **options)

client.wait = tell_and_wait
other = threading.Thread(target=interrupt)
other.start()
# the system gives a signal to any thread: to another one than that which waits
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
with ThreadPoolExecutor(1) as pool:
    futures = {pool.submit(answered.wait): 0}
    try:
        list(client.as_done(futures))
    except KeyboardInterrupt:
        heard.set()
        print("interrupted")
other.join()
"""


def test_a_signal_that_another_thread_gets_is_heard_while_nothing_is_answered():
    done = python_process(WAITING)
    assert done.stdout == "interrupted\n", done.stderr
