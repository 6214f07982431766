"""Retrieval from a compiled catalogue, and the random draws of a session.

A stream is Philox keyed by seed, session and purpose, so that what one session draws depends on
no other session, worker or earlier run, and what a user draws on nothing that a system says.

The rules are the public system's: values of a field are alternatives, fields narrow each other
down unless nothing is left, a field that matches nothing is ignored. Where that system shuffles a
set of strings in the order of their hashes, items are first in the catalogue's order.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import numpy as np
import polars as pl

from fastscore.options import read_option_file
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
from fastscore.suites.preference_shift.matching import is_word_character

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
            self._left = self._generator.random(_BLOCK).tolist()
            self._left.reverse()
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
ALIASES = {"title": NAME, "plot_keywords": PLOT}
FALLBACK = "inception"
"""The item that the public system offers where nothing fits; here only if the catalogue has it."""

MOST_RECOMMENDED = 50
_KEPT_ANSWERS = 20_000

Constraints = Mapping[str, Any]
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
    _answers: dict[Any, Rows] = field(default_factory=dict)

    def available_genres(self) -> tuple[str, ...]:
        """Return the genres of at least 3 entries, repeats counted, and over 2 characters."""
        entries = self.index.get(GENRE, {}).items()
        return tuple(genre for genre, rows in entries if len(rows) >= 3 and len(genre) > 2)

    def find_attributes(self, text: str, *, words: bool = False) -> dict[str, str]:
        """Return by field the value that appears first of those in a text."""
        lowered = text.lower()
        best: dict[str, int] = {}
        for pattern, start, end in self._automaton.find_matches_as_indexes(
            lowered, overlapping=True
        ):
            if words and not _stands_alone(lowered, start, end):
                continue
            for name, place in self._terms[pattern].items():
                if place < best.get(name, place + 1):
                    best[name] = place
        return {name: self.surfaces[name][place] for name, place in best.items()}

    def find_genre(self, text: str, *, words: bool = False) -> str | None:
        """Return the genre that sorts first of those in a text."""
        lowered = text.lower()
        found = self._automaton.find_matches_as_indexes(lowered, overlapping=True)
        genres = [
            lowered[start:end]
            for pattern, start, end in found
            if GENRE in self._terms[pattern] and (not words or _stands_alone(lowered, start, end))
        ]
        return min(genres, default=None)

    def find_plot_keywords(self, text: str, limit: int = 3) -> list[str]:
        """Return the first different words of a text that are keywords of plots."""
        known = self.index.get(PLOT, {})
        found: dict[str, None] = {}
        for word in PLOT_WORD.findall(text.lower()):
            if word in known and word not in PLOT_STOP_WORDS:
                found[word] = None
                if len(found) == limit:
                    break
        return list(found)

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
        wanted = clean_constraints(constraints)
        key = tuple(wanted.items())
        rows = self._answers.get(key)
        if rows is None:
            if len(self._answers) >= _KEPT_ANSWERS:
                self._answers.clear()
            rows = self._answers[key] = tuple(sorted(self._fitting(wanted)))
        return rows

    def _fitting(self, wanted: Mapping[str, tuple[str, ...]]) -> Iterable[int]:
        by_field = [
            frozenset().union(*(self.lookup(name, value) for value in values))
            for name, values in wanted.items()
        ]
        found = [rows for rows in by_field if rows]
        if found:
            return frozenset.intersection(*found) or frozenset.union(*found)
        if GENRE not in wanted:
            return range(len(self.items))
        return self.index.get(NAME, {}).get(FALLBACK, ())[:1]

    def recommend(self, constraints: Constraints, draws: Draws, limit: int = 30) -> list[int]:
        """Return rows that fit constraints, shuffled."""
        return draws.sample(self.fitting(constraints), min(max(limit, 1), MOST_RECOMMENDED))

    def titles(self, rows: Iterable[int]) -> list[str]:
        """Return the titles of rows."""
        return [self.items[row].title for row in rows]


def clean_constraints(constraints: Constraints) -> dict[str, tuple[str, ...]]:
    """Return constraints by the fields' own names, tuples of texts that are not blank."""
    cleaned = {}
    for name, value in constraints.items():
        known = ALIASES.get(name, name)
        listed = value if isinstance(value, list | tuple) else (value,)
        values = tuple(str(each) for each in listed if each is not None and str(each).strip())
        if values and (known in ATTRIBUTES or known == PLOT):
            cleaned[known] = values
    return cleaned


def load_retrieval(path: str) -> Retrieval:
    """Read a catalogue's file."""
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
    items = tuple(
        Item(
            (of_item.get(NAME) or [title])[0],
            plot,
            {name: tuple(each) for name, each in of_item.items()},
        )
        for title, plot, of_item in zip(catalogue.items["title"], plots, values, strict=True)
    )
    titles = sorted({item.title for item in items if item.title})
    return Retrieval(
        catalogue.digest,
        items,
        {name: tuple(known) for name, known in surfaces.items()},
        index,
        AhoCorasick(list(places)),
        tuple(places.values()),
        AhoCorasick(titles, matchkind=MatchKind.LeftmostLongest),
    )


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


def find_year(text: str) -> str | None:
    """Return the first year of the 20th or 21st century in a text."""
    found = _YEAR.search(text)
    return found[0] if found else None
