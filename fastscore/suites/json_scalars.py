"""What Python makes of JSON values, as columns: texts, booleans and whole numbers.

A value that has no such thing is noted in `Problems`, with its place, and left out.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices, Mask, UInt8Array
from fastscore_jit.arrow import TextRows
from fastscore_readers.json.located_values import unescaped, views
from fastscore_readers.json.tokens import ESCAPED, FALSE, INTEGER, STRING, TRUE

from fastscore.suites.json_values import (
    JsonValues,
    Problems,
    python_values,
)

WHOLE_TEXT = "text without half a surrogate pair"
_WHOLE_NUMBER = "a whole number of at most 64 bits"


def texts(values: JsonValues, problems: Problems, *, or_empty: bool = False) -> pl.Series:
    """Return strings as a String column, null (or empty) where a value is none.

    A lone surrogate, which no file could hold, is noted.
    """
    present = values.is_text
    if not present.any():
        nothing = "" if or_empty else None
        return pl.Series("", [nothing], dtype=pl.String).new_from_index(0, len(values))
    out = np.zeros((len(values), 4), np.int32)
    views(values.data, np.where(values.tags == STRING, values.start, -1), values.end, 0, out)
    rows = np.flatnonzero(values.tags == ESCAPED)
    data = [values.data]
    if len(rows):
        plain, start, end = unescape_rows(values, rows, problems)
        halved = end < 0
        of_row, until = np.full(len(values), -1), np.full(len(values), -1)
        of_row[rows[~halved]], until[rows[~halved]] = start[~halved], end[~halved]
        views(plain, of_row, until, 1, out)
        present[rows[halved]] = False
        data.append(plain)
    return string_views(None if or_empty else present, out, data)


def unescape_rows(
    values: JsonValues, rows: Indices, problems: Problems
) -> tuple[UInt8Array, Indices, Indices]:
    """Unescape the strings in these rows, and note those of which no text can be made."""
    plain, start, end = unescaped(values.data, values.start[rows], values.end[rows])
    problems.note(values, rows[end < 0], WHOLE_TEXT, "lone_surrogate")
    return plain, start, end


def located_texts(values: JsonValues, problems: Problems) -> TextRows:
    """Return where the texts of strings lie, as `texts` would make a column of them."""
    base = values.data.ctypes.data if values.data.size else 0
    plain = values.tags == STRING
    addresses = np.where(plain, base + values.start, 0)
    lengths = np.where(plain, values.end - values.start, -1)
    rows = np.flatnonzero(values.tags == ESCAPED)
    if not len(rows):
        return TextRows(values.data, addresses, lengths)
    data, start, end = unescape_rows(values, rows, problems)
    addresses[rows], lengths[rows] = data.ctypes.data + start, np.where(end < 0, -1, end - start)
    return TextRows((values.data, data), addresses, lengths)


def raw_texts(values: JsonValues) -> pl.Series:
    """Return objects, arrays, numbers and truth values as their JSON text; all else is null."""
    present = ~values.is_text & ~values.is_missing
    out = np.zeros((len(values), 4), np.int32)
    views(values.data, np.where(present, values.start, -1), values.end, 0, out)
    return string_views(present, out, (values.data,))


def string_views(
    present: Mask | None, out: npt.NDArray[np.int32], data: Sequence[UInt8Array]
) -> pl.Series:
    """Make a column of views; without ``present`` it has no nulls."""
    import pyarrow as pa

    validity = None
    if present is not None and not present.all():
        validity = pa.py_buffer(np.packbits(present, bitorder="little"))
    buffers = [validity, pa.py_buffer(out), *(pa.py_buffer(buffer) for buffer in data)]
    return pl.Series("", pa.Array.from_buffers(pa.string_view(), len(out), buffers))


def expect_texts(values: JsonValues, problems: Problems, *, or_empty: bool) -> pl.Series:
    """Return strings, null (or empty) where a value is missing; note values of other types."""
    problems.note(values, np.flatnonzero(~values.is_text & ~values.is_missing), "a string")
    return texts(values, problems, or_empty=or_empty)


def python_texts(values: JsonValues, problems: Problems, *, falsy_is_empty: bool) -> pl.Series:
    """Return what Python's ``str`` makes of each value, or of ``value or ""``.

    A missing value gives the empty text or, where falsy values keep their text, null.
    """
    found = texts(values, problems, or_empty=falsy_is_empty)
    rows = np.flatnonzero(~values.is_text & ~values.is_missing)
    if not len(rows):
        return found
    return found.scatter(rows, _made(values, rows, problems, falsy_is_empty))


def located_python_texts(
    values: JsonValues, problems: Problems, *, falsy_is_empty: bool
) -> TextRows:
    """Return where the texts lie of which `python_texts` would make a column."""
    found = located_texts(values, problems)
    rows = np.flatnonzero(~values.is_text & ~values.is_missing)
    if len(rows):
        made = [text.encode() for text in _made(values, rows, problems, falsy_is_empty)]
        data, sizes = np.frombuffer(b"".join(made), np.uint8), [len(text) for text in made]
        found.addresses[rows] = data.ctypes.data + np.cumsum([0, *sizes[:-1]])
        found.lengths[rows] = sizes
        found = TextRows((found.owner, data), found.addresses, found.lengths)
    if falsy_is_empty:
        np.maximum(found.lengths, 0, out=found.lengths)
    return found


def _made(values: JsonValues, rows: Indices, problems: Problems, falsy_is_empty: bool) -> list[str]:
    """Make texts of the values in some rows, which are no strings."""
    python = python_values(values, rows, problems)
    return [str((value or "") if falsy_is_empty else value) for value in python]


def booleans(values: JsonValues, problems: Problems) -> Mask:
    """Return which values Python counts as true."""
    true: Mask = values.tags == TRUE
    other = np.flatnonzero(~values.is_missing & ~true & (values.tags != FALSE))
    true[other] = [bool(value) for value in python_values(values, other, problems)]
    return true


def whole_numbers(values: JsonValues, problems: Problems) -> Indices:
    """Return what Python's ``int`` makes of each value, 0 where it is missing."""
    plain = values.tags == INTEGER
    read = raw_texts(values.where(plain)).cast(pl.Int64, strict=False)
    problems.note(values, np.flatnonzero(plain & read.is_null().to_numpy()), _WHOLE_NUMBER)
    found = read.fill_null(0).to_numpy(writable=True)
    for row in np.flatnonzero(~values.is_missing & ~plain).tolist():
        try:
            found[row] = int(values.python(row))
        except (TypeError, ValueError, OverflowError):
            problems.note(values, np.array([row]), _WHOLE_NUMBER)
    return found
