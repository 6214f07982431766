"""The client: one answer a request, from the store where it is kept, else from a server.

Safe from several threads, which are how requests run at once. Equal requests that meet are sent
once. A failure that may pass (too many requests, a server's error, a time-out, a broken connection,
a response cut short) is tried again after a pause that grows, with jitter, and never before the
server's Retry-After, which holds back all threads. Keys come from the environment and are blotted
out of whatever a server sends.
"""

import random
import threading
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol

from fastscore.errors import EXIT_INCOMPLETE, FastscoreError, UsageError
from fastscore.llm.answers import AnswerStore
from fastscore.llm.options import KEY_VARIABLES, ModelOptions, api_key
from fastscore.llm.requests import Answer, ChatRequest, read_answer

if TYPE_CHECKING:
    from openai import OpenAI

_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_FIRST_PAUSE, _LONGEST_PAUSE, _LONGEST_ASKED = 0.5, 30.0, 600.0
_MESSAGE_LENGTH = 300
_SHORTEST_SECRET, _SHORTEST_KEY = 12, 4
"""Servers on one's own machine take any word for a key; words stand in answers, too. What goes into
an error, where no word is missed, is blotted out from the second length on."""


class ModelServerError(FastscoreError):
    """A server that does not answer as it should; what it did answer is kept."""

    exit_code = EXIT_INCOMPLETE


class BudgetError(FastscoreError):
    """The budget is spent; the same command with a larger one goes on."""

    exit_code = EXIT_INCOMPLETE


class NotKeptError(FastscoreError):
    """An answer that only a connection could bring, while connections are not to be opened."""

    exit_code = EXIT_INCOMPLETE


class ClosedError(Exception):
    """The client was closed while a request waited."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a client did: requests sent, those after a failure, answers kept before, tokens."""

    requests: int = 0
    retries: int = 0
    hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """All tokens, sent and received."""
        return self.prompt_tokens + self.completion_tokens

    def line(self) -> str:
        """Say it in one line."""
        return (
            f"models: {self.requests:,} requests ({self.retries:,} after a failure), "
            f"{self.hits:,} answers kept before, "
            f"{self.prompt_tokens:,} + {self.completion_tokens:,} tokens, {self.seconds:.1f} s"
        )


class _Failure(Exception):
    """A failure that may pass, and how long the server asks to wait."""

    def __init__(self, what: str, wait: float = 0.0) -> None:
        super().__init__(what)
        self.wait = wait


class Asks(Protocol):
    """Whatever answers requests: the client, or what only counts them."""

    @property
    def options(self) -> ModelOptions:
        """How models are asked."""

    def ask(self, request: ChatRequest) -> Answer:
        """Return the answer to a request."""


class ChatClient:
    """Asks a server with the usual protocol.

    Parameters
    ----------
    options
        How to ask.

    Raises
    ------
    UsageError
        The package `openai` is not installed, though a connection may be needed.
    RunError
        The answers' file cannot be used.
    """

    def __init__(self, options: ModelOptions) -> None:
        self.options = options.resolved()
        assert self.options.answers is not None
        self.store = AnswerStore(self.options.answers)
        self._key = api_key()
        self._server = None if self.options.replay else _connect(self.options, self._key)
        self._lock = threading.Lock()
        self._flying: dict[str, threading.Event] = {}
        self._closed = threading.Event()
        self._not_before = 0.0
        self._jitter = random.Random()
        self.spent = Spent()

    def ask(self, request: ChatRequest) -> Answer:
        """Return the answer to a request.

        Raises
        ------
        BudgetError
            The budget is spent.
        NotKeptError
            The answer is not kept, and no connection may be opened.
        ModelServerError
            The server refuses the request, or fails again and again.
        ClosedError
            The client was closed.
        """
        key = request.key(self.options.endpoint)
        while True:
            with self._lock:
                kept = self.store.get(key)
                if kept is not None:
                    self._count(hits=1)
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

    def close(self) -> None:
        """End what waits, with `ClosedError`; what is being sent ends by itself."""
        self._closed.set()

    def _send(self, request: ChatRequest) -> Answer:
        if self._server is None:
            raise NotKeptError(
                f"An answer of {request.model} is not kept in {self.options.answers}.",
                "Run without --replay to ask for it.",
            )
        failure: Exception | None = None
        for attempt in range(self.options.retries + 1):
            self._pause(attempt)
            self._reserve(is_retry=attempt > 0)
            try:
                answer = self._try(request)
            except _Failure as error:
                failure = error
                with self._lock:
                    self._not_before = max(self._not_before, time.monotonic() + error.wait)
                continue
            with self._lock:
                self._count(
                    prompt_tokens=answer.prompt_tokens,
                    completion_tokens=answer.completion_tokens,
                    seconds=answer.seconds,
                )
            return answer
        raise ModelServerError(
            f"{self.options.endpoint}: no answer of {request.model} after "
            f"{self.options.retries + 1} tries, the last one brought {failure}.",
            _hint(str(failure)) or "Run the same command again: what was answered is kept.",
        )

    def _try(self, request: ChatRequest) -> Answer:
        """Send a request once."""
        import openai

        assert self._server is not None
        body, started = request.body(), time.monotonic()
        try:
            response = self._server.chat.completions.with_raw_response.create(**body)
            content = response.http_response.content
        except openai.APIStatusError as error:
            said = self._error_text(error)
            if error.status_code in _TRANSIENT_STATUSES:
                raise _Failure(said, _retry_after(error.response.headers)) from None
            raise self._refusal(error.status_code, said) from None
        except openai.APITimeoutError:
            raise _Failure(f"nothing within {self.options.timeout:g} s") from None
        except openai.APIConnectionError as error:
            cause = self._redacted(str(error.__cause__ or error))
            raise _Failure(f"a broken connection ({cause})") from None
        except (openai.APIError, ValueError) as error:
            raise _Failure(f"what cannot be read ({self._redacted(str(error))})") from None
        try:
            answer = read_answer(content, request, round(time.monotonic() - started, 3))
        except ValueError as error:
            raise _Failure(self._redacted(str(error))) from None
        return replace(answer, text=self._redacted(answer.text, None))

    def _error_text(self, error: Any) -> str:
        body = error.body if isinstance(error.body, dict) else {}
        message = body.get("message") or str(error.message)
        return f"{error.status_code}: {self._redacted(str(message))}"

    def _refusal(self, status: int, said: str) -> ModelServerError:
        hints = {
            401: f"The key comes from {' or '.join(KEY_VARIABLES)}.",
            403: f"The key comes from {' or '.join(KEY_VARIABLES)}.",
            404: "Check --base-url and the model's name.",
        }
        hint = _hint(said) or hints.get(status)
        return ModelServerError(f"{self.options.endpoint} refuses: {said}.", hint)

    def _redacted(self, text: str, length: int | None = _MESSAGE_LENGTH) -> str:
        """Return a text without the key in it; in an answer a short word such as "none" stays."""
        shortest = _SHORTEST_SECRET if length is None else _SHORTEST_KEY
        is_secret = self._key is not None and len(self._key) >= shortest
        blotted = text.replace(self._key, "***") if self._key and is_secret else text
        return blotted if length is None else blotted[:length]

    def _pause(self, attempt: int) -> None:
        """Wait until a request may be sent."""
        if attempt:
            longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1))
            self._wait(longest * self._jitter.uniform(0.5, 1.0))
        while (left := self._not_before - time.monotonic()) > 0:
            self._wait(left)
        if self._closed.is_set():
            raise ClosedError

    def _wait(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise ClosedError

    def _reserve(self, *, is_retry: bool) -> None:
        """Count a request before it is sent; refuse it where the budget does."""
        asked = self.options
        with self._lock:
            spent = self.spent
            for limit, used, flag in (
                (asked.max_requests, spent.requests, "--max-requests"),
                (asked.max_tokens, spent.tokens, "--max-tokens"),
            ):
                if limit is not None and used >= limit:
                    raise BudgetError(
                        f"{flag} {limit:,} is spent: {spent.line()}.",
                        "The same command goes on from here; what was answered is kept.",
                    )
            self._count(requests=1, retries=int(is_retry))

    def _count(self, **more: float) -> None:
        """Add to what was spent; the lock is held."""
        added: dict[str, Any] = {name: getattr(self.spent, name) + n for name, n in more.items()}
        self.spent = replace(self.spent, **added)


def _hint(said: str) -> str | None:
    """Say what to do where a server does not know how it is asked for JSON."""
    if "response_format" not in said and "json_schema" not in said:
        return None
    return "Servers differ in how they take a schema: try --structured json-object, or none."


def _connect(options: ModelOptions, key: str | None) -> "OpenAI":
    try:
        from openai import OpenAI
    except ImportError as error:
        raise UsageError(
            "Chat models need the package openai, which is not installed.",
            "Install it by `pip install 'fastscore-dialogue[llm]'`.",
        ) from error
    # a server on one's own machine asks for no key, but the package wants one
    return OpenAI(
        api_key=key or "none",
        base_url=options.base_url,
        timeout=options.timeout,
        max_retries=0,
    )


def _retry_after(headers: Any) -> float:
    """Read how many seconds a response asks to wait: seconds, milliseconds or a date."""
    try:
        if value := headers.get("retry-after-ms"):
            seconds = float(value) / 1000
        elif not (value := headers.get("retry-after")):
            return 0.0
        elif value.strip().replace(".", "", 1).isdigit():
            seconds = float(value)
        else:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
    return min(max(seconds, 0.0), _LONGEST_ASKED)
