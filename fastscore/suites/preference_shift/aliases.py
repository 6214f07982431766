"""Aliases: other spellings under which values of the catalogue stand in texts.

A table maps a spelling to a value: texts are searched for the spelling as for the value itself, and
both mean the same concept. An alias adds to what is found and never takes anything away.
"""

import difflib
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import polars as pl

from fastscore.errors import UsageError, nearest
from fastscore.option_files import read_option_file
from fastscore.suites.preference_shift.catalogue import (
    PLOT,
    YEAR,
    Catalogue,
    Record,
    normalise,
    read_csv,
)

SPELLING, VALUE, FIELD = "spelling", "value", "field"
ALIAS_SCHEMA = {SPELLING: pl.String(), FIELD: pl.String(), VALUE: pl.String()}


def read_aliases(path: str, catalogue: Catalogue) -> pl.DataFrame:
    """Read a table of aliases.

    Parameters
    ----------
    path
        A CSV file with the columns ``spelling`` and ``value``, and perhaps ``field``; in cells of
        the first two ``|`` stands between several. Empty for no aliases.
    catalogue
        Whose values they are.

    Returns
    -------
    pl.DataFrame
        In `ALIAS_SCHEMA`, distinct rows: the spelling in lower case, and field and normalised value
        of the catalogue. Without a field a spelling stands for every field that has the value; for
        the year only where the value is nothing but digits.

    Raises
    ------
    UsageError
        The file cannot be read, or a line is no alias of a value: names line, field, what was found
        and the nearest value.
    """
    if not path:
        return pl.DataFrame(schema=ALIAS_SCHEMA)
    if PurePath(path).suffix.lower() != ".csv":
        raise UsageError(f"--aliases {path}: expected a CSV file with spelling, value and field.")
    try:
        content = read_option_file(path)
    except OSError as error:
        raise UsageError(f"--aliases {path}: cannot be read: {error.strerror}.") from error
    values = {
        name: set(terms["value"])
        for (name,), terms in catalogue.terms.group_by("field", maintain_order=True)
        if name != PLOT
    }
    records = list(read_csv(path, content))
    if not records:
        raise UsageError(f"{path}: holds no alias, expected a header and at least one line.")
    rows = [row for record in records for row in _aliases(path, record, values)]
    return pl.DataFrame(rows, schema=ALIAS_SCHEMA, orient="row").unique(maintain_order=True)


def _aliases(
    path: str, record: Record, values: dict[str, set[str]]
) -> Iterator[tuple[str, str, str]]:
    place = f"{path}: {record.place}"
    unknown = record.fields.keys() - ALIAS_SCHEMA.keys()
    if unknown or not {SPELLING, VALUE} <= record.fields.keys():
        found = ", ".join(record.fields)
        raise UsageError(
            f"{path}: line 1: the columns are {found}, expected {SPELLING}, {VALUE} and perhaps "
            f"{FIELD}.",
            nearest(min(unknown), ALIAS_SCHEMA) if unknown else None,
        )
    field = str(record.fields.get(FIELD, "")).strip()
    if field and field not in values:
        raise UsageError(
            f"{place}: {FIELD} is {field!r}, expected a field of the catalogue or nothing.",
            nearest(field, values),
        )
    spellings = [_text(place, SPELLING, cell).lower() for cell in _cells(record, SPELLING)]
    for cell in _cells(record, VALUE):
        value = _text(place, VALUE, cell)
        of_fields = [
            (name, normalise(name, value))
            for name in ([field] if field else _fields_of(value, values))
            if normalise(name, value) in values[name]
        ]
        if not of_fields:
            raise UsageError(_unknown(place, field, value), _hint(field, value, values))
        for spelling in spellings:
            for name, normal in of_fields:
                yield spelling, name, normal


def _fields_of(value: str, values: dict[str, set[str]]) -> list[str]:
    """Return the fields that a value may be of: a year's digits stand in other values, too."""
    return [name for name in values if name != YEAR or (value.isascii() and value.isdigit())]


def _cells(record: Record, name: str) -> list[Any]:
    cell = record.fields[name]
    return cell if isinstance(cell, list) else [cell]


def _text(place: str, name: str, cell: Any) -> str:
    if not isinstance(cell, str) or not cell.strip():
        raise UsageError(f"{place}: {name} is {cell!r}, expected a text.")
    return cell.strip()


def _unknown(place: str, field: str, value: str) -> str:
    where = f"the catalogue's field {field!r}" if field else "a field of the catalogue"
    return f"{place}: {VALUE} is {value!r}, expected a value of {where}."


def _hint(field: str, value: str, values: dict[str, set[str]]) -> str:
    known = sorted(values[field]) if field else sorted(set().union(*values.values()))
    close = difflib.get_close_matches(value.lower(), known, n=1, cutoff=0.5)
    listing = "`fastscore catalogue show` lists the values."
    return f"Did you mean {close[0]!r}? {listing}" if close else listing
