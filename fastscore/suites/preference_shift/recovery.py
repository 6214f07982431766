"""Recovery after shifts, and segments: runs of turns between shifts or detected boundaries.

Boundaries that are detected are never shifts: they cut segments, and recovery is not asked there.

By concepts, the texts of one turn are compared: the test asks whether the system follows what the
user writes then, not whether it still serves the preference stated at the shift. The share of the
user's phrases that the system copies is measured in the same turns.

By topics, as the profile legacy has it, shifts are those of the metadata or, without any, the
boundaries that the user's texts show. After each, the system's turns are read to the end of the
conversation. Turns without topic words are skipped. The first turn whose topics are aligned with
the new ones recovers the shift. Until then each turn with the former topics counts as interference.
Topics are those of the published heuristic. A segment has the topics of its first user text.

The public code leaves two cases undefined: a shift at the first turn has no topics before it, and
without a recovery the delay is null here instead of 0, which would be the best delay.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices, Mask
from fastscore_kernels import (
    cosine_pairs,
    distinct_counts_ragged,
    first_recovery,
    idf_cosine_counted_csr,
    jaccard_csr,
)

from fastscore.suites.grouping import first_of_each, place_in_group
from fastscore.suites.preference_shift.concepts import (
    Concepts,
    Sets,
    gather_sets,
    joined_topics,
    sizes_of,
    topic_sets,
)
from fastscore.suites.preference_shift.matching import consecutive_cosines
from fastscore.suites.preference_shift.metrics import DELAY_SPAN, FIRST_DELAY
from fastscore.suites.preference_shift.metrics.turns import ALIGNED, LONGEST_SEEN
from fastscore.suites.preference_shift.options import PreferenceShift

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


Counted = tuple[npt.NDArray[np.int32], Indices, Indices]

SIMILARITY_SHIFT = 0.55
"""A user's text less similar to the one before it begins a segment."""

TOPIC_JACCARD_SHIFT = 0.35
"""So does one whose topics overlap less; two texts without topics do not overlap at all."""


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments of all conversations, in order.

    Parameters
    ----------
    of_turn
        The segment of each turn, int64 (turns,), ascending.
    start
        The first turn's row of each segment, int64 (segments,).
    """

    of_turn: Indices
    start: Indices

    def __len__(self) -> int:
        return len(self.start)


def find_segments(
    turns: pl.DataFrame,
    dialogues: pl.DataFrame,
    shifts: pl.DataFrame,
    user: Sets,
    vectors: "VectorView",
    options: PreferenceShift,
) -> Segments:
    """Cut conversations at their shifts or, without shift metadata, at detected boundaries."""
    owner = turns["dialogue_row"].to_numpy()
    begins = np.ones(len(owner), np.bool_)
    begins[1:] = owner[1:] != owner[:-1]
    detects = ~dialogues["has_shift_metadata"].to_numpy()[owner]
    if options.segments != "metadata":
        inner = np.flatnonzero(detects & ~begins)
        begins[inner[_departs(turns["user_text"], inner, user, vectors, options)]] = True
    begins[shift_rows(owner, shifts)] = True
    return Segments(np.cumsum(begins) - 1, np.flatnonzero(begins))


def shift_rows(owner: Indices, shifts: pl.DataFrame) -> Indices:
    """Return the rows of turns that are shift points; points beyond the last turn have none."""
    of_shift, turn = shifts["dialogue_row"].to_numpy(), shifts["turn"].to_numpy()
    first = np.searchsorted(owner, of_shift)
    inside = turn <= np.searchsorted(owner, of_shift, side="right") - first
    rows: Indices = first[inside] + turn[inside] - 1
    return rows


def _departs(
    texts: pl.Series,
    rows: Indices,
    user: Sets,
    vectors: "VectorView",
    options: PreferenceShift,
) -> Mask:
    """Whether the user's text in these rows has little to do with the one before it."""
    if not len(rows):
        return np.zeros(0, np.bool_)
    sets = topic_sets(texts) if options.segments == "heuristic" else user
    overlap = jaccard_csr(gather_sets(sets, rows - 1), gather_sets(sets, rows), both_empty=0.0)
    similarity = consecutive_cosines(texts, rows, vectors)
    away: Mask = (similarity < SIMILARITY_SHIFT) | (overlap < TOPIC_JACCARD_SHIFT)
    return away


def segment_scores(
    segments: Segments, user: Sets, system: Sets, concepts: Concepts
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], Sets, Sets]:
    """Score segments as if each were one turn."""
    of_user, of_system = _merge_sets(segments, user), _merge_sets(segments, system)
    cosine = idf_cosine_counted_csr(of_user, of_system, concepts.idf)
    user_sets, system_sets = (of_user[0], of_user[2]), (of_system[0], of_system[2])
    return jaccard_csr(user_sets, system_sets), cosine, user_sets, system_sets


def _merge_sets(segments: Segments, sets: Sets) -> Counted:
    """Return the distinct members of each segment's sets, and how many turns have each."""
    values, offsets = sets
    bounds = offsets[np.append(segments.start, len(offsets) - 1)]
    united: Counted = distinct_counts_ragged(values, bounds)
    return united


def recover_shifts(
    turns: pl.DataFrame,
    n_dialogues: int,
    shifts: pl.DataFrame,
    scores: pl.DataFrame,
    options: PreferenceShift,
) -> pl.DataFrame:
    """Look for recovery, and for copying, in the window from each shift point on."""
    owner = shifts["dialogue_row"].to_numpy()
    turn = shifts["turn"].to_numpy()
    offsets = np.searchsorted(turns["dialogue_row"].to_numpy(), np.arange(n_dialogues + 1))
    by_cosine = scores["cr"].to_numpy() >= options.recovery_cr
    met = scores["cc"].to_numpy() >= options.recovery_cc
    if options.recovery == "cc-or-cr":
        met |= by_cosine

    i_sum, n_scored, n_turns = _sum_in_windows(scores["i"], offsets, owner, turn, options)

    def delays(test: Mask) -> tuple[pl.Series, pl.Series]:
        found = first_recovery(test, offsets, owner, turn - 1, max(1, options.window))
        is_met = pl.Series(found >= 0)
        is_unknown = ~is_met & pl.Series(n_scored < n_turns)
        return pl.Series(found).set(~is_met, None), is_met.set(is_unknown, None)

    delay, recovered = delays(met)
    delay_cosine, recovered_cosine = delays(by_cosine)
    return pl.DataFrame(
        {
            "dialogue_row": owner,
            "shift": 1 + place_in_group(owner),
            "turn": turn,
            "in_dialogue": n_turns > 0,
            "recovered": recovered,
            "delay": delay,
            "recovered_cosine": recovered_cosine,
            "delay_cosine": delay_cosine,
            "n_window_turns": n_scored,
            "i_sum": i_sum,
        }
    ).with_columns(
        pl.when(pl.col("n_window_turns") > 0)
        .then(pl.col("i_sum") / pl.col("n_window_turns"))
        .alias("i_around_shift")
    )


def _sum_in_windows(
    values: pl.Series,
    offsets: Indices,
    owner: Indices,
    turn: Indices,
    options: PreferenceShift,
) -> tuple[Float64Array, Indices, Indices]:
    """Return the sum of the values in each shift's window, their number, and that of its turns."""
    left = np.maximum(np.diff(offsets)[owner] - (turn - 1), 0)
    count = np.minimum(left, max(1, options.window))
    shift = np.repeat(np.arange(len(owner)), count)
    rows = (offsets[owner + 1] - left)[shift] + place_in_group(shift)
    total = np.bincount(shift, values.fill_null(0.0).to_numpy()[rows], len(owner))
    found = np.bincount(shift, values.is_not_null().to_numpy()[rows], len(owner))
    return total.astype(np.float64), found.astype(np.int64), count


OVERLAP_DECIDES = 0.3
"""Below this overlap the likeness is that of the topic words' meaning."""

_PAIRS_AT_ONCE = 1 << 20


def with_boundaries(
    turns: pl.DataFrame, dialogues: pl.DataFrame, shifts: pl.DataFrame, segments: Segments
) -> pl.DataFrame:
    """Add to the shifts the boundaries of conversations without shift metadata."""
    owner = turns["dialogue_row"].to_numpy()
    start = segments.start
    begins_later = turns["turn"].to_numpy()[start] > 1
    detected = ~dialogues["has_shift_metadata"].to_numpy()[owner[start]]
    rows = start[begins_later & detected]
    known = shifts.select("dialogue_row", "turn")
    found = turns.select("dialogue_row", "turn").gather(rows)
    return pl.concat([known, found], how="vertical_relaxed").sort("dialogue_row", "turn")


def recover_topics(
    turns: pl.DataFrame, shifts: pl.DataFrame, segments: Segments, vectors: "VectorView"
) -> tuple[pl.DataFrame, Float64Array]:
    """Look for each shift's recovery by topics."""
    delay = np.zeros(shifts.height, np.int64)
    interference = np.zeros(shifts.height)
    inside = np.flatnonzero(shifts["in_dialogue"].to_numpy())
    owner = turns["dialogue_row"].to_numpy()
    of_shift = shifts["dialogue_row"].to_numpy()[inside]
    begins = np.searchsorted(owner, of_shift) + shifts["turn"].to_numpy()[inside] - 1
    ends = np.searchsorted(owner, of_shift, side="right")
    topics = _Topics(turns, vectors)
    edges = np.searchsorted(
        np.cumsum(ends - begins), np.arange(0, (ends - begins).sum() + 1, _PAIRS_AT_ONCE)
    )
    for low, high in zip(edges, [*edges[1:], len(inside)], strict=True):
        part = slice(low, high)
        answers = _follow(topics, owner, begins[part], ends[part], segments)
        delay[inside[part]], interference[inside[part]] = _recover(answers, high - low)
    recovered = pl.Series(delay > 0)
    table = shifts.with_columns(
        recovered.alias("recovered"), pl.Series("delay", delay).set(~recovered, None)
    )
    return table, interference


class _Topics:
    """Topics of the user's and the system's texts, and how alike they are."""

    def __init__(self, turns: pl.DataFrame, vectors: "VectorView") -> None:
        self.height = turns.height
        texts = pl.concat([turns["user_text"], turns["system_text"]])
        self.sets: Sets = topic_sets(texts)
        self.joined = joined_topics(texts)
        self.has_any = sizes_of(self.sets) > 0
        self.vectors = vectors

    def similarities(self, system: Indices, user: Indices) -> Float64Array:
        """Compare the topics of the system's texts in turns with those of the user's in others.

        A user's turn of -1 has no topics. Alike are topics by their overlap or, where that is
        small, by the cosine of their words; what has none is like nothing.
        """
        of_user, of_system = np.maximum(user, 0), system + self.height
        both = (user >= 0) & self.has_any[of_user] & self.has_any[of_system]
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
                self.vectors.codes(self.joined.gather(pl.Series(of_system[far]))),
                self.vectors.codes(self.joined.gather(pl.Series(of_user[far]))),
            )
        return found


class _Answers(NamedTuple):
    """System's turns with topics after shifts, in order: which shift, which turn, how alike."""

    shift: Indices
    turn: Indices
    old: Indices
    like_new: Float64Array
    like_old: Float64Array


def _follow(
    topics: _Topics, owner: Indices, begins: Indices, ends: Indices, segments: Segments
) -> _Answers:
    """Compare the answers of turns ``[begin, end)`` with the topics after and before a shift."""
    count = ends - begins
    shift = np.repeat(np.arange(len(begins)), count)
    turn = begins[shift] + place_in_group(shift)
    spoken = topics.has_any[turn + topics.height]
    shift, turn = shift[spoken], turn[spoken]

    segment = segments.of_turn[begins]
    before = segments.start[np.maximum(segment - 1, 0)]
    is_before = (
        (segment > 0) & (owner[before] == owner[begins]) & (segments.start[segment] == begins)
    )
    old = np.where(is_before, before, -1)[shift]
    new = begins[shift]
    return _Answers(
        shift, turn, old, topics.similarities(turn, new), topics.similarities(turn, old)
    )


def _recover(answers: _Answers, n: int) -> tuple[Indices, Float64Array]:
    """Return delay (0 without recovery) and interference of n shifts."""
    shift, seen = answers.shift, 1 + place_in_group(answers.shift)
    delay = np.zeros(n, np.int64)
    at = np.flatnonzero(answers.like_new >= ALIGNED)[::-1]
    delay[shift[at]] = seen[at]  # of several the first stays: numpy assigns in order
    counted = (delay[shift] == 0) | (seen <= delay[shift])
    leaks = counted & (answers.like_old >= ALIGNED)
    hits = np.bincount(shift[leaks], minlength=n)
    n_seen = np.minimum(np.bincount(shift, minlength=n), LONGEST_SEEN)
    share: Float64Array = hits / np.maximum(1, np.where(delay > 0, delay, n_seen))
    return delay, share


def answers_after_shifts(
    turns: pl.DataFrame, shifts: pl.DataFrame, vectors: "VectorView"
) -> pl.DataFrame:
    """Return the answers with topics after the shifts of one conversation, up to the recovery."""
    inside = shifts.filter(pl.col("turn") <= turns.height)
    of_turn = turns["segment"].to_numpy() - 1
    segments = Segments(of_turn, first_of_each(of_turn))
    begins = inside["turn"].to_numpy() - 1
    topics = _Topics(turns, vectors)
    one = np.zeros(turns.height, np.int64)
    found = _follow(topics, one, begins, np.full(len(begins), turns.height), segments)
    words = pl.concat([topics.joined, pl.Series([""], dtype=pl.String)])
    of_user = np.where(found.old < 0, len(topics.joined), found.old)
    frame = pl.DataFrame(
        {
            "shift": inside["shift"].gather(found.shift),
            "turn": found.turn + 1,
            "topics": words.gather(found.turn + turns.height),
            "new_topics": words.gather(begins[found.shift]),
            "old_topics": words.gather(of_user),
            "like_new": found.like_new,
            "like_old": found.like_old,
        }
    )
    met = (pl.col("like_new") >= ALIGNED).cast(pl.Int64)
    before = (met.cum_sum() - met).over("shift") == 0
    return frame.filter(before)


def compare_answers(
    turns: pl.DataFrame, vectors: "VectorView"
) -> tuple[Float64Array, Float64Array]:
    """Return each answer's cosine to the user's text, and to the answer before; NaN without one."""
    owner = turns["dialogue_row"].to_numpy()
    user, system = (vectors.codes(turns[f"{who}_text"]) for who in ("user", "system"))
    follows = np.flatnonzero(owner[1:] == owner[:-1]) + 1
    to_last = np.full(len(owner), np.nan)
    to_last[follows] = cosine_pairs(vectors.matrix, system[follows - 1], system[follows])
    return cosine_pairs(vectors.matrix, user, system), to_last


def topic_scores(
    turns: pl.DataFrame,
    n_dialogues: int,
    shifts: pl.DataFrame,
    interference: Float64Array,
    vectors: "VectorView",
    options: PreferenceShift,
) -> dict[str, Float64Array]:
    """Return what conversations have in place of the grounded scores."""
    owner, of_shift = turns["dialogue_row"].to_numpy(), shifts["dialogue_row"].to_numpy()
    to_user, to_last = compare_answers(turns, vectors)
    follows = ~np.isnan(to_last)

    def mean(values: Float64Array, rows: Indices) -> Float64Array:
        total = np.bincount(rows, values, n_dialogues)
        found: Float64Array = total / np.maximum(np.bincount(rows, minlength=n_dialogues), 1)
        return found

    recovered = shifts["recovered"].cast(pl.Float64).to_numpy()
    means = {
        "cross_coherence": mean(to_user, owner),
        "context_retention": mean(to_last[follows], owner[follows]),
        "topic_interference": mean(interference, of_shift),
    }
    parts = {**means, "topic_recovery_rate": mean(recovered, of_shift)}
    cas = _adaptation(parts, _mean_delay(of_shift, shifts, n_dialogues), options)
    cas[np.bincount(owner, minlength=n_dialogues) == 0] = np.nan
    nothing = np.full(n_dialogues, np.nan)
    return {**means, "context_adaptation_score": cas, "cas": cas, "cas_all": nothing}


def _mean_delay(of_shift: Indices, shifts: pl.DataFrame, n_dialogues: int) -> Float64Array:
    delay = shifts["delay"].fill_null(0).to_numpy()
    count = np.bincount(of_shift[delay > 0], minlength=n_dialogues)
    total = np.bincount(of_shift, delay, n_dialogues)
    found: Float64Array = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return found


def _adaptation(
    parts: dict[str, Float64Array], delay: Float64Array, options: PreferenceShift
) -> Float64Array:
    """Return the weighted mean of the parts of CAS that there are."""
    speed = 1.0 - np.clip((delay - FIRST_DELAY) / DELAY_SPAN, 0.0, 1.0)
    copied = 1.0 - np.clip(parts["topic_interference"], 0.0, 1.0)
    values = {**parts, "avg_recovery_delay": speed, "topic_interference": copied}
    total, weights = np.zeros(len(delay)), np.zeros(len(delay))
    for name, share in options.cas_shares.items():
        there = ~np.isnan(values[name])
        total += np.where(there, share * np.nan_to_num(values[name]), 0.0)
        weights += np.where(there, share, 0.0)
    found: Float64Array = total / np.where(weights > 0, weights, np.nan)
    return found
