"""What personas let expect: from a file, or from the log itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from fastscore.errors import UsageError
from fastscore.options import read_option_file
from fastscore.suites.json_values import WHOLE_TEXT

VOCABULARIES = {
    "is_ordering_complete": ("yes", "no"),
    "next_message_menu_exploration_style": ("explores_menu", "does_not_explore_menu"),
    "next_message_ordering_style": ("one_by_one", "all_at_once"),
}
MOODS = ("casual", "frustrated", "confused", "enthusiastic")
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
    """The states that a persona lets expect; None where it says nothing.

    Parameters
    ----------
    complete, exploration, ordering
        The expected values.
    moods
        The expected moods; empty for any.
    """

    complete: str
    exploration: str | None
    ordering: str | None
    moods: tuple[str, ...]


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
    """Read a file of personas.

    Parameters
    ----------
    path
        JSON: ``persona_attributes``, a list of ``full_name`` and
        ``message_generation_attributes``; and ``test_cases``, a list of ``test_case``,
        ``guest_persona`` and ``target_order``. Empty for no file.

    Raises
    ------
    UsageError
        The file cannot be read, is not JSON, or an entry is not as expected; file and entry are
        named.
    """
    if not path:
        return PersonaFile({}, {})
    try:
        content = read_option_file(path)
    except OSError as error:
        raise UsageError(f"--personas {path}: cannot be read: {error.strerror}.") from error
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
        except ValueError as error:
            raise UsageError(f"{path}: {place}.message_generation_attributes{error}.") from error
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


def read_attributes(described: Any) -> Attributes:
    """Read a persona's ``message_generation_attributes``.

    Raises
    ------
    ValueError
        A value outside its vocabulary; the message begins with the key's path.
    """
    if not isinstance(described, dict):
        raise ValueError(f" is {_shown(described)}, expected an object")
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
        raise ValueError(f".{key} is {_shown(value)}, expected {' or '.join(vocabulary)}")
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
