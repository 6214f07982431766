"""A client of chat models, and answers that must have a structure.

Safe from several threads, which are how requests run at once. Equal requests that meet are sent
once. The package `openai` retries and waits as the server's Retry-After asks. Every request that it
sends is counted and held to the budget first.

Answers to one sample come in rounds of `MOST_ANSWERS`, in which the model is told why its last
answer was not usable. A round that brought nothing is the sample's failure; the next run of the
same command begins another one, with other seeds.
"""

import dataclasses
import math
import re
import sqlite3
import threading
import time
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

import orjson
from fastscore_jit.threads import POLL_SECONDS

from fastscore.errors import EXIT_INCOMPLETE, FastscoreError, RunError, UsageError
from fastscore.llm.requests import (
    KEY_VARIABLES,
    LENGTH,
    OPENAI,
    Answer,
    AskingAboutLogs,
    ChatRequest,
    ModelOptions,
    estimated_tokens,
    find_object,
    first_variable,
    is_refusal,
    parse_response,
    read_answer,
)
from fastscore.llm.spending import (
    Failure,
    Kind,
    Meter,
    SampleError,
    Spent,
    TooManyFailuresError,
    UnusableError,
    cost_of,
    spending_recorded,
)
from fastscore.run.progress import Reporter
from fastscore.settings.extras import missing_package

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx2
    from openai import OpenAI


_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    request TEXT NOT NULL,
    answer TEXT NOT NULL,
    asked_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
)
"""
_PATIENCE = 60.0
_LIMIT, _NEWER_LIMIT = "max_tokens", "max_completion_tokens"
"""The most tokens of an answer: OpenAI's reasoning models refuse the older name."""


class AnswerStore:
    """A file of answers, created if it is missing; raises `RunError` if it cannot be one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=_PATIENCE, check_same_thread=False, isolation_level=None
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise self._failure(error) from error

    def get(self, key: str) -> Answer | None:
        """Return an answer that was kept, or None."""
        rows = self._execute("SELECT answer FROM answers WHERE key = ?", key)
        return Answer(**orjson.loads(rows[0][0])) if rows else None

    def put(self, key: str, endpoint: str, request: ChatRequest, answer: Answer) -> None:
        """Keep an answer; the first one of a request stays."""
        self._execute(
            "INSERT OR IGNORE INTO answers (key, endpoint, model, request, answer) "
            "VALUES (?, ?, ?, ?, ?)",
            key,
            endpoint,
            request.model,
            orjson.dumps(request.body()).decode(),
            orjson.dumps(dataclasses.asdict(answer)).decode(),
        )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _execute(self, statement: str, *values: str) -> list[Any]:
        try:
            with self._lock:
                return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> RunError:
        return RunError(
            f"{self.path}: cannot keep answers there ({error}).", "Name another file as answers."
        )


_FATAL_STATUSES = {
    401: f"The key comes from {' or '.join(KEY_VARIABLES)}.",
    403: f"The key comes from {' or '.join(KEY_VARIABLES)}.",
    404: "Check base_url and the model's name.",
    **dict.fromkeys(
        (301, 302, 303, 307, 308), "Dialogues are sent to no other server: name it in base_url."
    ),
}
"""Statuses that every request would get, and what to do."""

TOO_MANY = 429
_RETRIED_STATUSES = (408, 409, TOO_MANY)
_LONG_WAIT = 5.0
"""Seconds between two tries from which on it is said; the package `openai` waits 120 at most."""
_MESSAGE_LENGTH = 300
_SHORTEST_SECRET, _SHORTEST_KEY = 12, 4
"""Servers on one's own machine take any word for a key, and answers contain words. An answer is
redacted if the key has at least the first length, a message of parts of the second length."""
_RETRY_HEADER = "x-stainless-retry-count"
_ERRNO = re.compile(r"^\[Errno -?\d+\] ")


def _spellings(key: str) -> list[tuple[str, int]]:
    """Return spellings of a key that a server may repeat, and the shortest part of each to hide."""
    content = key.encode()
    after = (b64encode(bytes(n) + content).decode()[-(-8 * n // 6) :].rstrip("=") for n in range(3))
    spelt = [(key, _SHORTEST_KEY), (quote(key, safe=""), _SHORTEST_KEY)]
    spelt += [(each, 2 * _SHORTEST_KEY) for each in (content.hex(), *after)]
    return [(each.lower(), shortest) for each, shortest in spelt]


class ModelServerError(FastscoreError):
    """A server that no request can succeed at; all answers so far are kept."""

    exit_code = EXIT_INCOMPLETE


class ClosedError(Exception):
    """The client was closed while a request waited."""


class ChatClient:
    """Asks a server with the usual protocol, within the budget of its options or of a meter."""

    def __init__(self, options: ModelOptions, meter: Meter | None = None) -> None:
        self.options = options.resolved()
        assert self.options.answers is not None
        self._key = first_variable(KEY_VARIABLES)
        self.meter = meter or self.options.meter()
        self._closed = threading.Event()
        self.tell: Callable[[str], object] = lambda text: None
        self._waits_until = 0.0
        self._under_way = threading.local()
        self._takes_newer_limit = False
        self._server = None if self.options.replay else self._connect()
        self.store = AnswerStore(self.options.answers)
        self._lock = threading.Lock()
        self._flying: dict[str, threading.Event] = {}

    @property
    def spent(self) -> Spent:
        """What was spent so far."""
        return self.meter.spent

    def has_kept(self, request: ChatRequest) -> bool:
        """Tell whether the answer to a request is kept."""
        return self.store.get(request.key(self.options.endpoint)) is not None

    def ask(self, request: ChatRequest) -> Answer:
        """Return the answer to a request.

        Raises `SampleError` if only this request failed, another error if none can succeed.
        """
        key = request.key(self.options.endpoint)
        while True:
            with self._lock:
                kept = self.store.get(key)
                if kept is not None:
                    self.meter.count(Spent(hits=1))
                    return kept
                other = self._flying.get(key)
                if other is None:
                    self._flying[key] = threading.Event()
                    break
            other.wait()
        try:
            answer = self._send(request)
            self.store.put(key, self.options.endpoint, request, answer)
            return answer
        finally:
            with self._lock:
                self._flying.pop(key).set()

    def cancel(self) -> None:
        """End requests that wait for a retry, with `ClosedError`. Others end and are kept."""
        self._closed.set()

    def close(self) -> None:
        """Close the connections and the file of answers, after the last request."""
        self._closed.set()
        if self._server is not None:
            self._server.close()
        self.store.close()

    def _send(self, request: ChatRequest) -> Answer:
        if self._server is None:
            raise SampleError(
                "not_kept",
                f"an answer of {request.model} is not kept in {self.options.answers}",
                "Run without replay to ask for it.",
            )
        import httpx2
        import openai

        started = time.monotonic()
        try:
            self._create(self._server, request)
        except openai.APIStatusError as error:
            raise self._status_error(error) from None
        except openai.APITimeoutError:
            raise SampleError(
                "timed_out", f"nothing within {self.options.timeout:g} s", "Raise timeout."
            ) from None
        except openai.APIConnectionError as error:
            cause = self._redacted(str(error.__cause__ or error))
            if isinstance(error.__cause__, httpx2.ConnectError):
                raise self._no_connection(cause) from None
            reason = f"a response that broke off ({cause})"
            raise SampleError("server_error", reason) from None
        bound, response = self._under_way.received  # the reservation is still open
        answer = read_answer(response, request, round(time.monotonic() - started, 3))
        used = Spent(
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            seconds=answer.seconds,
        )
        self.meter.settle(bound, used)
        return replace(answer, text=self._redacted(answer.text, None))

    def _create(self, server: "OpenAI", request: ChatRequest) -> None:
        """Send a request, again if the server has the newer name of the most tokens."""
        import openai

        create, body = server.chat.completions.with_raw_response.create, request.body()
        newer = {_NEWER_LIMIT if name == _LIMIT else name: body[name] for name in body}
        takes_newer = self._takes_newer_limit
        try:
            create(**newer if takes_newer else body)
        except openai.BadRequestError as error:
            if takes_newer or _LIMIT not in body or _NEWER_LIMIT not in str(error.message):
                raise
            self._takes_newer_limit = True
            create(**newer)

    def _status_error(self, error: Any) -> Exception:
        body = error.body if isinstance(error.body, dict) else {}
        status, message = error.status_code, body.get("message") or str(error.message)
        if 300 <= status < 400:
            message = f"a redirect to {error.response.headers.get('Location')}"
        elif status == TOO_MANY and (later := error.response.headers.get("Retry-After")):
            message = f"{message} (Retry-After: {later})"
        reason = f"{status}: {self._redacted(str(message))}"
        if status in _FATAL_STATUSES:
            what = f"{self.options.endpoint} refuses: {reason}."
            return ModelServerError(what, _FATAL_STATUSES[status])
        may_pass = status >= 500 or status in _RETRIED_STATUSES
        is_of_schema = "response_format" in reason or "json_schema" in reason
        hint = (
            "Servers differ in how they take a schema: set structured to json-object, or to none."
        )
        kind: Kind = "server_error" if may_pass else "rejected"
        return SampleError(kind, reason, hint if is_of_schema else None)

    def _no_connection(self, cause: str) -> ModelServerError:
        return ModelServerError(
            f"{self.options.endpoint} cannot be reached: {_ERRNO.sub('', cause)}.",
            "Check base_url, and that the server runs. All answers so far are kept.",
        )

    def _redacted(self, text: str, length: int | None = _MESSAGE_LENGTH) -> str:
        """Return a text without the key, or in a message any part of it as sent or encoded.

        In an answer a short word such as "none" stays.
        """
        if length is None:
            is_secret = self._key is not None and len(self._key) >= _SHORTEST_SECRET
            return text.replace(self._key, "***") if self._key and is_secret else text
        text = text[: 10 * length]
        hidden = bytearray(len(text))
        for secret, shortest in _spellings(self._key or ""):
            parts = {secret[at : at + shortest] for at in range(len(secret) - shortest + 1)}
            for at in range(len(text) - shortest + 1):
                if text[at : at + shortest].lower() in parts:
                    hidden[at : at + shortest] = b"\1" * shortest
        runs = groupby(zip(text, hidden, strict=True), itemgetter(1))
        shown = ("***" if is_hidden else "".join(one for one, _ in run) for is_hidden, run in runs)
        return "".join(shown)[:length]

    def _say_wait(self, why: str, seconds: float, number: int) -> None:
        """Say that a request waits; once while others wait until then as well."""
        now = time.monotonic()
        with self._lock:
            if now < self._waits_until:
                return
            self._waits_until = now + seconds
        self.tell(
            f"{self.options.endpoint}: {why}. Retry {number} of {self.options.retries} follows in "
            f"{seconds:.0f} s. Ctrl-C ends the wait, and keeps the answers so far."
        )

    def _connect(self) -> "OpenAI":
        try:
            import httpx2
            import openai
        except ImportError as error:
            raise missing_package("openai", "A chat model") from error
        meter, closed, under_way = self.meter, self._closed, self._under_way
        options, no_connection, say_wait = self.options, self._no_connection, self._say_wait

        class PatientClient(openai.OpenAI):
            """Waits before it tries again, says so, and hears meanwhile that it was closed."""

            def _sleep_for_retry(
                self, *, retries_taken: int, max_retries: int, options: Any, response: Any
            ) -> None:
                headers, left = response.headers if response else None, max_retries - retries_taken
                seconds = self._calculate_retry_timeout(left, options, headers)
                if seconds >= _LONG_WAIT:
                    why = f"HTTP {response.status_code}" if response else "no usable response"
                    say_wait(why, seconds, retries_taken + 1)
                if closed.wait(seconds):
                    raise ClosedError

        class MeteredClient(openai.DefaultHttpxClient):
            """Sends requests, first or again, as the budget allows, each with its deadline."""

            def send(self, request: httpx2.Request, **given: Any) -> httpx2.Response:
                if closed.is_set():
                    raise ClosedError
                is_retry = request.headers.get(_RETRY_HEADER, "0") != "0"
                sent, received = len(request.content), options.answer_tokens
                bound = meter.reserve(sent, received, is_retry=is_retry)
                under_way.deadline = time.monotonic() + options.timeout
                try:
                    response = super().send(request, **{**given, "stream": True})
                    try:
                        response = _read_whole(response, request)
                    finally:
                        response.close()
                except httpx2.ConnectError as error:
                    meter.settle(bound, Spent())
                    # a server that never answered is not waited for
                    if not meter.spent.tokens:
                        raise no_connection(str(error)) from None
                    raise
                except BaseException as error:  # what was sent may be charged for
                    is_late = isinstance(error, httpx2.TimeoutException)
                    meter.settle(bound, replace(bound, timeouts=int(is_late)))
                    raise
                if not response.is_success:
                    meter.settle(bound, Spent())
                    return response
                try:
                    under_way.received = bound, parse_response(response.content)
                except ValueError as error:  # sent again, as other broken responses are
                    meter.settle(bound, bound)
                    raise httpx2.RemoteProtocolError(str(error)) from error
                return response

        # a redirect would send the dialogues to a server that nobody named
        sender = MeteredClient(
            timeout=options.timeout, follow_redirects=False, verify=_certificates()
        )
        for transport in (sender._transport, *sender._mounts.values()):
            if (pool := getattr(transport, "_pool", None)) is not None:
                pool._network_backend = _Timed(pool._network_backend, under_way)
        return PatientClient(
            # a server on one's own machine asks for no key, but the package wants one
            api_key=self._key or "none",
            base_url=options.base_url,
            timeout=options.timeout,
            max_retries=options.retries,
            http_client=sender,
            default_headers={"Accept-Encoding": "identity"},
        )


@cache
def _certificates() -> "SSLContext":
    """Read the machine's certificates once: each client would, for 40 ms."""
    import httpx2

    return httpx2.create_ssl_context()


_CENT = 0.01


@dataclass(frozen=True, slots=True)
class Expectation:
    """What will be asked of chat models if nothing is asked again; `kept` of it is not sent."""

    requests: int
    kept: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None  # None without prices

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        kept = f" ({self.kept:,} of them kept)" if self.kept else ""
        yield f"requests   {self.requests:,}{kept}, more where an answer must be asked for again"
        yield (
            f"tokens     about {self.prompt_tokens:,} sent and {self.completion_tokens:,} received"
        )
        if self.cost is not None:
            written = f"{self.cost:.2f}" if self.cost >= _CENT else f"{self.cost:.1g}"
            yield f"cost       about {written} USD"


def expect_requests(
    requests: Iterable[ChatRequest], options: ModelOptions, answer: str
) -> Expectation:
    """Say what requests would take, each with such an answer; those that are kept take nothing."""
    with suppress(UsageError):  # no server need be named
        options = options.resolved()
    store = AnswerStore(options.answers) if options.answers and options.answers.exists() else None
    n = kept = prompt = 0
    with nullcontext() if store is None else closing(store):
        for request in requests:
            n += 1
            if store is not None and store.get(request.key(options.endpoint)) is not None:
                kept += 1
            else:
                prompt += request.estimated_tokens
    completion, prices = (n - kept) * estimated_tokens(len(answer)), options.prices
    cost = cost_of(prices, prompt, completion) if any(prices) else None
    return Expectation(n, kept, prompt, completion, cost)


MOST_BYTES = 8 << 20
"""The most bytes of a response, as sent and unpacked."""


def _read_whole(response: "httpx2.Response", request: "httpx2.Request") -> "httpx2.Response":
    """Read a response up to `MOST_BYTES`; return it as one that is read."""
    import httpx2

    content, packed = bytearray(), response.headers.get("Content-Encoding", "identity").lower()
    for part in response.iter_raw():
        content += part
        if len(content) > MOST_BYTES:
            break
    if packed in ("gzip", "deflate"):  # some servers pack what nobody asked them to
        try:
            content = bytearray(zlib.decompressobj(47).decompress(content, MOST_BYTES + 1))
        except zlib.error as error:
            reason = f"a response that cannot be unpacked: {error}"
            raise httpx2.RemoteProtocolError(reason) from None
    elif packed != "identity":
        raise httpx2.RemoteProtocolError(f"a response packed as {packed!r:.40}")
    if len(content) > MOST_BYTES:
        raise httpx2.RemoteProtocolError(f"a response of more than {MOST_BYTES >> 20} MiB")
    kept = {name: value for name, value in response.headers.items() if name not in _FRAMING}
    return httpx2.Response(
        response.status_code, headers=kept, content=bytes(content), request=request
    )


_FRAMING = ("content-encoding", "content-length", "transfer-encoding")


class _Timed:
    """A connection, or what opens them, that ends with the deadline even if bytes drip in."""

    def __init__(self, inner: Any, under_way: threading.local) -> None:
        self._inner, self._under_way = inner, under_way

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in ("connect_tcp", "connect_unix_socket", "start_tls"):
            return lambda *given, **named: _Timed(found(*given, **named), self._under_way)
        if name in ("read", "write"):
            return lambda given, timeout=None: found(given, self._left())
        return found

    def _left(self) -> float:
        import httpcore2

        left = float(self._under_way.deadline) - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout
        return left


MOST_ANSWERS = 3
"""The most answers of one round."""

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Structured(Generic[Read]):
    """The result for one sample: what was read, or why it failed, after how many answers."""

    value: Read | None
    failure: Failure | None
    attempts: int


@dataclass(frozen=True, slots=True)
class Question(Generic[Read]):
    """A request, how its answer is read, and what a model is told of one that cannot be used."""

    request: ChatRequest
    read: Callable[[dict[str, Any]], Read]
    again: Callable[[str], str]


def ask_until_read(client: ChatClient, question: Question[Read]) -> Structured[Read]:
    """Ask for a JSON object until one can be used, at most `MOST_ANSWERS` times.

    Answers that are kept from earlier runs are read first and are not counted.
    """
    attempts, failure, is_new = 0, None, False
    while not is_new:
        asked = question.request.again(by=attempts)
        for _ in range(MOST_ANSWERS):
            is_kept = client.has_kept(asked)
            if client.options.replay and failure is not None and not is_kept:
                return Structured(None, failure, attempts)
            is_new = is_new or not is_kept
            try:
                answer = client.ask(asked)
            except SampleError as error:
                before = failure.answer if failure else ""
                last = Failure(error.kind, error.reason, before, attempts, error.hint)
                return Structured(None, last, attempts)
            attempts += 1
            try:
                return Structured(question.read(read_object(answer)), None, attempts)
            except UnusableError as error:
                failure = Failure(error.kind, str(error), answer.text, attempts)
            last_answer = ("assistant", answer.content or "(nothing)")
            asked = asked.again(last_answer, ("user", question.again(failure.reason)))
    return Structured(None, failure, attempts)


def read_object(answer: Answer) -> dict[str, Any]:
    """Read an answer that holds one JSON object."""
    if answer.refused:
        raise UnusableError("refused", "refused")
    if answer.cut_off:
        is_length = answer.cut_off == LENGTH
        raise UnusableError(
            "cut off before its end" if is_length else "cut off by a content filter",
            "cut_off" if is_length else "content_filter",
        )
    try:
        return find_object(answer.text)
    except UnusableError:
        if is_refusal(answer.text):
            raise UnusableError("refused", "refused") from None
        raise


def describe_asking(asked: AskingAboutLogs, client: ChatClient) -> dict[str, Any]:
    """Describe the model and its settings for a manifest."""
    return {
        "model": asked.model.removeprefix(OPENAI),
        "endpoint": client.options.endpoint,
        "temperature": client.options.temperature,
        "seed": asked.seed,
    }


Task = TypeVar("Task")
Written = TypeVar("Written")


@contextmanager
def asking_threads(client: ChatClient, reporter: Reporter) -> Iterator[ThreadPoolExecutor]:
    """Open as many threads as requests may run at once; say when they wait for long.

    When the block ends early, waiting tasks are cancelled. Requests under way end and are kept, so
    that they are not sent again. The client is closed with the block.
    """
    pool = ThreadPoolExecutor(client.options.concurrency)
    client.tell = reporter.note
    try:
        yield pool
    except BaseException:
        client.cancel()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        client.close()


def as_done(futures: dict[Future[Any], Any]) -> Iterator[Future[Any]]:
    """Yield futures as they end; a signal is heard meanwhile, whichever thread it came to."""
    left = set(futures)
    while left:
        done, left = wait(left, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        yield from done


def ask_each(
    client: ChatClient,
    tasks: Sequence[Task],
    ask: Callable[[Task], Structured[Read]],
    write: Callable[[Sequence[Structured[Read] | None], dict[str, Any]], Written],
    reporter: Reporter,
    *,
    stage: str,
    noun: str,
    described: Mapping[str, Any],
    manifest: Path,
    failures: Path,
    counts: Mapping[str, int],
    samples: Sequence[int],
    n_samples: int,
    done: Callable[[Task, Structured[Read]], object] = lambda task, result: None,
) -> tuple[Written, TooManyFailuresError | None]:
    """Ask for every task, in threads, until more samples failed than may; record what that costs.

    `samples` has the sample that each task belongs to, and `noun` names samples. `counts` is what a
    task makes, for the progress display; `done` is called with each result. `write` gets all of
    them, None for a task that was not asked for, and the outcome to add to. Returns what it
    returns, and the error of too many failures, which are listed in the file `failures`.
    """
    failed = set[int]()
    # 0.07 * 100 is 7.000000000000001, 0.29 * 100 is 28.999999999999996
    most_failed = math.floor(round(client.options.max_failures * n_samples, 9))
    found: list[Structured[Read] | None] = [None] * len(tasks)
    with spending_recorded(manifest, described, client.meter) as outcome:
        with (
            reporter.stage(stage, len(tasks)) as progress,
            asking_threads(client, reporter) as pool,
        ):
            before, is_stopped = client.spent, False
            futures = {pool.submit(ask, task): number for number, task in enumerate(tasks)}
            for future in as_done(futures):
                if future.cancelled():
                    continue
                number = futures[future]
                found[number] = result = future.result()
                if result.failure is not None and samples[number] not in failed:
                    failed.add(samples[number])
                    client.meter.count(Spent(failures=1))
                if len(failed) > most_failed and not is_stopped:
                    is_stopped = True
                    for waiting in futures:
                        waiting.cancel()
                now = client.spent
                n_requests, n_tokens = now.requests - before.requests, now.tokens - before.tokens
                progress.advance({**counts, "requests": n_requests, "tokens": n_tokens})
                before = now
                done(tasks[number], result)
        written = write(found, outcome)
        causes = [one.failure for one in found if one is not None and one.failure is not None]
        kinds = Counter(each.kind for each in causes)
        outcome["status"] = "incomplete" if kinds or None in found else "complete"
        outcome["failures"] = dict(sorted(kinds.items()))
        outcome["too_many_failures"] = len(failed) > most_failed
    if len(failed) <= most_failed:
        return written, None
    hint = f"{causes[0].hint} " if causes[0].hint else ""
    return written, TooManyFailuresError(
        f"{len(failed):,} of {n_samples:,} {noun} failed, more than max_failures "
        f"{client.options.max_failures:g} allows; the first: {causes[0].reason}.",
        f"{hint}All failures are listed in {failures}. The same command asks for them again.",
    )
