"""Columns of a block: the byte ranges of their values, and these as types that a source declares.

Common values are converted by column. Only values that are rare in logs (integers beyond 64 bits,
unusual numbers as text) are converted by Python, one by one.

Of Parquet files and frames, a String column under a ``json`` declaration is JSON text. Lists and
structs are converted to JSON. Values are accepted and rejected as in JSON Lines. A column of a type
that JSON cannot represent (bytes, dates) is refused.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
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


_PLACE = ("tags", "starts", "ends")


@dataclass(frozen=True, slots=True)
class Places:
    """Type and byte range of one column's value in every row; see `LineScan`."""

    syntax: Format
    data: UInt8Array
    tags: UInt8Array
    starts: Int64Array
    ends: Int64Array
    # the column itself: null are values of another type, whose places are given; None without it
    values: pl.Series | None = None

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
        places = {name: getattr(self, name)[rows] for name in _PLACE}
        return replace(self, **places)


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
            kind = fill.TEXT_OR_WHOLE if column.accepts == ("integer",) else fill.TEXT
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
    scan: fill.LineScan, keys: tuple[bytes, ...], column: Column, *, names_dialogue: bool = False
) -> Places:
    """Find a column's values: by its own name if present, else by its aliases in order."""
    numbers = [keys.index(name.encode()) for name in column.keys]
    numbers = [key for key in numbers if scan.tags[key].any()] or numbers[:1]
    found = [_places_of(scan, key) for key in numbers]
    if scan.syntax == "csv":
        found = [spelled_cells(each, column.kind, names_dialogue) for each in found]
    return reduce(partial(_either, column=column), found)


def _places_of(scan: fill.LineScan, key: int) -> Places:
    """Return the places of a key's values, and the column that they filled."""
    kind, tags, words = scan.columns.kind[key], scan.tags[key], scan.columns.words[key]
    starts, ends = words.view(np.int64).T
    if kind == fill.PLACES:
        return Places(scan.syntax, scan.data, tags, starts, ends)
    is_odd = scan.columns.tags[key] >= fill.ODD
    valid = (tags > tokens.NULL) & ~is_odd
    if scan.columns.odd[key]:
        words = np.where(valid[:, None], words, 0)
    if kind == fill.WHOLE:
        values = buffer_series("int64", valid, words[:, 0].copy())
    else:
        values = buffer_series("string_view", valid, words, scan.columns.texts)
    starts, ends = np.where(is_odd, starts, 0), np.where(is_odd, ends, 0)
    return Places(scan.syntax, scan.data, tags, starts, ends, values)


def _either(found: Places, other: Places, column: Column) -> Places:
    """Return values of a column, and those under another name where they are absent."""
    absent = found.tags == tokens.ABSENT
    pairs = {name: (getattr(found, name), getattr(other, name)) for name in _PLACE}
    values = None
    if found.values is not None or other.values is not None:
        own, others = (
            _values(each, column) if each.values is None else each.values for each in (found, other)
        )
        values = pl.select(pl.when(pl.Series(absent)).then(others).otherwise(own)).to_series()
    merged = {name: np.where(absent, second, first) for name, (first, second) in pairs.items()}
    return replace(found, **merged, values=values)


def spelled_cells(found: Places, kind: ColumnKind, names_dialogue: bool = False) -> Places:
    """Set cells' types by their contents. Empty cells are null, except plain texts."""
    if found.values is not None:
        return found  # of cells that filled their column
    tags = found.tags.copy()
    if kind not in ("text", "json"):
        cells = texts_of(found, tags == tokens.STRING).str.strip_chars(" \t")
        for tag, form in _FORMS.items():
            unknown = tags == tokens.STRING
            if unknown.any():
                spells = cells.str.contains(f"^{form}$").fill_null(False).to_numpy()
                tags[unknown & spells] = tag
    if kind != "text" or names_dialogue:
        tags[(tags != tokens.ABSENT) & (found.starts == found.ends)] = tokens.NULL
    return replace(found, tags=tags)


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
_LONGEST_INTEGER = len(str(INTEGER_RANGE[0]))
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
_OWN: dict[str, tuple[int, ...]] = {
    "text": (tokens.STRING, tokens.ESCAPED),
    "integer": (tokens.INTEGER,),
    "number": (tokens.INTEGER, tokens.FLOAT),
    "boolean": (tokens.FALSE, tokens.TRUE),
}
"""The types of values that a column takes as they are, by its kind."""
_STRINGS, _BOOLEANS = _OWN["text"], _OWN["boolean"]


def convert_columns(
    located: Sequence[Places], columns: Sequence[Column], values: dict[str, pl.Series]
) -> tuple[UInt8Array, Int64Array]:
    """Convert columns as declared into ``values``; return each row's first fault, and its column.

    Columns that are read only in some rows come last, because other columns select these rows.
    """
    faults: dict[int, UInt8Array] = {}
    for index in sorted(range(len(columns)), key=lambda at: columns[at].only_where is not None):
        column = columns[index]
        where = rows_where(column, values)
        values[column.name], faults[index] = convert(located[index], column, where)
    bad, culprit = (
        np.zeros(values["line"].len(), np.uint8),
        np.zeros(values["line"].len(), np.int64),
    )
    for index in range(len(columns)):
        fresh = (bad == 0) & (faults[index] > 0)
        bad[fresh], culprit[fresh] = faults[index][fresh], index
    return bad, culprit


def convert(
    found: Places, column: Column, where: Mask | None = None
) -> tuple[pl.Series, UInt8Array]:
    """Convert a column's values as declared, with the words that the column map names.

    Faults are 1 + the reason's index in `REJECT_REASONS`, or 0. Only some rows may be read.
    """
    if where is not None:
        tags, values = np.where(where, found.tags, tokens.ABSENT).astype(np.uint8), found.values
        if values is not None:
            values = pl.select(pl.when(pl.Series(where)).then(pl.lit(values))).to_series()
        found = replace(found, tags=tags, values=values)
    is_null, faults = found.tags <= tokens.NULL, np.zeros(found.tags.size, np.uint8)
    values = found.values
    if values is None:
        values = _values(found, column) if found.tags.any() else _nulls(column.kind, is_null.size)
    if values.null_count() > np.count_nonzero(is_null):
        others = np.flatnonzero(~is_null & values.is_null().to_numpy())
        taken, faults[others] = _take_others(found.at(others), column)
        # NaN, which other libraries write for null, is no fault
        is_null[others] = taken.is_null().to_numpy() & (faults[others] == 0)
        values = values.scatter(others, taken)
    if column.otherwise == "null":
        faults[np.isin(faults, (_fault_code("wrong_type"), _fault_code("out_of_range")))] = 0
    if column.required:
        faults[is_null] = _fault_code("missing_field")
    if where is not None:
        faults[~where] = 0
    given = folder_value(column)
    if given is not None:
        values = values.fill_null(pl.lit(given, values.dtype))
    if column.mapped.words:
        values = values.replace(dict(column.mapped.words))
    return values, faults


def rows_where(column: Column, values: Mapping[str, pl.Series]) -> Mask | None:
    """Return the rows in which a column is read, by the values of earlier columns; None for all."""
    if column.only_where is None:
        return None
    name, value = column.only_where
    return (values[name] == value).fill_null(False).to_numpy()


def _fault_code(reason: RejectReason | None) -> int:
    return 0 if reason is None else REJECT_REASONS.index(reason) + 1


def column_reject(
    column: Column, fault: int, place: tuple[str, int, int | None], found: str, raw: str = ""
) -> Reject:
    """Return the reject of a row whose value of a column has a fault."""
    reason = REJECT_REASONS[fault - 1]
    return Reject(*place, column.name, reason, found, EXPECTED[column.kind], raw)


def _nulls(kind: str, n_rows: int) -> pl.Series:
    return pl.Series([None], dtype=KINDS[kind]).new_from_index(0, n_rows)


def _values(found: Places, column: Column) -> pl.Series:
    """Read the values of a column's own types; null are others, and those beyond its range."""
    tags, kind = found.tags, column.kind
    if kind == "json" and found.is_table:
        return texts_of(found, tags > tokens.NULL)
    if kind == "json":
        return _json_values(found, column)
    own = np.isin(tags, _OWN[kind])
    if kind == "boolean":
        bits = np.packbits(tags == tokens.TRUE, bitorder="little")
        return buffer_series("bool_", own, bits)
    if kind == "text":
        if column.accepts == ("integer",):
            # -0 is the only integer whose text is not its digits
            own |= (tags == tokens.INTEGER) & (found.ends - found.starts != len("-0"))
        return texts_of(found, own)
    spelled = texts_of(found, own)
    if found.syntax == "csv":
        spelled = spelled.str.strip_chars(" \t").str.strip_prefix("+")
    values = spelled.cast(KINDS[kind], strict=False)
    if kind == "number":
        # Python's json never reads digits as infinity
        huge = values.is_infinite().fill_null(False).to_numpy() & (tags == tokens.INTEGER)
        values = values.set(pl.Series(huge), None) if huge.any() else values
    return values


def texts_of(found: Places, rows: Mask) -> pl.Series:
    """Return the texts of some rows, unescaped; null in others and of a lone surrogate."""
    is_escaped = rows & (found.tags == tokens.ESCAPED)
    if not is_escaped.any():
        return texts_at(found.data, found.starts, found.ends, rows)
    if found.syntax == "csv":
        escaped = texts_at(found.data, found.starts, found.ends, is_escaped)
        escaped = escaped.str.replace_all('""', '"', literal=True)
    else:
        starts, ends = np.zeros((2, rows.size), np.int64)
        at = np.flatnonzero(is_escaped)
        data, starts[at], ends[at] = fill.unescaped(found.data, found.starts[at], found.ends[at])
        escaped = texts_at(data, starts, ends, is_escaped & (ends >= 0))
    if is_escaped.sum() == rows.sum():
        return escaped
    plain = texts_at(found.data, found.starts, found.ends, rows & ~is_escaped)
    return pl.select(pl.coalesce(plain, escaped)).to_series()


def _json_values(found: Places, column: Column) -> pl.Series:
    """Return the JSON text of every value. Arrays given as JSON in a string are decoded."""
    values = json_texts(found)
    is_string = np.isin(found.tags, _STRINGS)
    if not (column.items and is_string.any()):
        return values
    spelled = texts_of(found, is_string)
    is_array = spelled.str.contains(r"^\s*\[")
    return pl.select(pl.when(is_array).then(spelled).otherwise(values)).to_series()


def json_texts(found: Places) -> pl.Series:
    """Return values as JSON text, null if absent."""
    quotes = np.isin(found.tags, _STRINGS).astype(np.int64)
    return texts_at(
        found.data, found.starts - quotes, found.ends + quotes, found.tags > tokens.NULL
    )


def _take_others(found: Places, column: Column) -> tuple[pl.Series, UInt8Array]:
    """Take values of other types, each distinct one by Python; return the faults, too."""
    others = pl.DataFrame({"tag": found.tags, "text": texts_of(found, found.tags > tokens.NULL)})
    distinct = others.unique()
    outcomes = [_take(tag, text, column) for tag, text in distinct.rows()]
    faults = [_fault_code(reason) for _, reason in outcomes]
    taken = distinct.with_columns(
        value=pl.Series([value for value, _ in outcomes], dtype=KINDS[column.kind]),
        fault=pl.Series(faults, dtype=pl.UInt8),
    )
    keys: Any = {"on": ("tag", "text"), "nulls_equal": True, "maintain_order": "left"}
    of_rows = others.join(taken, how="left", **keys)
    return of_rows["value"], of_rows["fault"].to_numpy()


def _take(tag: int, text: str | None, column: Column) -> tuple[Any, RejectReason | None]:
    """Return a value of another type as a column takes it, or why it does not.

    NaN is a missing value. The text is None if it has a lone surrogate.
    """
    kind, accepts = column.kind, column.accepts
    if text is None:
        return None, "lone_surrogate" if kind == "text" else "wrong_type"
    if tag == tokens.FLOAT and math.isnan(float(text)):
        return None, None
    if kind == "text":
        return _take_as_text(tag, text, accepts)
    if tag in _BOOLEANS and "boolean" in accepts:
        return int(tag == tokens.TRUE), None
    if tag == tokens.INTEGER and kind != "boolean":
        is_long = kind == "number" or len(text) > _LONGEST_INTEGER
        return (None, "out_of_range") if is_long else _in_range(int(text))
    if tag == tokens.FLOAT and kind == "integer":
        return _whole(float(text), truncated="number" in accepts)
    if tag in _STRINGS and "string" in accepts:
        with suppress(ValueError):
            return _in_range(int(text)) if kind == "integer" else (float(text), None)
    return None, "wrong_type"


def _take_as_text(
    tag: int, text: str, accepts: Sequence[str]
) -> tuple[str | None, RejectReason | None]:
    is_number = tag in _OWN["number"]
    is_empty = tag in (tokens.ARRAY, tokens.OBJECT) and not text[1:-1].strip(" \t")
    is_zero = is_number and float(text) == 0.0
    if "falsy" in accepts and (tag == tokens.FALSE or is_empty or is_zero):
        return "", None
    if "boolean" in accepts and tag in _BOOLEANS:
        return str(int(tag == tokens.TRUE)), None
    if "integer" in accepts and tag == tokens.INTEGER:
        return "0" if text == "-0" else text, None
    if "integer" in accepts and is_number:
        whole, _ = _whole(float(text))
        return (None, "wrong_type") if whole is None else (str(whole), None)
    return None, "wrong_type"


def _whole(number: float, *, truncated: bool = False) -> tuple[int | None, RejectReason | None]:
    if not math.isfinite(number):
        return None, "out_of_range"
    if not (truncated or number.is_integer()):
        return None, "wrong_type"
    return _in_range(int(number))


def _in_range(value: int) -> tuple[int | None, RejectReason | None]:
    is_inside = INTEGER_RANGE[0] <= value <= INTEGER_RANGE[1]
    return (value, None) if is_inside else (None, "out_of_range")


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
_CAST = {
    "text": (),
    "integer": ("integer", "number"),
    "number": ("integer", "number"),
    "boolean": ("boolean",),
}
"""The types of stored columns that polars casts, by the kind of the declared column."""
_TEXT = (pl.String, pl.Categorical, pl.Enum)
_SERVED = {
    "text": "String",
    "integer": "an integer type",
    "number": "a numeric type",
    "boolean": "Boolean",
    "json": "String, List or Struct",
}


def check_stored(
    name: str, stored: Mapping[str, pl.DataType], columns: Sequence[Column], advice: str
) -> list[str]:
    """Return the names of the stored columns to read for declared ones."""
    found: dict[str, None] = {}
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
            found[each] = None
    return [*found]


def convert_stored(
    name: str, raw: pl.DataFrame, columns: Sequence[Column], first_line: int
) -> tuple[pl.DataFrame, list[Reject]]:
    """Convert stored columns as declared; rows have their file and line, but no byte offset."""
    line = pl.int_range(first_line, first_line + raw.height, dtype=pl.Int64, eager=True)
    values = {"line": line}
    found = [_places(raw, column) for column in columns]
    bad, culprit = convert_columns(found, columns, values)
    names = [each.name for each in columns]
    frame = pl.DataFrame([values[each].alias(each) for each in ("line", *names)]).select(
        pl.lit(name).alias("file"),
        "line",
        pl.lit(None, dtype=pl.Int64).alias("byte_offset"),
        *names,
    )
    if not bad.any():
        return frame, []
    rejects = []
    for row in np.flatnonzero(bad).tolist():
        values, column = raw.row(row, named=True), columns[culprit[row]]
        value = next((values[key] for key in column.keys if values.get(key) is not None), None)
        shown = "null" if value is None else f"{type(value).__name__} {value!r}"
        place, texts = (name, int(line[row]), None), (shown, repr(values))
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


def _places(raw: pl.DataFrame, column: Column) -> Places:
    """Return a column's values: in each row those of its first name that is not null there."""
    names = [name for name in column.keys if name in raw.columns]
    if len(names) == 1:
        values = _taken(raw[names[0]], column)
        if values is not None:
            tags = np.full(raw.height, tokens.STRING, np.uint8)
            if values.null_count():
                tags[values.is_null().to_numpy()] = tokens.NULL
            nowhere = np.zeros(raw.height, np.int64)
            return Places("parquet", _NO_DATA, tags, nowhere, nowhere, values=values)
    tags = np.zeros(raw.height, np.uint8)
    texts = _nulls("text", raw.height)
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
        return _nulls(kind, found.len())
    if kind == "json" or (kind, stored) == ("text", "string"):
        return _json_or_text(found)
    if stored not in _CAST[kind]:
        return None
    if (kind, stored) == ("integer", "number"):
        found = found.cast(pl.Float64).fill_nan(None)
    values = found.cast(KINDS[kind], strict=False)
    is_exact = kind != "integer" or values.cast(found.dtype).equals(found)
    return values if is_exact else None


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
    found = found.cast(pl.Float64) if stored == "number" else found
    tags = np.where(is_null, tokens.ABSENT, _TAGS[stored])
    if stored == "boolean":
        tags[found.fill_null(False).to_numpy()] = tokens.TRUE
    elif isinstance(found.dtype, pl.Struct):
        tags[~is_null] = tokens.OBJECT
    texts = _json_or_text(found) if stored == "nested" else found.cast(pl.String)
    return tags.astype(np.uint8), texts
