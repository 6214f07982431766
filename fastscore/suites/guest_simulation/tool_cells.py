"""Tool cells and orders: which tools were used, the state they gave, what was ordered.

Cells are Python's ``repr`` of calls and results, or JSON, escaped once, twice or, if a backslash
was lost, wrongly. No parser takes them, and nothing may evaluate them. All cells are searched in
one pass for members, at any depth and also inside texts:

- A *member* is a key, a whole identifier, quoted or not, and ``=`` or ``:``; what follows is its
  value.
- A *simple value* is a text up to the next quote or backslash, the member's name of an enumeration
  that is written ``<Class.MEMBER: ...>``, or a bare word; empty if there is none of them.

Orders are sets of names: what was ordered last, and what was to be ordered.
"""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import orjson
import polars as pl
from fastscore_jit.arrays import Indices, Int64Array, Mask, UInt8Array
from fastscore_jit.arrow import StringColumn, TextRows, copied_texts, text_rows
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.byte_blocks import (
    TRIGRAM_BYTES,
    aligned,
    equal_bytes,
    mark_trigrams,
    prefetch_text,
)
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined
from fastscore_jit.memory import BLOCK, View, Views, load_byte, same_bytes
from fastscore_jit.validation import read_only
from fastscore_kernels import keyword_groups, number_ranges, number_texts, plain_words

from fastscore.suites.columns import first_rows, gather_or_null, last_rows, replace_lone_surrogates
from fastscore.suites.guest_simulation.item_lists import (
    ITEM,
    after_spaces,
    after_word,
    filled,
    is_quote,
    is_word,
    item_names,
    key_table,
    list_places,
)
from fastscore.suites.guest_simulation.options import STATE_COLUMNS, TOOL_COLUMNS
from fastscore.suites.json_values import texts_between

# ruff: noqa: SIM109


_BACKSLASH, _COLON, _EQUALS, _LESS, _POINT, _PLUS, _MINUS = b"\\:=<.+-"
_DOUBLE, _SINGLE = b"\"'"
# rows lie far apart, and only a loop that goes on within one is foreseen by the processor
_ROWS_AHEAD, _BYTES_AHEAD = 4, 1024
_MEMBERS_PER_CELL = 8


class Members(NamedTuple):
    """Members of cells, by row and place: int64 (n,) each."""

    # the cell, and the number of the key
    row: Int64Array
    key: Int64Array
    # the bytes in the cell at which the key and its value begin
    begin: Int64Array
    value: Int64Array
    # the bytes of the simple value
    start: Int64Array
    end: Int64Array


class SoughtKeys(NamedTuple):
    """Keys as the kernel looks for them: bytes, offsets, trigrams and their places in the keys."""

    names: UInt8Array
    offsets: Int64Array
    trigrams: UInt8Array
    places: Int64Array


ATTRIBUTE_KEYS = (
    b"is_ordering_complete",
    b"next_message_menu_exploration_style",
    b"next_message_mood_tone",
    b"next_message_ordering_style",
)
_KEYS = (b"tool_name", b"current_items_in_order", b"target_items_to_order", *ATTRIBUTE_KEYS)
_TRIGRAMS = (b"t_m", b"t_i", b"g_c", b"l_n")
"""Each key has one of them. They are where two words of a key meet, which few other words have."""
_SOUGHT = SoughtKeys(
    *key_table(_KEYS),
    read_only(aligned(np.repeat(np.frombuffer(b"".join(_TRIGRAMS), np.uint8), BLOCK))),
    read_only(np.array([max(map(key.find, _TRIGRAMS)) for key in _KEYS], np.int64)),
)


def find_members(cells: TextRows) -> Members:
    """Find the members of cells under `_KEYS`; a null has none."""
    fill = partial(_walk, cells.views, _SOUGHT)
    return Members(*filled(fill, len(Members._fields), _MEMBERS_PER_CELL * len(cells) + 1))


@always_inlined
def _mark_trigrams_from(cell: View, at: int, trigrams: Any) -> Any:
    """Mark where a trigram begins from ``at`` on: the first of 64 places, and the marks."""
    base = cell.length + 1 - BLOCK - TRIGRAM_BYTES
    if at <= base:
        return at, mark_trigrams(cell, at, trigrams, 0)
    if base >= 0:
        passed = np.uint64(at - base)
        return base, (mark_trigrams(cell, base, trigrams, 0) >> passed) << passed
    # a short cell: there may be nothing after it
    marks = np.uint64(0)
    for place in range(at, cell.length + 1 - TRIGRAM_BYTES):
        for trigram in range(0, trigrams.size, BLOCK * TRIGRAM_BYTES):
            alike = True
            for byte in range(TRIGRAM_BYTES):
                alike &= load_byte(cell, place + byte) == trigrams[trigram + BLOCK * byte]
            if alike:
                marks |= np.uint64(1) << np.uint64(place - at)
    return at, marks


@always_inlined
def _find_key(cell: View, place: int, names: Any, offsets: Any, trigram_places: Any) -> Any:
    """Find the key whose trigram is at a place: its number, -1 without one, and its bytes."""
    for key in range(offsets.size - 1):
        begin = place - trigram_places[key]
        length = offsets[key + 1] - offsets[key]
        if (
            begin >= 0
            and begin + length <= cell.length
            and load_byte(cell, begin) == load_byte(names, offsets[key])
            and same_bytes(cell, begin, names, offsets[key], length)
            and (begin == 0 or not is_word(load_byte(cell, begin - 1)))
        ):
            return key, begin, begin + length
    return -1, place, place


@always_inlined
def _value_after(cell: View, at: int) -> int:
    """Find where the value of a key that ends at a place begins, -1 where the key has none."""
    at = after_spaces(cell, _skip_quotes(cell, at, cell.length), cell.length)
    if at >= cell.length or not _is_separator(load_byte(cell, at)):
        return -1
    return after_spaces(cell, at + 1, cell.length)


@always_inlined
def _skip_quotes(data: View, at: int, stop: int) -> int:
    """Skip quotes and backslashes."""
    while at < stop and (is_quote(load_byte(data, at)) or load_byte(data, at) == _BACKSLASH):
        at += 1
    return at


@always_inlined
def _simple_value(data: View, at: int, stop: int) -> Any:
    """Find the text, enumeration member or bare word that begins at a place."""
    quote = at
    while quote < stop and load_byte(data, quote) == _BACKSLASH:
        quote += 1
    if quote < stop and is_quote(load_byte(data, quote)):
        begin = end = quote + 1
        if end + BLOCK <= stop:
            marks = equal_bytes(data, end, _DOUBLE) | equal_bytes(data, end, _SINGLE)
            marks |= equal_bytes(data, end, _BACKSLASH)
            end += trailing_zeros(marks) if marks != 0 else BLOCK
        while (
            end < stop and not is_quote(load_byte(data, end)) and load_byte(data, end) != _BACKSLASH
        ):
            end += 1
        return begin, end
    if at < stop and load_byte(data, at) == _LESS:
        point = after_word(data, at + 1, stop)
        if point > at + 1 and point < stop and load_byte(data, point) == _POINT:
            return point + 1, after_word(data, point + 1, stop)
        return at, at
    end = at
    while end < stop and (
        is_word(load_byte(data, end))
        or load_byte(data, end) == _POINT
        or load_byte(data, end) == _PLUS
        or load_byte(data, end) == _MINUS
    ):
        end += 1
    return at, end


@always_inlined
def _is_separator(byte: int) -> bool:
    return byte == _COLON or byte == _EQUALS


@kernel(
    "Views(int64[:], int64[:]), SoughtKeys(uint8[:], int64[:], uint8[:], int64[:]), "
    "out(int64[:, :])",
    returns="int64",
    fastmath=False,
    allocates=False,
)
def _walk(cells: Views, keys: SoughtKeys, found: Any) -> Any:
    """List `Members` in the columns of ``found``: their number, -1 if it has no room for all."""
    addresses, lengths = cells
    names, offsets, trigrams, places = keys
    count = 0
    for row in range(lengths.size):
        cell, stop = View(addresses[row], lengths[row]), lengths[row]
        ahead = min(row + _ROWS_AHEAD, lengths.size - 1)
        prefetch_text(View(addresses[ahead], min(lengths[ahead], _BYTES_AHEAD)))
        at = 0
        while at <= stop - TRIGRAM_BYTES:
            base, marks = _mark_trigrams_from(cell, at, trigrams)
            at = base + BLOCK
            while marks != 0:
                place = base + trailing_zeros(marks)
                marks &= marks - np.uint64(1)
                key, begin, end = _find_key(cell, place, names, offsets, places)
                value = _value_after(cell, end) if key >= 0 else -1
                if value < 0:
                    continue
                if count == found.shape[1]:
                    return -1
                first, last = _simple_value(cell, value, stop)
                found[0, count], found[1, count], found[2, count] = row, key, begin
                found[3, count], found[4, count], found[5, count] = value, first, last
                count += 1
    return count


TOOL_WORDS = (
    ("order_tracking",),
    ("message_generation", "message_attributes"),
    ("get_name", "get_persona", "get_target", "get_past_messages"),
)
"""What the names of tools contain, in the order of `TOOL_COLUMNS`."""

ATTRIBUTES_TOOL = "get_message_generation_attributes_for_next_message"
MARKER = b"Latest Order tracking"
"""The text before the list in a result of order tracking, at most so many bytes before it."""
_MARKER_REACH = 40

_TOOL, _LIST, _LIST_END, _FIRST_ATTRIBUTE = range(4)
_TRACKING = TOOL_COLUMNS.index("uses_order_tracking")


@dataclass(frozen=True, slots=True)
class OrderLists:
    """Lists of items, at most one a message."""

    cells: TextRows  # their cells, one a message
    start: Indices  # where in its cell each list begins, int64 (messages,); -1 without a list
    broken: Mask  # which messages have a list that breaks off, bool (messages,)
    # which messages have a list with anything between its brackets, or a broken one
    has_items: Mask

    @property
    def present(self) -> Mask:
        """Which messages have a list, broken ones too."""
        found: Mask = (self.start >= 0) | self.broken
        return found

    def texts(self, messages: Indices) -> StringColumn:
        """Copy the lists of some messages, each with what follows it in its cell."""
        start = self.start[messages]
        return copied_texts(
            self.cells.addresses[messages] + start, self.cells.lengths[messages] - start
        )


@dataclass(frozen=True, slots=True)
class ToolCells:
    """What the tool cells of messages say."""

    uses: Mask  # a row a message, a column each of `TOOL_COLUMNS`, bool (messages, 3)
    # what tools gave, in lower case: `STATE_COLUMNS`, null where nothing gives that part
    states: pl.DataFrame
    orders: OrderLists  # the tracked orders


def read_tool_cells(cells: pl.Series, *, whole_cell: bool) -> ToolCells:
    """Read the tool cells of messages."""
    rows = text_rows("tool_calls", cells, nulls=True)
    members = find_members(rows)
    code, values = _simple_values(rows, members)
    kinds = _words_in(values)
    of_tools = np.flatnonzero(members.key == _TOOL)
    tools, used = members.row[of_tools], kinds[code[of_tools]]
    uses = np.zeros((len(rows), len(TOOL_WORDS)), np.bool_)
    for kind in range(len(TOOL_WORDS)):
        uses[tools[used[:, kind]], kind] = True
    giving = of_tools[(values == ATTRIBUTES_TOOL).to_numpy()[code[of_tools]]]
    tracking = of_tools[used[:, _TRACKING]]
    lower = values.str.to_lowercase()
    parts = _attributes(members, code, giving, len(rows)).T
    states = pl.DataFrame(
        {name: gather_or_null(lower, part) for name, part in zip(STATE_COLUMNS, parts, strict=True)}
    )
    orders = _order_lists(rows, members, tracking)
    return ToolCells(_words_in(cells.fill_null("")) if whole_cell else uses, states, orders)


def _simple_values(rows: TextRows, members: Members) -> tuple[Indices, pl.Series]:
    """Return the number of each member's simple value, and the distinct values."""
    addresses, lengths = rows.addresses[members.row] + members.start, members.end - members.start
    code, firsts = number_texts(TextRows(rows.owner, addresses, lengths))
    copied = copied_texts(addresses[firsts], lengths[firsts])
    return code, texts_between(copied.data, copied.offsets[:-1], copied.offsets[1:])


def _first_by_row(members: Members, chosen: Indices, n_rows: int, default: int) -> Indices:
    """Return the first of some members in each row."""
    first = first_rows(members.row, chosen, n_rows)
    return np.where(first < 0, default, first)


def _attributes(members: Members, code: Indices, giving: Indices, n_rows: int) -> Indices:
    """Return the first value of each attribute after the first call that gives them, if any does.

    An empty value is none: -1.
    """
    start = _first_by_row(members, giving, n_rows, 0)
    given = np.flatnonzero(members.key >= _FIRST_ATTRIBUTE)
    given = given[given >= start[members.row[given]]][::-1]
    found = np.full((n_rows, len(ATTRIBUTE_KEYS)), -1)
    value = np.where(members.end[given] > members.start[given], code[given], -1)
    found[members.row[given], members.key[given] - _FIRST_ATTRIBUTE] = value
    return found


def _order_lists(rows: TextRows, members: Members, tracking: Indices) -> OrderLists:
    """Find the list that each cell tracks.

    It is the last one in a result of order tracking, which is broken unless the target follows; or,
    without such a result, the first after the call of a tool that tracks.
    """
    n_rows = len(rows)
    of_lists = np.flatnonzero((members.key == _LIST) | (members.key == _LIST_END))
    is_list = members.key[of_lists] == _LIST
    before = np.minimum(members.begin[of_lists], _MARKER_REACH)
    row, value = members.row[of_lists], members.value[of_lists]
    opens = is_list & _holds(rows, row, value, np.minimum(rows.lengths[row] - value, 1), b"[")
    kept = opens | ~is_list
    of_lists, opens, before = of_lists[kept], opens[kept], before[kept]
    row, begin = members.row[of_lists], members.begin[of_lists]
    is_marked = opens & _holds(rows, row, begin - before, before, MARKER)
    is_followed = np.append(~opens[1:] & (row[1:] == row[:-1]), False)[: len(row)]
    last = last_rows(row, np.flatnonzero(is_marked), n_rows)
    has_result = last >= 0
    broken = has_result.copy()
    broken[has_result] = ~is_followed[last[has_result]]
    called = _first_by_row(members, tracking, n_rows, len(members.row))
    after = of_lists[opens & (of_lists > called[row])]
    chosen = _first_by_row(members, after, n_rows, -1)
    chosen[has_result] = of_lists[last[has_result]]
    start = np.where((chosen >= 0) & ~broken, np.append(members.value, -1)[chosen], -1)
    found = np.flatnonzero(start >= 0)
    has_items = broken.copy()
    shifted = rows.addresses[found] + start[found], rows.lengths[found] - start[found]
    has_items[found] = list_places(TextRows(rows.owner, *shifted))[2]
    return OrderLists(rows, start, broken, has_items)


def _holds(rows: TextRows, row: Indices, start: Indices, length: Indices, wanted: bytes) -> Mask:
    """Tell which ranges of cells contain some bytes."""
    copied = copied_texts(rows.addresses[row] + start, length)
    ranges = texts_between(copied.data, copied.offsets[:-1], copied.offsets[1:])
    held: Mask = ranges.cast(pl.Binary).bin.contains(wanted).to_numpy()  # may cut a character
    return held


def _words_in(texts: pl.Series) -> Mask:
    """Tell which texts have which of `TOOL_WORDS`, bool (texts, kinds of tools)."""
    bits = keyword_groups(texts, TOOL_WORDS)
    found: Mask = (bits >> np.arange(len(TOOL_WORDS), dtype=np.uint64)) & np.uint64(1) > 0
    return found


FILLER_WORDS = ("the", "a", "an", "with", "and", "or", "of", "in", "on", "at")
FOOD_WORDS = ("chicken", "sandwich", "fries", "burger", "pizza", "salad")

_BLANK = r'^\s*"?(?:\s|\\[nrt])*"?\s*$'
"""Nothing, or a JSON string of nothing."""
_ESCAPE = re.compile(r"\\+(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.|$)", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r"}


def read_lists(
    data: UInt8Array, start: Indices, stop: Indices, conversation: Indices, *, option_first: bool
) -> tuple[pl.DataFrame, Indices]:
    """Read the names in lists of items, one list a conversation: `conversation`, `kind`, `name`.

    Of `kind` see `item_lists`. Also returned are the conversations whose list breaks off.
    """
    found = item_names(data, start, stop, option_first=option_first)
    complete = np.flatnonzero(found.ends[found.row] >= 0)
    begins, ends = found.start[complete], found.end[complete]
    code, firsts = number_ranges(data, begins, ends)
    values = texts_between(data, begins[firsts], ends[firsts])
    escaped = np.flatnonzero(values.str.contains("\\", literal=True).to_numpy())
    if len(escaped):
        texts = [_unescape(name) for name in values[escaped]]
        values = values.scatter(escaped, texts)
    names = {
        "conversation": conversation[found.row[complete]],
        "kind": found.kind[complete],
        "name": values[code],
    }
    return pl.DataFrame(names), conversation[found.ends < 0]


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


def normal_names(names: pl.DataFrame) -> pl.DataFrame:
    """Return ``conversation`` and ``name``, the names of items and modifiers normalised."""
    return names.select("conversation", normalise(names["name"]).alias("name"))


def food_words(spoken: pl.DataFrame) -> pl.DataFrame:
    """Return ``conversation`` and ``name``: the food words in its texts (``content``)."""
    said = spoken.with_columns(pl.col("content").str.to_lowercase())
    return pl.concat(
        said.filter(pl.col("content").str.contains(food, literal=True)).select(
            "conversation", name=pl.lit(food)
        )
        for food in FOOD_WORDS
    )


def item_words(target: pl.DataFrame) -> pl.DataFrame:
    """Return ``conversation`` and ``name``: the words in the names of a target's items."""
    words = pl.col("name").str.to_lowercase().str.extract_all(r"[^\s\x1c-\x1f]+")
    items = target.filter(pl.col("kind") == ITEM).select("conversation", words)
    return items.explode("name", empty_as_null=False)


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
