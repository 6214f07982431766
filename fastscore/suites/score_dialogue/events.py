"""From raw rows to dialogues, utterances and steps.

Rows count in input order: the last ground truth of an utterance and the last prediction of a step
win. An utterance has as many steps as its highest revealed step says, or else as many as it has
predicted rows, whatever their steps. Every step is then in the frame ``steps``, with an empty
prediction where none was made.

Dialogues and utterances are numbers of rows in their frames. Rows of one mostly follow each other,
so keys are compared with the row before, and only the few distinct runs are sorted.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels import outer_whitespace, string_changes

from fastscore.suites.base import Events
from fastscore.suites.columns import filled, first_rows, gather_or_null, last_rows
from fastscore.suites.declarations import (
    INCOMPLETE,
    NO_SUCH_STEP,
    REPLACED_ROWS,
    empty_rejects,
    rejects_of,
)
from fastscore.suites.grouping import counts_of, factorize, offsets_of
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
    "is_predicted": pl.col("event").eq_missing("predicted"),
    "is_revealed": pl.col("event").eq_missing("revealed"),
    "tells_steps": pl.col("event").eq_missing("revealed") & pl.col("step").is_not_null(),
    "completes": pl.col("event").eq_missing("utterance_complete"),
}
_NOT_REVEALED = -2


def read_events(raw: pl.DataFrame, options: ScoreDialogue) -> Events:
    """Group raw rows into dialogues, utterances and steps."""
    checked = raw.select(**_CHECKS)
    too_far = checked["too_far"]
    too_long = _is_too_long(raw, checked["longest"], options.max_text)
    rejects = _rejects(raw, too_far, too_long, options.max_text)
    used = checked["is_placed"] & ~too_far & ~too_long
    named = identify(raw, SOURCE)
    rows = named if used.all() else named.filter(used)
    dialogue, dialogues = _number_dialogues(rows)
    utterance, known = _number_utterances(dialogue, rows["utterance_index"].to_numpy())
    facts = {name: fact.to_numpy() for name, fact in rows.select(**_ROW_FACTS).to_dict().items()}
    step, is_predicted = facts["step"], facts["is_predicted"]

    # an utterance without utterance_complete has no step and is left out
    completing = np.flatnonzero(facts["completes"])
    completed_at = last_rows(utterance, completing, known.height)
    is_completed = completed_at >= 0
    total_steps = np.where(is_completed, _count_steps(utterance, facts, known.height), 0)
    utterances = known.with_columns(
        ground_truth=strip_text(gather_or_null(rows["ground_truth"], completed_at)),
        total_steps=total_steps,
        line=gather_or_null(rows["line"], completed_at),
    ).filter(is_completed)

    # the place of a step is that of its utterance's first step + the step
    first_step = offsets_of(total_steps)
    predicted = np.flatnonzero(is_predicted)
    of_utterance, predicted_step = utterance[predicted], step[predicted]
    has_place = (predicted_step >= 0) & (predicted_step < total_steps[of_utterance])
    predicted_at = np.full(first_step[-1], -1)
    # numpy assigns in order: of several predictions of a step the last stays
    place = first_step[of_utterance[has_place]] + predicted_step[has_place]
    predicted_at[place] = predicted[has_place]
    steps_of = utterances["total_steps"].to_numpy()
    utterance_row = np.repeat(np.arange(utterances.height), steps_of)
    steps = pl.DataFrame(
        {
            "utterance_row": utterance_row,
            "step": np.arange(first_step[-1]) - offsets_of(steps_of)[utterance_row],
            "prediction": strip_text(gather_or_null(rows["prediction"], predicted_at)),
            "line": gather_or_null(rows["line"], predicted_at),
        }
    )

    is_scored = predicted_at >= 0
    of_dialogue = {
        "n_utterances": utterances["dialogue_row"].to_numpy(),
        "n_known": known["dialogue_row"].to_numpy(),
        "n_predictions": dialogue[predicted],
        "n_scored": dialogue[predicted_at[is_scored]],
    }
    counts = {name: counts_of(of, dialogues.height) for name, of in of_dialogue.items()}
    events = {
        "predicted": len(predicted),
        "revealed": int(facts["is_revealed"].sum()),
        "utterance_complete": len(completing),
    }
    noted = {
        REPLACED_ROWS: len(place) - is_scored.sum() + len(completing) - utterances.height,
        NO_SUCH_STEP: (is_completed[of_utterance] & ~has_place).sum(),
        INCOMPLETE: known.height - utterances.height,
    }
    return Events(
        frames={
            "dialogues": dialogues.with_columns(
                n_utterances=counts["n_utterances"],
                n_incomplete=counts["n_known"] - counts["n_utterances"],
                n_predictions=counts["n_predictions"],
                n_predictions_unscored=counts["n_predictions"] - counts["n_scored"],
            ),
            "utterances": utterances,
            "steps": steps,
        },
        rejects=rejects,
        counts={
            "ignored": raw.height - rejects.height - rows.height,
            **events,
            "other": rows.height - sum(events.values()),
            **{name: int(count) for name, count in noted.items() if count},
        },
        # the published script takes a text that is null for an empty one
        nulls_are_empty=True,
    )


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


def _number_utterances(dialogue: Indices, utterance_index: Indices) -> tuple[Indices, pl.DataFrame]:
    """Return each row's utterance, and a frame of the utterances by dialogue and index."""
    begins = _begins(dialogue, utterance_index)
    of_run = dialogue[begins], utterance_index[begins]
    order = np.lexsort(of_run[::-1])
    ordered = of_run[0][order], of_run[1][order]
    is_new = _begins(*ordered)
    number_of_run = np.empty(len(order), np.int64)
    number_of_run[order] = np.cumsum(is_new) - 1
    known = {"dialogue_row": ordered[0][is_new], "utterance_index": ordered[1][is_new]}
    return number_of_run[np.cumsum(begins) - 1], pl.DataFrame(known)


def _begins(dialogue: Indices, utterance_index: Indices) -> Mask:
    """Tell which rows are of another utterance than the row before."""
    begins = np.ones(len(dialogue), np.bool_)
    begins[1:] = (dialogue[1:] != dialogue[:-1]) | (utterance_index[1:] != utterance_index[:-1])
    return begins


def _count_steps(utterance: Indices, facts: Mapping[str, Any], n_utterances: int) -> Indices:
    """Return each utterance's number of steps: highest revealed step + 1, else predicted rows."""
    tells = facts["tells_steps"]
    highest = np.full(n_utterances, _NOT_REVEALED)
    np.maximum.at(highest, utterance[tells], np.maximum(facts["step"][tells], -1))
    n_predicted = counts_of(utterance[facts["is_predicted"]], n_utterances)
    return np.where(highest == _NOT_REVEALED, n_predicted, highest + 1)


def _rejects(
    raw: pl.DataFrame, too_far: pl.Series, too_long: pl.Series, max_text: int
) -> pl.DataFrame:
    if not (too_far | too_long).any():
        return empty_rejects()
    far = rejects_of(
        raw.filter(too_far & ~too_long),
        field="step",
        reason="out_of_range",
        found=pl.format("integer {}", pl.col("step")),
        expected=f"a step below {MAXIMUM_STEPS}",
    )
    long, is_long = raw.filter(too_long), pl.col("prediction").str.len_chars() > max_text
    name = pl.when(is_long).then(pl.lit("prediction")).otherwise(pl.lit("ground_truth"))
    text = pl.when(is_long).then("prediction").otherwise("ground_truth")
    long = rejects_of(
        long,
        field=name,
        reason="text_too_long",
        found=pl.format("{} characters", text.str.len_chars()),
        expected=f"at most {max_text} characters",
        raw=text.str.slice(0, _SHOWN_CHARACTERS),
    )
    return pl.concat([far, long]).sort("line", maintain_order=True)


def _is_too_long(raw: pl.DataFrame, longest: pl.Series, max_text: int) -> pl.Series:
    """Mark rows with a text of more characters; the longest text has `longest` bytes."""
    # bytes are no fewer than characters, and known without counting
    if not (longest > max_text).any():
        return pl.Series(np.zeros(raw.height, np.bool_))
    longer = pl.any_horizontal(pl.col(_TEXTS).str.len_chars() > max_text)
    return raw.select(longer.fill_null(False)).to_series()


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
