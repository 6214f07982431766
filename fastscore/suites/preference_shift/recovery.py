"""Boundaries within conversations, segments between them, and recovery of topics.

Boundaries that are detected are never shifts: they cut segments, and recovery is not asked there.

By topics, as the profile legacy has it, shifts are those of the metadata or, without any, the
boundaries that the user's texts show. After each, the system's turns are read to the end of the
conversation. Turns without topic words are skipped. The first turn whose topics are aligned with
the new ones recovers the shift. Until then each turn with the former topics counts as interference.
Topics are those of the published heuristic. A segment has the topics of its first user text.

The public code leaves two cases undefined: a shift at the first turn has no topics before it, and
without a recovery the delay is null here instead of 0, which would be the best delay.
"""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array
from fastscore_kernels import cosine_pairs, jaccard_csr
from polars import col as C

from fastscore.suites.preference_shift.concepts import (
    Sets,
    gather_sets,
    joined_topics,
    sizes_of,
    topic_sets,
)
from fastscore.suites.preference_shift.matching import consecutive_cosines
from fastscore.suites.preference_shift.metrics.turns import ALIGNED, LONGEST_SEEN, SHIFT_KEY
from fastscore.suites.preference_shift.options import PreferenceShift

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

SIMILARITY_SHIFT = 0.55
"""A user's text less similar to the one before it begins a segment."""

TOPIC_JACCARD_SHIFT = 0.35
"""So does one whose topics overlap less; two texts without topics do not overlap at all."""


def find_boundaries(
    turns: pl.DataFrame,
    dialogues: pl.DataFrame,
    user: Sets,
    vectors: "VectorView",
    options: PreferenceShift,
) -> pl.Series:
    """Tell where, without shift metadata, the user's text has little to do with the one before."""
    has_metadata = dialogues["has_shift_metadata"].gather(turns["dialogue_row"])
    compared = (turns["turn"] > 1) & ~has_metadata & (options.segments != "metadata")
    rows = compared.arg_true().cast(pl.Int64).to_numpy()
    found = np.zeros(turns.height, np.bool_)
    if len(rows):
        texts = turns["user_text"]
        sets = topic_sets(texts) if options.segments == "heuristic" else user
        overlap = jaccard_csr(gather_sets(sets, rows - 1), gather_sets(sets, rows), both_empty=0.0)
        similarity = consecutive_cosines(texts, rows, vectors)
        found[rows] = (similarity < SIMILARITY_SHIFT) | (overlap < TOPIC_JACCARD_SHIFT)
    return pl.Series(found)


def cut_segments(
    turns: pl.DataFrame, shifts: pl.DataFrame, is_boundary: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return turns with ``is_shift``, ``segment_row`` and ``segment``, and the segments."""
    marks = shifts.select(*SHIFT_KEY, is_shift=True)
    turns = turns.join(marks, on=SHIFT_KEY, how="left", maintain_order="left").with_columns(
        C("is_shift").fill_null(False)
    )
    begins = (C("turn") == 1) | C("is_shift") | is_boundary
    turns = turns.with_columns(segment_row=begins.cast(pl.Int64).cum_sum() - 1)
    segments = (
        turns.group_by("segment_row", maintain_order=True)
        .agg(
            C("dialogue_row").first(),
            start_turn=C("turn").first(),
            end_turn=C("turn").last(),
            n_scored=C("cc").count().cast(pl.Int64),
        )
        .with_columns(segment=pl.int_range(1, pl.len() + 1).over("dialogue_row"))
    )
    return turns.with_columns(segments["segment"].gather(turns["segment_row"])), segments


def compare_answers(turns: pl.DataFrame, vectors: "VectorView") -> pl.DataFrame:
    """Add each answer's cosine to the user's text, and to the answer before."""
    user, system = (vectors.codes(turns[f"{who}_text"]) for who in ("user", "system"))
    to_last = cosine_pairs(vectors.matrix, np.roll(system, 1), system)
    return turns.with_columns(
        cosine_to_user=cosine_pairs(vectors.matrix, user, system),
        cosine_to_last=pl.when(C("turn") > 1).then(pl.lit(pl.Series(to_last))),
    )


OVERLAP_DECIDES = 0.3
"""Below this overlap the likeness is that of the topic words' meaning."""

_PAIRS_AT_ONCE = 1 << 20


def recover_topics(
    turns: pl.DataFrame, shifts: pl.DataFrame, vectors: "VectorView"
) -> pl.DataFrame:
    """Look for each shift's recovery by topics; add ``interference``."""
    topics = Topics(turns, vectors)
    n_pairs = turns["dialogue_row"].value_counts(name="n_pairs")
    numbered = (
        shifts.select(SHIFT_KEY)
        .join(n_pairs, on="dialogue_row", how="left", maintain_order="left")
        .with_columns(part=C("n_pairs").cast(pl.Int64).cum_sum() // _PAIRS_AT_ONCE)
    )
    parts = numbered.partition_by("part", maintain_order=True) or [numbered]
    found = pl.concat(score_answers(answers_after_shifts(turns, part, topics)) for part in parts)
    return (
        shifts.drop("delay")
        .join(found, on=SHIFT_KEY, how="left", maintain_order="left")
        .with_columns(C("interference").fill_null(0.0), recovered=C("delay").is_not_null())
    )


def answers_after_shifts(
    turns: pl.DataFrame, shifts: pl.DataFrame, topics: "Topics"
) -> pl.DataFrame:
    """Return answers with topics, a row for each shift before them that is not recovered yet."""
    turns = turns.with_columns(row=pl.int_range(pl.len()))
    starts = turns.filter(C("segment_row").is_first_distinct()).select(
        *SHIFT_KEY, new_row="row", old_row=C("row").shift().over("dialogue_row")
    )
    spoken = turns.filter(pl.Series(topics.has_any[turns.height :]))
    answers = (
        shifts.select(SHIFT_KEY)
        .with_row_index("shift_row")
        .join(starts, on=SHIFT_KEY, maintain_order="left")
        .join(
            spoken.select("dialogue_row", "row", answer="turn"),
            on="dialogue_row",
            maintain_order="left_right",
        )
        .filter(C("answer") >= C("turn"))
    )
    answers = answers.with_columns(
        like_new=topics.likeness(answers["row"], answers["new_row"]),
        like_old=topics.likeness(answers["row"], answers["old_row"]),
    )
    met = C("like_new") >= ALIGNED
    return answers.filter((met.cum_sum() - met).over("shift_row") == 0)


def score_answers(answers: pl.DataFrame) -> pl.DataFrame:
    """Return the delay of each shift, and the share of its answers that have the former topics."""
    recovered, n_answers = (C("like_new") >= ALIGNED).any(), pl.len().cast(pl.Int64)
    n_seen = pl.when(recovered).then(n_answers).otherwise(n_answers.clip(upper_bound=LONGEST_SEEN))
    return answers.group_by(SHIFT_KEY).agg(
        delay=pl.when(recovered).then(n_answers),
        interference=(C("like_old") >= ALIGNED).sum() / n_seen,
    )


def name_answers(turns: pl.DataFrame, shifts: pl.DataFrame, vectors: "VectorView") -> pl.DataFrame:
    """Return the answers after the shifts of one conversation with the topics that are compared."""
    topics = Topics(turns, vectors)
    user, system = topics.joined[: turns.height], topics.joined[turns.height :]
    answers = answers_after_shifts(turns, shifts, topics)
    numbers = shifts.select(*SHIFT_KEY, "shift")
    return answers.join(numbers, on=SHIFT_KEY, maintain_order="left").select(
        "shift",
        "like_new",
        "like_old",
        turn="answer",
        topics=system.gather(answers["row"]),
        new_topics=user.gather(answers["new_row"]),
        old_topics=user.gather(answers["old_row"]).fill_null(""),
    )


class Topics:
    """Topics of the user's texts and then of the system's, and how alike they are."""

    def __init__(self, turns: pl.DataFrame, vectors: "VectorView") -> None:
        texts = pl.concat([turns["user_text"], turns["system_text"]])
        self.sets: Sets = topic_sets(texts)
        self.joined = joined_topics(texts)
        self.has_any = sizes_of(self.sets) > 0
        self.n_turns = turns.height
        self.vectors = vectors

    def likeness(self, system: pl.Series, user: pl.Series) -> Float64Array:
        """Compare the system's topics in some turns with the user's in others, null for none.

        Alike are topics by their overlap or, where that is small, by the cosine of their words.
        What has no topics is like nothing.
        """
        of_user, of_system = user.fill_null(0).to_numpy(), system.to_numpy() + self.n_turns
        both = user.is_not_null().to_numpy() & self.has_any[of_user] & self.has_any[of_system]
        found: Float64Array = np.zeros(len(system))
        found[both] = jaccard_csr(
            gather_sets(self.sets, of_system[both]),
            gather_sets(self.sets, of_user[both]),
            both_empty=0.0,
        )
        far = np.flatnonzero(both & (found < OVERLAP_DECIDES))
        if len(far):
            found[far] = cosine_pairs(
                self.vectors.matrix,
                self.vectors.codes(self.joined.gather(of_system[far])),
                self.vectors.codes(self.joined.gather(of_user[far])),
            )
        return found
