"""What the suite reads and writes: data only."""

import polars as pl

from fastscore.suites.columns import (
    DIALOGUE_COLUMN,
    NULL_REASONS_COLUMN,
    REAL,
    TEXT,
    WHOLE,
    column,
    metric_column,
    optional,
    text_field,
)
from fastscore.suites.declarations import ALL_METRICS, Column, Needed, Source, Table, Vocabulary
from fastscore.suites.score_dialogue import metrics

LABELS = ("dialogue_uid", "challenge_uid", "challenge_type", "miner_uid", "miner_hotkey")
DIALOGUE_KEY = ("dialogue_uid", "challenge_uid", "miner_uid", "miner_hotkey")
GROUPS = ("miner_uid", "challenge_uid", "challenge_type")

STATUSES = ("ok", "no_steps")
STATUS_DTYPE = pl.Enum(STATUSES)


SOURCE = Source(
    read_in_path="",
    columns=(
        Column(
            "event",
            "text",
            otherwise="null",
            description=(
                "predicted, revealed or utterance_complete; rows of other events only "
                "name their utterance."
            ),
            needed=Needed(ALL_METRICS),
            vocabulary=Vocabulary(
                known=("predicted", "revealed", "utterance_complete"),
                needed=("predicted", "utterance_complete"),
            ),
        ),
        Column(
            "utterance_index",
            "integer",
            accepts=("boolean", "number", "string"),
            description="Which utterance of the dialogue; rows without one are ignored.",
            needed=Needed(ALL_METRICS),
        ),
        Column(
            "step",
            "integer",
            accepts=("boolean",),
            otherwise="null",
            description="Which step of the utterance, from 0; usable only as a 64-bit integer.",
            needed=Needed(ALL_METRICS, where=("event", "predicted")),
        ),
        Column(
            "prediction",
            "text",
            accepts=("falsy",),
            only_where=("event", "predicted"),
            description="The miner's guess of the whole utterance (event predicted).",
            needed=Needed(ALL_METRICS),
        ),
        Column(
            "ground_truth",
            "text",
            accepts=("falsy",),
            only_where=("event", "utterance_complete"),
            description="What was said (event utterance_complete).",
            needed=Needed(ALL_METRICS),
        ),
        text_field("dialogue_uid", "Names the dialogue; without it the file is the dialogue."),
        text_field("challenge_uid", "The challenge to which the dialogue belongs."),
        text_field(
            "challenge_type",
            "The kind of challenge; the dialogue's first one counts.",
            otherwise="null",
        ),
        text_field("miner_uid", "The miner that predicted.", "miner"),
        text_field("miner_hotkey", "The miner's hotkey.", "hotkey"),
    ),
    dialogue_key=DIALOGUE_KEY,
    variants=(("challenge", "challenge_uid"), ("miner", "miner_uid"), ("hotkey", "miner_hotkey")),
    formats=("jsonl", "json", "parquet"),
)

_UTTERANCE_INDEX = column("utterance_index", WHOLE, "Index of the utterance in its dialogue.")


STEPS = Table(
    name="steps",
    grain="a step of a completed utterance",
    columns=(
        DIALOGUE_COLUMN,
        _UTTERANCE_INDEX,
        column("step", WHOLE, "Step, from 0."),
        column(
            "prediction",
            TEXT,
            "The step's last prediction, stripped of white space and of one final "
            "EOF. Empty without a prediction.",
        ),
        optional("line", WHOLE, "1-based line of the prediction. Null if the step has none."),
        metric_column(metrics.LEXICAL_SIMILARITY, "1 - edit distance / length of the longer text."),
        metric_column(metrics.SEMANTIC_COSINE_RAW, "Cosine of prediction and ground truth."),
        metric_column(metrics.SEMANTIC_SIMILARITY, "Similarity of meaning by the semantic mode."),
        metric_column(metrics.EARLINESS, "1 / (step + 1)."),
        metric_column(metrics.PPPL_PREDICTION, "Pseudo-perplexity of the prediction."),
        metric_column(metrics.PPPL_GROUND_TRUTH, "Pseudo-perplexity of the ground truth."),
        metric_column(metrics.PPPL_PENALTY, "Factor of U_step for perplexity."),
        metric_column(metrics.U_STEP, "Utility of the step."),
        NULL_REASONS_COLUMN,
    ),
)

UTTERANCES = Table(
    name="utterances",
    grain="a completed utterance",
    columns=(
        DIALOGUE_COLUMN,
        _UTTERANCE_INDEX,
        column(
            "ground_truth",
            TEXT,
            "The last ground truth, stripped of white space and of one final EOF.",
        ),
        column("total_steps", WHOLE, "Steps of the utterance."),
        optional("best_step", WHOLE, "Earliest step of the highest utility. Null without steps."),
        metric_column(metrics.U_BEST, "Utility of the best step. Null without steps."),
        column("status", STATUS_DTYPE, "ok, or no_steps: nothing to score."),
        column("line", WHOLE, "1-based line of the last utterance_complete."),
        NULL_REASONS_COLUMN,
    ),
)

DIALOGUES = Table(
    name="dialogues",
    grain="a dialogue",
    columns=(
        DIALOGUE_COLUMN,
        *(optional(label, TEXT, f"The log's {label}.") for label in LABELS),
        column("file", TEXT, "Input of the dialogue's first row."),
        column("n_utterances", WHOLE, "Completed utterances."),
        column("n_scored", WHOLE, "Completed utterances that have steps."),
        column("n_incomplete", WHOLE, "Utterances without utterance_complete, which are left out."),
        column("n_predictions", WHOLE, "Rows of event predicted."),
        column(
            "n_predictions_unscored",
            WHOLE,
            "Of these, rows that no step uses: overwritten by a later one, of an "
            "unusable step, or of an incomplete utterance.",
        ),
        column("U_best_sum", REAL, "Sum of U_best."),
        metric_column(metrics.AVERAGE_U_BEST_EARLY, "Mean U_best of the scored utterances."),
        metric_column(metrics.SEMANTIC_BASELINE_B, "Mean cosine of random pairs of ground truths."),
        NULL_REASONS_COLUMN,
    ),
)

TABLES = (STEPS, UTTERANCES, DIALOGUES)
