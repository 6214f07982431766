"""What the rows of a log hold: every key with how often it stands there, its types, an example."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from fastscore.logs.inputs.column_map import EACH
from fastscore.logs.inputs.records import Record, json_of
from fastscore.suites.declarations import Column, Source

MOST_KEYS = 10_000
SHOWN = 8
"""How many keys, words or files a message lists."""
ROWS_COUNTED = 1000
MOST_ELEMENTS = 100
DEEPEST = 3
MOST_FIELDS = 30
"""From how many keys on those of an object may be ids."""
ANY_KEY = "*"
"""In a path, the keys of an object that are ids."""
_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


@dataclass(slots=True)
class FoundKey:
    """A key at one place.

    Parameters
    ----------
    count
        In how many objects it stands, null or not.
    nulls
        In how many of them it is null.
    types
        The JSON types of its other values, each with its number.
    example
        The first value that is not null.
    names_speakers
        Whether its values say who speaks; see `speaker_keys`.
    """

    count: int = 0
    nulls: int = 0
    types: Counter[str] = field(default_factory=Counter)
    example: Any = None
    names_speakers: bool = False


@dataclass(slots=True)
class FoundKeys:
    """The keys of some rows.

    Parameters
    ----------
    rows
        How many rows were counted.
    keys
        By path: ``meta.text`` is a key of the object ``meta``, ``turns[].content`` one of the
        objects in the array ``turns``. Of very many there are the first `MOST_KEYS`.
    """

    rows: int = 0
    keys: dict[str, FoundKey] = field(default_factory=dict)

    def below(self, array: str) -> dict[str, FoundKey]:
        """Return the keys of an array's objects, by their paths from there; of rows for ''."""
        prefix = array + EACH if array else ""
        return {
            path.removeprefix(prefix): found
            for path, found in self.keys.items()
            if path.startswith(prefix) and EACH not in path.removeprefix(prefix)
        }

    def around(self, source: Source, holder: Column | None = None) -> dict[str, FoundKey]:
        """Return the keys beside which a column stands, by the paths that a map names them by.

        Parameters
        ----------
        source
            How rows are read.
        holder
            The column whose array's objects hold the column, None where rows do.
        """
        if holder is not None:
            arrays = (self.below(key) for key in holder.keys)
            return next((keys for keys in arrays if keys), {})
        return self.below_line(source.rows) | self.below("")

    def below_line(self, array: str) -> dict[str, FoundKey]:
        """Return the keys of an array's objects by their paths from the line; of no array none."""
        inside = self.below(array) if array else {}
        return {array + EACH + path: key for path, key in inside.items()}

    @property
    def arrays(self) -> tuple[str, ...]:
        """The paths of arrays of objects."""
        return tuple(dict.fromkeys(path.rpartition(EACH)[0] for path in self.keys if EACH in path))


def count_keys(rows: Iterable[Record], limit: int = ROWS_COUNTED) -> FoundKeys:
    """Count the keys of the first rows."""
    found = FoundKeys()
    for row in islice(rows, limit):
        found.rows += 1
        _count(row, "", found.keys, 1)
    return found


def fold_maps(keys: Mapping[str, FoundKey]) -> dict[str, FoundKey]:
    """Return keys with the objects whose keys are ids as one key each: ``usage.*``.

    An object's keys are ids if there are `MOST_FIELDS` or more of them and each is found in less
    than half of the objects, on average. Those of objects are counted so from the beginning.
    """
    children: dict[str, list[str]] = {}
    for path in keys:
        parent, name = _parent(path)
        children.setdefault(parent, []).append(name)
    maps = set()
    for parent, names in children.items():
        above = keys.get(parent.removesuffix(".").removesuffix(EACH))
        largest = max(keys[parent + name].count for name in names)
        n_objects = above.types["object"] if above is not None and parent.endswith(".") else largest
        total = sum(keys[parent + name].count for name in names)
        if len(names) >= MOST_FIELDS and 2 * total < len(names) * max(n_objects, 2):
            maps.add(parent)
    folded: dict[str, FoundKey] = {}
    for path, key in keys.items():
        into = folded.setdefault(_folded(path, maps), FoundKey())
        into.count += key.count
        into.nulls += key.nulls
        into.types += key.types
        into.example = key.example if into.example is None else into.example
    return folded


def _parent(path: str) -> tuple[str, str]:
    """Part a path behind its last full stop or array."""
    place = path.rfind(".") + 1
    return path[:place], path[place:]


def _folded(path: str, maps: Collection[str]) -> str:
    """Replace the ids in a path, outermost first."""
    for parent in sorted(maps, key=len):
        if path.startswith(parent) and path != parent:
            below = path[len(parent) :]
            name, stop, rest = below.partition(".")
            path = f"{parent}{ANY_KEY}{'[].' if name.endswith('[]') else stop}{rest}"
    return path


def listed(keys: Mapping[str, FoundKey]) -> str:
    """List keys with how often they stand there, the most frequent first."""
    if not keys:
        return "nothing"
    by_count = sorted(keys.items(), key=lambda item: -item[1].count)
    return shortened([f"{path} ({key.count:,})" for path, key in by_count])


def shortened(parts: Sequence[str], between: str = ", ") -> str:
    """Join parts, the first `SHOWN` of them and how many more there are."""
    at_least = "at least " if len(parts) >= MOST_KEYS else ""
    more = f" and {at_least}{len(parts) - SHOWN:,} more" if len(parts) > SHOWN else ""
    return between.join(parts[:SHOWN]) + more


def json_type(value: Any) -> str:
    """Return the name of a value's JSON type."""
    return _TYPES.get(type(value), type(value).__name__)


def _count(item: Record, prefix: str, keys: dict[str, FoundKey], depth: int) -> None:
    is_map = _is_map(item)
    for name, stored in item.items():
        path = prefix + (ANY_KEY if is_map else name)
        key = keys.get(path)
        if key is None:
            if len(keys) == MOST_KEYS:
                continue
            key = keys[path] = FoundKey()
        key.count += 1
        value = json_of(stored)
        if value is None:
            key.nulls += 1
            continue
        key.types[json_type(value)] += 1
        if key.example is None:
            key.example = value
        if depth < DEEPEST:
            for below, inner in _objects(path, value):
                _count(inner, below, keys, depth + 1)


def _is_map(item: Record) -> bool:
    """Tell whether an object's keys are ids: very many, with nothing but objects or arrays."""
    return len(item) >= MOST_FIELDS and {type(value) for value in item.values()} in ({dict}, {list})


def _objects(path: str, value: Any) -> Iterator[tuple[str, Record]]:
    """Yield the objects in a value, each with what stands before its keys."""
    if isinstance(value, dict):
        yield f"{path}.", value
    elif isinstance(value, list):
        for element in islice(value, MOST_ELEMENTS):
            if isinstance(element, dict):
                yield f"{path}{EACH}", element
