"""The scores of steps, utterances and dialogues.

Every double is computed in the order of operations of the published script, so the lexical part
is equal to it bit by bit; the semantic part is, for equal cosines.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices
from fastscore_kernels import (
    cosine_pairs,
    levenshtein_similarity_pairs,
    mean_pair_cosine_groups,
    segment_first_argmax,
)

from fastscore.suites.base import Events
from fastscore.suites.columns import reasons_of_kinds
from fastscore.suites.declarations import NullReason
from fastscore.suites.score_dialogue.jaccard import word_jaccard
from fastscore.suites.score_dialogue.options import ScoreDialogue
from fastscore.suites.score_dialogue.perplexity import step_perplexities
from fastscore.suites.score_dialogue.schema import (
    DIALOGUES,
    GROUPS,
    LABELS,
    METRICS,
    PERPLEXITIES,
    STATUS_DTYPE,
    STEPS,
    UTTERANCES,
)
from fastscore.suites.summary import summarise_metrics

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

Reasons = dict[str, NullReason]

SMALLEST_RANGE = 1e-6
"""The least that 1 - b counts as, so that a baseline of 1 divides by something."""


def distinct_texts(events: Events, options: ScoreDialogue) -> pl.Series:
    """Return the distinct texts whose vectors the scores need.

    Those are all predictions and ground truths of the steps; and, for the baseline, the ground
    truths of utterances without steps.
    """
    if not options.needs_vectors:
        return pl.Series("text", [], dtype=pl.String)
    predictions = events.frames["steps"]["prediction"]
    ground_truths = events.frames["utterances"]["ground_truth"]
    return pl.concat([predictions, ground_truths]).unique(maintain_order=True).rename("text")


def score_events(
    events: Events, vectors: "VectorView", options: ScoreDialogue
) -> dict[str, pl.DataFrame]:
    """Score the steps, utterances and dialogues of `group_events`.

    Parameters
    ----------
    events
        Whole dialogues.
    vectors
        A vector for each of `distinct_texts`.
    options
        Weights, semantic mode and baseline.

    Returns
    -------
    dict of pl.DataFrame
        ``steps``, ``utterances`` and ``dialogues`` in the schema of the suite's tables.
    """
    dialogues, utterances = events.frames["dialogues"], events.frames["utterances"]
    dialogue_row = utterances["dialogue_row"].to_numpy()
    ground_truth_code = (
        vectors.codes(utterances["ground_truth"]).astype(np.int64)
        if options.needs_vectors
        else np.zeros(0, dtype=np.int64)
    )
    baseline = (
        _baselines(utterances, ground_truth_code, dialogues.height, vectors, options)
        if options.calibrates
        else None
    )
    steps = _score_steps(events, ground_truth_code, baseline, vectors, options)
    best = _score_utterances(utterances, steps["U_step"].to_numpy())

    names = utterances.select(
        dialogues["dialogue"].gather(dialogue_row).alias("dialogue"), "utterance_index"
    )
    utterance_row = events.frames["steps"]["utterance_row"]
    steps = pl.concat(
        [names.select(pl.all().gather(utterance_row)), steps], how="horizontal"
    ).select(*STEPS.schema)
    scored = pl.concat([names, best], how="horizontal").select(*UTTERANCES.schema)
    return {
        "steps": steps,
        "utterances": scored,
        "dialogues": _score_dialogues(dialogues, dialogue_row, scored, baseline),
    }


def _score_steps(
    events: Events,
    ground_truth_code: Indices,
    baseline: Float64Array | None,
    vectors: "VectorView",
    options: ScoreDialogue,
) -> pl.DataFrame:
    frame, utterances = events.frames["steps"], events.frames["utterances"]
    parts = _similarities(events, ground_truth_code, baseline, vectors, options)
    earliness = 1.0 / (frame["step"].to_numpy() + 1)
    utility = _mixed(parts, options.lex_weight) * earliness
    judged = None
    if vectors.log_perplexities is not None:
        judged = step_perplexities(
            frame["prediction"],
            utterances["ground_truth"].gather(frame["utterance_row"]),
            vectors.log_perplexities,
            options.pppl_weight,
        )
        utility = utility * judged.factor
    perplexities = {
        "pppl_prediction": None if judged is None else judged.prediction,
        "pppl_ground_truth": None if judged is None else judged.ground_truth,
        "pppl_penalty": None if judged is None else judged.penalty,
    }
    columns = [
        _part_column(name, part, frame.height).fill_nan(None) for name, part in perplexities.items()
    ]
    reasons, kind = _step_reasons(
        [name for name in parts if name in options.switched_off],
        columns if judged else [],
        frame.height,
    )
    return frame.select(
        "step",
        "prediction",
        "line",
        *(_part_column(name, part, frame.height) for name, part in parts.items()),
        pl.Series("earliness", earliness, dtype=pl.Float64),
        *columns,
        pl.Series("U_step", utility, dtype=pl.Float64),
        reasons_of_kinds(reasons, kind),
    )


def _similarities(
    events: Events,
    ground_truth_code: Indices,
    baseline: Float64Array | None,
    vectors: "VectorView",
    options: ScoreDialogue,
) -> dict[str, Float64Array | None]:
    """Compare each step's prediction with its ground truth; None is what is switched off."""
    frame, utterances = events.frames["steps"], events.frames["utterances"]
    utterance_row = frame["utterance_row"].to_numpy()
    prediction = frame["prediction"]
    ground_truth = utterances["ground_truth"].gather(utterance_row)
    cosine: Float64Array | None = None
    semantic: Float64Array | None = None
    if options.needs_vectors:
        cosine = cosine_pairs(
            vectors.matrix, vectors.codes(prediction), ground_truth_code[utterance_row]
        )
        if baseline is None:
            both_empty = ((prediction == "") & (ground_truth == "")).to_numpy()
            semantic = cosine = np.where(both_empty, 0.0, cosine)
        else:
            dialogue_of_step = utterances["dialogue_row"].to_numpy()[utterance_row]
            semantic = _calibrate(cosine, baseline[dialogue_of_step])
    elif options.scores_semantic:
        semantic = word_jaccard(prediction, ground_truth).to_numpy()
    return {
        "lexical_similarity": levenshtein_similarity_pairs(prediction, ground_truth)
        if options.scores_lexical
        else None,
        "semantic_cosine_raw": cosine,
        "semantic_similarity": semantic,
    }


def _mixed(parts: dict[str, Float64Array | None], lex_weight: float) -> Float64Array | float:
    """Mix the lexical and the semantic part; one that is switched off counts 0.0, as published."""
    lexical, semantic = parts["lexical_similarity"], parts["semantic_similarity"]
    lexical_part = 0.0 if lexical is None else lexical
    semantic_part = 0.0 if semantic is None else semantic
    return lexical_part * lex_weight + semantic_part * (1 - lex_weight)


def _step_reasons(
    switched_off: list[str], perplexities: list[pl.Series], n_steps: int
) -> tuple[list[Reasons], Indices]:
    """Return the kinds of reasons that steps have, and each step's kind.

    A kind is a sum: 1, 2 and 4 for each perplexity column that is null in the step. Without a
    masked model there are no such columns: the extension is off for every row alike.
    """
    names = [column.name for column in perplexities]
    kinds: list[Reasons] = []
    for number in range(2 ** len(names)):
        null = [name for bit, name in enumerate(names) if number >> bit & 1]
        kinds.append(dict.fromkeys((*switched_off, *null), "not_applicable"))
    kind = np.zeros(n_steps, dtype=np.int64)
    for bit, column in enumerate(perplexities):
        if column.null_count():
            kind += column.is_null().to_numpy().astype(np.int64) << bit
    return kinds, kind


def _score_utterances(utterances: pl.DataFrame, utility: Float64Array) -> pl.DataFrame:
    offsets = np.append(0, np.cumsum(utterances["total_steps"].to_numpy())).astype(np.int64)
    best_step: Indices = segment_first_argmax(utility, offsets)
    has_steps = best_step >= 0
    best = np.full(utterances.height, np.nan)
    best[has_steps] = utility[offsets[:-1][has_steps] + best_step[has_steps]]
    missing: Reasons = {"U_best": "missing_input"}
    return utterances.select(
        "ground_truth",
        "total_steps",
        _keep_where(has_steps, pl.Series("best_step", best_step, dtype=pl.Int64)),
        _keep_where(has_steps, pl.Series("U_best", best)),
        pl.Series("status", ["ok", "no_steps"], dtype=STATUS_DTYPE).gather(
            (~has_steps).astype(np.int64)
        ),
        "line",
        reasons_of_kinds([{}, missing], (~has_steps).astype(np.int64)),
    )


def _score_dialogues(
    dialogues: pl.DataFrame,
    dialogue_row: Indices,
    utterances: pl.DataFrame,
    baseline: Float64Array | None,
) -> pl.DataFrame:
    scored = (utterances["status"] == "ok").to_numpy()
    rows, best = dialogue_row[scored], utterances["U_best"].drop_nulls().to_numpy()
    n_scored = np.bincount(rows, minlength=dialogues.height)
    # bincount adds in row order, as a loop over the utterances does
    best_sum = np.bincount(rows, weights=best, minlength=dialogues.height).astype(np.float64)
    any_scored = n_scored > 0
    average = best_sum / np.maximum(n_scored, 1)

    off: Reasons = {} if baseline is not None else {"semantic_baseline_b": "not_applicable"}
    unscored: Reasons = {"average_U_best_early": "missing_input", **off}
    return dialogues.select(
        "dialogue",
        *LABELS,
        "file",
        "n_utterances",
        pl.Series("n_scored", n_scored, dtype=pl.Int64),
        "n_incomplete",
        "n_predictions",
        "n_predictions_unscored",
        pl.Series("U_best_sum", best_sum),
        _keep_where(any_scored, pl.Series("average_U_best_early", average)),
        _part_column("semantic_baseline_b", baseline, dialogues.height),
        reasons_of_kinds([off, unscored], (~any_scored).astype(np.int64)),
    ).select(*DIALOGUES.schema)


def _baselines(
    utterances: pl.DataFrame,
    ground_truth_code: Indices,
    n_dialogues: int,
    vectors: "VectorView",
    options: ScoreDialogue,
) -> Float64Array:
    """Return each dialogue's mean cosine of random pairs of its non-empty ground truths."""
    pool = (utterances["ground_truth"] != "").to_numpy()
    sizes = np.bincount(utterances["dialogue_row"].to_numpy()[pool], minlength=n_dialogues)
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int64)
    means: Float64Array = mean_pair_cosine_groups(
        vectors.matrix,
        ground_truth_code[pool],
        offsets,
        max(1, options.baseline_pairs),
        options.baseline_seed,
    )
    return means


def _calibrate(cosine: Float64Array, baseline: Float64Array) -> Float64Array:
    calibrated = (cosine - baseline) / np.maximum(1.0 - baseline, SMALLEST_RANGE)
    clamped: Float64Array = np.clip(calibrated, 0.0, 1.0)
    return clamped


def _part_column(name: str, values: Float64Array | None, height: int) -> pl.Series:
    if values is None:
        return pl.Series(name, [None], dtype=pl.Float64).new_from_index(0, height)
    return pl.Series(name, values, dtype=pl.Float64)


def _keep_where(present: npt.NDArray[np.bool_], values: pl.Series) -> pl.Series:
    return values.set(pl.Series(~present), None)


def summarise_dialogues(
    tables: Mapping[str, pl.LazyFrame], options: ScoreDialogue, *, cluster: str | None = None
) -> pl.DataFrame:
    """Summarise every metric that was asked for over all dialogues, by miner and challenge."""
    asked = [one for one in METRICS if options.pppl_model or one.id not in PERPLEXITIES]
    return summarise_metrics(
        tables,
        asked,
        GROUPS,
        suite="score_dialogue",
        cluster=cluster,
        switched_off=options.switched_off,
    )
