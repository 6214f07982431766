"""Conversations: means over turns, recovery over shifts, CAS over both."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices

from fastscore.suites.columns import find_nulls, list_column
from fastscore.suites.preference_shift.metrics import DIALOGUE_METRICS
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.preference_shift.schema import SEGMENT_SOURCE_DTYPE
from fastscore.suites.preference_shift.segments import Segments

SLOWEST_DELAY = 5.0
"""The delay at which the part of CAS that rewards speed is 0."""

_MEANS = {
    "cross_coherence": "cc",
    "context_retention": "cr",
    "topic_interference": "i",
    "context_adaptation_score": "tas",
}
_RATES = ("topic_recovery_rate", "recovery_rate_cosine")
_METRICS = {metric.id: metric for metric in DIALOGUE_METRICS}
_GOLD_MEANS = tuple(metric.id for metric in DIALOGUE_METRICS if metric.id.startswith("dst_"))


def score_dialogues(
    dialogues: pl.DataFrame,
    turns: pl.DataFrame,
    scores: pl.DataFrame,
    shifts: pl.DataFrame,
    segments: Segments,
    of_topics: Mapping[str, Float64Array],
    options: PreferenceShift,
) -> pl.DataFrame:
    """Score conversations.

    Parameters
    ----------
    dialogues, turns
        The frames of `read_logs`.
    scores
        The scores of each turn.
    shifts
        The rows of `recover_shifts`.
    segments
        The segments of all turns.
    of_topics
        What the profile legacy has in place of some of the scores; float64 (dialogues,) each, NaN
        for null.
    options
        Weights, and the value of a mean of nothing.

    Returns
    -------
    pl.DataFrame
        One row a conversation: ``dialogue_row`` and the columns of the table ``dialogues``.
    """
    n = dialogues.height
    owner, of_shift = turns["dialogue_row"].to_numpy(), shifts["dialogue_row"].to_numpy()
    counts = _counts(n, owner, of_shift, scores, shifts, segments)
    values = _means(owner, scores, counts) | _recovery(counts)
    values |= _conversation_scores(values, _speed_over_all(of_shift, shifts, counts), options)
    values |= dict(of_topics)
    if options.zero_without_turns:
        values |= {id: np.nan_to_num(values[id]) for id in (*_MEANS, *_RATES)}
    if options.gold_is_user:
        values |= {id: np.nan_to_num(values[id]) for id in _GOLD_MEANS}
    profile = ("zero_without_turns", "gold_is_user", "is_legacy")
    nulls = find_nulls(
        counts.with_columns(pl.lit(getattr(options, name)).alias(name) for name in profile),
        [_METRICS[id] for id in values],
    )
    shift_points = np.searchsorted(of_shift, np.arange(n + 1))
    return pl.concat(
        [
            dialogues.select("true_genre", "judge", "n_unpaired", "has_shift_metadata"),
            counts,
            pl.DataFrame(
                {
                    "dialogue_row": np.arange(n),
                    "segments_by": _segments_by(dialogues["has_shift_metadata"], options),
                    "shift_points": list_column(shifts["turn"], shift_points),
                    **{
                        id: pl.Series(column).set(nulls.is_null(id), None)
                        for id, column in values.items()
                    },
                    "null_reasons": nulls.column,
                }
            ),
        ],
        how="horizontal",
    )


def _counts(
    n: int,
    owner: Indices,
    of_shift: Indices,
    scores: pl.DataFrame,
    shifts: pl.DataFrame,
    segments: Segments,
) -> pl.DataFrame:
    """Count the turns, shifts and concepts of n conversations, given those of turns and shifts."""
    return pl.DataFrame(
        {
            "n_turns": np.bincount(owner, minlength=n),
            "n_scored": _total(owner, scores["cc"].is_not_null(), n),
            "n_both_empty": _total(owner, scores["both_empty"], n),
            "n_gold": _total(owner, scores["has_gold"], n),
            "n_segments": np.bincount(owner[segments.start], minlength=n),
            "n_shifts": np.bincount(of_shift, minlength=n),
            "n_shifts_inside": _total(of_shift, shifts["in_dialogue"], n),
            "n_known_shifts": _total(of_shift, shifts["recovered"].is_not_null(), n),
            "n_known_shifts_cosine": _total(of_shift, shifts["recovered_cosine"].is_not_null(), n),
            "n_recovered": _total(of_shift, shifts["recovered"], n),
            "n_recovered_cosine": _total(of_shift, shifts["recovered_cosine"], n),
            "delay_sum": _total(of_shift, shifts["delay"], n),
            "delay_cosine_sum": _total(of_shift, shifts["delay_cosine"], n),
            "i_around_shifts_sum": np.bincount(of_shift, shifts["i_sum"], n).astype(np.float64),
            "n_turns_around_shifts": _total(of_shift, shifts["n_window_turns"], n),
            "missing_concepts_total": _total(owner, scores["n_missing"], n),
            "hallucinated_concepts_total": _total(owner, scores["n_hallucinated"], n),
        }
    )


def _total(owner: Indices, column: pl.Series, n: int) -> Indices:
    """Sum whole numbers or booleans by conversation; nulls count for nothing."""
    weights = column.cast(pl.Int64).fill_null(0).to_numpy()
    return np.bincount(owner, weights, n).astype(np.int64)


def _ratio(total: Float64Array | Indices, count: Indices) -> Float64Array:
    """Divide, NaN where there is nothing to divide by."""
    ratio: Float64Array = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return ratio


def _means(owner: Indices, scores: pl.DataFrame, counts: pl.DataFrame) -> dict[str, Float64Array]:
    """Average over turns, adding from the first turn to the last."""
    n = counts.height

    def mean(column: str, count: Indices) -> Float64Array:
        filled = scores[column].fill_null(0.0).to_numpy()
        return _ratio(np.bincount(owner, filled, n).astype(np.float64), count)

    n_scored, n_gold = counts["n_scored"].to_numpy(), counts["n_gold"].to_numpy()
    means = {name: mean(column, n_scored) for name, column in _MEANS.items()}
    return means | {name: mean(name.removesuffix("_mean"), n_gold) for name in _GOLD_MEANS}


def _recovery(counts: pl.DataFrame) -> dict[str, Float64Array]:
    column = {name: counts[name].to_numpy() for name in counts.columns}
    return {
        "topic_recovery_rate": _ratio(column["n_recovered"], column["n_known_shifts"]),
        "avg_recovery_delay": _ratio(column["delay_sum"], column["n_recovered"]),
        "recovery_rate_cosine": _ratio(
            column["n_recovered_cosine"], column["n_known_shifts_cosine"]
        ),
        "avg_recovery_delay_cosine": _ratio(
            column["delay_cosine_sum"], column["n_recovered_cosine"]
        ),
        "topic_interference_around_shifts": _ratio(
            column["i_around_shifts_sum"], column["n_turns_around_shifts"]
        ),
    }


def _speed_over_all(of_shift: Indices, shifts: pl.DataFrame, counts: pl.DataFrame) -> Float64Array:
    """Return the mean part of CAS that rewards speed, over all shifts whose recovery is known.

    It is 0 for a shift that was not recovered.
    """
    delay = shifts["delay"].fill_null(SLOWEST_DELAY).to_numpy()
    part = 1.0 - np.minimum(delay, SLOWEST_DELAY) / SLOWEST_DELAY
    part[shifts["recovered"].is_null().to_numpy()] = 0.0
    total = np.bincount(of_shift, part, counts.height).astype(np.float64)
    return _ratio(total, counts["n_known_shifts"].to_numpy())


def _conversation_scores(
    values: Mapping[str, Float64Array],
    speed_over_all: Float64Array,
    options: PreferenceShift,
) -> dict[str, Float64Array]:
    """Return CAS and CAS over all shifts.

    Both are NaN without a shift or a turn. CAS as published takes the mean delay of the shifts
    that were recovered, so it is NaN where none was; the other lets each shift count, one that
    never recovered with the longest delay.
    """

    def weigh(speed: Float64Array) -> Float64Array:
        parts = {
            **values,
            "avg_recovery_delay": speed,
            "topic_interference": 1.0 - np.clip(values["topic_interference"], 0.0, 1.0),
        }
        total = np.zeros(len(speed))
        for part, share in options.cas_shares.items():
            total += share * parts[part]
        return total

    of_recovered = 1.0 - np.clip(values["avg_recovery_delay"] / SLOWEST_DELAY, 0.0, 1.0)
    return {"cas": weigh(of_recovered), "cas_all": weigh(speed_over_all)}


def _segments_by(metadata: pl.Series, options: PreferenceShift) -> pl.Series:
    instead = "none" if options.segments == "metadata" else options.segments
    found = pl.when(metadata).then(pl.lit("metadata")).otherwise(pl.lit(instead))
    return pl.select(found.cast(SEGMENT_SOURCE_DTYPE)).to_series()
