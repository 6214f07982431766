"""Cells of any origin: JSON, Python literals, or plain text; each distinct one is read once."""

import ast
import json
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from fastscore.suites.distinct import distinct

Indices = npt.NDArray[np.int64]
Value = TypeVar("Value")

ABSENT_CELLS = ("", "nan", "none", "null", "{}", "[]", "-")
LARGEST_LITERAL = 8 << 20
_LONGEST_ABSENT = max(map(len, ABSENT_CELLS))


def parse_cell(text: str) -> Any:
    """Read a cell: None where it is absent, its value, or the text itself where it has none.

    JSON comes first, then a Python literal of at most 8 MiB. A value that is a string is a cell
    again, once: exporters put cells in quotes.
    """
    value = _parse(text)
    return _parse(value) if isinstance(value, str) and value != text else value


def _parse(text: str) -> Any:
    stripped = text.strip()
    if len(stripped) <= _LONGEST_ABSENT and stripped.casefold() in ABSENT_CELLS:
        return None
    try:
        return orjson.loads(stripped)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(stripped)  # NaN and Infinity, which orjson refuses
    except (ValueError, RecursionError):
        pass
    if len(stripped) <= LARGEST_LITERAL:
        try:
            return ast.literal_eval(stripped)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
    return text


def is_present(cells: pl.Series) -> pl.Series:
    """Tell which cells hold anything."""
    stripped = cells.str.strip_chars().str.strip_chars('"').str.strip_chars()
    start = stripped.str.head(_LONGEST_ABSENT + 1).str.to_lowercase()
    return ~start.is_in(ABSENT_CELLS).fill_null(True)


def read_distinct(cells: pl.Series, read: Callable[[Any], Value]) -> tuple[Indices, list[Value]]:
    """Parse and read each distinct cell once.

    Returns
    -------
    tuple
        The number of each cell's value, int64 (n,), and the values.
    """
    numbers, found = distinct(cells)
    return numbers, [read(parse_cell(cell)) for cell in found]


@lru_cache(maxsize=4096)
def canonical_key(key: Hashable) -> str:
    """Return a key in lower case without blanks, underscores and hyphens."""
    return str(key).lower().replace(" ", "").replace("_", "").replace("-", "")


def truth(value: object) -> bool | None:
    """Read a flag: true, 1, "true", "yes" and "1" are true, null is unknown, all else is false."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.strip().casefold() in ("true", "yes", "1")
    return value is True or (isinstance(value, int | float) and value == 1)


def as_text(value: object) -> str | None:
    """Return a scalar as text; None for null and for containers."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, bool | int | float) else None


def first_list(value: Any, keys: Sequence[str]) -> list[Any] | None:
    """Return a list, or the first list under one of the keys of an object."""
    if isinstance(value, dict):
        return next((value[key] for key in keys if isinstance(value.get(key), list)), None)
    return value if isinstance(value, list) else None
