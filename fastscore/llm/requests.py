"""Requests to a chat model and its answers, and how chat models are asked."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import orjson

from fastscore.content_hash import hash_bytes
from fastscore.errors import UsageError, did_you_mean
from fastscore.llm.spending import (
    DEFAULT_MAX_FAILURES,
    FailureLimit,
    Limits,
    Prices,
    UnusableError,
    parse_limit,
)
from fastscore.paths import cache_root

_TAGS = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|seed:think"
_BLOCK = re.compile(rf"<({_TAGS})>.*?</\1>|\[THINK\].*?\[/THINK\]", re.DOTALL | re.IGNORECASE)
# many templates open the block in the prompt, so that an answer only closes it
_END = re.compile(rf".*(?:</(?:{_TAGS})>|\[/THINK\])", re.DOTALL | re.IGNORECASE)
_OPEN = re.compile(rf"(?:<(?:{_TAGS})>|\[THINK\]).*", re.DOTALL | re.IGNORECASE)
_CHANNEL = re.compile(r".*<\|channel\|>final<\|message\|>", re.DOTALL)
_CHANNELS_ONLY = re.compile(r"^\s*<\|channel\|>(?:analysis|commentary)\b.*", re.DOTALL)
_MARKS = re.compile(r"<\|(?:end|return|im_end|eot_id)\|>\s*$")

_REFUSAL = re.compile(
    r"(?:i['\u2019]?m (?:very |so )?sorry|sorry|i apologi[sz]e|unfortunately)?[,.;:! ]*(?:but )?"
    r"(?:i (?:cannot|can['\u2019]?t|can not|won['\u2019]?t|will not|am (?:not able|unable)"
    r"|must decline)|i['\u2019]?m (?:not able|unable)|as an ai\b)",
    re.IGNORECASE,
)


def without_reasoning(text: str) -> str:
    """Return what an answer says beside its reasoning blocks, without blanks around it.

    A block that is never closed goes to the end of the answer.
    """
    if _CHANNEL.match(text):
        text = _CHANNEL.sub("", text)
    text = _CHANNELS_ONLY.sub("", text)
    text = _END.sub("", _BLOCK.sub("", text))
    return _MARKS.sub("", _OPEN.sub("", text)).strip()


def is_refusal(text: str) -> bool:
    """Tell whether an answer begins as models that decline do."""
    return _REFUSAL.match(without_reasoning(text)) is not None


def find_object(text: str) -> dict[str, Any]:
    """Find the JSON object in an answer; reasoning, code fences and text around it are passed over.

    Raises
    ------
    UnusableError
        There is none, there are several that differ, or a member is given twice.
    """
    content = without_reasoning(text)
    if not content:
        raise UnusableError("nothing beside reasoning" if text.strip() else "empty")
    found: list[dict[str, Any]] = []
    at = 0 if content.startswith(("{", "[")) else content.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(content, at)
        except (json.JSONDecodeError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict) and value not in found:
                found.append(value)
        at = content.find("{", end)
    if not found:
        raise UnusableError("not a JSON object")
    if len(found) > 1:
        raise UnusableError(f"{len(found)} JSON objects that differ")
    return found[0]


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = next(name for name in members if sum(name == each for each, _ in pairs) > 1)
        raise UnusableError(f"{twice!r:.40} twice")
    return members


def _no_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not JSON", "", 0)


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_no_constant)


SYSTEM, USER, ASSISTANT = "system", "user", "assistant"
LENGTH, CONTENT_FILTER = "length", "content_filter"
"""The finish reasons of an answer that was cut: by the most tokens, or by a filter."""

JSON_SCHEMA, JSON_OBJECT, NO_FORMAT = "json-schema", "json-object", "none"
STRUCTURED = (JSON_SCHEMA, JSON_OBJECT, NO_FORMAT)
"""How servers take a schema: as most, as llama.cpp's Python server, or only in words."""

Messages = tuple[tuple[str, str], ...]

Response = tuple[dict[str, Any], dict[str, Any]]
"""A response's choice, which has a message, and its usage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request for one answer.

    Parameters
    ----------
    model
        The model's name at its server.
    messages
        Pairs of a role and a text.
    temperature, seed, max_tokens
        Passed on; None leaves it to the server.
    schema
        The JSON schema that the answer must have, if it must have one.
    structured
        How a server is asked for the schema, one of `STRUCTURED`.
    attempt
        0 the first time; an answer of no use is asked for again by the next number.
    """

    model: str
    messages: Messages
    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    schema: Mapping[str, Any] | None = None
    structured: str = JSON_SCHEMA
    attempt: int = 0

    def again(self, *more: tuple[str, str], by: int = 1) -> "ChatRequest":
        """Return the request that asks once more, with another seed and these messages added."""
        seed = None if self.seed is None else self.seed + by
        return replace(self, messages=(*self.messages, *more), seed=seed, attempt=self.attempt + by)

    def body(self) -> dict[str, Any]:
        """Return the request as the protocol has it."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": role, "content": text} for role, text in self.messages],
        }
        for name in ("temperature", "seed", "max_tokens"):
            if (value := getattr(self, name)) is not None:
                body[name] = value
        if self.schema is not None and self.structured != NO_FORMAT:
            body["response_format"] = _response_format(self.structured, dict(self.schema))
        return body

    def key(self, endpoint: str) -> str:
        """Return the hash by which the answer of a server is kept."""
        content = orjson.dumps([endpoint, self.attempt, self.body()], option=orjson.OPT_SORT_KEYS)
        return blake2b(content, digest_size=16).hexdigest()


def _response_format(structured: str, schema: dict[str, Any]) -> dict[str, Any]:
    if structured == JSON_OBJECT:
        return {"type": "json_object", "schema": schema}
    named = {"name": "answer", "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": named}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer.

    Parameters
    ----------
    text
        What the model answered, reasoning included; empty if it answered nothing.
    refused
        Whether it declined, by the protocol's own mark.
    finish_reason
        Why it ended, as the server says.
    prompt_tokens, completion_tokens
        Tokens sent and received; estimated at four characters a token if the server does not say.
    seconds
        How long the server took.
    """

    text: str
    refused: bool
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float

    @property
    def content(self) -> str:
        """The text without reasoning blocks."""
        return without_reasoning(self.text)

    @property
    def cut_off(self) -> str | None:
        """What cut the answer: ``length`` or ``content_filter``; None if it is complete."""
        return self.finish_reason if self.finish_reason in (LENGTH, CONTENT_FILTER) else None


def read_answer(response: Response, request: ChatRequest, seconds: float) -> Answer:
    """Read a server's response."""
    choice, usage = response
    message = choice["message"]
    answer, refusal = message.get("content"), message.get("refusal")
    sent = sum(len(each) for _, each in request.messages)
    text = answer if isinstance(answer, str) else ""
    if not text and isinstance(refusal, str):
        text = refusal
    return Answer(
        text=text,
        refused=bool(refusal),
        finish_reason=str(choice.get("finish_reason") or ""),
        prompt_tokens=_count(usage, "prompt_tokens", sent),
        completion_tokens=_count(usage, "completion_tokens", len(text)),
        seconds=seconds,
    )


def parse_response(content: bytes) -> Response:
    """Return what a response says.

    Raises
    ------
    ValueError
        The response is not the protocol's; says why.
    """
    try:
        parsed = orjson.loads(content)
        choice, usage = parsed["choices"][0], parsed.get("usage") or {}
    except orjson.JSONDecodeError as error:
        raise ValueError(f"a response that is not JSON: {error}") from error
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("a response without choices[0].message") from error
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise ValueError("a response without choices[0].message")
    return choice, usage if isinstance(usage, dict) else {}


def estimated_tokens(characters: int) -> int:
    """Estimate how many tokens a text of so many characters is."""
    return -(-characters // 4)


def _count(usage: Mapping[str, Any], name: str, characters: int) -> int:
    found = usage.get(name)
    return found if isinstance(found, int) else estimated_tokens(characters)


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with these properties, all required, and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def read_prompts(package: str, name: str) -> tuple[dict[str, Any], str]:
    """Read the prompts in a TOML file of a package; return them and the hash of the file."""
    content = files(package).joinpath(name).read_bytes()
    return tomllib.loads(content.decode()), hash_bytes(content)


OPENAI = "openai:"
"""Before the name of a model at a server with the usual protocol."""

KEY_VARIABLES = ("FASTSCORE_API_KEY", "OPENAI_API_KEY")
URL_VARIABLES = ("FASTSCORE_BASE_URL", "OPENAI_BASE_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How models are asked.

    Parameters
    ----------
    base_url
        The server's address; None for that of `URL_VARIABLES`.
    temperature
        Passed on; None leaves it to the server.
    answer_tokens
        The most tokens of an answer.
    structured
        How a server is asked for JSON of a schema: ``json-schema`` as most take it, ``json-object``
        as llama.cpp's Python server does, ``none`` for the prompt only.
    concurrency
        The most requests at once.
    timeout
        Seconds that a request may take.
    retries
        How often a request is sent again after a failure that may pass.
    max_failures
        The most samples that may fail: a count, or a share as ``"5%"`` or 0.05.
    max_requests, max_tokens, max_cost
        The budget; None for no limit. What is sent again counts, what is kept does not.
    prices
        What a million tokens cost.
    answers
        The file that keeps answers; None for the one in the cache.
    replay
        Whether only answers that are kept are used: no connection is opened.
    """

    base_url: str | None = None
    temperature: float | None = None
    answer_tokens: int = 512
    structured: str = JSON_SCHEMA
    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 6
    max_failures: str | float = DEFAULT_MAX_FAILURES
    max_requests: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    prices: Prices = field(default_factory=Prices)
    answers: Path | None = None
    replay: bool = False

    def resolved(self) -> "ModelOptions":
        """Return the options with the server's address and the answers' file filled in.

        Raises
        ------
        UsageError
            No server is named, or an option cannot be used.
        """
        if self.structured not in STRUCTURED:
            raise UsageError(
                f"Unknown structured {self.structured!r}.",
                did_you_mean(self.structured, STRUCTURED),
            )
        url = self.base_url or _variable(URL_VARIABLES)
        if url is None:
            raise UsageError(
                "No server of chat models is named.",
                f"Name one with --base-url, or set {' or '.join(URL_VARIABLES)}.",
            )
        if self.max_cost is not None and not self.prices.are_given:
            raise UsageError("--max-cost needs prices.", "Give them with --prices.")
        parse_limit(self.max_failures)
        return replace(
            self,
            base_url=url.rstrip("/"),
            answers=self.answers or cache_root() / "llm" / "answers.sqlite",
        )

    def request(
        self,
        model: str,
        *messages: tuple[str, str],
        seed: int,
        schema: dict[str, Any] | None = None,
    ) -> ChatRequest:
        """Return a request for one answer; ``openai:`` before the model's name is left out."""
        return ChatRequest(
            model=model.removeprefix(OPENAI),
            messages=messages,
            temperature=self.temperature,
            seed=seed,
            max_tokens=self.answer_tokens,
            schema=schema,
            structured=self.structured,
        )

    @property
    def limits(self) -> Limits:
        """The budget."""
        return Limits(
            requests=self.max_requests,
            tokens=self.max_tokens,
            cost=self.max_cost,
            prices=self.prices,
        )

    @property
    def failure_limit(self) -> FailureLimit:
        """The most samples that may fail."""
        return parse_limit(self.max_failures)

    @property
    def endpoint(self) -> str:
        """The server's address without what may be secret in it: who, and a query."""
        parts = urlsplit(self.base_url or "")
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))


def api_key() -> str | None:
    """Return the key that the environment holds, or None."""
    return _variable(KEY_VARIABLES)


def _variable(names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)
