"""Catalogues: the records of real places that a plan can draw on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_readers.json.tokens import ARRAY, NULL, OBJECT

from fastscore.suites.columns import replace_lone_surrogates
from fastscore.suites.group_travel.cell_trees import NO_NODE, CellTrees, trees_of
from fastscore.suites.group_travel.cells import (
    ABSENT_CELLS,
    as_text,
    canonical_key,
    parse_cell,
)
from fastscore.suites.group_travel.faults import faults, shortfalls
from fastscore.suites.group_travel.lexicon import Lexicon
from fastscore.suites.group_travel.normalise import component, normalise
from fastscore.suites.group_travel.plan_days import NAME_KEYS
from fastscore.suites.group_travel.terms import CATALOGUES, KIND_OF_SLOT
from fastscore.suites.group_travel.wording import catalogue_rooms
from fastscore.suites.grouping import (
    Ragged,
    factorize,
    group_rows,
    take,
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
"""By field and kind of catalogue the keys that it may stand under, the best first."""

_SHORTEST_COMPONENT = 3
_SEPARATOR = "\n"
_CACHED_CATEGORIES = 1 << 16


KIND_DTYPE = pl.Enum(CATALOGUES)


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
    trees = trees_of(cells)
    pairs, row = np.unique(codes * len(CATALOGUES) + kinds, return_inverse=True)
    tree, kind = np.divmod(pairs, len(CATALOGUES))
    kind_names = pl.Series(CATALOGUES, dtype=KIND_DTYPE)
    records, n_entries, is_readable = _records(trees)
    nodes, offsets = take(records, tree)
    cell = np.repeat(np.arange(len(pairs)), np.diff(offsets))
    read = _read_records(trees, nodes, kind[cell]).with_columns(
        pl.Series("cell", cell), kind_names.gather(kind[cell]).alias("kind")
    )
    complete = _complete(read.drop_nulls("name"), lexicon)
    missed = n_entries[tree] - np.bincount(complete["cell"].to_numpy(), minlength=len(tree))
    described = pl.DataFrame(
        {
            "kind": kind_names.gather(kind),
            "fault": pl.select(
                pl.coalesce(
                    faults(len(tree), (~is_readable[tree], "no list of records; ignored")),
                    shortfalls(missed, n_entries[tree], "entries are no records with a name"),
                )
            ).to_series(),
        }
    )
    return row, Catalogue(described, complete)


def _records(trees: CellTrees) -> tuple[Ragged, Indices, Mask]:
    """Return the records of each cell's list or of all lists of its object.

    And of how many entries, members that are no lists included; and if it has any list.
    """
    members, owner = trees.below(trees.roots)
    is_member = trees.tags[trees.roots[owner]] == OBJECT
    is_list = (trees.tags[members] == ARRAY) & is_member
    own = np.flatnonzero(trees.tags[trees.roots] == ARRAY)
    lists = np.concatenate([trees.roots[own], members[is_list]])
    cell = np.concatenate([own, owner[is_list]])
    nodes, place = trees.below(lists)
    is_record = trees.tags[nodes] == OBJECT
    n_cells = len(trees.roots)
    rows, offsets = group_rows(cell[place[is_record]], n_cells)
    has_list = np.bincount(cell, minlength=n_cells) > 0
    is_readable: Mask = has_list | (trees.tags[trees.roots] == NULL)
    entries = np.concatenate([cell[place], owner[is_member & ~is_list]])
    n_entries = np.where(is_readable, np.bincount(entries, minlength=n_cells), 0)
    return (nodes[is_record][rows], offsets), n_entries, is_readable


def _read_records(trees: CellTrees, records: Indices, kind: Indices) -> pl.DataFrame:
    """Read what of records is used, by the first key of each field that has a value."""
    every = {key for of_kind in _KEYS.values() for keys in of_kind.values() for key in keys}
    found = trees.members(records, sorted(every), canonical_key)
    chosen = {field: np.full(len(records), NO_NODE) for field in _KEYS}
    for field, of_kind in _KEYS.items():
        for number, name in enumerate(CATALOGUES):
            for key in reversed(of_kind.get(name, ())):
                has_value = (kind == number) & (trees.tags[found[key]] > NULL)
                chosen[field] = np.where(has_value, found[key], chosen[field])
    return pl.DataFrame(
        {
            "name": trees.scalars(chosen["name"]),
            "categories": _categories(trees, chosen["categories"]),
            **{
                field: _null_if_absent(trees.scalars(chosen[field]))
                for field in ("room_type", "house_rules", "description")
            },
        }
    )


def _null_if_absent(texts: pl.Series) -> pl.Series:
    absent = texts.str.strip_chars().str.to_lowercase().is_in(ABSENT_CELLS)
    return texts.set(absent.fill_null(True), None)


def _categories(trees: CellTrees, nodes: Indices) -> pl.Series:
    """Return categories as texts, their parts between line ends."""
    codes, values = trees.distinct_values(nodes)
    cut = [
        _join_categories(value)
        if isinstance(value, list)
        else _cut_categories(as_text(value) or "")
        for value in values
    ]
    return pl.Series(cut, dtype=pl.String).gather(codes)


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
    stripped = (replace_lone_surrogates(text).strip() for text in texts)
    return _SEPARATOR.join(part for part in stripped if part.casefold() not in ABSENT_CELLS)


def _complete(records: pl.DataFrame, lexicon: Lexicon) -> pl.DataFrame:
    """Give records their key, text, room and components; leave out those without a key."""
    keyed = records.with_columns(normalise(records["name"]).alias("key")).filter(
        pl.col("key") != ""
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
