"""Simulated users, and retrieval from a compiled catalogue.

A stream is Philox keyed by seed, session and purpose, so that what one session draws depends on
no other session, worker or earlier run, and what a user draws on nothing that a system says.

The rules of retrieval are the public system's: values of a field are alternatives, fields narrow
each other down unless nothing is left, a field that matches nothing is ignored. Where that system
shuffles a set of strings in the order of their hashes, items are first in the catalogue's order.

The built-in file ``user.toml`` has the public simulator's rates; its phrases are this project's.
All that a user decides is planned before the first word is spoken, from the catalogue, the policy
and the session's own stream. What a system says can at most choose the title that a question about
details names, by a number that was drawn beforehand: any two systems meet equal users.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from fastscore.files import hash_bytes
from fastscore.settings.options import TomlTable, parse_toml, read_named_file, read_option_file
from fastscore.suites.preference_shift.catalogue import (
    NAME,
    PLOT,
    PLOT_STOP_WORDS,
    PLOT_WORD,
    load_catalogue,
    normalise,
    plot_keywords,
    read_records,
)
from fastscore.suites.preference_shift.concepts import is_word_character

Drawn = TypeVar("Drawn")

USER, AGENT, PHRASING = 0, 1, 2
"""The purposes that draw."""

_PURPOSES = 4
_BLOCK = 256


class Draws:
    """A stream of uniform numbers in [0, 1) of a session, and what is chosen by them.

    The purpose is `USER`, `AGENT` or `PHRASING`.
    """

    __slots__ = ("_generator", "_left")

    def __init__(self, seed: int, session: int, purpose: int) -> None:
        key = np.array([seed, session * _PURPOSES + purpose], np.uint64)
        self._generator = np.random.Generator(np.random.Philox(key=key))
        self._left: list[float] = []

    def uniform(self) -> float:
        """Return the next number."""
        if not self._left:
            self._left = self._generator.random(_BLOCK)[::-1].tolist()
        return self._left.pop()

    def happens(self, rate: float) -> bool:
        """Return whether an event of this probability happens."""
        return self.uniform() < rate

    def choose(self, options: Sequence[Drawn]) -> Drawn:
        """Return one of the options, each as likely."""
        return options[int(self.uniform() * len(options))]

    def sample(self, options: Sequence[Drawn], most: int) -> list[Drawn]:
        """Return the first of the options after a shuffle, at most so many."""
        count = len(options)
        moved: dict[int, Drawn] = {}
        chosen = []
        for place in range(min(most, count)):
            other = place + int(self.uniform() * (count - place))
            chosen.append(moved.get(other, options[other]))
            moved[other] = moved.get(place, options[place])
        return chosen


GENRE = "genre"
ATTRIBUTES = (NAME, GENRE, "actor", "director", "language", "writer", "year")
FALLBACK = "inception"
"""The item that the public system offers where nothing fits; here only if the catalogue has it."""

MOST_RECOMMENDED = 50

Constraints = Mapping[str, str | Sequence[str]]
Rows = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """An item of the catalogue: its name or key, and its values by field, each once."""

    title: str
    plot: str
    values: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Retrieval:
    """A catalogue that can be asked.

    `surfaces` are values by field as first written, in order of first appearance; `index` finds
    the rows of items by field and normalised value.
    """

    digest: str
    items: tuple[Item, ...]
    surfaces: Mapping[str, tuple[str, ...]]
    index: Mapping[str, Mapping[str, Rows]]
    _automaton: Any
    _terms: tuple[Mapping[str, int], ...]
    """By pattern of the automaton: the value's place in each field that has it."""
    _titles: Any

    def available_genres(self) -> tuple[str, ...]:
        """Return the genres of at least 3 entries, repeats counted, and over 2 characters."""
        entries = self.index.get(GENRE, {}).items()
        return tuple(genre for genre, rows in entries if len(rows) >= 3 and len(genre) > 2)

    def find_values(self, text: str) -> tuple[str | None, dict[str, str]]:
        """Return the genre that sorts first, and by field the catalogue's first value, in a text.

        Only whole words match.
        """
        lowered = text.lower()
        genres: list[str] = []
        places: dict[str, list[int]] = {}
        for pattern, start, end in self._automaton.find_matches_as_indexes(
            lowered, overlapping=True
        ):
            if _stands_alone(lowered, start, end):
                if GENRE in self._terms[pattern]:
                    genres.append(lowered[start:end])
                for name, place in self._terms[pattern].items():
                    places.setdefault(name, []).append(place)
        values = {name: self.surfaces[name][min(found)] for name, found in places.items()}
        return min(genres, default=None), values

    def find_plot_keywords(self, text: str) -> list[str]:
        """Return the first different words of a text that are keywords of plots."""
        known = self.index.get(PLOT, {})
        words = PLOT_WORD.findall(text.lower())
        found = (word for word in words if word in known and word not in PLOT_STOP_WORDS)
        return list(dict.fromkeys(found))[:PLOT_LIMIT]

    def find_titles(self, text: str) -> list[str]:
        """Return the different titles that a text names, written as in the catalogue.

        Only complete words match, and the longest title if several begin at one place.
        """
        found = self._titles.find_matches_as_indexes(text)
        titles = (text[start:end] for _, start, end in found if _stands_alone(text, start, end))
        return list(dict.fromkeys(titles))

    def lookup(self, name: str, value: object) -> frozenset[int]:
        """Return the rows that have a value, or else those that have one that contains it."""
        of_field = self.index.get(name, {})
        if name == PLOT:
            keywords = plot_keywords(str(value))
            return frozenset(row for word in keywords for row in of_field.get(word, ()))
        normal = normalise(name, value)
        if not normal:
            return frozenset()
        if normal in of_field:
            return frozenset(of_field[normal])
        return frozenset(row for known, rows in of_field.items() if normal in known for row in rows)

    def fitting(self, constraints: Constraints) -> Rows:
        """Return the rows that fit constraints, ascending."""
        wanted = tuple(
            (name, (value,) if isinstance(value, str) else tuple(value))
            for name, value in constraints.items()
        )
        return _fitting(self, wanted)

    def recommend(self, constraints: Constraints, draws: Draws, limit: int = 30) -> list[int]:
        """Return rows that fit constraints, shuffled."""
        return draws.sample(self.fitting(constraints), min(max(limit, 1), MOST_RECOMMENDED))

    def titles(self, rows: Iterable[int]) -> list[str]:
        """Return the titles of rows."""
        return [self.items[row].title for row in rows]


@lru_cache(20_000)  # users ask for the same few fields again and again
def _fitting(retrieval: Retrieval, wanted: tuple[tuple[str, tuple[str, ...]], ...]) -> Rows:
    by_field = [
        frozenset().union(*(retrieval.lookup(name, value) for value in values))
        for name, values in wanted
    ]
    found = [rows for rows in by_field if rows]
    if found:
        return tuple(sorted(frozenset.intersection(*found) or frozenset.union(*found)))
    if GENRE not in dict(wanted):
        return tuple(range(len(retrieval.items)))
    return retrieval.index.get(NAME, {}).get(FALLBACK, ())[:1]


def load_retrieval(path: str) -> Retrieval:
    """Read a catalogue's file; the latest one is kept for all simulations of an experiment."""
    return _retrieval(path, load_catalogue(path).digest)


@lru_cache(1)
def _retrieval(path: str, digest: str) -> Retrieval:
    from ahocorasick_rs import AhoCorasick, MatchKind

    catalogue = load_catalogue(path)
    records = read_records(path, read_option_file(path))
    plots = [_text(record.fields.get(PLOT)) for record in records]  # it has only their keywords
    terms = catalogue.terms.filter(pl.col("field").is_in((*ATTRIBUTES, PLOT)))
    index: dict[str, dict[str, Rows]] = {}
    surfaces: dict[str, list[str]] = {}
    places: dict[str, dict[str, int]] = {}
    values: list[dict[str, list[str]]] = [{} for _ in plots]
    columns = (terms[name].to_list() for name in ("field", "value", "surface", "items"))
    for name, value, surface, rows in zip(*columns, strict=True):
        index.setdefault(name, {})[value] = tuple(rows)
        if name == PLOT:
            continue
        known = surfaces.setdefault(name, [])
        places.setdefault(value, {}).setdefault(name, len(known))
        known.append(surface)
        for row in dict.fromkeys(rows):
            values[row].setdefault(name, []).append(surface)
    found = zip(catalogue.items["title"], plots, map(_tuples, values), strict=True)
    items = tuple(Item(of.get(NAME, (title,))[0], plot, of) for title, plot, of in found)
    titles = sorted({item.title for item in items if item.title})
    return Retrieval(
        digest,
        items,
        _tuples(surfaces),
        index,
        AhoCorasick(list(places)),
        tuple(places.values()),
        AhoCorasick(titles, matchkind=MatchKind.LeftmostLongest),
    )


def _tuples(lists: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(each) for name, each in lists.items()}


def _text(value: object) -> str:
    if isinstance(value, list):
        return " ".join(_text(each) for each in value)
    return value.strip() if isinstance(value, str) else ""


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether neither edge of a part of a text lies inside a word."""
    cuts_left = start > 0 and _joins_words(text[start - 1]) and _joins_words(text[start])
    cuts_right = end < len(text) and _joins_words(text[end - 1]) and _joins_words(text[end])
    return not (cuts_left or cuts_right)


@cache
def _joins_words(character: str) -> bool:
    return bool(is_word_character(np.array([ord(character)], np.uint32))[0])


_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


Phrases = tuple[str, ...]

_RATES = ("request_other_genre", "contradiction", "shift", "take_focus", "drop_constraint")
_LIMITS = ("anchors", "names", "plot_keywords")
_FIELDS = (*ATTRIBUTES, PLOT)
_PHRASE_KINDS = ("initial", "more", "contradiction", "reactions", "same")


@dataclass(frozen=True, slots=True)
class Policy:
    """A user's policy: probabilities, limits of what is considered by purpose, and phrases.

    `forced_shift` is the turn from which the first shift waits no longer. A shift considers
    `fields` in `order`; values of `bridges` lead from one focus to the next.
    """

    digest: str
    rates: Mapping[str, float]
    forced_shift: int
    limits: Mapping[str, int]
    fields: tuple[str, ...]
    order: tuple[str, ...]
    bridges: tuple[str, ...]
    follows_system: bool
    unknown: str
    phrases: Mapping[str, Phrases]
    details: Mapping[str, Phrases]
    shift: Mapping[str, Phrases]


def load_policy(path: Path | None = None) -> Policy:
    """Read a policy; the built-in one where no file is named."""
    source = str(path) if path else "the built-in user.toml"
    built_in = files(__package__).joinpath("user.toml")
    content = read_named_file(path, source) if path else built_in.read_bytes()
    top = TomlTable(source, "", parse_toml(content, source))
    top.check_names(("rates", "turns", "limits", "focus", "reference", "phrases"))
    rates, limits = top.table("rates", _RATES), top.table("limits", _LIMITS)
    focus = top.table("focus", ("fields", "order", "bridges"))
    fields = focus.choices("fields", _FIELDS)
    reference = top.table("reference", ("follows_system", "unknown"))
    phrases = top.table("phrases", (*_PHRASE_KINDS, "details", "shift"))
    shift = phrases.table("shift", fields)
    return Policy(
        hash_bytes(content),
        {name: rates.rate(name) for name in _RATES},
        top.table("turns", ("forced_shift",)).whole("forced_shift", 1),
        {name: limits.whole(name, 1) for name in _LIMITS},
        fields,
        focus.choices("order", fields),
        focus.choices("bridges", fields),
        reference.flag("follows_system"),
        reference.text("unknown"),
        {name: phrases.texts(name) for name in _PHRASE_KINDS},
        phrases.texts_by_name("details"),
        {name: shift.texts(name) for name in fields},
    )


USUAL_GENRE = "drama"
PLOT_LIMIT = 2
_RESETS = re.compile(r"\b(?:anything works|whatever|surprise me|anything really)\b")
_BY_VALUE = tuple(name for name in ATTRIBUTES if name not in (GENRE, "year"))


@dataclass(slots=True)
class ConstraintReader:
    """What is known of a user's wishes so far."""

    retrieval: Retrieval
    constraints: dict[str, list[str]] = field(default_factory=dict)

    def read(self, message: str) -> dict[str, list[str]]:
        """Take a message into account; return the constraints that hold then."""
        named, values = self.retrieval.find_values(message)
        genre = named or self.constraints.get(GENRE, [USUAL_GENRE])[0]
        if _RESETS.search(message.lower()):
            self.constraints = {GENRE: [genre]}
            return dict(self.constraints)
        found = {GENRE: [genre]}
        if year := _YEAR.search(message):
            found["year"] = [year[0]]
        found |= {name: [values[name]] for name in _BY_VALUE if name in values}
        if keywords := self.retrieval.find_plot_keywords(message):
            found[PLOT] = keywords
        self.constraints |= found
        return dict(self.constraints)


INITIAL, DETAILS, WAITING = "initial", "details", "waiting_system"
REFERENCE = "{reference}"
_SLOT = re.compile(r"\{(genre|focus|bridge)\}")


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What a user will say, and its metadata as logs have them.

    ``{reference}`` in the phrase becomes a title that the system named, by `draw`, or `otherwise`.
    """

    phrase: str
    meta: Mapping[str, Any]
    draw: float
    otherwise: str

    def text(self, named: Sequence[str]) -> str:
        """Return the words, given the titles that the system named last."""
        if REFERENCE not in self.phrase:
            return self.phrase
        title = named[int(self.draw * len(named))] if named else self.otherwise
        return self.phrase.replace(REFERENCE, title)


@dataclass(frozen=True, slots=True)
class UserPlan:
    """A user's side of a conversation, and the genre that the user really likes."""

    true_genre: str
    turns: tuple[UserTurn, ...]

    @property
    def shift_events(self) -> list[dict[str, Any]]:
        """The shifts, in order."""
        events = (turn.meta["shift_event_obj"] for turn in self.turns)
        return [event for event in events if event is not None]


def plan_user(
    retrieval: Retrieval, policy: Policy, *, seed: int, session: int, turns: int
) -> UserPlan:
    """Plan a user's turns."""
    user = _User(retrieval, policy, Draws(seed, session, USER))
    planned = tuple(user.turn(number) for number in range(1, turns + 1))
    return UserPlan(user.true_genre, planned)


Value = tuple[str, str]
"""A field and a value of it, as written."""


@dataclass(slots=True)
class _User:
    """The state of a user while its turns are planned."""

    retrieval: Retrieval
    policy: Policy
    draws: Draws
    true_genre: str = ""
    focus: Value = (GENRE, "")
    constraints: dict[str, list[str]] = field(default_factory=dict)
    anchor: int | None = None
    stage: str = INITIAL
    topics: list[str] = field(default_factory=list)
    shifted: bool = False

    def __post_init__(self) -> None:
        draws, genres = self.draws, self.genres
        self.true_genre = requested = draws.choose(genres)
        if draws.happens(self.policy.rates["request_other_genre"]) and len(genres) > 1:
            requested = draws.choose([genre for genre in genres if genre != self.true_genre])
        self.focus = (GENRE, requested)
        self.constraints = {GENRE: [requested]}
        self._begin_focus()

    @property
    def genres(self) -> tuple[str, ...]:
        return self.retrieval.available_genres() or tuple(self.retrieval.index[GENRE])

    def turn(self, number: int) -> UserTurn:
        """Decide on the next turn."""
        phrase, event = self._act(number)
        draw = self.draws.uniform()
        meta = {
            "turn": number,
            "stage": self.stage,
            "focus_field": self.focus[0],
            "focus_value": self.focus[1],
            "anchor_title": self._title(),
            "constraints": {name: list(values) for name, values in self.constraints.items()},
            "shift_event": event is not None,
            "shift_event_obj": event,
        }
        return UserTurn(phrase, meta, draw, self._title() or self.policy.unknown)

    def _act(self, number: int) -> tuple[str, dict[str, Any] | None]:
        policy, draws = self.policy, self.draws
        if self.stage == INITIAL:
            self.stage = DETAILS
            phrase = draws.choose(policy.phrases["initial"])
            return _fill(phrase, genre=self.focus[1]), None
        if self.stage == WAITING:
            self.stage = DETAILS
            return draws.choose(policy.phrases["more"]), None
        if draws.happens(policy.rates["contradiction"]):
            return draws.choose(policy.phrases["contradiction"]), None
        is_due = not self.shifted and number >= policy.forced_shift
        if is_due or not self.topics or draws.happens(policy.rates["shift"]):
            self.stage = WAITING
            return self._shift(number)
        question = draws.choose(policy.details[self.topics.pop()])
        return f"{draws.choose(policy.phrases['reactions'])} {question}", None

    def _shift(self, number: int) -> tuple[str, dict[str, Any]]:
        """Move the focus along a bridge; return the user's words and the event."""
        draws, before, from_anchor = self.draws, self.focus, self._title()
        bridge = draws.choose(self._bridges())
        name = self._next_field(before[0])
        self.focus = (name, self._focus_value(name, bridge))
        keeps = bridge[0] != PLOT if name in (GENRE, PLOT) else bridge[0] != name
        if keeps:
            self.constraints[bridge[0]] = [bridge[1]]
        self.constraints[name] = [self.focus[1]]
        if draws.happens(self.policy.rates["drop_constraint"]):
            kept = {name, GENRE, bridge[0]}
            others = [each for each in self.constraints if each not in kept]
            if others:
                del self.constraints[draws.choose(others)]
        self._begin_focus()
        self.shifted = True
        event = {
            "turn": number,
            "from_focus": before[0],
            "to_focus": name,
            "bridge_field": bridge[0],
            "bridge_value": bridge[1],
            "from_anchor": from_anchor,
            "to_anchor": self._title(),
        }
        is_same = self.focus[1] == bridge[1]
        phrase = draws.choose(self.policy.phrases["same"] if is_same else self.policy.shift[name])
        return _fill(phrase, focus=self.focus[1], bridge=bridge[1]), event

    def _bridges(self) -> list[Value]:
        """Return what may lead from one focus to the next: of the anchor, and the focus itself."""
        if self.anchor is None:
            return [self.focus]
        item = self.retrieval.items[self.anchor]
        found = [
            (name, value) for name in self.policy.bridges for value in item.values.get(name, ())
        ]
        keywords = plot_keywords(item.plot)[: self.policy.limits["plot_keywords"]]
        return [*found, *((PLOT, word) for word in keywords), self.focus]

    def _next_field(self, current: str) -> str:
        known = self.retrieval.index
        others = [name for name in self.policy.fields if name != current and known.get(name)]
        if not others:
            return current
        shuffled = self.draws.sample(others, len(others))
        for name in self.policy.order:
            if name in shuffled and self.draws.happens(self.policy.rates["take_focus"]):
                return name
        return shuffled[0]

    def _focus_value(self, name: str, bridge: Value) -> str:
        draws = self.draws
        if name == PLOT:
            return bridge[1]
        if name == GENRE:
            others = [genre for genre in self.genres if genre != self.focus[1]]
            return draws.choose(others or self.genres)
        if name == NAME:
            near = self.retrieval.recommend(
                {bridge[0]: bridge[1]}, draws, self.policy.limits["names"]
            )
            titles = self.retrieval.titles(row for row in near if row != self.anchor)
            return draws.choose(titles or self.retrieval.surfaces[NAME])
        return bridge[1] if name == bridge[0] else draws.choose(self.retrieval.surfaces[name])

    def _begin_focus(self) -> None:
        """Take an item that fits, another one than before if there is any, and its topics."""
        rows = self.retrieval.recommend(self.constraints, self.draws, self.policy.limits["anchors"])
        others = [row for row in rows if row != self.anchor]
        if others or rows:
            self.anchor = self.draws.choose(others or rows)
        details = tuple(self.policy.details)
        self.topics = self.draws.sample(details, len(details))

    def _title(self) -> str | None:
        return None if self.anchor is None else self.retrieval.items[self.anchor].title


def _fill(phrase: str, **values: str) -> str:
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), phrase)
