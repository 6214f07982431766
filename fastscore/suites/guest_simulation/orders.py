"""Orders as sets of names: what was ordered last, and what was to be ordered."""

import json
import re
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices, Mask, UInt8Array
from fastscore_jit.arrow import text_rows
from fastscore_kernels import number_hashes, number_ranges, plain_words
from fastscore_readers.json.lines import scan_jsonl
from fastscore_readers.json.located_values import unescaped
from fastscore_readers.json.tokens import ARRAY, ESCAPED, STRING
from fastscore_readers.line_scan import LineScan

from fastscore.suites.columns import gather_or_null, replace_lone_surrogates
from fastscore.suites.grouping import counts_of, factorize, group_rows, offsets_of, take
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
    """Names in the orders of conversations.

    Parameters
    ----------
    conversation, kind
        The place of each name, and what it names (`item_lists`), int64 (n,).
    code
        The name, its place in ``values``, int64 (n,).
    values
        The names that there are, escapes undone.
    broken
        Conversations whose list breaks off, int64.
    """

    conversation: Indices
    kind: Indices
    code: Indices
    values: pl.Series
    broken: Indices

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
    """Find the list in each cell of the column ``current_items_in_order``.

    Parameters
    ----------
    cells
        Python's repr of a list or JSON, also as a JSON string; null or blank without one.
    published
        Read cells as the public evaluation does: every ' becomes ", and what is no JSON array
        then is an empty list.
    """
    rows = text_rows(
        "current_items_in_order", _as_published(cells) if published else cells, nulls=True
    )
    return OrderLists(rows, *list_places(rows))


def _as_published(cells: pl.Series) -> pl.Series:
    """Make double quotes of single ones, and an empty list of what is no JSON array then.

    Blank cells become null.
    """
    present = (~cells.str.contains(_BLANK)).fill_null(False).to_numpy()
    lists = _json_lists(cells.filter(pl.Series(present)))
    return gather_or_null(lists, np.where(present, np.cumsum(present) - 1, -1))


def _json_lists(cells: pl.Series) -> pl.Series:
    scan = _scan_values(cells)
    strings = np.flatnonzero((scan.tags[0] == STRING) | (scan.tags[0] == ESCAPED))
    if len(strings):
        start, end = scan.value_start[0, strings], scan.value_end[0, strings]
        cells = cells.scatter(scan.line[strings] - 1, _unescaped_texts(scan.data, start, end))
    replaced = cells.str.replace_all("'", '"', literal=True)
    scan = _scan_values(replaced)
    valid = np.zeros(len(cells), np.bool_)
    valid[scan.line[scan.tags[0] == ARRAY] - 1] = True
    return replaced.set(pl.Series(~valid), "[]")


def _unescaped_texts(data: UInt8Array, start: Indices, end: Indices) -> pl.Series:
    """Unescape JSON strings; a lone surrogate, no letter of any name, is U+FFFD."""
    texts, begins, ends = unescaped(data, start, end)
    halved = np.flatnonzero(ends < 0)
    ends[halved] = begins[halved]
    replaced = [
        replace_lone_surrogates(json.loads(b'"%b"' % data[start[row] : end[row]].tobytes()))
        for row in halved.tolist()
    ]
    return texts_between(texts, begins, ends).scatter(halved, replaced)


def _scan_values(cells: pl.Series) -> LineScan:
    """Scan cells as JSON values, one a line."""
    # in valid JSON, line ends are between values only
    flat = cells.str.replace_many(["\n", "\r"], [" ", " "])
    lines = pl.select(pl.concat_str(pl.lit('{"v":'), flat, pl.lit("}")).str.join("\n")).item()
    return scan_jsonl(np.frombuffer(lines.encode(), np.uint8), (b"v",))


def normalise(names: pl.Series) -> pl.Series:
    """Normalise names: lower case, no special characters, no filler words, single spaces.

    Letters outside a to z vanish.
    """
    return pl.Series(plain_words(names, without=FILLER_WORDS))


@dataclass(frozen=True, slots=True)
class Overlaps:
    """Sizes of two sets a conversation, and of what they share, int64 (conversations,)."""

    current: Indices
    target: Indices
    common: Indices

    @property
    def f1(self) -> npt.NDArray[np.float64]:
        """2 common / (current + target); 0 where both are empty."""
        total = self.current + self.target
        value: npt.NDArray[np.float64] = 2 * self.common / np.maximum(total, 1)
        return value

    @property
    def jaccard(self) -> npt.NDArray[np.float64]:
        """Common by either; 0 where both are empty."""
        either = self.current + self.target - self.common
        value: npt.NDArray[np.float64] = self.common / np.maximum(either, 1)
        return value

    @property
    def both_empty(self) -> Mask:
        """Conversations where neither set has a member."""
        empty: Mask = (self.current + self.target) == 0
        return empty


def compare_orders(current: Names, target: Names, n_conversations: int) -> Overlaps:
    """Compare final and target orders as sets of normalised names.

    Items and modifiers are members of one set. Of a target, items that are bare texts are none.
    """
    wanted = target.where((target.kind == ITEM) | (target.kind == MODIFIER))
    ids, members = factorize(normalise(pl.concat([current.values, wanted.values])))
    ids = np.where((members == "").to_numpy()[ids], -1, ids)
    n_current = len(current.values)
    return _overlaps(
        (current.conversation, ids[:n_current][current.code]),
        (wanted.conversation, ids[n_current:][wanted.code]),
        n_conversations,
    )


def compare_words(
    spoken: tuple[Indices, pl.Series], target: Names, n_conversations: int
) -> Overlaps:
    """Compare food words of a guest's messages with the words of the target's items.

    Parameters
    ----------
    spoken
        Conversations and the guest's messages in them: one text a row, several a conversation.
    target
        The target orders.
    n_conversations
        How many conversations there are.
    """
    conversation, texts = spoken
    codes, found = factorize(texts)
    lower = found.str.to_lowercase()
    mentioned = [
        np.flatnonzero(lower.str.contains(food, literal=True).to_numpy()[codes])
        for food in FOOD_WORDS
    ]
    items = target.where(target.kind == ITEM)
    words = items.values.str.to_lowercase().str.extract_all(r"[^\s\x1c-\x1f]+")
    ids, _ = factorize(pl.concat([pl.Series(FOOD_WORDS), words.explode(empty_as_null=False)]))
    n_foods = len(FOOD_WORDS)
    of_item, sizes = take((ids[n_foods:], offsets_of(words.list.len().to_numpy())), items.code)
    return _overlaps(
        (
            np.concatenate([conversation[rows] for rows in mentioned]),
            np.repeat(ids[:n_foods], [len(rows) for rows in mentioned]),
        ),
        (np.repeat(items.conversation, np.diff(sizes)), of_item),
        n_conversations,
    )


def _overlaps(
    current: tuple[Indices, Indices], target: tuple[Indices, Indices], n_conversations: int
) -> Overlaps:
    """Count the members of two sets a conversation, given as (conversation, id); -1 is none."""
    conversation, ids = (np.concatenate(pair) for pair in zip(current, target, strict=True))
    members = np.flatnonzero(ids >= 0)
    in_target = members >= len(current[0])
    conversation, ids = conversation[members], ids[members]
    key = conversation * (int(ids.max(initial=0)) + 1) + ids
    numbers, firsts = number_hashes(key.astype(np.uint64))
    holds = np.zeros((2, len(firsts)), np.bool_)
    holds[0, numbers[~in_target]] = True
    holds[1, numbers[in_target]] = True
    owner = conversation[firsts]
    return Overlaps(
        *(
            counts_of(owner[those], n_conversations)
            for those in (holds[0], holds[1], holds[0] & holds[1])
        )
    )
