"""The scores of steps, utterances and dialogues.

Every double is computed in the order of operations of the published script, so the lexical part
is equal to it bit by bit; the semantic part is, for equal cosines.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.suites.base import Events, Summarised
from fastscore.suites.columns import find_nulls, switched_off
from fastscore.suites.grouping import counts_of
from fastscore.suites.score_dialogue.metrics import (
    AVERAGE,
    EARLY,
    METRICS,
    PERPLEXITIES,
    SEMANTIC,
    U_BEST,
    best_steps,
    compare_texts,
    find_baselines,
    run_facts,
    utility,
)
from fastscore.suites.score_dialogue.options import ScoreDialogue
from fastscore.suites.score_dialogue.schema import (
    DIALOGUES,
    GROUPS,
    STATUS_DTYPE,
    STEPS,
    UTTERANCES,
)

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

_OF_STEPS = [metric for metric in METRICS if metric.table == "steps"]
_OF_DIALOGUES = [metric for metric in METRICS if metric.table == "dialogues"]
_PERPLEXITY_IDS = [metric.id for metric in PERPLEXITIES]
_COMPARED = ("lexical_similarity", "semantic_cosine_raw", *_PERPLEXITY_IDS)
_NULL = pl.lit(None, pl.Float64)
_OK, _NO_STEPS = (pl.lit(status, STATUS_DTYPE) for status in ("ok", "no_steps"))


def score_events(
    events: Events, vectors: "VectorView", options: ScoreDialogue
) -> dict[str, pl.DataFrame]:
    """Score the steps, utterances and dialogues of `read_events`."""
    dialogues, utterances = events.frames["dialogues"], events.frames["utterances"]
    ground_truth_code = np.zeros(0, np.int64)
    if options.needs_vectors:
        ground_truth_code = vectors.codes(utterances["ground_truth"]).astype(np.int64)
    baseline = None
    if options.calibrates:
        baseline = find_baselines(utterances, ground_truth_code, dialogues.height, vectors, options)
    dialogues = dialogues.with_columns(
        semantic_baseline_b=_NULL if baseline is None else pl.Series(baseline)
    )
    of_dialogue = dialogues["dialogue", "semantic_baseline_b"][utterances["dialogue_row"]]
    utterances = utterances.hstack(of_dialogue)
    steps = _score_steps(events.frames["steps"], utterances, ground_truth_code, vectors, options)
    utterances = _score_utterances(utterances, steps["U_step"])
    return {
        "steps": steps[list(STEPS.schema)],
        "utterances": utterances[list(UTTERANCES.schema)],
        "dialogues": _score_dialogues(dialogues, utterances, options)[list(DIALOGUES.schema)],
    }


def _score_steps(
    steps: pl.DataFrame,
    utterances: pl.DataFrame,
    ground_truth_code: Indices,
    vectors: "VectorView",
    options: ScoreDialogue,
) -> pl.DataFrame:
    row = steps["utterance_row"]
    of_utterance = ("dialogue", "utterance_index", "ground_truth", "semantic_baseline_b")
    steps = steps.hstack(utterances[of_utterance][row])
    compared = compare_texts(
        steps["prediction"],
        steps["ground_truth"],
        ground_truth_code[row] if options.needs_vectors else ground_truth_code,
        vectors,
        options,
    )
    steps = (
        steps.lazy()
        .with_columns(compared.get(name, _NULL).alias(name) for name in _COMPARED)
        .with_columns(
            earliness=EARLY,
            semantic_similarity=SEMANTIC[options.semantic] if options.scores_semantic else _NULL,
        )
        .with_columns(U_step=utility(options.lex_weight))
        .collect()
    )
    return steps.hstack([find_nulls(steps, _OF_STEPS, run_facts(options)).column])


def _score_utterances(utterances: pl.DataFrame, utility: pl.Series) -> pl.DataFrame:
    U_best, best_step = best_steps(utility, utterances["total_steps"])
    status = pl.when(best_step.is_null()).then(_NO_STEPS).otherwise(_OK)
    scored = utterances.with_columns(U_best, best_step, status=status)
    return scored.hstack([find_nulls(scored, [U_BEST]).column])


def _score_dialogues(
    dialogues: pl.DataFrame, utterances: pl.DataFrame, options: ScoreDialogue
) -> pl.DataFrame:
    scored = utterances.drop_nulls("best_step")
    rows, best = scored["dialogue_row"].to_numpy(), scored["U_best"].to_numpy()
    # bincount adds in row order, as a loop over the utterances does
    best_sum = np.bincount(rows, weights=best, minlength=dialogues.height).astype(np.float64)
    averaged = dialogues.with_columns(
        n_scored=pl.Series(counts_of(rows, dialogues.height)), U_best_sum=pl.Series(best_sum)
    ).with_columns(average_U_best_early=AVERAGE)
    return averaged.hstack([find_nulls(averaged, _OF_DIALOGUES, run_facts(options)).column])


def summarised(options: ScoreDialogue, columns: Sequence[str]) -> list[Summarised]:
    """Summarise every metric that was asked for."""
    asked = [one for one in METRICS if options.pppl_model or one.id not in _PERPLEXITY_IDS]
    off = switched_off(METRICS, run_facts(options))
    return [Summarised(metrics=asked, groups=GROUPS, switched_off=off)]
