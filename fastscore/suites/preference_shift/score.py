"""From logs to the tables: turns, segments, shifts and conversations.

A conversation has means over its turns, recovery over its shifts, and CAS over both.

Two trivial agents are scored too, by the definitions. A refusal has no concept and no
word of the user's, so CC is 1 if the user's text has no concept, else 0, and CR and copying are 0.
An echo has the user's concepts. Recovery is then tested as for any agent. Only turns that the run
could score count.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices, Mask
from fastscore_jit.threads import raise_if_stopped
from fastscore_kernels import (
    idf_cosine_csr,
    intersection_size_csr,
    jaccard_csr,
    ngram_copy_ratio,
    set_difference_csr,
)

from fastscore.suites.base import Events
from fastscore.suites.columns import find_nulls, list_column
from fastscore.suites.declarations import metrics_using
from fastscore.suites.grouping import first_of_group, place_in_group
from fastscore.suites.preference_shift.concepts import Concepts, sizes_of
from fastscore.suites.preference_shift.extraction import Extracted, extract_concepts
from fastscore.suites.preference_shift.metrics import (
    DIALOGUE_METRICS,
    MEANS_OF_TURNS,
    SLOWEST_DELAY,
)
from fastscore.suites.preference_shift.metrics.turns import (
    ECHOING,
    REFUSING,
    SEGMENT_METRICS,
    SHIFT_METRICS,
    TURN_METRICS,
)
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.preference_shift.recovery import (
    Segments,
    find_segments,
    recover_shifts,
    recover_topics,
    segment_scores,
    shift_rows,
    topic_scores,
    with_boundaries,
)
from fastscore.suites.preference_shift.schema import SEGMENT_SOURCE_DTYPE, TABLES

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


_PLACE = ("file", "line", "dialogue", "model")


def score_events(
    events: Events, vectors: "VectorView", options: PreferenceShift
) -> dict[str, pl.DataFrame]:
    """Score the conversations of `read_events`."""
    found = score_with_counts(events, vectors, options)
    return {table.name: found[table.name].select(*table.schema) for table in TABLES}


def score_with_counts(
    events: Events, vectors: "VectorView", options: PreferenceShift
) -> dict[str, pl.DataFrame]:
    """Return the tables of `score_events` with all that their metrics were computed from.

    Among it are the sizes of sets of concepts: ``n_shared`` and ``n_either`` of turns and segments,
    and of turns ``n_system``, ``n_gold`` and ``n_hits``, the system's concepts that are gold.
    """
    frames = events.frames
    turns, dialogues, shifts = frames["turns"], frames["dialogues"], frames["shifts"]
    concepts, sets = extract_concepts(turns, frames["gold"], vectors, options)
    raise_if_stopped()
    scores = _score_turns(turns, concepts, sets, options)
    raise_if_stopped()
    segments = find_segments(turns, dialogues, shifts, sets.user, vectors, options)
    if options.is_legacy:
        shifts = with_boundaries(turns, dialogues, shifts, segments)
    raise_if_stopped()
    recovered = recover_shifts(turns, dialogues.height, shifts, scores, options)
    of_topics: Mapping[str, Float64Array] = {}
    if options.is_legacy:
        recovered, interference = recover_topics(turns, recovered, segments, vectors)
        of_topics = topic_scores(turns, dialogues.height, recovered, interference, vectors, options)
    raise_if_stopped()
    tables = {
        "turns": _turns_table(turns, shifts, concepts, sets, scores, segments, options),
        "segments": _segments_table(turns, concepts, sets, scores, segments, options),
        "shifts": recovered.with_columns(find_nulls(recovered, SHIFT_METRICS).column),
        "dialogues": score_dialogues(
            dialogues, turns, scores, recovered, segments, of_topics, options
        ),
    }
    return {name: _placed(dialogues, frame) for name, frame in tables.items()}


def _placed(dialogues: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """Put before each row the place of its conversation."""
    rows = frame["dialogue_row"]
    return pl.concat(
        [dialogues.select(pl.col(*_PLACE).gather(rows)), frame.drop("dialogue_row")],
        how="horizontal",
    )


_NEED_TEXTS = ("cc", "cr", "i", "tas", "n_missing", "n_hallucinated")
"""Columns that are null if one of the turn's texts is missing."""


def _score_turns(
    turns: pl.DataFrame, concepts: Concepts, sets: Extracted, options: PreferenceShift
) -> pl.DataFrame:
    """Return CC, CR, I, TAS, their sizes, the DST scores and reasons of nulls, a row a turn."""
    cc = jaccard_csr(sets.user, sets.system)
    cr = idf_cosine_csr(sets.user, sets.system, concepts.idf)
    copied = ngram_copy_ratio(turns["system_text"], turns["user_text"], options.orders)
    common = intersection_size_csr(sets.user, sets.system)
    user, system = sizes_of(sets.user), sizes_of(sets.system)
    scores = pl.DataFrame(
        {
            "dialogue_row": turns["dialogue_row"],
            "cc": cc,
            "cr": cr,
            "i": copied,
            "tas": adaptation_score(cc, cr, copied, options),
            "both_empty": (user == 0) & (system == 0),
            "n_shared": common,
            "n_either": user + system - common,
            "n_missing": user - common,
            "n_hallucinated": system - common,
        }
    )
    facts = turns.with_columns(gold_is_user=pl.lit(options.gold_is_user))
    nulls = find_nulls(facts, TURN_METRICS)
    lacks_text, untracked = nulls.is_null("cc"), nulls.is_null("dst_f1")
    if lacks_text.any():
        scores = scores.with_columns(
            pl.when(lacks_text).then(None).otherwise(pl.col(_NEED_TEXTS)).name.keep(),
            (pl.col("both_empty") & ~lacks_text).alias("both_empty"),
        )
    dst = _track_state(turns, sets, options).select(
        pl.when(untracked).then(None).otherwise(pl.all()).name.keep()
    )
    has_gold = (~untracked).alias("has_gold").to_frame()
    return pl.concat([scores, has_gold, dst, nulls.column.to_frame()], how="horizontal")


def adaptation_score(
    cc: Float64Array, cr: Float64Array, copied: Float64Array, options: PreferenceShift
) -> Float64Array:
    """Return TAS: the weighted sum of CC, CR and copying, clipped to [-1, 1]."""
    score = options.alpha * cc + options.beta * cr - options.gamma * copied
    clipped: Float64Array = np.clip(score, -1.0, 1.0)
    return clipped


def _track_state(turns: pl.DataFrame, sets: Extracted, options: PreferenceShift) -> pl.DataFrame:
    """Compare the system's concepts with the gold ones as dialogue state tracking does."""
    common, gold = intersection_size_csr(sets.system, sets.gold), sizes_of(sets.gold)
    if options.gold_is_user:
        given = turns["has_gold"].to_numpy()
        common = np.where(given, common, intersection_size_csr(sets.system, sets.user))
        gold = np.where(given, gold, sizes_of(sets.user))
    predicted = sizes_of(sets.system)
    precision = np.where(predicted > 0, common / np.maximum(predicted, 1), gold == 0)
    recall = np.where(gold > 0, common / np.maximum(gold, 1), 1.0)
    total = precision + recall
    f1 = np.where(total > 0, 2.0 * precision * recall / np.where(total > 0, total, 1.0), 0.0)
    joint = (common == predicted) & (common == gold)
    return pl.DataFrame(
        {
            "dst_precision": precision,
            "dst_recall": recall,
            "dst_f1": f1,
            "dst_joint_accuracy": joint.astype(np.float64),
            "n_hits": common,
            "n_system": predicted,
            "n_gold": gold,
        }
    )


def _turns_table(
    turns: pl.DataFrame,
    shifts: pl.DataFrame,
    concepts: Concepts,
    sets: Extracted,
    scores: pl.DataFrame,
    segments: Segments,
    options: PreferenceShift,
) -> pl.DataFrame:
    owner = turns["dialogue_row"].to_numpy()
    first = first_of_group(owner)
    named = {
        "user_concepts": concepts.names(sets.user),
        "system_concepts": concepts.names(sets.system),
        "missing_concepts": concepts.names(set_difference_csr(sets.user, sets.system)),
        "hallucinated_concepts": concepts.names(set_difference_csr(sets.system, sets.user)),
        "gold_concepts": concepts.names(sets.gold),
    }
    without_constraints = pl.col("user_concepts") if options.gold_is_user else None
    return pl.concat(
        [
            scores.drop("n_missing", "n_hallucinated", "has_gold"),
            turns.drop("dialogue_row", "has_gold"),
            pl.DataFrame(named),
        ],
        how="horizontal",
    ).with_columns(
        pl.when("has_user_text").then("user_text").alias("user_text"),
        pl.when("has_system_text").then("system_text").alias("system_text"),
        pl.Series("segment", 1 + segments.of_turn - segments.of_turn[first]),
        pl.Series("is_shift", _is_shift(owner, shifts)),
        pl.when(turns["has_gold"])
        .then("gold_concepts")
        .otherwise(without_constraints)
        .alias("gold_concepts"),
    )


def _is_shift(owner: Indices, shifts: pl.DataFrame) -> Mask:
    """Whether a turn is a shift point of its conversation."""
    marked = np.zeros(len(owner), np.bool_)
    marked[shift_rows(owner, shifts)] = True
    return marked


def _segments_table(
    turns: pl.DataFrame,
    concepts: Concepts,
    sets: Extracted,
    scores: pl.DataFrame,
    segments: Segments,
    options: PreferenceShift,
) -> pl.DataFrame:
    cc, cr, of_user, of_system = segment_scores(segments, sets.user, sets.system, concepts)
    sizes = np.diff(np.append(segments.start, turns.height))
    copied, n_scored = _mean_copied(scores["i"], segments)
    owner = turns["dialogue_row"].to_numpy()[segments.start]
    start = turns["turn"].to_numpy()[segments.start]
    values = {
        "segment_cc": cc,
        "segment_cr": cr,
        "segment_i": copied,
        "segment_tas": adaptation_score(cc, cr, copied, options),
    }
    nulls = find_nulls(pl.DataFrame({"n_scored": n_scored}), SEGMENT_METRICS)
    missing, unasked = (
        set_difference_csr(one, other)
        for one, other in ((of_user, of_system), (of_system, of_user))
    )
    n_user = sizes_of(of_user)
    return pl.DataFrame(
        {
            "dialogue_row": owner,
            "segment": 1 + place_in_group(owner),
            "start_turn": start,
            "end_turn": start + sizes - 1,
            **{id: pl.Series(found).set(nulls.is_null(id), None) for id, found in values.items()},
            "missing_concepts": concepts.names(missing),
            "hallucinated_concepts": concepts.names(unasked),
            "n_shared": n_user - sizes_of(missing),
            "n_either": n_user + sizes_of(unasked),
            "null_reasons": nulls.column,
        }
    )


def _mean_copied(copied: pl.Series, segments: Segments) -> tuple[Float64Array, Indices]:
    """Return the mean of I over the turns of each segment that have one, and their number."""
    has_one = copied.is_not_null().to_numpy()
    total = np.bincount(segments.of_turn, copied.fill_null(0.0).to_numpy(), len(segments))
    count = np.bincount(segments.of_turn, has_one, len(segments)).astype(np.int64)
    return total / np.maximum(count, 1), count


_METRICS = {metric.id: metric for metric in DIALOGUE_METRICS}
_OF_GOLD = metrics_using(DIALOGUE_METRICS, "user_meta")
_ZERO_OF_NOTHING = tuple(metric.id for metric in DIALOGUE_METRICS if metric.fixed_where)


def score_dialogues(
    dialogues: pl.DataFrame,
    turns: pl.DataFrame,
    scores: pl.DataFrame,
    shifts: pl.DataFrame,
    segments: Segments,
    of_topics: Mapping[str, Float64Array],
    options: PreferenceShift,
) -> pl.DataFrame:
    """Score conversations."""
    n = dialogues.height
    owner, of_shift = turns["dialogue_row"].to_numpy(), shifts["dialogue_row"].to_numpy()
    counts = _counts(n, owner, of_shift, scores, shifts, segments)
    values = _means(owner, scores, counts) | _recovery(counts)
    values |= _conversation_scores(values, _speed_over_all(of_shift, shifts, counts), options)
    values |= dict(of_topics)
    if options.zero_without_turns:
        values |= {id: np.nan_to_num(values[id]) for id in _ZERO_OF_NOTHING}
    if options.gold_is_user:
        values |= {id: np.nan_to_num(values[id]) for id in _OF_GOLD}
    profile = ("zero_without_turns", "gold_is_user", "is_legacy")
    nulls = find_nulls(
        counts.with_columns(pl.lit(getattr(options, name)).alias(name) for name in profile),
        [_METRICS[id] for id in values],
    )
    shift_points = np.searchsorted(of_shift, np.arange(n + 1))
    return pl.concat(
        [
            dialogues.select(
                "session_id", "true_genre", "judge", "n_unpaired", "has_shift_metadata"
            ),
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
    """Sum integers or booleans by conversation. Nulls are ignored."""
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
    return {
        id: mean(column, n_gold if id in _OF_GOLD else n_scored)
        for id, column in MEANS_OF_TURNS.items()
    }


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


_ROW = "dialogue_row"
_MEANS = {id: column for id, column in MEANS_OF_TURNS.items() if id not in _OF_GOLD}


def score_trivial_agents(
    tables: Mapping[str, pl.LazyFrame], options: PreferenceShift
) -> pl.DataFrame:
    """Score both agents on the log of these tables."""
    key = ["dialogue"]
    dialogues = tables["dialogues"].select(key).with_row_index(_ROW).collect()
    turns, shifts = (
        tables[name]
        .select(*key, *columns)
        .join(dialogues.lazy(), on=key, nulls_equal=True)
        .sort(_ROW, "turn")
        .collect()
        for name, columns in (
            ("turns", ("turn", "cc", "user_concepts", "user_text")),
            ("shifts", ("turn",)),
        )
    )
    agents = {} if options.is_legacy else {REFUSING: _refuse(turns), ECHOING: _echo(turns, options)}
    frames = [
        _score_agent(dialogues, turns, shifts, scores, options).select(
            pl.lit(agent).alias("agent"), pl.exclude(_ROW)
        )
        for agent, scores in agents.items()
    ]
    metrics = dict.fromkeys((*_MEANS, "topic_recovery_rate", "avg_recovery_delay"), pl.Float64())
    schema = {"agent": pl.String(), **dialogues.select(key).schema, **metrics}
    return pl.concat([pl.DataFrame(schema=schema), *frames])


def _refuse(turns: pl.DataFrame) -> pl.DataFrame:
    has_concepts = turns["user_concepts"].list.len() > 0
    return pl.select(
        pl.lit(~has_concepts).cast(pl.Float64).alias("cc"),
        pl.zeros(turns.height, eager=True).alias("cr"),
        pl.zeros(turns.height, eager=True).alias("i"),
    )


def _echo(turns: pl.DataFrame, options: PreferenceShift) -> pl.DataFrame:
    echoed = turns["user_text"].fill_null("")
    has_concepts = turns["user_concepts"].list.len() > 0
    return pl.select(
        pl.ones(turns.height, eager=True).alias("cc"),
        pl.lit(has_concepts).cast(pl.Float64).alias("cr"),
        pl.Series("i", ngram_copy_ratio(echoed, echoed, options.orders)),
    )


def _score_agent(
    dialogues: pl.DataFrame,
    turns: pl.DataFrame,
    shifts: pl.DataFrame,
    scores: pl.DataFrame,
    options: PreferenceShift,
) -> pl.DataFrame:
    """Return the metrics of each dialogue, from CC, CR and copying of its turns."""
    cc, cr, copied = (scores[name].to_numpy() for name in ("cc", "cr", "i"))
    tas = pl.Series("tas", adaptation_score(cc, cr, copied, options))
    is_scored = turns["cc"].is_not_null()
    scores = pl.concat([turns.select(_ROW), scores, tas.to_frame()], how="horizontal").with_columns(
        pl.when(pl.lit(is_scored)).then(pl.col("cc", "cr", "i", "tas"))
    )
    found = recover_shifts(turns, dialogues.height, shifts, scores, options)
    means = scores.group_by(_ROW).agg(
        pl.col(column).mean().alias(id) for id, column in _MEANS.items()
    )
    recovered = found.group_by(_ROW).agg(
        pl.col("recovered").mean().alias("topic_recovery_rate"),
        pl.col("delay").mean().alias("avg_recovery_delay"),
    )
    return (
        dialogues.with_columns(pl.col(_ROW).cast(pl.Int64))
        .join(means.cast({_ROW: pl.Int64}), on=_ROW, how="left", maintain_order="left")
        .join(recovered.cast({_ROW: pl.Int64}), on=_ROW, how="left", maintain_order="left")
    )
