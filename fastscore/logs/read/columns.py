"""Columns of a block: the byte ranges of their values, and these as types that a source declares.

Common values are converted by column. Only values that are rare in logs (integers beyond 64 bits,
unusual numbers as text) are converted by Python, one by one.

Of Parquet files and frames, a String column under a ``json`` declaration is JSON text. Lists and
structs are converted to JSON. Values are accepted and rejected as in JSON Lines. A column of a type
that JSON cannot represent (bytes, dates) is refused.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Int64Array, Mask, UInt8Array
from fastscore_jit.arrow import arrow_column, string_column, view_column
from fastscore_readers import fill
from fastscore_readers.json import tokens

from fastscore.errors import InputError
from fastscore.logs.inputs.files import Format
from fastscore.logs.inputs.folders import folder_value
from fastscore.logs.inputs.frames import json_text, types_in
from fastscore.logs.integrity.rejects import FOUND_CHARACTERS, RAW_CHARACTERS, Reject, cut
from fastscore.suites.declarations import REJECT_REASONS, Column, ColumnKind, RejectReason, Source


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
    fill.views(data, np.where(valid, starts, -1), ends, 0, views)
    return buffer_series("string_view", valid, views, data)


_NUMBER = r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_FORMS = {
    tokens.INTEGER: "[+-]?[0-9]+",
    tokens.FLOAT: f"[+-]?(?:{_NUMBER}|(?i-u:nan|inf|infinity))",
    tokens.TRUE: "(?i-u:true)",
    tokens.FALSE: "(?i-u:false)",
}


@dataclass(frozen=True, slots=True)
class Places:
    """Type and byte range of one column's value in every row; see `LineScan`."""

    syntax: Format
    data: UInt8Array
    tags: UInt8Array
    starts: Int64Array
    ends: Int64Array
    values: pl.Series | None = None  # the column itself, if all its values have its type

    @property
    def is_table(self) -> bool:
        """Whether texts are cells, which have no quotes and escapes of JSON."""
        return self.syntax in ("csv", "parquet")

    def raw(self, row: int) -> bytes:
        """Return the bytes of a row's value, with the quotes of strings."""
        quotes = 1 if self.tags[row] in (tokens.STRING, tokens.ESCAPED) and not self.is_table else 0
        return self.data[self.starts[row] - quotes : self.ends[row] + quotes].tobytes()

    def at(self, rows: Int64Array) -> "Places":
        """Return the values of some rows, which are located."""
        places = {name: getattr(self, name)[rows] for name in ("tags", "starts", "ends")}
        return replace(self, **places)

    def unescaped(self, rows: Int64Array) -> tuple[UInt8Array, Int64Array, Int64Array]:
        """Return the texts of some rows' strings: bytes, starts, ends; the end is -1 if invalid."""
        if not self.is_table:
            return fill.unescaped(self.data, self.starts[rows], self.ends[rows])
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
        kind, is_text = fill.PLACES, column.kind == "text"
        if cells_of is not None:
            kind = fill.CELLS if is_text and column.name not in cells_of else fill.FULL_CELLS
            kind = kind if column.kind in ("text", "json") else fill.PLACES
        elif is_text:
            kind = fill.TEXT_OR_WHOLE if "integer" in column.accepts else fill.TEXT
        elif column.kind == "integer":
            kind = fill.WHOLE
        for name in column.keys:
            # two columns may read one name
            if kinds.setdefault(name.encode(), kind) != kind:
                kinds[name.encode()] = fill.PLACES
    return kinds


def array_key(source: Source) -> bytes | None:
    """Return the key of the column that takes whole arrays."""
    taker = next((each for each in source.columns if each.name == source.array_column), None)
    return None if taker is None else taker.keys[0].encode()


def places(
    scan: fill.LineScan,
    keys: tuple[bytes, ...],
    column: Column,
    *,
    names_dialogue: bool = False,
) -> Places:
    """Find a column's values: by its own name if present, else by its aliases in order."""
    numbers = [keys.index(name.encode()) for name in column.keys]
    there = [key for key in numbers if scan.tags[key].any()]
    first, *others = there or numbers[:1]
    syntax, values = scan.syntax, None if others else _filled_series(scan, first)
    if values is not None or not there:
        nowhere = np.zeros(scan.line.size, np.int64)
        return Places(syntax, scan.data, scan.tags[first], nowhere, nowhere, values)
    bytes_of = [scan.value_bytes(key) for key in (first, *others)]
    tags, (starts, ends) = scan.tags[first], bytes_of[0]
    for other, (other_starts, other_ends) in zip(others, bytes_of[1:], strict=True):
        absent = tags == tokens.ABSENT
        tags = np.where(absent, scan.tags[other], tags)
        starts = np.where(absent, other_starts, starts)
        ends = np.where(absent, other_ends, ends)
    found = Places(syntax, scan.data, tags, starts, ends)
    return spelled_cells(found, column.kind, names_dialogue) if syntax == "csv" else found


def _filled_series(scan: fill.LineScan, key: int) -> pl.Series | None:
    """Return a column that the scan filled; None if a value has another type."""
    filled = scan.filled.get(key)
    if filled is None or filled.odd:
        return None
    if filled.values.ndim == 1:
        return buffer_series("int64", filled.valid, filled.values)
    return buffer_series("string_view", filled.valid, filled.values, filled.texts)


def spelled_cells(found: Places, kind: ColumnKind, names_dialogue: bool = False) -> Places:
    """Set cells' types by their contents. Empty cells are null, except plain texts."""
    data, tags, starts, ends = found.data, found.tags.copy(), found.starts, found.ends
    if kind not in ("text", "json"):
        texts = texts_at(data, starts, ends, tags == tokens.STRING)
        starts, ends = starts.copy(), ends.copy()
        for tag, form in _FORMS.items():
            unknown = tags == tokens.STRING
            if unknown.any():
                spells = texts.str.contains(rf"^[ \t]*{form}[ \t]*$").fill_null(False).to_numpy()
                tags[unknown & spells] = tag
        rows = np.flatnonzero(tags != found.tags)
        spaced = rows[(data[starts[rows]] <= tokens.SPACE) | (data[ends[rows] - 1] <= tokens.SPACE)]
        after = texts.gather(spaced).str.strip_chars_start(" \t")
        starts[spaced] = ends[spaced] - after.str.len_bytes().to_numpy()
        ends[spaced] = starts[spaced] + after.str.strip_chars_end(" \t").str.len_bytes().to_numpy()
        starts[rows] += data[starts[rows]] == ord("+")
    if kind != "text" or names_dialogue:
        tags[(tags != tokens.ABSENT) & (starts == ends)] = tokens.NULL
    return replace(found, tags=tags, starts=starts, ends=ends)


def describe(found: Places, row: int) -> str:
    """Describe a row's value."""
    tag = int(found.tags[row])
    if tag == tokens.ABSENT:
        return "absent"
    if tag == tokens.NULL and found.syntax != "csv":
        return "null"
    text = cut(found.raw(row)[: 8 * FOUND_CHARACTERS].decode(errors="replace"), FOUND_CHARACTERS)
    if found.syntax == "csv":
        return f"cell {text!r}"
    if tag in (tokens.NULL, tokens.FALSE, tokens.TRUE):
        return text
    kinds = {
        tokens.INTEGER: "integer",
        tokens.FLOAT: "number",
        tokens.ARRAY: "array",
        tokens.OBJECT: "object",
    }
    return f"{kinds.get(tag, 'string')} {text}"


INTEGER_RANGE = (-(1 << 63), (1 << 63) - 1)
KINDS: dict[str, pl.DataType] = {
    "text": pl.String(),
    "integer": pl.Int64(),
    "number": pl.Float64(),
    "boolean": pl.Boolean(),
    "json": pl.String(),
}
EXPECTED = {
    "text": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "json": "a JSON value",
}
NAN_IS_NULL = ("text", "integer", "boolean")
"""The kinds of columns in which NaN is a missing value."""
_OK = 0
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Converted:
    """A column's values, and its fault codes: 1 + the reason's index in `REJECT_REASONS`, or 0."""

    values: pl.Series
    faults: UInt8Array


def convert_columns(
    located: Sequence[Places], columns: Sequence[Column], values: dict[str, pl.Series]
) -> list[Converted]:
    """Convert columns as declared, and put them into ``values``.

    Columns that are read only in some rows come last, because other columns select these rows.
    """
    converted: dict[str, Converted] = {}
    pairs = zip(located, columns, strict=True)
    for found, column in sorted(pairs, key=lambda pair: pair[1].only_where is not None):
        where = rows_where(column, values)
        converted[column.name] = convert(_masked(found, where), column, where)
        values[column.name] = converted[column.name].values
    return [converted[column.name] for column in columns]


def first_faults(columns: Iterable[Converted], n_rows: int) -> tuple[UInt8Array, Int64Array]:
    """Return the fault of each row, 0 for none, and the column of its first fault."""
    bad = np.zeros(n_rows, np.uint8)
    culprit = np.zeros(n_rows, np.int64)
    for index, column in enumerate(columns):
        fresh = (bad == 0) & (column.faults > 0)
        bad[fresh], culprit[fresh] = column.faults[fresh], index
    return bad, culprit


def _masked(found: Places, where: Mask | None) -> Places:
    """Ignore the values of rows in which a column is not read."""
    if where is None:
        return found
    values = found.values
    if values is not None:
        values = pl.select(pl.when(pl.Series(where)).then(pl.lit(values))).to_series()
    tags = np.where(where, found.tags, tokens.ABSENT).astype(np.uint8)
    return replace(found, tags=tags, values=values)


def convert(found: Places, column: Column, where: Mask | None = None) -> Converted:
    """Convert a column's values as declared, and replace the words that the column map names."""
    if column.kind in NAN_IS_NULL:
        found = _without_nan(found)
    if found.values is not None:
        converted = Converted(found.values, np.zeros(found.tags.size, np.uint8))
    else:
        converter = _CONVERTERS[column.kind] if found.tags.any() else _null_column
        converted = converter(found, column)
    faults = converted.faults
    if column.otherwise == "null":
        faults[np.isin(faults, (_fault_code("wrong_type"), _fault_code("out_of_range")))] = _OK
    if column.required:
        faults[found.tags <= tokens.NULL] = _fault_code("missing_field")
    if where is not None:
        faults[~where] = _OK
    given, values = folder_value(column), converted.values
    if given is not None:
        values = values.fill_null(pl.lit(given, values.dtype))
    if column.mapped.words:
        values = values.replace(dict(column.mapped.words))
    return Converted(values, faults)


def _without_nan(found: Places) -> Places:
    """Replace NaN by null, as other libraries write NaN for null."""
    floats = np.flatnonzero(_is_tagged(found, tokens.FLOAT))
    if not floats.size:
        return found
    values = _read(found, floats, pl.Float64()).to_numpy()
    tags = found.tags.copy()
    tags[floats[np.isnan(values)]] = tokens.NULL
    return replace(found, tags=tags)


def rows_where(column: Column, values: Mapping[str, pl.Series]) -> Mask | None:
    """Return the rows in which a column is read, by the values of earlier columns; None for all."""
    if column.only_where is None:
        return None
    name, value = column.only_where
    return (values[name] == value).fill_null(False).to_numpy()


def _fault_code(reason: RejectReason) -> int:
    return REJECT_REASONS.index(reason) + 1


def _is_tagged(found: Places, *tags: int) -> Mask:
    chosen: Mask = np.logical_or.reduce([found.tags == tag for tag in tags])
    return chosen


def _wrong_type_codes(found: Places, used: Mask) -> UInt8Array:
    """Return fault codes: wrong type for every value that is neither used nor null."""
    return np.where(used | (found.tags <= tokens.NULL), _OK, _fault_code("wrong_type")).astype(
        np.uint8
    )


def column_reject(
    column: Column, fault: int, place: tuple[str, int, int | None], found: str, raw: str = ""
) -> Reject:
    """Return the reject of a row whose value of a column has a fault."""
    reason = REJECT_REASONS[fault - 1]
    return Reject(*place, column.name, reason, found, EXPECTED[column.kind], raw)


def _null_column(found: Places, column: Column) -> Converted:
    nulls = pl.Series([None], dtype=KINDS[column.kind]).new_from_index(0, found.tags.size)
    return Converted(nulls, np.zeros(found.tags.size, np.uint8))


def _text(found: Places, column: Column) -> Converted:
    """Convert strings, and other values that the column accepts as text."""
    plain, escaped = _is_tagged(found, tokens.STRING), np.flatnonzero(found.tags == tokens.ESCAPED)
    values, broken = [], _NO_ROWS
    if escaped.size:
        data, starts, ends = found.unescaped(escaped)
        broken = escaped[ends < 0]
        values.append(_texts_of(escaped, plain.size, data, starts, ends))
    if (found.tags[~plain] > tokens.NULL).sum() > escaped.size:
        values += _accepted_as_text(found, column)
    if plain.any() or not values:
        values.append(texts_at(found.data, found.starts, found.ends, plain))
    # polars takes as long for one call as for many rows
    text = pl.select(pl.coalesce(values)).to_series() if len(values) > 1 else values[0]
    has_nulls = text.null_count() > 0
    valid = text.is_not_null().to_numpy() if has_nulls else np.ones(plain.size, np.bool_)
    faults = _wrong_type_codes(found, valid)
    faults[broken] = _fault_code("lone_surrogate")
    return Converted(text, faults)


def _texts_of(
    rows: Int64Array, n_rows: int, data: UInt8Array, starts: Int64Array, ends: Int64Array
) -> pl.Series:
    """Make a column with texts in some rows, null elsewhere and where an end is -1."""
    begins, until = np.zeros((2, n_rows), np.int64)
    valid = np.zeros(n_rows, np.bool_)
    begins[rows], until[rows], valid[rows] = starts, ends, ends >= 0
    return texts_at(data, begins, until, valid)


def _accepted_as_text(found: Places, column: Column) -> Iterator[pl.Series]:
    """Yield the texts of non-string values that are accepted, null in other rows."""
    if "falsy" in column.accepts:
        yield pl.select(pl.when(pl.Series(_falsy(found))).then(pl.lit(""))).to_series()
    if "integer" in column.accepts:
        rows = np.flatnonzero(_is_tagged(found, tokens.INTEGER))
        starts, ends = found.starts[rows], found.ends[rows]
        # -0 is the only integer whose text differs from its digits
        zeros = (ends - starts == 2) & (found.data[ends - 1] == ord("0"))
        starts[zeros] += found.data[starts[zeros]] == ord("-")
        yield _texts_of(rows, found.tags.size, found.data, starts, ends)
        floats = np.flatnonzero(_is_tagged(found, tokens.FLOAT))
        if floats.size:
            whole = [_whole(found, row)[0] for row in floats.tolist()]
            nulls = _null_column(found, column).values
            yield nulls.scatter(floats, [None if each is None else str(each) for each in whole])
    if "boolean" in column.accepts:
        is_true = pl.Series(found.tags == tokens.TRUE)
        digit = pl.when(is_true).then(pl.lit("1")).otherwise(pl.lit("0"))
        is_boolean = pl.Series(_is_tagged(found, tokens.FALSE, tokens.TRUE))
        yield pl.select(pl.when(is_boolean).then(digit)).to_series()


def _falsy(found: Places) -> Mask:
    """Return the rows whose value is 0, 0.0, false, [] or {}."""
    falsy = _is_tagged(found, tokens.FALSE)
    numbers = np.flatnonzero(_is_tagged(found, tokens.INTEGER, tokens.FLOAT))
    falsy[numbers[_read(found, numbers, pl.Float64()).to_numpy() == 0.0]] = True
    containers = _is_tagged(found, tokens.ARRAY, tokens.OBJECT)
    falsy |= containers & (found.ends - found.starts == 2)
    # an empty container with white space inside begins with some
    begins = found.data[np.where(containers, found.starts + 1, 0)] if found.data.size else falsy
    blank = containers & ((begins == ord(" ")) | (begins == ord("\t")))
    for row in np.flatnonzero(blank).tolist():
        falsy[row] = not found.raw(row)[1:-1].strip(b" \t")
    return falsy


def _json(found: Places, column: Column) -> Converted:
    """Take the JSON text of every value. Arrays given as JSON in a string are decoded."""
    if found.is_table:
        return _text(found, column)
    values = json_texts(found)
    if (
        column.items
        and (texts := np.flatnonzero(_is_tagged(found, tokens.STRING, tokens.ESCAPED))).size
    ):
        spelled = [_unquoted(found, row) for row in texts.tolist()]
        is_array = [text is not None and text.lstrip()[:1] == "[" for text in spelled]
        values = values.scatter(texts[is_array], list(itertools.compress(spelled, is_array)))
    return Converted(values, np.zeros(found.tags.size, np.uint8))


def json_texts(found: Places) -> pl.Series:
    """Return values as JSON text, null if absent."""
    quotes = _is_tagged(found, tokens.STRING, tokens.ESCAPED).astype(np.int64)
    return texts_at(
        found.data, found.starts - quotes, found.ends + quotes, found.tags > tokens.NULL
    )


def _boolean(found: Places, column: Column) -> Converted:
    valid = _is_tagged(found, tokens.FALSE, tokens.TRUE)
    bits = np.packbits(found.tags == tokens.TRUE, bitorder="little")
    return Converted(buffer_series("bool_", valid, bits), _wrong_type_codes(found, valid))


def _integer(found: Places, column: Column) -> Converted:
    """Convert integers, and other values that the column accepts as Python's ``int`` does."""
    values = np.zeros(found.tags.size, np.int64)
    valid, booleans = (
        _is_tagged(found, tokens.INTEGER),
        _is_tagged(found, tokens.FALSE, tokens.TRUE),
    )
    odd: list[int] = []
    if "boolean" in column.accepts:
        values[booleans] = found.tags[booleans] == tokens.TRUE
        valid |= booleans
    if "string" in column.accepts:
        valid |= _is_tagged(found, tokens.STRING, tokens.ESCAPED)
    digits = np.flatnonzero(valid & ~booleans)
    whole = _read(found, digits, pl.Int64())
    values[digits] = whole.fill_null(0).to_numpy()
    odd.extend(digits[whole.is_null().to_numpy()].tolist())
    numbers = np.flatnonzero(_is_tagged(found, tokens.FLOAT))
    if numbers.size:
        doubles = _read(found, numbers, pl.Float64()).to_numpy()
        small = np.isfinite(doubles) & (np.abs(doubles) < 2.0**62)
        used = small if "number" in column.accepts else small & (doubles == np.floor(doubles))
        values[numbers[used]] = doubles[used].astype(np.int64)
        valid[numbers[used]] = True
        odd.extend(numbers[~small].tolist())
    faults = _wrong_type_codes(found, valid)
    for row in odd:
        value, reason = _python_integer(found, row, truncated="number" in column.accepts)
        values[row], valid[row] = value, reason is None
        faults[row] = _OK if reason is None else _fault_code(reason)
    return Converted(buffer_series("int64", valid, values), faults)


def _number(found: Places, column: Column) -> Converted:
    """Convert numbers, and other values that the column accepts as Python's ``float`` does."""
    values = np.zeros(found.tags.size, np.float64)
    valid, booleans = (
        _is_tagged(found, tokens.INTEGER, tokens.FLOAT),
        _is_tagged(found, tokens.FALSE, tokens.TRUE),
    )
    rows = np.flatnonzero(valid)
    values[rows] = _read(found, rows, pl.Float64()).to_numpy()
    # Python's json never reads digits as infinity
    huge = rows[np.isinf(values[rows]) & (found.tags[rows] == tokens.INTEGER)]
    if "boolean" in column.accepts:
        values[booleans] = found.tags[booleans] == tokens.TRUE
        valid |= booleans
    if "string" in column.accepts:
        for row in np.flatnonzero(_is_tagged(found, tokens.STRING, tokens.ESCAPED)).tolist():
            value = _python_float(found, row)
            if value is not None:
                values[row], valid[row] = value, True
    valid[huge] = False
    faults = _wrong_type_codes(found, valid)
    faults[huge] = _fault_code("out_of_range")
    return Converted(buffer_series("float64", valid, values), faults)


def _read(found: Places, rows: Int64Array, kind: pl.DataType) -> pl.Series:
    """Parse the texts of some rows as numbers, null if invalid. Doubles are correctly rounded."""
    starts, ends = found.starts[rows], found.ends[rows]
    return texts_at(found.data, starts, ends, np.ones(rows.size, np.bool_)).cast(kind, strict=False)


def _unquoted(found: Places, row: int) -> str | None:
    """Return the text of a row's string, None if it contains a lone surrogate."""
    text, _, ends = found.unescaped(np.array([row]))
    return None if ends[0] < 0 else text.tobytes().decode()


def _whole(
    found: Places, row: int, *, truncated: bool = False
) -> tuple[int | None, RejectReason | None]:
    """Convert a double to an integer. None and the reason if it is not integral."""
    number = float(found.raw(row))
    if not math.isfinite(number):
        return None, "out_of_range"
    if not truncated and not number.is_integer():
        return None, "wrong_type"
    value = int(number)
    is_inside = INTEGER_RANGE[0] <= value <= INTEGER_RANGE[1]
    return (value, None) if is_inside else (None, "out_of_range")


def _python_integer(found: Places, row: int, *, truncated: bool) -> tuple[int, RejectReason | None]:
    """Parse a value by Python's ``int``. 0 and the reason if that fails."""
    tag = found.tags[row]
    if tag == tokens.INTEGER:
        return 0, "out_of_range"
    if tag == tokens.FLOAT:
        whole, reason = _whole(found, row, truncated=truncated)
        return whole or 0, reason
    text = _unquoted(found, row)
    try:
        value = int("" if text is None else text)
    except ValueError:
        return 0, "wrong_type"
    if not INTEGER_RANGE[0] <= value <= INTEGER_RANGE[1]:
        return 0, "out_of_range"
    return value, None


def _python_float(found: Places, row: int) -> float | None:
    """Parse a string by Python's ``float``, None if that fails."""
    text = _unquoted(found, row)
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


_CONVERTERS: dict[str, Callable[[Places, Column], Converted]] = {
    "text": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "json": _json,
}


_NO_DATA = np.zeros(0, np.uint8)
_TAGS = {
    "null": tokens.NULL,
    "string": tokens.STRING,
    "boolean": tokens.FALSE,
    "integer": tokens.INTEGER,
    "number": tokens.FLOAT,
    "nested": tokens.ARRAY,
}
"""The type of stored values, by the JSON name of their type; true and structs have their own."""
_TEXT = (pl.String, pl.Categorical, pl.Enum)
_SERVED = {
    "text": "String",
    "integer": "an integer type",
    "number": "a numeric type",
    "boolean": "Boolean",
    "json": "String, List or Struct",
}


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """Stored columns for a source's declared columns."""

    name: str  # the name of the file or frame in rejects and errors
    columns: tuple[Column, ...]  # the declared columns that they provide
    dtypes: Mapping[str, pl.DataType]  # the stored columns to read, by name, with their types


def check_stored(
    name: str, stored: Mapping[str, pl.DataType], columns: Sequence[Column], advice: str
) -> StoredColumns:
    """Find the stored columns of declared ones."""
    found: dict[str, pl.DataType] = {}
    for column in columns:
        names = [each for each in column.keys if each in stored]
        if not names and column.required:
            raise InputError(
                f"{name}: there is no column {column.name!r}; expected "
                f"{EXPECTED[column.kind]} in every row.",
                "Columns: " + ", ".join(repr(each) for each in stored) + ".",
            )
        for each in names:
            if _class_of(stored[each]) == "other":
                raise InputError(
                    f"{name}: the column {each!r} is of type {stored[each]}; expected "
                    f"{_SERVED[column.kind]}.",
                    advice,
                )
            found[each] = stored[each]
    return StoredColumns(name, tuple(columns), found)


def convert_stored(
    stored: StoredColumns, raw: pl.DataFrame, first_line: int
) -> tuple[pl.DataFrame, list[Reject]]:
    """Convert stored columns as declared; rows have their file and line, but no byte offset."""
    line = pl.int_range(first_line, first_line + raw.height, dtype=pl.Int64, eager=True)
    values = {"line": line}
    found = [_places(raw, stored.dtypes, column) for column in stored.columns]
    bad, culprit = first_faults(convert_columns(found, stored.columns, values), raw.height)
    names = [each.name for each in stored.columns]
    frame = pl.DataFrame([values[name].alias(name) for name in ("line", *names)]).select(
        pl.lit(stored.name).alias("file"),
        "line",
        pl.lit(None, dtype=pl.Int64).alias("byte_offset"),
        *names,
    )
    if not bad.any():
        return frame, []
    rejects = []
    for row in np.flatnonzero(bad).tolist():
        values, column = raw.row(row, named=True), stored.columns[culprit[row]]
        value = next((values[name] for name in column.keys if values.get(name) is not None), None)
        shown = "null" if value is None else f"{type(value).__name__} {value!r}"
        place, texts = (stored.name, int(line[row]), None), (shown, repr(values))
        limits = FOUND_CHARACTERS, RAW_CHARACTERS
        rejects.append(column_reject(column, int(bad[row]), place, *map(cut, texts, limits)))
    return frame.filter(pl.Series(bad == 0)), rejects


def _class_of(dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.Null):
        return "null"
    if isinstance(dtype, _TEXT):
        return "string"
    if isinstance(dtype, pl.Boolean):
        return "boolean"
    if dtype.is_integer():
        return "integer"
    if dtype.is_float() or dtype.is_decimal():
        return "number"
    if dtype.is_nested():
        has_bytes = any(isinstance(each, pl.Binary | pl.Object) for each in types_in(dtype))
        return "other" if has_bytes else "nested"
    return "other"


def _places(raw: pl.DataFrame, dtypes: Mapping[str, pl.DataType], column: Column) -> Places:
    """Return a column's values: in each row those of its first name that is not null there."""
    names = [name for name in column.keys if name in dtypes]
    if len(names) == 1:
        values = _taken(raw[names[0]], column)
        if values is not None:
            tags = np.full(raw.height, tokens.STRING, np.uint8)
            if values.null_count():
                tags[values.is_null().to_numpy()] = tokens.NULL
            nowhere = np.zeros(raw.height, np.int64)
            return Places("parquet", _NO_DATA, tags, nowhere, nowhere, values=values)
    tags = np.zeros(raw.height, np.uint8)
    texts = pl.Series([None], dtype=pl.String).new_from_index(0, raw.height)
    for name in names:
        own, written = _spelled(raw[name], column)
        tags = np.where(tags == tokens.ABSENT, own, tags).astype(np.uint8)
        texts = pl.select(pl.coalesce(texts, written)).to_series()
    held = string_column(column.name, texts.fill_null(""))
    starts, ends = held.offsets[:-1].copy(), held.offsets[1:].copy()
    return Places("parquet", held.data, tags, starts, ends)


def _taken(found: pl.Series, column: Column) -> pl.Series | None:
    """Convert a stored column whose values are all of the declared kind; None for any other."""
    stored, kind = _class_of(found.dtype), column.kind
    if stored == "null":
        return pl.Series([None], dtype=KINDS[kind]).new_from_index(0, found.len())
    if kind == "json" or (kind, stored) == ("text", "string"):
        return _json_or_text(found)
    if (kind, stored) in (("number", "integer"), ("number", "number"), ("boolean", "boolean")):
        return found.cast(KINDS[kind])
    whole = found if stored == "integer" else _as_whole(found)
    if kind != "integer" or whole is None:
        return None
    values = whole.cast(pl.Int64, strict=False)
    # one that is too large becomes null
    return values if values.null_count() == whole.null_count() else None


def _as_whole(found: pl.Series) -> pl.Series | None:
    """Return doubles as integers, NaN as null; None if one is not whole."""
    if _class_of(found.dtype) != "number":
        return None
    doubles = found.cast(pl.Float64).fill_nan(None)
    whole = doubles.cast(pl.Int64, strict=False)
    return whole if doubles.equals(whole.cast(pl.Float64)) else None


def _json_or_text(found: pl.Series) -> pl.Series:
    """Return texts as they are, and other values as JSON."""
    if _class_of(found.dtype) == "string":
        return found.cast(pl.String)
    return pl.select(json_text(pl.lit(found))).to_series()


def _spelled(found: pl.Series, column: Column) -> tuple[UInt8Array, pl.Series]:
    is_null = found.is_null().to_numpy()
    if column.kind == "json":
        return np.where(is_null, tokens.ABSENT, tokens.STRING).astype(np.uint8), _json_or_text(
            found
        )
    stored = _class_of(found.dtype)
    if stored == "number":
        found = found.cast(pl.Float64)
        # of 0 and 0.0 only the latter is falsy
        has_whole = column.kind in NAN_IS_NULL and "falsy" not in column.accepts
        whole = _as_whole(found) if has_whole else None
        stored, found = ("number", found) if whole is None else ("integer", whole)
    tags = np.where(
        is_null, tokens.ABSENT, np.where(found.is_null().to_numpy(), tokens.NULL, _TAGS[stored])
    )
    if stored == "boolean":
        tags[found.fill_null(False).to_numpy()] = tokens.TRUE
    elif isinstance(found.dtype, pl.Struct):
        tags[~is_null] = tokens.OBJECT
    texts = _json_or_text(found) if stored == "nested" else found.cast(pl.String)
    return tags.astype(np.uint8), texts
