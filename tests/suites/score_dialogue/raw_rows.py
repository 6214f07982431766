"""Raw frames for tests, made from JSON objects by the rules that the suite's columns declare."""

from typing import Any

import polars as pl

from fastscore.suites.declarations import ROW_SCHEMA, Column
from fastscore.suites.score_dialogue import SUITE

DTYPES = {"text": pl.String(), "integer": pl.Int64()}


class WrongTypeError(Exception):
    """A value that its column does not accept."""


def convert(column: Column, value: Any) -> Any:
    if value is None or value != value:  # NaN is no value
        return None
    if column.kind == "text":
        if isinstance(value, str):
            return value
        if "falsy" in column.accepts and not value:
            return ""
        if "integer" in column.accepts and isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    elif isinstance(value, bool):
        if "boolean" in column.accepts:
            return int(value)
    elif isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        value = int(value)
        if -(2**63) <= value < 2**63:
            return value
    elif (isinstance(value, float) and "number" in column.accepts) or (
        isinstance(value, str) and "string" in column.accepts
    ):
        try:
            return int(value)
        except (ValueError, OverflowError):
            pass
    if column.otherwise == "null":
        return None
    raise WrongTypeError


def used(column: Column, row: dict[str, Any]) -> Any:
    if column.only_where is not None:
        name, value = column.only_where
        if row.get(name) != value:
            return None
    return row.get(column.name)


def raw_frame(rows: list[tuple[str, int, dict[str, Any]]]) -> tuple[pl.DataFrame, int]:
    """Return the raw frame of (file, line, object) rows, and how many were rejected."""
    records = []
    for file, line, row in rows:
        try:
            values = [convert(column, used(column, row)) for column in SUITE.source.columns]
        except WrongTypeError:
            continue
        records.append([file, line, None, *values])
    schema = {**ROW_SCHEMA, **{c.name: DTYPES[c.kind] for c in SUITE.source.columns}}
    return pl.DataFrame(records, schema=schema, orient="row"), len(rows) - len(records)
