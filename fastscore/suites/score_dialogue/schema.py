"""What the suite reads and writes: data only."""

import polars as pl

from fastscore.suites.declarations import ALL_METRICS, Column, Metric, OutputColumn, Source, Table
from fastscore.suites.output_columns import NULL_REASONS_COLUMN, REAL, TEXT, WHOLE, column

LABELS = ("dialogue_uid", "challenge_uid", "challenge_type", "miner_uid", "miner_hotkey")
DIALOGUE_KEY = ("dialogue_uid", "challenge_uid", "miner_uid", "miner_hotkey")
GROUPS = ("miner_uid", "challenge_uid", "challenge_type")

STATUSES = ("ok", "no_steps")
STATUS_DTYPE = pl.Enum(STATUSES)


_SPECIFICATION = "score_dialogue README (babelbit_subnet, commit 5b7869b)"
_EXTENSION = "Extension of fastscore: Salazar et al. 2020, Masked Language Model Scoring, section 2"
_PERPLEXITY = "exp(-1/N * sum_i ln p(t_i | t with token i masked)), over the text's N tokens"
PERPLEXITIES = frozenset({"pppl_prediction", "pppl_ground_truth", "pppl_penalty"})
_NO_PERPLEXITY = (
    "in every row, unlisted, without pppl_model; not_applicable where the text has no token"
)

SOURCE = Source(
    columns=(
        Column(
            name="event",
            kind="text",
            otherwise="null",
            description="predicted, revealed or utterance_complete; rows of other events only "
            "name their utterance.",
            needed_by=ALL_METRICS,
            expects=("predicted", "utterance_complete"),
            knows=("predicted", "revealed", "utterance_complete"),
        ),
        Column(
            name="utterance_index",
            kind="integer",
            accepts=("boolean", "number", "string"),
            description="Which utterance of the dialogue; rows without one are ignored.",
            needed_by=ALL_METRICS,
        ),
        Column(
            name="step",
            kind="integer",
            accepts=("boolean",),
            otherwise="null",
            description="Which step of the utterance, from 0; usable only as a 64-bit integer.",
            needed_by=ALL_METRICS,
            needed_where=("event", "predicted"),
        ),
        Column(
            name="prediction",
            kind="text",
            accepts=("falsy",),
            only_where=("event", "predicted"),
            description="The miner's guess of the whole utterance (event predicted).",
            needed_by=ALL_METRICS,
        ),
        Column(
            name="ground_truth",
            kind="text",
            accepts=("falsy",),
            only_where=("event", "utterance_complete"),
            description="What was said (event utterance_complete).",
            needed_by=ALL_METRICS,
        ),
        Column(
            name="dialogue_uid",
            kind="text",
            accepts=("integer",),
            description="Names the dialogue; without it the file is the dialogue.",
        ),
        Column(
            name="challenge_uid",
            kind="text",
            accepts=("integer",),
            description="The challenge to which the dialogue belongs.",
        ),
        Column(
            name="challenge_type",
            kind="text",
            accepts=("integer",),
            otherwise="null",
            description="The kind of challenge; the dialogue's first one counts.",
        ),
        Column(
            name="miner_uid",
            kind="text",
            accepts=("integer",),
            description="The miner that predicted.",
        ),
        Column(
            name="miner_hotkey",
            kind="text",
            accepts=("integer",),
            description="The miner's hotkey.",
        ),
    ),
    dialogue_key=DIALOGUE_KEY,
    formats=("jsonl", "json", "parquet"),
)

_DIALOGUE = column(
    "dialogue",
    TEXT,
    "Id of the dialogue: its file, or its dialogue_uid followed by "
    "/challenge=, /miner= and /hotkey= where those labels stand.",
)
_UTTERANCE_INDEX = column("utterance_index", WHOLE, "Index of the utterance in its dialogue.")


def _metric_column(name: str, description: str, *, nullable: bool = True) -> OutputColumn:
    return column(name, REAL, description, metric=name, nullable=nullable)


STEPS = Table(
    name="steps",
    grain="a step of a completed utterance",
    dialogue_key=("dialogue",),
    columns=(
        _DIALOGUE,
        _UTTERANCE_INDEX,
        column("step", WHOLE, "Step, from 0."),
        column(
            "prediction",
            TEXT,
            "The step's last prediction, stripped of white space and of one final "
            "EOF; empty where there is none.",
        ),
        column(
            "line",
            WHOLE,
            "1-based line of the prediction; null where the step has none.",
            nullable=True,
        ),
        _metric_column("lexical_similarity", "1 - edit distance / length of the longer text."),
        _metric_column("semantic_cosine_raw", "Cosine of prediction and ground truth."),
        _metric_column("semantic_similarity", "What the semantic mode makes of the two texts."),
        _metric_column("earliness", "1 / (step + 1).", nullable=False),
        _metric_column("pppl_prediction", "Pseudo-perplexity of the prediction."),
        _metric_column("pppl_ground_truth", "Pseudo-perplexity of the ground truth."),
        _metric_column("pppl_penalty", "What U_step was multiplied by for perplexity."),
        _metric_column("U_step", "Utility of the step.", nullable=False),
        NULL_REASONS_COLUMN,
    ),
)

UTTERANCES = Table(
    name="utterances",
    grain="a completed utterance",
    dialogue_key=("dialogue",),
    columns=(
        _DIALOGUE,
        _UTTERANCE_INDEX,
        column(
            "ground_truth",
            TEXT,
            "The last ground truth, stripped of white space and of one final EOF.",
        ),
        column("total_steps", WHOLE, "Steps of the utterance."),
        column(
            "best_step",
            WHOLE,
            "Earliest step of the highest utility; null without steps.",
            nullable=True,
        ),
        _metric_column("U_best", "Utility of the best step; null without steps."),
        column("status", STATUS_DTYPE, "ok, or no_steps: nothing to score."),
        column("line", WHOLE, "1-based line of the last utterance_complete."),
        NULL_REASONS_COLUMN,
    ),
)

DIALOGUES = Table(
    name="dialogues",
    grain="a dialogue",
    dialogue_key=("dialogue",),
    columns=(
        _DIALOGUE,
        *(column(label, TEXT, f"The log's {label}.", nullable=True) for label in LABELS),
        column("file", TEXT, "Input of the dialogue's first row."),
        column("n_utterances", WHOLE, "Completed utterances."),
        column("n_scored", WHOLE, "Completed utterances that have steps."),
        column(
            "n_incomplete",
            WHOLE,
            "Utterances without utterance_complete; left out.",
        ),
        column("n_predictions", WHOLE, "Rows of event predicted."),
        column(
            "n_predictions_unscored",
            WHOLE,
            "Of these, rows that no step uses: overwritten by a later one, of an "
            "unusable step, or of an incomplete utterance.",
        ),
        column("U_best_sum", REAL, "Sum of U_best."),
        _metric_column("average_U_best_early", "Mean U_best of the scored utterances."),
        _metric_column("semantic_baseline_b", "Mean cosine of random pairs of ground truths."),
        NULL_REASONS_COLUMN,
    ),
)

TABLES = (STEPS, UTTERANCES, DIALOGUES)

METRICS = (
    Metric(
        id="lexical_similarity",
        name="Lexical similarity",
        table="steps",
        formula="max(0, 1 - levenshtein(p, g) / max(len(p), len(g))); 0 if both are empty",
        minimum=0.0,
        maximum=1.0,
        better="higher",
        null_rule="not_applicable at lex_weight 0",
        source=f"{_SPECIFICATION}, Scoring overview",
    ),
    Metric(
        id="semantic_cosine_raw",
        name="Raw cosine",
        table="steps",
        formula="e(p) . e(g), with e the L2-normalised embedding",
        minimum=-1.0,
        maximum=1.0,
        better="higher",
        null_rule="not_applicable at lex_weight 1 and in mode jaccard",
        source=f"{_SPECIFICATION}, Output fields",
        is_secondary=True,
    ),
    Metric(
        id="semantic_similarity",
        name="Semantic similarity",
        table="steps",
        formula="min(1, max(0, (c - b) / max(1 - b, 1e-6))); mode cosine: c; mode jaccard: "
        "|P & G| / |P | G| of the word sets",
        minimum=-1.0,
        maximum=1.0,
        better="higher",
        null_rule="not_applicable at lex_weight 1",
        source=f"{_SPECIFICATION}, section 1",
    ),
    Metric(
        id="earliness",
        name="Earliness",
        table="steps",
        formula="1 / (step + 1)",
        minimum=0.0,
        maximum=1.0,
        better="higher",
        null_rule="never",
        source=f"{_SPECIFICATION}, Scoring overview",
        is_secondary=True,
    ),
    Metric(
        id="pppl_prediction",
        name="Pseudo-perplexity of the prediction",
        table="steps",
        formula=_PERPLEXITY,
        minimum=1.0,
        maximum=None,
        better="lower",
        null_rule=_NO_PERPLEXITY,
        source=_EXTENSION,
        is_secondary=True,
    ),
    Metric(
        id="pppl_ground_truth",
        name="Pseudo-perplexity of the ground truth",
        table="steps",
        formula=_PERPLEXITY,
        minimum=1.0,
        maximum=None,
        better="neither",
        null_rule=_NO_PERPLEXITY,
        source=_EXTENSION,
        is_secondary=True,
    ),
    Metric(
        id="pppl_penalty",
        name="Perplexity penalty",
        table="steps",
        formula="exp(-pppl_weight * max(0, ln pppl_prediction - ln pppl_ground_truth))",
        minimum=0.0,
        maximum=1.0,
        better="higher",
        null_rule="in every row, unlisted, without pppl_model; not_applicable where either text "
        "has no token: U_step is then not penalised",
        source=_EXTENSION,
    ),
    Metric(
        id="U_step",
        name="Utility of a step",
        table="steps",
        formula="(lexical_similarity * w + semantic_similarity * (1 - w)) * earliness, times "
        "pppl_penalty where there is one",
        minimum=-1.0,
        maximum=1.0,
        better="higher",
        null_rule="never",
        source=f"{_SPECIFICATION}, Scoring overview",
    ),
    Metric(
        id="U_best",
        name="Best utility of an utterance",
        table="utterances",
        formula="max over steps of U_step; best_step is the earliest step that reaches it",
        minimum=-1.0,
        maximum=1.0,
        better="higher",
        null_rule="missing_input where the utterance has no step",
        source=f"{_SPECIFICATION}, Scoring overview",
        same_test_as="average_U_best_early",
    ),
    Metric(
        id="average_U_best_early",
        name="Dialogue average U (best-early)",
        table="dialogues",
        formula="U_best_sum / n_scored",
        minimum=-1.0,
        maximum=1.0,
        better="higher",
        null_rule="missing_input where no utterance was scored",
        source=f"{_SPECIFICATION}, Scoring overview",
        numerator="U_best_sum",
        denominator="n_scored",
        headline=True,
    ),
    Metric(
        id="semantic_baseline_b",
        name="Semantic baseline",
        table="dialogues",
        formula="mean over random pairs i != j of e(g_i) . e(g_j); 0 for fewer than two "
        "non-empty ground truths",
        minimum=-1.0,
        maximum=1.0,
        better="neither",
        null_rule="not_applicable at lex_weight 1 and in the modes cosine and jaccard",
        source=f"{_SPECIFICATION}, section 1",
        is_secondary=True,
    ),
)
