"""Rows of logs and of personas."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import polars as pl
from polars import col as C

from fastscore.errors import InputError, UsageError, listed
from fastscore.settings.options import read_option_file
from fastscore.suites.guest_simulation.options import (
    GUEST_NAMES,
    GUEST_ROLES,
    STATE_WORDS,
    GuestSimulation,
)
from fastscore.suites.guest_simulation.schema import SOURCE
from fastscore.suites.identity import IDENTITY, identify, refuse_blank_ids
from fastscore.suites.json_values import WHOLE_TEXT

EXITS = tuple(map("".join, product("eE", "xX", "iI", "tT")))

_FOLDER_LEVEL = r"(?i)^(?:.*[/\\])?exp([0-9]{1,9})[/\\]"
_SUFFIXES = r"(?i)\.(?:csv|json|jsonl|ndjson|parquet)(?:\.(?:gz|zst))?$"
_TEST_CASE = r"_log_(.+_test_case_number_[0-9]+)$"

_HAS_GUEST_ROLE = C("role").is_in(GUEST_ROLES)
_SPEAKERS = {
    "has_guest_role": _HAS_GUEST_ROLE,
    "is_guest": _HAS_GUEST_ROLE.fill_null(False) | C("name").str.starts_with(GUEST_NAMES),
    "is_exit": C("content").is_in(EXITS),
    "is_case": (C("role") == "system") & (C("name") == "test_case_info"),
}
"""Whose row it is, and whether it is the word that ends a conversation, or a test case."""

MESSAGE_INDEX = (C("is_case").not_().cast(pl.Int64).cum_sum() - C("is_case").not_()).over(
    "conversation"
)
"""The place, from 0, of a message in its conversation. The row of a test case is none."""


def by_conversation(
    raw: pl.DataFrame, options: GuestSimulation
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give conversations, the rows of one file, id and level, numbers by their first rows.

    Returned are the log's rows, those of a conversation together, each with its ``place`` in the
    log, its ``conversation`` and `_SPEAKERS`; and a row a conversation with its labels.
    """
    begins = C(IDENTITY).ne_missing(C(IDENTITY).shift())
    rows = identify(raw, SOURCE).with_columns(
        *(is_so.fill_null(False).alias(name) for name, is_so in _SPEAKERS.items()),
        place=pl.int_range(pl.len()),
        begins=begins,
        run=begins.cum_sum(),
    )
    runs = rows.filter("begins")
    heads = runs.group_by(IDENTITY, maintain_order=True).agg(
        C("file", "line", "conversation_id", "experiment_level").first(),
        C("test_case", "model").first(ignore_nulls=True),
        "run",
    )
    refuse_blank_ids(heads, "conversation_id")
    numbers = heads.select("run", conversation=pl.int_range(pl.len())).explode("run")
    rows = rows.join(numbers, on="run", maintain_order="left").drop("begins", "run")
    if len(runs) != len(heads):
        rows = rows.sort("conversation", maintain_order=True)
    _refuse_several_models(rows)
    return rows, _labels(heads, options)


def _refuse_several_models(rows: pl.DataFrame) -> None:
    """Refuse a conversation in which one side has several models: these are several."""
    if rows["model"].drop_nulls().n_unique() < 2:
        return
    # the guest and those who answer may each have a model of their own
    side = ["conversation", "is_guest"]
    several = rows.drop_nulls("model").filter(C("model").n_unique().over(side) > 1)
    if several.is_empty():
        return
    of_side = several.join(several.head(1), on=side, how="semi", maintain_order="left")
    file, line, name = (
        of_side.filter(C("model") != C("model").first())
        .select("file", "line", "conversation_id")
        .row(0)
    )
    raise InputError(
        f"{file}:{line}: model: several in the conversation{f' {name}' if name else ''}: "
        f"{listed(of_side['model'].unique(maintain_order=True).to_list(), 3)}.",
        "Name the key of the model (`--column model=KEY`) if each is a conversation of its own, or "
        "leave the key out.",
    )


def _labels(heads: pl.DataFrame, options: GuestSimulation) -> pl.DataFrame:
    """Give conversations their names, levels and test cases."""
    files = heads.select(C("file").unique()).with_columns(
        stem=C("file").str.extract(r"([^/\\]*)$").str.replace(_SUFFIXES, ""),
        folder=C("file").str.extract(_FOLDER_LEVEL).cast(pl.Int64),
    )
    # several of a file without an id are named by their places
    several = pl.len().over("file", "conversation_id", "experiment_level") > 1
    return (
        heads.join(files, on="file", maintain_order="left")
        .with_columns(
            conversation_id=pl.coalesce("conversation_id", pl.when(several).then(IDENTITY), "stem"),
            experiment_level=pl.coalesce(
                "experiment_level", "folder", pl.lit(options.level or None, pl.Int64)
            ),
        )
        .select(
            "file",
            "line",
            C(IDENTITY).alias("dialogue"),
            "conversation_id",
            "experiment_level",
            pl.coalesce(
                "test_case", C("conversation_id").str.extract(_TEST_CASE), "conversation_id"
            ),
            "model",
        )
    )


VOCABULARIES = {
    "is_ordering_complete": STATE_WORDS["is_ordering_complete"],
    "next_message_menu_exploration_style": STATE_WORDS["menu_exploration_style"],
    "next_message_ordering_style": STATE_WORDS["ordering_style"],
}
MOODS = STATE_WORDS["mood_tone"]
_MOOD_KEYS = ("next_message_mood_tones", "next_message_mood_tone")
TARGET_KEYS = ("items", "target_order", "order_items")
"""Where a target order has its list of items; the first that is present counts."""

FALLBACKS = (
    ("busy", ("busy professional", "efficient")),
    ("curious", ("curious", "explorer", "adventurous")),
    ("indecisive", ("indecisive", "uncertain")),
    ("group", ("family", "group")),
)
"""Kinds of personas by what their description contains; the first that fits counts."""


CASE_PARTS = ("guest_persona", "target_order")
"""The parts of a test case."""


class Attributes(NamedTuple):
    """The states that a persona lets expect; None where it says nothing, or expects any mood."""

    complete: str
    exploration: str | None
    ordering: str | None
    moods: list[str] | None


@dataclass(frozen=True, slots=True)
class PersonaFile:
    """Attributes by full name; and each ``test_case``, its `CASE_PARTS` as JSON texts."""

    attributes: Mapping[str, Attributes]
    test_cases: pl.DataFrame


def load_personas(path: str) -> PersonaFile:
    """Read a file of personas."""
    if not path:
        return PersonaFile({}, _case_frame({}))
    try:
        content = read_option_file(path)
    except OSError as error:
        raise UsageError(f"personas {path}: cannot be read: {error.strerror}.") from error
    return _parse(path, content)


@cache
def _parse(path: str, content: bytes) -> PersonaFile:
    try:
        table = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON: {error}.") from error
    if not isinstance(table, dict) or not table.keys() & {"persona_attributes", "test_cases"}:
        raise UsageError(
            f"{path}: the file is {_shown(table)}, expected an object with persona_attributes or "
            "test_cases."
        )
    attributes: dict[str, Attributes] = {}
    for place, entry in _entries(path, table, "persona_attributes"):
        name = _text(path, entry, place, "full_name")
        if name in attributes:
            raise _error(path, f"{place}.full_name", name, "a name of its own")
        described = entry.get("message_generation_attributes")
        try:
            attributes[name] = read_attributes(described)
        except AttributeFault as fault:
            raise UsageError(
                f"{path}: {place}.message_generation_attributes{fault.path} is {fault.found}, "
                f"expected {fault.expected}."
            ) from fault
    cases: dict[str, tuple[str | None, ...]] = {}
    for place, entry in _entries(path, table, "test_cases"):
        name = _text(path, entry, place, "test_case")
        if name in cases:
            raise _error(path, f"{place}.test_case", name, "an id of its own")
        for part in CASE_PARTS:
            if not isinstance(entry.get(part), dict | None):
                raise _error(path, f"{place}.{part}", entry[part], "an object")
        target = entry.get("target_order") or {}
        for key in TARGET_KEYS:
            if not isinstance(target.get(key), list | None):
                raise _error(path, f"{place}.target_order.{key}", target[key], "a list")
        cases[name] = tuple(_json(path, f"{place}.{part}", entry.get(part)) for part in CASE_PARTS)
    return PersonaFile(attributes, _case_frame(cases))


def _case_frame(cases: Mapping[str, tuple[str | None, ...]]) -> pl.DataFrame:
    schema = dict.fromkeys(("test_case", *CASE_PARTS), pl.String)
    return pl.DataFrame([(name, *parts) for name, parts in cases.items()], schema, orient="row")


class AttributeFault(Exception):
    """A value of a persona's attributes that is outside its vocabulary.

    The path of its key is after a full stop, and empty for the attributes themselves.
    """

    def __init__(self, path: str, found: str, expected: str) -> None:
        super().__init__(path, found, expected)
        self.path, self.found, self.expected = path, found, expected


def read_attributes(described: Any) -> Attributes:
    """Read a persona's ``message_generation_attributes``."""
    if not isinstance(described, dict):
        raise AttributeFault("", _shown(described), "an object")
    values = {
        key: _of(described.get(key), key, vocabulary) for key, vocabulary in VOCABULARIES.items()
    }
    mood_key = next((key for key in _MOOD_KEYS if described.get(key) is not None), _MOOD_KEYS[0])
    moods = described.get(mood_key) or []
    known = [_of(mood, mood_key, MOODS) for mood in (moods if isinstance(moods, list) else [moods])]
    return Attributes(
        complete=values["is_ordering_complete"] or "no",
        exploration=values["next_message_menu_exploration_style"],
        ordering=values["next_message_ordering_style"],
        moods=[mood for mood in known if mood] or None,
    )


def fallback_kind(description: str) -> str:
    """Name the kind of persona that a description is of; ``other`` where nothing fits."""
    text = description.lower()
    return next((kind for kind, words in FALLBACKS if any(word in text for word in words)), "other")


def _of(value: Any, key: str, vocabulary: tuple[str, ...]) -> str | None:
    if value is None or value == "":
        return None
    known = value.strip().lower() if isinstance(value, str) else value
    if known not in vocabulary:
        raise AttributeFault(f".{key}", _shown(value), " or ".join(vocabulary))
    return str(known)


def _entries(path: str, table: Mapping[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    entries = table.get(key, [])
    if not isinstance(entries, list):
        raise _error(path, key, entries, "a list of objects")
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise _error(path, f"{key}[{number}]", entry, "an object")
    return [(f"{key}[{number}]", entry) for number, entry in enumerate(entries)]


def _text(path: str, entry: Mapping[str, Any], place: str, key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise _error(path, f"{place}.{key}", value, "a text that is not empty")
    if not is_whole(value):
        raise _error(path, f"{place}.{key}", value, WHOLE_TEXT)
    return value


def is_whole(text: str) -> bool:
    """Tell whether a text can be written: it has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _json(path: str, key: str, value: Any) -> str | None:
    if value is None:
        return None
    text = json.dumps(value, ensure_ascii=False)
    if not is_whole(text):
        raise _error(path, key, value, WHOLE_TEXT)
    return text


def _shown(value: Any) -> str:
    return f"{value!r:.80}"


def _error(path: str, key: str, found: Any, expected: str) -> UsageError:
    return UsageError(f"{path}: {key} is {_shown(found)}, expected {expected}.")
