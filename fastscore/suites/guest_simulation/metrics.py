"""The suite's metrics: PAS, BVS, ORA, DEI and CRRS, their records and what computes them."""

import operator
from collections.abc import Mapping
from functools import reduce

import polars as pl
from polars import col as C

from fastscore.suites.declarations import Band, Fixed, Formula, Metric, NullReason, NullRule, Scale
from fastscore.suites.guest_simulation.options import (
    LEVELS,
    MATCH_COLUMNS,
    STATE_COLUMNS,
    TOOL_COLUMNS,
)
from fastscore.suites.showing import EvidenceRows, Row

UNCHANGING, CALLING = "never changing", "calling every tool"
"""Guests that pay no attention: their scores are shown beside PAS and BVS, and DEI."""
GRAVITY: tuple[NullReason, ...] = ("bad_input", "missing_input", "not_applicable")
"""Reasons for nulls, the gravest first."""
WEIGHTS = {"PAS": 0.25, "BVS": 0.20, "ORA": 0.35, "DEI": 0.20}
"""Weights of CRRS."""
LARGEST_DEI = {1: 0.0, 2: 0.2, 3: 0.5, 4: 0.5, 5: 1.0}
"""The largest DEI of each level."""
BEHAVIOURS = ("ordering_style", "menu_exploration_style", "mood_tone")

_SOURCE = "Simulation quality assessment metrics, section"
_PERFECT, _NOTHING = {"at_least": 1.0, "at_most": 1.0}, {"at_least": 0.0, "at_most": 0.0}
_STATES_BAD = NullRule(
    C("states_bad"), "bad_input", "the conversation's file of states cannot be read"
)
_STATES_MISSING = NullRule(
    C("states_missing"), "missing_input", "the conversation has no file of states"
)


def _nothing(when: pl.Expr, text: str) -> NullRule:
    """Make a rule that the published profile lacks: there the value is 0."""
    return NullRule(when & ~C("published"), "not_applicable", f"{text} (published: 0)")


PAS = Metric(
    id="PAS",
    name="Persona adherence score",
    uses=("guest_persona",),
    formula=Formula(
        r"\mathrm{PAS} = \frac{1}{N} \sum_{i=1}^{N} \frac{1}{|J_i|} \sum_{j \in J_i} C_{ij}",
        ("N", "messages of the guest with a state, except `exit`"),
        ("J_i", "components of state i of which the persona expects something"),
        ("C_{ij}", "1 if component j of state i is as expected, else 0"),
    ),
    scale=Scale(
        "higher",
        bands=(
            Band(reading="perfect", **_PERFECT),
            Band(reading="excellent", above=0.8),
            Band(reading="complete mismatch", **_NOTHING),
            Band(reading="poor", below=0.5),
        ),
    ),
    null_when=(
        NullRule(C("persona_bad"), "bad_input", "the persona cannot be read"),
        _STATES_BAD,
        NullRule(C("persona_code") < 0, "missing_input", "the conversation has no persona"),
        _STATES_MISSING,
        _nothing(C("n_scored_messages") == 0, "no message of the guest has a state"),
    ),
    evidence=(
        EvidenceRows(
            table="personas",
            names=("full_name",),
            columns=(
                "expected_complete",
                "expected_exploration",
                "expected_ordering",
                "expected_moods",
            ),
        ),
        EvidenceRows(
            table="personas",
            names=("full_name",),
            columns=("kind",),
            where=C("PAS_source") == "fallback",
        ),
        EvidenceRows(
            table="messages",
            names=("message_id",),
            columns=("message_score", *STATE_COLUMNS, *MATCH_COLUMNS),
        ),
    ),
    derivation="mean of {message_score}",
    reading="The share of state components that fit the persona. Messages after a complete order "
    "lose a quarter if the persona expects none.",
    example="Two states with 4 and 3 of 4 components as expected: (4/4 + 3/4) / 2 = 0.875.",
    note=(
        "Components are exploration, mood, ordering and completion. A mood fits if it is one "
        "of the expected moods. Completion is expected to be `no` by default. The source "
        "divides by all messages, its code and fastscore by messages with a state."
    ),
    role="headline",
    baselines=(UNCHANGING,),
    fixed_where=(Fixed("n_scored_messages", 0),),
    source=f"{_SOURCE} 1",
)


def _variance(row: Row, options: object) -> str:
    """Write BVS with values: the rising or the falling side of its maximum."""
    if row["n_states"] < 2:
        return "0, fewer than two states"
    most = 3 * (row["n_states"] - 1)
    rate = f"a = {{n_transitions}} / (3 ({{n_states}} - 1)) = {row['n_transitions'] / most:.4f}"
    if 5 * row["n_transitions"] <= most:
        return f"{rate}; a / 0.2"
    return f"{rate}; 1 - (a - 0.2) / 0.8"


BVS = Metric(
    id="BVS",
    name="Behavioural variance score",
    formula=Formula(
        r"\mathrm{BVS} = \begin{cases} a / 0.2 & \text{if } a \le 0.2 \\"
        r" 1 - (a - 0.2) / 0.8 & \text{otherwise} \end{cases}, \quad"
        r" a = \frac{1}{3 (M - 1)} \sum_d \sum_{i=2}^{M} [x_i^d \ne x_{i-1}^d]",
        ("M", "states of the guest"),
        ("x_i^d", "ordering, exploration or mood (dimension d) of state i"),
        ("a", "mean rate of transitions over the three dimensions"),
    ),
    scale=Scale(
        "higher",
        bands=(
            Band(reading="optimal", **_PERFECT),
            Band(reading="natural", above=0.7),
            Band(reading="static or chaotic", **_NOTHING),
            Band(reading="too rigid or too erratic", below=0.3),
        ),
    ),
    null_when=(
        _STATES_BAD,
        _STATES_MISSING,
        _nothing(C("n_states") < 2, "the guest has fewer than two states"),
    ),
    evidence=(
        EvidenceRows(columns=("n_states", "n_transitions")),
        EvidenceRows(
            table="messages",
            names=("message_id",),
            columns=BEHAVIOURS,
            where=C("state_source").is_not_null(),
        ),
    ),
    derivation=_variance,
    reading="1: a fifth of all possible transitions. Two rates, below and above 0.2, give the same "
    "value.",
    example="6 states, 4 transitions: a = 4/15, 1 - (4/15 - 1/5) / (4/5) = 0.917.",
    note=(
        "Too few and too many changes can have the same value. Of 11 states, 3 changes and 18 "
        "changes both give 0.5."
    ),
    role="headline",
    baselines=(UNCHANGING,),
    fixed_where=(Fixed("n_states", 0), Fixed("n_states", 1)),
    source=f"{_SOURCE} 2",
)


def _overlap(row: Row, options: object) -> str:
    """Write ORA with values: F1 of orders, or the Jaccard index of words."""
    if row["ORA_source"] == "text":
        return "{n_common_names} / ({n_final_names} + {n_target_names} - {n_common_names})"
    return "2 * {n_common_names} / ({n_final_names} + {n_target_names})"


ORA = Metric(
    id="ORA",
    name="Order restriction adherence",
    uses=("target_order",),
    formula=Formula(
        r"\mathrm{ORA} = \frac{2 |C \cap T|}{|C| + |T|}",
        ("C", "normalised names of items and modifiers in the final order"),
        ("T", "normalised names of items and modifiers in the target order"),
    ),
    scale=Scale(
        "higher",
        bands=(
            Band(reading="perfect", **_PERFECT),
            Band(reading="excellent", above=0.9),
            Band(reading="no overlap", **_NOTHING),
            Band(reading="significant deviation", below=0.5),
        ),
    ),
    null_when=(
        NullRule(C("target_bad"), "bad_input", "the target cannot be read"),
        NullRule(
            C("has_target") & C("order_broken"), "bad_input", "the final order cannot be read"
        ),
        NullRule(
            C("has_target") & C("states_bad"),
            "bad_input",
            "the conversation's file of states cannot be read",
        ),
        NullRule(~C("has_target"), "missing_input", "the conversation has no target order"),
        _STATES_MISSING,
        NullRule(
            C("words_missing"),
            "missing_input",
            "words are compared and no message of the guest has a content (published: 0)",
        ),
        _nothing(
            C("nothing_to_order"),
            "both sets of names are empty, or words are compared and no message has a guest's role",
        ),
    ),
    evidence=(
        EvidenceRows(columns=("ORA_source", "n_final_names", "n_target_names", "n_common_names")),
        EvidenceRows(table="names", names=("name",), columns=("in_order", "in_target")),
    ),
    derivation=_overlap,
    reading="F1 of ordered and wanted names. Without an order, the Jaccard index of food words "
    "that the guest says and words of the target (`ORA_source` is `text`).",
    example="C = {cola, fries}, T = {cola, soup}: 2 * 1 / (2 + 2) = 0.5.",
    note=(
        "The expanded formula of the source is wrong: 2k^2 / (ct + k (c + t - k)) with k "
        "common, c ordered and t wanted names. For c = t = 2 and k = 1 it gives 0.286, and "
        "the steps of the source give 0.5. fastscore and the public code use the steps."
    ),
    role="headline",
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


DEI = Metric(
    id="DEI",
    name="Decision explainability index",
    uses=("experiment_level",),
    formula=Formula(
        r"\mathrm{DEI} = \begin{cases} \min(1, (o + m) / (2 n)) & \text{at level 5} \\"
        r" \min(0.5, 0.5 m / n) & \text{at level 4} \\ \min(0.5, 0.5 o / n) & \text{at level 3} \\"
        r" \min(0.2, 0.2 b / n) & \text{at level 2} \\ 0 & \text{at level 1} \end{cases}",
        ("n", "messages of the guest by role, `exit` included"),
        ("o", "messages of n with an order tracking tool"),
        ("m", "messages of n with a tool for message attributes"),
        ("b", "messages of n with a basic tool"),
    ),
    scale=Scale(
        "higher",
        bands=(
            Band(reading="full explainability", **_PERFECT),
            Band(reading="no explainability", **_NOTHING),
        ),
        by="experiment_level",
    ),
    null_when=(
        NullRule(
            (C("experiment_level").is_not_null() & ~C("experiment_level").is_in(LEVELS)),
            "bad_input",
            "the level is outside 1 to 5",
        ),
        NullRule(C("experiment_level").is_null(), "missing_input", "the conversation has no level"),
        _nothing(C("n_guest_messages") == 0, "no message has a guest's role"),
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
    reading="The maximum depends on the level: a comparison of levels compares maxima.",
    example="Level 3, 4 messages, 1 with an order tracking tool: 0.5 * 1 / 4 = 0.125.",
    note=(
        "A message counts once for each kind of tool. Tools are found by their names, also tools "
        "of sub-agents. o: `order_tracking`. m: `message_generation` or `message_attributes`. b: "
        "`get_name`, `get_persona`, `get_target` or `get_past_messages`."
    ),
    role="headline",
    baselines=(CALLING,),
    fixed_where=(Fixed("experiment_level", 1), Fixed("n_guest_messages", 0)),
    source=f"{_SOURCE} 4",
)
_PARTS = (PAS, BVS, ORA, DEI)
CRRS = Metric(
    id="CRRS",
    name="Composite realism and reliability score",
    uses=("experiment_level", "guest_persona", "target_order"),
    formula=Formula(
        r"\mathrm{CRRS} = "
        + " + ".join(rf"{weight:.2f}\,\mathrm{{{part}}}" for part, weight in WEIGHTS.items())
    ),
    scale=Scale(
        "higher",
        bands=(
            Band(reading="excellent", above=0.85),
            Band(reading="good", at_least=0.70, at_most=0.85),
            Band(reading="acceptable", at_least=0.50, at_most=0.70),
            Band(reading="poor", below=0.50),
        ),
        by="experiment_level",
    ),
    null_when=(
        "null if PAS, BVS, ORA or DEI is null, with the gravest of their reasons",
        *sorted(
            (rule for part in _PARTS for rule in part.null_rules),
            key=lambda rule: GRAVITY.index(rule.reason or "not_applicable"),
        ),
    ),
    evidence=(EvidenceRows(columns=tuple(WEIGHTS)),),
    derivation=" + ".join(f"{weight:.2f} * {{{part}}}" for part, weight in WEIGHTS.items()),
    reading="At levels 1 to 5 at most 0.80, 0.84, 0.90, 0.90 and 1, by the maxima of DEI.",
    example="PAS 7/8, BVS 5/6, ORA 2/3, DEI 1/2: 7/32 + 1/6 + 7/30 + 1/10 = 0.71875.",
    note="The gravest reason is `bad_input`, then `missing_input`, then `not_applicable`.",
    role="headline",
    source=f"{_SOURCE} 6",
)
METRICS = (*_PARTS, CRRS)


_AT_ONCE, _ONE_BY_ONE = (C("ordering_style") == style for style in ("all_at_once", "one_by_one"))
_EXPLORES, _EXPLORES_NOT = (
    C("menu_exploration_style") == style for style in ("explores_menu", "does_not_explore_menu")
)


def _mood(*moods: str) -> pl.Expr:
    return C("mood_tone").is_in(moods)


_MATCHES = {
    "completion_match": C("is_ordering_complete") == C("expected_complete"),
    "exploration_match": C("menu_exploration_style") == C("expected_exploration"),
    "mood_match": C("expected_moods").list.contains(C("mood_tone")),
    "ordering_match": C("ordering_style") == C("expected_ordering"),
}
"""C_ij of PAS: null where the persona expects nothing of a component."""

_FALLBACK = {
    "busy": 0.33 * _AT_ONCE + 0.33 * _EXPLORES_NOT + 0.34 * _mood("casual", "frustrated"),
    "curious": 0.5 * _EXPLORES + 0.5 * _mood("enthusiastic", "casual"),
    "indecisive": 0.5 * _ONE_BY_ONE + 0.5 * _mood("confused", "casual"),
    "group": 0.5 * _ONE_BY_ONE + 0.5 * _EXPLORES,
}
"""A message's part of PAS by the kind of persona, if only a description says what to expect."""


def compare_states(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return MATCH_COLUMNS and ``message_score`` of each guest message."""
    key = [*STATE_COLUMNS, "is_exit", "state_source", "persona_code"]
    messages = (
        frames["messages"]
        .join(
            frames["conversations"].select("conversation", "persona_code"),
            on="conversation",
            maintain_order="left",
        )
        .select(key)
    )
    # pairs of a state and a persona are few, however many messages there are
    found = messages.unique().join(frames["personas"], on="persona_code", how="left")
    compared = C("state_source").is_not_null() & (C("persona_code") >= 0) & ~C("is_exit")
    by_attributes = compared & (C("PAS_source") == "attributes")
    matches = [C(name) for name in _MATCHES]
    share = pl.sum_horizontal(matches) / pl.sum_horizontal(each.is_not_null() for each in matches)
    fallback = pl.coalesce(
        *(pl.when(C("kind") == kind).then(score) for kind, score in _FALLBACK.items()), 0.5
    )
    found = found.with_columns(
        pl.when(by_attributes).then(match).alias(name) for name, match in _MATCHES.items()
    ).with_columns(message_score=pl.when(by_attributes).then(share).when(compared).then(fallback))
    return messages.join(found, on=key, how="left", nulls_equal=True, maintain_order="left").select(
        *MATCH_COLUMNS, "message_score"
    )


def count_messages(messages: pl.DataFrame) -> pl.DataFrame:
    """Add up what the metrics of each conversation need of its guest messages, in their order."""
    same = C("conversation") == C("conversation").shift()
    changes = pl.sum_horizontal(same & (C(name) != C(name).shift()) for name in BEHAVIOURS)
    transitions = (
        messages.filter(C("state_source").is_not_null())
        .select("conversation", changes=changes)
        .group_by("conversation")
        .agg(n_states=pl.len(), n_transitions=C("changes").sum())
    )
    uses = {
        f"n_{name.removeprefix('uses_')}": (C("has_guest_role") & C(name)).sum()
        for name in TOOL_COLUMNS
    }
    return (
        messages.group_by("conversation")
        .agg(
            n_guest_messages=C("has_guest_role").sum(),
            n_scored_messages=C("message_score").count(),
            # one after the other: `sum` adds up in an order of its own
            message_score_sum=C("message_score").drop_nulls().cum_sum().last(),
            **uses,
        )
        .join(transitions, on="conversation", how="left")
        .with_columns(C("^n_.*$").cast(pl.Int64))
    )


_CHANGES, _MOST = C("n_transitions"), 3 * pl.max_horizontal(C("n_states") - 1, 1)
_ORDERED, _WANTED, _COMMON = C("n_final_names"), C("n_target_names"), C("n_common_names")
_N = pl.max_horizontal(C("n_guest_messages"), 1)
_TRACKING, _ATTRIBUTES = C("n_order_tracking"), C("n_message_attributes")

FORMULAS = {
    "PAS": C("message_score_sum") / pl.max_horizontal(C("n_scored_messages"), 1),
    # a = changes / most: a / 0.2 = 5 a, and 1 - (a - 0.2) / 0.8 = 5 (1 - a) / 4. In whole numbers,
    # because a is 0.2 exactly, or not.
    "BVS": pl.when(5 * _CHANGES <= _MOST)
    .then(5 * _CHANGES / _MOST)
    .otherwise(5 * (_MOST - _CHANGES) / (4 * _MOST)),
    "ORA": pl.when((C("ORA_source") == "text").fill_null(False))
    .then(_COMMON / pl.max_horizontal(_ORDERED + _WANTED - _COMMON, 1))
    .otherwise(2 * _COMMON / pl.max_horizontal(_ORDERED + _WANTED, 1)),
    "DEI": pl.when(C("experiment_level") == 5)
    .then(pl.min_horizontal(LARGEST_DEI[5], (_TRACKING + _ATTRIBUTES) / (2 * _N)))
    .when(C("experiment_level") == 4)
    .then(pl.min_horizontal(LARGEST_DEI[4], _ATTRIBUTES / _N * LARGEST_DEI[4]))
    .when(C("experiment_level") == 3)
    .then(pl.min_horizontal(LARGEST_DEI[3], _TRACKING / _N * LARGEST_DEI[3]))
    .when(C("experiment_level") == 2)
    .then(pl.min_horizontal(LARGEST_DEI[2], C("n_basic_tools") / _N * LARGEST_DEI[2]))
    .otherwise(LARGEST_DEI[1]),
}
"""The metrics over columns of conversations. A part of nothing is 0, `null_when` makes it null."""
COMPOSITE = reduce(operator.add, (weight * C(part) for part, weight in WEIGHTS.items()))
"""CRRS."""
