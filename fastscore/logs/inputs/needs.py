"""What a suite cannot do without, and which files have it: looked at before anything is scored.

A few rows of each file are mostly proof enough: reading ends as soon as every needed column was
seen with a value. Of a file that seems to lack one the rest is searched, as text, for its key with
a value; where that cannot be, the counts of what is read for scoring decide.
"""

import itertools
import mmap
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import zstandard

from fastscore.logs.inputs.column_map import EACH, LEFT_OUT
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.inputs.found_keys import json_type
from fastscore.logs.inputs.records import (
    Record,
    first_row,
    json_of,
    open_unpacked,
    records,
)
from fastscore.logs.inputs.similar_names import json_types
from fastscore.logs.integrity.limits import DEFAULT_LIMITS
from fastscore.suites.declarations import ALL_METRICS, Column, Source

ROWS_LOOKED_AT = 20
"""How many rows are looked at to say what shape a file has."""
MOST_ROWS_LOOKED_AT = 200
"""And how many where something that is needed does not stand in those."""
_MOST_ELEMENTS = 1000
_SEARCHED_BYTES = 1 << 20
_LONGEST_MATCH = 1 << 10


@dataclass(frozen=True, slots=True)
class Need:
    """A column and where it should stand.

    Parameters
    ----------
    name
        Its name.
    holder
        The column whose array's objects hold it, None where rows do.
    column
        Its declaration.
    """

    name: str
    holder: Column | None
    column: Column

    @property
    def place(self) -> str:
        """Its name with the array that holds it."""
        return f"{self.holder.name}{EACH}{self.name}" if self.holder else self.name


def all_columns(source: Source) -> Iterator[Need]:
    """Yield the columns of a source, arrays before what they hold."""
    for column in source.columns:
        yield Need(column.name, None, column)
        for item in column.items:
            yield Need(item.name, column, item)


def arrays_of(source: Source) -> tuple[Column, ...]:
    """Return the columns that hold arrays of objects."""
    return tuple(column for column in source.columns if column.items)


def needs_of(source: Source) -> tuple[Need, ...]:
    """Return what all metrics of a suite need, arrays before what they hold."""
    return tuple(need for need in all_columns(source) if need.column.needed_by == ALL_METRICS)


def asked_for(source: Source) -> tuple[Need, ...]:
    """Return what else the user said the place of."""
    return tuple(
        need
        for need in all_columns(source)
        if need.column.is_asked_for and need.column.needed_by != ALL_METRICS
    )


@dataclass(slots=True)
class Sight:
    """What was seen of a need in some rows.

    Parameters
    ----------
    asked
        In how many rows, or objects of an array, it should stand.
    keyed
        In how many of them one of its keys stands, null or not.
    given
        In how many it has a value.
    known
        The words that the suite expects or knows and that stand somewhere.
    words
        Words that it does not know, with their numbers.
    any_expected
        Whether one of the words stands, or may stand behind, of which the suite expects any.
    unusable
        Values that reading makes null for their JSON type, by that, with their numbers.
    may_follow
        Whether it may have a value behind the rows that were looked at.
    """

    asked: int = 0
    keyed: int = 0
    given: int = 0
    known: set[str] = field(default_factory=set)
    words: dict[str, int] = field(default_factory=dict)
    any_expected: bool = False
    unusable: Counter[str] = field(default_factory=Counter)
    may_follow: bool = False

    def add(self, other: "Sight") -> None:
        """Count what was seen elsewhere as well."""
        self.asked += other.asked
        self.keyed += other.keyed
        self.given += other.given
        self.known |= other.known
        self.any_expected |= other.any_expected
        self.unusable += other.unusable
        self.may_follow |= other.may_follow
        for word, count in other.words.items():
            self.words[word] = self.words.get(word, 0) + count

    def proves(self, need: Need) -> bool:
        """Whether there is a value, and every word that is expected, or any where one is enough."""
        return (
            self.given > 0
            and self.known.issuperset(need.column.expects)
            and (self.any_expected or not need.column.expects_any)
        )


@dataclass(slots=True)
class Seen:
    """What was seen of a file.

    Parameters
    ----------
    file
        The file.
    read
        Reads its rows again.
    rows
        How many rows were looked at.
    is_whole
        Whether these are all.
    sights
        What was seen of each need, by its place; nothing of a file that begins as one before it
        that has everything.
    columns
        The declared columns of which a key stands in the first rows: the file's shape.
    given_up
        Whether no row was seen for so long that the rest was not looked at.
    """

    file: InputFile
    read: Callable[[], Iterator[Record]]
    rows: int = 0
    is_whole: bool = False
    sights: dict[str, Sight] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    given_up: bool = False

    def open(self, needs: Iterable[Need]) -> list[Need]:
        """Return the needs of which no value was seen, here or in an array."""
        given = {need.name for need in needs if self.sights[need.place].given}
        return [need for need in needs if need.name not in given]

    def unproven(self, needs: Iterable[Need]) -> list[Need]:
        """Return the needs of which there are values, but not the words that are expected."""
        sights = {need: self.sights[need.place] for need in needs}
        return [need for need, sight in sights.items() if sight.given and not sight.proves(need)]

    def lacks(self, needs: Iterable[Need]) -> list[Need]:
        """Return the needs whose keys stand in no row, though rows should have them."""
        if not self.sights:
            return []
        sights = {need: self.sights[need.place] for need in needs}
        given = {need.name for need, sight in sights.items() if sight.keyed or sight.may_follow}
        return [need for need, sight in sights.items() if sight.asked and need.name not in given]


@dataclass(slots=True)
class Known:
    """What files before have shown.

    Parameters
    ----------
    arrays
        The columns that hold arrays of objects.
    shapes
        First rows by their keys, of files that have all that is needed, and the columns of these.
    words
        By place the expected words that stand somewhere.
    """

    arrays: tuple[Column, ...]
    shapes: dict[Hashable, frozenset[str]] = field(default_factory=dict)
    words: dict[str, set[str]] = field(default_factory=dict)


def look(file: InputFile, source: Source, known: Known) -> Seen:
    """Look at a file's rows until everything that is needed was seen.

    Of a file that begins as one before it that has everything, the first row is enough.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    first = first_row(file) if known.shapes else None
    if first is not None:
        columns = known.shapes.get(_shape(first, known.arrays, file))
        if columns is not None:
            read = partial(records, file, source.array_column)
            return Seen(file, read, rows=1, columns=columns)
    given_up: list[bool] = []
    seen = look_at(
        partial(records, file, source.array_column, lambda: given_up.append(True)),
        source,
        file,
        known,
    )
    if given_up:
        seen.given_up, seen.is_whole = True, False
    return seen


def look_at(
    read: Callable[[], Iterator[Record]], source: Source, file: InputFile, known: Known
) -> Seen:
    """Look at rows, which errors say are of a file, until everything that is needed was seen."""
    source = _with_plain_paths(source) if file.format == "csv" else source
    seen = Seen(file, read)
    rows = read()
    first = next(rows, None)
    shape = None if first is None else _shape(first, arrays_of(source), file)
    if first is None or shape in known.shapes:
        seen.rows, seen.columns = int(first is not None), known.shapes.get(shape, frozenset())
        seen.is_whole = first is None
        return seen
    needs = needs_of(source)
    seen.sights = {need.place: Sight() for need in (*needs, *asked_for(source))}
    _look_at_rows(itertools.chain([first], rows), source, needs, seen)
    open_needs = seen.open(needs)
    if not seen.is_whole:
        for need in open_needs:
            sight = seen.sights[need.place]
            # all rows of such files have the same columns
            in_columns = file.format in ("csv", "parquet") and not sight.keyed
            sight.may_follow = not in_columns and may_follow(file, need)
    _look_for_words(source, needs, seen, known)
    if not open_needs and not seen.unproven(needs):
        known.shapes[shape] = seen.columns
    return seen


def _look_at_rows(
    rows: Iterable[Record], source: Source, needs: Iterable[Need], seen: Seen
) -> None:
    """Look at the first rows, and at more where something that is needed has no value in them."""
    keys: set[str] = set()
    of_cells = seen.file.format == "csv"
    open_needs = [*needs, *asked_for(source)]
    seen.is_whole = True
    for record in rows:
        if seen.rows >= ROWS_LOOKED_AT:
            open_needs = seen.open(needs)
            open_needs += [need for need in seen.unproven(needs) if need.column.expects_any]
            # what is in memory has no text to be searched
            if not open_needs or (seen.rows == MOST_ROWS_LOOKED_AT and seen.file.size):
                seen.is_whole = False
                break
        else:
            keys.update(record)
        seen.rows += 1
        for row in _rows(record, source):
            _look_at(row, source, open_needs, seen.sights, of_cells=of_cells)
    seen.columns = frozenset(column.name for column in source.columns if _is_among(column, keys))


def _look_for_words(source: Source, needs: Iterable[Need], seen: Seen, known: Known) -> None:
    """Look for words that are expected and stood in no row of this file or of one before it."""
    for need in needs:
        sight = seen.sights[need.place]
        if need.column.expects_any and not (sight.any_expected or seen.is_whole):
            sight.any_expected = _any_may_follow(seen.file, source, need.column)
        if not need.column.expects:
            continue
        before = known.words.setdefault(need.place, set())
        before |= sight.known
        for word in () if seen.is_whole else set(need.column.expects) - before:
            if _stands_in(seen.file, rb"\b%s\b" % re.escape(word.encode())):
                before.add(word)
        sight.known |= before


def may_follow(file: InputFile, need: Need) -> bool:
    """Tell whether one of a need's keys stands with a value anywhere in a file's text.

    Of what is no text, and of frames, that is not known: it may.
    """
    keys = (key.rpartition("]")[2].rpartition(".")[2] for key in need.column.keys)
    return any(
        _stands_in(file, rb'"%s\\?"\s*:\s*(?!\s|null\b)' % re.escape(key.encode())) for key in keys
    )


def _any_may_follow(file: InputFile, source: Source, column: Column) -> bool:
    """Tell whether a word of which a column expects any stands anywhere in a file's text."""
    texts = []
    for name, word in column.expects_any:
        if source.column(name).words:
            return True  # other words are meant
        end = b"" if word.endswith("*") else rb'\\?"'
        texts.append(re.escape(word.removesuffix("*").encode()) + end)
    return _stands_in(file, rb'"(?:%s)' % b"|".join(texts))


def _stands_in(file: InputFile, pattern: bytes) -> bool:
    """Tell whether a pattern stands in a file's text, unpacked."""
    if file.format not in ("json", "jsonl") or not file.size:
        return True
    with open_unpacked(file.location, file.compression) as stream:
        if file.compression == "none":
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text:
                return re.search(pattern, text) is not None
        held, searched = b"", 0
        with suppress(EOFError, OSError, zstandard.ZstdError):
            while part := stream.read(_SEARCHED_BYTES):
                searched += len(part)
                DEFAULT_LIMITS.check_unpacked(file.path, file.size, searched)
                held = held[-_LONGEST_MATCH:] + part
                if re.search(pattern, held):
                    return True
        return False


def _with_plain_paths(source: Source) -> Source:
    """Write paths as names of CSV are compared: stripped, in lower case."""
    columns = (replace(each, path=each.path.strip().lower()) for each in source.columns)
    return replace(source, columns=tuple(columns), rows=source.rows.strip().lower())


def _shape(record: Record, holders: Iterable[Column], file: InputFile) -> Hashable:
    """Return the keys of a row, and of the first object in each array."""
    arrays = []
    for column in holders:
        array = json_of(_stored(record, column)[1])
        first = array[0] if isinstance(array, list) and array else None
        arrays.append(frozenset(first) if isinstance(first, dict) else None)
    return file.format, frozenset(record), tuple(arrays)


def _is_among(column: Column, keys: set[str]) -> bool:
    """Tell whether a column's value, or what holds it, stands under one of the keys of rows."""
    return any(key in keys or key.split(".")[0].removesuffix("[]") in keys for key in column.keys)


def _rows(record: Record, source: Source) -> Iterator[Record]:
    """Yield the rows of a record: itself, or the elements of its array with what stands beside."""
    if not source.rows:
        yield record
        return
    elements = json_of(_at(record, source.rows)[1])
    if isinstance(elements, list):
        for element in elements[:_MOST_ELEMENTS]:
            yield {**record, source.rows: [element]}


def _look_at(
    row: Record,
    source: Source,
    needs: Iterable[Need],
    sights: Mapping[str, Sight],
    *,
    of_cells: bool,
) -> None:
    holders = arrays_of(source)
    arrays = {column.name: json_of(_stored(row, column)[1]) for column in holders}
    named = {item.name for column in holders for item in column.items}
    nested = any(isinstance(array, list) for array in arrays.values())
    for need in needs:
        sight = sights[need.place]
        if need.holder is not None:
            array = arrays[need.holder.name]
            for element in array[:_MOST_ELEMENTS] if isinstance(array, list) else ():
                if isinstance(element, dict):
                    _count(sight, need.column, *_stored(element, need.column))
        elif not (nested and need.name in named) and _is_asked(row, need.column, source):
            is_there, value = _stored(row, need.column)
            empty = of_cells and value == "" and need.column.kind != "text"
            of_type = need.column.otherwise != "null" or of_cells or _is_usable(value, need.column)
            if not of_type:
                sight.unusable[json_type(value)] += 1
            _count(sight, need.column, is_there, value if of_type and not empty else None)
            if need.column.expects_any and not sight.any_expected:
                sight.any_expected = _has_any(row, need.column, source)


def _has_any(row: Record, column: Column, source: Source) -> bool:
    """Tell whether one of the words stands in a row of which a column expects any."""
    for name, word in column.expects_any:
        other = source.column(name)
        found = _stored(row, other)[1]
        if isinstance(found, str):
            meant = dict(other.words).get(found, found)
            if meant == word or (word.endswith("*") and meant.startswith(word[:-1])):
                return True
    return False


def _is_usable(value: Any, column: Column) -> bool:
    """Tell whether a value is null, or of a JSON type that its column is read from."""
    # columns of frames and Parquet may hold whole numbers as reals
    return (
        value is None
        or isinstance(value, float)
        or json_type(value) in json_types(column) | set(column.accepts)
    )


def _is_asked(row: Record, column: Column, source: Source) -> bool:
    """Tell whether a column is read in a row."""
    where = column.only_where or column.needed_where
    if where is None:
        return True
    name, value = where
    other = source.column(name)
    found = _stored(row, other)[1]
    return bool(dict(other.words).get(found, found) == value) if isinstance(found, str) else False


def _count(sight: Sight, column: Column, is_there: bool, value: Any) -> None:
    meant = dict(column.words).get(value) if isinstance(value, str) else None
    if meant == LEFT_OUT:
        return
    sight.asked += 1
    sight.keyed += is_there
    if value is None:
        return
    sight.given += 1
    if (column.expects or column.knows) and isinstance(value, str):
        word = meant or value
        if word in column.expects or (column.knows and column.is_known(word)):
            sight.known.add(word)
        elif len(sight.words) < _MOST_ELEMENTS or word in sight.words:
            sight.words[word] = sight.words.get(word, 0) + 1


def _stored(row: Record, column: Column) -> tuple[bool, Any]:
    """Return whether a column's key stands in a row, and its value."""
    is_there = False
    for key in column.keys:
        at_key, value = _at(row, key)
        is_there |= at_key
        if value is not None:
            return True, value
    return is_there, None


def _at(row: Record, path: str) -> tuple[bool, Any]:
    """Return whether a path leads anywhere in a row, and where to."""
    if path in row:
        return True, row[path]
    array, each, inner = path.partition(EACH)
    if each:
        elements = json_of(_at(row, array)[1])
        if isinstance(elements, list) and elements and isinstance(elements[0], dict):
            return _at(elements[0], inner)
        return False, None
    head, dot, rest = path.partition(".")
    inside = json_of(row.get(head)) if dot else None
    return _at(inside, rest) if isinstance(inside, dict) else (False, None)
