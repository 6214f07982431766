"""What guests score that pay no attention: one that never changes, one that calls every tool.

A guest that never changes is in the default state in every message: PAS is then the share of that
state that its persona expects, and BVS is 0. What a persona expects is read off the run's own
messages. A guest that calls every tool in every message reaches the maximum of DEI at its level.
"""

from collections.abc import Mapping

import polars as pl

from fastscore.suites.guest_simulation.metrics import CALLING, UNCHANGING
from fastscore.suites.guest_simulation.options import GuestSimulation
from fastscore.suites.guest_simulation.personas import MOODS, VOCABULARIES
from fastscore.suites.guest_simulation.schema import DIALOGUES
from fastscore.suites.guest_simulation.terms import DEFAULT_STATE, MATCH_COLUMNS, STATE_COLUMNS

_KEY = list(DIALOGUES.dialogue_key)
_DEFAULTS = dict(zip(STATE_COLUMNS, DEFAULT_STATE, strict=True))
_WORDS = dict(
    zip(
        STATE_COLUMNS,
        (
            VOCABULARIES["is_ordering_complete"],
            VOCABULARIES["next_message_menu_exploration_style"],
            MOODS,
            VOCABULARIES["next_message_ordering_style"],
        ),
        strict=True,
    )
)
_LARGEST_DEI = {1: 0.0, 2: 0.2, 3: 0.5, 4: 0.5, 5: 1.0}


def score_trivial_agents(
    tables: Mapping[str, pl.LazyFrame], options: GuestSimulation
) -> pl.DataFrame:
    """Score both guests on the log of these tables.

    Returns
    -------
    pl.DataFrame
        ``agent``, the key of a dialogue, PAS, BVS and DEI. PAS is null if the persona has no
        attributes, or if no message shows what it expects.
    """
    dialogues = tables["dialogues"]
    columns = ("persona", "PAS", "PAS_source", "n_states", "n_guest_messages")
    named = dialogues.select(*_KEY, *columns)
    expected = _matches_of_default(tables["messages"], named)
    unchanging = named.join(expected, on="persona", how="left").select(
        pl.lit(UNCHANGING).alias("agent"),
        *_KEY,
        pl.when(pl.col("PAS_source") == "attributes", pl.col("PAS").is_not_null())
        .then("PAS_of_default")
        .alias("PAS"),
        pl.when(pl.col("n_states") >= 2).then(0.0).alias("BVS"),
    )
    level = pl.col("experiment_level").replace_strict(
        _LARGEST_DEI, default=None, return_dtype=pl.Float64
    )
    calling = named.select(
        pl.lit(CALLING).alias("agent"),
        *_KEY,
        pl.when(pl.col("n_guest_messages") > 0).then(level).alias("DEI"),
    )
    found = pl.concat([unchanging, calling], how="diagonal")
    return found.sort("agent", *_KEY).collect()


def _matches_of_default(messages: pl.LazyFrame, dialogues: pl.LazyFrame) -> pl.LazyFrame:
    """Return by persona the share of the default state that it expects; null where unknown.

    A part of two words tells what is expected in any message: the word, or the other one. A mood
    is one of several, so only messages of the default mood tell.
    """
    known, counts = [], []
    for state, match in zip(STATE_COLUMNS, MATCH_COLUMNS, strict=True):
        is_default = pl.col(state) == _DEFAULTS[state]
        tells = is_default
        if len(_WORDS[state]) == 2:
            tells = pl.col(state).is_in(_WORDS[state])
        fits = pl.when(tells).then(pl.col(match) == is_default).alias(match)
        known.append(fits.drop_nulls().first().cast(pl.Float64).alias(match))
        counts.append(pl.col(match).is_not_null().any().alias(f"counts_{match}"))
    parts = [
        pl.when(f"counts_{match}").then(match).otherwise(0.0).alias(match)
        for match in MATCH_COLUMNS
    ]
    total = pl.sum_horizontal(f"counts_{match}" for match in MATCH_COLUMNS)
    return (
        messages.join(dialogues.select(*_KEY, "persona"), on=_KEY, nulls_equal=True)
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
