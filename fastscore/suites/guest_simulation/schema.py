"""What the suite reads and writes: data only."""

import polars as pl

from fastscore.suites.chats import ChatRows
from fastscore.suites.columns import (
    BOOLEAN,
    DIALOGUE_COLUMN,
    REAL,
    TEXT,
    WHOLE,
    column,
    json_field,
    metric_column,
    optional,
    text_field,
)
from fastscore.suites.declarations import (
    ALL_METRICS,
    NULL_REASONS_DTYPE,
    Column,
    Needed,
    Source,
    Table,
    Vocabulary,
    metrics_using,
)
from fastscore.suites.guest_simulation.metrics import METRICS
from fastscore.suites.guest_simulation.options import (
    GUEST_NAMES,
    GUEST_ROLES,
    MATCH_COLUMNS,
    ORA_SOURCES,
    ORDER_COLUMN,
    ORDER_SOURCES,
    OTHER_ROLES,
    PAS_SOURCES,
    STATE_COLUMNS,
    STATE_SOURCES,
    TOOL_COLUMNS,
)


def _json(name: str, description: str, *given_by: str) -> Column:
    needed = Needed(metrics_using(METRICS, name), given_by=given_by)
    return json_field(name, description, needed=needed)


SOURCE = Source(
    read_in_path=r"(?is)(?<![^/\\])exp[0-9]{1,9}(?=[/\\])|[^/\\]*$",
    columns=(
        text_field("conversation_id", "Names the conversation; without it the file is one."),
        Column(
            "experiment_level",
            "integer",
            accepts=("string",),
            description="1 to 5: which tools and agents the guest had.",
            needed=Needed(
                metrics_using(METRICS, "experiment_level"),
                given_by=("level", "a folder exp1 to exp5"),
            ),
        ),
        text_field("test_case", "Names the test case, the same at every level."),
        text_field("model", "The model of the conversation: a label.", "model_name"),
        text_field("message_id", "Names the message."),
        text_field(
            "role",
            "Who speaks; agent, guest and guest_simulation_* are the guest.",
            needed=Needed(ALL_METRICS),
            vocabulary=Vocabulary(
                known=(*GUEST_ROLES, *OTHER_ROLES),
                any_needed=(*(("role", word) for word in GUEST_ROLES), ("name", f"{GUEST_NAMES}*")),
            ),
        ),
        text_field("name", "The speaker's name; one that begins with guest is the guest."),
        text_field(
            "content",
            "What is said; of the row test_case_info the test case as JSON.",
            needed=Needed(ALL_METRICS),
        ),
        _json("tool_calls", "The message's tool calls: Python's repr of them, or JSON."),
        text_field("is_ordering_complete", "State: yes or no."),
        text_field(
            "menu_exploration_style",
            "State: explores_menu or does_not_explore_menu.",
            "next_message_menu_exploration_style",
        ),
        text_field("mood_tone", "State: the mood.", "next_message_mood_tone"),
        text_field(
            "ordering_style", "State: one_by_one or all_at_once.", "next_message_ordering_style"
        ),
        _json(ORDER_COLUMN, "State: the list of items ordered so far."),
        _json("guest_persona", "The persona as an object, or its full name.", "personas"),
        _json("target_order", "The order that the guest was told to make.", "personas"),
    ),
    dialogue_key=("conversation_id", "experiment_level"),
    variants=(("level", "experiment_level"),),
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
        model="model",
    ),
)


_PLACE = (
    column("file", TEXT, "The input that holds the row."),
    column("line", WHOLE, "1-based line of the message, or of the conversation's first row."),
    DIALOGUE_COLUMN,
    optional("experiment_level", WHOLE, "The experiment level."),
)

MESSAGES = Table(
    name="messages",
    grain="a message of the guest",
    columns=(
        *_PLACE,
        optional("message_id", TEXT, "The log's id of the message."),
        column("is_exit", BOOLEAN, "Whether the message is the word that ends the conversation."),
        optional(
            "state_source",
            pl.Enum([*STATE_SOURCES, "default"]),
            "Source of the state. Null without a state.",
        ),
        *(
            optional(name, TEXT, "The state that counts. Null without a state.")
            for name in STATE_COLUMNS
        ),
        *(
            optional(
                name,
                BOOLEAN,
                "Whether that part fits the persona's attributes. Null without such an attribute.",
            )
            for name in MATCH_COLUMNS
        ),
        optional(
            "message_score", REAL, "Part of the message in PAS, 0 to 1. Null if it does not count."
        ),
        optional(
            "order_source",
            pl.Enum(ORDER_SOURCES),
            "Source of the tracked order. Null if the message has none.",
        ),
        column("has_items", BOOLEAN, "Whether the tracked order has items."),
        *(column(name, BOOLEAN, "Whether the message shows such a tool.") for name in TOOL_COLUMNS),
    ),
)

_COUNTS = {
    "n_guest_messages": "Guest messages by role, exits among them: the n of DEI.",
    "n_scored_messages": "Messages over which PAS is the mean.",
    "n_states": "States that BVS compares: M.",
    "n_transitions": "Changes of ordering, exploration and mood between them.",
    "n_order_tracking": "Messages with an order tracking tool.",
    "n_message_attributes": "Messages with a tool for message attributes.",
    "n_basic_tools": "Messages with a basic tool.",
    "n_final_names": "|C|: distinct names in the final order, or food words said (source: text).",
    "n_target_names": "|T|: distinct names in the target order, or its words (source: text).",
    "n_common_names": "Number of names in both orders.",
}

DIALOGUES = Table(
    name="dialogues",
    grain="a conversation at an experiment level",
    columns=(
        *_PLACE,
        column("conversation_id", TEXT, "The log's id. Default: the stem of its file."),
        column("test_case", TEXT, "The test case, the same at every level."),
        optional("model", TEXT, "The log's model."),
        optional("persona", TEXT, "The persona's full name."),
        column("state_source", pl.Enum(STATE_SOURCES), "Source of the conversation's states."),
        optional(
            "order_source",
            pl.Enum(ORDER_SOURCES),
            "Source of the tracked orders. Null if there are none.",
        ),
        optional(
            "PAS_source",
            pl.Enum(PAS_SOURCES),
            "Compared with states: the persona's attributes, or words of its description.",
        ),
        optional(
            "ORA_source",
            pl.Enum(ORA_SOURCES),
            "Compared with the target: the final order, or the guest's words.",
        ),
        *(column(name, WHOLE, description) for name, description in _COUNTS.items()),
        *map(metric_column, METRICS),
        column("null_reasons", NULL_REASONS_DTYPE, "Which metrics are null, and why."),
    ),
)

TABLES = (MESSAGES, DIALOGUES)
