"""What the suite reads and writes: data only."""

from typing import Literal

import polars as pl

from fastscore.suites.base import (
    NULL_REASONS_DTYPE,
    Column,
    Metric,
    OutputColumn,
    Source,
    Table,
)

SLOTS = (
    "traveler_type",
    "travel_purpose",
    "spending_preference",
    "cuisine",
    "attraction",
    "event",
    "lodging",
)
SLOT_ALIASES = {
    "room_type": "lodging",
    "accommodation": "lodging",
    "hotel": "lodging",
    "spending": "spending_preference",
    "restaurant": "cuisine",
    "food": "cuisine",
    "events": "event",
    "attractions": "attraction",
}
ACTIONABLE = ("lodging", "cuisine", "event", "attraction")
CATEGORY_SLOTS = ("cuisine", "event", "attraction")
KIND_OF_SLOT = {
    "lodging": "accommodations",
    "cuisine": "restaurants",
    "event": "events",
    "attraction": "attractions",
}
CATALOGUES = ("accommodations", "restaurants", "attractions", "events")
CATALOGUE_COLUMNS = tuple(f"ref_info_{kind}" for kind in CATALOGUES)
FLAGS = ("multi_user", "enable_synthesis", "use_social_theory", "enable_feedback")
CONDITIONS = {
    "C1": (False, False, False, False),
    "C2": (True, False, False, False),
    "C3": (True, True, False, False),
    "C4": (True, True, True, False),
    "C5": (True, True, True, True),
}
CUSTOM = "custom"
SYSTEM_SPEAKERS = ("system", "sys", "assistant", "agent", "planner", "mediator")
EVERYONE = ("all", "everyone", "group")

NULLS = (
    *("", "-", "n/a", "na", "none", "null", "nil", "nan", "unknown", "not applicable"),
    *("no strategy", "no conflict", "tbd"),
)
"""What stands for no strategy and no explanation, stripped and casefolded."""
UNFILLED = ("", "na", "n a", "none", "null", "nan", "nil", "tbd")
"""What stands for no place in a plan, normalised."""

_TEXT = pl.String()
_TEXTS = pl.List(pl.String())
_WHOLE = pl.Int64()
_REAL = pl.Float64()
_TRUTH = pl.Boolean()

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
    )


def _cell(name: str, description: str) -> Column:
    return Column(name=name, kind="json", description=description)


TURN_TEXTS = (
    _text("speaker", "System, or a member's name."),
    _text("intent", "What the turn does, and for which slot: user_provide_cuisine."),
    _text("utterance", "What was said.", "text"),
)
TURN_CELLS = (
    _cell("metadata", "Of the first turn: the dialogue's; of a synthesis turn: the synthesis."),
    _cell("constraint_state", "What is decided after the turn, by slot."),
    _cell("plan", "The plan; the dialogue's last one counts."),
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
        _cell("turns", "Array of a whole dialogue's turns, where a row is a dialogue."),
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


def _metric(
    id: str,
    name: str,
    formula: str,
    null_rule: str,
    section: str,
    *,
    maximum: float | None = 1.0,
    better: Literal["higher", "lower", "neither"] = "higher",
    unit: str = "1",
    ratio: bool = True,
) -> Metric:
    return Metric(
        id=id,
        name=name,
        table="dialogues",
        formula=formula,
        minimum=0.0,
        maximum=maximum,
        better=better,
        null_rule=null_rule,
        source=f"Metric Reference, {section}",
        unit=unit,
        numerator=f"{id}_num" if ratio else None,
        denominator=f"{id}_den" if ratio else None,
    )


_NO_SYNTHESIS = "not_applicable where synthesis is not enabled"
_NO_PLAN = "missing_input without a plan"
_NO_PAIRS = f"{_NO_PLAN}; not_applicable without an actionable preference"
_NO_VECTORS = f"{_NO_PAIRS} that says something; no_vector without an embedder"

METRICS = (
    _metric("W1", "Utilitarian welfare", "mean of s_i over members", _NO_PAIRS, "W1"),
    _metric("W2", "Egalitarian welfare", "least s_i of the members", _NO_PAIRS, "W2", ratio=False),
    _metric(
        "W3",
        "Nash welfare",
        "geometric mean of s_i; 0 where one is 0",
        _NO_PAIRS,
        "W3",
        ratio=False,
    ),
    _metric(
        "M1",
        "Member voice coverage",
        "members who stated a preference / members, at most 1; 1 / members with a single user",
        "missing_input where nobody is known to be a member",
        "M1",
    ),
    _metric(
        "M2",
        "Conflict detection rate",
        "divergent slots whose synthesis names the conflict / divergent slots",
        f"{_NO_SYNTHESIS} or no slot is divergent",
        "M2",
    ),
    _metric(
        "M3",
        "Resolution explanation rate",
        "synthesised slots that are explained / synthesised slots",
        f"{_NO_SYNTHESIS} or no slot is synthesised",
        "M3",
    ),
    _metric(
        "M4",
        "Theory strategy usage rate",
        "actionable slots with a named strategy / actionable slots that are synthesised; 0 where "
        "social theory is not used",
        "not_applicable where theory is used and no actionable slot is synthesised",
        "M4",
    ),
    _metric(
        "M4b",
        "Theory text leakage rate",
        "turns that quote theory / turns that synthesise, give feedback or present the plan",
        "not_applicable without such a turn",
        "M4b",
        better="lower",
    ),
    _metric(
        "M5",
        "Feedback activation rate",
        "conflict slots with a feedback turn / conflict slots; 0 where feedback is not enabled",
        "not_applicable where feedback is enabled and no slot is flagged as a conflict",
        "M5",
    ),
    _metric(
        "M6",
        "Member acceptance rate",
        "members who accept / members who stated a preference, at most 1",
        "not_applicable without a turn of acceptance",
        "M6",
    ),
    _metric(
        "M7_total_turns",
        "Turns",
        "turns with an intent or an utterance",
        "never",
        "M7",
        maximum=None,
        better="neither",
        unit="turns",
        ratio=False,
    ),
    _metric(
        "M7_turns_per_slot",
        "Turns per slot",
        "turns / slots for which a preference was stated",
        "not_applicable without such a slot",
        "M7",
        maximum=None,
        better="neither",
        unit="turns",
    ),
    _metric(
        "M7_feedback_turn_overhead",
        "Feedback turns",
        "turns of feedback",
        "never",
        "M7",
        maximum=None,
        better="neither",
        unit="turns",
        ratio=False,
    ),
    _metric(
        "M8",
        "Preference addressing score",
        "preferences addressed by the synthesis or the plan / preferences",
        "missing_input without a preference; without synthesis, as M8b",
        "M8",
    ),
    _metric(
        "M8a",
        "Preference addressing score of the synthesis",
        "preferences addressed by the synthesis of their slot / preferences",
        f"{_NO_SYNTHESIS}; missing_input without a preference",
        "M8",
    ),
    _metric(
        "M8b",
        "Preference addressing score of the plan",
        "preferences addressed by the plan's presentation or raw output / preferences",
        "missing_input without a preference or a text of the plan",
        "M8",
    ),
    _metric(
        "M9",
        "Plan grounding rate",
        "distinct places of the plan that the catalogue has / distinct places of the plan",
        f"{_NO_PLAN}, a place in it or a catalogue",
        "M9",
    ),
    _metric(
        "M10",
        "Member slot satisfaction rate",
        "satisfied actionable preferences / actionable preferences",
        _NO_PAIRS,
        "M10",
    ),
    _metric(
        "M10b",
        "Category lookup satisfaction rate",
        "preferences that share a category with a selected place / preferences with a category",
        f"{_NO_PLAN}; not_applicable without a preference that names a category",
        "M10b",
    ),
    _metric(
        "M11",
        "All-constraints satisfied rate",
        "members whose actionable preferences are all satisfied / members who have any",
        _NO_PAIRS,
        "M11",
    ),
    _metric(
        "M12",
        "Semantic preference satisfaction",
        "mean similarity of actionable preferences and the plan's entries for their slot",
        _NO_VECTORS,
        "M12",
    ),
    _metric(
        "M13",
        "Fairness (Gini coefficient)",
        "sum of |x_i - x_j| over ordered pairs / (2 n^2 mean), x_i a member's mean in M12; at most "
        "(n - 1) / n",
        _NO_VECTORS,
        "M13",
        better="lower",
        ratio=False,
    ),
    _metric(
        "M14",
        "Concession rate",
        "mean similarity of actionable preferences and the explanation of their slot's resolution",
        f"{_NO_SYNTHESIS} or no such slot is explained; no_vector without an embedder",
        "M14",
    ),
    _metric(
        "M15",
        "Serendipity score",
        "grounded places that nobody named and that are near a preference / grounded places",
        f"{_NO_PLAN}, a grounded place or a preference; no_vector without an embedder",
        "M15",
    ),
    _metric(
        "M16",
        "Plan coherence score",
        "passed checks / checks: three meals, their variety, the order of stops",
        _NO_PLAN,
        "M16",
    ),
)
RATIOS = tuple(metric for metric in METRICS if metric.numerator is not None)

CHANNELS = tuple(
    Metric(
        id=f"n_{channel}_channel",
        name=f"Firings of the {channel} channel",
        table="dialogues",
        formula=f"actionable preferences that are satisfied {by}",
        minimum=0.0,
        maximum=None,
        better="neither",
        null_rule="never",
        source="Metric Reference, M10",
        unit="pairs",
        numerator=f"{channel}_fired",
        denominator="M10_den",
    )
    for channel, by in (
        ("room", "by their room type"),
        ("category", "by a category"),
        ("lexical", "by tokens"),
        ("semantic", "by similarity"),
    )
)
"""How often each channel of M10 fires: no metrics of their own, but the summary has them beside
M10. The numerator, which the summary adds up, is the count itself."""
_AFTER_M10 = [metric.id for metric in METRICS].index("M10") + 1
SUMMARISED = (*METRICS[:_AFTER_M10], *CHANNELS, *METRICS[_AFTER_M10:])
"""The rows of the summary, in order."""

REAL_NUMERATORS = ("W1", "M12", "M14")
"""Ratios whose numerator is a sum of shares or similarities, not a count."""

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
        _column("actionable", _TRUTH, "Whether the plan can satisfy the slot."),
        _column("preference", _TEXT, "What the member said, utterances joined by a space."),
        _column("informative_tokens", _TEXTS, "Up to six, by rank."),
        _column("synthesis_hits", _WHOLE, "Those that the slot's synthesis has."),
        _column("synthesis_phrase", _TRUTH, "Whether the synthesis has a phrase of it."),
        _column("synthesis_similarity", _REAL, "Its nearest synthesis text.", nullable=True),
        _column("addressed_synthesis", _TRUTH, "M8a; null where it is.", nullable=True),
        _column("plan_hits", _WHOLE, "Tokens that the plan's text has."),
        _column("plan_phrase", _TRUTH, "Whether the plan's text has a phrase of it."),
        _column("plan_similarity", _REAL, "Its nearest line of the plan.", nullable=True),
        _column("addressed_plan", _TRUTH, "M8b; null where it is.", nullable=True),
        _column("addressed", _TRUTH, "M8; null where it is.", nullable=True),
        _column("wanted_rooms", _TEXTS, "Room types that are wanted; empty where none is named."),
        _column(
            "room_channel",
            _TRUTH,
            "A selected room is wanted; null if none is named.",
            nullable=True,
        ),
        _column("category_tokens", _TEXTS, "Parts of categories that it names."),
        _column(
            "category_channel",
            _TRUTH,
            "A selected place has one; null if none is named.",
            nullable=True,
        ),
        _column(
            "lexical_hits",
            _WHOLE,
            "Tokens that the slot's places and raw output have.",
            nullable=True,
        ),
        _column("lexical_channel", _TRUTH, "At least two of them.", nullable=True),
        _column("place_similarity", _REAL, "Its nearest selected place.", nullable=True),
        _column("semantic_channel", _TRUTH, "That is near enough.", nullable=True),
        _column(
            "satisfied",
            _TRUTH,
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
        _column("grounded", _TRUTH, "Whether the catalogue has it."),
        _column(
            "explicit",
            _TRUTH,
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
            "serendipitous", _TRUTH, "Near and not explicit; null as the similarity.", nullable=True
        ),
    ),
)

DIALOGUES = Table(
    name="dialogues",
    grain="a dialogue",
    columns=(
        *_PLACE,
        _column("condition", _TEXT, "C1 to C5 by its flags; else custom."),
        *(_column(flag, _TRUTH, f"The condition's flag {flag}.") for flag in FLAGS),
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
