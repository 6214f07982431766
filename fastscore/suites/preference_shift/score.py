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

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array
from fastscore_jit.threads import raise_if_stopped
from fastscore_kernels import cosine_pairs, jaccard_csr, ngram_copy_ratio, set_difference_csr
from polars import col as C

from fastscore.suites.base import Events
from fastscore.suites.preference_shift.concepts import (
    Concepts,
    Sets,
    gather_sets,
    sizes_of,
    topics_of,
    unite_sets,
)
from fastscore.suites.preference_shift.extraction import extract_concepts
from fastscore.suites.preference_shift.metrics import (
    MEANS_OF_TURNS,
    recovery_speed,
    score_conversations,
)
from fastscore.suites.preference_shift.metrics.turns import (
    ALIGNED,
    DST,
    ECHOING,
    LONGEST_SEEN,
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
from fastscore.suites.preference_shift.schema import SEGMENT_SOURCE_DTYPE, TABLES

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
    # a shift's delay, and the share of its answers that have the former topics
    recovered, n_answers = (C("like_new") >= ALIGNED).any(), pl.len().cast(pl.Int64)
    n_seen = pl.when(recovered).then(n_answers).otherwise(n_answers.clip(upper_bound=LONGEST_SEEN))
    found = pl.concat(
        answers_after_shifts(turns, part, topics)
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
        self.sets, self.joined = topics_of(texts)
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
                self.vectors.codes(self.joined[of_system[far]]),
                self.vectors.codes(self.joined[of_user[far]]),
            )
        return found


_PLACE = ("file", "line", "dialogue", "model")


def score_events(
    events: Events, vectors: "VectorView", options: PreferenceShift
) -> dict[str, pl.DataFrame]:
    """Score the conversations of `read_events`."""
    found = score_with_counts(events, vectors, options)
    return {table.name: found[table.name][list(table.schema)] for table in TABLES}


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
    frames = [nobody]
    for agent, turns in agents.items():
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
        found = dialogues
        for part in (means, recovered):
            found = found.join(part, on="dialogue_row", how="left", maintain_order="left")
        frames.append(found.select(pl.lit(agent).alias("agent"), "dialogue", *_AGENT_METRICS))
    return pl.concat(frames)
