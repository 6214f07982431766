"""From states, tools and orders to the tables."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import number_hashes

from fastscore.suites.base import Events, NullReason
from fastscore.suites.columns import Indices, Mask, all_null_reasons
from fastscore.suites.distinct import distinct
from fastscore.suites.guest_simulation.options import GuestSimulationOptions
from fastscore.suites.guest_simulation.schema import (
    DIALOGUES,
    LEVELS,
    MATCH_COLUMNS,
    MESSAGES,
    METRICS,
    STATE_COLUMNS,
    TOOL_COLUMNS,
)

Reals = npt.NDArray[np.float64]

WEIGHTS = {"PAS": 0.25, "BVS": 0.20, "ORA": 0.35, "DEI": 0.20}
OPTIMAL_RATE = (1, 5)
"""The rate of transitions at which BVS is 1, as a fraction: 0.2 cannot be met exactly otherwise."""

_BEHAVIOURS = ("ordering_style", "menu_exploration_style", "mood_tone")
_FALLBACK_WEIGHTS = {
    "busy": {"all_at_once": 0.33, "does_not_explore_menu": 0.33, "busy_mood": 0.34},
    "curious": {"explores_menu": 0.5, "curious_mood": 0.5},
    "indecisive": {"one_by_one": 0.5, "indecisive_mood": 0.5},
    "group": {"one_by_one": 0.5, "explores_menu": 0.5},
}
_FALLBACK_OTHER = 0.5
_FALLBACK_TESTS = {
    "all_at_once": pl.col("ordering_style") == "all_at_once",
    "one_by_one": pl.col("ordering_style") == "one_by_one",
    "explores_menu": pl.col("menu_exploration_style") == "explores_menu",
    "does_not_explore_menu": pl.col("menu_exploration_style") == "does_not_explore_menu",
    "busy_mood": pl.col("mood_tone").is_in(["casual", "frustrated"]),
    "curious_mood": pl.col("mood_tone").is_in(["enthusiastic", "casual"]),
    "indecisive_mood": pl.col("mood_tone").is_in(["confused", "casual"]),
}
_GRAVITY: tuple[NullReason, ...] = ("bad_input", "missing_input", "not_applicable")


def score_conversations(events: Events, options: GuestSimulationOptions) -> dict[str, pl.DataFrame]:
    """Score the conversations of `read_conversations`.

    Returns
    -------
    dict of pl.DataFrame
        ``messages`` and ``dialogues`` in the schema of the suite's tables.
    """
    frames = events.frames
    conversations = frames["conversations"]
    messages = _compare_states(frames)
    counts = _count(messages, frames["states"], conversations.height)
    scores, reasons = _score(conversations, counts, published=options.published)
    named = conversations["persona_code"] >= 0
    dialogues = conversations.with_columns(
        pl.when(named)
        .then(frames["personas"]["PAS_source"].gather(conversations["persona_code"].clip(0)))
        .alias("PAS_source")
        if frames["personas"].height
        else pl.lit(None, dtype=DIALOGUES.schema["PAS_source"]).alias("PAS_source"),
        pl.when("has_target").then("ORA_source").alias("ORA_source"),
        **counts,
        **scores,
        null_reasons=reasons,
    )
    labels = conversations.select("file", "dialogue", "experiment_level").select(
        pl.all().gather(messages["conversation"])
    )
    return {
        "messages": pl.concat([labels, messages], how="horizontal").select(*MESSAGES.schema),
        "dialogues": dialogues.select(*DIALOGUES.schema),
    }


def _compare_states(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Compare each message's state with what its persona lets expect.

    A message's score is the share of the components that have an expected and an actual value;
    without attributes it follows from the kind of persona that its description is of.
    """
    messages = frames["messages"]
    numbers, pairs = _pairs(frames)
    compared = pl.concat(
        [
            pairs,
            _rows_or_null(frames["personas"], pairs["persona_code"]),
            _rows_or_null(frames["states"], pairs["state"]),
        ],
        how="horizontal",
    ).join(
        frames["moods"].with_columns(pl.lit(True).alias("in_mood")),
        on=["persona_code", "mood_tone"],
        how="left",
        maintain_order="left",
    )
    by_attributes = pl.col("PAS_source") == "attributes"
    has_state = pl.col("mood_tone").is_not_null()
    matches = (
        pl.when(by_attributes).then(pl.col("is_ordering_complete") == pl.col("complete")),
        pl.when(by_attributes).then(pl.col("menu_exploration_style") == pl.col("exploration")),
        pl.when(by_attributes & ~pl.col("any_mood") & has_state).then(
            pl.col("in_mood").fill_null(False)
        ),
        pl.when(by_attributes).then(pl.col("ordering_style") == pl.col("ordering")),
    )
    compared = compared.with_columns(
        pl.when(~pl.col("is_exit")).then(match).alias(name)
        for name, match in zip(MATCH_COLUMNS, matches, strict=True)
    )
    present = pl.sum_horizontal(pl.col(name).is_not_null() for name in MATCH_COLUMNS)
    matched = pl.sum_horizontal(pl.col(name).fill_null(False) for name in MATCH_COLUMNS)
    fallback = pl.lit(_FALLBACK_OTHER)
    for kind, weights in _FALLBACK_WEIGHTS.items():
        terms = [weight * _FALLBACK_TESTS[test] for test, weight in weights.items()]
        total = terms[0] + terms[1]
        for term in terms[2:]:
            total = total + term
        fallback = pl.when(pl.col("kind") == kind).then(total).otherwise(fallback)
    compared = compared.select(
        *STATE_COLUMNS,
        *MATCH_COLUMNS,
        pl.when(has_state & ~pl.col("is_exit") & (pl.col("persona_code") >= 0))
        .then(pl.when(by_attributes).then(matched / present).otherwise(fallback))
        .alias("message_score"),
    )
    return pl.concat([messages, compared.select(pl.all().gather(numbers))], how="horizontal")


def _rows_or_null(frame: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    """Gather rows of a frame, of nulls where the row is negative."""
    numbers = rows.to_numpy()
    return pl.concat([frame, frame.clear(1)])[np.where(numbers < 0, frame.height, numbers)]


def _pairs(frames: Mapping[str, pl.DataFrame]) -> tuple[Indices, pl.DataFrame]:
    """Pair each message's state with its conversation's persona.

    Returns
    -------
    tuple
        The pair of each message, and the distinct pairs: ``persona_code`` and ``state``, -1 for
        none, and ``is_exit``. They are few, however many messages there are.
    """
    messages = frames["messages"]
    codes = frames["conversations"]["persona_code"].to_numpy()
    persona = codes[messages["conversation"].to_numpy()]
    state, is_exit = messages["state"].to_numpy(), messages["is_exit"].to_numpy()
    key = ((persona + 1) * (frames["states"].height + 1) + state + 1) * 2 + is_exit
    numbers, firsts = number_hashes(key.astype(np.uint64))
    pairs = {"persona_code": persona[firsts], "state": state[firsts], "is_exit": is_exit[firsts]}
    return numbers, pl.DataFrame(pairs)


def _count(
    messages: pl.DataFrame, states: pl.DataFrame, n_conversations: int
) -> dict[str, pl.Series]:
    """Add up, in order of the messages, what the metrics of each conversation need."""
    conversation = messages["conversation"].to_numpy()

    def count(rows: Mask, weights: Reals | None = None) -> pl.Series:
        kept = None if weights is None else weights[rows]
        totals = np.bincount(conversation[rows], kept, minlength=n_conversations)
        return pl.Series(totals.astype(np.int64 if weights is None else np.float64))

    by_role = messages["by_role"].to_numpy()
    scored = messages["message_score"].is_not_null().to_numpy()
    has_state = messages["state"].to_numpy() >= 0
    scores = messages["message_score"].fill_null(0.0).to_numpy()
    uses = {name: by_role & messages[name].to_numpy() for name in TOOL_COLUMNS}
    return {
        "n_guest_messages": count(by_role),
        "n_scored_messages": count(scored),
        "message_score_sum": count(scored, scores),
        "n_states": count(has_state),
        "n_transitions": _transitions(
            conversation, messages["state"].to_numpy(), states, n_conversations
        ),
        **{f"n_{name.removeprefix('uses_')}": count(rows) for name, rows in uses.items()},
    }


def _transitions(
    conversation: Indices, state: Indices, states: pl.DataFrame, n_conversations: int
) -> pl.Series:
    """Count the changes of ordering, exploration and mood from each state to the next."""
    rows = np.flatnonzero(state >= 0)
    before, after = rows[:-1], rows[1:]
    changes = np.zeros(len(after), np.int64)
    for name in _BEHAVIOURS:
        behaviour, _ = distinct(states[name])
        changes += behaviour[state[before]] != behaviour[state[after]]
    changes[conversation[before] != conversation[after]] = 0
    totals = np.bincount(conversation[after], changes, minlength=n_conversations)
    return pl.Series(totals.astype(np.int64))


def behavioural_variance(n_states: Indices, n_transitions: Indices) -> Reals:
    """Compute BVS, in whole numbers up to the last division.

    Parameters
    ----------
    n_states
        M, at least 2 where the result means anything, int64 (n,).
    n_transitions
        Changes over all three kinds of behaviour, int64 (n,).

    Returns
    -------
    float64 (n,)
        From 0 to 1: 1 where transitions are a fifth of the most there can be.
    """
    most = 3 * np.maximum(n_states - 1, 1)
    part, whole = OPTIMAL_RATE
    rising = whole * n_transitions <= part * most
    variance: Reals = np.where(
        rising,
        whole * n_transitions / (part * most),
        whole * (most - n_transitions) / ((whole - part) * most),
    )
    return variance


def explainability(counts: Mapping[str, Indices], level: Indices) -> Reals:
    """Compute DEI of each level, capped as the level allows; 0 for any other level.

    Parameters
    ----------
    counts
        ``n_guest_messages``, and how many of them use which tools, int64 (n,).
    level
        The experiment level, int64 (n,).
    """
    n = np.maximum(counts["n_guest_messages"], 1)
    order, attributes = counts["n_order_tracking"], counts["n_message_attributes"]
    by_level = {
        5: np.minimum(1.0, (order + attributes) / (2 * n)),
        4: np.minimum(0.5, attributes / n * 0.5),
        3: np.minimum(0.5, order / n * 0.5),
        2: np.minimum(0.2, counts["n_basic_tools"] / n * 0.2),
    }
    index: Reals = np.select([level == each for each in by_level], list(by_level.values()), 0.0)
    return index


def _score(
    conversations: pl.DataFrame, counted: Mapping[str, pl.Series], *, published: bool
) -> tuple[dict[str, pl.Series], pl.Series]:
    """Compute the metrics, and say why one is null."""
    counts = {name: column.to_numpy() for name, column in counted.items()}
    given = {
        name: conversations[name].to_numpy()
        for name in ("persona_code", "persona_bad", "has_target", "target_bad", "order_broken")
    }
    level = conversations["experiment_level"].fill_null(0).to_numpy()
    has_level = conversations["experiment_level"].is_not_null().to_numpy()
    scored = counts["n_scored_messages"]
    values: dict[str, Reals] = {
        "PAS": counts["message_score_sum"] / np.maximum(scored, 1),
        "BVS": behavioural_variance(counts["n_states"], counts["n_transitions"]),
        "ORA": conversations["overlap"].to_numpy(),
        "DEI": explainability(counts, level),
    }
    nothing = {
        "PAS": scored == 0,
        "BVS": counts["n_states"] < 2,
        "ORA": conversations["nothing_to_order"].to_numpy(),
        "DEI": counts["n_guest_messages"] == 0,
    }
    bad = {
        "PAS": given["persona_bad"],
        "ORA": given["target_bad"] | (given["has_target"] & given["order_broken"]),
        "DEI": has_level & ~np.isin(level, LEVELS),
    }
    missing = {
        "PAS": given["persona_code"] < 0,
        "ORA": ~given["has_target"],
        "DEI": ~has_level,
    }
    height = conversations.height
    none = np.zeros(height, np.bool_)
    causes: dict[NullReason, dict[str, Mask]] = {reason: {} for reason in _GRAVITY}
    null: dict[str, Mask] = {}
    for metric in WEIGHTS:
        is_bad = bad.get(metric, none)
        is_missing = missing.get(metric, none) & ~is_bad
        is_nothing = nothing[metric] & ~is_bad & ~is_missing
        values[metric] = np.where(is_nothing, 0.0, values[metric])
        is_nothing &= not published
        for reason, rows in zip(_GRAVITY, (is_bad, is_missing, is_nothing), strict=True):
            causes[reason][metric] = rows
        null[metric] = is_bad | is_missing | is_nothing
    values["CRRS"] = sum(
        (weight * values[metric] for metric, weight in WEIGHTS.items()), np.zeros(height)
    )
    null["CRRS"] = np.any(list(null.values()), axis=0)
    explained = none
    for reason in _GRAVITY:
        rows = np.any(list(causes[reason].values()), axis=0)
        causes[reason]["CRRS"] = rows & ~explained
        explained = explained | rows
    reasons = all_null_reasons(
        [(metric, reason, rows) for reason in _GRAVITY for metric, rows in causes[reason].items()],
        height,
    )
    scores = {
        metric.id: pl.Series(values[metric.id]).set(pl.Series(null[metric.id]), None)
        for metric in METRICS
    }
    return scores, reasons
