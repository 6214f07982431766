"""What tool cells say: which tools were used, the state they gave, the order they tracked.

Cells are Python's repr of calls and results, not always a valid one, or JSON. They are searched for
members by key, all cells in one pass, and never evaluated.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_jit.arrow import StringColumn, TextRows, text_rows
from fastscore_kernels import keyword_groups
from fastscore_kernels.copying import copy_texts

from fastscore.suites.guest_simulation.cell_bytes import column_of
from fastscore.suites.guest_simulation.nearly_python import tool_calls
from fastscore.suites.guest_simulation.terms import TOOL_COLUMNS

TOOL_WORDS = (
    ("order_tracking",),
    ("message_generation", "message_attributes"),
    ("get_name", "get_persona", "get_target", "get_past_messages"),
)
"""What the names of tools contain, in the order of `TOOL_COLUMNS`."""

_FORMAT = tool_calls.ToolFormat(
    tool_key=b"tool_name",
    tool_words=tuple(tuple(word.encode() for word in words) for words in TOOL_WORDS),
    attribute_keys=(
        b"is_ordering_complete",
        b"next_message_menu_exploration_style",
        b"next_message_mood_tone",
        b"next_message_ordering_style",
    ),
    attributes_tool=b"get_message_generation_attributes_for_next_message",
    list_key=b"current_items_in_order",
    end_key=b"target_items_to_order",
    tracking_kind=TOOL_COLUMNS.index("uses_order_tracking"),
    marker=b"Latest Order tracking",
    marker_reach=40,
)


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
    found = tool_calls.read_tool_cells(rows, _FORMAT)
    values = column_of(found.values).str.to_lowercase()
    return ToolCells(
        _words_in(cells.fill_null("")) if whole_cell else found.uses,
        States(found.attributes, values),
        OrderLists(rows, found.lists, found.broken, found.has_items),
    )


def _words_in(texts: pl.Series) -> Mask:
    """Tell which texts have which of `TOOL_WORDS`, bool (texts, kinds of tools)."""
    bits = keyword_groups(texts, TOOL_WORDS)
    found: Mask = (bits >> np.arange(len(TOOL_WORDS), dtype=np.uint64)) & np.uint64(1) > 0
    return found
