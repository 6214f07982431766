"""What tool cells say: which tools were used, the state they gave, the order they tracked.

Cells are Python's repr of calls and results, not always a valid one, or JSON. They are scanned for
members by key, all cells in one pass, and never evaluated.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from fastscore_kernels import keyword_groups
from fastscore_kernels.arrow import string_column
from fastscore_kernels.literals import Members, find_members, preceded_by

from fastscore.suites.columns import Indices, Mask
from fastscore.suites.guest_simulation.cell_bytes import WHITE_SPACE, Bytes, after, texts_between
from fastscore.suites.guest_simulation.schema import STATE_COLUMNS, TOOL_COLUMNS

ATTRIBUTES_TOOL = "get_message_generation_attributes_for_next_message"
TOOL_WORDS = (
    ("order_tracking",),
    ("message_generation", "message_attributes"),
    ("get_name", "get_persona", "get_target", "get_past_messages"),
)
"""What the names of tools contain, in the order of `TOOL_COLUMNS`."""

_KEYS = (
    b"tool_name",
    b"current_items_in_order",
    b"target_items_to_order",
    b"is_ordering_complete",
    b"next_message_menu_exploration_style",
    b"next_message_mood_tone",
    b"next_message_ordering_style",
)
_TOOL_NAME, _CURRENT, _TARGET, _FIRST_STATE = range(4)
_TRACKING = TOOL_COLUMNS.index("uses_order_tracking")
_MARKER = b"Latest Order tracking"
_MARKER_REACH = 40


@dataclass(frozen=True, slots=True)
class OrderLists:
    """Lists of items, at most one a message.

    Parameters
    ----------
    data
        The bytes that they stand in, uint8.
    start, stop
        Where each message's list begins and its cell ends, int64 (messages,); -1 without a list.
    broken
        Which messages have a list that breaks off, bool (messages,).
    """

    data: Bytes
    start: Indices
    stop: Indices
    broken: Mask

    @property
    def present(self) -> Mask:
        """Which messages have a list, broken ones too."""
        found: Mask = (self.start >= 0) | self.broken
        return found

    def has_items(self) -> Mask:
        """Which messages have a list with anything between its brackets, or a broken one."""
        listed = np.flatnonzero(self.start >= 0)
        at = after(WHITE_SPACE, self.data, self.start[listed] + 1, self.stop[listed])
        closed = at < self.stop[listed]
        closed[closed] = self.data[at[closed]] == ord("]")
        found: Mask = self.broken.copy()
        found[listed[~closed]] = True
        return found


@dataclass(frozen=True, slots=True)
class States:
    """States of messages, each part by its place among the values.

    Parameters
    ----------
    code
        A row a message, a column each of `STATE_COLUMNS`, int64 (messages, 4); -1 where nothing
        gives that part.
    values
        The values, lower case unless read by the published profile; none that counts is empty.
    """

    code: Indices
    values: pl.Series

    @property
    def present(self) -> Mask:
        """Which messages have some part of a state."""
        found: Mask = np.any(self.code >= 0, axis=1)
        return found


@dataclass(frozen=True, slots=True)
class ToolCells:
    """What the tool cells of messages say.

    Parameters
    ----------
    uses
        A row a message, a column each of `TOOL_COLUMNS`, bool (messages, 3).
    states
        What tools gave.
    orders
        The tracked orders.
    """

    uses: Mask
    states: States
    orders: OrderLists


def read_tool_cells(cells: pl.Series, *, whole_cell: bool) -> ToolCells:
    """Scan the tool cells of messages.

    Parameters
    ----------
    cells
        A cell a message, null without one.
    whole_cell
        Whether a tool counts as used where the cell has its word anywhere, instead of in the name
        of a tool that was called.
    """
    message, given = np.flatnonzero(cells.is_not_null().to_numpy()), cells.drop_nulls()
    column = string_column("tool_calls", given)
    found = find_members(column.data, column.offsets, _KEYS, threads=1)
    named = np.flatnonzero(found.key == _TOOL_NAME)
    values = texts_between(column.data, found.start, found.end)
    scan = _Scan(column.data, column.offsets, found, named, values)
    uses = np.zeros((len(cells), len(TOOL_COLUMNS)), np.bool_)
    if whole_cell:
        uses[message] = _words_in(given)
    else:
        has_word = _words_in(values)[found.simple[named]]
        for place in range(len(TOOL_COLUMNS)):
            uses[message[found.row[named[has_word[:, place]]]], place] = True
    return ToolCells(
        uses,
        _read_states(scan, message, len(cells)),
        _read_orders(scan, message, len(cells)),
    )


@dataclass(frozen=True, slots=True)
class _Scan:
    """The members that were found in cells.

    Parameters
    ----------
    data, offsets
        The cells.
    found
        The members.
    named
        Those that name a tool, int64.
    values
        The distinct simple values of members.
    """

    data: Bytes
    offsets: Indices
    found: Members
    named: Indices
    values: pl.Series


def _words_in(texts: pl.Series) -> Mask:
    """Tell which texts have which of `TOOL_WORDS`, bool (texts, kinds of tools)."""
    bits = keyword_groups(texts, TOOL_WORDS)
    found: Mask = (bits >> np.arange(len(TOOL_WORDS), dtype=np.uint64)) & np.uint64(1) > 0
    return found


def _read_states(scan: _Scan, message: Indices, n_messages: int) -> States:
    """Read, in each cell, the first value of every attribute behind the tool that gives them."""
    found, named = scan.found, scan.named
    giving = named[(scan.values == ATTRIBUTES_TOOL).to_numpy()[found.simple[named]]]
    behind = np.zeros(len(message), np.int64)
    # numpy assigns in order: of several calls the first stays
    behind[found.row[giving[::-1]]] = found.at[giving[::-1]]
    code = np.full((len(STATE_COLUMNS), n_messages), -1, np.int64).T
    rows = np.flatnonzero(found.key >= _FIRST_STATE)[::-1]
    rows = rows[found.at[rows] >= behind[found.row[rows]]]
    code[message[found.row[rows]], found.key[rows] - _FIRST_STATE] = found.simple[rows]
    empty = np.append((scan.values == "").to_numpy(), True)
    code[empty[code]] = -1
    return States(code, scan.values.str.to_lowercase())


def _read_orders(scan: _Scan, message: Indices, n_messages: int) -> OrderLists:
    """Find each cell's latest tracked order: the last list of current items in a tracking result.

    A cell without a result that says so has its order in the first call of an order tracking tool.
    """
    data, offsets, found, named = scan.data, scan.offsets, scan.found, scan.named
    opens = np.zeros(len(found.row), np.bool_)
    inside = found.value < offsets[found.row + 1]
    opens[inside] = data[found.value[inside]] == ord("[")
    lists = np.flatnonzero(((found.key == _CURRENT) & opens) | (found.key == _TARGET))
    current = found.key[lists] == _CURRENT
    follows = np.zeros(len(lists), np.bool_)
    follows[:-1] = (found.row[lists[1:]] == found.row[lists[:-1]]) & ~current[1:]
    marked = current.copy()
    at = lists[current]
    marked[current] = preceded_by(
        data, found.at[at], offsets[found.row[at]], _MARKER, reach=_MARKER_REACH
    )

    chosen, broken = np.full(len(message), -1, np.int64), np.zeros(len(message), np.bool_)
    tracking = named[_words_in(scan.values)[found.simple[named], _TRACKING]]
    called = np.full(len(message), np.iinfo(np.int64).max)
    called[found.row[tracking[::-1]]] = found.at[tracking[::-1]]
    plain = lists[current & ~marked]
    plain = plain[found.at[plain] > called[found.row[plain]]]
    chosen[found.row[plain[::-1]]] = plain[::-1]
    latest = lists[marked]
    chosen[found.row[latest]] = latest
    broken[found.row[latest]] = ~follows[marked]

    start, stop = np.full(n_messages, -1, np.int64), np.full(n_messages, -1, np.int64)
    is_broken = np.zeros(n_messages, np.bool_)
    is_broken[message[broken]] = True
    cell = np.flatnonzero((chosen >= 0) & ~broken)
    start[message[cell]] = found.value[chosen[cell]]
    stop[message[cell]] = offsets[cell + 1]
    return OrderLists(data, start, stop, is_broken)
