"""Cells of any origin: JSON, Python literals, or plain text; and warnings of unread parts."""

import ast
import json
import re
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import orjson
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.suites.columns import replace_lone_surrogates
from fastscore.suites.grouping import factorize

ABSENT_CELLS = ("", "nan", "none", "null", "{}", "[]", "-")
LARGEST_LITERAL = 8 << 20
_LONGEST_ABSENT = max(map(len, ABSENT_CELLS))
_HEAD = 64
_LONG_NUMBER = "[0-9]{19}"  # perhaps beyond 64 bits
_LITERAL = r"^[\s\[{]*'"
_STRING = r"""'((?:[^'"\\]|\\[nrt\\])*)'|"((?:[^"\\]|\\[nrt"\\])*)\""""
_NO_LITERAL = r"""['"\\]|true|false|null"""
_WORD = r"(?:None|True|False)\s*[,\]}]"
_WORDS = {"None": "null", "True": "true", "False": "false"}
_LEAF, _OPENING = r"[\[{][^\[\]{}]*[\]}]", r"[\[{]"
_DEEP = 90  # Python's parser reads at least as many brackets in one another
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]|\\U0000[dD]")


def parse_cells(cells: pl.Series) -> Iterator[Any]:
    """Read cells as `parse_cell` does; plain objects and lists are read by a faster parser."""
    cell = pl.col("cell")
    plain = cells.to_frame("cell").select(pl.when(~cell.str.contains(_LONG_NUMBER)).then(cell))
    rows = cells.str.contains(_LITERAL).fill_null(False).arg_true()
    literals = plain[rows].select(_literal_as_json(cell)).to_series()
    for text, as_json in zip(cells, plain.to_series().scatter(rows, literals), strict=True):
        yield _parse_container(as_json) or parse_cell(text)


def _parse_container(as_json: str | None) -> Any:
    """Read an object or list that is not empty; None for all else."""
    try:
        value = orjson.loads(as_json or "")
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict | list) else None


def _literal_as_json(cell: pl.Expr) -> pl.Expr:
    """Write Python literals as JSON; null or no JSON if they might mean anything else."""
    outside = cell.str.replace_all(_STRING, "")
    as_json = cell.str.replace_all(_STRING, '"$1$2"')
    is_plain = (
        ~outside.str.contains(_NO_LITERAL)
        & (outside.str.count_matches(_WORD) == as_json.str.count_matches(_WORD))
        & (outside.str.replace_all(_LEAF, "").str.count_matches(_OPENING) < _DEEP)
        & (cell.str.len_chars() <= LARGEST_LITERAL)
    )
    for word, of_json in _WORDS.items():
        as_json = as_json.str.replace_all(rf"{word}(\s*[,\]}}])", f"{of_json}$1")
    return pl.when(is_plain).then(as_json)


def parse_cell(text: str) -> Any:
    """Read a cell: None if it is absent, its value, or the text itself if it has none.

    JSON comes first, then a Python literal of at most 8 MiB, in the types of JSON: tuples are
    lists, and what JSON has no type for, such as a set, is an empty object. Lone surrogates are
    U+FFFD. A value that is a string is a cell again, once: exporters put cells in quotes.
    """
    value = _parse(text)
    return _parse(value) if isinstance(value, str) and value != text else value


def _parse(text: str) -> Any:
    stripped = text.strip()
    if len(stripped) <= _LONGEST_ABSENT and stripped.casefold() in ABSENT_CELLS:
        return None
    try:
        value = _parse_json(stripped)
    except (ValueError, RecursionError):
        if len(stripped) > LARGEST_LITERAL:
            return text
        try:
            value = json.loads(_as_json(ast.literal_eval(stripped)))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return text
    if _SURROGATE_ESCAPE.search(stripped):
        value = json.loads(replace_lone_surrogates(_as_json(value)))
    return value


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, skipkeys=True, default=lambda _: {})


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=_whole_number)


def _whole_number(digits: str) -> int | Decimal:
    """Read a whole number; one of more digits than Python converts is a decimal."""
    return int(digits) if len(digits) <= sys.get_int_max_str_digits() else Decimal(digits)


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


def as_object(value: object) -> dict[str, Any]:
    """Return a value that is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_text(value: object) -> str | None:
    """Return a scalar as text; None for null and for containers."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, bool | int | float | Decimal) else None


def as_flag(value: object) -> bool | None:
    """Return a flag: true, 1, "true", "yes" and "1" are true, null is unknown, others are false."""
    if isinstance(value, str):
        return value.strip().lower() in ("true", "yes", "1")
    return None if value is None else value == 1


def by_canonical_key(members: dict[str, Any]) -> dict[str, Any]:
    """Return members by `canonical_key`; the first of equal ones counts."""
    found: dict[str, Any] = {}
    for key, value in members.items():
        found.setdefault(canonical_key(key), value)
    return found


def frame_of(rows: Sequence[Sequence[Any]], schema: pl.Schema) -> pl.DataFrame:
    """Make a table of rows; by column, which is twice as fast as polars makes one by row."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pl.DataFrame(
        [
            pl.Series(name, values, dtype)
            for (name, dtype), values in zip(schema.items(), columns, strict=True)
        ]
    )


def shortfall(missed: int, of: int, words: str) -> str | None:
    """Return the fault of a cell some parts of which are left out; None if none is."""
    return f"{missed} of {of} {words}; left out" if missed else None


def warnings_of(cells: pl.DataFrame, column: pl.Expr) -> pl.DataFrame:
    """Return warnings: ``dialogue_row``, ``warning``.

    Parameters
    ----------
    cells
        ``dialogue_row``, ``line`` and ``fault``.
    column
        The name of a cell's column.
    """
    return cells.drop_nulls("fault").select(
        "dialogue_row", pl.format("line {}, {}: {}", "line", column, "fault").alias("warning")
    )
