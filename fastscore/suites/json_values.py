"""JSON values as columns: the kind of each, the place of its bytes, and the name of its place.

Columns of JSON texts become `JsonValues`. Members of objects and elements of arrays are
`JsonValues` again, down to texts, booleans and numbers. Each value keeps its exact type. A value
that a definition cannot use is noted in `Problems` with its place, and left out.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices, Int64Array, Mask, UInt8Array
from fastscore_jit.arrow import StringColumn, string_column, texts_in_place, view_column
from fastscore_readers.fill import unescaped, value_kinds, views
from fastscore_readers.json.line_ends import count_line_ends
from fastscore_readers.json.lines import Place, find_places
from fastscore_readers.json.tokens import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    FLOAT,
    INTEGER,
    NULL,
    OBJECT,
    STRING,
    TRUE,
)
from fastscore_readers.json.walk import Shape

from fastscore.suites.declarations import ROW_SCHEMA, RejectReason, empty_rejects, rejects_of

Read = TypeVar("Read")
WHOLE_TEXT = "text without half a surrogate pair"
LONGEST_EXCERPT = 60
_WHOLE_NUMBER = "a whole number of at most 64 bits"
_READABLE_NUMBERS = "whole numbers of at most 4300 digits"

_TYPE_NAMES = {
    NULL: "null",
    FALSE: "boolean",
    TRUE: "boolean",
    INTEGER: "integer",
    FLOAT: "number",
    STRING: "string",
    ESCAPED: "string",
    ARRAY: "array",
    OBJECT: "object",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A value that the definitions cannot use: its place, what it is, what was expected."""

    field: str
    reason: RejectReason
    found: str
    expected: str


@dataclass(frozen=True, slots=True)
class Problems:
    """The first problem of each dialogue."""

    by_dialogue: dict[int, Problem] = field(default_factory=dict)

    def note(
        self,
        values: "JsonValues",
        rows: Indices,
        expected: str,
        reason: RejectReason = "wrong_type",
    ) -> None:
        """Note the values in these rows, unless their dialogue has a problem already."""
        if not len(rows):
            return
        dialogues, first = np.unique(values.dialogue[rows], return_index=True)
        for dialogue, row in zip(dialogues.tolist(), rows[first].tolist(), strict=True):
            problem = Problem(values.path(row), reason, values.describe(row), expected)
            self.by_dialogue.setdefault(dialogue, problem)

    def rejects(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of dialogues with a problem as rejects, in `REJECT_SCHEMA`."""
        if not self.by_dialogue:
            return empty_rejects()
        noted = sorted(self.by_dialogue.items())
        told = {
            name: pl.Series([getattr(problem, name) for _, problem in noted], dtype=pl.String)
            for name in ("field", "reason", "found", "expected")
        }
        return rejects_of(raw[[row for row, _ in noted]].select(*ROW_SCHEMA), **told)


@dataclass(frozen=True, slots=True)
class JsonValues:
    r"""JSON values in a buffer."""

    data: UInt8Array  # the buffer, uint8
    tags: UInt8Array  # the kind of each value, as in `fastscore_readers.json.tokens`, uint8 (n,)
    # its bytes, a string's inside its quotes, int64 (n,); meaningless where it is ``ABSENT``
    start: Int64Array
    end: Int64Array
    dialogue: Indices  # the row of its dialogue, int64 (n,)
    # names the place of a value in its line: ``turns[3].recall.items[0].content``
    path: Callable[[int], str]

    def __len__(self) -> int:
        return len(self.tags)

    @property
    def is_text(self) -> Mask:
        """Which values are strings."""
        found: Mask = (self.tags == STRING) | (self.tags == ESCAPED)
        return found

    @property
    def is_missing(self) -> Mask:
        """Which values are null or absent."""
        found: Mask = (self.tags == ABSENT) | (self.tags == NULL)
        return found

    def raw(self, row: int) -> str:
        """Return a value's JSON text."""
        if self.tags[row] == ABSENT:
            return "null"
        text = self.data[self.start[row] : self.end[row]].tobytes().decode("utf-8", "replace")
        return f'"{text}"' if self.tags[row] in (STRING, ESCAPED) else text

    def python(self, row: int) -> Any:
        """Return a value as Python's ``json`` reads it."""
        return json.loads(self.raw(row))

    def describe(self, row: int) -> str:
        """Say in a few words what a value is."""
        tag = int(self.tags[row])
        if tag == ABSENT:
            return "nothing"
        name, raw = _TYPE_NAMES[tag], self.raw(row)
        if tag in (NULL, ARRAY, OBJECT):
            return name
        return f"{name} {raw[:LONGEST_EXCERPT]}{'...' if len(raw) > LONGEST_EXCERPT else ''}"

    def where(self, keep: Mask) -> "JsonValues":
        """Return the same values, those not kept being absent."""
        return replace(self, tags=np.where(keep, self.tags, ABSENT).astype(np.uint8))

    def take(self, rows: Indices) -> "JsonValues":
        """Return the values in these rows."""
        path = self.path
        return replace(
            self,
            tags=self.tags[rows],
            start=self.start[rows],
            end=self.end[rows],
            dialogue=self.dialogue[rows],
            path=lambda row: path(int(rows[row])),
        )


def either(first: JsonValues, second: JsonValues, is_first: Mask) -> JsonValues:
    """Return values of the first of two columns of one buffer where so marked, else the second."""
    return replace(
        first,
        tags=np.where(is_first, first.tags, second.tags),
        start=np.where(is_first, first.start, second.start),
        end=np.where(is_first, first.end, second.end),
        path=lambda row: first.path(row) if is_first[row] else second.path(row),
    )


def members(values: JsonValues, keys: Sequence[str], problems: Problems) -> dict[str, JsonValues]:
    """Find members of objects by key; of equal keys the last counts."""
    found = places(values.where(values.tags == OBJECT), dict.fromkeys(keys), problems)
    return {key: found[key].values for key in keys}


@dataclass(frozen=True, slots=True)
class JsonPlaces:
    """Values at one place, and those at the places below it."""

    values: JsonValues
    owner: Indices  # for elements of arrays, and their members, the row of each one's array
    # the places of their members by key, each of as many values
    members: Mapping[str, "JsonPlaces"]
    elements: "JsonPlaces | None"  # the place of their elements, where it was asked for

    def __getitem__(self, key: str) -> "JsonPlaces":
        """Return the place of a member."""
        return self.members[key]

    @property
    def each(self) -> "JsonPlaces":
        """The place of the elements."""
        if self.elements is None:
            raise KeyError("the shape has no elements here")
        return self.elements


def places(values: JsonValues, shape: Shape, problems: Problems) -> JsonPlaces:
    """Find all that a shape wants of arrays and objects, in one walk over each."""
    container = (values.tags == ARRAY) | (values.tags == OBJECT)
    until = np.where(container, values.end, 0)
    start = np.where(container, values.start, 0)
    root, faulty = find_places(values.data, start, until, shape, is_utf8=True)
    problems.note(values, faulty, "valid JSON", "not_json")
    return _placed(values, root, np.arange(len(values)))


def _placed(values: JsonValues, place: Place, owner: Indices) -> JsonPlaces:
    """Give places names and dialogues."""
    members = {}
    for key, below in place.members.items():
        named = _at(values, below, values.dialogue, _member(values.path, key))
        members[key] = _placed(named, below, owner)
    elements = None
    if place.elements is not None:
        below = place.elements
        dialogue, path = values.dialogue[below.owner], _element(values.path, below.owner)
        elements = _placed(_at(values, below, dialogue, path), below, below.owner)
    return JsonPlaces(values, owner, members, elements)


def _at(
    values: JsonValues, place: Place, dialogue: Indices, path: Callable[[int], str]
) -> JsonValues:
    """Return the values at a place below others."""
    return JsonValues(values.data, place.tags, place.start, place.end, dialogue, path)


def _element(path: Callable[[int], str], owner: Indices) -> Callable[[int], str]:
    def element_path(row: int) -> str:
        array = int(owner[row])
        return f"{path(array)}[{row - int(np.searchsorted(owner, array))}]"

    return element_path


def _member(path: Callable[[int], str], key: str) -> Callable[[int], str]:
    return lambda row: f"{path(row)}.{key}"


def elements(values: JsonValues) -> tuple[JsonValues, Indices]:
    """Find the elements of arrays."""
    found = places(values.where(values.tags == ARRAY), [None], Problems()).each
    return found.values, found.owner


def expect(values: JsonValues, tag: int, expected: str, problems: Problems) -> JsonValues:
    """Keep arrays or objects, and note everything else that is not falsy in Python."""
    kept = values.tags == tag
    if kept.all():
        return values
    other = np.flatnonzero(~(kept | values.is_missing))
    truthy = np.array([bool(value) for value in python_values(values, other, problems)], np.bool_)
    problems.note(values, other[truthy], expected)
    return values.where(kept)


def python_values(values: JsonValues, rows: Indices, problems: Problems) -> list[Any]:
    """Return the values in some rows as Python's ``json`` reads them.

    One with a number of more digits than Python reads is noted, and None returned for it.
    """
    found: list[Any] = []
    for row in rows.tolist():
        try:
            found.append(values.python(row))
        except ValueError:
            problems.note(values, np.array([row]), _READABLE_NUMBERS, "out_of_range")
            found.append(None)
    return found


def read_sound(
    raw: pl.DataFrame, read: Callable[[pl.DataFrame], tuple[Read, Problems]]
) -> tuple[Read, pl.DataFrame]:
    """Read rows, and once more without those that have a problem: they are rejects."""
    found, problems = read(raw)
    if problems.by_dialogue:
        found, _ = read(raw[np.setdiff1d(np.arange(raw.height), list(problems.by_dialogue))])
    return found, problems.rejects(raw)


def column_values(column: pl.Series) -> JsonValues:
    """Read a column of raw JSON texts, one a dialogue; a null is absent."""
    texts = _texts_on_one_line(column)
    return _located(column.name, texts.data, texts.offsets[:-1], texts.offsets[1:])


def line_values(column: pl.Series) -> JsonValues:
    """Read a column of raw JSON texts of lines, one a dialogue, where it was read if possible."""
    placed = texts_in_place(column)
    return column_values(column) if placed is None else _located(column.name, *placed)


def checked_values(column: pl.Series, problems: Problems) -> JsonValues:
    """Read a column as `column_values` does; what is not valid JSON is noted, and absent."""
    texts = _texts_on_one_line(column)
    begin, end = texts.offsets[:-1], texts.offsets[1:]
    values = _located(column.name, texts.data, begin, end)
    _, faulty = find_places(texts.data, begin, end, None, is_utf8=True)
    problems.note(values, faulty, "valid JSON", "not_json")
    valid = np.ones(len(values), np.bool_)
    valid[faulty] = False
    return values.where(valid)


def _texts_on_one_line(column: pl.Series) -> StringColumn:
    """Make line ends spaces: inside JSON they can only be white space between values."""
    texts = column.fill_null("")
    found = string_column(column.name, texts)
    if not count_line_ends(found.data):
        return found
    for end in "\n\r":
        texts = texts.str.replace_all(end, " ", literal=True)
    return string_column(column.name, texts)


def _located(name: str, data: UInt8Array, begin: Indices, until: Indices) -> JsonValues:
    tags, start, end = value_kinds(data, begin, until)
    return JsonValues(data, tags, start, end, np.arange(len(tags)), lambda _: name)


def texts(values: JsonValues, problems: Problems, *, or_empty: bool = False) -> pl.Series:
    """Return strings as a String column, null (or empty) where a value is none.

    A lone surrogate, which no file can contain, is noted.
    """
    present = values.is_text
    if not present.any():
        nothing = "" if or_empty else None
        return pl.Series("", [nothing], dtype=pl.String).new_from_index(0, len(values))
    out = np.zeros((len(values), 4), np.int32)
    views(values.data, np.where(values.tags == STRING, values.start, -1), values.end, 0, out)
    rows = np.flatnonzero(values.tags == ESCAPED)
    data = [values.data]
    if len(rows):
        plain, start, end = unescaped(values.data, values.start[rows], values.end[rows])
        halved = end < 0
        problems.note(values, rows[halved], WHOLE_TEXT, "lone_surrogate")
        of_row, until = np.full(len(values), -1), np.full(len(values), -1)
        of_row[rows[~halved]], until[rows[~halved]] = start[~halved], end[~halved]
        views(plain, of_row, until, 1, out)
        present[rows[halved]] = False
        data.append(plain)
    return string_views(None if or_empty else present, out, data)


def raw_texts(values: JsonValues) -> pl.Series:
    """Return objects, arrays, numbers and truth values as their JSON text; all else is null."""
    present = ~values.is_text & ~values.is_missing
    out = np.zeros((len(values), 4), np.int32)
    views(values.data, np.where(present, values.start, -1), values.end, 0, out)
    return string_views(present, out, (values.data,))


def texts_between(data: UInt8Array, start: Indices, end: Indices) -> pl.Series:
    """Make a String column of ranges of bytes, without copying them."""
    out = np.zeros((len(start), 4), np.int32)
    views(data, start, end, 0, out)
    return string_views(None, out, (data,))


def string_views(
    present: Mask | None, out: npt.NDArray[np.int32], data: Sequence[UInt8Array]
) -> pl.Series:
    """Make a column of views; without ``present`` it has no nulls."""
    some = present is not None and not present.all()
    return pl.Series(view_column(present if some else None, out, data))


def expect_texts(values: JsonValues, problems: Problems, *, or_empty: bool) -> pl.Series:
    """Return strings, null (or empty) where a value is missing; note values of other types."""
    problems.note(values, np.flatnonzero(~values.is_text & ~values.is_missing), "a string")
    return texts(values, problems, or_empty=or_empty)


def python_texts(values: JsonValues, problems: Problems, *, falsy_is_empty: bool) -> pl.Series:
    """Return what Python's ``str`` makes of each value, or of ``value or ""``.

    A missing value gives the empty text or, where falsy values keep their text, null.
    """
    found = texts(values, problems, or_empty=falsy_is_empty)
    rows = np.flatnonzero(~values.is_text & ~values.is_missing)
    if not len(rows):
        return found
    python = python_values(values, rows, problems)
    return found.scatter(rows, [str((one or "") if falsy_is_empty else one) for one in python])


def booleans(values: JsonValues, problems: Problems) -> Mask:
    """Return which values Python counts as true."""
    true: Mask = values.tags == TRUE
    other = np.flatnonzero(~values.is_missing & ~true & (values.tags != FALSE))
    true[other] = [bool(value) for value in python_values(values, other, problems)]
    return true


def whole_numbers(values: JsonValues, problems: Problems) -> Indices:
    """Return what Python's ``int`` makes of each value, 0 where it is missing."""
    plain = values.tags == INTEGER
    read = raw_texts(values.where(plain)).cast(pl.Int64, strict=False)
    problems.note(values, np.flatnonzero(plain & read.is_null().to_numpy()), _WHOLE_NUMBER)
    found = read.fill_null(0).to_numpy(writable=True)
    for row in np.flatnonzero(~values.is_missing & ~plain).tolist():
        try:
            found[row] = int(values.python(row))
        except (TypeError, ValueError, OverflowError):
            problems.note(values, np.array([row]), _WHOLE_NUMBER)
    return found
