"""M2: the user's profile as the assistant saw it, against the labelled one."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.suites.distinct import distinct
from fastscore.suites.json_values import Indices, Mask
from fastscore.suites.memory_finance.lexicon import PROFILE_FIELDS, UNKNOWN, Lexicon, ProfileField
from fastscore.suites.memory_finance.matching import contains
from fastscore.suites.memory_finance.replies import Replies, expand

Frames = Mapping[str, pl.DataFrame]
Reals = npt.NDArray[np.float64]


def score_profiles(frames: Frames, replies: Replies, lexicon: Lexicon) -> pl.DataFrame:
    """Score the profiles of all dialogues.

    Returns
    -------
    pl.DataFrame
        A row a dialogue: three accuracies, two F1 and ``profile_score``, Float64 in [0, 1]; they
        mean nothing where a dialogue has no labelled profile.
    """
    accuracies = [
        _accuracy(frames, replies, name, lexicon.profile[name]) for name in PROFILE_FIELDS
    ]
    constraints = _list_f1(frames, replies, "constraints", "assets")
    preferences = _list_f1(frames, replies, "preferences", "topics")
    risk, horizon, liquidity = accuracies
    return pl.DataFrame(
        {
            "risk_level_acc": risk,
            "horizon_acc": horizon,
            "liquidity_acc": liquidity,
            "constraints_f1": constraints,
            "preferences_f1": preferences,
            "profile_score": (risk + horizon + liquidity + constraints + preferences) / 5,
        }
    )


def _accuracy(frames: Frames, replies: Replies, name: str, field: ProfileField) -> Reals:
    """Return 1 where the predicted level is the labelled one, and that is known, else 0."""
    dialogues = frames["dialogues"]
    levels = [UNKNOWN, *sorted({*field.values.values(), *(m.level for m in field.mentions)})]
    ranks = {level: rank for rank, level in enumerate(dict.fromkeys(levels))}
    labelled = _stated(dialogues[f"gt_{name}"], field, ranks)
    stated = _stated(dialogues[f"snapshot_{name}"], field, ranks)
    inferred = np.zeros(dialogues.height, np.int64)
    dialogue_row = frames["turns"]["dialogue_row"].to_numpy()
    for position in reversed(range(len(field.mentions))):
        of_reply = replies.has(name, str(position))
        mentioned = dialogue_row[of_reply[replies.of_turn]]
        inferred[mentioned] = ranks[field.mentions[position].level]
    predicted = np.where(stated == ranks[UNKNOWN], inferred, stated)
    correct: Mask = (predicted == labelled) & (labelled != ranks[UNKNOWN])
    return correct.astype(np.float64)


def _stated(texts: pl.Series, field: ProfileField, ranks: Mapping[str, int]) -> Indices:
    codes, values = distinct(texts)
    return np.array([ranks[field.level(value)] for value in values], np.int64)[codes]


def _list_f1(frames: Frames, replies: Replies, labelled_name: str, stated_name: str) -> Reals:
    """Return the F1 of a labelled set and the predicted one.

    Predicted is what the snapshot states, and every labelled text that the replies mention.
    """
    keys = ["dialogue_row", "text"]
    labelled = frames[labelled_name].unique(keys, maintain_order=True)
    stated = frames[stated_name].unique(keys, maintain_order=True)
    is_stated = labelled.join(
        stated.with_columns(pl.lit(True).alias("stated")),
        on=keys,
        how="left",
        maintain_order="left",
    )["stated"]
    is_mentioned = _mentioned(frames, replies, labelled)
    shared = labelled["dialogue_row"].filter(is_stated.fill_null(False) | pl.Series(is_mentioned))
    n_dialogues = frames["dialogues"].height
    n_labelled = np.bincount(labelled["dialogue_row"], minlength=n_dialogues)
    n_stated = np.bincount(stated["dialogue_row"], minlength=n_dialogues)
    n_shared = np.bincount(shared, minlength=n_dialogues)
    n_both = np.bincount(
        labelled["dialogue_row"].filter(is_stated.fill_null(False)), minlength=n_dialogues
    )
    # what is stated and not labelled, besides what is shared
    n_predicted = n_stated - n_both + n_shared
    return _f1(n_shared, n_predicted, n_labelled)


def _f1(shared: Indices, predicted: Indices, labelled: Indices) -> Reals:
    precision = shared / np.maximum(predicted, 1)
    recall = shared / np.maximum(labelled, 1)
    total = precision + recall
    f1 = 2 * precision * recall / np.where(total > 0, total, 1.0)
    both_empty = (predicted == 0) & (labelled == 0)
    scores: Reals = np.where(both_empty, 1.0, f1)
    return scores


def _mentioned(frames: Frames, replies: Replies, wanted: pl.DataFrame) -> Mask:
    """Return for each text whether the dialogue's replies, joined by line ends, have it."""
    turns = frames["turns"]
    found = np.zeros(wanted.height, np.bool_)
    if not wanted.height:
        return found
    turn_row, entry = expand(turns["dialogue_row"], wanted["dialogue_row"])
    codes, texts = distinct(wanted["text"])
    hit = replies.have_phrases(replies.of_turn[turn_row], codes[entry], texts)
    found[entry[hit]] = True
    # the empty text is in any replies, also in those of a dialogue without turns
    found |= (wanted["text"] == "").to_numpy()
    across = np.flatnonzero(wanted["text"].str.contains("\n", literal=True).to_numpy())
    if len(across):
        found[across] = _mentioned_across(turns, wanted[across])
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
