"""Plain-Python definition of how a source reads a log, line by line."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from fastscore.suites.declarations import Column, Source
from tests.oracles.csv import naive_records
from tests.oracles.jsonl import naive_scan

ABSENT = object()


class RejectedError(Exception):
    pass


def naive_value(column: Column, value: Any) -> Any:
    if value is None:
        return None
    accepts = column.accepts
    is_bool = isinstance(value, bool)
    is_int = isinstance(value, int) and not is_bool
    is_float = isinstance(value, float)
    if is_float and math.isnan(value) and column.kind in ("text", "integer", "boolean"):
        return None
    if column.kind == "json":
        return json.dumps(value)
    if column.kind == "text":
        if isinstance(value, str):
            if any("\ud800" <= character <= "\udfff" for character in value):
                raise RejectedError("lone_surrogate")
            return value
        if is_int and "integer" in accepts:
            return str(value)
        if "falsy" in accepts and not value:
            return ""
        if is_bool and "boolean" in accepts:
            return str(int(value))
        if is_float and "integer" in accepts and value.is_integer() and abs(value) < 2**63:
            return str(int(value))
    elif column.kind == "boolean":
        if is_bool:
            return value
    elif column.kind == "integer":
        if (
            is_int
            or (is_bool and "boolean" in accepts)
            or (is_float and ("number" in accepts or value.is_integer() or math.isinf(value)))
            or (isinstance(value, str) and "string" in accepts)
        ):
            return naive_integer(value)
    elif is_int:
        try:
            return float(value)
        except OverflowError:
            raise RejectedError("out_of_range") from None
    elif is_float or (is_bool and "boolean" in accepts):
        return float(value)
    elif isinstance(value, str) and "string" in accepts:
        try:
            return float(value)
        except ValueError:
            pass
    if column.otherwise == "null":
        return None
    raise RejectedError("wrong_type")


def naive_integer(value: Any) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise RejectedError("out_of_range")
    try:
        number = int(value)
    except ValueError:
        raise RejectedError("wrong_type") from None
    if not -(2**63) <= number < 2**63:
        raise RejectedError("out_of_range")
    return number


def naive_read(
    name: str, data: bytes, source: Source
) -> tuple[list[dict[str, Any]], list[tuple[str, int, int, str | None, str]], dict[str, int]]:
    """Rows, rejects as (file, line, byte offset, field, reason), and counts of one file."""
    mark = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    rows: list[dict[str, Any]] = []
    rejects: list[tuple[str, int, int, str | None, str]] = []
    lines = naive_scan(data[mark:])
    blank = 0
    for line in lines:
        place = {"file": name, "line": line.number, "byte_offset": line.start + mark}
        if line.status == "blank":
            blank += 1
            continue
        if line.status != "row":
            rejects.append((*place.values(), None, line.status))
            continue
        values = {column.name: stated(column, line.values) for column in source.columns}
        row, fault = naive_row(place, values, source)
        if fault is None:
            rows.append(row)
        else:
            rejects.append((*place.values(), *fault))
    counts = {"lines": len(lines), "blank": blank, "rows": len(rows), "rejects": len(rejects)}
    return rows, rejects, counts


def stated(column: Column, values: Mapping[str, Any], fold: bool = False) -> Any:
    """Return what is given of a column under the first of its names that stands there."""
    names = [name.strip().lower() if fold else name for name in (column.name, *column.aliases)]
    return next((values[name] for name in names if name in values), None)


def naive_row(
    place: Mapping[str, Any], values: Mapping[str, Any], source: Source, read_json: bool = True
) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """Return a row, and the first column that is at fault with its reason."""
    row: dict[str, Any] = dict(place)
    fault: tuple[str, str] | None = None
    for column in source.columns:
        value = values[column.name]
        if column.only_where is not None:
            other, wanted = column.only_where
            if row.get(other) != wanted:
                row[column.name] = None
                continue
        try:
            if is_missing(column, value) and column.required:
                raise RejectedError("missing_field")
            is_read = column.kind != "json" or read_json
            row[column.name] = naive_column(column, value) if is_read else value
        except RejectedError as error:
            fault = fault or (column.name, str(error))
    return row, fault


def is_missing(column: Column, value: Any) -> bool:
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or (is_nan and column.kind in ("text", "integer", "boolean"))


def naive_column(column: Column, value: Any) -> Any:
    try:
        return naive_value(column, value)
    except RejectedError as error:
        if str(error) in ("wrong_type", "out_of_range") and column.otherwise == "null":
            return None
        raise


def comparable(row: dict[str, Any], source: Source) -> str:
    """Write a row so that equal rows are equal texts, NaN and JSON included."""
    shown = dict(row)
    for column in source.columns:
        if column.kind == "json" and isinstance(shown[column.name], str):
            shown[column.name] = json.loads(shown[column.name])
    return json.dumps(shown)


INTEGER_CELL = re.compile(r"[+-]?[0-9]+")
NUMBER_CELL = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE
)


def naive_cell(column: Column, cell: str, names_dialogue: bool) -> Any:
    """Value that a cell spells, as JSON would have it."""
    if column.kind == "text":
        return None if names_dialogue and not cell else cell
    if not cell:
        return None
    if column.kind == "json":
        return cell
    text = cell.strip(" \t")
    if INTEGER_CELL.fullmatch(text):
        return int(text)
    if NUMBER_CELL.fullmatch(text):
        return float(text)
    return {"true": True, "false": False}.get(text.lower(), cell)


def naive_read_csv(
    name: str, data: bytes, source: Source
) -> tuple[list[dict[str, Any]], list[tuple[str, int, int, str | None, str]], dict[str, int]]:
    """Rows, rejects and counts of one CSV file, as `naive_read` gives them."""
    mark = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    rows: list[dict[str, Any]] = []
    rejects: list[tuple[str, int, int, str | None, str]] = []
    records = naive_records(data[mark:], None)
    while records and records[0].status == "blank":
        records.pop(0)

    def refuse(line: int, start: int, field: str | None, reason: str) -> Any:
        counts = {"lines": 1, "blank": 0, "rows": 0, "rejects": 1}
        return [], [(name, line, start + mark, field, reason)], counts

    if not records:
        return refuse(1, 0, None, "no_header")
    header = records.pop(0)
    if header.status != "row":
        return refuse(header.line, header.start, None, header.status)
    names = [cell.strip().lower() for cell in header.cells]
    for column in source.columns:
        own = [each.strip().lower() for each in (column.name, *column.aliases)]
        for each in own:
            if names.count(each) > 1:
                return refuse(header.line, header.start, each, "duplicate_column")
        if column.required and column.only_where is None and not set(own) & set(names):
            return refuse(header.line, header.start, column.name, "missing_column")
    blank = 0
    for record in records:
        place = {"file": name, "line": record.line, "byte_offset": record.start + mark}
        if record.status == "blank":
            blank += 1
            continue
        if record.status != "row":
            rejects.append((*place.values(), None, record.status))
            continue
        cells = dict(reversed([*zip(names, record.cells, strict=False)]))
        values = {}
        for column in source.columns:
            cell = stated(column, cells, fold=True)
            if cell is not None:
                cell = naive_cell(column, cell, column.name in source.dialogue_key)
            values[column.name] = cell
        row, fault = naive_row(place, values, source, read_json=False)
        if fault is None:
            rows.append(row)
        else:
            rejects.append((*place.values(), *fault))
    counts = {"lines": len(records), "blank": blank, "rows": len(rows), "rejects": len(rejects)}
    return rows, rejects, counts
