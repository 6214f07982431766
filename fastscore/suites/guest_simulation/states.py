"""The state of every guest message: from columns, tool calls or the heuristic."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from fastscore.suites.columns import Indices, Mask
from fastscore.suites.guest_simulation.heuristic import states_by_words
from fastscore.suites.guest_simulation.options import GuestSimulationOptions
from fastscore.suites.guest_simulation.orders import (
    Names,
    column_lists,
    join_names,
    read_lists,
)
from fastscore.suites.guest_simulation.schema import (
    DEFAULT_STATE,
    ORDER_SOURCES,
    STATE_COLUMNS,
    STATE_SOURCES,
)
from fastscore.suites.guest_simulation.tool_cells import OrderLists, ToolCells

COLUMNS, TOOLS, HEURISTIC = range(len(STATE_SOURCES))
_NONE = -1


@dataclass(frozen=True, slots=True)
class Behaviours:
    """States that count, and where they come from.

    Parameters
    ----------
    states
        A row a message: `STATE_COLUMNS`, all null without a state; and ``state_source``.
    source
        The source of each conversation, index in `STATE_SOURCES`, int64 (conversations,).
    """

    states: pl.DataFrame
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


def read_behaviours(
    messages: pl.DataFrame,
    rows: pl.DataFrame,
    tools: ToolCells,
    targets: Names,
    n_conversations: int,
    options: GuestSimulationOptions,
) -> Behaviours:
    """Read the behaviour of every guest message.

    A conversation's states come from one source: the first that any of its messages has, or the
    one that the option forces. Of a state that has some part, the others are the default's.
    """
    conversation = messages["conversation"].to_numpy()
    column = _column_states(messages, published=options.published)
    sources = {COLUMNS: column, TOOLS: tools.states}
    if options.states == "auto":
        source = np.full(n_conversations, HEURISTIC)
        for number in (TOOLS, COLUMNS):
            source[conversation[_present(sources[number])]] = number
    else:
        source = np.full(n_conversations, STATE_SOURCES.index(options.states))
    of_message = source[conversation]
    sources[HEURISTIC] = _heuristic(messages, rows, targets, source == HEURISTIC)
    chosen = pl.DataFrame(
        {
            name: sources[COLUMNS][name]
            .zip_with(pl.Series(of_message == COLUMNS), sources[TOOLS][name])
            .zip_with(pl.Series(of_message != HEURISTIC), sources[HEURISTIC][name])
            for name in STATE_COLUMNS
        }
    )
    counts = pl.Series(_present(chosen)) & ~messages["is_exit"]
    everywhere = pl.Series([options.published]).new_from_index(0, len(counts))
    states = chosen.select(
        pl.when(counts)
        .then(pl.col(name).fill_null(default))
        .when(everywhere)
        .then(pl.lit(default))
        .alias(name)
        for name, default in zip(STATE_COLUMNS, DEFAULT_STATE, strict=True)
    ).with_columns(
        pl.when(counts)
        .then(pl.Series(STATE_SOURCES).gather(of_message))
        .when(everywhere)
        .then(pl.lit("default"))
        .cast(pl.Enum([*STATE_SOURCES, "default"]))
        .alias("state_source")
    )
    return Behaviours(states, source)


def _column_states(messages: pl.DataFrame, *, published: bool) -> pl.DataFrame:
    value = pl.col(*STATE_COLUMNS)
    if not published:
        value = value.str.strip_chars().str.to_lowercase()
    return messages.select(value.replace("", None))


def _present(states: pl.DataFrame) -> Mask:
    """Tell which messages have some part of a state."""
    found: Mask = (
        states.select(pl.any_horizontal(pl.col(*STATE_COLUMNS).is_not_null()))
        .to_series()
        .to_numpy()
    )
    return found


def _heuristic(
    messages: pl.DataFrame, rows: pl.DataFrame, targets: Names, needed: Mask
) -> pl.DataFrame:
    """Read the states of the conversations that need the heuristic."""
    nothing = pl.DataFrame(schema=dict.fromkeys(STATE_COLUMNS, pl.String))
    nothing = nothing.clear(messages.height)
    if not needed.any():
        return nothing
    spoken = pl.Series(needed[rows["conversation"].to_numpy()]) & ~rows["is_case"]
    columns = ("conversation", "role", "content", "is_guest", "is_exit")
    found = states_by_words(rows.select(*columns).filter(spoken), targets)
    at = np.flatnonzero(needed[messages["conversation"].to_numpy()])
    return nothing.with_columns(
        nothing[name].scatter(at, found[name]).alias(name) for name in STATE_COLUMNS
    )


def read_final_orders(
    messages: pl.DataFrame, tools: ToolCells, n_conversations: int, options: GuestSimulationOptions
) -> FinalOrders:
    """Read the last tracked order of each conversation that is not empty.

    Its orders come from one source: the first that any of its messages has, or the one that the
    option forces; the heuristic reads none. In the published profile an exit has no order.
    """
    conversation = messages["conversation"].to_numpy()
    column = column_lists(messages["current_items_in_order"], published=options.published)
    lists = (column, tools.orders)
    allowed = [options.states in ("auto", name) for name in ORDER_SOURCES]
    source = np.full(n_conversations, _NONE)
    for number in (TOOLS, COLUMNS):
        if allowed[number]:
            source[conversation[lists[number].present]] = number
    counts = np.ones(messages.height, np.bool_)
    if options.published:
        counts = ~messages["is_exit"].to_numpy()
    order_source = np.full(messages.height, _NONE)
    has_items = np.zeros(messages.height, np.bool_)
    for number, each in enumerate(lists):
        of_source = (source[conversation] == number) & counts
        order_source[of_source & each.present] = number
        has_items |= of_source & each.has_items()
    final = np.full(n_conversations, -1, np.int64)
    # numpy assigns in order, so the last message's place stays
    final[conversation[has_items]] = np.flatnonzero(has_items)
    return _read_finals(lists, source, final, order_source, has_items, conversation)


def _read_finals(
    lists: tuple[OrderLists, ...],
    source: Indices,
    final: Indices,
    order_source: Indices,
    has_items: Mask,
    conversation: Indices,
) -> FinalOrders:
    parts = []
    broken = np.zeros(len(final), np.bool_)
    faults = [np.flatnonzero((order_source == n) & each.broken) for n, each in enumerate(lists)]
    for number, each in enumerate(lists):
        owners = np.flatnonzero((final >= 0) & (source == number))
        at = final[owners]
        broken[owners] |= each.broken[at]
        owners, at = owners[~each.broken[at]], at[~each.broken[at]]
        names = read_lists(each.data, each.start[at], each.stop[at], owners, option_first=False)
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
