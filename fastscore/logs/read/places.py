"""Byte ranges of columns' values in a block: wanted keys, found values, values of CSV cells."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Int64Array, Mask, UInt8Array
from fastscore_jit.arrow import arrow_column, view_column
from fastscore_readers.fill import (
    CELLS,
    FULL_CELLS,
    PLACES,
    TEXT,
    TEXT_OR_WHOLE,
    WHOLE,
    Filled,
    LineScan,
)
from fastscore_readers.json import located_values
from fastscore_readers.json.tokens import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    FLOAT,
    INTEGER,
    NULL,
    OBJECT,
    SPACE,
    STRING,
    TRUE,
)

from fastscore.logs.inputs.files import Format
from fastscore.logs.integrity.rejects import FOUND_CHARACTERS, cut
from fastscore.suites.declarations import Column, ColumnKind, Source


def buffer_series(kind: str, valid: Mask, *buffers: npt.NDArray[Any]) -> pl.Series:
    """Make a column of Arrow buffers without copying, null where invalid."""
    if kind == "string_view":
        views, *data = buffers
        return pl.Series(view_column(valid, views.view(np.int32).reshape(-1, 4), data))
    bits = np.packbits(valid, bitorder="little")
    return pl.Series(arrow_column(kind, valid.size, [bits, *buffers]))


def texts_at(data: UInt8Array, starts: Int64Array, ends: Int64Array, valid: Mask) -> pl.Series:
    """Make a column of the UTF-8 at some ranges without copying, null where invalid."""
    views = np.zeros((valid.size, 4), np.int32)
    located_values.views(data, np.where(valid, starts, -1), ends, 0, views)
    return buffer_series("string_view", valid, views, data)


_NUMBER = r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_FORMS = {
    INTEGER: "[+-]?[0-9]+",
    FLOAT: f"[+-]?(?:{_NUMBER}|(?i-u:nan|inf|infinity))",
    TRUE: "(?i-u:true)",
    FALSE: "(?i-u:false)",
}


@dataclass(frozen=True, slots=True)
class Places:
    """Type and byte range of one column's value in every row; see `LineScan`.

    ``filled`` is the column itself, if all its values have its type.
    """

    syntax: Format
    data: UInt8Array
    tags: UInt8Array
    starts: Int64Array
    ends: Int64Array
    filled: Filled | None = None
    values: pl.Series | None = None  # the column of a table, if all its values have its type

    @property
    def is_table(self) -> bool:
        """Whether texts are cells, which have no quotes and escapes of JSON."""
        return self.syntax in ("csv", "parquet")

    def raw(self, row: int) -> bytes:
        """Return the bytes of a row's value, with the quotes of strings."""
        quotes = 1 if self.tags[row] in (STRING, ESCAPED) and not self.is_table else 0
        return self.data[self.starts[row] - quotes : self.ends[row] + quotes].tobytes()

    def at(self, rows: Int64Array) -> "Places":
        """Return the values of some rows."""
        filled = self.filled
        if filled is not None:
            filled = replace(filled, values=filled.values[rows], valid=filled.valid[rows])
        return replace(
            self,
            tags=self.tags[rows],
            starts=self.starts[rows],
            ends=self.ends[rows],
            filled=filled,
        )

    def unescaped(self, rows: Int64Array) -> tuple[UInt8Array, Int64Array, Int64Array]:
        """Return the texts of some rows' strings: bytes, starts, ends; the end is -1 if invalid."""
        if not self.is_table:
            return located_values.unescaped(self.data, self.starts[rows], self.ends[rows])
        texts = [self.raw(row) for row in rows.tolist()]
        if self.syntax == "csv":
            texts = [text.replace(b'""', b'"') for text in texts]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        return np.frombuffer(b"".join(texts), np.uint8), ends - np.diff(ends, prepend=0), ends


def wanted_keys(columns: Sequence[Column]) -> tuple[bytes, ...]:
    """List the names and aliases of some columns, each once."""
    names = (name for column in columns for name in column.keys)
    return tuple(dict.fromkeys(name.encode() for name in names))


def fills(columns: Sequence[Column], *, cells_of: Sequence[str] | None = None) -> dict[bytes, int]:
    """Return the values to fill directly into Arrow columns: texts, integers.

    Of cells, whose columns in the dialogue's key are given, only texts: some without empty ones.
    """
    kinds: dict[bytes, int] = {}
    for column in columns:
        kind, is_text = PLACES, column.kind == "text"
        if cells_of is not None:
            kind = CELLS if is_text and column.name not in cells_of else FULL_CELLS
            kind = kind if column.kind in ("text", "json") else PLACES
        elif is_text:
            kind = TEXT_OR_WHOLE if "integer" in column.accepts else TEXT
        elif column.kind == "integer":
            kind = WHOLE
        for name in column.keys:
            # two columns may read one name
            if kinds.setdefault(name.encode(), kind) != kind:
                kinds[name.encode()] = PLACES
    return kinds


def array_key(source: Source) -> bytes | None:
    """Return the key of the column that takes whole arrays."""
    taker = next((each for each in source.columns if each.name == source.array_column), None)
    return None if taker is None else taker.keys[0].encode()


def places(
    scan: LineScan,
    keys: tuple[bytes, ...],
    column: Column,
    *,
    names_dialogue: bool = False,
) -> Places:
    """Find a column's values: by its own name if present, else by its aliases in order."""
    numbers = [keys.index(name.encode()) for name in column.keys]
    there = [key for key in numbers if scan.tags[key].any()]
    first, *others = there or numbers[:1]
    syntax, filled = scan.syntax, None if others else _taken_as_is(scan, first)
    if filled is not None or not there:
        nowhere = np.zeros(scan.line.size, np.int64)
        return Places(syntax, scan.data, scan.tags[first], nowhere, nowhere, filled=filled)
    bytes_of = [scan.value_bytes(key) for key in (first, *others)]
    tags, (starts, ends) = scan.tags[first], bytes_of[0]
    for other, (other_starts, other_ends) in zip(others, bytes_of[1:], strict=True):
        absent = tags == ABSENT
        tags = np.where(absent, scan.tags[other], tags)
        starts = np.where(absent, other_starts, starts)
        ends = np.where(absent, other_ends, ends)
    found = Places(syntax, scan.data, tags, starts, ends)
    return spelled_cells(found, column.kind, names_dialogue) if syntax == "csv" else found


def _taken_as_is(scan: LineScan, key: int) -> Filled | None:
    """Return the filled column of a key's values, if it needs no conversion."""
    filled = scan.filled.get(key)
    return None if filled is None or filled.odd else filled


def spelled_cells(found: Places, kind: ColumnKind, names_dialogue: bool = False) -> Places:
    """Set cells' types by their contents. Empty cells are null, except plain texts."""
    tags, starts, ends = found.tags, found.starts, found.ends
    if kind not in ("text", "json"):
        tags, starts, ends = parse_spellings(found.data, tags, starts, ends)
    if kind != "text" or names_dialogue:
        empty = (tags != ABSENT) & (starts == ends)
        tags = np.where(empty, NULL, tags).astype(np.uint8)
    return replace(found, tags=tags, starts=starts, ends=ends)


def parse_spellings(
    data: UInt8Array, tags: UInt8Array, starts: Int64Array, ends: Int64Array
) -> tuple[UInt8Array, Int64Array, Int64Array]:
    """Return which cells of CSV contain a boolean or a number."""
    texts = texts_at(data, starts, ends, tags == STRING)
    found, starts, ends = tags.copy(), starts.copy(), ends.copy()
    for tag, form in _FORMS.items():
        unknown = found == STRING
        if unknown.any():
            spells = texts.str.contains(rf"^[ \t]*{form}[ \t]*$").fill_null(False).to_numpy()
            found[unknown & spells] = tag
    rows = np.flatnonzero(found != tags)
    spaced = rows[(data[starts[rows]] <= SPACE) | (data[ends[rows] - 1] <= SPACE)]
    after = texts.gather(spaced).str.strip_chars_start(" \t")
    starts[spaced] = ends[spaced] - after.str.len_bytes().to_numpy()
    ends[spaced] = starts[spaced] + after.str.strip_chars_end(" \t").str.len_bytes().to_numpy()
    starts[rows] += data[starts[rows]] == ord("+")
    return found, starts, ends


def describe(found: Places, row: int) -> str:
    """Describe a row's value."""
    tag = int(found.tags[row])
    if tag == ABSENT:
        return "absent"
    if tag == NULL and found.syntax != "csv":
        return "null"
    text = cut(found.raw(row)[: 8 * FOUND_CHARACTERS].decode(errors="replace"), FOUND_CHARACTERS)
    if found.syntax == "csv":
        return f"cell {text!r}"
    if tag in (NULL, FALSE, TRUE):
        return text
    kinds = {INTEGER: "integer", FLOAT: "number", ARRAY: "array", OBJECT: "object"}
    return f"{kinds.get(tag, 'string')} {text}"
