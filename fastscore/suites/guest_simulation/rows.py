"""Rows of logs and of personas."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import product
from operator import or_
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels import string_changes

from fastscore.errors import InputError, UsageError, listed
from fastscore.settings.options import read_option_file
from fastscore.suites.columns import first_rows, gather_or_null
from fastscore.suites.grouping import factorize, first_of_each
from fastscore.suites.guest_simulation.options import (
    GUEST_NAMES,
    GUEST_ROLES,
    STATE_WORDS,
    GuestSimulation,
)
from fastscore.suites.guest_simulation.schema import SOURCE
from fastscore.suites.identity import IDENTITY, identify, refuse_blank_ids
from fastscore.suites.json_values import WHOLE_TEXT

TEST_CASE_ROW = ("system", "test_case_info")
EXITS = tuple(map("".join, product("eE", "xX", "iI", "tT")))

_LABELS = ["file", "line", "conversation_id", "experiment_level", "test_case", "model", IDENTITY]
_FOLDER_LEVEL = r"(?i)^(?:.*[/\\])?exp([0-9]{1,9})[/\\]"
_SUFFIXES = r"(?i)\.(?:csv|json|jsonl|ndjson|parquet)(?:\.(?:gz|zst))?$"
_TEST_CASE = r"_log_(.+_test_case_number_[0-9]+)$"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a log, those of each conversation together."""

    columns: pl.DataFrame  # the log's columns
    place: Indices  # the place of each row in the log, int64 (rows,)
    conversation: Indices  # whose it is, int64 (rows,), ascending
    # whether its role is the guest's, and whether its role or name is, bool (rows,)
    has_guest_role: Mask
    is_guest: Mask
    # whether it is the word that ends the conversation, or the test case, bool (rows,)
    is_exit: Mask
    is_case: Mask

    def __len__(self) -> int:
        return len(self.place)

    def __getitem__(self, name: str) -> pl.Series:
        """Return a column of the log."""
        return self.columns[name]

    def where(self, kept: Mask, names: Sequence[str]) -> "Rows":
        """Return some of the rows, with the columns of these names."""
        at = np.flatnonzero(kept)
        return Rows(
            self.columns[list(names)][at],
            self.place[at],
            self.conversation[at],
            self.has_guest_role[at],
            self.is_guest[at],
            self.is_exit[at],
            self.is_case[at],
        )


def by_conversation(raw: pl.DataFrame, options: GuestSimulation) -> tuple[Rows, pl.DataFrame]:
    """Give conversations numbers, and put the rows of each together.

    A conversation is the rows of one file, id and level.
    """
    raw = identify(raw, SOURCE)
    begins = np.flatnonzero(_changes(raw[IDENTITY]))
    heads = raw[_LABELS][begins]
    of_head, _ = factorize(heads[IDENTITY])
    firsts = first_of_each(of_head)
    refuse_blank_ids(heads[firsts], "conversation_id")
    conversation = np.repeat(of_head, np.diff(np.append(begins, raw.height)))
    place = np.arange(raw.height)
    if len(firsts) != len(begins):
        place = np.argsort(conversation, kind="stable")
        raw, conversation = raw[place], conversation[place]
    of_any_row = [_first_values(heads[name], of_head) for name in ("test_case", "model")]
    labels = _labels(heads[firsts].with_columns(of_any_row), options)
    rows = _with_speakers(raw, place, conversation)
    _refuse_several_models(rows)
    return rows, labels


def _refuse_several_models(rows: Rows) -> None:
    """Refuse a conversation in which one side has several models: these are several."""
    columns = rows.columns
    if columns["model"].drop_nulls().n_unique() < 2:
        return
    sides = columns.select("file", "line", "conversation_id", "model").with_columns(
        conversation=rows.conversation, is_guest=rows.is_guest
    )
    # the guest and those who answer may each have a model of their own
    several = pl.col("model").n_unique().over("conversation", "is_guest") > 1
    found = sides.drop_nulls("model").filter(several)
    if found.is_empty():
        return
    side = found.filter(*(pl.col(key) == found[key][0] for key in ("conversation", "is_guest")))
    file, line, name = side.filter(pl.col("model") != side["model"][0]).row(0)[:3]
    raise InputError(
        f"{file}:{line}: model: several in the conversation{f' {name}' if name else ''}: "
        f"{listed(side['model'].unique(maintain_order=True).to_list(), 3)}.",
        "Name the key of the model (`--column model=KEY`) if each is a conversation of its own, or "
        "leave the key out.",
    )


def _with_speakers(columns: pl.DataFrame, place: Indices, conversation: Indices) -> Rows:
    role, name = columns["role"], columns["name"]
    has_guest_role = _true(reduce(or_, (role == guest for guest in GUEST_ROLES)))
    is_guest = has_guest_role | _true(name.str.starts_with(GUEST_NAMES))
    is_exit = _true(columns["content"].is_in(EXITS))
    is_case = _true((role == TEST_CASE_ROW[0]) & (name == TEST_CASE_ROW[1]))
    return Rows(columns, place, conversation, has_guest_role, is_guest, is_exit, is_case)


def _true(answers: pl.Series) -> Mask:
    """Return where an answer is yes, and not null."""
    true: Mask = (answers.fill_null(False) if answers.null_count() else answers).to_numpy()
    return true


def _first_values(values: pl.Series, numbers: Indices) -> pl.Series:
    """Return the first value of each number that is not null; numbers are by first appearance."""
    given = np.flatnonzero(values.is_not_null().to_numpy())
    return gather_or_null(values, first_rows(numbers, given, int(numbers.max(initial=-1)) + 1))


def _changes(column: pl.Series) -> Mask:
    """Mark the rows that differ from the one before, the first too."""
    changed: Mask = string_changes(column.fill_null("") if column.null_count() else column)
    if column.null_count():
        missing = column.is_null().to_numpy()
        changed[1:] |= missing[1:] != missing[:-1]
    changed[:1] = True
    return changed


def _labels(heads: pl.DataFrame, options: GuestSimulation) -> pl.DataFrame:
    """Give conversations their names, levels and test cases."""
    of_file, files = factorize(heads["file"])
    of_files = files.to_frame("file").select(
        pl.col("file").str.extract(r"([^/\\]*)$").str.replace(_SUFFIXES, "").alias("stem"),
        pl.col("file").str.extract(_FOLDER_LEVEL).cast(pl.Int64).alias("folder"),
    )
    # several of a file without an id are named by their places
    several = pl.len().over("file", "conversation_id", "experiment_level") > 1
    places = heads.select(pl.when(several).then(IDENTITY)).to_series()
    names = _or_else(_or_else(heads["conversation_id"], places), of_files["stem"][of_file])
    level = _or_else(heads["experiment_level"], of_files["folder"][of_file])
    if level.null_count() and options.level:
        level = level.fill_null(options.level)
    # a name recurs at every level
    of_name, distinct_names = factorize(names)
    in_name = distinct_names.str.extract(_TEST_CASE)[of_name]
    return pl.DataFrame(
        {
            "file": heads["file"],
            "line": heads["line"],
            "dialogue": heads[IDENTITY],
            "conversation_id": names,
            "experiment_level": level,
            "test_case": _or_else(_or_else(heads["test_case"], in_name), names),
            "model": heads["model"],
        }
    )


def _or_else(values: pl.Series, others: pl.Series) -> pl.Series:
    """Return values, and others where they are null."""
    if not values.null_count():
        return values
    return values.zip_with(values.is_not_null(), others)


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


@dataclass(frozen=True, slots=True)
class Attributes:
    """The states that a persona lets expect; None where it says nothing."""

    # the expected values
    complete: str
    exploration: str | None
    ordering: str | None
    moods: tuple[str, ...]  # the expected moods; empty for any


@dataclass(frozen=True, slots=True)
class TestCase:
    """A persona and a target order, as JSON texts; None where the file lacks one."""

    guest_persona: str | None
    target_order: str | None


@dataclass(frozen=True, slots=True)
class PersonaFile:
    """Attributes by full name, and test cases by id."""

    attributes: Mapping[str, Attributes]
    test_cases: Mapping[str, TestCase]


def load_personas(path: str) -> PersonaFile:
    """Read a file of personas."""
    if not path:
        return PersonaFile({}, {})
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
    cases: dict[str, TestCase] = {}
    for place, entry in _entries(path, table, "test_cases"):
        name = _text(path, entry, place, "test_case")
        if name in cases:
            raise _error(path, f"{place}.test_case", name, "an id of its own")
        persona, target = entry.get("guest_persona"), entry.get("target_order")
        if not isinstance(persona, dict | None):
            raise _error(path, f"{place}.guest_persona", persona, "an object")
        if not isinstance(target, dict | None):
            raise _error(path, f"{place}.target_order", target, "an object")
        for key in TARGET_KEYS:
            if not isinstance((target or {}).get(key), list | None):
                raise _error(path, f"{place}.target_order.{key}", (target or {})[key], "a list")
        cases[name] = TestCase(
            _json(path, f"{place}.guest_persona", persona),
            _json(path, f"{place}.target_order", target),
        )
    return PersonaFile(attributes, cases)


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
    if not isinstance(moods, list):
        moods = [moods]
    return Attributes(
        complete=values["is_ordering_complete"] or "no",
        exploration=values["next_message_menu_exploration_style"],
        ordering=values["next_message_ordering_style"],
        moods=tuple(mood for mood in (_of(mood, mood_key, MOODS) for mood in moods) if mood),
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
