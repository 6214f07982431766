"""Catalogues: the records of real places that a plan can draw on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.suites.group_travel.cells import (
    ABSENT_CELLS,
    as_text,
    by_canonical_key,
    frame_of,
    parse_cell,
    shortfall,
)
from fastscore.suites.group_travel.lexicon import Lexicon
from fastscore.suites.group_travel.normalise import component, normalise
from fastscore.suites.group_travel.plans import NAME_KEYS
from fastscore.suites.group_travel.terms import CATALOGUES, KIND_OF_SLOT
from fastscore.suites.group_travel.wording import catalogue_rooms
from fastscore.suites.grouping import (
    factorize,
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

_SHORTEST_COMPONENT = 3
_SEPARATOR = "\n"
_CACHED_CATEGORIES = 1 << 16
_LARGEST_CACHED = 1 << 16


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
    """The records of distinct catalogue cells.

    Attributes
    ----------
    cells
        A row a distinct cell and kind: ``kind``, ``fault``.
    records
        A row a record with a name: ``cell``, ``kind``, ``key`` (its normalised name), ``text``,
        ``room`` (entire, private, shared or null), ``components`` (of its categories).
    """

    cells: pl.DataFrame
    records: pl.DataFrame


def read_catalogue(
    cells: pl.Series, codes: Indices, kinds: Indices, lexicon: Lexicon
) -> tuple[Indices, Catalogue]:
    """Read catalogue cells.

    Parameters
    ----------
    cells
        The distinct texts of cells.
    codes, kinds : int64 (n,)
        The text of each cell, and its kind of catalogue, a place in `CATALOGUES`.
    lexicon
        For categories and room types.

    Returns
    -------
    tuple
        The row of each cell in `Catalogue.cells`, int64 (n,), and the distinct ones.
    """
    pairs, row = np.unique(codes * len(CATALOGUES) + kinds, return_inverse=True)
    texts, numbers = np.divmod(pairs, len(CATALOGUES))
    names = [CATALOGUES[number] for number in numbers.tolist()]
    read = [
        _read_cell(cell, name)
        if len(cell) <= _LARGEST_CACHED
        else _read_cell.__wrapped__(cell, name)
        for cell, name in zip(cells.gather(texts), names, strict=True)
    ]
    records = [
        (cell, name, *record)
        for cell, (name, (_, found)) in enumerate(zip(names, read, strict=True))
        for record in found
    ]
    complete = _complete(frame_of(records, _OF_RECORDS), lexicon)
    n_named = np.bincount(complete["cell"].to_numpy(), minlength=len(pairs)).tolist()
    faults = [
        shortfall(n_entries - n, n_entries, "entries are no records with a name")
        if n_entries is not None
        else "no list of records; ignored"
        for (n_entries, _), n in zip(read, n_named, strict=True)
    ]
    kind = pl.Series(names, dtype=KIND_DTYPE)
    described = {"kind": kind, "fault": pl.Series(faults, dtype=pl.String)}
    return row, Catalogue(pl.DataFrame(described), complete)


@lru_cache(maxsize=512)
def _read_cell(cell: str, kind: str) -> tuple[int | None, list[tuple[str | None, ...]]]:
    """Return the number of a cell's entries, None without a list of them, and the records."""
    entries = _entries(parse_cell(cell))
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
    found = by_canonical_key(record)

    def value_of(field: str) -> Any:
        keys = _KEYS[field].get(kind, ())
        return next((found[key] for key in keys if found.get(key) is not None), None)

    value = value_of("categories")
    categories = (
        _join_categories(value)
        if isinstance(value, list)
        else _cut_categories(as_text(value) or "")
    )
    name, room_type, house_rules, description = (
        as_text(value_of(field)) for field in ("name", "room_type", "house_rules", "description")
    )
    return name, categories, room_type, house_rules, description


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
    """Return the parts of categories that mean something: List(String), distinct.

    Parameters
    ----------
    categories
        Categories of each row, parted by line ends.
    lexicon
        What parts mean.
    """
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
