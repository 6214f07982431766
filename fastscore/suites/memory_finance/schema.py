"""What the suite reads and writes: data only."""

from typing import Literal

import polars as pl

from fastscore.suites.declarations import (
    ALL_METRICS,
    Column,
    Metric,
    OutputColumn,
    RowId,
    Source,
    Table,
)
from fastscore.suites.output_columns import (
    BOOLEAN,
    NULL_REASONS_COLUMN,
    REAL,
    TEXT,
    TEXTS,
    WHOLE,
    column,
)

LABELS = ("run_id", "scenario_type", "difficulty", "dialog_status")
GROUPS = ("scenario_type", "difficulty")

COMPLIANCE_LABELS = ("compliant", "minor_violation", "severe_violation")
COMPLIANCE_DTYPE = pl.Enum(COMPLIANCE_LABELS)
RESOLVERS = (
    "profile_field",
    "constraints_gt",
    "preferences_gt",
    "history_user_turn",
    "history_abs_turn",
    "unresolved",
)
MEMORY_SOURCES = ("short_term", "long_term", "profile")
DEFAULT_TRACE_VERSION = "v1"


RESOLVED_KEY_DTYPE = pl.Struct(
    {
        "key": pl.String(),
        "resolvable": pl.Boolean(),
        "target_text": pl.String(),
        "resolver": pl.Enum(RESOLVERS),
    }
)
SOURCE_HITS_DTYPE = pl.Struct({source: pl.Int64() for source in MEMORY_SOURCES})


_RECALL = (
    "key_coverage",
    "strict_key_hit_rate",
    "contradiction_rate",
    "short_term_hit_rate",
    "long_term_hit_rate",
    "profile_hit_rate",
)
_PROFILE = (
    "risk_level_acc",
    "horizon_acc",
    "liquidity_acc",
    "constraints_f1",
    "preferences_f1",
    "profile_score",
)
_LABELLED = (
    "risk_coverage",
    "strict_risk_coverage_rate",
    "rubric_hit_rate",
    "judge_score_mean",
    "judge_score_1_5",
)


def _json(name: str, description: str, *needed_by: str) -> Column:
    return Column(name=name, kind="json", description=description, needed_by=needed_by)


def _label(name: str, description: str) -> Column:
    return Column(name=name, kind="text", otherwise="null", description=description)


TURN_STATUS = Column(
    name="turn_status",
    kind="text",
    description="ok, or why there is no reply.",
    needed_by=ALL_METRICS,
    expects=("ok",),
    knows=("ok", "timeout", "error"),
)
COMPLIANCE_LABEL = Column(
    name="compliance_label_gt",
    kind="text",
    description="In gt_turn_tags; any other word is compliant.",
    knows=("", *COMPLIANCE_LABELS),
    in_any_case=True,
)
SOURCE = Source(
    columns=(
        Column(
            name="dialog_id",
            kind="text",
            accepts=("integer",),
            description="Names the dialogue; dialogues of one id count together in M1 and M3-M5.",
        ),
        Column(
            name="run_id", kind="text", accepts=("integer",), description="The run that was traced."
        ),
        Column(
            name="trace_version",
            kind="text",
            accepts=("integer",),
            description="Version of the trace's layout; v1 without one.",
        ),
        _label("scenario_type", "The kind of conversation, for grouping."),
        _label("difficulty", "How hard it is, for grouping."),
        _label("dialog_status", "ok, partial, failed or skipped; only counted."),
        Column(
            name="turns",
            kind="json",
            description="Array of traced turns; null is none.",
            needed_by=ALL_METRICS,
            items=(
                Column(
                    name="pred_assistant_text",
                    kind="text",
                    description="The assistant's reply.",
                    needed_by=ALL_METRICS,
                ),
                _json("turn_pair_id", "The number of the turn."),
                TURN_STATUS,
                Column(
                    name="gt_turn_tags",
                    kind="json",
                    description="Object: what the turn's labels require.",
                    needed_by=(*_RECALL, *_LABELLED),
                    affects=("compliance_label_acc",),
                ),
                _json("recall", "Object: what the assistant was reminded of."),
                _json("compliance", "Object: violations that the assistant's own check found."),
                _json("profile_snapshot", "Object: the profile as the assistant knew it."),
                Column(name="user_text", kind="text", description="What the user said."),
                Column(
                    name="role", kind="text", description="Who speaks, where a turn is one text."
                ),
                Column(
                    name="text", kind="text", description="What is said, where a turn is one text."
                ),
            ),
        ),
        _json(
            "valid_dialog",
            "Whether the dialogue is scored at all: any value, by its truth.",
            *ALL_METRICS,
        ),
        _json("profile_gt", "Object: the user's labelled profile, or null.", *_PROFILE),
        _json("blueprint", "Object whose forbidden_list names phrases that no reply may have."),
        _json("raw_turns", "Array of the dataset's turns, which history keys count, or null."),
    ),
    formats=("jsonl", "json"),
    row_dialogues=("jsonl", "json"),
    row_id=RowId(columns=("dialog_id",), variants=("run_id",)),
    shard_bytes=64 << 20,
)


def _metric_column(name: str, description: str) -> OutputColumn:
    return column(name, REAL, description, metric=name, nullable=True)


_PLACE = (
    column("file", TEXT, "The input that holds the dialogue."),
    column("line", WHOLE, "1-based line of the dialogue."),
    column("dialogue", TEXT, "The trace's dialog_id.", nullable=True),
    column("run_id", TEXT, "The trace's run_id; empty without one."),
    column("trace_version", TEXT, "The trace's version; v1 without one."),
)

TURNS = Table(
    name="turns",
    grain="a turn of a valid dialogue",
    columns=(
        *_PLACE,
        column("turn_pair_id", WHOLE, "The trace's number of the turn; 0 without one."),
        column("eligible_m1", BOOLEAN, "Status ok, a reply and at least one resolvable key."),
        column("eligible_m2", BOOLEAN, "Always false: M2 is a measure of dialogues."),
        column("eligible_m3", BOOLEAN, "Status ok, a reply and at least one required risk tag."),
        column("eligible_m4", BOOLEAN, "Status ok, and a reply."),
        column("eligible_m5", BOOLEAN, "Status ok, a reply and at least one required element."),
        column("required_keys_raw", TEXTS, "The memory keys that the label requires."),
        column("resolved_keys", pl.List(RESOLVED_KEY_DTYPE), "What each key points at."),
        column("key_hit_flags", pl.List(pl.Int64()), "For each resolvable key 1 if recalled."),
        column(
            "key_hit_sources",
            pl.List(TEXTS),
            "For each resolvable key the sources that hold its target.",
        ),
        column("m1_source_hits", SOURCE_HITS_DTYPE, "Keys recalled from each source."),
        column("constraint_contradiction", WHOLE, "1 if the reply contradicts a constraint."),
        column("risk_required_tags", TEXTS, "Required risk tags by their names, in order."),
        column("risk_pred_tags", TEXTS, "Risk tags that the reply discloses, sorted."),
        column("risk_tag_hits", WHOLE, "How many of the required tags it discloses."),
        column("forbidden_hits", TEXTS, "Forbidden phrases in the reply, in list order."),
        column("pred_compliance_label", COMPLIANCE_DTYPE, "Label found by the rules."),
        column("gt_compliance_label", COMPLIANCE_DTYPE, "Label given in the dataset."),
        column("rubric_required", TEXTS, "Required elements of explanation, in order."),
        column("rubric_hit_items", TEXTS, "Those of them that the reply has, in order."),
        _metric_column(
            "judge_score_1_5",
            "1 to 5 by the share of elements; null without any, or without a reply.",
        ),
        NULL_REASONS_COLUMN,
    ),
)

_COUNTS = {
    "n_turns": "Turns in the trace, of dialogues that are not valid too.",
    "m1_turns": "Turns that count for M1.",
    "required_key_total": "Resolvable keys of those turns.",
    "required_key_hit_total": "Keys recalled from any source.",
    "strict_key_turns": "Turns whose keys were all recalled.",
    "contradiction_turns": "Turns of M1 that contradict a constraint.",
    "short_term_hit_total": "Keys recalled from the short-term context.",
    "long_term_hit_total": "Keys recalled from recalled items.",
    "profile_hit_total": "Keys recalled from the profile context.",
    "m3_turns": "Turns that count for M3.",
    "risk_required_total": "Required risk tags of those turns.",
    "risk_hit_total": "Disclosed ones.",
    "strict_risk_turns": "Turns that disclose all that is required.",
    "m4_turns": "Turns that count for M4.",
    "compliance_match_count": "Turns whose two compliance labels agree.",
    "severe_count": "Turns found to be severe violations.",
    "forbidden_turns": "Turns with a forbidden phrase.",
    "m5_turns": "Turns that count for M5.",
    "rubric_required_total": "Required elements of those turns.",
    "rubric_hit_total": "Elements found.",
}


_M1 = "memory_finance definitions, 3.1 (M1)"
_M2 = "memory_finance definitions, 3.2 (M2)"
_M3 = "memory_finance definitions, 3.3 (M3)"
_M4 = "memory_finance definitions, 3.4 (M4)"
_M5 = "memory_finance definitions, 3.5 (M5)"


_HEADLINE = (
    "key_coverage",
    "strict_key_hit_rate",
    "contradiction_rate",
    "profile_score",
    "risk_level_acc",
    "horizon_acc",
    "liquidity_acc",
    "risk_coverage",
    "strict_risk_coverage_rate",
    "compliance_label_acc",
    "severe_violation_rate",
    "rubric_hit_rate",
    "judge_score_mean",
)
"""What the definitions, 6, ask a paper to print in its table."""


REFUSING, RECITING = "always refusing", "reciting all keywords"
_BASELINES = {
    **dict.fromkeys(
        ("contradiction_rate", "compliance_label_acc", "severe_violation_rate"), (REFUSING,)
    ),
    **dict.fromkeys(
        ("risk_coverage", "strict_risk_coverage_rate", "rubric_hit_rate", "judge_score_mean"),
        (REFUSING, RECITING),
    ),
}
"""Assistants that pay no attention, by the metric that their scores stand beside."""


def _share(
    id: str,
    name: str,
    numerator: str,
    denominator: str,
    source: str,
    better: Literal["higher", "lower", "neither"] = "higher",
) -> Metric:
    return Metric(
        id=id,
        name=name,
        table="dialogues",
        formula=f"{numerator} / {denominator}",
        minimum=0.0,
        maximum=1.0,
        better=better,
        null_rule=f"not_applicable where {denominator} is 0",
        source=source,
        numerator=numerator,
        denominator=denominator,
        is_secondary=better == "neither",
        headline=id in _HEADLINE,
        baselines=_BASELINES.get(id, ()),
    )


def _profile_metric(id: str, name: str, formula: str) -> Metric:
    return Metric(
        id=id,
        name=name,
        table="dialogues",
        formula=formula,
        minimum=0.0,
        maximum=1.0,
        better="higher",
        null_rule="not_applicable in a dialogue that is not valid; missing_input without a "
        "labelled profile",
        source=_M2,
        headline=id in _HEADLINE,
    )


_ACCURACY = "1 if the predicted level is the labelled one and that is known, else 0"
_F1 = "2PR / (P + R) of predicted and labelled sets; 1 if both are empty, 0 if one is"

SHARES = (
    _share(
        "key_coverage",
        "Coverage of memory keys",
        "required_key_hit_total",
        "required_key_total",
        _M1,
    ),
    _share(
        "strict_key_hit_rate",
        "Turns with all memory keys recalled",
        "strict_key_turns",
        "m1_turns",
        _M1,
    ),
    _share(
        "contradiction_rate",
        "Turns that contradict a constraint",
        "contradiction_turns",
        "m1_turns",
        _M1,
        "lower",
    ),
    _share(
        "short_term_hit_rate",
        "Keys recalled from the short-term context",
        "short_term_hit_total",
        "required_key_total",
        _M1,
        "neither",
    ),
    _share(
        "long_term_hit_rate",
        "Keys recalled from long-term memory",
        "long_term_hit_total",
        "required_key_total",
        _M1,
        "neither",
    ),
    _share(
        "profile_hit_rate",
        "Keys recalled from the profile",
        "profile_hit_total",
        "required_key_total",
        _M1,
        "neither",
    ),
    _share(
        "risk_coverage",
        "Coverage of required risk tags",
        "risk_hit_total",
        "risk_required_total",
        _M3,
    ),
    _share(
        "strict_risk_coverage_rate",
        "Turns with all required risk tags",
        "strict_risk_turns",
        "m3_turns",
        _M3,
    ),
    _share(
        "compliance_label_acc",
        "Accuracy of the compliance label",
        "compliance_match_count",
        "m4_turns",
        _M4,
    ),
    _share(
        "severe_violation_rate",
        "Turns found to be severe violations",
        "severe_count",
        "m4_turns",
        _M4,
        "lower",
    ),
    _share(
        "forbidden_hit_rate",
        "Turns with a forbidden phrase",
        "forbidden_turns",
        "m4_turns",
        _M4,
        "lower",
    ),
    _share(
        "rubric_hit_rate",
        "Coverage of required elements of explanation",
        "rubric_hit_total",
        "rubric_required_total",
        _M5,
    ),
)

PROFILE_METRICS = (
    _profile_metric("risk_level_acc", "Accuracy of the risk level", _ACCURACY),
    _profile_metric("horizon_acc", "Accuracy of the investment horizon", _ACCURACY),
    _profile_metric("liquidity_acc", "Accuracy of the need for liquidity", _ACCURACY),
    _profile_metric("constraints_f1", "F1 of the constraints", _F1),
    _profile_metric("preferences_f1", "F1 of the preferences", _F1),
    _profile_metric(
        "profile_score",
        "Profile score",
        "(risk_level_acc + horizon_acc + liquidity_acc + constraints_f1 + preferences_f1) / 5",
    ),
)

JUDGE_SCORE_MEAN = Metric(
    id="judge_score_mean",
    name="Mean heuristic judge score",
    table="dialogues",
    formula="judge_score_sum / m5_turns",
    minimum=1.0,
    maximum=5.0,
    better="higher",
    null_rule="not_applicable where m5_turns is 0",
    source=_M5,
    unit="points",
    numerator="judge_score_sum",
    denominator="m5_turns",
    headline=True,
    baselines=_BASELINES["judge_score_mean"],
)

JUDGE_SCORE = Metric(
    id="judge_score_1_5",
    name="Heuristic judge score of a turn",
    table="turns",
    formula="1 + 4 * hit elements / required elements, rounded to two decimals",
    minimum=1.0,
    maximum=5.0,
    better="higher",
    null_rule="not_applicable where no element is required; missing_input where a turn of status "
    "ok has no reply (absent or null), never in the profile published",
    source=_M5,
    unit="points",
    is_secondary=True,
    same_test_as="judge_score_mean",
)

RATIOS = (*SHARES, JUDGE_SCORE_MEAN)
METRICS = (*SHARES[:6], *PROFILE_METRICS, *SHARES[6:], JUDGE_SCORE_MEAN, JUDGE_SCORE)

DIALOGUES = Table(
    name="dialogues",
    grain="a line of a trace",
    columns=(
        *_PLACE,
        *(
            column(label, TEXT, f"The trace's {label}.", nullable=True)
            for label in LABELS
            if label != "run_id"
        ),
        column("valid", BOOLEAN, "Whether the dialogue is scored: the truth of valid_dialog."),
        column("eligible_m2", BOOLEAN, "Valid and with a labelled profile that is not empty."),
        *(column(name, WHOLE, description) for name, description in _COUNTS.items()),
        column("judge_score_sum", REAL, "Sum of the judge scores of M5's turns."),
        *(
            _metric_column(metric.id, metric.name + ".")
            for metric in METRICS
            if metric.table == "dialogues"
        ),
        NULL_REASONS_COLUMN,
    ),
)

TABLES = (TURNS, DIALOGUES)
