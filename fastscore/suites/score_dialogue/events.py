"""From raw rows to dialogues, utterances and steps.

Rows count in input order: the last ground truth of an utterance and the last prediction of a step
win. An utterance has as many steps as its highest revealed step says, or else as many as it has
predicted rows, whatever their steps. Every step is then in the frame ``steps``, with an empty
prediction where none was made.

Everything is found by integer codes: rows of one dialogue, and of one utterance, mostly follow
each other, so keys are compared with the row before, and only the few distinct runs are sorted.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels import outer_whitespace, string_changes

from fastscore.suites.base import Events
from fastscore.suites.columns import filled, first_rows, gather_or_null, last_rows
from fastscore.suites.declarations import (
    INCOMPLETE,
    LATE_STEPS,
    REPLACED_ROWS,
    empty_rejects,
    rejects_of,
)
from fastscore.suites.grouping import factorize, offsets_of
from fastscore.suites.identity import IDENTITY, identify, refuse_blank_ids
from fastscore.suites.score_dialogue.metrics import PYTHON_WHITESPACE
from fastscore.suites.score_dialogue.options import ScoreDialogue
from fastscore.suites.score_dialogue.schema import LABELS, SOURCE

MAXIMUM_STEPS = 100_000
"""An utterance may have so many steps; a revealed step beyond them is a damaged row."""

_TEXTS = ("prediction", "ground_truth")
_SHOWN_CHARACTERS = 200
_CHECKS = {
    "is_placed": pl.col("utterance_index").is_not_null(),
    # steps that would give an utterance more than the maximum
    "too_far": (
        pl.col("utterance_index").is_not_null()
        & (pl.col("event") == "revealed")
        & (pl.col("step") >= MAXIMUM_STEPS)
    ).fill_null(False),
    "longest": pl.max_horizontal(pl.col(_TEXTS).str.len_bytes().max()),
}
_ROW_FACTS = {
    "step": pl.col("step").fill_null(-1),
    "has_step": pl.col("step").is_not_null(),
    "is_predicted": pl.col("event").eq_missing("predicted"),
    "is_revealed": pl.col("event").eq_missing("revealed"),
    "completes": pl.col("event").eq_missing("utterance_complete"),
}


def read_events(raw: pl.DataFrame, options: ScoreDialogue) -> Events:
    """Group raw rows into dialogues, utterances and steps."""
    checked = raw.select(**_CHECKS)
    too_far = checked["too_far"]
    too_long = _is_too_long(raw, checked["longest"], options.max_text)
    rejects = _rejects(raw, too_far, too_long, options.max_text)
    used = checked["is_placed"] & ~too_far & ~too_long
    named = identify(raw, SOURCE)
    rows, dialogues = _number_rows(named if used.all() else named.filter(used))
    completed, utterances = _completed_utterances(rows)
    total_steps = utterances["total_steps"].to_numpy()
    steps, predicted_at, n_predictions = _lay_out_steps(rows, completed, total_steps)
    n_replaced = n_predictions - int((predicted_at >= 0).sum())
    n_replaced += len(rows.completing) - len(completed)
    steps = steps.hstack(
        [
            strip_text(gather_or_null(rows.frame["prediction"], predicted_at)).alias("prediction"),
            gather_or_null(rows.frame["line"], predicted_at).alias("line"),
        ]
    )
    dialogue_of_step = utterances["dialogue_row"].to_numpy()[steps["utterance_row"].to_numpy()]
    dialogues = dialogues.hstack(
        _dialogue_counts(
            dialogues.height,
            completed=rows.dialogue_of_utterance[completed],
            known=rows.dialogue_of_utterance,
            predicted=rows.dialogue[rows.is_predicted],
            scored=dialogue_of_step[predicted_at >= 0],
        )
    )
    return Events(
        frames={"dialogues": dialogues, "utterances": utterances, "steps": steps},
        rejects=rejects,
        counts=_row_counts(rows, raw.height - rejects.height)
        | _counts_of_unused(rows, completed, total_steps, n_replaced),
        # the published script takes a text that is null for an empty one
        nulls_are_empty=True,
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows that count, each with the numbers of its dialogue and its utterance.

    ``step`` is -1 where a row has none; ``completing`` are the rows that complete an utterance.
    Of each utterance, by number, there are the dialogue and the index.
    """

    frame: pl.DataFrame
    dialogue: Indices
    utterance: Indices
    step: Indices
    has_step: Mask
    is_predicted: Mask
    is_revealed: Mask
    completing: Indices
    dialogue_of_utterance: Indices
    index_of_utterance: Indices


def _number_rows(frame: pl.DataFrame) -> tuple[_Rows, pl.DataFrame]:
    """Return the rows, and a frame of their dialogues."""
    dialogue_of_row, dialogues = _number_dialogues(frame)
    utterance_of_row, dialogue_of_utterance, index_of_utterance = _number_pairs(
        dialogue_of_row, frame["utterance_index"].to_numpy()
    )
    known = frame.select(**_ROW_FACTS)
    rows = _Rows(
        frame=frame,
        dialogue=dialogue_of_row,
        utterance=utterance_of_row,
        step=known["step"].to_numpy(),
        has_step=known["has_step"].to_numpy(),
        is_predicted=known["is_predicted"].to_numpy(),
        is_revealed=known["is_revealed"].to_numpy(),
        completing=np.flatnonzero(known["completes"].to_numpy()),
        dialogue_of_utterance=dialogue_of_utterance,
        index_of_utterance=index_of_utterance,
    )
    return rows, dialogues


def _completed_utterances(rows: _Rows) -> tuple[Indices, pl.DataFrame]:
    """Return the numbers of the utterances that were completed, and a frame of them."""
    frame, n_utterances = rows.frame, len(rows.index_of_utterance)
    completed_at = last_rows(rows.utterance, rows.completing, n_utterances)
    completed = np.flatnonzero(completed_at >= 0)
    completed_at = completed_at[completed]
    utterances = pl.DataFrame(
        {
            "dialogue_row": rows.dialogue_of_utterance[completed],
            "utterance_index": rows.index_of_utterance[completed],
            "ground_truth": strip_text(gather_or_null(frame["ground_truth"], completed_at)),
            "total_steps": _count_steps(rows)[completed],
            "line": frame["line"][completed_at],
        }
    )
    return completed, utterances


def _row_counts(rows: _Rows, n_accepted: int) -> dict[str, int]:
    """Count the rows that were ignored, of those that are no rejects, and the others by event."""
    counts = {
        "predicted": int(rows.is_predicted.sum()),
        "revealed": int(rows.is_revealed.sum()),
        "utterance_complete": len(rows.completing),
    }
    n_rows = rows.frame.height
    return {"ignored": n_accepted - n_rows, **counts, "other": n_rows - sum(counts.values())}


def _counts_of_unused(
    rows: _Rows, completed: Indices, total_steps: Indices, n_replaced: int
) -> dict[str, int]:
    """Count replaced rows, predictions for steps that there are not, incomplete utterances."""
    n_steps = np.full(len(rows.index_of_utterance), np.iinfo(np.int64).max)
    n_steps[completed] = total_steps
    n_late = int((rows.is_predicted & (rows.step >= n_steps[rows.utterance])).sum())
    n_incomplete = len(rows.index_of_utterance) - len(completed)
    counts = {REPLACED_ROWS: n_replaced, LATE_STEPS: n_late, INCOMPLETE: n_incomplete}
    return {name: count for name, count in counts.items() if count}


def _dialogue_counts(
    n_dialogues: int, *, completed: Indices, known: Indices, predicted: Indices, scored: Indices
) -> list[pl.Series]:
    """Count utterances and predictions, each given by its dialogue's number."""
    n_completed, n_known, n_predicted, n_scored = (
        np.bincount(numbers, minlength=n_dialogues)
        for numbers in (completed, known, predicted, scored)
    )
    return [
        pl.Series("n_utterances", n_completed, dtype=pl.Int64),
        pl.Series("n_incomplete", n_known - n_completed, dtype=pl.Int64),
        pl.Series("n_predictions", n_predicted, dtype=pl.Int64),
        pl.Series("n_predictions_unscored", n_predicted - n_scored, dtype=pl.Int64),
    ]


def strip_text(texts: pl.Series) -> pl.Series:
    """Strip white space, then one final EOF, then white space again; null is the empty text.

    White space is what Python's ``str.strip`` removes. ``aEOF`` becomes ``a``, ``a EOF EOF``
    becomes ``a EOF``.
    """
    texts = filled(texts, "")
    # few texts are changed: only those are made anew
    rows = np.flatnonzero(outer_whitespace(texts) | texts.str.ends_with("EOF").to_numpy())
    if rows.size == 0:
        return texts
    stripped = (
        texts[rows]
        .str.strip_chars(PYTHON_WHITESPACE)
        .str.strip_suffix("EOF")
        .str.strip_chars(PYTHON_WHITESPACE)
    )
    places = np.arange(len(texts))
    places[rows] = len(texts) + np.arange(rows.size)
    return pl.concat([texts, stripped])[places]


def _number_dialogues(rows: pl.DataFrame) -> tuple[Indices, pl.DataFrame]:
    """Return each row's dialogue, numbered by first appearance, and a frame of the dialogues."""
    starts = string_changes(rows[IDENTITY])
    starts[:1] = True
    run_of_row = np.cumsum(starts, dtype=np.int64) - 1
    number_of_run, distinct = factorize(rows[IDENTITY][np.flatnonzero(starts)])
    dialogue_of_row = number_of_run[run_of_row]

    first = first_rows(dialogue_of_row, np.arange(rows.height), len(distinct))
    dialogues = rows[[*LABELS, "file"]][first]
    for place, label in enumerate(LABELS):
        if rows[label].null_count():
            present = np.flatnonzero(rows[label].is_not_null().to_numpy())
            labelled = first_rows(dialogue_of_row, present, len(distinct))
            dialogues.replace_column(place, gather_or_null(rows[label], labelled))
    placed = rows[["file", "line", "dialogue_uid", IDENTITY]][first]
    refuse_blank_ids(placed, "dialogue_uid")
    return dialogue_of_row, dialogues.insert_column(0, distinct.alias("dialogue"))


def _number_pairs(
    dialogues: Indices, utterance_indices: Indices
) -> tuple[Indices, Indices, Indices]:
    """Give the distinct (dialogue, index) pairs numbers in ascending order.

    Returns each row's number, and the dialogue and the index of each number.
    """
    starts = np.ones(len(dialogues), dtype=np.bool_)
    starts[1:] = (dialogues[1:] != dialogues[:-1]) | (
        utterance_indices[1:] != utterance_indices[:-1]
    )
    run_dialogues, run_indices = dialogues[starts], utterance_indices[starts]
    order = np.lexsort((run_indices, run_dialogues))
    sorted_dialogues, sorted_indices = run_dialogues[order], run_indices[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (sorted_dialogues[1:] != sorted_dialogues[:-1]) | (
        sorted_indices[1:] != sorted_indices[:-1]
    )
    number_of_run = np.empty(len(order), dtype=np.int64)
    number_of_run[order] = np.cumsum(new) - 1
    number_of_row = number_of_run[np.cumsum(starts) - 1]
    return number_of_row, sorted_dialogues[new], sorted_indices[new]


def _count_steps(rows: _Rows) -> Indices:
    """Return each utterance's number of steps: highest revealed step + 1, else predicted rows."""
    size, utterances = len(rows.index_of_utterance), rows.utterance
    revealed = rows.is_revealed & rows.has_step
    highest = np.full(size, np.iinfo(np.int64).min)
    np.maximum.at(highest, utterances[revealed], rows.step[revealed])
    reveals = np.bincount(utterances[revealed], minlength=size) > 0
    counts = np.bincount(utterances[rows.is_predicted], minlength=size)
    return np.where(reveals, np.maximum(highest, -1) + 1, counts).astype(np.int64)


def _lay_out_steps(
    rows: _Rows, completed: Indices, total_steps: Indices
) -> tuple[pl.DataFrame, Indices, int]:
    """Return a row for each step of each completed utterance, and the raw row that predicted it.

    The raw row is the last one of that step, or -1. The last value is the number of rows that
    predicted any of these steps.
    """
    offsets = offsets_of(total_steps)
    utterance_row = np.repeat(np.arange(len(completed)), total_steps)
    step = np.arange(offsets[-1]) - offsets[utterance_row]

    position = np.full(len(rows.index_of_utterance), -1, dtype=np.int64)
    position[completed] = np.arange(len(completed))
    candidates = np.flatnonzero(rows.is_predicted & rows.has_step)
    positions, predicted = position[rows.utterance[candidates]], rows.step[candidates]
    limits = np.append(total_steps, 0)[positions]
    usable = (predicted >= 0) & (predicted < limits)
    predicted_at = np.full(len(step), -1, dtype=np.int64)
    predicted_at[offsets[positions[usable]] + predicted[usable]] = candidates[usable]
    steps = pl.DataFrame({"utterance_row": utterance_row, "step": step})
    return steps, predicted_at, int(usable.sum())


def _rejects(
    raw: pl.DataFrame, too_far: pl.Series, too_long: pl.Series, max_text: int
) -> pl.DataFrame:
    if not (too_far | too_long).any():
        return empty_rejects()
    return pl.concat(
        [
            _reject_too_far(raw.filter(too_far & ~too_long)),
            _reject_too_long(raw.filter(too_long), max_text),
        ]
    ).sort("line", maintain_order=True)


def _reject_too_far(rows: pl.DataFrame) -> pl.DataFrame:
    return rejects_of(
        rows,
        field="step",
        reason="out_of_range",
        found=pl.format("integer {}", pl.col("step")),
        expected=f"a step below {MAXIMUM_STEPS}",
    )


def _is_too_long(raw: pl.DataFrame, longest: pl.Series, max_text: int) -> pl.Series:
    """Mark rows with a text of more characters; the longest text has `longest` bytes."""
    # bytes are no fewer than characters, and known without counting
    if not (longest > max_text).any():
        return pl.Series(np.zeros(raw.height, np.bool_))
    longer = pl.any_horizontal(pl.col(_TEXTS).str.len_chars() > max_text)
    return raw.select(longer.fill_null(False)).to_series()


def _reject_too_long(rows: pl.DataFrame, max_text: int) -> pl.DataFrame:
    texts = [pl.col(name) for name in _TEXTS]
    first = pl.coalesce(pl.when(text.str.len_chars() > max_text).then(text) for text in texts)
    name = pl.coalesce(
        pl.when(text.str.len_chars() > max_text).then(pl.lit(name))
        for text, name in zip(texts, _TEXTS, strict=True)
    )
    return rejects_of(
        rows,
        field=name,
        reason="text_too_long",
        found=pl.format("{} characters", first.str.len_chars()),
        expected=f"at most {max_text} characters",
        raw=first.str.slice(0, _SHOWN_CHARACTERS),
    )


def texts_to_embed(events: Events, options: ScoreDialogue) -> pl.Series:
    """Return the distinct texts whose vectors the scores need.

    Those are all predictions and ground truths of the steps; and, for the baseline, the ground
    truths of utterances without steps.
    """
    if not options.needs_vectors:
        return pl.Series("text", [], dtype=pl.String)
    predictions = events.frames["steps"]["prediction"]
    ground_truths = events.frames["utterances"]["ground_truth"]
    return pl.concat([predictions, ground_truths]).unique(maintain_order=True).rename("text")


def perplexity_texts(events: Events, options: object) -> pl.Series:
    """Return the distinct predictions and ground truths of all steps."""
    steps, utterances = events.frames["steps"], events.frames["utterances"]
    stepped = utterances["ground_truth"].gather(steps["utterance_row"].unique(maintain_order=True))
    return pl.concat([steps["prediction"], stepped]).unique(maintain_order=True).rename("text")
