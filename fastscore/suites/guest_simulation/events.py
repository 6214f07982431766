"""From the rows of logs to conversations, guest messages, states and orders."""

from itertools import product

import numpy as np
import polars as pl
from fastscore_kernels import number_hashes, string_changes

from fastscore.suites.base import REJECT_SCHEMA, ROW_SCHEMA, Events, empty_rejects
from fastscore.suites.columns import Indices, Mask, gather_or_null
from fastscore.suites.distinct import distinct, distinct_rows
from fastscore.suites.guest_simulation.options import GuestSimulationOptions
from fastscore.suites.guest_simulation.orders import compare_orders, compare_words
from fastscore.suites.guest_simulation.personas import TARGET_KEYS, load_personas
from fastscore.suites.guest_simulation.schema import (
    ORA_SOURCES,
    ORDER_SOURCES,
    PAS_SOURCES,
    STATE_COLUMNS,
    STATE_SOURCES,
)
from fastscore.suites.guest_simulation.states import (
    FinalOrders,
    read_behaviours,
    read_final_orders,
)
from fastscore.suites.guest_simulation.test_cases import Personas, Targets, read_test_cases
from fastscore.suites.guest_simulation.tool_cells import read_tool_cells
from fastscore.suites.json_values import Problem, Problems

GUEST_ROLES = ("agent", "guest", "guest_simulation_agent", "guest_simulation_llm")
TEST_CASE_ROW = ("system", "test_case_info")
EXITS = tuple(map("".join, product("eE", "xX", "iI", "tT")))

_MESSAGE_COLUMNS = (
    "conversation",
    "row",
    "line",
    "message_id",
    "content",
    "is_exit",
    "by_role",
    "tool_calls",
    *STATE_COLUMNS,
    "current_items_in_order",
)
_FOLDER_LEVEL = r"(?i)^(?:.*[/\\])?exp([0-9]{1,9})[/\\]"
_SUFFIXES = r"(?i)\.(?:csv|json|jsonl|ndjson|parquet)(?:\.(?:gz|zst))?$"
_TEST_CASE = r"_log_(.+_test_case_number_[0-9]+)$"
_ORDER_EXPECTED = "a whole list of items; of a tracking result both of its lists"


def read_conversations(raw: pl.DataFrame, options: GuestSimulationOptions) -> Events:
    """Read messages.

    Parameters
    ----------
    raw
        A message a row: `ROW_SCHEMA`, then the columns of the suite's source.
    options
        Profile, source of states, file of personas and level.

    Returns
    -------
    Events
        ``conversations``, one a row in order of their first rows: labels, sources, persona and
        target, and the sizes of what ORA compares. ``messages``, those of the guest by
        conversation: states by their row in ``states``, tools, orders. ``personas`` and ``moods``:
        what each persona lets expect. Rejected are rows with a test case, a persona, a target or an
        order that cannot be read; the metrics that need it are null, the row's message counts for
        the others.
    """
    file = load_personas(options.personas)
    rows, conversations = _by_conversation(raw, options)
    n_conversations = conversations.height
    personas, targets, problems = read_test_cases(rows, conversations["test_case"], file)
    messages = rows.select(*_MESSAGE_COLUMNS).filter(
        rows.select(pl.col("is_guest") & ~pl.col("is_case")).to_series()
    )
    tools = read_tool_cells(messages["tool_calls"].replace("", None), whole_cell=options.published)
    behaviours = read_behaviours(messages, rows, tools, targets.names, n_conversations, options)
    orders = read_final_orders(messages, tools, n_conversations, options)
    for at in orders.faults.tolist():
        problem = _order_problem(messages, at, int(orders.order_source[at]))
        problems.by_dialogue.setdefault(int(messages["row"][at]), problem)
    conversations = conversations.with_columns(
        persona=gather_or_null(pl.Series(personas.names or [None], dtype=pl.String), personas.code),
        persona_code=pl.Series(personas.code),
        persona_bad=pl.Series(personas.bad),
        target_bad=pl.Series(targets.bad),
        has_target=pl.Series(targets.key >= 0),
        order_broken=pl.Series(orders.broken),
        state_source=_names(STATE_SOURCES, behaviours.source),
        order_source=_names(ORDER_SOURCES, orders.source),
    )
    frames = {
        "conversations": pl.concat(
            [conversations, _compare(messages, targets, orders, n_conversations, options)],
            how="horizontal",
        ),
        "messages": pl.concat(
            [
                messages.select("conversation", "line", "message_id", "is_exit", "by_role"),
                tools.uses,
                pl.DataFrame(
                    {
                        "state": behaviours.code,
                        "state_source": behaviours.state_source,
                        "order_source": _names(ORDER_SOURCES, orders.order_source),
                        "has_items": orders.has_items,
                    }
                ),
            ],
            how="horizontal",
        ),
        "states": behaviours.states,
        **_persona_frames(personas),
    }
    counts = {"conversations": n_conversations, "messages": messages.height}
    return Events(frames, _rejects(raw, problems), counts)


def _names(names: tuple[str, ...], codes: Indices) -> pl.Series:
    return gather_or_null(pl.Series(names, dtype=pl.Enum(names)), codes)


def _by_conversation(
    raw: pl.DataFrame, options: GuestSimulationOptions
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give conversations numbers, and put the rows of each together.

    A conversation is the rows of one file, id and level.
    """
    level = raw["experiment_level"]
    changed = _changes(raw["file"]) | _changes(raw["conversation_id"])
    changed |= level.ne_missing(level.shift()).to_numpy()
    heads = raw.select("file", "line", "conversation_id", "experiment_level", "test_case")[
        np.flatnonzero(changed)
    ]
    of_head, firsts = distinct_rows(
        [distinct(heads["file"])[0], distinct(heads["conversation_id"])[0], _level_numbers(heads)]
    )
    conversations = heads[firsts].with_columns(_first_values(heads["test_case"], of_head))
    role, name = pl.col("role"), pl.col("name")
    by_role = role.is_in(GUEST_ROLES).fill_null(False)
    rows = raw.with_columns(
        conversation=of_head[np.cumsum(changed) - 1],
        row=pl.int_range(pl.len(), dtype=pl.Int64),
        by_role=by_role,
        is_guest=by_role | name.str.starts_with("guest").fill_null(False),
        is_exit=pl.col("content").is_in(EXITS).fill_null(False),
        is_case=((role == TEST_CASE_ROW[0]) & (name == TEST_CASE_ROW[1])).fill_null(False),
    )
    if heads.height != conversations.height:
        rows = rows.sort("conversation", maintain_order=True)
    return rows, _labels(conversations, options)


def _level_numbers(heads: pl.DataFrame) -> Indices:
    """Give distinct levels numbers, a null one too."""
    level = heads["experiment_level"]
    numbers, _ = number_hashes(level.fill_null(0).to_numpy().astype(np.uint64))
    return np.where(level.is_null().to_numpy(), 0, numbers + 1)


def _first_values(values: pl.Series, numbers: Indices) -> pl.Series:
    """Return the first value of each number that is not null; numbers are by first appearance."""
    given = np.flatnonzero(values.is_not_null().to_numpy())[::-1]
    first = np.full(int(numbers.max(initial=-1)) + 1, -1, np.int64)
    # numpy assigns in order: of several values the first stays
    first[numbers[given]] = given
    return gather_or_null(values, first)


def _changes(column: pl.Series) -> Mask:
    """Mark the rows that differ from the one before, the first too."""
    changed: Mask = string_changes(column.fill_null("") if column.null_count() else column)
    if column.null_count():
        missing = column.is_null().to_numpy()
        changed[1:] |= missing[1:] != missing[:-1]
    changed[:1] = True
    return changed


def _labels(conversations: pl.DataFrame, options: GuestSimulationOptions) -> pl.DataFrame:
    """Give conversations their names, levels and test cases."""
    of_file, files = distinct(conversations["file"])
    of_files = files.to_frame("file").select(
        pl.col("file").str.extract(r"([^/\\]*)$").str.replace(_SUFFIXES, "").alias("stem"),
        pl.col("file").str.extract(_FOLDER_LEVEL).cast(pl.Int64).alias("folder"),
    )
    stem, folder = of_files["stem"][of_file], of_files["folder"][of_file]
    forced = pl.lit(options.level or None, dtype=pl.Int64)
    named = conversations.select(
        "file",
        "line",
        pl.coalesce("conversation_id", stem).alias("dialogue"),
        pl.coalesce("experiment_level", folder, forced).alias("experiment_level"),
        "test_case",
    )
    # a name recurs at every level
    of_name, names = distinct(named["dialogue"])
    in_name = names.str.extract(_TEST_CASE)[of_name]
    return named.with_columns(pl.coalesce("test_case", in_name, "dialogue").alias("test_case"))


def _compare(
    messages: pl.DataFrame,
    targets: Targets,
    orders: FinalOrders,
    n_conversations: int,
    options: GuestSimulationOptions,
) -> pl.DataFrame:
    """Compare what was ordered with the target: the final orders, or else the guest's words."""
    states = compare_orders(orders.names, targets.names, n_conversations)
    conversation = messages["conversation"].to_numpy()
    speaks = np.zeros(n_conversations, np.bool_)
    by_role = messages["by_role"].to_numpy()
    speaks[conversation[by_role]] = True
    by_text: Mask = ~orders.present & (targets.key >= 0)
    said = np.flatnonzero(by_role & by_text[conversation])
    readable = by_text.copy()
    if options.published:
        readable &= targets.key != TARGET_KEYS.index("order_items")
    wanted = targets.names.where(readable[targets.names.conversation])
    words = compare_words(
        (conversation[said], messages["content"][said].fill_null("")),
        wanted,
        n_conversations,
    )
    chosen = {
        f"n_{part}_names": np.where(by_text, getattr(words, part), getattr(states, part))
        for part in ("current", "target", "common")
    }
    return pl.DataFrame(
        {
            "ORA_source": _names(ORA_SOURCES, by_text.astype(np.int64)),
            "overlap": np.where(by_text, words.jaccard, states.f1),
            "nothing_to_order": np.where(by_text, words.both_empty | ~speaks, states.both_empty),
            **chosen,
        }
    ).rename({"n_current_names": "n_final_names"})


def _persona_frames(personas: Personas) -> dict[str, pl.DataFrame]:
    """Make frames of what personas let expect, a row a persona and a row a mood of one."""
    expected = personas.attributes
    return {
        "personas": pl.DataFrame(
            {
                "kind": pl.Series(personas.kinds, dtype=pl.String),
                "PAS_source": pl.Series(
                    [PAS_SOURCES[each is None] for each in expected], dtype=pl.Enum(PAS_SOURCES)
                ),
                "any_mood": pl.Series(
                    [not each or not each.moods for each in expected], dtype=pl.Boolean
                ),
                **{
                    name: pl.Series(
                        [each and getattr(each, name) for each in expected], dtype=pl.String
                    )
                    for name in ("complete", "exploration", "ordering")
                },
            }
        ),
        "moods": pl.DataFrame(
            [
                (code, mood)
                for code, each in enumerate(expected)
                if each
                for mood in sorted(set(each.moods))
            ],
            schema={"persona_code": pl.Int64, "mood_tone": pl.String},
            orient="row",
        ),
    }


def _order_problem(messages: pl.DataFrame, at: int, source: int) -> Problem:
    field = ("current_items_in_order", "tool_calls")[source]
    cell = messages[field][at]
    found = f"...{cell[-57:]}" if len(cell) > 60 else cell
    return Problem(field, "wrong_type", repr(found), _ORDER_EXPECTED)


def _rejects(raw: pl.DataFrame, problems: Problems) -> pl.DataFrame:
    if not problems.by_dialogue:
        return empty_rejects()
    rows = sorted(problems.by_dialogue)
    noted = [problems.by_dialogue[row] for row in rows]
    columns = {
        name: [getattr(problem, name) for problem in noted]
        for name in ("field", "reason", "found", "expected")
    }
    return (
        raw[rows]
        .select(*ROW_SCHEMA)
        .hstack(pl.DataFrame(columns))
        .with_columns(pl.lit(None, dtype=pl.String).alias("raw"))
        .select(*REJECT_SCHEMA)
    )
