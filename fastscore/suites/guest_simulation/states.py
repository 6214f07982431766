"""The state of every guest message: from columns, tool calls or the heuristic."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask

from fastscore.suites.columns import (
    gather_or_null,
)
from fastscore.suites.grouping import factorize, factorize_rows
from fastscore.suites.guest_simulation.heuristic import states_by_words
from fastscore.suites.guest_simulation.options import GuestSimulation
from fastscore.suites.guest_simulation.orders import (
    Names,
    column_lists,
    join_names,
    read_lists,
)
from fastscore.suites.guest_simulation.rows import Rows
from fastscore.suites.guest_simulation.state_files import StateFiles
from fastscore.suites.guest_simulation.terms import (
    DEFAULT_STATE,
    ORDER_COLUMN,
    ORDER_SOURCES,
    STATE_COLUMNS,
    STATE_SOURCES,
)
from fastscore.suites.guest_simulation.tool_cells import OrderLists, States, ToolCells

COLUMNS, TOOLS, HEURISTIC = range(len(STATE_SOURCES))
_NONE = -1
_SOURCES = pl.Enum([*STATE_SOURCES, "default"])


@dataclass(frozen=True, slots=True)
class StateRows:
    """What the state columns of messages give, those of the log or of files.

    Parameters
    ----------
    states
        The four parts of behaviour.
    orders
        The orders so far.
    present
        Which messages have a state row: one in a file, or a cell that is not empty in any of the
        five columns, bool (messages,).
    """

    states: States
    orders: OrderLists
    present: Mask


@dataclass(frozen=True, slots=True)
class Behaviours:
    """States that count, and where they come from.

    Parameters
    ----------
    states
        The distinct states, a row each: `STATE_COLUMNS`.
    code
        The state of each message, its row in ``states``, int64 (messages,); -1 without one.
    state_source
        Where it comes from, a column of as many rows.
    source
        The source of each conversation, index in `STATE_SOURCES`, int64 (conversations,).
    """

    states: pl.DataFrame
    code: Indices
    state_source: pl.Series
    source: Indices


@dataclass(frozen=True, slots=True)
class FinalOrders:
    """The order that each conversation ended with.

    Parameters
    ----------
    names
        The names in them.
    has_items
        Which messages have a tracked order that is not empty, bool (messages,).
    order_source
        Where each message's order comes from, index in `ORDER_SOURCES`, int64 (messages,); -1
        without one.
    source
        The source of each conversation, likewise, int64 (conversations,).
    present, broken
        Conversations that have a final order, and whose order cannot be read, bool.
    faults
        Messages with an order that cannot be read, int64.
    """

    names: Names
    has_items: Mask
    order_source: Indices
    source: Indices
    present: Mask
    broken: Mask
    faults: Indices


def read_state_rows(messages: Rows, files: StateFiles | None, *, published: bool) -> StateRows:
    """Read the state columns of guest messages."""
    states = _column_states(messages, published=published)
    orders = column_lists(messages[ORDER_COLUMN], published=published)
    if files is None:
        return StateRows(states, orders, states.present | orders.present)
    # of a conversation whose file cannot be read, no message is taken for the default
    return StateRows(states, orders, files.has_row | files.unread[messages.conversation])


def read_behaviours(
    messages: Rows,
    rows: Rows,
    columns: StateRows,
    tools: ToolCells,
    targets: Names,
    n_conversations: int,
    options: GuestSimulation,
) -> Behaviours:
    """Read the behaviour of every guest message.

    A conversation's states come from one source: the first that any of its messages has, or the
    one that the option forces. Of a state that has some part, the others are the default's. In
    the published profile a message without a state has the default, unless it has a state row:
    one without behaviour is passed over, and is enough for the states to come from columns.
    """
    conversation = messages.conversation
    source = _state_sources(conversation, columns, tools, n_conversations, options)
    of_message = source[conversation]
    owned = [np.flatnonzero(of_message == number) for number in range(len(STATE_SOURCES))]
    words = _heuristic(rows, targets, source == HEURISTIC)
    *chosen, default = _same_values(
        [
            columns.states.of(owned[COLUMNS]),
            tools.states.of(owned[TOOLS]),
            words,
            States(np.arange(len(DEFAULT_STATE))[None], pl.Series(DEFAULT_STATE)),
        ]
    )
    code = np.empty((len(messages), len(STATE_COLUMNS)), np.int64)
    for of_source, each in zip(owned, chosen, strict=True):
        code[of_source] = each.code
    states, numbers, counts = _with_default(code, default, messages.is_exit)
    state_source = np.where(counts, of_message, len(STATE_SOURCES))
    stateless = ~counts
    if options.published:
        stateless = columns.present & (of_message == COLUMNS) & ~counts & ~messages.is_exit
    numbers, state_source = (np.where(stateless, -1, each) for each in (numbers, state_source))
    sources = pl.Series([*STATE_SOURCES, "default"], dtype=_SOURCES)
    return Behaviours(states, numbers, gather_or_null(sources, state_source), source)


def _state_sources(
    conversation: Indices,
    columns: StateRows,
    tools: ToolCells,
    n_conversations: int,
    options: GuestSimulation,
) -> Indices:
    """Return where each conversation's states come from."""
    if options.forced_source is not None:
        return np.full(n_conversations, STATE_SOURCES.index(options.forced_source))
    source = np.full(n_conversations, HEURISTIC)
    in_columns = columns.present if options.published else columns.states.present
    for number, found in ((TOOLS, tools.states.present), (COLUMNS, in_columns)):
        source[conversation[found]] = number
    return source


def _with_default(
    code: Indices, default: States, is_exit: Mask
) -> tuple[pl.DataFrame, Indices, Mask]:
    """Fill in the default's parts of messages' states.

    Returns
    -------
    tuple
        The distinct states, each message's among them, and which messages have their own.
    """
    numbers, firsts = factorize_rows(list(code.T + 1))
    given = code[firsts]
    some: Mask = np.any(given >= 0, axis=1)
    counts = some[numbers] & ~is_exit
    # an exit, or a message without a state, has the default
    filled = np.concatenate([default.code, np.where(given >= 0, given, default.code)])
    of_given, firsts = factorize_rows(list(filled.T))
    numbers = np.where(counts, of_given[1:][numbers], of_given[0])
    states = pl.DataFrame(
        {name: default.values[filled[firsts, place]] for place, name in enumerate(STATE_COLUMNS)}
    )
    return states, numbers, counts


def _same_values(sources: Sequence[States]) -> list[States]:
    """Give states of several sources the same distinct values."""
    numbers, values = factorize(pl.concat([states.values for states in sources]))
    same, shift = [], 0
    for states in sources:
        # a place for -1, which stays
        of_source = np.append(numbers[shift : shift + len(states.values)], -1)
        same.append(States(of_source[states.code], values))
        shift += len(states.values)
    return same


def _column_states(messages: Rows, *, published: bool) -> States:
    """Read the states that columns give; blank cells give none."""
    columns = [messages[name] for name in STATE_COLUMNS]
    given = np.flatnonzero(np.concatenate([each.is_not_null().to_numpy() for each in columns]))
    code = np.full(len(columns) * len(messages), -1, np.int64)
    code[given], values = factorize(pl.concat([each.drop_nulls() for each in columns]))
    if not published:
        values = values.str.strip_chars().str.to_lowercase()
    empty = np.append((values.str.strip_chars() == "").to_numpy(), True)
    code[empty[code]] = -1
    return States(code.reshape(len(STATE_COLUMNS), -1).T, values)


def _heuristic(rows: Rows, targets: Names, needed: Mask) -> States:
    """Read the states of the messages of conversations that need the heuristic."""
    spoken = rows.where(needed[rows.conversation] & ~rows.is_case, ("role", "content"))
    return states_by_words(spoken, targets)


def read_final_orders(
    messages: Rows,
    columns: StateRows,
    tools: ToolCells,
    n_conversations: int,
    options: GuestSimulation,
) -> FinalOrders:
    """Read the last tracked order of each conversation that is not empty.

    Its orders come from one source: the first that any of its messages has, or the one that the
    option forces; the heuristic reads none. In the published profile an exit has no order.
    """
    conversation = messages.conversation
    lists = (columns.orders, tools.orders)
    allowed = [options.forced_source in (None, name) for name in ORDER_SOURCES]
    source = np.full(n_conversations, _NONE)
    for number in (TOOLS, COLUMNS):
        if allowed[number]:
            source[conversation[lists[number].present]] = number
    counts = np.ones(len(messages), np.bool_)
    if options.published:
        counts = ~messages.is_exit
    order_source = np.full(len(messages), _NONE)
    has_items = np.zeros(len(messages), np.bool_)
    for number, each in enumerate(lists):
        of_source = (source[conversation] == number) & counts
        order_source[of_source & each.present] = number
        has_items |= of_source & each.has_items
    final = np.full(n_conversations, -1, np.int64)
    # numpy assigns in order, so the last message's place stays
    final[conversation[has_items]] = np.flatnonzero(has_items)
    return _read_finals(lists, source, final, order_source, has_items)


def _read_finals(
    lists: tuple[OrderLists, ...],
    source: Indices,
    final: Indices,
    order_source: Indices,
    has_items: Mask,
) -> FinalOrders:
    parts = []
    broken = np.zeros(len(final), np.bool_)
    faults = [np.flatnonzero((order_source == n) & each.broken) for n, each in enumerate(lists)]
    for number, each in enumerate(lists):
        owners = np.flatnonzero((final >= 0) & (source == number))
        at = final[owners]
        broken[owners] |= each.broken[at]
        owners, at = owners[~each.broken[at]], at[~each.broken[at]]
        texts = each.texts(at)
        begins, ends = texts.offsets[:-1], texts.offsets[1:]
        names = read_lists(texts.data, begins, ends, owners, option_first=False)
        broken[names.broken] = True
        faults.append(final[names.broken])
        parts.append(names)
    return FinalOrders(
        join_names(parts),
        has_items,
        order_source,
        source,
        final >= 0,
        broken,
        np.unique(np.concatenate(faults)),
    )
