"""The keys of a log's rows, and which column, role or speaker each of them probably is."""

import difflib
import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any

from fastscore.errors import listed
from fastscore.logs.inputs.column_map import EACH, LEFT_OUT, Flag, value_flag
from fastscore.logs.inputs.document_values import json_of, value_at
from fastscore.suites.chats import ASSISTANT_ROLE, SYSTEM_ROLE, USER_ROLE, ChatRows
from fastscore.suites.declarations import Column, Source

ROWS_SAMPLED, MOST_ROWS_SAMPLED = 20, 200
"""How many rows of a file show its shape, and how many if a required column is in none of those."""
HEAD_ROWS = 1000
"""How many rows of a large file `inspect` looks at."""
MOST_KEYS = 10_000
SHOWN = 8
"""How many keys, words or files a message lists."""
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


Record = dict[str, Any]
"""A row, as Python objects."""


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
        """Return the keys beside which a column stands, by the paths that a map names them by."""
        if holder is not None:
            arrays = (self.below(key) for key in holder.keys)
            return next((keys for keys in arrays if keys), {})
        held = [source.rows]
        if source.chat is not None and not source.chat.rows.array:
            held = [path for paths in source.chat.layout.turns for path in paths]
        inside = [self.below_line(array) for array in held]
        return {path: key for keys in (*inside, self.below("")) for path, key in keys.items()}

    def below_line(self, array: str) -> dict[str, FoundKey]:
        """Return the keys of an array's objects by their paths from the line; of no array none."""
        inside = self.below(array) if array else {}
        return {array + EACH + path: key for path, key in inside.items()}

    @property
    def arrays(self) -> tuple[str, ...]:
        """The paths of arrays of objects."""
        return tuple(dict.fromkeys(path.rpartition(EACH)[0] for path in self.keys if EACH in path))


def count_keys(rows: Iterable[Record], limit: int = HEAD_ROWS) -> FoundKeys:
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


def list_keys(keys: Mapping[str, FoundKey]) -> str:
    """List keys with how often they stand there, the most frequent first."""
    if not keys:
        return "nothing"
    by_count = sorted(keys.items(), key=lambda item: -item[1].count)
    shown = listed([f"{path} ({key.count:,})" for path, key in by_count], SHOWN)
    before, _, more = shown.rpartition(" and ")
    return f"{before} and at least {more}" if len(keys) >= MOST_KEYS else shown


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


_LEAST_SIMILARITY = 0.8
_MOST_COMPARED = 2_000
KINDS = {
    "text": "strings",
    "integer": "integers",
    "number": "numbers",
    "boolean": "booleans",
    "json": "objects or arrays",
}
"""What messages call the values of a column, by its kind."""
_REFERENCE = re.compile(
    r"gt|ref|refs|(ground)?truth|human|expected|(gold|reference|label|user|target)\w*"
)
_PREDICTION = re.compile(
    r"hyp|output|completion|reply|answer|assistant|system|model|bot|"
    r"(pred|hypothes|response|generat)\w*"
)
_PLACE = re.compile(r"(^|\.)\d+(\.|$)")
"""In a path, a key that is the number of one of several."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True, slots=True)
class _Names:
    """What keys and speakers are called in logs; see ``names.toml``."""

    synonyms: Sequence[Sequence[str]]
    roles: Mapping[str, str]
    agents: Sequence[str]
    systems: Sequence[str]
    letters: Mapping[str, str]


@cache
def _names() -> _Names:
    content = tomllib.loads(files(__package__).joinpath("names.toml").read_text("utf-8"))
    roles = {word: role for role, words in content["roles"].items() for word in words}
    return _Names(content["synonyms"], roles, **content["roles_by_others"])


def _plain(name: str) -> str:
    """Write a name without case and without what parts its words."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


@lru_cache(1 << 14)
def name_similarity(name: str, other: str) -> float:
    """Return how near two names are: 1 where only case and signs differ, 0 where nothing is."""
    if _plain(name) == _plain(other):
        return 1.0
    places = (
        group.index(other.casefold()) / len(group)
        for group in _names().synonyms
        if name.casefold() in group and other.casefold() in group
    )
    together = min(places, default=None)
    if together is not None:
        return 0.95 - 0.1 * together
    ratio = difflib.SequenceMatcher(None, _plain(name), _plain(other)).ratio()
    return 0.8 * ratio if ratio >= _LEAST_SIMILARITY else 0.0


def keys_of_others(columns: Iterable[Column], but: str) -> set[str]:
    """Return the keys that columns are read by, all but those of one name."""
    return {key for column in columns if column.name != but for key in column.keys}


def nearest_key(
    column: Column, keys: Mapping[str, FoundKey], taken: Collection[str] = ()
) -> str | None:
    """Return the path of the key that a column probably is, None where none is near.

    A key whose values the column could not take is not near, nor is a reference of what a model
    wrote, nor what a model wrote of a reference, nor one of several numbered values. Of very many
    keys the first are looked at.
    """
    types, side = json_types(column), _side(column.name)
    best, best_score = None, 0.0
    for path, found in itertools.islice(keys.items(), _MOST_COMPARED):
        if (
            path in taken
            or ANY_KEY in path
            or _PLACE.search(path)
            or types.isdisjoint(found.types)
            or _side(path) == -side != 0
        ):
            continue
        last = path.rpartition("]")[2].rpartition(".")[2]
        score = max(name_similarity(name, last) for name in (column.name, *column.aliases))
        score *= 0.99 ** path.count(".")
        if score > best_score:
            best, best_score = path, score
    return best


def json_types(column: Column) -> set[str]:
    """Return the JSON types of which a column is probably made."""
    if column.items:
        return {"array"}
    if column.kind == "json":
        return {"object", "array", "string", "boolean"}
    if column.kind in ("integer", "number"):
        # what else it accepts are ways of writing a number
        return {"integer", column.kind, *({"number", "string"} & set(column.accepts))}
    if column.kind != "text":
        return {column.kind}
    # words of a closed list, such as roles, may be written as numbers
    return (
        {"string", "integer"}
        if column.vocabulary.needed or column.vocabulary.any_needed
        else {"string"}
    )


def _side(path: str) -> int:
    """Return 1 where a name is of a reference, -1 where it is of what a model wrote, else 0."""
    words = [word.casefold() for word in _WORDS.findall(path)]
    if any(map(_REFERENCE.fullmatch, words)):
        return 1
    return -1 if any(map(_PREDICTION.fullmatch, words)) else 0


_REPLY = re.compile(
    r"(resp|response|reply|replie|answer|output|completion|choice|candidate|chosen|pred|predict|"
    r"prediction|predicted|generated|generation|hypothesis)s?"
)


def is_of_reference(name: str) -> bool:
    """Tell whether a key is called as what a reply is compared with."""
    return _side(name) > 0


def is_of_reply(path: str) -> bool:
    """Tell whether a key, or one above it, is called as what a model wrote."""
    return any(_REPLY.fullmatch(word.casefold()) for word in _WORDS.findall(path))


def nearest_words(name: str, words: Iterable[str], known: Collection[str]) -> list[Flag]:
    """Return the flags to type for words of a column that probably stand for known ones."""
    flags = []
    for word in words:
        score, best = max(
            ((name_similarity(each, word), each) for each in known), default=(0.0, "")
        )
        if score > 0.0 and best and not best.endswith("*"):
            flags.append(value_flag(name, word, best))
    return flags


_MOST_SPEAKERS = 8
_SPEAKERS = 2


def speaker_key(turns: Sequence[Mapping[str, Any]], read: Collection[str] = ()) -> str | None:
    """Return the path of the value that says who speaks in the turns of one dialogue.

    Its values are few: known words for roles, or those of a key that is called as speakers are.
    None if there is none.
    """
    found: dict[str, list[str]] = {}
    for turn in turns:
        for path, value in _scalars(turn):
            if path not in read:
                found.setdefault(path, []).append(str(value))
    by_rank: dict[int, str] = {}
    for path, words in found.items():
        if 2 * len(words) >= len(turns):
            by_rank.setdefault(_rank(path, words), path)
    by_rank.pop(0, None)
    return by_rank[max(by_rank)] if by_rank else None


def _scalars(turn: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the texts, integers and truth values of a turn and of the objects in it."""
    for key, value in turn.items():
        if isinstance(value, str | int):
            yield key, value
        elif isinstance(value, dict):
            yield from ((f"{key}.{k}", v) for k, v in value.items() if isinstance(v, str | int))


def _rank(path: str, words: Sequence[str]) -> int:
    """Return how surely the values of a path are speakers; 0 if they are none."""
    distinct = set(words)
    if not _SPEAKERS <= len(distinct) <= _MOST_SPEAKERS:
        return 0
    if {USER_ROLE, ASSISTANT_ROLE} & set(role_meanings(distinct).values()):
        return 3
    return 2 * bool(
        len(distinct) <= max(_SPEAKERS, len(words) // 2)
        and name_similarity("speaker", path.rpartition(".")[2])
    )


def mark_speakers(found: FoundKeys, rows: Iterable[Mapping[str, Any]]) -> None:
    """Mark the keys of arrays whose values are speakers in some of the first rows."""
    arrays = [array for array in found.arrays if EACH not in array]
    for row in islice(rows, ROWS_SAMPLED):
        for array in arrays:
            value = json_of(value_at(row, array))
            turns = [each for each in value if isinstance(each, dict)] if value else []
            path = speaker_key(turns) if isinstance(value, list) else None
            key = found.keys.get(f"{array}{EACH}{path}") if path else None
            if key is not None:
                key.names_speakers = True


def role_meanings(words: Collection[str]) -> dict[str, str]:
    """Return the roles of words; a word that nothing is known of has none.

    ``agent`` replies, except beside an assistant, where it is nobody that is known; ``system``
    replies, except beside another word that does: then it is a prompt.
    """
    plain = {word: word.strip().casefold() for word in words}
    names = _names()
    found = {word: names.roles[name] for word, name in plain.items() if name in names.roles}
    letters = {word: names.letters[name] for word, name in plain.items() if name in names.letters}
    if {USER_ROLE, ASSISTANT_ROLE} <= set(letters.values()):
        found |= letters
    replies = ASSISTANT_ROLE in found.values()
    agents = [word for word, name in plain.items() if name in names.agents]
    if not replies and USER_ROLE in found.values():
        found |= dict.fromkeys(agents, ASSISTANT_ROLE)
    replies = ASSISTANT_ROLE in found.values()
    systems = [word for word, name in plain.items() if name in names.systems]
    return found | dict.fromkeys(systems, SYSTEM_ROLE if replies else ASSISTANT_ROLE)


def role_flags(
    words: Collection[str], known: Collection[str], rows: ChatRows, knows: Collection[str] = ()
) -> list[Flag]:
    """Return the flags to type for the words of speakers."""
    own = dict(rows.words)
    roles = {word: role for role, word in own.items()}
    # a word of the suite has the suite's meaning, whatever it means elsewhere
    among = [*words, *(roles.get(word, word) for word in known)]
    meanings = role_meanings(among)
    flags: list[Flag] = []
    for word in words:
        if word not in meanings:
            flags += nearest_words(rows.speaker, [word], knows)
            continue
        means = own.get(meanings[word], LEFT_OUT)
        if means != word and (means != LEFT_OUT or rows.array):
            flags.append(value_flag(rows.speaker, word, means))
    return flags
