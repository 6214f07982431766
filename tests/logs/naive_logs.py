"""Plain-Python definition of how a source reads a log, line by line."""

import json
import math
from typing import Any

from fastscore.suites.base import Column, Source
from tests.naive_jsonl import naive_scan

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
    elif column.kind == "boolean":
        if is_bool:
            return value
    elif column.kind == "integer":
        if (
            is_int
            or (is_bool and "boolean" in accepts)
            or (is_float and "number" in accepts)
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
        row: dict[str, Any] = dict(place)
        fault: tuple[str, str] | None = None
        for column in source.columns:
            names = (column.name, *column.aliases)
            value = next((line.values[each] for each in names if each in line.values), None)
            if column.only_where is not None:
                other, wanted = column.only_where
                if row.get(other) != wanted:
                    row[column.name] = None
                    continue
            try:
                if value is None and column.required:
                    raise RejectedError("missing_field")
                row[column.name] = naive_column(column, value)
            except RejectedError as error:
                fault = fault or (column.name, str(error))
        if fault is None:
            rows.append(row)
        else:
            rejects.append((*place.values(), *fault))
    counts = {"lines": len(lines), "blank": blank, "rows": len(rows), "rejects": len(rejects)}
    return rows, rejects, counts


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
