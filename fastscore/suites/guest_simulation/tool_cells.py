"""What tool cells say: which tools were used, the state they gave, the order they tracked.

Cells are Python's repr of calls and results, not always a valid one, or JSON. They are searched for
members by key, all cells in one pass, and never evaluated.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_jit.arrow import StringColumn, TextRows, text_rows
from fastscore_kernels import keyword_groups, number_texts
from fastscore_kernels.copying import copy_texts

from fastscore.suites.guest_simulation.item_lists import list_places
from fastscore.suites.guest_simulation.members import Members, find_members
from fastscore.suites.guest_simulation.terms import TOOL_COLUMNS
from fastscore.suites.json_values import texts_between

TOOL_WORDS = (
    ("order_tracking",),
    ("message_generation", "message_attributes"),
    ("get_name", "get_persona", "get_target", "get_past_messages"),
)
"""What the names of tools contain, in the order of `TOOL_COLUMNS`."""

ATTRIBUTE_KEYS = (
    b"is_ordering_complete",
    b"next_message_menu_exploration_style",
    b"next_message_mood_tone",
    b"next_message_ordering_style",
)
ATTRIBUTES_TOOL = "get_message_generation_attributes_for_next_message"
MARKER = b"Latest Order tracking"
"""What stands before the list in a result of order tracking, at most so many bytes before it."""
_MARKER_REACH = 40

_KEYS = (b"tool_name", b"current_items_in_order", b"target_items_to_order", *ATTRIBUTE_KEYS)
_TOOL, _LIST, _LIST_END, _FIRST_ATTRIBUTE = range(4)
_TRACKING = TOOL_COLUMNS.index("uses_order_tracking")


@dataclass(frozen=True, slots=True)
class OrderLists:
    """Lists of items, at most one a message.

    Parameters
    ----------
    cells
        The cells that they stand in, one a message.
    start
        Where in its cell each list begins, int64 (messages,); -1 without a list.
    broken
        Which messages have a list that breaks off, bool (messages,).
    has_items
        Which messages have a list with anything between its brackets, or a broken one.
    """

    cells: TextRows
    start: Indices
    broken: Mask
    has_items: Mask

    @property
    def present(self) -> Mask:
        """Which messages have a list, broken ones too."""
        found: Mask = (self.start >= 0) | self.broken
        return found

    def texts(self, messages: Indices) -> StringColumn:
        """Copy the lists of some messages, each with what follows it in its cell."""
        start = self.start[messages]
        return copy_texts(
            self.cells.addresses[messages] + start, self.cells.lengths[messages] - start
        )


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

    def of(self, messages: Indices) -> "States":
        """Return the states of some messages."""
        return States(self.code[messages], self.values)

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
    """Read the tool cells of messages.

    Parameters
    ----------
    cells
        A cell a message, null without one.
    whole_cell
        Whether a tool counts as used where the cell has its word anywhere, instead of in the name
        of a tool that was called.
    """
    rows = text_rows("tool_calls", cells, nulls=True)
    members = find_members(rows, _KEYS)
    code, values = _simple_values(rows, members)
    kinds = _words_in(values)
    of_tools = np.flatnonzero(members.key == _TOOL)
    tools, used = members.row[of_tools], kinds[code[of_tools]]
    uses = np.zeros((len(rows), len(TOOL_WORDS)), np.bool_)
    for kind in range(len(TOOL_WORDS)):
        uses[tools[used[:, kind]], kind] = True
    giving = of_tools[(values == ATTRIBUTES_TOOL).to_numpy()[code[of_tools]]]
    tracking = of_tools[used[:, _TRACKING]]
    states = States(_attributes(members, code, giving, len(rows)), values.str.to_lowercase())
    orders = _order_lists(rows, members, tracking)
    return ToolCells(_words_in(cells.fill_null("")) if whole_cell else uses, states, orders)


def _simple_values(rows: TextRows, members: Members) -> tuple[Indices, pl.Series]:
    """Return the number of each member's simple value, and the distinct values."""
    addresses, lengths = rows.addresses[members.row] + members.start, members.end - members.start
    code, firsts = number_texts(TextRows(rows.owner, addresses, lengths))
    copied = copy_texts(addresses[firsts], lengths[firsts])
    return code, texts_between(copied.data, copied.offsets[:-1], copied.offsets[1:])


def _first_by_row(members: Members, chosen: Indices, n_rows: int, default: int) -> Indices:
    """Return the first of some members in each row."""
    first = np.full(n_rows, default)
    # numpy assigns in order: of several the first stays
    first[members.row[chosen[::-1]]] = chosen[::-1]
    return first


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
    last = np.full(n_rows, -1)
    # numpy assigns in order: of several the last stays
    marked = np.flatnonzero(is_marked)
    last[row[marked]] = marked
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
    """Tell in which ranges of cells some bytes stand."""
    copied = copy_texts(rows.addresses[row] + start, length)
    data = copied.data.tobytes()
    held = (wanted in data[begin:end] for begin, end in pairwise(copied.offsets.tolist()))
    return np.fromiter(held, np.bool_, len(row))


def _words_in(texts: pl.Series) -> Mask:
    """Tell which texts have which of `TOOL_WORDS`, bool (texts, kinds of tools)."""
    bits = keyword_groups(texts, TOOL_WORDS)
    found: Mask = (bits >> np.arange(len(TOOL_WORDS), dtype=np.uint64)) & np.uint64(1) > 0
    return found
