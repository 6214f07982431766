"""Columns of JSON texts as `JsonValues`, each text the value of a dialogue."""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Int64Array, Mask, UInt8Array
from fastscore_jit.arrow import StringColumn, string_column
from fastscore_readers.json.kinds import value_kinds
from fastscore_readers.json.line_ends import count_line_ends
from fastscore_readers.json.places import find_places
from fastscore_readers.json.tokens import ARRAY, OBJECT

from fastscore.suites.json_values import (
    JsonValues,
    Problems,
)

_MOST_PARTS = 16
_INLINE_BYTES, _VIEW_BYTES = 12, 16
_EMPTY = {ARRAY: int.from_bytes(b"[]", "little"), OBJECT: int.from_bytes(b"{}", "little")}


def column_values(column: pl.Series) -> JsonValues:
    """Read a column of raw JSON texts, one a dialogue; a null is absent."""
    texts = _texts_on_one_line(column)
    offsets = texts.offsets
    tags, start, end = value_kinds(texts.data, offsets[:-1], offsets[1:])
    name = column.name
    return JsonValues(texts.data, tags, start, end, np.arange(len(column)), lambda _: name)


def checked_values(column: pl.Series, problems: Problems) -> JsonValues:
    """Read a column as `column_values` does; what is not valid JSON is noted, and absent."""
    texts = _texts_on_one_line(column)
    begin, end = texts.offsets[:-1], texts.offsets[1:]
    values = _located(column.name, texts.data, begin, end - begin)
    _, faulty = find_places(texts.data, begin, end, None, is_utf8=True)
    problems.note(values, faulty, "valid JSON", "not_json")
    valid = np.ones(len(values), np.bool_)
    valid[faulty] = False
    return values.where(valid)


def _texts_on_one_line(column: pl.Series) -> StringColumn:
    """Make line ends spaces: inside JSON they can only be white space between values."""
    texts = column.fill_null("")
    found = string_column(column.name, texts)
    if not count_line_ends(found.data):
        return found
    for end in "\n\r":
        texts = texts.str.replace_all(end, " ", literal=True)
    return string_column(column.name, texts)


def line_values(column: pl.Series) -> JsonValues:
    """Read a column of JSON texts that stood in lines of JSON, and so hold no line end.

    As `column_values`, but texts that stand in one buffer are left there.
    """
    array, views = _views_of(column)
    if not len(views):
        return column_values(column)
    size = np.where(_present(array), views[:, 0], 0).astype(np.int64)
    apart = size > _INLINE_BYTES
    if not apart.any():
        # a short text stands in its view
        data = views.view(np.uint8).reshape(-1)
        return _located(column.name, data, np.arange(len(views)) * _VIEW_BYTES + 4, size)
    of_size_two = size == 2
    empty = {tag: of_size_two & (views[:, 1] == text) for tag, text in _EMPTY.items()}
    used = views[apart, 2]
    if (used != used[0]).any() or (~apart & (size > 0) & ~empty[ARRAY] & ~empty[OBJECT]).any():
        return column_values(column)
    data = np.frombuffer(array.buffers()[2 + used[0]], np.uint8)
    begin = np.where(apart, views[:, 3], 0).astype(np.int64)
    values = _located(column.name, data, begin, np.where(apart, size, 0))
    for tag, rows in empty.items():
        values.tags[rows] = tag
    return values


def _located(name: str, data: UInt8Array, begin: Int64Array, size: Int64Array) -> JsonValues:
    tags, start, end = value_kinds(data, begin, begin + size)
    return JsonValues(data, tags, start, end, np.arange(len(tags)), lambda _: name)


def _views_of(column: pl.Series) -> tuple[Any, npt.NDArray[np.int32]]:
    """Return a column as an Arrow array, and its string views (n, 4); (0, 4) if it has others."""
    import pyarrow as pa

    array = column.to_arrow(compat_level=pl.CompatLevel.newest())
    if column.n_chunks() != 1 or not pa.types.is_string_view(array.type):
        return array, np.zeros((0, 4), np.int32)
    views = np.frombuffer(array.buffers()[1], np.int32).reshape(-1, 4)
    return array, views[array.offset : array.offset + len(array)]


def _present(array: Any) -> Mask:
    """Return which values of an Arrow array are not null."""
    validity = array.buffers()[0]
    if validity is None:
        return np.ones(len(array), np.bool_)
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].view(np.bool_)


def line_parts(column: pl.Series) -> list[pl.Series]:
    """Cut a column where its texts go on in another buffer, for `line_values`."""
    array, views = _views_of(column)
    if not len(views):
        return [column]
    rows = np.flatnonzero(_present(array) & (views[:, 0] > _INLINE_BYTES))
    buffer = views[rows, 2]
    cuts = rows[1:][buffer[1:] != buffer[:-1]].tolist()
    if len(cuts) >= _MOST_PARTS:
        return [column]
    bounds = zip([0, *cuts], [*cuts, len(column)], strict=True)
    return [column.slice(start, stop - start) for start, stop in bounds]
