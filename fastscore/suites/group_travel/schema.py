"""What the suite reads and writes: data only."""

import polars as pl

from fastscore.suites.base import (
    ALL_METRICS,
    NULL_REASONS_DTYPE,
    Column,
    Metric,
    OutputColumn,
    Source,
    Table,
)
from fastscore.suites.group_travel.metrics import CHANNELS, METRICS, REAL_NUMERATORS
from fastscore.suites.group_travel.terms import CATALOGUE_COLUMNS, FLAGS

_TEXT = pl.String()
_TEXTS = pl.List(pl.String())
_WHOLE = pl.Int64()
_REAL = pl.Float64()
_BOOLEAN = pl.Boolean()

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


def _text(name: str, description: str, *aliases: str) -> Column:
    return Column(
        name=name,
        kind="text",
        accepts=("integer",),
        aliases=aliases,
        description=description,
        needed_by=ALL_METRICS,
    )


def _cell(name: str, description: str, *needed_by: str) -> Column:
    return Column(name=name, kind="json", description=description, needed_by=needed_by)


_OF_PLANS = ("W1", "W2", "W3", "M9", "M10", "M10b", "M11", "M12", "M13", "M15", "M16")


TURN_TEXTS = (
    _text("speaker", "System, or a member's name."),
    _text("intent", "What the turn does, and for which slot: user_provide_cuisine."),
    _text("utterance", "What was said.", "text"),
)
TURN_CELLS = (
    Column(
        name="metadata",
        kind="json",
        description="Of the first turn: the dialogue's; of a synthesis turn: the synthesis.",
        sways=("M1",),
    ),
    _cell("constraint_state", "What is decided after the turn, by slot."),
    _cell("plan", "The plan; the dialogue's last one counts.", *_OF_PLANS),
    *(
        _cell(name, f"Records of {name[9:]} that the plan can draw on.")
        for name in CATALOGUE_COLUMNS
    ),
)
SOURCE = Source(
    columns=(
        Column(
            name="dialogue_id",
            kind="text",
            accepts=("integer",),
            description="Names the dialogue; without it the file does.",
        ),
        *TURN_TEXTS,
        *TURN_CELLS,
        Column(
            name="turns",
            kind="json",
            description="Array of a whole dialogue's turns, where a row is a dialogue.",
            items=(*TURN_TEXTS, *TURN_CELLS),
        ),
    ),
    dialogue_key=("dialogue_id",),
    formats=("csv", "json", "jsonl", "parquet"),
    row_dialogues=("jsonl",),
    key_within_file=True,
    shard_bytes=128 << 20,
)


def _column(
    name: str, dtype: pl.DataType, description: str, *, nullable: bool = False
) -> OutputColumn:
    return OutputColumn(name=name, dtype=dtype, description=description, nullable=nullable)


_PLACE = (
    _column("file", _TEXT, "The input that holds the dialogue."),
    _column("line", _WHOLE, "1-based line (or Parquet row) at which the dialogue begins."),
    _column("dialogue", _TEXT, "The dialogue's id; its file's stem without one."),
)


def _ratio_columns(metric: Metric) -> tuple[OutputColumn, ...]:
    column = OutputColumn(
        name=metric.id,
        dtype=_WHOLE if metric.unit == "turns" and metric.numerator is None else _REAL,
        description=f"{metric.name}.",
        metric=metric.id,
        nullable=metric.null_rule != "never",
    )
    if metric.numerator is None or metric.denominator is None:
        return (column,)
    dtype = _REAL if metric.id in REAL_NUMERATORS else _WHOLE
    return (
        column,
        _column(metric.numerator, dtype, f"Numerator of {metric.id}; 0 where it is null."),
        _column(metric.denominator, _WHOLE, f"Denominator of {metric.id}; 0 where it is null."),
    )


PAIRS = Table(
    name="pairs",
    grain="a member's preference for a slot",
    columns=(
        *_PLACE,
        _column("member", _TEXT, "The member, casefolded."),
        _column("slot", _TEXT, "The slot, by its usual name."),
        _column("actionable", _BOOLEAN, "Whether the plan can satisfy the slot."),
        _column("preference", _TEXT, "What the member said, utterances joined by a space."),
        _column("informative_tokens", _TEXTS, "Up to six, by rank."),
        _column("synthesis_hits", _WHOLE, "Those that the slot's synthesis has."),
        _column("synthesis_phrase", _BOOLEAN, "Whether the synthesis has a phrase of it."),
        _column("synthesis_similarity", _REAL, "Its nearest synthesis text.", nullable=True),
        _column("addressed_synthesis", _BOOLEAN, "In M8a; null without synthesis.", nullable=True),
        _column("plan_hits", _WHOLE, "Tokens that the plan's text has."),
        _column("plan_phrase", _BOOLEAN, "Whether the plan's text has a phrase of it."),
        _column("plan_similarity", _REAL, "Its nearest line of the plan.", nullable=True),
        _column(
            "addressed_plan", _BOOLEAN, "In M8b; null without a text of the plan.", nullable=True
        ),
        _column("addressed", _BOOLEAN, "In M8; null without either.", nullable=True),
        _column("wanted_rooms", _TEXTS, "Room types that are wanted; empty where none is named."),
        _column(
            "room_channel",
            _BOOLEAN,
            "A selected room is wanted; null if none is named.",
            nullable=True,
        ),
        _column("category_tokens", _TEXTS, "Parts of categories that it names."),
        _column(
            "category_channel",
            _BOOLEAN,
            "A selected place has one; null if none is named.",
            nullable=True,
        ),
        _column(
            "lexical_hits",
            _WHOLE,
            "Tokens that the slot's places and raw output have.",
            nullable=True,
        ),
        _column("lexical_channel", _BOOLEAN, "At least two of them.", nullable=True),
        _column("place_similarity", _REAL, "Its nearest selected place.", nullable=True),
        _column("semantic_channel", _BOOLEAN, "That is near enough.", nullable=True),
        _column(
            "satisfied",
            _BOOLEAN,
            "M10: any channel; null without a plan, or if not actionable.",
            nullable=True,
        ),
        _column("slot_similarity", _REAL, "M12 of the pair.", nullable=True),
        _column("resolution_similarity", _REAL, "M14 of the pair.", nullable=True),
    ),
)

PLACES = Table(
    name="places",
    grain="a distinct place of a dialogue's plan",
    columns=(
        *_PLACE,
        _column("place", _TEXT, "Its name as the plan has it first."),
        _column("key", _TEXT, "Its normalised name, by which it is looked up."),
        _column("grounded", _BOOLEAN, "Whether the catalogue has it."),
        _column(
            "explicit",
            _BOOLEAN,
            "Whether a preference names it; null if not grounded.",
            nullable=True,
        ),
        _column(
            "similarity",
            _REAL,
            "Its nearest preference; null if not grounded, or nothing is compared.",
            nullable=True,
        ),
        _column(
            "serendipitous",
            _BOOLEAN,
            "Near and not explicit; null as the similarity.",
            nullable=True,
        ),
    ),
)

DIALOGUES = Table(
    name="dialogues",
    grain="a dialogue",
    columns=(
        *_PLACE,
        _column("condition", _TEXT, "C1 to C5 by its flags; else custom."),
        *(_column(flag, _BOOLEAN, f"The condition's flag {flag}.") for flag in FLAGS),
        _column(
            "flag_source",
            _TEXT,
            "Where the flags come from: metadata, condition, file_name "
            "or content; four where they differ, in order.",
        ),
        _column("group_type", _TEXT, "family, spouses, colleagues, ...", nullable=True),
        *(column for metric in METRICS for column in _ratio_columns(metric)),
        *(
            _column(channel.id, _WHOLE, f"{channel.formula[0].upper()}{channel.formula[1:]}.")
            for channel in CHANNELS
        ),
        _column("members", MEMBERS_DTYPE, "Members with an actionable preference: s_i and x_i."),
        _column("lexicon_version", _TEXT, "Version of the word lists."),
        _column("warnings", _TEXTS, "Cells that could not be read, with line and column."),
        _column("null_reasons", NULL_REASONS_DTYPE, "Which metrics are null, and why."),
    ),
)

TABLES = (PAIRS, PLACES, DIALOGUES)
