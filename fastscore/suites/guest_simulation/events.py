"""From the rows of logs to conversations, guest messages, states and orders."""

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask

from fastscore.suites.base import Events
from fastscore.suites.columns import (
    gather_or_null,
)
from fastscore.suites.guest_simulation.options import (
    ORA_SOURCES,
    ORDER_COLUMN,
    ORDER_SOURCES,
    PAS_SOURCES,
    STATE_COLUMNS,
    STATE_SOURCES,
    TOOL_COLUMNS,
    GuestSimulation,
)
from fastscore.suites.guest_simulation.orders import (
    Names,
    compare_names,
    food_words,
    item_words,
    names_by_conversation,
    overlaps,
    target_names,
)
from fastscore.suites.guest_simulation.roles import Personas, Targets, read_test_cases
from fastscore.suites.guest_simulation.rows import TARGET_KEYS, Rows, by_conversation, load_personas
from fastscore.suites.guest_simulation.state_files import (
    StateFiles,
    message_indices,
    read_state_files,
)
from fastscore.suites.guest_simulation.states import (
    Behaviours,
    FinalOrders,
    read_behaviours,
    read_final_orders,
    read_state_rows,
)
from fastscore.suites.guest_simulation.tool_cells import ToolCells, read_tool_cells
from fastscore.suites.json_values import Problem, Problems

_MESSAGE_COLUMNS = (
    "line",
    "message_id",
    "content",
    "tool_calls",
    *STATE_COLUMNS,
    ORDER_COLUMN,
)
_ORDER_EXPECTED = "a whole list of items; of a tracking result both of its lists"


def read_events(raw: pl.DataFrame, options: GuestSimulation) -> Events:
    """Read messages."""
    file = load_personas(options.personas)
    rows, labels = by_conversation(raw, options)
    n_conversations = labels.height
    personas, targets, problems = read_test_cases(rows, labels["test_case"], file)
    of_guest = rows.is_guest & ~rows.is_case
    messages = rows.where(of_guest, _MESSAGE_COLUMNS)
    files = None
    if options.states_from:
        index = message_indices(rows)[of_guest]
        files = read_state_files(options.states_from, labels, messages, index)
        messages = files.messages
        _note_file_problems(files, problems)
    columns = read_state_rows(messages, files, published=options.published)
    tools = read_tool_cells(messages["tool_calls"], whole_cell=options.published)
    behaviours = read_behaviours(
        messages, rows, columns, tools, targets.names, n_conversations, options
    )
    orders = read_final_orders(messages, columns, tools, n_conversations, options)
    for at in orders.faults.tolist():
        problem = _order_problem(messages, at, int(orders.order_source[at]), files)
        problems.by_dialogue.setdefault(int(messages.place[at]), problem)
    names, compared = _compare(messages, targets, orders, n_conversations, options)
    frames = {
        "conversations": labels.hstack(
            [
                *_sources(personas, targets, behaviours, orders),
                *_unread_states(files, n_conversations),
                *compared,
            ]
        ),
        "messages": _message_frame(messages, tools, behaviours, orders),
        "states": behaviours.states,
        "personas": _persona_frame(personas),
        "names": names,
    }
    counts = {"conversations": n_conversations, "messages": len(messages)}
    as_empty = options.published
    return Events(
        frames,
        problems.rejects(raw),
        counts,
        nulls_are_empty=as_empty,
        n_units=frames["messages"].height,
    )


def _sources(
    personas: Personas, targets: Targets, behaviours: Behaviours, orders: FinalOrders
) -> pl.DataFrame:
    """Say what is known of each conversation, and where it comes from."""
    names = pl.Series(personas.names or [None], dtype=pl.String)
    return pl.DataFrame(
        {
            "persona": gather_or_null(names, personas.code),
            "persona_code": personas.code,
            "persona_bad": personas.bad,
            "target_bad": targets.bad,
            "has_target": targets.key >= 0,
            "order_broken": orders.broken,
            "state_source": _names(STATE_SOURCES, behaviours.source),
            "order_source": _names(ORDER_SOURCES, orders.source),
        }
    )


def _unread_states(files: StateFiles | None, n_conversations: int) -> pl.DataFrame:
    """Say of whose states nothing is known: their file is missing, or cannot be used."""
    none = np.zeros(n_conversations, np.bool_)
    return pl.DataFrame(
        {
            "states_missing": none if files is None else files.missing,
            "states_bad": none if files is None else files.bad,
        }
    )


def _note_file_problems(files: StateFiles, problems: Problems) -> None:
    """Note what is wrong with a conversation's file at its first guest message that has no fault.

    A row holds one fault, and the log may have one of its own there.
    """
    messages = files.messages
    for conversation, problem in files.problems.items():
        start, stop = np.searchsorted(messages.conversation, [conversation, conversation + 1])
        places = messages.place[start:stop].tolist()
        free = (place for place in places if place not in problems.by_dialogue)
        problems.by_dialogue[next(free, places[0])] = problem


def _message_frame(
    messages: Rows, tools: ToolCells, behaviours: Behaviours, orders: FinalOrders
) -> pl.DataFrame:
    """Say what is known of each message."""
    return pl.DataFrame(
        {
            "conversation": messages.conversation,
            "line": messages["line"],
            "message_id": messages["message_id"],
            "is_exit": messages.is_exit,
            "has_guest_role": messages.has_guest_role,
            **{name: tools.uses[:, kind] for kind, name in enumerate(TOOL_COLUMNS)},
            "state": behaviours.code,
            "state_source": behaviours.state_source,
            "order_source": _names(ORDER_SOURCES, orders.order_source),
            "has_items": orders.has_items,
        }
    )


def _names(names: tuple[str, ...], codes: Indices) -> pl.Series:
    return gather_or_null(pl.Series(names, dtype=pl.Enum(names)), codes)


def _compare(
    messages: Rows,
    targets: Targets,
    orders: FinalOrders,
    n_conversations: int,
    options: GuestSimulation,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compare what was ordered with the target: the final orders, or else the guest's words.

    Returned are the names, and what they say of each conversation.
    """
    conversation = messages.conversation
    speaks = np.zeros(n_conversations, np.bool_)
    speaks[conversation[messages.has_guest_role]] = True
    by_text: Mask = ~orders.present & (targets.key >= 0)
    spoken = pl.DataFrame({"conversation": conversation, "content": messages["content"]}).filter(
        messages.has_guest_role & by_text[conversation]
    )
    # a missing message is unknown, but in the profile published it is empty
    unspoken = by_text & speaks & (not options.published)
    unspoken[spoken.drop_nulls()["conversation"].to_numpy()] = False
    readable = by_text.copy()
    if options.published:
        readable &= targets.key != TARGET_KEYS.index("order_items")

    def of(names: Names, owners: Mask) -> Names:
        return names.where(owners[names.conversation])

    both = compare_names(
        pl.concat([names_by_conversation(of(orders.names, ~by_text)), food_words(spoken)]),
        pl.concat(
            [target_names(of(targets.names, ~by_text)), item_words(of(targets.names, readable))]
        ),
    )
    compared = pl.DataFrame(
        {
            "conversation": np.arange(n_conversations),
            "ORA_source": _names(ORA_SOURCES, np.where(targets.key >= 0, by_text, -1)),
            "words_missing": unspoken,
            "is_silent": by_text & ~speaks,
        }
    ).join(overlaps(both), on="conversation", how="left", maintain_order="left")
    n_names = pl.col("n_final_names") + pl.col("n_target_names")
    counted = (
        compared.drop("conversation")
        .with_columns(pl.col("^n_.*$").fill_null(0))
        .with_columns(nothing_to_order=pl.col("is_silent") | (n_names == 0))
    )
    return both, counted


def _persona_frame(personas: Personas) -> pl.DataFrame:
    """Return what each persona lets expect; null where it says nothing, for moods also of none."""
    expected = personas.attributes
    values = {
        f"expected_{name}": [each and getattr(each, name) for each in expected]
        for name in ("complete", "exploration", "ordering")
    }
    moods = [(each and each.moods and list(each.moods)) or None for each in expected]
    return pl.DataFrame(
        {
            "full_name": personas.names,
            "kind": personas.kinds,
            "PAS_source": [PAS_SOURCES[each is None] for each in expected],
            **values,
            "expected_moods": moods,
        },
        schema={
            "full_name": pl.String,
            "kind": pl.String,
            "PAS_source": pl.Enum(PAS_SOURCES),
            **dict.fromkeys(values, pl.String),
            "expected_moods": pl.List(pl.String),
        },
    )


def _order_problem(messages: Rows, at: int, source: int, files: StateFiles | None) -> Problem:
    field = (ORDER_COLUMN, "tool_calls")[source]
    cell = messages[field][at]
    found = repr(f"...{cell[-57:]}" if len(cell) > 60 else cell)
    place = "" if files is None else f"{files.place[at]}: "
    return Problem(field, "wrong_type", f"{place}{found}", _ORDER_EXPECTED)
