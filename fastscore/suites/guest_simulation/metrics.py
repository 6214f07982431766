"""The suite's metrics: PAS, BVS, ORA, DEI and CRRS, their records and what computes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import fastscore_kernels as kernels
import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices, Mask

from fastscore.suites.columns import gather_or_null, keep_where
from fastscore.suites.declarations import Band, NullReason, NullRule, share
from fastscore.suites.grouping import factorize
from fastscore.suites.guest_simulation.options import (
    LEVELS,
    MATCH_COLUMNS,
    STATE_COLUMNS,
)
from fastscore.suites.showing import EvidenceRows, Row

UNCHANGING, CALLING = "never changing", "calling every tool"
"""Guests that pay no attention: their scores are shown beside PAS and BVS, and DEI."""
GRAVITY: tuple[NullReason, ...] = ("bad_input", "missing_input", "not_applicable")
"""Reasons for nulls, the gravest first."""
WEIGHTS = {"PAS": 0.25, "BVS": 0.20, "ORA": 0.35, "DEI": 0.20}
OPTIMAL_RATE = (1, 5)
"""The rate of transitions at which BVS is 1, as a fraction: 0.2 cannot be met exactly otherwise."""
BEHAVIOURS = ("ordering_style", "menu_exploration_style", "mood_tone")

_SOURCE = "Simulation quality assessment metrics, section"
_PERFECT, _NOTHING = {"at_least": 1.0, "at_most": 1.0}, {"at_least": 0.0, "at_most": 0.0}
_STATES_BAD = NullRule(
    when=pl.col("states_bad"),
    reason="bad_input",
    text="the conversation's file of states cannot be read",
)
_STATES_MISSING = NullRule(
    when=pl.col("states_missing"),
    reason="missing_input",
    text="the conversation has no file of states",
)


def _nothing(when: pl.Expr, text: str) -> NullRule:
    """Make a rule that the published profile lacks: there the value is 0."""
    return NullRule(
        when=when & ~pl.col("published"), reason="not_applicable", text=f"{text} (published: 0)"
    )


PAS = share(
    id="PAS",
    name="Persona adherence score",
    uses=("guest_persona",),
    differs_by="--profile published, --states, --states-from, --personas",
    symbols=(
        ("N", "messages of the guest with a state, except `exit`"),
        ("J_i", "components of state i of which the persona expects something"),
        ("C_{ij}", "1 if component j of state i is as expected, else 0"),
    ),
    latex=r"\mathrm{PAS} = \frac{1}{N} \sum_{i=1}^{N} \frac{1}{|J_i|} \sum_{j \in J_i} C_{ij}",
    better="higher",
    null_when=(
        NullRule(when=pl.col("persona_bad"), reason="bad_input", text="the persona cannot be read"),
        _STATES_BAD,
        NullRule(
            when=pl.col("persona_code") < 0,
            reason="missing_input",
            text="the conversation has no persona",
        ),
        _STATES_MISSING,
        _nothing(pl.col("n_scored_messages") == 0, "no message of the guest has a state"),
    ),
    evidence=(
        EvidenceRows(
            table="messages",
            names=("message_id",),
            columns=("message_score", *STATE_COLUMNS, *MATCH_COLUMNS),
        ),
    ),
    derivation="mean of {message_score}",
    bands=(
        Band(reading="perfect", **_PERFECT),
        Band(reading="excellent", above=0.8),
        Band(reading="complete mismatch", **_NOTHING),
        Band(reading="poor", below=0.5),
    ),
    reading="The share of state components that fit the persona. Messages after a complete order "
    "lose a quarter if the persona expects none.",
    example="Two states with 4 and 3 of 4 components as expected: (4/4 + 3/4) / 2 = 0.875.",
    note=(
        "Components are exploration, mood, ordering and completion. A mood fits if it is one "
        "of the expected moods. Completion is expected to be `no` by default. The source "
        "divides by all messages, its code and fastscore by messages with a state."
    ),
    headline=True,
    baselines=(UNCHANGING,),
    fixed_where=(("n_scored_messages", 0),),
    source=f"{_SOURCE} 1",
)


def _variance(row: Row, options: object) -> str:
    """Write BVS with values: the rising or the falling side of its maximum."""
    if row["n_states"] < 2:
        return "0, fewer than two states"
    most = 3 * (row["n_states"] - 1)
    rate = f"a = {{n_transitions}} / (3 ({{n_states}} - 1)) = {row['n_transitions'] / most:.4f}"
    part, whole = OPTIMAL_RATE
    if whole * row["n_transitions"] <= part * most:
        return f"{rate}; a / 0.2"
    return f"{rate}; 1 - (a - 0.2) / 0.8"


BVS = share(
    id="BVS",
    name="Behavioural variance score",
    differs_by="--profile published, --states, --states-from",
    symbols=(
        ("M", "states of the guest"),
        ("x_i^d", "ordering, exploration or mood (dimension d) of state i"),
        ("a", "mean rate of transitions over the three dimensions"),
    ),
    latex=(
        r"\mathrm{BVS} = \begin{cases} a / 0.2 & \text{if } a \le 0.2 \\"
        r" 1 - (a - 0.2) / 0.8 & \text{otherwise} \end{cases}, \quad"
        r" a = \frac{1}{3 (M - 1)} \sum_d \sum_{i=2}^{M} [x_i^d \ne x_{i-1}^d]"
    ),
    better="higher",
    null_when=(
        _STATES_BAD,
        _STATES_MISSING,
        _nothing(pl.col("n_states") < 2, "the guest has fewer than two states"),
    ),
    evidence=(
        EvidenceRows(columns=("n_states", "n_transitions")),
        EvidenceRows(
            table="messages",
            names=("message_id",),
            columns=BEHAVIOURS,
            where=pl.col("state_source").is_not_null(),
        ),
    ),
    derivation=_variance,
    bands=(
        Band(reading="optimal", **_PERFECT),
        Band(reading="natural", above=0.7),
        Band(reading="static or chaotic", **_NOTHING),
        Band(reading="too rigid or too erratic", below=0.3),
    ),
    reading="1: a fifth of all possible transitions. Two rates, below and above 0.2, give the same "
    "value.",
    example="6 states, 4 transitions: a = 4/15, 1 - (4/15 - 1/5) / (4/5) = 0.917.",
    note=(
        "Too few and too many changes can have the same value. Of 11 states, 3 changes and 18 "
        "changes both give 0.5."
    ),
    headline=True,
    baselines=(UNCHANGING,),
    fixed_where=(("n_states", 0), ("n_states", 1)),
    source=f"{_SOURCE} 2",
)


def _overlap(row: Row, options: object) -> str:
    """Write ORA with values: F1 of orders, or the Jaccard index of words."""
    if row["ORA_source"] == "text":
        return "{n_common_names} / ({n_final_names} + {n_target_names} - {n_common_names})"
    return "2 * {n_common_names} / ({n_final_names} + {n_target_names})"


ORA = share(
    id="ORA",
    name="Order restriction adherence",
    uses=("target_order",),
    differs_by="--profile published, --states-from",
    symbols=(
        ("C", "normalised names of items and modifiers in the final order"),
        ("T", "normalised names of items and modifiers in the target order"),
    ),
    latex=r"\mathrm{ORA} = \frac{2 |C \cap T|}{|C| + |T|}",
    better="higher",
    null_when=(
        NullRule(when=pl.col("target_bad"), reason="bad_input", text="the target cannot be read"),
        NullRule(
            when=pl.col("has_target") & pl.col("order_broken"),
            reason="bad_input",
            text="the final order cannot be read",
        ),
        NullRule(
            when=pl.col("has_target") & pl.col("states_bad"),
            reason="bad_input",
            text="the conversation's file of states cannot be read",
        ),
        NullRule(
            when=~pl.col("has_target"),
            reason="missing_input",
            text="the conversation has no target order",
        ),
        _STATES_MISSING,
        NullRule(
            when=pl.col("words_missing"),
            reason="missing_input",
            text="words are compared and no message of the guest has a content (published: 0)",
        ),
        _nothing(pl.col("nothing_to_order"), "both sets of names are empty or the guest is silent"),
    ),
    evidence=(
        EvidenceRows(columns=("ORA_source", "n_final_names", "n_target_names", "n_common_names")),
        EvidenceRows(
            table="log",
            columns=(),
            text="current_items_in_order",
            where=pl.col("current_items_in_order").is_not_null(),
        ),
        EvidenceRows(
            table="log",
            columns=(),
            text="target_order",
            where=pl.col("target_order").is_not_null(),
        ),
    ),
    derivation=_overlap,
    bands=(
        Band(reading="perfect", **_PERFECT),
        Band(reading="excellent", above=0.9),
        Band(reading="no overlap", **_NOTHING),
        Band(reading="significant deviation", below=0.5),
    ),
    reading="F1 of ordered and wanted names. Without an order, the Jaccard index of food words "
    "that the guest says and words of the target (`ORA_source` is `text`).",
    example="C = {cola, fries}, T = {cola, soup}: 2 * 1 / (2 + 2) = 0.5.",
    note=(
        "The expanded formula of the source is wrong: 2k^2 / (ct + k (c + t - k)) with k "
        "common, c ordered and t wanted names. For c = t = 2 and k = 1 it gives 0.286, and "
        "the steps of the source give 0.5. fastscore and the public code use the steps."
    ),
    headline=True,
    source=f"{_SOURCE} 3",
)
_EXPLAINED = {
    5: "level 5: min(1, ({n_order_tracking} + {n_message_attributes}) / (2 * {n_guest_messages}))",
    4: "level 4: min(0.5, 0.5 * {n_message_attributes} / {n_guest_messages})",
    3: "level 3: min(0.5, 0.5 * {n_order_tracking} / {n_guest_messages})",
    2: "level 2: min(0.2, 0.2 * {n_basic_tools} / {n_guest_messages})",
}


def _index(row: Row, options: object) -> str:
    """Write DEI with values, as its level defines it."""
    return _EXPLAINED.get(row["experiment_level"], "level {experiment_level}: 0")


DEI = share(
    id="DEI",
    name="Decision explainability index",
    uses=("experiment_level",),
    differs_by="--profile published, --level",
    symbols=(
        ("n", "messages of the guest by role, `exit` included"),
        ("o", "messages of n with an order tracking tool"),
        ("m", "messages of n with a tool for message attributes"),
        ("b", "messages of n with a basic tool"),
    ),
    latex=(
        r"\mathrm{DEI} = \begin{cases} \min(1, (o + m) / (2 n)) & \text{at level 5} \\"
        r" \min(0.5, 0.5 m / n) & \text{at level 4} \\ \min(0.5, 0.5 o / n) & \text{at level 3} \\"
        r" \min(0.2, 0.2 b / n) & \text{at level 2} \\ 0 & \text{at level 1} \end{cases}"
    ),
    better="higher",
    null_when=(
        NullRule(
            when=pl.col("experiment_level").is_not_null()
            & ~pl.col("experiment_level").is_in(LEVELS),
            reason="bad_input",
            text="the level is outside 1 to 5",
        ),
        NullRule(
            when=pl.col("experiment_level").is_null(),
            reason="missing_input",
            text="the conversation has no level",
        ),
        _nothing(pl.col("n_guest_messages") == 0, "the guest has no message"),
    ),
    evidence=(
        EvidenceRows(
            columns=(
                "experiment_level",
                "n_guest_messages",
                "n_order_tracking",
                "n_message_attributes",
                "n_basic_tools",
            )
        ),
    ),
    derivation=_index,
    bands=(
        Band(reading="full explainability", **_PERFECT),
        Band(reading="no explainability", **_NOTHING),
    ),
    reading="The maximum depends on the level: a comparison of levels compares maxima.",
    example="Level 3, 4 messages, 1 with an order tracking tool: 0.5 * 1 / 4 = 0.125.",
    note=(
        "A message counts once for each kind of tool. Tools are found by their names, also "
        "tools of sub-agents. o: `order_tracking`. m: `message_generation` or "
        "`message_attributes`. b: `get_name`, `get_persona`, `get_target` or "
        "`get_past_messages`."
    ),
    headline=True,
    baselines=(CALLING,),
    fixed_where=(("experiment_level", 1), ("n_guest_messages", 0)),
    scale_by="experiment_level",
    source=f"{_SOURCE} 4",
)
_PARTS = (PAS, BVS, ORA, DEI)
CRRS = share(
    id="CRRS",
    name="Composite realism and reliability score",
    uses=("experiment_level", "guest_persona", "target_order"),
    differs_by="--profile published",
    latex=(
        r"\mathrm{CRRS} = 0.25\,\mathrm{PAS} + 0.20\,\mathrm{BVS}"
        r" + 0.35\,\mathrm{ORA} + 0.20\,\mathrm{DEI}"
    ),
    better="higher",
    null_when=tuple(
        sorted(
            (rule for part in _PARTS for rule in part.null_when),
            key=lambda rule: GRAVITY.index(rule.reason or "not_applicable"),
        )
    ),
    null_rule="null if PAS, BVS, ORA or DEI is null, with the gravest of their reasons",
    evidence=(EvidenceRows(columns=tuple(WEIGHTS)),),
    derivation=" + ".join(f"{weight:.2f} * {{{part}}}" for part, weight in WEIGHTS.items()),
    bands=(
        Band(reading="excellent", above=0.85),
        Band(reading="good", at_least=0.70, at_most=0.85),
        Band(reading="acceptable", at_least=0.50, at_most=0.70),
        Band(reading="poor", below=0.50),
    ),
    reading="At levels 1 to 5 at most 0.80, 0.84, 0.90, 0.90 and 1, by the maxima of DEI.",
    example="PAS 7/8, BVS 5/6, ORA 2/3, DEI 1/2: 7/32 + 1/6 + 7/30 + 1/10 = 0.71875.",
    note="The gravest reason is `bad_input`, then `missing_input`, then `not_applicable`.",
    headline=True,
    scale_by="experiment_level",
    source=f"{_SOURCE} 6",
)
METRICS = (*_PARTS, CRRS)

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


def compare_states(frames: Mapping[str, pl.DataFrame]) -> tuple[pl.DataFrame, Float64Array]:
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
    numbers, firsts = kernels.number_hashes(key.astype(np.uint64))
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


def count_transitions(
    conversation: Indices, state: Indices, states: pl.DataFrame, n_conversations: int
) -> Indices:
    """Count the changes of ordering, exploration and mood from each state to the next."""
    rows = np.flatnonzero(state >= 0)
    before, after = rows[:-1], rows[1:]
    changes = np.zeros(len(after), np.int64)
    for name in BEHAVIOURS:
        behaviour, _ = factorize(states[name])
        changes += behaviour[state[before]] != behaviour[state[after]]
    changes[conversation[before] != conversation[after]] = 0
    totals = np.bincount(conversation[after], changes, minlength=n_conversations)
    return totals.astype(np.int64)


def behavioural_variance(n_states: Indices, n_transitions: Indices) -> Float64Array:
    """Compute BVS, in integers up to the last division.

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


def values_of(
    counts: Mapping[str, Any], overlap: Float64Array, level: Indices
) -> dict[str, Float64Array]:
    """Return the metrics of conversations; a part of nothing is 0."""
    values: dict[str, Float64Array] = {
        "PAS": counts["message_score_sum"] / np.maximum(counts["n_scored_messages"], 1),
        "BVS": behavioural_variance(counts["n_states"], counts["n_transitions"]),
        "ORA": overlap,
        "DEI": explainability(counts, level),
    }
    total = (weight * values[part] for part, weight in WEIGHTS.items())
    return values | {"CRRS": sum(total, np.zeros(len(level)))}
