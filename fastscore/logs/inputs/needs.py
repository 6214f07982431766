"""What a suite cannot do without, and which files have it: looked at before anything is scored.

A few rows of each file are mostly proof enough: reading ends as soon as every needed column was
seen with a value. Only of a file that seems to lack one is the rest looked at, up to its end, so
that what is said to be absent is absent in every row.
"""

import mmap
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fastscore.logs.inputs.column_map import EACH
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.inputs.found_keys import json_type
from fastscore.logs.inputs.records import Record, json_of, records
from fastscore.logs.inputs.similar_names import json_types
from fastscore.suites.base import ALL_METRICS, Column, Source

ROWS_LOOKED_AT = 20
"""How many rows are looked at to say what shape a file has."""
_ROWS_BEFORE_SEARCH = 200
_MOST_ELEMENTS = 1000


@dataclass(frozen=True, slots=True)
class Need:
    """A column without which no metric is worth anything.

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


def needs_of(source: Source) -> tuple[Need, ...]:
    """Return what all metrics of a suite need, arrays before what they hold."""
    needs = []
    for column in source.columns:
        if column.needed_by == ALL_METRICS:
            needs.append(Need(column.name, None, column))
        needs += [
            Need(item.name, column, item) for item in column.items if item.needed_by == ALL_METRICS
        ]
    return tuple(needs)


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
        The words that the suite expects and that stand somewhere.
    words
        Words that it does not know, with their numbers.
    unusable
        Values that reading makes null for their JSON type, by that, with their numbers.
    """

    asked: int = 0
    keyed: int = 0
    given: int = 0
    known: set[str] = field(default_factory=set)
    words: dict[str, int] = field(default_factory=dict)
    unusable: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Sight") -> None:
        """Count what was seen elsewhere as well."""
        self.asked += other.asked
        self.keyed += other.keyed
        self.given += other.given
        self.known |= other.known
        self.unusable += other.unusable
        for word, count in other.words.items():
            self.words[word] = self.words.get(word, 0) + count

    def proves(self, need: Need) -> bool:
        """Whether there is a value, and every word that is expected."""
        return self.given > 0 and self.known.issuperset(need.column.expects)


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
    sights
        What was seen of each need, by its place.
    columns
        The declared columns of which a key stands in the first rows: the file's shape.
    """

    file: InputFile
    read: Callable[[], Iterator[Record]]
    rows: int
    sights: dict[str, Sight]
    columns: frozenset[str]

    def lacks(self, needs: Iterable[Need]) -> list[Need]:
        """Return the needs whose keys stand in no row, though rows should have them."""
        given = {need.name for need in needs if self.sights[need.place].keyed}
        return [need for need in needs if self.sights[need.place].asked and need.name not in given]


KnownShapes = dict[Hashable, frozenset[str]]
"""First rows by their keys, of files that have all that is needed, and the columns of these."""


def look(file: InputFile, source: Source, known: KnownShapes) -> Seen:
    """Look at a file's rows until everything that is needed was seen.

    Of a file that begins as one before it that has everything, the first row is enough.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    return look_at(lambda: records(file, source.array_column), source, file, known)


def look_at(
    read: Callable[[], Iterator[Record]], source: Source, file: InputFile, known: KnownShapes
) -> Seen:
    """Look at rows, which errors say are of a file, until everything that is needed was seen."""
    source = _with_plain_paths(source) if file.format == "csv" else source
    needs = needs_of(source)
    seen = Seen(file, read, 0, {need.place: Sight() for need in needs}, frozenset())
    keys: set[str] = set()
    open_needs = list(needs)
    shape: Hashable = None
    for record in read():
        seen.rows += 1
        if shape is None:
            shape = _shape(record, source, file)
            if shape in known:
                seen.columns = known[shape]
                return seen
        if seen.rows <= ROWS_LOOKED_AT:
            keys.update(record)
        for row in _rows(record, source) if open_needs else ():
            _look_at(row, source, open_needs, seen.sights, of_cells=file.format == "csv")
        open_needs = [need for need in open_needs if not seen.sights[need.place].proves(need)]
        if seen.rows == _ROWS_BEFORE_SEARCH:
            open_needs = [need for need in open_needs if _may_follow(file, need)]
        if not open_needs and seen.rows >= ROWS_LOOKED_AT:
            break
        if seen.rows >= ROWS_LOOKED_AT and file.format in ("csv", "parquet"):
            # such rows have the same columns all over
            open_needs = [need for need in open_needs if _has_key(record, need)]
    seen.columns = frozenset(column.name for column in source.columns if _is_among(column, keys))
    if shape is not None and all(seen.sights[need.place].proves(need) for need in needs):
        known[shape] = seen.columns
    return seen


def _with_plain_paths(source: Source) -> Source:
    """Write paths as names of CSV are compared: stripped, in lower case."""
    columns = (replace(each, path=each.path.strip().lower()) for each in source.columns)
    return replace(source, columns=tuple(columns), rows=source.rows.strip().lower())


def _shape(record: Record, source: Source, file: InputFile) -> Hashable:
    """Return the keys of a row, and of the first object in each array."""
    arrays = []
    for column in source.columns:
        if column.items:
            array = json_of(_stored(record, column)[1])
            first = array[0] if isinstance(array, list) and array else None
            arrays.append(frozenset(first) if isinstance(first, dict) else None)
    return file.format, frozenset(record), tuple(arrays)


def _is_among(column: Column, keys: set[str]) -> bool:
    """Tell whether a column's value, or what holds it, stands under one of the keys of rows."""
    return any(key in keys or key.split(".")[0].removesuffix("[]") in keys for key in column.keys)


def _has_key(record: Record, need: Need) -> bool:
    column = need.holder or need.column
    return "." in column.path or _stored(record, column)[0]


def _may_follow(file: InputFile, need: Need) -> bool:
    """Tell whether a need's keys stand anywhere in a file, written as they mostly are."""
    if file.format not in ("json", "jsonl") or file.compression != "none" or not file.size:
        return True
    keys = [key.rpartition("]")[2].rpartition(".")[2] for key in need.column.keys]
    with (
        open(file.location, "rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text,
    ):
        return any(text.find(f'"{key}"'.encode()) >= 0 for key in keys)


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
    holders = [column for column in source.columns if column.items]
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
    if column.only_where is None:
        return True
    name, value = column.only_where
    other = next(each for each in source.columns if each.name == name)
    found = _stored(row, other)[1]
    return bool(dict(other.words).get(found, found) == value) if isinstance(found, str) else False


def _count(sight: Sight, column: Column, is_there: bool, value: Any) -> None:
    sight.asked += 1
    sight.keyed += is_there
    if value is None:
        return
    sight.given += 1
    if column.expects and isinstance(value, str):
        word = dict(column.words).get(value, value)
        if word in column.expects:
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
