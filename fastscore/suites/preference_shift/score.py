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
    recovery_speed,
    score_conversations,
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
        speed=recovery_speed("delay", options).fill_null(0.0),
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


_MEANS = {id: column for id, column in MEANS_OF_TURNS.items() if column not in DST}
_AGENT_METRICS = (*_MEANS, "topic_recovery_rate", "avg_recovery_delay")


def score_trivial_agents(
    tables: Mapping[str, pl.LazyFrame], options: PreferenceShift
) -> pl.DataFrame:
    """Score both agents on the log of these tables."""
    schema = {"agent": pl.String(), "dialogue": pl.String()}
    nobody = pl.DataFrame(schema=schema | dict.fromkeys(_AGENT_METRICS, pl.Float64()))
    if options.is_legacy:
        return nobody
    dialogues = tables["dialogues"].select("dialogue").with_row_index("dialogue_row").collect()
    turns, shifts = (
        tables[name]
        .select("dialogue", *columns)
        .join(dialogues.lazy(), on="dialogue", nulls_equal=True)
        .sort(SHIFT_KEY)
        .collect()
        for name, columns in (
            ("turns", ("turn", "cc", "user_concepts", "user_text")),
            ("shifts", ("turn",)),
        )
    )
    turns = turns.with_columns(is_scored=C("cc").is_not_null())
    has_concepts = (C("user_concepts").list.len() > 0).cast(pl.Float64)
    echoed = turns["user_text"].fill_null("")
    agents = {
        REFUSING: turns.with_columns(cc=1.0 - has_concepts, cr=0.0, i=0.0),
        ECHOING: turns.with_columns(
            cc=1.0, cr=has_concepts, i=ngram_copy_ratio(echoed, echoed, options.orders)
        ),
    }
    frames = [
        _score_agent(dialogues, answered, shifts, options).select(
            pl.lit(agent).alias("agent"), "dialogue", *_AGENT_METRICS
        )
        for agent, answered in agents.items()
    ]
    return pl.concat([nobody, *frames])


def _score_agent(
    dialogues: pl.DataFrame, turns: pl.DataFrame, shifts: pl.DataFrame, options: PreferenceShift
) -> pl.DataFrame:
    """Return the metrics of each dialogue, from CC, CR and copying of its turns."""
    turns = turns.with_columns(tas=tas(options)).with_columns(
        pl.when("is_scored").then(C("cc", "cr", "i", "tas"))
    )
    means = turns.group_by("dialogue_row").agg(
        C(column).mean().alias(id) for id, column in _MEANS.items()
    )
    recovered = (
        score_shifts(shifts, turns, options)
        .group_by("dialogue_row")
        .agg(topic_recovery_rate=C("recovered").mean(), avg_recovery_delay=C("delay").mean())
    )
    return dialogues.join(means, on="dialogue_row", how="left", maintain_order="left").join(
        recovered, on="dialogue_row", how="left", maintain_order="left"
    )
