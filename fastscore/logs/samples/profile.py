"""What sampled rows have at each key, and what that shows of a suite's columns."""

import itertools
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastscore.errors import listed
from fastscore.logs.inputs.column_map import EACH, LEFT_OUT
from fastscore.logs.inputs.document_values import first_at, is_time, json_of
from fastscore.logs.inputs.near_names import is_of_reply, nearest, role_meanings, side_of
from fastscore.logs.integrity.rejects import cut
from fastscore.suites.chats import ASSISTANT_ROLE, USER_ROLE
from fastscore.suites.declarations import ALL_METRICS, Column, Source

ROWS_SAMPLED, MOST_ROWS_SAMPLED = 20, 200
"""How many rows of a file show its shape, and how many if a required column is in none of those."""
HEAD_ROWS = 1000
"""How many rows of a large file `inspect` looks at."""
MOST_KEYS = 10_000
SHOWN = 8
"""How many keys, words or files a message lists."""
SHOWN_CHARACTERS = 40
"""How much of a text a message shows."""
MOST_ELEMENTS = 1000
MOST_WORDS = 10_000
_DEEPEST, _WORD_CHARACTERS, _WORD_LETTERS = 5, 40, 5
_ROWS_AT_ONCE = 100
MOST_FIELDS = 30
"""From how many keys on those of an object may be ids."""
ANY_KEY = "*"
"""In a path, the keys of an object that are ids."""
_MOST_SPEAKERS = 8
_MOST_COMPARED = 2_000
_PLACE = re.compile(r"(^|\.)\d+(\.|$)")
"""In a path, a key that is the number of one of several."""
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\[\])?")
_DOT = re.compile(r"(\[\])?\.")
_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
LEAST_CHARACTERS = 20
"""Shorter messages, such as "Yes, please.", are said more than once."""
KINDS = {
    "text": "strings",
    "integer": "integers",
    "number": "numbers",
    "boolean": "booleans",
    "json": "objects or arrays",
}
"""What messages call the values of a column, by its kind."""

_MAY_OPEN = tuple("[{ \t\r\n")
"""How JSON text of an array or an object begins."""

Record = dict[str, Any]
"""A row, as Python objects."""
Wanted = Mapping[str, Collection[str]] | None
"""The keys that are looked at, by the path before them; None for all."""


_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of scripts without spaces: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""


def is_said(value: Any) -> bool:
    """Tell whether a value is a text of several words, which not every script parts by spaces."""
    return isinstance(value, str) and (
        len(value.split()) > 1 or (len(value) > _WORD_LETTERS and bool(_UNSPACED.search(value)))
    )


@dataclass(slots=True)
class KeyProfile:
    """What a key has: in how many objects it is, null or not, and its other values.

    ``types`` counts these by JSON type, ``words`` texts, integers and booleans among them,
    ``changes`` how many of these differ from the one before. ``elements`` counts the elements of
    arrays.
    """

    count: int = 0
    nulls: int = 0
    types: Counter[str] = field(default_factory=Counter)
    example: Any = None
    words: Counter[str] = field(default_factory=Counter)
    changes: int = 0
    elements: int = 0

    @property
    def takes_turns(self) -> bool:
        """Whether few words follow each other in turn, as those for speakers do."""
        n_words = len(self.words)
        # more than two numbers count turns
        most = _MOST_SPEAKERS if "string" in self.types else 2
        are_few = n_words <= most and n_words < self.words.total()
        return are_few and self._change_often and not any(map(is_time, self.words))

    @property
    def may_take_turns(self) -> bool:
        """Whether few values change so often that they may tell speakers, also three numbers."""
        return 2 * len(self.words) <= self.words.total() and self._change_often

    @property
    def _change_often(self) -> bool:
        """Whether these are several words, most of which differ from the one before."""
        are_words = self.types.keys() <= {"string", "integer", "boolean"} and not self.are_texts
        return are_words and len(self.words) > 1 and self.words.total() < 2 * self.changes

    @property
    def names_speakers(self) -> bool:
        """Whether the values say who speaks."""
        return 1 < len(self.words) <= _MOST_SPEAKERS and not {USER_ROLE, ASSISTANT_ROLE}.isdisjoint(
            role_meanings(self.words).values()
        )

    @property
    def tells_speakers(self) -> bool:
        """Whether the values say who speaks, by words or by what is true or false in turn."""
        return self.names_speakers or (self.takes_turns and self.types["boolean"] > 0)

    @property
    def are_texts(self) -> bool:
        """Whether the values are what somebody says: texts, most of them of several words."""
        spoken = sum(n for text, n in self.words.items() if is_said(text))
        are_many = self.types.keys() == {"string"} and 2 * spoken > self.words.total()
        is_title = len(self.words) == 1 < self.words.total()
        # times have several words, too
        return are_many and not is_title and not is_time(self.example)


@dataclass(slots=True)
class Profile:
    """What rows have at each key.

    ``meta.text`` is a key of the object ``meta``, ``turns[].content`` one of the objects in the
    array ``turns``. Of very many keys there are the first `MOST_KEYS`. ``where`` has the profiles
    of rows with a word in a column, by both.
    """

    rows: int = 0
    keys: dict[str, KeyProfile] = field(default_factory=dict)
    where: dict[tuple[str, str], "Profile"] = field(default_factory=dict)

    def add(self, rows: Sequence[Record], deepest: int = _DEEPEST, wanted: Wanted = None) -> None:
        """Count what is in rows, or only what is wanted."""
        self.rows += len(rows)
        self._count(rows, "", deepest - 1, wanted)

    def _count(self, items: Sequence[Record], prefix: str, deepest: int, wanted: Wanted) -> None:
        """Count what objects of one place have, a key at a time."""
        if wanted is not None and prefix not in wanted:
            return
        for name, found in _by_key(items, wanted and wanted[prefix]):
            path = f"{prefix}{name}"
            key = self.keys.get(path)
            if key is None:
                if len(self.keys) == MOST_KEYS:
                    continue
                key = self.keys[path] = KeyProfile()
            values = [
                json_of(value) if type(value) is str and value[:1] in _MAY_OPEN else value
                for value in found
                if value is not None
            ]
            key.count += len(found)
            key.nulls += len(found) - len(values)
            if key.example is None and values:
                key.example = values[0]
            for kind, number in Counter(map(type, values)).items():
                key.types[_TYPES.get(kind, kind.__name__)] += number
                of_kind: list[Any] = [value for value in values if type(value) is kind]
                if issubclass(kind, str | int):
                    words = [str(w).lower() if w is True or w is False else str(w) for w in of_kind]
                    key.changes += sum(map(operator.ne, words, words[1:]))
                    is_full = len(key.words) >= MOST_WORDS
                    key.words.update((w for w in words if w in key.words) if is_full else words)
                elif issubclass(kind, dict) and deepest:
                    self._count(of_kind, f"{path}.", deepest - 1, wanted)
                elif issubclass(kind, list):
                    objects, n_elements = _elements_of(of_kind)
                    key.elements += n_elements
                    if deepest and objects:
                        self._count(objects, path + EACH, deepest - 1, wanted)

    def below(self, array: str) -> dict[str, KeyProfile]:
        """Return the keys of an array's objects, by their paths from there; of rows for ''."""
        prefix = array + EACH if array else ""
        return {
            path.removeprefix(prefix): found
            for path, found in self.keys.items()
            if path.startswith(prefix) and EACH not in path.removeprefix(prefix)
        }

    def around(self, source: Source, holder: Column | None = None) -> dict[str, KeyProfile]:
        """Return the keys beside which a column stands, by the paths that a map names them by."""
        if holder is not None:
            arrays = (self.below(key) for key in holder.keys)
            return next((keys for keys in arrays if keys), {})
        held = [source.rows]
        if source.chat is not None and not source.chat.rows.array:
            held = [path for paths in source.chat.layout.turns for path in paths]
        inside = [self.below_line(array) for array in held]
        return {path: key for keys in (*inside, self.below("")) for path, key in keys.items()}

    def below_line(self, array: str) -> dict[str, KeyProfile]:
        """Return the keys of an array's objects by their paths from the line; of no array none."""
        inside = self.below(array) if array else {}
        return {array + EACH + path: key for path, key in inside.items()}

    @property
    def arrays(self) -> tuple[str, ...]:
        """The paths of arrays of objects."""
        return tuple(dict.fromkeys(path.rpartition(EACH)[0] for path in self.keys if EACH in path))


def profile_of(rows: Iterable[Record], limit: int = HEAD_ROWS) -> Profile:
    """Count what the first rows have at each key."""
    found, rows = Profile(), itertools.islice(rows, limit)
    while part := list(itertools.islice(rows, _ROWS_AT_ONCE)):
        found.add(part)
    return found


def _by_key(
    items: Sequence[Record], wanted: Collection[str] | None
) -> Iterator[tuple[str, list[Any]]]:
    """Yield the keys of objects with their values; those that are ids as one key."""
    if max(map(len, items), default=0) >= MOST_FIELDS:
        maps = [item for item in items if _is_map(item)]
        if maps and wanted is None:
            yield ANY_KEY, [value for item in maps for value in item.values()]
        items = [item for item in items if not _is_map(item)] if maps else items
    if wanted is not None:
        for name in wanted:
            yield name, [item[name] for item in items if name in item]
        return
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for item in items:
        for name, value in item.items():
            found[name] += (value,)
    yield from found.items()


def _is_map(item: Record) -> bool:
    """Tell whether an object's keys are ids: very many, with nothing but objects or arrays."""
    return len(item) >= MOST_FIELDS and {type(value) for value in item.values()} in ({dict}, {list})


def _elements_of(arrays: Sequence[list[Any]]) -> tuple[list[Record], int]:
    """Return the objects in arrays, and the number of elements.

    An array of texts or arrays lacks all that its objects should have.
    """
    objects: list[Record] = []
    n_others = 0
    for first in (array[:MOST_ELEMENTS] for array in arrays):
        inside = [each for each in first if isinstance(each, dict)]
        objects += inside
        if not inside:
            n_others += sum(isinstance(each, list | str) for each in first)
    return objects, len(objects) + n_others


@dataclass(frozen=True, slots=True)
class KeyedArrays:
    """Arrays at one place inside several keys of an object, which are ids: where it is, and these.

    ``objects`` are the values of these keys: without a place the arrays themselves.
    """

    holder: tuple[str, ...]
    place: tuple[str, ...]
    objects: Mapping[str, Any]


def keyed_arrays(value: Record, holder: tuple[str, ...] = ()) -> Iterator[KeyedArrays]:
    """Yield the arrays of objects that are at one place inside several keys of an object.

    A request and its response are no values by ids.
    """
    inside: defaultdict[tuple[str, ...], dict[str, Any]] = defaultdict(dict)
    firsts = [each[0] if isinstance(each, list) and each else None for each in value.values()]
    shapes = {frozenset(each) if isinstance(each, dict) else None for each in firsts}
    if len(shapes) == 1 and None not in shapes:
        inside[()] = value
    objects = {key: each for key, each in value.items() if isinstance(each, dict)}
    for key, each in objects.items():
        for place, _ in arrays_in(each):
            inside[place][key] = each
    for place, of_place in inside.items():
        if len(of_place) > 1 and not any(map(is_of_reply, of_place)):
            yield KeyedArrays(holder, place, of_place)
    for key, each in objects.items() if len(holder) < _DEEPEST else ():
        yield from keyed_arrays(each, (*holder, key))


def arrays_in(
    value: Record, before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield the arrays of objects in an object, by the keys that lead to them."""
    for key, inside in value.items():
        if isinstance(inside, dict) and len(before) < _DEEPEST:
            yield from arrays_in(inside, (*before, key))
        elif isinstance(inside, list) and inside and isinstance(inside[0], dict):
            yield (*before, key), inside


def shape_of(record: Record) -> Hashable:
    """Return the keys of a record that have values, and those of the first and last in arrays."""
    inside = [
        (key, *each)
        for key, value in record.items()
        if type(value) is list
        for each in value[:: max(len(value) - 1, 1)]
        if type(each) is dict
    ]
    return frozenset([*inside, *[key for key, value in record.items() if value is not None]])


def fold_maps(keys: Mapping[str, KeyProfile]) -> dict[str, KeyProfile]:
    """Return keys with the objects whose keys are ids as one key each: ``usage.*``.

    An object's keys are ids if most are UUIDs, or if there are `MOST_FIELDS` or more of them and
    each is found in less than half of the objects, on average. Those of objects are counted so from
    the beginning.
    """
    children: dict[str, list[str]] = {}
    for path in keys:
        place = path.rfind(".") + 1  # behind its last full stop, which may end an array
        children.setdefault(path[:place], []).append(path[place:])
    maps = set()
    for parent, names in children.items():
        above = keys.get(parent.removesuffix(".").removesuffix(EACH))
        largest = max(keys[parent + name].count for name in names)
        n_objects = above.types["object"] if above is not None and parent.endswith(".") else largest
        total = sum(keys[parent + name].count for name in names)
        are_rare = len(names) >= MOST_FIELDS and 2 * total < len(names) * max(n_objects, 2)
        if are_rare or 2 * sum(bool(_UUID.fullmatch(name)) for name in names) > len(names):
            maps.add(parent)
    folded: dict[str, KeyProfile] = {}
    for path, key in keys.items():
        into = folded.setdefault(_folded(path, maps), KeyProfile())
        into.count += key.count
        into.nulls += key.nulls
        into.types += key.types
        into.example = key.example if into.example is None else into.example
    return folded


def _folded(path: str, maps: Collection[str]) -> str:
    """Replace the ids in a path, outermost first."""
    for parent in sorted(maps, key=len):
        if path.startswith(parent) and path != parent:
            name, stop, rest = path[len(parent) :].partition(".")
            path = f"{parent}{ANY_KEY}{'[].' if name.endswith('[]') else stop}{rest}"
    return path


def list_keys(keys: Mapping[str, KeyProfile]) -> str:
    """List keys with their counts, the most frequent first."""
    if not keys:
        return "nothing"
    by_count = sorted(keys.items(), key=lambda item: -item[1].count)
    shown = listed([f"{path} ({key.count:,})" for path, key in by_count], SHOWN)
    before, _, more = shown.rpartition(" and ")
    return f"{before} and at least {more}" if len(keys) >= MOST_KEYS else shown


def quoted(words: Iterable[str]) -> str:
    """List words as messages quote them, the beginnings of the first."""
    return listed([repr(cut(word, _WORD_CHARACTERS)) for word in words], SHOWN)


def json_types(column: Column) -> set[str]:
    """Return the JSON types of which a column is probably made."""
    if column.items:
        return {"array"}
    if column.kind == "json":
        return {"object", "array", "string", *({"boolean"} & set(column.accepts))}
    if column.kind in ("integer", "number"):
        # what else it accepts are ways of writing a number
        return {"integer", column.kind, *({"number", "string"} & set(column.accepts))}
    if column.kind != "text":
        return {column.kind}
    # words of a closed list, such as roles, may be written as numbers
    is_closed = column.vocabulary.needed or column.vocabulary.any_needed
    return {"string", "integer"} if is_closed else {"string"}


def nearest_key(
    column: Column, keys: Mapping[str, KeyProfile], taken: Collection[str] = ()
) -> str | None:
    """Return the path of the key that a column probably is, None where none is near.

    A key whose values the column could not take is not near, nor is a reference of what a model
    wrote, nor what a model wrote of a reference, nor one of several numbered values. Of very many
    keys the first are looked at.
    """
    types, side = json_types(column), side_of(column.name)
    possible = (
        path
        for path, found in itertools.islice(keys.items(), _MOST_COMPARED)
        if not (path in taken or ANY_KEY in path or _PLACE.search(path))
        and not types.isdisjoint(found.types)
        and not (side and side_of(path) == -side)
    )
    paths = list(possible)
    # a key that was typed with a slip is nearer than other names of its column
    typed_path = column.mapped.path
    near = nearest([typed_path.rpartition(".")[2]], paths) if typed_path else None
    return near or nearest((column.name, *column.aliases), paths)


def keys_of_others(columns: Iterable[Column], name: str) -> set[str]:
    """Return the keys that columns are read by, without the column of a name."""
    return {key for column in columns if column.name != name for key in column.keys}


@dataclass(frozen=True, slots=True)
class RequiredColumn:
    """A column of a suite, or one of the objects in the array that is its holder."""

    name: str
    holder: Column | None
    column: Column

    @property
    def place(self) -> str:
        """Its name with the array that holds it."""
        return f"{self.holder.name}{EACH}{self.name}" if self.holder else self.name


def all_columns(source: Source) -> Iterator[RequiredColumn]:
    """Yield the columns of a source, arrays before what they hold."""
    for column in source.columns:
        yield RequiredColumn(column.name, None, column)
        for item in column.items:
            yield RequiredColumn(item.name, column, item)


def arrays_of(source: Source) -> tuple[Column, ...]:
    """Return the columns that hold arrays of objects."""
    return tuple(column for column in source.columns if column.items)


def required_columns(source: Source) -> tuple[RequiredColumn, ...]:
    """Return what all metrics of a suite need, arrays before what they hold."""
    return tuple(need for need in all_columns(source) if need.column.needed.by == ALL_METRICS)


def list_asked_for(source: Source) -> tuple[RequiredColumn, ...]:
    """Return what else the user said the place of."""
    return tuple(
        need
        for need in all_columns(source)
        if need.column.mapped.path
        and not source.asked_for.isdisjoint((need.name, need.place))
        and need.column.needed.by != ALL_METRICS
    )


@dataclass(slots=True)
class ColumnSample:
    """What rows show of a column: in how many of them it should be, its keys are, it has a value.

    ``known`` are the words that the suite expects or knows, ``words`` counts others. Of a column
    that expects one of several words ``any_expected`` tells whether one is there, or may follow.
    ``unusable`` counts the values that reading makes null, by JSON type.
    """

    asked: int = 0
    keyed: int = 0
    given: int = 0
    known: set[str] = field(default_factory=set)
    words: Counter[str] = field(default_factory=Counter)
    any_expected: bool = False
    unusable: Counter[str] = field(default_factory=Counter)
    may_follow: bool = False

    @property
    def by_count(self) -> list[tuple[str, int]]:
        """The words that the suite does not know, the most frequent first."""
        return sorted(self.words.items(), key=lambda item: (-item[1], item[0]))

    def add(self, other: "ColumnSample") -> None:
        """Count what was seen elsewhere as well."""
        self.asked += other.asked
        self.keyed += other.keyed
        self.given += other.given
        self.known |= other.known
        self.any_expected |= other.any_expected
        self.unusable += other.unusable
        self.may_follow |= other.may_follow
        self.words += other.words

    def proves(self, need: RequiredColumn) -> bool:
        """Whether there is a value, and every word that is expected, or any where one is enough."""
        return (
            self.given > 0
            and self.known.issuperset(need.column.vocabulary.needed)
            and (self.any_expected or not need.column.vocabulary.any_needed)
        )


def add_rows(rows: Sequence[Record], source: Source, profile: Profile) -> None:
    """Add the columns of a suite's rows to a profile, and where they need a word those by it."""
    wanted = _wanted(source)
    deepest = max(_DEEPEST, *(prefix.count(".") + 1 for prefix in wanted))
    profile.add(rows, deepest, wanted)
    heads: dict[tuple[str, str], set[str]] = {}
    for each in source.columns:
        condition = each.only_where or each.needed.where
        if condition is not None:
            of_condition = heads.setdefault(condition, set())
            of_condition |= {*each.keys, *(key.partition(".")[0] for key in each.keys)}
    for (name, word), keys in heads.items():
        column = source.column(name)
        meant = {word: word} | dict(column.mapped.words)
        words = [found for found, means in meant.items() if means == word]
        parts = [
            {key: row[key] for key in keys if key in row}
            for row in rows
            if first_at(row, column.keys) in words
        ]
        profile.where.setdefault((name, word), Profile()).add(parts, deepest, wanted)


def _wanted(source: Source) -> dict[str, list[str]]:
    """Return the keys that lead to the columns of a source; a key may contain dots."""
    wanted: dict[str, dict[str, None]] = {"": {}}
    for need in all_columns(source):
        arrays = need.holder.keys if need.holder else ("",)
        for array, key in itertools.product(arrays, need.column.keys):
            path = array + EACH + key if array else key
            begins = [0, *(dot.end() for dot in _DOT.finditer(path))]
            ends = [*(dot.start() for dot in _DOT.finditer(path)), len(path)]
            for begin, end in itertools.product(begins, ends):
                if begin < end:
                    wanted.setdefault(path[:begin], {})[path[begin:end]] = None
    return {prefix: list(names) for prefix, names in wanted.items()}


def sample_of(
    need: RequiredColumn, source: Source, profile: Profile, *, of_cells: bool
) -> ColumnSample:
    """Return what a profile shows of a column; empty cells show no value."""
    column, counts = need.column, ColumnSample()
    arrays = [profile.keys.get(key) for each in arrays_of(source) for key in each.keys]
    if need.holder is not None:
        paths = [key + EACH + item for key in need.holder.keys for item in column.keys]
        held = (profile.keys.get(key) for key in need.holder.keys)
        counts.asked = sum(key.elements for key in held if key is not None)
    elif any(key is not None and key.types["array"] for key in arrays) and any(
        need.name == item.name for each in arrays_of(source) for item in each.items
    ):
        return counts  # a column of turns is not one of rows as well
    else:
        where = column.only_where or column.needed.where
        profile = profile if where is None else profile.where.get(where, Profile())
        counts.asked, paths = profile.rows, list(column.keys)
    usable = json_types(column) | set(column.accepts) | {"number"}
    words, meant = column.vocabulary, dict(column.mapped.words)
    for key in (profile.keys[path] for path in paths if path in profile.keys):
        counts.keyed += key.count
        counts.given += key.count - key.nulls
        reads_no_others = column.items or (column.otherwise == "null" and not of_cells)
        if need.holder is None and reads_no_others:
            unusable = Counter({kind: n for kind, n in key.types.items() if kind not in usable})
            counts.unusable += unusable
            counts.given -= unusable.total()
        if of_cells and column.kind != "text":
            counts.given -= key.words[""]
        has_words = bool(words.needed or words.known or meant)
        # the readers reject a boolean in a row
        has_words &= need.holder is not None or not key.types["boolean"]
        for found, number in key.words.items() if has_words else ():
            word = meant.get(found, found)
            if word == LEFT_OUT and found in meant:
                counts.asked -= number
                counts.keyed -= number
                counts.given -= number
            elif word in words.needed or (words.known and words.includes(word)):
                counts.known.add(word)
            elif words.needed or words.known:
                counts.words[word] += number
    counts.any_expected = any(
        found == word or (word.endswith("*") and found.startswith(word[:-1]))
        for name, word in words.any_needed
        for found in _words_at(source.column(name), profile)
    )
    return counts


def _words_at(column: Column, profile: Profile) -> Iterator[str]:
    """Yield the words of a column, as the suite knows them."""
    meant = dict(column.mapped.words)
    for path in column.keys:
        if path in profile.keys:
            yield from (meant.get(word, word) for word in profile.keys[path].words)
