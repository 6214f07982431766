"""Requests to a chat model and its answers, and how chat models are asked."""

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import orjson

from fastscore.errors import UsageError, did_you_mean
from fastscore.files import cache_root, hash_bytes
from fastscore.llm.spending import (
    DEFAULT_MAX_FAILURES,
    FailureLimit,
    Meter,
    Prices,
    UnusableError,
    parse_limit,
)
from fastscore.settings.options import check_arguments

_MARK = re.compile(
    r"<(?P<close>/?)(?P<tag>think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis"
    r"|seed:think)>|\[(?P<end>/?)THINK\]",
    re.IGNORECASE,
)
_LEADING = re.compile(rf"\s*(?:{_MARK.pattern})", re.IGNORECASE)
_CHANNEL, _FINAL = ("<|start|>", "<|channel|>"), "<|channel|>final<|message|>"
_CHANNELS_ONLY = re.compile(r"\s*<\|channel\|>(?:analysis|commentary)\b")
_LAST_MARK = re.compile(r"<\|(?:end|return|im_end|eot_id)\|>$")

_REFUSAL = re.compile(
    r"(?:i['\u2019]?m (?:very |so )?sorry|sorry|i apologi[sz]e|unfortunately)?[,.;:! ]*(?:but )?"
    r"(?:i (?:cannot|can['\u2019]?t|can not|won['\u2019]?t|will not|am (?:not able to|unable to)"
    r"|must decline)|i['\u2019]?m (?:not able to|unable to)|as an ai\b)"
    # what a user or a recommender says of a wish or a list
    r"(?!\s+(?:find|see|locate|think|decide|wait|recall|remember|believe|stand|get|stop|seem|say)\b)",
    re.IGNORECASE,
)


def without_reasoning(text: str) -> str:
    """Return what an answer says beside its reasoning blocks, without blanks around it.

    A block that is never closed goes to the end, one that is only closed begins with the answer:
    many templates open it in the prompt. In one pass: answers are as long as a server likes.
    """
    text = text.rpartition(_FINAL)[2]
    if _CHANNELS_ONLY.match(text):
        return ""
    kept: list[str] = []
    at, opened = 0, None
    for mark in _MARK.finditer(text):
        tag, closes = _tag(mark)
        if opened is None and closes:
            kept, at = [], mark.end()
        elif opened is None:
            kept.append(text[at : mark.start()])
            opened = tag
        elif closes and tag == opened:
            at, opened = mark.end(), None
    if opened is None:
        kept.append(text[at:])
    return _LAST_MARK.sub("", "".join(kept).rstrip()).strip()


def _tag(mark: re.Match[str]) -> tuple[str, bool]:
    """Return the name of a mark of reasoning, and whether it closes a block."""
    return (mark["tag"] or "").lower(), bool(mark["close"] or mark["end"])


def _after_reasoning(text: str) -> str:
    """Return an answer without the reasoning that it begins with.

    Marks further on may be words of the dialogue that the answer quotes: they hide nothing.
    """
    if text.lstrip().startswith(_CHANNEL):
        return text.partition(_FINAL)[2] if _FINAL in text else without_reasoning(text)
    at = 0
    while (mark := _LEADING.match(text, at)) and not _tag(mark)[1]:
        tag = _tag(mark)[0]
        ends = (one.end() for one in _MARK.finditer(text, mark.end()) if _tag(one) == (tag, True))
        at = next(ends, len(text))
    return text[at:].strip()


def is_refusal(text: str) -> bool:
    """Tell whether an answer begins as models that decline do."""
    return _REFUSAL.match(without_reasoning(text)) is not None


def find_object(text: str) -> dict[str, Any]:
    """Find the JSON object in an answer; reasoning before it, fences and text are passed over."""
    content = _after_reasoning(text)
    if not content:
        raise UnusableError("nothing beside reasoning" if text.strip() else "empty")
    found: dict[str, Any] | None = None
    begin = _LIST.match(content) or _OBJECT.search(content)
    faults = 0
    while begin is not None and faults < _MOST_FAULTS:
        try:
            value, end = _DECODER.raw_decode(content, begin.start())
        except (ValueError, RecursionError):  # of a number of 5,000 digits, a plain ValueError
            end, faults = begin.start() + 1, faults + 1
        else:
            if isinstance(value, dict):
                if found is not None and value != found:
                    raise UnusableError("2 JSON objects that differ")
                found = value
        begin = _OBJECT.search(content, end)
    if found is None or faults == _MOST_FAULTS:
        raise UnusableError("not a JSON object")
    try:
        orjson.dumps(found)
    except orjson.JSONEncodeError as error:
        raise UnusableError(f"an object that cannot be kept: {error}") from error
    return found


def check_members(found: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse an answer that has not exactly these members."""
    known = dict.fromkeys(names)
    for name in known:
        if name not in found:
            raise UnusableError(f"without {name!r}")
    for name in found:
        if name not in known:
            raise UnusableError(f"with {name!r:.40}, which nobody asked for")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise UnusableError(f"{twice!r:.40} twice")
    return members


def _no_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not JSON", "", 0)


_OBJECT, _LIST = re.compile(r"\{\s*[\"}]"), re.compile(r"\[")
_MOST_FAULTS = 100
"""The most beginnings of objects that are none: each is read up to its fault."""

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
    """A request for one answer; what is None is left to the server.

    The answer has the JSON schema, which servers are asked for as one of `STRUCTURED`. An answer of
    no use is asked for again by the next attempt.
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
    """An answer, reasoning included; `refused` is the protocol's own mark.

    Tokens are estimated at four characters a token if the server does not say.
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
    def declined(self) -> bool:
        """Whether the model declined, by the protocol's mark or in its first words."""
        return self.refused or is_refusal(self.text)

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
    """Return what a response says."""
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
    return found if type(found) is int and found >= 0 else estimated_tokens(characters)


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
    """How models are asked, as the options of commands have it.

    None leaves it to the server, or sets no limit. Other addresses are those of `URL_VARIABLES`,
    the answers' file one in the cache. `max_failures` is a count, or a share as ``"5%"`` or 0.05.
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
        """Return the options with the server's address and the answers' file filled in."""
        if self.structured not in STRUCTURED:
            raise UsageError(
                f"Unknown structured {self.structured!r}.",
                did_you_mean(self.structured, STRUCTURED),
            )
        url = self.base_url or _variable(URL_VARIABLES)
        if url is None:
            raise UsageError(
                "No server of chat models is named.",
                f"Name one in base_url, or set {' or '.join(URL_VARIABLES)}.",
            )
        if self.max_cost is not None and not self.prices.are_given:
            raise UsageError(
                "max_cost needs prices.",
                "Name in prices what a million tokens sent and received cost: 0.15 0.60.",
            )
        parse_limit(self.max_failures)
        _check_url(url)
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

    def meter(self) -> Meter:
        """Return what counts requests and holds them to the budget."""
        return Meter(self.max_requests, self.max_tokens, self.max_cost, self.prices)

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


def _check_url(url: str) -> None:
    """Refuse an address that no request can be sent to."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_address = None
    if not is_address or any(letter.isspace() or not letter.isprintable() for letter in url):
        raise UsageError(
            f"base_url is {url!r:.100}, expected the address of a server.",
            "Give it as http://HOST:PORT/v1 or https://HOST/v1.",
        )


def api_key() -> str | None:
    """Return the key that the environment holds, or None."""
    return _variable(KEY_VARIABLES)


def _variable(names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)


StrPath = str | os.PathLike[str]


def paths_of(given: StrPath | Sequence[StrPath]) -> tuple[str, ...]:
    """Return one path or several as texts."""
    several = (given,) if isinstance(given, str | os.PathLike) else given
    return tuple(os.fspath(one) for one in several)


def model_options(given: Mapping[str, Any]) -> ModelOptions:
    """Make options of keyword arguments; prices are of a million tokens sent, and received."""
    known = [each.name for each in fields(ModelOptions)]
    for name in given:
        if name not in known:
            raise UsageError(f"Unknown argument {name!r}.", did_you_mean(name, known))
    values = dict(given)
    check_arguments(ModelOptions, values)
    if not isinstance(prices := values.pop("prices", None) or (), Prices):
        if not isinstance(prices, Sequence) or not all(type(one) in (int, float) for one in prices):
            raise UsageError(
                f"prices is {prices!r:.80}, expected two numbers.",
                "They are of a million tokens sent, and received: (0.15, 0.60).",
            )
        prices = Prices(*prices)
    if values.get("answers") is not None:
        values["answers"] = Path(values["answers"])
    return ModelOptions(prices=prices, **values)
