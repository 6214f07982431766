"""What the suite reads and writes: data only."""

from functools import partial

import polars as pl

from fastscore.suites.chats import ChatRows
from fastscore.suites.columns import (
    BOOLEAN,
    DIALOGUE_COLUMN,
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
    NULL_REASONS_DTYPE,
    Metric,
    Needed,
    OutputColumn,
    RowId,
    Source,
    Table,
    metrics_using,
)
from fastscore.suites.group_travel.lexicon import (
    CATALOGUE_COLUMNS,
    FLAGS,
    INTENTS,
    SYSTEM_SPEAKERS,
)
from fastscore.suites.group_travel.metrics import METRICS
from fastscore.suites.group_travel.metrics.plan import FIRINGS
from fastscore.suites.group_travel.metrics.sources import METADATA, PLAN
from fastscore.suites.group_travel.turns import read_stated_ids

MEMBERS_DTYPE = pl.List(
    pl.Struct(
        {
            "member": pl.String(),
            "pairs": pl.Int64(),
            "satisfied": pl.Int64(),
            "satisfaction": pl.Float64(),
            "semantic_mean": pl.Float64(),
        }
    )
)


_using = partial(metrics_using, METRICS)
_text = partial(text_field, needed=Needed(ALL_METRICS))


TURN_TEXTS = (
    _text("speaker", "System, or a member's name."),
    _text(
        "intent",
        "What the turn does, and for which slot: user_provide_cuisine.",
        vocabulary=INTENTS,
    ),
    _text("utterance", "What was said.", "text"),
)
TURN_CELLS = (
    json_field(
        "metadata",
        "Of the first turn: the dialogue's; of a synthesis turn: the synthesis.",
        needed=Needed(affects=_using(METADATA)),
    ),
    json_field("constraint_state", "What is decided after the turn, by slot."),
    json_field("plan", "The plan; the dialogue's last one counts.", *_using(PLAN)),
    *(
        json_field(name, f"Records of {name[9:]} that the plan can draw on.")
        for name in CATALOGUE_COLUMNS
    ),
)
SOURCE = Source(
    read_in_path=r"(?s)[^/]*$",
    columns=(
        text_field("dialogue_id", "Names the dialogue; without it the file does."),
        *TURN_TEXTS,
        *TURN_CELLS,
        json_field(
            "turns",
            "Array of a whole dialogue's turns, where a row is a dialogue.",
            items=(*TURN_TEXTS, *TURN_CELLS),
        ),
    ),
    dialogue_key=("dialogue_id",),
    formats=("csv", "json", "jsonl", "parquet"),
    row_dialogues=("jsonl",),
    row_id=RowId(columns=("metadata", "turns"), holder="turns", read=read_stated_ids),
    key_within_file=True,
    shard_bytes=128 << 20,
    chat_rows=ChatRows(
        id="dialogue_id",
        array="turns",
        speaker="speaker",
        text="utterance",
        words=(("user", "user"), ("assistant", "System")),
        systems=SYSTEM_SPEAKERS,
    ),
)


_PLACE = (
    column("file", TEXT, "The input that holds the dialogue."),
    column("line", WHOLE, "1-based line (or Parquet row) at which the dialogue begins."),
    DIALOGUE_COLUMN,
)


_SUMS_OF_REALS = ("W1", "M12", "M14")
"""Metrics whose numerator is a sum of real numbers, not a count."""


def _ratio_columns(metric: Metric) -> tuple[OutputColumn, ...]:
    is_count = metric.scale.unit == "turns" and metric.micro is None
    ratio = metric_column(metric, dtype=WHOLE if is_count else REAL)
    if metric.micro is None:
        return (ratio,)
    numerator, denominator = metric.micro
    dtype = REAL if metric.id in _SUMS_OF_REALS else WHOLE
    return (
        ratio,
        column(numerator, dtype, f"Numerator of {metric.id}. 0 if it is null."),
        column(denominator, WHOLE, f"Denominator of {metric.id}. 0 if it is null."),
    )


PAIRS = Table(
    name="pairs",
    grain="a member's preference for a slot",
    columns=(
        *_PLACE,
        column("member", TEXT, "The member, casefolded."),
        column("slot", TEXT, "The slot, by its usual name."),
        column("actionable", BOOLEAN, "Whether the plan can satisfy the slot."),
        column("preference", TEXT, "The member's utterances for the slot, joined by a space."),
        column(
            "informative_tokens",
            TEXTS,
            "Informative tokens of the preference, at most six, by rank.",
        ),
        column("synthesis_hits", WHOLE, "Informative tokens that the slot's synthesis has."),
        column(
            "synthesis_phrase", BOOLEAN, "Whether the synthesis has a phrase of the preference."
        ),
        optional("synthesis_similarity", REAL, "Similarity to the nearest synthesis text."),
        optional("addressed_synthesis", BOOLEAN, "Whether M8a counts it. Null without synthesis."),
        column("plan_hits", WHOLE, "Informative tokens that the plan's text has."),
        column("plan_phrase", BOOLEAN, "Whether the plan's text has a phrase of the preference."),
        optional("plan_similarity", REAL, "Similarity to the nearest line of the plan."),
        optional(
            "addressed_plan", BOOLEAN, "Whether M8b counts it. Null without a text of the plan."
        ),
        optional(
            "addressed",
            BOOLEAN,
            "Whether M8 counts it. Null without synthesis and text of the plan.",
        ),
        column(
            "wanted_rooms", TEXTS, "Room types that the preference wants. Empty if it names none."
        ),
        optional(
            "room_channel",
            BOOLEAN,
            "Whether a selected room is wanted. Null if no room type is named.",
        ),
        column("category_tokens", TEXTS, "Parts of categories that the preference names."),
        optional(
            "category_channel",
            BOOLEAN,
            "Whether a selected place has a named category. Null if none is named.",
        ),
        optional("lexical_hits", WHOLE, "Tokens that the slot's places and raw output have."),
        optional("lexical_channel", BOOLEAN, "Whether there are at least two lexical hits."),
        optional("place_similarity", REAL, "Similarity to the nearest selected place."),
        optional("semantic_channel", BOOLEAN, "Whether that similarity reaches the threshold."),
        optional(
            "satisfied",
            BOOLEAN,
            "Whether any channel satisfies it (M10). Null without a plan, or if not actionable.",
        ),
        optional("slot_similarity", REAL, "M12 of the pair."),
        optional("resolution_similarity", REAL, "M14 of the pair."),
    ),
)

PLACES = Table(
    name="places",
    grain="a distinct place of a dialogue's plan",
    columns=(
        *_PLACE,
        column("place", TEXT, "Its name as the plan has it first."),
        column("key", TEXT, "Its normalised name, by which it is looked up."),
        column("grounded", BOOLEAN, "Whether the catalogue has it."),
        optional(
            "explicit", BOOLEAN, "Whether a preference names the place. Null if not grounded."
        ),
        optional(
            "similarity",
            REAL,
            "Similarity to the nearest preference. Null if not grounded or nothing is compared.",
        ),
        optional(
            "serendipitous",
            BOOLEAN,
            "Whether it is near and not explicit. Null if the similarity is null.",
        ),
    ),
)

DIALOGUES = Table(
    name="dialogues",
    grain="a dialogue",
    columns=(
        *_PLACE,
        column("dialogue_id", TEXT, "The log's id, or that in metadata. Default: its file's stem."),
        column("condition", TEXT, "C1 to C5 by the flags, otherwise custom."),
        *(column(flag, BOOLEAN, f"The condition's flag {flag}.") for flag in FLAGS),
        column(
            "flag_source",
            TEXT,
            "Where the flags come from: metadata, condition, file_name "
            "or content. Four sources in the order of the flags if they differ.",
        ),
        column(
            "scenario",
            TEXT,
            "Name that dialogues of several conditions share: from the metadata, otherwise the "
            "id without the condition in it.",
        ),
        optional("group_type", TEXT, "family, spouses, colleagues, ..."),
        *(column for metric in METRICS for column in _ratio_columns(metric)),
        *(
            column(
                channel.id, WHOLE, f"{channel.formula.text[0].upper()}{channel.formula.text[1:]}."
            )
            for channel in FIRINGS
        ),
        column("members", MEMBERS_DTYPE, "Members with an actionable preference: s_i and x_i."),
        column("lexicon_version", TEXT, "Version of the word lists."),
        column("warnings", TEXTS, "Cells that could not be read, with line and column."),
        column("null_reasons", NULL_REASONS_DTYPE, "Which metrics are null, and why."),
    ),
)

TABLES = (PAIRS, PLACES, DIALOGUES)
