"""JSON values as columns: what kind each is, where its bytes stand, and what to call its place.

A column of raw JSON text becomes `JsonValues`; members of objects and elements of arrays are
`JsonValues` again, down to texts. Each value keeps its exact type, so that what a definition
cannot use is found where it stands: `expect` notes it in `Problems` and leaves it out.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import json_texts
from fastscore_kernels.arrow import string_column
from fastscore_kernels.json_paths import Place, Shape, find_places
from fastscore_kernels.json_texts import halved_strings
from fastscore_kernels.json_values import array_elements, value_kinds
from fastscore_kernels.jsonl import (
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
    count_line_ends,
)
from fastscore_kernels.located_values import EXACT, integers, unescaped, views

from fastscore.suites.base import RejectReason

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LONGEST_EXCERPT = 60
WHOLE_TEXT = "text without half a surrogate pair"

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


@dataclass(frozen=True, slots=True)
class JsonValues:
    r"""JSON values in a buffer.

    Parameters
    ----------
    data
        The buffer, uint8.
    tags
        The kind of each value, as in `fastscore_kernels.jsonl`, uint8 (n,).
    start, end
        Its bytes, a string's inside its quotes, int64 (n,); meaningless where it is ``ABSENT``. An
        empty array or object of `line_values` may have none.
    dialogue
        The row of the dialogue in which it stands, int64 (n,).
    path
        Names the place of a value in its line: ``turns[3].recall.items[0].content``.
    validated
        Whether they are known to be valid JSON, without line ends.
    numbered_escapes
        False where none of their strings is written with ``\u``.
    """

    data: Bytes
    tags: Bytes
    start: Longs
    end: Longs
    dialogue: Indices
    path: Callable[[int], str]
    validated: bool = False
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


def column_values(column: pl.Series) -> JsonValues:
    """Read a column of raw JSON texts, one a dialogue; a null is absent."""
    texts = string_column(column.name, column.fill_null(""))
    if count_line_ends(texts.data):
        texts = string_column(column.name, _on_one_line(column.fill_null("")))
    offsets = texts.offsets
    tags, start, end = value_kinds(texts.data, offsets[:-1], offsets[1:])
    name = column.name
    return JsonValues(texts.data, tags, start, end, np.arange(len(column)), lambda _: name)


def line_values(column: pl.Series) -> JsonValues:
    """Read a column of JSON texts that stood in lines of JSON, and so hold no line end.

    As `column_values`, but texts that stand in one buffer are left there.
    """
    import pyarrow as pa

    array = column.to_arrow(compat_level=pl.CompatLevel.newest())
    buffers = array.buffers()
    if column.n_chunks() != 1 or not pa.types.is_string_view(array.type):
        return column_values(column)
    views = np.frombuffer(buffers[1], np.int32).reshape(-1, 4)
    views = views[array.offset : array.offset + len(array)]
    present = column.is_not_null().to_numpy()
    size, first = np.where(present, views[:, 0], 0).astype(np.int64), views[:, 1]
    in_buffer = size > _INLINE_BYTES
    of_size_two = ~in_buffer & (size == 2)
    empty = {tag: of_size_two & (first == text) for tag, text in _EMPTY.items()}
    used = views[in_buffer, 2]
    if not len(used) or (used != used[0]).any():
        return column_values(column)
    if (~in_buffer & (size > 0) & ~empty[ARRAY] & ~empty[OBJECT]).any():
        return column_values(column)
    data, name = np.frombuffer(buffers[2 + used[0]], np.uint8), column.name
    begin = np.where(in_buffer, views[:, 3], 0).astype(np.int64)
    tags, start, end = value_kinds(data, begin, begin + np.where(in_buffer, size, 0))
    for tag, rows in empty.items():
        tags[rows] = tag
    return JsonValues(
        data, tags, start, end, np.arange(len(column)), lambda _: name, validated=True
    )


def line_parts(column: pl.Series) -> list[pl.Series]:
    """Cut a column where its texts go on in another buffer, for `line_values`."""
    import pyarrow as pa

    array = column.to_arrow(compat_level=pl.CompatLevel.newest())
    if column.n_chunks() != 1 or not pa.types.is_string_view(array.type):
        return [column]
    views = np.frombuffer(array.buffers()[1], np.int32).reshape(-1, 4)
    views = views[array.offset : array.offset + len(array)]
    rows = np.flatnonzero(column.is_not_null().to_numpy() & (views[:, 0] > _INLINE_BYTES))
    buffer = views[rows, 2]
    cuts = rows[1:][buffer[1:] != buffer[:-1]].tolist()
    if len(cuts) >= _MOST_PARTS:
        return [column]
    bounds = zip([0, *cuts], [*cuts, len(column)], strict=True)
    return [column.slice(start, stop - start) for start, stop in bounds]


_MOST_PARTS = 16
_INLINE_BYTES = 12
_EMPTY = {ARRAY: int.from_bytes(b"[]", "little"), OBJECT: int.from_bytes(b"{}", "little")}


def _on_one_line(column: pl.Series) -> pl.Series:
    """Make line ends spaces: inside JSON they can only be white space between values."""
    return column.str.replace_all("\n", " ", literal=True).str.replace_all("\r", " ", literal=True)


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
        As in `fastscore_kernels.json_paths`: a mapping of members, a list of one shape for
        elements, None for the value alone.
    problems
        Where values are noted that are not valid JSON.
    """
    container = (values.tags == ARRAY) | (values.tags == OBJECT)
    until = np.where(container, values.end, 0)
    start = np.where(container, values.start, 0)
    root, faulty = find_places(values.data, start, until, shape, validated=values.validated)
    problems.note(values, faulty, "valid JSON", "not_json")
    return _placed(values, root, np.arange(len(values)))


def _placed(values: JsonValues, place: Place, owner: Indices) -> JsonPlaces:
    """Give places names and dialogues."""
    members = {}
    for key, below in place.members.items():
        named = replace(
            values,
            tags=below.tags,
            start=below.start,
            end=below.end,
            path=_member(values.path, key),
            numbered_escapes=below.numbered_escapes,
        )
        members[key] = _placed(named, below, owner)
    elements = None
    if place.elements is not None:
        below = place.elements
        named = replace(
            values,
            tags=below.tags,
            start=below.start,
            end=below.end,
            dialogue=values.dialogue[below.owner],
            path=_element(values.path, below.owner),
            numbered_escapes=below.numbered_escapes,
        )
        elements = _placed(named, below, below.owner)
    return JsonPlaces(values, owner, members, elements)


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
    arrays = np.flatnonzero(values.tags == ARRAY)
    offsets, tags, start, end = array_elements(
        values.data, values.start[arrays], values.end[arrays]
    )
    owner = np.repeat(arrays, np.diff(offsets))
    path = _element(values.path, owner)
    found = replace(
        values, tags=tags, start=start, end=end, dialogue=values.dialogue[owner], path=path
    )
    return found, owner


def expect(values: JsonValues, tag: int, expected: str, problems: Problems) -> JsonValues:
    """Keep arrays or objects, and note everything else that is not falsy in Python."""
    other = np.flatnonzero((values.tags != tag) & ~values.is_missing)
    truthy = np.array([row for row in other.tolist() if values.python(row)], np.int64)
    problems.note(values, truthy, expected)
    return values.where(values.tags == tag)


def texts(values: JsonValues, problems: Problems) -> pl.Series:
    """Return strings as a String column, null where a value is none.

    Half of a surrogate pair, which no file could hold, is noted.
    """
    present = values.is_text
    if not present.any():
        return pl.Series("", [None], dtype=pl.String).new_from_index(0, len(values))
    out = np.zeros((len(values), 4), np.int32)
    views(values.data, np.where(values.tags == STRING, values.start, -1), values.end, 0, out)
    rows = np.flatnonzero(values.tags == ESCAPED)
    if not len(rows):
        return _string_views(present, out, (values.data,))
    plain, start, end = unescaped(values.data, values.start[rows], values.end[rows])
    halved = end < 0
    problems.note(values, rows[halved], WHOLE_TEXT, "lone_surrogate")
    of_row, until = np.full(len(values), -1), np.full(len(values), -1)
    of_row[rows[~halved]], until[rows[~halved]] = start[~halved], end[~halved]
    views(plain, of_row, until, 1, out)
    present[rows[halved]] = False
    return _string_views(present, out, (values.data, plain))


def written_texts(
    values: JsonValues, problems: Problems, *, expected: str = "a string"
) -> tuple[pl.Series, Bytes]:
    """Return the insides of strings as they are written, and how (`json_texts.PLAIN` ...).

    What is missing is the empty text; values of other types, and half of a surrogate pair, are
    noted.
    """
    present, escaped = values.is_text, values.tags == ESCAPED
    problems.note(values, np.flatnonzero(~present & ~values.is_missing), expected)
    if values.numbered_escapes:
        rows = np.flatnonzero(escaped)
        halved = halved_strings(values.data, values.start[rows], values.end[rows])
        problems.note(values, rows[halved], WHOLE_TEXT, "lone_surrogate")
    of_escaped = json_texts.NUMBERED if values.numbered_escapes else json_texts.ESCAPED
    written = np.where(escaped, of_escaped, json_texts.PLAIN).astype(np.uint8)
    out = np.zeros((len(values), 4), np.int32)
    views(values.data, np.where(present, values.start, -1), values.end, 0, out)
    return _string_views(np.ones(len(values), np.bool_), out, (values.data,)), written


def raw_texts(values: JsonValues) -> pl.Series:
    """Return objects, arrays, numbers and truth values as their JSON text; all else is null."""
    present = ~values.is_text & ~values.is_missing
    out = np.zeros((len(values), 4), np.int32)
    views(values.data, np.where(present, values.start, -1), values.end, 0, out)
    return _string_views(present, out, (values.data,))


def _string_views(present: Mask, out: npt.NDArray[np.int32], data: Sequence[Bytes]) -> pl.Series:
    import pyarrow as pa

    validity = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    buffers = [validity, pa.py_buffer(out), *(pa.py_buffer(buffer) for buffer in data)]
    return pl.Series("", pa.Array.from_buffers(pa.string_view(), len(present), buffers))


def expect_texts(
    values: JsonValues, problems: Problems, *, null: str | None, expected: str = "a string"
) -> pl.Series:
    """Return strings, with `null` where a value is missing; note values of other types."""
    problems.note(values, np.flatnonzero(~values.is_text & ~values.is_missing), expected)
    found = texts(values, problems)
    return found if null is None else found.fill_null(null)


def python_texts(values: JsonValues, problems: Problems, *, falsy_is_empty: bool) -> pl.Series:
    """Return what Python's ``str`` makes of each value, or of ``value or ""``.

    A missing value gives the empty text or, where falsy values keep their text, null.
    """
    found = texts(values, problems)
    rows = np.flatnonzero(~values.is_text & ~values.is_missing)
    if len(rows):
        python = [values.python(row) for row in rows.tolist()]
        made = [str((value or "") if falsy_is_empty else value) for value in python]
        found = found.scatter(rows, made)
    return found.fill_null("") if falsy_is_empty else found


def truths(values: JsonValues) -> Mask:
    """Return which values Python counts as true."""
    true: Mask = values.tags == TRUE
    other = np.flatnonzero(~values.is_missing & ~true & (values.tags != FALSE))
    true[other] = [bool(values.python(row)) for row in other.tolist()]
    return true


def whole_numbers(values: JsonValues, problems: Problems) -> Indices:
    """Return what Python's ``int`` makes of each value, 0 where it is missing."""
    found = np.zeros(len(values), np.int64)
    plain = np.flatnonzero(values.tags == INTEGER)
    found[plain], states = integers(values.data, values.start[plain], values.end[plain])
    problems.note(values, plain[states != EXACT], "a whole number of at most 64 bits")
    for row in np.flatnonzero(~values.is_missing & (values.tags != INTEGER)).tolist():
        try:
            found[row] = int(values.python(row))
        except (TypeError, ValueError, OverflowError):
            problems.note(values, np.array([row]), "a whole number of at most 64 bits")
    return found
