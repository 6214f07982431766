"""From logs to the tables: turns, segments, shifts and conversations.

A conversation has means over its turns, recovery over its shifts, and CAS over both.

Two trivial agents are scored too, by the definitions. A refusal has no concept and no
word of the user's, so CC is 1 if the user's text has no concept, else 0, and CR and copying are 0.
An echo has the user's concepts. Recovery is then tested as for any agent. Only turns that the run
could score count.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl
from fastscore_jit.threads import raise_if_stopped
from fastscore_kernels import ngram_copy_ratio, set_difference_csr
from polars import col as C

from fastscore.suites.base import Events
from fastscore.suites.preference_shift.concepts import Concepts, Sets, unite_sets
from fastscore.suites.preference_shift.extraction import extract_concepts
from fastscore.suites.preference_shift.metrics import (
    MEANS_OF_TURNS,
    score_conversations,
    speed,
)
from fastscore.suites.preference_shift.metrics.turns import (
    DST,
    ECHOING,
    REFUSING,
    SHIFT_KEY,
    SHIFT_METRICS,
    add_up,
    score_segments,
    score_shifts,
    score_turns,
    tas,
    with_nulls,
)
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.preference_shift.recovery import (
    compare_answers,
    cut_segments,
    find_boundaries,
    recover_topics,
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
    """Return the tables of `score_events` with all that their metrics were computed from."""
    turns, dialogues, shifts = (events.frames[name] for name in ("turns", "dialogues", "shifts"))
    concepts, sets = extract_concepts(turns, events.frames["gold"], vectors, options)
    raise_if_stopped()
    turns = score_turns(turns, sets, concepts, options)
    raise_if_stopped()
    is_boundary = find_boundaries(turns, dialogues, sets.user, vectors, options)
    if options.is_legacy:
        shifts = pl.concat([shifts, turns.filter(is_boundary).select(SHIFT_KEY)]).sort(SHIFT_KEY)
    turns, segments = cut_segments(turns, shifts, is_boundary)
    raise_if_stopped()
    user, system = (
        unite_sets(side, turns["segment_row"], segments.height) for side in (sets.user, sets.system)
    )
    segments = score_segments(segments, turns, user, system, concepts, options)
    shifts = score_shifts(shifts, turns, options)
    if options.is_legacy:
        turns = compare_answers(turns, vectors)
        shifts = recover_topics(turns, shifts, vectors)
    raise_if_stopped()
    tables = {
        "turns": turns.with_columns(
            pl.when("has_user_text").then("user_text").alias("user_text"),
            pl.when("has_system_text").then("system_text").alias("system_text"),
            concepts.names(sets.user).alias("user_concepts"),
            concepts.names(sets.system).alias("system_concepts"),
            *_differences(sets.user, sets.system, concepts),
            gold_concepts=concepts.names(sets.gold),
        ).with_columns(
            gold_concepts=pl.when("has_gold")
            .then("gold_concepts")
            .otherwise(C("user_concepts") if options.gold_is_user else None)
        ),
        "segments": segments.with_columns(*_differences(user.sets, system.sets, concepts)),
        "shifts": with_nulls(shifts, SHIFT_METRICS, options),
        "dialogues": _score_dialogues(dialogues, turns, shifts, options),
    }
    return {name: _placed(dialogues, frame) for name, frame in tables.items()}


def _differences(user: Sets, system: Sets, concepts: Concepts) -> tuple[pl.Series, pl.Series]:
    """Return the concepts of the user alone, and of the system alone."""
    return (
        concepts.names(set_difference_csr(user, system)).alias("missing_concepts"),
        concepts.names(set_difference_csr(system, user)).alias("hallucinated_concepts"),
    )


def _placed(dialogues: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """Put before each row the place of its conversation."""
    places = dialogues.select(C(*_PLACE).gather(frame["dialogue_row"]))
    return places.hstack(frame.drop("dialogue_row", *_PLACE, strict=False))


def _score_dialogues(
    dialogues: pl.DataFrame, turns: pl.DataFrame, shifts: pl.DataFrame, options: PreferenceShift
) -> pl.DataFrame:
    """Count and add up in each conversation what its metrics need, and score it."""
    of_turns = turns.group_by("dialogue_row").agg(
        n_turns=pl.len(),
        n_scored=C("cc").count(),
        n_both_empty=C("both_empty").sum(),
        n_followed=(C("turn") > 1).sum(),
        n_gold=C("dst_f1").count(),
        n_segments=C("segment").max(),
        missing_concepts_total=C("n_missing").sum(),
        hallucinated_concepts_total=C("n_hallucinated").sum(),
    )
    of_shifts = shifts.group_by("dialogue_row").agg(
        n_shifts=pl.len(),
        n_shifts_inside=C("in_dialogue").sum(),
        n_known_shifts=C("recovered").count(),
        n_known_shifts_cosine=C("recovered_cosine").count(),
        n_recovered=C("recovered").sum(),
        n_recovered_cosine=C("recovered_cosine").sum(),
        delay_sum=C("delay").sum(),
        delay_cosine_sum=C("delay_cosine").sum(),
        n_turns_around_shifts=C("n_window_turns").sum(),
        shift_points="turn",
    )
    counts = C("^n_.*$", "^.*_total$", "^delay.*_sum$")
    found = (
        dialogues.join(of_turns, on="dialogue_row", how="left", maintain_order="left")
        .join(of_shifts, on="dialogue_row", how="left", maintain_order="left")
        .with_columns(
            counts.cast(pl.Int64).fill_null(0),
            C("shift_points").fill_null([]),
            segments_by=pl.when("has_shift_metadata")
            .then(pl.lit("metadata"))
            .otherwise(pl.lit("none" if options.segments == "metadata" else options.segments))
            .cast(SEGMENT_SOURCE_DTYPE),
        )
    )
    shifts = shifts.with_columns(
        # a shift that is not recovered has no speed
        speed=speed("delay", options).fill_null(0.0),
        i_around_shifts="i_sum",
    )
    columns = dict.fromkeys(MEANS_OF_TURNS.values(), turns)
    columns |= {"speed": shifts, "i_around_shifts": shifts}
    if options.is_legacy:
        columns |= {"cosine_to_user": turns, "cosine_to_last": turns, "interference": shifts}
    sums = (
        add_up(rows[name], rows["dialogue_row"], dialogues.height).alias(f"{name}_sum")
        for name, rows in columns.items()
    )
    return score_conversations(found.with_columns(sums), options)


_ROW = "dialogue_row"
_MEANS = {id: column for id, column in MEANS_OF_TURNS.items() if column not in DST}


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
    scores = pl.concat(
        [turns.select(_ROW, "turn"), scores.with_columns(tas=tas(options))], how="horizontal"
    ).with_columns(pl.when(turns["cc"].is_not_null()).then(C("cc", "cr", "i", "tas")))
    found = score_shifts(shifts, scores, options)
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
