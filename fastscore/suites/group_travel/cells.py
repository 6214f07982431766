"""Cells of any origin: JSON, Python literals, or plain text."""

import ast
import json
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.suites.grouping import factorize

ABSENT_CELLS = ("", "nan", "none", "null", "{}", "[]", "-")
LARGEST_LITERAL = 8 << 20
_LONGEST_ABSENT = max(map(len, ABSENT_CELLS))
_HEAD = 64


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
        return json.loads(stripped)
    except (ValueError, RecursionError):
        pass
    if len(stripped) <= LARGEST_LITERAL:
        try:
            return ast.literal_eval(stripped)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
    return text


def present_cells(cells: pl.Series) -> tuple[Indices, Indices, pl.Series]:
    """Find the cells that hold anything.

    Returns
    -------
    tuple
        Their rows and the number of each one's text, int64 (n,); and the distinct texts.
    """
    codes, found = factorize(cells)
    present = is_present(found).to_numpy()
    rows = np.flatnonzero(present[codes])
    number = np.cumsum(present) - 1
    return rows, number[codes[rows]], found.filter(pl.Series(present))


def is_present(cells: pl.Series) -> pl.Series:
    """Tell which cells hold anything."""
    cell = pl.col("cell")
    start = _strip_quotes(cell.str.head(_HEAD))
    told = cells.to_frame("cell").select(
        _is_meaningful(start).alias("present"),
        ((cell.str.len_bytes() > _HEAD) & (start.str.len_bytes() <= _LONGEST_ABSENT)).alias(
            "blank"
        ),
    )
    if not told["blank"].any():
        return told["present"]
    whole = cells.to_frame("cell").select(
        pl.when(pl.lit(told["blank"]))
        .then(_is_meaningful(_strip_quotes(cell)))
        .otherwise(told["present"])
    )
    return whole.to_series()


def _is_meaningful(bare: pl.Expr) -> pl.Expr:
    start = bare.str.head(_LONGEST_ABSENT + 1).str.to_lowercase()
    return ~start.is_in(ABSENT_CELLS).fill_null(True)


def _strip_quotes(cells: pl.Expr) -> pl.Expr:
    return cells.str.strip_chars().str.strip_chars('"').str.strip_chars()


@lru_cache(maxsize=4096)
def canonical_key(key: str) -> str:
    """Return a key in lower case without blanks, underscores and hyphens."""
    return key.lower().replace(" ", "").replace("_", "").replace("-", "")


def as_text(value: object) -> str | None:
    """Return a scalar as text; None for null and for containers."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, bool | int | float) else None
