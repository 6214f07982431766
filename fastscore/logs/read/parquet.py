"""Parquet logs: columns checked against a source once, values by the same rules as in JSON.

A String column under a ``json`` declaration is taken as JSON text; lists and structs are written
as JSON. A column whose type can never serve refuses the file, since every row would be a reject.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import polars as pl
import polars.selectors as cs

from fastscore.errors import InputError
from fastscore.logs.integrity.rejects import FOUND_CHARACTERS, RAW_CHARACTERS, Reject, cut
from fastscore.logs.plan.byte_ranges import ByteRange
from fastscore.logs.read.columns import EXPECTED, INTEGER_RANGE, KINDS
from fastscore.suites.base import Column, RejectReason

ROWS_PER_READ = 1 << 18

_TEXT = (pl.String, pl.Categorical, pl.Enum)
_COERCIONS: dict[str, tuple[str, ...]] = {
    "text": ("integer", "boolean"),
    "integer": ("boolean", "number", "string"),
    "number": ("boolean", "string"),
    "boolean": (),
    "json": (),
}


def parquet_rows(path: str, name: str) -> int:
    """Count the rows of the file at ``path`` by its footer; errors call it ``name``."""
    try:
        return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(name, error) from error


def read_parquet(
    byte_range: ByteRange, columns: Sequence[Column], *, rows: int = ROWS_PER_READ
) -> Iterator[tuple[int, pl.DataFrame, list[Reject]]]:
    """Read a byte range's rows, some at a time.

    Yields
    ------
    tuple
        The number of rows read; the good ones: ``line`` and the declared columns; the others.

    Raises
    ------
    InputError
        When the file is damaged, lacks a required column or a column's type can never serve.
    """
    schema = _checked_schema(byte_range, columns)
    named = {column.name: column for column in columns}
    values = [_read_where(schema, column, _value, named) for column in columns]
    faults = [
        _read_where(schema, column, _fault, named).name.prefix("fault:") for column in columns
    ]
    for start in range(byte_range.start, byte_range.stop, rows):
        count = min(rows, byte_range.stop - start)
        raw = _read(byte_range, tuple(schema), start, count)
        line = pl.int_range(start + 1, start + 1 + count, dtype=pl.Int64).alias("line")
        checked = raw.select(line, *values, *faults)
        bad = checked.select(pl.any_horizontal(cs.starts_with("fault:").is_not_null()))
        frame = checked.select("line", *(column.name for column in columns))
        if not columns or not bad.to_series().any():
            yield count, frame, []
            continue
        mask = bad.to_series()
        rejects = _rejects(byte_range, raw.filter(mask), checked.filter(mask), columns)
        yield count, frame.filter(~mask), rejects


def _unreadable(path: str, error: Exception) -> InputError:
    """Name a file that polars cannot read."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(
        f"The Parquet file {path!r} cannot be read: {reason}.", "Write it again from its source."
    )


def _checked_schema(byte_range: ByteRange, columns: Sequence[Column]) -> dict[str, pl.DataType]:
    """Return the types of the file's wanted columns, when each can serve."""
    try:
        schema = pl.scan_parquet(byte_range.path, glob=False).collect_schema()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(byte_range.file, error) from error
    found: dict[str, pl.DataType] = {}
    for column in columns:
        names = [name for name in column.keys if name in schema]
        if not names and column.required:
            raise InputError(
                f"{byte_range.file}: there is no column {column.name!r}; expected "
                f"{EXPECTED[column.kind]} in every row.",
                "Columns: " + ", ".join(repr(name) for name in schema.names()) + ".",
            )
        for name in names:
            if not _can_serve(schema[name], column):
                raise InputError(
                    f"{byte_range.file}: the column {name!r} is of type {schema[name]}; expected "
                    f"{_served(column)}.",
                    "Write the file again with that type.",
                )
            found[name] = schema[name]
    return found


def _class_of(dtype: pl.DataType) -> str:
    """Name what a type's values are in JSON's terms."""
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
        return "nested"
    return "other"


def _can_serve(dtype: pl.DataType, column: Column) -> bool:
    """Tell whether any value of a type can be a value of the column."""
    found = _class_of(dtype)
    natural = {
        "text": ("string",),
        "integer": ("integer",),
        "number": ("integer", "number"),
        "boolean": ("boolean",),
        "json": ("string", "boolean", "integer", "number", "nested"),
    }[column.kind]
    accepted: list[str] = [kind for kind in column.accepts if kind in _COERCIONS[column.kind]]
    if "falsy" in column.accepts and column.kind == "text":
        accepted += ["boolean", "integer", "number", "nested"]
    return found == "null" or found in natural or found in accepted


def _served(column: Column) -> str:
    """Say which types can be a column's."""
    names = {
        "text": "String",
        "integer": "an integer type",
        "number": "a numeric type",
        "boolean": "Boolean",
        "json": "String, List or Struct",
    }
    return names[column.kind]


def _read(byte_range: ByteRange, names: Sequence[str], start: int, count: int) -> pl.DataFrame:
    """Read some rows of the wanted columns, and one more that is null."""
    nothing = pl.repeat(None, count, dtype=pl.Null, eager=True).alias("")
    if not names:
        return nothing.to_frame()
    try:
        scan = pl.scan_parquet(byte_range.path, glob=False).slice(start, count)
        return scan.select(*names).collect().with_columns(nothing)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(byte_range.file, error) from error


def _choice(
    schema: dict[str, pl.DataType],
    column: Column,
    make: Callable[[str, pl.DataType, Column], pl.Expr],
) -> pl.Expr:
    """Make an expression of the first of a column's names that is not null in a row."""
    names = [name for name in column.keys if name in schema]
    chosen = make("", pl.Null(), column)
    for name in reversed(names):
        own = make(name, schema[name], column)
        chosen = pl.when(pl.col(name).is_not_null()).then(own).otherwise(chosen)
    return chosen


def _read_where(
    schema: dict[str, pl.DataType],
    column: Column,
    make: Callable[[str, pl.DataType, Column], pl.Expr],
    named: Mapping[str, Column],
) -> pl.Expr:
    """Make a column's expression, null in rows where the column is not read."""
    chosen = _choice(schema, column, make)
    if column.only_where is not None:
        name, value = column.only_where
        chosen = pl.when(_choice(schema, named[name], _value) == value).then(chosen)
    return chosen.alias(column.name)


def _fault(name: str, dtype: pl.DataType, column: Column) -> pl.Expr:
    """Give the reason for which a value cannot be taken, null where it can."""
    if isinstance(dtype, pl.Null):
        return pl.lit("missing_field" if column.required else None, dtype=pl.String)
    numeric = _class_of(dtype) in ("integer", "number")
    reason: RejectReason = "out_of_range" if column.kind == "integer" and numeric else "wrong_type"
    if column.otherwise == "null":
        return pl.lit(None, dtype=pl.String)
    return pl.when(_value(name, dtype, column).is_null()).then(pl.lit(reason))


def _value(name: str, dtype: pl.DataType, column: Column) -> pl.Expr:
    """Convert a stored column as its declaration says; null where that fails."""
    found = pl.col(name)
    stored = _class_of(dtype)
    if stored == "null":
        return pl.lit(None, dtype=KINDS[column.kind])
    if column.kind == "json":
        return found.cast(pl.String) if stored == "string" else _json(found)
    if column.kind == "text":
        return _text(found, dtype, column)
    if column.kind == "boolean":
        return found
    if stored == "string":
        return _by_python(found, int if column.kind == "integer" else float)
    if column.kind == "number":
        return found.cast(pl.Float64)
    if stored == "number":
        found = found.cast(pl.Float64)
        found = pl.when(found.is_finite() & (found.abs() < 2.0**63)).then(found)
    return found.cast(pl.Int64, strict=False)


def _text(found: pl.Expr, dtype: pl.DataType, column: Column) -> pl.Expr:
    """Take strings, and what else the column accepts as text."""
    stored = _class_of(dtype)
    if stored == "string" or (stored == "integer" and "integer" in column.accepts):
        return found.cast(pl.String)
    if stored == "nested":
        falsy = found.list.len() == 0 if isinstance(dtype, pl.List) else pl.lit(False)
    else:
        falsy = found.cast(pl.Float64) == 0.0
    empty = pl.when(falsy).then(pl.lit(""))
    if stored == "boolean" and "boolean" in column.accepts:
        digit = found.cast(pl.Int8).cast(pl.String)
        return empty.otherwise(digit) if "falsy" in column.accepts else digit
    return empty


def _by_python(found: pl.Expr, read: Callable[[str], int | float]) -> pl.Expr:
    """Read each distinct string once, as Python does."""
    target = pl.Int64() if read is int else pl.Float64()

    def convert(column: pl.Series) -> pl.Series:
        distinct = column.unique().drop_nulls()
        if distinct.is_empty():
            return pl.repeat(None, column.len(), dtype=target, eager=True).alias(column.name)
        values = pl.Series([_number_of(text, read) for text in distinct.to_list()], dtype=target)
        return column.replace_strict(distinct, values, return_dtype=target)

    return found.cast(pl.String).map_batches(convert, return_dtype=target)


def _number_of(text: str, read: Callable[[str], int | float]) -> int | float | None:
    """Read a string as a number that its column can hold, None otherwise."""
    try:
        value = read(text)
    except ValueError:
        return None
    if isinstance(value, int) and not INTEGER_RANGE[0] <= value <= INTEGER_RANGE[1]:
        return None
    return value


def _json(found: pl.Expr) -> pl.Expr:
    """Write values as JSON."""
    wrapped = pl.struct(found.alias("v")).struct.json_encode()
    return pl.when(found.is_not_null()).then(wrapped.str.strip_prefix('{"v":').str.head(-len("}")))


def _rejects(
    byte_range: ByteRange, raw: pl.DataFrame, checked: pl.DataFrame, columns: Sequence[Column]
) -> list[Reject]:
    """Name what is wrong with each faulty row: its first faulty column."""
    rejects: list[Reject] = []
    for index in range(raw.height):
        stored, found = raw.row(index, named=True), checked.row(index, named=True)
        del stored[""]
        column = next(each for each in columns if found[f"fault:{each.name}"] is not None)
        names = column.keys
        value = next((stored[name] for name in names if stored.get(name) is not None), None)
        text = "null" if value is None else f"{type(value).__name__} {value!r}"
        rejects.append(
            Reject(
                byte_range.file,
                found["line"],
                None,
                column.name,
                found[f"fault:{column.name}"],
                cut(text, FOUND_CHARACTERS),
                EXPECTED[column.kind],
                cut(repr(stored), RAW_CHARACTERS),
            )
        )
    return rejects
