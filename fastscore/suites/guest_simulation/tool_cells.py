"""What tool cells say: which tools were used, the state they gave, the order they tracked.

Cells are Python's repr of calls and results, not always a valid one, or JSON. They are scanned for
members by key, all cells in one pass, and never evaluated.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import jsonl
from fastscore_kernels.arrow import string_column
from fastscore_kernels.literals import Members, find_members, scalar_ranges

from fastscore.suites.columns import Indices, Mask
from fastscore.suites.distinct import distinct
from fastscore.suites.guest_simulation.schema import STATE_COLUMNS, TOOL_COLUMNS

Bytes = npt.NDArray[np.uint8]

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
_MARKER = b"Latest Order tracking"
_MARKER_REACH = 40
_SPACES = np.frombuffer(b" \t\n\r\v\f", np.uint8)


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
        at = after_blanks(self.data, self.start[listed] + 1, self.stop[listed])
        closed = at < self.stop[listed]
        closed[closed] = self.data[at[closed]] == ord("]")
        found: Mask = self.broken.copy()
        found[listed[~closed]] = True
        return found


@dataclass(frozen=True, slots=True)
class ToolCells:
    """What the tool cells of messages say.

    Parameters
    ----------
    uses
        A row a message: `TOOL_COLUMNS`, Boolean.
    states
        A row a message: `STATE_COLUMNS`, String in lower case, null where no tool gave them.
    orders
        The tracked orders.
    """

    uses: pl.DataFrame
    states: pl.DataFrame
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
    message = np.flatnonzero(cells.is_not_null().to_numpy())
    column = string_column("tool_calls", cells.drop_nulls())
    found = find_members(column.data, column.offsets, _KEYS)
    scan = _Scan(column.data, column.offsets, found, *_scalars(column.data, column.offsets, found))
    if whole_cell:
        used = [_has_any(cells, words).to_numpy() for words in TOOL_WORDS]
    else:
        used = [_used(scan, words, message, len(cells)) for words in TOOL_WORDS]
    return ToolCells(
        pl.DataFrame(dict(zip(TOOL_COLUMNS, used, strict=True))),
        _read_states(scan, message, len(cells)),
        _read_orders(scan, message, len(cells)),
    )


@dataclass(frozen=True, slots=True)
class _Scan:
    """The members that were found in cells, and the simple values of some.

    Parameters
    ----------
    data, offsets
        The cells.
    found
        The members.
    code
        The value of each member, its place in ``values``; -1 where none was read.
    values
        The distinct values.
    """

    data: Bytes
    offsets: Indices
    found: Members
    code: Indices
    values: pl.Series

    @property
    def named(self) -> Indices:
        """The members that name a tool."""
        return np.flatnonzero(self.found.key == _TOOL_NAME)


def _scalars(data: Bytes, offsets: Indices, found: Members) -> tuple[Indices, pl.Series]:
    """Read the simple values of tools and states, each distinct one once."""
    rows = np.flatnonzero((found.key == _TOOL_NAME) | (found.key >= _FIRST_STATE))
    start, end = scalar_ranges(data, found.value[rows], offsets[found.row[rows] + 1])
    codes, values = distinct(texts_between(data, start, end))
    code = np.full(len(found.key), -1, np.int64)
    code[rows] = codes
    return code, values


def _has_any(texts: pl.Series, words: tuple[str, ...]) -> pl.Series:
    return texts.str.contains_any(list(words)).fill_null(False)


def _used(scan: _Scan, words: tuple[str, ...], message: Indices, n_messages: int) -> Mask:
    """Mark the messages that called a tool whose name has one of the words."""
    named = scan.named
    meant = _has_any(scan.values, words).to_numpy()[scan.code[named]]
    used = np.zeros(n_messages, np.bool_)
    used[message[scan.found.row[named[meant]]]] = True
    return used


def _read_states(scan: _Scan, message: Indices, n_messages: int) -> pl.DataFrame:
    """Read, in each cell, the first value of every attribute behind the tool that gives them."""
    found, named = scan.found, scan.named
    giving = named[(scan.values == ATTRIBUTES_TOOL).to_numpy()[scan.code[named]]]
    behind = np.zeros(len(message), np.int64)
    # numpy assigns in order: of several calls the first stays
    behind[found.row[giving[::-1]]] = found.at[giving[::-1]]
    values = scan.values.str.to_lowercase().replace("", None)
    columns = {}
    for place, name in enumerate(STATE_COLUMNS):
        rows = np.flatnonzero(found.key == _FIRST_STATE + place)[::-1]
        rows = rows[found.at[rows] >= behind[found.row[rows]]]
        code = np.full(n_messages, -1, np.int64)
        code[message[found.row[rows]]] = scan.code[rows]
        columns[name] = gather_or_null(values, code)
    return pl.DataFrame(columns)


def gather_or_null(values: pl.Series, rows: Indices) -> pl.Series:
    """Gather rows, null where the row is negative."""
    places = pl.Series(rows)
    return values.gather(places.set(places < 0, None))


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
    marked[current] = _is_marked(data, offsets, found, lists[current])

    chosen, broken = np.full(len(message), -1, np.int64), np.zeros(len(message), np.bool_)
    tracking = named[_has_any(scan.values, TOOL_WORDS[0]).to_numpy()[scan.code[named]]]
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


def _is_marked(data: Bytes, offsets: Indices, found: Members, rows: Indices) -> Mask:
    """Tell which lists a tracking result introduces, by the bytes before their key."""
    if not len(rows):
        return np.zeros(0, np.bool_)
    places = found.at[rows, None] + np.arange(-_MARKER_REACH, 0)
    before = np.where(places >= offsets[found.row[rows], None], data[places.clip(min=0)], 1)
    packed = before.astype(np.uint8).view(f"S{_MARKER_REACH}").ravel()
    marked: Mask = np.strings.find(packed, _MARKER) >= 0
    return marked


def after_blanks(data: Bytes, at: Indices, stop: Indices) -> Indices:
    """Move each place behind the white space that it stands at, at most to where it stops."""
    at = at.copy()
    moving = np.flatnonzero(at < stop)
    while len(moving):
        moving = moving[np.isin(data[at[moving]], _SPACES)]
        at[moving] += 1
        moving = moving[at[moving] < stop[moving]]
    return at


def texts_between(data: Bytes, start: Indices, end: Indices) -> pl.Series:
    """Make a String column of ranges of bytes, without copying them."""
    import pyarrow as pa

    views = np.zeros((len(start), 4), np.int32)
    if len(start):
        jsonl.views(data, start, end, 0, views)
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data)]
    return pl.Series("", pa.Array.from_buffers(pa.string_view(), len(start), buffers))
