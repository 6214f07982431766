"""The columns of a suite and where they should be, and what sampled rows show of them."""

import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastscore.logs.inputs.chats import counted_rows
from fastscore.logs.inputs.column_map import EACH, LEFT_OUT
from fastscore.logs.inputs.found_keys import json_type, json_types
from fastscore.logs.inputs.records import Record, json_of
from fastscore.suites.declarations import ALL_METRICS, Column, Source


@dataclass(frozen=True, slots=True)
class RequiredColumn:
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


def all_columns(source: Source) -> Iterator[RequiredColumn]:
    """Yield the columns of a source, arrays before what they hold."""
    for column in source.columns:
        yield RequiredColumn(column.name, None, column)
        for item in column.items:
            yield RequiredColumn(item.name, column, item)


def arrays_of(source: Source) -> tuple[Column, ...]:
    """Return the columns that hold arrays of objects."""
    return tuple(column for column in source.columns if column.items)


def needs_of(source: Source) -> tuple[RequiredColumn, ...]:
    """Return what all metrics of a suite need, arrays before what they hold."""
    return tuple(need for need in all_columns(source) if need.column.needed_by == ALL_METRICS)


def list_asked_for(source: Source) -> tuple[RequiredColumn, ...]:
    """Return what else the user said the place of."""
    return tuple(
        need
        for need in all_columns(source)
        if need.column.path
        and not source.asked_for.isdisjoint((need.name, need.place))
        and need.column.needed_by != ALL_METRICS
    )


_MOST_ELEMENTS = 1000


@dataclass(slots=True)
class ColumnSample:
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
        Whether one of the words stands, or may stand after, of which the suite expects any.
    unusable
        Values that reading makes null for their JSON type, by that, with their numbers.
    may_follow
        Whether it may have a value after the rows that were looked at.
    """

    asked: int = 0
    keyed: int = 0
    given: int = 0
    known: set[str] = field(default_factory=set)
    words: dict[str, int] = field(default_factory=dict)
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
        for word, count in other.words.items():
            self.words[word] = self.words.get(word, 0) + count

    def proves(self, need: RequiredColumn) -> bool:
        """Whether there is a value, and every word that is expected, or any where one is enough."""
        return (
            self.given > 0
            and self.known.issuperset(need.column.expects)
            and (self.any_expected or not need.column.expects_any)
        )


def is_among(column: Column, keys: Container[str]) -> bool:
    """Tell whether a column's value, or what holds it, stands under one of the keys of rows."""
    return any(key in keys or key.split(".")[0].removesuffix("[]") in keys for key in column.keys)


def rows_of(record: Record, source: Source) -> Iterator[Record]:
    """Yield the rows of a record: itself, or the elements of its array with what stands beside."""
    if source.chat is not None:
        yield from counted_rows(record, source)
        return
    if not source.rows:
        yield record
        return
    elements = json_of(_value_at(record, source.rows)[1])
    if isinstance(elements, list):
        for element in elements[:_MOST_ELEMENTS]:
            yield {**record, source.rows: [element]}


def count_occurrences(
    row: Record,
    source: Source,
    needs: Iterable[RequiredColumn],
    occurrences: Mapping[str, ColumnSample],
    *,
    of_cells: bool,
) -> None:
    """Add what a row shows of needs to what was seen of them; empty cells show no value."""
    holders = arrays_of(source)
    arrays = {column.name: json_of(stored(row, column)[1]) for column in holders}
    named = {item.name for column in holders for item in column.items}
    nested = any(isinstance(array, list) for array in arrays.values())
    for need in needs:
        counts = occurrences[need.place]
        if need.holder is not None:
            for element in _objects_of(arrays[need.holder.name]):
                _count(counts, need.column, *stored(element, need.column))
        elif not (nested and need.name in named) and _is_asked(row, need.column, source):
            is_there, value = stored(row, need.column)
            empty = of_cells and value == "" and need.column.kind != "text"
            of_type = need.column.otherwise != "null" or of_cells or _is_usable(value, need.column)
            if not of_type:
                counts.unusable[json_type(value)] += 1
            _count(counts, need.column, is_there, value if of_type and not empty else None)
            if need.column.expects_any and not counts.any_expected:
                counts.any_expected = _has_any(row, need.column, source)


def _objects_of(array: Any) -> list[Record]:
    """Return the objects in an array; one of texts or arrays lacks all that they should have."""
    elements = array[:_MOST_ELEMENTS] if isinstance(array, list) else []
    return [each for each in elements if isinstance(each, dict)] or [
        {} for each in elements if isinstance(each, list | str)
    ]


def _has_any(row: Record, column: Column, source: Source) -> bool:
    """Tell whether one of the words stands in a row of which a column expects any."""
    for name, word in column.expects_any:
        other = source.column(name)
        found = stored(row, other)[1]
        if isinstance(found, str):
            meant = dict(other.value_map).get(found, found)
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
    found = stored(row, other)[1]
    return (
        bool(dict(other.value_map).get(found, found) == value) if isinstance(found, str) else False
    )


def _count(counts: ColumnSample, column: Column, is_there: bool, value: Any) -> None:
    meant = dict(column.value_map).get(value) if isinstance(value, str) else None
    if meant == LEFT_OUT:
        return
    counts.asked += 1
    counts.keyed += is_there
    if value is None:
        return
    counts.given += 1
    if isinstance(value, int) and column.expects:
        value = json.dumps(value)  # a word that the suite does not know
    if (column.expects or column.allowed_values) and isinstance(value, str):
        word = meant or value
        if word in column.expects or (column.allowed_values and column.is_known(word)):
            counts.known.add(word)
        elif len(counts.words) < _MOST_ELEMENTS or word in counts.words:
            counts.words[word] = counts.words.get(word, 0) + 1


def stored(row: Record, column: Column) -> tuple[bool, Any]:
    """Return whether a column's key stands in a row, and its value."""
    is_there = False
    for key in column.keys:
        at_key, value = _value_at(row, key)
        is_there |= at_key
        if value is not None:
            return True, value
    return is_there, None


def _value_at(row: Record, path: str) -> tuple[bool, Any]:
    """Return whether a path leads anywhere in a row, and where to."""
    if path in row:
        return True, row[path]
    array, each, inner = path.partition(EACH)
    if each:
        elements = json_of(_value_at(row, array)[1])
        if isinstance(elements, list) and elements and isinstance(elements[0], dict):
            return _value_at(elements[0], inner)
        return False, None
    head, dot, rest = path.partition(".")
    inside = json_of(row.get(head)) if dot else None
    return _value_at(inside, rest) if isinstance(inside, dict) else (False, None)
