"""What the records of metrics share: symbols, rules of nulls, sources."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import polars as pl

from fastscore.suites.declarations import EvidenceRows, Metric, NullReason, NullRule

HEADLINE = (
    "cross_coherence",
    "context_retention",
    "topic_interference",
    "context_adaptation_score",
    "topic_recovery_rate",
    "avg_recovery_delay",
)
"""The columns of the published table of models, ``model_metrics.csv``."""
REFUSING, ECHOING = "always refusing", "echoing the user"
"""Agents that pay no attention: their scores are shown beside the headline metrics."""
MEAN_OF_DIALOGUES = {
    "cc": "cross_coherence",
    "cr": "context_retention",
    "i": "topic_interference",
    "tas": "context_adaptation_score",
    "delay": "avg_recovery_delay",
    "delay_cosine": "avg_recovery_delay_cosine",
    "i_around_shift": "topic_interference_around_shifts",
    **{f"dst_{name}": f"dst_{name}_mean" for name in ("precision", "recall", "f1")},
    "dst_joint_accuracy": "dst_joint_accuracy_mean",
}
"""Metrics of turns and shifts whose means over a dialogue are metrics of dialogues."""
NO_TURN, NO_SHIFT = ("n_turns", 0), ("n_shifts", 0)


def of_turns(*columns: str, **which: Any) -> EvidenceRows:
    """Show columns of the turns of the conversation."""
    return EvidenceRows(table="turns", names=("turn",), columns=columns, **which)


def of_shifts(*columns: str) -> EvidenceRows:
    """Show columns of the shifts of the conversation."""
    return EvidenceRows(table="shifts", names=("turn",), columns=columns)


IN_TEXTS = (
    EvidenceRows(columns=("user_concepts",), text="user_text"),
    EvidenceRows(columns=("system_concepts",), text="system_text"),
)
GOLD_AND_TEXTS = (EvidenceRows(columns=("gold_concepts",)), *IN_TEXTS)
IN_SEGMENT = (of_turns("user_concepts", "system_concepts", same=("segment",)),)


def metric(
    table: str,
    id: str,
    name: str,
    source: str,
    *,
    symbols: tuple[tuple[str, str], ...],
    latex: str,
    reading: str,
    example: str,
    note: str = "",
    minimum: float | None = 0.0,
    maximum: float | None = 1.0,
    better: Literal["higher", "lower", "neither"] = "higher",
    null_when: tuple[NullRule, ...] = (),
    unit: str = "1",
    numerator: str | None = None,
    denominator: str | None = None,
    fixed_where: tuple[tuple[str, int], ...] = (),
    evidence: tuple[EvidenceRows, ...] = (),
    derivation: str | Callable[[Mapping[str, Any]], str] = "",
) -> Metric:
    """Make the record of a metric."""
    return Metric(
        id=id,
        name=name,
        table=table,
        symbols=symbols,
        latex=latex,
        reading=reading,
        example=example,
        note=note,
        minimum=minimum,
        maximum=maximum,
        better=better,
        null_when=null_when,
        source=source,
        unit=unit,
        numerator=numerator,
        denominator=denominator,
        is_secondary=table != "dialogues" or id.endswith("_cosine") or unit == "concepts",
        headline=id in HEADLINE,
        same_test_as=MEAN_OF_DIALOGUES.get(id, ""),
        fixed_where=fixed_where,
        evidence=evidence,
        derivation=derivation,
        baselines=(REFUSING, ECHOING) if id in HEADLINE else (),
    )


TURNS = ("T", "turns of the conversation with both texts")
CONCEPTS_U = ("E_U", "set of catalogue concepts in the user's text")
CONCEPTS_S = ("E_S", "set of catalogue concepts in the system's text")
UNION_U = ("E_U", "union of the concepts of the user turns of the segment")
UNION_S = ("E_S", "union of the concepts of the system turns of the segment")
WEIGHTS = ("a_U", "vector with the inverse document frequency of each concept of $E_U$, else 0")
WEIGHTS_S = ("a_S", "the vector of $E_S$")
GRAMS = ("G_n(t)", "set of n-grams of words of text t, for n = 3 and 4 (`--copy-orders`)")
GOLD = ("G", "gold concepts: concepts of the constraints in the user turn's metadata")
COPIED = ("I_t", "copying of turn t (`i`)")
PARTS = ((r"\mathrm{CC}", "`cc`"), (r"\mathrm{CR}", "`cr`"), ("I", "`i`"))
ALPHA = (
    (r"\alpha", "weight `--alpha`, 1"),
    (r"\beta", "weight `--beta`, 1"),
    (r"\gamma", "weight `--gamma`, 1"),
)
SHIFT = ("t_k", "user turn of shift k")
WINDOW = ("W", "turns of the window, `--window`, 3")
THETA = (r"\theta", "threshold `--recovery-cc`")
RATE = ("r", "recovery rate")
MEANS = (
    (r"\bar{I}", "mean copying"),
    (r"\bar{C}", "mean cross-coherence"),
    (r"\bar{R}", "mean context retention"),
)


def _null(when: pl.Expr, reason: NullReason, text: str) -> NullRule:
    return NullRule(when=when, reason=reason, text=text)


_ZERO = pl.col("zero_without_turns")
NO_TEXTS = _null(
    ~(pl.col("has_user_text") & pl.col("has_system_text")),
    "missing_input",
    "one of the two texts is absent or null (an empty text in every profile but default)",
)
NO_GOLD = (
    _null(
        ~(pl.col("has_gold") | pl.col("gold_is_user")),
        "missing_input",
        "the user turn's metadata has no constraints (the user's own concepts in the profile "
        "structured)",
    ),
    _null(
        ~pl.col("has_system_text"),
        "missing_input",
        "the system's text is absent or null (an empty text in every profile but default)",
    ),
)
NONE_SCORED = _null(pl.col("n_scored") == 0, "missing_input", "no turn of it has both texts")
UNKNOWN_DELAY, UNKNOWN_DELAY_COSINE = (
    _null(
        pl.col(recovered).is_null(),
        "missing_input",
        "no turn of the window is known to meet the test and one of them lacks a text",
    )
    for recovered in ("recovered", "recovered_cosine")
)
NOT_RECOVERED, NOT_RECOVERED_COSINE = (
    _null(~pl.col(recovered), "not_applicable", "no turn of the window meets the test")
    for recovered in ("recovered", "recovered_cosine")
)
AFTER_THE_END = _null(~pl.col("in_dialogue"), "not_applicable", "the conversation has no such turn")
NONE_IN_WINDOW = _null(
    pl.col("n_window_turns") == 0, "missing_input", "no turn of the window has both texts"
)
NO_TURNS = _null(
    ~_ZERO & (pl.col("n_turns") == 0),
    "not_applicable",
    "the conversation has no turn (0 in every profile but default)",
)
NO_TURN_SCORED = _null(
    (pl.col("n_turns") > 0) & (pl.col("n_scored") == 0),
    "missing_input",
    "no turn has both texts",
)
NO_SHIFTS = _null(
    ~_ZERO & (pl.col("n_shifts") == 0),
    "not_applicable",
    "the conversation has no shift (0 in every profile but default)",
)
UNKNOWN, UNKNOWN_COSINE = (
    _null(
        (pl.col("n_shifts") > 0) & (pl.col(known) == 0),
        "missing_input",
        "the recovery of every shift is unknown: no turn of the window is known to meet the test "
        "and one of them lacks a text",
    )
    for known in ("n_known_shifts", "n_known_shifts_cosine")
)
NONE_RECOVERED, NONE_RECOVERED_COSINE = (
    _null(pl.col(recovered) == 0, "not_applicable", "no shift was recovered")
    for recovered in ("n_recovered", "n_recovered_cosine")
)
NO_SHIFT_INSIDE = _null(
    pl.col("n_shifts_inside") == 0,
    "not_applicable",
    "no turn of the conversation has a shift",
)
NONE_AROUND = _null(
    pl.col("n_turns_around_shifts") == 0,
    "missing_input",
    "no turn of the windows has both texts",
)
OF_MEANS = (NO_TURNS, NO_TURN_SCORED)
OF_CAS = (
    UNKNOWN,
    _null(
        ~pl.col("is_legacy") & (pl.col("n_recovered") == 0),
        "not_applicable",
        "no shift was recovered (in the profile legacy, CAS has no part for speed then)",
    ),
    _null(
        pl.col("is_legacy") & (pl.col("n_turns") == 0),
        "not_applicable",
        "the conversation has no turn",
    ),
)
OF_CAS_ALL = (
    _null(pl.col("is_legacy"), "not_applicable", "the profile is legacy"),
    UNKNOWN,
    _null(pl.col("n_shifts") == 0, "not_applicable", "the conversation has no shift"),
    _null(pl.col("n_turns") == 0, "not_applicable", "the conversation has no turn"),
    NO_TURN_SCORED,
)
NONE_TRACKED = _null(
    ~pl.col("gold_is_user") & (pl.col("n_gold") == 0),
    "missing_input",
    "no turn has a value (0 in the profile structured)",
)

MADE = "preference_shift methodology, "
CC, CR, COPYING, TAS = (MADE + part for part in ("5.2", "5.3", "5.4", "5.5"))
SEGMENTS, DELTAS = MADE + "5.6", MADE + "5.7"
PUBLIC = "llm-eval-workspace, evaluate.py"
CONSISTENT = PUBLIC + " (updated)"

TAS_FORMULA = (
    r"\mathrm{TAS} = "
    r"\min(1, \max(-1, \alpha \mathrm{CC} + \beta \mathrm{CR} - \gamma I))"
)
COSINE = "a_U · a_S / (|a_U| |a_S|), by the weights of the concepts"
ADAPTATION = "min(1, max(-1, {{alpha}} * {cc} + {{beta}} * {cr} - {{gamma}} * {i}))"
FIRST_TURN = "{test} from turn {turn} to {last}: turn {first} is the first"
