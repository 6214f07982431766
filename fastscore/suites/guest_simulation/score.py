"""From states, tools and orders to the tables."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices, Mask

from fastscore.suites.base import Events
from fastscore.suites.columns import find_nulls, gather_or_null
from fastscore.suites.grouping import counts_of
from fastscore.suites.guest_simulation.metrics import (
    GRAVITY,
    METRICS,
    WEIGHTS,
    behavioural_variance,
    compare_states,
    count_transitions,
    explainability,
)
from fastscore.suites.guest_simulation.options import GuestSimulation
from fastscore.suites.guest_simulation.schema import DIALOGUES, MESSAGES
from fastscore.suites.guest_simulation.terms import TOOL_COLUMNS

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


def score_conversations(
    events: Events, vectors: "VectorView", options: GuestSimulation
) -> dict[str, pl.DataFrame]:
    """Score the conversations of `read_conversations`.

    Returns
    -------
    dict of pl.DataFrame
        ``messages`` and ``dialogues`` in the schema of the suite's tables.
    """
    conversations, messages = events.frames["conversations"], events.frames["messages"]
    compared, score = compare_states(events.frames)
    counts = _count(messages, score, events.frames["states"], conversations.height)
    sources = gather_or_null(
        events.frames["personas"]["PAS_source"], conversations["persona_code"].to_numpy()
    )
    counted = conversations.with_columns(
        sources.alias("PAS_source"), pl.lit(options.published).alias("published"), **counts
    )
    dialogues = _score(counted, counts)
    labels = conversations[["file", "dialogue", "experiment_level"]]
    of_message = messages["conversation"].to_numpy()
    return {
        "messages": messages.hstack([*labels[of_message], *compared])[list(MESSAGES.schema)],
        "dialogues": dialogues[list(DIALOGUES.schema)],
    }


def _count(
    messages: pl.DataFrame, score: Float64Array, states: pl.DataFrame, n_conversations: int
) -> dict[str, npt.NDArray[Any]]:
    """Add up, in order of the messages, what the metrics of each conversation need."""
    conversation = messages["conversation"].to_numpy()

    def count(rows: Mask) -> Indices:
        return counts_of(conversation[rows], n_conversations)

    by_role = messages["by_role"].to_numpy()
    state = messages["state"].to_numpy()
    scored = ~np.isnan(score)
    sums = np.bincount(conversation[scored], score[scored], minlength=n_conversations)
    uses = {name: by_role & messages[name].to_numpy() for name in TOOL_COLUMNS}
    return {
        "n_guest_messages": count(by_role),
        "n_scored_messages": count(scored),
        # without any score the sums are of integers
        "message_score_sum": sums.astype(np.float64, copy=False),
        "n_states": count(state >= 0),
        "n_transitions": count_transitions(conversation, state, states, n_conversations),
        **{f"n_{name.removeprefix('uses_')}": count(rows) for name, rows in uses.items()},
    }


def _score(counted: pl.DataFrame, counts: dict[str, npt.NDArray[Any]]) -> pl.DataFrame:
    """Compute the metrics; a part of nothing is 0, and null except in the published profile."""
    level = counted["experiment_level"].fill_null(0).to_numpy()
    values = {
        "PAS": counts["message_score_sum"] / np.maximum(counts["n_scored_messages"], 1),
        "BVS": behavioural_variance(counts["n_states"], counts["n_transitions"]),
        "ORA": counted["overlap"].to_numpy(),
        "DEI": explainability(counts, level),
    }
    values["CRRS"] = sum(
        (weight * values[part] for part, weight in WEIGHTS.items()), np.zeros(counted.height)
    )
    nulls = find_nulls(counted, METRICS, by_reason=GRAVITY)
    return counted.with_columns(
        *(pl.Series(id, value).set(nulls.is_null(id), None) for id, value in values.items()),
        nulls.column.alias("null_reasons"),
    )
