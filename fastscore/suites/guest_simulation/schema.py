"""What the suite reads and writes: data only."""

from dataclasses import replace

import polars as pl

from fastscore.suites.chats import ChatRows
from fastscore.suites.declarations import (
    ALL_METRICS,
    NULL_REASONS_DTYPE,
    Band,
    Column,
    Metric,
    Source,
    Table,
)
from fastscore.suites.output_columns import BOOLEAN, REAL, TEXT, WHOLE, column

GROUPS = ("experiment_level",)
LEVELS = (1, 2, 3, 4, 5)

GUEST_ROLES = ("agent", "guest", "guest_simulation_agent", "guest_simulation_llm")
GUEST_NAMES = "guest"
"""How the names of guests begin, whatever their roles."""
OTHER_ROLES = ("assistant", "order_taking_llm", "system", "developer", "tool", "function")
STATE_COLUMNS = ("is_ordering_complete", "menu_exploration_style", "mood_tone", "ordering_style")
ORDER_COLUMN = "current_items_in_order"
DEFAULT_STATE = ("no", "does_not_explore_menu", "casual", "all_at_once")
TOOL_COLUMNS = ("uses_order_tracking", "uses_message_attributes", "uses_basic_tools")
MATCH_COLUMNS = ("completion_match", "exploration_match", "mood_match", "ordering_match")

STATE_SOURCES = ("columns", "tools", "heuristic")
ORDER_SOURCES = ("columns", "tools")
PAS_SOURCES = ("attributes", "fallback")
ORA_SOURCES = ("states", "text")


_DEFINITIONS = "Simulation quality assessment metrics, section"


def _text(
    name: str,
    description: str,
    *aliases: str,
    needed_by: tuple[str, ...] = (),
    expects_any: tuple[tuple[str, str], ...] = (),
    knows: tuple[str, ...] = (),
) -> Column:
    return Column(
        name=name,
        kind="text",
        accepts=("integer",),
        aliases=aliases,
        description=description,
        needed_by=needed_by,
        expects_any=expects_any,
        knows=knows,
    )


def _json(name: str, description: str, *needed_by: str) -> Column:
    return Column(name=name, kind="json", description=description, needed_by=needed_by)


def _of_case(name: str, description: str, *needed_by: str) -> Column:
    return replace(_json(name, description, *needed_by), given_by=("personas",))


SOURCE = Source(
    columns=(
        _text("conversation_id", "Names the conversation; without it the file is one."),
        Column(
            name="experiment_level",
            kind="integer",
            accepts=("string",),
            description="1 to 5: which tools and agents the guest had.",
            needed_by=("DEI", "CRRS"),
            given_by=("level", "a folder exp1 to exp5"),
        ),
        _text("test_case", "Names the test case, the same at every level."),
        _text("message_id", "Names the message."),
        _text(
            "role",
            "Who speaks; agent, guest and guest_simulation_* are the guest.",
            needed_by=ALL_METRICS,
            expects_any=(*(("role", word) for word in GUEST_ROLES), ("name", f"{GUEST_NAMES}*")),
            knows=(*GUEST_ROLES, *OTHER_ROLES),
        ),
        _text("name", "The speaker's name; one that begins with guest is the guest."),
        _text(
            "content",
            "What is said; of the row test_case_info the test case as JSON.",
            needed_by=ALL_METRICS,
        ),
        _json("tool_calls", "The message's tool calls: Python's repr of them, or JSON."),
        _text("is_ordering_complete", "State: yes or no."),
        _text(
            "menu_exploration_style",
            "State: explores_menu or does_not_explore_menu.",
            "next_message_menu_exploration_style",
        ),
        _text("mood_tone", "State: the mood.", "next_message_mood_tone"),
        _text("ordering_style", "State: one_by_one or all_at_once.", "next_message_ordering_style"),
        _json(ORDER_COLUMN, "State: the list of items ordered so far."),
        _of_case("guest_persona", "The persona as an object, or its full name.", "PAS", "CRRS"),
        _of_case("target_order", "The order that the guest was told to make.", "ORA", "CRRS"),
    ),
    dialogue_key=("conversation_id", "experiment_level"),
    formats=("csv", "jsonl", "json", "parquet"),
    key_within_file=True,
    shard_bytes=128 << 20,
    chat_rows=ChatRows(
        id="conversation_id",
        speaker="role",
        text="content",
        words=(
            ("user", "guest"),
            ("assistant", "assistant"),
            ("system", "system"),
            ("tool", "tool"),
        ),
        of_turn=("message_id", "name", "tool_calls"),
    ),
)


_PLACE = (
    column("file", TEXT, "The input that holds the row."),
    column("line", WHOLE, "1-based line of the message, or of the conversation's first row."),
    column("dialogue", TEXT, "The conversation's id, else the stem of its file."),
    column("experiment_level", WHOLE, "The experiment level.", nullable=True),
)

MESSAGES = Table(
    name="messages",
    grain="a message of the guest",
    dialogue_key=("file", "dialogue", "experiment_level"),
    columns=(
        *_PLACE,
        column("message_id", TEXT, "The log's id of the message.", nullable=True),
        column("is_exit", BOOLEAN, "Whether the message is the word that ends the conversation."),
        column(
            "state_source",
            pl.Enum([*STATE_SOURCES, "default"]),
            "Where the state came from; null without a state.",
            nullable=True,
        ),
        *(
            column(name, TEXT, "The state that counts; null without one.", nullable=True)
            for name in STATE_COLUMNS
        ),
        *(
            column(
                name,
                BOOLEAN,
                "Whether that part is as the persona's attributes say; null where nothing says.",
                nullable=True,
            )
            for name in MATCH_COLUMNS
        ),
        column(
            "message_score",
            REAL,
            "What the message adds to PAS, 0 to 1; null where it does not count.",
            nullable=True,
        ),
        column(
            "order_source",
            pl.Enum(ORDER_SOURCES),
            "Where the tracked order came from; null where the message has none.",
            nullable=True,
        ),
        column("has_items", BOOLEAN, "Whether the tracked order has items."),
        *(column(name, BOOLEAN, "Whether the message shows such a tool.") for name in TOOL_COLUMNS),
    ),
)

UNCHANGING, CALLING = "never changing", "calling every tool"
"""Guests that pay no attention: their scores stand beside PAS and BVS, and DEI."""

_PERFECT, _NOTHING = {"at_least": 1.0, "at_most": 1.0}, {"at_least": 0.0, "at_most": 0.0}
_PAS = Metric(
    id="PAS",
    name="Persona adherence score",
    table="dialogues",
    formula="mean over guest messages of the share of state components that the persona expects",
    minimum=0.0,
    maximum=1.0,
    better="higher",
    null_rule="missing_input without a persona or, with --states-from, a file; bad_input where "
    "either cannot be read; not_applicable without a message that has a state (published: 0)",
    source=f"{_DEFINITIONS} 1",
    bands=(
        Band(reading="perfect", **_PERFECT),
        Band(reading="excellent", above=0.8),
        Band(reading="complete mismatch", **_NOTHING),
        Band(reading="poor", below=0.5),
    ),
    headline=True,
    baselines=(UNCHANGING,),
    fixed_where=(("n_scored_messages", 0),),
)
_BVS = Metric(
    id="BVS",
    name="Behavioural variance score",
    table="dialogues",
    formula="a / 0.2 if a <= 0.2, else 1 - (a - 0.2) / 0.8; a = transitions / (3 (states - 1))",
    minimum=0.0,
    maximum=1.0,
    better="higher",
    null_rule="not_applicable with fewer than two states (published: 0); with --states-from, "
    "missing_input without a file, bad_input where it cannot be read",
    source=f"{_DEFINITIONS} 2",
    bands=(
        Band(reading="optimal", **_PERFECT),
        Band(reading="natural", above=0.7),
        Band(reading="static or chaotic", **_NOTHING),
        Band(reading="too rigid or too erratic", below=0.3),
    ),
    headline=True,
    baselines=(UNCHANGING,),
    fixed_where=(("n_states", 0), ("n_states", 1)),
)
_ORA = Metric(
    id="ORA",
    name="Order restriction adherence",
    table="dialogues",
    formula="2 |C and T| / (|C| + |T|) of the final order's and the target's normalised names",
    minimum=0.0,
    maximum=1.0,
    better="higher",
    null_rule="missing_input without a target order, with --states-from without a file, or where "
    "words are compared and no guest message has a content (published: 0); bad_input "
    "where one of them or the final order cannot be read; not_applicable where both are empty or "
    "the guest says nothing (published: 0)",
    source=f"{_DEFINITIONS} 3",
    bands=(
        Band(reading="perfect", **_PERFECT),
        Band(reading="excellent", above=0.9),
        Band(reading="no overlap", **_NOTHING),
        Band(reading="significant deviation", below=0.5),
    ),
    headline=True,
)
_DEI = Metric(
    id="DEI",
    name="Decision explainability index",
    table="dialogues",
    formula="level 5: min(1, (order + attributes) / 2n); 4: min(.5, attributes / n * .5); "
    "3: min(.5, order / n * .5); 2: min(.2, basic / n * .2); 1: 0",
    minimum=0.0,
    maximum=1.0,
    better="higher",
    null_rule="missing_input without a level, bad_input for one outside 1 to 5; not_applicable "
    "without a guest message (published: 0)",
    source=f"{_DEFINITIONS} 4",
    bands=(
        Band(reading="full explainability", **_PERFECT),
        Band(reading="no explainability", **_NOTHING),
    ),
    headline=True,
    baselines=(CALLING,),
    fixed_where=(("experiment_level", 1), ("n_guest_messages", 0)),
    scale_by="experiment_level",
)
_CRRS = Metric(
    id="CRRS",
    name="Composite realism and reliability score",
    table="dialogues",
    formula="0.25 PAS + 0.20 BVS + 0.35 ORA + 0.20 DEI",
    minimum=0.0,
    maximum=1.0,
    better="higher",
    null_rule="null where a part is, for the gravest of their reasons",
    source=f"{_DEFINITIONS} 6",
    bands=(
        Band(reading="excellent", above=0.85),
        Band(reading="good", at_least=0.70, at_most=0.85),
        Band(reading="acceptable", at_least=0.50, at_most=0.70),
        Band(reading="poor", below=0.50),
    ),
    headline=True,
    scale_by="experiment_level",
)
METRICS = (_PAS, _BVS, _ORA, _DEI, _CRRS)

_COUNTS = {
    "n_guest_messages": "Guest messages by role, exits among them: the n of DEI.",
    "n_scored_messages": "Messages that PAS is the mean of.",
    "n_states": "States that BVS compares: M.",
    "n_transitions": "Changes of ordering, exploration and mood between them.",
    "n_order_tracking": "Messages with an order tracking tool.",
    "n_message_attributes": "Messages with a tool for message attributes.",
    "n_basic_tools": "Messages with a basic tool.",
    "n_final_names": "|C|: distinct names in the final order; food words said, where ORA is text.",
    "n_target_names": "|T|: distinct names in the target order; its words, where ORA is text.",
    "n_common_names": "How many of them are in both.",
}

DIALOGUES = Table(
    name="dialogues",
    grain="a conversation at an experiment level",
    dialogue_key=("file", "dialogue", "experiment_level"),
    columns=(
        *_PLACE,
        column("test_case", TEXT, "The test case, the same at every level."),
        column("persona", TEXT, "The persona's full name.", nullable=True),
        column(
            "state_source", pl.Enum(STATE_SOURCES), "Where the conversation's states come from."
        ),
        column(
            "order_source",
            pl.Enum(ORDER_SOURCES),
            "Where its tracked orders come from; null where it has none.",
            nullable=True,
        ),
        column(
            "PAS_source",
            pl.Enum(PAS_SOURCES),
            "What states are compared with: the persona's attributes, or words of its description.",
            nullable=True,
        ),
        column(
            "ORA_source",
            pl.Enum(ORA_SOURCES),
            "What is compared with the target: the final order, or the guest's words.",
            nullable=True,
        ),
        *(column(name, WHOLE, description) for name, description in _COUNTS.items()),
        *(
            column(
                metric.id,
                REAL,
                metric.name + ".",
                metric=metric.id,
                nullable=True,
            )
            for metric in METRICS
        ),
        column("null_reasons", NULL_REASONS_DTYPE, "Which metrics are null, and why."),
    ),
)

TABLES = (MESSAGES, DIALOGUES)
