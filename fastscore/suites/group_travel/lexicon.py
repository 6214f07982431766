"""The suite's words: one TOML file, replaceable as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from fastscore.suites.group_travel.terms import CATEGORY_SLOTS, ROOM_TYPES, SLOTS
from fastscore.suites.lexicon_tables import lexicon_content, parse_lexicon


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
    return _parse(path, lexicon_content(path, __package__))


_TOP = ("version", "stop", "filler", "slot_generic", "category", "rooms", "conflict", "theory")
_ROOMS = ("inverted", "negators", "catalogue", *ROOM_TYPES)


@cache
def _parse(path: str, content: bytes) -> Lexicon:
    top = parse_lexicon(path, content, _TOP)
    category = top.table("category", ("drop", "alias", "known"))
    rooms = top.table("rooms", _ROOMS)
    room_names = rooms.table("catalogue", ROOM_TYPES)
    conflict = top.table("conflict", ("negators", "patterns"))
    theory = top.table("theory", ("patterns",))
    return Lexicon(
        version=top.word("version"),
        uninformative=frozenset((*top.words("stop"), *top.words("filler"))),
        slot_generic=top.words_by_name("slot_generic", SLOTS),
        category_drop=frozenset(category.words("drop")),
        category_alias=category.word_by_name("alias"),
        categories=category.words_by_name("known", CATEGORY_SLOTS),
        inverted=rooms.words("inverted"),
        room_negators=rooms.words("negators"),
        conflict_negators=conflict.words("negators"),
        rooms={name: rooms.patterns(name) for name in ROOM_TYPES},
        room_names={name: room_names.words(name) for name in ROOM_TYPES},
        conflict=conflict.patterns("patterns"),
        theory=theory.patterns("patterns"),
    )
