"""The suite's metrics: data only."""

from typing import Literal

from fastscore.suites.declarations import Metric

_HEADLINE = (
    "cross_coherence",
    "context_retention",
    "topic_interference",
    "context_adaptation_score",
    "topic_recovery_rate",
    "avg_recovery_delay",
)
"""The columns of the published table of models, ``model_metrics.csv``."""
REFUSING, ECHOING = "always refusing", "echoing the user"
"""Agents that pay no attention: their scores stand beside the headline metrics."""
_MEAN_OF_DIALOGUES = {
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
_NO_TURN, _NO_SHIFT = ("n_turns", 0), ("n_shifts", 0)


def _metric(
    table: str,
    id: str,
    name: str,
    formula: str,
    source: str,
    *,
    minimum: float | None = 0.0,
    maximum: float | None = 1.0,
    better: Literal["higher", "lower", "neither"] = "higher",
    null_rule: str = "never",
    unit: str = "1",
    numerator: str | None = None,
    denominator: str | None = None,
    fixed_where: tuple[tuple[str, int], ...] = (),
) -> Metric:
    return Metric(
        id=id,
        name=name,
        table=table,
        formula=formula,
        minimum=minimum,
        maximum=maximum,
        better=better,
        null_rule=null_rule,
        source=source,
        unit=unit,
        numerator=numerator,
        denominator=denominator,
        is_secondary=table != "dialogues" or id.endswith("_cosine") or unit == "concepts",
        headline=id in _HEADLINE,
        same_test_as=_MEAN_OF_DIALOGUES.get(id, ""),
        fixed_where=fixed_where,
        baselines=(REFUSING, ECHOING) if id in _HEADLINE else (),
    )


_GOLD_RULE = (
    "missing_input where the user turn's metadata has no constraints or, in the profile default, "
    "the system's text is absent or null; never in the profile structured, which takes the user's "
    "own concepts instead"
)
_TEXTS_RULE = (
    "missing_input where one of the two texts is absent or null; in every profile but default "
    "that is an empty text, and this is never null"
)
_SEGMENT_RULE = "missing_input without a turn in it that has both texts"
_TURNS_RULE = (
    "not_applicable without a turn, missing_input without one that has both texts; 0 in every "
    "profile but default"
)
_NO_SHIFTS = (
    "not_applicable without a shift or a turn, missing_input where it is unknown of every shift: "
    "no turn of the window is known to meet the test and one of them lacks a text; in every "
    "profile but default an absent text is empty, and this is 0 without a shift"
)
_NO_RECOVERY = (
    "not_applicable where nothing was recovered, missing_input where that is unknown: a turn of "
    "the window lacks a text"
)

_MADE = "preference_shift methodology, "
_CC, _CR, _I, _TAS = (_MADE + part for part in ("5.2", "5.3", "5.4", "5.5"))
_SEGMENTS, _DELTAS = _MADE + "5.6", _MADE + "5.7"
_PUBLIC = "llm-eval-workspace, evaluate.py"
_CONSISTENT = _PUBLIC + " (updated)"

_TAS_FORMULA = "alpha * cc + beta * cr - gamma * i, clipped to [-1, 1]"
_I_FORMULA = "max over n of |n-grams of S in U| / |n-grams of S|, sets of words, n = 3 and 4"

TURN_METRICS = (
    _metric(
        "turns",
        "cc",
        "Cross-coherence",
        "|E(U) & E(S)| / |E(U) | E(S)|; 1 if both empty",
        _CC,
        null_rule=_TEXTS_RULE,
    ),
    _metric(
        "turns",
        "cr",
        "Context retention",
        "cosine of IDF vectors of E(U) and E(S)",
        _CR,
        null_rule=_TEXTS_RULE,
    ),
    _metric(
        "turns",
        "i",
        "Topic interference (copying)",
        _I_FORMULA,
        _I,
        better="lower",
        null_rule=_TEXTS_RULE,
    ),
    _metric(
        "turns",
        "tas",
        "Turn adaptation score",
        _TAS_FORMULA,
        _TAS,
        minimum=-1.0,
        null_rule=_TEXTS_RULE,
    ),
    _metric(
        "turns",
        "dst_precision",
        "Precision of the system's concepts",
        "|E(S) & gold| / |E(S)|; where E(S) is empty 1 if gold is too, else 0",
        _CONSISTENT,
        null_rule=_GOLD_RULE,
    ),
    _metric(
        "turns",
        "dst_recall",
        "Recall of the gold constraints",
        "|E(S) & gold| / |gold|; 1 where gold is empty",
        _CONSISTENT,
        null_rule=_GOLD_RULE,
    ),
    _metric(
        "turns",
        "dst_f1",
        "F1 of precision and recall",
        "2PR / (P + R); 0 where both are 0",
        _CONSISTENT,
        null_rule=_GOLD_RULE,
    ),
    _metric(
        "turns",
        "dst_joint_accuracy",
        "Joint accuracy",
        "1 if E(S) is the gold set, else 0",
        _CONSISTENT,
        null_rule=_GOLD_RULE,
    ),
)

SEGMENT_METRICS = (
    _metric(
        "segments",
        "segment_cc",
        "Cross-coherence of a segment",
        "cc of the unions of sets",
        _DELTAS,
        null_rule=_SEGMENT_RULE,
    ),
    _metric(
        "segments",
        "segment_cr",
        "Context retention of a segment",
        "cosine of summed vectors",
        _CR,
        null_rule=_SEGMENT_RULE,
    ),
    _metric(
        "segments",
        "segment_i",
        "Copying in a segment",
        "mean of i over turns",
        _I,
        better="lower",
        null_rule=_SEGMENT_RULE,
    ),
    _metric(
        "segments",
        "segment_tas",
        "Adaptation score of a segment",
        "alpha * segment_cc + beta * segment_cr - gamma * segment_i, clipped to [-1, 1]",
        _TAS,
        minimum=-1.0,
        null_rule=_SEGMENT_RULE,
    ),
)

SHIFT_METRICS = (
    _metric(
        "shifts",
        "delay",
        "Turns until the recovery test is met",
        "first turn of the window that meets the test, from 0",
        _SEGMENTS,
        maximum=None,
        better="lower",
        null_rule=_NO_RECOVERY,
        unit="turns",
    ),
    _metric(
        "shifts",
        "delay_cosine",
        "Turns until CR alone meets its threshold",
        "as delay, by CR alone",
        _CONSISTENT,
        maximum=None,
        better="lower",
        null_rule=_NO_RECOVERY,
        unit="turns",
    ),
    _metric(
        "shifts",
        "i_around_shift",
        "Copying around a shift",
        "mean of i over the turns of the window from the shift on",
        _SEGMENTS,
        better="lower",
        null_rule="not_applicable where the conversation has no such turn, missing_input where "
        "none has both texts",
    ),
)

_GOLD_MEAN_RULE = "missing_input where no turn has a value; 0 without a turn in structured"

DIALOGUE_METRICS = (
    _metric(
        "dialogues",
        "cross_coherence",
        "Mean cross-coherence",
        "mean of cc over turns",
        _CC,
        null_rule=_TURNS_RULE,
        fixed_where=(_NO_TURN,),
    ),
    _metric(
        "dialogues",
        "context_retention",
        "Mean context retention",
        "mean of cr over turns",
        _CR,
        null_rule=_TURNS_RULE,
        fixed_where=(_NO_TURN,),
    ),
    _metric(
        "dialogues",
        "topic_interference",
        "Mean copying",
        "mean of i over turns",
        _I,
        better="lower",
        null_rule=_TURNS_RULE,
        fixed_where=(_NO_TURN,),
    ),
    _metric(
        "dialogues",
        "topic_interference_around_shifts",
        "Mean copying around shifts",
        "mean of i over the turns of the windows from the shifts on; one in two windows counts "
        "twice",
        _SEGMENTS,
        better="lower",
        null_rule="not_applicable without a shift that the conversation has a turn for, "
        "missing_input where none of those turns has both texts",
        numerator="i_around_shifts_sum",
        denominator="n_turns_around_shifts",
    ),
    _metric(
        "dialogues",
        "context_adaptation_score",
        "Adaptation score (mean TAS)",
        "mean of tas over turns, each clipped before",
        _TAS,
        minimum=-1.0,
        null_rule=_TURNS_RULE,
        fixed_where=(_NO_TURN,),
    ),
    _metric(
        "dialogues",
        "topic_recovery_rate",
        "Recovery rate",
        "n_recovered / n_known_shifts",
        _SEGMENTS,
        null_rule=_NO_SHIFTS,
        numerator="n_recovered",
        denominator="n_known_shifts",
        fixed_where=(_NO_TURN, _NO_SHIFT),
    ),
    _metric(
        "dialogues",
        "avg_recovery_delay",
        "Mean recovery delay",
        "delay_sum / n_recovered",
        _SEGMENTS,
        maximum=None,
        better="lower",
        null_rule=_NO_RECOVERY,
        unit="turns",
        numerator="delay_sum",
        denominator="n_recovered",
    ),
    _metric(
        "dialogues",
        "recovery_rate_cosine",
        "Recovery rate by CR alone",
        "n_recovered_cosine / n_known_shifts_cosine",
        _CONSISTENT,
        null_rule=_NO_SHIFTS,
        numerator="n_recovered_cosine",
        denominator="n_known_shifts_cosine",
        fixed_where=(_NO_TURN, _NO_SHIFT),
    ),
    _metric(
        "dialogues",
        "avg_recovery_delay_cosine",
        "Mean recovery delay by CR alone",
        "delay_cosine_sum / n_recovered_cosine",
        _CONSISTENT,
        maximum=None,
        better="lower",
        null_rule=_NO_RECOVERY,
        unit="turns",
        numerator="delay_cosine_sum",
        denominator="n_recovered_cosine",
    ),
    _metric(
        "dialogues",
        "cas",
        "Conversation adaptation score",
        "weighted mean of recovery rate, 1 - clip(delay / 5), 1 - clip(mean i), mean cc, mean cr",
        _PUBLIC + " (legacy), on the grounded parts",
        null_rule="not_applicable without a shift or where nothing was recovered, missing_input "
        "where it is unknown of every shift whether it was",
    ),
    _metric(
        "dialogues",
        "cas_all",
        "Conversation adaptation score over all shifts",
        "as cas, with the mean of 1 - clip(delay / 5) over all shifts, 0 where one was not "
        "recovered",
        _PUBLIC + " (legacy), every shift counted",
        null_rule="not_applicable without a shift or a turn, and always in the profile legacy; "
        "missing_input where recovery is unknown of every shift, or no turn has both texts",
    ),
    *(
        _metric(
            "dialogues",
            f"{metric.id}_mean",
            f"Mean of {metric.name[0].lower()}{metric.name[1:]}",
            f"mean of {metric.id} over the turns that have one",
            _CONSISTENT,
            null_rule=_GOLD_MEAN_RULE,
        )
        for metric in TURN_METRICS
        if metric.id.startswith("dst_")
    ),
    _metric(
        "dialogues",
        "missing_concepts_total",
        "Missing concepts",
        "sum over turns of |E(U) - E(S)|",
        _DELTAS,
        maximum=None,
        better="lower",
        unit="concepts",
    ),
    _metric(
        "dialogues",
        "hallucinated_concepts_total",
        "Hallucinated concepts",
        "sum over turns of |E(S) - E(U)|",
        _DELTAS,
        maximum=None,
        better="lower",
        unit="concepts",
    ),
)

METRICS = (*DIALOGUE_METRICS, *TURN_METRICS, *SEGMENT_METRICS, *SHIFT_METRICS)
"""Every metric of the suite, those of dialogues first."""
