"""The suite's words: one TOML file, replaceable as a whole."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.errors import UsageError, nearest
from fastscore.suites.group_travel.terms import CATEGORY_SLOTS, SLOTS

ROOM_TYPES = ("entire", "private", "shared")


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """All words that the suite looks for.

    Parameters
    ----------
    version
        The file's own version; written in every output.
    uninformative
        Words that carry no information in any preference.
    slot_generic
        Words that carry none in the preferences of a slot.
    category_drop
        Folded parts of category names that mean nothing.
    category_alias
        Other names of folded parts.
    categories
        By slot the categories that count in any catalogue.
    inverted
        Phrases that are read as "not".
    room_negators, conflict_negators
        Words that turn the mention after them round.
    rooms
        By room type the patterns of its mention.
    room_names
        By room type what a catalogue's normalised room type contains.
    conflict, theory
        Patterns that name a conflict; that give away a theory.
    """

    version: str
    uninformative: frozenset[str]
    slot_generic: Mapping[str, tuple[str, ...]]
    category_drop: frozenset[str]
    category_alias: Mapping[str, str]
    categories: Mapping[str, tuple[str, ...]]
    inverted: tuple[str, ...]
    room_negators: tuple[str, ...]
    conflict_negators: tuple[str, ...]
    rooms: Mapping[str, tuple[str, ...]]
    room_names: Mapping[str, tuple[str, ...]]
    conflict: tuple[str, ...]
    theory: tuple[str, ...]


def load_lexicon(path: str = "") -> Lexicon:
    """Read a lexicon.

    Parameters
    ----------
    path
        A TOML file in the layout of the built-in one; empty for the built-in one.

    Raises
    ------
    UsageError
        The file cannot be read, is not TOML, lacks a list, or a pattern is none.
    """
    return _parse(path, _read(path))


def _read(path: str) -> bytes:
    if not path:
        return _built_in()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"--lexicon {path}: cannot be read: {error.strerror}.") from error


@cache
def _built_in() -> bytes:
    return files(__package__).joinpath("lexicon.toml").read_bytes()


@cache
def _parse(path: str, content: bytes) -> Lexicon:
    source = path or "the built-in lexicon"
    try:
        table = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{source}: not TOML: {error}.") from error
    reader = _Reader(source)
    top = reader.table(
        table,
        "",
        ("version", "stop", "filler", "slot_generic", "category", "rooms", "conflict", "theory"),
    )
    category = reader.table(top["category"], "category", ("drop", "alias", "known"))
    rooms = reader.table(top["rooms"], "rooms", ("inverted", "negators", "catalogue", *ROOM_TYPES))
    room_names = reader.table(rooms["catalogue"], "rooms.catalogue", ROOM_TYPES)
    conflict = reader.table(top["conflict"], "conflict", ("negators", "patterns"))
    theory = reader.table(top["theory"], "theory", ("patterns",))
    stop, filler = (reader.words(top[name], name) for name in ("stop", "filler"))
    return Lexicon(
        version=reader.word(top["version"], "version"),
        uninformative=frozenset((*stop, *filler)),
        slot_generic=reader.lists(top["slot_generic"], "slot_generic", SLOTS),
        category_drop=frozenset(reader.words(category["drop"], "category.drop")),
        category_alias=reader.pairs(category["alias"], "category.alias"),
        categories=reader.lists(category["known"], "category.known", CATEGORY_SLOTS),
        inverted=reader.words(rooms["inverted"], "rooms.inverted"),
        room_negators=reader.words(rooms["negators"], "rooms.negators"),
        conflict_negators=reader.words(conflict["negators"], "conflict.negators"),
        rooms={name: reader.patterns(rooms[name], f"rooms.{name}") for name in ROOM_TYPES},
        room_names={
            name: reader.words(room_names[name], f"rooms.catalogue.{name}") for name in ROOM_TYPES
        },
        conflict=reader.patterns(conflict["patterns"], "conflict.patterns"),
        theory=reader.patterns(theory["patterns"], "theory.patterns"),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads checked values; every message names the file and the key."""

    source: str

    def fail(self, key: str, found: object, expected: str) -> UsageError:
        return UsageError(
            f"{self.source}: {key or 'the file'} is {found!r:.80}, expected {expected}.",
            "The built-in lexicon.toml shows the layout.",
        )

    def known(self, value: object, key: str, names: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.fail(key, value, "a table")
        prefix = f"{key}." if key else ""
        for name in value:
            if name not in names:
                raise UsageError(
                    f"{self.source}: unknown key {prefix}{name}.", nearest(name, names)
                )
        return value

    def table(self, value: object, key: str, names: tuple[str, ...]) -> dict[str, Any]:
        found = self.known(value, key, names)
        prefix = f"{key}." if key else ""
        for name in names:
            if name not in found:
                raise UsageError(f"{self.source}: {prefix}{name} is missing.")
        return found

    def word(self, value: object, key: str) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.fail(key, value, "a word of at least one character")
        return value

    def words(self, value: object, key: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self.fail(key, value, "a list of words")
        return tuple(self.word(word, key) for word in value)

    def lists(self, value: object, key: str, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        found = self.known(value, key, names)
        return {name: self.words(words, f"{key}.{name}") for name, words in found.items()}

    def pairs(self, value: object, key: str) -> dict[str, str]:
        if not isinstance(value, dict):
            raise self.fail(key, value, "a table of words")
        return {name: self.word(word, f"{key}.{name}") for name, word in value.items()}

    def patterns(self, value: object, key: str) -> tuple[str, ...]:
        found = self.words(value, key)
        for pattern in found:
            try:
                pl.select(pl.lit("").str.contains(pattern))
            except pl.exceptions.ComputeError as error:
                raise self.fail(key, pattern, "a regular expression") from error
        if not found:
            raise self.fail(key, value, "at least one pattern")
        return found
