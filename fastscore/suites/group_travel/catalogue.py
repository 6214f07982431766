"""Catalogues: the records of real places that a plan can draw on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from fastscore.suites.distinct import distinct
from fastscore.suites.group_travel.cells import (
    ABSENT_CELLS,
    as_text,
    canonical_key,
    parse_cell,
)
from fastscore.suites.group_travel.lexicon import Lexicon
from fastscore.suites.group_travel.normalise import fold, normalise
from fastscore.suites.group_travel.plans import NAME_KEYS
from fastscore.suites.group_travel.schema import CATALOGUES, KIND_OF_SLOT
from fastscore.suites.group_travel.wording import catalogue_rooms
from fastscore.suites.ragged import Indices

_CATEGORY_KEYS = {
    "accommodations": (),
    "restaurants": ("cuisines", "cuisine"),
    "attractions": ("subcategories", "subcategory", "categories", "category", "type"),
    "events": ("segmentname", "segment", "genre", "category", "classification"),
}
_ROOM_KEYS = ("roomtype",)
_RULE_KEYS = ("houserules",)
_DESCRIPTION_KEYS = ("description",)
_SHORTEST_COMPONENT = 3
_SEPARATOR = "\n"
_CACHED_CATEGORIES = 1 << 16
_CACHED_CELLS = 256

KIND_DTYPE = pl.Enum(CATALOGUES)
_NO_RECORDS = pl.DataFrame(
    schema=dict.fromkeys(
        ("name", "categories", "room_type", "house_rules", "description"), pl.String
    )
)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The records of distinct catalogue cells.

    Attributes
    ----------
    cells
        A row a distinct cell and kind: ``kind``, ``is_readable``.
    records
        A row a record with a name: ``cell``, ``kind``, ``key`` (its normalised name), ``text``,
        ``room`` (entire, private, shared or null), ``components`` (of its categories).
    """

    cells: pl.DataFrame
    records: pl.DataFrame


def read_catalogue(
    cells: dict[str, pl.Series], lexicon: Lexicon
) -> tuple[dict[str, Indices], Catalogue]:
    """Read catalogue cells.

    Parameters
    ----------
    cells
        By kind the cells that hold something.
    lexicon
        For categories and room types.

    Returns
    -------
    tuple
        By kind the row of each cell in `Catalogue.cells`, and the distinct ones.
    """
    rows_of: dict[str, Indices] = {}
    kinds: list[str] = []
    found: list[pl.DataFrame | None] = []
    for kind, column in cells.items():
        codes, texts = distinct(column)
        rows_of[kind] = codes + len(kinds)
        found += [_read_cell(kind, text) for text in texts]
        kinds += [kind] * len(texts)
    readable = [records is not None for records in found]
    sizes = [0 if records is None else records.height for records in found]
    described = pl.DataFrame(
        {"kind": kinds, "is_readable": readable},
        schema={"kind": KIND_DTYPE, "is_readable": pl.Boolean()},
    )
    place = pl.Series("cell", np.repeat(np.arange(len(kinds)), sizes))
    records = pl.concat([_NO_RECORDS, *(part for part in found if part is not None)])
    records = records.with_columns(place, described["kind"].gather(place))
    return rows_of, Catalogue(described, _complete(records, lexicon))


@lru_cache(maxsize=_CACHED_CELLS)
def _read_cell(kind: str, cell: str) -> pl.DataFrame | None:
    """Read a cell's records; None where it is readable as none.

    Catalogues repeat from dialogue to dialogue, and from shard to shard.
    """
    records = _records(parse_cell(cell))
    return None if records is None else _read_records(kind, records)


def _records(value: Any) -> list[Any] | None:
    """Return the records of a list, or of all lists of an object; None for anything else."""
    if value is None:
        return []
    if isinstance(value, dict):
        lists = [part for part in value.values() if isinstance(part, list)]
        return [record for part in lists for record in part] if lists else None
    return value if isinstance(value, list) else None


def _read_records(kind: str, records: list[Any]) -> pl.DataFrame:
    """Read what of records is used; those of one layout share the search for their keys."""
    layouts: dict[tuple[str, ...], tuple[list[str], ...]] = {}
    wanted = (NAME_KEYS, _CATEGORY_KEYS[kind], _ROOM_KEYS, _RULE_KEYS, _DESCRIPTION_KEYS)
    rows = []
    for record in records:
        if not isinstance(record, dict):
            continue
        layout = tuple(record)
        keys = layouts.get(layout)
        if keys is None:
            keys = layouts[layout] = _find_keys(layout, wanted)
        name, categories, room, rules, description = (
            next((record[key] for key in found if record[key] is not None), None) for found in keys
        )
        text = as_text(name)
        if text is not None:
            about = (_meant(room), _meant(rules), _meant(description))
            rows.append((text, _categories(categories), *about))
    return pl.DataFrame(rows, schema=_NO_RECORDS.schema, orient="row")


def _find_keys(
    layout: tuple[str, ...], wanted: tuple[tuple[str, ...], ...]
) -> tuple[list[str], ...]:
    """Return for each wanted field the keys of a record that may hold it, the best first."""
    by_name: dict[str, str] = {}
    for key in layout:
        by_name.setdefault(canonical_key(key), key)
    return tuple([by_name[name] for name in names if name in by_name] for names in wanted)


def _meant(value: object) -> str | None:
    text = as_text(value)
    return None if text is None or text.strip().casefold() in ABSENT_CELLS else text


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
    stripped = (text.strip() for part in parts if (text := as_text(part)) is not None)
    return _SEPARATOR.join(part for part in stripped if part.casefold() not in ABSENT_CELLS)


def _categories(value: Any) -> str:
    """Return categories as one text, parted by line ends."""
    if isinstance(value, list | tuple):
        return _join_categories(value)
    return _cut_categories(as_text(value) or "")


def _complete(records: pl.DataFrame, lexicon: Lexicon) -> pl.DataFrame:
    """Give records their key, text, room and components; leave out those without a key."""
    keyed = records.with_columns(normalise(records["name"]).alias("key")).filter(
        pl.col("key") != ""
    )
    stays = pl.concat_list("room_type", "house_rules").list.drop_nulls()
    named = pl.col("categories").str.replace_all(_SEPARATOR, ", ", literal=True)
    about = pl.when(named != "").then(named).otherwise(stays.list.join(", "))
    described = pl.when(pl.col("description").is_not_null()).then(
        pl.concat_str(pl.lit(". "), "description")
    )
    room = normalise(keyed["room_type"])
    return keyed.with_columns(
        pl.concat_str("name", pl.lit(". "), about, described.fill_null("")).alias("text"),
        pl.select(catalogue_rooms(pl.lit(room), lexicon)).to_series().alias("room"),
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
    codes, names = distinct(categories)
    parts = (
        names.str.split(_SEPARATOR)
        .to_frame("part")
        .with_row_index("row")
        .explode("part")
        .with_columns(pl.col("part").map_batches(normalise, return_dtype=pl.String).str.split(" "))
        .explode("part")
        .with_columns(component(pl.col("part"), lexicon))
        .group_by("row", maintain_order=True)
        .agg(pl.col("part").drop_nulls().unique(maintain_order=True))
    )
    return parts["part"].gather(codes)


def component(tokens: pl.Expr, lexicon: Lexicon) -> pl.Expr:
    """Return what a token means as a part of a category, null for nothing."""
    folded = fold(tokens)
    means = (folded.str.len_chars() >= _SHORTEST_COMPONENT) & ~folded.is_in(
        list(lexicon.category_drop)
    )
    return pl.when(means).then(folded.replace(dict(lexicon.category_alias)))


def built_in_components(lexicon: Lexicon) -> dict[str, list[str]]:
    """Return by kind of catalogue the parts of the categories that count in any."""
    return {
        KIND_OF_SLOT[slot]: components(pl.Series([_SEPARATOR.join(names)]), lexicon)[0].to_list()
        for slot, names in lexicon.categories.items()
    }
