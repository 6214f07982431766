r"""Cells that are nearly Python, or nearly JSON: lists of named items.

Logs hold results of tools as Python's ``repr`` wrote them: calls like ``Item(name='...')``, texts
in either quote, escaped once, twice or, where a backslash was lost, wrongly. No parser takes them,
and nothing may evaluate them. What these kernels read of them is this:

- A text ends at its own quote where what follows shows it: a bracket's end, a colon, or a comma
  before a quote, a bracket, or a bare word. Where ``:`` or nothing introduced the text, a quote
  after more backslashes than the opening one is part of it.
- Brackets of any kind nest; brackets in texts do not count.

Every byte is read a bounded number of times, whatever the cell holds. Comparisons are spelled out,
as `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, Mask, UInt8Array
from fastscore_jit.arrow import TextRows
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.byte_blocks import equal_bytes, word_bytes
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined
from fastscore_jit.memory import BLOCK, View, Views, load_byte, subview
from fastscore_jit.validation import as_ranges, as_vector, read_only

ITEM, BARE_ITEM, MODIFIER, FIELD = range(4)
"""What is named: an item, an item that is a text, one of its modifiers, its field ``modifier``."""

_NAMES_PER_LIST = 12
_NAME_TEXTS = (b"name", b"item_name", b"item")

_DOUBLE, _SINGLE, _BACKSLASH, _OPEN_ROUND = 0x22, 0x27, 0x5C, 0x28
_OPEN_SQUARE, _CLOSE_SQUARE = 0x5B, 0x5D
_COMMA, _COLON, _EQUALS, _LESS, _POINT = 0x2C, 0x3A, 0x3D, 0x3C, 0x2E
_PLUS, _MINUS = 0x2B, 0x2D
_NAME_KEYS, _MODIFIER_KEY, _MODIFIERS_KEY = 3, 4, 5
_NO_RANK = 1 << 20

_OTHER, _SPACE, _DIGIT, _LETTER, _QUOTE, _OPEN, _CLOSE, _SEPARATOR = range(8)


def _classes() -> npt.NDArray[np.uint8]:
    classes = np.zeros(256, np.uint8)
    for kind, members in (
        (_SPACE, b" \t\n\v\f\r"),
        (_DIGIT, b"0123456789"),
        (_LETTER, b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"),
        (_QUOTE, b"'\""),
        (_OPEN, b"([{"),
        (_CLOSE, b")]}"),
        (_SEPARATOR, b","),
    ):
        classes[list(members)] = kind
    return classes


_CLASS = _classes()


@always_inlined
def _is_space(byte: int) -> bool:
    return bool(_CLASS[byte] == _SPACE)


@always_inlined
def is_word(byte: int) -> bool:
    """Tell if a byte is an ASCII letter, a digit or an underscore."""
    return bool(_CLASS[byte] == _LETTER or _CLASS[byte] == _DIGIT)


@always_inlined
def is_quote(byte: int) -> bool:
    """Tell if a byte is a quote of either kind."""
    return byte == _SINGLE or byte == _DOUBLE


@always_inlined
def _is_open(byte: int) -> bool:
    return bool(_CLASS[byte] == _OPEN)


@always_inlined
def _is_close(byte: int) -> bool:
    return bool(_CLASS[byte] == _CLOSE)


@always_inlined
def after_spaces(data: View, at: int, stop: int) -> int:
    """Skip white space."""
    while at < stop and _is_space(load_byte(data, at)):
        at += 1
    return at


@always_inlined
def after_word(data: View, at: int, stop: int) -> int:
    """Skip the bytes of a word."""
    if at + BLOCK <= stop:
        # nearly every word is short
        others = ~word_bytes(data, at)
        at += trailing_zeros(others) if others != 0 else BLOCK
    while at < stop and is_word(load_byte(data, at)):
        at += 1
    return at


@always_inlined
def _key_number(data: View, start: int, end: int, names: Any, offsets: Any) -> int:
    """Find a word among the keys, -1 where it is none of them."""
    for key in range(offsets.size - 1):
        first = offsets[key]
        if offsets[key + 1] - first != end - start:
            continue
        same = True
        for place in range(end - start):
            if load_byte(data, start + place) != names[first + place]:
                same = False
                break
        if same:
            return key
    return -1


@always_inlined
def _closes(data: View, quote: int, stop: int) -> bool:
    """Tell whether what follows a quote shows that it ends its text."""
    at = after_spaces(data, quote + 1, stop)
    if at >= stop or _is_close(load_byte(data, at)) or load_byte(data, at) == _COLON:
        return True
    if load_byte(data, at) != _COMMA:
        return False
    at += 1
    while at < stop and (_is_space(load_byte(data, at)) or load_byte(data, at) == _BACKSLASH):
        at += 1
    if at >= stop:
        return False
    if (
        is_quote(load_byte(data, at))
        or _is_open(load_byte(data, at))
        or _is_close(load_byte(data, at))
    ):
        return True
    word = at
    while at < stop and (is_word(load_byte(data, at)) or load_byte(data, at) == _POINT):
        at += 1
    after = after_spaces(data, at, stop)
    if at == word or after >= stop:
        return False
    byte = load_byte(data, after)
    return byte == _EQUALS or byte == _OPEN_ROUND or byte == _COMMA or _is_close(byte)


@always_inlined
def _text_end(data: View, quote: int, start: int, stop: int, assigned: bool) -> int:
    """Find the quote that ends the text which the one at ``quote`` opens, -1 where none does."""
    opened = quote
    while opened > start and load_byte(data, opened - 1) == _BACKSLASH:
        opened -= 1
    at = quote + 1
    if at + BLOCK <= data.length:
        # nearly every text is short, and has no backslash
        marks = equal_bytes(data, at, load_byte(data, quote)) | equal_bytes(data, at, _BACKSLASH)
        at += trailing_zeros(marks) if marks != 0 else BLOCK
    escapes = 0
    while at < stop:
        byte = load_byte(data, at)
        if byte == _BACKSLASH:
            escapes += 1
        else:
            if (
                byte == load_byte(data, quote)
                and (assigned or escapes <= quote - opened)
                and _closes(data, at, stop)
            ):
                return at
            escapes = 0
        at += 1
    return -1


@always_inlined
def _append_name(found: Any, count: int, row: int, kind: int, start: int, end: int) -> int:
    """Note one more name; return how many there are, -1 without room for it."""
    if count < 0 or count == found.shape[1]:
        return -1
    found[0, count], found[1, count], found[2, count], found[3, count] = row, kind, start, end
    return count + 1


class ItemLists(NamedTuple):
    """Lists of items, int64 (n,) each."""

    # the places of each list's bracket and of its cell's end
    starts: Int64Array
    stops: Int64Array
    ends: Int64Array  # where the list is found to end, -1 where it does not


class ItemKeys(NamedTuple):
    """Keys of items: their bytes and offsets, and for each its rank as a modifier's name."""

    names: UInt8Array
    offsets: Int64Array
    ranks: Int64Array


@kernel(
    "uint8[:], ItemLists(int64[:], int64[:], out(int64[:])), "
    "ItemKeys(uint8[:], int64[:], int64[:]), int64, int64, out(int64[:, :])",
    returns="int64",
    fastmath=False,
)
def walk(
    cells: Any, lists: ItemLists, keys: ItemKeys, first_row: int, last_row: int, found: Any
) -> int:
    """List (row, kind, start, end) of the names in lists of items, and find where each list ends.

    Returns how many there are, -1 where ``found`` has no room for all.

    Level 1 is inside the list, 2 inside an item, 3 inside its modifiers, 4 inside one of them.
    """
    data = subview(cells, 0, cells.size)
    starts, stops, ends = lists
    names, name_offsets, ranks = keys
    count = 0
    best = np.empty((3, 3), np.int64)
    for row in range(first_row, last_row):
        at, stop = starts[row], stops[row]
        level, key = 0, -1
        assigned = in_modifiers = had_modifiers = False
        ends[row] = -1
        while at < stop:
            byte_class = _CLASS[load_byte(data, at)]
            if byte_class == _OPEN:
                level += 1
                if level == 2:
                    best[:, 0] = _NO_RANK
                    had_modifiers = False
                elif level == 3:
                    in_modifiers = key == _MODIFIERS_KEY and not had_modifiers
                    had_modifiers |= in_modifiers
                elif level == 4:
                    best[2, 0] = _NO_RANK
                key, assigned = -1, False
            elif byte_class == _CLOSE:
                level -= 1
                key = -1
                if level == 1:
                    for kind, place in ((ITEM, 0), (FIELD, 1)):
                        if best[place, 0] < _NO_RANK:
                            count = _append_name(
                                found, count, row, kind, best[place, 1], best[place, 2]
                            )
                elif level == 3 and in_modifiers and best[2, 0] < _NO_RANK:
                    count = _append_name(found, count, row, MODIFIER, best[2, 1], best[2, 2])
                elif level <= 0:
                    ends[row] = at + 1
                    break
            elif byte_class == _QUOTE:
                quote = _text_end(data, at, starts[row], stop, assigned)
                if quote < 0:
                    break
                begin, end = at + 1, quote
                while end > begin and load_byte(data, end - 1) == _BACKSLASH:
                    end -= 1
                at = quote
                assigned = False
                after = after_spaces(data, at + 1, stop)
                if after < stop and load_byte(data, after) == _COLON:
                    key = _key_number(data, begin, end, names, name_offsets)
                elif begin < end and (level == 1 or (level == 3 and in_modifiers)):
                    kind = BARE_ITEM if level == 1 else MODIFIER
                    count = _append_name(found, count, row, kind, begin, end)
                    key = -1
                elif begin < end and key >= 0:
                    place, rank = -1, key
                    if level == 2 and key < _NAME_KEYS:
                        place = 0
                    elif level == 2 and key == _MODIFIER_KEY:
                        place = 1
                    elif level == 4:
                        place, rank = 2, ranks[key]
                    if place >= 0 and rank < min(best[place, 0], ranks.size):
                        best[place, 0], best[place, 1], best[place, 2] = rank, begin, end
                    key = -1
            elif byte_class == _SEPARATOR:
                key, assigned = -1, False
            elif byte_class == _LETTER:
                end = after_word(data, at, stop)
                after = after_spaces(data, end, stop)
                if after < stop and load_byte(data, after) == _EQUALS:
                    key = _key_number(data, at, end, names, name_offsets)
                    assigned = True
                    at = after
                else:
                    at = end - 1
            if count < 0:
                return -1
            at += 1
    return count


@always_inlined
def _is_blank_or_quote(byte: int) -> bool:
    return byte == _DOUBLE or byte == 0x20 or byte == 0x09 or byte == 0x0A or byte == 0x0D


@always_inlined
def list_has_items(data: View, at: int, stop: int) -> bool:
    """Tell whether anything but white space is between the brackets of the list at a place."""
    closing = after_spaces(data, at + 1, stop)
    return closing >= stop or load_byte(data, closing) != _CLOSE_SQUARE


@kernel("Views(int64[:], int64[:]), out(int64[:]), out(bool[:]), out(bool[:])", fastmath=False)
def find_lists(cells: Views, begins: Any, broken: Any, has_items: Any) -> None:
    """Find where in its cell each list begins, -1 without one; see `item_lists.list_places`."""
    addresses, lengths = cells
    for row in range(lengths.size):
        cell, stop = View(addresses[row], lengths[row]), lengths[row]
        begins[row] = -1
        broken[row] = has_items[row] = False
        at = after_spaces(cell, 0, stop)
        if at >= stop:
            continue
        if load_byte(cell, at) == _DOUBLE:
            at = after_spaces(cell, at + 1, stop)
        if at < stop and load_byte(cell, at) == _OPEN_SQUARE:
            begins[row] = at
            has_items[row] = list_has_items(cell, at, stop)
        else:
            blank = 0
            while blank < stop and _is_blank_or_quote(load_byte(cell, blank)):
                blank += 1
            broken[row] = has_items[row] = blank < stop


@dataclass(frozen=True, slots=True)
class ItemNames:
    """Names in lists of items."""

    # the list, and what is named: `ITEM`, `BARE_ITEM` (the item is a text), `MODIFIER` (of the
    # item's list) or `FIELD` (the item's own field ``modifier``), int64 (m,)
    row: Int64Array
    kind: Int64Array
    # the name's bytes, inside its quotes and as escaped as it was, int64 (m,)
    start: Int64Array
    end: Int64Array
    # where each list ends, its bracket included; -1 where it does not, int64 (lists,)
    ends: Int64Array


def item_names(
    data: npt.ArrayLike, starts: npt.ArrayLike, stops: npt.ArrayLike, *, option_first: bool = False
) -> ItemNames:
    """Find the names of items and of their modifiers in lists.

    An item is a dictionary, a call with keywords, or a text. Its name is under ``name``, else
    ``item_name``, else ``item``; that of each of its ``modifiers`` under ``name``, else
    ``modifier_option_name``, else ``modifier``. Empty names are none.
    """
    flat = as_vector("data", data, np.uint8)
    first, last = as_ranges("starts", starts, "stops", stops, flat.size)
    lists = ItemLists(first, last, np.empty(first.size, np.int64))
    fill = partial(walk, flat, lists, _ITEM_KEYS[option_first], 0, first.size)
    row, kind, start, end = filled(fill, 4, _NAMES_PER_LIST * first.size)
    return ItemNames(row, kind, start, end, lists.ends)


def list_places(cells: TextRows) -> tuple[Int64Array, Mask, Mask]:
    """Find the list that each cell is, perhaps after a quote."""
    n_cells = len(cells.lengths)
    begins, flags = np.empty(n_cells, np.int64), np.empty((2, n_cells), np.bool_)
    find_lists(cells.views, begins, *flags)
    return begins, flags[0], flags[1]


def key_table(keys: Sequence[bytes]) -> tuple[UInt8Array, Int64Array]:
    """Flatten keys to their bytes and offsets."""
    names = np.frombuffer(b"".join(keys), np.uint8)
    offsets = np.concatenate(([0], np.cumsum([len(key) for key in keys]))).astype(np.int64)
    return read_only(names), read_only(offsets)


def _item_keys(option_first: bool) -> ItemKeys:
    """Return the keys of items with, for each, its rank as a modifier's name."""
    keys = (*_NAME_TEXTS, b"modifier_option_name", b"modifier", b"modifiers")
    order = ("modifier_option_name", "name") if option_first else ("name", "modifier_option_name")
    ranks = {name.encode(): rank for rank, name in enumerate((*order, "modifier"))}
    return ItemKeys(
        *key_table(keys), read_only(np.array([ranks.get(key, len(keys)) for key in keys], np.int64))
    )


_ITEM_KEYS = {option_first: _item_keys(option_first) for option_first in (False, True)}


def filled(fill: Callable[[Int64Array], int], width: int, room: int) -> Int64Array:
    """Have a kernel fill columns of rows, with more room until all have some."""
    while True:
        columns = np.empty((width, room), np.int64)
        count = fill(columns)
        if count >= 0:
            # without the room that was left
            return read_only(columns[:, :count].copy())
        room *= 4
