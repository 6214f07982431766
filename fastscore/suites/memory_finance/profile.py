"""M2: the user's profile as the assistant saw it, against the labelled one."""

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices, Mask

from fastscore.suites.grouping import counts_of, first_of_each, number_keys
from fastscore.suites.memory_finance.events import Frames
from fastscore.suites.memory_finance.labels import of_labels
from fastscore.suites.memory_finance.lexicon import PROFILE_FIELDS, UNKNOWN, Lexicon, ProfileField
from fastscore.suites.memory_finance.replies import (
    Replies,
    contains,
    expand,
)


def score_profiles(frames: Frames, replies: Replies, lexicon: Lexicon) -> dict[str, Float64Array]:
    """Score the profiles of all dialogues.

    Returns
    -------
    dict
        A row a dialogue: three accuracies, two F1 and ``profile_score``, float64 in [0, 1]; they
        mean nothing where a dialogue has no labelled profile.
    """
    risk, horizon, liquidity = (
        _accuracy(frames, replies, name, lexicon.profile[name]) for name in PROFILE_FIELDS
    )
    constraints = _list_f1(frames, replies, "constraints", "assets")
    preferences = _list_f1(frames, replies, "preferences", "topics")
    return {
        "risk_level_acc": risk,
        "horizon_acc": horizon,
        "liquidity_acc": liquidity,
        "constraints_f1": constraints,
        "preferences_f1": preferences,
        "profile_score": (risk + horizon + liquidity + constraints + preferences) / 5,
    }


def _accuracy(frames: Frames, replies: Replies, name: str, field: ProfileField) -> Float64Array:
    """Return 1 where the predicted level is the labelled one, and that is known, else 0."""
    dialogues = frames["dialogues"]
    levels = [UNKNOWN, *sorted({*field.values.values(), *(m.level for m in field.mentions)})]
    ranks = {level: rank for rank, level in enumerate(dict.fromkeys(levels))}
    labels = frames["labels"]["text"]
    labelled, stated = (
        of_labels(column.to_numpy(), labels, lambda text: ranks[field.level(text)], 0)
        for column in (dialogues[f"gt_{name}"], dialogues[f"snapshot_{name}"])
    )
    inferred = np.zeros(dialogues.height, np.int64)
    dialogue_row = frames["turns"]["dialogue_row"].to_numpy()
    for position in reversed(range(len(field.mentions))):
        of_reply = replies.has(name, str(position))
        mentioned = dialogue_row[of_reply[replies.of_turn]]
        inferred[mentioned] = ranks[field.mentions[position].level]
    predicted = np.where(stated == ranks[UNKNOWN], inferred, stated)
    correct: Mask = (predicted == labelled) & (labelled != ranks[UNKNOWN])
    return correct.astype(np.float64)


def _list_f1(
    frames: Frames, replies: Replies, labelled_name: str, stated_name: str
) -> Float64Array:
    """Return the F1 of a labelled set and the predicted one.

    Predicted is what the snapshot states, and every labelled text that the replies mention.
    """
    n_dialogues, n_labels = frames["dialogues"].height, frames["labels"].height
    labelled, stated = (
        _distinct(
            frames[name]["dialogue_row"].to_numpy() * n_labels + frames[name]["text"].to_numpy()
        )
        for name in (labelled_name, stated_name)
    )
    numbers = number_keys(np.concatenate([stated, labelled]))
    is_stated = numbers[len(stated) :] < len(stated)
    dialogue, label = np.divmod(labelled, n_labels)
    shared = is_stated | _mentioned(frames, replies, dialogue, label)
    n_shared = counts_of(dialogue[shared], n_dialogues)
    # what is stated and not labelled, besides what is shared
    n_stated = counts_of(stated // n_labels, n_dialogues)
    n_predicted = n_stated - counts_of(dialogue[is_stated], n_dialogues) + n_shared
    return _f1(n_shared, n_predicted, counts_of(dialogue, n_dialogues))


def _distinct(keys: Indices) -> Indices:
    return keys[first_of_each(keys)]


def _f1(shared: Indices, predicted: Indices, labelled: Indices) -> Float64Array:
    precision = shared / np.maximum(predicted, 1)
    recall = shared / np.maximum(labelled, 1)
    total = precision + recall
    f1 = 2 * precision * recall / np.where(total > 0, total, 1.0)
    both_empty = (predicted == 0) & (labelled == 0)
    scores: Float64Array = np.where(both_empty, 1.0, f1)
    return scores


def _mentioned(frames: Frames, replies: Replies, dialogue: Indices, label: Indices) -> Mask:
    """Return for each label whether its dialogue's replies, joined by line ends, have it."""
    turns, labels = frames["turns"], frames["labels"]["text"]
    turn_row, entry = expand(turns["dialogue_row"].to_numpy(), dialogue)
    hit = replies.have_labels(replies.of_turn[turn_row], label[entry], labels)
    # the empty text is in any replies, also in those of a dialogue without turns
    found = of_labels(label, labels, lambda text: text == "", False)
    found[entry[hit]] = True
    across = np.flatnonzero(of_labels(label, labels, lambda text: "\n" in text, False))
    if len(across):
        wanted = pl.DataFrame({"dialogue_row": dialogue[across], "text": labels[label[across]]})
        found[across] = _mentioned_across(turns, wanted)
    return found


def _mentioned_across(turns: pl.DataFrame, wanted: pl.DataFrame) -> Mask:
    """Search texts of several lines, which can begin in one reply and end in the next."""
    joined = (
        turns.filter(pl.col("dialogue_row").is_in(wanted["dialogue_row"].implode()))
        .group_by("dialogue_row", maintain_order=True)
        .agg(pl.col("reply").str.join("\n"))
    )
    pairs = wanted.join(joined, on="dialogue_row", how="left", maintain_order="left")
    return contains(pairs["reply"].fill_null(""), pairs["text"])
