"""Requests to a chat model and its answers, and how chat models are asked."""

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit, urlunsplit

import orjson

from fastscore.errors import UsageError, did_you_mean
from fastscore.files import cache_root, hash_bytes
from fastscore.llm.spending import NO_PRICES, Meter, Prices, UnusableError, parse_prices
from fastscore.logs.inputs.column_map import ColumnMap, requested_map
from fastscore.logs.inputs.files import STDIN
from fastscore.run.request import SETTINGS
from fastscore.settings.options import check_arguments, check_settings, setting, settings_of

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


LENGTH, CONTENT_FILTER = "length", "content_filter"
"""The finish reasons of an answer that was cut: by the most tokens, or by a filter."""

JSON_OBJECT, NO_FORMAT = "json-object", "none"
"""How some servers take a schema: as llama.cpp's Python server, or only in words."""

Messages = tuple[tuple[str, str], ...]

Response = tuple[dict[str, Any], dict[str, Any]]
"""A response's choice, which has a message, and its usage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request for one answer of a JSON schema; what is None is left to the server."""

    model: str
    messages: Messages
    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    schema: Mapping[str, Any] | None = None
    structured: str = "json-schema"
    attempt: int = 0

    def again(self, *more: tuple[str, str], by: int = 1) -> "ChatRequest":
        """Return the request that asks once more, with another seed and these messages added."""
        seed = None if self.seed is None else self.seed + by
        return replace(self, messages=(*self.messages, *more), seed=seed, attempt=self.attempt + by)

    @property
    def estimated_tokens(self) -> int:
        """How many tokens the messages are, at four characters a token."""
        return estimated_tokens(sum(len(text) for _, text in self.messages))

    def body(self) -> dict[str, Any]:
        """Return the request as the protocol has it."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": role, "content": text} for role, text in self.messages],
        }
        for name in ("temperature", "seed", "max_tokens"):
            if (value := getattr(self, name)) is not None:
                body[name] = value
        if self.schema is not None and self.structured == JSON_OBJECT:
            body["response_format"] = {"type": "json_object", "schema": dict(self.schema)}
        elif self.schema is not None and self.structured != NO_FORMAT:
            named = {"name": "answer", "strict": True, "schema": dict(self.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return body

    def key(self, endpoint: str) -> str:
        """Return the hash by which the answer of a server is kept."""
        content = orjson.dumps([endpoint, self.attempt, self.body()], option=orjson.OPT_SORT_KEYS)
        return blake2b(content, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
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
    text = answer if isinstance(answer, str) else ""
    if not text and isinstance(refusal, str):
        text = refusal
    tokens = {
        "prompt_tokens": request.estimated_tokens,
        "completion_tokens": estimated_tokens(len(text)),
    }
    told = {name: usage.get(name) for name in tokens}
    tokens |= {name: n for name, n in told.items() if type(n) is int and n >= 0}
    finish_reason = str(choice.get("finish_reason") or "")
    return Answer(text, bool(refusal), finish_reason, seconds=seconds, **tokens)


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


_asked = partial(setting, heading="How models are asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How models are asked, validated when it is made.

    None leaves it to the server, or sets no limit.
    """

    base_url: str | None = _asked(
        None,
        "The models' server, such as http://127.0.0.1:11434/v1.  [default: "
        "FASTSCORE_BASE_URL or OPENAI_BASE_URL]. The key comes from FASTSCORE_API_KEY or "
        "OPENAI_API_KEY.",
    )
    temperature: float | None = _asked(None, "Passed on.  [default: the server's]", minimum=0)
    answer_tokens: int = _asked(512, "The most tokens of an answer.", minimum=1)
    structured: Literal["json-schema", "json-object", "none"] = _asked(
        "json-schema",
        "How to request JSON: json-object is for llama.cpp's Python server, none "
        "uses the prompt only.",
    )
    concurrency: int = _asked(8, "The most requests at once.", minimum=1)
    timeout: float = _asked(120.0, "Seconds of a request.", minimum=0.001)
    retries: int = _asked(6, "Retries of a request after a failure that may pass.", minimum=0)
    max_failures: float = _asked(
        0.05, "Maximum share of failed samples. Above it the exit code is 4.", minimum=0, maximum=1
    )
    max_requests: int | None = _asked(
        None, "Maximum number of requests. Later the command can continue.", minimum=0
    )
    max_tokens: int | None = _asked(None, "The most tokens, sent and received.", minimum=0)
    prices: Prices = _asked(
        NO_PRICES,
        "Prices of a million tokens sent and of a million received, in USD.",
        metavar="SENT RECEIVED",
    )
    answers: Path | None = _asked(
        None, "The SQLite file that keeps every answer.  [default: in the cache]"
    )
    replay: bool = _asked(False, "Use stored answers only and open no connection.")

    def __post_init__(self) -> None:
        check_settings(self)
        object.__setattr__(self, "prices", parse_prices(self.prices))

    def resolved(self) -> "ModelOptions":
        """Return the options with the server's address and the answers' file filled in."""
        answers = self.answers or cache_root() / "llm" / "answers.sqlite"
        url = self.base_url or first_variable(URL_VARIABLES)
        if url is None:
            raise UsageError(
                "No server of chat models is named.",
                f"Set base_url, {' or '.join(URL_VARIABLES)}, for example to "
                "http://127.0.0.1:11434/v1 (Ollama) or https://api.openai.com/v1.",
            )
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
        return replace(self, base_url=url.rstrip("/"), answers=answers)

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
        return Meter(self.max_requests, self.max_tokens, self.prices)

    @property
    def endpoint(self) -> str:
        """The server's address without what may be secret in it: who, and a query."""
        parts = urlsplit(self.base_url or "")
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))


def first_variable(names: tuple[str, ...]) -> str | None:
    """Return the first of these environment variables that is set, or None."""
    return next((value for name in names if (value := os.environ.get(name))), None)


StrPath = str | os.PathLike[str]


def paths_of(given: StrPath | Sequence[StrPath]) -> tuple[str, ...]:
    """Return one path or several as texts."""
    several = (given,) if isinstance(given, str | os.PathLike) else given
    return tuple(os.fspath(one) for one in several)


def _as_scored(name: str, help: str | None = None) -> Any:
    """Declare a field as that of its name in the request of a run, with another help if given."""
    declared = next(each for each in SETTINGS if each.name == name)
    more = {"heading": "Where chats are"} if help is None else {"help": help, "heading": ""}
    return field(default=declared.default, metadata={**declared.metadata, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingAboutLogs:
    """Which logs, or run, a model is asked about, and where the results go.

    `overwrite` replaces what another model said.
    """

    inputs: tuple[str, ...]
    layout: str | None = _as_scored("layout")
    columns: Mapping[str, str] | None = _as_scored("columns")
    values: Mapping[str, Mapping[str, str]] | None = _as_scored("values")
    alternate: Literal["user", "assistant"] | None = _as_scored("alternate")
    sort_by: str | None = _as_scored("sort_by")
    dialogue: str | None = _as_scored("dialogue")
    without: str | None = _as_scored("without")
    max_rejects: float = _as_scored(
        "max_rejects",
        "Maximum share of rejected lines. Above it nothing is asked, and the exit code is 3.",
    )
    dry_run: bool = setting(False, "Estimate requests and tokens. Ask and write nothing.")
    model: str = setting(MISSING, "The model's name at its server.")
    seed: int = setting(0, "Seed of the requests.", minimum=0)
    output: Path = setting(MISSING, "The folder to write.", flags=("-o", "--output"))
    overwrite: bool = setting(False, "Replace other annotations in -o.")
    models: ModelOptions = field(default_factory=ModelOptions)

    # what follows is made of what is given
    column_map: ColumnMap = field(init=False)

    def __post_init__(self) -> None:
        check_settings(self)
        if STDIN in self.inputs:
            raise UsageError(
                "Standard input is read once, and a model's answers need the logs again.",
                "Write it to a file, and name that.",
            )
        object.__setattr__(self, "column_map", requested_map(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging(AskingAboutLogs):
    """What is judged, against what if in pairs, by which rubric, how often.

    The output names files as they are given, or from the folder `files_from`.
    """

    suite: str | None = setting(
        None,
        "Whose logs they are. Chats of any kind need none.  [default: the run's, or the only "
        "suite that reads them]",
    )
    against: tuple[str, ...] = ()
    rubric: StrPath | None = setting(
        None,
        "A bundled rubric (assistant, finance, pepper) or a TOML file.  [default: pepper for "
        "preference_shift, finance for memory_finance, otherwise assistant]",
    )
    repeats: int = setting(
        1, "Judgements of each dialogue: 1, or a multiple of the number of dimensions.", minimum=1
    )
    files_from: Path | None = None


Asked = TypeVar("Asked", bound=AskingAboutLogs)


def request_of(kind: type[Asked], public: Callable[..., Any], given: Mapping[str, Any]) -> Asked:
    """Make a request of the arguments of a call of a public function, by name."""
    of_models = [each.name for each in fields(ModelOptions)]
    known = [name for name in (*given, *of_models) if name != "models"]
    for name in given["models"]:
        if name not in known:
            unknown = f"{public.__name__}() has no argument {name!r}."
            raise TypeError(f"{unknown} {did_you_mean(name, known)}")
    declared = {each.name for each in settings_of(kind)}
    check_arguments(public, {name: given[name] for name in given if name not in declared})
    named = {each.name: given[each.name] for each in fields(kind) if each.name in given}
    named |= {"inputs": paths_of(given["logs"]), "models": ModelOptions(**given["models"])}
    if "against" in given:
        named["against"] = paths_of(given["against"])
    return kind(**named)
