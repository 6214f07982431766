"""What Python holds in memory, as rows: frames of any library, or objects row by row."""

import contextlib
import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from fastscore.errors import InputError, UsageError
from fastscore.settings.extras import require

FRAME_NAME = "frame"
"""What rows, rejects and errors call what was in memory: the place of a file's path."""

_BLOCK_BYTES = 8 << 20
_ORJSON = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE


def as_frame(given: Any) -> pl.DataFrame | None:
    """Take a frame as polars', or say that it is none."""
    if isinstance(given, pl.DataFrame):
        return given
    if isinstance(given, pl.LazyFrame):
        return given.collect()
    speaks_arrow = hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")
    if not speaks_arrow and not hasattr(given, "to_polars"):
        return None
    try:
        if _is_pandas(given):
            require("arrow", "A frame of pandas")
            found = pl.DataFrame(_with_named_index(given))
        else:
            found = _of_arrow(given) if speaks_arrow else given.to_polars()
    except (InputError, UsageError):
        raise
    except Exception as error:  # each library has errors of its own
        raise InputError(
            f"The frame ({type(given).__name__}) cannot be read as Arrow: {error}.",
            "Give columns of one type each, or rows: a list of dicts takes values of any type.",
        ) from error
    if not isinstance(found, pl.DataFrame):
        raise UsageError(f"The source is of type {type(given).__name__}, expected one frame.")
    return found


def _of_arrow(given: Any) -> pl.DataFrame:
    """Take what another library wrote, of which polars takes texts and views at their word."""
    if type(given).__module__.partition(".")[0] == "pyarrow":
        # views and offsets beyond their buffers, which no other library lets write
        given = sys.modules["pyarrow"].table(given)
        for name, column in zip(given.column_names, given.columns, strict=True):
            with _refused(name):
                column.validate(full=True)
        return pl.DataFrame(given)
    found = pl.DataFrame(given)
    for column in found:
        of_bytes = _as_bytes(column.dtype)
        if of_bytes != column.dtype:
            with _refused(column.name):
                column.cast(of_bytes).cast(column.dtype)
    return found


@contextlib.contextmanager
def _refused(name: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, pl.exceptions.PolarsError) as error:  # those of Arrow are ValueErrors
        raise InputError(
            f"{FRAME_NAME}: the column {name!r} does not hold what its type says: {error}.",
            "Text must be UTF-8, within the buffers of its array: write the column again.",
        ) from error


def _as_bytes(dtype: pl.DataType) -> pl.DataType:
    """Return a type with bytes in the place of text: casts to text check it."""
    if isinstance(dtype, pl.String):
        return pl.Binary()
    if isinstance(dtype, pl.List):
        return pl.List(_as_bytes(_instance(dtype.inner)))
    if isinstance(dtype, pl.Array):
        return pl.Array(_as_bytes(_instance(dtype.inner)), dtype.size)
    if isinstance(dtype, pl.Struct):
        fields = ((field.name, _as_bytes(_instance(field.dtype))) for field in dtype.fields)
        return pl.Struct(dict(fields))
    return dtype


def _instance(dtype: Any) -> pl.DataType:
    found: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return found


def _is_pandas(given: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(given, pandas.DataFrame)


def _with_named_index(frame: Any) -> Any:
    """Return a frame of pandas with the named levels of its index as columns; others only count."""
    names = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return frame.reset_index(level=names) if names else frame


def as_rows(given: Any) -> tuple[Any, ...] | None:
    """Take rows given as dicts (or as arrays, of suites that read them), or say that it is none."""
    if isinstance(given, Mapping):
        keys = ", ".join(repr(key) for key in itertools.islice(given, 5))
        raise UsageError(
            f"The source is a {type(given).__name__} with the keys {keys or '(none)'}.",
            "Give one of its values, a list of dicts, or a frame of the columns.",
        )
    if not isinstance(given, Sequence) or not given or not isinstance(given[0], Mapping | list):
        return None
    return tuple(given)


def row_blocks(rows: Iterable[Any]) -> Iterator[bytes]:
    """Write rows as JSON Lines, in blocks."""
    block = bytearray()
    for number, row in enumerate(rows, 1):
        block += _encoded(row, number)
        if len(block) >= _BLOCK_BYTES:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)


def _encoded(row: Any, number: int) -> bytes:
    try:
        text = orjson.dumps(row, option=_ORJSON)
        if b"null" not in text or not _holds_non_finite(row):
            return text
    except TypeError:
        pass  # not `suppress`, which takes half as long as the row
    try:
        # NaN, infinities, integers of more than 64 bits, lone surrogates: the reader judges them
        return json.dumps(row).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{FRAME_NAME}:{number}: the row cannot be written as JSON: {error}.",
            "Give strings, numbers, booleans, None, lists and dicts.",
        ) from error


def _holds_non_finite(value: Any) -> bool:
    """Tell whether a value has NaN or an infinity in it, which orjson writes as null."""
    if isinstance(value, dict):
        return any(map(_holds_non_finite, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_non_finite, value))
    return isinstance(value, float) and not math.isfinite(value)
