"""From states, tools and orders to the tables, and the scores of trivial guests.

One trivial guest never changes: it is in the default state in every message, so PAS is the share of
that state that its persona expects, and BVS is 0. The run's own messages tell what a persona
expects. The other calls every tool in every message and reaches the maximum of DEI at its level.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl
from polars import col as C

from fastscore.suites.base import Events
from fastscore.suites.columns import find_nulls
from fastscore.suites.guest_simulation.metrics import (
    CALLING,
    COMPOSITE,
    FORMULAS,
    GRAVITY,
    LARGEST_DEI,
    METRICS,
    UNCHANGING,
    compare_states,
    count_messages,
)
from fastscore.suites.guest_simulation.options import (
    DEFAULT_STATE,
    MATCH_COLUMNS,
    STATE_COLUMNS,
    STATE_WORDS,
    GuestSimulation,
)
from fastscore.suites.guest_simulation.schema import DIALOGUES, MESSAGES

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


def score_events(
    events: Events, vectors: "VectorView", options: GuestSimulation
) -> dict[str, pl.DataFrame]:
    """Score the conversations of `read_events`."""
    conversations = events.frames["conversations"]
    messages = events.frames["messages"].hstack(compare_states(events.frames))
    personas = events.frames["personas"].select("persona_code", "PAS_source")
    dialogues = (
        conversations.join(
            count_messages(messages), on="conversation", how="left", maintain_order="left"
        )
        .with_columns(C("^n_.*$", "message_score_sum").fill_null(0))
        .join(personas, on="persona_code", how="left", maintain_order="left")
        .with_columns(pl.lit(options.published).alias("published"), **FORMULAS)
        .with_columns(CRRS=COMPOSITE)
    )
    dialogues = find_nulls(dialogues, METRICS, by_reason=GRAVITY).put_into(dialogues)
    labels = conversations.select("conversation", "file", "dialogue", "experiment_level")
    messages = messages.join(labels, on="conversation", maintain_order="left")
    return {
        "messages": messages.select(*MESSAGES.schema),
        "dialogues": dialogues.select(*DIALOGUES.schema),
    }


def notes_on_run(dialogues: pl.LazyFrame, options: GuestSimulation) -> list[str]:
    """Count what PAS has without attributes of a persona, and ORA without a name in its target.

    With a file of personas, conversations for which it has no persona are counted, too.
    """
    reason = pl.element().struct.field
    lost = (reason("metric") == "PAS") & (reason("reason") == "missing_input")
    stray = C("persona").is_null() & C("null_reasons").list.eval(lost).list.any()
    found = dialogues.select(
        C("PAS").count(),
        fallback=(C("PAS").is_not_null() & (C("PAS_source") == "fallback")).sum(),
        ORA=C("ORA").count(),
        nameless=(C("ORA").is_not_null() & (C("n_target_names") == 0)).sum(),
        n=pl.len(),
        stray=stray.sum(),
        first=C("test_case").filter(stray).min(),
    )
    counts = found.collect().row(0, named=True)
    notes = []
    if options.personas and counts["stray"]:
        notes.append(
            f"PAS: {counts['stray']:,} of {counts['n']:,} conversations have no persona, neither "
            "in the log nor in the file of personas; its test_cases need an entry whose test_case "
            f"is {counts['first']!r}"
        )
    if counts["fallback"]:
        notes.append(
            f"PAS: {counts['fallback']:,} of {counts['PAS']:,} conversations have a persona "
            "without attributes, so PAS follows the words of its description alone; set "
            "personas to a file with the attributes"
        )
    if counts["nameless"]:
        notes.append(
            f"ORA: {counts['nameless']:,} of {counts['ORA']:,} conversations have a target order "
            'without names, so ORA is 0; an item is an object such as {"name": "Latte"}, and the '
            "published definition skips items that are texts"
        )
    return notes


_DEFAULTS = dict(zip(STATE_COLUMNS, DEFAULT_STATE, strict=True))


def score_trivial_agents(
    tables: Mapping[str, pl.LazyFrame], options: GuestSimulation
) -> pl.DataFrame:
    """Score both guests on the log of these tables."""
    dialogues = tables["dialogues"]
    columns = ("experiment_level", "persona", "PAS", "PAS_source", "n_states", "n_guest_messages")
    named = dialogues.select("dialogue", *columns)
    expected = _matches_of_default(tables["messages"], named)
    unchanging = named.join(expected, on="persona", how="left").select(
        pl.lit(UNCHANGING).alias("agent"),
        "dialogue",
        pl.when(C("PAS_source") == "attributes", C("PAS").is_not_null())
        .then("PAS_of_default")
        .alias("PAS"),
        pl.when(C("n_states") >= 2).then(0.0).alias("BVS"),
    )
    level = C("experiment_level").replace_strict(LARGEST_DEI, default=None, return_dtype=pl.Float64)
    calling = named.select(
        pl.lit(CALLING).alias("agent"),
        "dialogue",
        pl.when(C("n_guest_messages") > 0).then(level).alias("DEI"),
    )
    found = pl.concat([unchanging, calling], how="diagonal")
    return found.sort("agent", "dialogue").collect()


def _matches_of_default(messages: pl.LazyFrame, dialogues: pl.LazyFrame) -> pl.LazyFrame:
    """Return by persona the share of the default state that it expects; null where unknown.

    A part of two words tells what is expected in any message: the word, or the other one. A mood
    is one of several, so only messages of the default mood tell.
    """
    known, counts = [], []
    for state, match in zip(STATE_COLUMNS, MATCH_COLUMNS, strict=True):
        is_default = C(state) == _DEFAULTS[state]
        tells = is_default
        if len(STATE_WORDS[state]) == 2:
            tells = C(state).is_in(STATE_WORDS[state])
        fits = pl.when(tells).then(C(match) == is_default).alias(match)
        known.append(fits.drop_nulls().first().cast(pl.Float64).alias(match))
        counts.append(C(match).is_not_null().any().alias(f"counts_{match}"))
    parts = [
        pl.when(f"counts_{match}").then(match).otherwise(0.0).alias(match)
        for match in MATCH_COLUMNS
    ]
    total = pl.sum_horizontal(f"counts_{match}" for match in MATCH_COLUMNS)
    return (
        messages.join(dialogues.select("dialogue", "persona"), on="dialogue", nulls_equal=True)
        .group_by("persona")
        .agg(*known, *counts)
        .with_columns(parts)
        .select(
            "persona",
            PAS_of_default=pl.when(total > 0).then(
                pl.sum_horizontal(*MATCH_COLUMNS, ignore_nulls=False) / total
            ),
        )
    )
