"""Cells of any origin: JSON, Python literals or plain text; and catalogues of real places."""

import ast
import contextlib
import json
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import orjson
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.suites.columns import replace_lone_surrogates
from fastscore.suites.group_travel.lexicon import (
    CATALOGUES,
    KIND_OF_SLOT,
    Lexicon,
    catalogue_rooms,
    component,
    normalise,
)
from fastscore.suites.grouping import factorize, row_numbers

ABSENT_CELLS = ("", "nan", "none", "null", "{}", "[]", "-")
LARGEST_LITERAL = 8 << 20
NAME_KEYS = ("name", "title", "eventname", "restaurantname", "attractionname", "hotelname")
_LONGEST_ABSENT = max(map(len, ABSENT_CELLS))
_ABSENT = rf'(?i)^\s*"*\s*(?:{"|".join(map(re.escape, ABSENT_CELLS))})\s*"*\s*$'
_ODD_JSON = r"[0-9]{19}|\\u[dD][89a-fA-F]"
"""A whole number of perhaps more than 64 bits, of which orjson makes a float, or half a pair."""
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]|\\U0000[dD]")
_lock = threading.Lock()


def parse_cells(cells: pl.Series) -> Iterator[Any]:
    """Read cells as `parse_cell` does, arrays and objects of usual JSON by orjson."""
    for cell, is_odd in zip(cells, cells.str.contains(_ODD_JSON), strict=True):
        value = None
        if not is_odd:
            with contextlib.suppress(orjson.JSONDecodeError):
                value = orjson.loads(cell)
        # an empty one may be an absent cell, and a text is a cell again
        yield value if value and isinstance(value, dict | list) else parse_cell(cell)


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
            value = json.loads(_as_json(_parse_literal(stripped)))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return text
    if _SURROGATE_ESCAPE.search(stripped):
        value = json.loads(replace_lone_surrogates(_as_json(value)))
    return value


def _parse_literal(text: str) -> Any:
    # warnings are of escapes such as \/, which are read as they are written
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.literal_eval(text)


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


def read_each(
    cells: pl.Series, read: Callable[[Any], Sequence[Any]], schema: pl.Schema
) -> pl.DataFrame:
    """Return what is read of each cell's value: a row a cell. Equal cells are read once."""
    codes, distinct = factorize(cells)
    return frame_of([read(value) for value in parse_cells(distinct)], schema)[codes]


def no_object(value: Any) -> str | None:
    """Return the fault of a value that should be an object, None for an absent one."""
    return None if value is None or isinstance(value, dict) else "no object; ignored"


def as_flag(value: Any) -> bool | None:
    """Read a flag: true, 1, "true", "yes" and "1" are true, null is unknown, others are false."""
    if value is None:
        return None
    return value.strip().lower() in ("true", "yes", "1") if isinstance(value, str) else value == 1


def is_present(cells: pl.Series) -> pl.Series:
    """Tell which cells hold anything, in quotes or not."""
    return ~cells.str.contains(_ABSENT).fill_null(True)


@lru_cache(maxsize=4096)
def canonical_key(key: str) -> str:
    """Return a key in lower case without blanks, underscores and hyphens."""
    return key.lower().replace(" ", "").replace("_", "").replace("-", "")


def as_text(value: object) -> str | None:
    """Return a scalar as text; None for null and for containers."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, bool | int | float | Decimal) else None


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
    """Return warnings: ``dialogue_row``, ``warning``."""
    return cells.drop_nulls("fault").select(
        "dialogue_row", pl.format("line {}, {}: {}", "line", column, "fault").alias("warning")
    )


_KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "name": dict.fromkeys(CATALOGUES, NAME_KEYS),
    "categories": {
        "restaurants": ("cuisines", "cuisine"),
        "attractions": ("subcategories", "subcategory", "categories", "category", "type"),
        "events": ("segmentname", "segment", "genre", "category", "classification"),
    },
    "room_type": dict.fromkeys(CATALOGUES, ("roomtype",)),
    "house_rules": dict.fromkeys(CATALOGUES, ("houserules",)),
    "description": dict.fromkeys(CATALOGUES, ("description",)),
}
"""By field and kind of catalogue its possible keys, the best first."""

_SEPARATOR = "\n"
_CACHED_CATEGORIES = 1 << 16
_LARGEST_CACHED, _MOST_CACHED = 1 << 16, 512
_Read = tuple[int | None, list[tuple[str | None, ...]]]
_cells_read: dict[tuple[str, str], _Read | None] = {}


KIND_DTYPE = pl.Enum(CATALOGUES)
_OF_RECORDS = pl.Schema(
    {
        "cell": pl.Int64(),
        "kind": KIND_DTYPE,
        **dict.fromkeys(
            ("name", "categories", "room_type", "house_rules", "description"), pl.String()
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The records of distinct catalogue cells."""

    cells: pl.DataFrame  # a row a distinct cell and kind: `kind`, `fault`
    # a row a record with a name: `cell`, `kind`, `key` (its normalised name), `text`, `room`
    # (entire, private, shared or null), `components` (of its categories)
    records: pl.DataFrame


def read_catalogue(
    cells: pl.Series, kinds: pl.Series, lexicon: Lexicon
) -> tuple[Indices, Catalogue]:
    """Read catalogue cells; return the number of each one's distinct cell and kind, too."""
    codes, texts = factorize(cells)
    found = pl.DataFrame({"text": codes, "kind": kinds})
    distinct = found.unique(maintain_order=True)
    names = distinct["kind"].cast(pl.String).to_list()
    read = _read_cells(list(zip(texts.gather(distinct["text"]), names, strict=True)))
    records = [
        (cell, name, *record)
        for cell, (name, (_, found)) in enumerate(zip(names, read, strict=True))
        for record in found
    ]
    complete = _complete(frame_of(records, _OF_RECORDS), lexicon)
    n_named = np.bincount(complete["cell"].to_numpy(), minlength=distinct.height).tolist()
    faults = [
        shortfall(n_entries - n, n_entries, "entries are no records with a name")
        if n_entries is not None
        else "no list of records; ignored"
        for (n_entries, _), n in zip(read, n_named, strict=True)
    ]
    described = distinct.select("kind", fault=pl.Series(faults, dtype=pl.String))
    return row_numbers(found, found.columns), Catalogue(described, complete)


def _read_cells(cells: list[tuple[str, str]]) -> list[_Read]:
    """Read distinct cells, each with its kind; those that were read before are kept."""
    read = {cell: _cells_read.get(cell) for cell in cells}
    new = [cell for cell in cells if read[cell] is None]
    values = parse_cells(pl.Series([text for text, _ in new], dtype=pl.String))
    read |= {cell: _read_cell(value, cell[1]) for cell, value in zip(new, values, strict=True)}
    kept = [cell for cell in new if len(cell[0]) <= _LARGEST_CACHED][:_MOST_CACHED]
    if len(_cells_read) + len(kept) > _MOST_CACHED:
        _cells_read.clear()
    _cells_read.update((cell, read[cell]) for cell in kept)
    return [found for found in read.values() if found is not None]


def _read_cell(value: Any, kind: str) -> _Read:
    """Return the number of a cell's entries, None without a list of them, and the records."""
    entries = _entries(value)
    if entries is None:
        return None, []
    return len(entries), [_read_record(each, kind) for each in entries if isinstance(each, dict)]


def _entries(value: Any) -> list[Any] | None:
    """Return the entries of a cell's list or of all lists of its object; None without a list.

    Members that are no lists are entries, too, but no records.
    """
    if isinstance(value, dict):
        members = value.values()
        if not any(isinstance(member, list) for member in members):
            return None
        lists = (member if isinstance(member, list) else [None] for member in members)
        return list(chain.from_iterable(lists))
    return [] if value is None else value if isinstance(value, list) else None


def _read_record(record: dict[str, Any], kind: str) -> tuple[str | None, ...]:
    """Read the fields of `_KEYS`, each by its first key that has a value."""
    name, value, *others = (
        next((record[key] for key in keys if record[key] is not None), None)
        for keys in _keys_of_fields(tuple(record), kind)
    )
    categories = (
        _join_categories(value)
        if isinstance(value, list)
        else _cut_categories(as_text(value) or "")
    )
    return as_text(name), categories, *map(as_text, others)


@lru_cache(maxsize=1024)
def _keys_of_fields(keys: tuple[str, ...], kind: str) -> list[list[str]]:
    """Return for each field of `_KEYS` the keys of a record that may contain it, best first."""
    found: dict[str, str] = {}
    for key in keys:
        found.setdefault(canonical_key(key), key)
    wanted = (of_kind.get(kind, ()) for of_kind in _KEYS.values())
    return [[found[name] for name in names if name in found] for names in wanted]


@lru_cache(maxsize=_CACHED_CATEGORIES)
def _cut_categories(text: str) -> str:
    """Cut a text at commas, semicolons and bars, a list literal first into its elements."""
    if text.strip().startswith("["):
        literal = parse_cell(text)
        if isinstance(literal, list):
            return _join_categories(literal)
        text = text.strip().strip("[]")
    return _join_categories(text.replace(";", ",").replace("|", ",").split(","))


def _join_categories(parts: Sequence[Any]) -> str:
    texts = (text for part in parts if (text := as_text(part)) is not None)
    stripped = (text.strip() for text in texts)
    return _SEPARATOR.join(part for part in stripped if part.casefold() not in ABSENT_CELLS)


def _null_if_absent(*columns: str) -> pl.Expr:
    texts = pl.col(columns)
    return pl.when(~texts.str.strip_chars().str.to_lowercase().is_in(ABSENT_CELLS)).then(texts)


def _complete(records: pl.DataFrame, lexicon: Lexicon) -> pl.DataFrame:
    """Give records their key, text, room and components; leave out those without a key."""
    keyed = (
        records.drop_nulls("name")
        .with_columns(pl.col("name").map_batches(normalise, return_dtype=pl.String).alias("key"))
        .filter(pl.col("key") != "")
        .with_columns(_null_if_absent("room_type", "house_rules", "description"))
    )
    stay = pl.concat_str("room_type", "house_rules", separator=", ", ignore_nulls=True)
    named = pl.col("categories").str.replace_all(_SEPARATOR, ", ", literal=True)
    about = pl.when(named != "").then(named).otherwise(stay)
    described = pl.when(pl.col("description").is_not_null()).then(
        pl.concat_str(pl.lit(". "), "description")
    )
    codes, types = factorize(keyed["room_type"])
    rooms = normalise(types).to_frame("type").select(catalogue_rooms(pl.col("type"), lexicon))
    return keyed.with_columns(
        pl.concat_str("name", pl.lit(". "), about, described.fill_null("")).alias("text"),
        rooms.to_series().gather(codes).alias("room"),
        components(keyed["categories"], lexicon).alias("components"),
    ).select("cell", "kind", "key", "text", "room", "components")


def components(categories: pl.Series, lexicon: Lexicon) -> pl.Series:
    """Return the parts of categories that mean something: List(String), distinct."""
    codes, names = factorize(categories)
    parts = (
        names.str.split(_SEPARATOR)
        .to_frame("part")
        .with_row_index("row")
        .explode("part")
        .with_columns(pl.col("part").map_batches(normalise, return_dtype=pl.String).str.split(" "))
        .explode("part")
    )
    meant = parts.select("row", component(parts["part"], lexicon).alias("part"))
    lists = meant.group_by("row", maintain_order=True).agg(
        pl.col("part").drop_nulls().unique(maintain_order=True)
    )
    return lists["part"].gather(codes)


@lru_cache(maxsize=8)
def built_in_components(lexicon: Lexicon) -> dict[str, list[str]]:
    """Return by kind of catalogue the parts of the categories that count in any."""
    return {
        KIND_OF_SLOT[slot]: components(pl.Series([_SEPARATOR.join(names)]), lexicon)[0].to_list()
        for slot, names in lexicon.categories.items()
    }
