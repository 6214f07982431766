"""From states, tools and orders to the tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices, Mask
from fastscore_kernels import number_hashes

from fastscore.suites.base import Events
from fastscore.suites.columns import all_null_reasons, gather_or_null, keep_where
from fastscore.suites.declarations import NullReason
from fastscore.suites.grouping import counts_of, factorize
from fastscore.suites.guest_simulation.options import GuestSimulation
from fastscore.suites.guest_simulation.schema import (
    DIALOGUES,
    LEVELS,
    MATCH_COLUMNS,
    MESSAGES,
    METRICS,
    STATE_COLUMNS,
    TOOL_COLUMNS,
)

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

WEIGHTS = {"PAS": 0.25, "BVS": 0.20, "ORA": 0.35, "DEI": 0.20}
OPTIMAL_RATE = (1, 5)
"""The rate of transitions at which BVS is 1, as a fraction: 0.2 cannot be met exactly otherwise."""

_BEHAVIOURS = ("ordering_style", "menu_exploration_style", "mood_tone")
_EXPECTED = {
    "completion_match": ("is_ordering_complete", "complete"),
    "exploration_match": ("menu_exploration_style", "exploration"),
    "ordering_match": ("ordering_style", "ordering"),
}
"""Parts of states, and the column of personas that each is compared with."""

_FALLBACK_WEIGHTS = {
    "busy": {"all_at_once": 0.33, "does_not_explore_menu": 0.33, "busy_mood": 0.34},
    "curious": {"explores_menu": 0.5, "curious_mood": 0.5},
    "indecisive": {"one_by_one": 0.5, "indecisive_mood": 0.5},
    "group": {"one_by_one": 0.5, "explores_menu": 0.5},
}
_FALLBACK_OTHER = 0.5
_FALLBACK_TESTS = {
    "all_at_once": ("ordering_style", ("all_at_once",)),
    "one_by_one": ("ordering_style", ("one_by_one",)),
    "explores_menu": ("menu_exploration_style", ("explores_menu",)),
    "does_not_explore_menu": ("menu_exploration_style", ("does_not_explore_menu",)),
    "busy_mood": ("mood_tone", ("casual", "frustrated")),
    "curious_mood": ("mood_tone", ("enthusiastic", "casual")),
    "indecisive_mood": ("mood_tone", ("confused", "casual")),
}
_GRAVITY: tuple[NullReason, ...] = ("bad_input", "missing_input", "not_applicable")
_CAUSE_COLUMNS = (
    "persona_code",
    "persona_bad",
    "has_target",
    "words_missing",
    "target_bad",
    "nothing_to_order",
    "order_broken",
    "states_missing",
    "states_bad",
)


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
    compared, score = _compare_states(events.frames)
    counts = _count(messages, score, events.frames["states"], conversations.height)
    scores, reasons = _score(conversations, counts, published=options.published)
    sources = gather_or_null(
        events.frames["personas"]["PAS_source"], conversations["persona_code"].to_numpy()
    )
    dialogues = conversations.with_columns(
        sources.alias("PAS_source"),
        **counts,
        **scores,
        null_reasons=reasons,
    )
    labels = conversations[["file", "dialogue", "experiment_level"]]
    of_message = messages["conversation"].to_numpy()
    return {
        "messages": messages.hstack([*labels[of_message], *compared])[list(MESSAGES.schema)],
        "dialogues": dialogues[list(DIALOGUES.schema)],
    }


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The distinct pairs of a state and the persona that it is compared with.

    They are few, however many messages there are.

    Parameters
    ----------
    of_message
        The pair of each message, int64 (messages,).
    persona, state
        Their rows in the frames, int64 (pairs,); -1 for none.
    is_exit
        Whether the message is an exit, which is compared with nothing, bool (pairs,).
    """

    of_message: Indices
    persona: Indices
    state: Indices
    is_exit: Mask


def _compare_states(frames: Mapping[str, pl.DataFrame]) -> tuple[pl.DataFrame, Float64Array]:
    """Compare each message's state with what its persona lets expect.

    A message's score is the share of the components that have an expected and an actual value;
    without attributes it follows from the kind of persona that its description is of.

    Returns
    -------
    tuple
        `STATE_COLUMNS`, `MATCH_COLUMNS` and ``message_score`` of each message; and the latter
        once more, float64 (messages,), NaN for null.
    """
    states, personas = frames["states"], frames["personas"]
    pairs = _pairs(frames)
    by_attributes = np.append((personas["PAS_source"] == "attributes").to_numpy(), False)
    compared = (pairs.state >= 0) & ~pairs.is_exit & (pairs.persona >= 0)
    with_attributes = compared & by_attributes[pairs.persona]
    matches = _matches(pairs, with_attributes, frames)
    present = np.sum([known for known, _ in matches.values()], axis=0)
    matched = np.sum([known & same for known, same in matches.values()], axis=0)
    fallback = _fallback_scores(pairs, states, personas["kind"])
    score = np.where(with_attributes, matched / np.maximum(present, 1), fallback)
    of_pairs = pl.DataFrame(
        {
            **{name: gather_or_null(states[name], pairs.state) for name in STATE_COLUMNS},
            **{name: keep_where(*matches[name]) for name in MATCH_COLUMNS},
            "message_score": keep_where(compared, score),
        }
    )
    return of_pairs[pairs.of_message], np.where(compared, score, np.nan)[pairs.of_message]


def _pairs(frames: Mapping[str, pl.DataFrame]) -> _Pairs:
    """Pair each message's state with its conversation's persona."""
    messages = frames["messages"]
    codes = frames["conversations"]["persona_code"].to_numpy()
    persona = codes[messages["conversation"].to_numpy()]
    state, is_exit = messages["state"].to_numpy(), messages["is_exit"].to_numpy()
    key = ((persona + 1) * (frames["states"].height + 1) + state + 1) * 2 + is_exit
    numbers, firsts = number_hashes(key.astype(np.uint64))
    return _Pairs(numbers, persona[firsts], state[firsts], is_exit[firsts])


def _matches(
    pairs: _Pairs, with_attributes: Mask, frames: Mapping[str, pl.DataFrame]
) -> dict[str, tuple[Mask, Mask]]:
    """Tell for each part of a state where something is expected of it, and where it is that."""
    states, personas, moods = frames["states"], frames["personas"], frames["moods"]
    matches = {}
    for name, (part, expected) in _EXPECTED.items():
        codes, _ = factorize(pl.concat([states[part], personas[expected]]))
        # a place for -1, which is equal to nothing
        of_state = np.append(codes[: states.height], -1)[pairs.state]
        of_persona = np.append(codes[states.height :], -2)[pairs.persona]
        given = np.append(personas[expected].is_not_null().to_numpy(), False)[pairs.persona]
        matches[name] = with_attributes & given, of_state == of_persona
    codes, values = factorize(pl.concat([states["mood_tone"], moods["mood_tone"]]))
    of_state = np.append(codes[: states.height], -1)[pairs.state]
    expected_moods = moods["persona_code"].to_numpy() * len(values) + codes[states.height :]
    given = ~np.append(personas["any_mood"].to_numpy(), True)[pairs.persona]
    in_mood = np.isin(pairs.persona * len(values) + of_state, expected_moods)
    matches["mood_match"] = with_attributes & given, in_mood
    return matches


def _fallback_scores(pairs: _Pairs, states: pl.DataFrame, kinds: pl.Series) -> Float64Array:
    """Score states by the kind of persona that a description is of."""
    scores = np.full(len(pairs.state), _FALLBACK_OTHER)
    for kind, weights in _FALLBACK_WEIGHTS.items():
        of_kind = np.append((kinds == kind).to_numpy(), False)[pairs.persona]
        rows = np.flatnonzero(of_kind & (pairs.state >= 0))
        if len(rows):
            of_state = sum(
                weight * _passes(states, *_FALLBACK_TESTS[test]) for test, weight in weights.items()
            )
            scores[rows] = np.asarray(of_state)[pairs.state[rows]]
    return scores


def _passes(states: pl.DataFrame, part: str, values: tuple[str, ...]) -> Mask:
    """Tell which states have one of some values in a part."""
    passed: Mask = np.any([(states[part] == value).to_numpy() for value in values], axis=0)
    return passed


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
        "n_transitions": _transitions(conversation, state, states, n_conversations),
        **{f"n_{name.removeprefix('uses_')}": count(rows) for name, rows in uses.items()},
    }


def _transitions(
    conversation: Indices, state: Indices, states: pl.DataFrame, n_conversations: int
) -> Indices:
    """Count the changes of ordering, exploration and mood from each state to the next."""
    rows = np.flatnonzero(state >= 0)
    before, after = rows[:-1], rows[1:]
    changes = np.zeros(len(after), np.int64)
    for name in _BEHAVIOURS:
        behaviour, _ = factorize(states[name])
        changes += behaviour[state[before]] != behaviour[state[after]]
    changes[conversation[before] != conversation[after]] = 0
    totals = np.bincount(conversation[after], changes, minlength=n_conversations)
    return totals.astype(np.int64)


def behavioural_variance(n_states: Indices, n_transitions: Indices) -> Float64Array:
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
    variance: Float64Array = np.where(
        rising,
        whole * n_transitions / (part * most),
        whole * (most - n_transitions) / ((whole - part) * most),
    )
    return variance


def explainability(counts: Mapping[str, Indices], level: Indices) -> Float64Array:
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
    index: Float64Array = np.select(
        [level == each for each in by_level], list(by_level.values()), 0.0
    )
    return index


def _score(
    conversations: pl.DataFrame, counts: Mapping[str, npt.NDArray[Any]], *, published: bool
) -> tuple[dict[str, pl.Series], pl.Series]:
    """Compute the metrics, and say why one is null."""
    values = _values(conversations, counts)
    causes = _causes(conversations, counts)
    for metric, rows in causes["not_applicable"].items():
        values[metric] = np.where(rows, 0.0, values[metric])
        if published:
            rows[:] = False
    height = conversations.height
    values["CRRS"] = sum(
        (weight * values[metric] for metric, weight in WEIGHTS.items()), np.zeros(height)
    )
    unexplained = np.ones(height, np.bool_)
    for reason in _GRAVITY:
        rows = np.any(list(causes[reason].values()), axis=0)
        causes[reason]["CRRS"] = rows & unexplained
        unexplained &= ~rows
    reasons = all_null_reasons(
        [(metric, reason, rows) for reason in _GRAVITY for metric, rows in causes[reason].items()],
        height,
    )
    scores = {
        metric.id: keep_where(
            ~np.any([causes[reason][metric.id] for reason in _GRAVITY], axis=0), values[metric.id]
        )
        for metric in METRICS
    }
    return scores, reasons


def _values(
    conversations: pl.DataFrame, counts: Mapping[str, npt.NDArray[Any]]
) -> dict[str, Float64Array]:
    """Compute the parts of CRRS, whether they are defined or not."""
    level = conversations["experiment_level"].fill_null(0).to_numpy()
    return {
        "PAS": counts["message_score_sum"] / np.maximum(counts["n_scored_messages"], 1),
        "BVS": behavioural_variance(counts["n_states"], counts["n_transitions"]),
        "ORA": conversations["overlap"].to_numpy(),
        "DEI": explainability(counts, level),
    }


def _causes(
    conversations: pl.DataFrame, counts: Mapping[str, npt.NDArray[Any]]
) -> dict[NullReason, dict[str, Mask]]:
    """Tell where each part of CRRS is undefined, by the gravest reason alone."""
    given = {name: conversations[name].to_numpy() for name in _CAUSE_COLUMNS}
    level = conversations["experiment_level"].fill_null(0).to_numpy()
    has_level = conversations["experiment_level"].is_not_null().to_numpy()
    bad = {
        "PAS": given["persona_bad"] | given["states_bad"],
        "BVS": given["states_bad"],
        "ORA": given["target_bad"]
        | (given["has_target"] & (given["order_broken"] | given["states_bad"])),
        "DEI": has_level & ~np.isin(level, LEVELS),
    }
    missing = {
        "PAS": (given["persona_code"] < 0) | given["states_missing"],
        "BVS": given["states_missing"],
        "ORA": ~given["has_target"] | given["states_missing"] | given["words_missing"],
        "DEI": ~has_level,
    }
    nothing = {
        "PAS": counts["n_scored_messages"] == 0,
        "BVS": counts["n_states"] < 2,
        "ORA": given["nothing_to_order"],
        "DEI": counts["n_guest_messages"] == 0,
    }
    return {
        "bad_input": bad,
        "missing_input": {metric: missing[metric] & ~bad[metric] for metric in WEIGHTS},
        "not_applicable": {
            metric: nothing[metric] & ~bad[metric] & ~missing[metric] for metric in WEIGHTS
        },
    }
