"""What the suite reads and writes: data only."""

import polars as pl

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
    Metric,
    Needed,
    RowId,
    Source,
    Table,
    Vocabulary,
)
from fastscore.suites.memory_finance.metrics import (
    COMPLIANCE_LABELS,
    EXPLANATION_METRICS,
    JUDGE_SCORE_1_5,
    MEMORY_SOURCES,
    METRICS,
    PROFILE_METRICS,
    RECALL_METRICS,
    RISK_METRICS,
)

LABELS = ("run_id", "scenario_type", "difficulty", "dialog_status")
GROUPS = ("scenario_type", "difficulty")

COMPLIANCE_DTYPE = pl.Enum(COMPLIANCE_LABELS)
RESOLVERS = (
    "profile_field",
    "constraints_gt",
    "preferences_gt",
    "history_user_turn",
    "history_abs_turn",
    "unresolved",
)
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


def _ids(*metrics: Metric) -> tuple[str, ...]:
    return tuple(metric.id for metric in metrics)


def _label(name: str, description: str) -> Column:
    return Column(name, "text", otherwise="null", description=description)


TURN_STATUS = Column(
    "turn_status",
    "text",
    description="ok, or why there is no reply.",
    needed=Needed(ALL_METRICS),
    vocabulary=Vocabulary(known=("ok", "timeout", "error"), needed=("ok",)),
)
COMPLIANCE_LABEL = Column(
    "compliance_label_gt",
    "text",
    description="In gt_turn_tags; any other word is compliant.",
    vocabulary=Vocabulary(known=("", *COMPLIANCE_LABELS), in_any_case=True),
)
SOURCE = Source(
    read_in_path="",
    columns=(
        text_field(
            "dialog_id", "Names the dialogue; dialogues of one id count together in M1 and M3-M5."
        ),
        text_field("run_id", "The run that was traced."),
        text_field("trace_version", "Version of the trace's layout; v1 without one."),
        _label("scenario_type", "The kind of conversation, for grouping."),
        _label("difficulty", "How hard it is, for grouping."),
        _label("dialog_status", "ok, partial, failed or skipped; only counted."),
        json_field(
            "turns",
            "Array of traced turns; null is none.",
            *ALL_METRICS,
            items=(
                Column(
                    "pred_assistant_text",
                    "text",
                    description="The assistant's reply.",
                    needed=Needed(ALL_METRICS),
                ),
                json_field("turn_pair_id", "The number of the turn."),
                TURN_STATUS,
                json_field(
                    "gt_turn_tags",
                    "Object: what the turn's labels require.",
                    needed=Needed(
                        _ids(*RECALL_METRICS, *RISK_METRICS, *EXPLANATION_METRICS),
                        affects=("compliance_label_acc",),
                    ),
                ),
                json_field("recall", "Object: what the assistant was reminded of."),
                json_field(
                    "compliance", "Object: violations that the assistant's own check found."
                ),
                json_field("profile_snapshot", "Object: the profile as the assistant knew it."),
                Column("user_text", "text", description="What the user said."),
                Column("role", "text", description="Who speaks, where a turn is one text."),
                Column("text", "text", description="What is said, where a turn is one text."),
            ),
        ),
        json_field(
            "valid_dialog",
            "Whether the dialogue is scored at all: any value, by its truth.",
            *ALL_METRICS,
            accepts=("boolean",),
        ),
        json_field(
            "profile_gt", "Object: the user's labelled profile, or null.", *_ids(*PROFILE_METRICS)
        ),
        json_field(
            "blueprint", "Object whose forbidden_list names phrases that no reply may have."
        ),
        json_field("raw_turns", "Array of the dataset's turns, which history keys count, or null."),
    ),
    formats=("jsonl", "json"),
    row_dialogues=("jsonl", "json"),
    row_id=RowId(columns=("dialog_id",)),
    variants=(("run", "run_id"),),
    shard_bytes=64 << 20,
)


_PLACE = (
    column("file", TEXT, "The input that holds the dialogue."),
    column("line", WHOLE, "1-based line of the dialogue."),
    DIALOGUE_COLUMN,
    optional("dialog_id", TEXT, "The trace's dialog_id."),
    column("run_id", TEXT, "The trace's run_id. Default: empty."),
    column("trace_version", TEXT, "The trace's version. Default: v1."),
)

TURNS = Table(
    name="turns",
    grain="a turn of a valid dialogue",
    columns=(
        *_PLACE,
        column("turn_pair_id", WHOLE, "The trace's number of the turn. Default: 0."),
        column("eligible_m1", BOOLEAN, "Status ok, a reply and at least one resolvable key."),
        column("eligible_m2", BOOLEAN, "Always false: M2 is a measure of dialogues."),
        column("eligible_m3", BOOLEAN, "Status ok, a reply and at least one required risk tag."),
        column("eligible_m4", BOOLEAN, "Status ok, and a reply."),
        column("eligible_m5", BOOLEAN, "Status ok, a reply and at least one required element."),
        column("required_keys_raw", TEXTS, "The memory keys that the label requires."),
        column("resolved_keys", pl.List(RESOLVED_KEY_DTYPE), "Target of each key."),
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
        column("rubric_hit_items", TEXTS, "Required elements that the reply has, in order."),
        metric_column(
            JUDGE_SCORE_1_5,
            "1 to 5 by the share of elements. Null without elements or without a reply.",
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


DIALOGUES = Table(
    name="dialogues",
    grain="a line of a trace",
    columns=(
        *_PLACE,
        *(optional(label, TEXT, f"The trace's {label}.") for label in LABELS if label != "run_id"),
        column("valid", BOOLEAN, "Whether the dialogue is scored: the truth of valid_dialog."),
        column("eligible_m2", BOOLEAN, "Valid and with a labelled profile that is not empty."),
        *(column(name, WHOLE, description) for name, description in _COUNTS.items()),
        column("judge_score_sum", REAL, "Sum of the judge scores of M5's turns."),
        *(metric_column(metric) for metric in METRICS if metric.table == "dialogues"),
        NULL_REASONS_COLUMN,
    ),
)

TABLES = (TURNS, DIALOGUES)
