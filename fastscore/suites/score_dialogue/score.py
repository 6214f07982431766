"""The scores of steps, utterances and dialogues.

Every double is computed in the order of operations of the published script, so the lexical part
is equal to it bit by bit; the semantic part is, for equal cosines.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices
from fastscore_kernels import segment_first_argmax

from fastscore.suites.base import Events, Summarised
from fastscore.suites.columns import find_nulls, switched_off
from fastscore.suites.score_dialogue.metrics import (
    METRICS,
    PERPLEXITIES,
    U_BEST,
    compare_texts,
    find_baselines,
    mix_parts,
    run_facts,
    step_perplexities,
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
_NULL = pl.Series([None], dtype=pl.Float64)
_STATUSES = pl.Series("status", ["ok", "no_steps"], dtype=STATUS_DTYPE)


def score_events(
    events: Events, vectors: "VectorView", options: ScoreDialogue
) -> dict[str, pl.DataFrame]:
    """Score the steps, utterances and dialogues of `read_events`."""
    dialogues, utterances = events.frames["dialogues"], events.frames["utterances"]
    dialogue_row = utterances["dialogue_row"].to_numpy()
    ground_truth_code = (
        vectors.codes(utterances["ground_truth"]).astype(np.int64)
        if options.needs_vectors
        else np.zeros(0, dtype=np.int64)
    )
    baseline = (
        find_baselines(utterances, ground_truth_code, dialogues.height, vectors, options)
        if options.calibrates
        else None
    )
    steps = _score_steps(events, ground_truth_code, baseline, vectors, options)
    best = _score_utterances(utterances, steps["U_step"].to_numpy())

    names = pl.DataFrame(
        {
            "dialogue": dialogues["dialogue"][dialogue_row],
            "utterance_index": utterances["utterance_index"],
        }
    )
    utterance_row = events.frames["steps"]["utterance_row"]
    steps = names[utterance_row].hstack(steps)[list(STEPS.schema)]
    scored = names.hstack(best)[list(UTTERANCES.schema)]
    return {
        "steps": steps,
        "utterances": scored,
        "dialogues": _score_dialogues(dialogues, dialogue_row, scored, baseline, options),
    }


def _score_steps(
    events: Events,
    ground_truth_code: Indices,
    baseline: Float64Array | None,
    vectors: "VectorView",
    options: ScoreDialogue,
) -> pl.DataFrame:
    frame, utterances = events.frames["steps"], events.frames["utterances"]
    parts = compare_texts(events, ground_truth_code, baseline, vectors, options)
    earliness = 1.0 / (frame["step"].to_numpy() + 1)
    utility = mix_parts(parts, options.lex_weight) * earliness
    if vectors.log_perplexities is not None:
        judged = step_perplexities(
            frame["prediction"],
            utterances["ground_truth"].gather(frame["utterance_row"]),
            vectors.log_perplexities,
            options.pppl_weight,
        )
        utility = utility * judged.factor
        parts |= {
            "pppl_prediction": judged.prediction,
            "pppl_ground_truth": judged.ground_truth,
            "pppl_penalty": judged.penalty,
        }
    parts |= {"earliness": earliness, "U_step": np.asarray(utility)}
    rows = frame[["step", "prediction", "line"]].hstack(
        [_part_column(metric.id, parts.get(metric.id), frame.height) for metric in _OF_STEPS]
    )
    rows = rows.hstack([find_nulls(rows, _OF_STEPS, run_facts(options)).column])
    if vectors.log_perplexities is None:
        return rows
    return rows.with_columns(pl.col(*_PERPLEXITY_IDS).fill_nan(None))


def _score_utterances(utterances: pl.DataFrame, utility: Float64Array) -> pl.DataFrame:
    offsets = np.append(0, np.cumsum(utterances["total_steps"].to_numpy())).astype(np.int64)
    best_step: Indices = segment_first_argmax(utility, offsets)
    has_steps = best_step >= 0
    best = np.full(utterances.height, np.nan)
    best[has_steps] = utility[offsets[:-1][has_steps] + best_step[has_steps]]
    return utterances[["ground_truth", "total_steps", "line"]].hstack(
        [
            _keep_where(has_steps, pl.Series("best_step", best_step, dtype=pl.Int64)),
            _keep_where(has_steps, pl.Series("U_best", best)),
            _STATUSES[(~has_steps).astype(np.int64)],
            find_nulls(utterances, [U_BEST]).column,
        ]
    )


def _score_dialogues(
    dialogues: pl.DataFrame,
    dialogue_row: Indices,
    utterances: pl.DataFrame,
    baseline: Float64Array | None,
    options: ScoreDialogue,
) -> pl.DataFrame:
    # of an utterance without steps there is no best one
    scored = utterances["best_step"].is_not_null().to_numpy()
    rows, best = dialogue_row[scored], utterances["U_best"].drop_nulls().to_numpy()
    n_scored = np.bincount(rows, minlength=dialogues.height)
    # bincount adds in row order, as a loop over the utterances does
    best_sum = np.bincount(rows, weights=best, minlength=dialogues.height).astype(np.float64)
    any_scored = n_scored > 0
    average = best_sum / np.maximum(n_scored, 1)

    nulls = find_nulls(pl.DataFrame({"n_scored": n_scored}), _OF_DIALOGUES, run_facts(options))
    return dialogues.hstack(
        [
            pl.Series("n_scored", n_scored, dtype=pl.Int64),
            pl.Series("U_best_sum", best_sum),
            _keep_where(any_scored, pl.Series("average_U_best_early", average)),
            _part_column("semantic_baseline_b", baseline, dialogues.height),
            nulls.column,
        ]
    )[list(DIALOGUES.schema)]


def _part_column(name: str, values: Float64Array | None, height: int) -> pl.Series:
    if values is None:
        return _NULL.new_from_index(0, height).alias(name)
    return pl.Series(name, values, dtype=pl.Float64)


def _keep_where(present: npt.NDArray[np.bool_], values: pl.Series) -> pl.Series:
    return values if present.all() else values.set(pl.Series(~present), None)


def summarised(options: ScoreDialogue, columns: Sequence[str]) -> list[Summarised]:
    """Summarise every metric that was asked for."""
    asked = [one for one in METRICS if options.pppl_model or one.id not in _PERPLEXITY_IDS]
    off = switched_off(METRICS, run_facts(options))
    return [Summarised(metrics=asked, groups=GROUPS, switched_off=off)]
