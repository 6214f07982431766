"""Concepts of texts in plain Python: a catalogue's values, and those mentioned in a text."""

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]

STRUCTURED_FIELDS = ("genre", "actor", "director", "writer", "language", "year")

FIELDS = (*STRUCTURED_FIELDS, "name")

GENRE_SUFFIXES = (" film", " movie", " fiction")

STOP_WORDS = frozenset((
    "the", "and", "with", "that", "this", "from", "into", "about", "their", "they", "them", "have",
    "when", "where", "after", "before", "toward", "towards", "against", "while", "over", "under",
    "through", "also", "film", "movie", "story", "stories", "life", "lives", "takes", "place",
    "city", "town", "family", "people",
))  # fmt: skip

PLOT_KEYWORDS_A_TEXT = 3

UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


@dataclass(frozen=True)
class Profile:
    """The switches of an evaluation."""

    fields: tuple[str, ...] = FIELDS
    plot: bool = False
    on_words: bool = True
    cc_recovers: float = 0.65
    cr_recovers: float | None = None
    window: int = 3
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    rate_without_shifts: float | None = None
    empty_conversations_are_zero: bool = False
    absent_texts_are_empty: bool = False


PROFILES = {
    "default": Profile(),
    "published": Profile(
        plot=True,
        on_words=False,
        rate_without_shifts=0.0,
        empty_conversations_are_zero=True,
        absent_texts_are_empty=True,
    ),
    "structured": Profile(
        fields=STRUCTURED_FIELDS,
        on_words=False,
        cc_recovers=0.35,
        cr_recovers=0.65,
        rate_without_shifts=0.0,
        empty_conversations_are_zero=True,
        absent_texts_are_empty=True,
    ),
}


@dataclass
class Catalogue:
    """The values and plot keywords of a catalogue, each with its items."""

    n_items: int
    items_of: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    plots: dict[str, set[int]] = field(default_factory=dict)

    def idf(self, concept: str) -> float:
        """Return a concept's inverse document frequency."""
        name, value = concept.split("=", 1)
        items = self.plots[value] if name == "plot" else self.items_of[name][value]
        return math.log((1 + self.n_items) / (1 + len(items))) + 1


def normalise(name: str, value: Any) -> str:
    """Return a value as it is compared; blank values are no values."""
    text = "" if value is None else str(value).strip()
    if name == "year":
        return "".join(character for character in text if character.isdigit())
    text = text.lower()
    if name == "genre":
        for suffix in GENRE_SUFFIXES:
            text = text.replace(suffix, "")
        text = text.strip()
    return text


def plot_words(text: str) -> list[str]:
    words = re.findall(r"[a-zA-Z]{4,}", text.lower())
    return list(dict.fromkeys(word for word in words if word not in STOP_WORDS))


def make_catalogue(records: Mapping[str, Row] | Sequence[Row]) -> Catalogue:
    """Index the items of a catalogue: records by title, or a list of them."""
    keyed: Iterable[tuple[Any, Row]] = (
        records.items() if isinstance(records, Mapping) else ((None, row) for row in records)
    )
    titled = list(keyed)
    catalogue = Catalogue(len(titled) or 1, {name: {} for name in FIELDS})
    for item, (title, record) in enumerate(titled):
        for name in FIELDS:
            values = record.get(name, title) if name == "name" else record.get(name)
            for value in values if isinstance(values, list) else [values]:
                norm = normalise(name, value)
                if norm:
                    catalogue.items_of[name].setdefault(norm, set()).add(item)
        for word in plot_words(record.get("plot") or ""):
            catalogue.plots.setdefault(word, set()).add(item)
    return catalogue


def is_word_character(character: str) -> bool:
    """Tell characters that words are made of in scripts that put spaces between words."""
    category = unicodedata.category(character)
    unspaced = any(first <= ord(character) <= last for first, last in UNSPACED)
    return (category[0] in "LMN" or category == "Pc") and not unspaced


def is_inside_word(text: str, edge: int) -> bool:
    """Tell whether the characters on both sides of an edge are of one word."""
    return (
        0 < edge < len(text) and is_word_character(text[edge - 1]) and is_word_character(text[edge])
    )


def occurs_as_words(text: str, value: str) -> bool:
    """Return whether a text contains a value with no edge inside a word."""
    start = text.find(value)
    while start >= 0:
        if not is_inside_word(text, start) and not is_inside_word(text, start + len(value)):
            return True
        start = text.find(value, start + 1)
    return False


def concepts(text: str | None, catalogue: Catalogue, profile: Profile) -> set[str]:
    lowered = (text or "").lower()
    found = {
        f"{name}={value}"
        for name in profile.fields
        for value in catalogue.items_of[name]
        if value in lowered and (not profile.on_words or occurs_as_words(lowered, value))
    }
    if profile.plot:
        known = [word for word in plot_words(lowered) if word in catalogue.plots]
        found |= {f"plot={word}" for word in known[:PLOT_KEYWORDS_A_TEXT]}
    return found
