"""Retrieval in plain Python, one value at a time, from the definition: the oracle of its tests."""

import re
from typing import Any

from tests.oracles.preference_shift_concepts import normalise, plot_words

FIELDS = ("name", "genre", "actor", "director", "language", "writer", "year")


def values(movie: dict[str, Any], field: str) -> list[Any]:
    value = movie.get(field)
    return value if isinstance(value, list) else [value]


class PlainRetrieval:
    def __init__(self, movies: list[dict[str, Any]]) -> None:
        self.movies = movies
        self.index: dict[str, dict[str, list[int]]] = {field: {} for field in FIELDS}
        self.surface: dict[str, dict[str, str]] = {field: {} for field in FIELDS}
        self.plots: dict[str, list[int]] = {}
        for row, movie in enumerate(movies):
            for field in FIELDS:
                for value in values(movie, field):
                    key = normalise(field, value)
                    if key:
                        self.index[field].setdefault(key, []).append(row)
                        self.surface[field].setdefault(key, str(value).strip())
            for word in plot_words(movie.get("plot") or ""):
                self.plots.setdefault(word, []).append(row)

    def genres(self) -> list[str]:
        return [g for g, rows in self.index["genre"].items() if len(rows) >= 3 and len(g) > 2]

    def find(self, field: str, text: str) -> str | None:
        lowered = text.lower()
        for key, surface in self.surface[field].items():
            if key not in lowered:
                continue
            left = r"(?<!\w)" if re.match(r"\w", key) else ""
            right = r"(?!\w)" if re.search(r"\w$", key) else ""
            if re.search(left + re.escape(key) + right, lowered):
                return surface
        return None

    def keywords(self, text: str, limit: int) -> list[str]:
        return [word for word in plot_words(text) if word in self.plots][:limit]

    def lookup(self, field: str, value: str) -> set[int]:
        if field == "plot":
            return {row for word in plot_words(value) for row in self.plots.get(word, [])}
        key = normalise(field, value)
        if not key:
            return set()
        if key in self.index[field]:
            return set(self.index[field][key])
        return {row for known, rows in self.index[field].items() if key in known for row in rows}

    def fitting(self, constraints: dict[str, Any]) -> set[int]:
        wanted = {
            field: value if isinstance(value, list) else [value]
            for field, value in constraints.items()
        }
        sets = []
        for field, listed in wanted.items():
            rows: set[int] = set()
            for value in listed:
                rows |= self.lookup(field, value)
            if rows:
                sets.append(rows)
        if len(sets) >= 2:
            both = set.intersection(*sets)
            return both if both else set.union(*sets)
        if len(sets) == 1:
            return sets[0]
        if "genre" not in wanted:
            return set(range(len(self.movies)))
        return set(self.index["name"].get("inception", [])[:1])
