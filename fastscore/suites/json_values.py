"""JSON values as columns: what kind each is, where its bytes stand, and what to call its place.

Columns of JSON texts become `JsonValues` in `json_columns`; members of objects and elements of
arrays are `JsonValues` again, down to texts, booleans, numbers (`json_scalars`). Each value keeps
its exact type, so that what a definition cannot use is found where it stands: `expect` notes it in
`Problems` and leaves it out.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Int64Array, Mask, UInt8Array
from fastscore_readers.json.places import Place, Shape, find_places
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

from fastscore.suites.declarations import (
    REJECT_SCHEMA,
    ROW_SCHEMA,
    RejectReason,
    empty_rejects,
)

LONGEST_EXCERPT = 60
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
    """A value that the definitions cannot use: where it stands, what it is, what was expected."""

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
        fields = ("field", "reason", "found", "expected")
        told = {name: [getattr(problem, name) for _, problem in noted] for name in fields}
        return (
            raw[[row for row, _ in noted]]
            .select(*ROW_SCHEMA)
            .hstack(pl.DataFrame(told, schema=dict.fromkeys(fields, pl.String)))
            .with_columns(pl.lit(None, dtype=pl.String).alias("raw"))
            .select(*(pl.col(name).cast(dtype) for name, dtype in REJECT_SCHEMA.items()))
        )


@dataclass(frozen=True, slots=True)
class JsonValues:
    r"""JSON values in a buffer.

    Parameters
    ----------
    data
        The buffer, uint8.
    tags
        The kind of each value, as in `fastscore_readers.json.lines`, uint8 (n,).
    start, end
        Its bytes, a string's inside its quotes, int64 (n,); meaningless where it is ``ABSENT``. An
        empty array or object of `line_values` may have none.
    dialogue
        The row of the dialogue in which it stands, int64 (n,).
    path
        Names the place of a value in its line: ``turns[3].recall.items[0].content``.
    numbered_escapes
        False where none of their strings is written with ``\u``.
    """

    data: UInt8Array
    tags: UInt8Array
    start: Int64Array
    end: Int64Array
    dialogue: Indices
    path: Callable[[int], str]
    numbered_escapes: bool = True

    def __len__(self) -> int:
        return len(self.tags)

    @property
    def is_text(self) -> Mask:
        """Which values are strings."""
        found: Mask = (self.tags == STRING) | (self.tags == ESCAPED)
        return found

    @property
    def is_missing(self) -> Mask:
        """Which values are null or do not stand there."""
        found: Mask = (self.tags == ABSENT) | (self.tags == NULL)
        return found

    def raw(self, row: int) -> str:
        """Return a value's JSON text."""
        if self.tags[row] == ABSENT:
            return "null"
        text = self.data[self.start[row] : self.end[row]].tobytes().decode("utf-8", "replace")
        if not text and self.tags[row] in (ARRAY, OBJECT):
            return "[]" if self.tags[row] == ARRAY else "{}"
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


def members(values: JsonValues, keys: Sequence[str], problems: Problems) -> dict[str, JsonValues]:
    """Find members of objects by key; of equal keys the last counts.

    Parameters
    ----------
    values
        Objects; the members of anything else are absent.
    keys
        The keys that are wanted.
    problems
        Where objects are noted that are not valid JSON.

    Returns
    -------
    dict of JsonValues
        For each key as many values as there are objects.
    """
    found = places(values.where(values.tags == OBJECT), dict.fromkeys(keys), problems)
    return {key: found[key].values for key in keys}


@dataclass(frozen=True, slots=True)
class JsonPlaces:
    """Values at one place, and those at the places below it.

    Parameters
    ----------
    values
        The values.
    owner
        For elements of arrays, and their members, the row of each one's array.
    members
        The places of their members by key, each of as many values.
    elements
        The place of their elements, where it was asked for.
    """

    values: JsonValues
    owner: Indices
    members: Mapping[str, "JsonPlaces"]
    elements: "JsonPlaces | None"

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
    """Find all that a shape wants of arrays and objects, in one walk over each.

    Parameters
    ----------
    values
        Arrays and objects; nothing stands below other values.
    shape
        As in `fastscore_readers.json.places`: a mapping of members, a list of one shape for
        elements, None for the value alone.
    problems
        Where values are noted that are not valid JSON.
    """
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
    escapes = place.numbered_escapes
    return JsonValues(values.data, place.tags, place.start, place.end, dialogue, path, escapes)


def _element(path: Callable[[int], str], owner: Indices) -> Callable[[int], str]:
    def element_path(row: int) -> str:
        array = int(owner[row])
        return f"{path(array)}[{row - int(np.searchsorted(owner, array))}]"

    return element_path


def _member(path: Callable[[int], str], key: str) -> Callable[[int], str]:
    return lambda row: f"{path(row)}.{key}"


def elements(values: JsonValues) -> tuple[JsonValues, Indices]:
    """Find the elements of arrays.

    Returns
    -------
    tuple
        All elements, and for each the row of its array; anything else has no elements.
    """
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

    One with a number of more digits than Python reads is noted; None stands in its place.
    """
    found: list[Any] = []
    for row in rows.tolist():
        try:
            found.append(values.python(row))
        except ValueError:
            problems.note(values, np.array([row]), _READABLE_NUMBERS, "out_of_range")
            found.append(None)
    return found
