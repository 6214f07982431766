"""From logs to the tables: turns, segments, shifts and conversations.

A conversation has means over its turns, recovery over its shifts, and CAS over both. Boundaries
that are detected are never shifts: they cut segments, and recovery is not asked there.

By topics, as the profile legacy has it, shifts are those of the metadata or, without any, the
boundaries that the user's texts show. After each, the system's turns with topic words are read to
the end of the conversation. The first whose topics are aligned with the new ones recovers the
shift; until then each turn with the former topics counts as interference. The public code leaves
two cases undefined: a shift at the first turn has no topics before it, and without a recovery the
delay is null here instead of 0, which would be the best delay.

Two trivial agents are scored too. A refusal has no concept and no word of the user's. An echo has
the user's concepts. Only turns that the run could score count.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices
from fastscore_jit.threads import raise_if_stopped
from fastscore_kernels import (
    cosine_pairs,
    idf_cosine_counted_csr,
    idf_cosine_csr,
    intersection_size_csr,
    jaccard_csr,
    ngram_copy_ratio,
    set_difference_csr,
)
from polars import col as C

from fastscore.suites.base import Events
from fastscore.suites.columns import find_nulls
from fastscore.suites.declarations import Metric
from fastscore.suites.preference_shift.catalogue import load_catalogue
from fastscore.suites.preference_shift.concepts import (
    Bags,
    Concepts,
    Sets,
    extract_concepts,
    gather_sets,
    sizes_of,
    topics_of,
    unite_sets,
)
from fastscore.suites.preference_shift.metrics import (
    ALIGNED,
    DELAY_SPAN,
    DIALOGUE_METRICS,
    ECHOING,
    FIRST_DELAY,
    LONGEST_SEEN,
    MEANS_OF_TURNS,
    REFUSING,
    SEGMENT_METRICS,
    SHIFT_METRICS,
    SLOWEST_DELAY,
    TURN_METRICS,
)
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.preference_shift.schema import SEGMENT_SOURCE_DTYPE, SHIFT_KEY, TABLES

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


_MOST_EMPTY = 0.5  # of the turns: 0.31 in the recorded conversations
_PLACE = ("file", "line", "dialogue", "model")


def score_events(
    events: Events, vectors: "VectorView", options: PreferenceShift
) -> dict[str, pl.DataFrame]:
    """Score the conversations of `read_events`."""
    found = score_with_counts(events, vectors, options)
    return {table.name: found[table.name][list(table.schema)] for table in TABLES}


def notes_on_run(dialogues: pl.LazyFrame, options: PreferenceShift) -> list[str]:
    """Say if most turns name no concept, and which fields are called nearly as lacking ones."""
    n_empty, n_turns = (
        dialogues.select(C("n_both_empty").sum(), C("n_turns").sum()).collect().row(0)
    )
    of_turns = (
        [
            f"in {n_empty:,} of {n_turns:,} turns neither text names a concept of the catalogue: "
            "CC is 1 there by definition, and does not mean agreement"
        ]
        if n_empty > _MOST_EMPTY * n_turns and not options.is_legacy
        else []
    )
    used, there = options.field_names, set(load_catalogue(options.catalogue).fields)
    near = {
        name: get_close_matches(name, sorted(there.difference(used)), n=1, cutoff=0.8)
        for name in used
        if name not in there
    }
    return of_turns + [
        f"the catalogue has no field {name!r}, and {found[0]!r} is not used: rename it, or name it "
        "in fields"
        for name, found in near.items()
        if found
    ]


def score_with_counts(
    events: Events, vectors: "VectorView", options: PreferenceShift
) -> dict[str, pl.DataFrame]:
    """Return the tables of `score_events` with all that their metrics were computed from."""
    turns, dialogues, shifts = (events.frames[name] for name in ("turns", "dialogues", "shifts"))
    concepts, user, system, gold = extract_concepts(turns, events.frames["gold"], vectors, options)
    raise_if_stopped()
    turns = score_turns(turns, user, system, gold, concepts, options)
    raise_if_stopped()
    is_boundary = find_boundaries(turns, dialogues, user, vectors, options)
    if options.is_legacy:
        shifts = pl.concat([shifts, turns.filter(is_boundary).select(SHIFT_KEY)]).sort(SHIFT_KEY)
    turns, segments = cut_segments(turns, shifts, is_boundary)
    raise_if_stopped()
    of_user, of_system = (
        unite_sets(side, turns["segment_row"], segments.height) for side in (user, system)
    )
    segments = score_segments(segments, turns, of_user, of_system, concepts, options)
    shifts = score_shifts(shifts, turns, options)
    if options.is_legacy:
        # each answer's cosine to the user's text, and to the answer before
        asked, answers = (vectors.codes(turns[f"{who}_text"]) for who in ("user", "system"))
        to_last = cosine_pairs(vectors.matrix, np.roll(answers, 1), answers)
        turns = turns.with_columns(
            cosine_to_user=cosine_pairs(vectors.matrix, asked, answers),
            cosine_to_last=pl.when(C("turn") > 1).then(pl.lit(pl.Series(to_last))),
        )
        shifts = recover_topics(turns, shifts, vectors)
    raise_if_stopped()
    tables = {
        "turns": turns.with_columns(
            pl.when("has_user_text").then("user_text").alias("user_text"),
            pl.when("has_system_text").then("system_text").alias("system_text"),
            *_differences(user, system, concepts),
            user_concepts=concepts.names(user),
            system_concepts=concepts.names(system),
            gold_concepts=concepts.names(gold),
        ).with_columns(
            gold_concepts=pl.when("has_gold")
            .then("gold_concepts")
            .otherwise(C("user_concepts") if options.gold_is_user else None)
        ),
        "segments": segments.with_columns(*_differences(of_user.sets, of_system.sets, concepts)),
        "shifts": with_nulls(shifts, SHIFT_METRICS, options),
        "dialogues": _score_dialogues(dialogues, turns, shifts, options),
    }
    # before each row comes the place of its conversation
    places = dialogues.select(_PLACE)
    return {
        name: places[frame["dialogue_row"]].hstack(
            frame.drop("dialogue_row", *_PLACE, strict=False)
        )
        for name, frame in tables.items()
    }


def _differences(user: Sets, system: Sets, concepts: Concepts) -> tuple[pl.Series, pl.Series]:
    """Return the concepts of the user alone, and of the system alone."""
    return (
        concepts.names(set_difference_csr(user, system)).alias("missing_concepts"),
        concepts.names(set_difference_csr(system, user)).alias("hallucinated_concepts"),
    )


def tas(options: PreferenceShift, prefix: str = "") -> pl.Expr:
    """Return TAS of columns with a prefix."""
    cc, cr, i = (C(f"{prefix}{part}") for part in ("cc", "cr", "i"))
    return (options.alpha * cc + options.beta * cr - options.gamma * i).clip(-1.0, 1.0)


_HITS, _NAMED, _WANTED = C("n_hits"), C("n_system"), C("n_gold")
_P = pl.when(_NAMED > 0).then(_HITS / _NAMED).otherwise((_WANTED == 0).cast(pl.Float64))
_R = pl.when(_WANTED > 0).then(_HITS / _WANTED).otherwise(1.0)
DST = {
    "dst_precision": _P,
    "dst_recall": _R,
    "dst_f1": pl.when(_P + _R > 0).then(2.0 * _P * _R / (_P + _R)).otherwise(0.0),
    "dst_joint_accuracy": ((_HITS == _NAMED) & (_HITS == _WANTED)).cast(pl.Float64),
}


def score_turns(
    turns: pl.DataFrame,
    user: Sets,
    system: Sets,
    gold: Sets,
    concepts: Concepts,
    options: PreferenceShift,
) -> pl.DataFrame:
    """Return turns with their metrics, and the sizes of the sets that these compare."""
    turns = turns.with_columns(
        cc=jaccard_csr(user, system),
        cr=idf_cosine_csr(user, system, concepts.idf),
        i=ngram_copy_ratio(turns["system_text"], turns["user_text"], options.orders),
        n_user=np.diff(user[1]),
        n_system=np.diff(system[1]),
        n_gold=np.diff(gold[1]),
        n_shared=intersection_size_csr(user, system),
        n_hits=intersection_size_csr(system, gold),
    )
    if options.gold_is_user:
        # without constraints the system is held to the user's own concepts
        given = pl.when("has_gold")
        turns = turns.with_columns(
            n_gold=given.then("n_gold").otherwise("n_user"),
            n_hits=given.then("n_hits").otherwise("n_shared"),
        )
    turns = with_nulls(turns.with_columns(tas=tas(options), **DST), TURN_METRICS, options)
    has_texts = C("cc").is_not_null()
    return turns.with_columns(
        pl.when(C("dst_f1").is_not_null()).then(C("n_hits", "n_system", "n_gold")),
        both_empty=has_texts & (C("n_user") == 0) & (C("n_system") == 0),
        n_either=C("n_user") + C("n_system") - C("n_shared"),
        n_missing=pl.when(has_texts).then(C("n_user") - C("n_shared")),
        n_hallucinated=pl.when(has_texts).then(C("n_system") - C("n_shared")),
    )


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
        sets = topics_of(texts)[0] if options.segments == "heuristic" else user
        overlap = jaccard_csr(gather_sets(sets, rows - 1), gather_sets(sets, rows), both_empty=0.0)
        similarity = cosine_pairs(
            vectors.matrix, vectors.codes(texts[rows - 1]), vectors.codes(texts[rows])
        )
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


def score_segments(
    segments: pl.DataFrame,
    turns: pl.DataFrame,
    user: Bags,
    system: Bags,
    concepts: Concepts,
    options: PreferenceShift,
) -> pl.DataFrame:
    """Return segments with their metrics: each is scored as if it were one turn."""
    n_shared = intersection_size_csr(user.sets, system.sets)
    segments = segments.with_columns(
        segment_cc=jaccard_csr(user.sets, system.sets),
        segment_cr=idf_cosine_counted_csr(user, system, concepts.idf),
        segment_i=add_up(turns["i"], turns["segment_row"], segments.height) / C("n_scored"),
        n_shared=n_shared,
        n_either=user.sizes + system.sizes - n_shared,
    )
    return with_nulls(
        segments.with_columns(segment_tas=tas(options, "segment_")), SEGMENT_METRICS, options
    )


def score_shifts(
    shifts: pl.DataFrame, turns: pl.DataFrame, options: PreferenceShift
) -> pl.DataFrame:
    """Return shifts with their metrics: ``j`` is a turn's distance from the shift, below W."""
    longest: Any = turns["turn"].max() or 0
    window = min(max(1, options.window), longest)
    shifts = shifts.with_columns(
        shift=pl.int_range(1, pl.len() + 1).over("dialogue_row"), shift_row=pl.int_range(pl.len())
    )
    windows = (
        shifts.select("shift_row", *SHIFT_KEY, j=pl.int_ranges(0, window))
        .explode("j")
        .with_columns(C("turn") + C("j"))
        .join(turns.select(*SHIFT_KEY, "cc", "cr", "i"), on=SHIFT_KEY, maintain_order="left")
    )
    met, met_cosine = C("cc") >= options.recovery_cc, C("cr") >= options.recovery_cr
    if options.recovery == "cc-or-cr":
        met |= met_cosine
    found = windows.group_by("shift_row").agg(
        delay=C("j").filter(met).min(),
        delay_cosine=C("j").filter(met_cosine).min(),
        n_turns=pl.len(),
        n_window_turns=C("i").count().cast(pl.Int64),
    )
    # without a turn that meets the test, a turn without a text could have been one
    is_complete = C("n_turns").is_null() | (C("n_window_turns") == C("n_turns"))
    recovered, recovered_cosine = (C(name).is_not_null() for name in ("delay", "delay_cosine"))
    return (
        shifts.join(found, on="shift_row", how="left", maintain_order="left")
        .with_columns(
            in_dialogue=C("n_turns").is_not_null(),
            recovered=pl.when(recovered | is_complete).then(recovered),
            recovered_cosine=pl.when(recovered_cosine | is_complete).then(recovered_cosine),
            n_window_turns=C("n_window_turns").fill_null(0),
            i_sum=add_up(windows["i"], windows["shift_row"], shifts.height),
        )
        .with_columns(i_around_shift=C("i_sum") / C("n_window_turns"))
    )


def add_up(values: pl.Series, rows: pl.Series, n: int) -> pl.Series:
    """Return the sums of values by row number, added in order: polars has an order of its own."""
    present = values.fill_null(0.0) if values.null_count() else values
    total = np.bincount(rows.to_numpy(), present.to_numpy(), n)
    return pl.Series(values.name, total, dtype=pl.Float64)


def with_nulls(
    rows: pl.DataFrame, metrics: Sequence[Metric], options: PreferenceShift
) -> pl.DataFrame:
    """Take the values of metrics from rows that their rules exclude, and add the reasons."""
    profile = ("zero_without_turns", "gold_is_user", "is_legacy")
    facts = rows.with_columns(pl.lit(getattr(options, name)).alias(name) for name in profile)
    return find_nulls(facts, metrics).put_into(rows)


def _ratio(total: str, count: str) -> pl.Expr:
    """Return the ratio of two columns; null where there is nothing to divide by."""
    return pl.when(C(count) > 0).then(C(total) / C(count))


MEANS = {
    id: _ratio(f"{column}_sum", "n_gold" if column in DST else "n_scored")
    for id, column in MEANS_OF_TURNS.items()
}
RECOVERY = {
    "topic_recovery_rate": _ratio("n_recovered", "n_known_shifts"),
    "avg_recovery_delay": _ratio("delay_sum", "n_recovered"),
    "recovery_rate_cosine": _ratio("n_recovered_cosine", "n_known_shifts_cosine"),
    "avg_recovery_delay_cosine": _ratio("delay_cosine_sum", "n_recovered_cosine"),
    "topic_interference_around_shifts": _ratio("i_around_shifts_sum", "n_turns_around_shifts"),
}
TOPIC_MEANS = {
    "cross_coherence": _ratio("cosine_to_user_sum", "n_turns"),
    "context_retention": _ratio("cosine_to_last_sum", "n_followed"),
    "topic_interference": _ratio("interference_sum", "n_shifts"),
}
"""What the profile legacy has in place of the means over turns."""


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


_BY_ID = {metric.id: metric for metric in DIALOGUE_METRICS}
_WITH_REASONS = [_BY_ID[id] for id in (*MEANS, *RECOVERY, "cas", "cas_all")]
"""Metrics that can be null, in the order in which a conversation's reasons are listed."""


def recovery_speed(delay: str, options: PreferenceShift) -> pl.Expr:
    """Return the part of CAS that rewards speed: 1 without a delay, 0 from the slowest one on."""
    first, span = (FIRST_DELAY, DELAY_SPAN) if options.is_legacy else (0.0, SLOWEST_DELAY)
    # by numpy: polars multiplies by the reciprocal of a constant, which is not exact
    slowness: pl.Expr = np.divide(C(delay) - first, span)  # type: ignore[call-overload]
    return 1.0 - slowness.clip(0.0, 1.0)


def _cas(speed: pl.Expr, options: PreferenceShift) -> pl.Expr:
    """Return CAS = w_r r + w_v v + w_I (1 - I) + w_C C + w_R R for a speed v of recovery."""
    parts = {
        "topic_recovery_rate": C("topic_recovery_rate"),
        "avg_recovery_delay": speed,
        "topic_interference": 1.0 - C("topic_interference").clip(0.0, 1.0),
        "cross_coherence": C("cross_coherence"),
        "context_retention": C("context_retention"),
    }
    weighted = [(weight, parts[name]) for name, weight in options.cas_shares.items()]
    if not options.is_legacy:
        return sum((weight * part for weight, part in weighted), start=pl.lit(0.0))
    # a part without a value leaves its weight to the others
    total = sum((weight * part.fill_null(0.0) for weight, part in weighted), start=pl.lit(0.0))
    present = (weight * part.is_not_null().cast(pl.Float64) for weight, part in weighted)
    return pl.when(C("n_turns") > 0).then(total / sum(present, start=pl.lit(0.0)))


def score_conversations(dialogues: pl.DataFrame, options: PreferenceShift) -> pl.DataFrame:
    """Return conversations with their metrics, from what was counted and added up in each."""
    found = dialogues.with_columns(**MEANS, **RECOVERY)
    if options.is_legacy:
        found = found.with_columns(**TOPIC_MEANS)
    if options.zero_without_turns:
        found = found.with_columns(
            C(metric.id).fill_null(0.0) for metric in DIALOGUE_METRICS if metric.fixed_where
        )
    if options.gold_is_user:
        found = found.with_columns(C("^dst_.*_mean$").fill_null(0.0))
    found = found.with_columns(cas=_cas(recovery_speed("avg_recovery_delay", options), options))
    if options.is_legacy:
        found = found.with_columns(
            context_adaptation_score=C("cas").fill_null(0.0), cas_all=pl.lit(None, pl.Float64)
        )
    else:
        found = found.with_columns(cas_all=_cas(_ratio("speed_sum", "n_known_shifts"), options))
    return with_nulls(found, _WITH_REASONS, options)


Topics = tuple[Sets, pl.Series]
"""Of each text its topics, as a set and joined by spaces."""

OVERLAP_DECIDES = 0.3
"""Below this overlap the likeness is that of the topic words' meaning."""

_PAIRS_AT_ONCE = 1 << 20


def recover_topics(
    turns: pl.DataFrame, shifts: pl.DataFrame, vectors: "VectorView"
) -> pl.DataFrame:
    """Look for each shift's recovery by topics; add ``interference``."""
    topics = _topics_of_turns(turns)
    n_pairs = turns["dialogue_row"].value_counts(name="n_pairs")
    numbered = (
        shifts.select(SHIFT_KEY)
        .join(n_pairs, on="dialogue_row", how="left", maintain_order="left")
        .with_columns(part=C("n_pairs").cast(pl.Int64).cum_sum() // _PAIRS_AT_ONCE)
    )
    parts = numbered.partition_by("part", maintain_order=True) or [numbered]
    # a shift's delay, and the share of its answers that have the former topics
    recovered, n_answers = (C("like_new") >= ALIGNED).any(), pl.len().cast(pl.Int64)
    n_seen = pl.when(recovered).then(n_answers).otherwise(n_answers.clip(upper_bound=LONGEST_SEEN))
    found = pl.concat(
        answers_after_shifts(turns, part, topics, vectors)
        .group_by(SHIFT_KEY)
        .agg(
            delay=pl.when(recovered).then(n_answers),
            interference=(C("like_old") >= ALIGNED).sum() / n_seen,
        )
        for part in parts
    )
    return (
        shifts.drop("delay")
        .join(found, on=SHIFT_KEY, how="left", maintain_order="left")
        .with_columns(C("interference").fill_null(0.0), recovered=C("delay").is_not_null())
    )


def _topics_of_turns(turns: pl.DataFrame) -> Topics:
    """Return the topics of the user's texts and then of the system's."""
    return topics_of(pl.concat([turns["user_text"], turns["system_text"]]))


def answers_after_shifts(
    turns: pl.DataFrame, shifts: pl.DataFrame, topics: Topics, vectors: "VectorView"
) -> pl.DataFrame:
    """Return answers with topics, a row for each shift before them that is not recovered yet."""
    turns = turns.with_columns(row=pl.int_range(pl.len()))
    starts = turns.filter(C("segment_row").is_first_distinct()).select(
        *SHIFT_KEY, new_row="row", old_row=C("row").shift().over("dialogue_row")
    )
    spoken = turns.filter(pl.Series(sizes_of(topics[0])[turns.height :] > 0))
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
    of_system = answers["row"].to_numpy() + turns.height
    answers = answers.with_columns(
        like_new=likeness(topics, of_system, answers["new_row"], vectors),
        like_old=likeness(topics, of_system, answers["old_row"], vectors),
    )
    met = C("like_new") >= ALIGNED
    return answers.filter((met.cum_sum() - met).over("shift_row") == 0)


def name_answers(turns: pl.DataFrame, shifts: pl.DataFrame, vectors: "VectorView") -> pl.DataFrame:
    """Return the answers after the shifts of one conversation with the topics that are compared."""
    topics = _topics_of_turns(turns)
    user, system = topics[1][: turns.height], topics[1][turns.height :]
    answers = answers_after_shifts(turns, shifts, topics, vectors)
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


def likeness(
    topics: Topics, of_system: Indices, user: pl.Series, vectors: "VectorView"
) -> Float64Array:
    """Compare texts' topics with those of the user in some turns, null for none.

    Alike are topics by their overlap or, where that is small, by the cosine of their words.
    What has no topics is like nothing.
    """
    sets, joined = topics
    has_any, of_user = sizes_of(sets) > 0, user.fill_null(0).to_numpy()
    both = user.is_not_null().to_numpy() & has_any[of_user] & has_any[of_system]
    found: Float64Array = np.zeros(len(user))
    found[both] = jaccard_csr(
        gather_sets(sets, of_system[both]), gather_sets(sets, of_user[both]), both_empty=0.0
    )
    far = np.flatnonzero(both & (found < OVERLAP_DECIDES))
    if len(far):
        words = (vectors.codes(joined[rows[far]]) for rows in (of_system, of_user))
        found[far] = cosine_pairs(vectors.matrix, *words)
    return found


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
    has_concepts = (C("user_concepts").list.len() > 0).cast(pl.Float64)
    echoed = turns["user_text"].fill_null("")
    copied = pl.lit(pl.Series(ngram_copy_ratio(echoed, echoed, options.orders)))
    agents = {
        REFUSING: {"cc": 1.0 - has_concepts, "cr": pl.lit(0.0), "i": pl.lit(0.0)},
        ECHOING: {"cc": pl.lit(1.0), "cr": has_concepts, "i": copied},
    }
    logged, frames = turns, [nobody]
    for agent, parts in agents.items():
        turns = logged.with_columns(
            pl.when(C("cc").is_not_null()).then(part).alias(name) for name, part in parts.items()
        ).with_columns(tas=tas(options))
        means = turns.group_by("dialogue_row").agg(
            C(column).mean().alias(id) for id, column in _MEANS.items()
        )
        recovered = (
            score_shifts(shifts, turns, options)
            .group_by("dialogue_row")
            .agg(topic_recovery_rate=C("recovered").mean(), avg_recovery_delay=C("delay").mean())
        )
        found = dialogues
        for part in (means, recovered):
            found = found.join(part, on="dialogue_row", how="left", maintain_order="left")
        frames.append(found.select(pl.lit(agent).alias("agent"), "dialogue", *_AGENT_METRICS))
    return pl.concat(frames)
