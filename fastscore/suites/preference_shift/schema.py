"""What the suite reads and writes: data only."""

import polars as pl

from fastscore.suites.chats import ChatRows
from fastscore.suites.columns import (
    BOOLEAN,
    DIALOGUE_COLUMN,
    NULL_REASONS_COLUMN,
    REAL,
    TEXT,
    TEXTS,
    WHOLE,
    column,
    json_field,
    metric_column,
    optional,
    text_field,
)
from fastscore.suites.declarations import (
    ALL_METRICS,
    Column,
    Needed,
    RowId,
    Source,
    Table,
    Vocabulary,
    metrics_using,
)
from fastscore.suites.preference_shift.metrics import (
    DIALOGUE_METRICS,
    SEGMENT_METRICS,
    SHIFT_METRICS,
    TURN_METRICS,
)

SPEAKERS = USER, SYSTEM = "USER", "SYSTEM"
GROUPS = ("model",)
SEGMENT_SOURCES = ("metadata", "embedding", "heuristic", "none")
SEGMENT_SOURCE_DTYPE = pl.Enum(SEGMENT_SOURCES)

SHIFT_KEY = ("dialogue_row", "turn")

_WHOLES = pl.List(pl.Int64())

SOURCE = Source(
    read_in_path=r"(?s)[^/]*$",
    columns=(
        text_field(
            "session_id",
            "Names the conversation; without one, the file's name does.",
            "dialogue_id",
            "id",
        ),
        text_field(
            "model_name", "The recommender that answers; conversations are grouped by it.", "model"
        ),
        text_field(
            "true_genre",
            "The genre that the simulated user began with; only carried along.",
            otherwise="null",
        ),
        json_field(
            "conversation",
            "Array of turns {speaker, text, user_meta}; a bare array of turns is one.",
            *ALL_METRICS,
            items=(
                Column(
                    "speaker",
                    "text",
                    description="USER or SYSTEM.",
                    needed=Needed(ALL_METRICS),
                    vocabulary=Vocabulary(known=SPEAKERS, needed=SPEAKERS),
                ),
                Column("text", "text", description="What is said.", needed=Needed(ALL_METRICS)),
                json_field(
                    "user_meta",
                    "Object of a user turn's constraints, and whether it is a shift.",
                    *metrics_using(DIALOGUE_METRICS, "user_meta"),
                    aliases=("meta",),
                ),
            ),
        ),
        json_field(
            "shift_events",
            "Array of objects whose turn is the number of a user turn, or null.",
            *metrics_using(DIALOGUE_METRICS, "shift_events"),
        ),
        json_field("judge", "Object of a judge's scores by name, carried along for the analysis."),
    ),
    formats=("json", "jsonl", "parquet"),
    row_dialogues=("json", "jsonl", "parquet"),
    row_id=RowId(columns=("session_id",)),
    variants=(("model", "model_name"),),
    array_column="conversation",
    chat_rows=ChatRows(
        id="session_id",
        array="conversation",
        speaker="speaker",
        text="text",
        words=(("user", USER), ("assistant", SYSTEM)),
        model="model_name",
        user_begins=True,
        can_be_turns=True,
    ),
)


_PLACE = (
    column("file", TEXT, "The input that holds the conversation."),
    column("line", WHOLE, "1-based line, row or element of the conversation in it."),
    DIALOGUE_COLUMN,
    optional("model", TEXT, "The log's model_name."),
)
_DELTA_COLUMNS = (
    column("missing_concepts", TEXTS, "Concepts of the user alone, field=value, sorted."),
    column("hallucinated_concepts", TEXTS, "Concepts of the system alone, sorted."),
)

TURNS = Table(
    name="turns",
    grain="a user turn and the system turn that answers it",
    columns=(
        *_PLACE,
        column("turn", WHOLE, "1-based number of the pair in its conversation."),
        column("segment", WHOLE, "1-based number of the segment that it lies in."),
        column("is_shift", BOOLEAN, "Whether the preference shifts at this turn, by metadata."),
        *map(metric_column, TURN_METRICS),
        column("both_empty", BOOLEAN, "Whether neither text has a concept, so that cc is 1."),
        column("user_concepts", TEXTS, "E(U): the user's concepts, field=value, sorted."),
        column("system_concepts", TEXTS, "E(S): the system's concepts, sorted."),
        *_DELTA_COLUMNS,
        optional(
            "gold_concepts",
            TEXTS,
            "Concepts that the DST scores expect of the system. Null without constraints.",
        ),
        optional("user_text", TEXT, "The user's text. Null if it is missing."),
        optional("system_text", TEXT, "The system's answer. Null if it is missing."),
        optional("user_meta", TEXT, "The user turn's metadata as JSON."),
        NULL_REASONS_COLUMN,
    ),
)

SEGMENTS = Table(
    name="segments",
    grain="a run of turns between shifts or detected boundaries",
    columns=(
        *_PLACE,
        column("segment", WHOLE, "1-based number in the conversation."),
        column("start_turn", WHOLE, "Its first turn, 1-based."),
        column("end_turn", WHOLE, "Its last turn, included."),
        *map(metric_column, SEGMENT_METRICS),
        *_DELTA_COLUMNS,
        NULL_REASONS_COLUMN,
    ),
)

SHIFTS = Table(
    name="shifts",
    grain="a shift point that the metadata names",
    columns=(
        *_PLACE,
        column("shift", WHOLE, "1-based number in the conversation."),
        column("turn", WHOLE, "The user turn at which the preference shifts, 1-based."),
        column("in_dialogue", BOOLEAN, "Whether the conversation has that turn."),
        optional(
            "recovered",
            BOOLEAN,
            "Whether a turn of the window meets the recovery test. Null if no turn is known to "
            "meet it and a turn lacks a text.",
        ),
        metric_column(SHIFT_METRICS[0], dtype=WHOLE),
        optional(
            "recovered_cosine",
            BOOLEAN,
            "Whether CR alone meets its threshold in the window. Null if unknown.",
        ),
        metric_column(SHIFT_METRICS[1], dtype=WHOLE),
        metric_column(SHIFT_METRICS[2]),
        NULL_REASONS_COLUMN,
    ),
)

_COUNTS = {
    "n_turns": "Turns: pairs of a user turn and its answer.",
    "n_unpaired": "Turns of the log without a partner. Each is listed among the rejects.",
    "n_both_empty": "Turns in which neither text has a concept: cc is 1 and cr is 0 there.",
    "n_gold": "Turns that the DST scores are defined for.",
    "n_segments": "Segments.",
    "n_shifts": "Shift points.",
    "n_known_shifts": "Shift points that are known to be recovered or not.",
    "n_known_shifts_cosine": "The same by CR alone.",
    "n_recovered": "Shift points that are recovered in the window.",
    "n_recovered_cosine": "Shift points that are recovered by CR alone.",
    "delay_sum": "Sum of the recovered shifts' delays.",
    "delay_cosine_sum": "The same by CR alone.",
    "n_turns_around_shifts": "Turns in the windows from the shifts on, once for each window.",
}

DIALOGUES = Table(
    name="dialogues",
    grain="a conversation",
    columns=(
        *_PLACE,
        column(
            "session_id",
            TEXT,
            "The log's session_id. Default: the stem of its file, and its place there.",
        ),
        optional("true_genre", TEXT, "The log's true_genre."),
        *(column(name, WHOLE, description) for name, description in _COUNTS.items()),
        column("i_around_shifts_sum", REAL, "Sum of i over those turns."),
        column("has_shift_metadata", BOOLEAN, "Whether the log carries shift metadata."),
        column("segments_by", SEGMENT_SOURCE_DTYPE, "Method that found the segments."),
        column("shift_points", _WHOLES, "The user turns at which the preference shifts."),
        *(
            metric_column(metric, dtype=WHOLE if metric.scale.unit == "concepts" else REAL)
            for metric in DIALOGUE_METRICS
        ),
        optional("judge", TEXT, "The log's judge scores as JSON."),
        NULL_REASONS_COLUMN,
    ),
)

TABLES = (TURNS, SEGMENTS, SHIFTS, DIALOGUES)
