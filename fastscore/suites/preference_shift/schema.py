"""What the suite reads and writes: data only."""

from typing import Literal

import polars as pl

from fastscore.suites.declarations import ALL_METRICS, Column, Metric, OutputColumn, Source, Table
from fastscore.suites.output_columns import (
    BOOLEAN,
    NULL_REASONS_COLUMN,
    REAL,
    TEXT,
    TEXTS,
    WHOLE,
    column,
)

SPEAKERS = USER, SYSTEM = "USER", "SYSTEM"
GROUPS = ("model",)
SEGMENT_SOURCES = ("metadata", "embedding", "heuristic", "none")
SEGMENT_SOURCE_DTYPE = pl.Enum(SEGMENT_SOURCES)

_WHOLES = pl.List(pl.Int64())

_RECOVERY = (
    "topic_recovery_rate",
    "avg_recovery_delay",
    "recovery_rate_cosine",
    "avg_recovery_delay_cosine",
    "cas",
)
_GOLD = ("dst_precision_mean", "dst_recall_mean", "dst_f1_mean", "dst_joint_accuracy_mean")

SOURCE = Source(
    columns=(
        Column(
            name="session_id",
            kind="text",
            accepts=("integer",),
            aliases=("dialogue_id", "id"),
            description="Names the conversation; without one, the file's name does.",
        ),
        Column(
            name="model_name",
            kind="text",
            aliases=("model",),
            description="The recommender that answers; conversations are grouped by it.",
        ),
        Column(
            name="true_genre",
            kind="text",
            otherwise="null",
            description="The genre that the simulated user began with; only carried along.",
        ),
        Column(
            name="conversation",
            kind="json",
            description="Array of turns {speaker, text, user_meta}; a bare array of turns is one.",
            needed_by=ALL_METRICS,
            items=(
                Column(
                    name="speaker",
                    kind="text",
                    description="USER or SYSTEM.",
                    needed_by=ALL_METRICS,
                    expects=SPEAKERS,
                    knows=SPEAKERS,
                ),
                Column(
                    name="text",
                    kind="text",
                    description="What is said.",
                    needed_by=ALL_METRICS,
                ),
                Column(
                    name="user_meta",
                    kind="json",
                    aliases=("meta",),
                    description="Object of a user turn's constraints, and whether it is a shift.",
                    needed_by=_GOLD,
                ),
            ),
        ),
        Column(
            name="shift_events",
            kind="json",
            description="Array of objects whose turn is the number of a user turn, or null.",
            needed_by=_RECOVERY,
        ),
        Column(
            name="judge",
            kind="json",
            description="Object of a judge's scores by name, carried along for the analysis.",
        ),
    ),
    formats=("json", "jsonl", "parquet"),
    row_dialogues=("json", "jsonl", "parquet"),
    array_column="conversation",
)


def _metric(
    table: str,
    id: str,
    name: str,
    formula: str,
    source: str,
    *,
    minimum: float | None = 0.0,
    maximum: float | None = 1.0,
    better: Literal["higher", "lower", "neither"] = "higher",
    null_rule: str = "never",
    unit: str = "1",
    numerator: str | None = None,
    denominator: str | None = None,
) -> Metric:
    return Metric(
        id=id,
        name=name,
        table=table,
        formula=formula,
        minimum=minimum,
        maximum=maximum,
        better=better,
        null_rule=null_rule,
        source=source,
        unit=unit,
        numerator=numerator,
        denominator=denominator,
        part=table != "dialogues" or id.endswith("_cosine") or unit == "concepts",
    )


_GOLD_RULE = (
    "missing_input where the user turn's metadata has no constraints or, in the profile default, "
    "the system's text is absent or null; never in the profile structured, which takes the user's "
    "own concepts instead"
)
_TEXTS_RULE = (
    "missing_input where one of the two texts is absent or null; in every profile but default "
    "that is an empty text, and this is never null"
)
_SEGMENT_RULE = "missing_input without a turn in it that has both texts"
_TURNS_RULE = (
    "not_applicable without a turn, missing_input without one that has both texts; 0 in every "
    "profile but default"
)
_NO_SHIFTS = (
    "not_applicable without a shift or a turn, missing_input where it is unknown of every shift: "
    "no turn of the window is known to meet the test and one of them lacks a text; in every "
    "profile but default an absent text is empty, and this is 0 without a shift"
)
_NO_RECOVERY = (
    "not_applicable where nothing was recovered, missing_input where that is unknown: a turn of "
    "the window lacks a text"
)

_MADE = "preference_shift methodology, "
_CC, _CR, _I, _TAS = (_MADE + part for part in ("5.2", "5.3", "5.4", "5.5"))
_SEGMENTS, _DELTAS = _MADE + "5.6", _MADE + "5.7"
_PUBLIC = "llm-eval-workspace, evaluate.py"
_CONSISTENT = _PUBLIC + " (updated)"

_TAS_FORMULA = "alpha * cc + beta * cr - gamma * i, clipped to [-1, 1]"
_I_FORMULA = "max over n of |n-grams of S in U| / |n-grams of S|, sets of words, n = 3 and 4"

TURN_METRICS = (
    _metric(
        "turns",
        "cc",
        "Cross-coherence",
        "|E(U) & E(S)| / |E(U) | E(S)|; 1 if both empty",
        _CC,
        null_rule=_TEXTS_RULE,
    ),
    _metric(
        "turns",
        "cr",
        "Context retention",
        "cosine of IDF vectors of E(U) and E(S)",
        _CR,
        null_rule=_TEXTS_RULE,
    ),
    _metric(
        "turns",
        "i",
        "Topic interference (copying)",
        _I_FORMULA,
        _I,
        better="lower",
        null_rule=_TEXTS_RULE,
    ),
    _metric(
        "turns",
        "tas",
        "Turn adaptation score",
        _TAS_FORMULA,
        _TAS,
        minimum=-1.0,
        null_rule=_TEXTS_RULE,
    ),
    _metric(
        "turns",
        "dst_precision",
        "Precision of the system's concepts",
        "|E(S) & gold| / |E(S)|; where E(S) is empty 1 if gold is too, else 0",
        _CONSISTENT,
        null_rule=_GOLD_RULE,
    ),
    _metric(
        "turns",
        "dst_recall",
        "Recall of the gold constraints",
        "|E(S) & gold| / |gold|; 1 where gold is empty",
        _CONSISTENT,
        null_rule=_GOLD_RULE,
    ),
    _metric(
        "turns",
        "dst_f1",
        "F1 of precision and recall",
        "2PR / (P + R); 0 where both are 0",
        _CONSISTENT,
        null_rule=_GOLD_RULE,
    ),
    _metric(
        "turns",
        "dst_joint_accuracy",
        "Joint accuracy",
        "1 if E(S) is the gold set, else 0",
        _CONSISTENT,
        null_rule=_GOLD_RULE,
    ),
)

SEGMENT_METRICS = (
    _metric(
        "segments",
        "segment_cc",
        "Cross-coherence of a segment",
        "cc of the unions of sets",
        _DELTAS,
        null_rule=_SEGMENT_RULE,
    ),
    _metric(
        "segments",
        "segment_cr",
        "Context retention of a segment",
        "cosine of summed vectors",
        _CR,
        null_rule=_SEGMENT_RULE,
    ),
    _metric(
        "segments",
        "segment_i",
        "Copying in a segment",
        "mean of i over turns",
        _I,
        better="lower",
        null_rule=_SEGMENT_RULE,
    ),
    _metric(
        "segments",
        "segment_tas",
        "Adaptation score of a segment",
        "alpha * segment_cc + beta * segment_cr - gamma * segment_i, clipped to [-1, 1]",
        _TAS,
        minimum=-1.0,
        null_rule=_SEGMENT_RULE,
    ),
)

SHIFT_METRICS = (
    _metric(
        "shifts",
        "delay",
        "Turns until the recovery test is met",
        "first turn of the window that meets the test, from 0",
        _SEGMENTS,
        maximum=None,
        better="lower",
        null_rule=_NO_RECOVERY,
        unit="turns",
    ),
    _metric(
        "shifts",
        "delay_cosine",
        "Turns until CR alone meets its threshold",
        "as delay, by CR alone",
        _CONSISTENT,
        maximum=None,
        better="lower",
        null_rule=_NO_RECOVERY,
        unit="turns",
    ),
    _metric(
        "shifts",
        "i_around_shift",
        "Copying around a shift",
        "mean of i over the turns of the window from the shift on",
        _SEGMENTS,
        better="lower",
        null_rule="not_applicable where the conversation has no such turn, missing_input where "
        "none has both texts",
    ),
)

_GOLD_MEAN_RULE = "missing_input where no turn has a value; 0 without a turn in structured"

DIALOGUE_METRICS = (
    _metric(
        "dialogues",
        "cross_coherence",
        "Mean cross-coherence",
        "mean of cc over turns",
        _CC,
        null_rule=_TURNS_RULE,
    ),
    _metric(
        "dialogues",
        "context_retention",
        "Mean context retention",
        "mean of cr over turns",
        _CR,
        null_rule=_TURNS_RULE,
    ),
    _metric(
        "dialogues",
        "topic_interference",
        "Mean copying",
        "mean of i over turns",
        _I,
        better="lower",
        null_rule=_TURNS_RULE,
    ),
    _metric(
        "dialogues",
        "topic_interference_around_shifts",
        "Mean copying around shifts",
        "mean of i over the turns of the windows from the shifts on; one in two windows counts "
        "twice",
        _SEGMENTS,
        better="lower",
        null_rule="not_applicable without a shift that the conversation has a turn for, "
        "missing_input where none of those turns has both texts",
        numerator="i_around_shifts_sum",
        denominator="n_turns_around_shifts",
    ),
    _metric(
        "dialogues",
        "context_adaptation_score",
        "Adaptation score (mean TAS)",
        "mean of tas over turns, each clipped before",
        _TAS,
        minimum=-1.0,
        null_rule=_TURNS_RULE,
    ),
    _metric(
        "dialogues",
        "topic_recovery_rate",
        "Recovery rate",
        "n_recovered / n_known_shifts",
        _SEGMENTS,
        null_rule=_NO_SHIFTS,
        numerator="n_recovered",
        denominator="n_known_shifts",
    ),
    _metric(
        "dialogues",
        "avg_recovery_delay",
        "Mean recovery delay",
        "delay_sum / n_recovered",
        _SEGMENTS,
        maximum=None,
        better="lower",
        null_rule=_NO_RECOVERY,
        unit="turns",
        numerator="delay_sum",
        denominator="n_recovered",
    ),
    _metric(
        "dialogues",
        "recovery_rate_cosine",
        "Recovery rate by CR alone",
        "n_recovered_cosine / n_known_shifts_cosine",
        _CONSISTENT,
        null_rule=_NO_SHIFTS,
        numerator="n_recovered_cosine",
        denominator="n_known_shifts_cosine",
    ),
    _metric(
        "dialogues",
        "avg_recovery_delay_cosine",
        "Mean recovery delay by CR alone",
        "delay_cosine_sum / n_recovered_cosine",
        _CONSISTENT,
        maximum=None,
        better="lower",
        null_rule=_NO_RECOVERY,
        unit="turns",
        numerator="delay_cosine_sum",
        denominator="n_recovered_cosine",
    ),
    _metric(
        "dialogues",
        "cas",
        "Conversation adaptation score",
        "weighted mean of recovery rate, 1 - clip(delay / 5), 1 - clip(mean i), mean cc, mean cr",
        _PUBLIC + " (legacy), on the grounded parts",
        null_rule="not_applicable without a shift or where nothing was recovered, missing_input "
        "where it is unknown of every shift whether it was",
    ),
    _metric(
        "dialogues",
        "cas_all",
        "Conversation adaptation score over all shifts",
        "as cas, with the mean of 1 - clip(delay / 5) over all shifts, 0 where one was not "
        "recovered",
        _PUBLIC + " (legacy), every shift counted",
        null_rule="not_applicable without a shift or a turn, and always in the profile legacy; "
        "missing_input where recovery is unknown of every shift, or no turn has both texts",
    ),
    *(
        _metric(
            "dialogues",
            f"{metric.id}_mean",
            f"Mean of {metric.name[0].lower()}{metric.name[1:]}",
            f"mean of {metric.id} over the turns that have one",
            _CONSISTENT,
            null_rule=_GOLD_MEAN_RULE,
        )
        for metric in TURN_METRICS
        if metric.id.startswith("dst_")
    ),
    _metric(
        "dialogues",
        "missing_concepts_total",
        "Missing concepts",
        "sum over turns of |E(U) - E(S)|",
        _DELTAS,
        maximum=None,
        better="lower",
        unit="concepts",
    ),
    _metric(
        "dialogues",
        "hallucinated_concepts_total",
        "Hallucinated concepts",
        "sum over turns of |E(S) - E(U)|",
        _DELTAS,
        maximum=None,
        better="lower",
        unit="concepts",
    ),
)

METRICS = (*DIALOGUE_METRICS, *TURN_METRICS, *SEGMENT_METRICS, *SHIFT_METRICS)
"""Every metric of the suite, those of dialogues first."""


def _metric_columns(metrics: tuple[Metric, ...], dtype: pl.DataType = REAL) -> list[OutputColumn]:
    return [
        column(
            metric.id,
            dtype,
            f"{metric.name}.",
            metric=metric.id,
            nullable=metric.null_rule != "never",
        )
        for metric in metrics
    ]


_PLACE = (
    column("file", TEXT, "The input that holds the conversation."),
    column("line", WHOLE, "1-based line, row or element of the conversation in it."),
    column("dialogue", TEXT, "The log's session_id, else the file's name without its suffix."),
    column("model", TEXT, "The log's model_name.", nullable=True),
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
        *_metric_columns(TURN_METRICS),
        column("both_empty", BOOLEAN, "Whether neither text has a concept, so that cc is 1."),
        column("user_concepts", TEXTS, "E(U): the user's concepts, field=value, sorted."),
        column("system_concepts", TEXTS, "E(S): the system's concepts, sorted."),
        *_DELTA_COLUMNS,
        column(
            "gold_concepts",
            TEXTS,
            "What the system is held to by the DST scores; null where there is nothing.",
            nullable=True,
        ),
        column("user_text", TEXT, "What the user said; null where no text is.", nullable=True),
        column("system_text", TEXT, "What the system answered; null likewise.", nullable=True),
        column("user_meta", TEXT, "The user turn's metadata as JSON.", nullable=True),
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
        *_metric_columns(SEGMENT_METRICS),
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
        column(
            "recovered",
            BOOLEAN,
            "Whether a turn of the window meets the recovery test; null where none is known to and "
            "one lacks a text.",
            nullable=True,
        ),
        *_metric_columns(SHIFT_METRICS[:1], WHOLE),
        column(
            "recovered_cosine",
            BOOLEAN,
            "Whether CR alone meets its threshold in the window; null likewise.",
            nullable=True,
        ),
        *_metric_columns(SHIFT_METRICS[1:2], WHOLE),
        *_metric_columns(SHIFT_METRICS[2:]),
        NULL_REASONS_COLUMN,
    ),
)

_COUNTS = {
    "n_turns": "Turns: pairs of a user turn and its answer.",
    "n_unpaired": "Turns of the log that pair with nothing; each is listed among the rejects.",
    "n_both_empty": "Turns in which neither text has a concept: cc is 1 and cr is 0 there.",
    "n_gold": "Turns that the DST scores are defined for.",
    "n_segments": "Segments.",
    "n_shifts": "Shift points.",
    "n_known_shifts": "Those of which the turns' texts tell whether they are recovered.",
    "n_known_shifts_cosine": "The same by CR alone.",
    "n_recovered": "Shift points that are recovered in the window.",
    "n_recovered_cosine": "Those that are recovered by CR alone.",
    "delay_sum": "Sum of the recovered shifts' delays.",
    "delay_cosine_sum": "The same by CR alone.",
    "n_turns_around_shifts": "Turns in the windows from the shifts on, those of two twice.",
}

DIALOGUES = Table(
    name="dialogues",
    grain="a conversation",
    columns=(
        *_PLACE,
        column("true_genre", TEXT, "The log's true_genre.", nullable=True),
        *(column(name, WHOLE, description) for name, description in _COUNTS.items()),
        column("i_around_shifts_sum", REAL, "Sum of i over those turns."),
        column("has_shift_metadata", BOOLEAN, "Whether the log carries shift metadata."),
        column("segments_by", SEGMENT_SOURCE_DTYPE, "What the segments were found by."),
        column("shift_points", _WHOLES, "The user turns at which the preference shifts."),
        *(
            column
            for metric in DIALOGUE_METRICS
            for column in _metric_columns((metric,), WHOLE if metric.unit == "concepts" else REAL)
        ),
        column("judge", TEXT, "The log's judge scores as JSON.", nullable=True),
        NULL_REASONS_COLUMN,
    ),
)

TABLES = (TURNS, SEGMENTS, SHIFTS, DIALOGUES)
