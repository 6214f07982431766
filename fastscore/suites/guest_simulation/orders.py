"""Orders as sets of names: what was ordered last, and what was to be ordered."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import orjson
import polars as pl
from fastscore_jit.arrays import Indices, Mask, UInt8Array
from fastscore_jit.arrow import text_rows
from fastscore_kernels import number_ranges, plain_words

from fastscore.suites.columns import replace_lone_surrogates
from fastscore.suites.grouping import group_rows, take
from fastscore.suites.guest_simulation.item_lists import (
    ITEM,
    MODIFIER,
    item_names,
    list_places,
)
from fastscore.suites.guest_simulation.tool_cells import OrderLists
from fastscore.suites.json_values import texts_between

FILLER_WORDS = ("the", "a", "an", "with", "and", "or", "of", "in", "on", "at")
FOOD_WORDS = ("chicken", "sandwich", "fries", "burger", "pizza", "salad")

_BLANK = r'^\s*"?(?:\s|\\[nrt])*"?\s*$'
"""Nothing, or a JSON string of nothing."""
_ESCAPE = re.compile(r"\\+(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.|$)", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True)
class Names:
    """Names in the orders of conversations."""

    # the place of each name, and what it names (`item_lists`), int64 (n,)
    conversation: Indices
    kind: Indices
    code: Indices  # the name, its place in `values`, int64 (n,)
    values: pl.Series  # the names that there are, escapes undone
    broken: Indices  # conversations whose list breaks off, int64

    def where(self, rows: Mask) -> "Names":
        """Return some of the names."""
        return replace(
            self,
            conversation=self.conversation[rows],
            kind=self.kind[rows],
            code=self.code[rows],
        )

    def shared(self, owner: Indices) -> "Names":
        """Give each conversation the names of another, its owner; -1 for none."""
        n_owners = int(max(owner.max(initial=-1), self.conversation.max(initial=-1))) + 1
        rows, sizes = take(group_rows(self.conversation, n_owners), owner)
        sharing = np.repeat(np.arange(len(owner)), np.diff(sizes))
        broken = np.flatnonzero(np.isin(owner, self.broken))
        return Names(sharing, self.kind[rows], self.code[rows], self.values, broken)


def read_lists(
    data: UInt8Array, start: Indices, stop: Indices, conversation: Indices, *, option_first: bool
) -> Names:
    """Read the names in lists of items, one list a conversation."""
    found = item_names(data, start, stop, option_first=option_first, threads=1)
    complete = np.flatnonzero(found.ends[found.row] >= 0)
    begins, ends = found.start[complete], found.end[complete]
    code, firsts = number_ranges(data, begins, ends)
    values = texts_between(data, begins[firsts], ends[firsts])
    escaped = np.flatnonzero(values.str.contains("\\", literal=True).to_numpy())
    if len(escaped):
        texts = [_unescape(name) for name in values.gather(escaped)]
        values = values.scatter(escaped, texts)
    broken = conversation[found.ends < 0]
    return Names(conversation[found.row[complete]], found.kind[complete], code, values, broken)


def _unescape(name: str) -> str:
    """Undo escapes, however often they were escaped themselves."""

    def undo(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 1 or not escape:
            return _CONTROL.get(escape, escape)
        character = chr(int(escape[1:], 16))
        # a lone surrogate is no letter of any name
        return " " if "\ud800" <= character <= "\udfff" else character

    return _ESCAPE.sub(undo, name)


def join_names(parts: list[Names]) -> Names:
    """Put names of several sources together."""
    shifts = np.cumsum([0, *(len(part.values) for part in parts)])
    return Names(
        np.concatenate([part.conversation for part in parts]),
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.code + shift for part, shift in zip(parts, shifts, strict=False)]),
        pl.concat([part.values for part in parts]),
        np.concatenate([part.broken for part in parts]),
    )


def column_lists(cells: pl.Series, *, published: bool) -> OrderLists:
    """Find the list in each cell of the column ``current_items_in_order``."""
    rows = text_rows(
        "current_items_in_order", _as_published(cells) if published else cells, nulls=True
    )
    return OrderLists(rows, *list_places(rows))


def _as_published(cells: pl.Series) -> pl.Series:
    """Make double quotes of single ones, and an empty list of what is no JSON array then.

    Blank cells become null.
    """
    filled = cells.set(cells.str.contains(_BLANK), None)
    return filled.replace_strict(
        {cell: _json_list(cell) for cell in filled.drop_nulls().unique().to_list()},
        default=None,
        return_dtype=pl.String,
    )


def _json_list(cell: str) -> str:
    """Return the array in a cell, or in the JSON string that a cell is."""
    if cell.lstrip().startswith('"'):
        with suppress(ValueError):
            cell = replace_lone_surrogates(json.loads(cell))
    replaced = cell.replace("'", '"')
    try:
        found = orjson.loads(replaced)
    except ValueError:
        try:
            found = json.loads(replaced)  # takes NaN and whole numbers of any length
        except (ValueError, RecursionError):
            return "[]"
    return replaced if isinstance(found, list) else "[]"


def normalise(names: pl.Series) -> pl.Series:
    """Normalise names: lower case, no special characters, no filler words, single spaces.

    Letters outside a to z vanish.
    """
    return pl.Series(plain_words(names, without=FILLER_WORDS))


def names_by_conversation(names: Names) -> pl.DataFrame:
    """Return ``conversation`` and ``name``: the names of items and modifiers, normalised."""
    normal = normalise(names.values).gather(names.code)
    return pl.DataFrame({"conversation": names.conversation, "name": normal})


def target_names(target: Names) -> pl.DataFrame:
    """Return the names of a target as `names_by_conversation`: bare texts are no items of it."""
    return names_by_conversation(target.where(np.isin(target.kind, (ITEM, MODIFIER))))


def food_words(spoken: pl.DataFrame) -> pl.DataFrame:
    """Return ``conversation`` and ``name``: the food words in its texts (``content``)."""
    said = spoken.with_columns(pl.col("content").str.to_lowercase())
    return pl.concat(
        said.filter(pl.col("content").str.contains(food, literal=True)).select(
            "conversation", name=pl.lit(food)
        )
        for food in FOOD_WORDS
    )


def item_words(target: Names) -> pl.DataFrame:
    """Return ``conversation`` and ``name``: the words in the names of a target's items."""
    items = target.where(target.kind == ITEM)
    words = items.values.str.to_lowercase().str.extract_all(r"[^\s\x1c-\x1f]+")
    frame = pl.DataFrame({"conversation": items.conversation, "name": words.gather(items.code)})
    return frame.explode("name", empty_as_null=False)


def compare_names(ordered: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """Say of each name of a conversation whether it is in C (``in_order``), and T (``in_target``).

    A name counts once, however often it is ordered.
    """
    return (
        pl.concat([ordered.with_columns(is_ordered=True), wanted.with_columns(is_ordered=False)])
        .filter(pl.col("name") != "")
        .group_by("conversation", "name", maintain_order=True)
        .agg(in_order=pl.col("is_ordered").any(), in_target=pl.col("is_ordered").not_().any())
    )


def overlaps(names: pl.DataFrame) -> pl.DataFrame:
    """Count for each conversation |C|, |T| and their common names; see `compare_names`."""
    in_order, in_target = pl.col("in_order"), pl.col("in_target")
    return names.group_by("conversation").agg(
        n_final_names=in_order.sum().cast(pl.Int64),
        n_target_names=in_target.sum().cast(pl.Int64),
        n_common_names=(in_order & in_target).sum().cast(pl.Int64),
    )
